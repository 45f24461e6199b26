//! Names counted token by token: in directives, and in documents whose outline is not enough.

use super::features::Features;
use super::names::Names;
use super::outline::{Conditionals, Outline};
use super::plan::{Identifiers, Plan};
use super::statistics::{Counter, Statistics};
use super::strings;
use crate::blocks::Classes;
use crate::lexer::{Lexer, Token, TokenKind};

/// How the last token but space and comments bears on a chain of names with `::` between them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    /// No chain; a name may begin one.
    None,
    /// A name that begins a chain if `::` follows.
    First(u32),
    /// A later name, or the `>` of template arguments: `::` continues the chain.
    Later,
    /// `::` after a name: the next name is not the first.
    Scope,
}

/// Counts the tokens of one document.
pub(super) struct TokenCounter<'a> {
    plan: &'a Plan,
    source: &'a [u8],
    names: &'a mut Names,
    features: &'a mut Features,
    statistics: &'a mut Statistics,
    state: State,
}

/// What the tokens so far mean for the next one.
struct State {
    chain: Chain,
    /// The names of the chain with `::` between them; empty if its beginning is not known.
    whole: Vec<u8>,
    in_directive: bool,
    directive_name: bool,
}

impl<'a> TokenCounter<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        source: &'a [u8],
        names: &'a mut Names,
        features: &'a mut Features,
        statistics: &'a mut Statistics,
    ) -> Self {
        let state = State { chain: Chain::None, whole: Vec::new(), in_directive: false, directive_name: false };
        Self { plan, source, names, features, statistics, state }
    }

    /// Counts every token of the document.
    pub(super) fn count_all(&mut self) {
        let mut conditionals = Conditionals::default();
        let mut directive = Vec::new();
        let mut tokens = Lexer::new(self.source).peekable();
        while let Some(token) = tokens.next() {
            if !token.in_directive {
                self.count(&token, conditionals.disabled());
                continue;
            }
            directive.push(token);
            if tokens.peek().is_some_and(|next| next.in_directive) {
                continue;
            }
            let was_disabled = conditionals.disabled();
            conditionals.after(self.source, directive.iter().copied());
            let disabled = was_disabled && conditionals.disabled();
            directive.drain(..).for_each(|token| self.count(&token, disabled));
        }
        self.end_chain();
    }

    /// Counts the tokens of the regions of an outline; the code between them is counted elsewhere.
    pub(super) fn count_parts(&mut self, outline: &Outline, classes: &Classes) {
        let mut end = 0;
        for part in &outline.parts {
            if part.token.start != end {
                // There is code between, with a line ending in it at least where a directive came before.
                self.end_chain();
                self.state.in_directive = false;
            }
            self.count(&part.token, part.disabled);
            end = part.token.end;
        }
        self.end_chain();
        self.statistics.count_code(self.source.len(), classes, &outline.regions);
    }

    /// Counts a token; `disabled` if it is in an `#if 0` group.
    fn count(&mut self, token: &Token, disabled: bool) {
        self.statistics.count_token(token, disabled);
        if token.in_directive != self.state.in_directive {
            self.end_chain();
            self.state.in_directive = token.in_directive;
            self.state.directive_name = token.in_directive;
            if token.in_directive {
                return;
            }
        }
        if token.kind.is_space() {
            return;
        }
        if disabled {
            self.end_chain();
            self.statistics.add(Counter::DisabledIdentifiers, u64::from(token.kind == TokenKind::Identifier));
            return;
        }
        let names_directive = std::mem::take(&mut self.state.directive_name);
        match token.kind {
            TokenKind::Identifier if names_directive => self.statistics.add(Counter::Directives, 1),
            TokenKind::Identifier => return self.count_identifier(token),
            TokenKind::Punctuator => return self.chain_after(token),
            TokenKind::String | TokenKind::RawString => self.count_string(token),
            _ => {}
        }
        self.end_chain();
    }

    fn count_identifier(&mut self, token: &Token) {
        let text = token.text(self.source);
        let number = self.names.number(&text);
        self.names.see(number, 1, 0);
        let State { chain, whole, .. } = &mut self.state;
        match *chain {
            _ if Identifiers::is_keyword(number) => self.end_chain(),
            Chain::Scope if !whole.is_empty() => {
                whole.extend_from_slice(&text);
                *chain = Chain::Later;
            }
            Chain::Scope => *chain = Chain::Later,
            _ => {
                self.end_chain();
                self.state.chain = Chain::First(number);
                self.state.whole.extend_from_slice(&text);
            }
        }
    }

    fn chain_after(&mut self, token: &Token) {
        let State { chain, whole, .. } = &mut self.state;
        match (self.source[token.start], *chain) {
            (b':', Chain::First(number)) if is_scope(self.source, token) => {
                self.names.lead(number);
                whole.extend_from_slice(b"::");
                *chain = Chain::Scope;
            }
            (b':', Chain::Later) if is_scope(self.source, token) => {
                if !whole.is_empty() {
                    whole.extend_from_slice(b"::");
                }
                *chain = Chain::Scope;
            }
            (first, _) => {
                self.end_chain();
                let closes = first == b'>' && token.text(self.source).iter().all(|&byte| byte == b'>');
                self.state.chain = if closes { Chain::Later } else { Chain::None };
            }
        }
    }

    /// Counts the candidates that are the whole chain, and forgets it.
    fn end_chain(&mut self) {
        let State { chain, whole, .. } = &mut self.state;
        if *chain == Chain::Later {
            let found = self.plan.qualified.get(whole.as_slice());
            found.into_iter().flatten().for_each(|&feature| self.features.add(feature, 1));
        }
        whole.clear();
        *chain = Chain::None;
    }

    /// Counts the words of a string literal.
    fn count_string(&mut self, token: &Token) {
        let Self { plan, features, .. } = self;
        strings::words(&token.text(self.source), token.kind, |word| {
            plan.string_word(word).iter().for_each(|&feature| features.add(feature, 1));
        });
    }
}

/// Whether the punctuator is `::`.
#[inline]
fn is_scope(source: &[u8], token: &Token) -> bool {
    match source[token.start..token.end] {
        [b':', b':'] => true,
        _ => token.spliced && *token.text(source) == *b"::",
    }
}
