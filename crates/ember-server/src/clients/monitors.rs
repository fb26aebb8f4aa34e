//! The connections that receive all commands as they run (MONITOR).

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;

use super::subscriptions::Address;

/// All monitors.
#[derive(Default)]
pub(crate) struct Monitors {
    count: AtomicUsize,
    addresses: RwLock<Vec<Address>>,
}

impl Monitors {
    /// Adds a connection.
    pub(crate) fn add(&self, address: Address) {
        let mut addresses = self.addresses.write();
        addresses.push(address);
        self.count.store(addresses.len(), Ordering::Relaxed);
    }

    /// Removes a connection.
    pub(crate) fn remove(&self, address: Address) {
        let mut addresses = self.addresses.write();
        addresses.retain(|other| *other != address);
        self.count.store(addresses.len(), Ordering::Relaxed);
    }

    /// Returns whether there are no monitors.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Returns the addresses of all monitors.
    pub(crate) fn addresses(&self) -> Vec<Address> {
        self.addresses.read().clone()
    }
}
