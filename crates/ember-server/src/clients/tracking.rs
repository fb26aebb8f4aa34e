//! Which clients keep copies of what they read, and want to be told when it has changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::RwLock;

use super::client::ClientView;

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

    /// The number of the prefix for which the client is told of this key in the broadcasting mode. O(log prefixes).
    pub(crate) fn prefix_of(&self, key: &[u8]) -> Option<usize> {
        let prefixes = self.prefixes.as_deref().unwrap_or_default();
        // A prefix of the key stands right before it: what stands between them would begin with it too.
        let behind = prefixes.partition_point(|prefix| prefix.as_slice() <= key);
        behind.checked_sub(1).filter(|&at| key.starts_with(&prefixes[at]))
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

    pub(crate) fn get(&self, id: u64) -> Option<Arc<ClientView>> {
        self.clients.read().get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<ClientView>> {
        self.clients.read().values().cloned().collect()
    }
}
