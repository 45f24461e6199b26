//! The tokenizer: what callers encode and decode with.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, MatchKind};
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch};

use super::decode;
use super::documents::{self, Encoder, Part, StablePrefixFinder, TokenPrefixes, Workers};
use super::load::{self, Vocabulary};
use super::markers::Markers;
use crate::arrays::integers;
use crate::pattern::Pattern;
use crate::{Error, Result, Stop};

/// Vocabularies up to this size have 16-bit ids.
const MAX_NARROW_VOCAB: u32 = 1 << 16;

/// Calls a function with the workers of the width that a tokenizer's ids have.
macro_rules! by_width {
    ($tokenizer:ident, $function:path, $($argument:expr),+) => {
        if $tokenizer.vocab_size() <= MAX_NARROW_VOCAB {
            $function(&$tokenizer.encoder, &$tokenizer.narrow, $($argument),+)
        } else {
            $function(&$tokenizer.encoder, &$tokenizer.wide, $($argument),+)
        }
    };
}

/// A tokenizer: encodes any bytes to token ids and decodes them again.
///
/// Calls that take a [`Stop`] end soon after it is set, with an error of kind [`Stopped`](crate::ErrorKind::Stopped).
pub struct Tokenizer {
    vocabulary: Vocabulary,
    encoder: Encoder,
    narrow: Workers<u16>,
    wide: Workers<u32>,
    control: AhoCorasick,
    /// Made when it is first needed.
    prefixes: OnceLock<TokenPrefixes>,
    pattern: Pattern,
    digest: String,
    dir: PathBuf,
}

impl Tokenizer {
    /// Reads a tokenizer directory: `manifest.json` and the files that it names, `tokenizer.json` among them. With a
    /// `digest` it must be the tokenizer of that digest.
    ///
    /// # Errors
    /// `Io` if a file cannot be read; `Corrupt` if one is not what its digest says, or contradicts itself; `Invalid`,
    /// naming the setting, if the tokenizer has a pre-token pattern or a setting that the encoder does not know.
    pub fn from_dir(dir: &Path, digest: Option<&str>) -> Result<Self> {
        let artifact = load::read(dir, digest)?;
        let vocabulary = Vocabulary::new(&artifact)?;
        let encoder = Encoder::new(&artifact, &vocabulary)?;
        let control = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(vocabulary.control())
            .map_err(|error| Error::invalid(format!("control tokens: {error}")))?;
        Ok(Self {
            encoder,
            narrow: Workers::default(),
            wide: Workers::default(),
            control,
            prefixes: OnceLock::new(),
            pattern: artifact.pattern,
            digest: artifact.digest,
            dir: std::path::absolute(dir)?,
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
        self.pattern.name()
    }

    /// Whether it puts text in NFC, so that text need not come back as it was.
    pub fn is_lossy(&self) -> bool {
        self.encoder.normalizes()
    }

    /// The directory that it was read from.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Encodes one text to a `UInt16Array`, or a `UInt32Array` if the vocabulary has more than 65,536 ids.
    ///
    /// # Errors
    /// `Invalid` if the text has 4 GiB or more.
    pub fn encode(&self, text: &[u8], stop: &Stop) -> Result<ArrayRef> {
        by_width!(self, documents::encode, text, stop)
    }

    /// Encodes many texts to lists of ids, in order, each between the markers, with up to `threads` threads. The ids do
    /// not depend on `threads`.
    ///
    /// # Errors
    /// `Invalid` if a text has 4 GiB or more, all together have more than 2^31 - 1 tokens, or a marker is not below the
    /// vocabulary size.
    pub fn encode_batch(
        &self,
        documents: &[&[u8]],
        markers: Markers,
        threads: usize,
        stop: &Stop,
    ) -> Result<ListArray> {
        for id in [markers.bos, markers.eos].into_iter().flatten() {
            self.vocabulary.bytes(id)?;
        }
        by_width!(self, documents::encode_batch, documents, markers, threads, stop)
    }

    /// Encodes files, in order, with up to `threads` threads, which read them too.
    ///
    /// # Errors
    /// `Io` if a path is not a file or cannot be read; `Invalid` as [`Self::encode_batch`]. The message names the file.
    pub fn encode_files(&self, paths: &[PathBuf], threads: usize, stop: &Stop) -> Result<ListArray> {
        by_width!(self, documents::encode_files, paths, threads, stop)
    }

    /// Encodes parts, one after another: a control token becomes its id, and each text is encoded by itself.
    ///
    /// # Errors
    /// `Invalid` if there is no control token of a name, or a text has 4 GiB or more.
    pub fn encode_parts(&self, parts: &[Part<'_>], stop: &Stop) -> Result<ArrayRef> {
        by_width!(self, documents::encode_parts, parts, &|name| self.control_id(name), stop)
    }

    /// Counts the ids of each text, with up to `threads` threads.
    ///
    /// # Errors
    /// `Invalid` if a text has 4 GiB or more.
    pub fn count_batch(&self, documents: &[&[u8]], threads: usize, stop: &Stop) -> Result<Vec<u64>> {
        by_width!(self, documents::count_batch, documents, threads, stop)
    }

    /// How many of `ids` stay the first ids of their text whatever bytes follow it; remove the others before you
    /// complete the text. Control and reserved ids end a text: they and all ids before them stay.
    ///
    /// # Errors
    /// `Invalid` if an id is not below the vocabulary size, the text has 4 GiB or more, or the tokenizer is one of
    /// another program.
    pub fn stable_prefix(&self, ids: &[u32], stop: &Stop) -> Result<usize> {
        if self.encoder.is_foreign() {
            let pattern = self.pattern();
            return Err(Error::invalid(format!("what later text changes is not known with the pattern {pattern}")));
        }
        let (mut text, mut first) = (Vec::new(), 0);
        for (place, &id) in ids.iter().enumerate() {
            let bytes = self.vocabulary.bytes(id)?;
            text.extend_from_slice(bytes);
            if bytes.is_empty() {
                text.clear();
                first = place + 1;
            }
        }
        let prefixes = self.prefixes.get_or_init(|| TokenPrefixes::new(&self.vocabulary));
        let (vocabulary, encoder, pattern) = (&self.vocabulary, &self.encoder, self.pattern);
        let finder = StablePrefixFinder { vocabulary, encoder, prefixes, pattern, stop };
        let encode = |text: &[u8]| integers(&self.encode(text, stop)?, "ids");
        Ok(first + finder.stable_prefix(&ids[first..], &text, encode)?)
    }

    /// Where the bytes of each token begin in their text, and the end of the last: one more than there are ids. Of a
    /// list array the same for each list, as a list array. Control and reserved ids have no bytes.
    ///
    /// # Errors
    /// `Invalid` if an id is not below the vocabulary size, or `ids` is not an array, or list array, of integers, or
    /// has nulls.
    pub fn byte_offsets(&self, ids: &dyn Array) -> Result<ArrayRef> {
        decode::byte_offsets(&self.vocabulary, ids)
    }

    /// Decodes ids to their bytes; control and reserved ids are left out if `skip_control`.
    ///
    /// # Errors
    /// `Invalid`, naming the id and its place, if an id is not below the vocabulary size, or is control or reserved.
    pub fn decode(&self, ids: &[u32], skip_control: bool, stop: &Stop) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        decode::decode_into(&self.vocabulary, ids, skip_control, stop, &mut bytes)?;
        Ok(bytes)
    }

    /// Decodes lists of ids, without their markers, to a `BinaryArray`, or a `LargeBinaryArray` if there are 2 GiB or
    /// more, with up to `threads` threads.
    ///
    /// # Errors
    /// As [`Self::decode`], naming the row too; `Invalid` if a marker is not where it must be, or `lists` is not a list
    /// array of integers or has nulls.
    pub fn decode_batch(
        &self,
        lists: &dyn Array,
        markers: Markers,
        skip_control: bool,
        threads: usize,
        stop: &Stop,
    ) -> Result<ArrayRef> {
        decode::decode_batch(&self.vocabulary, lists, markers, skip_control, threads, stop)
    }

    /// Gives the length (`num_bytes`, u64) and the SHA-256 (`sha256`, hexadecimal) of what each list decodes to,
    /// without its markers, with up to `threads` threads. One text per thread is in memory.
    ///
    /// # Errors
    /// As [`Self::decode_batch`].
    pub fn digest_batch(
        &self,
        lists: &dyn Array,
        markers: Markers,
        threads: usize,
        stop: &Stop,
    ) -> Result<RecordBatch> {
        decode::digest_batch(&self.vocabulary, lists, markers, threads, stop)
    }

    /// Counts the control tokens whose characters occur in the texts: name and occurrences, by id.
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

    /// The id of a control token, by its name, with its angle brackets or without.
    ///
    /// # Errors
    /// `Invalid` if the vocabulary has no such control token.
    pub fn control_id(&self, name: &str) -> Result<u32> {
        let id = self.vocabulary.control_id(name).or_else(|| self.vocabulary.control_id(&format!("<{name}>")));
        id.ok_or_else(|| {
            let near = load::nearest(name, self.vocabulary.control()).join(", ");
            Error::invalid(format!("{name:?} is no control token of this tokenizer; the most similar are {near}"))
        })
    }

    /// The bytes of an id; none for control and reserved ids.
    ///
    /// # Errors
    /// `Invalid` if the id is not below the vocabulary size.
    pub fn token_bytes(&self, id: u32) -> Result<Option<&[u8]>> {
        let bytes = self.vocabulary.bytes(id)?;
        Ok((!bytes.is_empty()).then_some(bytes))
    }
}
