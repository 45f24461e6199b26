//! Splitting as an encoder does it: by the places where words start.

use super::starts::Starts;
use super::{Pattern, Run, for_runs};

impl Pattern {
    /// The same as [`Self::split`], as an encoder does it.
    pub(super) fn split_by_starts<'a>(self, text: &'a [u8], mut each: impl FnMut(&'a [u8])) {
        let (mut starts, mut at) = (Starts::default(), 0);
        let mut word = |end: usize| each(&text[std::mem::replace(&mut at, end)..end]);
        for_runs(text, |run| match run {
            Run::Valid(start, end) => {
                starts.find(self, &text[start..end]);
                starts.words(&text[start..end], 0, |ends| ends.behind(start).each(&mut word));
            }
            Run::Invalid(byte) => word(byte + 1),
        });
    }
}
