//! The tokens by id: their bytes, and which of them are control or reserved.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::artifact::{Artifact, corrupt};
use super::byte_alphabet;
use crate::encode::bpe::{MAX_IDS, MAX_MERGES, Merge};
use crate::{Error, Result};

/// The bytes and the kind of every token.
pub(crate) struct Vocabulary {
    /// The bytes of all tokens, one after another; none for control and reserved ids. Then [`Self::SLACK`] zeros.
    bytes: Vec<u8>,
    /// Where each token starts in `bytes`, and the end of the last.
    starts: Vec<u32>,
    /// The names of the ids without text.
    names: HashMap<u32, String>,
    /// The control tokens by id.
    control: Vec<(String, u32)>,
    /// Other names of control tokens.
    roles: HashMap<String, u32>,
}

impl Vocabulary {
    /// So many bytes can be read from where any token starts.
    pub(crate) const SLACK: usize = 16;

    /// Takes the tokens from a tokenizer directory; each id below the vocabulary size must have exactly one, but of a
    /// tokenizer of another program.
    ///
    /// # Errors
    /// `Invalid` if there are more ids or merges than the encoder knows; `Corrupt` if ids and tokens do not fit
    /// together.
    pub(crate) fn new(artifact: &Artifact) -> Result<Self> {
        let (ids, merges) = (artifact.manifest.vocab_size, artifact.merges.len());
        if ids > MAX_IDS || merges > MAX_MERGES as usize {
            return Err(Error::invalid(format!(
                "the vocabulary has {ids} ids and {merges} merges: \
                 the encoder knows up to {MAX_IDS} and {MAX_MERGES}"
            )));
        }
        let texts = if artifact.is_foreign { foreign_texts(artifact)? } else { own_texts(artifact)? };
        let mut vocabulary = Self {
            bytes: Vec::new(),
            starts: vec![0],
            names: HashMap::new(),
            control: artifact.control(),
            roles: artifact.manifest.roles.clone(),
        };
        for (id, text) in (0_u32..).zip(texts) {
            match text {
                Text::Bytes(bytes) => vocabulary.bytes.extend(bytes),
                Text::Name(name) => drop(vocabulary.names.insert(id, name)),
            }
            vocabulary.starts.push(vocabulary.bytes.len() as u32);
        }
        vocabulary.bytes.extend([0; Self::SLACK]);
        Ok(vocabulary)
    }

    /// Makes the vocabulary of these tokens, without control tokens.
    #[cfg(test)]
    pub(crate) fn of(tokens: &[&[u8]]) -> Self {
        let ends = tokens.iter().scan(0, |end, token| {
            *end += token.len() as u32;
            Some(*end)
        });
        Self {
            bytes: [&tokens.concat()[..], &[0; Self::SLACK]].concat(),
            starts: std::iter::once(0).chain(ends).collect(),
            names: HashMap::new(),
            control: Vec::new(),
            roles: HashMap::new(),
        }
    }

    /// The number of ids.
    pub(crate) fn len(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// The id of a control token.
    pub(crate) fn control_id(&self, name: &str) -> Option<u32> {
        if let Some(id) = self.roles.get(name) {
            return Some(*id);
        }
        self.control.iter().find(|(known, _)| known == name).map(|(_, id)| *id)
    }

    /// The control tokens' names, by id.
    pub(crate) fn control(&self) -> impl Iterator<Item = &str> {
        self.control.iter().map(|(name, _)| name.as_str())
    }

    /// The bytes of a token; empty for control and reserved ids.
    ///
    /// # Errors
    /// `Invalid` if `id` is not below the vocabulary size.
    #[inline]
    pub(crate) fn bytes(&self, id: u32) -> Result<&[u8]> {
        let place = self
            .place(id)
            .ok_or_else(|| Error::invalid(format!("token id {id} is not below the vocabulary size {}", self.len())))?;
        Ok(self.text(place))
    }

    /// The ids that have bytes, and these.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let ends = (0_u32..).zip(self.starts.windows(2)).filter(|(_, ends)| ends[0] < ends[1]);
        ends.map(|(id, ends)| (id, &self.bytes[ends[0] as usize..ends[1] as usize]))
    }

    /// Where the bytes of a token are, for [`Self::text`]; none if `id` is not below the vocabulary size.
    #[inline]
    pub(crate) fn place(&self, id: u32) -> Option<Range<usize>> {
        let [start, end] = self.starts.get(id as usize..)?.first_chunk::<2>()?;
        Some(*start as usize..*end as usize)
    }

    /// The bytes at a place.
    #[inline]
    pub(crate) fn text(&self, place: Range<usize>) -> &[u8] {
        &self.bytes[place]
    }

    /// So many bytes from a place on as can be copied at once.
    #[inline]
    pub(crate) fn slack(&self, start: usize) -> Option<&[u8; Self::SLACK]> {
        self.bytes[start..].first_chunk()
    }

    /// The name of a control or reserved id.
    pub(crate) fn name(&self, id: u32) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }

    /// The length of each token in bytes; 0 for control and reserved ids.
    pub(crate) fn lengths(&self) -> Arc<[u32]> {
        self.starts.windows(2).map(|ends| ends[1] - ends[0]).collect()
    }

    /// The token of each byte.
    ///
    /// # Errors
    /// `Corrupt` if a byte has none.
    pub(crate) fn byte_ids(&self) -> Result<Box<[u32; 256]>> {
        let mut byte_ids = Box::new([u32::MAX; 256]);
        for (id, ends) in (0_u32..).zip(self.starts.windows(2)).filter(|(_, ends)| ends[1] - ends[0] == 1) {
            byte_ids[usize::from(self.bytes[ends[0] as usize])] = id;
        }
        match byte_ids.iter().position(|&id| id == u32::MAX) {
            Some(byte) => Err(corrupt(format!(
                "tokenizer.json: no token for the byte {byte:#04x}: not all text could be encoded"
            ))),
            None => Ok(byte_ids),
        }
    }

    /// The merges as ids, in the order of their ranks.
    ///
    /// # Errors
    /// `Corrupt` if a merge has a part that is not a text token, makes other bytes than those of its parts, or is there
    /// twice.
    pub(crate) fn merges(&self, artifact: &Artifact) -> Result<Vec<Merge>> {
        let mut seen = HashMap::new();
        let mut merges = Vec::with_capacity(artifact.merges.len());
        for (rank, (left, right)) in artifact.merges.iter().enumerate() {
            let find = |token: &str| {
                let id = artifact.vocab.get(token).copied().filter(|id| self.name(*id).is_none());
                id.ok_or_else(|| {
                    corrupt(format!("tokenizer.json: merge {rank}: {token:?} is no text token of the vocabulary"))
                })
            };
            let merge = (find(left)?, find(right)?, find(&format!("{left}{right}"))?);
            if [self.bytes(merge.0)?, self.bytes(merge.1)?].concat() != self.bytes(merge.2)? {
                return Err(corrupt(format!(
                    "tokenizer.json: merge {rank}: the token of {left:?} and {right:?}, id {}, has other bytes than these",
                    merge.2
                )));
            }
            if let Some(first) = seen.insert((merge.0, merge.1), rank) {
                return Err(corrupt(format!(
                    "tokenizer.json: merges {first} and {rank} are the same pair, {left:?} and {right:?}"
                )));
            }
            merges.push(merge);
        }
        Ok(merges)
    }
}

/// What an id stands for: bytes, or nothing in a text.
enum Text {
    Bytes(Vec<u8>),
    Name(String),
}

impl Artifact {
    fn is_reserved(&self, id: u32) -> bool {
        let range = self.manifest.reserved.partition_point(|range| range.1 < id);
        self.manifest.reserved.get(range).is_some_and(|range| range.0 <= id)
    }

    /// The control tokens by id.
    fn control(&self) -> Vec<(String, u32)> {
        let mut control: Vec<(String, u32)> =
            self.special().filter(|(_, id)| !self.is_reserved(*id)).map(|(name, id)| (name.into(), id)).collect();
        control.sort_by_key(|(_, id)| *id);
        control
    }
}

/// The tokens of a tokenizer of ours.
fn own_texts(artifact: &Artifact) -> Result<Vec<Text>> {
    let special: HashSet<u32> = artifact.special().map(|(_, id)| id).collect();
    let texts = (0_u32..).zip(tokens_by_id(artifact)?).map(|(id, name)| {
        if special.contains(&id) || artifact.is_reserved(id) {
            return Ok(Text::Name(name.into()));
        }
        let bytes = byte_alphabet::decode(name).filter(|bytes| !bytes.is_empty()).ok_or_else(|| {
            corrupt(format!("tokenizer.json: token {name:?}, id {id}, is not spelled in the byte alphabet"))
        })?;
        Ok(Text::Bytes(bytes))
    });
    texts.collect()
}

/// The tokens of a tokenizer of another program: ids without a token, and tokens that spell no bytes, have no text.
fn foreign_texts(artifact: &Artifact) -> Result<Vec<Text>> {
    let mut texts: Vec<Text> = (0..artifact.manifest.vocab_size).map(|_| Text::Name("unused".into())).collect();
    let named = |name: &str| Text::Name(name.into());
    let of_model = artifact.vocab.iter().map(|(name, &id)| {
        let bytes = byte_alphabet::decode(name).filter(|bytes| !bytes.is_empty());
        (name.as_str(), id, bytes.map_or_else(|| named(name), Text::Bytes))
    });
    let added = artifact.added.iter().map(|token| {
        let name = token.content.as_str();
        (name, token.id, if token.special { named(name) } else { Text::Bytes(name.into()) })
    });
    let (size, mut known) = (texts.len(), HashMap::new());
    for (name, id, text) in of_model.chain(added) {
        if let Some(other) = known.insert(id, name).filter(|other| *other != name) {
            return Err(corrupt(format!("tokenizer.json: id {id} is both {other:?} and {name:?}")));
        }
        *texts.get_mut(id as usize).ok_or_else(|| {
            corrupt(format!("tokenizer.json: token {name:?} has id {id}, not below vocab_size {size}"))
        })? = text;
    }
    Ok(texts)
}

fn tokens_by_id(artifact: &Artifact) -> Result<Vec<&str>> {
    let size = artifact.manifest.vocab_size;
    if artifact.vocab.len() != size as usize {
        let found = artifact.vocab.len();
        return Err(corrupt(format!("tokenizer.json has {found} tokens, manifest.json says vocab_size {size}")));
    }
    let mut names = vec![None; artifact.vocab.len()];
    for (name, &id) in &artifact.vocab {
        match names.get_mut(id as usize) {
            Some(place @ None) => *place = Some(name.as_str()),
            Some(Some(other)) => {
                return Err(corrupt(format!("tokenizer.json: id {id} is both {name:?} and {other:?}")));
            }
            None => {
                return Err(corrupt(format!(
                    "tokenizer.json: token {name:?} has id {id}, not below vocab_size {size}"
                )));
            }
        }
    }
    Ok(names.into_iter().flatten().collect())
}
