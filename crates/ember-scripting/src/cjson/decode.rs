//! Decodes JSON texts to Lua values.

use mlua::{Lua, LuaString, Table, Value};

use super::Settings;
use crate::interpreter::{ELEMENT_WORK, Shared};
use crate::output::PIECE_BYTES;
use crate::raised;

/// The maximum length of a number in bytes. No number needs more digits, and parsing longer ones could take long.
const NUMBER_BYTES_MAX: usize = 1024 * 1024;

/// A token of a JSON text.
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    /// An invalid token, with the reason.
    Error(&'static str),
}

impl Token {
    /// Returns the token's name in error messages.
    fn name(&self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::String(_) => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Error(problem) => problem,
        }
    }
}

/// An array or object under construction.
enum Open {
    List { table: Table, count: usize },
    Map { table: Table, key: LuaString },
}

/// Decodes a JSON text to a Lua value.
///
/// # Errors
/// Returns Lua CJSON's message if the text is not JSON or is nested too deeply.
pub(super) fn decode(lua: &Lua, shared: &Shared, text: &[u8], settings: &Settings) -> mlua::Result<Value> {
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err(raised::text(lua, "JSON parser does not support UTF-16 or UTF-32"));
    }
    let mut parser = Parser { lua, shared, text, settings, at: 0, token_at: 0 };
    let mut open: Vec<Open> = Vec::new();
    let mut token = parser.token()?;
    loop {
        // The token must begin a value.
        let mut value = match token {
            Token::String(string) => Value::String(lua.create_string(string)?),
            Token::Number(number) => Value::Number(number),
            Token::Boolean(truth) => Value::Boolean(truth),
            Token::Null => Value::NULL,
            Token::ObjectBegin => {
                parser.descend(open.len())?;
                let table = lua.create_table()?;
                match parser.token()? {
                    Token::ObjectEnd => Value::Table(table),
                    first => {
                        let key = parser.key(first)?;
                        open.push(Open::Map { table, key });
                        token = parser.token()?;
                        continue;
                    }
                }
            }
            Token::ArrayBegin => {
                parser.descend(open.len())?;
                let table = lua.create_table()?;
                match parser.token()? {
                    Token::ArrayEnd => Value::Table(table),
                    first => {
                        open.push(Open::List { table, count: 0 });
                        token = first;
                        continue;
                    }
                }
            }
            other => return Err(parser.expected("value", &other)),
        };
        // The value is complete. It is added to the innermost open array or object, which may then be complete, too.
        loop {
            match open.pop() {
                None => {
                    let after = parser.token()?;
                    return match after {
                        Token::End => Ok(value),
                        other => Err(parser.expected("the end", &other)),
                    };
                }
                Some(Open::List { table, count }) => {
                    table.raw_set(count + 1, value)?;
                    match parser.token()? {
                        Token::ArrayEnd => value = Value::Table(table),
                        Token::Comma => {
                            open.push(Open::List { table, count: count + 1 });
                            break;
                        }
                        other => return Err(parser.expected("comma or array end", &other)),
                    }
                }
                Some(Open::Map { table, key }) => {
                    table.raw_set(key, value)?;
                    match parser.token()? {
                        Token::ObjectEnd => value = Value::Table(table),
                        Token::Comma => {
                            let first = parser.token()?;
                            let key = parser.key(first)?;
                            open.push(Open::Map { table, key });
                            break;
                        }
                        other => return Err(parser.expected("comma or object end", &other)),
                    }
                }
            }
        }
        token = parser.token()?;
    }
}

struct Parser<'p> {
    lua: &'p Lua,
    shared: &'p Shared,
    text: &'p [u8],
    settings: &'p Settings,
    at: usize,
    /// The offset of the last token, or of the error in that token.
    token_at: usize,
}

impl Parser<'_> {
    fn expected(&self, what: &str, found: &Token) -> mlua::Error {
        let text = format!("Expected {what} but found {} at character {}", found.name(), self.token_at + 1);
        raised::text(self.lua, text)
    }

    fn descend(&self, depth: usize) -> mlua::Result<()> {
        let depth = depth as i64 + 1;
        if depth <= self.settings.decode_depth_max {
            return Ok(());
        }
        let text = format!("Found too many nested data structures ({depth}) at character {}", self.at);
        Err(raised::text(self.lua, text))
    }

    /// Reads the rest of a key whose first token is `first`, and the colon after the key.
    fn key(&mut self, first: Token) -> mlua::Result<LuaString> {
        let Token::String(key) = first else { return Err(self.expected("object key string", &first)) };
        let key = self.lua.create_string(key)?;
        match self.token()? {
            Token::Colon => Ok(key),
            other => Err(self.expected("colon", &other)),
        }
    }

    /// Returns the byte at offset `at`; 0 after the end of the text.
    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    /// Reads the next token.
    ///
    /// # Errors
    /// Returns an error if the script must end.
    fn token(&mut self) -> mlua::Result<Token> {
        let mut counted_at = self.at;
        while matches!(self.byte(self.at), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
            self.count_work(&mut counted_at)?;
        }
        self.shared.work(ELEMENT_WORK)?;
        self.token_at = self.at;
        let rest = &self.text[self.at.min(self.text.len())..];
        let single = match rest.first() {
            None => return Ok(Token::End),
            Some(b'{') => Some(Token::ObjectBegin),
            Some(b'}') => Some(Token::ObjectEnd),
            Some(b'[') => Some(Token::ArrayBegin),
            Some(b']') => Some(Token::ArrayEnd),
            Some(b':') => Some(Token::Colon),
            Some(b',') => Some(Token::Comma),
            Some(b'"') => return self.string(),
            Some(b'-' | b'0'..=b'9') => {
                if !self.settings.decodes_invalid && is_invalid_number(rest) {
                    return Ok(Token::Error("invalid number"));
                }
                return Ok(self.number());
            }
            _ => None,
        };
        if let Some(token) = single {
            self.at += 1;
            return Ok(token);
        }
        for (word, token) in
            [("true", Token::Boolean(true)), ("false", Token::Boolean(false)), ("null", Token::Null)]
        {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(token);
            }
        }
        if self.settings.decodes_invalid && is_invalid_number(rest) {
            return Ok(self.number());
        }
        Ok(Token::Error("invalid token"))
    }

    /// Reports the work since `counted_at` to the interpreter once it is large enough.
    fn count_work(&self, counted_at: &mut usize) -> mlua::Result<()> {
        if self.at - *counted_at < PIECE_BYTES {
            return Ok(());
        }
        let work = self.at - std::mem::replace(counted_at, self.at);
        self.shared.work(work)
    }

    fn number(&mut self) -> Token {
        let rest = &self.text[self.at..];
        match parse_number(&rest[..rest.len().min(NUMBER_BYTES_MAX)]) {
            Some((number, len)) => {
                self.at += len;
                Token::Number(number)
            }
            None => Token::Error("invalid number"),
        }
    }

    fn string(&mut self) -> mlua::Result<Token> {
        let mut string = Vec::new();
        self.at += 1;
        let mut counted_at = self.at;
        loop {
            self.count_work(&mut counted_at)?;
            match self.text.get(self.at) {
                None | Some(0) => {
                    self.token_at = self.at;
                    return Ok(Token::Error("unexpected end of string"));
                }
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Token::String(string));
                }
                Some(b'\\') => match self.escape(&mut string) {
                    Ok(len) => self.at += len,
                    Err(problem) => {
                        self.token_at = self.at;
                        return Ok(Token::Error(problem));
                    }
                },
                Some(&byte) => {
                    string.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    /// Appends the character of the escape sequence at the current position; returns the length of the sequence.
    fn escape(&self, string: &mut Vec<u8>) -> Result<usize, &'static str> {
        let byte = match self.byte(self.at + 1) {
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'f' => 12,
            b'r' => b'\r',
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'u' => return self.unicode_escape(string).ok_or("invalid unicode escape code"),
            _ => return Err("invalid escape code"),
        };
        string.push(byte);
        Ok(2)
    }

    fn unicode_escape(&self, string: &mut Vec<u8>) -> Option<usize> {
        let unit = |at: usize| {
            let digits = self.text.get(at..at + 4)?;
            digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
        };
        let first = unit(self.at + 2)?;
        let (code, len) = match first {
            0xD800..0xDC00 => {
                let second =
                    (self.text.get(self.at + 6..self.at + 8)? == b"\\u").then(|| unit(self.at + 8))??;
                let low = second.checked_sub(0xDC00).filter(|&low| low < 0x400)?;
                (0x1_0000 + ((first - 0xD800) << 10) + low, 12)
            }
            _ => (first, 6),
        };
        let letter = char::from_u32(code)?;
        string.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        Some(len)
    }
}

/// Whether a text that may be a number has a form that JSON does not allow: hexadecimal, a leading zero, NaN, infinity.
fn is_invalid_number(text: &[u8]) -> bool {
    let (first, rest) = (text.first().copied().unwrap_or(0), text);
    if first == b'+' {
        return true;
    }
    let digits = if first == b'-' { &rest[1..] } else { rest };
    match digits.first() {
        Some(b'0') => matches!(digits.get(1), Some(b'x' | b'X' | b'0'..=b'9')),
        Some(b'1'..=b'9') => false,
        _ => {
            let begins_with =
                |word: &[u8]| digits.get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
            begins_with(b"inf") || begins_with(b"nan")
        }
    }
}

/// Parses the number at the beginning of a text like C's `strtod`; returns the number and the length of its text.
fn parse_number(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let is_negative = text.first() == Some(&b'-');
    let body = &text[sign..];
    let signed = |number: f64| if is_negative { -number } else { number };
    let begins_with =
        |word: &[u8]| body.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    if begins_with(b"infinity") {
        return Some((signed(f64::INFINITY), sign + 8));
    } else if begins_with(b"inf") {
        return Some((signed(f64::INFINITY), sign + 3));
    } else if begins_with(b"nan") {
        return Some((signed(f64::NAN), sign + 3));
    } else if begins_with(b"0x") {
        return Some(
            parse_hexadecimal(&body[2..])
                .map_or((signed(0.0), sign + 1), |(number, len)| (signed(number), sign + 2 + len)),
        );
    }
    let digits = |from: usize| body[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let mut len = whole;
    if body.get(len) == Some(&b'.') {
        let fraction = digits(len + 1);
        if whole + fraction == 0 {
            return None;
        }
        len += 1 + fraction;
    } else if whole == 0 {
        return None;
    }
    if matches!(body.get(len), Some(b'e' | b'E')) {
        let exponent_sign = usize::from(matches!(body.get(len + 1), Some(b'-' | b'+')));
        let exponent = digits(len + 1 + exponent_sign);
        if exponent > 0 {
            len += 1 + exponent_sign + exponent;
        }
    }
    let number = std::str::from_utf8(&body[..len]).ok()?.parse().ok()?;
    Some((signed(number), sign + len))
}

/// Parses the number after `0x`, with an optional fraction and power of two; returns `None` if it has no digit.
fn parse_hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    let (mut number, mut len, mut scale, mut digits, mut in_fraction) = (0.0, 0, 0, 0, false);
    loop {
        match text.get(len) {
            Some(b'.') if !in_fraction => in_fraction = true,
            Some(&byte) => {
                let Some(digit) = char::from(byte).to_digit(16) else { break };
                number = number * 16.0 + f64::from(digit);
                scale -= if in_fraction { 4 } else { 0 };
                digits += 1;
            }
            None => break,
        }
        len += 1;
    }
    if digits == 0 {
        return None;
    }
    if matches!(text.get(len), Some(b'p' | b'P')) {
        let sign = usize::from(matches!(text.get(len + 1), Some(b'-' | b'+')));
        let exponent = text[len + 1 + sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if let Some(power) = std::str::from_utf8(&text[len + 1..len + 1 + sign + exponent])
            .ok()
            .and_then(|power| power.parse::<i32>().ok())
        {
            scale += power.clamp(-10_000, 10_000);
            len += 1 + sign + exponent;
        }
    }
    Some((number * 2f64.powi(scale), len))
}
