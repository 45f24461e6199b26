//! From bytes to token ids: split into words, look each up, merge those not met before.

use std::sync::Arc;

use super::artifact::Artifact;
use super::batch::Id;
use super::cache::WordCache;
use super::lanes::LANES;
use super::line_cache::{LineCache, LineKey};
use super::merges::{Merges, Scratch};
use super::superwords::{Lines, Superwords};
use super::vocabulary::Vocabulary;
use super::words::{Batch, Word, Words};
use crate::pattern::{Starts, lines};
use crate::{Error, Result, Stop};

/// What encoding needs of a tokenizer; shared by all workers.
pub(super) struct Encoder {
    units: Units,
    merges: Merges,
}

/// What text is cut into.
enum Units {
    Words,
    /// Lines of which each is merged as if it were a word: for merges that [`Superwords`] cannot do.
    WholeLines,
    /// Lines of words.
    Lines(Superwords),
}

/// A line that waits to be looked up.
#[derive(Clone, Copy, Default)]
struct WaitingLine {
    key: LineKey,
    start: usize,
    end: usize,
}

/// What one thread keeps between documents.
pub(super) struct Worker<T: Id> {
    cache: WordCache<T>,
    starts: Starts,
    /// The tokens of the word that was merged last.
    merged: Vec<u32>,
    scratch: Scratch,
    line_cache: LineCache<T>,
    lines: Lines<T>,
    /// The tokens of the words of the lines that the cache does not have.
    line_tokens: Vec<T>,
    batch: Box<Batch<T>>,
}

impl<T: Id> Default for Worker<T> {
    fn default() -> Self {
        Self {
            cache: WordCache::new(),
            starts: Starts::default(),
            merged: Vec::new(),
            scratch: Scratch::default(),
            line_cache: LineCache::default(),
            lines: Lines::default(),
            line_tokens: Vec::new(),
            batch: Box::default(),
        }
    }
}

impl Encoder {
    /// Makes the encoder of a tokenizer directory.
    ///
    /// # Errors
    /// As those of [`Vocabulary::merges`] and [`Vocabulary::byte_ids`].
    pub(super) fn new(artifact: &Artifact, vocabulary: &Vocabulary) -> Result<Self> {
        let merges = vocabulary.merges(artifact)?;
        let lengths = vocabulary.lengths();
        let byte_ids = vocabulary.byte_ids()?;
        let whole = Merges::new(byte_ids.clone(), &merges, Arc::clone(&lengths));
        if !artifact.pattern.is_lines() {
            return Ok(Self { units: Units::Words, merges: whole });
        }
        let words = Merges::new(byte_ids, &merges[..artifact.first_superword], lengths);
        if words.borders().is_none() || whole.borders().is_none() {
            return Ok(Self { units: Units::WholeLines, merges: whole });
        }
        let superwords = Superwords::new(&words, whole, &merges, artifact.first_superword);
        Ok(Self { units: Units::Lines(superwords), merges: words })
    }

    /// Appends the ids of `text` to `out`.
    ///
    /// # Errors
    /// `Invalid` if `text` has 4 GiB or more; `Stopped` if `stop` is set meanwhile.
    pub(super) fn encode<T: Id>(
        &self,
        worker: &mut Worker<T>,
        text: &[u8],
        stop: &Stop,
        out: &mut Vec<T>,
    ) -> Result<()> {
        if u32::try_from(text.len()).is_err() {
            return Err(Error::invalid(format!("a document of {} bytes is too long: the limit is 4 GiB", text.len())));
        }
        worker.starts.find(text);
        if std::str::from_utf8(text).is_ok() {
            self.encode_run(worker, text, 0, stop, out);
            return stop.check();
        }
        let mut at = 0;
        for chunk in text.utf8_chunks() {
            stop.check()?;
            let end = at + chunk.valid().len();
            self.encode_run(worker, &text[..end], at, stop, out);
            out.extend(chunk.invalid().iter().map(|&byte| T::new(self.merges.byte_id(byte))));
            at = end + chunk.invalid().len();
        }
        stop.check()
    }

    /// Appends the tokens of `unit`, which is a part of a word, or of a line if lines are cut; any bytes.
    pub(super) fn merge_unit(&self, unit: &[u8], stop: &Stop, out: &mut Vec<u32>) {
        let merges = if let Units::Lines(superwords) = &self.units { superwords.whole() } else { &self.merges };
        merges.merge(&mut Scratch::default(), unit, stop, out);
    }

    /// Appends the ids of the valid UTF-8 in `run[start..]`.
    fn encode_run<T: Id>(&self, worker: &mut Worker<T>, run: &[u8], start: usize, stop: &Stop, out: &mut Vec<T>) {
        let Worker { cache, starts, merged, scratch, batch, .. } = worker;
        let mut words = Words { merges: &self.merges, cache, scratch, merged, batch, run, at: start, stop };
        match &self.units {
            Units::Words => {
                starts.words(run, start, |ends| words.take_ends(ends, out));
                words.settle_all(out);
            }
            Units::WholeLines => {
                lines(run, start, |end| words.take(end, false, out, |_, _, _| {}));
                words.settle(out, |_, _, _| {});
            }
            Units::Lines(superwords) => self.encode_lines(superwords, worker, run, start, stop, out),
        }
    }

    /// Appends the ids of the lines of `run[start..]`.
    fn encode_lines<T: Id>(
        &self,
        superwords: &Superwords,
        worker: &mut Worker<T>,
        run: &[u8],
        start: usize,
        stop: &Stop,
        out: &mut Vec<T>,
    ) {
        worker.line_cache.prepare();
        let (mut waiting, mut count, mut at) = ([WaitingLine::default(); LANES], 0, start);
        let starts = std::mem::take(&mut worker.starts);
        starts.lines(run, start, |end| {
            let key = LineKey::new(&run[at..end]);
            worker.line_cache.prefetch(key);
            waiting[count] = WaitingLine { key, start: at, end };
            count += 1;
            at = end;
            if count == LANES {
                self.settle_lines(superwords, worker, &starts, run, &waiting, stop, out);
                count = 0;
            }
        });
        self.settle_lines(superwords, worker, &starts, run, &waiting[..count], stop, out);
        worker.starts = starts;
    }

    /// Appends the ids of lines.
    #[inline(never)]
    fn settle_lines<T: Id>(
        &self,
        superwords: &Superwords,
        worker: &mut Worker<T>,
        starts: &Starts,
        run: &[u8],
        waiting: &[WaitingLine],
        stop: &Stop,
        out: &mut Vec<T>,
    ) {
        if stop.is_set() {
            return;
        }
        let Worker { cache, merged, scratch, batch, line_cache, lines, line_tokens, .. } = worker;
        let mut words = Words { merges: &self.merges, cache, scratch, merged, batch, run, at: 0, stop };
        lines.begin();
        let mut take = |word: Word, token: usize, tokens: &mut Vec<T>| {
            superwords.begin_word(&self.merges, lines, run, word.start, token, tokens);
            if word.ends_line {
                superwords.end_line(&self.merges, lines, run, word.end, tokens);
            }
        };
        let mut found = [const { None }; LANES];
        for (found, line) in found.iter_mut().zip(waiting) {
            *found = line_cache.find(line.key);
        }
        line_tokens.clear();
        let mut line_end = usize::MAX;
        for (found, line) in found.iter_mut().zip(waiting) {
            *found = found.take().filter(|found| line_cache.holds(found, &run[line.start..line.end]));
            if found.is_none() {
                if line.start != line_end {
                    words.settle(line_tokens, &mut take);
                    words.at = line.start;
                }
                line_end = line.end;
                starts.words_of_lines(&run[..line.end], line.start, |end, ends_line| {
                    words.take(end, ends_line, line_tokens, &mut take);
                });
            }
        }
        words.settle(line_tokens, take);
        if stop.is_set() {
            return;
        }
        superwords.join(lines, stop);
        let mut number = 0;
        for found in &found[..waiting.len()] {
            if let Some(found) = found {
                out.extend_from_slice(line_cache.tokens(found));
            } else {
                out.extend_from_slice(lines.tokens(number));
                number += 1;
            }
        }
        if stop.is_set() {
            return;
        }
        let unknown = found.iter().zip(waiting).filter(|(found, _)| found.is_none());
        for (number, (_, line)) in unknown.enumerate() {
            line_cache.keep(line.key, &run[line.start..line.end], lines.tokens(number));
        }
    }
}
