//! Stream positions of data that clients have read. With such a position, a client can find out whether another server
//! has all the data that the client has read.

use std::sync::atomic::Ordering;

use ember_replication::position::Position;

use super::Primary;
use crate::replication::failover::stage::{Failover, FailoverStage};
use crate::replication::link::Link;
use crate::server::Server;
use crate::server::conditions::Condition;

/// The stream position of data that a client has read.
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
    /// Returns the position that includes everything up to journal record `record`. Without a record (the data come
    /// from a primary, or the journal is not read), the position includes all data so far.
    pub(crate) fn standing(&self, server: &Server, record: Option<u64>) -> Standing {
        let is_replica = server.conditions.get().contains(Condition::REPLICA);
        if !self.is_on.load(Ordering::Relaxed) {
            let is_coming = is_replica && Link::of(server).copies();
            return if is_coming { Standing::NotYet } else { Standing::Nowhere };
        }
        // On a replica, a client may see the effect of a command shortly before the command is in the stream; `read_to`
        // already includes the command.
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

    /// Whether this server's data are known to lack a part of the stream before `position`. Also true during a failover
    /// for an unknown replication ID: the server that takes over may have begun a stream whose ID is not known here
    /// yet.
    pub(crate) fn is_before(&self, server: &Server, position: Position) -> bool {
        if !self.is_on.load(Ordering::Relaxed) {
            return false;
        }
        // A failover ends only after the new ID is known here, so its stage must be read before the ID.
        let is_ceding = Failover::of(server).stage() == FailoverStage::HandingOver;
        let stream = self.stream.lock();
        let history = self.history.lock();
        position.is_after(&history.id, stream.backlog.end()) || (is_ceding && !position.is_in(&history.id))
    }
}
