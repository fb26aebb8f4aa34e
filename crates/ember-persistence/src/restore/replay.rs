//! Runs the commands of AOF files against a keyspace without a server.

use std::collections::HashMap;
use std::path::Path;
use std::thread;

use ember_protocol::{Args, OwnedBatch, Protocol, Reply, number};
use emberkv_core::call::{Attempt, DataCommand};
use emberkv_core::commands::FAMILIES;
use emberkv_core::dispatch::{self, Access, Context, Waiting};
use emberkv_core::error::CommandError;
use emberkv_core::events::Notices;
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::Keyspace;
use emberkv_core::turn::Turn;
use emberkv_core::types::limits::EncodingLimits;

use super::{LibraryTexts, RestoreError};
use crate::encryption::FileSource;
use crate::rdb_file::{self, Batch, Inserter, RdbProblem, RdbReader, Step};

/// The maximum number of threads that insert the keys of a base, in addition to the thread that reads it.
const LOADERS_MAX: usize = 8;

/// The longest command name in bytes that is looked up; no command has a longer one.
const NAME_BYTES_MAX: usize = 64;

/// A keyspace being filled from files. As at the startup of a server, nothing expires, because the files contain the
/// removals of expired keys.
pub(super) struct Player<'k> {
    keyspace: &'k Keyspace,
    libraries: &'k mut dyn LibraryTexts,
    commands: HashMap<&'static [u8], &'static DataCommand>,
    turn: Turn,
    guards: Guards<'k>,
    database: usize,
    reply: Reply,
    /// The number of commands that were run.
    pub(super) played: u64,
    /// The number of commands of Redis's files that have failed, with a description of the first one.
    pub(super) failed: u64,
    pub(super) first_failure: Option<String>,
}

/// The reason why a command failed.
enum Failure {
    /// Only a damaged file, or one of a program with other commands, contains this command.
    Impossible(String),
    /// The command may have failed in the same way when it first ran.
    Error(String),
}

impl<'k> Player<'k> {
    /// Creates a player for an empty keyspace.
    pub(super) fn new(keyspace: &'k Keyspace, libraries: &'k mut dyn LibraryTexts) -> Player<'k> {
        let mut turn = Turn::new(0, 1);
        turn.settings.string_bytes_max = usize::MAX;
        turn.replay_at(0);
        let commands = FAMILIES.iter().copied().flatten().copied().flatten();
        Player {
            keyspace,
            libraries,
            commands: commands.map(|command| (command.spec.name.as_bytes(), command)).collect(),
            turn,
            guards: Guards::None,
            database: 0,
            reply: Reply::new(Protocol::Resp2),
            played: 0,
            failed: 0,
            first_failure: None,
        }
    }

    /// Sets the time to record for uses of keys and of consumers of streams, as Unix time in s.
    pub(super) fn set_time(&mut self, unix_s: i64) {
        self.turn.recorded_ms = Some(unix_s.saturating_mul(1000));
    }

    /// Selects database 0: each file starts there and selects other databases itself.
    pub(super) fn begin_file(&mut self) {
        self.database = 0;
    }

    /// Loads the keys and libraries of an RDB part, with all available cores.
    pub(super) fn load(&mut self, reader: &mut RdbReader<FileSource>) -> Result<(), RestoreError> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (keyspace, libraries, now_ms) = (self.keyspace, &mut *self.libraries, self.turn.clock_ms());
        let insert = || {
            let mut inserter = Inserter::new(keyspace, Turn::new(now_ms, 1), EncodingLimits::DEFAULT);
            inserter.keep_expired();
            move |batch: &mut Batch| inserter.insert(batch).map(drop)
        };
        let loaded = rdb_file::load(reader, (cores - 1).min(LOADERS_MAX), insert, |step, _| match step {
            Step::Function(code) => libraries.add(&code).map_err(RdbProblem::Refused),
            Step::Keys | Step::Aux { .. } | Step::Sizes { .. } | Step::Skipped(_) | Step::End => Ok(()),
        });
        Ok(loaded?)
    }

    /// Runs commands that apply as a unit. Commands of a file that ember wrote (`is_own`) succeed unless the file is
    /// damaged.
    pub(super) fn play(
        &mut self,
        unit: &OwnedBatch,
        path: &Path,
        offset: u64,
        is_own: bool,
    ) -> Result<(), RestoreError> {
        for index in 0..unit.len() {
            let args = unit.command(index);
            self.played += 1;
            let (is_final, what) = match self.run(args) {
                Ok(()) => continue,
                Err(Failure::Impossible(what)) => (true, what),
                Err(Failure::Error(what)) => (is_own, what),
            };
            let what = format!("{}: {what}", String::from_utf8_lossy(args.at(0)));
            if is_final {
                return Err(RestoreError::Command { file: path.to_owned(), offset, what });
            }
            self.failed += 1;
            self.first_failure.get_or_insert(format!("{} before offset {offset}: {what}", path.display()));
        }
        self.guards.release(self.keyspace, &mut self.turn);
        self.keyspace.publish_bytes(std::mem::take(&mut self.turn.growth_bytes));
        if !self.turn.notices.is_empty() {
            // No client is to be notified.
            self.turn.notices = Notices::default();
        }
        Ok(())
    }

    fn run(&mut self, args: Args<'_>) -> Result<(), Failure> {
        let name = args.at(0);
        if name.eq_ignore_ascii_case(b"select") && args.len() == 2 {
            let database = number::parse_u64(args.at(1)).and_then(|number| usize::try_from(number).ok());
            let database = database.filter(|&number| number < self.keyspace.databases());
            let missing =
                || "this database does not exist; set the number of databases to that of the server";
            self.database = database.ok_or_else(|| Failure::Impossible(missing().to_owned()))?;
            return Ok(());
        }
        if name.eq_ignore_ascii_case(b"function") && args.len() > 1 {
            return self.libraries.change(args).map_err(Failure::Impossible);
        }
        let command = self.find(args)?;
        let mut context = Context {
            keyspace: self.keyspace,
            guards: &mut self.guards,
            turn: &mut self.turn,
            database: self.database,
            waiting: Waiting::Never,
        };
        self.reply.clear();
        let access = Access::of(&command.spec);
        match dispatch::run(command, access, None, &mut context, args, &mut self.reply) {
            Ok(Attempt::Done) => Ok(()),
            Ok(Attempt::Wait(_) | Attempt::Offload | Attempt::Fetch) => {
                unreachable!("the call may not wait, and all values are in memory")
            }
            Err(error) => Err(Failure::Error(text(&error))),
        }
    }

    fn find(&self, args: Args<'_>) -> Result<&'static DataCommand, Failure> {
        let unknown =
            || Failure::Impossible("this command cannot occur in an AOF of ember or of Redis 7".to_owned());
        let mut lower = [0; NAME_BYTES_MAX];
        let name = args.at(0);
        let lower = lower.get_mut(..name.len()).ok_or_else(unknown)?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let mut command = *self.commands.get(&*lower).ok_or_else(unknown)?;
        if !command.subcommands.is_empty() {
            let word = args.get(1).unwrap_or_default();
            let is_named = |found: &&DataCommand| word.eq_ignore_ascii_case(found.spec.name.as_bytes());
            command = command.subcommands.iter().find(is_named).ok_or_else(unknown)?;
        }
        if !command.spec.accepts(args.len()) {
            let error = CommandError::WrongArity(command.spec.name.into());
            return Err(Failure::Impossible(text(&error)));
        }
        Ok(command)
    }
}

fn text(error: &CommandError) -> String {
    String::from_utf8_lossy(&error.text()).into_owned()
}
