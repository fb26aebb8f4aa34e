//! Where the data of this server stand in the stream at one moment: what files say of it, so that a server which starts
//! with them goes on there.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use ember_persistence::origin::Origin;

use super::Primary;
use super::orders::Order;
use crate::replication::link::Link;
use crate::server::Server;

/// How long the journal may take to pass on what was done before. A disk that takes no more keeps it back; the file says
/// nothing then.
const WITHIN: Duration = Duration::from_secs(1);

/// A place in the stream.
pub(crate) enum Place {
    /// It is known.
    Known(Origin),
    /// The journal says at which position of this history it is.
    Told { id: String, position: Receiver<u64> },
}

impl Place {
    /// Waits until it is known; nothing if that takes too long.
    pub(crate) fn wait(self) -> Option<Origin> {
        match self {
            Place::Known(origin) => Some(origin),
            // Whoever leads next says the database itself.
            Place::Told { id, position } => {
                Origin::new(id.as_bytes(), position.recv_timeout(WITHIN).ok()?, 0)
            }
        }
    }
}

impl Primary {
    /// The place of the data as they are now; nothing if there is no stream. The caller has exclusive access and has
    /// published what it did.
    pub(crate) fn place(&self, server: &Server) -> Option<Place> {
        if Link::of(server).database().is_some() {
            return self.last_place(server).map(Place::Known);
        }
        let (id, _) = self.held()?;
        let (told, position) = sync_channel(1);
        self.orders.add(Order::Tell { behind: server.journal.last_number(), position: told });
        server.journal.call_thread();
        Some(Place::Told { id, position })
    }

    /// The place of the data when nothing changes them any more and the journal has passed on all, or on a replica, where
    /// whoever applies what comes adds it to the stream; nothing if there is no stream.
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
