//! The filter expressions of VSIM: `.year >= 1980 and .genre in ["drama", "comedy"]`.
//!
//! ```text
//! weakest first   or || | and && | == != > >= < <= in | + - | * / % | ** (to the right) | ! not | ( )
//! values          numbers, 'strings', "strings", null, [tuples], .fields of the attributes
//! ```
//!
//! An expression is compiled once to a program for a stack, and run for each element that is asked about. Selection of
//! words, conversions and errors: Redis's documentation of filtered search, and what its vector sets answer.

use std::borrow::Cow;
use std::sync::Arc;

use super::json;

/// Values that a program may have on its stack, and operators that may wait while one is compiled: expressions nested any
/// deeper are refused.
const STACK_MAX: usize = 1024;

/// The longest text of a number.
const NUMBER_BYTES_MAX: usize = 255;

/// A value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'t> {
    Number(f64),
    String(Cow<'t, [u8]>),
    Tuple(Arc<[Value<'t>]>),
    Null,
}

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
    /// Of conditions only: an array has an element, or a text a part.
    Contains,
    /// Of conditions only: an array has one of these elements, or a value is one of them.
    Any,
    /// Of conditions only: an array has all these elements.
    All,
    And,
    Or,
}

/// Operators with their names; of those that begin alike the longer ones win.
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
    /// The stronger, the higher.
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

    /// How many values it takes.
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
    Field(Box<[u8]>),
    Operator(Operator),
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Values and operators in the order in which they are run. The stack is never empty where one is taken.
    pub(super) program: Vec<Token>,
}

/// Where an expression goes wrong: at this byte of it. What is only wrong as a whole, and what is open at the end, is so at
/// the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntaxError(pub usize);

impl Filter {
    /// Compiles an expression.
    ///
    /// # Errors
    /// If it is none.
    pub fn compile(text: &[u8]) -> Result<Filter, SyntaxError> {
        const WHOLE: SyntaxError = SyntaxError(0);
        let mut program = Program::default();
        let mut waiting: Vec<Operator> = Vec::new();
        for token in (Tokens { text, at: 0, last: None }).all()? {
            let Token::Operator(operator) = token else {
                program.value(token).ok_or(WHOLE)?;
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
                return Err(WHOLE);
            }
            waiting.push(operator);
        }
        while let Some(operator) = waiting.pop() {
            let operator = Some(operator).filter(|&operator| operator != Operator::Open);
            program.operator(operator.ok_or(WHOLE)?).ok_or(WHOLE)?;
        }
        if program.values == 1 { Ok(Filter { program: program.tokens }) } else { Err(WHOLE) }
    }

    /// Whether another one is the same expression, number for number. O(its length).
    pub(super) fn is_same(&self, other: &Filter) -> bool {
        self.program.len() == other.program.len()
            && self.program.iter().zip(&other.program).all(|(a, b)| match (a, b) {
                (Token::Value(a), Token::Value(b)) => a.is_same(b),
                (a, b) => a == b,
            })
    }

    /// Whether attributes match. Those that lack a field which is asked for do not, whatever the expression.
    pub fn matches(&self, attributes: &[u8]) -> bool {
        // What most filters are, a comparison of a field with a value, is done without a stack.
        if let [Token::Field(name), Token::Value(value), Token::Operator(operator)] = &self.program[..] {
            return json::field(attributes, name)
                .is_some_and(|field| apply(*operator, &field, value).is_true());
        }
        let mut stack: Vec<Value<'_>> = Vec::new();
        for token in &self.program {
            let value = match token {
                Token::Value(value) => value.clone(),
                Token::Field(name) => match json::field(attributes, name) {
                    Some(value) => value,
                    None => return false,
                },
                Token::Operator(Operator::Not) => {
                    let value = stack.pop().expect("the program was checked");
                    truth(!value.is_true())
                }
                Token::Operator(operator) => {
                    let b = stack.pop().expect("the program was checked");
                    let a = stack.pop().expect("the program was checked");
                    apply(*operator, &a, &b)
                }
            };
            stack.push(value);
        }
        stack.pop().is_some_and(|value| value.is_true())
    }
}

/// A program that is being written.
#[derive(Default)]
struct Program {
    tokens: Vec<Token>,
    /// How many values are on the stack after it has run.
    values: usize,
}

impl Program {
    /// Adds a value; `None` if there are too many.
    fn value(&mut self, token: Token) -> Option<()> {
        self.values += 1;
        self.tokens.push(token);
        (self.values <= STACK_MAX).then_some(())
    }

    /// Adds an operator; `None` if there are too few values for it.
    fn operator(&mut self, operator: Operator) -> Option<()> {
        self.values = (self.values + 1).checked_sub(operator.arity()).filter(|&left| left > 0)?;
        self.tokens.push(Token::Operator(operator));
        Some(())
    }
}

fn truth(is_true: bool) -> Value<'static> {
    Value::Number(f64::from(u8::from(is_true)))
}

fn apply(operator: Operator, a: &Value<'_>, b: &Value<'_>) -> Value<'static> {
    let (x, y) = (a.number(), b.number());
    match operator {
        Operator::Power => Value::Number(x.powf(y)),
        Operator::Times => Value::Number(x * y),
        Operator::Over => Value::Number(x / y),
        Operator::Modulo => Value::Number(x % y),
        Operator::Plus => Value::Number(x + y),
        Operator::Minus => Value::Number(x - y),
        Operator::Greater => truth(x > y),
        Operator::GreaterOrEqual => truth(x >= y),
        Operator::Less => truth(x < y),
        Operator::LessOrEqual => truth(x <= y),
        Operator::Equal => truth(a.equals(b)),
        Operator::NotEqual => truth(!a.equals(b)),
        Operator::In => {
            truth(matches!(b, Value::Tuple(elements) if elements.iter().any(|element| a.equals(element))))
        }
        Operator::Contains => truth(match (a, b) {
            (Value::Tuple(_), _) => a.has(b),
            (Value::String(text), Value::String(part)) => {
                part.is_empty() || text.windows(part.len()).any(|window| window == &**part)
            }
            _ => a.equals(b),
        }),
        Operator::Any => truth(b.elements().iter().any(|element| a.has(element))),
        Operator::All => truth(b.elements().iter().all(|element| a.has(element))),
        Operator::And => truth(a.is_true() && b.is_true()),
        Operator::Or => truth(a.is_true() || b.is_true()),
        Operator::Not | Operator::Open | Operator::Close => unreachable!("these take no two values"),
    }
}

impl Value<'_> {
    fn number(&self) -> f64 {
        match self {
            Value::Number(number) => *number,
            Value::String(text) => {
                let text = text.trim_ascii_start();
                ember_protocol::number::parse_f64_rounded(text).unwrap_or(0.0)
            }
            Value::Tuple(_) | Value::Null => 0.0,
        }
    }

    /// Whether it is written alike: 0 and -0 are not.
    fn is_same(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Value::Number(a), Value::Number(b)) => a.to_bits() == b.to_bits(),
            (Value::Tuple(a), Value::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(&**b).all(|(a, b)| a.is_same(b))
            }
            (a, b) => a == b,
        }
    }

    fn elements(&self) -> &[Value<'_>] {
        match self {
            Value::Tuple(elements) => elements,
            _ => &[],
        }
    }

    /// Whether it is this value, or an array with it.
    fn has(&self, value: &Value<'_>) -> bool {
        match self {
            Value::Tuple(elements) => elements.iter().any(|element| element.equals(value)),
            _ => self.equals(value),
        }
    }

    fn is_true(&self) -> bool {
        match self {
            Value::Number(number) => *number != 0.0,
            Value::String(text) => !text.is_empty(),
            Value::Tuple(_) => true,
            Value::Null => false,
        }
    }

    fn equals(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Value::String(a), Value::String(b)) => a == b,
            (Value::Null, other) | (other, Value::Null) => matches!(other, Value::Null),
            _ => self.number() == other.number(),
        }
    }
}

/// The tokens of a text.
struct Tokens<'t> {
    text: &'t [u8],
    at: usize,
    last: Option<Token>,
}

impl Tokens<'_> {
    fn all(mut self) -> Result<Vec<Token>, SyntaxError> {
        let mut tokens = Vec::new();
        loop {
            self.skip_spaces();
            // A NUL ends the text, as in C.
            if self.peek(0) == 0 {
                return Ok(tokens);
            }
            let Some(token) = self.next() else {
                return Err(SyntaxError(if self.at < self.text.len() { self.at } else { 0 }));
            };
            self.last = Some(token.clone());
            tokens.push(token);
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_spaces(&mut self) {
        while self.peek(0).is_ascii_whitespace() || self.peek(0) == 11 {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Option<Token> {
        let may_be_negative = match &self.last {
            None => true,
            Some(Token::Operator(operator)) => *operator != Operator::Close,
            Some(_) => false,
        };
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
                Some(Token::Field(self.text[start..self.at].into()))
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

    /// A string up to the quote that it begins with; what follows a backslash is not looked at, and both stay in it.
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
        Some(Value::Tuple(elements.into()))
    }

    /// An operator, or the value with a name: the longest that a run of letters and signs begins with.
    fn word(&mut self) -> Option<Token> {
        let rest = &self.text[self.at..];
        let is_part = |byte: &u8| byte.is_ascii_alphabetic() || b"+-*%/!()<>=|&".contains(byte);
        let run = &rest[..rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len())];
        if run.iter().take_while(|byte| byte.is_ascii_alphabetic()).eq(b"null") {
            self.at += 4;
            return Some(Token::Value(Value::Null));
        }
        let fitting = OPERATORS.iter().filter(|(name, _)| run.starts_with(name.as_bytes()));
        let Some(&(name, operator)) = fitting.max_by_key(|(name, _)| name.len()) else {
            self.at += run.len();
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
    fn errors_say_where() {
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
            assert_eq!(error, SyntaxError(at), "{expression}");
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |depth| ["(".repeat(depth), "1".to_owned(), ")".repeat(depth)].concat();
        Filter::compile(nested(1000).as_bytes()).unwrap();
        Filter::compile(nested(2000).as_bytes()).unwrap_err();
    }
}
