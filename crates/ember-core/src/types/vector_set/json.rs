//! One field of a JSON object, read from its text.
//!
//! Nothing is parsed beyond what leads to the field, and what stands behind it is not looked at.

use std::borrow::Cow;

use super::filter::Value;

/// The value of a field of the object that `text` is: one of its first level, or behind dots one of an object in it. `None`
/// if there is none, if it is an object or an array with objects or arrays in it, or if `text` is broken on the way there.
pub(super) fn field<'t>(text: &'t [u8], name: &[u8]) -> Option<Value<'t>> {
    at_path(text, name)?.value(true)
}

/// The text of such a field: of a string what it says, of all else how it is written.
pub fn field_text<'t>(text: &'t [u8], name: &[u8]) -> Option<Cow<'t, [u8]>> {
    let mut reader = at_path(text, name)?;
    if reader.peek()? == b'"' {
        return unescaped(reader.raw_string()?);
    }
    let start = reader.rest;
    reader.skip()?;
    Some(Cow::Borrowed(&start[..start.len() - reader.rest.len()]))
}

/// Before the value of a field.
fn at_path<'t>(text: &'t [u8], path: &[u8]) -> Option<Reader<'t>> {
    let (mut text, mut path) = (text, path);
    loop {
        if let Some(found) = at_key(text, path) {
            return Some(found);
        }
        let dot = path.iter().position(|&byte| byte == b'.')?;
        text = at_key(text, &path[..dot])?.rest;
        path = &path[dot + 1..];
    }
}

/// Before the value of a field of the first level.
fn at_key<'t>(text: &'t [u8], name: &[u8]) -> Option<Reader<'t>> {
    let mut reader = Reader { rest: text };
    reader.take(b'{')?;
    if reader.take(b'}').is_some() {
        return None;
    }
    loop {
        let key = reader.raw_string()?;
        reader.take(b':')?;
        if key == name {
            return Some(reader);
        }
        reader.skip()?;
        reader.take(b',')?;
    }
}

struct Reader<'t> {
    rest: &'t [u8],
}

impl<'t> Reader<'t> {
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    /// Takes this byte, if it is the next one.
    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.rest = &self.rest[1..])
    }

    /// The bytes of a string between its quotes.
    fn raw_string(&mut self) -> Option<&'t [u8]> {
        self.take(b'"')?;
        let mut at = 0;
        loop {
            match self.rest.get(at)? {
                b'"' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        let string = &self.rest[..at];
        self.rest = &self.rest[at + 1..];
        Some(string)
    }

    fn word(&mut self) -> &'t [u8] {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let end = self.rest.iter().position(|byte| !is_part(byte)).unwrap_or(self.rest.len());
        let word;
        (word, self.rest) = self.rest.split_at(end);
        word
    }

    /// A value; an array only where one is allowed.
    fn value(&mut self, may_be_array: bool) -> Option<Value<'t>> {
        match self.peek()? {
            b'"' => Some(Value::String(unescaped(self.raw_string()?)?)),
            b'[' if may_be_array => {
                self.take(b'[')?;
                let mut elements = Vec::new();
                if self.take(b']').is_some() {
                    return Some(Value::Tuple(elements.into()));
                }
                loop {
                    elements.push(match self.value(false)? {
                        Value::Tuple(_) => return None,
                        element => element,
                    });
                    if self.take(b']').is_some() {
                        return Some(Value::Tuple(elements.into()));
                    }
                    self.take(b',')?;
                }
            }
            b't' => (self.word() == b"true").then_some(Value::Number(1.0)),
            b'f' => (self.word() == b"false").then_some(Value::Number(0.0)),
            b'n' => (self.word() == b"null").then_some(Value::Null),
            b'-' | b'0'..=b'9' => std::str::from_utf8(self.word()).ok()?.parse().ok().map(Value::Number),
            _ => None,
        }
    }

    /// Passes over a value.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.peek()? {
                b'"' => _ = self.raw_string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.rest = &self.rest[1..];
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.rest = &self.rest[1..];
                }
                b',' | b':' if depth > 0 => {
                    self.rest = &self.rest[1..];
                    continue;
                }
                _ if self.word().is_empty() => return None,
                _ => {}
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

/// A string without its escapes.
fn unescaped(raw: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !raw.contains(&b'\\') {
        return Some(Cow::Borrowed(raw));
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next()? {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            b'b' => bytes.push(8),
            b'f' => bytes.push(12),
            b'u' => {
                let first = hex4(&mut rest)?;
                let code = if (0xD800..0xDC00).contains(&first) {
                    let is_pair = rest.next() == Some(b'\\') && rest.next() == Some(b'u');
                    let second = is_pair.then(|| hex4(&mut rest)).flatten()?.checked_sub(0xDC00)?;
                    0x10000 + ((first - 0xD800) << 10) + second
                } else {
                    first
                };
                bytes.extend(char::from_u32(code)?.encode_utf8(&mut [0; 4]).bytes());
            }
            byte @ (b'"' | b'\\' | b'/') => bytes.push(byte),
            _ => return None,
        }
    }
    Some(Cow::Owned(bytes))
}

fn hex4(bytes: &mut impl Iterator<Item = u8>) -> Option<u32> {
    (0..4).try_fold(0, |code, _| Some(code << 4 | char::from(bytes.next()?).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_first_level_are_found() {
        let text = br#" {"a" : {"year":1, "x":["}",{}]} ,"b":[1,"two"],"year": 1984, "s":"\u00e9\n\"","t":true,"z":null }"#;
        let number = |name: &[u8]| match field(text, name) {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        };
        assert_eq!((number(b"year"), number(b"t"), number(b"x")), (Some(1984.0), Some(1.0), None));
        assert!(matches!(field(text, b"s"), Some(Value::String(text)) if &*text == "é\n\"".as_bytes()));
        assert!(matches!(field(text, b"b"), Some(Value::Tuple(elements)) if elements.len() == 2));
        assert!(matches!(field(text, b"z"), Some(Value::Null)));
        assert!(field(text, b"a").is_none() && field(text, b"missing").is_none());
    }

    #[test]
    fn broken_text_has_no_fields() {
        for text in [
            "",
            "{",
            "[1]",
            "1",
            "{\"a\"}",
            "{\"b\":}",
            "{\"b\":[}",
            "{\"b\":1",
            "{\"b\"\"a\":1}",
            "{b:1}",
            "{\"b\":]}",
        ] {
            assert!(field(text.as_bytes(), b"a").is_none(), "{text}");
        }
        for text in [r#"{"a":[1,[2]]}"#, r#"{"a":"\ud800"}"#, r#"{"a":"\x"}"#, r#"{"a":tru}"#, r#"{"a":1e}"#]
        {
            assert!(field(text.as_bytes(), b"a").is_none(), "{text}");
        }
    }
}
