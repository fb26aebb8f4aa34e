//! Lookup of parameters by name, and log messages about parameters.

use super::fields::Config;
use super::parameter::{Kind, Parameter};
use super::table::{ENCRYPTION_KEY_FILE, PARAMETERS};

impl Parameter {
    /// Finds a parameter by any of its names, ignoring case.
    pub(crate) fn find(name: &str) -> Option<&'static Parameter> {
        PARAMETERS.iter().find(|parameter| parameter.names().any(|known| known.eq_ignore_ascii_case(name)))
    }

    /// Returns the error message for an unknown `name`, with the most similar known name if one is similar. The name
    /// may be a flag, with its dashes.
    pub(crate) fn unknown(name: &str) -> String {
        let (dashes, bare) = name.split_at(if name.starts_with("--") { 2 } else { 0 });
        let shown: String = name.chars().take(NAME_CHARS_SHOWN).flat_map(char::escape_debug).collect();
        match nearest(bare) {
            Some(known) => format!("unknown parameter '{shown}' (did you mean '{dashes}{known}'?)"),
            None => format!("unknown parameter '{shown}'"),
        }
    }
}

/// The maximum number of characters of an unknown name that a message repeats.
const NAME_CHARS_SHOWN: usize = 64;

/// The maximum number of edits for a suggestion: a name with more edits is another word, not a typing error.
const EDITS_MAX: usize = 3;

/// Returns the known name with the fewest edits from `name`, if there are at most [`EDITS_MAX`].
fn nearest(name: &str) -> Option<&'static str> {
    if name.len() > NAME_CHARS_SHOWN {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let known = PARAMETERS.iter().flat_map(Parameter::names);
    let (distance, known) = known.map(|known| (edit_distance(&name, known), known)).min()?;
    (distance <= (name.len() / 2).min(EDITS_MAX)).then_some(known)
}

/// Returns how many characters must be inserted, removed or changed to turn `from` into `to` (Levenshtein distance).
/// Takes `from.len() * to.len()` steps.
fn edit_distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.bytes().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

/// Whether `name` is a parameter with a secret value, which is shown only by CONFIG GET and redacted everywhere else.
pub fn is_secret_parameter(name: &[u8]) -> bool {
    let parameter = std::str::from_utf8(name).ok().and_then(Parameter::find);
    parameter.is_some_and(|parameter| matches!(parameter.kind, Kind::Secret { .. }))
}

/// Returns the log message about parameters in `config` that are set but have no effect.
pub fn notice_without_effect(config: &Config) -> Option<String> {
    notice(config.stored.names().collect())
}

/// Like [`notice_without_effect`], but considers only the parameters `names`.
pub fn notice_of_those<'n>(config: &Config, names: impl Iterator<Item = &'n [u8]>) -> Option<String> {
    let named: Vec<&str> =
        names.filter_map(|name| Some(Parameter::find(std::str::from_utf8(name).ok()?)?.name)).collect();
    notice(config.stored.names().filter(|name| named.contains(name)).collect())
}

fn notice(names: Vec<&str>) -> Option<String> {
    let names = (!names.is_empty()).then(|| names.join(", "))?;
    Some(format!("these parameters are accepted and have no effect: {names}"))
}

/// Returns the canonical name of the parameter `name` if it is a TLS parameter.
pub fn tls_parameter(name: &[u8]) -> Option<&'static str> {
    let parameter = std::str::from_utf8(name).ok().and_then(Parameter::find)?;
    parameter.name.starts_with("tls-").then_some(parameter.name)
}

/// Whether `name` is the parameter that names the file of encryption keys.
pub fn is_key_file_parameter(name: &[u8]) -> bool {
    let parameter = std::str::from_utf8(name).ok().and_then(Parameter::find);
    parameter.is_some_and(|parameter| parameter.name == ENCRYPTION_KEY_FILE)
}
