//! A copy of the data for replicas that have nothing the stream could go on from.
//!
//! Replicas that ask within `repl-diskless-sync-delay` of each other share one. It is the keyspace at one moment, taken
//! while nobody else is at it, behind one record of the journal: the stream goes on at that record. It is written to a
//! [`Spool`] as fast as it comes, so that commands wait for no replica's link.

use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use ember_persistence::rdb_file::{FILE_VERSION, RdbWriter};
use parking_lot::Mutex;

use super::Primary;
use super::orders::Order;
use super::replica::ReplicaView;
use super::spool::Spool;
use crate::config::Config;
use crate::executor::Executor;
use crate::journal::Reader;
use crate::server::Server;
use crate::snapshot::point_in_time::{self, Claim, PointInTime, Purpose};
use crate::system::abort_on_panic::AbortOnPanic;

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

    /// A copy without keys, which is written at once. O(functions).
    pub(super) fn without_keys(server: &Server, has_functions: bool, now_ms: i64) -> Arc<Copy> {
        let written = write_without_keys(server, has_functions, now_ms).map_err(|error| error.to_string());
        Arc::new(Copy {
            begins_at: Instant::now(),
            members: Mutex::default(),
            position: OnceLock::from(Primary::of(server).end()),
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

    /// The stream goes on at `position` behind it: nothing from there on is forgotten before all have got it.
    pub(super) fn meet_stream(&self, position: u64) {
        for member in self.members.lock().iter().filter(|member| !member.is_copied_only) {
            member.position.store(position, std::sync::atomic::Ordering::Relaxed);
        }
        let _ = self.position.set(position);
    }

    /// Whether a member gets the file, as against the position alone.
    fn is_wanted(&self) -> bool {
        self.members.lock().iter().any(|member| member.wants_all)
    }

    fn is_due(&self, config: &Config) -> bool {
        let enough = config.repl_diskless_sync_max_replicas as usize;
        Instant::now() >= self.begins_at || (enough != 0 && self.members.lock().len() >= enough)
    }
}

/// Begins the copy that is due, if one is and no other snapshot is under way. The worker is inside the gate and holds no
/// lock.
pub(super) fn begin_due(executor: &mut Executor) {
    let server = executor.server;
    let primary = Primary::of(server);
    let copy = {
        let mut gathering = primary.gathering.lock();
        if gathering.as_ref().is_none_or(|copy| !copy.is_due(&executor.config)) {
            return;
        }
        // Taken first: what waits for it goes on waiting otherwise.
        let Ok(claim) = Claim::take(server, Purpose::Sync) else { return };
        gathering.take().map(|copy| (copy, claim))
    };
    let Some((copy, claim)) = copy else { return };
    let is_wanted = copy.is_wanted();
    let point = executor.with_exclusive_access(|executor, _| {
        executor.publish();
        let point = is_wanted.then(|| point_in_time::begin(&claim, executor));
        let behind = server.journal.switch(Reader::Replicas, true);
        primary.orders.add(Order::Meet { behind, copy: Arc::clone(&copy) });
        point
    });
    server.journal.call_thread();
    let Some(point) = point else { return };
    let is_packed = executor.config.rdbcompression;
    let written = Arc::clone(&copy);
    let write = move || {
        let _guard = AbortOnPanic;
        let begun = Instant::now();
        let spool = write(server, point, is_packed).map_err(|error| error.to_string());
        match &spool {
            Ok(spool) => {
                let (bytes, seconds) = (spool.len(), begun.elapsed().as_secs_f64());
                tracing::info!(
                    "a copy of the data for replicas is there: {bytes} bytes after {seconds:.3} seconds"
                );
            }
            Err(error) => tracing::error!("there is no copy of the data for replicas: {error}"),
        }
        let _ = written.written.set(spool);
        drop(claim);
        Primary::of(server).tell_workers(server);
    };
    if let Err(error) = thread::Builder::new().name("sync".to_owned()).spawn(write) {
        tracing::error!("cannot start a thread to copy the data for replicas: {error}");
        let _ = copy.written.set(Err(format!("cannot start a thread: {error}")));
    }
}

/// Writes the keyspace at one moment.
fn write(server: &Server, point: PointInTime, is_packed: bool) -> io::Result<Spool> {
    spooled(server, is_packed, |writer| point.fill(writer, false))
}

fn write_without_keys(server: &Server, has_functions: bool, now_ms: i64) -> io::Result<Spool> {
    let libraries = server.scripting.libraries.snapshot();
    let used_bytes = server.keyspace.used_bytes() as u64;
    spooled(server, false, |writer| {
        writer.usual_aux(env!("CARGO_PKG_VERSION"), now_ms / 1000, used_bytes, false)?;
        libraries.all().filter(|_| has_functions).try_for_each(|library| writer.function(&library.code))
    })
}

/// A spool with an RDB file in it, whose middle `fill` writes.
fn spooled(
    server: &Server,
    is_packed: bool,
    fill: impl FnOnce(&mut RdbWriter<&mut Spool>) -> io::Result<()>,
) -> io::Result<Spool> {
    // What is encrypted at rest does not get to a disk unencrypted.
    let mut spool = Spool::new(!server.encryption().is_on());
    let mut writer = RdbWriter::new(&mut spool, FILE_VERSION, is_packed)?;
    fill(&mut writer)?;
    let (spool_again, written) = writer.finish()?;
    spool_again.overwrite_beginning(&written.header);
    Ok(spool)
}
