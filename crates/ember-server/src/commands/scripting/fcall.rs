//! FCALL and FCALL_RO: call a function of a library.

use std::sync::Arc;

use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Flags, KeyFlags, KeySpec, Spec};

use super::{READS_NOTE, RUNNING, WRITES_NOTE, WRITING, function, keys_and_arguments};
use crate::executor::session::{Execution, Outcome, ServerCommand, SessionResult};
use crate::script_host::program::{Name, Program, run_program};

const LIBRARY: &str = "FUNCTION LOAD REPLACE \"#!lua name=shop\\n\
                       redis.register_function{function_name='stock', flags={'no-writes'}, \
                       callback=function(keys, args) return redis.call('GET', keys[1]) end}\"";

pub(super) const COMMANDS: &[ServerCommand] = &[
    Command::new(
        Spec {
            name: "fcall",
            summary: "Calls a function.",
            since: "7.0.0",
            complexity: "Depends on the function.",
            flags: WRITING,
            keys: &[KeySpec::counted(2, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))
                .with_notes(WRITES_NOTE)],
            syntax: "function numkeys [key ...] [arg ...]",
            example: Example {
                given: &[LIBRARY, "SET apples 5"],
                call: "FCALL stock 1 apples",
                reply: "\"5\"",
            },
            ..RUNNING
        },
        Some(|_| Ok(Outcome::Continue(|execution| call(execution, false)))),
    ),
    Command::new(
        Spec {
            name: "fcall_ro",
            summary: "Calls a read-only function.",
            since: "7.0.0",
            complexity: "Depends on the function.",
            flags: RUNNING.flags.union(Flags::READONLY),
            keys: &[KeySpec::counted(2, KeyFlags::RO.union(KeyFlags::ACCESS)).with_notes(READS_NOTE)],
            syntax: "function numkeys [key ...] [arg ...]",
            example: Example {
                given: &[LIBRARY, "SET apples 5"],
                call: "FCALL_RO stock 1 apples",
                reply: "\"5\"",
            },
            ..RUNNING
        },
        Some(|_| Ok(Outcome::Continue(|execution| call(execution, true)))),
    ),
];

fn call(execution: &mut Execution<'_>, is_read_only: bool) -> SessionResult {
    execution.show_to_monitors();
    let args = execution.args;
    let libraries = execution.executor.server.scripting.libraries.snapshot();
    let (library, declaration) = libraries.find(args.at(1)).ok_or("ERR Function not found")?;
    let words = keys_and_arguments(args, CommandError::from("ERR Bad number of keys provided"))?;
    let body = function::compiled(execution, Arc::clone(library), &declaration.name)?;
    let program = Program {
        name: Name::Function(&declaration.name),
        flags: declaration.flags,
        is_read_only,
        keys: words.keys(),
        confinement: library.confined.get(&declaration.name).copied(),
    };
    words.fetch_ahead(execution.executor.server);
    let memory_bytes_max = execution.executor.config.script_memory_limit;
    let scripting = &execution.executor.server.scripting;
    scripting.with_interpreter(memory_bytes_max, |interpreter| {
        let mut given = Some(interpreter.given(words.both()));
        run_program(execution, &program, |_, runner, reply| {
            let given = given.take().unwrap_or_else(|| interpreter.given(words.both()))?;
            interpreter.call(&body, given, runner, reply)
        })
    })?
}
