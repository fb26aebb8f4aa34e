//! Clients that wait until replicas have their writes (WAIT, WAITAOF).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ember_config::SYNC_REPLICAS_MAX;
use ember_protocol::Reply;
use emberkv_core::observers::Waiter;
use parking_lot::Mutex;

use super::Primary;
use super::replica::Stage;
use crate::clients::mailbox::Message;
use crate::server::Server;

/// The error when WAITAOF requires a local append-only file and there is none.
pub(crate) const NO_AOF: &str = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

/// The condition that a client waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The number of the journal record that the replicas must have.
    pub(crate) record: u64,
    /// The number of replicas that must have the record.
    pub(crate) replicas: u64,
    /// Where the record must be on disk: nowhere with `None`, on the replicas with `Some(false)`, on the replicas and
    /// this server with `Some(true)`.
    pub(crate) on_disk: Option<bool>,
}

impl Wanted {
    /// Returns how many replicas have the record, on disk if so required.
    pub(crate) fn replicas_now(&self, server: &Server) -> u64 {
        let primary = Primary::of(server);
        let replicas = primary.replicas();
        let stream = primary.stream.lock();
        let has = |position| stream.milestones.record_at(position).is_some_and(|last| last >= self.record);
        let online = replicas.iter().filter(|view| view.stage() == Stage::Online);
        let confirmed = online.filter(|view| match self.on_disk {
            None => self.record == 0 || has(view.acknowledged()),
            Some(_) => has(view.durable()),
        });
        confirmed.count() as u64
    }

    /// Whether this server has the record on disk.
    pub(crate) fn is_durable_here(&self, server: &Server) -> bool {
        server.journal.is_read_by(crate::journal::Reader::Aof) && self.record <= server.journal.durable()
    }

    /// Whether the condition can no longer be fulfilled, because this server has no append-only file now.
    fn is_impossible(&self, server: &Server) -> bool {
        self.on_disk == Some(true) && !server.journal.is_read_by(crate::journal::Reader::Aof)
    }

    /// Whether the condition is fulfilled, or can no longer be fulfilled.
    pub(crate) fn is_settled(&self, server: &Server) -> bool {
        self.is_impossible(server) || self.is_so(server)
    }

    /// Whether the condition is fulfilled.
    fn is_so(&self, server: &Server) -> bool {
        (self.on_disk != Some(true) || self.is_durable_here(server))
            && (self.replicas == 0 || self.replicas_now(server) >= self.replicas)
    }

    /// Replies with the current number of replicas, and with WAITAOF whether the record is on this server's disk.
    pub(crate) fn answer(&self, server: &Server, reply: &mut Reply) {
        if self.is_impossible(server) {
            return reply.error(NO_AOF);
        }
        if self.on_disk.is_some() {
            reply.array(2);
            reply.integer(i64::from(self.is_durable_here(server)));
        }
        reply.integer(self.replicas_now(server) as i64);
    }
}

/// The waiting clients.
#[derive(Default)]
pub(super) struct Waits {
    count: AtomicUsize,
    waiting: Mutex<Vec<(Arc<Waiter>, Wanted)>>,
}

impl Waits {
    /// Whether any client waits.
    pub(super) fn has_some(&self) -> bool {
        self.count.load(Ordering::SeqCst) != 0
    }
}

impl Primary {
    /// Releases replies that are held until replicas have the writes, as far as replicas have confirmed them.
    pub(crate) fn release_replies(&self, server: &Server) {
        if !self.syncs.load(Ordering::Relaxed) {
            return;
        }
        let requires_disk = self.requires_disk.load(Ordering::Relaxed);
        let replicas = self.replicas();
        let online = replicas.iter().filter(|view| view.stage() == Stage::Online);
        let mut positions: Vec<u64> =
            online.map(|view| if requires_disk { view.durable() } else { view.acknowledged() }).collect();
        positions.sort_unstable_by(|one, other| other.cmp(one));
        let mut records = [0; SYNC_REPLICAS_MAX];
        {
            let stream = self.stream.lock();
            for (record, position) in records.iter_mut().zip(positions) {
                *record = stream.milestones.record_at(position).unwrap_or(0);
            }
        }
        if let Some((wanted, record)) = self.record_in_sync(server)
            && let Some(slot) = records.get_mut(wanted - 1)
        {
            *slot = record;
        }
        server.journal.publish_replicated(records, |worker| server.workers[worker].mailbox.ring());
    }

    /// Registers a waiting client, and requests a GETACK to the replicas.
    pub(crate) fn wait(&self, server: &Server, waiter: &Arc<Waiter>, wanted: Wanted) {
        let mut waiting = self.waits.waiting.lock();
        waiting.push((Arc::clone(waiter), wanted));
        self.waits.count.store(waiting.len(), Ordering::SeqCst);
        drop(waiting);
        self.are_acks_requested.store(true, Ordering::SeqCst);
        server.journal.call_thread();
    }

    /// Replies to clients whose condition is fulfilled. O(waiting clients).
    pub(super) fn serve_waits(&self, server: &Server) {
        if self.waits.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut waiting = self.waits.waiting.lock();
        waiting.retain(|(waiter, wanted)| {
            if waiter.is_over() {
                return false;
            }
            if !wanted.is_settled(server) || !waiter.claim() {
                return true;
            }
            let mut reply = Reply::new(waiter.protocol);
            wanted.answer(server, &mut reply);
            waiter.finish();
            let served = Message::Served(waiter.token, waiter.client_id, Box::new(reply), 0);
            server.workers[waiter.worker].mailbox.send(served);
            false
        });
        self.waits.count.store(waiting.len(), Ordering::SeqCst);
    }
}
