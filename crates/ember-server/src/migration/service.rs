//! Unused connections to other servers, kept for later MIGRATE calls.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::order::Destination;
use super::settling::Migration;
use super::target::Target;
use super::transfer::{Transferred, transfer};
use crate::server::Server;

/// The time for which an unused connection is kept open.
const KEPT_TIME: Duration = Duration::from_secs(10);

/// The maximum number of kept connections.
const KEPT_MAX: usize = 64;

/// Unused connections to target servers.
#[derive(Default)]
pub(super) struct KeptTargets(Mutex<Vec<Target>>);

impl KeptTargets {
    /// Takes an unused connection to the same target with the same credentials, if there is one.
    pub(super) fn take(&self, destination: &Destination) -> Option<Target> {
        let mut kept = self.0.lock();
        let at = kept.iter().rposition(|target| target.destination == *destination)?;
        Some(kept.swap_remove(at))
    }

    /// Keeps a connection for later calls; closes the least recently used connection if there are too many.
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

/// The state that all MIGRATE calls share.
#[derive(Default)]
pub(crate) struct Migrations {
    kept: KeptTargets,
}

impl Migrations {
    /// Returns the server's migration state.
    pub(crate) fn of(server: &Server) -> &Migrations {
        server.services.get()
    }

    /// Closes connections that have been unused for too long.
    pub(crate) fn close_unused(&self) {
        self.kept.close_unused();
    }

    /// Returns the number of unused connections.
    pub(crate) fn kept_connections(&self) -> usize {
        self.kept.0.lock().len()
    }

    /// Transfers the keys of a migration on the calling thread.
    pub(super) fn transfer_here(&self, server: &Server, migration: &Migration) -> Transferred {
        let Migration { database, keys, order, .. } = migration;
        transfer(server, *database, keys, order, &self.kept)
    }
}
