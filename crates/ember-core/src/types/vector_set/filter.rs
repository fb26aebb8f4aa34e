//! The filter expressions of VSIM: `.year >= 1980 and .genre in ["drama", "comedy"]`.
//!
//! ```text
//! weakest first   or || | and && | == != > >= < <= in | + - | * / % | ** (right-associative) | ! not | ( )
//! values          numbers, 'strings', "strings", null, [tuples], .fields of the attributes
//! ```
//!
//! An expression is compiled once to a program for a stack machine, and run for each element that is examined. Words,
//! conversions and errors follow Redis's documentation of filtered search and the replies of its vector sets.

use std::borrow::Cow;
use std::collections::HashMap;

use super::json::FieldPaths;
pub(super) use super::tuple::Value;

/// The maximum length of an expression in bytes: a list of some thousand identifiers fits. A compiled expression takes
/// about forty times as much memory.
pub const FILTER_BYTES_MAX: usize = 256 * 1024;

/// The maximum number of values on the stack of a program, and of pending operators while one is compiled: more deeply
/// nested expressions are refused.
const STACK_MAX: usize = 1024;

/// The maximum length in bytes of the text of a number.
const NUMBER_BYTES_MAX: usize = 255;

/// Bytes of text that are read in about the time of one step of a call ([`crate::call::Call::steps_max`]).
pub(super) const BYTES_PER_STEP: usize = 32;

/// Bytes of an expression that are compiled in about the time of one step.
const COMPILED_BYTES_PER_STEP: usize = 4;

/// The work of one operator or value of a program, in bytes of text.
const TOKEN_WORK: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Open,
    Close,
    Not,
    Power,
    Times,
    Over,
    Modulo,
    Plus,
    Minus,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    In,
    /// In conditions only: an array contains an element, or a text contains another one.
    Contains,
    /// In conditions only: an array contains one of these elements, or a value is one of them.
    Any,
    /// In conditions only: an array contains all these elements.
    All,
    And,
    Or,
}

/// Operators with their names; the longest name that matches wins.
const OPERATORS: [(&str, Operator); 21] = [
    ("(", Operator::Open),
    (")", Operator::Close),
    ("!", Operator::Not),
    ("not", Operator::Not),
    ("**", Operator::Power),
    ("*", Operator::Times),
    ("/", Operator::Over),
    ("%", Operator::Modulo),
    ("+", Operator::Plus),
    ("-", Operator::Minus),
    (">", Operator::Greater),
    (">=", Operator::GreaterOrEqual),
    ("<", Operator::Less),
    ("<=", Operator::LessOrEqual),
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("in", Operator::In),
    ("and", Operator::And),
    ("&&", Operator::And),
    ("or", Operator::Or),
    ("||", Operator::Or),
];

impl Operator {
    /// Returns the precedence: higher operators bind more strongly.
    fn strength(self) -> u8 {
        match self {
            Operator::Open | Operator::Close => 7,
            Operator::Not => 6,
            Operator::Power => 5,
            Operator::Times | Operator::Over | Operator::Modulo => 4,
            Operator::Plus | Operator::Minus => 3,
            Operator::And => 1,
            Operator::Or => 0,
            _ => 2,
        }
    }

    /// Returns the number of the operator's operands.
    fn arity(self) -> usize {
        match self {
            Operator::Open | Operator::Close => 0,
            Operator::Not => 1,
            _ => 2,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Value(Value<'static>),
    /// A field, by its index among the paths.
    Field(u32),
    Operator(Operator),
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Values and operators in the order of execution. The stack is never empty where a value is popped.
    program: Vec<Token>,
    /// The fields that the expression mentions, each once.
    fields: FieldPaths,
    /// The approximate memory in bytes that the filter takes.
    bytes: usize,
}

/// The reason why a text is not a valid expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterError {
    /// The expression has an error at this byte. Errors of the expression as a whole and errors at its end, for
    /// instance a string that is not closed, are reported at the first byte.
    Syntax(usize),
    /// The expression has more than [`FILTER_BYTES_MAX`] bytes.
    TooLong,
    /// More values or operators would be pending than this number.
    TooDeep(usize),
    /// A field has more names, separated by dots, than [`super::PATH_NAMES_MAX`].
    LongPath,
}

/// The work of filters, in bytes of text, and its limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    done: usize,
    max: usize,
}

impl Work {
    /// Returns a counter of no work, with a limit in steps.
    pub(super) fn within(steps: usize) -> Work {
        Work { done: 0, max: steps.saturating_mul(BYTES_PER_STEP) }
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.done = self.done.saturating_add(bytes);
    }

    /// Returns whether a text of this length may be read.
    pub(super) fn allows(&self, bytes: usize) -> bool {
        self.done.saturating_add(bytes) <= self.max
    }

    /// Forbids all further work.
    pub(super) fn exhaust(&mut self) {
        (self.done, self.max) = (1, 0);
    }

    /// Returns whether more work was required than is allowed.
    pub(super) fn is_exhausted(&self) -> bool {
        self.done > self.max
    }

    /// Returns the number of steps done.
    pub(super) fn steps(&self) -> usize {
        self.done / BYTES_PER_STEP
    }
}

/// Returns the number of steps that the compilation of a text takes. O(1).
pub fn steps_to_compile(text: &[u8]) -> usize {
    text.len().min(FILTER_BYTES_MAX) / COMPILED_BYTES_PER_STEP
}

/// The fields of an expression being compiled, each once.
#[derive(Default)]
pub(super) struct Fields {
    places: HashMap<Box<[u8]>, u32>,
    names: Vec<Box<[u8]>>,
}

impl Fields {
    /// Returns the token of a field.
    pub(super) fn token(&mut self, name: &[u8]) -> Token {
        if let Some(&place) = self.places.get(name) {
            return Token::Field(place);
        }
        let place = self.names.len() as u32;
        self.names.push(name.into());
        self.places.insert(name.into(), place);
        Token::Field(place)
    }
}

impl Filter {
    /// Returns a filter of a checked program, with the fields that it mentions, compiled from a text of this length.
    pub(super) fn new(program: Vec<Token>, fields: Fields, text_len: usize) -> Result<Filter, FilterError> {
        for token in &program {
            if let Token::Value(Value::Tuple(tuple)) = token {
                tuple.prepare();
            }
        }
        let bytes = text_len.saturating_mul(2) + program.capacity() * size_of::<Token>();
        let fields = FieldPaths::new(fields.names).ok_or(FilterError::LongPath)?;
        Ok(Filter { program, fields, bytes })
    }

    /// Compiles an expression. O(its length).
    ///
    /// # Errors
    /// Returns an error if the text is not a valid expression.
    pub fn compile(text: &[u8]) -> Result<Filter, FilterError> {
        const WHOLE: FilterError = FilterError::Syntax(0);
        const TOO_DEEP: FilterError = FilterError::TooDeep(STACK_MAX);
        if text.len() > FILTER_BYTES_MAX {
            return Err(FilterError::TooLong);
        }
        let mut program = Program::default();
        let mut waiting: Vec<Operator> = Vec::new();
        let mut tokens = Tokens { text, at: 0, may_be_negative: true, fields: Fields::default() };
        while let Some(token) = tokens.next()? {
            let Token::Operator(operator) = token else {
                program.value(token).ok_or(TOO_DEEP)?;
                continue;
            };
            match operator {
                Operator::Open => {}
                Operator::Close => {
                    loop {
                        match waiting.pop().ok_or(WHOLE)? {
                            Operator::Open => break,
                            other => program.operator(other).ok_or(WHOLE)?,
                        }
                    }
                    continue;
                }
                _ => {
                    while let Some(&top) = waiting.last()
                        && top != Operator::Open
                        && (top.strength() > operator.strength()
                            || top.strength() == operator.strength() && operator != Operator::Power)
                    {
                        waiting.pop();
                        program.operator(top).ok_or(WHOLE)?;
                    }
                }
            }
            if waiting.len() == STACK_MAX {
                return Err(TOO_DEEP);
            }
            waiting.push(operator);
        }
        while let Some(operator) = waiting.pop() {
            let operator = Some(operator).filter(|&operator| operator != Operator::Open);
            program.operator(operator.ok_or(WHOLE)?).ok_or(WHOLE)?;
        }
        if program.values == 1 { Filter::new(program.tokens, tokens.fields, text.len()) } else { Err(WHOLE) }
    }

    /// Returns the approximate memory in bytes that the filter takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the approximate number of steps for an element with this many bytes of attributes.
    pub(super) fn steps_of(&self, attributes_len: usize) -> usize {
        let read = attributes_len.saturating_mul(self.fields.depth());
        read.saturating_add(self.program.len() * TOKEN_WORK) / BYTES_PER_STEP
    }

    /// Returns whether another filter is the same expression, with identical numbers. O(its length).
    pub(super) fn is_same(&self, other: &Filter) -> bool {
        self.program.len() == other.program.len()
            && self.fields == other.fields
            && self.program.iter().zip(&other.program).all(|(a, b)| match (a, b) {
                (Token::Value(a), Token::Value(b)) => a.is_same(b),
                (a, b) => a == b,
            })
    }

    /// Returns whether attributes match. Attributes without a field that the expression mentions never match.
    pub fn matches(&self, attributes: &[u8]) -> bool {
        self.matches_counting(attributes, &mut Work::within(usize::MAX))
    }

    /// Like [`Filter::matches`], and counts the work. Attributes are parsed once, however often the expression mentions
    /// their fields.
    pub(super) fn matches_counting(&self, attributes: &[u8], work: &mut Work) -> bool {
        // Most filters, a comparison of a field with a value, need no stack.
        if let [Token::Field(_), Token::Value(value), Token::Operator(operator)] = &self.program[..]
            && let Some((field, read)) = self.fields.only_value(attributes)
        {
            work.add(read);
            return field.is_some_and(|field| apply(*operator, &field, value, work).is_true());
        }
        let (values, read) = self.fields.values(attributes);
        work.add(read);
        let Some(values) = values else { return false };
        let mut stack: Vec<Cow<'_, Value<'_>>> = Vec::new();
        for token in &self.program {
            let value = match token {
                Token::Value(value) => Cow::Borrowed(value),
                Token::Field(at) => Cow::Borrowed(&values[*at as usize]),
                Token::Operator(Operator::Not) => {
                    let value = stack.pop().expect("the program was checked");
                    Cow::Owned(truth(!value.is_true()))
                }
                Token::Operator(operator) => {
                    let b = stack.pop().expect("the program was checked");
                    let a = stack.pop().expect("the program was checked");
                    Cow::Owned(apply(*operator, &a, &b, work))
                }
            };
            stack.push(value);
        }
        stack.pop().is_some_and(|value| value.is_true())
    }
}

/// A program being compiled.
#[derive(Default)]
struct Program {
    tokens: Vec<Token>,
    /// The number of values on the stack after the program has run.
    values: usize,
}

impl Program {
    /// Adds a value; `None` if there are too many.
    fn value(&mut self, token: Token) -> Option<()> {
        self.values += 1;
        self.tokens.push(token);
        (self.values <= STACK_MAX).then_some(())
    }

    /// Adds an operator; `None` if there are too few operands.
    fn operator(&mut self, operator: Operator) -> Option<()> {
        self.values = (self.values + 1).checked_sub(operator.arity()).filter(|&left| left > 0)?;
        self.tokens.push(Token::Operator(operator));
        Some(())
    }
}

fn truth(is_true: bool) -> Value<'static> {
    Value::Number(f64::from(u8::from(is_true)))
}

/// Returns the result of an operator. O(the work of its values), [`Value::work`].
fn apply(operator: Operator, a: &Value<'_>, b: &Value<'_>, work: &mut Work) -> Value<'static> {
    let (x, y) = (|| a.number(), || b.number());
    work.add(TOKEN_WORK);
    if !matches!(operator, Operator::And | Operator::Or) {
        work.add(a.work().saturating_add(b.work()));
    }
    match operator {
        Operator::Power => Value::Number(x().powf(y())),
        Operator::Times => Value::Number(x() * y()),
        Operator::Over => Value::Number(x() / y()),
        Operator::Modulo => Value::Number(x() % y()),
        Operator::Plus => Value::Number(x() + y()),
        Operator::Minus => Value::Number(x() - y()),
        Operator::Greater => truth(x() > y()),
        Operator::GreaterOrEqual => truth(x() >= y()),
        Operator::Less => truth(x() < y()),
        Operator::LessOrEqual => truth(x() <= y()),
        Operator::Equal => truth(a.equals(b)),
        Operator::NotEqual => truth(!a.equals(b)),
        Operator::In => truth(matches!(b, Value::Tuple(_)) && b.has(a)),
        Operator::Contains => truth(a.contains(b)),
        Operator::Any => truth(a.has_any(b)),
        Operator::All => truth(a.has_all(b)),
        Operator::And => truth(a.is_true() && b.is_true()),
        Operator::Or => truth(a.is_true() || b.is_true()),
        Operator::Not | Operator::Open | Operator::Close => unreachable!("these take no two values"),
    }
}

/// The tokens of a text.
struct Tokens<'t> {
    text: &'t [u8],
    at: usize,
    /// Whether a sign may begin a number: not after a value.
    may_be_negative: bool,
    fields: Fields,
}

impl Tokens<'_> {
    /// Returns the next token; `None` at the end. O(its length).
    fn next(&mut self) -> Result<Option<Token>, FilterError> {
        self.skip_spaces();
        // A NUL ends the text, as in C.
        if self.peek(0) == 0 {
            return Ok(None);
        }
        let Some(token) = self.read() else {
            return Err(FilterError::Syntax(if self.at < self.text.len() { self.at } else { 0 }));
        };
        self.may_be_negative = matches!(token, Token::Operator(operator) if operator != Operator::Close);
        Ok(Some(token))
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_spaces(&mut self) {
        while self.peek(0).is_ascii_whitespace() || self.peek(0) == 11 {
            self.at += 1;
        }
    }

    fn read(&mut self) -> Option<Token> {
        let may_be_negative = self.may_be_negative;
        let (first, second) = (self.peek(0), self.peek(1));
        match first {
            b'0'..=b'9' => self.number().map(Token::Value),
            b'-' if may_be_negative && second.is_ascii_digit() => self.number().map(Token::Value),
            b'\'' | b'"' => self.string().map(Token::Value),
            b'.' if is_field_byte(second) => {
                self.at += 1;
                let start = self.at;
                while is_field_byte(self.peek(0)) {
                    self.at += 1;
                }
                Some(self.fields.token(&self.text[start..self.at]))
            }
            b'[' => self.tuple().map(Token::Value),
            _ => self.word(),
        }
    }

    fn number(&mut self) -> Option<Value<'static>> {
        let start = self.at;
        let is_part = |byte: u8, is_first: bool| {
            byte.is_ascii_digit() || b".eE".contains(&byte) || is_first && byte == b'-'
        };
        while is_part(self.peek(0), self.at == start) {
            self.at += 1;
        }
        let text = &self.text[start..self.at];
        let number = std::str::from_utf8(text).ok().filter(|text| text.len() <= NUMBER_BYTES_MAX)?.parse();
        number.ok().map(Value::Number)
    }

    /// Reads a string up to the quote with which it begins. A backslash escapes the next byte; the string contains
    /// both.
    fn string(&mut self) -> Option<Value<'static>> {
        let quote = self.peek(0);
        self.at += 1;
        let start = self.at;
        loop {
            match self.peek(0) {
                0 => return None,
                b'\\' if self.peek(1) != 0 => self.at += 2,
                byte if byte == quote => break,
                _ => self.at += 1,
            }
        }
        let string = self.text[start..self.at].to_vec();
        self.at += 1;
        Some(Value::String(string.into()))
    }

    fn tuple(&mut self) -> Option<Value<'static>> {
        self.at += 1;
        let mut elements = Vec::new();
        loop {
            self.skip_spaces();
            match self.peek(0) {
                b']' => break,
                b'0'..=b'9' | b'-' => elements.push(self.number()?),
                b'\'' | b'"' => elements.push(self.string()?),
                _ => return None,
            }
            self.skip_spaces();
            match self.peek(0) {
                b']' => break,
                b',' => self.at += 1,
                _ => return None,
            }
        }
        self.at += 1;
        Some(elements.into())
    }

    /// Reads an operator or a named value, the longest with which the text begins here. O(1), except when it finds an
    /// error.
    fn word(&mut self) -> Option<Token> {
        let rest = &self.text[self.at..];
        if rest.starts_with(b"null") && !rest.get(4).is_some_and(u8::is_ascii_alphabetic) {
            self.at += 4;
            return Some(Token::Value(Value::Null));
        }
        let fitting = OPERATORS.iter().filter(|(name, _)| rest.starts_with(name.as_bytes()));
        let Some(&(name, operator)) = fitting.max_by_key(|(name, _)| name.len()) else {
            // The error is at the end of the characters that could form an operator.
            let is_part = |byte: &u8| byte.is_ascii_alphabetic() || b"+-*%/!()<>=|&".contains(byte);
            self.at += rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
            return None;
        };
        self.at += name.len();
        Some(Token::Operator(operator))
    }
}

fn is_field_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILM: &[u8] =
        br#"{"year":1984,"genre":"action","rating":8.5,"tags":["a",3],"seen":true,"n":null,"o":{}}"#;

    fn matches(expression: &str) -> bool {
        Filter::compile(expression.as_bytes())
            .unwrap_or_else(|error| panic!("{expression}: {error:?}"))
            .matches(FILM)
    }

    #[test]
    fn expressions_are_true_or_false() {
        for expression in [
            ".year == 1984",
            ".year - 1980 == 4 and .rating > 8",
            ".year -1980==4&&.rating>=8.5",
            "2**3**2 == 512",
            "-3 + 5 == 2",
            "(1 + 2) * 3 == 9 and 1 + 2 * 3 == 7",
            "(2)-3 == -1",
            "7 % 4 == 3 && 7 / 2 == 3.5",
            ".genre in ['drama', \"action\"]",
            "3 in .tags and 'a' in .tags",
            "not (.year < 1980) and !0",
            ".genre != 'drama' or 1/0",
            "'12' == 12",
            ".n == null and not .n",
            ".seen == 1 and .seen",
            "!(0) && not1 == 0",
            "'0x10' == 16 and ' 12' == 12",
            ".genre",
            "[1]",
            "  .year  in[1984,]",
        ] {
            assert!(matches(expression), "{expression}");
        }
        for expression in [
            ".year > 1984",
            ".missing == 1 or 1",
            ".o or 1",
            "''",
            "null",
            "0",
            ".missing or 1",
            ".genre == null",
            "1 in 1",
            "'x' > 0",
        ] {
            assert!(!matches(expression), "{expression}");
        }
        let all = Filter::compile(b"1").unwrap();
        assert!(all.matches(b"no json") && !Filter::compile(b".a").unwrap().matches(b"no json"));
    }

    #[test]
    fn errors_report_their_position() {
        for (expression, at) in [
            ("", 0),
            (".year =! 3", 8),
            (".year == ", 0),
            ("(1", 0),
            ("1 + 1)", 0),
            ("1 2", 0),
            ("'open", 0),
            ("[1 2]", 3),
            ("[x]", 1),
            ("1 nope 2", 6),
            ("1e5e", 0),
            ("not not 1", 0),
            ("true", 0),
            ("1 @ 2", 2),
        ] {
            let error = Filter::compile(expression.as_bytes()).unwrap_err();
            assert_eq!(error, FilterError::Syntax(at), "{expression}");
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |depth| ["(".repeat(depth), "1".to_owned(), ")".repeat(depth)].concat();
        Filter::compile(nested(1000).as_bytes()).unwrap();
        let error = Filter::compile(nested(2000).as_bytes()).unwrap_err();
        assert_eq!(error, FilterError::TooDeep(STACK_MAX));
        let values = ["1 ".repeat(STACK_MAX + 1), "+ ".repeat(STACK_MAX)].concat();
        assert_eq!(Filter::compile(values.as_bytes()).unwrap_err(), FilterError::TooDeep(STACK_MAX));
        let long = ["1", &" ".repeat(FILTER_BYTES_MAX)].concat();
        assert_eq!(Filter::compile(long.as_bytes()).unwrap_err(), FilterError::TooLong);
    }

    /// The tokenizer reads each byte of a text only a few times.
    #[test]
    fn repeated_tokens_are_read_in_linear_time() {
        // The longest texts of repeated brackets, signs and words, none of which is a valid expression.
        for piece in ["(", "!", "-", "not", "null", "1 in ", "<=", "a", "[1,", "'", ".a", "(1)"] {
            let text = piece.repeat(FILTER_BYTES_MAX / piece.len());
            let mut tokens =
                Tokens { text: text.as_bytes(), at: 0, may_be_negative: true, fields: Fields::default() };
            let begun = std::time::Instant::now();
            let mut count = 0;
            while let Ok(Some(_)) = tokens.next() {
                count += 1;
            }
            assert!(count <= text.len());
            // Reading the text again at each token would take minutes.
            assert!(begun.elapsed().as_secs() < 5, "{piece}: {:?}", begun.elapsed());
        }
    }

    #[test]
    fn fields_that_are_mentioned_often_are_parsed_once() {
        let text = format!("{{\"long\":\"{}\",\"a\":1}}", "x".repeat(100_000));
        let work_of = |mentions: usize| {
            let filter = vec![".a == 1"; mentions].join(" and ");
            let mut work = Work::within(usize::MAX);
            assert!(Filter::compile(filter.as_bytes()).unwrap().matches_counting(text.as_bytes(), &mut work));
            work.done
        };
        assert!(work_of(1) >= text.len() && work_of(1000) < 2 * work_of(1));
    }

    #[test]
    fn substring_search_takes_linear_time() {
        let (text, part) = ("a".repeat(200_000), ["a".repeat(100_000), "b".to_owned()].concat());
        let attributes = format!("{{\"t\":\"{text}\"}}");
        let filter = Filter::compile_conditions(format!("t CONTAINS '{part}'").as_bytes()).unwrap();
        let begun = std::time::Instant::now();
        // Comparing at each position would take minutes.
        assert!((0..20).all(|_| !filter.matches(attributes.as_bytes())));
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
        let found = Filter::compile_conditions(format!("t CONTAINS '{}'", "a".repeat(1000)).as_bytes());
        assert!(found.unwrap().matches(attributes.as_bytes()));
    }

    #[test]
    fn long_lists_are_compared_in_linear_time() {
        let numbers = |range: std::ops::Range<u32>| {
            range.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
        };
        let attributes = format!("{{\"t\":[{}]}}", numbers(0..200_000));
        let begun = std::time::Instant::now();
        for (condition, is_true) in [("ALL", true), ("ANY", true)] {
            let filter = format!("t {condition} [{}]", numbers(165_000..200_000));
            let filter = Filter::compile_conditions(filter.as_bytes()).unwrap();
            assert_eq!(filter.matches(attributes.as_bytes()), is_true);
        }
        let filter = format!("t ANY [{}]", numbers(200_000..235_000));
        assert!(!Filter::compile_conditions(filter.as_bytes()).unwrap().matches(attributes.as_bytes()));
        let filter = format!(".t in [{}]", numbers(1..35_000));
        let filter = Filter::compile(filter.as_bytes()).unwrap();
        assert!(
            (0..35_000)
                .all(|number| filter.matches(format!("{{\"t\":{number}}}").as_bytes()) == (number > 0))
        );
        // Comparing one by one would take minutes.
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    }
}
