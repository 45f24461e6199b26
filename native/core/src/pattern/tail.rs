//! The end of a text that may be cut differently when more text follows.
//!
//! A pattern takes the first alternative that matches. So a pre-token is settled if neither its own alternative nor an
//! earlier one would look at text that is not there yet. Of the words with some text after them, only these are not
//! settled: a raw string that may still open or close, a digit separator, and a run of escapes; and of `cpp-words-2` a
//! name that `::` may follow, and marks that may join what comes after a space or a sign.

use super::class::{SPACE, class_at};
use super::{Kind, Pattern, text_words};

/// More bytes behind a word than any alternative looks at: the quote of a raw string, 16 characters and a parenthesis.
const MAX_AHEAD: usize = 80;

/// The part of a run of valid UTF-8 that is not sure: the pre-token at its end, or one that may grow over several.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// Where it starts. Whatever follows the run, everything before is cut as it is, and a pre-token starts here.
    pub(crate) start: usize,
    /// Where within the run this pre-token may end; otherwise it goes on to the end of the run at least.
    pub(crate) ends: Vec<usize>,
}

impl Pattern {
    /// What is open at the end of `run`.
    pub(crate) fn tail(self, run: &[u8]) -> Tail {
        if self.is_lines() {
            let (mut start, mut next) = (0, 0);
            self.ends(run, 0, |end| start = std::mem::replace(&mut next, end));
            return Tail { start, ends: Vec::new() };
        }
        if self.is_text() {
            let (start, ends) = text_words::open_end(run);
            return Tail { start, ends };
        }
        let (mut start, mut end) = (0, 0);
        while end < run.len() {
            start = end;
            end = self.end(run, start);
            let (word, rest) = (&run[start..end], &run[end..]);
            if !is_sure(word, rest) || (self.0 == Kind::CppWords2 && may_join(word, rest)) {
                break;
            }
        }
        let mut ends = vec![end, shortened(run, start)];
        ends.dedup();
        ends.retain(|end| (start + 1..run.len()).contains(end));
        Tail { start, ends }
    }
}

/// Whether a word with the text `rest` after it stays a word whatever follows.
fn is_sure(word: &[u8], rest: &[u8]) -> bool {
    let in_delimiter = |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b'(' | b')' | b'\\' | b'"');
    let in_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    match (word, rest) {
        (_, [] | [b'\'']) => false,
        _ if rest.len() > MAX_AHEAD => true,
        ([.., b'R'], [b'"', delimiter @ ..]) | ([b')', .., b'R', b'"'], delimiter) => {
            !delimiter.iter().all(in_delimiter)
        }
        ([b')'], _) => !rest.iter().all(in_word),
        ([b'\\', ..], [b'\\']) => false,
        _ => true,
    }
}

/// Whether a word of `cpp-words-2` may go on over the text `rest` after it.
fn may_join(word: &[u8], rest: &[u8]) -> bool {
    match rest {
        [b':'] => word.last().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii()),
        [b' '] | [b' ', b'-' | b'.'] | b" -." => !word[word.len() - 1].is_ascii_whitespace(),
        _ => false,
    }
}

/// Where the word at `start`, with which `run` ends, ends if what follows takes a part of it: the last space, a
/// backslash, or an escape.
fn shortened(run: &[u8], start: usize) -> usize {
    let last = run.iter().rposition(|byte| byte & 0xC0 != 0x80).unwrap_or(0);
    match &run[start..] {
        [b'\\', .., b'\\', b'n' | b'r' | b't'] => run.len() - 2,
        [.., b'\\'] => last,
        _ if class_at(run, last).0 == SPACE => last,
        _ => run.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACES: &str = "\u{b}|\u{c}|\u{2028}|\u{a0}|\t|\n|\r\n|\n  | |  ";
    const MARKS: &str = "!|?|]|'|'|:|::|,|((((|\"|'|(|)|))|\\|\\n|\\t|+|-|.|'0|;";
    const WORDS: &str = "s|re|ll|a|foo|R|u8R|LR|u8|L|n|0|12|1e|e|é|名|²|_|aVeryLongName0123456789";

    /// The ends of the pre-tokens of a text, after 0.
    fn ends(pattern: Pattern, text: &str) -> Vec<usize> {
        let mut ends = vec![0];
        pattern.split(text.as_bytes(), |pretoken| ends.push(ends[ends.len() - 1] + pretoken.len()));
        ends
    }

    #[test]
    fn what_is_not_open_is_cut_alike_whatever_follows() {
        let pieces: Vec<&str> = [SPACES, MARKS, WORDS].iter().flat_map(|kind| kind.split('|')).collect();
        let mut state = 7_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as usize % below
        };
        for round in 0..400_000 {
            let mut text = |most: usize| (0..random(most)).map(|_| pieces[random(pieces.len())]).collect::<String>();
            let (run, more) = (text(8), text(4));
            let pattern = Pattern::ALL[round % Pattern::ALL.len()];
            let Tail { start, ends: inside } = pattern.tail(run.as_bytes());
            let (alone, followed) = (ends(pattern, &run), ends(pattern, &format!("{run}{more}")));
            let sure = |ends: &[usize]| ends.iter().copied().take_while(|&end| end <= start).collect::<Vec<_>>();
            assert_eq!(sure(&alone), sure(&followed), "{pattern:?} {run:?} {more:?}");
            assert!(followed.contains(&start), "{pattern:?} {run:?} {more:?} {start}");
            let end = followed.iter().copied().find(|&end| end > start).unwrap_or(usize::MAX);
            assert!(end >= run.len() || inside.contains(&end), "{pattern:?} {run:?} {more:?} {start} {inside:?}");
        }
    }

    #[test]
    fn what_is_open_is_the_last_word_or_what_may_become_one() {
        let cases = [
            ("int main", 3, vec![]),
            ("x;\n  ", 1, vec![4]),
            ("x   ", 1, vec![3]),
            ("R\"ab", 0, vec![1]),
            ("R\"a b", 3, vec![]),
            ("f)R\"", 1, vec![]),
            ("(0)12", 2, vec![3]),
            ("x = 1'", 3, vec![5]),
            ("\\n\\n", 0, vec![2]),
        ];
        let joins = [
            ("f(x, ", 3, vec![4]),
            ("x = -", 1, vec![3]),
            ("a std:", 1, vec![5]),
            ("std::", 0, vec![]),
            ("((((x, y", 5, vec![]),
        ];
        for (pattern, cases) in [(0, &cases[..]), (2, &joins[..])] {
            for (run, start, ends) in cases {
                let tail = Pattern::ALL[pattern].tail(run.as_bytes());
                assert_eq!(tail, Tail { start: *start, ends: ends.clone() }, "{run:?}");
            }
        }
    }
}
