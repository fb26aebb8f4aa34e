//! Input assistance: Tab completes command names, tokens, parameters and keys, missing arguments are shown after the
//! line, and words are coloured by their kind.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io;

use ember_client::Connection;
use ember_protocol::client::{Value, quote};
use rustyline::completion::Completer;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use super::docs::Docs;
use super::help::topics;
use super::settings::Setting;

/// COUNT of each SCAN; the next constant limits the number of calls per Tab, so that the cost is low for a keyspace of
/// any size.
const SCAN_COUNT: &str = "1000";
const SCANS_MAX: usize = 20;
/// The maximum number of keys that one Tab offers.
const KEYS_MAX: usize = 100;

const NAME_COLOUR: &str = "1;36";
const TOKEN_COLOUR: &str = "35";
const STRING_COLOUR: &str = "32";
const NUMBER_COLOUR: &str = "33";
const HINT_COLOUR: &str = "90";

/// Completes, hints and highlights.
pub(super) struct Assistant {
    docs: Option<Docs>,
    shows_hints: bool,
    highlights: bool,
    /// The connection for queries about keys and parameters while a line is edited.
    connection: RefCell<Option<Connection>>,
}

impl Assistant {
    pub(super) fn new(highlights: bool) -> Assistant {
        Assistant { docs: None, shows_hints: true, highlights, connection: RefCell::new(None) }
    }

    /// Sets the command documentation of the server.
    pub(super) fn set_docs(&mut self, docs: Option<Docs>) {
        self.docs = docs;
    }

    pub(super) fn set(&mut self, setting: Setting) {
        match setting {
            Setting::Hints(is_on) => self.shows_hints = is_on,
            Setting::Highlight(is_on) => self.highlights = is_on,
            // This setting applies to replies, not to the input line.
            Setting::Indent(_) => {}
        }
    }

    /// Lends a connection to the assistant until [`Assistant::give_back`].
    pub(super) fn lend(&mut self, connection: Option<Connection>) {
        *self.connection.get_mut() = connection;
    }

    /// Returns the borrowed connection, unless it is broken.
    pub(super) fn give_back(&mut self) -> Option<Connection> {
        self.connection.get_mut().take()
    }

    /// Sends a command and returns its reply. A broken connection is dropped.
    fn ask(&self, command: &[&[u8]]) -> Option<Value> {
        let mut borrowed = self.connection.borrow_mut();
        let connection = borrowed.as_mut()?;
        let answer = ask(connection, command);
        if answer.is_err() {
            *borrowed = None;
        }
        answer.ok()
    }

    /// Returns parameters whose names begin with `begin`.
    fn parameters(&self, begin: &str) -> Vec<String> {
        let pattern = [escape_pattern(begin), "*".to_owned()].concat();
        let answer = self.ask(&[b"CONFIG", b"GET", pattern.as_bytes()]);
        let pairs = answer.as_ref().and_then(Value::pairs).unwrap_or_default();
        let mut names: Vec<String> = pairs.into_iter().map(|(name, _)| name.text()).collect();
        names.sort();
        names
    }

    /// Returns keys that begin with `begin`, quoted for input.
    fn keys(&self, begin: &str) -> Vec<String> {
        let pattern = [escape_pattern(begin), "*".to_owned()].concat();
        let (mut cursor, mut keys) = (b"0".to_vec(), Vec::new());
        for _ in 0..SCANS_MAX {
            let command =
                [b"SCAN", cursor.as_slice(), b"MATCH", pattern.as_bytes(), b"COUNT", SCAN_COUNT.as_bytes()];
            let answer = self.ask(&command);
            let Some([next, found]) = answer.as_ref().and_then(Value::elements) else { break };
            keys.extend(found.elements().unwrap_or_default().iter().filter_map(Value::bytes).map(typed));
            cursor = next.bytes().unwrap_or(b"0").to_vec();
            if cursor == b"0" || keys.len() >= KEYS_MAX {
                break;
            }
        }
        keys.sort();
        keys.dedup();
        keys.truncate(KEYS_MAX);
        keys
    }

    /// Returns completions for the last word of a line, which begins with `begin`, given the words before it.
    fn words(&self, before: &[String], begin: &str) -> Vec<String> {
        let Some((command, count)) = self.docs.as_ref().and_then(|docs| docs.find(before)) else {
            return Vec::new();
        };
        let after = &before[count..];
        match command.name.as_str() {
            "CONFIG GET" => return self.parameters(begin),
            "CONFIG SET" if after.len().is_multiple_of(2) => return self.parameters(begin),
            _ => {}
        }
        let is_small = begin.chars().any(char::is_lowercase);
        let tokens = command.tokens_after(after).into_iter();
        let tokens = tokens.filter(|token| starts_with(token, begin) && !begin.is_empty());
        let mut found: Vec<String> =
            tokens.map(|token| if is_small { token.to_ascii_lowercase() } else { token }).collect();
        if command.expects_key(after) {
            found.extend(self.keys(begin));
        }
        found
    }
}

fn ask(connection: &mut Connection, command: &[&[u8]]) -> io::Result<Value> {
    connection.send(command)?;
    loop {
        match connection.receive()? {
            // Push messages cannot be shown while a line is edited, so they are dropped.
            Value::Push(_) => {}
            answer => return Ok(answer),
        }
    }
}

fn starts_with(text: &str, begin: &str) -> bool {
    text.get(..begin.len()).is_some_and(|start| start.eq_ignore_ascii_case(begin))
}

/// Escapes a pattern so that it matches only this text.
fn escape_pattern(text: &str) -> String {
    let escaped = text.chars().map(|letter| match letter {
        '*' | '?' | '[' | ']' | '\\' => format!("\\{letter}"),
        other => other.to_string(),
    });
    escaped.collect()
}

/// Formats a key for input: quoted if necessary.
fn typed(key: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    match std::str::from_utf8(key) {
        Ok(text) if !text.is_empty() && key.iter().all(is_plain) => text.to_owned(),
        _ => quote(key),
    }
}

/// The offset of the command in the line, after an optional repeat count.
fn command_start(line: &str) -> usize {
    let trimmed = line.trim_start();
    let start = line.len() - trimmed.len();
    match trimmed.split_once(' ') {
        Some((count, rest)) if count.parse::<i64>().is_ok() => {
            line.len() - rest.len() + (rest.len() - rest.trim_start().len())
        }
        _ => start,
    }
}

impl Helper for Assistant {}
impl Validator for Assistant {}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let Some(docs) = &self.docs else { return Ok((0, Vec::new())) };
        let typed = &line[..position];
        if typed.get(..5).is_some_and(|begin| begin.eq_ignore_ascii_case("help ")) {
            return Ok((5, topics(docs, typed[5..].trim_start())));
        }
        let start = command_start(typed);
        let upper = typed[start..].to_ascii_uppercase();
        let names = docs.commands.iter().filter(|command| command.is_offered(&upper));
        // The completion uses the letter case that the user types.
        let is_small = upper != typed[start..] && !typed[start..].chars().any(char::is_uppercase);
        let names: Vec<String> = names
            .map(|command| match is_small {
                true => command.name.to_ascii_lowercase(),
                false => command.name.clone(),
            })
            .collect();
        if !names.is_empty() {
            return Ok((start, names));
        }
        let last = typed.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let before: Vec<String> =
            typed[start..last.max(start)].split_whitespace().map(str::to_owned).collect();
        // Inside a quoted string, a blank does not end a word.
        if typed[start..].contains(['"', '\'']) {
            return Ok((last, Vec::new()));
        }
        Ok((last, self.words(&before, &typed[last..])))
    }
}

impl Hinter for Assistant {
    type Hint = String;

    fn hint(&self, line: &str, position: usize, _: &Context<'_>) -> Option<String> {
        if !self.shows_hints || position < line.len() {
            return None;
        }
        let words: Vec<String> = line[command_start(line)..].split_whitespace().map(str::to_owned).collect();
        let (command, count) = self.docs.as_ref()?.find(&words)?;
        let rest = command.rest_after(&words[count..]);
        let gap = if line.ends_with(' ') { "" } else { " " };
        (!rest.is_empty()).then(|| format!("{gap}{rest}"))
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        match &self.docs {
            Some(docs) if self.highlights => Cow::Owned(painted(docs, line)),
            _ => Cow::Borrowed(line),
        }
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        self.highlights && self.docs.is_some()
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[{HINT_COLOUR}m{hint}\x1b[0m"))
    }
}

/// Adds colours to the words of a line.
fn painted(docs: &Docs, line: &str) -> String {
    let start = command_start(line);
    let words: Vec<String> = line[start..].split_whitespace().map(str::to_owned).collect();
    let found = docs.find(&words);
    let mut text = line[..start].to_owned();
    for (number, (blanks, word)) in pieces(&line[start..]).into_iter().enumerate() {
        text += blanks;
        let colour = match &found {
            Some((_, count)) if number < *count => Some(NAME_COLOUR),
            _ if word.starts_with(['"', '\'']) => Some(STRING_COLOUR),
            _ if word.parse::<f64>().is_ok() => Some(NUMBER_COLOUR),
            Some((command, _)) if command.has_token(word) => Some(TOKEN_COLOUR),
            _ => None,
        };
        match colour {
            Some(colour) => text += &format!("\x1b[{colour}m{word}\x1b[0m"),
            None => text += word,
        }
    }
    text
}

/// Splits a line into words, each with the blanks before it; a quoted string is one word. The pieces cover the whole
/// line.
fn pieces(line: &str) -> Vec<(&str, &str)> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let word_at = rest.len() - rest.trim_start().len();
        let (blanks, word_and_rest) = rest.split_at(word_at);
        let mut letters = word_and_rest.char_indices();
        let (mut quote, mut end) = (None, word_and_rest.len());
        while let Some((at, letter)) = letters.next() {
            match quote {
                Some('"') if letter == '\\' => _ = letters.next(),
                Some(open) if open == letter => quote = None,
                None if matches!(letter, '"' | '\'') => quote = Some(letter),
                None if letter.is_whitespace() => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        pieces.push((blanks, &word_and_rest[..end]));
        rest = &word_and_rest[end..];
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitting_a_line_into_words_loses_no_text() {
        for (line, words) in [
            ("set k  \"a b\" ", vec!["set", "k", "\"a b\"", ""]),
            ("get \"open \\\" quote", vec!["get", "\"open \\\" quote"]),
            ("  ", vec![""]),
            ("é 'x y'z", vec!["é", "'x y'z"]),
        ] {
            let pieces = pieces(line);
            assert_eq!(pieces.iter().map(|(_, word)| *word).collect::<Vec<_>>(), words, "{line:?}");
            assert_eq!(
                pieces.iter().map(|(blanks, word)| format!("{blanks}{word}")).collect::<String>(),
                line
            );
        }
    }

    #[test]
    fn a_repeat_count_is_not_part_of_the_command() {
        for (line, start) in
            [("get x", 0), ("  get", 2), ("5 get x", 2), ("5  get", 3), ("5", 0), ("-1 get", 3)]
        {
            assert_eq!(command_start(line), start, "{line:?}");
        }
    }

    #[test]
    fn keys_are_completed_as_they_are_typed() {
        assert_eq!(typed(b"user:1"), "user:1");
        assert_eq!(typed(b"two words"), "\"two words\"");
        assert_eq!(typed(b"\xff"), "\"\\xff\"");
        assert_eq!(escape_pattern("a*[b]"), "a\\*\\[b\\]");
    }
}
