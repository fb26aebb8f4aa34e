//! Copies of the data set for full syncs: for replicas whose data the stream cannot continue.
//!
//! Replicas that ask within `repl-diskless-sync-delay` of each other and read the same format share one copy. It is the
//! keyspace at one moment, taken with exclusive access after a certain record of the journal; the stream continues
//! after that record. It is written to a [`Spool`] at full speed, so commands wait for no replica's link. Replicas that
//! support an end mark receive it while it is written, others when it is complete.
//!
//! A replica whose link breaks early receives the same copy again, so it does not cost another one. A copy that has
//! begun can be joined as long as its first byte and the stream after it are kept. It is kept for [`JOINED_WITHIN`]
//! when no replica reads it any more.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ember_config::Config;
use ember_persistence::rdb_file::FILE_VERSION;
use emberkv_core::rdb::{VALKEY_VERSION, VERSION_MAX};
use parking_lot::Mutex;

use super::Primary;
use super::replica::ReplicaView;
use super::spool::Spool;
use super::vocabulary::Words;
use crate::clients::replica::Program;
use crate::server::Server;

/// The readers that a copy is for. Only replicas that read the same format share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Redis of any version.
    Redis,
    /// Redis with support for expiries of hash fields, or whose support is being determined.
    NewRedis,
    Valkey,
    Ember,
}

impl Form {
    /// Returns the form for a replica that supports these commands, or whose support is being determined.
    pub(super) fn of(program: Program, words: Words) -> Form {
        match program {
            Program::Ember => Form::Ember,
            Program::Valkey9 => Form::Valkey,
            _ if words.contains(Words::FIELDS) => Form::NewRedis,
            _ => Form::Redis,
        }
    }

    /// Returns the RDB version for data with or without expiring fields.
    pub(super) fn version(self, has_expiring_fields: bool) -> u16 {
        match self {
            Form::Redis if !has_expiring_fields => FILE_VERSION,
            // An older Redis refuses this version with an error: it cannot hold such data.
            Form::Redis | Form::NewRedis | Form::Ember => VERSION_MAX,
            Form::Valkey => VALKEY_VERSION,
        }
    }
}

/// How long a copy is kept for replicas that have lost their links to return: they retry each second.
const JOINED_WITHIN: Duration = Duration::from_secs(5);

/// A copy of the data, from the request for it to its last byte.
pub(super) struct Copy {
    form: Form,
    begins_at: Instant,
    members: Mutex<Vec<Arc<ReplicaView>>>,
    /// The history and position at which the stream continues after it.
    place: OnceLock<(String, u64)>,
    /// The time since which no replica reads it, if none does.
    unread_since: Mutex<Option<Instant>>,
    /// Its bytes, or why there are none.
    begun: OnceLock<Result<Spooled, String>>,
}

/// The bytes of a copy.
#[derive(Debug)]
pub(super) struct Spooled {
    pub(super) spool: Spool,
    /// The version of the RDB format.
    pub(super) version: u16,
    /// It may be read before it is complete.
    pub(super) is_streamed: bool,
}

impl Copy {
    /// Returns the copy for a replica: the next one of this form to begin, or with `takes_begun` one that has begun.
    pub(super) fn join(
        server: &Server,
        config: &Config,
        replica: &Arc<ReplicaView>,
        form: Form,
        takes_begun: bool,
    ) -> Arc<Copy> {
        let primary = Primary::of(server);
        if takes_begun && let Some(copy) = Copy::join_begun(server, config, replica, form) {
            tracing::info!("the replica {} receives the copy that is in progress", replica.name());
            return copy;
        }
        let mut gathering = primary.gathering.lock();
        let found = gathering.iter().find(|copy| copy.form == form).cloned();
        let copy = found.unwrap_or_else(|| {
            let delay = Duration::from_secs(config.repl_diskless_sync_delay.into());
            let copy = Arc::new(Copy {
                form,
                begins_at: Instant::now() + delay,
                members: Mutex::default(),
                place: OnceLock::new(),
                unread_since: Mutex::default(),
                begun: OnceLock::new(),
            });
            gathering.push(Arc::clone(&copy));
            copy
        });
        copy.members.lock().push(Arc::clone(replica));
        copy
    }

    /// Joins a copy that has begun and has the format of one that would begin now, if the replica can still read all of
    /// it and the stream after it.
    fn join_begun(
        server: &Server,
        config: &Config,
        replica: &Arc<ReplicaView>,
        form: Form,
    ) -> Option<Arc<Copy>> {
        let primary = Primary::of(server);
        if primary.begun.lock().is_empty() {
            return None;
        }
        let new = (form.version(server.keyspace.has_expiring_elements()), config.repl_diskless_sync);
        let is_alike = |copy: &Copy| match copy.begun() {
            Some(Ok(Spooled { version, is_streamed, .. })) => (*version, *is_streamed) == new,
            _ => false,
        };
        let begun = primary.begun.lock();
        let copy = begun.iter().find(|copy| copy.form == form && is_alike(copy) && copy.is_kept())?;
        // While this lock is held, no part of the stream is discarded.
        let stream = primary.stream.lock();
        let mut members = copy.members.lock();
        match copy.place.get() {
            // `meet_stream` is still to come and will notify its members.
            None => {}
            Some((id, position)) => {
                let is_kept = (stream.first()..=stream.backlog.end()).contains(position);
                if !is_kept || primary.history().id != *id {
                    return None;
                }
                replica.begin_at(*position);
            }
        }
        members.push(Arc::clone(replica));
        let Some(Ok(Spooled { spool, .. })) = copy.begun() else { return None };
        // From now on the writer keeps everything that this member has yet to read.
        spool.forget_before(0);
        if !spool.is_kept() {
            members.pop();
            return None;
        }
        Some(Arc::clone(copy))
    }

    /// Whether all its bytes are kept or still to come.
    fn is_kept(&self) -> bool {
        matches!(self.begun(), Some(Ok(spooled)) if spooled.spool.is_kept()
            && !matches!(spooled.spool.whole(), Some(Err(_))))
    }

    /// Returns the readers that it is for.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Creates a copy for one replica alone: `written`, after which the stream continues at `position`.
    pub(super) fn finished(place: (String, u64), written: Result<Spool, String>) -> Arc<Copy> {
        let begun = written.map(|spool| {
            spool.end(Ok(()));
            Spooled { spool, version: FILE_VERSION, is_streamed: false }
        });
        Arc::new(Copy {
            form: Form::Redis,
            begins_at: Instant::now(),
            members: Mutex::default(),
            place: OnceLock::from(place),
            unread_since: Mutex::default(),
            begun: OnceLock::from(begun),
        })
    }

    /// Returns the position at which the stream continues after it, once that is known.
    pub(super) fn position(&self) -> Option<u64> {
        self.place.get().map(|(_, position)| *position)
    }

    /// Its bytes once there are some, or why there never will be any.
    pub(super) fn begun(&self) -> Option<&Result<Spooled, String>> {
        self.begun.get()
    }

    /// Makes its bytes writable and readable.
    pub(super) fn begin(&self, spool: Spool, version: u16, is_streamed: bool) {
        let _ = self.begun.set(Ok(Spooled { spool, version, is_streamed }));
    }

    /// Records why it will never be complete.
    pub(super) fn fail(&self, error: String) {
        if self.begun.set(Err(error.clone())).is_err()
            && let Some(Ok(Spooled { spool, .. })) = self.begun.get()
        {
            spool.end(Err(error));
        }
    }

    /// Records how many bytes a member has received, and discards those that all have received.
    pub(super) fn record_sent(&self, member: &ReplicaView, bytes: u64) {
        member.copied.store(bytes, Ordering::Relaxed);
        if let Some(Ok(Spooled { spool, .. })) = self.begun.get() {
            let members = self.members.lock();
            let got = |member: &Arc<ReplicaView>| match member.is_closed.load(Ordering::Relaxed) {
                true => u64::MAX,
                false => member.copied.load(Ordering::Relaxed),
            };
            spool.forget_before(members.iter().map(got).min().unwrap_or(0));
        }
    }

    /// Sets the history and `position` at which the stream continues after it. Nothing from there on is discarded
    /// before all members have received it.
    pub(super) fn meet_stream(&self, id: String, position: u64) {
        // A replica that joins sees either the place, or is notified here.
        let members = self.members.lock();
        for member in members.iter().filter(|member| !member.is_copied_only) {
            member.begin_at(position);
        }
        let _ = self.place.set((id, position));
    }

    /// Whether a connected member reads the file, not only the position.
    pub(super) fn is_wanted(&self) -> bool {
        self.members
            .lock()
            .iter()
            .any(|member| member.receives_all && !member.is_closed.load(Ordering::Relaxed))
    }

    /// Whether a member reads it, or did until recently: a replica whose link has broken reconnects.
    pub(super) fn is_or_was_lately_read(&self) -> bool {
        let whole = match self.begun() {
            Some(Ok(spooled)) => spooled.spool.whole().and_then(Result::ok),
            _ => None,
        };
        let is_read = |member: &Arc<ReplicaView>| {
            let has_all = whole.is_some_and(|bytes| member.copied.load(Ordering::Relaxed) >= bytes);
            member.receives_all && !has_all && !member.is_closed.load(Ordering::Relaxed)
        };
        let is_read = self.members.lock().iter().any(is_read);
        let mut unread_since = self.unread_since.lock();
        if is_read {
            *unread_since = None;
            return true;
        }
        unread_since.get_or_insert_with(Instant::now).elapsed() < JOINED_WITHIN
    }

    /// Whether replicas may still join it.
    pub(super) fn is_joinable(&self) -> bool {
        self.is_kept() && self.is_or_was_lately_read()
    }

    pub(super) fn is_due(&self, config: &Config) -> bool {
        let enough = config.repl_diskless_sync_max_replicas as usize;
        Instant::now() >= self.begins_at || (enough != 0 && self.members.lock().len() >= enough)
    }
}
