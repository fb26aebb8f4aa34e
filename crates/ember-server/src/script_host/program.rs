//! Runs one script or function for a client: its locks, its permissions, its calls.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ember_cluster::slots::slot_of;
use ember_protocol::{Args, OwnedBatch, Reply};
use emberkv_core::dispatch::Access;
use emberkv_core::error::CommandError;
use emberkv_core::journal::Readers;
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::hash::KeyHash;
use emberkv_core::spec::{Flags, Group};

use crate::catalogue::registry::{Command, Handler};
use crate::clients::client::Client;
use crate::executor::session::{Execution, Outcome, SessionResult};
use crate::executor::{Executor, Section};
use crate::executor::{attendance, authorization};
use crate::journal::Reader;
use crate::server::conditions::{Condition, READ_ONLY_ERROR};
use crate::snapshot::state::SnapshotState;
use ember_scripting::confinement::Confinement;
use ember_scripting::interpreter::CommandRunner;
use ember_scripting::raised::KILLED;
use ember_scripting::reply::Failure;
use ember_scripting::running::RunningCall;
use ember_scripting::sha1;
use ember_scripting::shebang::ScriptFlags;

/// The interval at which the worker of a long script serves its other connections. It is also the time that the calls
/// of a script may take in total before the script checks whether to continue.
const ATTENDANCE_INTERVAL: Duration = Duration::from_millis(1);

/// The maximum time that a program without effects runs in parallel with other clients, which may wait for its locks.
/// After that, it is stopped and run again with exclusive access.
const PARALLEL_TIME_MAX: Duration = Duration::from_millis(5);

/// The error of a program that has written and then needs a shard that it has not locked. It should never occur,
/// because such a program is not confined.
const ESCAPED: &str = "ERR the script has called a command on a key that it does not declare";

/// The name of a program in errors.
#[derive(Clone, Copy)]
pub(crate) enum Name<'p> {
    /// A script, by its digest.
    Script([u8; 20]),
    /// A function.
    Function(&'p [u8]),
}

impl Name<'_> {
    fn is_function(self) -> bool {
        matches!(self, Name::Function(_))
    }

    fn to_bytes(self) -> Vec<u8> {
        match self {
            Name::Script(sha) => sha1::hex(&sha).into_bytes(),
            Name::Function(name) => name.to_vec(),
        }
    }
}

thread_local! {
    /// The buffer for the words of a script's calls; it is retained between scripts for its allocation.
    static WORDS: Cell<OwnedBatch> = Cell::default();
}

/// A script or function to run.
pub(crate) struct Program<'p> {
    /// The program's name.
    pub(crate) name: Name<'p>,
    /// The flags that the program declares.
    pub(crate) flags: ScriptFlags,
    /// Whether the program was called with a command that never writes.
    pub(crate) is_read_only: bool,
    /// The keys that the call declares.
    pub(crate) keys: &'p [&'p [u8]],
    /// The properties proved for the program's calls, if any.
    pub(crate) confinement: Option<Confinement>,
}

impl Program<'_> {
    /// Returns whether the program may write.
    fn may_write(&self) -> bool {
        !self.is_read_only && !self.flags.contains(ScriptFlags::NO_WRITES)
    }
}

/// Runs a program: calls `run` once the locks are held, with a flag that says whether the program is confined.
///
/// A confined program runs with the locks of its keys' shards, in parallel with other clients; any other program runs
/// with exclusive access.
///
/// # Errors
/// Returns an error if the program may not run, or if it fails.
pub(crate) fn run_program(
    execution: &mut Execution<'_>,
    program: &Program<'_>,
    mut run: impl FnMut(bool, &mut dyn CommandRunner, &mut Reply) -> Result<(), Failure>,
) -> SessionResult {
    let Execution { executor, client, command, args, reply } = execution;
    if program.is_read_only && !program.flags.intersects(ScriptFlags::NO_WRITES | ScriptFlags::UNDECLARED) {
        return Err("ERR Can not execute a script with write flag using *_ro command.".into());
    }
    if program.flags.contains(ScriptFlags::NO_CLUSTER) && executor.server.slots.is_some() {
        return Err("ERR Can not run script on cluster, 'no-cluster' flag is set.".into());
    }
    let is_memory_short =
        executor.config.maxmemory != 0 && executor.free_memory(&mut Guards::None, 0).is_err();
    let answers_for_memory = program.flags.intersects(ScriptFlags::UNDECLARED | ScriptFlags::ALLOW_OOM);
    if is_memory_short && program.may_write() && !answers_for_memory {
        return Err(
            "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'"
                .into(),
        );
    }
    let is_client = client.primary.is_none();
    if is_client && program.may_write() && !program.flags.contains(ScriptFlags::UNDECLARED) {
        let wanted = executor.sync_replicas(Some(client));
        executor
            .server
            .conditions
            .script_refusal(wanted)
            .map_or(Ok(()), |error| Err(CommandError::from(error)))?;
    }
    let is_stale = executor.server.conditions.get().contains(Condition::LINK_DOWN)
        && !executor.config.replica_serve_stale_data;
    if is_client && is_stale && !program.flags.intersects(ScriptFlags::UNDECLARED | ScriptFlags::ALLOW_STALE)
    {
        return Err(
            "MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to 'no' and 'allow-stale' flag is not \
             set on the script."
                .into(),
        );
    }
    if executor.turn.checks_values
        && executor.section == Section::Shared
        && executor.misses_declared_values(client.database, program.keys)
    {
        return Ok(Outcome::Fetch);
    }
    let (server, args, database, mark) = (executor.server, *args, client.database, reply.mark());
    let mut run_once = |executor: &mut Executor, client: &mut Client, guards: &mut Guards<'static>| {
        let (is_confined, started) = (executor.section == Section::Pinned, executor.clock);
        server.scripting.running.begin(executor.index, program.name.is_function(), started);
        let mut host = Host {
            executor,
            client,
            guards,
            program,
            refuses_growth: is_memory_short && !program.flags.contains(ScriptFlags::ALLOW_OOM),
            has_written: false,
            has_effects: false,
            has_escaped: false,
            is_too_long: false,
            slot: None,
            call: args,
            words: WORDS.take(),
            started,
            was_checked: false,
            asked: started,
            is_long: false,
            attended: started,
        };
        host.executor.runs_script = true;
        let result = run(is_confined, &mut host, reply);
        host.executor.runs_script = false;
        host.executor.turn.journal.choose_readers(Readers::ALL);
        host.end();
        if host.has_escaped {
            tracing::error!("a script was wrongly classified as confined");
        }
        let (needs_exclusive_access, has_effects) = (host.has_escaped || host.is_too_long, host.has_effects);
        // SELECT in a script does not change the client's database.
        client.database = database;
        if needs_exclusive_access {
            reply.truncate_to(mark);
        }
        (result, needs_exclusive_access, has_effects)
    };
    let is_confined = executor.section == Section::Shared
        && program.confinement.is_some_and(|confinement| confinement.holds_for(args.len()));
    let mut outcome = None;
    if is_confined {
        let shards_of = |key: &&[u8]| {
            let hash = server.keyspace.hash(key);
            server.keyspace.prefetch_entry(database, hash);
            hash.shard()
        };
        let shards = program.keys.iter().map(shards_of).collect();
        let (result, needs_exclusive_access, has_effects) =
            executor.with_pinned(shards, |executor, guards| run_once(executor, client, guards));
        if needs_exclusive_access && has_effects {
            return Err(ESCAPED.into());
        }
        executor.stats.scripts_concurrent.add(u64::from(!needs_exclusive_access));
        outcome = (!needs_exclusive_access).then_some(result);
    }
    let result = match outcome {
        Some(result) => result,
        None => {
            let mut access = None;
            if executor.section == Section::Shared {
                access = executor.close_gate_to_run(client, command, args)?;
                if access.is_none() {
                    return Ok(Outcome::Again);
                }
            }
            let (result, ..) =
                executor.run_exclusively(access, |executor, guards| run_once(executor, client, guards));
            executor.stats.scripts_exclusive.add(1);
            result
        }
    };
    match result {
        Ok(()) => Ok(Outcome::Done),
        Err(failure) => {
            executor.is_error_counted = failure.is_counted;
            Err(CommandError::Bytes(error_of(&failure, program.name)))
        }
    }
}

/// Returns the error text of a failure, with the name of the script and the line, if known.
fn error_of(failure: &Failure, name: Name<'_>) -> Vec<u8> {
    let mut text = failure.text.clone();
    if let Some((source, line)) = &failure.place {
        let (name, line) = (name.to_bytes(), line.to_string());
        for piece in [b" script: ", &name[..], b", on ", source, b":", line.as_bytes(), b"."] {
            text.extend_from_slice(piece);
        }
    }
    text
}

/// The runner of the calls of one script.
struct Host<'h> {
    executor: &'h mut Executor,
    client: &'h mut Client,
    guards: &'h mut Guards<'static>,
    program: &'h Program<'h>,
    /// Whether calls that need memory are refused until a call has written.
    refuses_growth: bool,
    has_written: bool,
    /// Whether the script has made a call that must not be repeated.
    has_effects: bool,
    /// Whether a call was refused because it needs a shard that is not locked.
    has_escaped: bool,
    /// Whether the script was stopped because it took too long to run in parallel.
    is_too_long: bool,
    /// The cluster slot of the declared keys, or of the first key that the script has accessed; `None` before the first
    /// access.
    slot: Option<u16>,
    /// The client's call that runs the script.
    call: Args<'h>,
    /// The script's current call.
    words: OwnedBatch,
    started: Instant,
    /// Whether the script has already checked whether to continue.
    was_checked: bool,
    /// The clock reading at the last of these checks.
    asked: Instant,
    /// Whether the script has run so long that other clients receive `BUSY`.
    is_long: bool,
    /// The time at which the other connections were last served.
    attended: Instant,
}

impl Host<'_> {
    /// Returns the command that a script's call names, if the call is valid.
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

    /// Returns whether DEBUG permits scripts to call this command, which has the flag `noscript`. Commands that run
    /// other calls, wait, or change what their client receives are never permitted.
    #[cold]
    fn is_opened(&self, command: &Command) -> bool {
        let is_fit = matches!(command.spec.group, Group::Server | Group::Connection)
            && !command.spec.flags.contains(Flags::BLOCKING)
            && !matches!(command.spec.name, "monitor" | "shutdown");
        is_fit && self.executor.server.debug.opens_scripts.load(Ordering::Relaxed)
    }

    /// Checks that the script may make this call now.
    fn check(&mut self, command: &Command, words: Args<'_>) -> Result<(), CommandError> {
        let flags = command.spec.flags;
        if flags.contains(Flags::NOSCRIPT) && !self.is_opened(command) {
            return Err("ERR This Redis command is not allowed from script".into());
        }
        authorization::authorize_scripted(self.executor.server, self.client, command, words)?;
        if !self.program.may_write() && flags.intersects(Flags::WRITE.union(Flags::MAY_REPLICATE)) {
            return Err("ERR Write commands are not allowed from read-only scripts.".into());
        }
        if !self.executor.server.conditions.get().is_empty() && self.client.primary.is_none() {
            self.check_conditions(command, words)?;
        }
        if self.refuses_growth && !self.has_written && flags.contains(Flags::DENYOOM) {
            return Err(CommandError::OutOfMemory);
        }
        Ok(())
    }

    /// Checks that the slots of the server, its role, its disk and its replicas permit the script to make a call now.
    #[cold]
    fn check_conditions(&mut self, command: &Command, words: Args<'_>) -> Result<(), CommandError> {
        let flags = command.spec.flags;
        let caller = self.client.view.slot_caller();
        self.executor.refresh_lease();
        let slot = self.executor.check_slots(caller, command, None, words);
        if let Some(slot) = slot.map_err(|refusal| refusal.script_error())? {
            let mixes_slots = ScriptFlags::UNDECLARED | ScriptFlags::ALLOW_CROSS_SLOT_KEYS;
            let first = self.program.keys.first().map_or(slot, |key| slot_of(key));
            if *self.slot.get_or_insert(first) != slot && !self.program.flags.intersects(mixes_slots) {
                return Err("ERR Script attempted to access keys that do not hash to the same slot".into());
            }
        }
        let Executor { server, config, .. } = &*self.executor;
        let now = server.conditions.get();
        if flags.contains(Flags::WRITE) {
            if now.contains(Condition::REPLICA) {
                return Err(READ_ONLY_ERROR.into());
            }
            let wanted = self.executor.sync_replicas(Some(self.client));
            server.conditions.write_refusal(wanted).map_or(Ok(()), |error| Err(CommandError::from(error)))?;
        }
        if now.contains(Condition::LINK_DOWN)
            && !config.replica_serve_stale_data
            && !flags.contains(Flags::STALE)
        {
            return Err("ERR Can not execute the command on a stale replica".into());
        }
        Ok(())
    }

    /// Returns the hash of the key of a call, if the call has exactly one key and runs with pinned locks.
    ///
    /// # Errors
    /// Returns an error if the call accesses shards that are not locked.
    fn pinned_hash(&mut self, command: &Command, words: Args<'_>) -> Result<Option<KeyHash>, CommandError> {
        if self.executor.section != Section::Pinned {
            return Ok(None);
        }
        let keyspace = &self.executor.server.keyspace;
        let is_held = |arg: usize| {
            let hash = keyspace.hash(words.at(arg));
            self.guards.holds(hash.shard()).then_some(hash)
        };
        let hash = match command.access {
            _ if self.has_escaped || !command.is_contained() => None,
            Access::One(arg) => is_held(arg).map(Some),
            Access::None | Access::Many => {
                let mut positions = command.spec.key_positions(words);
                positions.all(|arg| is_held(arg).is_some()).then_some(None)
            }
        };
        self.has_escaped |= hash.is_none();
        hash.ok_or_else(|| ESCAPED.into())
    }

    fn end(&mut self) {
        self.words.clear();
        WORDS.set(std::mem::take(&mut self.words));
        self.executor.server.scripting.running.end(self.executor.index, self.is_long);
    }

    /// Returns whether the script must stop, because it was killed or the server shuts down.
    fn is_to_end(&self) -> bool {
        let server = self.executor.server;
        let is_ending = server.is_stopping() || SnapshotState::of(server).is_ending.load(Ordering::Relaxed);
        // A script that has written is stopped only if it is long and no more data will be saved.
        let may_be_cut_off = !self.has_written || (self.is_long && server.is_stopping());
        server.scripting.running.is_killed(self.executor.index) || (is_ending && may_be_cut_off)
    }

    /// Marks the script as long; from now on, other clients receive `BUSY`.
    #[cold]
    fn become_long(&mut self) {
        self.is_long = true;
        let call = RunningCall {
            name: self.program.name.to_bytes(),
            words: self.call.iter().map(<[u8]>::to_vec).collect(),
        };
        tracing::warn!(
            "Slow script detected: still in execution after {} milliseconds. {} ends it. Script name is: {}",
            self.started.elapsed().as_millis(),
            if self.program.name.is_function() { "FUNCTION KILL" } else { "SCRIPT KILL" },
            call.name.escape_ascii(),
        );
        self.executor.server.scripting.running.describe(self.executor.index, call);
        self.release_locks();
    }

    /// Releases the locks that the script does not need between two calls, so that no client waits for them.
    fn release_locks(&mut self) {
        self.guards.release(&self.executor.server.keyspace, &mut self.executor.turn);
    }
}

impl CommandRunner for Host<'_> {
    fn run(&mut self, arguments: &[&[u8]], reply: &mut Reply) -> Result<(), Vec<u8>> {
        let mut words = std::mem::take(&mut self.words);
        words.clear();
        words.push(arguments);
        let args = words.command(0);
        let result = self.resolve(args).map_err(|error| (error, None)).and_then(|command| {
            self.check(command, args).map_err(|error| (error, Some(command)))?;
            let hash = self.pinned_hash(command, args).map_err(|error| (error, None))?;
            if command.spec.flags.contains(Flags::WRITE) && !self.has_written {
                let running = &self.executor.server.scripting.running;
                self.has_written = running.begin_writing(self.executor.index);
                if !self.has_written {
                    return Err((KILLED.into(), None));
                }
            }
            Ok((command, hash))
        });
        let result = result.map(|(command, hash)| {
            self.has_effects |= !command.spec.flags.contains(Flags::READONLY);
            let result = self.executor.complete(command, hash, self.client, self.guards, args, reply);
            self.executor.finish(command, &result, args, Some(&self.client.view), reply);
            if self.is_long {
                self.release_locks();
            }
        });
        self.words = words;
        result.map_err(|(error, command)| {
            let text = error.text().into_owned();
            if let Some(command) = command {
                self.executor.stats.by_command[usize::from(command.index)].rejected.add(1);
            }
            if text != KILLED.as_bytes() && text != ESCAPED.as_bytes() {
                self.executor.count_error(&text);
            }
            text
        })
    }

    fn may_run(&mut self, arguments: &[&[u8]]) -> Option<bool> {
        let mut words = OwnedBatch::new();
        words.push(arguments);
        let call = words.command(0);
        self.resolve(call)
            .ok()
            .map(|command| authorization::permits(self.executor.server, self.client, command, call))
    }

    fn choose_readers(&mut self, aof: bool, replicas: bool) {
        let bit = |is_among: bool, reader: Reader| if is_among { reader as u8 } else { 0 };
        let readers = match (aof, replicas) {
            (true, true) => Readers::ALL,
            _ => Readers::from_bits(bit(aof, Reader::Aof) | bit(replicas, Reader::Replicas)),
        };
        self.executor.turn.journal.choose_readers(readers);
    }

    fn is_due(&self) -> bool {
        // The clock was last read after the last call that was not quick.
        self.executor.clock.saturating_duration_since(self.asked) >= ATTENDANCE_INTERVAL
    }

    fn may_continue(&mut self) -> bool {
        self.asked = self.executor.clock;
        if self.is_long {
            if self.attended.elapsed() >= ATTENDANCE_INTERVAL {
                attendance::attend(self.executor);
                self.attended = Instant::now();
            }
            return !self.is_to_end();
        }
        if !std::mem::replace(&mut self.was_checked, true) {
            // A script that is checked is not short, so delayed replies are sent now.
            attendance::send_replies(self.executor);
        }
        let elapsed = self.started.elapsed();
        if self.executor.section == Section::Pinned && !self.has_effects && elapsed >= PARALLEL_TIME_MAX {
            self.is_too_long = true;
            return false;
        }
        let threshold = self.executor.config.busy_reply_threshold;
        if threshold != 0 && elapsed >= Duration::from_millis(threshold) {
            self.become_long();
        }
        !self.is_to_end()
    }
}
