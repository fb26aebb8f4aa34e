//! The lines `user name rule …` of configuration files: kept for the start, and brought up to date by CONFIG REWRITE.

use std::path::Path;

use super::parameter::{Kind, Parameter};
use super::{Config, file, launch, words};

/// What stands for the directive where a line's parameter is asked for. It is none: CONFIG does not know it, and each line
/// adds a user.
pub(super) static DIRECTIVE: Parameter = Parameter {
    name: "user",
    aliases: &[],
    kind: Kind::Fixed { accepts: &[""], reason: "a user is defined by a line of a file" },
    default: "",
    mutable: false,
    about: "A user: its name and its rules.",
};

/// A line that defines a user.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UserDirective {
    /// The name and the rules.
    pub(crate) words: Vec<String>,
    /// Where it stands: `a.conf:12`.
    pub(crate) origin: String,
}

/// A user as a file is to define it.
#[derive(Debug, Clone)]
pub(crate) struct StoredUser {
    pub(crate) name: String,
    pub(crate) rules: Vec<String>,
}

impl StoredUser {
    fn is_defined_by(&self, directive: &UserDirective) -> bool {
        directive.words.split_first().is_some_and(|(name, rules)| *name == self.name && rules == self.rules)
    }

    fn line(&self) -> String {
        let words = std::iter::once(&self.name).chain(&self.rules).map(|word| quote_if_needed(word));
        format!("user {}\n", words.collect::<Vec<_>>().join(" "))
    }
}

/// As [`words::quote`], but a `#` needs no quotes: it begins the hash of a password, and a comment only at a line's start.
fn quote_if_needed(word: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if !word.is_empty() && word.bytes().all(is_bare) { word.to_owned() } else { words::quote(word) }
}

/// Brings the user lines of `text`, the file `name` in `directory`, up to date: the first ones are replaced, further ones
/// appended. `append` adds lines at the end.
///
/// # Errors
/// When that cannot be, because an included file defines users otherwise.
pub(super) fn rewrite(
    text: &str,
    users: &[StoredUser],
    name: &str,
    directory: &Path,
    append: impl FnOnce(&mut Vec<String>, Vec<String>),
) -> Result<String, String> {
    let own_origin = format!("{name}:");
    let included: Vec<UserDirective> = stated(text, name, directory)?
        .users
        .into_iter()
        .filter(|directive| !directive.origin.starts_with(&own_origin))
        .collect();
    for directive in &included {
        if !users.iter().any(|user| user.is_defined_by(directive)) {
            return Err(format!(
                "{}: the included file defines a user who has changed since",
                directive.origin
            ));
        }
    }
    let is_included = |user: &&StoredUser| included.iter().any(|directive| user.is_defined_by(directive));
    let mut wanted = users.iter().filter(|user| !is_included(user)).map(StoredUser::line);
    let mut lines = Vec::new();
    for line in text.split_inclusive('\n') {
        let is_user = file::directive(line).is_ok_and(|directive| {
            directive.is_some_and(|directive| directive.name.eq_ignore_ascii_case(DIRECTIVE.name))
        });
        if is_user {
            lines.extend(wanted.next());
        } else {
            lines.push(line.to_owned());
        }
    }
    let rest: Vec<String> = wanted.collect();
    if !rest.is_empty() {
        append(&mut lines, rest);
    }
    let new = lines.concat();
    let found = stated(&new, name, directory)?.users;
    if !users.iter().all(|user| found.iter().any(|directive| user.is_defined_by(directive))) {
        return Err("the file would not give the current users back".to_owned());
    }
    Ok(new)
}

fn stated(text: &str, name: &str, directory: &Path) -> Result<Config, String> {
    launch::apply(&file::parse(text, name, directory)?)
}
