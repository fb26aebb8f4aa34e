//! The `aclfile`, which defines users: one `user name rule …` line per user, without comments.

use std::collections::HashSet;
use std::io;

use super::rule::{RuleError, has_spaces, join_selectors};
use super::selector::Grammar;
use super::user::User;

/// The end of an ACL LOAD error, after the list of all mistakes.
const NOTHING_CHANGED: &[u8] =
    b"WARNING: ACL errors detected, no change to the previously active ACL rules was performed";

/// Returns the users defined in `text`, the contents of the file at `path`; `make` creates a user without permissions.
///
/// # Errors
/// Returns one line with all mistakes, with Redis's texts.
pub(super) fn parse(
    text: &[u8],
    path: &str,
    mut make: impl FnMut(&[u8]) -> User,
    grammar: Grammar<'_>,
) -> Result<Vec<User>, Vec<u8>> {
    let (mut users, mut errors, mut names) = (Vec::new(), Vec::new(), HashSet::new());
    for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let place = format!("{path}:{}", number + 1).into_bytes();
        let mut words = line.split(|&byte| byte == b' ');
        let (Some(b"user"), Some(name)) = (words.next(), words.next()) else {
            errors.extend([&*place, b" should start with user keyword followed by the username. "].concat());
            continue;
        };
        if has_spaces(name) {
            errors
                .extend([b"'", &*place, b": username '", name, b"' contains invalid characters. "].concat());
            continue;
        }
        if !names.insert(name) {
            let number = format!("' found on line {}. ", number + 1);
            errors.extend([b"WARNING: Duplicate user '", name, number.as_bytes()].concat());
            continue;
        }
        let mut user = make(name);
        apply(&mut user, words, &place, &mut errors, grammar);
        users.push(user);
    }
    if errors.is_empty() {
        return Ok(users);
    }
    errors.extend_from_slice(NOTHING_CHANGED);
    Err(errors)
}

/// Applies the rules of a line. Rules may contain secrets, so an error contains only the position of the first mistake;
/// unknown commands are listed by name.
fn apply<'l>(
    user: &mut User,
    words: impl Iterator<Item = &'l [u8]>,
    place: &[u8],
    errors: &mut Vec<u8>,
    grammar: Grammar<'_>,
) {
    let Ok(rules) = join_selectors(words) else {
        errors.extend([place, b": Unmatched parenthesis in selector definition."].concat());
        return;
    };
    let mut has_logged = false;
    for rule in &rules {
        let rule = rule.trim_ascii();
        match user.apply(rule, grammar) {
            Ok(()) => {}
            Err(error @ RuleError::UnknownCommand) => {
                let error = format!("': {error}. ");
                errors.extend([place, b": Error in applying operation '", rule, error.as_bytes()].concat());
            }
            Err(_) if has_logged => {}
            Err(error) => {
                has_logged = true;
                errors.extend([place, format!(": {error}. ").as_bytes()].concat());
            }
        }
    }
}

/// Returns the system's error text, worded like C's `strerror`.
pub(super) fn system_reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" (os error").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::registry::Registry;

    fn parsed(text: &str) -> Result<Vec<String>, String> {
        let registry = Registry::new(crate::commands::FAMILIES).0;
        let grammar = Grammar { registry: &registry, allows_channels: false };
        let users = parse(text.as_bytes(), "users.acl", |name| User::new(name, 1, grammar), grammar);
        let string = |bytes| String::from_utf8(bytes).unwrap();
        users.map(|users| users.iter().map(|user| string(user.line())).collect()).map_err(string)
    }

    #[test]
    fn each_line_is_a_user() {
        let text = "user alice on  +get ~a*\r\n\n  user bob nopass (+set ~b*  -@all)  \n";
        let expected = [
            "user alice on sanitize-payload ~a* resetchannels -@all +get",
            "user bob off nopass sanitize-payload resetchannels -@all (~b* resetchannels -@all)",
        ];
        assert_eq!(parsed(text).unwrap(), expected);
    }

    #[test]
    fn every_error_is_reported_with_its_line_but_no_secret() {
        let end = "WARNING: ACL errors detected, no change to the previously active ACL rules was performed";
        for (text, error) in [
            ("# comment", "users.acl:1 should start with user keyword followed by the username. "),
            ("\nuser", "users.acl:2 should start with user keyword followed by the username. "),
            ("user a\x0bb on", "'users.acl:1: username 'a\x0bb' contains invalid characters. "),
            ("user a on\nuser a off", "WARNING: Duplicate user 'a' found on line 2. "),
            ("user a (+get", "users.acl:1: Unmatched parenthesis in selector definition."),
            (
                "user a +x secret >p -y other",
                "users.acl:1: Error in applying operation '+x': Unknown command or category name in ACL. \
                 users.acl:1: Syntax error. \
                 users.acl:1: Error in applying operation '-y': Unknown command or category name in ACL. ",
            ),
        ] {
            assert_eq!(parsed(text), Err(format!("{error}{end}")));
        }
    }
}
