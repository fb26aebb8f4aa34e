//! Splits a command line as redis-cli does.

/// Returns the words of a line: `"..."` may contain the escapes of redis-cli, `'...'` no escapes. A quote inside a word
/// that does not begin with a quote is an ordinary character, so JSON needs no quoting.
pub(crate) fn words_of(line: &str) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut bytes = line.bytes().peekable();
    while let Some(&byte) = bytes.peek() {
        if byte == b' ' {
            bytes.next();
            continue;
        }
        let quote = bytes.next_if(|byte| matches!(byte, b'"' | b'\''));
        let mut word = Vec::new();
        while let Some(byte) = bytes.next_if(|&byte| quote.is_some() || byte != b' ') {
            match byte {
                _ if quote == Some(byte) => break,
                b'\\' if quote == Some(b'"') => word.push(unescape(&mut bytes)),
                _ => word.push(byte),
            }
        }
        words.push(word);
    }
    words
}

fn unescape(bytes: &mut impl Iterator<Item = u8>) -> u8 {
    let mut next = || bytes.next().expect("an escape is complete");
    match next() {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'x' => {
            let mut digit = || char::from(next()).to_digit(16).expect("two hexadecimal digits follow \\x");
            (digit() * 16 + digit()) as u8
        }
        other => other,
    }
}
