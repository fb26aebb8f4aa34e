//! Determines which functions of a library are confined.
//!
//! A library may only declare local functions and constants, and register functions. If its text contains anything
//! else, none of its functions is treated as confined.

use std::collections::BTreeMap;

use super::checker::{Checker, Class};
use super::lexer::Token;
use super::{Confinement, tokens};
use crate::commands::Commands;

/// Returns the confined functions that a library's text registers, by name. Takes O(length of the text) steps.
pub fn confined_functions(commands: &dyn Commands, text: &[u8]) -> BTreeMap<Vec<u8>, Confinement> {
    let Some(tokens) = tokens(text) else { return BTreeMap::new() };
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
        commands,
        names: Vec::new(),
        local: BTreeMap::new(),
        registered: BTreeMap::new(),
        has_values: false,
        has_others: false,
    };
    reader.library().map_or_else(BTreeMap::new, |()| reader.registered)
}

struct Reader<'t, 'r> {
    tokens: &'r [Token<'t>],
    at: usize,
    commands: &'r dyn Commands,
    /// The names that the library has declared so far, which the library's functions can access.
    names: Vec<(&'t [u8], Class)>,
    /// The confined local functions, by name.
    local: BTreeMap<&'t [u8], Confinement>,
    registered: BTreeMap<Vec<u8>, Confinement>,
    /// Whether the library declares values that its functions share.
    has_values: bool,
    /// Whether the library contains functions that are not confined.
    has_others: bool,
}

impl<'t> Reader<'t, '_> {
    fn peek(&self, ahead: usize) -> Option<Token<'t>> {
        self.tokens.get(self.at + ahead).copied()
    }

    fn takes(&mut self, token: Token<'_>) -> bool {
        let is_next = self.peek(0) == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    fn mark(&mut self, mark: &'static str) -> Option<()> {
        self.takes(Token::Mark(mark)).then_some(())
    }

    fn word(&mut self) -> Option<&'t [u8]> {
        let Token::Word(word) = self.peek(0)? else { return None };
        self.at += 1;
        Some(word)
    }

    fn library(&mut self) -> Option<()> {
        while self.at < self.tokens.len() {
            if self.takes(Token::Mark(";")) {
                continue;
            }
            match self.word()? {
                b"local" if self.takes(Token::Word(b"function")) => {
                    let name = self.word()?;
                    self.names.push((name, Class::Function));
                    match self.function()? {
                        Some(confinement) => self.local.insert(name, confinement),
                        None => self.local.remove(name),
                    };
                }
                b"local" => {
                    let name = self.word()?;
                    self.mark("=")?;
                    if let Token::Mark(_) | Token::Word(_) = self.peek(0)? {
                        return None;
                    }
                    self.at += 1;
                    self.local.remove(name);
                    self.names.push((name, Class::Value));
                    self.has_values = true;
                }
                b"redis" | b"server" => self.registration()?,
                _ => return None,
            }
        }
        // A function that is not confined may store a table in a shared value, and the metatable of that table may call
        // anything.
        (!self.has_values || !self.has_others).then_some(())
    }

    /// Parses the parameters and the body of a function, including its `end`; returns its confinement, if it is
    /// confined.
    fn function(&mut self) -> Option<Option<Confinement>> {
        self.mark("(")?;
        let mut parameters = Vec::new();
        while !self.takes(Token::Mark(")")) {
            parameters.push(self.word()?);
            if self.takes(Token::Mark(",")) && self.peek(0) == Some(Token::Mark(")")) {
                return None;
            }
        }
        let start = self.at;
        let end = self.end_of_function()?;
        self.at = end + 1;
        let classes = [Class::Keys, Class::Arguments];
        // Parameters after the first two are nil.
        let classes = classes.into_iter().chain(std::iter::repeat(Class::Value));
        let mut names = self.names.clone();
        names.extend(parameters.into_iter().zip(classes));
        let confinement = Checker::new(self.commands, &self.tokens[start..end], names).body();
        self.has_others |= confinement.is_none();
        Some(confinement)
    }

    /// Returns the position of the `end` of the function whose body begins at the current token.
    fn end_of_function(&self) -> Option<usize> {
        let mut open = 1;
        for (at, token) in self.tokens.iter().enumerate().skip(self.at) {
            match token {
                Token::Word(b"function" | b"do" | b"if" | b"repeat") => open += 1,
                Token::Word(b"end" | b"until") => open -= 1,
                _ => {}
            }
            if open == 0 {
                return Some(at);
            }
        }
        None
    }

    /// Parses `.register_function(…)` or `.register_function{…}` after `redis`.
    fn registration(&mut self) -> Option<()> {
        // A local name `redis` or `server` would shadow the library.
        if self.names.iter().any(|(name, _)| matches!(*name, b"redis" | b"server")) {
            return None;
        }
        self.mark(".")?;
        self.takes(Token::Word(b"register_function")).then_some(())?;
        let is_bracketed = self.takes(Token::Mark("("));
        let (name, confinement) = if self.takes(Token::Mark("{")) {
            self.named_declaration()?
        } else {
            let name = self.text()?;
            self.mark(",")?;
            (name, self.callback()?)
        };
        if is_bracketed {
            self.mark(")")?;
        }
        if let Some(confinement) = confinement {
            self.registered.insert(name.to_vec(), confinement);
        }
        Some(())
    }

    fn text(&mut self) -> Option<&'t [u8]> {
        let Token::Text(Some(text)) = self.peek(0)? else { return None };
        self.at += 1;
        Some(text)
    }

    /// Parses a function, or the name of a local function.
    fn callback(&mut self) -> Option<Option<Confinement>> {
        let name = self.word()?;
        if name == b"function" {
            return self.function();
        }
        Some(self.local.get(name).copied())
    }

    /// Parses the fields of `register_function{…}` after the opening bracket, including the closing bracket.
    fn named_declaration(&mut self) -> Option<(&'t [u8], Option<Confinement>)> {
        let (mut name, mut confinement) = (None, None);
        while !self.takes(Token::Mark("}")) {
            let field = self.word()?;
            self.mark("=")?;
            match field {
                b"function_name" => name = Some(self.text()?),
                b"callback" => confinement = self.callback()?,
                b"description" => {
                    let Token::Text(_) = self.peek(0)? else { return None };
                    self.at += 1;
                }
                b"flags" => {
                    self.mark("{")?;
                    while !self.takes(Token::Mark("}")) {
                        self.text()?;
                        self.takes(Token::Mark(","));
                    }
                }
                _ => return None,
            }
            if !self.takes(Token::Mark(",")) && !self.takes(Token::Mark(";")) {
                self.mark("}")?;
                break;
            }
        }
        Some((name?, confinement))
    }
}
