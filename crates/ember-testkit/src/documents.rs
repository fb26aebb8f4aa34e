//! Fenced blocks of Markdown documents, and the sessions in these blocks, which tests run against a server.
//!
//! A ` ```session ` block shows what redis-cli prints, with each command after the prompt:
//!
//! ```text
//! 127.0.0.1:6379> SET hello world
//! OK
//! 127.0.0.1:6379> TTL temp
//! (integer) ~59
//! ```
//!
//! The word `session` may be followed by the server's arguments: ` ```session --store btree `.
//!
//! A number after `~` matches any number that differs by at most 5 % (and at least 1); `...` alone on a line ends the
//! comparison.

use ember_protocol::client::split_arguments;

use crate::client::RawClient;
use crate::replies::render;

/// A fenced block of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The word after the opening fence; empty if there is none.
    pub language: String,
    /// The words after the language.
    pub arguments: Vec<String>,
    /// Line number of the first line inside, from 1.
    pub line: usize,
    /// The text between the fences.
    pub text: String,
}

/// One command of a session and its documented output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Line number of the command in the document, from 1.
    pub line: usize,
    /// The command as typed.
    pub command: String,
    /// The lines below the command, joined by line ends.
    pub expected: String,
}

/// Returns all blocks between lines of three backticks, in order. A block that is never closed ends with the document.
pub fn code_blocks(document: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in document.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(words)) => {
                let words = split_arguments(words).unwrap_or_default();
                let mut words = words.iter().map(|word| String::from_utf8_lossy(word).into_owned());
                open = Some(Block {
                    language: words.next().unwrap_or_default(),
                    arguments: words.collect(),
                    line: index + 2,
                    text: String::new(),
                });
            }
            (None, None) => {}
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
        }
    }
    blocks.extend(open);
    blocks
}

/// Returns the commands of a `session` block with their outputs.
pub fn session_exchanges(block: &Block) -> Vec<Exchange> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    for (index, line) in block.text.lines().enumerate() {
        if let Some(command) = prompt(line) {
            let command = command.to_owned();
            exchanges.push(Exchange { line: block.line + index, command, expected: String::new() });
        } else if let Some(exchange) = exchanges.last_mut() {
            if !exchange.expected.is_empty() {
                exchange.expected.push('\n');
            }
            exchange.expected.push_str(line);
        }
    }
    exchanges
}

/// Returns the text after `127.0.0.1:6379> ` or, in another database, `127.0.0.1:6379[3]> `.
fn prompt(line: &str) -> Option<&str> {
    let (address, command) = line.split_once("> ")?;
    let address = address.split('[').next().unwrap_or(address);
    let port = address.strip_prefix("127.0.0.1:")?;
    port.bytes().all(|byte| byte.is_ascii_digit()).then_some(command)
}

/// Runs the commands of a session and compares the output. Returns one message for each difference.
pub fn run_session(client: &mut RawClient, exchanges: &[Exchange]) -> Vec<String> {
    let mut differences = Vec::new();
    for Exchange { line, command, expected } in exchanges {
        let Some(arguments) = split_arguments(command).filter(|arguments| !arguments.is_empty()) else {
            differences.push(format!("line {line}: not a command line: {command}"));
            continue;
        };
        let printed = render(&client.command(&arguments));
        if !matches(expected, &printed) {
            differences
                .push(format!("line {line}: {command}\n  document:\n{expected}\n  server:\n{printed}"));
        }
    }
    differences
}

fn matches(expected: &str, printed: &str) -> bool {
    let mut printed_lines = printed.lines();
    for line in expected.lines() {
        if line.trim() == "..." {
            return true;
        }
        if !printed_lines.next().is_some_and(|printed| line_matches(line, printed)) {
            return false;
        }
    }
    printed_lines.next().is_none()
}

fn line_matches(expected: &str, printed: &str) -> bool {
    let Some((before, about)) = expected.split_once("(integer) ~") else {
        return expected.trim_end() == printed.trim_end();
    };
    let number = printed.strip_prefix(before).and_then(|rest| rest.strip_prefix("(integer) "));
    match (about.trim().parse::<i64>(), number.map(str::parse::<i64>)) {
        (Ok(about), Some(Ok(number))) => (about - number).abs() <= (about.abs() / 20).max(1),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "text\n```session\n127.0.0.1:6379> GET a\n\"1\"\n\
                            127.0.0.1:6379[2]> KEYS *\n1) \"x\"\n2) \"y\"\n\
                            ```\n```sh\nmake test\n```\n```session --store btree\n```\n";

    #[test]
    fn blocks_and_exchanges_have_line_numbers() {
        let blocks = code_blocks(DOCUMENT);
        assert_eq!(blocks.len(), 3);
        assert_eq!(
            (blocks[2].language.as_str(), blocks[2].arguments.join(" ")),
            ("session", "--store btree".into())
        );
        assert_eq!((blocks[0].language.as_str(), blocks[0].line), ("session", 3));
        assert_eq!((blocks[1].language.as_str(), blocks[1].text.as_str()), ("sh", "make test\n"));
        let exchanges = session_exchanges(&blocks[0]);
        assert_eq!(exchanges[0], Exchange { line: 3, command: "GET a".into(), expected: "\"1\"".into() });
        assert_eq!(
            exchanges[1],
            Exchange { line: 5, command: "KEYS *".into(), expected: "1) \"x\"\n2) \"y\"".into() }
        );
    }

    #[test]
    fn only_approximate_numbers_and_dots_match_other_text() {
        assert!(matches("(integer) ~60", "(integer) 58"));
        assert!(!matches("(integer) ~60", "(integer) 50"));
        assert!(!matches("(integer) ~60", "\"60\""));
        assert!(matches("1) \"a\"\n...", "1) \"a\"\n2) \"b\""));
        assert!(!matches("OK", "OK\nmore"));
        assert!(!matches("OK\nmore", "OK"));
    }
}
