//! Splits a typed line into the words of a command.

use crate::Batch;
use crate::inline;

/// Splits a command line into arguments, like a server does with an inline command: white space separates, `"…"` has
/// escapes (`\n`, `\xff`, …), `'…'` has only `\'`. Returns `None` for an open quote, or text directly after a closing
/// one.
pub fn split_arguments(line: impl AsRef<[u8]>) -> Option<Vec<Vec<u8>>> {
    let line = line.as_ref();
    let mut batch = Batch::new();
    inline::split(line, &mut batch.spans, &mut batch.buffers).ok()?;
    batch.ends.push(batch.spans.len());
    Some(batch.command(0, line).iter().map(<[u8]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::encode_command;

    #[test]
    fn a_line_becomes_words_and_a_request() {
        let words = split_arguments("SET  'it\\'s' \"a\\x00\" \"\"").unwrap();
        assert_eq!(words, [&b"SET"[..], b"it's", b"a\0", b""]);
        let mut request = Vec::new();
        encode_command(&words, &mut request);
        assert_eq!(request, b"*4\r\n$3\r\nSET\r\n$4\r\nit's\r\n$2\r\na\0\r\n$0\r\n\r\n");
        assert_eq!(split_arguments(""), Some(vec![]));
        assert_eq!(split_arguments("\"open"), None);
        assert_eq!(split_arguments("'a'b"), None);
    }
}
