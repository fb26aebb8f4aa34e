//! A command line as redis-cli reads it.

/// The words of a line, `"..."` with the escapes of redis-cli.
pub(crate) fn words_of(line: &str) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut bytes = line.bytes().peekable();
    while let Some(&byte) = bytes.peek() {
        if byte == b' ' {
            bytes.next();
            continue;
        }
        let quoted = byte == b'"';
        let end = if quoted { b'"' } else { b' ' };
        bytes.next_if(|_| quoted);
        let mut word = Vec::new();
        while let Some(byte) = bytes.next_if(|&byte| quoted || byte != end) {
            match byte {
                b'"' if quoted => break,
                b'\\' if quoted => word.push(unescape(&mut bytes)),
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
