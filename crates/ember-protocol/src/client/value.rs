//! A reply as a value, and the function that reads it from a stream.

use std::io::{self, BufRead, Read};

/// The maximum nesting depth of a reply; COMMAND DOCS, the deepest reply of Redis, needs 9.
const REPLY_DEPTH_MAX: usize = 64;

/// The maximum length of a line outside a bulk string. Errors echo at most 128 bytes of a request, so this is ample.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// The maximum length of a bulk string: twice Redis's default `proto-max-bulk-len`.
const BULK_BYTES_MAX: usize = 1 << 30;

/// A parsed reply of RESP2 or RESP3. Numbers that are not 64-bit integers are stored as text, so no precision is lost.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// `+`: a status such as `OK`.
    Simple(Vec<u8>),
    /// `-` or `!`: an error, code included.
    Error(Vec<u8>),
    /// `:`: a signed 64-bit integer.
    Integer(i64),
    /// `$`: a string of any bytes.
    Bulk(Vec<u8>),
    /// `_` of RESP3, `$-1` and `*-1` of RESP2.
    Null,
    /// `*`: an array.
    Array(Vec<Value>),
    /// `%`: pairs, in the order of the reply.
    Map(Vec<(Value, Value)>),
    /// `~`: a set, in the order of the reply.
    Set(Vec<Value>),
    /// `>`: a push message.
    Push(Vec<Value>),
    /// `,`: the text of a double.
    Double(Vec<u8>),
    /// `#`: a boolean.
    Boolean(bool),
    /// `=`: a verbatim string: three-letter format, text.
    Verbatim(Vec<u8>, Vec<u8>),
    /// `(`: the digits of a big number.
    BigNumber(Vec<u8>),
    /// `|`: attributes and the reply to which they belong.
    Attribute(Vec<(Value, Value)>, Box<Value>),
}

impl Value {
    /// Returns the bytes of a status, error, bulk or verbatim string.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Simple(text) | Value::Error(text) | Value::Bulk(text) | Value::Verbatim(_, text) => {
                Some(text)
            }
            _ => None,
        }
    }

    /// Returns [`Value::bytes`] as text, with invalid sequences replaced; empty for other values.
    pub fn text(&self) -> String {
        self.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    /// Returns the number of an integer reply.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the elements of an array, set or push.
    pub fn elements(&self) -> Option<&[Value]> {
        match self {
            Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => Some(elements),
            _ => None,
        }
    }

    /// Pairs of a map, or of a flat array of even length (the RESP2 form of a map).
    pub fn pairs(&self) -> Option<Vec<(Value, Value)>> {
        match self {
            Value::Map(pairs) => Some(pairs.clone()),
            Value::Array(elements) if elements.len().is_multiple_of(2) => {
                Some(elements.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
            }
            _ => None,
        }
    }

    /// Returns the value of `key` in a map (or its flat RESP2 form).
    pub fn get(&self, key: &str) -> Option<Value> {
        self.pairs()?
            .into_iter()
            .find(|(name, _)| name.bytes() == Some(key.as_bytes()))
            .map(|(_, value)| value)
    }

    /// Whether this is an error reply.
    pub fn is_error(&self) -> bool {
        matches!(self, Value::Error(_))
    }

    /// Returns the status that most writes return.
    pub fn ok() -> Value {
        Value::Simple(b"OK".to_vec())
    }
}

impl From<&str> for Value {
    /// Converts a text to a bulk string.
    fn from(text: &str) -> Self {
        Value::Bulk(text.as_bytes().to_vec())
    }
}

impl From<i64> for Value {
    /// Converts a number to an integer reply.
    fn from(number: i64) -> Self {
        Value::Integer(number)
    }
}

/// Reads one reply and no byte after it. Linear in the length of the reply; buffers grow only as bytes are received.
///
/// # Errors
/// Returns `UnexpectedEof` if the stream ends before or inside the reply, `InvalidData` if the bytes are not RESP, and
/// the errors of the stream itself (a timeout is `WouldBlock` or `TimedOut`).
pub fn read_value(stream: &mut impl BufRead) -> io::Result<Value> {
    read_nested(stream, 0)
}

fn read_nested(stream: &mut impl BufRead, depth: usize) -> io::Result<Value> {
    if depth > REPLY_DEPTH_MAX {
        return Err(invalid("reply nested too deeply"));
    }
    let line = read_line(stream)?;
    let (kind, rest) = line.split_first().ok_or_else(|| invalid("empty reply line"))?;
    let elements = |stream: &mut _, count: usize| -> io::Result<Vec<Value>> {
        // Not preallocated, because the count is untrusted.
        let mut elements = Vec::new();
        for _ in 0..count {
            elements.push(read_nested(stream, depth + 1)?);
        }
        Ok(elements)
    };
    match kind {
        b'+' => Ok(Value::Simple(rest.to_vec())),
        b'-' => Ok(Value::Error(rest.to_vec())),
        b':' => Ok(Value::Integer(number(rest)?)),
        b',' => Ok(Value::Double(rest.to_vec())),
        b'(' => Ok(Value::BigNumber(rest.to_vec())),
        b'_' => Ok(Value::Null),
        b'#' => match rest {
            b"t" => Ok(Value::Boolean(true)),
            b"f" => Ok(Value::Boolean(false)),
            _ => Err(invalid("boolean is neither t nor f")),
        },
        b'$' | b'!' | b'=' => match number(rest)? {
            -1 => Ok(Value::Null),
            length => {
                let text = read_bulk(stream, length)?;
                match kind {
                    b'$' => Ok(Value::Bulk(text)),
                    b'!' => Ok(Value::Error(text)),
                    _ if text.len() >= 4 && text[3] == b':' => {
                        Ok(Value::Verbatim(text[..3].to_vec(), text[4..].to_vec()))
                    }
                    _ => Err(invalid("verbatim string without a format")),
                }
            }
        },
        b'*' | b'~' | b'>' => match number(rest)? {
            -1 => Ok(Value::Null),
            count => {
                let elements = elements(stream, length(count)?)?;
                Ok(match kind {
                    b'*' => Value::Array(elements),
                    b'~' => Value::Set(elements),
                    _ => Value::Push(elements),
                })
            }
        },
        b'%' | b'|' => {
            let count = length(number(rest)?)?.checked_mul(2).ok_or_else(|| invalid("map too long"))?;
            let mut flat = elements(stream, count)?.into_iter();
            let mut pairs = Vec::new();
            while let (Some(key), Some(value)) = (flat.next(), flat.next()) {
                pairs.push((key, value));
            }
            if *kind == b'%' {
                return Ok(Value::Map(pairs));
            }
            Ok(Value::Attribute(pairs, Box::new(read_nested(stream, depth + 1)?)))
        }
        other => Err(invalid(&format!("unknown reply type byte {other:#04x}"))),
    }
}

/// Reads one line and returns it without its CRLF.
fn read_line(stream: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    Read::take(&mut *stream, LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    match line.as_slice() {
        [.., b'\r', b'\n'] => {
            line.truncate(line.len() - 2);
            Ok(line)
        }
        _ if line.len() as u64 == LINE_BYTES_MAX => Err(invalid("reply line too long")),
        [.., b'\n'] => Err(invalid("reply line ends in a bare line feed")),
        _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "connection closed before the end of a reply")),
    }
}

fn read_bulk(stream: &mut impl BufRead, count: i64) -> io::Result<Vec<u8>> {
    let length = length(count)?;
    if length > BULK_BYTES_MAX {
        return Err(invalid("bulk string too long"));
    }
    let mut text = Vec::new();
    Read::take(&mut *stream, length as u64 + 2).read_to_end(&mut text)?;
    match text.as_slice() {
        [.., b'\r', b'\n'] if text.len() == length + 2 => {
            text.truncate(length);
            Ok(text)
        }
        _ if text.len() == length + 2 => Err(invalid("bulk string without its line end")),
        _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "connection closed inside a bulk string")),
    }
}

fn number(text: &[u8]) -> io::Result<i64> {
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| invalid(&format!("not a number: {:?}", String::from_utf8_lossy(text))))
}

fn length(count: i64) -> io::Result<usize> {
    usize::try_from(count).map_err(|_| invalid("negative length"))
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> io::Result<Value> {
        let mut stream = bytes;
        let value = read_value(&mut stream)?;
        assert!(stream.is_empty(), "all is read");
        Ok(value)
    }

    #[test]
    fn every_type_of_resp2_and_resp3_is_read() {
        assert_eq!(parse(b"+OK\r\n").unwrap(), Value::ok());
        assert_eq!(parse(b"-ERR no\r\n").unwrap(), Value::Error(b"ERR no".to_vec()));
        assert_eq!(parse(b":-7\r\n").unwrap(), Value::Integer(-7));
        assert_eq!(parse(b"$4\r\na\r\nb\r\n").unwrap(), Value::Bulk(b"a\r\nb".to_vec()));
        assert_eq!(parse(b"$-1\r\n").unwrap(), Value::Null);
        assert_eq!(parse(b"*-1\r\n").unwrap(), Value::Null);
        assert_eq!(parse(b"_\r\n").unwrap(), Value::Null);
        assert_eq!(
            parse(b"*2\r\n:1\r\n*0\r\n").unwrap(),
            Value::Array(vec![Value::Integer(1), Value::Array(vec![])])
        );
        assert_eq!(parse(b"%1\r\n+a\r\n#t\r\n").unwrap().get("a"), Some(Value::Boolean(true)));
        assert_eq!(parse(b",3.5\r\n").unwrap(), Value::Double(b"3.5".to_vec()));
        assert_eq!(parse(b"=7\r\ntxt:abc\r\n").unwrap(), Value::Verbatim(b"txt".to_vec(), b"abc".to_vec()));
        assert_eq!(parse(b"!5\r\nERR x\r\n").unwrap(), Value::Error(b"ERR x".to_vec()));
        assert_eq!(parse(b">1\r\n+x\r\n").unwrap().elements().unwrap().len(), 1);
        assert_eq!(parse(b"(123\r\n").unwrap(), Value::BigNumber(b"123".to_vec()));
        let attribute = parse(b"|1\r\n+k\r\n+v\r\n:1\r\n").unwrap();
        assert!(
            matches!(attribute, Value::Attribute(pairs, value) if pairs.len() == 1 && *value == Value::Integer(1))
        );
    }

    #[test]
    fn a_cut_or_damaged_reply_is_an_error_and_not_a_panic() {
        let whole = b"*3\r\n$3\r\nabc\r\n%1\r\n+a\r\n:1\r\n~1\r\n_\r\n";
        for end in 0..whole.len() {
            assert_eq!(
                parse(&whole[..end]).unwrap_err().kind(),
                io::ErrorKind::UnexpectedEof,
                "cut at {end}"
            );
        }
        for bad in
            [&b"?1\r\n"[..], b":x\r\n", b"$-2\r\n", b"*-3\r\n", b"#x\r\n", b"\r\n", b"+a\n", b"=2\r\nab\r\n"]
        {
            assert_eq!(parse(bad).unwrap_err().kind(), io::ErrorKind::InvalidData, "{bad:?}");
        }
        assert_eq!(parse(&b"*1\r\n".repeat(1000)).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
