//! From the words of a run to ids.
//!
//! Words are taken in batches. All are looked up in the near table of the cache, the missing ones in its index and
//! records, and the unknown ones are merged, several in turns. Each of these steps asks for the memory of the next one.

use super::cache::{WordCache, WordIds};
use super::key::Key;
use super::shared::{Room, SharedWords};
use crate::Stop;
use crate::encode::bpe::{LANES, MAX_CELLS, Merges, Merging, Scratch, join};
use crate::encode::id::Id;
use crate::pattern::Ends;
use crate::short_key::ShortKey;
use crate::stop::NEVER;

/// How many words are looked up together at most.
const BATCH: usize = 256 + BLOCK;
/// Room for the ids of a batch, but for those of words that have more than fit into a near table.
const FEW: usize = BATCH * 8;
/// How many words are taken at once at most.
const BLOCK: usize = 64;
/// How many hashes are remembered to recognise a word that a batch has twice.
const SEEN: usize = 64;

/// A word of a run.
#[derive(Clone, Copy)]
pub(crate) struct WordSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) ends_line: bool,
}

/// Words that are looked up together, one after another in the text.
pub(crate) struct PendingWords<T: Id> {
    length: usize,
    ends: [u32; BATCH],
    end_lines: [bool; BATCH],
    short: [ShortKey; BATCH],
    /// Their lines in the near table.
    lines: [u16; BATCH],
    found: [WordIds<T>; BATCH],
    /// Those that are not near, later those that are not known.
    far: [u16; BATCH],
    /// The keys of those, and where their records must be.
    keys: [Key; BATCH],
    places: [u32; BATCH],
    /// Those that are not known, but are long or the same as others.
    again: [u16; BATCH],
    /// The ids of words, before they are put out.
    few: [T; FEW],
}

impl<T: Id> Default for PendingWords<T> {
    fn default() -> Self {
        Self {
            length: 0,
            ends: [0; BATCH],
            end_lines: [false; BATCH],
            short: [ShortKey::default(); BATCH],
            lines: [0; BATCH],
            found: [WordIds::default(); BATCH],
            far: [0; BATCH],
            keys: [Key::default(); BATCH],
            places: [0; BATCH],
            again: [0; BATCH],
            few: [T::new(0); FEW],
        }
    }
}

impl<T: Id> PendingWords<T> {
    /// Adds a word by its end, and says whether they are to be settled now.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a call for each word")]
    pub(crate) fn push(&mut self, end: usize, ends_line: bool) -> bool {
        self.ends[self.length] = end as u32;
        self.end_lines[self.length] = ends_line;
        self.length += 1;
        self.length > BATCH - BLOCK
    }
}

/// The words that other workers have merged, and room for those of this one; nothing as long as there is one worker.
pub(crate) struct Colleagues<'a> {
    pub(crate) words: Option<&'a SharedWords>,
    pub(crate) room: &'a mut Room,
}

/// What the words of a run are encoded with.
pub(crate) struct WordEncoder<'a, T: Id, M = Merges> {
    pub(crate) merges: &'a M,
    pub(crate) cache: &'a mut WordCache<T>,
    pub(crate) colleagues: Colleagues<'a>,
    pub(crate) scratch: &'a mut Scratch,
    /// The tokens of the word that was merged last.
    pub(crate) merged: &'a mut Vec<u32>,
    pub(crate) pending: &'a mut PendingWords<T>,
    pub(crate) run: &'a [u8],
    /// Where the first word of the batch starts.
    pub(crate) at: usize,
    /// Once it is set, words are left out.
    pub(crate) stop: &'a Stop,
}

impl<'a, T: Id, M: Merging> WordEncoder<'a, T, M> {
    /// Takes the word that goes on to `end`; [`Self::settle`] must come after the last one.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a call for each word")]
    pub(crate) fn take(
        &mut self,
        end: usize,
        ends_line: bool,
        out: &mut Vec<T>,
        each: impl FnMut(WordSpan, usize, &mut Vec<T>),
    ) {
        if self.pending.push(end, ends_line) {
            self.settle(out, each);
        }
    }

    /// Takes words by their ends; [`Self::settle_all`] must come after the last ones.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a call for each block of text")]
    pub(crate) fn take_ends(&mut self, ends: Ends, out: &mut Vec<T>) {
        let pending = &mut *self.pending;
        if let Some(places) = pending.ends[pending.length..].first_chunk_mut() {
            pending.length += ends.put(places);
        }
        if pending.length > BATCH - BLOCK {
            self.settle_all(out);
        }
    }

    /// Takes the word that goes on to `end`; [`Self::settle_all`] must come after the last one.
    pub(crate) fn take_end(&mut self, end: usize, out: &mut Vec<T>) {
        self.take_ends(Ends::one(end), out);
    }

    /// Appends the ids of the words of the batch.
    #[inline(never)]
    pub(crate) fn settle_all(&mut self, out: &mut Vec<T>) {
        if !self.stop.is_set() {
            self.look_up();
            self.write_all(out);
        }
        self.pending.length = 0;
    }

    /// Appends the ids of the words of the batch, and calls `each` with each word, the place of its first id, and the
    /// output.
    #[inline(never)]
    pub(crate) fn settle(&mut self, out: &mut Vec<T>, each: impl FnMut(WordSpan, usize, &mut Vec<T>)) {
        if !self.stop.is_set() {
            self.look_up();
            self.write(out, each);
        }
        self.pending.length = 0;
    }

    /// Finds out what the words of the batch become.
    fn look_up(&mut self) {
        // The near table says where records are, so none may be forgotten once a word was looked up.
        self.cache.make_room(self.pending.length);
        let far = self.look_near();
        let unknown = self.look_far(far);
        let unknown = self.ask_colleagues(unknown);
        if unknown > 0 {
            self.learn(unknown);
        }
    }

    /// Looks the words up in the near table; returns how many are not there.
    fn look_near(&mut self) -> usize {
        let PendingWords { length, ends, short, lines, found, far, .. } = &mut *self.pending;
        let (mut start, mut count) = (self.at, 0);
        for ((short, line), &end) in short.iter_mut().zip(&mut *lines).zip(&ends[..*length]) {
            *short = ShortKey::new(self.run, start, end as usize);
            *line = self.cache.prefetch_near(*short);
            start = end as usize;
        }
        for index in 0..(*length).min(BATCH) {
            let is_near;
            (found[index], is_near) = self.cache.near(short[index], lines[index]);
            far[count] = index as u16;
            count += usize::from(!is_near);
        }
        count
    }

    /// Looks up the words that are not near; returns how many are not known, leaving out those that come again.
    fn look_far(&mut self, count: usize) -> usize {
        for at in 0..count {
            let index = self.pending.far[at];
            let key = Key::new(self.pending.short[usize::from(index)], self.word(index));
            self.cache.prefetch(key);
            self.pending.keys[at] = key;
        }
        for at in 0..count {
            self.pending.places[at] = self.cache.place(self.pending.keys[at]);
        }
        let mut unknown = 0;
        for at in 0..count {
            let (index, key) = (self.pending.far[at], self.pending.keys[at]);
            let word = self.word(index);
            let found = self.cache.find_at(key, word, self.pending.places[at]);
            // Another word may have the same tag, and come first.
            let found = found.or_else(|| self.cache.find(key, word));
            if let Some(found) = found {
                self.pending.found[usize::from(index)] = found;
            } else {
                (self.pending.far[unknown], self.pending.keys[unknown]) = (index, key);
                unknown += 1;
            }
        }
        unknown
    }

    /// Keeps what other workers have made of words that are not known; returns how many are still not known.
    fn ask_colleagues(&mut self, count: usize) -> usize {
        let Some(words) = self.colleagues.words.filter(|_| count > 0) else { return count };
        let keys = &self.pending.keys[..count];
        for &key in keys {
            words.prefetch(key);
        }
        for (place, &key) in self.pending.places.iter_mut().zip(keys) {
            *place = words.place(key);
        }
        let (mut unknown, mut tokens) = (0, Vec::new());
        for at in 0..count {
            let (index, key) = (self.pending.far[at], self.pending.keys[at]);
            let word = self.word(index);
            if words.find_at(word, self.pending.places[at], &mut tokens) {
                // It may come twice in the batch.
                let found = self.cache.find(key, word).unwrap_or_else(|| self.cache.keep(key, word, &tokens));
                self.pending.found[usize::from(index)] = found;
            } else {
                (self.pending.far[unknown], self.pending.keys[unknown]) = (index, key);
                unknown += 1;
            }
        }
        unknown
    }

    /// Merges the words that are not known, and keeps their tokens.
    #[inline(never)]
    fn learn(&mut self, unknown: usize) {
        let (mut seen, mut again, mut lanes) = ([0; SEEN], 0, 0);
        for at in 0..unknown {
            let (index, key) = (self.pending.far[at], self.pending.keys[at]);
            let word = self.word(index);
            let is_seen = std::mem::replace(&mut seen[key.hash as usize % SEEN], key.hash) == key.hash;
            if is_seen || !self.merges.fill_lane(&mut self.scratch.lanes[lanes], word) {
                self.pending.again[again] = index;
                again += 1;
            } else {
                (self.pending.far[lanes], self.pending.keys[lanes]) = (index, key);
                lanes += 1;
            }
            if lanes == LANES {
                self.join(std::mem::take(&mut lanes));
            }
        }
        self.join(lanes);
        for at in 0..again {
            let index = self.pending.again[at];
            self.learn_one(Key::new(self.pending.short[usize::from(index)], self.word(index)), index);
        }
    }

    /// Merges the words that are in the first lanes, and keeps their tokens.
    fn join(&mut self, lanes: usize) {
        join(&mut self.scratch.lanes[..lanes], self.merges.pairs());
        for at in 0..lanes {
            let (mut tokens, mut length) = ([T::new(0); MAX_CELLS], 0);
            self.scratch.lanes[at].tokens(|id| {
                tokens[length] = T::new(id);
                length += 1;
            });
            let (index, key) = (self.pending.far[at], self.pending.keys[at]);
            self.pending.found[usize::from(index)] = self.keep(key, self.word(index), &tokens[..length]);
        }
    }

    /// Merges a word, if it is still not known, and keeps its tokens, if it is not too long.
    fn learn_one(&mut self, key: Key, index: u16) {
        let word = self.word(index);
        let found = self.cache.find(key, word).unwrap_or_else(|| {
            let mut tokens = Vec::new();
            if WordCache::<T>::keeps(word) {
                self.merge(word, &NEVER, &mut tokens);
            }
            self.keep(key, word, &tokens)
        });
        self.pending.found[usize::from(index)] = found;
    }

    /// Keeps the tokens of a word that was merged, for this worker and for the others.
    fn keep(&mut self, key: Key, word: &[u8], tokens: &[T]) -> WordIds<T> {
        let Colleagues { words, room } = &mut self.colleagues;
        words.filter(|_| WordCache::<T>::keeps(word)).inspect(|words| words.put(room, key, word, tokens));
        self.cache.keep(key, word, tokens)
    }

    /// Appends the tokens of a word to `out` by merging it.
    fn merge(&mut self, word: &[u8], stop: &Stop, out: &mut Vec<T>) {
        self.merged.clear();
        self.merged.shrink_to(1 << 20);
        self.merges.merge_any(self.scratch, word, stop, self.merged);
        out.extend(self.merged.iter().map(|&id| T::new(id)));
    }

    /// Appends the ids of the words to `out`.
    fn write(&mut self, out: &mut Vec<T>, mut each: impl FnMut(WordSpan, usize, &mut Vec<T>)) {
        for index in 0..self.pending.length {
            let (token, end) = (out.len(), self.pending.ends[index] as usize);
            let word = WordSpan { start: self.at, end, ends_line: self.pending.end_lines[index] };
            if !self.cache.append(&self.pending.found[index], out) {
                self.merge(&self.run[word.start..end], self.stop, out);
                if self.stop.is_set() {
                    return;
                }
            }
            each(word, token, out);
            self.at = end;
        }
    }

    /// Appends the ids of the words to `out`, without a call for each.
    fn write_all(&mut self, out: &mut Vec<T>) {
        let mut index = 0;
        while index < self.pending.length {
            let PendingWords { found, few, length, .. } = &mut *self.pending;
            let (done, ids) = WordIds::write_few(&found[index..*length], few);
            out.extend_from_slice(&few[..ids]);
            index += done;
            if index == self.pending.length {
                break;
            }
            if !self.cache.append(&self.pending.found[index], out) {
                self.merge(self.word(index as u16), self.stop, out);
            }
            index += 1;
        }
        if let Some(last) = self.pending.length.checked_sub(1) {
            self.at = self.pending.ends[last] as usize;
        }
    }

    #[inline]
    fn word(&self, index: u16) -> &'a [u8] {
        let (run, index) = (self.run, usize::from(index));
        let start = if index == 0 { self.at } else { self.pending.ends[index - 1] as usize };
        &run[start..self.pending.ends[index] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_near_keep_their_ids_though_a_new_word_of_their_batch_makes_the_cache_forget_records() {
        let bytes = Box::new(std::array::from_fn(|byte| byte as u32));
        let merges = Merges::new(bytes, &[], [1; 256].into());
        let mut text = Vec::new();
        let mut ends = Vec::new();
        // The cache is full at about 60,000 words of 256 bytes.
        for number in 0..70_000_u32 {
            for word in [&b"a short word"[..], &number.to_le_bytes().repeat(64)] {
                text.extend_from_slice(word);
                ends.push(text.len());
            }
        }
        let mut words = WordEncoder::<u16> {
            merges: &merges,
            cache: &mut WordCache::new(),
            colleagues: Colleagues { words: None, room: &mut Room::default() },
            scratch: &mut Scratch::default(),
            merged: &mut Vec::new(),
            pending: &mut Box::default(),
            run: &text,
            at: 0,
            stop: &NEVER,
        };
        let mut ids = Vec::new();
        for end in ends {
            words.take_end(end, &mut ids);
        }
        words.settle_all(&mut ids);
        assert!(ids.into_iter().eq(text.iter().map(|&byte| u16::from(byte))));
    }
}
