//! What a scan looks for, as tables: which features an identifier or a word of a string has.

use std::collections::{HashMap, HashSet};

use super::bytemap::ByteMap;
use super::config::{Candidate, Config, Match, Morpheme, Position};
use super::identifier::{Style, components};
use super::keywords::KEYWORDS;
use crate::memory::prefetch;
use crate::pattern::Pattern;
use crate::{Error, Result};

/// What a feature means.
#[derive(Debug)]
pub(super) enum Label {
    Keyword(&'static str),
    Style(Style),
    Term { term: String, category: String },
    Morpheme { morpheme: String, position: Position },
}

pub(super) type Features = HashMap<Box<[u8]>, Vec<u32>, foldhash::fast::FixedState>;

/// Everything that a scan looks for. A feature is the index of its label.
pub(super) struct Plan {
    pub(super) pattern: Pattern,
    /// Cuts documents into the lines that are counted besides the words, if any are.
    pub(super) line_pattern: Option<Pattern>,
    pub(super) word_partitions: u32,
    /// Whether words and lines are counted by project.
    pub(super) by_project: bool,
    pub(super) labels: Vec<Label>,
    /// Features of whole identifiers and keywords.
    identifiers: Features,
    prefixes: Prefixes,
    /// Features of whole words of string literals, and which bytes these words begin with.
    strings: Features,
    strings_first: [bool; 256],
    morphemes: Morphemes,
    /// Features of whole chains of names, `a::b`.
    pub(super) qualified: Features,
    /// Whether families of names are counted.
    pub(super) families: bool,
}

impl Plan {
    /// Reads a configuration.
    pub(super) fn from_json(json: &str) -> Result<Self> {
        let config = Config::from_json(json)?;
        let pattern = word_pattern(&config.pattern)?;
        let mut plan = Self {
            pattern,
            line_pattern: config.line_pattern.map(|name| line_pattern(&name, pattern)).transpose()?,
            word_partitions: config.word_partitions,
            by_project: config.partition_by_project,
            labels: Vec::new(),
            identifiers: Features::default(),
            prefixes: Prefixes::default(),
            strings: Features::default(),
            strings_first: [false; 256],
            morphemes: Morphemes::default(),
            qualified: Features::default(),
            families: config.families,
        };
        plan.labels.extend(KEYWORDS.map(Label::Keyword));
        plan.labels.extend(Style::ALL.map(Label::Style));
        config.candidates.into_iter().for_each(|candidate| plan.add_candidate(candidate));
        config.morphemes.into_iter().for_each(|morpheme| plan.add_morpheme(morpheme));
        Ok(plan)
    }

    fn add_candidate(&mut self, Candidate { term, category, mode }: Candidate) {
        let feature = self.labels.len() as u32;
        let key = || Box::from(term.as_bytes());
        if mode == Match::Qualified {
            self.qualified.entry(key()).or_default().push(feature);
        }
        if mode == Match::Prefix {
            self.prefixes.add(&term, feature);
        }
        if matches!(mode, Match::Ident | Match::Dollar) {
            self.identifiers.entry(key()).or_default().push(feature);
        }
        if matches!(mode, Match::SqlString | Match::String | Match::Dollar) {
            self.strings.entry(key()).or_default().push(feature);
            self.strings_first[usize::from(term.as_bytes()[0])] = true;
        }
        self.labels.push(Label::Term { term, category });
    }

    fn add_morpheme(&mut self, Morpheme { morpheme, position }: Morpheme) {
        self.morphemes.add(&morpheme, position, self.labels.len() as u32);
        self.labels.push(Label::Morpheme { morpheme, position });
    }

    /// The features of a word in a string literal.
    #[inline]
    pub(super) fn string_word(&self, word: &[u8]) -> &[u32] {
        match word.first() {
            Some(&first) if self.strings_first[first as usize] => self.strings.get(word).map_or(&[], Vec::as_slice),
            _ => &[],
        }
    }
}

/// The pattern called `name`, which cuts words.
fn word_pattern(name: &str) -> Result<Pattern> {
    let pattern = Pattern::by_name(name)?;
    let words = pattern.words();
    if words == pattern {
        return Ok(pattern);
    }
    let words = words.name();
    Err(Error::invalid(format!("pattern {name:?} cuts lines of words: give it as unit_pattern, and {words:?} here")))
}

/// The pattern called `name`, which cuts lines made of the words of `words`.
fn line_pattern(name: &str, words: Pattern) -> Result<Pattern> {
    let pattern = Pattern::by_name(name)?;
    if pattern != words && pattern.words() == words {
        return Ok(pattern);
    }
    let known = Pattern::ALL.into_iter().filter(|known| *known != words && known.words() == words);
    let known: Vec<_> = known.map(|known| known.name()).collect();
    let (words, known) = (words.name(), known.join(", "));
    Err(Error::invalid(format!(
        "unit_pattern {name:?} cuts no lines made of the words of {words:?}; these do: {known}"
    )))
}

/// The terms that identifiers may begin with.
#[derive(Default)]
struct Prefixes {
    terms: Features,
    longest: usize,
}

impl Prefixes {
    fn add(&mut self, term: &str, feature: u32) {
        self.longest = self.longest.max(term.len());
        self.terms.entry(Box::from(term.as_bytes())).or_default().push(feature);
    }

    /// Appends the features of the terms that `identifier` begins with.
    fn append(&self, identifier: &[u8], features: &mut Vec<u32>) {
        for length in 1..=identifier.len().min(self.longest) {
            let (term, rest) = identifier.split_at(length);
            if term.ends_with(b"_") || !rest.first().is_some_and(u8::is_ascii_lowercase) {
                features.extend(self.terms.get(term).into_iter().flatten());
            }
        }
    }
}

/// The morphemes by position.
#[derive(Default)]
struct Morphemes {
    by_position: [Features; 4],
    longest: usize,
}

impl Morphemes {
    fn add(&mut self, morpheme: &str, position: Position, feature: u32) {
        self.longest = self.longest.max(morpheme.len());
        self.by_position[position as usize].entry(Box::from(morpheme.as_bytes())).or_default().push(feature);
    }

    /// Appends the features of a component in small letters.
    fn append(&self, component: &[u8], features: &mut Vec<u32>) {
        let mut find = |position: Position, text: &[u8]| {
            features.extend(self.by_position[position as usize].get(text).into_iter().flatten());
        };
        for length in 1..component.len().min(self.longest + 1) {
            find(Position::Prefix, &component[..length]);
            find(Position::Suffix, &component[component.len() - length..]);
            find(Position::CppStem, &component[..length]);
        }
        find(Position::CppStem, component);
        find(Position::Component, component);
    }
}

/// A set of byte strings with a list of features each; strings are numbered in the order of their first appearance.
struct FeatureTable {
    /// One more than the number of each string.
    numbers: ByteMap<u32>,
    ends: Vec<usize>,
    features: Vec<u32>,
}

impl FeatureTable {
    fn new() -> Self {
        Self { numbers: ByteMap::new(), ends: Vec::new(), features: Vec::new() }
    }

    /// The number of `key`, whose features `make` appends if it is new.
    #[inline]
    fn number(&mut self, key: &[u8], make: impl FnOnce(&mut Vec<u32>)) -> u32 {
        let number = self.numbers.entry(key);
        if *number == 0 {
            make(&mut self.features);
            self.ends.push(self.features.len());
            *number = self.ends.len() as u32;
        }
        *number - 1
    }

    fn memory_bytes(&self) -> usize {
        let Self { numbers, ends, features } = self;
        numbers.memory_bytes() + ends.capacity() * size_of::<usize>() + features.capacity() * size_of::<u32>()
    }

    fn features(&self, number: u32) -> &[u32] {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.features[start..self.ends[number]]
    }
}

/// The identifiers and keywords that a worker has met, and their features, found out once for each.
pub(super) struct Identifiers {
    table: FeatureTable,
    components: FeatureTable,
    buffer: Vec<u8>,
}

impl Identifiers {
    /// A table that holds the keywords, numbered as their features are.
    pub(super) fn new(plan: &Plan) -> Self {
        let (table, components) = (FeatureTable::new(), FeatureTable::new());
        let mut identifiers = Self { table, components, buffer: Vec::new() };
        for (feature, keyword) in (0..).zip(KEYWORDS) {
            let terms = plan.identifiers.get(keyword.as_bytes()).into_iter().flatten();
            identifiers.table.number(keyword.as_bytes(), |features| {
                features.push(feature);
                features.extend(terms);
            });
        }
        identifiers
    }

    /// The number of `identifier`.
    pub(super) fn number(&mut self, plan: &Plan, identifier: &[u8]) -> u32 {
        let Self { table, components: known, buffer, .. } = self;
        table.number(identifier, |features| {
            features.push(KEYWORDS.len() as u32 + Style::of(identifier) as u32);
            features.extend(plan.identifiers.get(identifier).into_iter().flatten());
            components(identifier, buffer, |component| known.numbers.prefetch(component));
            plan.prefixes.append(identifier, features);
            components(identifier, buffer, |component| {
                let number = known.number(component, |features| plan.morphemes.append(component, features));
                features.extend_from_slice(known.features(number));
            });
        })
    }

    /// Whether the identifier of that number is a keyword.
    #[inline]
    pub(super) fn is_keyword(number: u32) -> bool {
        (number as usize) < KEYWORDS.len()
    }

    /// The features of the identifier of that number, each as often as it has it.
    pub(super) fn features(&self, number: u32) -> &[u32] {
        self.table.features(number)
    }

    /// Asks for where the number of `identifier` is.
    #[inline]
    pub(super) fn prefetch_number(&self, identifier: &[u8]) {
        self.table.numbers.prefetch(identifier);
    }

    /// Asks for where the features of the identifier of that number are.
    #[inline]
    pub(super) fn prefetch(&self, number: u32) {
        self.table.ends.get(number as usize).inspect(|end| prefetch(*end));
    }

    /// Asks for the features of the identifier of that number.
    #[inline]
    pub(super) fn prefetch_features(&self, number: u32) {
        self.features(number).first().inspect(|feature| prefetch(*feature));
    }

    /// The memory of everything that grows with the identifiers.
    pub(super) fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.components.memory_bytes()
    }

    /// The identifiers of the `wanted` numbers.
    pub(super) fn names(&self, wanted: &HashSet<u32>) -> HashMap<u32, Box<[u8]>> {
        let mut names = HashMap::with_capacity(wanted.len());
        self.table.numbers.for_each(|name, number| {
            if wanted.contains(&(number - 1)) {
                names.insert(number - 1, Box::from(name));
            }
        });
        names
    }
}
