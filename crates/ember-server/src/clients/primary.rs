//! A connection to this server's primary: its commands are applied as they arrive, and only acknowledgements are sent.
//!
//! The thread that opened the connection passes it to a worker and waits for its end. Both share a [`PrimaryLink`].

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

/// The state of a connection to a primary, while it exists and after its end.
pub(crate) struct PrimaryLink {
    /// The offset in the primary's history up to which commands are applied.
    applied: AtomicU64,
    /// The offset up to which commands were read.
    read: AtomicU64,
    /// The database of the next command.
    database: AtomicUsize,
    /// The time of the last read, Unix time in ms.
    read_ms: AtomicI64,
    state: Mutex<LinkState>,
    changed: Condvar,
}

#[derive(Default)]
struct LinkState {
    /// Nothing more is applied.
    is_cut: bool,
    /// The connection is closed.
    has_ended: bool,
    /// The connection: its worker, its number there, the client id.
    address: Option<(usize, usize, u64)>,
    /// Why the link must not continue, if so.
    failure: Option<String>,
    /// Why the connection has ended.
    why: Option<String>,
}

impl PrimaryLink {
    /// Creates a link whose first byte is the one after `offset`, in this database.
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

    /// Returns the database of the next command.
    pub(crate) fn database(&self) -> usize {
        self.database.load(Ordering::Relaxed)
    }

    /// Returns the time of the last read, Unix time in ms.
    pub(crate) fn read_ms(&self) -> i64 {
        self.read_ms.load(Ordering::Relaxed)
    }

    /// Records bytes that were read.
    pub(crate) fn record_read(&self, bytes: usize, now_ms: i64) {
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        self.read_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Stops applying commands. Exact if the calling worker has exclusive access.
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

    /// Returns the connection's worker, its number there, and the client id, once it has them.
    pub(crate) fn address(&self) -> Option<(usize, usize, u64)> {
        self.state.lock().address
    }

    /// Returns why the link must not continue, if so.
    pub(crate) fn failure(&self) -> Option<String> {
        self.state.lock().failure.clone()
    }

    /// Records why the link must not continue; nothing more is applied.
    pub(crate) fn fail(&self, why: String) {
        let mut state = self.state.lock();
        state.is_cut = true;
        state.failure.get_or_insert(why);
    }

    /// Records that the connection is closed, and why, unless a reason is known.
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

    /// Waits for the end, at most `longest`. Returns whether the connection has ended.
    pub(crate) fn wait_for_end(&self, longest: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.has_ended {
            self.changed.wait_for(&mut state, longest);
        }
        state.has_ended
    }
}

/// Receives the applied commands of a link.
pub(crate) trait Relay: Send {
    /// Receives the commands after those received before, as the primary sent them. No other thread has exclusive
    /// access meanwhile.
    fn relay(&mut self, commands: &[u8]);

    /// Declares that the data no longer correspond to any position of the history.
    fn end(&mut self);
}

/// The capacity in bytes that is kept for commands after they were passed on.
const PASSED_KEPT_BYTES: usize = 64 * 1024;

/// The connection's end of the link.
pub(crate) struct FromPrimary {
    pub(crate) link: Arc<PrimaryLink>,
    /// The offset up to which commands are applied.
    offset: u64,
    /// Bytes after it of an incomplete transaction.
    queued: u64,
    /// The commands that were read and not passed on; the applied ones end at `applied_bytes`.
    commands: Vec<u8>,
    applied_bytes: usize,
    relay: Box<dyn Relay>,
    /// Which journal records correspond to which offsets, for those not known to be on disk.
    made: Milestones,
    /// The number of the last record.
    last_record: u64,
    /// Whether the primary has asked for an acknowledgement.
    pub(crate) is_ack_requested: bool,
    /// Receives replies that are discarded; empty between two batches.
    pub(crate) unsent: Reply,
}

impl FromPrimary {
    /// Creates the connection's end of a link; applied commands go to `relay`.
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

    /// Returns the offset up to which commands were run or queued.
    pub(crate) fn position(&self) -> u64 {
        self.offset + self.queued
    }

    /// Records that a command was run, or queued in a transaction that is still open.
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

    /// Publishes the applied offset. `database` is the selected one. No other thread may get exclusive access between a
    /// command and this call.
    pub(crate) fn publish(&mut self, database: usize) {
        // An open transaction has changed neither value yet, and is sent again from its beginning.
        self.link.database.store(database, Ordering::Relaxed);
        self.link.applied.store(self.offset, Ordering::Relaxed);
        if self.applied_bytes > 0 {
            self.relay.relay(&self.commands[..self.applied_bytes]);
            self.commands.drain(..std::mem::take(&mut self.applied_bytes));
            self.commands.shrink_to(PASSED_KEPT_BYTES);
        }
    }

    /// Declares that the applied commands are no longer a prefix of the history. No other thread may get exclusive
    /// access before this call.
    pub(crate) fn end_relay(&mut self) {
        self.relay.end();
    }

    /// Records that everything applied is in journal records up to this number.
    pub(crate) fn advance_record(&mut self, record: u64) {
        self.last_record = self.last_record.max(record);
        self.made.mark(self.offset, self.last_record);
    }

    /// Acknowledges the applied offset to the primary, and the offset on disk if records up to `durable` are on disk.
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

/// A connection to a primary on its way to a worker.
pub(crate) struct NewPrimary {
    pub(crate) socket: OwnedFd,
    pub(crate) tls: Option<Box<TlsStream>>,
    pub(crate) peer: Peer,
    /// Bytes that were read already.
    pub(crate) input: Vec<u8>,
    pub(crate) link: Arc<PrimaryLink>,
    /// Receives the applied commands.
    pub(crate) relay: Box<dyn Relay>,
}

/// A request of the link's thread to a worker.
pub(crate) enum PrimaryOrder {
    /// Serve this connection.
    Adopt(Box<NewPrimary>),
    /// Acknowledge to the primary on the link with this address.
    Acknowledge(usize, u64),
    /// Remove all data to make space for those of the primary, unless the role has changed after change number
    /// `change`; sends whether it has not.
    Empty { change: Option<u64>, done: SyncSender<bool> },
    /// Begin a new append-only file, if there is to be one.
    BeginAof,
    /// The server has become a replica: notify all clients that wait for a key.
    Demote,
    /// A replica that is waited for may have everything now.
    CheckReplicas,
    /// No replica takes over, and this server stays the primary.
    StayPrimary { why: String },
}
