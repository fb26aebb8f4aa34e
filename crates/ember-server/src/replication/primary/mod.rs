//! The primary's side: the records of the journal as a stream of commands, and the replicas that get it.
//!
//! ```text
//! subscriber.rs  a subscriber of the journal: records → backlog, and PING and GETACK between them
//! spill.rs       what is kept of the stream beyond memory; absent.rs for whom
//! nameless.rs    files for what memory has no room for
//! feed.rs        what a replica's connection is given in place of replies: a copy of the data, then the stream
//! copy.rs        the data set at one moment, for replicas that have nothing it could go on from; taking.rs takes it
//! vocabulary.rs  commands that not all replicas know
//! attaching.rs   PSYNC and SYNC: whether a replica goes on or gets a copy
//! relay.rs       the stream of a server that is a replica itself: what its primary sends
//! waiting.rs     clients that wait until replicas have what they have written
//! upkeep.rs      what is done periodically
//! place.rs       where the data stand in the stream: what files say of it
//! position.rs    where what somebody has seen stands in it
//! good_replicas.rs   whether there are enough replicas to write
//! ```
//!
//! A replica stays a connection of its worker, which reads its REPLCONF ACK like any command and sends what its
//! [`Feed`](crate::clients::replica::Feed) gives whenever the socket takes it. Whoever adds to the stream tells the workers
//! that have replicas. So no thread stands between a write and the replicas, and TLS, CLIENT LIST, CLIENT KILL and limits
//! are those of all connections.
//!
//! The stream goes on as long as there are replicas, and for `repl-backlog-ttl` after the last one has gone. That of a
//! server which is a replica itself goes on as long as it is one.

mod absent;
pub(crate) mod attaching;
mod copy;
mod feed;
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
use ember_cluster::replication::backlog::Backlog;
use ember_cluster::replication::history::History;
use ember_cluster::replication::milestones::Milestones;
use ember_protocol::{push_command_head, push_word};
use parking_lot::Mutex;

use crate::clients::ending::EndReason;
use crate::clients::mailbox::Message;
use crate::clients::sync_wish::SyncWishes;
use crate::config::Config;
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

/// The stream, as far as it is kept.
struct Stream {
    backlog: Backlog,
    /// What lies before the backlog, if anybody needs it.
    spill: Spill,
    milestones: Milestones,
    /// The number of the last record in it.
    last_record: u64,
    /// Where it begins to ask replicas what they have, if nothing else is behind that.
    asks_at: Option<u64>,
}

impl Stream {
    /// One that is empty and begins at a position, behind a record.
    fn new(position: u64, last_record: u64) -> Stream {
        Stream {
            backlog: Backlog::new(position),
            spill: Spill::default(),
            milestones: Milestones::default(),
            last_record,
            asks_at: None,
        }
    }
}

impl Stream {
    /// The position of the first byte that is kept.
    fn first(&self) -> u64 {
        self.spill.first().unwrap_or(self.backlog.first())
    }
}

/// A worker with replicas.
#[derive(Default)]
struct Listener {
    replicas: AtomicUsize,
    /// It was told of something new and has not looked yet.
    is_told: AtomicBool,
}

/// See the module.
pub(crate) struct Primary {
    /// What gets to a disk is encrypted.
    encrypts: AtomicBool,
    history: Mutex<History>,
    stream: Mutex<Stream>,
    /// The position behind the last byte of the stream.
    end: AtomicU64,
    /// The server has become a replica, and not all that it did before is in the stream yet.
    gives_over: AtomicBool,
    /// Whether records go into the stream.
    is_on: AtomicBool,
    replicas: Mutex<BTreeMap<u64, Arc<ReplicaView>>>,
    absent: Mutex<AbsentReplicas>,
    listeners: Box<[CachePadded<Listener>]>,
    orders: OrderQueue<Order>,
    /// The copies that wait for more replicas before they begin: one of each form at most.
    gathering: Mutex<Vec<Arc<Copy>>>,
    /// Copies that have begun and may still be joined.
    begun: Mutex<Vec<Arc<Copy>>>,
    learnt_words: Mutex<LearntWords>,
    /// Replicas are to be asked what they have.
    wants_acks: AtomicBool,
    waits: Waits,
    /// The clients that want another number of replicas to have what they write than the configuration says.
    pub(crate) sync_wishes: SyncWishes,
    /// Replies wait for replicas: these are asked what they have behind all that is written.
    syncs: AtomicBool,
    /// They are to have it on their disks.
    is_disk_wanted: AtomicBool,
    /// Since when there is no replica, Unix time in ms; 0 while there is one, or there is no stream.
    alone_since_ms: AtomicI64,
    pub(crate) counts: Counts,
}

/// What INFO tells of synchronizations.
#[derive(Default)]
pub(crate) struct Counts {
    /// Replicas that got a copy.
    pub(crate) full: AtomicU64,
    /// Those that went on where they were.
    pub(crate) partial: AtomicU64,
    /// Those that could not although they have asked for it.
    pub(crate) partial_refused: AtomicU64,
}

impl Counts {
    /// Sets all to zero.
    pub(crate) fn reset(&self) {
        [&self.full, &self.partial, &self.partial_refused]
            .into_iter()
            .for_each(|count| count.store(0, Ordering::Relaxed));
    }
}

impl Primary {
    /// That of a server with so many workers, whose data has this name.
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
            wants_acks: AtomicBool::new(false),
            waits: Waits::default(),
            sync_wishes: SyncWishes::default(),
            syncs: AtomicBool::new(false),
            is_disk_wanted: AtomicBool::new(false),
            alone_since_ms: AtomicI64::new(0),
            counts: Counts::default(),
        }
    }

    /// That of a server.
    pub(crate) fn of(server: &Server) -> &Primary {
        server.services.get()
    }

    /// The names that the stream goes by.
    pub(crate) fn history(&self) -> History {
        self.history.lock().clone()
    }

    /// Gives the stream another name, as if it were nobody's continuation.
    pub(crate) fn rename_history(&self, id: String) {
        *self.history.lock() = History::new(id);
    }

    /// Gives what comes now another name. Replicas are to come again, and to hear of it.
    pub(crate) fn branch_history(&self, server: &Server, id: String) {
        {
            // Who goes on where it was is one of those that come again, or hears the new name.
            let stream = self.stream.lock();
            self.history.lock().branch(id, stream.backlog.end());
        }
        self.disconnect_all(server, "it is to come again and hear of the history's new name");
    }

    /// The data that this server has: the name of their history, and a position in it. Nothing if there is no stream.
    pub(crate) fn held(&self) -> Option<(String, u64)> {
        let stream = self.stream.lock();
        self.is_on.load(Ordering::Relaxed).then(|| (self.history().id, stream.backlog.end()))
    }

    /// The same by the name that others know: while nothing was added to the stream under the name that this server has
    /// given it and no replica has heard of that, the data are those of the history before.
    pub(crate) fn held_by_known_name(&self) -> Option<(String, u64)> {
        let (id, position) = self.held()?;
        let replicas = self.counts.full.load(Ordering::Relaxed) + self.counts.partial.load(Ordering::Relaxed);
        let history = self.history();
        let before = history.before.filter(|(_, end)| history.is_own && *end == position && replicas == 0);
        Some(before.unwrap_or((id, position)))
    }

    /// Whether a replica that has confirmed a position has all that is in the stream, but for what only asks it for that.
    pub(crate) fn is_all(&self, position: u64) -> bool {
        let stream = self.stream.lock();
        position == stream.backlog.end() || stream.asks_at == Some(position)
    }

    /// Whether all records that there are, are in the stream. Exact with exclusive access.
    pub(crate) fn has_all_records(&self, server: &Server) -> bool {
        self.stream.lock().last_record == server.journal.last_number() && !self.orders.has_some()
    }

    /// Has the replicas asked what they have.
    pub(crate) fn ask_replicas(&self, server: &Server) {
        self.wants_acks.store(true, Ordering::SeqCst);
        server.journal.call_thread();
    }

    /// Whether somebody waits until replicas have what was written.
    pub(crate) fn is_awaited(&self, server: &Server) -> bool {
        self.syncs.load(Ordering::Relaxed)
            || self.waits.has_some()
            || Failover::of(server).stage() != FailoverStage::Off
            || Shutdown::of(server).stage() != ShutdownStage::Off
    }

    /// Closes the connections of all replicas.
    fn disconnect_all(&self, server: &Server, why: &str) {
        for view in self.replicas() {
            view.note_end(why.to_owned());
            server.kill(&view.client, EndReason::Killed);
        }
    }

    /// The position behind the last byte of the stream.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// The same, with all that somebody is about to add.
    pub(crate) fn settled_end(&self) -> u64 {
        self.stream.lock().backlog.end()
    }

    /// The position of the first byte that is kept, if there is a stream.
    pub(crate) fn first_kept(&self) -> Option<u64> {
        self.is_on.load(Ordering::Relaxed).then(|| self.stream.lock().first())
    }

    /// The memory in bytes of what is kept of the stream.
    pub(crate) fn backlog_bytes(&self) -> usize {
        if self.is_on.load(Ordering::Relaxed) { self.stream.lock().backlog.memory_bytes() } else { 0 }
    }

    /// The bytes on the disk of what is kept of the stream beyond memory.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.stream.lock().spill.bytes()
    }

    /// All replicas, by the ids of their clients.
    pub(crate) fn replicas(&self) -> Vec<Arc<ReplicaView>> {
        self.replicas.lock().values().cloned().collect()
    }

    /// The replica that is this client.
    pub(crate) fn replica(&self, client_id: u64) -> Option<Arc<ReplicaView>> {
        self.replicas.lock().get(&client_id).cloned()
    }

    fn join(&self, view: &Arc<ReplicaView>) {
        self.listeners[view.client.worker].replicas.fetch_add(1, Ordering::SeqCst);
        self.replicas.lock().insert(view.client.id, Arc::clone(view));
        self.absent.lock().note_there(&view.name());
        self.alone_since_ms.store(0, Ordering::Relaxed);
    }

    fn leave(&self, view: &ReplicaView) {
        if self.replicas.lock().remove(&view.client.id).is_some() && view.comes_back() {
            self.absent.lock().note_gone(view.name(), view.needed(), unix_ms());
        }
        self.listeners[view.client.worker].replicas.fetch_sub(1, Ordering::SeqCst);
    }

    /// The tokens and ids of the replicas of a worker, which is about to look at them.
    pub(crate) fn replicas_of(&self, worker: usize) -> Vec<(usize, u64)> {
        // Before they are looked at: what comes then is told again.
        self.listeners[worker].is_told.store(false, Ordering::SeqCst);
        let replicas = self.replicas.lock();
        let own = replicas.values().filter(|view| view.client.worker == worker);
        own.map(|view| (view.client.token, view.client.id)).collect()
    }

    /// Has a command of a database, or of none, passed on to replicas, behind all records that there are.
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
                behind: server.journal.last_number(),
                command: encoded,
                database,
            });
            server.journal.call_thread();
        }
    }

    /// Adds commands at the end of the stream, and forgets what nobody needs any more.
    fn add(&self, stream: &mut Stream, commands: &[u8], config: &Config) -> u64 {
        stream.backlog.append(commands);
        stream.asks_at = None;
        let end = stream.backlog.end();
        self.end.store(end, Ordering::Release);
        if stream.backlog.oldest().is_some_and(|(first, chunk)| {
            first + chunk.len() as u64 <= end.saturating_sub(config.repl_backlog_size)
        }) {
            self.trim(stream, config);
        }
        end
    }

    /// Forgets what nobody needs any more. What somebody needs is kept on the disk, up to `repl-backlog-spill`, or without
    /// that in memory, as far as `client-output-buffer-limit replica` allows.
    fn trim(&self, stream: &mut Stream, config: &Config) {
        let end = stream.backlog.end();
        let kept_from = end.saturating_sub(config.repl_backlog_size);
        let needed = self.needed(config);
        if config.repl_backlog_spill > 0 {
            let encrypts = self.encrypts.load(Ordering::Relaxed);
            while let Some((first, chunk)) = stream.backlog.oldest() {
                let behind = first + chunk.len() as u64;
                if behind > kept_from {
                    break;
                }
                if needed >= behind {
                    stream.spill.clear();
                } else if let Err(error) = stream.spill.append(first, chunk, encrypts) {
                    tracing::warn!(
                        "replicas that are behind need a copy: the stream cannot be kept for them: {error}"
                    );
                }
                stream.backlog.forget_before(behind);
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

    /// The position from which on somebody needs the stream, who is there or is to come back.
    fn needed(&self, config: &Config) -> u64 {
        let replicas = self.replicas.lock();
        let slowest = replicas.values().map(|view| view.needed()).min();
        drop(replicas);
        // They are remembered for the spill alone.
        let absent = if config.repl_backlog_spill > 0 { self.absent.lock().needed() } else { None };
        slowest.into_iter().chain(absent).min().unwrap_or(u64::MAX)
    }

    /// Notes that a replica was too slow: what it needs is not kept any more.
    fn note_slow(&self, view: &ReplicaView) {
        if !view.is_dropped.swap(true, Ordering::Relaxed) {
            self.absent.lock().note_slow(view.name(), unix_ms());
        }
    }

    /// Notes that a replica is gone that has got a copy, for whatever reason it has not loaded that: else it would get one
    /// after the other. One whose port is not known may be several.
    fn note_copied(&self, view: &ReplicaView) {
        if view.is_old || view.port == 0 {
            return;
        }
        let mut absent = self.absent.lock();
        if view.has_confirmed() {
            absent.note_loaded(&view.name());
        } else if absent.note_unloaded(&view.name(), unix_ms()) {
            tracing::warn!(
                "the replica {} does not load its copies of the data, its log may say why: it gets the next one later",
                view.name()
            );
        }
    }

    /// Tells the workers that have replicas that there is something for them.
    fn tell_workers(&self, server: &Server) {
        for (worker, listener) in self.listeners.iter().enumerate() {
            if listener.replicas.load(Ordering::SeqCst) == 0 {
                continue;
            }
            let mailbox = &server.workers[worker].mailbox;
            if !listener.is_told.swap(true, Ordering::SeqCst) {
                mailbox.send(Message::Feed);
            } else if self.is_awaited(server) {
                // It may have put it off.
                mailbox.ring();
            }
        }
    }
}
