//! Whatever the memory budget, the counts are the same, and nothing stays behind.

use std::path::{Path, PathBuf};

use super::super::{Budget, Scanner};
use super::{CONFIG, Counts, batch, scan, scan_with, twin};

/// A folder of its own for a test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cppmill-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn names(&self) -> usize {
        std::fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn scanner(threads: usize, memory_bytes: usize, spill_dir: Option<&Path>) -> Scanner {
    let config = CONFIG.replacen('{', r#"{"word_partitions": 5, "#, 1);
    let budget = Budget { memory_bytes, spill_dir: spill_dir.map(Path::to_owned) };
    Scanner::new(&config, threads, budget).unwrap()
}

/// Documents with many distinct words and identifiers.
fn documents() -> Vec<(String, Vec<u8>)> {
    let mut documents = twin::documents(11, 600);
    for (at, (_, text)) in documents.iter_mut().enumerate() {
        text.extend_from_slice(format!(" ns{}::name_{}::x{at} ", at % 50, at * at % 700).as_bytes());
    }
    documents
}

#[test]
fn counts_are_the_same_for_any_budget_threads_and_batches() {
    let folder = Folder::new("budgets");
    let owned = documents();
    let documents: Vec<_> = owned.iter().map(|(project, text)| (project.as_str(), text.as_slice())).collect();
    let expected: Counts = scan(&documents, 1, documents.len());
    for (memory_bytes, threads, rows) in [
        (0, 1, 100),
        (0, 2, 600),
        (20_000, 2, 7),
        (60_000, 1, 600),
        (100_000, 2, 200),
        (200_000, 1, 1),
        (1 << 30, 2, 9),
    ] {
        let found = scan_with(scanner(threads, memory_bytes, Some(&folder.0)), &documents, rows);
        assert_eq!(found, expected, "{memory_bytes} bytes, {threads} threads, {rows} rows a batch");
    }
    assert_eq!(folder.names(), 0);
}

#[test]
fn files_have_no_name_while_they_are_in_use() {
    let folder = Folder::new("names");
    let mut scanner = scanner(1, 0, Some(&folder.0));
    scanner.add(&batch(&[("p", b"one"), ("p", b"two")])).unwrap();
    assert_eq!(folder.names(), 0);
}

#[test]
fn without_a_folder_a_full_memory_is_an_error_that_stays() {
    let mut scanner = scanner(1, 0, None);
    let error = scanner.add(&batch(&[("p", b"one")])).unwrap_err().to_string();
    assert!(error.contains("spill_dir") && error.contains("memory_bytes"), "{error}");
    assert!(scanner.add(&batch(&[("p", b"one")])).unwrap_err().to_string().contains("are lost"));
    assert!(scanner.finish().err().unwrap().to_string().contains("are lost"));
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = Folder::new("unwritable");
    let file = folder.0.join("file");
    std::fs::write(&file, "").unwrap();
    let error = scanner(1, 0, Some(&file)).add(&batch(&[("p", b"one")])).unwrap_err().to_string();
    assert!(error.contains(&*file.to_string_lossy()) && error.contains("spill_dir"), "{error}");
}
