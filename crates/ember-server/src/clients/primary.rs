//! A connection to this server's primary: this server applies the primary's commands as they arrive, and sends only
//! acknowledgements.
//!
//! The thread that opened the connection passes it to a worker and waits until the connection is closed. Both threads
//! share a [`PrimaryLink`].

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use ember_protocol::{Args, Reply};
use ember_replication::milestones::Milestones;
use parking_lot::{Condvar, Mutex};

use super::client::Peer;
use crate::tls::TlsStream;

/// The state of a connection to a primary, which remains after the connection is closed.
pub(crate) struct PrimaryLink {
    /// The offset in the primary's replication history up to which commands are applied.
    applied: AtomicU64,
    /// The offset in the history up to which commands were read from the socket.
    read: AtomicU64,
    /// The database that the next command applies to.
    database: AtomicUsize,
    /// The time of the last read, as Unix time in ms.
    read_ms: AtomicI64,
    state: Mutex<LinkState>,
    changed: Condvar,
}

#[derive(Default)]
struct LinkState {
    /// Whether no more commands are applied.
    is_cut: bool,
    /// Whether the connection is closed.
    has_ended: bool,
    /// The address of the connection: its worker, its token there, and the client id.
    address: Option<(usize, usize, u64)>,
    /// The reason why the link must not be resumed; `None` if it may.
    failure: Option<String>,
    /// The reason why the connection is closed or about to be closed.
    why: Option<String>,
}

impl PrimaryLink {
    /// Creates a link whose first byte follows `offset` in the history; the first command applies to `database`.
    pub(crate) fn new(offset: u64, database: usize, now_ms: i64) -> PrimaryLink {
        PrimaryLink {
            applied: AtomicU64::new(offset),
            read: AtomicU64::new(offset),
            database: AtomicUsize::new(database),
            read_ms: AtomicI64::new(now_ms),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Returns the offset up to which commands are applied.
    pub(crate) fn applied(&self) -> u64 {
        self.applied.load(Ordering::Relaxed)
    }

    /// Returns the offset up to which commands were read.
    pub(crate) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Returns the database that the next command applies to.
    pub(crate) fn database(&self) -> usize {
        self.database.load(Ordering::Relaxed)
    }

    /// Returns the time of the last read, as Unix time in ms.
    pub(crate) fn read_ms(&self) -> i64 {
        self.read_ms.load(Ordering::Relaxed)
    }

    /// Records that this number of bytes was read.
    pub(crate) fn record_read(&self, bytes: usize, now_ms: i64) {
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        self.read_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Stops applying commands. If the calling worker has exclusive access, no command is applied after this call.
    pub(crate) fn cut(&self) {
        self.state.lock().is_cut = true;
        self.changed.notify_all();
    }

    /// Returns whether no more commands are applied.
    pub(crate) fn is_cut(&self) -> bool {
        self.state.lock().is_cut
    }

    /// Records the address of the connection.
    pub(crate) fn record_address(&self, worker: usize, token: usize, client_id: u64) {
        self.state.lock().address = Some((worker, token, client_id));
    }

    /// Returns the address of the connection: its worker, its token there, and the client id; `None` until a worker
    /// serves it.
    pub(crate) fn address(&self) -> Option<(usize, usize, u64)> {
        self.state.lock().address
    }

    /// Returns the reason for which the link must not be resumed, if there is one.
    pub(crate) fn failure(&self) -> Option<String> {
        self.state.lock().failure.clone()
    }

    /// Records why the link must not be resumed; from now on no commands are applied.
    pub(crate) fn fail(&self, why: String) {
        let mut state = self.state.lock();
        state.is_cut = true;
        state.failure.get_or_insert(why);
    }

    /// Records that the connection is closed, and why, unless a reason is already recorded.
    pub(crate) fn end(&self, why: Option<String>) {
        let mut state = self.state.lock();
        state.has_ended = true;
        state.why = state.why.take().or(why);
        self.changed.notify_all();
    }

    /// Records why the connection is about to be closed.
    pub(crate) fn record_end(&self, why: &str) {
        self.state.lock().why.get_or_insert_with(|| why.to_owned());
    }

    /// Returns why the connection is closed.
    pub(crate) fn why_it_ended(&self) -> String {
        self.state.lock().why.clone().unwrap_or_else(|| "this server cannot serve the connection".to_owned())
    }

    /// Returns whether the connection is closed.
    pub(crate) fn has_ended(&self) -> bool {
        self.state.lock().has_ended
    }

    /// Waits until the connection is closed, at most for `longest`. Returns whether it is closed.
    pub(crate) fn wait_for_end(&self, longest: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.has_ended {
            self.changed.wait_for(&mut state, longest);
        }
        state.has_ended
    }
}

/// The receiver of a link's applied commands.
pub(crate) trait Relay: Send {
    /// Receives the commands that follow those of the previous call, in the form in which the primary sent them. During
    /// the call, no other thread has exclusive access.
    fn relay(&mut self, commands: &[u8]);

    /// Declares that the data no longer correspond to any offset of the history.
    fn end(&mut self);
}

/// The capacity in bytes that the buffer of applied commands retains after they are passed to the relay.
const PASSED_KEPT_BYTES: usize = 64 * 1024;

/// The part of the link that belongs to the connection.
pub(crate) struct FromPrimary {
    pub(crate) link: Arc<PrimaryLink>,
    /// The offset up to which commands are applied.
    offset: u64,
    /// The bytes after `offset` that belong to an incomplete transaction.
    queued: u64,
    /// The commands that were read and not yet passed to the relay; those that are applied end at `applied_bytes`.
    commands: Vec<u8>,
    applied_bytes: usize,
    relay: Box<dyn Relay>,
    /// The journal record that corresponds to each offset, for offsets that are not known to be on disk.
    made: Milestones,
    /// The number of the last journal record.
    last_record: u64,
    /// Whether the primary has requested an acknowledgement.
    pub(crate) is_ack_requested: bool,
    /// A buffer for replies that are discarded; empty between two batches.
    pub(crate) unsent: Reply,
}

impl FromPrimary {
    /// Creates the connection's part of a link; applied commands are passed to `relay`.
    pub(crate) fn new(link: Arc<PrimaryLink>, relay: Box<dyn Relay>) -> FromPrimary {
        let offset = link.applied();
        FromPrimary {
            link,
            offset,
            queued: 0,
            commands: Vec::new(),
            applied_bytes: 0,
            relay,
            made: Milestones::default(),
            last_record: 0,
            // After a full sync the primary sends nothing before this server's first acknowledgement.
            is_ack_requested: true,
            unsent: Reply::default(),
        }
    }

    /// Returns the offset up to which commands are applied or queued.
    pub(crate) fn position(&self) -> u64 {
        self.offset + self.queued
    }

    /// Records that a command was applied, or queued in a transaction that is still open.
    #[inline]
    pub(crate) fn advance(&mut self, command: Args<'_>, is_open: bool) {
        let before = self.commands.len();
        command.encode(&mut self.commands);
        self.queued += (self.commands.len() - before) as u64;
        if !is_open {
            self.offset += std::mem::take(&mut self.queued);
            self.applied_bytes = self.commands.len();
        }
    }

    /// Publishes the applied offset and the selected database. No other thread may get exclusive access between a
    /// command and this call.
    pub(crate) fn publish(&mut self, database: usize) {
        // An open transaction has changed neither of the two values yet, and the primary would send it again from its
        // beginning.
        self.link.database.store(database, Ordering::Relaxed);
        self.link.applied.store(self.offset, Ordering::Relaxed);
        if self.applied_bytes > 0 {
            self.relay.relay(&self.commands[..self.applied_bytes]);
            self.commands.drain(..std::mem::take(&mut self.applied_bytes));
            self.commands.shrink_to(PASSED_KEPT_BYTES);
        }
    }

    /// Declares that the applied commands are no longer a prefix of the history. No other thread may get exclusive
    /// access between the failed command and this call.
    pub(crate) fn end_relay(&mut self) {
        self.relay.end();
    }

    /// Records that the changes of all applied commands are in journal records up to this number.
    pub(crate) fn advance_record(&mut self, record: u64) {
        self.last_record = self.last_record.max(record);
        self.made.mark(self.offset, self.last_record);
    }

    /// Acknowledges the applied offset to the primary. If there is an append-only file, of which records up to
    /// `durable` are on disk, it also acknowledges the corresponding offset.
    pub(crate) fn acknowledge(&mut self, output: &mut Reply, durable: Option<u64>) {
        self.is_ack_requested = false;
        let on_disk = durable.map(|durable| {
            self.made.forget_before(durable);
            self.made.record_at(durable).unwrap_or(0)
        });
        output.array(if on_disk.is_some() { 5 } else { 3 });
        output.bulk(b"REPLCONF");
        output.bulk(b"ACK");
        output.bulk(itoa::Buffer::new().format(self.offset).as_bytes());
        if let Some(offset) = on_disk {
            output.bulk(b"FACK");
            output.bulk(itoa::Buffer::new().format(offset).as_bytes());
        }
    }
}

/// A connection to a primary that is being passed to a worker.
pub(crate) struct NewPrimary {
    pub(crate) socket: OwnedFd,
    pub(crate) tls: Option<Box<TlsStream>>,
    pub(crate) peer: Peer,
    /// Bytes that were already read from the socket.
    pub(crate) input: Vec<u8>,
    pub(crate) link: Arc<PrimaryLink>,
    /// The receiver of the applied commands.
    pub(crate) relay: Box<dyn Relay>,
}

/// A request of the link's thread, or of another worker, to a worker.
pub(crate) enum PrimaryOrder {
    /// Serve this connection.
    Adopt(Box<NewPrimary>),
    /// Send an acknowledgement to the primary, on the link whose connection has this token and client id.
    Acknowledge(usize, u64),
    /// Remove all data before those of the primary are loaded, unless the role has changed after change number
    /// `change`; `done` receives whether the data were removed.
    Empty { change: Option<u64>, done: SyncSender<bool> },
    /// Begin a new append-only file, if `appendonly` is set.
    BeginAof,
    /// End all blocked calls and close their connections, because the server has become a replica.
    Demote,
    /// Check whether the replicas that a failover or a shutdown waits for have received everything.
    CheckReplicas,
    /// Stay the primary: the failover has failed for the reason `why`.
    StayPrimary { why: String },
}
