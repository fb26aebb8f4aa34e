//! A connection to this server's primary: its commands are applied as they come, and nothing but acknowledgements is sent.
//!
//! The thread that made the connection gives it to a worker and waits for its end. The two share a [`PrimaryLink`].

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use ember_cluster::replication::milestones::Milestones;
use ember_protocol::{Args, Reply};
use parking_lot::{Condvar, Mutex};

use super::client::Peer;
use crate::tls::TlsStream;

/// What is known of a connection to a primary, as long as there is one and behind its end.
pub(crate) struct PrimaryLink {
    /// The byte of the primary's history up to which its commands are applied.
    applied: AtomicU64,
    /// The byte up to which they were read.
    read: AtomicU64,
    /// The database that the next command is for.
    database: AtomicUsize,
    /// When something was last read, Unix time in ms.
    read_ms: AtomicI64,
    state: Mutex<LinkState>,
    changed: Condvar,
}

#[derive(Default)]
struct LinkState {
    /// Nothing more is to be applied.
    is_cut: bool,
    /// The connection is closed.
    has_ended: bool,
    /// Which connection it is: its worker, its number there, the client's id.
    address: Option<(usize, usize, u64)>,
    /// Why it must not go on, if that is so.
    failure: Option<String>,
    /// Why it has ended.
    why: Option<String>,
}

impl PrimaryLink {
    /// A link whose first byte is the one behind `offset`, in this database.
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

    /// The byte up to which commands are applied.
    pub(crate) fn applied(&self) -> u64 {
        self.applied.load(Ordering::Relaxed)
    }

    /// The byte up to which commands were read.
    pub(crate) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// The database that the next command is for.
    pub(crate) fn database(&self) -> usize {
        self.database.load(Ordering::Relaxed)
    }

    /// When something was last read, Unix time in ms.
    pub(crate) fn read_ms(&self) -> i64 {
        self.read_ms.load(Ordering::Relaxed)
    }

    /// Notes bytes that were read.
    pub(crate) fn note_read(&self, bytes: usize, now_ms: i64) {
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        self.read_ms.store(now_ms, Ordering::Relaxed);
    }

    /// From now on nothing is applied any more. Exact for a worker with exclusive access.
    pub(crate) fn cut(&self) {
        self.state.lock().is_cut = true;
        self.changed.notify_all();
    }

    /// Whether nothing is to be applied any more.
    pub(crate) fn is_cut(&self) -> bool {
        self.state.lock().is_cut
    }

    /// Notes which connection it is.
    pub(crate) fn note_address(&self, worker: usize, token: usize, client_id: u64) {
        self.state.lock().address = Some((worker, token, client_id));
    }

    /// Its worker, its number there, and the client's id, once it has them.
    pub(crate) fn address(&self) -> Option<(usize, usize, u64)> {
        self.state.lock().address
    }

    /// Why it must not go on, if that is so.
    pub(crate) fn failure(&self) -> Option<String> {
        self.state.lock().failure.clone()
    }

    /// Notes why it must not go on; nothing more is applied.
    pub(crate) fn fail(&self, why: String) {
        let mut state = self.state.lock();
        state.is_cut = true;
        state.failure.get_or_insert(why);
    }

    /// Notes that the connection is closed, and why, unless that is known.
    pub(crate) fn end(&self, why: Option<String>) {
        let mut state = self.state.lock();
        state.has_ended = true;
        state.why = state.why.take().or(why);
        self.changed.notify_all();
    }

    /// Notes why the connection is about to be closed.
    pub(crate) fn note_end(&self, why: &str) {
        self.state.lock().why.get_or_insert_with(|| why.to_owned());
    }

    /// Why it is closed.
    pub(crate) fn why_it_ended(&self) -> String {
        self.state.lock().why.clone().unwrap_or_else(|| "this server cannot serve it".to_owned())
    }

    /// Whether the connection is closed.
    pub(crate) fn has_ended(&self) -> bool {
        self.state.lock().has_ended
    }

    /// Waits for its end, but no longer than `longest`. Whether it has come.
    pub(crate) fn wait_for_end(&self, longest: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.has_ended {
            self.changed.wait_for(&mut state, longest);
        }
        state.has_ended
    }
}

/// Takes what was applied of a link.
pub(crate) trait Relay: Send {
    /// Takes the commands behind those that it has taken before, as they were sent. Nobody but the caller has exclusive
    /// access meanwhile.
    fn relay(&mut self, commands: &[u8]);

    /// The data are not those of the history at any position any more.
    fn end(&mut self);
}

/// Bytes of commands that were passed on whose memory is kept.
const PASSED_KEPT_BYTES: usize = 64 * 1024;

/// A connection's end of the link.
pub(crate) struct FromPrimary {
    pub(crate) link: Arc<PrimaryLink>,
    /// The byte up to which commands are applied.
    offset: u64,
    /// Bytes behind it of a transaction that is not complete.
    queued: u64,
    /// The commands that were read and not passed on; those that are applied end at `applied_bytes`.
    commands: Vec<u8>,
    applied_bytes: usize,
    relay: Box<dyn Relay>,
    /// Which records of the journal have been made up to which bytes, for what is not known to be on disk.
    made: Milestones,
    /// The number of the last one.
    last_record: u64,
    /// The primary has asked how far this server is.
    pub(crate) is_asked: bool,
    /// Where replies go that nobody gets; empty between two batches.
    pub(crate) unsent: Reply,
}

impl FromPrimary {
    /// That of a link; what is applied goes to `relay`.
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
            // The primary sends nothing after a copy of its data before it has heard of this server.
            is_asked: true,
            unsent: Reply::default(),
        }
    }

    /// The byte up to which commands were run or queued.
    pub(crate) fn position(&self) -> u64 {
        self.offset + self.queued
    }

    /// Notes that a command was run, or queued as a part of a transaction that is still open.
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

    /// Tells others how far it is. `database` is the one that is selected. Exclusive access must not be had by anybody else
    /// between a command and this.
    pub(crate) fn publish(&mut self, database: usize) {
        // A transaction that is open does not change it, and is sent again from its beginning.
        self.link.database.store(database, Ordering::Relaxed);
        self.link.applied.store(self.offset, Ordering::Relaxed);
        if self.applied_bytes > 0 {
            self.relay.relay(&self.commands[..self.applied_bytes]);
            self.commands.drain(..std::mem::take(&mut self.applied_bytes));
            self.commands.shrink_to(PASSED_KEPT_BYTES);
        }
    }

    /// What is applied is no prefix of the history any more. Exclusive access must not be had by anybody else before this.
    pub(crate) fn end_relay(&mut self) {
        self.relay.end();
    }

    /// Notes that records up to this number have been made of all that was applied.
    pub(crate) fn note_record(&mut self, record: u64) {
        self.last_record = self.last_record.max(record);
        self.made.note(self.offset, self.last_record);
    }

    /// Tells the primary how far it is, and if records up to `durable` are on disk, how far it is there.
    pub(crate) fn acknowledge(&mut self, output: &mut Reply, durable: Option<u64>) {
        self.is_asked = false;
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
    /// What was read already.
    pub(crate) input: Vec<u8>,
    pub(crate) link: Arc<PrimaryLink>,
    /// Gets what is applied.
    pub(crate) relay: Box<dyn Relay>,
}

/// What the thread that sees to the link wants of a worker.
pub(crate) enum PrimaryOrder {
    /// Serve this connection.
    Adopt(Box<NewPrimary>),
    /// Tell the primary how far the link with this address is.
    Acknowledge(usize, u64),
    /// Remove all data to make room for that of the primary, unless there has been a change of the role behind change number
    /// `change`; says whether there has been none.
    Empty { change: Option<u64>, done: SyncSender<bool> },
    /// Begin the append-only file anew, if there is to be one.
    BeginAof,
    /// The server has become a replica: whoever waits for a key is told so.
    Demote,
    /// A replica that is waited for may have all by now.
    LookAtReplicas,
    /// No replica takes over, and this server stays the primary.
    StayPrimary { why: String },
}
