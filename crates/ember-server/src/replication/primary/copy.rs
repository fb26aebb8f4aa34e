//! A copy of the data for replicas that have nothing the stream could go on from.
//!
//! Replicas that ask within `repl-diskless-sync-delay` of each other share one. It is the keyspace at one moment, taken
//! while nobody else is at it, behind one record of the journal: the stream goes on at that record. It is written to a
//! [`Spool`] as fast as it comes, so that commands wait for no replica's link.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Primary;
use super::replica::ReplicaView;
use super::spool::Spool;
use crate::config::Config;

/// A copy of the data, from the wish for one to its last byte.
pub(super) struct Copy {
    begins_at: Instant,
    members: Mutex<Vec<Arc<ReplicaView>>>,
    /// The position at which the stream goes on behind it.
    position: OnceLock<u64>,
    /// The whole of it, or why there is none.
    written: OnceLock<Result<Spool, String>>,
}

impl Copy {
    /// The copy that a replica gets: the next one to begin.
    pub(super) fn join(primary: &Primary, config: &Config, replica: &Arc<ReplicaView>) -> Arc<Copy> {
        let mut gathering = primary.gathering.lock();
        let delay = Duration::from_secs(config.repl_diskless_sync_delay.into());
        let copy = gathering.get_or_insert_with(|| {
            Arc::new(Copy {
                begins_at: Instant::now() + delay,
                members: Mutex::default(),
                position: OnceLock::new(),
                written: OnceLock::new(),
            })
        });
        copy.members.lock().push(Arc::clone(replica));
        Arc::clone(copy)
    }

    /// One of nobody else's: `written`, behind which the stream goes on at `position`.
    pub(super) fn finished(position: u64, written: Result<Spool, String>) -> Arc<Copy> {
        Arc::new(Copy {
            begins_at: Instant::now(),
            members: Mutex::default(),
            position: OnceLock::from(position),
            written: OnceLock::from(written),
        })
    }

    /// Where the stream goes on behind it, once that is known.
    pub(super) fn position(&self) -> Option<u64> {
        self.position.get().copied()
    }

    /// The whole of it once it is there, or why it never will be.
    pub(super) fn written(&self) -> Option<&Result<Spool, String>> {
        self.written.get()
    }

    /// Notes the whole of it, or why there is none.
    pub(super) fn end(&self, written: Result<Spool, String>) {
        let _ = self.written.set(written);
    }

    /// The stream goes on at `position` behind it: nothing from there on is forgotten before all have got it.
    pub(super) fn meet_stream(&self, position: u64) {
        for member in self.members.lock().iter().filter(|member| !member.is_copied_only) {
            member.begin_at(position);
        }
        let _ = self.position.set(position);
    }

    /// Whether a member gets the file, as against the position alone.
    pub(super) fn is_wanted(&self) -> bool {
        self.members.lock().iter().any(|member| member.wants_all)
    }

    pub(super) fn is_due(&self, config: &Config) -> bool {
        let enough = config.repl_diskless_sync_max_replicas as usize;
        Instant::now() >= self.begins_at || (enough != 0 && self.members.lock().len() >= enough)
    }
}
