//! The conditions of `VECTOR.SEARCH … FILTER`: `year >= 1980 AND (genre = 'drama' OR tags CONTAINS 'noir')`.
//!
//! ```text
//! condition    any OR any …
//! any          all AND all …
//! all          NOT all | ( condition ) | field comparison
//! comparison   = | == | != | <> | > | >= | < | <= value   CONTAINS value   ANY [values]   ALL [values]   IN [values]
//! field        a name, or names with dots between them
//! value        number, 'text', "text", true, false, null, or a word
//! ```
//!
//! They are compiled to the same programs as the expressions of VSIM ([`Filter::compile`]).

use super::filter::{FILTER_BYTES_MAX, Fields, Filter, FilterError, Operator, Token, Value};

/// The maximum nesting of parentheses and `NOT`, which also limits the height of the program's stack.
const DEPTH_MAX: usize = 64;

impl Filter {
    /// Compiles conditions. O(their length).
    ///
    /// # Errors
    /// Returns an error if the conditions are not valid.
    pub fn compile_conditions(text: &[u8]) -> Result<Filter, FilterError> {
        if text.len() > FILTER_BYTES_MAX {
            return Err(FilterError::TooLong);
        }
        let mut parser = Parser { text, at: 0, program: Vec::new(), fields: Fields::default() };
        parser.condition(0)?;
        parser.skip_spaces();
        if parser.at < text.len() {
            return Err(parser.wrong());
        }
        Filter::new(parser.program, parser.fields, text.len())
    }
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    program: Vec<Token>,
    fields: Fields,
}

const COMPARISONS: [(&[u8], Operator); 8] = [
    (b"==", Operator::Equal),
    (b"=", Operator::Equal),
    (b"!=", Operator::NotEqual),
    (b"<>", Operator::NotEqual),
    (b">=", Operator::GreaterOrEqual),
    (b">", Operator::Greater),
    (b"<=", Operator::LessOrEqual),
    (b"<", Operator::Less),
];

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.+".contains(&byte) || byte >= 0x80
}

impl<'t> Parser<'t> {
    fn wrong(&self) -> FilterError {
        FilterError::Syntax(self.at.min(self.text.len()))
    }

    fn rest(&self) -> &'t [u8] {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_spaces();
        let is_next = self.rest().first() == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn word(&mut self) -> Option<&'t [u8]> {
        self.skip_spaces();
        let start = self.at;
        self.at += self.rest().iter().take_while(|&&byte| is_word_byte(byte)).count();
        (self.at > start).then(|| &self.text[start..self.at])
    }

    /// Consumes this word, if it is the next one.
    fn take_word(&mut self, wanted: &str) -> bool {
        let before = self.at;
        let is_next = self.word().is_some_and(|word| word.eq_ignore_ascii_case(wanted.as_bytes()));
        if !is_next {
            self.at = before;
        }
        is_next
    }

    fn condition(&mut self, depth: usize) -> Result<(), FilterError> {
        self.any(depth)?;
        while self.take_word("OR") {
            self.any(depth)?;
            self.program.push(Token::Operator(Operator::Or));
        }
        Ok(())
    }

    fn any(&mut self, depth: usize) -> Result<(), FilterError> {
        self.all(depth)?;
        while self.take_word("AND") {
            self.all(depth)?;
            self.program.push(Token::Operator(Operator::And));
        }
        Ok(())
    }

    fn all(&mut self, depth: usize) -> Result<(), FilterError> {
        if depth == DEPTH_MAX {
            return Err(FilterError::TooDeep(DEPTH_MAX));
        }
        if self.take_word("NOT") {
            self.all(depth + 1)?;
            self.program.push(Token::Operator(Operator::Not));
            return Ok(());
        }
        if self.take(b'(') {
            self.condition(depth + 1)?;
            return if self.take(b')') { Ok(()) } else { Err(self.wrong()) };
        }
        let field = self.word().ok_or_else(|| self.wrong())?;
        self.program.push(self.fields.token(field));
        self.comparison()
    }

    fn comparison(&mut self) -> Result<(), FilterError> {
        self.skip_spaces();
        let operator = COMPARISONS.iter().find(|(sign, _)| self.rest().starts_with(sign));
        let (value, operator) = if let Some(&(sign, operator)) = operator {
            self.at += sign.len();
            (self.value()?, operator)
        } else if self.take_word("CONTAINS") {
            (self.value()?, Operator::Contains)
        } else if self.take_word("ANY") {
            (self.list()?, Operator::Any)
        } else if self.take_word("ALL") {
            (self.list()?, Operator::All)
        } else if self.take_word("IN") {
            (self.list()?, Operator::In)
        } else {
            return Err(self.wrong());
        };
        self.program.extend([Token::Value(value), Token::Operator(operator)]);
        Ok(())
    }

    fn list(&mut self) -> Result<Value<'static>, FilterError> {
        let mut values = Vec::new();
        if !self.take(b'[') {
            return Err(self.wrong());
        }
        if self.take(b']') {
            return Ok(values.into());
        }
        loop {
            values.push(self.value()?);
            if self.take(b']') {
                return Ok(values.into());
            }
            if !self.take(b',') {
                return Err(self.wrong());
            }
        }
    }

    fn value(&mut self) -> Result<Value<'static>, FilterError> {
        self.skip_spaces();
        if let Some(&quote) = self.rest().first().filter(|byte| b"'\"".contains(byte)) {
            let start = self.at + 1;
            let len =
                self.text[start..].iter().position(|&byte| byte == quote).ok_or_else(|| self.wrong())?;
            self.at = start + len + 1;
            return Ok(Value::String(self.text[start..start + len].to_vec().into()));
        }
        let Some(word) = self.word() else { return Err(self.wrong()) };
        Ok(match word {
            b"true" => Value::Number(1.0),
            b"false" => Value::Number(0.0),
            b"null" => Value::Null,
            word => match ember_protocol::number::parse_f64(word) {
                Some(number) => Value::Number(number),
                None => Value::String(word.to_vec().into()),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILM: &[u8] =
        br#"{"year":1984,"genre":"action","tags":["a","b",3],"maker":{"name":"X","born":1940},"seen":true}"#;

    fn matches(conditions: &str) -> bool {
        Filter::compile_conditions(conditions.as_bytes())
            .unwrap_or_else(|error| panic!("{conditions}: {error:?}"))
            .matches(FILM)
    }

    #[test]
    fn conditions_are_true_or_false() {
        for conditions in [
            "year = 1984",
            "year >= 1980 AND year < 1990",
            "genre = action",
            "genre = 'drama' OR genre=\"action\"",
            "NOT genre = 'drama' and not (year > 2000 or year < 1900)",
            "tags CONTAINS 'a' AND tags CONTAINS 3",
            "genre CONTAINS 'cti'",
            "tags ANY ['x', 'b']",
            "genre ANY [action, drama]",
            "genre IN [action, drama]",
            "tags ALL ['a', 3]",
            "tags ALL []",
            "maker.name = 'X' AND maker.born <> 1941",
            "seen = true",
            "year = 1 OR year = 1984 AND seen = true",
        ] {
            assert!(matches(conditions), "{conditions}");
        }
        for conditions in [
            "year != 1984",
            "tags CONTAINS 'c'",
            "tags ANY []",
            "tags ALL ['a', 'c']",
            "maker.age > 1",
            "maker = 1",
            "missing = null OR year = 1984",
            "(year = 1 OR year = 1984) AND seen = false",
        ] {
            assert!(!matches(conditions), "{conditions}");
        }
    }

    #[test]
    fn errors_report_their_position() {
        for (conditions, at) in [
            ("", 0),
            ("year", 4),
            ("year = ", 7),
            ("year = 1)", 8),
            ("(year = 1", 9),
            ("a ANY b", 6),
            ("a = 'x", 4),
        ] {
            assert_eq!(
                Filter::compile_conditions(conditions.as_bytes()).unwrap_err(),
                FilterError::Syntax(at),
                "{conditions}"
            );
        }
        let nested = |depth| ["(".repeat(depth), "a = 1".to_owned(), ")".repeat(depth)].concat();
        Filter::compile_conditions(nested(60).as_bytes()).unwrap();
        let error = Filter::compile_conditions(nested(70).as_bytes()).unwrap_err();
        assert_eq!(error, FilterError::TooDeep(DEPTH_MAX));
        let path = vec!["a"; 17].join(".");
        let error = Filter::compile_conditions(format!("{path} = 1").as_bytes()).unwrap_err();
        assert_eq!(error, FilterError::LongPath);
    }
}
