//! The first step of MIGRATE, on the worker of the client.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use ember_protocol::{Args, OwnedBatch};
use emberkv_core::keys::{Guards, Keys};

use super::order::{Order, key_positions};
use super::service::Migrations;
use super::settling::{Migration, answer};
use super::transfer::Transferred;
use crate::clients::transaction::Watched;
use crate::executor::attendance;
use crate::executor::jobs::{Effort, Jobs};
use crate::executor::session::{Execution, Outcome, SessionResult};
use crate::executor::{Executor, Section};
use crate::system::abort_on_panic::AbortOnPanic;

/// Interval at which a worker serves its other connections while a script on it waits for the target of a MIGRATE.
const ATTENDANCE_INTERVAL: Duration = Duration::from_millis(1);

/// Runs MIGRATE: begins the transfer, or inside a transaction or script completes it.
pub(crate) fn migrate(execution: &mut Execution<'_>) -> SessionResult {
    let Execution { executor, client, command, args, reply } = execution;
    let order = Order::parse(*args)?;
    let (server, database) = (executor.server, client.database);
    let keys = keys_that_are_there(executor, database, *args);
    if keys.is_empty() {
        answer(false, reply);
        return Ok(Outcome::Done);
    }
    let mut call = OwnedBatch::new();
    call.append(*args);
    let mut migration = Box::new(Migration {
        client: Arc::clone(&client.view),
        protocol: reply.protocol(),
        command,
        call,
        begun: Instant::now(),
        database,
        keys,
        watches: Vec::new(),
        order,
        transferred: Transferred::default(),
    });
    if executor.section != Section::Shared {
        let transferred = transfer_in_place(executor, &migration);
        answer(migration.conclude(executor, &transferred)?, reply);
        return Ok(Outcome::Done);
    }
    migration.watches = executor.with_exclusive_access_for(client.view.id, |executor, _| {
        server.hold_keys(&migration.keys);
        migration.keys.iter().map(|key| watch(executor, database, key)).collect()
    })?;
    if let Err((migration, error)) = Jobs::begin(server, Effort::Network, migration) {
        migration.watches.iter().for_each(|watched| watched.end(&server.keyspace, &mut executor.turn));
        server.release_keys(&migration.keys);
        return Err(format!("ERR cannot start a thread: {error}").into());
    }
    Ok(Outcome::Wait(executor.park(command, client, reply)))
}

/// Watches a key as WATCH does. The caller holds no lock.
fn watch(executor: &mut Executor, database: usize, key: &[u8]) -> Watched {
    let mut call = OwnedBatch::new();
    call.push(&[b"WATCH", key]);
    let mut watched = Watched::default();
    watched.add(&executor.server.keyspace, &mut executor.turn, database, call.command(0));
    watched
}

/// Returns the keys of a call that exist.
fn keys_that_are_there(executor: &mut Executor, database: usize, args: Args<'_>) -> Vec<Box<[u8]>> {
    let keyspace = &executor.server.keyspace;
    let mut guards = Guards::None;
    let mut is_there = |arg: &usize| {
        let hash = keyspace.hash(args.at(*arg));
        guards.hold_one(keyspace, &mut executor.turn, hash);
        Keys::new(keyspace, &mut guards, args, database, (*arg, hash), &mut executor.turn)
            .read(*arg)
            .is_some()
    };
    let there = key_positions(args).into_iter().filter(&mut is_there).collect::<Vec<_>>();
    guards.release(keyspace, &mut executor.turn);
    there.into_iter().map(|arg| args.at(arg).into()).collect()
}

/// Transfers the keys on behalf of a transaction or a script, while the worker waits. When a script has waited for
/// long, other clients receive BUSY.
fn transfer_in_place(executor: &mut Executor, migration: &Migration) -> Transferred {
    let server = executor.server;
    let transfer = || Migrations::of(server).transfer_here(server, migration);
    if !executor.runs_script {
        return transfer();
    }
    thread::scope(|scope| {
        let (sender, receiver) = channel();
        let spawned = thread::Builder::new().name("migration".to_owned()).spawn_scoped(scope, move || {
            let _guard = AbortOnPanic;
            // The receiver exists until this result arrives.
            let _ = sender.send(transfer());
        });
        if spawned.is_err() {
            return transfer();
        }
        loop {
            match receiver.recv_timeout(ATTENDANCE_INTERVAL) {
                Ok(transferred) => return transferred,
                Err(RecvTimeoutError::Timeout) if executor.is_script_busy() => attendance::attend(executor),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("a panic ends the process"),
            }
        }
    })
}
