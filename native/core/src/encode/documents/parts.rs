//! Texts and control tokens, one after another.

use std::sync::Arc;

use arrow_array::{ArrayRef, PrimitiveArray};

use super::encoder::Encoder;
use super::workers::Workers;
use crate::encode::id::Id;
use crate::{Result, Stop};

/// A part of what is encoded.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// A text, which is encoded by itself.
    Text(&'a [u8]),
    /// The name of a control token, with its angle brackets or without.
    Control(&'a str),
}

/// Encodes parts; `control_id` gives the ids of control tokens.
pub(crate) fn encode_parts<T: Id>(
    encoder: &Encoder,
    workers: &Workers<T>,
    parts: &[Part<'_>],
    control_id: &dyn Fn(&str) -> Result<u32>,
    stop: &Stop,
) -> Result<ArrayRef> {
    let mut ids = Vec::new();
    workers.with(|worker| {
        for part in parts {
            match part {
                Part::Text(text) => encoder.encode(worker, text, stop, &mut ids)?,
                Part::Control(name) => ids.push(T::new(control_id(name)?)),
            }
        }
        Ok(Arc::new(PrimitiveArray::<T::Arrow>::new(ids.into(), None)) as ArrayRef)
    })
}
