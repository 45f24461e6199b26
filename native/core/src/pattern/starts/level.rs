//! The instructions that starts are found with.

/// What is used of the processor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Fallback,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The fastest that this processor has.
    pub(super) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if super::avx512::available() {
            return Self::Avx512;
        }
        #[cfg(target_arch = "x86_64")]
        if super::avx2::available() {
            return Self::Avx2;
        }
        Self::Fallback
    }
}
