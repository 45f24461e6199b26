//! Splitting any bytes by the places where words start.

use super::starts::{Ends, Starts};
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

impl Starts {
    /// Calls `each` with the ends of all words of `text`, any bytes, in order, some at a time; it was given to
    /// [`Self::find`] with a pattern of ours.
    #[inline]
    pub(crate) fn all_words(&self, text: &[u8], mut each: impl FnMut(Ends)) {
        for_runs(text, |run| match run {
            Run::Valid(start, end) => self.words(&text[..end], start, &mut each),
            Run::Invalid(byte) => each(Ends::one(byte + 1)),
        });
    }

    /// The same with the end of each line.
    #[inline]
    pub(crate) fn all_lines(&self, text: &[u8], mut each: impl FnMut(usize)) {
        for_runs(text, |run| match run {
            Run::Valid(start, end) => self.lines(&text[..end], start, &mut each),
            Run::Invalid(byte) => each(byte + 1),
        });
    }
}
