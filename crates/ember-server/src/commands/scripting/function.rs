//! FUNCTION: manages libraries of functions.

use std::borrow::Cow;
use std::sync::Arc;

use ember_protocol::Reply;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::glob::{self, Case};
use emberkv_core::journal::Words;
use emberkv_core::rdb::{Target, library_for_redis};
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use super::TEMPLATE;
use crate::commands::help::{help_subcommand, reply_help};
use crate::executor::session::{Execution, Outcome, ServerCommand, Session, SessionResult};
use crate::script_host::functions;
use ember_scripting::library::Library;
use ember_scripting::payload;
use ember_scripting::shebang::ScriptFlags;

const CHANGES: Flags = TEMPLATE.flags.union(Flags::WRITE);
const GROWS: Flags = CHANGES.union(Flags::DENYOOM);
const ALL_SHARDS: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];
const LIBRARY: &str = "FUNCTION LOAD REPLACE \"#!lua name=shop\\n\
                       redis.register_function('close', function() return 'closed' end)\"";

const SUBCOMMANDS: &[ServerCommand] = &[
    Command::new(
        Spec {
            name: "delete",
            summary: "Removes a library with its functions.",
            since: "7.0.0",
            arity: 3,
            flags: CHANGES,
            tips: ALL_SHARDS,
            syntax: "library-name",
            example: Example { given: &[LIBRARY], call: "FUNCTION DELETE shop", reply: "OK" },
            ..TEMPLATE
        },
        Some(|_| Ok(Outcome::Continue(|execution| change(execution, functions::delete)))),
    ),
    Command::new(
        Spec {
            name: "dump",
            summary: "Returns all libraries as a payload for FUNCTION RESTORE.",
            since: "7.0.0",
            complexity: "O(N) for N functions.",
            arity: 2,
            example: Example {
                given: &["FUNCTION FLUSH"],
                call: "FUNCTION DUMP",
                reply: "\"\\n\\x00]\\x9b\\\\@\\x0f\\x7f\\xa2\\xda\"",
            },
            ..TEMPLATE
        },
        Some(|session| {
            let libraries = session.server.scripting.libraries.snapshot();
            let texts: Vec<Cow<'_, [u8]>> =
                libraries.all().map(|library| written(session, &library.code)).collect();
            session.reply.bulk(&payload::write(texts.iter().map(|text| &**text)));
            Ok(Outcome::Done)
        }),
    ),
    Command::new(
        Spec {
            name: "flush",
            summary: "Removes all libraries.",
            since: "7.0.0",
            complexity: "O(N) for N functions.",
            arity: -2,
            flags: CHANGES,
            tips: ALL_SHARDS,
            syntax: "[async:<ASYNC | SYNC>]",
            example: Example { given: &[], call: "FUNCTION FLUSH", reply: "OK" },
            ..TEMPLATE
        },
        Some(|_| Ok(Outcome::Continue(|execution| change(execution, functions::flush)))),
    ),
    help_subcommand(
        Group::Scripting,
        "7.0.0",
        Example {
            given: &[],
            call: "FUNCTION HELP",
            reply: " 1) FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n...",
        },
        |session| reply_help(session, HELP),
    ),
    Command::new(
        Spec {
            name: "kill",
            summary: "Ends a long-running function that has not written.",
            since: "7.0.0",
            arity: 2,
            flags: TEMPLATE.flags.union(Flags::ALLOW_BUSY),
            tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
            example: Example {
                given: &[],
                call: "FUNCTION KILL",
                reply: "(error) NOTBUSY No scripts in execution right now.",
            },
            ..TEMPLATE
        },
        Some(|session| {
            super::kill(session.server, true)?;
            session.reply.ok();
            Ok(Outcome::Done)
        }),
    ),
    Command::new(
        Spec {
            name: "list",
            summary: "Describes libraries and their functions.",
            since: "7.0.0",
            complexity: "O(N) for N functions.",
            arity: -2,
            tips: &["nondeterministic_output_order"],
            syntax: "[LIBRARYNAME library-name-pattern] [WITHCODE]",
            example: Example {
                given: &["FUNCTION FLUSH", LIBRARY],
                call: "FUNCTION LIST",
                reply: "1) 1) \"library_name\"\n   2) \"shop\"\n   3) \"engine\"\n   4) \"LUA\"\n   5) \"functions\"\n   \
                        6) 1) 1) \"name\"\n         2) \"close\"\n         3) \"description\"\n         4) (nil)\n\
                        \u{20}        5) \"flags\"\n         6) (empty array)",
            },
            ..TEMPLATE
        },
        Some(list),
    ),
    Command::new(
        Spec {
            name: "load",
            summary: "Adds a library.",
            since: "7.0.0",
            complexity: "O(N) for N bytes of the library.",
            arity: -3,
            flags: GROWS,
            tips: ALL_SHARDS,
            syntax: "[REPLACE] function-code",
            example: Example { given: &[], call: LIBRARY, reply: "\"shop\"" },
            ..TEMPLATE
        },
        Some(|_| Ok(Outcome::Continue(|execution| change(execution, functions::load)))),
    ),
    Command::new(
        Spec {
            name: "restore",
            summary: "Adds the libraries of a payload of FUNCTION DUMP.",
            since: "7.0.0",
            complexity: "O(N) for N functions.",
            arity: -3,
            flags: GROWS,
            tips: ALL_SHARDS,
            syntax: "serialized-value [policy:<FLUSH | APPEND | REPLACE>]",
            example: Example {
                given: &[],
                call: "FUNCTION RESTORE \"\\n\\x00]\\x9b\\\\@\\x0f\\x7f\\xa2\\xda\"",
                reply: "OK",
            },
            ..TEMPLATE
        },
        Some(|_| Ok(Outcome::Continue(|execution| change(execution, functions::restore)))),
    ),
    Command::new(
        Spec {
            name: "stats",
            summary: "Returns the running function and the number of functions.",
            since: "7.0.0",
            arity: 2,
            flags: TEMPLATE.flags.union(Flags::ALLOW_BUSY),
            tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
            example: Example {
                given: &["FUNCTION FLUSH", LIBRARY],
                call: "FUNCTION STATS",
                reply: "1) \"running_script\"\n2) (nil)\n3) \"engines\"\n4) 1) \"LUA\"\n   2) 1) \"libraries_count\"\n      \
                        2) (integer) 1\n      3) \"functions_count\"\n      4) (integer) 1",
            },
            ..TEMPLATE
        },
        Some(stats),
    ),
];

pub(super) const COMMANDS: &[ServerCommand] = &[Command::container(
    Spec {
        name: "function",
        summary: "Contains subcommands for functions.",
        since: "7.0.0",
        group: Group::Scripting,
        complexity: "Depends on the subcommand.",
        arity: -2,
        ..Spec::DEFAULT
    },
    None,
    SUBCOMMANDS,
)];

const HELP: &[&str] = &[
    "LOAD [REPLACE] <FUNCTION CODE>",
    "    Load the library that the code declares; REPLACE allows an existing one.",
    "DELETE <LIBRARY NAME>",
    "    Remove a library with its functions.",
    "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
    "    Describe all libraries, or those whose names match the pattern; WITHCODE includes their code.",
    "STATS",
    "    Return the running function (name, call, duration in ms) and the number of libraries and functions.",
    "KILL",
    "    End a long-running function that has not written.",
    "FLUSH [ASYNC|SYNC]",
    "    Remove all libraries.",
    "DUMP",
    "    Return all libraries as a payload for RESTORE.",
    "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
    "    Add the libraries of a payload. The policy for existing libraries:",
    "    * FLUSH: they are removed.",
    "    * APPEND: the call fails if one has the name of one in the payload. This is the default.",
    "    * REPLACE: libraries with the name of a library in the payload are replaced.",
];

/// Returns the text of a library in the form that the server given by `rdb-target` can load.
fn written<'t>(session: &Session<'_>, code: &'t [u8]) -> Cow<'t, [u8]> {
    match session.server.config.snapshot().rdb_target() {
        Target::Valkey9 => Cow::Borrowed(code),
        Target::Redis | Target::Redis72 | Target::Redis8 => library_for_redis(code),
    }
}

/// Returns the function of a library, compiled by this worker's interpreter if necessary.
pub(super) fn compiled(
    execution: &Execution<'_>,
    library: Arc<Library>,
    function: &[u8],
) -> Result<mlua::Function, CommandError> {
    let memory_bytes_max = execution.executor.config.script_memory_limit;
    let scripting = &execution.executor.server.scripting;
    let known = scripting
        .with_interpreter(memory_bytes_max, |interpreter| interpreter.function(&library, function))?;
    if let Some(known) = known {
        return Ok(known);
    }
    let (_, compiled) =
        functions::declared(execution.executor.server, &execution.executor.config, &library.code)?;
    let libraries = scripting.libraries.snapshot();
    let function = scripting.with_interpreter(memory_bytes_max, |interpreter| {
        interpreter.keep_library(Arc::clone(&library), compiled, &libraries);
        interpreter.function(&library, function)
    })?;
    function.ok_or_else(|| "ERR Function not found".into())
}

/// Applies a client's change to the libraries, and records it in the journal. The change has exclusive access, so that
/// the libraries and the journal see changes in the same order.
fn change(execution: &mut Execution<'_>, change: functions::Change) -> SessionResult {
    let Execution { executor, client, args, reply, .. } = execution;
    let answer = executor.with_exclusive_access_for(client.view.id, |executor, _| {
        let config = Arc::clone(&executor.config);
        let answer = change(executor.server, &config, *args)?;
        executor.turn.counters.changes += 1;
        let recorded = functions::recorded(*args);
        let record_words = |words: &mut Words<'_>| recorded.iter().for_each(|word| _ = words.word(word));
        executor.turn.journal.record_separately(client.database, 0, record_words);
        Ok::<_, CommandError>(answer)
    })??;
    match answer {
        Some(name) => reply.bulk(&name),
        None => reply.ok(),
    }
    Ok(Outcome::Done)
}

fn list(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    let (mut pattern, mut with_code, mut number) = (None, false, 2);
    while number < args.len() {
        if !with_code && is_word(args, number, "WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && is_word(args, number, "LIBRARYNAME") {
            number += 1;
            pattern = Some(args.get(number).ok_or("ERR library name argument was not given")?);
        } else {
            return Err(CommandError::quoting("ERR Unknown argument ", args.at(number), ""));
        }
        number += 1;
    }
    let libraries = session.server.scripting.libraries.snapshot();
    let fits = |library: &&Arc<Library>| {
        pattern.is_none_or(|pattern| glob::matches(pattern, &library.name, Case::Insensitive))
    };
    let chosen: Vec<&Arc<Library>> = libraries.all().filter(fits).collect();
    session.reply.array(chosen.len());
    for library in chosen {
        describe(session.reply, library, with_code);
    }
    Ok(Outcome::Done)
}

fn describe(reply: &mut Reply, library: &Library, with_code: bool) {
    reply.map(if with_code { 4 } else { 3 });
    reply.bulk(b"library_name");
    reply.bulk(&library.name);
    reply.bulk(b"engine");
    reply.bulk(b"LUA");
    reply.bulk(b"functions");
    reply.array(library.functions.len());
    for function in library.functions.values() {
        reply.map(3);
        reply.bulk(b"name");
        reply.bulk(&function.name);
        reply.bulk(b"description");
        match &function.description {
            Some(description) => reply.bulk(description),
            None => reply.null(),
        }
        reply.bulk(b"flags");
        let flags = ScriptFlags::NAMES.iter().filter(|(flag, _)| function.flags.contains(*flag));
        reply.set(flags.clone().count());
        flags.for_each(|(_, name)| reply.simple(name));
    }
    if with_code {
        reply.bulk(b"library_code");
        reply.bulk(&library.code);
    }
}

fn stats(session: &mut Session<'_>) -> SessionResult {
    let scripting = &session.server.scripting;
    let reply = &mut *session.reply;
    let threshold_ms = session.server.config.snapshot().busy_reply_threshold;
    let busy = scripting.running.oldest(threshold_ms);
    if busy.as_ref().is_some_and(|busy| !busy.is_function) {
        return Err(scripting.running.busy_or_ended_error(threshold_ms));
    }
    // A script publishes its call when it is first asked whether to continue, so the call may still be missing for a
    // moment.
    let running = busy.and_then(|busy| Some((busy.call?, busy.duration)));
    reply.map(2);
    reply.bulk(b"running_script");
    match running {
        None => reply.null(),
        Some((call, duration)) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(&call.name);
            reply.bulk(b"command");
            reply.array(call.words.len());
            call.words.iter().for_each(|word| reply.bulk(word));
            reply.bulk(b"duration_ms");
            reply.integer(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX));
        }
    }
    let libraries = scripting.libraries.snapshot();
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.integer(libraries.all().count() as i64);
    reply.bulk(b"functions_count");
    reply.integer(libraries.functions_count() as i64);
    Ok(Outcome::Done)
}
