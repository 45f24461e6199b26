//! The word cache: the tokens of words seen before.
//!
//! A *near* table has the short words seen most recently. It is small enough to stay in a core's own cache, and every
//! word is looked up there first, without a branch. A word of up to 15 bytes is its own key ([`ShortKey`]); its ids are
//! beside it.
//!
//! Every word of up to 256 bytes has a *record*: its length, the number of its ids, its bytes and the ids. Records are
//! written one after another, and an index of hashes, ten per cache line, says where they are. When a quarter of the
//! records is full, those of the next quarter, the oldest ones, are forgotten. So a cache never grows beyond about 62
//! MB, whatever the text.
//!
//! A word outside the near table costs two look-ups in memory that is in no cache, one after the other. So a caller
//! makes them for many words at once: it asks for all index lines, then for all records, and then reads them.

use arrow_buffer::ToByteSlice;

use super::key::Key;
use crate::encode::id::Id;
use crate::memory::{defaults, prefetch, zeros};
use crate::short_key::{KeyPair, ShortKey};

/// Longer words are not kept.
const MAX_KEPT_BYTES: usize = 256;
/// Lines of the near table.
const NEAR_LINES: usize = 1 << 12;
/// Lines of the index.
const INDEX_LINES: usize = 1 << 18;
/// Records in a line of the index.
const WAYS: usize = 10;
/// Parts of the records; when one is full, the next is forgotten.
const PARTS: usize = 4;
const PART_BYTES: usize = 11 << 20;
/// Bytes before the bytes of a word in its record.
const HEAD_BYTES: usize = 2;
/// So many bytes of a record are read at once.
const READ_BYTES: usize = 16;

/// What a word becomes: its ids, and in the last lane their number; or zero there, and the place of its record as a
/// number.
#[derive(Clone, Copy, Default)]
pub(crate) struct WordIds<T: Id>(T::Lanes);

/// The place of what has no record.
const NOWHERE: u32 = 0;

/// Two short words and what they become, in one cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct NearLine<T: Id> {
    keys: KeyPair,
    found: [WordIds<T>; 2],
}

/// Where the records of some words are: a part of their hashes, and the places.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct IndexLine {
    tags: [u16; WAYS],
    places: [u32; WAYS],
}

/// The tokens of words already met; one a worker, kept between calls.
pub(crate) struct WordCache<T: Id> {
    near: Box<[NearLine<T>; NEAR_LINES]>,
    index: Vec<IndexLine>,
    records: Vec<u8>,
    /// Where the next record is put, and where the part ends in which it is.
    next: usize,
    part_end: usize,
    /// Changes with every word that takes the place of another.
    turn: usize,
}

impl<T: Id> WordIds<T> {
    /// What has a record at `place`.
    fn record(place: u32) -> Self {
        let mut lanes = T::Lanes::default();
        T::put_number(place, lanes.as_mut());
        Self(lanes)
    }

    /// What has `count` ids, the first in `ids`, if these are all.
    #[inline]
    fn ids(mut ids: T::Lanes, count: usize) -> Option<Self> {
        let (last, others) = ids.as_mut().split_last_mut()?;
        *last = T::new(count as u32);
        (count <= others.len()).then_some(Self(ids))
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "for each word")]
    fn count(&self) -> usize {
        let lanes = self.0.as_ref();
        lanes[lanes.len() - 1].id() as usize
    }

    /// Writes the ids of the first of `all` to `room`, up to one that has more ids than are kept here or that does not
    /// fit; returns how many words were done, and how many ids they have.
    #[inline]
    pub(crate) fn write_few(all: &[Self], room: &mut [T]) -> (usize, usize) {
        let (mut length, mut done) = (0, 0);
        for found in all {
            let (count, lanes) = (found.count(), found.0.as_ref());
            let Some(place) = room.get_mut(length..length + lanes.len()).filter(|_| count > 0) else { break };
            place.copy_from_slice(lanes);
            length += count;
            done += 1;
        }
        (done, length)
    }
}

/// The line of the near table where a word may be.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a few instructions")]
fn near_line(short: ShortKey) -> usize {
    short.hash() as usize % NEAR_LINES
}

/// The line of the index where a word may be.
#[inline]
fn index_line(key: Key) -> usize {
    key.hash as usize % INDEX_LINES
}

/// What distinguishes the words of a line.
#[inline]
fn tag(key: Key) -> u16 {
    (key.hash >> 48) as u16
}

impl<T: Id> WordCache<T> {
    /// Makes an empty cache.
    pub(crate) fn new() -> Self {
        let near = Box::new([NearLine::default(); NEAR_LINES]);
        let (index, records) = (defaults(INDEX_LINES), zeros(PARTS * PART_BYTES + READ_BYTES));
        // The first byte is left out: no record is nowhere.
        Self { near, index, records, next: 1, part_end: PART_BYTES, turn: 0 }
    }

    /// The line of the near table where a word belongs; asks for it.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "for each word")]
    pub(crate) fn prefetch_near(&self, short: ShortKey) -> u16 {
        let line = near_line(short);
        prefetch(&self.near[line]);
        line as u16
    }

    /// What a word becomes, if it is in this line of the near table; anything and `false` if it is not.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "for each word")]
    pub(crate) fn near(&self, short: ShortKey, line: u16) -> (WordIds<T>, bool) {
        let line = &self.near[usize::from(line) % NEAR_LINES];
        let (way, is_near) = line.keys.find(short);
        (line.found[way], is_near)
    }

    /// Asks for the line of the index where a word belongs.
    #[inline]
    pub(crate) fn prefetch(&self, key: Key) {
        prefetch(&self.index[index_line(key)]);
    }

    /// The place where the record of a word is, if it is known and nothing looks like it; asks for it.
    #[inline]
    pub(crate) fn place(&self, key: Key) -> u32 {
        let line = &self.index[index_line(key)];
        let mut ways = 0_u32;
        for (way, &of_way) in line.tags.iter().enumerate() {
            ways |= u32::from(of_way == tag(key)) << way;
        }
        let place = line.places.get(ways.trailing_zeros() as usize).map_or(NOWHERE, |place| *place);
        prefetch(&self.records[place as usize]);
        place
    }

    /// What `word`, whose key is `key`, becomes, if it is known.
    pub(crate) fn find(&mut self, key: Key, word: &[u8]) -> Option<WordIds<T>> {
        let IndexLine { tags, places } = self.index[index_line(key)];
        let mut same = tags.into_iter().zip(places).filter(|(of_way, _)| *of_way == tag(key));
        same.find_map(|(_, place)| self.find_at(key, word, place))
    }

    /// What `word`, whose key is `key`, becomes, if its record is at `place`.
    #[inline]
    pub(crate) fn find_at(&mut self, key: Key, word: &[u8], place: u32) -> Option<WordIds<T>> {
        let record = &self.records[place as usize..];
        let is_same = if key.short.is_long() {
            // The length of a longer word would be taken for that of a shorter one.
            Self::keeps(word) && record[0] == word.len() as u8 && record[HEAD_BYTES..].starts_with(word)
        } else {
            usize::from(record[0]) == word.len() && ShortKey::new(&record[HEAD_BYTES..], 0, word.len()) == key.short
        };
        if !is_same || place == NOWHERE {
            return None;
        }
        let found = T::lanes(&record[HEAD_BYTES + word.len()..])
            .and_then(|ids| WordIds::ids(ids, usize::from(record[1]) + 1))
            .unwrap_or_else(|| WordIds::record(place));
        self.put_near(key.short, found);
        Some(found)
    }

    /// Puts a short word into the near table, in place of the older of two.
    #[inline]
    fn put_near(&mut self, short: ShortKey, found: WordIds<T>) {
        if short.is_long() {
            return;
        }
        let line = &mut self.near[near_line(short)];
        line.keys.push(short);
        line.found = [found, line.found[0]];
    }

    /// Appends the ids that a word becomes to `out`; `false` if the word is not kept.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "for each word")]
    pub(crate) fn append(&self, found: &WordIds<T>, out: &mut Vec<T>) -> bool {
        let count = found.count();
        if count == 0 {
            return self.append_record(T::number(found.0.as_ref()), out);
        }
        let length = out.len() + count;
        out.extend_from_slice(found.0.as_ref());
        out.truncate(length);
        true
    }

    #[inline(never)]
    fn append_record(&self, place: u32, out: &mut Vec<T>) -> bool {
        let [length, count, rest @ ..] = &self.records[place as usize..] else { return false };
        if place == NOWHERE {
            return false;
        }
        let bytes = if *length == 0 { MAX_KEPT_BYTES } else { usize::from(*length) };
        let ids = rest[bytes..].chunks_exact(size_of::<T>()).take(usize::from(*count) + 1);
        out.extend(ids.map(T::from_bytes));
        true
    }

    /// Whether a word is kept at all.
    pub(crate) fn keeps(word: &[u8]) -> bool {
        word.len() <= MAX_KEPT_BYTES
    }

    /// Makes room for `words` words: what is known may be forgotten here, and nowhere else.
    #[inline]
    pub(crate) fn make_room(&mut self, words: usize) {
        if self.next + words * (HEAD_BYTES + MAX_KEPT_BYTES * (1 + size_of::<T>())) > self.part_end {
            self.forget_part();
        }
    }

    /// Goes on to the next part of the records, and forgets those that are there.
    #[cold]
    fn forget_part(&mut self) {
        let start = self.part_end % (PARTS * PART_BYTES);
        (self.next, self.part_end) = (start.max(1), start + PART_BYTES);
        let part = start as u32..self.part_end as u32;
        for line in &mut self.index {
            for place in &mut line.places {
                if part.contains(place) {
                    *place = NOWHERE;
                }
            }
        }
        self.near.fill(NearLine::default());
    }

    /// Keeps the tokens of `word`, whose key is `key`; there is one at least. Returns what the word becomes.
    pub(crate) fn keep(&mut self, key: Key, word: &[u8], tokens: &[T]) -> WordIds<T> {
        if !Self::keeps(word) {
            return WordIds::record(NOWHERE);
        }
        let place = self.put_record(word, tokens);
        let line = &mut self.index[index_line(key)];
        self.turn = self.turn.wrapping_add(1);
        let way = line.places.iter().position(|&place| place == NOWHERE).unwrap_or(self.turn % WAYS);
        (line.tags[way], line.places[way]) = (tag(key), place);
        let mut lanes = T::Lanes::default();
        let few = tokens.len().min(lanes.as_ref().len());
        lanes.as_mut()[..few].copy_from_slice(&tokens[..few]);
        let found = WordIds::ids(lanes, tokens.len()).unwrap_or_else(|| WordIds::record(place));
        self.put_near(key.short, found);
        found
    }

    fn put_record(&mut self, word: &[u8], tokens: &[T]) -> u32 {
        let (place, ids) = (self.next, tokens.to_byte_slice());
        self.next += HEAD_BYTES + word.len() + ids.len();
        let (head, rest) = self.records[place..self.next].split_at_mut(HEAD_BYTES);
        head.copy_from_slice(&[word.len() as u8, (tokens.len() - 1) as u8]);
        let (bytes, rest) = rest.split_at_mut(word.len());
        bytes.copy_from_slice(word);
        rest.copy_from_slice(ids);
        place as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(word: &[u8]) -> Key {
        Key::new(ShortKey::new(word, 0, word.len()), word)
    }

    /// The ids of a word, if they are known; they are the same near and in the record.
    fn ids<T: Id + std::fmt::Debug>(cache: &mut WordCache<T>, word: &[u8]) -> Option<Vec<T>> {
        let append = |cache: &WordCache<T>, found: &WordIds<T>| {
            let mut ids = Vec::new();
            assert!(cache.append(found, &mut ids));
            ids
        };
        let short = key(word).short;
        let (found, is_near) = cache.near(short, cache.prefetch_near(short));
        let near = is_near.then(|| append(cache, &found));
        let known = cache.find(key(word), word).map(|found| append(cache, &found));
        assert!(near.is_none() || known.is_none() || near == known);
        near.or(known)
    }

    /// Keeps more than there is room for, and looks everything up meanwhile.
    fn what_is_found_is_what_was_kept<T: Id + std::fmt::Debug>() {
        let mut cache = WordCache::<T>::new();
        let (mut hits, count) = (0, 700_000);
        for number in (0..count).chain((0..count).rev()) {
            let tokens: Vec<T> = (0..=number % 10).map(|index| T::new((number + index) % 65_536)).collect();
            for word in [&number.to_le_bytes()[..], format!("a_long_identifier_{number}").as_bytes()] {
                if let Some(kept) = ids(&mut cache, word) {
                    assert_eq!(kept, tokens);
                    hits += 1;
                } else {
                    cache.make_room(1);
                    let found = cache.keep(key(word), word, &tokens);
                    let mut kept = Vec::new();
                    assert!(cache.append(&found, &mut kept));
                    assert_eq!(kept, tokens);
                    assert_eq!(ids(&mut cache, word), Some(tokens.clone()));
                }
            }
        }
        assert!(0 < hits && hits < 2 * count, "{hits}");
        assert_eq!(cache.records.len(), PARTS * PART_BYTES + READ_BYTES);
    }

    #[test]
    fn what_is_found_is_what_was_kept_though_the_cache_is_full() {
        what_is_found_is_what_was_kept::<u16>();
        what_is_found_is_what_was_kept::<u32>();
    }

    #[test]
    fn words_of_any_length_are_compared_with_their_records() {
        let mut cache = WordCache::<u16>::new();
        let text: Vec<u8> = (0..MAX_KEPT_BYTES).map(|at| at as u8 | 1).collect();
        for length in 1..=MAX_KEPT_BYTES {
            let (word, tokens) = (&text[..length], vec![length as u16; length]);
            assert_eq!(ids(&mut cache, word), None);
            cache.make_room(1);
            let place = cache.next;
            cache.keep(key(word), word, &tokens);
            assert_eq!(ids(&mut cache, word), Some(tokens));
            cache.near.fill(NearLine::default());
            cache.records[place + HEAD_BYTES + length - 1] ^= 1;
            assert_eq!(ids(&mut cache, word), None, "{length}");
        }
    }

    #[test]
    fn a_word_that_is_too_long_is_not_taken_for_a_record_that_it_begins_with() {
        let mut cache = WordCache::<u16>::new();
        let long: Vec<u8> = (0..MAX_KEPT_BYTES + 20).map(|at| at as u8 | 1).collect();
        let hash = Key { hash: key(&long).hash, ..key(&long[..20]) };
        cache.make_room(2);
        cache.keep(hash, &long[..20], &[1]);
        let place = cache.next - 2;
        cache.records[place..][..MAX_KEPT_BYTES].copy_from_slice(&long[20..]);
        assert!(cache.find(key(&long), &long).is_none());
    }

    #[test]
    fn a_word_that_is_too_long_is_not_kept() {
        let mut cache = WordCache::<u16>::new();
        let word = [b'a'; MAX_KEPT_BYTES + 1];
        let found = cache.keep(key(&word), &word, &[1]);
        assert!(!cache.append(&found, &mut Vec::new()));
        assert_eq!(ids(&mut cache, &word), None);
    }
}
