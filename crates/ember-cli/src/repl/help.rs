//! HELP: shows the server's documentation of a command or a group.

use super::docs::{Command, Docs};

/// The text of HELP without a topic.
pub(super) const OVERVIEW: &str = concat!(
    "ember-cli ",
    env!("CARGO_PKG_VERSION"),
    "\n",
    "To get help about commands type:\n",
    "      \"help @<group>\" to get a list of commands in <group>\n",
    "      \"help <command>\" for help on <command>\n",
    "      \"help <tab>\" to get a list of possible help topics\n",
    "      \"quit\" to exit\n",
    "\n",
    "To set preferences:\n",
    "      \":set hints\" enable online hints\n",
    "      \":set nohints\" disable online hints\n",
    "      \":set highlight\" enable coloured input\n",
    "      \":set nohighlight\" disable coloured input\n",
    "      \":set indent\" enable indentation of JSON documents\n",
    "      \":set noindent\" disable indentation of JSON documents\n",
    "Set your preferences in ~/.emberclirc\n",
);

/// Returns the documentation of `topic`: a command, a container of subcommands, or `@group`.
pub(super) fn about(docs: &Docs, topic: &str, is_coloured: bool) -> String {
    let upper = topic.to_ascii_uppercase();
    let found: Vec<&Command> = match topic.strip_prefix('@') {
        Some(group) => {
            docs.commands.iter().filter(|command| command.group.eq_ignore_ascii_case(group)).collect()
        }
        None => {
            let below = format!("{upper} ");
            let is_about = |command: &&Command| command.name == upper || command.name.starts_with(&below);
            docs.commands.iter().filter(is_about).collect()
        }
    };
    if found.is_empty() {
        return format!("No help for {topic}; `help <tab>` lists the topics.\n");
    }
    let with_group = !topic.starts_with('@');
    let mut text = "\n".to_owned();
    for command in found {
        text += &entry(command, with_group, is_coloured);
    }
    text
}

fn entry(command: &Command, with_group: bool, is_coloured: bool) -> String {
    let paint = |code: &str, text: &str| match is_coloured {
        true => format!("\x1b[{code}m{text}\x1b[0m"),
        false => text.to_owned(),
    };
    let synopsis = match command.synopsis() {
        none if none.is_empty() => none,
        synopsis => format!(" {}", paint("90", &synopsis)),
    };
    let mut text = format!("  {}{synopsis}\n", paint("1", &command.name));
    text += &format!("  {} {}\n", paint("33", "summary:"), command.summary);
    text += &format!("  {} {}\n", paint("33", "since:"), command.since);
    if with_group {
        text += &format!("  {} {}\n", paint("33", "group:"), command.group);
    }
    text + "\n"
}

/// Returns the help topics that begin with `begin`.
pub(super) fn topics(docs: &Docs, begin: &str) -> Vec<String> {
    let mut groups: Vec<String> = docs.commands.iter().map(|command| format!("@{}", command.group)).collect();
    groups.sort();
    groups.dedup();
    let upper = begin.to_ascii_uppercase();
    let names = docs.commands.iter().filter(|command| command.is_offered(&upper));
    let groups = groups.into_iter().filter(|group| group.to_ascii_uppercase().starts_with(&upper));
    groups.chain(names.map(|command| command.name.clone())).collect()
}
