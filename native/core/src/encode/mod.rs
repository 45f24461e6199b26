//! Encoding and decoding with a trained vocabulary.
//!
//! A [`Tokenizer`] is read from a tokenizer directory and gives, for valid UTF-8, the ids that `tokenizers` gives with
//! the same `tokenizer.json` (and `encode_special_tokens` on: the characters of a control token in text are ordinary
//! text). Any other bytes are encoded too: each maximal valid run by itself, each invalid byte as the token of that
//! byte. So decoding gives back the bytes, whatever they are.
//!
//! Text is cut into words ([`crate::pattern`]), which are looked up in a cache in batches; a word that is not there is
//! merged. A tokenizer with superwords joins the tokens of the words of a line. Of a tokenizer of another program,
//! added tokens that are not special are cut out of text first; one that was adopted as lossy puts text in NFC, and
//! decoding gives that.

mod added;
mod bpe;
mod decode;
mod documents;
mod id;
mod lines;
mod load;
mod markers;
mod nfc;
mod tokenizer;
mod words;

pub(crate) use bpe::{MAX_IDS, Merges, Scratch};
pub use documents::Part;
pub(crate) use lines::{LineMerges, LineSegmenter, SuperwordMerges};
pub use markers::Markers;
pub use tokenizer::Tokenizer;

pub use crate::arrays::{byte_slices, integers};
