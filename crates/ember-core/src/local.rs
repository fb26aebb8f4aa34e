//! A keyspace without a server: runs data commands on the calling thread, for tests and benchmarks.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ember_protocol::{Args, OwnedBatch, Protocol, Reply};

use crate::call::{Attempt, DataCommand};
use crate::commands::FAMILIES;
use crate::dispatch::loan::Loan;
use crate::dispatch::{self, Access, Context, Waiting};
use crate::entries::external::{Location, Record};
use crate::error::CommandError;
use crate::keys::Guards;
use crate::keyspace::shard::cold_values::{Demoted, DemotionRules, Encoded, Fetched};
use crate::keyspace::shard::fetch_tickets::{FetchOrder, Requested};
use crate::keyspace::{Keyspace, KeyspaceOptions};
use crate::rdb::Kind;
use crate::turn::Turn;

/// A keyspace of 16 databases with the state of one thread. Its clock changes only when the caller sets it.
pub struct Local {
    /// The keyspace that commands access.
    pub keyspace: Arc<Keyspace>,
    /// The state of the thread; `turn.now_ms` is the current time.
    pub turn: Turn,
    /// The number of the selected database.
    pub database: usize,
    /// Whether long-running calls, which process more elements than the settings allow, run on borrowed values.
    pub borrows_values: bool,
    reply: Reply,
    /// The formats and bytes of the records of demoted values, by location.
    records: HashMap<u64, (Kind, Vec<u8>)>,
    /// Orders of reads that other clients have begun; these reads end when a call misses values for the first time.
    underway: Vec<FetchOrder>,
}

/// The location of the next record. The counter is global because all keyspaces of a process share the count of live
/// bytes.
static NEXT_LOCATION: AtomicU64 = AtomicU64::new(1 << 44);

impl Local {
    /// Returns an empty keyspace at Unix time 1,000,000,000,000 ms.
    pub fn new(protocol: Protocol) -> Local {
        let now_ms = 1_000_000_000_000;
        let options = KeyspaceOptions { now_ms, ..KeyspaceOptions::default() };
        let keyspace = Keyspace::new(&options).expect("the system gives random bytes");
        Local::sharing(Arc::new(keyspace), Turn::new(now_ms, 1), protocol)
    }

    /// Returns a thread's view of a keyspace that several threads use.
    pub fn sharing(keyspace: Arc<Keyspace>, turn: Turn, protocol: Protocol) -> Local {
        let reply = Reply::new(protocol);
        Local {
            keyspace,
            turn,
            database: 0,
            borrows_values: false,
            reply,
            records: HashMap::new(),
            underway: Vec::new(),
        }
    }

    /// Demotes the value of a key of the selected database if the value may be demoted; returns whether it is cold now.
    /// Calls that need the value fetch it.
    pub fn demote(&mut self, key: &[u8]) -> bool {
        self.turn.checks_values = true;
        let hash = self.keyspace.hash(key);
        let records = &mut self.records;
        let mut append = |encoded: &Encoded<'_>| {
            let location = Location::from_bits(NEXT_LOCATION.fetch_add(1, Ordering::Relaxed));
            records.insert(location.bits(), (encoded.kind, encoded.bytes.to_vec()));
            Record::new(location)
        };
        let mut data = self.keyspace.lock(hash.shard());
        let database = self.database;
        let mut demoted =
            data.demote(database, hash, key, &DemotionRules::ANY, |encoded| Some(append(encoded)));
        if let Demoted::Shared(demotion) = demoted {
            let record = demotion.append(append);
            demoted = data.demote_shared(&demotion, record);
        }
        self.keyspace.publish_bytes(self.keyspace.release(hash.shard(), data));
        matches!(demoted, Demoted::Cold(_) | Demoted::Dropped(_))
    }

    /// Begins the fetch of a cold value and returns the order for [`Local::finish_fetch`].
    pub fn begin_fetch(&mut self, database: usize, key: &[u8]) -> Option<FetchOrder> {
        let hash = self.keyspace.hash(key);
        match self.keyspace.lock(hash.shard()).request_value(database, hash, key, None) {
            Requested::Begun(order) => Some(order),
            Requested::Resident | Requested::Joined => None,
        }
    }

    /// Adds a read that ends when a call misses values for the first time.
    pub fn expect_arrival(&mut self, order: FetchOrder) {
        self.underway.push(order);
    }

    /// Reads the value of an order and stores it in its entry.
    pub fn finish_fetch(&mut self, order: &FetchOrder) {
        let (kind, bytes) = &self.records[&order.record.location().bits()];
        let shard = order.hash.shard();
        let mut data = self.keyspace.lock(shard);
        let limits = &self.turn.settings.encoding;
        let fetched = Fetched::decode(*kind, bytes, order.encoding_name, limits);
        data.store_fetched(order, fetched.expect("the value was encoded here"));
        self.keyspace.publish_bytes(self.keyspace.release(shard, data));
    }

    /// Runs one command and returns the bytes of its reply.
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
        while !self.attempt(args)? {
            for order in std::mem::take(&mut self.underway) {
                self.finish_fetch(&order);
            }
            for (database, key) in std::mem::take(&mut self.turn.missing) {
                if let Some(order) = self.begin_fetch(database, &key) {
                    self.finish_fetch(&order);
                }
            }
        }
        Ok(())
    }

    /// Runs a call; returns false if values that the call needs are missing.
    fn attempt(&mut self, args: Args<'_>) -> Result<bool, CommandError> {
        let command = find(args)?;
        let mut guards = Guards::None;
        let mut context = Context {
            keyspace: &self.keyspace,
            guards: &mut guards,
            turn: &mut self.turn,
            database: self.database,
            waiting: Waiting::Never,
        };
        if self.borrows_values && command.run.may_be_long() {
            context.waiting = Waiting::Allowed;
        }
        let access = Access::of(&command.spec);
        let result = dispatch::run(command, access, None, &mut context, args, &mut self.reply);
        let result = match result {
            Ok(Attempt::Fetch) => Ok(false),
            Ok(Attempt::Done) => Ok(true),
            Ok(Attempt::Wait(wait)) => {
                (wait.empty_reply)(&mut self.reply);
                Ok(true)
            }
            Ok(Attempt::Offload) => {
                run_on_borrowed(command, &mut context, args, &mut self.reply).map(|()| true)
            }
            Err(error) => Err(error),
        };
        guards.release(&self.keyspace, &mut self.turn);
        self.keyspace.publish_bytes(std::mem::take(&mut self.turn.growth_bytes));
        result
    }
}

/// Runs a call on borrowed values, after releasing the locks that the thread holds.
fn run_on_borrowed(
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
    assert!(loan.end_watch(context), "no other call has changed a key");
    loan.give_back(context);
    result
}

/// Checks the arity of a call and returns its command.
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
