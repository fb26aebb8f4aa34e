//! EVAL, EVALSHA, EVAL_RO and EVALSHA_RO: run a script.

use std::sync::Arc;

use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Flags, KeyFlags, KeySpec, Spec};

use super::{KeysAndArguments, READS_NOTE, RUNNING, WRITES_NOTE, WRITING, keys_and_arguments};
use crate::executor::session::{Execution, Outcome, ServerCommand, SessionResult};
use crate::script_host::program::{Name, Program, run_program};
use ember_scripting::interpreter::Interpreter;
use ember_scripting::scripts::{Script, Scripts, sha_of};
use ember_scripting::sha1;

const WRITES: KeyFlags = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE);
const READS: KeyFlags = KeyFlags::RO.union(KeyFlags::ACCESS);
const READ_ONLY: Flags = RUNNING.flags.union(Flags::READONLY);
const COMPLEXITY: &str = "Depends on the script.";

/// The error reply to a digest without a cached script.
pub(super) const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

pub(super) const COMMANDS: &[ServerCommand] = &[
    Command::new(
        Spec {
            name: "eval",
            summary: "Runs a script.",
            since: "2.6.0",
            complexity: COMPLEXITY,
            flags: WRITING,
            keys: &[KeySpec::counted(2, WRITES).with_notes(WRITES_NOTE)],
            syntax: "script numkeys [key ...] [arg ...]",
            example: Example {
                given: &["SET stock 5"],
                call: "EVAL \"return redis.call('DECRBY', KEYS[1], ARGV[1])\" 1 stock 2",
                reply: "(integer) 3",
            },
            ..RUNNING
        },
        Some(|_| Ok(Outcome::Continue(|execution| eval(execution, false)))),
    ),
    Command::new(
        Spec {
            name: "evalsha",
            summary: "Runs a loaded script by its SHA-1 digest.",
            since: "2.6.0",
            complexity: COMPLEXITY,
            flags: WRITING,
            keys: &[KeySpec::counted(2, WRITES)],
            syntax: "sha1 numkeys [key ...] [arg ...]",
            example: Example {
                given: &["SCRIPT LOAD \"return 1\""],
                call: "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0",
                reply: "(integer) 1",
            },
            ..RUNNING
        },
        Some(|_| Ok(Outcome::Continue(|execution| eval_sha(execution, false)))),
    ),
    Command::new(
        Spec {
            name: "eval_ro",
            summary: "Runs a read-only script.",
            since: "7.0.0",
            complexity: COMPLEXITY,
            flags: READ_ONLY,
            keys: &[KeySpec::counted(2, READS).with_notes(READS_NOTE)],
            syntax: "script numkeys [key ...] [arg ...]",
            example: Example {
                given: &["SET stock 5"],
                call: "EVAL_RO \"return redis.call('GET', KEYS[1])\" 1 stock",
                reply: "\"5\"",
            },
            ..RUNNING
        },
        Some(|_| Ok(Outcome::Continue(|execution| eval(execution, true)))),
    ),
    Command::new(
        Spec {
            name: "evalsha_ro",
            summary: "Runs a loaded read-only script by its SHA-1 digest.",
            since: "7.0.0",
            complexity: COMPLEXITY,
            flags: READ_ONLY,
            keys: &[KeySpec::counted(2, READS)],
            syntax: "sha1 numkeys [key ...] [arg ...]",
            example: Example {
                given: &["SCRIPT LOAD \"return 1\""],
                call: "EVALSHA_RO e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0",
                reply: "(integer) 1",
            },
            ..RUNNING
        },
        Some(|_| Ok(Outcome::Continue(|execution| eval_sha(execution, true)))),
    ),
];

fn eval(execution: &mut Execution<'_>, is_read_only: bool) -> SessionResult {
    execution.show_to_monitors();
    let args = execution.args;
    let words = keys_and_arguments(args, CommandError::NotInteger)?;
    let server = execution.executor.server;
    let scripts = &server.scripting.scripts;
    let sha = sha_of(args.at(1));
    let script = match scripts.get(&sha) {
        Some(script) => script,
        None => {
            let script = Arc::new(Scripts::parse(&server.registry, args.at(1), sha)?);
            compile(execution, &script)?;
            scripts.keep(Arc::clone(&script), false);
            script
        }
    };
    run(execution, &script, &words, is_read_only)
}

fn eval_sha(execution: &mut Execution<'_>, is_read_only: bool) -> SessionResult {
    execution.show_to_monitors();
    let args = execution.args;
    let scripts = &execution.executor.server.scripting.scripts;
    let script = sha1::parse(args.at(1)).and_then(|sha| scripts.get(&sha));
    let script = script.ok_or(NO_SCRIPT)?;
    let words = keys_and_arguments(args, CommandError::NotInteger)?;
    run(execution, &script, &words, is_read_only)
}

/// Compiles a script in this worker's interpreter, to report its errors.
pub(super) fn compile(execution: &Execution<'_>, script: &Script) -> Result<(), CommandError> {
    let executor = &execution.executor;
    executor.server.scripting.with_interpreter(executor.config.script_memory_limit, |interpreter| {
        compiled(interpreter, script).map(|_| ())
    })?
}

fn compiled(interpreter: &mut Interpreter, script: &Script) -> Result<mlua::Function, CommandError> {
    interpreter
        .script(&script.sha, script.body())
        .map_err(|problem| [b"ERR Error compiling script (new function): ", &problem[..]].concat().into())
}

fn run(
    execution: &mut Execution<'_>,
    script: &Script,
    words: &KeysAndArguments<'_>,
    is_read_only: bool,
) -> SessionResult {
    let program = Program {
        name: Name::Script(script.sha),
        flags: script.flags,
        is_read_only,
        keys: words.keys(),
        confinement: script.confinement,
    };
    words.fetch_ahead(execution.executor.server);
    let memory_bytes_max = execution.executor.config.script_memory_limit;
    let scripting = &execution.executor.server.scripting;
    scripting.with_interpreter(memory_bytes_max, |interpreter| {
        let body = compiled(interpreter, script)?;
        let mut given = Some(interpreter.given(words.both()));
        run_program(execution, &program, |is_confined, runner, reply| {
            let given = given.take().unwrap_or_else(|| interpreter.given(words.both()))?;
            interpreter.run(&body, is_confined, given, runner, reply)
        })
    })?
}
