//! The primary's side: the journal's records as a stream of commands, and the replicas that receive it.
//!
//! ```text
//! subscriber.rs  a subscriber of the journal: records → backlog, with PING and GETACK between them
//! spill.rs       the part of the stream on disk; absent.rs: disconnected replicas, for which it is kept
//! nameless.rs    unnamed files for data beyond the memory limits
//! feed.rs        the output of a replica's connection: a snapshot of the data, then the stream
//! copy.rs        the data set at one moment, for full syncs; taking.rs takes it
//! vocabulary.rs  commands that not all replicas support
//! attaching.rs   PSYNC and SYNC: partial or full sync
//! relay.rs       the stream of a server that is a replica itself: the bytes that its primary sends
//! waiting.rs     clients that wait until replicas have their writes
//! upkeep.rs      periodic work
//! place.rs       the position of the data in the stream, for files
//! position.rs    the position of data that a client has read
//! good_replicas.rs   whether there are enough replicas to write
//! followers.rs   the replicas of a cluster node, and which of them are in sync
//! ```
//!
//! A replica remains an ordinary connection of its worker, which reads REPLCONF ACK like any command and sends the
//! output of its [`Feed`](crate::clients::replica::Feed) whenever the socket accepts it. The thread that appends to the
//! stream notifies the workers that have replicas. So the stream passes through no extra thread, and TLS, CLIENT LIST,
//! CLIENT KILL and limits work as for all connections.
//!
//! The stream continues as long as there are replicas, and for `repl-backlog-ttl` after the last one has disconnected.
//! On a replica, the stream continues as long as the server is a replica.

mod absent;
pub(crate) mod attaching;
mod copy;
mod feed;
mod followers;
pub(crate) mod good_replicas;
mod nameless;
mod orders;
pub(crate) mod place;
pub(crate) mod position;
pub(crate) mod relay;
pub(crate) mod replica;
mod spill;
mod spool;
mod subscriber;
mod taking;
pub(crate) mod upkeep;
mod vocabulary;
pub(crate) mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use ember_cluster::in_sync::InSync;
use ember_config::Config;
use ember_protocol::{push_command_head, push_word};
use ember_replication::backlog::Backlog;
use ember_replication::history::History;
use ember_replication::milestones::Milestones;
use parking_lot::Mutex;

use crate::clients::ending::EndReason;
use crate::clients::mailbox::Message;
use crate::clients::sync_wish::SyncWishes;
use crate::journal::order_queue::OrderQueue;
use crate::replication::failover::stage::{Failover, FailoverStage};
use crate::replication::shutdown::stage::{Shutdown, ShutdownStage};
use crate::server::Server;
use crate::system::clock::unix_ms;
use absent::AbsentReplicas;
use copy::Copy;
use orders::Order;
use replica::ReplicaView;
use spill::Spill;
pub(crate) use subscriber::StreamSubscriber;
use vocabulary::LearntWords;
use waiting::Waits;

/// The part of the stream that is kept.
struct Stream {
    backlog: Backlog,
    /// The bytes before the backlog, on disk, if a replica needs them.
    spill: Spill,
    milestones: Milestones,
    /// The number of the last record in the stream.
    last_record: u64,
    /// The position at which trailing GETACKs begin, if nothing follows them.
    getacks_at: Option<u64>,
}

impl Stream {
    /// Returns an empty stream that begins at this position, after record `last_record`.
    fn new(position: u64, last_record: u64) -> Stream {
        Stream {
            backlog: Backlog::new(position),
            spill: Spill::default(),
            milestones: Milestones::default(),
            last_record,
            getacks_at: None,
        }
    }
}

impl Stream {
    /// Returns the position of the first byte that is kept.
    fn first(&self) -> u64 {
        self.spill.first().unwrap_or(self.backlog.first())
    }
}

/// The replicas of one worker, as seen by the thread that appends to the stream.
#[derive(Default)]
struct Listener {
    replicas: AtomicUsize,
    /// Whether the worker was notified and has not read the stream since.
    is_notified: AtomicBool,
}

/// The state of a server as a primary: its stream, and the replicas that receive it.
pub(crate) struct Primary {
    /// Whether files on disk are encrypted.
    encrypts: AtomicBool,
    history: Mutex<History>,
    stream: Mutex<Stream>,
    /// The position after the last byte of the stream.
    end: AtomicU64,
    /// Whether the server has become a replica, but not all its earlier writes are in the stream yet.
    gives_over: AtomicBool,
    /// Whether there is a stream.
    is_on: AtomicBool,
    replicas: Mutex<BTreeMap<u64, Arc<ReplicaView>>>,
    absent: Mutex<AbsentReplicas>,
    listeners: Box<[CachePadded<Listener>]>,
    orders: OrderQueue<Order>,
    /// Snapshots that wait for more replicas before they begin: at most one of each form.
    gathering: Mutex<Vec<Arc<Copy>>>,
    /// Snapshots that have begun and that replicas may still join.
    begun: Mutex<Vec<Arc<Copy>>>,
    learnt_words: Mutex<LearntWords>,
    /// Whether a GETACK is to be sent to the replicas.
    are_acks_requested: AtomicBool,
    waits: Waits,
    /// The clients whose writes require another number of replicas than the configuration.
    pub(crate) sync_wishes: SyncWishes,
    /// Whether replies wait for replicas, so that a GETACK follows each part of the stream.
    syncs: AtomicBool,
    /// Whether replies wait until replicas have the writes on disk.
    requires_disk: AtomicBool,
    /// The number of replicas that must have each write.
    wanted_replicas: AtomicUsize,
    /// The agreement on the in-sync replicas of a cluster node.
    pub(crate) in_sync: Mutex<InSync>,
    /// When the last replica disconnected, Unix time in ms; 0 while a replica is connected or there is no stream.
    without_replicas_since_ms: AtomicI64,
    pub(crate) counts: Counts,
}

/// The synchronization counters in INFO.
#[derive(Default)]
pub(crate) struct Counts {
    /// The number of full syncs.
    pub(crate) full: AtomicU64,
    /// The number of partial syncs.
    pub(crate) partial: AtomicU64,
    /// The number of partial syncs that were requested but not possible.
    pub(crate) partial_refused: AtomicU64,
}

impl Counts {
    /// Sets all counters to zero.
    pub(crate) fn reset(&self) {
        [&self.full, &self.partial, &self.partial_refused]
            .into_iter()
            .for_each(|count| count.store(0, Ordering::Relaxed));
    }
}

impl Primary {
    /// Returns the state of a server with this number of workers, whose data have the replication ID `id`.
    pub(crate) fn new(workers: usize, id: String, encrypts: bool) -> Primary {
        Primary {
            encrypts: AtomicBool::new(encrypts),
            history: Mutex::new(History::new(id)),
            stream: Mutex::new(Stream::new(0, 0)),
            end: AtomicU64::new(0),
            gives_over: AtomicBool::new(false),
            is_on: AtomicBool::new(false),
            replicas: Mutex::default(),
            absent: Mutex::default(),
            listeners: (0..workers).map(|_| CachePadded::default()).collect(),
            orders: OrderQueue::default(),
            gathering: Mutex::default(),
            begun: Mutex::default(),
            learnt_words: Mutex::default(),
            are_acks_requested: AtomicBool::new(false),
            waits: Waits::default(),
            sync_wishes: SyncWishes::default(),
            syncs: AtomicBool::new(false),
            requires_disk: AtomicBool::new(false),
            wanted_replicas: AtomicUsize::new(0),
            in_sync: Mutex::default(),
            without_replicas_since_ms: AtomicI64::new(0),
            counts: Counts::default(),
        }
    }

    /// Returns the server's replication state.
    pub(crate) fn of(server: &Server) -> &Primary {
        server.services.get()
    }

    /// Returns the replication IDs of the stream.
    pub(crate) fn history(&self) -> History {
        self.history.lock().clone()
    }

    /// Sets the replication ID of the stream, without a previous one.
    pub(crate) fn rename_history(&self, id: String) {
        *self.history.lock() = History::new(id);
    }

    /// Continues the stream under a new replication ID from its end on. Replicas are disconnected, so that they
    /// reconnect and receive the new ID.
    pub(crate) fn branch_history(&self, server: &Server, id: String) {
        {
            // A replica that resumes concurrently is either disconnected below or receives the new ID.
            let stream = self.stream.lock();
            self.history.lock().branch(id, stream.backlog.end());
        }
        self.disconnect_all(server, "it must reconnect to receive the new replication ID");
    }

    /// Returns the data that this server has: their replication ID, and the position in the stream. `None` if there is
    /// no stream.
    pub(crate) fn held(&self) -> Option<(String, u64)> {
        let stream = self.stream.lock();
        self.is_on.load(Ordering::Relaxed).then(|| (self.history().id, stream.backlog.end()))
    }

    /// Returns the same as [`Primary::held`] under the replication ID that other servers know. If this server has
    /// chosen its current ID, but has appended nothing to the stream since and no replica has received that ID, other
    /// servers know only the previous ID.
    pub(crate) fn held_by_known_name(&self) -> Option<(String, u64)> {
        let (id, position) = self.held()?;
        let replicas = self.counts.full.load(Ordering::Relaxed) + self.counts.partial.load(Ordering::Relaxed);
        let history = self.history();
        let before = history.before.filter(|(_, end)| history.is_own && *end == position && replicas == 0);
        Some(before.unwrap_or((id, position)))
    }

    /// Whether a replica that has confirmed `position` has the whole stream, except for trailing GETACKs.
    pub(crate) fn is_all(&self, position: u64) -> bool {
        let stream = self.stream.lock();
        position == stream.backlog.end() || stream.getacks_at == Some(position)
    }

    /// Whether all journal records are in the stream. Exact with exclusive access.
    pub(crate) fn has_all_records(&self, server: &Server) -> bool {
        self.stream.lock().last_record == server.journal.last_number() && !self.orders.has_some()
    }

    /// Requests that a GETACK is sent to the replicas.
    pub(crate) fn request_acks(&self, server: &Server) {
        self.are_acks_requested.store(true, Ordering::SeqCst);
        server.journal.call_thread();
    }

    /// Whether a client, a failover or a shutdown waits for acknowledgements of replicas.
    pub(crate) fn is_awaited(&self, server: &Server) -> bool {
        self.syncs.load(Ordering::Relaxed)
            || self.waits.has_some()
            || Failover::of(server).stage() != FailoverStage::Off
            || Shutdown::of(server).stage() != ShutdownStage::Off
            || server.pause.is_handing_over()
    }

    /// Closes the connections of all replicas.
    fn disconnect_all(&self, server: &Server, why: &str) {
        for view in self.replicas() {
            view.record_end(why.to_owned());
            server.kill(&view.client, EndReason::Killed);
        }
    }

    /// Returns the position after the last byte of the stream.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Returns the position after the last byte of the stream, waiting for a thread that is appending to it.
    pub(crate) fn settled_end(&self) -> u64 {
        self.stream.lock().backlog.end()
    }

    /// Returns the position of the first byte that is kept, if there is a stream.
    pub(crate) fn first_kept(&self) -> Option<u64> {
        self.is_on.load(Ordering::Relaxed).then(|| self.stream.lock().first())
    }

    /// Returns the memory of the backlog in bytes.
    pub(crate) fn backlog_bytes(&self) -> usize {
        if self.is_on.load(Ordering::Relaxed) { self.stream.lock().backlog.memory_bytes() } else { 0 }
    }

    /// Returns the number of stream bytes that are kept on disk.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.stream.lock().spill.bytes()
    }

    /// Returns all replicas, ordered by client id.
    pub(crate) fn replicas(&self) -> Vec<Arc<ReplicaView>> {
        self.replicas.lock().values().cloned().collect()
    }

    /// Returns the replica with this client id.
    pub(crate) fn replica(&self, client_id: u64) -> Option<Arc<ReplicaView>> {
        self.replicas.lock().get(&client_id).cloned()
    }

    fn join(&self, view: &Arc<ReplicaView>) {
        self.listeners[view.client.worker].replicas.fetch_add(1, Ordering::SeqCst);
        self.replicas.lock().insert(view.client.id, Arc::clone(view));
        self.absent.lock().record_connected(&view.name());
        self.without_replicas_since_ms.store(0, Ordering::Relaxed);
    }

    fn leave(&self, view: &ReplicaView) {
        if self.replicas.lock().remove(&view.client.id).is_some() && view.can_resume() {
            self.absent.lock().record_disconnected(view.name(), view.needed(), unix_ms());
        }
        self.listeners[view.client.worker].replicas.fetch_sub(1, Ordering::SeqCst);
    }

    /// Returns the tokens and client ids of a worker's replicas, to which the worker is about to send.
    pub(crate) fn replicas_of(&self, worker: usize) -> Vec<(usize, u64)> {
        // The flag is cleared before the worker reads the stream, so that later bytes cause another notification.
        self.listeners[worker].is_notified.store(false, Ordering::SeqCst);
        let replicas = self.replicas.lock();
        let own = replicas.values().filter(|view| view.client.worker == worker);
        own.map(|view| (view.client.token, view.client.id)).collect()
    }

    /// Sends a command to the replicas after all records so far; `database` is the database that it needs, if any.
    pub(crate) fn pass_on<'w>(
        &self,
        server: &Server,
        words: impl Iterator<Item = &'w [u8]>,
        database: Option<usize>,
    ) {
        if self.is_on.load(Ordering::Relaxed) {
            let words: Vec<&[u8]> = words.collect();
            let mut encoded = Vec::new();
            push_command_head(words.len(), &mut encoded);
            words.iter().for_each(|word| push_word(word, &mut encoded));
            self.orders.add(Order::PassOn {
                after: server.journal.last_number(),
                command: encoded,
                database,
            });
            server.journal.call_thread();
        }
    }

    /// Appends commands to the stream, and discards bytes that no replica needs. Returns the end of the stream.
    fn add(&self, stream: &mut Stream, commands: &[u8], config: &Config) -> u64 {
        stream.backlog.append(commands);
        stream.getacks_at = None;
        let end = stream.backlog.end();
        self.end.store(end, Ordering::Release);
        if stream.backlog.oldest().is_some_and(|(first, chunk)| {
            first + chunk.len() as u64 <= end.saturating_sub(config.repl_backlog_size)
        }) {
            self.trim(stream, config);
        }
        end
    }

    /// Discards the bytes before the backlog that no replica needs. Bytes that a replica needs are kept on disk, up to
    /// `repl-backlog-spill`; if that is 0, in memory, up to `client-output-buffer-limit replica`.
    fn trim(&self, stream: &mut Stream, config: &Config) {
        let end = stream.backlog.end();
        let kept_from = end.saturating_sub(config.repl_backlog_size);
        let needed = self.needed(config);
        if config.repl_backlog_spill > 0 {
            let encrypts = self.encrypts.load(Ordering::Relaxed);
            while let Some((first, chunk)) = stream.backlog.oldest() {
                let chunk_end = first + chunk.len() as u64;
                if chunk_end > kept_from {
                    break;
                }
                if needed >= chunk_end {
                    stream.spill.clear();
                } else if let Err(error) = stream.spill.append(first, chunk, encrypts) {
                    tracing::warn!(
                        "lagging replicas need a full sync, because the stream cannot be kept for them: {error}"
                    );
                }
                stream.backlog.forget_before(chunk_end);
            }
            stream.spill.forget_before(needed.max(kept_from.saturating_sub(config.repl_backlog_spill)));
        } else {
            stream.spill.clear();
            let limit = config.client_output_buffer_limit.replica.hard_bytes;
            let farthest = if limit == 0 { 0 } else { end.saturating_sub(limit) };
            stream.backlog.forget_before(kept_from.min(needed.max(farthest)));
        }
        let first = stream.first();
        stream.milestones.forget_before(first);
        self.absent.lock().forget(first, i64::MIN);
    }

    /// Returns the first position that a connected replica, or a disconnected replica that may resume, still needs.
    fn needed(&self, config: &Config) -> u64 {
        let replicas = self.replicas.lock();
        let slowest = replicas.values().map(|view| view.needed()).min();
        drop(replicas);
        // Bytes for disconnected replicas are kept only on disk.
        let absent = if config.repl_backlog_spill > 0 { self.absent.lock().needed() } else { None };
        slowest.into_iter().chain(absent).min().unwrap_or(u64::MAX)
    }

    /// Records that a replica was too slow: bytes that it needs are no longer kept.
    fn record_slow(&self, view: &ReplicaView) {
        if !view.is_dropped.swap(true, Ordering::Relaxed) {
            self.absent.lock().record_slow(view.name(), unix_ms());
        }
    }

    /// Records whether a disconnected replica loaded the snapshot that it received. A replica that does not load it,
    /// for whatever reason, would otherwise request one full sync after another. Replicas without a known port are
    /// excluded, because they cannot be distinguished.
    fn record_copied(&self, view: &ReplicaView) {
        if view.is_old || view.port == 0 {
            return;
        }
        let mut absent = self.absent.lock();
        if view.has_confirmed() {
            absent.record_loaded(&view.name());
        } else if absent.record_unloaded(&view.name(), unix_ms()) {
            tracing::warn!(
                "the replica {} does not load the snapshots of its full syncs; its log may contain the reason: its next \
                 full sync is delayed",
                view.name()
            );
        }
    }

    /// Notifies the workers that have replicas of new bytes in the stream.
    fn notify_workers(&self, server: &Server) {
        for (worker, listener) in self.listeners.iter().enumerate() {
            if listener.replicas.load(Ordering::SeqCst) == 0 {
                continue;
            }
            let mailbox = &server.workers[worker].mailbox;
            if !listener.is_notified.swap(true, Ordering::SeqCst) {
                mailbox.send(Message::Feed);
            } else if self.is_awaited(server) {
                // The worker may have postponed sending the stream.
                mailbox.ring();
            }
        }
    }
}
