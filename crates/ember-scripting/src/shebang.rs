//! The first line of a script or library: `#!lua name=value …`, which declares the engine and options.

use emberkv_core::error::CommandError;

/// A shebang line, split into its words, and the text after it.
pub struct Shebang<'t> {
    /// The engine, without `#!`.
    pub engine: Vec<u8>,
    /// The words after the engine.
    pub options: Vec<Vec<u8>>,
    /// The text after the first line. It begins with the line break, so that line numbers are unchanged.
    pub body: &'t [u8],
}

impl<'t> Shebang<'t> {
    /// Parses the first line of a text that begins with `#!`; `None` if the line or a quote is not terminated.
    pub fn parse(text: &'t [u8]) -> Option<Shebang<'t>> {
        let end = memchr::memchr(b'\n', text)?;
        let (line, body) = text.split_at(end);
        let mut words = words(&line[2..])?.into_iter();
        let has_engine = line.get(2).is_some_and(|&byte| !is_blank(byte));
        let engine = if has_engine { words.next()? } else { Vec::new() };
        Some(Shebang { engine, options: words.collect(), body })
    }
}

/// Splits a line into words like redis-cli splits its input: a quoted part may begin anywhere in a word. Returns `None`
/// if a quote is not terminated, or if another character follows it directly.
fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut words, mut at) = (Vec::new(), 0);
    loop {
        while line.get(at).is_some_and(|&byte| is_blank(byte)) {
            at += 1;
        }
        if at == line.len() {
            return Some(words);
        }
        let mut word = Vec::new();
        while let Some(&byte) = line.get(at).filter(|&&byte| !is_blank(byte)) {
            at += 1;
            match byte {
                b'"' | b'\'' => {
                    at += quoted(&line[at..], byte, &mut word)?;
                    if line.get(at).is_some_and(|&byte| !is_blank(byte)) {
                        return None;
                    }
                }
                _ => word.push(byte),
            }
        }
        words.push(word);
    }
}

/// Appends the quoted text at the beginning of `text`, after the opening `quote`. Returns the length up to and
/// including the closing quote.
fn quoted(text: &[u8], quote: u8, word: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        let byte = *text.get(at)?;
        at += 1;
        match byte {
            _ if byte == quote => return Some(at),
            b'\\' if quote == b'"' => {
                let escaped = *text.get(at)?;
                let digits = text.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
                let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                at += 1;
                word.push(match (escaped, code) {
                    (b'x', Some(code)) => {
                        at += 2;
                        code
                    }
                    (b'n', _) => b'\n',
                    (b'r', _) => b'\r',
                    (b't', _) => b'\t',
                    (b'b', _) => 8,
                    (b'a', _) => 7,
                    (other, _) => other,
                });
            }
            b'\\' if text.get(at) == Some(&b'\'') => {
                word.push(b'\'');
                at += 1;
            }
            _ => word.push(byte),
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 11 | 12)
}

bitflags::bitflags! {
    /// The declared flags of a script.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ScriptFlags: u8 {
        /// The script never writes.
        const NO_WRITES = 1;
        /// The script may run above `maxmemory`.
        const ALLOW_OOM = 1 << 1;
        /// The script may run on a replica with stale data.
        const ALLOW_STALE = 1 << 2;
        /// The script must not run on a cluster.
        const NO_CLUSTER = 1 << 3;
        /// The script's keys may be in different slots.
        const ALLOW_CROSS_SLOT_KEYS = 1 << 4;
        /// The script has no shebang line, so each of its calls is checked separately.
        const UNDECLARED = 1 << 5;
    }
}

impl ScriptFlags {
    /// The flags with their names, in Redis's order.
    pub const NAMES: [(ScriptFlags, &'static str); 5] = [
        (ScriptFlags::NO_WRITES, "no-writes"),
        (ScriptFlags::ALLOW_OOM, "allow-oom"),
        (ScriptFlags::ALLOW_STALE, "allow-stale"),
        (ScriptFlags::NO_CLUSTER, "no-cluster"),
        (ScriptFlags::ALLOW_CROSS_SLOT_KEYS, "allow-cross-slot-keys"),
    ];

    /// Returns the flag of this name.
    pub fn named(name: &[u8]) -> Option<ScriptFlags> {
        Self::NAMES.iter().find(|(_, known)| known.as_bytes() == name).map(|&(flag, _)| flag)
    }
}

/// Returns the flags and the body of a script's text.
///
/// # Errors
/// Returns Redis's message for an invalid first line.
pub fn script_flags(text: &[u8]) -> Result<(ScriptFlags, &[u8]), CommandError> {
    if !text.starts_with(b"#!") {
        return Ok((ScriptFlags::UNDECLARED, text));
    }
    let shebang = Shebang::parse(text).ok_or("ERR Invalid script shebang")?;
    if shebang.engine != b"lua" {
        let engine = [b"#!", &shebang.engine[..]].concat();
        return Err(CommandError::quoting("ERR Unexpected engine in script shebang: ", &engine, ""));
    }
    let mut flags = ScriptFlags::empty();
    for option in shebang.options {
        let Some(names) = option.strip_prefix(b"flags=") else {
            return Err(CommandError::quoting("ERR Unknown lua shebang option: ", &option, ""));
        };
        for name in names.split(|&byte| byte == b',').filter(|_| !names.is_empty()) {
            flags |= ScriptFlags::named(name)
                .ok_or_else(|| CommandError::quoting("ERR Unexpected flag in script shebang: ", name, ""))?;
        }
    }
    Ok((flags, shebang.body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let error = script_flags(text.as_bytes()).unwrap_err();
        String::from_utf8(error.text().into_owned()).unwrap()
    }

    #[test]
    fn flags_are_read_and_the_body_keeps_its_line_numbers() {
        let (flags, body) =
            script_flags(b"#!lua  flags=no-writes,allow-stale flags=allow-oom\nreturn 1").unwrap();
        assert_eq!(flags, ScriptFlags::NO_WRITES | ScriptFlags::ALLOW_STALE | ScriptFlags::ALLOW_OOM);
        assert_eq!(body, b"\nreturn 1");
        let (flags, _) = script_flags(b"#!lua \"flags=no-writes\" flags='allow-oom'\nreturn 1").unwrap();
        assert_eq!(flags, ScriptFlags::NO_WRITES | ScriptFlags::ALLOW_OOM);
        assert_eq!(script_flags(b"return 1").unwrap(), (ScriptFlags::UNDECLARED, &b"return 1"[..]));
        assert_eq!(script_flags(b"#!lua flags=\n").unwrap(), (ScriptFlags::empty(), &b"\n"[..]));
        assert_eq!(script_flags(b"#!lua\n").unwrap(), (ScriptFlags::empty(), &b"\n"[..]));
    }

    #[test]
    fn errors_have_the_text_of_redis() {
        assert_eq!(error("#!lua"), "ERR Invalid script shebang");
        assert_eq!(error("#!lua flags=\"no-writes\n"), "ERR Invalid script shebang");
        assert_eq!(error("#!lua 'flags=no-writes'x\n"), "ERR Invalid script shebang");
        assert_eq!(error("#!luaa\n"), "ERR Unexpected engine in script shebang: #!luaa");
        assert_eq!(error("#!lua name=foo\n"), "ERR Unknown lua shebang option: name=foo");
        assert_eq!(error("#!lua flags=foo\n"), "ERR Unexpected flag in script shebang: foo");
        assert_eq!(error("#!lua flags=no-writes,\n"), "ERR Unexpected flag in script shebang: ");
    }
}
