//! Reading a tokenizer directory: its files and settings, and the tokens by id.

mod artifact;
mod byte_alphabet;
mod file;
mod foreign;
mod similarity;
mod template;
mod vocabulary;

pub(crate) use artifact::{Artifact, read};
pub(crate) use similarity::nearest;
pub(crate) use vocabulary::Vocabulary;
