//! Splits Lua source into tokens like Lua 5.1's lexer; rejects source that is invalid or uses rare syntax.

/// A token of Lua source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// A name or a keyword.
    Word(&'t [u8]),
    /// A number, as written in the source.
    Number(&'t [u8]),
    /// A string; `None` if it contains escapes, so that its value differs from the source text.
    Text(Option<&'t [u8]>),
    /// An operator or punctuation.
    Mark(&'static str),
}

/// All marks; each precedes the marks that are its prefixes.
const MARKS: [&str; 24] = [
    "...", "..", "==", "~=", "<=", ">=", "+", "-", "*", "/", "%", "^", "#", "<", ">", "=", "(", ")", "{",
    "}", "[", "]", ";", ":",
];

/// Returns the tokens of `text`; `None` if there are more than `count_max` tokens, or if the text is not valid.
pub(super) fn tokens(text: &[u8], count_max: usize) -> Option<Vec<Token<'_>>> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next_token()? {
        if tokens.len() == count_max {
            return None;
        }
        tokens.push(token);
    }
    Some(tokens)
}

struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t [u8] {
        &self.text[self.at..]
    }

    /// Consumes bytes as long as `is_such` returns true; returns them.
    fn take_while(&mut self, is_such: impl Fn(u8) -> bool) -> &'t [u8] {
        let rest = self.rest();
        let end = rest.iter().position(|&byte| !is_such(byte)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Returns the next token; `Some(None)` at the end of the text.
    fn next_token(&mut self) -> Option<Option<Token<'t>>> {
        self.skip_blanks()?;
        let rest = self.rest();
        let Some(&first) = rest.first() else { return Some(None) };
        let is_number =
            first.is_ascii_digit() || first == b'.' && rest.get(1).is_some_and(u8::is_ascii_digit);
        let token = match first {
            _ if is_number => Token::Number(self.number()),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Token::Word(self.take_while(is_word_byte)),
            b'"' | b'\'' => Token::Text(self.string(first)?),
            b'[' if matches!(rest.get(1), Some(b'[' | b'=')) => {
                let text = self.long_bracket()?;
                // A line break directly after the opening bracket is not part of the string.
                Token::Text((!text.starts_with(b"\n") && !text.contains(&b'\r')).then_some(text))
            }
            b',' => self.mark(","),
            b'.' if rest.get(1) != Some(&b'.') => self.mark("."),
            _ => {
                let mark = MARKS.iter().find(|mark| rest.starts_with(mark.as_bytes()))?;
                self.mark(mark)
            }
        };
        Some(Some(token))
    }

    fn mark(&mut self, mark: &'static str) -> Token<'t> {
        self.at += mark.len();
        Token::Mark(mark)
    }

    /// Skips white space and comments.
    fn skip_blanks(&mut self) -> Option<()> {
        loop {
            self.take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 11 | 12));
            if !self.rest().starts_with(b"--") {
                return Some(());
            }
            self.at += 2;
            if self.bracket_level().is_some() {
                self.long_bracket()?;
            } else {
                self.take_while(|byte| byte != b'\n' && byte != b'\r');
            }
        }
    }

    /// Consumes all characters that Lua's lexer treats as part of a number, even if the number is invalid.
    fn number(&mut self) -> &'t [u8] {
        let start = self.at;
        self.take_while(|byte| byte.is_ascii_digit() || byte == b'.');
        if matches!(self.rest().first(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.rest().first(), Some(b'+' | b'-')) {
                self.at += 1;
            }
        }
        self.take_while(is_word_byte);
        &self.text[start..self.at]
    }

    /// Reads the string that begins at the current position with `quote`.
    fn string(&mut self, quote: u8) -> Option<Option<&'t [u8]>> {
        self.at += 1;
        let start = self.at;
        let mut has_escapes = false;
        loop {
            match *self.rest().first()? {
                b'\\' => {
                    has_escapes = true;
                    self.at += 2;
                    self.text.get(self.at)?;
                }
                b'\n' | b'\r' => return None,
                byte if byte == quote => break,
                _ => self.at += 1,
            }
        }
        let text = &self.text[start..self.at];
        self.at += 1;
        Some((!has_escapes).then_some(text))
    }

    /// Returns the number of `=` in the long bracket at the current position; `None` if there is none.
    fn bracket_level(&self) -> Option<usize> {
        let inner = self.rest().strip_prefix(b"[")?;
        let level = inner.iter().position(|&byte| byte != b'=')?;
        (inner[level] == b'[').then_some(level)
    }

    /// Reads the text between long brackets; the opening bracket begins at the current position.
    fn long_bracket(&mut self) -> Option<&'t [u8]> {
        let level = self.bracket_level()?;
        let close = [&b"]"[..], &vec![b'='; level], b"]"].concat();
        let inner = &self.rest()[level + 2..];
        let end = memchr::memmem::find(inner, &close)?;
        self.at += level + 2 + end + close.len();
        Some(&inner[..end])
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Option<String> {
        let shown = |token: &Token<'_>| match token {
            Token::Word(word) => String::from_utf8_lossy(word).into_owned(),
            Token::Number(number) => format!("#{}", String::from_utf8_lossy(number)),
            Token::Text(None) => "'?'".to_owned(),
            Token::Text(Some(text)) => format!("'{}'", String::from_utf8_lossy(text)),
            Token::Mark(mark) => (*mark).to_owned(),
        };
        let tokens = tokens(text.as_bytes(), 100)?;
        Some(tokens.iter().map(shown).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn tokens_are_split_as_in_lua() {
        for (text, words) in [
            ("a=b.c..d", "a = b . c .. d"),
            ("local x,y=1,.5", "local x , y = #1 , #.5"),
            ("0xe+1 1e+5 3..2", "#0xe + #1 #1e+5 #3..2"),
            ("3and", "#3and"),
            ("'a\\'b' \"c'd\" '\\\\'", "'?' 'c'd' '?'"),
            ("[[a]b]] [==[x]]y]==]", "'a]b' 'x]]y'"),
            ("a[b[1]]", "a [ b [ #1 ] ]"),
            ("--[[ hidden ]] shown -- rest", "shown"),
            ("--[=[ ]] hidden ]=] shown", "shown"),
            ("--[ hidden\rshown", "shown"),
            ("-- [[ hidden\nshown ]]", "shown ] ]"),
            ("a<=b~=c>=d==e", "a <= b ~= c >= d == e"),
        ] {
            assert_eq!(cut(text).as_deref(), Some(words), "{text}");
        }
        for text in ["'open", "'line\nend'", "[[open", "[=x", "--[[open", "a ? b", "caf\u{e9}", "\0", "'\\"] {
            assert_eq!(cut(text), None, "{text}");
        }
        assert_eq!(tokens(b"a b c", 2), None);
    }
}
