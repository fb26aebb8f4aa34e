//! The keyspace without a server: runs data commands on the calling thread, for tests and benchmarks.

use std::sync::Arc;

use ember_protocol::{Args, OwnedBatch, Protocol, Reply};

use crate::call::{Attempt, DataCommand};
use crate::commands::FAMILIES;
use crate::dispatch::loan::Loan;
use crate::dispatch::{self, Access, Context, Waiting};
use crate::error::CommandError;
use crate::keys::Guards;
use crate::keyspace::{Keyspace, KeyspaceOptions};
use crate::turn::Turn;

/// A keyspace of 16 databases and one thread's view of it, with a clock that stands still until it is set.
pub struct Local {
    /// All data.
    pub keyspace: Arc<Keyspace>,
    /// The thread's state; `turn.now_ms` is the time.
    pub turn: Turn,
    /// The number of the selected database.
    pub database: usize,
    /// Whether calls that look at more elements than the settings allow run on what their keys lend them.
    pub lends: bool,
    reply: Reply,
}

impl Local {
    /// An empty keyspace at Unix time 1,000,000,000,000 ms.
    pub fn new(protocol: Protocol) -> Local {
        let now_ms = 1_000_000_000_000;
        let options = KeyspaceOptions { now_ms, ..KeyspaceOptions::default() };
        let keyspace = Keyspace::new(&options).expect("the system gives random bytes");
        Local::sharing(Arc::new(keyspace), Turn::new(now_ms, 1), protocol)
    }

    /// A thread's view of a keyspace that others use too.
    pub fn sharing(keyspace: Arc<Keyspace>, turn: Turn, protocol: Protocol) -> Local {
        Local { keyspace, turn, database: 0, lends: false, reply: Reply::new(protocol) }
    }

    /// Runs one command and returns its reply's bytes.
    pub fn run(&mut self, words: &[&[u8]]) -> Vec<u8> {
        let mut batch = OwnedBatch::new();
        batch.push(words);
        self.reply.clear();
        if let Err(error) = self.dispatch(batch.command(0)) {
            self.reply.error_bytes(&error.text());
        }
        self.reply.to_vec()
    }

    fn dispatch(&mut self, args: Args<'_>) -> Result<(), CommandError> {
        let command = find(args)?;
        let mut guards = Guards::None;
        let mut context = Context {
            keyspace: &self.keyspace,
            guards: &mut guards,
            turn: &mut self.turn,
            database: self.database,
            waiting: Waiting::Never,
        };
        if self.lends && command.run.may_be_long() {
            context.waiting = Waiting::Allowed;
        }
        let access = Access::of(&command.spec);
        let result = dispatch::run(command, access, None, &mut context, args, &mut self.reply);
        let result = match result {
            Ok(Attempt::Done) => Ok(()),
            Ok(Attempt::Wait(wait)) => {
                (wait.empty_reply)(&mut self.reply);
                Ok(())
            }
            Ok(Attempt::Offload) => run_lent(command, &mut context, args, &mut self.reply),
            Err(error) => Err(error),
        };
        guards.release(&self.keyspace, &mut self.turn);
        self.keyspace.publish_bytes(std::mem::take(&mut self.turn.growth_bytes));
        result
    }
}

/// Runs a call on what its keys lend it, without the locks that it has held until now.
fn run_lent(
    command: &'static DataCommand,
    context: &mut Context<'_, '_>,
    args: Args<'_>,
    reply: &mut Reply,
) -> Result<(), CommandError> {
    let mut loan = Loan::take(command, context, args);
    context.guards.release(context.keyspace, context.turn);
    let result = loan.run(context.keyspace, reply);
    let keyspace = context.keyspace;
    let mut shards =
        command.spec.key_positions(args).map(|arg| keyspace.hash(args.at(arg)).shard()).collect();
    context.guards.hold_many(keyspace, context.turn, &mut shards);
    assert!(loan.end_watch(context), "nobody else has changed a key");
    loan.give_back(context);
    result
}

/// The command that `args` call, which has the right number of them.
fn find(args: Args<'_>) -> Result<&'static DataCommand, CommandError> {
    let named = |command: &&DataCommand, arg: usize| {
        args.get(arg).is_some_and(|word| word.eq_ignore_ascii_case(command.spec.name.as_bytes()))
    };
    let mut commands = FAMILIES.iter().copied().flatten().copied().flatten();
    let command = commands.find(|command| named(command, 0)).ok_or("ERR unknown command")?;
    let name = command.spec.name;
    if !command.spec.accepts(args.len()) {
        return Err(CommandError::WrongArity(name.into()));
    }
    if command.subcommands.is_empty() {
        return Ok(command);
    }
    let subcommand = command.subcommands.iter().find(|command| named(command, 1));
    let subcommand = subcommand.ok_or_else(|| {
        let given = String::from_utf8_lossy(args.at(1));
        format!("ERR unknown subcommand '{given}'. Try {} HELP.", name.to_uppercase())
    })?;
    if !subcommand.spec.accepts(args.len()) {
        return Err(CommandError::WrongArity(format!("{name}|{}", subcommand.spec.name).into()));
    }
    Ok(subcommand)
}
