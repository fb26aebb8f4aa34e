//! Rule errors, with Redis's texts, and the joining of rules that consist of several words.

use std::fmt;

/// The reason why a rule was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleError {
    /// The text is not a rule, or contains a pattern with invalid characters.
    Syntax,
    /// The rule contains an unknown command, subcommand or category.
    UnknownCommand,
    /// A key pattern follows a rule that allows every key.
    KeysAfterAll,
    /// A channel pattern follows a rule that allows every channel.
    ChannelsAfterAll,
    /// The user does not have the password to be removed.
    NoSuchPassword,
    /// The text is not a password hash.
    BadHash,
    /// A rule restricts the first argument of a subcommand, which is not supported.
    SubcommandArgument,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RuleError::Syntax => "Syntax error",
            RuleError::UnknownCommand => "Unknown command or category name in ACL",
            RuleError::KeysAfterAll => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any \
                 effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            RuleError::ChannelsAfterAll => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any \
                 effect. Try 'resetchannels' to start with an empty list of channels"
            }
            RuleError::NoSuchPassword => "The password you are trying to remove from the user does not exist",
            RuleError::BadHash => {
                "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
            }
            RuleError::SubcommandArgument => "Allowing first-arg of a subcommand is not supported",
        })
    }
}

/// Joins the words of each selector into one rule, such as `(+get` and `~a*)`. Other words are unchanged.
///
/// # Errors
/// Returns the index of the word whose parenthesis is not closed.
pub(super) fn join_selectors<'w>(words: impl Iterator<Item = &'w [u8]>) -> Result<Vec<Vec<u8>>, usize> {
    let mut rules: Vec<Vec<u8>> = Vec::new();
    let mut open_at = None;
    for (number, word) in words.enumerate() {
        let closes = word.ends_with(b")");
        if open_at.is_none() {
            rules.push(word.to_vec());
            open_at = (word.starts_with(b"(") && !closes).then_some(number);
        } else if let Some(selector) = rules.last_mut() {
            selector.push(b' ');
            selector.extend_from_slice(word);
            open_at = open_at.filter(|_| !closes);
        }
    }
    open_at.map_or(Ok(rules), Err)
}

/// Whether `text` contains white space or a NUL, which is invalid in a user name or pattern, because the rule could not
/// be parsed again.
pub(crate) fn has_spaces(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, b' ' | b'\t'..=b'\r' | 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_selector_are_joined() {
        let join = |line: &str| join_selectors(line.split(' ').map(str::as_bytes));
        let joined = |line: &str, rules: &[&str]| {
            let rules: Vec<_> = rules.iter().map(|rule| rule.as_bytes().to_vec()).collect();
            assert_eq!(join(line), Ok(rules), "{line}");
        };
        joined("on (+get ~a) off", &["on", "(+get ~a)", "off"]);
        joined("(a) (b c d) (e)", &["(a)", "(b c d)", "(e)"]);
        joined("( (x ) y", &["( (x )", "y"]);
        joined("x) on", &["x)", "on"]);
        assert_eq!(join("on (+get ~a"), Err(1));
        assert_eq!(join("("), Err(0));
    }

    #[test]
    fn spaces_of_every_kind_are_found() {
        for text in [&b" "[..], b"a\tb", b"\n", b"\x0b", b"\x0c", b"\r", b"a\0"] {
            assert!(has_spaces(text), "{text:?}");
        }
        assert!(!has_spaces(b"a-b_\xff\x1c"));
    }
}
