//! A copy of the data for replicas that have nothing the stream could go on from.
//!
//! Replicas that ask within `repl-diskless-sync-delay` of each other, and read the same, share one. It is the keyspace at
//! one moment, taken while nobody else is at it, behind one record of the journal: the stream goes on at that record. It is
//! written to a [`Spool`] as fast as it comes, so that commands wait for no replica's link. Replicas that know a mark for
//! its end get it as it is written, others when it is whole.
//!
//! A replica whose link breaks early gets the same copy again, and does not cost another one: a copy that has begun is
//! joined as long as its first byte and the stream behind it are kept, and it is kept for [`JOINED_WITHIN`] when nobody is
//! left who reads it.

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
use crate::server::Server;

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

/// How long a copy is kept for replicas to come back to that have lost their links: they try each second.
const JOINED_WITHIN: Duration = Duration::from_secs(5);

/// A copy of the data, from the wish for one to its last byte.
pub(super) struct Copy {
    form: Form,
    begins_at: Instant,
    members: Mutex<Vec<Arc<ReplicaView>>>,
    /// The history and position at which the stream goes on behind it.
    place: OnceLock<(String, u64)>,
    /// Since when nobody reads it, if that is so.
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
    /// They may be read before all are there.
    pub(super) is_streamed: bool,
}

impl Copy {
    /// The copy that a replica gets: the next one of this form to begin, or if it `takes_begun` the one that has.
    pub(super) fn join(
        server: &Server,
        config: &Config,
        replica: &Arc<ReplicaView>,
        form: Form,
        takes_begun: bool,
    ) -> Arc<Copy> {
        let primary = Primary::of(server);
        if takes_begun && let Some(copy) = Copy::join_begun(server, config, replica, form) {
            tracing::info!("the replica {} gets the copy that is under way", replica.name());
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

    /// The copy that has begun and is as one would be that begins now, if a replica can still read all of it and what
    /// follows.
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
        // Nothing of the stream is forgotten meanwhile.
        let stream = primary.stream.lock();
        let mut members = copy.members.lock();
        match copy.place.get() {
            // It is about to meet the stream, and tells its members.
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
        // The writer forgets nothing any more that this one has yet to read.
        spool.forget_before(0);
        if !spool.is_kept() {
            members.pop();
            return None;
        }
        Some(Arc::clone(copy))
    }

    /// Whether all of its bytes are there, or are still to come.
    fn is_kept(&self) -> bool {
        matches!(self.begun(), Some(Ok(spooled)) if spooled.spool.is_kept()
            && !matches!(spooled.spool.whole(), Some(Err(_))))
    }

    /// Whom it is for.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// One of nobody else's: `written`, behind which the stream goes on at `position`.
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

    /// Where the stream goes on behind it, once that is known.
    pub(super) fn position(&self) -> Option<u64> {
        self.place.get().map(|(_, position)| *position)
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
        if self.begun.set(Err(error.clone())).is_err()
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

    /// The stream of this history goes on at `position` after it: nothing from there on is forgotten before all have got
    /// it.
    pub(super) fn meet_stream(&self, id: String, position: u64) {
        // Whoever joins sees either the place or is told it here.
        let members = self.members.lock();
        for member in members.iter().filter(|member| !member.is_copied_only) {
            member.begin_at(position);
        }
        let _ = self.place.set((id, position));
    }

    /// Whether a member that is still there gets the file, as against the position alone.
    pub(super) fn is_wanted(&self) -> bool {
        self.members.lock().iter().any(|member| member.wants_all && !member.is_gone.load(Ordering::Relaxed))
    }

    /// Whether a member still reads it, or has until lately: one whose link has broken comes back.
    pub(super) fn is_wanted_or_was_lately(&self) -> bool {
        let whole = match self.begun() {
            Some(Ok(spooled)) => spooled.spool.whole().and_then(Result::ok),
            _ => None,
        };
        let is_read = |member: &Arc<ReplicaView>| {
            let has_all = whole.is_some_and(|bytes| member.copied.load(Ordering::Relaxed) >= bytes);
            member.wants_all && !has_all && !member.is_gone.load(Ordering::Relaxed)
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
        self.is_kept() && self.is_wanted_or_was_lately()
    }

    pub(super) fn is_due(&self, config: &Config) -> bool {
        let enough = config.repl_diskless_sync_max_replicas as usize;
        Instant::now() >= self.begins_at || (enough != 0 && self.members.lock().len() >= enough)
    }
}
