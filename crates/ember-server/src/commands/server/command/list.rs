//! COMMAND COUNT and LIST: the number and the names of commands.

use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::glob::{self, Case};
use emberkv_core::spec::{Category, Command, Example, Spec};

use super::{TEMPLATE, UNORDERED};
use crate::catalogue::modules::module_of;
use crate::catalogue::registry::Command as Registered;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const COUNT: ServerCommand = Command::new(
    Spec {
        name: "count",
        summary: "Returns the number of commands without subcommands.",
        since: "2.8.13",
        arity: 2,
        example: Example { given: &[], call: "COMMAND COUNT", reply: "..." },
        ..TEMPLATE
    },
    Some(|session| {
        session.reply.integer(session.server.registry.available().count() as i64);
        Ok(Outcome::Done)
    }),
);

pub(super) const LIST: ServerCommand = Command::new(
    Spec {
        name: "list",
        summary: "Returns the names of commands and subcommands.",
        since: "7.0.0",
        complexity: "O(N) for N commands.",
        arity: -2,
        tips: UNORDERED,
        syntax: "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
        example: Example { given: &[], call: "COMMAND LIST FILTERBY PATTERN ech*", reply: "1) \"echo\"" },
        ..TEMPLATE
    },
    Some(list),
);

fn list(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    let filter_value = match args.len() {
        2 => &[],
        5 if is_word(args, 2, "FILTERBY") => args.at(4),
        _ => return Err(CommandError::Syntax),
    };
    let category =
        Category::NAMES.iter().find(|(_, name)| name.as_bytes().eq_ignore_ascii_case(filter_value));
    let admits = |command: &&Registered| match args.get(3) {
        None => true,
        Some(_) if is_word(args, 3, "ACLCAT") => {
            category.is_some_and(|(category, _)| command.spec.all_categories().contains(*category))
        }
        Some(_) if is_word(args, 3, "PATTERN") => {
            glob::matches(filter_value, command.full_name.as_bytes(), Case::Insensitive)
        }
        Some(_) => module_of(command.spec.group).is_some_and(|module| module.as_bytes() == filter_value),
    };
    if args.len() == 5 && !["ACLCAT", "PATTERN", "MODULE"].iter().any(|word| is_word(args, 3, word)) {
        return Err(CommandError::Syntax);
    }
    let names: Vec<&str> = session
        .server
        .registry
        .all()
        .iter()
        .filter(admits)
        .filter(|command| session.server.registry.is_available(command))
        .map(|command| command.full_name.as_str())
        .collect();
    session.reply.array(names.len());
    names.iter().for_each(|name| session.reply.bulk(name.as_bytes()));
    Ok(Outcome::Done)
}
