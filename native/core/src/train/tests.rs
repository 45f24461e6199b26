//! Training as a whole, on small inputs.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt64Type};
use arrow_array::{ArrayRef, BinaryArray, BooleanArray, LargeBinaryArray, RecordBatch, UInt16Array, UInt64Array};

use super::group_cap::GroupCap;
use super::{Options, SuperwordBounds, count_tokens};
use crate::pattern::Pattern;
use crate::{ErrorKind, Result};

type Row = (String, String, u64, u8);

fn words(words: &[(&[u8], u64)]) -> RecordBatch {
    let column: ArrayRef = Arc::new(BinaryArray::from_iter_values(words.iter().map(|(word, _)| word)));
    let counts: ArrayRef = Arc::new(words.iter().map(|&(_, count)| count).collect::<UInt64Array>());
    RecordBatch::try_from_iter([("word", column), ("count", counts)]).unwrap()
}

fn seeds(seeds: &[(&str, bool)]) -> RecordBatch {
    let column: ArrayRef = Arc::new(BinaryArray::from_iter_values(seeds.iter().map(|(token, _)| token.as_bytes())));
    let atomic: ArrayRef = Arc::new(seeds.iter().map(|&(_, atomic)| Some(atomic)).collect::<BooleanArray>());
    RecordBatch::try_from_iter([("token", column), ("atomic", atomic)]).unwrap()
}

fn options(vocab_tokens: usize) -> Options {
    Options { vocab_tokens, ..Options::default() }
}

fn rows(merges: &RecordBatch) -> Vec<Row> {
    let text = |name: &str, row| {
        let column = merges.column_by_name(name).unwrap().as_binary::<i32>();
        String::from_utf8_lossy(column.value(row)).into_owned()
    };
    let counts = merges.column_by_name("count").unwrap().as_primitive::<UInt64Type>();
    let phases = merges.column_by_name("phase").unwrap().as_primitive::<UInt8Type>();
    (0..merges.num_rows())
        .map(|row| (text("left", row), text("right", row), counts.value(row), phases.value(row)))
        .collect()
}

fn train_bpe(words: &[RecordBatch], seeds: &RecordBatch, options: &Options) -> Result<RecordBatch> {
    super::train_bpe(words.iter().cloned().map(Ok), std::iter::empty(), seeds, options)
}

fn train(text: &[(&[u8], u64)], seed: &[(&str, bool)], vocab_tokens: usize) -> Result<Vec<Row>> {
    train_bpe(&[words(text)], &seeds(seed), &options(vocab_tokens)).map(|merges| rows(&merges))
}

fn row(left: &str, right: &str, count: u64, phase: u8) -> Row {
    (left.into(), right.into(), count, phase)
}

#[test]
fn most_frequent_pair_goes_first_and_the_older_pair_among_equals() {
    let learned = train(&[(b"hug", 10), (b"pug", 5), (b"pun", 12), (b"bun", 4), (b"hugs", 5)], &[], 4).unwrap();
    assert_eq!(learned, [row("u", "g", 20, 2), row("u", "n", 16, 2), row("h", "ug", 15, 2), row("p", "un", 12, 2)]);
    let tied = train(&[(b"cd", 1), (b"ab", 1), (b" b", 1)], &[], 3).unwrap();
    assert_eq!(tied, [row("a", "b", 1, 2), row("c", "d", 1, 2), row(" ", "b", 1, 2)]);
}

#[test]
fn overlapping_pairs_merge_leftmost_first() {
    let learned = train(&[(b"aaaaa", 2), (b"xaaay", 1)], &[], 3).unwrap();
    assert_eq!(learned, [row("a", "a", 10, 2), row("aa", "a", 3, 2), row("aa", "aaa", 2, 2)]);
}

#[test]
fn order_batches_duplicates_threads_and_offset_width_do_not_matter() {
    let text: [(&[u8], u64); 4] = [(b"abcabd", 3), (b"bcd", 7), (b"cab", 2), (b"abcabd", 1)];
    let expected = train(&text, &[("ab", true), ("::cd", false)], 4).unwrap();
    let mut backwards = text;
    backwards.reverse();
    let parts: Vec<RecordBatch> = backwards.iter().map(|part| words(&[*part])).collect();
    let threaded = Options { threads: 2, ..options(4) };
    let seed = seeds(&[("::cd", false), ("ab", false), ("ab", true)]);
    assert_eq!(rows(&train_bpe(&parts, &seed, &threaded).unwrap()), expected);
    let large: ArrayRef = Arc::new(LargeBinaryArray::from_iter_values(text.iter().map(|(word, _)| word)));
    let batch = RecordBatch::try_from_iter([("word", large), ("count", words(&text).column(1).clone())]).unwrap();
    assert_eq!(rows(&train_bpe(&[batch], &seed, &options(4)).unwrap()), expected);
}

#[test]
fn seeds_rank_first_and_atomic_ones_stay_apart_from_marks() {
    let learned = train(&[(b"(if(", 9), (b"ifx", 5)], &[("if", true), ("(x", false)], 1).unwrap();
    assert_eq!(learned, [row("i", "f", 1, 0), row("(", "x", 1, 1), row("if", "x", 5, 2)]);
}

fn superwords(max_words: usize, max_bytes: usize) -> SuperwordBounds {
    SuperwordBounds { pattern: Pattern::by_name("cpp-lines-1").unwrap(), max_words, max_bytes }
}

#[test]
fn superwords_are_learned_in_units_as_the_words_leave_them() {
    let text = words(&[(b"ab", 9), (b";", 9), (b"b;", 1)]);
    let lines = words(&[(b"ab;", 4), (b"ab;ab", 2), (b"b;", 1)]);
    let learn = |tokens, superword_tokens, superwords| {
        let options = Options { superword_tokens, superwords, ..options(tokens) };
        super::train_bpe(std::iter::once(Ok(text.clone())), std::iter::once(Ok(lines.clone())), &seeds(&[]), &options)
    };
    let learned = learn(3, 2, Some(superwords(9, 99))).unwrap();
    assert_eq!(rows(&learned), [row("a", "b", 9, 2), row("ab", ";", 6, 3), row("ab;", "ab", 2, 3)]);
    let bounded = learn(3, 2, Some(superwords(9, 3))).unwrap();
    assert_eq!(rows(&bounded)[2], row("b", ";", 1, 3));
    let one_word = learn(2, 1, Some(superwords(1, 99))).unwrap();
    assert_eq!(rows(&one_word)[1], row(";", "ab", 2, 3), "a mark and an identifier are one word");
    let no_more = learn(3, 2, Some(superwords(1, 99))).unwrap_err();
    assert!(no_more.to_string().contains("only 1 of 2 superwords"), "{no_more}");
    let none = learn(2, 1, None).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Invalid);
    let no_units = Options { superword_tokens: 1, superwords: Some(superwords(9, 9)), ..options(2) };
    let error = super::train_bpe(std::iter::once(Ok(text)), std::iter::empty(), &seeds(&[]), &no_units).unwrap_err();
    assert!(error.to_string().contains("no units"), "{error}");
}

#[test]
fn past_the_bound_rare_words_are_dropped_in_any_order_and_the_result_tells() {
    let text: Vec<(Vec<u8>, u64)> = (0..200_u64).map(|n| (format!("w{n:03}").into_bytes(), 1 + n % 5)).collect();
    let mut text: Vec<(&[u8], u64)> = text.iter().map(|(word, count)| (word.as_slice(), *count)).collect();
    let bounded = Options { max_held_tokens: Some(170 * 4), ..options(5) };
    let expected = train_bpe(&[words(&text)], &seeds(&[]), &bounded).unwrap();
    let metadata = expected.schema().metadata().clone();
    let told = |name: &str| metadata[name].as_str();
    assert_eq!((told("words_least_count"), told("words_left_out"), told("units_least_count")), ("2", "40", "1"));
    text.reverse();
    let parts: Vec<RecordBatch> = text.chunks(7).map(words).collect();
    let again = train_bpe(&parts, &seeds(&[]), &bounded).unwrap();
    assert_eq!(again, expected);
    text.retain(|(_, count)| *count > 1);
    assert_eq!(rows(&train_bpe(&[words(&text)], &seeds(&[]), &options(5)).unwrap()), rows(&expected));
}

#[test]
fn past_the_bound_units_are_thinned_and_stand_for_more() {
    let lines: Vec<(Vec<u8>, u64)> = (0..4000_u32).map(|n| (format!("{n:04};").into_bytes(), 1)).collect();
    let mut lines: Vec<(&[u8], u64)> = lines.iter().map(|(line, count)| (line.as_slice(), *count)).collect();
    lines.insert(0, (b"ab", 1)); // One token, and so nothing that could be left out, early or late.
    let learn = |lines: &[(&[u8], u64)]| {
        let batches: Vec<_> = lines.chunks(900).map(|part| Ok(words(part))).collect();
        let options = Options {
            superword_tokens: 1,
            superwords: Some(superwords(9, 9)),
            max_held_tokens: Some(2000 * 5),
            ..options(2)
        };
        super::train_bpe(std::iter::once(Ok(words(&[(b"ab", 1)]))), batches.into_iter(), &seeds(&[]), &options).unwrap()
    };
    let learned = learn(&lines);
    let (least, left_out): (u64, u64) = (
        learned.schema().metadata()["units_least_count"].parse().unwrap(),
        learned.schema().metadata()["units_left_out"].parse().unwrap(),
    );
    assert!(least == 2 || least == 3, "{least}");
    assert!((2000..3000).contains(&left_out), "{left_out}");
    let count = rows(&learned)[1].2;
    assert!(
        count.is_multiple_of(least) && (300..500).contains(&count),
        "about 400 of each digit before the mark: {count}"
    );
    let backwards: Vec<_> = lines.iter().rev().copied().collect();
    assert_eq!(learn(&backwards), learned);
}

#[test]
fn tokens_are_counted_as_they_stand_in_encoded_texts() {
    let merges = train_bpe(&[words(&[(b"abc", 5), (b"ab", 2)])], &seeds(&[]), &options(2)).unwrap();
    let texts = [words(&[(b"abcab", 3)]), words(&[(b"ac", 1 << 40)])];
    for threads in [1, 2] {
        let counted = count_tokens(&merges, texts.iter().cloned().map(Ok), None, threads).unwrap();
        let tokens = counted.column(0).as_binary::<i32>();
        let counts = counted.column(1).as_primitive::<UInt64Type>();
        let found: Vec<_> = (0..counted.num_rows())
            .map(|row| (tokens.value(row), counts.value(row)))
            .filter(|(token, count)| *count > 0 || token.len() > 1)
            .collect();
        assert_eq!(found, [(&b"a"[..], 1 << 40), (b"c", 1 << 40), (b"ab", 3), (b"abc", 3)]);
        assert_eq!(counted.num_rows(), 258);
    }
}

/// Random words, few of them frequent, each with its count and one of three groups.
fn random_words() -> Vec<(Vec<u8>, u64, u16)> {
    let mut state = 5_u32;
    let mut letters = |count: usize| -> Vec<u8> {
        let random = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b"abcdefgh01"[(state >> 24) as usize % 10]
        });
        random.take(count).collect()
    };
    let word = |rank: u64| (letters(2 + rank as usize % 9), 20_000_000 / (rank * rank), (rank % 7 % 3) as u16);
    (1..400_u64).map(word).collect()
}

#[test]
fn counting_again_for_rarer_pairs_changes_nothing() {
    let text = random_words();
    let borrowed: Vec<(&[u8], u64)> = text.iter().map(|(word, count, _)| (word.as_slice(), *count)).collect();
    let learned = train(&borrowed, &[], 500).unwrap();
    let known = learn_slowly(&text, 500, |counts| counts.iter().sum());
    assert!(known[499].2 * 300 < known[0].2, "the counts must fall through several bounds");
    let learned: Vec<_> = learned.into_iter().map(|(left, right, count, _)| (left, right, count)).collect();
    assert_eq!(learned, known);
}

#[test]
fn with_a_cap_pairs_are_learned_by_what_they_are_worth() {
    let text = random_words();
    let (cap, sizes) = (GroupCap::new(1.5), sizes(&text));
    let known = learn_slowly(&text, 400, |counts| cap.worth(counts, &sizes));
    let uncapped = learn_slowly(&text, 400, |counts| counts.iter().sum());
    assert_ne!(known, uncapped, "the cap must matter");
    assert!(known[399].2 * 200 < known[0].2, "the counts must fall through several bounds");
    let groups: ArrayRef = Arc::new(text.iter().map(|&(_, _, group)| group).collect::<UInt16Array>());
    let borrowed: Vec<(&[u8], u64)> = text.iter().map(|(word, count, _)| (word.as_slice(), *count)).collect();
    let batch = words(&borrowed);
    let columns = [("word", batch.column(0).clone()), ("count", batch.column(1).clone()), ("group", groups)];
    let capped = Options { group_cap: Some(1.5), ..options(400) };
    let learned = train_bpe(&[RecordBatch::try_from_iter(columns).unwrap()], &seeds(&[]), &capped).unwrap();
    let learned: Vec<_> = rows(&learned).into_iter().map(|(left, right, count, _)| (left, right, count)).collect();
    assert_eq!(learned, known);
}

fn sizes(text: &[(Vec<u8>, u64, u16)]) -> [u64; 3] {
    let mut sizes = [0; 3];
    for (word, count, group) in text {
        sizes[usize::from(*group)] += word.len() as u64 * count;
    }
    sizes
}

/// The definition: the pair that is worth most by its counts in three groups, the smaller one by creation order among
/// equals, everywhere, again and again.
fn learn_slowly(
    text: &[(Vec<u8>, u64, u16)],
    merges: usize,
    worth: impl Fn(&[u64; 3]) -> u64,
) -> Vec<(String, String, u64)> {
    let mut made: Vec<String> = (0..=u8::MAX).map(|byte| char::from(byte).to_string()).collect();
    let symbols = |word: &[u8]| word.iter().map(|&byte| usize::from(byte)).collect();
    let mut texts: Vec<(Vec<usize>, u64, u16)> =
        text.iter().map(|(word, count, group)| (symbols(word), *count, *group)).collect();
    let mut learned = Vec::new();
    for _ in 0..merges {
        let mut counts: BTreeMap<_, [u64; 3]> = BTreeMap::new();
        for (symbols, count, group) in &texts {
            for pair in symbols.windows(2) {
                counts.entry((pair[0], pair[1])).or_default()[usize::from(*group)] += count;
            }
        }
        let best = counts.iter().max_by_key(|&(pair, counts)| (worth(counts), std::cmp::Reverse(*pair))).unwrap();
        let (&(left, right), counts) = best;
        learned.push((made[left].clone(), made[right].clone(), counts.iter().sum()));
        for (symbols, ..) in &mut texts {
            let mut at = 0;
            while at + 1 < symbols.len() {
                if (symbols[at], symbols[at + 1]) == (left, right) {
                    symbols.splice(at..at + 2, [made.len()]);
                }
                at += 1;
            }
        }
        made.push(format!("{}{}", made[left], made[right]));
    }
    learned
}

#[test]
fn counts_beyond_32_bits_stay_exact() {
    let learned = train(&[(b"ab", 1 << 40), (b"cd", (1 << 40) + 1)], &[], 2).unwrap();
    assert_eq!(learned, [row("c", "d", (1 << 40) + 1, 2), row("a", "b", 1 << 40, 2)]);
    let error = train(&[(b"ab", u64::MAX), (b"cd", 1)], &[], 2).unwrap_err();
    assert!(error.to_string().contains("64-bit"), "{error}");
}

#[test]
fn a_word_of_a_million_bytes_is_not_quadratic() {
    let mut state = 1_u32;
    let random = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b"abcd"[(state >> 24) as usize % 4]
    });
    let long: Vec<u8> = random.take(1_000_000).collect();
    let start = std::time::Instant::now();
    let learned = train(&[(&long, 1), (&vec![b'a'; 1_000_000], 1)], &[], 2000).unwrap();
    assert_eq!(learned.len(), 2000);
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

#[test]
fn errors_name_the_seed_and_the_size_that_would_do() {
    let text: &[(&[u8], u64)] = &[(b"abc", 1)];
    let message = |seed: &[(&str, bool)], size| train(text, seed, size).unwrap_err().to_string();
    let refused = message(&[("INSERT", true), ("INSERT ", false)], 9);
    assert!(refused.contains("seed \"INSERT \"") && refused.contains("\"INSERT\" is atomic"), "{refused}");
    assert!(message(&[("abcd", false)], 1).contains("vocab_tokens >= 2"));
    assert!(message(&[], 9).contains("only 2 of 9"));
    assert!(message(&[("a b", true)], 9).contains("no identifier"));
    assert!(message(&[("", false)], 9).contains("empty"));
    let none = train(&[(b"abc", 0)], &[], 1).unwrap_err();
    assert_eq!((none.kind(), none.to_string().contains("no words")), (ErrorKind::Vocabulary, true));
}

#[test]
fn forbidden_and_long_tokens_are_skipped_for_the_next_best() {
    let forbidden = Options { forbidden: vec![b"ab".to_vec()], ..options(1) };
    let learned = train_bpe(&[words(&[(b"ab", 9), (b"cd", 1)])], &seeds(&[]), &forbidden).unwrap();
    assert_eq!(rows(&learned), [row("c", "d", 1, 2)]);
    let error = train_bpe(&[words(&[(b"x", 1)])], &seeds(&[("ab", false)]), &forbidden).unwrap_err();
    assert!(error.to_string().contains("control or reserved"), "{error}");
    let bounded = Options { max_token_bytes: Some(2), ..options(2) };
    let learned = train_bpe(&[words(&[(b"abab", 9), (b"cd", 1)])], &seeds(&[]), &bounded).unwrap();
    assert_eq!(rows(&learned), [row("a", "b", 18, 2), row("c", "d", 1, 2)]);
}

#[test]
fn wrong_columns_are_named() {
    let error = train_bpe(&[seeds(&[])], &seeds(&[]), &options(1)).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("`count`")), (ErrorKind::Invalid, true));
    let error = train_bpe(&[words(&[])], &words(&[]), &options(1)).unwrap_err();
    assert!(error.to_string().contains("`atomic`"), "{error}");
}
