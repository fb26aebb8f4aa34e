//! Positions of data that were read: a client that has read data from one server can find out whether another server
//! has all of it.

use std::sync::atomic::Ordering;

use ember_replication::position::Position;

use super::Primary;
use crate::replication::failover::stage::{Failover, FailoverStage};
use crate::replication::link::Link;
use crate::server::Server;
use crate::server::conditions::Condition;

/// The position of data that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// There is no stream.
    Nowhere,
    /// All the data are in the stream before this position.
    At(Position),
    /// Not all the data are in the stream yet.
    NotYet,
}

impl Primary {
    /// Returns the position of everything up to this record of the journal, or of everything so far if the data come
    /// from a primary or the journal is not read.
    pub(crate) fn standing(&self, server: &Server, record: Option<u64>) -> Standing {
        let is_replica = server.conditions.get().contains(Condition::REPLICA);
        if !self.is_on.load(Ordering::Relaxed) {
            let is_coming = is_replica && Link::of(server).copies();
            return if is_coming { Standing::NotYet } else { Standing::Nowhere };
        }
        // Commands reach the stream shortly after they are applied, but were read earlier.
        let read_to = if is_replica { Link::of(server).read_to() } else { None };
        let stream = self.stream.lock();
        let end = if is_replica {
            if self.gives_over.load(Ordering::SeqCst) {
                return Standing::NotYet;
            }
            stream.backlog.end().max(read_to.unwrap_or(0))
        } else {
            match record {
                Some(record) if record > stream.last_record => return Standing::NotYet,
                Some(record) => stream.milestones.position_of(record).unwrap_or(stream.backlog.end()),
                None => stream.backlog.end(),
            }
        };
        Standing::At(Position::new(&self.history.lock().id, end))
    }

    /// Whether this server's data are known to precede a position, or another server is taking over: that one may have
    /// begun a stream whose name is not known here yet.
    pub(crate) fn is_before(&self, server: &Server, position: Position) -> bool {
        if !self.is_on.load(Ordering::Relaxed) {
            return false;
        }
        // A failover ends after the new name is known here, so this must be read before the name.
        let is_ceding = Failover::of(server).stage() == FailoverStage::HandingOver;
        let stream = self.stream.lock();
        let history = self.history.lock();
        position.is_after(&history.id, stream.backlog.end()) || (is_ceding && !position.is_in(&history.id))
    }
}
