//! The keyspace without a server: runs data commands on the calling thread, for tests and benchmarks.

use ember_protocol::{Args, OwnedBatch, Protocol, Reply};

use crate::call::DataCommand;
use crate::commands::FAMILIES;
use crate::dispatch::{self, Access, Context};
use crate::error::CommandError;
use crate::keys::Guards;
use crate::keyspace::hash::HashFunction;
use crate::keyspace::{Keyspace, KeyspaceOptions};
use crate::turn::Turn;

/// A keyspace of 16 databases and one thread's view of it, with a clock that stands still until it is set.
pub struct Local {
    /// All data.
    pub keyspace: Keyspace,
    /// The thread's state; `turn.now_ms` is the time.
    pub turn: Turn,
    /// The number of the selected database.
    pub database: usize,
    reply: Reply,
}

impl Local {
    /// An empty keyspace at Unix time 1,000,000,000,000 ms.
    pub fn new(protocol: Protocol) -> Local {
        let now_ms = 1_000_000_000_000;
        let options = KeyspaceOptions { databases: 16, hash_function: HashFunction::Rapidhash, now_ms };
        Local {
            keyspace: Keyspace::new(&options).expect("the system gives random bytes"),
            turn: Turn::new(now_ms, 1),
            database: 0,
            reply: Reply::new(protocol),
        }
    }

    /// Runs one command and returns its reply's bytes.
    pub fn run(&mut self, words: &[&[u8]]) -> Vec<u8> {
        let mut batch = OwnedBatch::new();
        batch.push(words);
        self.reply.clear();
        if let Err(error) = self.dispatch(batch.command(0)) {
            self.reply.error(&error.text());
        }
        self.reply.to_vec()
    }

    fn dispatch(&mut self, args: Args<'_>) -> Result<(), CommandError> {
        let command = find(args)?;
        if !command.spec.accepts(args.len()) {
            return Err(CommandError::WrongArity(command.spec.name.into()));
        }
        let mut guards = Guards::None;
        let mut context = Context {
            keyspace: &self.keyspace,
            guards: &mut guards,
            turn: &mut self.turn,
            database: self.database,
        };
        let access = Access::of(&command.spec);
        let result = dispatch::run(command, access, None, &mut context, args, &mut self.reply);
        guards.release(&self.keyspace, &mut self.turn);
        self.keyspace.publish_bytes(std::mem::take(&mut self.turn.growth_bytes));
        result
    }
}

fn find(args: Args<'_>) -> Result<&'static DataCommand, CommandError> {
    let named = |command: &&DataCommand, arg: usize| {
        args.get(arg).is_some_and(|word| word.eq_ignore_ascii_case(command.spec.name.as_bytes()))
    };
    let mut commands = FAMILIES.iter().copied().flatten().copied().flatten();
    let command = commands.find(|command| named(command, 0)).ok_or("ERR unknown command")?;
    if command.subcommands.is_empty() {
        return Ok(command);
    }
    let subcommand = command.subcommands.iter().find(|command| named(command, 1));
    subcommand.ok_or_else(|| "ERR unknown subcommand".into())
}
