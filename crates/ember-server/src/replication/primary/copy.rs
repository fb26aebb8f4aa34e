//! Snapshots of the data set for full syncs of replicas that cannot resume with the stream.
//!
//! Replicas that request a full sync within `repl-diskless-sync-delay` of each other and read the same format share one
//! snapshot. A snapshot is the keyspace at one moment, taken with exclusive access after a certain record of the
//! journal; the stream continues after that record. The snapshot is written to a [`Spool`] at full speed, so commands
//! never wait for a replica's link. Replicas that support an end mark receive the snapshot while it is written, other
//! replicas when it is complete.
//!
//! A replica whose link breaks before it has received the whole snapshot can receive the same snapshot again, which
//! saves writing another one. A replica can join a snapshot that has begun as long as the snapshot's first byte and the
//! stream after the snapshot are kept. A snapshot that no replica reads is kept for [`JOINED_WITHIN`].

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

/// The kind of replica that a snapshot is for. Only replicas that read the same format share a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Redis of any version, or a program that does not announce what it supports.
    Redis,
    /// Redis that supports expiries of hash fields, or whose support this snapshot is to determine.
    NewRedis,
    Valkey,
    Ember,
}

impl Form {
    /// Returns the form for a replica that supports these groups of commands, or whose support its snapshot is to
    /// determine.
    pub(super) fn of(program: Program, words: Words) -> Form {
        match program {
            Program::Ember => Form::Ember,
            Program::Valkey9 => Form::Valkey,
            _ if words.contains(Words::FIELDS) => Form::NewRedis,
            _ => Form::Redis,
        }
    }

    /// Returns the RDB version of a snapshot of data with or without expiring hash fields.
    pub(super) fn version(self, has_expiring_fields: bool) -> u16 {
        match self {
            Form::Redis if !has_expiring_fields => FILE_VERSION,
            // An older Redis refuses this version with an error, because it cannot represent such data.
            Form::Redis | Form::NewRedis | Form::Ember => VERSION_MAX,
            Form::Valkey => VALKEY_VERSION,
        }
    }
}

/// The time for which a snapshot that no replica reads is kept: replicas that have lost their links retry each second.
const JOINED_WITHIN: Duration = Duration::from_secs(5);

/// A snapshot of the data set for replicas, from the first request for it to its last byte.
pub(super) struct Copy {
    form: Form,
    begins_at: Instant,
    members: Mutex<Vec<Arc<ReplicaView>>>,
    /// The replication ID and the position at which the stream continues after the snapshot.
    place: OnceLock<(String, u64)>,
    /// When the last replica stopped reading the snapshot; `None` while a replica reads it.
    unread_since: Mutex<Option<Instant>>,
    /// The bytes of the snapshot once writing has begun, or why it could not begin.
    begun: OnceLock<Result<Spooled, String>>,
}

/// The bytes of a snapshot that has begun.
#[derive(Debug)]
pub(super) struct Spooled {
    pub(super) spool: Spool,
    /// The RDB version of the snapshot.
    pub(super) version: u16,
    /// Whether replicas may read the snapshot before it is complete.
    pub(super) is_streamed: bool,
}

impl Copy {
    /// Returns the snapshot for a replica: a snapshot of this form that has not begun, or with `takes_begun` preferably
    /// one that has begun.
    pub(super) fn join(
        server: &Server,
        config: &Config,
        replica: &Arc<ReplicaView>,
        form: Form,
        takes_begun: bool,
    ) -> Arc<Copy> {
        let primary = Primary::of(server);
        if takes_begun && let Some(copy) = Copy::join_begun(server, config, replica, form) {
            tracing::info!("the replica {} joins the full sync that is in progress", replica.name());
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

    /// Joins a snapshot that has begun and has the RDB version and the streaming setting that a new snapshot would
    /// have, if the replica can still read the whole snapshot and the stream after it.
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
            // `meet_stream` has yet to be called, and will set the position of all members.
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
        // From now on, the writer keeps the bytes that this member has yet to read.
        spool.forget_before(0);
        if !spool.is_kept() {
            members.pop();
            return None;
        }
        Some(Arc::clone(copy))
    }

    /// Whether every byte of the snapshot is kept or has yet to be written.
    fn is_kept(&self) -> bool {
        matches!(self.begun(), Some(Ok(spooled)) if spooled.spool.is_kept()
            && !matches!(spooled.spool.whole(), Some(Err(_))))
    }

    /// Returns the kind of replica that the snapshot is for.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Creates a complete snapshot for a single replica from the bytes `written`; the stream continues at `place`.
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

    /// Returns the position at which the stream continues after the snapshot, once that is known.
    pub(super) fn position(&self) -> Option<u64> {
        self.place.get().map(|(_, position)| *position)
    }

    /// Returns the bytes of the snapshot once writing has begun, or why it could not begin.
    pub(super) fn begun(&self) -> Option<&Result<Spooled, String>> {
        self.begun.get()
    }

    /// Sets the spool that the snapshot is written to and read from.
    pub(super) fn begin(&self, spool: Spool, version: u16, is_streamed: bool) {
        let _ = self.begun.set(Ok(Spooled { spool, version, is_streamed }));
    }

    /// Records why the snapshot will never be complete.
    pub(super) fn fail(&self, error: String) {
        if self.begun.set(Err(error.clone())).is_err()
            && let Some(Ok(Spooled { spool, .. })) = self.begun.get()
        {
            spool.end(Err(error));
        }
    }

    /// Records how many bytes a member has received, and discards the bytes that all members have received.
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

    /// Sets the replication ID and the `position` at which the stream continues after the snapshot. The stream from
    /// there on is kept until all members have received it.
    pub(super) fn meet_stream(&self, id: String, position: u64) {
        // A replica that joins holds this lock, so either it reads the position, or the loop below sets it.
        let members = self.members.lock();
        for member in members.iter().filter(|member| !member.is_copied_only) {
            member.begin_at(position);
        }
        let _ = self.place.set((id, position));
    }

    /// Whether a connected member receives the snapshot itself, not only the stream position after it.
    pub(super) fn is_wanted(&self) -> bool {
        self.members
            .lock()
            .iter()
            .any(|member| member.receives_all && !member.is_closed.load(Ordering::Relaxed))
    }

    /// Whether a member reads the snapshot, or did so within [`JOINED_WITHIN`]: a replica whose link has broken
    /// reconnects.
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

    /// Whether replicas may still join the snapshot.
    pub(super) fn is_joinable(&self) -> bool {
        self.is_kept() && self.is_or_was_lately_read()
    }

    pub(super) fn is_due(&self, config: &Config) -> bool {
        let enough = config.repl_diskless_sync_max_replicas as usize;
        Instant::now() >= self.begins_at || (enough != 0 && self.members.lock().len() >= enough)
    }
}
