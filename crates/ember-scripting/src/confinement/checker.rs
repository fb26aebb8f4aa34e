//! The grammar of confined programs, a subset of Lua's. Any other text is rejected: every function here returns `None`
//! for a text that is not proven to be confined.
//!
//! Expressions are parsed without operator precedence, which does not affect confinement. The meaning of a name depends
//! on its declaration, as in Lua: a local name shadows an outer one.

use emberkv_core::spec::Flags;

use super::calls::{self, Word};
use super::lexer::Token;
use super::{Confinement, STEPS_MAX};
use crate::commands::Commands;

/// The maximum nesting depth of blocks, brackets and tables.
const DEPTH_MAX: usize = 60;

/// The maximum number of times that a program with effects may put the value of a name into a table. A table that is
/// stored in several others is small in the interpreter but large when it is converted: every second store can double
/// its converted size.
const SHARED_MAX: u32 = 12;

/// Lua's reserved words, which cannot be names.
const KEYWORDS: [&[u8]; 21] = [
    b"and",
    b"break",
    b"do",
    b"else",
    b"elseif",
    b"end",
    b"false",
    b"for",
    b"function",
    b"if",
    b"in",
    b"local",
    b"nil",
    b"not",
    b"or",
    b"repeat",
    b"return",
    b"then",
    b"true",
    b"until",
    b"while",
];

/// The kind of value that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// The table of declared keys, `KEYS`.
    Keys,
    /// The table of arguments, `ARGV`.
    Arguments,
    /// A declared key, or nil.
    Key,
    /// Any value except the tables `KEYS` and `ARGV`.
    Value,
    /// A local function of a library.
    Function,
}

/// The possible results of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given<'t> {
    /// One value.
    One(Word<'t>),
    /// Any number of declared keys or nils.
    Keys,
    /// Any number of values.
    Many,
}

impl<'t> Given<'t> {
    /// Returns the first of the results, which is the only one used anywhere but at the end of a list.
    fn first(self) -> Word<'t> {
        match self {
            Given::One(word) => word,
            Given::Keys => Word::Key,
            Given::Many => Word::Any,
        }
    }
}

const ANY: Given<'static> = Given::One(Word::Any);

/// The argument limit of functions that accept any number of arguments.
const ANY_NUMBER: usize = usize::MAX;

/// Functions of Lua and its libraries with a short run time, which have no side effects except on tables passed to them
/// and call no other functions: the library (empty for globals), the name, the maximum number of arguments, and whether
/// it returns more than one value.
///
/// Excluded: functions that repeat or match strings (`rep`, `find`, `gsub`), whose run time is unlimited; functions
/// that return or change environments and metatables; and functions that call others.
const SHORT: &[(&[u8], &[u8], usize, bool)] = &[
    (b"", b"assert", 2, true),
    (b"", b"error", 2, false),
    (b"", b"next", 2, true),
    (b"", b"tonumber", 2, false),
    (b"", b"tostring", 1, false),
    (b"", b"type", 1, false),
    (b"", b"unpack", 3, true),
    (b"bit", b"band", ANY_NUMBER, false),
    (b"bit", b"bnot", 1, false),
    (b"bit", b"bor", ANY_NUMBER, false),
    (b"bit", b"bxor", ANY_NUMBER, false),
    (b"bit", b"lshift", 2, false),
    (b"bit", b"rshift", 2, false),
    (b"bit", b"tobit", 1, false),
    (b"bit", b"tohex", 2, false),
    (b"cjson", b"decode", 1, false),
    (b"cjson", b"encode", 1, false),
    (b"cmsgpack", b"pack", ANY_NUMBER, false),
    (b"cmsgpack", b"unpack", 1, true),
    (b"math", b"abs", 1, false),
    (b"math", b"ceil", 1, false),
    (b"math", b"floor", 1, false),
    (b"math", b"fmod", 2, false),
    (b"math", b"max", ANY_NUMBER, false),
    (b"math", b"min", ANY_NUMBER, false),
    (b"math", b"pow", 2, false),
    (b"math", b"sqrt", 1, false),
    (b"redis", b"error_reply", 1, false),
    (b"redis", b"replicate_commands", 0, false),
    (b"redis", b"setresp", 1, false),
    (b"redis", b"sha1hex", 1, false),
    (b"redis", b"status_reply", 1, false),
    (b"string", b"byte", 2, false),
    (b"string", b"format", ANY_NUMBER, false),
    (b"string", b"len", 1, false),
    (b"string", b"lower", 1, false),
    (b"string", b"sub", 3, false),
    (b"string", b"upper", 1, false),
    (b"struct", b"pack", ANY_NUMBER, false),
    (b"struct", b"unpack", 3, true),
    (b"table", b"concat", 2, false),
    (b"table", b"insert", 2, false),
    (b"table", b"remove", 1, false),
];

/// Constant fields of libraries: the library and the name.
const CONSTANTS: &[(&[u8], &[u8])] = &[(b"math", b"huge"), (b"math", b"pi"), (b"cjson", b"null")];

/// The maximum number of rounds of a loop.
enum Rounds {
    /// A constant number of rounds.
    Fixed(u64),
    /// One round for each argument of the call.
    PerArgument,
}

/// A parser of a program that checks whether the program is confined.
pub(super) struct Checker<'t, 'r> {
    tokens: &'r [Token<'t>],
    at: usize,
    commands: &'r dyn Commands,
    names: Vec<(&'t [u8], Class)>,
    depth: usize,
    is_in_loop: bool,
    found: Confinement,
    /// Whether a call changes data or may change data. Before that call, the program can still be aborted and run
    /// again.
    has_effects: bool,
    /// Whether the program calls `cmsgpack.pack`, which treats a table that contains itself as many levels.
    packs: bool,
    /// The number of names read so far as values.
    names_read: u32,
    /// The number of names read so far whose values were put into tables.
    shared: u32,
}

impl<'t, 'r> Checker<'t, 'r> {
    /// Creates a checker of `tokens`, which may use the outer names `names`.
    pub(super) fn new(
        commands: &'r dyn Commands,
        tokens: &'r [Token<'t>],
        names: Vec<(&'t [u8], Class)>,
    ) -> Checker<'t, 'r> {
        let found = Confinement { steps: tokens.len() as u64, steps_per_argument: 0 };
        Checker {
            tokens,
            at: 0,
            commands,
            names,
            depth: 0,
            is_in_loop: false,
            found,
            has_effects: false,
            packs: false,
            names_read: 0,
            shared: 0,
        }
    }

    /// Parses all tokens as the body of a function.
    pub(super) fn body(mut self) -> Option<Confinement> {
        self.block()?;
        let is_whole = self.at == self.tokens.len() && self.found.steps <= STEPS_MAX;
        let shared_max = if self.packs { 0 } else { SHARED_MAX };
        let is_flat = !self.has_effects || self.shared <= shared_max;
        (is_whole && is_flat).then_some(self.found)
    }

    /// Parses an expression whose value is put into a table.
    fn element_of_table<R>(&mut self, read: impl FnOnce(&mut Self) -> Option<R>) -> Option<R> {
        let before = self.names_read;
        let result = read(self)?;
        let names = std::mem::replace(&mut self.names_read, before) - before;
        // In a loop, each round puts the values into tables.
        self.shared += if self.is_in_loop { names * (SHARED_MAX + 1) } else { names };
        Some(result)
    }

    /// Parses an expression whose value is only inspected and does not become part of another value.
    fn inspected<R>(&mut self, read: impl FnOnce(&mut Self) -> Option<R>) -> Option<R> {
        let before = self.names_read;
        let result = read(self);
        self.names_read = before;
        result
    }

    fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at).copied()
    }

    fn peek_second(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at + 1).copied()
    }

    fn next(&mut self) -> Option<Token<'t>> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    /// Consumes the next token if it is `token`; returns whether it is.
    fn takes(&mut self, token: Token<'_>) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    fn mark(&mut self, mark: &'static str) -> Option<()> {
        self.takes(Token::Mark(mark)).then_some(())
    }

    fn keyword(&mut self, word: &'static [u8]) -> Option<()> {
        self.takes(Token::Word(word)).then_some(())
    }

    fn name(&mut self) -> Option<&'t [u8]> {
        match self.next()? {
            Token::Word(word) if !KEYWORDS.contains(&word) => Some(word),
            _ => None,
        }
    }

    /// Returns the class of a local name.
    fn class_of(&self, name: &[u8]) -> Option<Class> {
        self.names.iter().rev().find(|(known, _)| *known == name).map(|&(_, class)| class)
    }

    /// Parses a construct that may be nested in itself.
    fn nested<R>(&mut self, read: impl FnOnce(&mut Self) -> Option<R>) -> Option<R> {
        if self.depth == DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Parses statements up to the end of their block, where the scope of its names ends.
    fn block(&mut self) -> Option<()> {
        let outer = self.names.len();
        self.nested(|checker| {
            while !matches!(checker.peek(), None | Some(Token::Word(b"end" | b"else" | b"elseif"))) {
                checker.statement()?;
            }
            Some(())
        })?;
        self.names.truncate(outer);
        Some(())
    }

    fn statement(&mut self) -> Option<()> {
        let Token::Word(word) = self.peek()? else { return self.mark(";") };
        match word {
            b"local" => self.local(),
            b"if" => self.condition(),
            b"for" => self.repetition(),
            b"do" => {
                self.at += 1;
                self.block()?;
                self.keyword(b"end")
            }
            b"break" => self.keyword(b"break"),
            b"return" => {
                self.at += 1;
                let is_end = matches!(
                    self.peek(),
                    None | Some(Token::Mark(";") | Token::Word(b"end" | b"else" | b"elseif"))
                );
                if is_end { Some(()) } else { self.list().map(|_| ()) }
            }
            _ if self.class_of(word).is_some() => self.assignment(),
            _ => {
                let name = self.name()?;
                self.call_of_global(name)?;
                self.suffixes().map(|_| ())
            }
        }
    }

    /// Parses `local a, b = …`.
    fn local(&mut self) -> Option<()> {
        self.at += 1;
        let mut names = vec![self.name()?];
        while self.takes(Token::Mark(",")) {
            names.push(self.name()?);
        }
        let given = if self.takes(Token::Mark("=")) { self.list()? } else { Vec::new() };
        for (at, name) in names.into_iter().enumerate() {
            let class = match given.get(at).map(|given| given.first()) {
                Some(Word::Key) => Class::Key,
                _ => Class::Value,
            };
            self.names.push((name, class));
        }
        Some(())
    }

    fn condition(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            self.expression()?;
            self.keyword(b"then")?;
            self.block()?;
            match self.next()? {
                Token::Word(b"elseif") => {}
                Token::Word(b"else") => {
                    self.block()?;
                    return self.keyword(b"end");
                }
                Token::Word(b"end") => return Some(()),
                _ => return None,
            }
        }
    }

    /// Parses a loop over keys or arguments, or with numeric bounds. Loops must not be nested.
    fn repetition(&mut self) -> Option<()> {
        if self.is_in_loop {
            return None;
        }
        self.at += 1;
        let outer = self.names.len();
        let name = self.name()?;
        let rounds = if self.takes(Token::Mark("=")) {
            self.names.push((name, Class::Value));
            self.numeric_bounds()?
        } else {
            let second = if self.takes(Token::Mark(",")) { Some(self.name()?) } else { None };
            let element = self.listed_table()?;
            self.names.push((name, Class::Value));
            self.names.extend(second.map(|second| (second, element)));
            Rounds::PerArgument
        };
        self.keyword(b"do")?;
        let start = self.at;
        self.is_in_loop = true;
        self.block()?;
        self.is_in_loop = false;
        self.keyword(b"end")?;
        self.names.truncate(outer);
        let steps = (self.at - start) as u64;
        match rounds {
            Rounds::Fixed(rounds) => {
                self.found.steps = self.found.steps.saturating_add(steps.saturating_mul(rounds));
            }
            Rounds::PerArgument => self.found.steps_per_argument += steps,
        }
        Some(())
    }

    /// Parses the bounds of a loop, such as `1, #KEYS` or `1, 10`, with or without a step.
    fn numeric_bounds(&mut self) -> Option<Rounds> {
        self.whole_number()?;
        self.mark(",")?;
        let rounds = if self.takes(Token::Mark("#")) {
            let name = self.name()?;
            matches!(self.class_of(name), Some(Class::Keys | Class::Arguments))
                .then_some(Rounds::PerArgument)?
        } else {
            Rounds::Fixed(self.whole_number()?)
        };
        if self.takes(Token::Mark(",")) && self.whole_number()? == 0 {
            return None;
        }
        Some(rounds)
    }

    fn whole_number(&mut self) -> Option<u64> {
        match self.next()? {
            Token::Number(digits) if digits.iter().all(u8::is_ascii_digit) => {
                std::str::from_utf8(digits).ok()?.parse().ok()
            }
            _ => None,
        }
    }

    /// Parses `in ipairs(KEYS)`; returns the class of the elements.
    fn listed_table(&mut self) -> Option<Class> {
        self.keyword(b"in")?;
        if self.class_of(b"ipairs").is_some() {
            return None;
        }
        self.keyword(b"ipairs")?;
        self.mark("(")?;
        let name = self.name()?;
        let class = match self.class_of(name)? {
            Class::Keys => Class::Key,
            Class::Arguments => Class::Value,
            _ => return None,
        };
        self.mark(")")?;
        Some(class)
    }

    /// Parses an assignment to local names and to fields of their values.
    fn assignment(&mut self) -> Option<()> {
        let mut has_fields = false;
        loop {
            let name = self.name()?;
            // The tables `KEYS` and `ARGV` must not be changed, and the name of a key must not receive another value.
            if self.class_of(name) != Some(Class::Value) {
                return None;
            }
            has_fields |= self.suffixes()?;
            if !self.takes(Token::Mark(",")) {
                break;
            }
        }
        self.mark("=")?;
        if has_fields {
            self.element_of_table(Self::list)?;
        } else {
            self.list()?;
        }
        Some(())
    }

    /// Parses expressions separated by commas.
    fn list(&mut self) -> Option<Vec<Given<'t>>> {
        let mut given = vec![self.expression()?];
        while self.takes(Token::Mark(",")) {
            given.push(self.expression()?);
        }
        Some(given)
    }

    fn expression(&mut self) -> Option<Given<'t>> {
        self.nested(|checker| {
            let mut given = checker.operand()?;
            while checker.takes_binary_operator() {
                checker.operand()?;
                given = ANY;
            }
            Some(given)
        })
    }

    fn takes_binary_operator(&mut self) -> bool {
        let is_operator = matches!(
            self.peek(),
            Some(
                Token::Word(b"and" | b"or")
                    | Token::Mark(
                        "+" | "-" | "*" | "/" | "%" | "^" | ".." | "==" | "~=" | "<=" | ">=" | "<" | ">"
                    )
            )
        );
        self.at += usize::from(is_operator);
        is_operator
    }

    fn operand(&mut self) -> Option<Given<'t>> {
        let mut is_changed = false;
        loop {
            match self.peek()? {
                Token::Mark("-") | Token::Word(b"not") => self.at += 1,
                Token::Mark("#") => {
                    self.at += 1;
                    if let Some(Token::Word(name)) = self.peek()
                        && matches!(self.class_of(name), Some(Class::Keys | Class::Arguments))
                        && self.peek_second() != Some(Token::Mark("["))
                    {
                        self.at += 1;
                        return Some(ANY);
                    }
                }
                _ => break,
            }
            is_changed = true;
        }
        let given = self.primary()?;
        Some(if is_changed { ANY } else { given })
    }

    fn primary(&mut self) -> Option<Given<'t>> {
        match self.next()? {
            // A call receives the digits unchanged only if there are fewer than ten and the first one is not zero.
            Token::Number(digits) if digits.len() < 10 && digits.iter().all(u8::is_ascii_digit) => {
                Some(Given::One(if digits.starts_with(b"0") { Word::Any } else { Word::Literal(digits) }))
            }
            Token::Number(_) => Some(ANY),
            Token::Text(Some(text)) => Some(Given::One(Word::Literal(text))),
            Token::Text(None) => Some(ANY),
            Token::Word(b"nil" | b"true" | b"false") => Some(ANY),
            Token::Mark("{") => self.table(),
            Token::Mark("(") => {
                self.expression()?;
                self.mark(")")?;
                self.suffixes()?;
                Some(ANY)
            }
            Token::Word(name) if !KEYWORDS.contains(&name) => {
                let given = match self.class_of(name) {
                    Some(Class::Keys) => self.element()?,
                    Some(Class::Arguments) => self.element().map(|_| ANY)?,
                    Some(Class::Key) => Given::One(Word::Key),
                    Some(Class::Value) => {
                        self.names_read += 1;
                        ANY
                    }
                    Some(Class::Function) => return None,
                    None => self.call_of_global(name)?,
                };
                Some(if self.suffixes()? { ANY } else { given })
            }
            Token::Word(_) | Token::Mark(_) => None,
        }
    }

    /// Parses `[…]` after `KEYS`.
    fn element(&mut self) -> Option<Given<'t>> {
        self.mark("[")?;
        self.inspected(Self::expression)?;
        self.mark("]")?;
        Some(Given::One(Word::Key))
    }

    /// Parses field accesses after a value; returns whether there are any. Rejects calls, because the called function
    /// is unknown.
    fn suffixes(&mut self) -> Option<bool> {
        let start = self.at;
        loop {
            match self.peek() {
                Some(Token::Mark(".")) => {
                    self.at += 1;
                    self.name()?;
                }
                Some(Token::Mark("[")) => {
                    self.at += 1;
                    self.inspected(Self::expression)?;
                    self.mark("]")?;
                }
                Some(Token::Mark("(" | ":" | "{") | Token::Text(_)) => return None,
                _ => return Some(self.at > start),
            }
        }
    }

    /// Parses a table constructor after its opening bracket.
    fn table(&mut self) -> Option<Given<'t>> {
        while !self.takes(Token::Mark("}")) {
            if self.takes(Token::Mark("[")) {
                self.inspected(Self::expression)?;
                self.mark("]")?;
                self.mark("=")?;
            } else if self.peek_second() == Some(Token::Mark("=")) {
                self.name()?;
                self.mark("=")?;
            }
            self.element_of_table(Self::expression)?;
            if !self.takes(Token::Mark(",")) && !self.takes(Token::Mark(";")) {
                self.mark("}")?;
                break;
            }
        }
        Some(ANY)
    }

    /// Parses a use of an undeclared name: a call of a known function, or a constant.
    fn call_of_global(&mut self, name: &'t [u8]) -> Option<Given<'t>> {
        let (library, function) = if self.takes(Token::Mark(".")) {
            (if name == b"server" { b"redis" } else { name }, self.name()?)
        } else {
            (&b""[..], name)
        };
        let is_level =
            library == b"redis" && (function.starts_with(b"LOG_") || function.starts_with(b"REPL_"));
        if is_level || CONSTANTS.contains(&(library, function)) {
            return Some(ANY);
        }
        self.mark("(")?;
        match (library, function) {
            (b"redis", b"call" | b"pcall") => {
                let (words, rest) = self.inspected(Self::words)?;
                let is_confined = calls::is_confined(self.commands, &words, rest);
                let Some(Word::Literal(command)) = words.first() else { return None };
                let command = self.commands.find(command)?;
                self.has_effects |= !command.spec.flags.contains(Flags::READONLY);
                is_confined.then_some(ANY)
            }
            // `redis.log` has a level and words as arguments; it does not access the keyspace.
            (b"redis", b"log") => self.words().map(|_| ANY),
            (b"", b"unpack") if self.is_whole_table() => {
                let is_keys = matches!(self.name().and_then(|name| self.class_of(name)), Some(Class::Keys));
                if self.takes(Token::Mark(",")) {
                    self.words()?;
                } else {
                    self.mark(")")?;
                }
                Some(if is_keys { Given::Keys } else { Given::Many })
            }
            _ => {
                let known = SHORT.iter().find(|known| (known.0, known.1) == (library, function))?;
                self.packs |= library == b"cmsgpack" && function == b"pack";
                let (words, rest) = match (library, function) {
                    // These functions return their arguments or parts of their arguments.
                    (b"", b"assert" | b"next" | b"unpack") | (b"table", b"remove") => self.words()?,
                    (b"table", b"insert") => self.element_of_table(Self::words)?,
                    _ => self.inspected(Self::words)?,
                };
                let &(_, _, count_max, is_many) = known;
                let fits = words.len() <= count_max && (rest.is_none() || count_max == ANY_NUMBER);
                fits.then_some(if is_many { Given::Many } else { ANY })
            }
        }
    }

    /// Whether the next word is `KEYS` or `ARGV` without a field access.
    fn is_whole_table(&self) -> bool {
        matches!(self.peek(), Some(Token::Word(name))
            if matches!(self.class_of(name), Some(Class::Keys | Class::Arguments)))
            && matches!(self.peek_second(), Some(Token::Mark("," | ")")))
    }

    /// Parses arguments up to the closing bracket. Returns the words, and a last word that represents any number of
    /// further words, if there is one.
    fn words(&mut self) -> Option<(Vec<Word<'t>>, Option<Word<'t>>)> {
        if self.takes(Token::Mark(")")) {
            return Some((Vec::new(), None));
        }
        let mut given = self.list()?;
        self.mark(")")?;
        let rest = match given.last() {
            Some(Given::One(_)) | None => None,
            Some(many) => Some(many.first()),
        };
        if rest.is_some() {
            given.pop();
        }
        Some((given.into_iter().map(Given::first).collect(), rest))
    }
}
