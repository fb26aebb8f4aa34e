//! A copy of the data for replicas that have nothing the stream could go on from.
//!
//! Replicas that ask within `repl-diskless-sync-delay` of each other share one. It is the keyspace at one moment, taken
//! while nobody else is at it, behind one record of the journal: the stream goes on at that record. It is written to a
//! [`Spool`] as fast as it comes, so that commands wait for no replica's link. Replicas that know a mark for its end get it
//! as it is written, if its first bytes do not depend on what is in it; others when it is whole.

use std::sync::atomic::Ordering;
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
    /// Its bytes, or why there are none.
    begun: OnceLock<Result<Spooled, String>>,
}

/// The bytes of a copy.
#[derive(Debug)]
pub(super) struct Spooled {
    pub(super) spool: Spool,
    /// They may be read before all are there.
    pub(super) is_streamed: bool,
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
                begun: OnceLock::new(),
            })
        });
        copy.members.lock().push(Arc::clone(replica));
        Arc::clone(copy)
    }

    /// One of nobody else's: `written`, behind which the stream goes on at `position`.
    pub(super) fn finished(position: u64, written: Result<Spool, String>) -> Arc<Copy> {
        let begun = written.map(|spool| {
            spool.end(Ok(()));
            Spooled { spool, is_streamed: false }
        });
        Arc::new(Copy {
            begins_at: Instant::now(),
            members: Mutex::default(),
            position: OnceLock::from(position),
            begun: OnceLock::from(begun),
        })
    }

    /// Where the stream goes on behind it, once that is known.
    pub(super) fn position(&self) -> Option<u64> {
        self.position.get().copied()
    }

    /// Its bytes once there are some, or why there never will be any.
    pub(super) fn begun(&self) -> Option<&Result<Spooled, String>> {
        self.begun.get()
    }

    /// Lets its bytes be written and read.
    pub(super) fn begin(&self, spool: Spool, is_streamed: bool) {
        let _ = self.begun.set(Ok(Spooled { spool, is_streamed }));
    }

    /// Notes why there will be no more of it.
    pub(super) fn fail(&self, error: String) {
        if let Err(Ok(_)) | Ok(()) = self.begun.set(Err(error.clone()))
            && let Some(Ok(Spooled { spool, .. })) = self.begun.get()
        {
            spool.end(Err(error));
        }
    }

    /// Notes that a member has got so many bytes, and forgets those that all have.
    pub(super) fn note_sent(&self, member: &ReplicaView, bytes: u64) {
        member.copied.store(bytes, Ordering::Relaxed);
        if let Some(Ok(Spooled { spool, .. })) = self.begun.get() {
            let members = self.members.lock();
            let got = |member: &Arc<ReplicaView>| match member.is_gone.load(Ordering::Relaxed) {
                true => u64::MAX,
                false => member.copied.load(Ordering::Relaxed),
            };
            spool.forget_before(members.iter().map(got).min().unwrap_or(0));
        }
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
