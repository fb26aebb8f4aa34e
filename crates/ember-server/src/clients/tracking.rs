//! Client-side caching: the tracking options of the clients that are notified when keys that they have read change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::RwLock;

use super::client::ClientView;

/// The reads of a client that are tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Choice {
    /// All reads.
    #[default]
    All,
    /// Reads after `CLIENT CACHING YES`.
    OptIn,
    /// All reads except those after `CLIENT CACHING NO`.
    OptOut,
}

/// Sorted prefixes, none of which is a prefix of another: their concatenated bytes, and the end offset of each. The
/// overhead is one offset per prefix.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prefixes {
    bytes: Box<[u8]>,
    ends: Box<[usize]>,
}

impl Prefixes {
    /// Builds the list from a sorted sequence of prefixes.
    pub(crate) fn from_sorted(prefixes: impl Iterator<Item = Vec<u8>>) -> Prefixes {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for prefix in prefixes {
            bytes.extend(prefix);
            ends.push(bytes.len());
        }
        Prefixes { bytes: bytes.into(), ends: ends.into() }
    }

    /// Returns the number of prefixes.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    /// Returns the prefixes in sorted order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|number| self.get(number))
    }

    /// Returns the index of the prefix with which the key begins. O(log prefixes).
    fn find(&self, key: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.get(middle) <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // If a prefix of the key exists, it is the entry directly before this position: anything between the two would
        // begin with that prefix, too.
        low.checked_sub(1).filter(|&at| key.starts_with(self.get(at)))
    }

    /// Returns the memory in bytes.
    fn memory_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(&self.ends[..])
    }
}

/// The tracking options of a client; each `CLIENT TRACKING ON` creates new ones.
#[derive(Debug, Default)]
pub(crate) struct Tracking {
    /// The prefixes of the tracked keys in broadcasting mode; `None` in default mode.
    pub(crate) prefixes: Option<Prefixes>,
    pub(crate) choice: Choice,
    /// Whether the client is not notified of its own changes.
    pub(crate) no_loop: bool,
    /// The id of the client that receives the invalidations instead of this one.
    pub(crate) redirect: Option<u64>,
    /// Whether the client in `redirect` has disconnected.
    pub(crate) is_redirect_broken: AtomicBool,
}

impl Tracking {
    /// Returns whether the client is in broadcasting mode: it is notified of keys by prefix instead of by its reads.
    pub(crate) fn is_broadcast(&self) -> bool {
        self.prefixes.is_some()
    }

    /// Returns the index of the prefix through which the client is notified of this key in broadcasting mode. O(log
    /// prefixes).
    pub(crate) fn prefix_of(&self, key: &[u8]) -> Option<usize> {
        self.prefixes.as_ref()?.find(key)
    }

    /// Returns the memory of the prefixes in bytes.
    pub(crate) fn prefixes_bytes(&self) -> usize {
        self.prefixes.as_ref().map_or(0, Prefixes::memory_bytes)
    }
}

/// All tracking clients.
#[derive(Default)]
pub(crate) struct Trackers {
    clients: RwLock<BTreeMap<u64, Arc<ClientView>>>,
    broadcasting: AtomicUsize,
}

impl Trackers {
    /// Starts a client's tracking, replacing its previous options.
    pub(crate) fn begin(&self, view: &Arc<ClientView>, tracking: Arc<Tracking>) {
        self.end(view);
        if tracking.is_broadcast() {
            // SeqCst: a write that is requested after the client has received the reply must see the new count.
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

    /// Returns whether any client is in broadcasting mode.
    pub(crate) fn is_broadcasting(&self) -> bool {
        self.broadcasting.load(Ordering::SeqCst) > 0
    }

    /// Returns the number of tracking clients.
    pub(crate) fn len(&self) -> usize {
        self.clients.read().len()
    }

    /// Returns the number of distinct prefixes.
    pub(crate) fn prefixes(&self) -> usize {
        let clients = self.clients.read();
        let trackings: Vec<_> = clients.values().filter_map(|view| view.tracking.lock().clone()).collect();
        let prefixes = trackings.iter().flat_map(|tracking| &tracking.prefixes).flat_map(Prefixes::iter);
        prefixes.collect::<BTreeSet<_>>().len()
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<ClientView>> {
        self.clients.read().get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<ClientView>> {
        self.clients.read().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_of_a_key_is_found_among_many() {
        let names = ["", "a", "ab:", "b", "user:1", "user:2"];
        let all = |names: &[&str]| Prefixes::from_sorted(names.iter().map(|name| name.as_bytes().to_vec()));
        let prefixes = all(&names[1..]);
        for (key, expected) in [
            ("a", Some(0)),
            ("aa", Some(0)),
            ("b1", Some(2)),
            ("user:22", Some(4)),
            ("user:", None),
            ("c", None),
        ] {
            assert_eq!(prefixes.find(key.as_bytes()), expected, "{key}");
        }
        assert_eq!(all(&names[..1]).find(b"any"), Some(0));
        assert_eq!(all(&[]).find(b"any"), None);
        assert!(prefixes.iter().eq(names[1..].iter().map(|name| name.as_bytes())));
    }

    #[test]
    fn ten_thousand_prefixes_take_little_memory() {
        let prefixes =
            Prefixes::from_sorted((10_000..20_240).map(|number| format!("prefix:{number}").into_bytes()));
        assert_eq!(prefixes.len(), 10_240);
        assert!(prefixes.memory_bytes() < 300_000, "{}", prefixes.memory_bytes());
    }
}
