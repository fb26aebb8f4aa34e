//! Running one script for a client: its locks, its rights, its calls.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ember_protocol::{Args, OwnedBatch, Reply};
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;
use emberkv_core::spec::Flags;

use crate::acl;
use crate::bystanders;
use crate::client::Client;
use crate::executor::Executor;
use crate::registry::{Command, Handler};
use crate::scripting::interpreter::{CommandRunner, Interpreter};
use crate::scripting::reply::Failure;
use crate::scripting::running::Running;
use crate::scripting::shebang::ScriptFlags;
use crate::session::{Execution, Outcome, SessionResult};

/// Time between two looks at the other connections of a worker that runs a script for long.
const ATTENDANCE_INTERVAL: Duration = Duration::from_millis(1);

/// What is to be run.
pub(super) struct Program<'p> {
    /// The digest of a script or the name of a function, as errors tell it.
    pub(super) name: &'p [u8],
    /// Whether it is a function.
    pub(super) is_function: bool,
    /// What it says of itself.
    pub(super) flags: ScriptFlags,
    /// Whether it was called with a command that never writes.
    pub(super) is_read_only: bool,
}

impl Program<'_> {
    /// Whether the program may write.
    fn may_write(&self) -> bool {
        !self.is_read_only && !self.flags.contains(ScriptFlags::NO_WRITES)
    }
}

/// Runs a program: `run` is called with the interpreter when its locks are held.
///
/// # Errors
/// If the program must not run, or fails.
pub(super) fn run_program(
    execution: &mut Execution<'_>,
    program: &Program<'_>,
    run: impl FnOnce(&mut Interpreter, &mut dyn CommandRunner, &mut Reply) -> Result<(), Failure>,
) -> SessionResult {
    let Execution { executor, client, args, reply, .. } = execution;
    if program.is_read_only && !program.flags.intersects(ScriptFlags::NO_WRITES | ScriptFlags::UNDECLARED) {
        return Err("ERR Can not execute a script with write flag using *_ro command.".into());
    }
    let is_memory_short = executor.config.maxmemory != 0 && executor.make_room(&mut Guards::None, 0).is_err();
    let answers_for_memory = program.flags.intersects(ScriptFlags::UNDECLARED | ScriptFlags::ALLOW_OOM);
    if is_memory_short && program.may_write() && !answers_for_memory {
        return Err(
            "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'"
                .into(),
        );
    }
    let memory_bytes_max = executor.config.script_memory_limit;
    let scripting = &executor.server.scripting;
    let (args, database) = (*args, client.database);
    let failure = executor.alone(|executor, guards| {
        let mut host = Host {
            executor,
            client,
            guards,
            program,
            refuses_growth: is_memory_short && !program.flags.contains(ScriptFlags::ALLOW_OOM),
            has_written: false,
            call: args,
            words: OwnedBatch::new(),
            started: Instant::now(),
            running: None,
            attended: Instant::now(),
        };
        let result =
            scripting.with_interpreter(memory_bytes_max, |interpreter| run(interpreter, &mut host, reply));
        host.end();
        result
    });
    // A script selects a database for itself only.
    client.database = database;
    match failure? {
        Ok(()) => Ok(Outcome::Done),
        Err(failure) => Err(CommandError::Bytes(told(&failure, program.name))),
    }
}

/// A failure with the name of the script and the place, if there is one.
fn told(failure: &Failure, name: &[u8]) -> Vec<u8> {
    let mut text = failure.text.clone();
    if let Some((source, line)) = &failure.place {
        for piece in [b" script: ", name, b", on ", &source[..], b":", line.to_string().as_bytes(), b"."] {
            text.extend_from_slice(piece);
        }
    }
    text
}

/// Runs the calls of one script.
struct Host<'h> {
    executor: &'h mut Executor,
    client: &'h mut Client,
    guards: &'h mut Guards<'static>,
    program: &'h Program<'h>,
    /// Whether calls that need memory are refused until one has written.
    refuses_growth: bool,
    has_written: bool,
    /// The call that runs the script.
    call: Args<'h>,
    /// The call that the script makes; kept for its memory.
    words: OwnedBatch,
    started: Instant,
    /// Set once the script has been running for long.
    running: Option<Arc<Running>>,
    /// When others were last attended to.
    attended: Instant,
}

impl Host<'_> {
    /// The command that a script calls, if it may call it.
    fn resolve(&self, words: Args<'_>) -> Result<&'static Command, CommandError> {
        let registry = &self.executor.server.registry;
        let unknown = "ERR Unknown Redis command called from script";
        let mut command = registry.find(words.at(0)).ok_or(unknown)?;
        if !command.subcommands.is_empty()
            && let Some(name) = words.get(1)
        {
            command = registry.find_in(command, name).ok_or(unknown)?;
        }
        if !command.spec.accepts(words.len()) || matches!(command.handler, Handler::Container) {
            return Err("ERR Wrong number of args calling Redis command from script".into());
        }
        Ok(command)
    }

    /// Whether the script may make this call now.
    fn check(&self, command: &Command, words: Args<'_>) -> Result<(), CommandError> {
        let flags = command.spec.flags;
        if flags.contains(Flags::NOSCRIPT) {
            return Err("ERR This Redis command is not allowed from script".into());
        }
        acl::authorize_scripted(self.client, command, words)?;
        if !self.program.may_write() && flags.intersects(Flags::WRITE.union(Flags::MAY_REPLICATE)) {
            return Err("ERR Write commands are not allowed from read-only scripts.".into());
        }
        if self.refuses_growth && !self.has_written && flags.contains(Flags::DENYOOM) {
            return Err(CommandError::OutOfMemory);
        }
        Ok(())
    }

    fn end(&mut self) {
        if let Some(running) = self.running.take() {
            self.executor.server.scripting.running.leave(&running);
        }
    }
}

impl CommandRunner for Host<'_> {
    fn run(&mut self, arguments: &[&[u8]], reply: &mut Reply) -> Result<(), Vec<u8>> {
        let mut words = std::mem::take(&mut self.words);
        words.clear();
        words.push(arguments);
        let args = words.command(0);
        let result = self.resolve(args).and_then(|command| self.check(command, args).map(|()| command));
        let result = result.map(|command| {
            if command.spec.flags.contains(Flags::WRITE) {
                self.has_written = true;
                if let Some(running) = &self.running {
                    running.has_written.store(true, Ordering::Relaxed);
                }
            }
            let result = self.executor.complete(command, None, self.client, self.guards, args, reply);
            self.executor.finish(command, result, args, Some(self.client), reply);
        });
        self.words = words;
        result.map_err(|error| error.text().into_owned())
    }

    fn may_run(&mut self, arguments: &[&[u8]]) -> Option<bool> {
        let mut words = OwnedBatch::new();
        words.push(arguments);
        let call = words.command(0);
        self.resolve(call).ok().map(|command| acl::permits(self.client, command, call))
    }

    fn goes_on(&mut self) -> bool {
        if let Some(running) = &self.running {
            if self.attended.elapsed() >= ATTENDANCE_INTERVAL {
                bystanders::attend(self.executor);
                self.attended = Instant::now();
            }
            return !running.is_killed() && !self.executor.server.is_stopping();
        }
        let threshold = self.executor.config.busy_reply_threshold;
        if threshold != 0 && self.started.elapsed() >= Duration::from_millis(threshold) {
            let call = self.call.iter().map(<[u8]>::to_vec).collect();
            let running = Running::new(self.program.is_function, self.program.name, call, self.started);
            running.has_written.store(self.has_written, Ordering::Relaxed);
            let running = Arc::new(running);
            self.executor.server.scripting.running.enter(Arc::clone(&running));
            self.running = Some(running);
            // Nobody waits for a lock that the script does not need just now.
            self.guards.release(&self.executor.server.keyspace, &mut self.executor.turn);
        }
        true
    }
}
