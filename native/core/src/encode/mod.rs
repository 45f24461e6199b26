//! Encoding and decoding with a trained vocabulary.
//!
//! A [`Tokenizer`] is read from a tokenizer directory and gives, for valid UTF-8, the ids that `tokenizers` gives with the same
//! `tokenizer.json` (and `encode_special_tokens` on: the characters of a control token in text are ordinary text). Any other
//! bytes are encoded too: each maximal valid run by itself, each invalid byte as the token of that byte. So decoding gives back
//! the bytes, whatever they are.
//!
//! Text is cut into words ([`crate::pattern`]), which are looked up in a cache in batches; a word that is not there is merged.
//! A tokenizer with superwords joins the tokens of the words of a line.

mod artifact;
mod batch;
mod borders;
mod bytelevel;
mod cache;
mod decode;
mod encoder;
mod input;
mod lanes;
mod line_cache;
mod merges;
mod packed;
mod pairs;
mod queue;
mod superwords;
mod vocabulary;
mod windows;
mod words;

use std::path::Path;

use aho_corasick::{AhoCorasick, MatchKind};
use arrow_array::{Array, ArrayRef, ListArray};

pub(crate) use input::lists;
pub use input::{byte_slices, integers};
pub(crate) use merges::{Merges, Scratch};

use crate::{Error, Result};

/// Vocabularies up to this size have 16-bit ids.
const MAX_NARROW_VOCAB: u32 = 1 << 16;

/// A tokenizer: encodes any bytes to token ids and decodes them again.
pub struct Tokenizer {
    vocabulary: vocabulary::Vocabulary,
    encoder: encoder::Encoder,
    narrow: batch::Workers<u16>,
    wide: batch::Workers<u32>,
    control: AhoCorasick,
    pattern: &'static str,
    digest: String,
}

impl Tokenizer {
    /// Reads a tokenizer directory: `manifest.json` and the files that it names, `tokenizer.json` among them.
    ///
    /// # Errors
    /// `Io` if a file cannot be read; `Corrupt` if one is not what its digest in the manifest says, or contradicts itself;
    /// `Invalid`, naming the setting, if the tokenizer has a pre-token pattern or a setting that the encoder does not know.
    pub fn from_dir(dir: &Path) -> Result<Self> {
        let artifact = artifact::read(dir)?;
        let vocabulary = vocabulary::Vocabulary::new(&artifact)?;
        let encoder = encoder::Encoder::new(&artifact, &vocabulary)?;
        let control = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(vocabulary.control())
            .map_err(|error| Error::invalid(format!("control tokens: {error}")))?;
        Ok(Self {
            encoder,
            narrow: batch::Workers::default(),
            wide: batch::Workers::default(),
            control,
            pattern: artifact.pattern.name(),
            digest: artifact.digest,
            vocabulary,
        })
    }

    /// The number of ids; every id is below it.
    pub fn vocab_size(&self) -> u32 {
        self.vocabulary.len()
    }

    /// The SHA-256 of `manifest.json`.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The name of the pre-token pattern.
    pub fn pattern(&self) -> &'static str {
        self.pattern
    }

    /// Encodes one text to a `UInt16Array`, or a `UInt32Array` if the vocabulary has more than 65,536 ids.
    ///
    /// # Errors
    /// `Invalid` if the text has 4 GiB or more.
    pub fn encode(&self, text: &[u8]) -> Result<ArrayRef> {
        if self.vocab_size() <= MAX_NARROW_VOCAB {
            batch::encode(&self.encoder, &self.narrow, text)
        } else {
            batch::encode(&self.encoder, &self.wide, text)
        }
    }

    /// Encodes many texts to lists of ids, in order, with up to `threads` threads. The ids do not depend on `threads`.
    ///
    /// # Errors
    /// `Invalid` if a text has 4 GiB or more, or all together have more than 2^31 - 1 tokens.
    pub fn encode_batch(&self, documents: &[&[u8]], threads: usize) -> Result<ListArray> {
        if self.vocab_size() <= MAX_NARROW_VOCAB {
            batch::encode_batch(&self.encoder, &self.narrow, documents, threads)
        } else {
            batch::encode_batch(&self.encoder, &self.wide, documents, threads)
        }
    }

    /// Decodes ids to the bytes that they stand for; control and reserved ids are left out if `skip_control`.
    ///
    /// # Errors
    /// `Invalid`, naming the id and its place, if an id is not below the vocabulary size, or is control or reserved.
    pub fn decode(&self, ids: &[u32], skip_control: bool) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        decode::decode_into(&self.vocabulary, ids, skip_control, &mut bytes)?;
        Ok(bytes)
    }

    /// Decodes lists of ids to a `BinaryArray`, or a `LargeBinaryArray` if there are 2 GiB or more.
    ///
    /// # Errors
    /// As [`Self::decode`], naming the row too; `Invalid` if `lists` is no list array of integers or has nulls.
    pub fn decode_batch(&self, lists: &dyn Array, skip_control: bool) -> Result<ArrayRef> {
        decode::decode_batch(&self.vocabulary, lists, skip_control)
    }

    /// Counts the control tokens whose characters stand in the texts: name and occurrences, by id, those that occur.
    pub fn count_control(&self, documents: &[&[u8]]) -> Vec<(String, u64)> {
        let mut counts = vec![0; self.control.patterns_len()];
        for document in documents {
            for found in self.control.find_iter(document) {
                counts[found.pattern().as_usize()] += 1;
            }
        }
        let names = self.vocabulary.control().map(String::from);
        names.zip(counts).filter(|(_, count)| *count > 0).collect()
    }

    /// The id of a control token, by its name.
    ///
    /// # Errors
    /// `Invalid` if the vocabulary has no such control token.
    pub fn control_id(&self, name: &str) -> Result<u32> {
        self.vocabulary
            .control_id(name)
            .ok_or_else(|| Error::invalid(format!("{name:?} is no control token of this tokenizer")))
    }

    /// The bytes that an id stands for; none for control and reserved ids.
    ///
    /// # Errors
    /// `Invalid` if the id is not below the vocabulary size.
    pub fn token_bytes(&self, id: u32) -> Result<Option<&[u8]>> {
        let bytes = self.vocabulary.bytes(id)?;
        Ok((!bytes.is_empty()).then_some(bytes))
    }
}
