//! Reading one line: an object of JSON, of which the texts under some keys are kept.

use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;

/// The fewest digits that Python may be set to refuse in a whole number.
const MAX_DIGITS: usize = 640;

/// The keys of an object that are read.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    /// The text's; a line without text there is not read.
    pub content: &'a [u8],
    /// The path's; a value that is no text counts as none, as does no text.
    pub path: &'a [u8],
    /// The project's, if there is one; as the path's.
    pub project: Option<&'a [u8]>,
    /// The licence's, if there is one; a line with one that is neither text nor null is not read.
    pub license: Option<&'a [u8]>,
}

/// What an object has under a key.
#[derive(Debug, Default)]
pub(super) struct Value {
    kind: Kind,
    text: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Kind {
    #[default]
    Nothing,
    Text,
    Other,
}

impl Clone for Value {
    fn clone(&self) -> Self {
        Self { kind: self.kind, text: self.text.clone() }
    }

    fn clone_from(&mut self, other: &Self) {
        self.kind = other.kind;
        self.text.clone_from(&other.text);
    }
}

impl Value {
    /// The text, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        (self.kind == Kind::Text).then_some(&self.text)
    }
}

/// Reads lines one after another.
pub(super) struct LineReader<'k> {
    keys: [Option<&'k [u8]>; 4],
    /// What the last line had under each key.
    pub(super) values: [Value; 4],
    found: Value,
}

impl<'k> LineReader<'k> {
    pub(super) fn new(keys: &Keys<'k>) -> Self {
        let keys = [Some(keys.content), Some(keys.path), keys.project, keys.license];
        Self { keys, values: Default::default(), found: Value::default() }
    }

    /// Returns whether the line is read: an object with text, that Python's parser takes for the same.
    pub(super) fn read(&mut self, line: &[u8]) -> bool {
        for value in &mut self.values {
            value.kind = Kind::Nothing;
        }
        let Ok(text) = std::str::from_utf8(line) else { return false };
        if has_digits(line, MAX_DIGITS) {
            return false;
        }
        let mut parser = Deserializer::from_str(text);
        let is_whole = self.deserialize(&mut parser).is_ok() && parser.end().is_ok();
        is_whole && self.values[0].kind == Kind::Text && self.values[3].kind != Kind::Other
    }
}

/// Returns whether so many digits follow one another; one of them is then at a multiple of their number.
fn has_digits(line: &[u8], number: usize) -> bool {
    let run = |place: usize| {
        let after = line[place..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let before = line[..place].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        before + after
    };
    (0..line.len()).step_by(number).any(|place| line[place].is_ascii_digit() && run(place) >= number)
}

impl<'de> DeserializeSeed<'de> for &mut LineReader<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, parser: D) -> Result<(), D::Error> {
        parser.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut LineReader<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    /// Keeps the last value of each key, as Python does.
    fn visit_map<M: MapAccess<'de>>(self, mut object: M) -> Result<(), M::Error> {
        while let Some(wanted) = object.next_key_seed(Wanted(&self.keys))? {
            object.next_value_seed(Any(wanted.contains(&true).then_some(&mut self.found)))?;
            for (value, _) in self.values.iter_mut().zip(wanted).filter(|(_, is_wanted)| *is_wanted) {
                value.clone_from(&self.found);
            }
        }
        Ok(())
    }
}

/// Reads a key: which of those that are asked for it is.
struct Wanted<'a, 'k>(&'a [Option<&'k [u8]>; 4]);

impl<'de> DeserializeSeed<'de> for Wanted<'_, '_> {
    type Value = [bool; 4];

    fn deserialize<D: serde::Deserializer<'de>>(self, parser: D) -> Result<Self::Value, D::Error> {
        parser.deserialize_str(self)
    }
}

impl Visitor<'_> for Wanted<'_, '_> {
    type Value = [bool; 4];

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.map(|wanted| wanted == Some(key.as_bytes())))
    }
}

/// Reads any value and keeps it if it is asked for. The parser ends at a depth that Python's takes.
struct Any<'a>(Option<&'a mut Value>);

impl Any<'_> {
    fn keep(self, kind: Kind, text: &str) {
        if let Some(value) = self.0 {
            value.kind = kind;
            value.text.clear();
            value.text.push_str(text);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Any<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, parser: D) -> Result<(), D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.keep(Kind::Text, text);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.keep(Kind::Nothing, "");
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.keep(Kind::Other, "");
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.keep(Kind::Other, "");
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.keep(Kind::Other, "");
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.keep(Kind::Other, "");
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut values: S) -> Result<(), S::Error> {
        while values.next_element_seed(Any(None))?.is_some() {}
        self.keep(Kind::Other, "");
        Ok(())
    }

    fn visit_map<M: MapAccess<'de>>(self, mut object: M) -> Result<(), M::Error> {
        while object.next_key_seed(Any(None))?.is_some() {
            object.next_value_seed(Any(None))?;
        }
        self.keep(Kind::Other, "");
        Ok(())
    }
}
