//! The other connections of a worker while one of them runs batches.
//!
//! A worker that runs a script for long attends to them from inside the script: it accepts connections, runs the few
//! commands that may run beside a script, SCRIPT KILL among them, and tells everybody else that the server is busy. What
//! else there is to do waits for the script's end.

use std::time::Duration;

use ember_protocol::{Batch, Limits, ParseStatus};
use scoped_tls_hkt::scoped_thread_local;

use crate::connection::{Connection, Fill};
use crate::driver::{Driver, Readiness};
use crate::executor::{Executor, Progress};
use crate::listener::{Accepted, Incoming, Listener};
use crate::mailbox::{Forwarded, Letter};
use crate::server::Server;
use crate::worker::{LISTENER_TOKEN, connection_of, list, note_readiness};

/// Full batches that one connection gets run in one round.
const ROUND_BATCHES_MAX: usize = 16;

/// What a script's runner asks now and then.
pub(crate) trait Attend {
    /// Serves the connections for a moment; `executor` is the one that runs the script.
    fn attend(&mut self, executor: &mut Executor);
}

scoped_thread_local!(static mut ATTENDANT: for<'a> &'a mut (dyn Attend + 'a));

/// Runs `act`, during which [`attend`] serves `bystanders`.
pub(crate) fn beside<R>(bystanders: &mut Bystanders<'_>, act: impl FnOnce() -> R) -> R {
    ATTENDANT.set(bystanders, act)
}

/// Serves the connections of this thread's worker for a moment, if it has any.
pub(crate) fn attend(executor: &mut Executor) {
    if ATTENDANT.is_set() {
        ATTENDANT.with(|bystanders| bystanders.attend(executor));
    }
}

/// Parts of a worker.
pub(crate) struct Bystanders<'w> {
    pub(crate) server: &'static Server,
    pub(crate) driver: &'w mut Driver,
    pub(crate) listeners: &'w mut [Listener],
    /// All connections but the one that runs something.
    pub(crate) connections: &'w mut Vec<Option<Box<Connection>>>,
    pub(crate) vacant: &'w mut Vec<usize>,
    pub(crate) ready: &'w mut Vec<usize>,
    pub(crate) is_accepting: &'w mut bool,
    /// Letters for later.
    pub(crate) postponed: &'w mut Vec<Letter>,
    pub(crate) limits: &'w Limits,
    pub(crate) unauthenticated: &'w Limits,
    /// The connection that runs something, and what has become of its socket.
    pub(crate) token: usize,
    pub(crate) missed: Vec<Readiness>,
}

impl Attend for Bystanders<'_> {
    fn attend(&mut self, executor: &mut Executor) {
        self.look_around();
        self.open_letters(executor);
        self.accept(executor);
        let mut scratch = Vec::new();
        for token in 0..self.connections.len() {
            let Some(connection) = self.connections[token].as_deref_mut() else { continue };
            let has_something = connection.readable || connection.has_unparsed;
            if has_something && connection.may_run() && !connection.is_handshaking() {
                let limits =
                    if connection.client.is_authenticated { self.limits } else { self.unauthenticated };
                serve(connection, limits, executor, &mut scratch);
                // What is left to do is the worker's, after the script.
                list(self.ready, connection, token);
            }
        }
    }
}

impl Bystanders<'_> {
    /// Asks the system what has happened.
    fn look_around(&mut self) {
        let Bystanders { driver, listeners, connections, ready, is_accepting, token, missed, .. } = self;
        let waited = driver.wait(Duration::ZERO, |readiness| {
            if LISTENER_TOKEN.wrapping_sub(readiness.token) < listeners.len() {
                **is_accepting = true;
            } else if readiness.token == *token {
                missed.push(readiness);
            } else {
                note_readiness(connections, ready, readiness);
            }
        });
        if let Err(error) = waited {
            tracing::error!("waiting for events failed: {error}");
        }
    }

    fn open_letters(&mut self, executor: &mut Executor) {
        let mut letters = Vec::new();
        self.server.workers[executor.index].mailbox.take(&mut letters);
        for letter in letters {
            match letter {
                Letter::Adopt(incoming) => self.adopt(executor, incoming),
                Letter::Run(message) => executor.refuse_forwarded(message),
                Letter::Answer(message) => self.accept_answer(executor, message),
                other => self.postponed.push(other),
            }
        }
    }

    /// Takes the answer to calls that were sent to another worker before the script began.
    fn accept_answer(&mut self, executor: &mut Executor, message: Box<Forwarded>) {
        let token = message.token;
        let Some(connection) = connection_of(self.connections, token, message.client_id) else { return };
        if connection.parked.is_some() {
            // The rest of its batch is to be run behind the answer: the worker's work, after the script.
            self.postponed.push(Letter::Answer(message));
            return;
        }
        let Some(mut assembly) = connection.awaiting.take() else { return };
        if !assembly.accept(message) {
            connection.awaiting = Some(assembly);
            return;
        }
        executor.assemble(*assembly, &mut connection.output);
        // The worker finds a broken connection too.
        let _ = connection.flush();
        list(self.ready, connection, token);
    }

    fn accept(&mut self, executor: &mut Executor) {
        if !std::mem::take(self.is_accepting) {
            return;
        }
        for number in 0..self.listeners.len() {
            while let Accepted::Connection(incoming) = self.listeners[number].accept() {
                let workers = &self.server.workers;
                workers[executor.index].connections.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                self.adopt(executor, incoming);
            }
        }
        // If a listener failed, the next turn finds out.
        *self.is_accepting = true;
    }

    fn adopt(&mut self, executor: &mut Executor, incoming: Incoming) {
        // One that is refused is counted out again when the worker opens this letter's successor.
        if self.try_adopt(executor, incoming).is_none() {
            executor.stats.connections_rejected.add(1);
            let connections = &self.server.workers[executor.index].connections;
            connections.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
        }
    }
}

/// Reads once from a connection, and answers.
fn serve(connection: &mut Connection, limits: &Limits, executor: &mut Executor, scratch: &mut Vec<u8>) {
    if !connection.has_unparsed && !matches!(connection.fill(scratch, &mut Vec::new()), Fill::Bytes(_)) {
        return;
    }
    let (mut input, is_own) = connection.take_input(scratch);
    connection.has_unparsed = false;
    let mut batch = Batch::new();
    for round in 0.. {
        let status = connection.parser.parse(&input, &mut batch, limits);
        if let ParseStatus::NeedLarge = status {
            input.truncate(input.len() - connection.parser.release_tail());
        }
        let (client, output) = (&mut connection.client, &mut connection.output);
        if let Progress::Close = executor.run_beside_script(client, &batch, &input, 0, output) {
            connection.closing = true;
        }
        batch.clear();
        match status {
            _ if connection.closing => break,
            ParseStatus::Full if round < ROUND_BATCHES_MAX => {}
            ParseStatus::Full => {
                connection.has_unparsed = true;
                break;
            }
            ParseStatus::NeedMore | ParseStatus::NeedLarge => break,
            ParseStatus::Err(error) => {
                connection.output.protocol_error(error);
                connection.closing = true;
            }
        }
    }
    connection.put_input_back(input, is_own, scratch);
    // The worker finds a broken connection too.
    let _ = connection.flush();
}
