//! From bytes to token ids: the text is split into words or lines; each is looked up, and merged if it is new.

use std::sync::{Arc, OnceLock};

use crate::encode::added::{AddedTokens, Finder, cut};
use crate::encode::bpe::{Merges, Scratch};
use crate::encode::id::Id;
use crate::encode::lines::{LineEncoder, LineMemory, Superwords};
use crate::encode::load::{Artifact, Vocabulary};
use crate::encode::nfc::{is_surely_kept, nfc};
use crate::encode::words::{Colleagues, PendingWords, Room, SharedWords, WordCache, WordEncoder};
use crate::pattern::{Pattern, Starts};
use crate::{Error, Result, Stop};

/// What encoding needs of a tokenizer; shared by all workers.
pub(crate) struct Encoder {
    pattern: Pattern,
    segmentation: Segmentation,
    merges: Merges,
    /// Whether text is put in NFC.
    normalizes: bool,
}

/// What text is cut into.
enum Segmentation {
    Words,
    /// Words of a pre-tokenizer of another program, between its added tokens.
    Foreign(AddedTokens),
    /// Lines, each merged as if it were a word: for merges that [`Superwords`] cannot do.
    WholeLines,
    /// Lines of words.
    Lines(Box<Superwords>),
}

/// What all workers have merged.
#[derive(Default)]
pub(crate) struct Shared {
    words: SharedWords,
    /// Made when it is needed.
    segments: OnceLock<SharedWords>,
}

/// What one thread keeps between documents.
pub(crate) struct Worker<T: Id> {
    cache: WordCache<T>,
    /// What all workers have merged, once there are several.
    shared: Arc<OnceLock<Shared>>,
    room: Room,
    starts: Starts,
    /// The tokens of the word that was merged last.
    merged: Vec<u32>,
    scratch: Scratch,
    lines: LineMemory<T>,
    pending: Box<PendingWords<T>>,
}

impl<T: Id> Worker<T> {
    /// Makes a worker that shares words with others.
    pub(crate) fn new(shared: Arc<OnceLock<Shared>>) -> Self {
        Self {
            cache: WordCache::new(),
            shared,
            room: Room::default(),
            starts: Starts::default(),
            merged: Vec::new(),
            scratch: Scratch::default(),
            lines: LineMemory::default(),
            pending: Box::default(),
        }
    }
}

impl Encoder {
    /// Makes the encoder of a tokenizer directory.
    ///
    /// # Errors
    /// As [`Vocabulary::merges`] and [`Vocabulary::byte_ids`].
    pub(crate) fn new(artifact: &Artifact, vocabulary: &Vocabulary) -> Result<Self> {
        let merges = vocabulary.merges(artifact)?;
        let lengths = vocabulary.lengths();
        let byte_ids = vocabulary.byte_ids()?;
        let whole = Merges::new(byte_ids.clone(), &merges, Arc::clone(&lengths));
        let (pattern, normalizes) = (artifact.pattern, artifact.normalizes);
        if artifact.is_foreign {
            let tokens = artifact.ignore_merges.then(|| vocabulary.tokens()).into_iter().flatten();
            let merges = whole.with_whole_words(tokens);
            let segmentation = Segmentation::Foreign(AddedTokens::new(artifact)?);
            return Ok(Self { pattern, segmentation, merges, normalizes });
        }
        if !pattern.is_lines() {
            return Ok(Self { pattern, segmentation: Segmentation::Words, merges: whole, normalizes });
        }
        let words = Merges::new(byte_ids, &merges[..artifact.first_superword], lengths);
        let made = merges[..artifact.first_superword].iter().filter_map(|merge| vocabulary.bytes(merge.2).ok());
        if !words.has_borders() || !whole.has_borders() || !Superwords::suit(pattern.words(), made) {
            return Ok(Self { pattern, segmentation: Segmentation::WholeLines, merges: whole, normalizes });
        }
        let superwords = Superwords::new(&words, whole, &merges, artifact.first_superword);
        Ok(Self { pattern, segmentation: Segmentation::Lines(Box::new(superwords)), merges: words, normalizes })
    }

    /// Whether the tokenizer is one of another program, of which the encoder cannot tell what later text changes.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self.segmentation, Segmentation::Foreign(_))
    }

    /// Whether text is put in NFC, so that decoding gives that.
    pub(crate) fn normalizes(&self) -> bool {
        self.normalizes
    }

    /// Appends the ids of `text` to `out`.
    ///
    /// # Errors
    /// `Invalid` if `text` has 4 GiB or more; `Stopped` if `stop` is set meanwhile.
    pub(crate) fn encode<T: Id>(
        &self,
        worker: &mut Worker<T>,
        text: &[u8],
        stop: &Stop,
        out: &mut Vec<T>,
    ) -> Result<()> {
        if u32::try_from(text.len()).is_err() {
            return Err(Error::invalid(format!("a document of {} bytes is too long: the limit is 4 GiB", text.len())));
        }
        match &self.segmentation {
            Segmentation::Foreign(added) if self.normalizes && !is_surely_kept(text) => {
                self.encode_normalized(worker, added, text, stop, out);
            }
            Segmentation::Foreign(added) => self.encode_text(worker, added.all(), text, stop, out),
            _ => self.encode_text(worker, &[], text, stop, out),
        }
        stop.check()
    }

    /// Puts what lies between the added tokens in NFC, and appends the ids.
    fn encode_normalized<T: Id>(
        &self,
        worker: &mut Worker<T>,
        added: &AddedTokens,
        text: &[u8],
        stop: &Stop,
        out: &mut Vec<T>,
    ) {
        let (raw, normalized) = added.around_normalizer();
        for chunk in text.utf8_chunks() {
            let run = chunk.valid().as_bytes();
            cut(raw, run, 0, &mut |from, to, token| match token {
                None => self.encode_text(worker, normalized, &nfc(&run[from..to]), stop, out),
                Some(id) => out.push(T::new(id)),
            });
            self.encode_text(worker, &[], chunk.invalid(), stop, out);
        }
    }

    /// Appends the ids of a text as it is; of a tokenizer of another program, `added` finds its added tokens.
    fn encode_text<T: Id>(&self, worker: &mut Worker<T>, added: &[Finder], text: &[u8], stop: &Stop, out: &mut Vec<T>) {
        let Worker { cache, shared, room, starts, merged, scratch, pending, lines: memory } = worker;
        if !matches!(self.segmentation, Segmentation::Foreign(_)) {
            starts.find(self.pattern, text);
        }
        let colleagues = Colleagues { words: shared.get().map(|shared| &shared.words), room };
        let words =
            WordEncoder { merges: &self.merges, cache, colleagues, scratch, merged, pending, run: text, at: 0, stop };
        match &self.segmentation {
            Segmentation::Words => encode_words(starts, words, out),
            Segmentation::Foreign(_) => encode_foreign(self.pattern, starts, added, words, out),
            Segmentation::WholeLines => encode_whole_lines(self.pattern, words, out),
            Segmentation::Lines(superwords) => {
                let segments = shared.get().map(|shared| shared.segments.get_or_init(SharedWords::default));
                encode_lines(starts, LineEncoder::new(superwords, starts, words, segments, memory), text, out);
            }
        }
    }

    /// Appends the tokens of a part of a word, or of a line if lines are cut; any bytes.
    pub(crate) fn merge_fragment(&self, fragment: &[u8], stop: &Stop, out: &mut Vec<u32>) {
        let merges =
            if let Segmentation::Lines(superwords) = &self.segmentation { superwords.whole() } else { &self.merges };
        merges.merge(&mut Scratch::default(), fragment, stop, out);
    }
}

fn encode_words<T: Id>(starts: &Starts, mut words: WordEncoder<'_, T>, out: &mut Vec<T>) {
    starts.all_words(words.run, |ends| words.take_ends(ends, out));
    words.settle_all(out);
}

fn encode_foreign<T: Id>(
    pattern: Pattern,
    starts: &mut Starts,
    added: &[Finder],
    mut words: WordEncoder<'_, T>,
    out: &mut Vec<T>,
) {
    each_run(words.run, |run, start, is_valid| {
        if !is_valid {
            return words.take_end(run.len(), out);
        }
        cut(added, run, start, &mut |from, to, token| match token {
            None => {
                starts.find(pattern, &run[from..to]);
                starts.words(&run[from..to], 0, |ends| words.take_ends(ends.behind(from), out));
            }
            Some(id) => {
                words.settle_all(out);
                out.push(T::new(id));
                words.at = to;
            }
        });
    });
    words.settle_all(out);
}

fn encode_whole_lines<T: Id>(pattern: Pattern, mut words: WordEncoder<'_, T>, out: &mut Vec<T>) {
    each_run(words.run, |run, start, is_valid| {
        if is_valid {
            pattern.ends(run, start, |end| words.take_end(end, out));
        } else {
            words.take_end(run.len(), out);
        }
    });
    words.settle_all(out);
}

fn encode_lines<T: Id>(starts: &Starts, mut lines: LineEncoder<'_, T>, text: &[u8], out: &mut Vec<T>) {
    each_run(text, |run, start, is_valid| {
        if is_valid {
            starts.lines(run, start, |end| lines.take(end, false, out));
        } else {
            lines.take(run.len(), true, out);
        }
    });
    lines.end(out);
}

/// Calls `each` with the text up to the end of each maximal run of valid UTF-8, and of each byte that is not UTF-8,
/// with where the run or the byte starts, and whether it is valid.
fn each_run<'a>(text: &'a [u8], mut each: impl FnMut(&'a [u8], usize, bool)) {
    if std::str::from_utf8(text).is_ok() {
        return each(text, 0, true);
    }
    let mut at = 0;
    for chunk in text.utf8_chunks() {
        let end = at + chunk.valid().len();
        if end > at {
            each(&text[..end], at, true);
        }
        at = end + chunk.invalid().len();
        (end..at).for_each(|byte| each(&text[..=byte], byte, false));
    }
}
