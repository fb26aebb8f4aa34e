//! COMMAND and COMMAND INFO: properties of commands, which clients and proxies use for routing.

use ember_protocol::Reply;
use emberkv_core::spec::{Begin, Category, Command, Example, Find, KeySpec, Spec};

use super::{TEMPLATE, UNORDERED};
use crate::catalogue::registry::{Command as Registered, Registry};
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const INFO: ServerCommand = Command::new(
    Spec {
        name: "info",
        summary: "Returns information about commands.",
        since: "2.8.13",
        complexity: "O(N) for N given commands.",
        arity: -2,
        tips: UNORDERED,
        syntax: "[command-name [command-name ...]]",
        history: &[("7.0.0", "Without names it describes all commands.")],
        example: Example { given: &[], call: "COMMAND INFO nothing", reply: "1) (nil)" },
        ..TEMPLATE
    },
    Some(info),
);

/// Handles COMMAND without a subcommand.
pub(super) fn all(session: &mut Session<'_>) -> SessionResult {
    let registry = &session.server.registry;
    session.reply.array(registry.available().count());
    for command in registry.available() {
        reply_facts(session.reply, registry, command);
    }
    Ok(Outcome::Done)
}

fn info(session: &mut Session<'_>) -> SessionResult {
    if session.args.len() == 2 {
        return all(session);
    }
    let names = session.args.skip(2);
    let registry = &session.server.registry;
    session.reply.array(names.len());
    for name in names.iter() {
        match registry.find_full(name) {
            Some(command) => reply_facts(session.reply, registry, command),
            None => session.reply.null(),
        }
    }
    Ok(Outcome::Done)
}

fn reply_facts(reply: &mut Reply, registry: &Registry, command: &Registered) {
    let spec = command.spec;
    let (first, last, step) = spec.legacy_key_range();
    reply.array(10);
    reply.bulk(command.full_name.as_bytes());
    reply.integer(i64::from(spec.arity));
    reply_words(reply, spec.flags.names());
    for number in [first, last, step] {
        reply.integer(number);
    }
    let all = spec.all_categories();
    let categories = Category::NAMES.iter().filter(|(category, _)| all.contains(*category));
    let categories: Vec<String> = categories.map(|(_, name)| format!("@{name}")).collect();
    reply_words(reply, categories.iter().map(String::as_str));
    reply.set(spec.tips.len());
    spec.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(spec.keys.len());
    spec.keys.iter().for_each(|keys| reply_key_spec(reply, keys));
    match command.subcommands.len() {
        // As in Redis, an empty list is replied as an empty set.
        0 => reply.set(0),
        count => reply.array(count),
    }
    for &subcommand in &command.subcommands {
        reply_facts(reply, registry, registry.get(subcommand));
    }
}

/// Writes a RESP set of simple strings.
pub(super) fn reply_words<'w>(reply: &mut Reply, words: impl Iterator<Item = &'w str>) {
    let words: Vec<&str> = words.collect();
    reply.set(words.len());
    words.iter().for_each(|word| reply.simple(word));
}

fn reply_key_spec(reply: &mut Reply, keys: &KeySpec) {
    reply.map(3 + usize::from(keys.notes.is_some()));
    if let Some(notes) = keys.notes {
        reply.bulk(b"notes");
        reply.bulk(notes.as_bytes());
    }
    reply.bulk(b"flags");
    reply_words(reply, keys.flags.names());
    reply.bulk(b"begin_search");
    match keys.begin {
        Begin::Index(index) => reply_found_by(reply, "index", &[("index", Fact::Number(index as i64))]),
        Begin::Keyword { word, from } => {
            let facts = [("keyword", Fact::Word(word)), ("startfrom", Fact::Number(from as i64))];
            reply_found_by(reply, "keyword", &facts);
        }
        Begin::Unknown => reply_found_by(reply, "unknown", &[]),
    }
    reply.bulk(b"find_keys");
    match keys.find {
        Find::Range { last, step, limit } => {
            let numbers = [("lastkey", last as i64), ("keystep", step as i64), ("limit", limit as i64)];
            reply_found_by(reply, "range", &numbers.map(|(name, number)| (name, Fact::Number(number))));
        }
        Find::Counted { count_at, first, step } => {
            let numbers = [("keynumidx", count_at), ("firstkey", first), ("keystep", step)];
            reply_found_by(
                reply,
                "keynum",
                &numbers.map(|(name, number)| (name, Fact::Number(number as i64))),
            );
        }
        Find::Unknown => reply_found_by(reply, "unknown", &[]),
    }
}

/// An element of a key specification in a reply.
#[derive(Clone, Copy)]
enum Fact {
    Number(i64),
    Word(&'static str),
}

fn reply_found_by(reply: &mut Reply, how: &str, facts: &[(&str, Fact)]) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(how.as_bytes());
    reply.bulk(b"spec");
    reply.map(facts.len());
    for (name, fact) in facts {
        reply.bulk(name.as_bytes());
        match fact {
            Fact::Number(number) => reply.integer(*number),
            Fact::Word(word) => reply.bulk(word.as_bytes()),
        }
    }
}
