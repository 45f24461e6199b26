//! What one thread counts: documents in, totals that add up out.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::bytemap::ByteMap;
use super::plan::{Identifiers, Plan};
use super::statistics::{Counter, Statistics};
use super::strings;
use super::words::WordCounter;
use crate::lexer::{Lexer, Token, TokenKind};

/// Hits, and documents with at least one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) hits: u64,
    pub(super) documents: u64,
}

/// Tallies by (project, number of a feature or identifier).
pub(super) type Tallies = HashMap<(u32, u32), Tally, foldhash::fast::FixedState>;

/// Tallies by (project, name).
pub(super) type NamedTallies = HashMap<(u32, Box<[u8]>), Tally, foldhash::fast::FixedState>;

/// The counts of one thread.
pub(super) struct Worker {
    plan: Arc<Plan>,
    words: WordCounter,
    identifiers: Identifiers,
    pub(super) projects: Vec<String>,
    project_numbers: HashMap<String, u32>,
    pub(super) features: Tallies,
    /// Namespaces by the number of their identifier, until they are settled.
    open_namespaces: Tallies,
    pub(super) namespaces: NamedTallies,
    pub(super) statistics: Statistics,
    document: Document,
}

/// What the current document has had so far.
#[derive(Default)]
struct Document {
    /// By the number of the identifier.
    identifiers: Vec<Occurrences>,
    /// The identifiers whose occurrences are not zero.
    seen: Vec<u32>,
    /// Hits by feature.
    features: Vec<u64>,
    /// The features whose hits are not zero.
    seen_features: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct Occurrences {
    all: u32,
    /// Those that lead a chain `a::b`.
    leading: u32,
}

/// How the last token but space and comments bears on a chain of names with `::` between them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    /// No chain; a name may begin one.
    None,
    /// A name that begins a chain if `::` follows.
    First(u32),
    /// A later name, or the `>` of template arguments: `::` continues the chain.
    Later,
    /// `::` after a name: the next name is not the first.
    Scope,
}

impl Worker {
    pub(super) fn new(plan: Arc<Plan>) -> Self {
        let document = Document { features: vec![0; plan.labels.len()], ..Document::default() };
        Self {
            identifiers: Identifiers::new(&plan),
            plan,
            words: WordCounter::new(),
            projects: Vec::new(),
            project_numbers: HashMap::new(),
            features: Tallies::default(),
            open_namespaces: Tallies::default(),
            namespaces: NamedTallies::default(),
            statistics: Statistics::default(),
            document,
        }
    }

    /// Counts a document.
    pub(super) fn count(&mut self, project: &str, source: &[u8]) {
        self.count_words(source);
        self.count_tokens(source);
        self.statistics.count_document(source);
        let project = self.project(project);
        self.close_document(project);
    }

    /// The memory of what grows with the words and identifiers, all of which [`Self::take_words`] gives back.
    pub(super) fn memory_bytes(&self) -> usize {
        let document = self.document.identifiers.capacity() * size_of::<Occurrences>();
        self.words.memory_bytes() + self.identifiers.memory_bytes() + document
    }

    /// Takes out all words with their counts, and forgets every identifier once its namespaces have their names.
    pub(super) fn take_words(&mut self) -> ByteMap<u64> {
        self.settle_namespaces();
        self.identifiers = Identifiers::new(&self.plan);
        self.document.identifiers = Vec::new();
        std::mem::replace(&mut self.words, WordCounter::new()).finish()
    }

    fn settle_namespaces(&mut self) {
        let wanted: HashSet<u32> = self.open_namespaces.keys().map(|&(_, number)| number).collect();
        let names = self.identifiers.names(&wanted);
        for ((project, number), tally) in self.open_namespaces.drain() {
            self.namespaces.entry((project, names[&number].clone())).or_default().merge(tally);
        }
    }

    fn project(&mut self, project: &str) -> u32 {
        if let Some(&number) = self.project_numbers.get(project) {
            return number;
        }
        let number = self.projects.len() as u32;
        self.projects.push(project.to_owned());
        self.project_numbers.insert(project.to_owned(), number);
        number
    }

    fn count_words(&mut self, source: &[u8]) {
        let Self { plan, words, .. } = self;
        let mut total = 0;
        plan.pattern.split(source, |word| {
            words.count(word);
            total += 1;
        });
        self.statistics.add(Counter::Words, total);
    }

    fn count_tokens(&mut self, source: &[u8]) {
        let mut chain = Chain::None;
        let mut in_directive = false;
        let mut directive_name = false;
        for token in Lexer::new(source) {
            self.statistics.count_token(&token);
            if token.in_directive != in_directive {
                in_directive = token.in_directive;
                directive_name = in_directive;
                chain = Chain::None;
                if in_directive {
                    continue;
                }
            }
            if token.kind.is_space() {
                continue;
            }
            let names_directive = std::mem::take(&mut directive_name);
            chain = match token.kind {
                TokenKind::Identifier if names_directive => {
                    self.statistics.add(Counter::Directives, 1);
                    Chain::None
                }
                TokenKind::Identifier => self.count_identifier(source, &token, chain),
                TokenKind::Punctuator => self.chain_after(source, &token, chain),
                TokenKind::String | TokenKind::RawString => self.count_string(source, &token),
                _ => Chain::None,
            };
        }
    }

    #[inline]
    fn count_identifier(&mut self, source: &[u8], token: &Token, chain: Chain) -> Chain {
        let number = if token.spliced {
            self.identifiers.number(&self.plan, &token.text(source))
        } else {
            self.identifiers.number(&self.plan, &source[token.start..token.end])
        };
        self.document.see(number);
        match chain {
            _ if Identifiers::is_keyword(number) => Chain::None,
            Chain::Scope => Chain::Later,
            _ => Chain::First(number),
        }
    }

    #[inline]
    fn chain_after(&mut self, source: &[u8], token: &Token, chain: Chain) -> Chain {
        match source[token.start] {
            b':' if is_scope(source, token) => match chain {
                Chain::First(name) => {
                    self.document.identifiers[name as usize].leading += 1;
                    Chain::Scope
                }
                Chain::Later => Chain::Scope,
                _ => Chain::None,
            },
            b'>' => Chain::Later,
            _ => Chain::None,
        }
    }

    fn count_string(&mut self, source: &[u8], token: &Token) -> Chain {
        let Self { plan, document, .. } = self;
        strings::words(&token.text(source), token.kind, |word| {
            for &feature in plan.string_word(word) {
                document.add(feature, 1);
            }
        });
        Chain::None
    }

    /// Adds what the document had to the totals of its project.
    fn close_document(&mut self, project: u32) {
        let Self { identifiers, document, statistics, open_namespaces, features, .. } = self;
        let mut seen = std::mem::take(&mut document.seen);
        for number in seen.drain(..) {
            let Occurrences { all, leading } = std::mem::take(&mut document.identifiers[number as usize]);
            let counter = if Identifiers::is_keyword(number) { Counter::Keywords } else { Counter::Identifiers };
            statistics.add(counter, u64::from(all));
            for &feature in identifiers.features(number) {
                document.add(feature, u64::from(all));
            }
            if leading > 0 {
                statistics.add(Counter::Namespaces, u64::from(leading));
                open_namespaces.entry((project, number)).or_default().add(u64::from(leading));
            }
        }
        document.seen = seen;
        for feature in document.seen_features.drain(..) {
            let hits = std::mem::take(&mut document.features[feature as usize]);
            features.entry((project, feature)).or_default().add(hits);
        }
    }
}

/// Whether the punctuator is `::`.
#[inline]
fn is_scope(source: &[u8], token: &Token) -> bool {
    match source[token.start..token.end] {
        [b':', b':'] => true,
        _ => token.spliced && *token.text(source) == *b"::",
    }
}

impl Document {
    /// Counts an occurrence of an identifier.
    #[inline]
    fn see(&mut self, number: u32) {
        if number as usize >= self.identifiers.len() {
            self.identifiers.resize(number as usize + 1, Occurrences::default());
        }
        let occurrences = &mut self.identifiers[number as usize];
        if occurrences.all == 0 {
            self.seen.push(number);
        }
        occurrences.all += 1;
    }

    #[inline]
    fn add(&mut self, feature: u32, hits: u64) {
        let total = &mut self.features[feature as usize];
        if *total == 0 {
            self.seen_features.push(feature);
        }
        *total += hits;
    }
}

impl Tally {
    /// Adds the hits of one document.
    fn add(&mut self, hits: u64) {
        self.hits += hits;
        self.documents += 1;
    }

    /// Adds another's totals.
    pub(super) fn merge(&mut self, other: Self) {
        self.hits += other.hits;
        self.documents += other.documents;
    }
}
