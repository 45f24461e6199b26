//! Memory for tables that are read in random order.

#![allow(unsafe_code, reason = "advice to the system, and to the processor, about memory")]

/// Asks for large pages behind a vector that has not been written to yet. A large table on pages of 4 KiB costs a walk
/// of the page tables for nearly every access, more than the access itself, and twice that in a virtual machine.
///
/// Only advice, and only where the system takes it; small vectors are left alone.
pub(crate) fn use_large_pages<T>(memory: &mut Vec<T>) {
    advise(memory.spare_capacity_mut());
}

/// Makes a vector of so many defaults, on large pages if it is large.
pub(crate) fn defaults<T: Default>(len: usize) -> Vec<T> {
    let mut memory = Vec::with_capacity(len);
    use_large_pages(&mut memory);
    memory.resize_with(len, T::default);
    memory
}

/// Makes a vector of zeros, on large pages if it is large; memory is taken when it is written to.
pub(crate) fn zeros<T: Copy + Default>(len: usize) -> Vec<T> {
    let mut memory = vec![T::default(); len];
    advise(&mut memory);
    memory
}

fn advise<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        const LARGE_PAGE: usize = 2 << 20;
        let bytes = size_of_val(memory);
        let start = memory.as_mut_ptr() as usize;
        let aligned = start.next_multiple_of(LARGE_PAGE);
        if start + bytes >= aligned + LARGE_PAGE {
            // SAFETY: the range lies within the caller's own memory, and the advice changes no contents.
            unsafe {
                libc::madvise(aligned as *mut libc::c_void, start + bytes - aligned, libc::MADV_HUGEPAGE);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// Asks for the cache line of `place`, which is read soon.
#[inline]
pub(crate) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and cannot fault.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
