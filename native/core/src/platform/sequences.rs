//! Finding short sequences of tokens.
//!
//! The sequences are one trie over *atoms*, the numbers of the tokens that occur in any of them; every place of a
//! document where one may have begun is followed through the trie at once. Spaces and comments between tokens do not
//! matter.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::names::Starts;
use crate::lexer::{Lexer, TokenKind};
use crate::{Error, Result};

/// Matches any one identifier in a sequence.
pub(super) const ANY_NAME: &str = "@name";
/// Matches any one number in a sequence.
pub(super) const ANY_NUMBER: &str = "@number";
const ANY_NAME_ATOM: u16 = 1;
const ANY_NUMBER_ATOM: u16 = 2;
const FIRST_ATOM: u16 = 3;
const ROOT: usize = 0;

/// How a sequence begins: its first token, the atom of that, and its second token or placeholder.
pub(super) struct Opening {
    pub(super) first: Box<[u8]>,
    pub(super) atom: u16,
    pub(super) second: Option<Box<[u8]>>,
}

/// All sequences, compiled.
pub(super) struct Sequences {
    starts: Starts,
    atoms: HashMap<Vec<u8>, u16, FixedState>,
    /// Atoms of punctuators of one byte, 0 for those that no sequence has.
    single: [u16; 256],
    /// Whether a sequence begins with the atom.
    begins: Vec<bool>,
    /// The node that an atom leads to from another node.
    edges: HashMap<(usize, u16), usize, FixedState>,
    /// The numbers that each node reports.
    ends: Vec<Vec<u32>>,
    openings: Vec<Opening>,
}

impl Sequences {
    /// Compiles `sequences`, each with the number that it reports.
    ///
    /// # Errors
    ///
    /// If a sequence has no token, begins with a placeholder, or has a token that code cannot have at that place.
    pub(super) fn new<'a>(sequences: impl Iterator<Item = (&'a str, u32)>) -> Result<Self> {
        let mut this = Self {
            starts: Starts::new(),
            atoms: HashMap::default(),
            single: [0; 256],
            begins: vec![false; usize::from(FIRST_ATOM)],
            edges: HashMap::default(),
            ends: vec![Vec::new()],
            openings: Vec::new(),
        };
        for (sequence, number) in sequences {
            this.add(sequence, number)?;
        }
        Ok(this)
    }

    fn add(&mut self, sequence: &str, number: u32) -> Result<()> {
        let tokens = tokens(sequence)?;
        let atoms = tokens.iter().map(|token| self.atom_of(token)).collect::<Result<Vec<_>>>()?;
        match atoms.first() {
            Some(&first) if first >= FIRST_ATOM => self.begins[usize::from(first)] = true,
            _ => {
                return Err(refused(sequence, "begin it with a token, not with a placeholder"));
            }
        }
        let second = tokens.get(1).map(|token| token.as_bytes().into());
        self.openings.push(Opening { first: tokens[0].as_bytes().into(), atom: atoms[0], second });
        let mut node = ROOT;
        for atom in atoms {
            node = *self.edges.entry((node, atom)).or_insert_with(|| {
                self.ends.push(Vec::new());
                self.ends.len() - 1
            });
        }
        self.ends[node].push(number);
        Ok(())
    }

    fn atom_of(&mut self, token: &str) -> Result<u16> {
        match token {
            ANY_NAME => return Ok(ANY_NAME_ATOM),
            ANY_NUMBER => return Ok(ANY_NUMBER_ATOM),
            _ => {}
        }
        let next = u16::try_from(self.begins.len())
            .map_err(|_| Error::invalid(format!("sequence token {token:?}: more than {} distinct tokens", u16::MAX)))?;
        let atom = *self.atoms.entry_ref(token.as_bytes()).or_insert(next);
        if atom == next {
            self.begins.push(false);
            self.starts.insert(token.as_bytes());
        }
        if let [byte] = *token.as_bytes() {
            self.single[usize::from(byte)] = atom;
        }
        Ok(atom)
    }

    /// How each sequence begins.
    pub(super) fn openings(&self) -> &[Opening] {
        &self.openings
    }

    /// The atom of an identifier that a sequence begins with.
    pub(super) fn opening(&self, identifier: &[u8]) -> Option<u16> {
        let atom = self.atom(TokenKind::Identifier, identifier);
        self.begins[usize::from(atom)].then_some(atom)
    }

    /// The atom of a token's text, 0 if no sequence has it.
    #[inline]
    fn atom(&self, kind: TokenKind, text: &[u8]) -> u16 {
        match (kind, text) {
            (TokenKind::Punctuator, [byte]) => self.single[usize::from(*byte)],
            _ if self.starts.may_have(text) => self.atoms.get(text).copied().unwrap_or(0),
            _ => 0,
        }
    }
}

/// The texts of the tokens of a sequence, placeholders whole.
fn tokens(sequence: &str) -> Result<Vec<&str>> {
    let mut texts: Vec<&str> = Vec::new();
    let mut placeholder = None;
    for token in Lexer::new(sequence.as_bytes()) {
        let text = &sequence[token.start..token.end];
        match (token.kind, placeholder.take()) {
            (TokenKind::Other, None) if text == "@" => placeholder = Some(token.start),
            (TokenKind::Identifier, Some(start)) => texts.push(&sequence[start..token.end]),
            (TokenKind::Identifier | TokenKind::Number | TokenKind::Punctuator, None) => texts.push(text),
            (TokenKind::Whitespace, None) => {}
            _ => {
                return Err(refused(sequence, "give identifiers, numbers, punctuators, @name or @number"));
            }
        }
    }
    let known = texts.iter().all(|text| !text.starts_with('@') || matches!(*text, ANY_NAME | ANY_NUMBER));
    match placeholder {
        None if known && !texts.is_empty() => Ok(texts),
        _ => Err(refused(sequence, "its placeholders are @name and @number")),
    }
}

fn refused(sequence: &str, reason: &str) -> Error {
    Error::invalid(format!("sequence {sequence:?} cannot be matched: {reason}"))
}

/// The sequences that the tokens so far may be part of.
#[derive(Default)]
pub(super) struct Progress {
    nodes: Vec<usize>,
    next: Vec<usize>,
}

impl Progress {
    /// Forgets the tokens so far: the next one does not share a context with them.
    #[inline]
    pub(super) fn reset(&mut self) {
        self.nodes.clear();
    }

    /// Whether no sequence has begun that may go on.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Takes the next token and calls `each` with the number of every sequence that ends with it.
    #[inline]
    pub(super) fn step(&mut self, sequences: &Sequences, kind: TokenKind, text: &[u8], each: impl FnMut(u32)) {
        let atom = sequences.atom(kind, text);
        if self.nodes.is_empty() && !sequences.begins[usize::from(atom)] {
            return;
        }
        self.advance(sequences, kind, atom, each);
    }

    fn advance(&mut self, sequences: &Sequences, kind: TokenKind, atom: u16, mut each: impl FnMut(u32)) {
        let any = match kind {
            TokenKind::Identifier => ANY_NAME_ATOM,
            TokenKind::Number => ANY_NUMBER_ATOM,
            _ => 0,
        };
        self.nodes.push(ROOT);
        for &node in &self.nodes {
            for wanted in [atom, any] {
                let Some(&child) = sequences.edges.get(&(node, wanted)) else {
                    continue;
                };
                sequences.ends[child].iter().copied().for_each(&mut each);
                self.next.push(child);
            }
        }
        std::mem::swap(&mut self.nodes, &mut self.next);
        self.next.clear();
    }
}
