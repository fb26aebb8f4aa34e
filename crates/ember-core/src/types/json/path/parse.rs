//! The parser of paths. Errors are positions.

use regex::RegexBuilder;

use super::Segment;
use super::filter::{Comparison, Filter, Pattern, Term};

/// The maximum number of nested filters and parentheses, which are parsed recursively.
const NESTING_MAX: usize = 32;

/// The maximum memory of a compiled pattern, and of its cache, in bytes.
const PATTERN_BYTES_MAX: usize = 32 * 1024;

/// Returns the compiled pattern; `None` if it is invalid or too large, so that it matches nothing.
pub(super) fn compile(pattern: &str) -> Option<regex::Regex> {
    RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX).build().ok()
}

type Parsed<T> = Result<T, usize>;

struct Parser<'p> {
    path: &'p [u8],
    at: usize,
    nesting: usize,
}

/// Parses a path that begins with `$`; an error is the position of the unexpected byte.
pub(super) fn parse(path: &[u8]) -> Parsed<Vec<Segment>> {
    let mut parser = Parser { path, at: 0, nesting: 0 };
    parser.expect(b'$')?;
    let segments = parser.segments()?;
    parser.spaces();
    if parser.at == path.len() { Ok(segments) } else { Err(parser.at) }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_`~+#%$^/:".contains(&byte)
}

impl Parser<'_> {
    fn spaces(&mut self) {
        while self.path.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.spaces();
        self.path.get(self.at).copied()
    }

    fn skip_if(&mut self, word: &[u8]) -> bool {
        self.spaces();
        let is_next = self.path[self.at..].starts_with(word);
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    fn expect(&mut self, byte: u8) -> Parsed<()> {
        if self.skip_if(&[byte]) { Ok(()) } else { Err(self.at) }
    }

    /// Parses segments up to the first byte that begins none.
    fn segments(&mut self) -> Parsed<Vec<Segment>> {
        let mut segments = Vec::new();
        loop {
            if self.skip_if(b"..") {
                segments.push(Segment::Descend);
                segments.push(match self.peek() {
                    Some(b'[') => self.bracket()?,
                    _ => self.name_or_all()?,
                });
            } else if self.skip_if(b".") {
                segments.push(match self.peek() {
                    Some(b'[') => self.bracket()?,
                    _ => self.name_or_all()?,
                });
            } else if self.peek() == Some(b'[') {
                segments.push(self.bracket()?);
            } else {
                return Ok(segments);
            }
        }
    }

    fn name_or_all(&mut self) -> Parsed<Segment> {
        if self.skip_if(b"*") {
            return Ok(Segment::All);
        }
        self.spaces();
        let len = self.path[self.at..].iter().take_while(|&&byte| is_name_byte(byte)).count();
        if len == 0 {
            return Err(self.at);
        }
        let name = &self.path[self.at..self.at + len];
        self.at += len;
        Ok(Segment::Name(name.into()))
    }

    fn bracket(&mut self) -> Parsed<Segment> {
        self.expect(b'[')?;
        let segment = match self.peek() {
            Some(b'*') => {
                self.at += 1;
                Segment::All
            }
            Some(b'?') => {
                self.at += 1;
                Segment::Filter(Box::new(self.filter()?))
            }
            Some(b'\'' | b'"') => {
                let mut names = vec![self.string()?.into_boxed_slice()];
                while self.skip_if(b",") {
                    names.push(self.string()?.into_boxed_slice());
                }
                Segment::Names(names)
            }
            _ => self.indexes()?,
        };
        self.expect(b']')?;
        Ok(segment)
    }

    fn indexes(&mut self) -> Parsed<Segment> {
        let start = if self.peek() == Some(b':') { None } else { Some(self.integer()?) };
        if !self.skip_if(b":") {
            let mut indexes = vec![start.ok_or(self.at)?];
            while self.skip_if(b",") {
                indexes.push(self.integer()?);
            }
            return Ok(Segment::Indexes(indexes));
        }
        let end = match self.peek() {
            Some(b':' | b']') => None,
            _ => Some(self.integer()?),
        };
        let mut step = 1;
        if self.skip_if(b":") && self.peek() != Some(b']') {
            let at = self.at;
            step = usize::try_from(self.integer()?).ok().filter(|&step| step > 0).ok_or(at)?;
        }
        Ok(Segment::Range { start: start.unwrap_or(0), end, step })
    }

    /// Parses an integer; one beyond 64 bits becomes the nearest.
    fn integer(&mut self) -> Parsed<i64> {
        self.spaces();
        let is_negative = self.skip_if(b"-");
        let begin = self.at;
        let mut number = 0i64;
        while let Some(digit) = self.path.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            number = number.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
            self.at += 1;
        }
        let len = self.at - begin;
        // A longer number does not begin with 0.
        if len == 0 || len > 1 && self.path[begin] == b'0' {
            return Err(begin);
        }
        Ok(if is_negative { -number } else { number })
    }

    fn string(&mut self) -> Parsed<Vec<u8>> {
        let quote = self.peek().filter(|byte| b"'\"".contains(byte)).ok_or(self.at)?;
        self.at += 1;
        let mut text = Vec::new();
        loop {
            match self.path.get(self.at) {
                None => return Err(self.at),
                Some(&byte) if byte == quote => {
                    self.at += 1;
                    break;
                }
                Some(b'\\') => {
                    let escaped = self.path.get(self.at + 1).filter(|&&byte| byte == quote || byte == b'\\');
                    text.push(*escaped.ok_or(self.at + 1)?);
                    self.at += 2;
                }
                Some(&byte) => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
        Ok(text)
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return Err(self.at);
        }
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    fn filter(&mut self) -> Parsed<Filter> {
        self.nested(|parser| {
            let mut any = vec![parser.all_of()?];
            while parser.skip_if(b"||") {
                any.push(parser.all_of()?);
            }
            Ok(if any.len() == 1 { any.remove(0) } else { Filter::Any(any) })
        })
    }

    fn all_of(&mut self) -> Parsed<Filter> {
        let mut all = vec![self.test()?];
        while self.skip_if(b"&&") {
            all.push(self.test()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Filter::All(all) })
    }

    fn test(&mut self) -> Parsed<Filter> {
        if self.skip_if(b"(") {
            let filter = self.filter()?;
            self.expect(b')')?;
            return Ok(filter);
        }
        if self.skip_if(b"!") {
            return self.nested(|parser| Ok(Filter::Not(Box::new(parser.test()?))));
        }
        let left = self.term()?;
        let operators: [(&[u8], Comparison); 7] = [
            (b"==", Comparison::Equal),
            (b"!=", Comparison::NotEqual),
            (b"<=", Comparison::LessOrEqual),
            (b">=", Comparison::GreaterOrEqual),
            (b"=~", Comparison::Matches),
            (b"<", Comparison::Less),
            (b">", Comparison::Greater),
        ];
        let Some((_, comparison)) = operators.into_iter().find(|(word, _)| self.skip_if(word)) else {
            return Ok(Filter::Exists(left));
        };
        let right = self.term()?;
        let pattern = match (comparison, &right) {
            (Comparison::Matches, Term::String(text)) => {
                Pattern::Fixed(std::str::from_utf8(text).ok().and_then(compile))
            }
            _ => Pattern::None,
        };
        Ok(Filter::Compare { left, comparison, right, pattern })
    }

    fn term(&mut self) -> Parsed<Term> {
        match self.peek() {
            Some(b'@') => {
                self.at += 1;
                Ok(Term::Current(self.operand_segments()?))
            }
            Some(b'$') => {
                self.at += 1;
                Ok(Term::Root(self.operand_segments()?))
            }
            Some(b'\'' | b'"') => Ok(Term::String(self.string()?)),
            _ if self.skip_if(b"true") => Ok(Term::Bool(true)),
            _ if self.skip_if(b"false") => Ok(Term::Bool(false)),
            _ if self.skip_if(b"null") => Ok(Term::Null),
            _ => self.number(),
        }
    }

    fn operand_segments(&mut self) -> Parsed<Vec<Segment>> {
        self.nested(Parser::segments)
    }

    fn number(&mut self) -> Parsed<Term> {
        let begin = self.at;
        let integer = self.integer()?;
        let has_point = self.path.get(self.at) == Some(&b'.');
        if !has_point || !self.path.get(self.at + 1).is_some_and(u8::is_ascii_digit) {
            return Ok(Term::Int(integer));
        }
        self.at += 1;
        while self.path.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        let text = std::str::from_utf8(&self.path[begin..self.at]).ok();
        // The minus sign may be separated from its digits by spaces.
        let number = text.and_then(|text| text.replace(' ', "").parse().ok());
        number.map(Term::Double).ok_or(begin)
    }
}
