//! Files of all sorts: what is read, what is not, and why.

use std::error::Error;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt64Type};
use arrow_array::{BinaryArray, RecordBatch, UInt64Array};

use super::{EntryKind, Files, digest_contents, list_folders, read_files};
use crate::digest::sha256_hex;
use crate::{ErrorKind, Stop};

const MAX_BYTES: u64 = 1 << 20;

/// A folder of the test's own, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("cppmill-files-{name}-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn write(&self, files: &[(&str, Vec<u8>)]) -> std::io::Result<()> {
        files.iter().try_for_each(|(name, content)| fs::write(self.0.join(name), content))
    }

    fn read(&self, listed: &[(&str, u64)], keep: bool, threads: usize) -> crate::Result<RecordBatch> {
        let paths = BinaryArray::from_iter_values(listed.iter().map(|(name, _)| name));
        let num_bytes = listed.iter().map(|&(_, size)| size).collect::<UInt64Array>();
        let root = self.0.as_os_str().as_encoded_bytes();
        let files = Files { root, paths: &paths, num_bytes: &num_bytes, max_bytes: MAX_BYTES };
        read_files(&files, keep, threads, &Stop::default())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left_behind = fs::remove_dir_all(&self.0);
    }
}

fn rows(batch: &RecordBatch) -> Vec<(u64, &str, bool, i32)> {
    let [num_bytes, digests, has_nul, errors] = [0, 1, 2, 4].map(|place| batch.column(place));
    let row = |row| {
        (
            num_bytes.as_primitive::<UInt64Type>().value(row),
            digests.as_string::<i32>().value(row),
            has_nul.as_boolean().value(row),
            errors.as_primitive::<Int32Type>().value(row),
        )
    };
    (0..batch.num_rows()).map(row).collect()
}

fn contents() -> Vec<(&'static str, Vec<u8>)> {
    let text = |size: usize| (0..size).map(|place| b"int main; \n"[place % 11]).collect::<Vec<u8>>();
    let mut late_nul = text(700_001);
    late_nul[700_000] = 0;
    let sizes = [("empty", 0), ("one", 1), ("piece", 256 << 10), ("more", (256 << 10) + 1), ("largest", 1 << 20)];
    let mut all: Vec<_> = sizes.into_iter().map(|(name, size)| (name, text(size))).collect();
    all.extend([("nul", b"a\0b".to_vec()), ("late-nul", late_nul)]);
    all
}

#[test]
fn files_of_any_size_are_digested_whatever_their_listed_size() -> Result<(), Box<dyn Error>> {
    let folder = Folder::new("digests")?;
    folder.write(&contents())?;
    for (keep, threads) in [(false, 1), (false, 4), (true, 1), (true, 4)] {
        for shift in [0_i64, 1, -1, 1000] {
            let listed: Vec<_> = contents()
                .iter()
                .map(|(name, content)| (*name, (content.len() as u64).saturating_add_signed(shift)))
                .collect();
            let batch = folder.read(&listed, keep, threads)?;
            for (row, (found, (name, content))) in rows(&batch).into_iter().zip(contents()).enumerate() {
                let expected = (content.len() as u64, &*sha256_hex(&content), content.contains(&0), 0);
                assert_eq!(found, expected, "{name}, listed {shift} bytes off");
                if keep {
                    assert_eq!(batch.column(5).as_binary::<i64>().value(row), content, "{name}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn what_cannot_be_read_is_a_row_with_its_error() -> Result<(), Box<dyn Error>> {
    let folder = Folder::new("errors")?;
    folder.write(&[("kept", b"int x;".to_vec()), ("large", vec![b'x'; (1 << 20) + 1])])?;
    symlink(folder.0.join("kept"), folder.0.join("link"))?;
    fs::create_dir(folder.0.join("folder"))?;
    let long = "n".repeat(300);
    let listed = [
        ("missing", 5),
        ("link", 6),
        ("large", 6),
        ("folder", 9),
        (&*long, 4),
        ("a\0b", 3),
        ("kept/below", 1),
        ("kept", 6),
    ];
    let digest = sha256_hex(b"int x;");
    for keep in [false, true] {
        let batch = folder.read(&listed, keep, 2)?;
        let expected = [
            (0, "", false, libc::ENOENT),
            (0, "", false, libc::ELOOP),
            ((1 << 20) + 1, "", false, 0),
            (0, "", false, libc::ENOENT),
            (0, "", false, libc::ENAMETOOLONG),
            (0, "", false, libc::EINVAL),
            (0, "", false, libc::ENOTDIR),
            (6, &*digest, false, 0),
        ];
        assert_eq!(rows(&batch), expected);
        if keep {
            let content: Vec<_> = batch.column(5).as_binary::<i64>().iter().flatten().map(<[u8]>::to_vec).collect();
            assert_eq!(content.concat(), b"int x;");
        }
    }
    Ok(())
}

#[test]
fn files_that_say_nothing_of_their_size_are_read_to_their_end() -> Result<(), Box<dyn Error>> {
    let version = fs::read("/proc/version")?;
    let paths = BinaryArray::from_iter_values(["version"]);
    let num_bytes = UInt64Array::from(vec![0]);
    let files = Files { root: b"/proc", paths: &paths, num_bytes: &num_bytes, max_bytes: MAX_BYTES };
    for keep in [false, true] {
        let batch = read_files(&files, keep, 1, &Stop::default())?;
        assert_eq!(rows(&batch), [(version.len() as u64, &*sha256_hex(&version), false, 0)]);
    }
    Ok(())
}

#[test]
fn a_call_that_is_stopped_returns_nothing() -> Result<(), Box<dyn Error>> {
    let (paths, num_bytes, stop) = (BinaryArray::from_iter_values(["x"]), UInt64Array::from(vec![0]), Stop::default());
    stop.set();
    let files = Files { root: b"/", paths: &paths, num_bytes: &num_bytes, max_bytes: MAX_BYTES };
    let error = read_files(&files, true, 1, &stop).err().ok_or("it was not stopped")?;
    assert_eq!(error.kind(), ErrorKind::Stopped);
    Ok(())
}

#[test]
fn columns_that_do_not_fit_are_refused() {
    let paths = BinaryArray::from_iter_values(["x", "y"]);
    let num_bytes = UInt64Array::from(vec![0]);
    let files = Files { root: b"/", paths: &paths, num_bytes: &num_bytes, max_bytes: MAX_BYTES };
    let error = read_files(&files, true, 1, &Stop::default()).err().map(|error| error.to_string());
    assert_eq!(
        error.as_deref(),
        Some("num_bytes must be a uint64 array of 2 rows without nulls, not UInt64 of 1 rows")
    );
}

#[test]
fn listed_sizes_beyond_the_memory_are_refused() {
    let paths = BinaryArray::from_iter_values(["x", "y"]);
    for sizes in [[u64::MAX, 0], [1 << 62, 1 << 62], [1 << 63, 1 << 63], [1 << 47, 1]] {
        let num_bytes = UInt64Array::from(sizes.to_vec());
        let files = Files { root: b"/", paths: &paths, num_bytes: &num_bytes, max_bytes: u64::MAX };
        let error = read_files(&files, true, 1, &Stop::default()).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("num_bytes adds up to more memory than there is"));
    }
}

#[test]
fn documents_in_memory_are_digested_the_same_on_any_number_of_threads() -> Result<(), Box<dyn Error>> {
    let (_, contents): (Vec<_>, Vec<_>) = contents().into_iter().unzip();
    let array = BinaryArray::from_iter_values(&contents);
    for threads in [1, 3] {
        let batch = digest_contents(&array, threads)?;
        for (row, content) in contents.iter().enumerate() {
            assert_eq!(batch.column(0).as_string::<i32>().value(row), sha256_hex(content));
            assert_eq!(batch.column(1).as_boolean().value(row), content.contains(&0));
        }
    }
    Ok(())
}

#[test]
fn folders_are_listed_without_following_links_the_same_on_any_number_of_threads() -> Result<(), Box<dyn Error>> {
    let folder = Folder::new("list")?;
    fs::create_dir_all(folder.0.join("below"))?;
    folder.write(&[("a.h", b"int x;".to_vec()), ("below/b.h", Vec::new())])?;
    symlink("a.h", folder.0.join("link"))?;
    let asked = ["", "below/", "gone/", "a.h/"].map(Into::into);
    for threads in [1, 3] {
        let listed = list_folders(folder.0.as_os_str().as_encoded_bytes(), &asked, threads, &Stop::default())?;
        let found: Vec<_> = listed
            .into_iter()
            .map(|entries| {
                entries.map(|entries| {
                    let mut entries: Vec<_> = entries
                        .into_iter()
                        .map(|entry| {
                            (
                                entry.name,
                                entry.kind,
                                entry.num_bytes,
                                entry.modified_ns.min(entry.changed_ns) > 0,
                                entry.error,
                            )
                        })
                        .collect();
                    entries.sort();
                    entries
                })
            })
            .collect();
        let top = vec![
            ("a.h".into(), EntryKind::File, 6, true, 0),
            ("below".into(), EntryKind::Folder, 0, false, 0),
            ("link".into(), EntryKind::Link, 0, false, 0),
        ];
        let below = vec![("b.h".into(), EntryKind::File, 0, true, 0)];
        assert_eq!(found, [Ok(top), Ok(below), Err(libc::ENOENT), Err(libc::ENOTDIR)]);
    }
    Ok(())
}
