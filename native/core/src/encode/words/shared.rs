//! Words that several workers look up: what one has merged, the others need not merge.
//!
//! An index of hashes, eight per cache line, says where the records of words are. Both are atomic numbers. A record is
//! written to a place that no other worker knows, and then published by setting a free number of the index, once and
//! for all. So readers need no lock, and whoever finds a record finds all of it. When the line of a word or the records
//! are full, the word is left out: the worker's own [`super::WordCache`] has it. All together takes at most 40 MB.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::key::Key;
use crate::encode::id::Id;
use crate::memory::{defaults, prefetch};

/// Lines of the index.
const LINES: usize = 1 << 17;
/// Records in a line of the index.
const WAYS: usize = 8;
/// Records are written to chunks of so many numbers, each by one worker.
const CHUNK: usize = 1 << 13;
const CHUNKS: usize = 1 << 9;
/// The place of what has no record.
const NOWHERE: u32 = 0;
/// Bits of a number in front of those of a place, a length or an id.
const HALF: u32 = 32;

/// For each of some words the high half of its hash and the place of its record; 0 if it is free.
#[derive(Default)]
#[repr(align(64))]
struct IndexLine([AtomicU64; WAYS]);

/// The words.
pub(crate) struct SharedWords {
    index: Box<[IndexLine]>,
    chunks: Box<[OnceLock<Box<[AtomicU64]>>]>,
    /// How many chunks have been given to workers.
    taken: AtomicUsize,
}

/// Where a worker writes its next record: what is left of its chunk.
#[derive(Default)]
pub(crate) struct Room(Range<usize>);

impl Default for SharedWords {
    fn default() -> Self {
        Self {
            index: defaults(LINES).into(),
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
            taken: AtomicUsize::new(0),
        }
    }
}

impl SharedWords {
    /// Asks for the line of the index where a word belongs.
    #[inline]
    pub(crate) fn prefetch(&self, key: Key) {
        prefetch(self.line(key));
    }

    /// The place where the record of a word is, if it is known and nothing looks like it; asks for it.
    #[inline]
    pub(crate) fn place(&self, key: Key) -> u32 {
        let entries = self.line(key).0.iter().map(|entry| entry.load(Ordering::Acquire));
        let place = entries.fold(NOWHERE, |place, entry| if is_of(entry, key) { entry as u32 } else { place });
        if let Some([first, ..]) = self.record(place) {
            prefetch(first);
        }
        place
    }

    /// Sets `ids` to those of `word`, if its record is at `place`; whether it is.
    pub(crate) fn find_at<T: Id>(&self, word: &[u8], place: u32, ids: &mut Vec<T>) -> bool {
        let Some([head, record @ ..]) = self.record(place) else { return false };
        let head = head.load(Ordering::Relaxed);
        if head as u32 as usize != word.len() || place == NOWHERE {
            return false;
        }
        let mut numbers = record.iter().map(|number| number.load(Ordering::Relaxed));
        if !numbers_of(word).all(|number| numbers.next() == Some(number)) {
            return false;
        }
        ids.clear();
        ids.extend(
            numbers.flat_map(|two| [two as u32, (two >> HALF) as u32].map(T::new)).take((head >> HALF) as usize),
        );
        true
    }

    /// Publishes the ids of `word`, whose key is `key`, if there is room and nothing that looks like it.
    pub(crate) fn put<T: Id>(&self, room: &mut Room, key: Key, word: &[u8], ids: &[T]) {
        let line = &self.line(key).0;
        let is_last = |entry: u64| entry == 0 || is_of(entry, key);
        let Some(free) = line.iter().find(|entry| is_last(entry.load(Ordering::Relaxed))) else { return };
        if free.load(Ordering::Relaxed) != 0 {
            return;
        }
        let length = 2 + word.len() / size_of::<u64>() + ids.len().div_ceil(2);
        let Some((place, record)) = self.reserve(room, length) else { return };
        let head = word.len() as u64 | (ids.len() as u64) << HALF;
        let ids = ids.chunks(2).map(|two| two.iter().rev().fold(0, |all, id| all << HALF | u64::from(id.id())));
        for (place, number) in record.iter().zip(std::iter::once(head).chain(numbers_of(word)).chain(ids)) {
            place.store(number, Ordering::Relaxed);
        }
        // If another worker was faster, the record is written over by the next one.
        let entry = tag(key) | place as u64;
        if free.compare_exchange(0, entry, Ordering::Release, Ordering::Relaxed).is_ok() {
            room.0.start += length;
        }
    }

    #[inline]
    fn line(&self, key: Key) -> &IndexLine {
        &self.index[key.hash as usize % LINES]
    }

    /// What begins at `place`.
    #[inline]
    fn record(&self, place: u32) -> Option<&[AtomicU64]> {
        let place = place as usize;
        self.chunks[place / CHUNK % CHUNKS].get()?.get(place % CHUNK..)
    }

    /// Room for a record, and its place; none if all chunks are taken, or the record is longer than one.
    fn reserve(&self, room: &mut Room, length: usize) -> Option<(usize, &[AtomicU64])> {
        if room.0.len() < length {
            let chunk = self.taken.fetch_add(1, Ordering::Relaxed).min(CHUNKS);
            self.chunks.get(chunk)?.get_or_init(|| (0..CHUNK).map(|_| AtomicU64::default()).collect());
            // The first number is left out: no record is nowhere.
            room.0 = (chunk * CHUNK).max(1)..(chunk + 1) * CHUNK;
        }
        let record = self.record(room.0.start as u32)?.get(..length)?;
        Some((room.0.start, record))
    }
}

/// What distinguishes the words of a line.
#[inline]
fn tag(key: Key) -> u64 {
    key.hash >> HALF << HALF
}

#[inline]
fn is_of(entry: u64, key: Key) -> bool {
    entry >> HALF == key.hash >> HALF
}

/// The bytes of a word as numbers, the last of them with fewer than eight.
#[inline]
fn numbers_of(word: &[u8]) -> impl Iterator<Item = u64> {
    let (numbers, rest) = word.as_chunks();
    let last = rest.iter().rev().fold(0, |number, &byte| number << u8::BITS | u64::from(byte));
    numbers.iter().map(|number| u64::from_le_bytes(*number)).chain(std::iter::once(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::short_key::ShortKey;

    fn key(word: &[u8]) -> Key {
        Key::new(ShortKey::new(word, 0, word.len()), word)
    }

    fn find<T: Id>(words: &SharedWords, word: &[u8]) -> Option<Vec<T>> {
        let mut ids = vec![T::new(7)];
        words.find_at(word, words.place(key(word)), &mut ids).then_some(ids)
    }

    /// Three workers put the same words, more than there is room for.
    fn what_is_found_is_what_was_put<T: Id + std::fmt::Debug>() {
        let (words, count) = (SharedWords::default(), 60_000);
        let word = |number: u32| format!("{number} {}", "x".repeat(number as usize % 200)).into_bytes();
        let ids = |number: u32| (0..=number % 256).map(|id| T::new((id ^ number) % 65_536)).collect::<Vec<_>>();
        let put_all = || {
            let mut room = Room::default();
            for number in 0..count {
                let word = word(number);
                match find::<T>(&words, &word) {
                    Some(found) => assert_eq!(found, ids(number)),
                    None => words.put(&mut room, key(&word), &word, &ids(number)),
                }
            }
        };
        std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(put_all))));
        let known = (0..count).filter(|&number| find::<T>(&words, &word(number)).is_some()).count();
        assert!((count as usize / 2..count as usize).contains(&known), "{known}");
        assert!(words.taken.into_inner() > CHUNKS);
    }

    #[test]
    fn what_one_worker_puts_the_others_find_as_long_as_there_is_room() {
        what_is_found_is_what_was_put::<u16>();
        what_is_found_is_what_was_put::<u32>();
    }

    #[test]
    fn a_word_is_compared_with_its_record() {
        let (words, mut room) = (SharedWords::default(), Room::default());
        let text: Vec<u8> = (0..=u8::MAX).collect();
        for length in 1..text.len() {
            let word = &text[..length];
            assert_eq!(find::<u16>(&words, word), None);
            words.put(&mut room, key(word), word, &[length as u16, 0]);
            assert_eq!(find(&words, word), Some(vec![length as u16, 0]));
            let (place, mut other) = (words.place(key(word)), word.to_vec());
            other[length - 1] ^= 1;
            for other in [&other, &text[..=length], &word[1..]] {
                assert!(!words.find_at(other, place, &mut Vec::<u16>::new()), "{length}");
            }
        }
    }

    #[test]
    fn a_full_line_takes_no_more_words() {
        let (words, mut room) = (SharedWords::default(), Room::default());
        let alike = |number: u64| Key { hash: number << HALF, ..Key::default() };
        for number in 0..=WAYS as u64 {
            words.put(&mut room, alike(number), &number.to_le_bytes(), &[number as u32]);
        }
        let places: Vec<_> = (0..=WAYS as u64).map(|number| words.place(alike(number))).collect();
        assert!(places[..WAYS].iter().is_sorted() && places[0] != NOWHERE);
        assert_eq!(places[WAYS], NOWHERE);
    }
}
