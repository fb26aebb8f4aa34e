//! Client-side caching: which clients keep copies of what they read, and telling them when it has changed.
//!
//! A client in the default mode is told of keys that it has read: the shard's observers note them under the lock of the
//! read, so no change slips in between. A client in the broadcasting mode is told of all keys with certain prefixes.
//! What it is told may stand behind the reply of the read, never before it: a tracked client's reads are not forwarded to
//! another worker, and what another worker has to tell comes by letter, after the batch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ember_protocol::{Args, Reply};
use emberkv_core::keys::{Guards, Keys};
use emberkv_core::keyspace::SHARDS;
use emberkv_core::spec::Flags;
use parking_lot::RwLock;

use crate::client::{Client, ClientView};
use crate::executor::{Executor, Section};
use crate::pubsub::{Address, Push};
use crate::registry::{Command, Handler};
use crate::server::Server;

/// Which reads of a client are tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Choice {
    /// All.
    #[default]
    All,
    /// Those behind `CLIENT CACHING YES`.
    OptIn,
    /// All but those behind `CLIENT CACHING NO`.
    OptOut,
}

/// How a client tracks; made anew by each `CLIENT TRACKING ON`.
#[derive(Debug, Default)]
pub(crate) struct Tracking {
    /// The prefixes of the keys to be told of, in the broadcasting mode: in order, none of them the beginning of another.
    pub(crate) prefixes: Option<Vec<Vec<u8>>>,
    /// The memory in bytes that those take.
    pub(crate) prefixes_bytes: usize,
    pub(crate) choice: Choice,
    /// Whether the client is not told of its own changes.
    pub(crate) no_loop: bool,
    /// The client that is told in place of this one.
    pub(crate) redirect: Option<u64>,
    /// Whether that client is gone.
    pub(crate) is_redirect_broken: AtomicBool,
}

impl Tracking {
    /// Whether the client is told of prefixes instead of what it has read.
    pub(crate) fn is_broadcast(&self) -> bool {
        self.prefixes.is_some()
    }

    /// Whether the client is told of this key in the broadcasting mode. O(log prefixes).
    fn has_prefix_of(&self, key: &[u8]) -> bool {
        let prefixes = self.prefixes.as_deref().unwrap_or_default();
        // A prefix of the key stands right before it: what stands between them would begin with it too.
        let behind = prefixes.partition_point(|prefix| prefix.as_slice() <= key);
        behind.checked_sub(1).is_some_and(|at| key.starts_with(&prefixes[at]))
    }
}

/// All tracking clients.
#[derive(Default)]
pub(crate) struct Trackers {
    clients: RwLock<BTreeMap<u64, Arc<ClientView>>>,
    broadcasting: AtomicUsize,
}

impl Trackers {
    /// Lets a client track, in place of how it did before.
    pub(crate) fn begin(&self, view: &Arc<ClientView>, tracking: Arc<Tracking>) {
        self.end(view);
        if tracking.is_broadcast() {
            // SeqCst: whoever is asked to write after the client has got its reply must see it.
            self.broadcasting.fetch_add(1, Ordering::SeqCst);
        }
        *view.tracking.lock() = Some(tracking);
        self.clients.write().insert(view.id, Arc::clone(view));
    }

    /// Ends a client's tracking.
    pub(crate) fn end(&self, view: &ClientView) {
        if let Some(tracking) = view.tracking.lock().take() {
            if tracking.is_broadcast() {
                self.broadcasting.fetch_sub(1, Ordering::SeqCst);
            }
            self.clients.write().remove(&view.id);
        }
    }

    /// Whether some client is in the broadcasting mode.
    pub(crate) fn is_broadcasting(&self) -> bool {
        self.broadcasting.load(Ordering::SeqCst) > 0
    }

    /// The number of tracking clients.
    pub(crate) fn len(&self) -> usize {
        self.clients.read().len()
    }

    /// The number of different prefixes.
    pub(crate) fn prefixes(&self) -> usize {
        let clients = self.clients.read();
        let mut prefixes: Vec<Vec<u8>> = clients
            .values()
            .filter_map(|view| view.tracking.lock().clone())
            .flat_map(|tracking| tracking.prefixes.clone().unwrap_or_default())
            .collect();
        prefixes.sort();
        prefixes.dedup();
        prefixes.len()
    }

    fn get(&self, id: u64) -> Option<Arc<ClientView>> {
        self.clients.read().get(&id).cloned()
    }

    fn all(&self) -> Vec<Arc<ClientView>> {
        self.clients.read().values().cloned().collect()
    }
}

/// Writes what a client is told: that keys have changed, or all of them.
pub(crate) fn write_invalidation(keys: Option<&[Box<[u8]>]>, is_subscribed: bool, reply: &mut Reply) {
    if reply.is_resp3() {
        reply.push(2);
        reply.bulk(b"invalidate");
    } else if is_subscribed {
        reply.array(3);
        reply.bulk(b"message");
        reply.bulk(INVALIDATION_CHANNEL);
    } else {
        return;
    }
    match keys {
        Some(keys) => {
            reply.array(keys.len());
            keys.iter().for_each(|key| reply.bulk(key));
        }
        None if reply.is_resp3() => reply.null(),
        None => reply.null_array(),
    }
}

/// Where a client that speaks RESP2 is told, on behalf of another.
const INVALIDATION_CHANNEL: &[u8] = b"__redis__:invalidate";

impl Server {
    /// Tells a tracking client, or who is told in its place, that keys have changed; `None` is all of them.
    fn invalidate(&self, view: &ClientView, keys: Option<Vec<Box<[u8]>>>, changed_by: Option<u64>) {
        let Some(tracking) = view.tracking.lock().clone() else { return };
        if tracking.no_loop && changed_by == Some(view.id) {
            return;
        }
        let address = match tracking.redirect {
            None => Address::of(view),
            Some(id) => match self.clients.get(id) {
                Some(other) => Address::of(&other),
                None => {
                    if !tracking.is_redirect_broken.swap(true, Ordering::Relaxed) {
                        self.push(Push::RedirectBroken(id), vec![(Address::of(view), None)]);
                    }
                    return;
                }
            },
        };
        self.push(Push::Invalidation(keys), vec![(address, None)]);
    }
}

impl Executor {
    /// Notes what a tracking client has read; the locks of the command's keys are still held.
    #[cold]
    pub(crate) fn track(
        &mut self,
        client: &mut Client,
        command: &'static Command,
        args: Args<'_>,
        guards: &mut Guards<'static>,
    ) {
        let Some(tracking) = &client.tracking else { return };
        let caching = client.caching;
        // What was said of a transaction holds to its end.
        let is_transaction = client.transaction.is_some() || self.section != Section::Shared;
        if !is_transaction && !command.full_name.starts_with("client|") {
            client.caching = None;
        }
        let is_wanted = match tracking.choice {
            Choice::All => true,
            Choice::OptIn => caching == Some(true),
            Choice::OptOut => caching != Some(false),
        };
        let reads =
            matches!(command.handler, Handler::Data(_)) && command.spec.flags.contains(Flags::READONLY);
        if !is_wanted || !reads || tracking.is_broadcast() {
            return;
        }
        let keyspace = &self.server.keyspace;
        let keys_max = usize::try_from(self.config.tracking_table_max_keys).unwrap_or(usize::MAX);
        let keys_max = if keys_max == 0 { usize::MAX } else { keys_max.div_ceil(SHARDS) };
        let known = (0, keyspace.hash(&[]));
        let mut keys = Keys::new(keyspace, guards, args, client.database, known, &mut self.turn);
        for arg in command.spec.key_positions(args) {
            keys.track(arg, client.view.id, keys_max);
        }
    }

    /// Tells tracking clients what the last command has changed. No lock is held.
    pub(crate) fn send_invalidations(&mut self, changed_by: Option<u64>) {
        let server = self.server;
        let notices = &mut self.turn.notices;
        if std::mem::take(&mut notices.is_flushed) {
            notices.invalidated.clear();
            for view in server.trackers.all() {
                server.invalidate(&view, None, changed_by);
            }
        }
        for (key, clients) in std::mem::take(&mut notices.invalidated) {
            for view in clients.into_iter().filter_map(|id| server.trackers.get(id)) {
                server.invalidate(&view, Some(vec![key.clone()]), changed_by);
            }
        }
        let changed = std::mem::take(&mut notices.changed);
        if changed.is_empty() {
            return;
        }
        for view in server.trackers.all() {
            let Some(tracking) = view.tracking.lock().clone() else { continue };
            let wanted = changed.iter().filter(|(_, key)| tracking.has_prefix_of(key));
            let keys: Vec<Box<[u8]>> = wanted.map(|(_, key)| key.clone()).collect();
            if !keys.is_empty() {
                server.invalidate(&view, Some(keys), changed_by);
            }
        }
    }
}
