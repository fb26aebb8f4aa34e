//! Compares the registry with the commands of Redis 7.2 and the table in `docs/compatibility.md`, and generates
//! `docs/commands.md`, which describes each command.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use ember_testkit::assert_generated;

use super::tests::registry;
use crate::catalogue::redis_commands::groups;
use crate::catalogue::registry::{Command, Registry};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compatibility.md");
const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
const BEGIN: &str = "<!-- commands: generated -->\n";
const END: &str = "<!-- end of commands -->";

/// Groups of commands for features that ember does not have.
const ABSENT_GROUPS: [&str; 1] = ["sentinel"];

fn table() -> String {
    let registry = registry();
    let is_there = |name: &&&str| registry.find_full(name.as_bytes()).is_some();
    let mut text = String::from("| group | commands | supported | absent |\n|---|--:|--:|---|\n");
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
    let more: Vec<String> =
        beyond(&registry, &known).map(|command| format!("`{}`", shown(&command.full_name))).collect();
    text.push_str(&wrapped(&format!("Beyond Redis 7.2: {}.", more.join(", "))).replace("\n  ", "\n"));
    text.push('\n');
    text
}

/// Returns a command's name as clients write it.
fn shown(name: &str) -> String {
    name.to_uppercase().replace('|', " ")
}

/// Returns the commands that Redis 7.2 does not have. A container in the result stands for all of its subcommands, too.
fn beyond<'r>(registry: &'r Registry, known: &BTreeSet<&str>) -> impl Iterator<Item = &'r Command> {
    registry.all().iter().filter(|command| command.base.is_none()).filter(|command| {
        let name = command.full_name.as_str();
        let container = name.split_once('|').map_or(name, |(container, _)| container);
        !known.contains(name) && (name == container || known.contains(container))
    })
}

/// Returns the lines of a table of commands, with their summary, complexity and first version.
fn lines<'r>(commands: impl IntoIterator<Item = &'r Command>) -> String {
    let mut text = String::from("| command | description | complexity | since |\n|---|---|---|---|\n");
    for command in commands {
        let spec = command.spec;
        let mut summary = spec.summary.replace('|', "\\|");
        if let Some((since, instead)) = spec.deprecated {
            let _ = write!(summary, " Deprecated since {since}: {}.", instead.trim_end_matches('.'));
        }
        let name = shown(&command.full_name);
        let complexity = spec.complexity.trim_end_matches('.').replace('|', "\\|");
        let _ = writeln!(text, "| `{name}` | {summary} | {complexity} | {} |", spec.since);
    }
    text
}

fn reference() -> String {
    let registry = registry();
    let mut text = String::from(
        "# Commands\n\nAll commands by group. A test writes this page from the definitions of the commands. \
         `help` in the prompt of `ember-cli`\nand `COMMAND DOCS` show their arguments; \
         [compatibility.md](compatibility.md) has the differences from Redis.\n",
    );
    let mut known = BTreeSet::new();
    let mut absent: Vec<String> = Vec::new();
    for (group, mut names) in groups() {
        names.sort_unstable();
        known.extend(names.iter().copied());
        let (there, missing): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| registry.find_full(name.as_bytes()).is_some());
        if !missing.is_empty() {
            let missing: Vec<String> = missing.iter().map(|name| format!("`{}`", shown(name))).collect();
            absent.push(format!("* {group}: {}", missing.join(", ")));
        }
        if !there.is_empty() {
            let commands = there.iter().filter_map(|name| registry.find_full(name.as_bytes()));
            let _ = write!(text, "\n## {group}\n\n{}", lines(commands));
        }
    }
    let _ = write!(text, "\n## Beyond Redis 7.2\n\n{}", lines(beyond(&registry, &known)));
    text.push_str(
        "\nCommands that clients can watch ([live-queries.md](live-queries.md)). Each has two companions, for example\n\
         `GET.WATCH` and `GET.UNWATCH`:\n",
    );
    let watchable: Vec<String> = registry
        .all()
        .iter()
        .filter(|command| command.is_watchable())
        .map(|command| format!("`{}`", shown(&command.full_name)))
        .collect();
    text.push_str(&wrapped(&format!("{}.", watchable.join(", "))).replace("\n  ", "\n"));
    text.push('\n');
    let _ = write!(text, "\n## Absent\n\nCommands of Redis 7.2 and Valkey 8 that are not supported:\n");
    for line in absent {
        text.push_str(&wrapped(&line));
    }
    text
}

/// Wraps text to the line width of the documents, and indents all lines but the first.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::from("\n")];
    let mut width = 0;
    for word in text.split_inclusive(", ") {
        if width + word.len() > 120 {
            lines.push(String::from("\n  "));
            width = 2;
        }
        width += word.len();
        lines.last_mut().expect("it has begun").push_str(word);
    }
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end_matches(' ')).collect();
    lines.concat()
}

#[test]
fn the_reference_of_commands_is_the_generated_one() {
    assert_generated(Path::new(REFERENCE), &reference());
}

#[test]
fn every_redis_command_exists_except_those_of_absent_groups() {
    let registry = registry();
    for (group, names) in groups().filter(|(group, _)| !ABSENT_GROUPS.contains(group)) {
        for name in names {
            assert!(registry.find_full(name.as_bytes()).is_some(), "{name} ({group}) is missing");
        }
    }
}

#[test]
fn the_table_in_the_documentation_is_the_generated_one() {
    let document = std::fs::read_to_string(DOCUMENT).expect("the document exists");
    let (before, rest) = document.split_once(BEGIN).expect("the table begins");
    let (found, after) = rest.split_once(END).expect("the table ends");
    if std::env::var_os("EMBER_BLESS").is_some() {
        std::fs::write(DOCUMENT, [before, BEGIN, &table(), END, after].concat()).expect("it can be written");
    } else {
        assert!(found == table(), "run the tests with EMBER_BLESS=1 to rewrite the table in {DOCUMENT}");
    }
}
