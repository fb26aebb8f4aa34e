//! A thread that runs batches of commands like a server's worker: hash all keys, prefetch table lines, prefetch entries,
//! run.

use std::hint::black_box;

use ember_protocol::{OwnedBatch, Protocol, Reply};
use emberkv_core::call::DataCommand;
use emberkv_core::commands::FAMILIES;
use emberkv_core::dispatch::{self, Access, Context, Waiting};
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::{Keyspace, KeyspaceOptions};
use emberkv_core::turn::Turn;

/// The maximum number of commands of a batch.
pub(crate) const BATCH: usize = 64;

pub(crate) fn command(name: &str) -> &'static DataCommand {
    let mut all = FAMILIES.iter().copied().flatten().copied().flatten();
    all.find(|command| command.spec.name == name).expect("the command exists")
}

pub(crate) fn keyspace() -> Keyspace {
    let options = KeyspaceOptions::default();
    Keyspace::new(&options).expect("the system gives random bytes")
}

pub(crate) struct Thread<'k> {
    keyspace: &'k Keyspace,
    turn: Turn,
    reply: Reply,
}

impl<'k> Thread<'k> {
    pub(crate) fn new(keyspace: &'k Keyspace, seed: u64) -> Thread<'k> {
        Thread { keyspace, turn: Turn::new(1, seed), reply: Reply::new(Protocol::Resp2) }
    }

    /// Runs a batch of at most [`BATCH`] calls of a command whose first argument is its only key.
    pub(crate) fn run(&mut self, command: &DataCommand, batch: &OwnedBatch) {
        let mut hashes = [self.keyspace.hash(&[]); BATCH];
        let hashes = &mut hashes[..batch.len()];
        for (number, hash) in hashes.iter_mut().enumerate() {
            *hash = self.keyspace.hash(batch.command(number).at(1));
            self.keyspace.prefetch_shard(*hash);
        }
        hashes.iter().for_each(|&hash| self.keyspace.prefetch_group(hash));
        hashes.iter().for_each(|&hash| self.keyspace.prefetch_entry(0, hash));
        let mut guards = Guards::None;
        self.reply.clear();
        for (number, &hash) in hashes.iter().enumerate() {
            let Thread { keyspace, turn, reply } = self;
            let mut context =
                Context { keyspace, guards: &mut guards, turn, database: 0, waiting: Waiting::Never };
            let args = batch.command(number);
            let result = dispatch::run(command, Access::One(1), Some(hash), &mut context, args, reply);
            result.expect("the command succeeds");
        }
        guards.release(self.keyspace, &mut self.turn);
        self.keyspace.publish_bytes(std::mem::take(&mut self.turn.growth_bytes));
        black_box(&self.reply);
    }
}
