//! Whatever `manifest.json` and `tokenizer.json` contain, the directory is refused with an error, or it encodes and
//! decodes.
//!
//! The input is a manifest, a line of four hyphens, and a tokenizer.json; its digest in the manifest is put right.

#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use cppmill_core::Stop;
use cppmill_core::encode::{Tokenizer, integers};
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

/// The place of the digest of tokenizer.json in the manifest.
const DIGEST: &str = "DIGEST";
const BETWEEN: &[u8] = b"\n----\n";
const TEXT: &[u8] = b"int main() {\n    return 0; // \xff\xc3\xa9\n}\n";

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("cppmill-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for temporary files");
    folder
});

fuzz_target!(|data: &[u8]| {
    let middle = data.windows(BETWEEN.len()).position(|window| window == BETWEEN);
    let (manifest, tokenizer) = middle.map_or((data, &b""[..]), |at| (&data[..at], &data[at + BETWEEN.len()..]));
    let digest: String = Sha256::digest(tokenizer).iter().map(|byte| format!("{byte:02x}")).collect();
    let manifest = String::from_utf8_lossy(manifest).replace(DIGEST, &digest);
    fs::write(FOLDER.join("manifest.json"), manifest).expect("room for a file");
    fs::write(FOLDER.join("tokenizer.json"), tokenizer).expect("room for a file");
    let Ok(loaded) = Tokenizer::from_dir(&FOLDER, None) else { return };
    let stop = Stop::default();
    let ids = loaded.encode(TEXT, &stop).expect("a short text");
    let ids = integers(&*ids, "ids").expect("ids are integers");
    assert_eq!(loaded.decode(&ids, false, &stop).expect("ids of text"), TEXT);
    let stable = loaded.stable_prefix(&ids, &stop).expect("ids of text");
    assert!(stable <= ids.len());
});
