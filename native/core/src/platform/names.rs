//! Looking names up: exact ones and prefixes, each with numbers.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Collects names and prefixes; [`Builder::build`] makes them a [`Names`].
#[derive(Default)]
pub(super) struct Builder {
    exact: HashMap<Vec<u8>, Vec<u32>>,
    prefixes: HashMap<Vec<u8>, Vec<u32>>,
}

impl Builder {
    /// Gives `number` to every name that `pattern` matches: itself or, when it ends with `*`, all that begin with it.
    pub(super) fn add(&mut self, pattern: &str, number: u32) {
        let (table, name) = match pattern.strip_suffix('*') {
            Some(prefix) => (&mut self.prefixes, prefix),
            None => (&mut self.exact, pattern),
        };
        table.entry(name.as_bytes().to_vec()).or_default().push(number);
    }

    pub(super) fn build(self) -> Names {
        let (mut exact_starts, mut prefix_starts) = (Starts::new(), Starts::new());
        self.exact.keys().for_each(|name| exact_starts.insert(name));
        self.prefixes.keys().for_each(|prefix| prefix_starts.insert(prefix));
        let exact = self.exact.into_iter().map(|(name, numbers)| (name.into(), numbers.into())).collect();
        Names { exact_starts, exact, prefix_starts, prefixes: link(self.prefixes) }
    }
}

/// A set of names and prefixes.
pub(super) struct Names {
    exact_starts: Starts,
    exact: HashMap<Box<[u8]>, Box<[u32]>, FixedState>,
    prefix_starts: Starts,
    prefixes: Vec<Prefix>,
}

/// A prefix in bytewise order, with the longest other prefix that it begins with.
struct Prefix {
    text: Box<[u8]>,
    numbers: Box<[u32]>,
    parent: Option<usize>,
}

impl Names {
    /// Calls `each` with the numbers of the exact name and of every prefix that `name` begins with.
    #[inline]
    pub(super) fn find(&self, name: &[u8], mut each: impl FnMut(u32)) {
        if self.exact_starts.may_have(name)
            && let Some(numbers) = self.exact.get(name)
        {
            numbers.iter().copied().for_each(&mut each);
        }
        if self.prefix_starts.may_have(name) {
            self.find_prefixes(name, each);
        }
    }

    fn find_prefixes(&self, name: &[u8], mut each: impl FnMut(u32)) {
        let mut next = self.prefixes.partition_point(|prefix| *prefix.text <= *name).checked_sub(1);
        while let Some(prefix) = next.map(|at| &self.prefixes[at]) {
            if name.starts_with(&prefix.text) {
                prefix.numbers.iter().copied().for_each(&mut each);
            }
            next = prefix.parent;
        }
    }
}

/// In bytewise order, every prefix of a name is on the chain of parents of the last one that is not above it.
fn link(prefixes: HashMap<Vec<u8>, Vec<u32>>) -> Vec<Prefix> {
    let mut sorted: Vec<_> = prefixes.into_iter().collect();
    sorted.sort_unstable();
    let mut linked: Vec<Prefix> = Vec::with_capacity(sorted.len());
    for (text, numbers) in sorted {
        let parent = (0..linked.len()).rev().find(|&at| text.starts_with(&linked[at].text));
        linked.push(Prefix { text: text.into(), numbers: numbers.into(), parent });
    }
    linked
}

/// Which pairs of first bytes any name has: most names of a document fail here. Names of one byte let all pass that
/// begin with it.
pub(super) struct Starts(Box<[u64; 1024]>);

impl Starts {
    pub(super) fn new() -> Self {
        Self(Box::new([0; 1024]))
    }

    pub(super) fn insert(&mut self, name: &[u8]) {
        match *name {
            [] => {}
            [only] => (0..=255).for_each(|second| self.set(only, second)),
            [first, second, ..] => self.set(first, second),
        }
    }

    fn set(&mut self, first: u8, second: u8) {
        self.0[usize::from(first) * 4 + usize::from(second / 64)] |= 1 << (second % 64);
    }

    #[inline]
    pub(super) fn may_have(&self, name: &[u8]) -> bool {
        let (first, second) = match *name {
            [] => return false,
            [only] => (only, 0),
            [first, second, ..] => (first, second),
        };
        self.0[usize::from(first) * 4 + usize::from(second / 64)] >> (second % 64) & 1 == 1
    }
}
