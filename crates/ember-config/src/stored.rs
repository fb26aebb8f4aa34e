//! Values that are checked, stored and shown, but have no effect in this version.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::value;

/// The form of the values of a parameter without effect, as in Redis.
#[derive(Debug)]
pub(crate) enum Form {
    /// `yes` or `no`.
    YesNo,
    /// A decimal integer.
    Integer(RangeInclusive<i64>),
    /// A number of bytes, with or without a unit.
    Memory(RangeInclusive<u64>),
    /// One of the given words.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// A text that `check` accepts; `shape` describes it.
    Checked { shape: &'static str, check: fn(&str) -> Result<(), String> },
}

impl Form {
    /// Returns `text` as CONFIG GET shows it.
    ///
    /// # Errors
    /// Returns Redis's error text if `text` is not a value of this form.
    pub(super) fn read(&self, text: &str) -> Result<String, String> {
        if text.contains('\0') {
            return Err("argument contains a NUL byte".to_owned());
        }
        Ok(match self {
            Form::YesNo => if value::parse_yes_no(text)? { "yes" } else { "no" }.to_owned(),
            Form::Integer(range) => value::parse_integer(text, range)?.to_string(),
            Form::Memory(range) => value::parse_memory(text, range)?.to_string(),
            Form::Choice(names) => names[value::parse_choice(text, names)?].to_owned(),
            Form::Text => text.to_owned(),
            Form::Checked { check, .. } => check(text).map(|()| text.to_owned())?,
        })
    }
}

/// The values without effect that differ from their defaults, by parameter name.
#[derive(Clone, Default, PartialEq)]
pub struct StoredValues(BTreeMap<&'static str, String>);

impl StoredValues {
    /// Returns the value of the parameter `name`; `None` if it is the default.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Stores a value; `None` resets it to the default.
    pub(super) fn set(&mut self, name: &'static str, value: Option<String>) {
        match value {
            Some(value) => self.0.insert(name, value),
            None => self.0.remove(name),
        };
    }

    /// Records that the configuration contains the retired directive `name`, which is not a parameter.
    pub(super) fn record_retired(&mut self, name: &'static str) {
        self.0.insert(name, String::new());
    }

    /// Returns the parameters whose values differ from their defaults, and the recorded retired directives.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }
}

/// Prints only names, because some values are passwords.
impl fmt::Debug for StoredValues {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

/// The maximum size of a host name in bytes: `NI_MAXHOST` of the C library, including the terminating NUL.
const HOST_NAME_BYTES_MAX: usize = 256;

/// Checks a host name that a cluster node would announce.
pub(super) fn check_host_name(text: &str) -> Result<(), String> {
    if text.len() >= HOST_NAME_BYTES_MAX {
        return Err(format!("Hostnames must be less than {HOST_NAME_BYTES_MAX} characters"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte)) {
        return Err("Hostnames may only contain alphanumeric characters, hyphens or dots".to_owned());
    }
    Ok(())
}

/// Checks an address or host name that outgoing connections would use as their source.
pub(super) fn check_source_address(text: &str) -> Result<(), String> {
    if text.parse::<IpAddr>().is_ok() { Ok(()) } else { check_host_name(text) }
}

/// Checks an address of type `A`; an empty text is valid.
fn check_address<A: FromStr>(text: &str, kind: &str) -> Result<(), String> {
    if text.is_empty() || text.parse::<A>().is_ok() {
        Ok(())
    } else {
        Err(format!("argument must be an {kind} address"))
    }
}

/// Checks an IPv4 address that a cluster node would announce.
pub(super) fn check_ipv4(text: &str) -> Result<(), String> {
    check_address::<Ipv4Addr>(text, "IPv4")
}

/// Checks an IPv6 address that a cluster node would announce.
pub(super) fn check_ipv6(text: &str) -> Result<(), String> {
    check_address::<Ipv6Addr>(text, "IPv6")
}

/// Checks a human-readable name that a cluster node would announce. Delimiters of the `nodes.conf` file are not
/// allowed.
pub(super) fn check_node_name(text: &str) -> Result<(), String> {
    if text.bytes().any(|byte| b"!#$%&()*+:;<>?@[]^{|}~".contains(&byte)) {
        return Err("Announced human node name contained invalid character".to_owned());
    }
    Ok(())
}

/// The variables that a process title template may contain in braces.
const TITLE_NAMES: [&str; 7] =
    ["title", "listen-addr", "server-mode", "port", "tls-port", "unixsocket", "config-file"];

/// Checks a process title template, in which `{{` stands for a literal brace.
pub(super) fn check_title_template(text: &str) -> Result<(), String> {
    let invalid = || "template format is invalid or contains unknown variables".to_owned();
    if text.trim_matches(' ').is_empty() {
        return Err(invalid());
    }
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('{') {
        rest = match after.strip_prefix('{') {
            Some(next) => next,
            None => {
                let name = after.split_once('}').filter(|(name, _)| TITLE_NAMES.contains(name));
                name.ok_or_else(invalid)?.1
            }
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_redis_shows_them() {
        for (form, text, shown) in [
            (Form::YesNo, "YES", Ok("yes")),
            (Form::YesNo, "on", Err("argument must be 'yes' or 'no'")),
            (Form::Integer(0..=5), "5", Ok("5")),
            (Form::Integer(0..=5), "6", Err("argument must be between 0 and 5 inclusive")),
            (Form::Memory(1..=1 << 30), "1mb", Ok("1048576")),
            (Form::Memory(1..=1 << 30), "0", Err("argument must be between 1 and 1073741824 inclusive")),
            (Form::Choice(&["a", "b"]), "B", Ok("b")),
            (Form::Choice(&["a", "b"]), "c", Err("argument(s) must be one of the following: a, b")),
            (Form::Text, "x y", Ok("x y")),
            (Form::Text, "x\0", Err("argument contains a NUL byte")),
        ] {
            assert_eq!(form.read(text), shown.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn names_and_templates_are_checked_as_by_redis() {
        for (check, good, bad) in [
            (check_host_name as fn(&str) -> Result<(), String>, "a-1.example.org", "a_b"),
            (check_node_name, "node.1 of 2", "node:1"),
            (check_source_address, "::1", "a b"),
            (check_source_address, "10.0.0.1", "_"),
            (check_ipv4, "10.0.0.1", "::1"),
            (check_ipv6, "::1", "10.0.0.1"),
            (check_ipv6, "", "x"),
            (check_title_template, "{title} {listen-addr} {server-mode}", "{tilte}"),
            (check_title_template, "{{plain", "{title"),
            (check_title_template, "x", " "),
            (check_host_name, "", &"x".repeat(256)),
        ] {
            assert_eq!(check(good), Ok(()));
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn debug_shows_no_values() {
        let mut stored = StoredValues::default();
        stored.set("masterauth", Some("hunter2".to_owned()));
        assert_eq!(format!("{stored:?}"), "{\"masterauth\"}");
    }
}
