//! What one thread counts: documents in, totals that add up out.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::code::CodeNames;
use super::features::Features;
use super::names::Names;
use super::outline::Outline;
use super::plan::{Identifiers, Plan};
use super::statistics::{Counter, Statistics};
use super::tally::Tally;
use super::tokens::TokenCounter;
use super::words::{ProjectTotals, WordTable};
use crate::blocks::Classes;
use crate::counts::partition;
use crate::pattern::{Pattern, Starts};

/// Tallies by (project, number of a feature or identifier).
pub(super) type Tallies = HashMap<(u32, u32), Tally, foldhash::fast::FixedState>;

/// Tallies by (project, name).
pub(super) type NamedTallies = HashMap<(u32, Box<[u8]>), Tally, foldhash::fast::FixedState>;

/// The counts of one thread.
pub(super) struct Worker {
    plan: Arc<Plan>,
    /// What the tables may hold.
    share_bytes: usize,
    words: ProjectTotals,
    lines: ProjectTotals,
    pub(super) names: Names,
    pub(super) projects: Vec<String>,
    project_numbers: HashMap<String, u32>,
    pub(super) features: Tallies,
    /// Namespaces by the number of their identifier, until they are settled.
    open_namespaces: Tallies,
    pub(super) namespaces: NamedTallies,
    pub(super) statistics: Statistics,
    document: Features,
    /// That of the last document.
    last_project: u32,
    /// Made again for each document, kept for their memory.
    classes: Classes,
    starts: Starts,
    outline: Outline,
}

impl Worker {
    pub(super) fn new(plan: Arc<Plan>, share_bytes: usize) -> Self {
        let document = Features::new(&plan);
        Self {
            names: Names::new(Arc::clone(&plan)),
            plan,
            share_bytes,
            words: ProjectTotals::new(share_bytes),
            lines: ProjectTotals::new(share_bytes),
            projects: Vec::new(),
            project_numbers: HashMap::new(),
            features: Tallies::default(),
            open_namespaces: Tallies::default(),
            namespaces: NamedTallies::default(),
            statistics: Statistics::default(),
            document,
            last_project: 0,
            classes: Classes::default(),
            starts: Starts::default(),
            outline: Outline::default(),
        }
    }

    /// Counts a document.
    pub(super) fn count(&mut self, project: &str, source: &[u8]) {
        self.classes.classify(source);
        let odd = self.outline.draw(source, &self.classes).is_err();
        let Self { plan, words, lines, names, document, statistics, outline, classes, starts, .. } = self;
        let partition = plan.by_project.then(|| partition(project.as_bytes(), plan.word_partitions));
        let (words, mut code) =
            (words.table(partition), CodeNames::new(plan, source, &outline.regions, names, document));
        starts.find(plan.line_pattern.unwrap_or(plan.pattern), source);
        if plan.line_pattern.is_some() {
            lines.table(partition).count_lines(source, starts);
        }
        let seen = if plan.pattern == Pattern::NAMES {
            words.count(source, starts, &mut code)
        } else {
            let seen = words.count_nameless(source, starts);
            starts.find(Pattern::NAMES, source);
            code.count_all(starts);
            seen
        };
        statistics.add(Counter::Words, seen);
        statistics.add(Counter::DisabledIdentifiers, code.disabled_names());
        let mut tokens = TokenCounter::new(plan, source, names, document, statistics);
        if odd {
            tokens.count_all();
        } else {
            tokens.count_parts(outline, classes);
        }
        statistics.count_document(source, classes);
        let project = self.project(project);
        if project != self.last_project {
            self.close_project();
            self.last_project = project;
        }
        self.close_document(project);
    }

    /// The memory of what grows with the words, lines and identifiers, all of which [`Self::take_words`] and
    /// [`Self::take_lines`] give back.
    fn memory_bytes(&self) -> usize {
        self.words.memory_bytes() + self.lines.memory_bytes() + self.names.memory_bytes()
    }

    /// Whether the tables hold more than their share.
    pub(super) fn is_full(&self) -> bool {
        self.memory_bytes() > self.share_bytes
    }

    /// Takes out all lines with their counts.
    pub(super) fn take_lines(&mut self) -> Vec<WordTable> {
        self.lines.take()
    }

    /// Takes out all words with their counts, settles all totals, and forgets every identifier.
    pub(super) fn take_words(&mut self) -> Vec<WordTable> {
        self.close_project();
        self.settle_namespaces();
        self.names.forget();
        self.words.take()
    }

    fn settle_namespaces(&mut self) {
        let wanted: HashSet<u32> = self.open_namespaces.keys().map(|&(_, number)| number).collect();
        let names = self.names.texts(&wanted);
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

    /// Adds what the document had to the totals of its project.
    fn close_document(&mut self, project: u32) {
        let Self { names, document, open_namespaces, statistics, .. } = self;
        names.end_document(|number, found, with| {
            let counter = if Identifiers::is_keyword(number) { Counter::Keywords } else { Counter::Identifiers };
            statistics.add(counter, u64::from(found.hits));
            for &feature in with {
                document.add(feature, u64::from(found.hits));
            }
            if found.leading > 0 {
                statistics.add(Counter::Namespaces, u64::from(found.leading));
                open_namespaces.entry((project, number)).or_default().add(u64::from(found.leading));
            }
        });
        document.end_document();
    }

    /// Adds what the last documents had to the totals of their project.
    fn close_project(&mut self) {
        let Self { document, features, last_project: project, .. } = self;
        document.end_project(|feature, tally| features.entry((*project, feature)).or_default().merge(tally));
    }
}
