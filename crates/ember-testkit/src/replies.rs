//! Reads replies as exact bytes, and formats them as text.

use std::io::{self, BufRead, Read};

use ember_protocol::client::{self, Value, read_value};

/// Reads one reply and appends its exact bytes to `raw`.
///
/// # Errors
/// Returns the errors of [`read_value`].
pub fn read_frame(stream: &mut impl BufRead, raw: &mut Vec<u8>) -> io::Result<Value> {
    read_value(&mut Recording { stream, raw })
}

/// Formats a reply as redis-cli does on a terminal, without the final line end; invalid sequences are replaced.
pub fn render(value: &Value) -> String {
    String::from_utf8_lossy(&client::render(value)).into_owned()
}

/// A stream that records the bytes read from it.
struct Recording<'a, S> {
    stream: &'a mut S,
    raw: &'a mut Vec<u8>,
}

impl<S: BufRead> Read for Recording<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        self.raw.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}

impl<S: BufRead> BufRead for Recording<'_, S> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.stream.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        if let Ok(buffer) = self.stream.fill_buf() {
            self.raw.extend_from_slice(&buffer[..count]);
        }
        self.stream.consume(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_bytes_of_a_reply_are_kept() {
        let bytes = b"*2\r\n$3\r\nabc\r\n:1\r\n+OK\r\n";
        let (mut stream, mut raw) = (&bytes[..], Vec::new());
        let value = read_frame(&mut stream, &mut raw).unwrap();
        assert_eq!(render(&value), "1) \"abc\"\n2) (integer) 1");
        assert_eq!((raw.as_slice(), stream), (&bytes[..17], &b"+OK\r\n"[..]));
    }
}
