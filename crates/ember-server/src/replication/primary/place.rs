//! The position of this server's data in the stream at one moment. Files contain this position, so that a server that
//! loads them resumes there.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use ember_persistence::origin::Origin;

use super::Primary;
use super::orders::Order;
use crate::replication::link::Link;
use crate::server::Server;

/// The maximum time that writing a file waits until the journal has appended all earlier records to the stream. A disk
/// that accepts no writes can delay this; the file then contains no position.
const WITHIN: Duration = Duration::from_secs(1);

/// The position of data in the stream, which may still be unknown.
pub(crate) enum Place {
    /// A known position.
    Known(Origin),
    /// The journal's subscriber will send the position in the stream with this replication ID.
    Awaited { id: String, position: Receiver<u64> },
}

impl Place {
    /// Waits until the position is known; returns `None` if that takes longer than [`WITHIN`].
    pub(crate) fn wait(self) -> Option<Origin> {
        match self {
            Place::Known(origin) => Some(origin),
            // Database 0 is a placeholder: the next primary selects the database itself.
            Place::Awaited { id, position } => {
                Origin::new(id.as_bytes(), position.recv_timeout(WITHIN).ok()?, 0)
            }
        }
    }
}

impl Primary {
    /// Returns the position of the current data in the stream; `None` if there is no stream. The caller has exclusive
    /// access and has published its records.
    pub(crate) fn place(&self, server: &Server) -> Option<Place> {
        if Link::of(server).database().is_some() {
            return self.last_place(server).map(Place::Known);
        }
        let (id, _) = self.held()?;
        let (sender, position) = sync_channel(1);
        self.orders.add(Order::SendPosition { after: server.journal.last_number(), position: sender });
        server.journal.call_thread();
        Some(Place::Awaited { id, position })
    }

    /// Returns the position of the final data; `None` if there is no stream. The data must not change any more. On a
    /// primary, the journal must have appended all records to the stream; on a replica, the link's worker has done so
    /// itself.
    pub(crate) fn last_place(&self, server: &Server) -> Option<Origin> {
        let (id, position) = self.held()?;
        match Link::of(server).database() {
            Some(database) if !self.gives_over.load(Ordering::SeqCst) => {
                Origin::new(id.as_bytes(), position, database)
            }
            None if self.has_all_records(server) => Origin::new(id.as_bytes(), position, 0),
            _ => None,
        }
    }
}
