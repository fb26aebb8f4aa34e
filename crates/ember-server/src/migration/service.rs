//! Connections to other servers that are kept for the next call.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::order::Destination;
use super::settling::Migration;
use super::target::Target;
use super::transfer::{Transferred, transfer};
use crate::server::Server;

/// For how long a connection is kept that nobody uses.
const KEPT_TIME: Duration = Duration::from_secs(10);

/// Connections that are kept.
const KEPT_MAX: usize = 64;

/// Connections to targets that wait for the next call.
#[derive(Default)]
pub(super) struct KeptTargets(Mutex<Vec<Target>>);

impl KeptTargets {
    /// A connection to that destination, as that user, if one is kept.
    pub(super) fn take(&self, destination: &Destination) -> Option<Target> {
        let mut kept = self.0.lock();
        let at = kept.iter().rposition(|target| target.destination == *destination)?;
        Some(kept.swap_remove(at))
    }

    /// Keeps a connection; the one that was used least recently goes when there are too many.
    pub(super) fn keep(&self, mut target: Target) {
        target.used_at = Instant::now();
        let mut kept = self.0.lock();
        if kept.len() >= KEPT_MAX
            && let Some(oldest) = (0..kept.len()).min_by_key(|&at| kept[at].used_at)
        {
            kept.swap_remove(oldest);
        }
        kept.push(target);
    }

    fn close_unused(&self) {
        self.0.lock().retain(|target| target.used_at.elapsed() < KEPT_TIME);
    }
}

/// What calls of MIGRATE share.
#[derive(Default)]
pub(crate) struct Migrations {
    kept: KeptTargets,
}

impl Migrations {
    /// Those of a server.
    pub(crate) fn of(server: &Server) -> &Migrations {
        server.services.get()
    }

    /// Closes connections that nobody has used for long.
    pub(crate) fn close_unused(&self) {
        self.kept.close_unused();
    }

    /// The number of connections that are kept.
    pub(crate) fn kept_connections(&self) -> usize {
        self.kept.0.lock().len()
    }

    /// Transfers on the calling thread.
    pub(super) fn transfer_here(&self, server: &Server, migration: &Migration) -> Transferred {
        let Migration { database, keys, order, .. } = migration;
        transfer(server, *database, keys, order, &self.kept)
    }
}
