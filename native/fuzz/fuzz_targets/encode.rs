//! Any bytes have the ids of the `tokenizers` crate, by maximal runs of valid UTF-8, and single bytes between them;
//! they decode to themselves; and the ids that are stable for a half of them lead the ids of the whole.
//!
//! `CPPMILL_FUZZ_TOKENIZERS` names tokenizer directories, with colons between them.

#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use arrow_array::Array;
use cppmill_core::Stop;
use cppmill_core::encode::{Markers, Tokenizer, integers};
use libfuzzer_sys::fuzz_target;

/// A tokenizer directory as both load it.
struct Twins {
    ours: Tokenizer,
    theirs: tokenizers::Tokenizer,
    byte_ids: Vec<u32>,
}

static TWINS: LazyLock<Vec<Twins>> = LazyLock::new(|| {
    let paths = std::env::var("CPPMILL_FUZZ_TOKENIZERS").expect("CPPMILL_FUZZ_TOKENIZERS names tokenizer directories");
    paths.split(':').map(|path| Twins::load(Path::new(path))).collect()
});

impl Twins {
    fn load(dir: &Path) -> Self {
        let ours = Tokenizer::from_dir(dir, None).expect("a tokenizer directory");
        let mut theirs = tokenizers::Tokenizer::from_file(dir.join("tokenizer.json")).expect("a tokenizer.json");
        theirs.set_encode_special_tokens(true);
        let id_of = |byte| (0..ours.vocab_size()).find(|&id| ours.token_bytes(id).ok().flatten() == Some(&[byte]));
        let byte_ids = (0..=u8::MAX).map(|byte| id_of(byte).expect("each byte has a token")).collect();
        Self { ours, theirs, byte_ids }
    }

    fn ids(&self, data: &[u8]) -> Vec<u32> {
        let ids = self.ours.encode(data, &Stop::default()).expect("a short text");
        integers(&*ids, "ids").expect("ids are integers")
    }

    fn expected(&self, data: &[u8]) -> Vec<u32> {
        let mut ids = Vec::new();
        for chunk in data.utf8_chunks() {
            ids.extend_from_slice(self.theirs.encode_fast(chunk.valid(), false).expect("a text").get_ids());
            ids.extend(chunk.invalid().iter().map(|&byte| self.byte_ids[usize::from(byte)]));
        }
        ids
    }

    fn check(&self, data: &[u8]) {
        let stop = Stop::default();
        let ids = self.ids(data);
        assert_eq!(ids, self.expected(data));
        assert_eq!(self.ours.decode(&ids, false, &stop).expect("ids of text"), data);
        assert_eq!(self.ours.count_batch(&[data], 1, &stop).expect("a short text"), [ids.len() as u64]);
        let half = self.ids(&data[..data.len() / 2]);
        let stable = self.ours.stable_prefix(&half, &stop).expect("ids of text");
        assert_eq!(ids[..stable], half[..stable]);
        let lists = self.ours.encode_batch(&[data, data], Markers::default(), 1, &stop).expect("short texts");
        assert_eq!(lists.values().len(), 2 * ids.len());
    }
}

fuzz_target!(|data: &[u8]| TWINS.iter().for_each(|twins| twins.check(data)));
