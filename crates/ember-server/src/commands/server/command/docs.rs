//! COMMAND DOCS: returns the documentation of commands, which redis-cli and client libraries show.

use ember_protocol::Reply;
use emberkv_core::spec::{Command, Example, Spec};

use super::info::reply_words;
use super::{TEMPLATE, UNORDERED};
use crate::catalogue::modules::module_of;
use crate::catalogue::registry::{Command as Registered, Registry};
use crate::catalogue::syntax::{self, Argument, ArgumentType};
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const DOCS: ServerCommand = Command::new(
    Spec {
        name: "docs",
        summary: "Returns the documentation of commands.",
        since: "7.0.0",
        complexity: "O(N) for N given commands.",
        arity: -2,
        tips: UNORDERED,
        syntax: "[command-name [command-name ...]]",
        example: Example { given: &[], call: "COMMAND DOCS nothing", reply: "(empty array)" },
        ..TEMPLATE
    },
    Some(docs),
);

fn docs(session: &mut Session<'_>) -> SessionResult {
    let registry = &session.server.registry;
    let names = session.args.skip(2);
    // As in Redis, unknown names are omitted from the reply.
    let commands: Vec<&Registered> = match names.len() {
        0 => registry.available().collect(),
        _ => names.iter().filter_map(|name| registry.find_full(name)).collect(),
    };
    reply_all(session.reply, registry, &commands);
    Ok(Outcome::Done)
}

fn reply_all(reply: &mut Reply, registry: &Registry, commands: &[&Registered]) {
    reply.map(commands.len());
    for command in commands {
        reply.bulk(command.full_name.as_bytes());
        reply_docs(reply, registry, command);
    }
}

fn reply_docs(reply: &mut Reply, registry: &Registry, command: &Registered) {
    let spec = command.spec;
    let mark = reply.mark();
    let mut fields = 4;
    for (name, text) in [
        ("summary", spec.summary),
        ("since", spec.since),
        ("group", spec.group.name()),
        ("complexity", spec.complexity),
    ] {
        reply_text(reply, name, text);
    }
    if let Some(module) = module_of(spec.group) {
        fields += 1;
        reply_text(reply, "module", module);
    }
    let flags = [(spec.deprecated.is_some(), "deprecated"), (spec.is_system, "syscmd")];
    fields += reply_flags(reply, "doc_flags", &flags);
    if let Some((since, replacement)) = spec.deprecated {
        fields += 2;
        reply_text(reply, "deprecated_since", since);
        reply_text(reply, "replaced_by", replacement);
    }
    if !spec.history.is_empty() {
        fields += 1;
        reply.bulk(b"history");
        reply.set(spec.history.len());
        for (version, change) in spec.history {
            reply.array(2);
            reply.bulk(version.as_bytes());
            reply.bulk(change.as_bytes());
        }
    }
    let arguments = syntax::arguments(spec);
    if !arguments.is_empty() {
        fields += 1;
        reply.bulk(b"arguments");
        reply_arguments(reply, &arguments);
    }
    if !command.subcommands.is_empty() {
        fields += 1;
        reply.bulk(b"subcommands");
        let subcommands: Vec<&Registered> =
            command.subcommands.iter().map(|&index| registry.get(index)).collect();
        reply_all(reply, registry, &subcommands);
    }
    reply.insert_map(mark, fields);
}

/// Writes the field `name` with the set flags, or nothing if no flag is set. Returns the number of fields written.
fn reply_flags(reply: &mut Reply, name: &str, flags: &[(bool, &str)]) -> usize {
    let set: Vec<&str> = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| *name).collect();
    if set.is_empty() {
        return 0;
    }
    reply.bulk(name.as_bytes());
    reply_words(reply, set.into_iter());
    1
}

fn reply_text(reply: &mut Reply, name: &str, text: &str) {
    reply.bulk(name.as_bytes());
    reply.bulk(text.as_bytes());
}

fn reply_arguments(reply: &mut Reply, arguments: &[Argument]) {
    reply.array(arguments.len());
    for argument in arguments {
        let mark = reply.mark();
        let mut fields = 2;
        reply_text(reply, "name", &argument.name);
        reply_text(reply, "type", argument.argument_type.name());
        if argument.children.is_empty() {
            fields += 1;
            reply_text(reply, "display_text", &argument.name);
        }
        if let ArgumentType::Key(index) = argument.argument_type {
            fields += 1;
            reply.bulk(b"key_spec_index");
            reply.integer(index as i64);
        }
        if let Some(token) = &argument.token {
            fields += 1;
            reply_text(reply, "token", token);
        }
        let flags = [
            (argument.is_optional, "optional"),
            (argument.is_multiple, "multiple"),
            (argument.repeats_token, "multiple_token"),
        ];
        for (name, version) in [("since", &argument.since), ("deprecated_since", &argument.deprecated_since)]
        {
            if let Some(version) = version {
                fields += 1;
                reply_text(reply, name, version);
            }
        }
        fields += reply_flags(reply, "flags", &flags);
        if !argument.children.is_empty() {
            fields += 1;
            reply.bulk(b"arguments");
            reply_arguments(reply, &argument.children);
        }
        reply.insert_map(mark, fields);
    }
}
