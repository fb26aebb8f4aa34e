//! Users as lines `user name rule …` of configuration files define them.

use std::fmt;

use super::words;

/// A line that defines a user. What `Debug` prints does not show its rules, which may hold a password.
#[derive(Clone, PartialEq)]
pub(crate) struct UserDirective {
    /// The name and the rules.
    pub(crate) words: Vec<String>,
    /// Where it stands: `a.conf:12`.
    pub(crate) origin: String,
}

impl fmt::Debug for UserDirective {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "UserDirective({:?} at {})", self.words.first(), self.origin)
    }
}

/// A user as a file is to define it.
#[derive(Debug, Clone)]
pub(crate) struct StoredUser {
    pub(crate) name: String,
    pub(crate) rules: Vec<String>,
    /// Other rules that make the same user: those of the lines that the server has started with.
    pub(crate) spellings: Vec<Vec<String>>,
}

impl StoredUser {
    pub(super) fn is_defined_by(&self, directive: &UserDirective) -> bool {
        directive.words.split_first().is_some_and(|(name, rules)| {
            *name == self.name && (rules == self.rules || self.spellings.iter().any(|other| rules == other))
        })
    }

    pub(super) fn line(&self) -> String {
        let words = std::iter::once(&self.name).chain(&self.rules).map(|word| quote_if_needed(word));
        format!("user {}\n", words.collect::<Vec<_>>().join(" "))
    }
}

/// As [`words::quote`], but a `#` needs no quotes: it begins the hash of a password, and a comment only at a line's start.
fn quote_if_needed(word: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if !word.is_empty() && word.bytes().all(is_bare) { word.to_owned() } else { words::quote(word) }
}
