//! The threads that talk to other servers, what waits for one, and connections that are kept for the next call.

use std::collections::VecDeque;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use emberkv_core::keyspace::Keyspace;
use parking_lot::{Condvar, Mutex};

use super::order::Destination;
use super::settling::{Ended, Migration};
use super::target::Target;
use super::transfer::{Transferred, transfer};
use crate::clients::mailbox::Message;
use crate::server::Server;
use crate::system::abort_on_panic::AbortOnPanic;

/// Threads that talk to targets at the same time. What more there is waits until one of them is done.
const THREADS_MAX: usize = 16;

/// For how long a connection is kept that nobody uses, and a thread that has nothing to do.
const KEPT_TIME: Duration = Duration::from_secs(10);

/// Connections that are kept.
const KEPT_MAX: usize = 64;

/// Connections to targets that wait for the next call.
#[derive(Default)]
pub(super) struct KeptTargets(Mutex<Vec<Target>>);

impl KeptTargets {
    /// A connection to that destination, as that user, if one is kept.
    pub(super) fn take(&self, destination: &Destination) -> Option<Target> {
        let mut kept = self.0.lock();
        let at = kept.iter().rposition(|target| target.destination == *destination)?;
        Some(kept.swap_remove(at))
    }

    /// Keeps a connection; the one that was used least recently goes when there are too many.
    pub(super) fn keep(&self, mut target: Target) {
        target.used_at = Instant::now();
        let mut kept = self.0.lock();
        if kept.len() >= KEPT_MAX
            && let Some(oldest) = (0..kept.len()).min_by_key(|&at| kept[at].used_at)
        {
            kept.swap_remove(oldest);
        }
        kept.push(target);
    }

    fn close_unused(&self) {
        self.0.lock().retain(|target| target.used_at.elapsed() < KEPT_TIME);
    }
}

#[derive(Default)]
struct Work {
    waiting: VecDeque<Box<Migration>>,
    threads: usize,
    /// Those of them that wait for work.
    idle: usize,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Migrations {
    work: Mutex<Work>,
    has_work: Condvar,
    /// Those whose transfers are over, and how.
    ended: Mutex<Vec<Ended>>,
    kept: KeptTargets,
}

impl Migrations {
    /// Those of a server.
    pub(crate) fn of(server: &Server) -> &Migrations {
        server.services.get()
    }

    /// Closes connections that nobody has used for long.
    pub(crate) fn close_unused(&self) {
        self.kept.close_unused();
    }

    /// The number of connections that are kept.
    pub(crate) fn kept_connections(&self) -> usize {
        self.kept.0.lock().len()
    }

    /// Has a transfer done; a [`Message::Migrated`] to its worker tells that it is over.
    ///
    /// # Errors
    /// If the system gives no thread; the migration is returned then.
    pub(super) fn begin(
        server: &'static Server,
        migration: Box<Migration>,
    ) -> Result<(), (Box<Migration>, io::Error)> {
        let migrations = Migrations::of(server);
        let mut work = migrations.work.lock();
        work.waiting.push_back(migration);
        if work.waiting.len() <= work.idle || work.threads == THREADS_MAX {
            migrations.has_work.notify_one();
            return Ok(());
        }
        let spawned = thread::Builder::new().name(format!("migration-{}", work.threads)).spawn(move || {
            let _guard = AbortOnPanic;
            migrations.work_until_idle(server);
        });
        match spawned {
            Ok(_) => work.threads += 1,
            // One that is there does it later.
            Err(_) if work.threads > 0 => {}
            Err(error) => return Err((work.waiting.pop_back().expect("it was added"), error)),
        }
        Ok(())
    }

    fn work_until_idle(&self, server: &Server) {
        while let Some(migration) = self.next() {
            let transferred = self.transfer_here(&server.keyspace, &migration);
            let worker = migration.worker();
            self.ended.lock().push(Ended { migration, transferred });
            server.workers[worker].mailbox.send(Message::Migrated);
        }
    }

    /// The next migration to be done; nothing after a while without any, when the thread is to end.
    fn next(&self) -> Option<Box<Migration>> {
        let mut work = self.work.lock();
        loop {
            if let Some(migration) = work.waiting.pop_front() {
                return Some(migration);
            }
            work.idle += 1;
            let has_waited = self.has_work.wait_for(&mut work, KEPT_TIME).timed_out();
            work.idle -= 1;
            if has_waited && work.waiting.is_empty() {
                work.threads -= 1;
                return None;
            }
        }
    }

    /// Whether transfers of a worker are over.
    pub(crate) fn has_ended(&self, worker: usize) -> bool {
        self.ended.lock().iter().any(|ended| ended.migration.worker() == worker)
    }

    /// Takes those.
    pub(crate) fn take_ended(&self, worker: usize) -> Vec<Ended> {
        self.ended.lock().extract_if(.., |ended| ended.migration.worker() == worker).collect()
    }

    /// Transfers on the calling thread.
    pub(super) fn transfer_here(&self, keyspace: &Keyspace, migration: &Migration) -> Transferred {
        let Migration { database, keys, order, .. } = migration;
        transfer(keyspace, *database, keys, order, &self.kept)
    }
}
