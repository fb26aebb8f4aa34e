//! Takes snapshots of the data set for full syncs.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use ember_config::Config;
use ember_persistence::rdb_file::{FILE_VERSION, RdbWriter};

use super::Primary;
use super::copy::{Copy, Spooled};
use super::orders::Order;
use super::spool::{Spool, SpoolWriter};
use crate::executor::Executor;
use crate::journal::Reader;
use crate::replication::link::Link;
use crate::server::Server;
use crate::snapshot::point_in_time::{self, Claim, PointInTime, Purpose};
use crate::system::abort_on_panic::AbortOnPanic;

impl Primary {
    fn has_due_copy(&self, config: &Config) -> bool {
        self.gathering.lock().iter().any(|copy| copy.is_due(config))
    }

    fn take_due_copy(&self, config: &Config) -> Option<Arc<Copy>> {
        let mut gathering = self.gathering.lock();
        let due = gathering.iter().position(|copy| copy.is_due(config))?;
        Some(gathering.remove(due))
    }
}

/// Begins the snapshot for replicas that is due, if there is one and no other snapshot is being written. The worker is
/// inside the gate and holds no lock.
pub(super) fn begin_due(executor: &mut Executor) {
    let server = executor.server;
    let primary = Primary::of(server);
    if !Link::of(server).has_data() || !primary.has_due_copy(&executor.config) {
        return;
    }
    let Ok(claim) = Claim::take(server, Purpose::Sync) else { return };
    let asked = Instant::now();
    let begun = executor.with_exclusive_access(|executor, _| {
        // The role may have changed since the snapshot was requested.
        if !Link::of(server).has_data() {
            return None;
        }
        let copy = primary.take_due_copy(&executor.config)?;
        executor.publish();
        // The header at the beginning of the file contains the RDB version, which must be chosen before writing; it
        // depends only on whether elements with an expiry exist.
        let version = copy.form().version(server.keyspace.has_expiring_elements());
        let point = copy.is_wanted().then(|| point_in_time::begin_for_replicas(&claim, executor, version));
        if point.is_some() {
            copy.begin(new_spool(server), version, executor.config.repl_diskless_sync);
            primary.begun.lock().push(Arc::clone(&copy));
        }
        let database = Link::of(server).database();
        if database.is_some() {
            copy.meet_stream(primary.history().id, primary.end());
        } else {
            let after = server.journal.switch(Reader::Replicas, true);
            primary.orders.add(Order::Meet { after, copy: Arc::clone(&copy) });
        }
        Some((copy, point, database))
    });
    let Some((copy, point, database)) = begun else { return };
    server.journal.call_thread();
    let Some(point) = point else { return };
    let waited_ms = asked.elapsed().as_secs_f64() * 1000.0;
    tracing::info!("a full sync starts; commands waited {waited_ms:.3} ms for it");
    let is_packed = executor.config.rdbcompression;
    let written = Arc::clone(&copy);
    let write = move || {
        let _guard = AbortOnPanic;
        let begun = Instant::now();
        let Some(Ok(spooled)) = written.begun() else {
            unreachable!("it was started with the snapshot");
        };
        let spool = &spooled.spool;
        match write(server, point, &written, spooled, is_packed, database) {
            Ok(()) => {
                let (bytes, seconds) = (spool.len(), begun.elapsed().as_secs_f64());
                tracing::info!(
                    "the data of the full sync is complete: {bytes} bytes after {seconds:.3} seconds"
                );
                spool.end(Ok(()));
            }
            Err(error) if !written.is_or_was_lately_read() => {
                tracing::info!("the full sync is abandoned after {} bytes", spool.len());
                written.fail(error.to_string());
            }
            Err(error) => {
                tracing::error!("the full sync failed: {error}");
                written.fail(error.to_string());
            }
        }
        drop(claim);
        Primary::of(server).notify_workers(server);
    };
    if let Err(error) = thread::Builder::new().name("sync".to_owned()).spawn(write) {
        tracing::error!("cannot start a thread for a full sync: {error}");
        copy.fail(format!("cannot start a thread: {error}"));
    }
}

/// Creates a snapshot without keys, which is complete at once. O(functions).
pub(super) fn without_keys(server: &Server, has_functions: bool, now_ms: i64) -> Arc<Copy> {
    let written = write_without_keys(server, has_functions, now_ms).map_err(|error| error.to_string());
    let primary = Primary::of(server);
    Copy::finished((primary.history().id, primary.end()), written)
}

fn write_without_keys(server: &Server, has_functions: bool, now_ms: i64) -> io::Result<Spool> {
    let libraries = server.scripting.libraries.snapshot();
    let used_bytes = server.keyspace.used_bytes() as u64;
    let spool = new_spool(server);
    fill_spool(server, &spool, None, (FILE_VERSION, false), false, |writer| {
        writer.usual_aux(env!("CARGO_PKG_VERSION"), now_ms / 1000, used_bytes, false)?;
        libraries.all().filter(|_| has_functions).try_for_each(|library| writer.function(&library.code))
    })?;
    Ok(spool)
}

/// Writes the keyspace at one moment. `database` is the database that the stream after the snapshot has selected,
/// unless the stream begins with a SELECT.
fn write(
    server: &Server,
    point: PointInTime,
    copy: &Copy,
    spooled: &Spooled,
    is_packed: bool,
    database: Option<usize>,
) -> io::Result<()> {
    let form = (spooled.version, spooled.is_streamed);
    fill_spool(server, &spooled.spool, Some(copy), form, is_packed, |writer| {
        if let Some(database) = database {
            writer.aux(b"repl-stream-db", database.to_string().as_bytes())?;
        }
        point.fill(writer, false)
    })
}

fn new_spool(server: &Server) -> Spool {
    Spool::new(server.encryption().is_on())
}

/// Writes an RDB file of a version to a spool, as long as a replica waits for the snapshot; `fill` writes its contents.
/// If the snapshot is streamed, its readers are notified of new bytes.
fn fill_spool(
    server: &Server,
    spool: &Spool,
    copy: Option<&Copy>,
    (version, is_streamed): (u16, bool),
    is_packed: bool,
    fill: impl FnOnce(&mut RdbWriter<NotifyingWriter<'_>>) -> io::Result<()>,
) -> io::Result<()> {
    let spool_writer =
        NotifyingWriter { server, writer: SpoolWriter(spool), copy, is_streamed, unannounced: 0 };
    let mut writer = RdbWriter::new(spool_writer, version, is_packed)?;
    fill(&mut writer)?;
    writer.finish_as_begun()?;
    Ok(())
}

/// A writer to a spool that notifies the readers of the snapshot in it of new bytes.
struct NotifyingWriter<'s> {
    server: &'s Server,
    writer: SpoolWriter<'s>,
    copy: Option<&'s Copy>,
    is_streamed: bool,
    /// The number of bytes of which the readers have not been notified.
    unannounced: usize,
}

/// The number of new bytes after which the readers are notified.
const NOTIFIED_BYTES: usize = 256 * 1024;

impl Write for NotifyingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.copy.is_some_and(|copy| !copy.is_or_was_lately_read()) {
            return Err(io::Error::other("no replica waits for the full sync any more"));
        }
        let count = self.writer.write(bytes)?;
        self.unannounced += count;
        if self.is_streamed && self.unannounced >= NOTIFIED_BYTES {
            self.unannounced = 0;
            Primary::of(self.server).notify_workers(self.server);
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
