//! Users defined by `user name rule …` lines of configuration files.

use std::fmt;

use super::words;

/// A line that defines a user. Its `Debug` output omits the rules, which may contain a password.
#[derive(Clone, PartialEq)]
pub struct UserDirective {
    /// The user's name, followed by the rules.
    pub words: Vec<String>,
    /// The file and line of the directive: `a.conf:12`.
    pub origin: String,
}

impl fmt::Debug for UserDirective {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "UserDirective({:?} at {})", self.words.first(), self.origin)
    }
}

/// A user to be written to a configuration file.
#[derive(Debug, Clone)]
pub struct StoredUser {
    /// The user's name.
    pub name: String,
    /// The user's rules, as ACL LIST shows them.
    pub rules: Vec<String>,
    /// Equivalent rules: the rules of the lines with which the server was started.
    pub spellings: Vec<Vec<String>>,
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

/// Like [`words::quote`], but does not quote a word only because it contains `#`: in a rule, `#` begins a password
/// hash, and it begins a comment only at the start of a line.
fn quote_if_needed(word: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if !word.is_empty() && word.bytes().all(is_bare) { word.to_owned() } else { words::quote(word) }
}
