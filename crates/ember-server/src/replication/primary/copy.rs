//! A copy of the data for replicas that have nothing the stream could go on from.
//!
//! Replicas that ask within `repl-diskless-sync-delay` of each other, and read the same, share one. It is the keyspace at
//! one moment, taken while nobody else is at it, behind one record of the journal: the stream goes on at that record. It is
//! written to a [`Spool`] as fast as it comes, so that commands wait for no replica's link. Replicas that know a mark for
//! its end get it as it is written, others when it is whole.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ember_persistence::rdb_file::FILE_VERSION;
use emberkv_core::rdb::{VALKEY_VERSION, VERSION_MAX};
use parking_lot::Mutex;

use super::Primary;
use super::replica::ReplicaView;
use super::spool::Spool;
use super::vocabulary::Words;
use crate::clients::replica::Program;
use crate::config::Config;

/// Whom a copy is for. Only those share one who read the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Redis, of whatever version.
    Redis,
    /// Redis that knows fields which expire, or is to show that.
    NewRedis,
    Valkey,
    Ember,
}

impl Form {
    /// That of a replica which knows these commands, or is to show that it does.
    pub(super) fn of(program: Program, words: Words) -> Form {
        match program {
            Program::Ember => Form::Ember,
            Program::Valkey9 => Form::Valkey,
            _ if words.contains(Words::FIELDS) => Form::NewRedis,
            _ => Form::Redis,
        }
    }

    /// The version of the RDB format, for data in which fields expire, or do not.
    pub(super) fn version(self, has_expiring_fields: bool) -> u16 {
        match self {
            Form::Redis if !has_expiring_fields => FILE_VERSION,
            // An older one refuses that, and says so: it cannot have such data.
            Form::Redis | Form::NewRedis | Form::Ember => VERSION_MAX,
            Form::Valkey => VALKEY_VERSION,
        }
    }
}

/// A copy of the data, from the wish for one to its last byte.
pub(super) struct Copy {
    form: Form,
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
    /// The version of the RDB format.
    pub(super) version: u16,
    /// They may be read before all are there.
    pub(super) is_streamed: bool,
}

impl Copy {
    /// The copy that a replica gets: the next one of this form to begin.
    pub(super) fn join(
        primary: &Primary,
        config: &Config,
        replica: &Arc<ReplicaView>,
        form: Form,
    ) -> Arc<Copy> {
        let mut gathering = primary.gathering.lock();
        let found = gathering.iter().find(|copy| copy.form == form).cloned();
        let copy = found.unwrap_or_else(|| {
            let delay = Duration::from_secs(config.repl_diskless_sync_delay.into());
            let copy = Arc::new(Copy {
                form,
                begins_at: Instant::now() + delay,
                members: Mutex::default(),
                position: OnceLock::new(),
                begun: OnceLock::new(),
            });
            gathering.push(Arc::clone(&copy));
            copy
        });
        copy.members.lock().push(Arc::clone(replica));
        copy
    }

    /// Whom it is for.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// One of nobody else's: `written`, behind which the stream goes on at `position`.
    pub(super) fn finished(position: u64, written: Result<Spool, String>) -> Arc<Copy> {
        let begun = written.map(|spool| {
            spool.end(Ok(()));
            Spooled { spool, version: FILE_VERSION, is_streamed: false }
        });
        Arc::new(Copy {
            form: Form::Redis,
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
    pub(super) fn begin(&self, spool: Spool, version: u16, is_streamed: bool) {
        let _ = self.begun.set(Ok(Spooled { spool, version, is_streamed }));
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

    /// Whether a member that is still there gets the file, as against the position alone.
    pub(super) fn is_wanted(&self) -> bool {
        self.members.lock().iter().any(|member| member.wants_all && !member.is_gone.load(Ordering::Relaxed))
    }

    pub(super) fn is_due(&self, config: &Config) -> bool {
        let enough = config.repl_diskless_sync_max_replicas as usize;
        Instant::now() >= self.begins_at || (enough != 0 && self.members.lock().len() >= enough)
    }
}
