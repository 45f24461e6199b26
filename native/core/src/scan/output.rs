//! Merges the counts of the workers and writes them out sorted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{Field, Schema};

use super::families::FamilyTally;
use super::plan::{Label, Plan};
use super::statistics::Statistics;
use super::tally::Tally;
use super::worker::Worker;
use crate::Result;

/// Tallies by the texts of their row.
type Rows<'a, const N: usize> = BTreeMap<[Cow<'a, str>; N], Tally>;

/// What was counted but for words, as [`super::Counts`] has it.
pub(super) struct Small {
    pub(super) terms: RecordBatch,
    pub(super) morphemes: RecordBatch,
    pub(super) namespaces: RecordBatch,
    pub(super) families: Option<RecordBatch>,
    pub(super) statistics: RecordBatch,
}

/// The counts of all workers together, but for words; what they have was settled.
pub(super) fn small(plan: &Plan, workers: &[Worker]) -> Result<Small> {
    let mut rows = AllRows { shapes: vec![Tally::default(); plan.labels.len()], ..AllRows::default() };
    let mut statistics = Statistics::default();
    for worker in workers {
        statistics.merge(&worker.statistics);
        rows.add_features(plan, worker);
        rows.add_namespaces(worker);
    }
    Ok(Small {
        terms: tallies(["term", "category", "project"], &rows.terms)?,
        morphemes: tallies(["morpheme", "position", "project"], &rows.morphemes)?,
        namespaces: tallies(["namespace", "project"], &rows.namespaces)?,
        families: plan.families.then(|| families(workers)).transpose()?,
        statistics: totals(plan, &statistics, &rows.shapes)?,
    })
}

/// The rows of every result but words and statistics.
#[derive(Default)]
struct AllRows<'a> {
    terms: Rows<'a, 3>,
    morphemes: Rows<'a, 3>,
    namespaces: Rows<'a, 2>,
    /// Keywords and styles, by feature.
    shapes: Vec<Tally>,
}

impl<'a> AllRows<'a> {
    fn add_features(&mut self, plan: &'a Plan, worker: &'a Worker) {
        for (&(project, feature), &tally) in &worker.features {
            let project = Cow::from(&worker.projects[project as usize]);
            let row = match &plan.labels[feature as usize] {
                Label::Term { term, category } => {
                    self.terms.entry([term.into(), category.into(), project]).or_default()
                }
                Label::Morpheme { morpheme, position } => {
                    self.morphemes.entry([morpheme.into(), position.name().into(), project]).or_default()
                }
                Label::Keyword(_) | Label::Style(_) => &mut self.shapes[feature as usize],
            };
            row.merge(tally);
        }
    }

    fn add_namespaces(&mut self, worker: &'a Worker) {
        for (&(project, ref name), &tally) in &worker.namespaces {
            let name = readable(name);
            let project = Cow::from(&worker.projects[project as usize]);
            self.namespaces.entry([name.into(), project]).or_default().merge(tally);
        }
    }
}

/// An identifier as text. One that is not UTF-8 is escaped, with backslashes, which no identifier has.
fn readable(name: &[u8]) -> String {
    std::str::from_utf8(name).map_or_else(|_| name.escape_ascii().to_string(), str::to_owned)
}

fn tallies<const N: usize>(names: [&str; N], rows: &Rows<'_, N>) -> Result<RecordBatch> {
    let texts = names.iter().enumerate().map(|(at, &name)| {
        let column = StringArray::from_iter_values(rows.keys().map(|texts| texts[at].as_ref()));
        (name, Arc::new(column) as ArrayRef)
    });
    let hits = UInt64Array::from_iter_values(rows.values().map(|tally| tally.hits));
    let documents = UInt64Array::from_iter_values(rows.values().map(|tally| tally.documents));
    batch(texts.chain([("hits", Arc::new(hits) as ArrayRef), ("documents", Arc::new(documents))]))
}

/// The families of all workers: family, hits, documents, names.
fn families(workers: &[Worker]) -> Result<RecordBatch> {
    let mut rows = BTreeMap::<String, FamilyTally>::new();
    for worker in workers {
        let families = worker.names.families();
        families.for_each(|name, tally| rows.entry(readable(name)).or_default().merge(tally));
    }
    let names = StringArray::from_iter_values(rows.keys());
    let column = |number: fn(&FamilyTally) -> u64| Arc::new(UInt64Array::from_iter_values(rows.values().map(number)));
    batch([
        ("family", Arc::new(names) as ArrayRef),
        ("hits", column(|family| family.tally.hits)),
        ("documents", column(|family| family.tally.documents)),
        ("names", column(|family| family.names)),
    ])
}

/// Every total by name: name (string), value (u64), sorted by name.
fn totals(plan: &Plan, statistics: &Statistics, shapes: &[Tally]) -> Result<RecordBatch> {
    let mut totals: BTreeMap<Cow<'_, str>, u64> =
        statistics.totals().into_iter().map(|(name, value)| (Cow::from(name), value)).collect();
    for (label, tally) in plan.labels.iter().zip(shapes) {
        let name = match label {
            Label::Keyword(keyword) => format!("keyword.{keyword}"),
            Label::Style(style) => format!("style.{}", style.name()),
            Label::Term { .. } | Label::Morpheme { .. } => continue,
        };
        totals.insert(Cow::from(format!("{name}.documents")), tally.documents);
        totals.insert(Cow::from(name), tally.hits);
    }
    let names = StringArray::from_iter_values(totals.keys());
    let values = UInt64Array::from_iter_values(totals.into_values());
    batch([("name", Arc::new(names) as ArrayRef), ("value", Arc::new(values))])
}

/// A batch of columns without nulls.
fn batch<'a>(columns: impl IntoIterator<Item = (&'a str, ArrayRef)>) -> Result<RecordBatch> {
    let (fields, columns): (Vec<_>, Vec<_>) =
        columns.into_iter().map(|(name, column)| (Field::new(name, column.data_type().clone(), false), column)).unzip();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}
