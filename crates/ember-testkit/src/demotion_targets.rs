//! Servers that demote values as often as possible: each value that can be demoted is demoted within 0.1 s, as if the
//! data were much larger than memory.

use std::path::Path;

/// The environment variable that selects the destination to which all ember servers of tests demote their values.
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

/// The destinations of demoted values, and the arguments that make a server demote all values there.
pub const DEMOTION_TARGETS: [(&str, &[&str]); 4] = [
    (
        "tiers",
        &["--maxmemory", "1gb", "--tiered-min-value", "1", "--tiered-goal", "0", "--tiered-path", "tiers"],
    ),
    ("redb", &of_store!("redb")),
    ("lmdb", &of_store!("lmdb")),
    ("fjall", &of_store!("fjall")),
];

/// Returns the arguments to insert before `own`, the arguments of the test. If `own` configures an append-only file,
/// the server cannot have a store, so only tiers are possible.
///
/// # Panics
/// Panics if the variable names no such destination.
pub(crate) fn arguments(program: &Path, own: &[String]) -> &'static [&'static str] {
    let is_ember = program.file_name().is_some_and(|name| name == "ember-server");
    let Some(place) = std::env::var_os(VARIABLE).filter(|_| is_ember) else { return &[] };
    let found = DEMOTION_TARGETS.iter().find(|(name, _)| place == *name);
    let (name, arguments) =
        found.unwrap_or_else(|| panic!("{VARIABLE} is not a valid place for values: {}", place.display()));
    let has_log = own.iter().any(|argument| argument == "--appendonly");
    if has_log && *name != "tiers" { &[] } else { arguments }
}
