//! Positions of what was seen: whoever has seen some data of one server can tell whether another one has all of that.

use std::sync::atomic::Ordering;

use ember_cluster::replication::position::Position;

use super::Primary;
use crate::replication::failover::stage::{Failover, FailoverStage};
use crate::replication::link::Link;
use crate::server::Server;
use crate::server::conditions::Condition;

/// Where something stands that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// There is no stream.
    Nowhere,
    /// All that was seen is in the stream before this.
    At(Position),
    /// Not all of it is in the stream yet.
    NotYet,
}

impl Primary {
    /// Where all that stands that was done up to this record of the journal; or all up to now, if the data are a primary's
    /// or nobody reads the journal.
    pub(crate) fn standing(&self, server: &Server, record: Option<u64>) -> Standing {
        let is_replica = server.conditions.get().contains(Condition::REPLICA);
        if !self.is_on.load(Ordering::Relaxed) {
            let is_coming = is_replica && Link::of(server).copies();
            return if is_coming { Standing::NotYet } else { Standing::Nowhere };
        }
        // What is applied is in the stream a moment later, and was read before.
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

    /// Whether it is known that this server's data are those from before a position, or another server is taking its place:
    /// that one may have begun a stream with a name that is not known here yet.
    pub(crate) fn is_before(&self, server: &Server, position: Position) -> bool {
        if !self.is_on.load(Ordering::Relaxed) {
            return false;
        }
        // It is over when the name is known: whoever finds it over is to find that.
        let hands_over = Failover::of(server).stage() == FailoverStage::HandingOver;
        let stream = self.stream.lock();
        let history = self.history.lock();
        position.is_behind(&history.id, stream.backlog.end()) || (hands_over && !position.is_in(&history.id))
    }
}
