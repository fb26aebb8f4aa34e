//! Servers whose values are away from memory as often as they can be: each value that may go away goes within a tenth of a
//! second, as if the data were as large as you like.

use std::path::Path;

/// With this variable set to the name of a place, every ember server of a test sends its values there.
const VARIABLE: &str = "EMBER_VALUES";

macro_rules! of_store {
    ($name:literal) => {
        [
            "--maxmemory",
            "1gb",
            "--tiered-min-value",
            "1",
            "--tiered-goal",
            "0",
            "--fsync",
            "no",
            "--store",
            $name,
        ]
    };
}

/// The places that values go to, and what has a server send all values there.
pub const VALUES_AWAY: [(&str, &[&str]); 4] = [
    (
        "tiers",
        &["--maxmemory", "1gb", "--tiered-min-value", "1", "--tiered-goal", "0", "--tiered-path", "tiers"],
    ),
    ("redb", &of_store!("redb")),
    ("lmdb", &of_store!("lmdb")),
    ("fjall", &of_store!("fjall")),
];

/// What a program is given before the arguments of its test. A server with an append-only file of its own has no store.
///
/// # Panics
/// When the variable names no such place.
pub(crate) fn arguments(program: &Path, own: &[String]) -> &'static [&'static str] {
    let is_ember = program.file_name().is_some_and(|name| name == "ember-server");
    let Some(place) = std::env::var_os(VARIABLE).filter(|_| is_ember) else { return &[] };
    let found = VALUES_AWAY.iter().find(|(name, _)| place == *name);
    let (name, arguments) =
        found.unwrap_or_else(|| panic!("{VARIABLE} names no place for values: {}", place.display()));
    let has_log = own.iter().any(|argument| argument == "--appendonly");
    if has_log && *name != "tiers" { &[] } else { arguments }
}
