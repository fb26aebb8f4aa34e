//! Which commands of Redis 7.2 there are, compared with the table of `docs/compatibility.md`.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::registry::Registry;

/// The names, group by group.
const NAMES: &str = include_str!("redis_commands.txt");

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compatibility.md");
const BEGIN: &str = "<!-- commands: generated -->\n";
const END: &str = "<!-- end of commands -->";

/// Groups whose commands are for what does not exist yet, or never will.
const ABSENT_GROUPS: [&str; 4] = ["cluster", "replication", "module", "sentinel"];

/// Commands that are absent though their groups are not.
const ABSENT: [&str; 3] = [
    // It talks to another server.
    "migrate",
    // Valkey's alone.
    "client|capa",
    "script|show",
];

fn groups() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in NAMES.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(group) => groups.push((group, Vec::new())),
            None => groups.last_mut().expect("names stand behind a group").1.extend(line.split(' ')),
        }
    }
    groups
}

fn table() -> String {
    let registry = Registry::new();
    let is_there = |name: &&&str| registry.find_full(name.as_bytes()).is_some();
    let mut text = String::from("| group | commands | of them here | absent |\n|---|--:|--:|---|\n");
    let mut known = BTreeSet::new();
    for (group, names) in groups() {
        known.extend(names.iter().copied());
        let absent: Vec<_> = names.iter().filter(|name| !is_there(name)).collect();
        let absent_names: Vec<String> =
            absent.iter().map(|name| format!("`{}`", name.to_uppercase().replace('|', " "))).collect();
        let shown = if absent.len() == names.len() { "all".to_owned() } else { absent_names.join(", ") };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {group} | {} | {} | {shown} |", names.len(), names.len() - absent.len());
    }
    let more: Vec<String> = registry
        .all()
        .iter()
        // A container stands for its subcommands.
        .filter(|command| {
            let name = command.full_name.as_str();
            let container = name.split_once('|').map_or(name, |(container, _)| container);
            !known.contains(name) && (name == container || known.contains(container))
        })
        .map(|command| format!("`{}`", command.full_name.to_uppercase().replace('|', " ")))
        .collect();
    let _ = writeln!(text, "\nBeyond Redis 7.2: {}.", more.join(", "));
    text
}

#[test]
fn every_command_of_redis_is_there_but_those_that_are_absent_on_purpose() {
    let registry = Registry::new();
    for (group, names) in groups().into_iter().filter(|(group, _)| !ABSENT_GROUPS.contains(group)) {
        for name in names.into_iter().filter(|name| !ABSENT.contains(name)) {
            assert!(registry.find_full(name.as_bytes()).is_some(), "{name} ({group}) is missing");
        }
    }
    for name in ABSENT {
        assert!(registry.find_full(name.as_bytes()).is_none(), "{name} is there now");
    }
}

#[test]
fn the_table_in_the_documentation_is_the_generated_one() {
    let document = std::fs::read_to_string(DOCUMENT).expect("the document is there");
    let (before, rest) = document.split_once(BEGIN).expect("the table begins");
    let (found, after) = rest.split_once(END).expect("the table ends");
    if std::env::var_os("EMBER_BLESS").is_some() {
        std::fs::write(DOCUMENT, [before, BEGIN, &table(), END, after].concat()).expect("it can be written");
    } else {
        assert!(found == table(), "run the tests with EMBER_BLESS=1 to rewrite the table in {DOCUMENT}");
    }
}
