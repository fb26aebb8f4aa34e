//! TEMPORAL FORGET: erases the past of a key, on a job thread, because it reads and rewrites files.

use std::sync::Arc;
use std::time::Instant;

use ember_protocol::{OwnedBatch, Reply};
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;

use super::reading::history_of;
use crate::catalogue::registry::Command;
use crate::clients::client::ClientView;
use crate::executor::Executor;
use crate::executor::jobs::{Effort, Finished, Job, Jobs, Settled};
use crate::executor::session::{Execution, Outcome, SessionResult};
use crate::server::Server;

/// The argument index of the key.
const KEY: usize = 2;

/// The erasure of a key's past.
struct Forgetting {
    client: Arc<ClientView>,
    command: &'static Command,
    call: OwnedBatch,
    begun: Instant,
    database: usize,
    /// The number of the last record when the call began.
    number: u64,
    result: Result<(), CommandError>,
    reply: Box<Reply>,
}

/// Erases the past of a key: later reads of earlier moments return the error FORGOTTEN. The current value is not
/// changed.
///
/// # Errors
/// Returns an error if the history is off or no thread can be started.
pub(crate) fn forget(execution: &mut Execution<'_>) -> SessionResult {
    let Execution { executor, client, command, args, reply } = execution;
    let server = executor.server;
    history_of(server)?;
    let mut call = OwnedBatch::new();
    call.append(*args);
    let mut guards = Guards::None;
    // Under the key's lock, so that all changes that have happened have a number.
    guards.hold_one(&server.keyspace, &mut executor.turn, server.keyspace.hash(args.at(KEY)));
    let number = server.journal.last_number();
    guards.release(&server.keyspace, &mut executor.turn);
    let forgetting = Box::new(Forgetting {
        client: Arc::clone(&client.view),
        command,
        call,
        begun: Instant::now(),
        database: client.database,
        number,
        result: Ok(()),
        reply: Box::new(Reply::new(reply.protocol())),
    });
    if let Err((_, error)) = Jobs::begin(server, Effort::Processor, forgetting) {
        return Err(format!("ERR cannot start a thread: {error}").into());
    }
    Ok(Outcome::Wait(executor.park(command, client, reply)))
}

impl Forgetting {
    fn erase(&self, server: &'static Server) -> Result<(), CommandError> {
        let history = history_of(server)?;
        history.wait_for(server, self.number);
        history.forget(self.database, self.call.command(0).at(KEY));
        // The next change of the key captures the state before it.
        server.gate.while_empty(|| history.covered.forget_known());
        Ok(())
    }
}

impl Job for Forgetting {
    fn worker(&self) -> usize {
        self.client.worker
    }

    fn run(&mut self, server: &'static Server) {
        self.result = self.erase(server);
    }

    fn settle(self: Box<Self>, executor: &mut Executor) -> Option<Settled> {
        let Forgetting { client, command, call, begun, result, mut reply, .. } = *self;
        if result.is_ok() {
            reply.ok();
        }
        let call = Finished {
            client: &client,
            command,
            args: call.command(0),
            wire_bytes_max: call.wire_bytes_max(),
            begun,
            keys: &[],
        };
        Some(executor.finish_job(&call, result, reply))
    }
}
