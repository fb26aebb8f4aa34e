//! The AOF as a subscriber of the journal: records are appended to its files, and made durable.
//!
//! ```text
//! append    records in the order of their numbers; an order is executed after the records that precede it
//! sync      always: at once, for everything appended; everysec, no: on its own thread
//! ```
//!
//! **Threads.** Workers append before they send replies. The journal's thread does everything that may take long:
//! creating and closing files, fsyncs, large appends, and all appending while an fsync runs, because a file system may
//! delay a write until the fsync ends.
//!
//! **Replies.** A reply is sent when the record that it acknowledges is in the file, so that a killed process loses
//! nothing; with `always`, when the record is durable. A late or missing wake-up of a thread only delays replies.
//!
//! **When the disk fails**, the subscriber keeps the records that could not be written, in order, and writes are
//! refused until it has written them: no write is acknowledged before it is on disk as the policy promises. The
//! subscriber keeps retrying. Data whose fsync has failed are not trusted: they are written again
//! ([`AofWriter::recover`]) or, if that is impossible, the whole AOF is rewritten.
//!
//! **When the disk is slow**, no write is refused. With `everysec` and `no`, clients wait only for writes to the file,
//! never for an fsync, but a file system may delay writes while it syncs. Once [`slow_disk::waiting_bytes_max`] bytes
//! of records wait to be written, further writes are delayed, so that memory is bounded. `slow_disk.rs` reports slow
//! calls. Only `aof-lag-limit` also bounds the age of records that are not durable: when the oldest such record exceeds
//! that age, writes are delayed, and once they have been delayed for `aof-wait-limit`, they are refused.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use ember_config::{AppendFsync, Config};
use ember_persistence::aof::{
    AofDirectory, AofError, AofWriter, Batch, RETAINED_BYTES_MAX, SyncOutcome, SyncTask,
};
use ember_persistence::full_path::without_directories;

use super::checkpoint;
use super::opening::{OpenedFiles, UnopenedFiles};
use super::orders::{Beginning, Order};
use super::rewriting::{self, Base, BaseWritten, NewFiles, Rewriting};
use super::service::Aof;
use super::slow_disk;
use crate::journal::Reader;
use crate::journal::stream::{Pause, ReaderDatabase, Records, Subscriber};
use crate::replication::primary::Primary;
use crate::server::Server;
use crate::server::conditions::Condition;
use crate::snapshot::state::SnapshotState;
use crate::system::clock::unix_ms;
use crate::tiers::Tiers;

/// Time between two fsyncs with `everysec`.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes between two fsyncs with `no`: the more bytes an fsync covers, the more must be written again if it fails.
const UNSYNCED_MAX: u64 = 32 * 1024 * 1024;

/// The pause before the first retry after a failure, and the longest pause. With these, writes are accepted soon after
/// the disk has space, and the cost of at most five retries a second is negligible.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_millis(200);

/// The longest pause between retries that each write the whole data set.
const BASE_RETRY_MAX: Duration = Duration::from_secs(1);

/// The minimum time between log messages with different reasons: some reasons contain the name of a file that is new at
/// each retry.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The fraction (1/64) of `maxmemory` for records that are not durable and are retained in case an fsync fails.
const RETAINED_SHARE: u64 = 64;

/// The pause before the removal of replaced files is tried again after a failure: they only take space.
const REMOVAL_RETRY: Duration = Duration::from_secs(60);

/// The longest sleep of the journal's thread.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// The directory of the AOF, and the increment that is being written.
struct Files {
    directory: AofDirectory,
    writer: AofWriter,
    /// The size in bytes of all files except the increment that is being written.
    closed_size: u64,
}

/// An fsync that is running on its own thread.
struct Syncing {
    /// The number of the last record that is durable if the fsync succeeds.
    upto: u64,
    /// When the oldest record that the fsync makes durable was appended.
    oldest: Option<Instant>,
}

/// The state while writing fails.
struct Trouble {
    text: String,
    /// When the failure was last logged.
    logged: Instant,
    next_try: Instant,
    pause: Duration,
}

/// The journal's subscriber that writes the AOF.
pub(super) struct AofSubscriber {
    server: &'static Server,
    aof: &'static Aof,
    config: Arc<Config>,
    generation: u64,
    files: Option<Files>,
    /// Files that could not be opened because the disk was full at startup.
    unopened: Option<UnopenedFiles>,
    orders: VecDeque<Order>,
    rewriting: Option<Rewriting>,
    /// Bytes that must precede the next records in the file: a timestamp, or a stream position.
    lead: Batch,
    /// Records that could not be written, and the number of the last of them.
    pending: Batch,
    pending_last: u64,
    /// Records up to this number are not written: a base contains their effects, or they are abandoned.
    skipped: u64,
    /// The number of the last record in the file.
    appended: u64,
    /// The number of the last durable record.
    synced: u64,
    /// When the oldest record that no fsync covers yet was appended.
    oldest: Option<Instant>,
    /// Whether workers have appended the first record since the last fsync, so that the journal's thread must compute
    /// when the next fsync is due.
    begins_interval: bool,
    /// The file size in bytes when the last fsync began.
    synced_size: u64,
    sync_begun: Instant,
    syncing: Option<Syncing>,
    to_sync: Sender<SyncTask>,
    from_sync: Receiver<SyncOutcome>,
    /// Whether replies are held until the base that is being written is complete.
    holds: bool,
    /// Whether the whole AOF must be rewritten, because the state of the current files is unknown.
    is_lost: bool,
    /// The new files of an AOF that must be rewritten, used as soon as the data of their base are available.
    new_files: Option<NewFiles>,
    trouble: Option<Trouble>,
    /// Whether the rest of this round cannot write, because an attempt has failed or the next attempt is not due yet.
    is_stuck: bool,
    /// The error with which writes are refused; `None` while they are accepted.
    refusal: Option<String>,
    /// The Unix time in s at which the next replaced file is to be removed; `i64::MAX` if there is none.
    next_expiry_s: i64,
    /// When the removal of replaced files failed, if the last one did.
    removal_failed: Option<Instant>,
    /// The last timestamp written to the file, Unix time in s.
    written_time: Option<i64>,
    /// Whether the file does not contain a SELECT yet, so that the next record must begin with one.
    needs_database: bool,
    is_over: bool,
}

impl AofSubscriber {
    /// Returns the subscriber of a server whose journal has no reader yet. If there are files, their last increment is
    /// new and empty, or writes are refused until it is created. `to_sync` sends fsyncs to the thread that runs them,
    /// `from_sync` receives their results.
    pub(super) fn new(
        server: &'static Server,
        files: Option<OpenedFiles>,
        to_sync: Sender<SyncTask>,
        from_sync: Receiver<SyncOutcome>,
    ) -> AofSubscriber {
        let mut subscriber = AofSubscriber {
            server,
            aof: Aof::of(server),
            config: server.config.snapshot(),
            generation: server.config.generation(),
            files: None,
            unopened: None,
            orders: VecDeque::new(),
            rewriting: None,
            lead: Batch::new(),
            pending: Batch::new(),
            pending_last: 0,
            skipped: 0,
            appended: 0,
            synced: 0,
            oldest: None,
            begins_interval: false,
            synced_size: 0,
            sync_begun: Instant::now(),
            syncing: None,
            to_sync,
            from_sync,
            holds: false,
            is_lost: false,
            new_files: None,
            trouble: None,
            is_stuck: false,
            refusal: None,
            next_expiry_s: i64::MAX,
            removal_failed: None,
            written_time: None,
            needs_database: false,
            is_over: false,
        };
        let last = server.journal.last_number();
        match files {
            None => {}
            Some(OpenedFiles::Begun(directory, writer)) => subscriber.open_at_start(directory, writer, last),
            Some(OpenedFiles::Full(files, error)) => {
                subscriber.aof.state.is_enabled.store(true, Ordering::Relaxed);
                (subscriber.appended, subscriber.synced) = (last, last);
                subscriber.is_lost = files.needs_base;
                subscriber.unopened = Some(files);
                subscriber.enter_trouble(error.to_string());
                // Writes must be refused from the first command on.
                subscriber.report_refusal(false);
            }
        }
        subscriber
    }

    /// Continues in the files that the data set was loaded from.
    fn open_at_start(&mut self, directory: AofDirectory, writer: AofWriter, last: u64) {
        self.install(directory, writer, last);
        let size = self.aof.state.size.load(Ordering::Relaxed);
        self.aof.state.base_size.store(size, Ordering::Relaxed);
    }

    fn take_orders(&mut self) {
        for order in self.aof.orders.take() {
            match order {
                Order::BaseWritten(written) => self.finish_rewrite(*written),
                Order::BaseTaken(taken) => self.begin_with(taken.0, taken.1),
                order => self.orders.push_back(order),
            }
        }
    }

    /// Ensures that records can be written, recovering from an earlier failure if necessary.
    fn ensure_writable(&mut self) -> Result<(), AofError> {
        if self.is_lost {
            self.is_stuck = true;
            return self.begin_replacement();
        }
        if let Some(mut files) = self.unopened.take() {
            match files.open() {
                Ok(writer) => self.open_at_start(files.directory, writer, self.appended),
                Err(error) => {
                    self.unopened = Some(files);
                    return Err(error);
                }
            }
        }
        // [`AofWriter::recover`] behaves differently after a failed fsync, whose result may still be pending.
        self.poll_sync()?;
        if let (Some(_), Some(files)) = (&self.trouble, &mut self.files) {
            files.writer.recover()?;
        }
        self.write_pending()
    }

    /// Writes records that could not be written before.
    fn write_pending(&mut self) -> Result<(), AofError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if let Some(files) = &mut self.files {
            write_lead(&mut self.lead, &mut files.writer)?;
            files.writer.append(&mut self.pending)?;
            self.oldest.get_or_insert_with(Instant::now);
        }
        self.appended = self.appended.max(self.pending_last);
        self.pending.clear();
        Ok(())
    }

    /// Writes records, preceded by a timestamp if one is due.
    fn write(&mut self, records: &mut Records<'_>) -> Result<(), AofError> {
        let Some(files) = self.files.as_mut().filter(|_| !records.batch.is_empty()) else { return Ok(()) };
        let now_ms = unix_ms();
        let now_s = now_ms / 1000;
        // A file whose first records have times has them to its end, because otherwise the time of the last records
        // would seem to be known.
        let has_times = self.config.writes_aof_timestamps() || self.written_time.is_some();
        if has_times && self.written_time != Some(now_s) {
            self.lead.time(now_s);
            self.written_time = Some(now_s);
        }
        self.needs_database = false;
        self.aof.state.write.begin(now_ms);
        let written = write_lead(&mut self.lead, &mut files.writer);
        let delay_us = self.server.debug.aof_write_delay_us.load(Ordering::Relaxed);
        if delay_us != 0 {
            std::thread::sleep(Duration::from_micros(delay_us));
        }
        let written = written.and_then(|()| files.writer.append(records.batch));
        self.end_write();
        written?;
        self.begins_interval |= self.oldest.is_none();
        self.oldest.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Records that a write has ended, successfully or not.
    fn end_write(&self) {
        let aof = &self.aof.state;
        aof.write.end();
        if self.config.latency_monitor_threshold != 0 {
            for event in [slow_disk::write_event(self.server, aof), "aof-write"] {
                slow_disk::sample(self.server, &self.config, event, aof.write.last_ms());
            }
        }
    }

    /// Runs work that may block on the disk and delay replies, so that slow work is reported.
    fn observed<T>(&mut self, work: impl FnOnce(&mut AofSubscriber) -> T) -> T {
        self.aof.state.write.begin(unix_ms());
        let result = work(self);
        self.aof.state.write.end();
        result
    }

    fn carry_out(&mut self, order: Order) -> Result<(), AofError> {
        match order {
            Order::Begin(beginning) => {
                self.begin(*beginning);
                Ok(())
            }
            Order::Await { files, .. } => {
                self.await_base(*files);
                Ok(())
            }
            Order::Rotate { after, base } => self.rotate(after, base),
            Order::BaseTaken(_) | Order::BaseWritten(_) => unreachable!("they wait for no records"),
            Order::End { after } => {
                self.write_end_time();
                self.end(after);
                Ok(())
            }
            Order::Stop { after } => {
                self.write_place(after)?;
                self.end(after);
                self.is_over = true;
                Ok(())
            }
        }
    }

    /// Writes the stream position of the data as the last line, if the file contains all the data.
    fn write_place(&mut self, after: u64) -> Result<(), AofError> {
        let has_all = self.skipped <= after && self.pending.is_empty() && self.has_base();
        let place = Primary::of(self.server).last_place(self.server).filter(|_| has_all);
        if let (Some(place), Some(files)) = (place, &mut self.files) {
            self.lead.origin(&place);
            write_lead(&mut self.lead, &mut files.writer)?;
        }
        Ok(())
    }

    /// Writes the time as the last line of a file with times, if the file contains all changes until now. Later changes
    /// will be missing from the AOF.
    fn write_end_time(&mut self) {
        let is_whole = self.trouble.is_none() && self.pending.is_empty() && self.has_base();
        let Some(files) = self.files.as_mut().filter(|_| is_whole && self.written_time.is_some()) else {
            return;
        };
        self.lead.time(unix_ms() / 1000);
        if let Err(error) = write_lead(&mut self.lead, &mut files.writer) {
            tracing::warn!("the time at which the AOF was switched off cannot be written: {error}");
        }
    }

    fn begin(&mut self, beginning: Beginning) {
        let Beginning { directory, writer, rewrite, base, after, holds } = beginning;
        let rewrite = rewrite.taken_at(unix_ms() / 1000);
        self.settle_sync();
        self.skip_to(after);
        self.install(directory, writer, after);
        (self.holds, self.is_lost) = (holds, false);
        self.begin_base(rewrite, base, true);
    }

    /// Skips all records up to number `last`: a base contains their effects, or they are abandoned.
    fn skip_to(&mut self, last: u64) {
        self.skipped = last;
        self.pending.clear();
        self.lead.clear();
    }

    /// Makes these the current files, which contain the effects of records up to number `last`.
    fn install(&mut self, directory: AofDirectory, writer: AofWriter, last: u64) {
        self.synced_size = writer.size();
        self.files =
            Some(Files { closed_size: rewriting::closed_size(&directory, &writer), directory, writer });
        self.limit_retained();
        self.limit_kept();
        self.begin_file();
        (self.appended, self.synced, self.oldest) = (last, last, None);
        self.aof.state.is_enabled.store(true, Ordering::Relaxed);
        self.report_size();
    }

    /// Applies the time for which replaced files are kept.
    fn limit_kept(&mut self) {
        let keep_s = self.config.aof_keep_seconds;
        if let Some(files) = &mut self.files {
            files.directory.set_keep_s(keep_s);
        }
        if let Some(files) = &mut self.unopened {
            files.directory.set_keep_s(keep_s);
        }
        self.report_kept();
    }

    /// Removes replaced files that are not kept any longer. A failure is only logged, because no record depends on
    /// these files, and the removal is tried again later.
    fn remove_expired(&mut self) {
        if self.next_expiry_s == i64::MAX {
            return;
        }
        let now_s = unix_ms() / 1000;
        let is_resting = self.removal_failed.is_some_and(|failed| failed.elapsed() < REMOVAL_RETRY);
        if now_s < self.next_expiry_s || is_resting {
            return;
        }
        let removed = self.observed(|subscriber| {
            subscriber.files.as_mut().map_or(Ok(()), |files| files.directory.remove_expired(now_s))
        });
        if let Err(error) = &removed {
            tracing::warn!("earlier files of the AOF cannot be removed: {error}");
        }
        self.removal_failed = removed.is_err().then(Instant::now);
        self.report_kept();
    }

    /// Publishes the size of the replaced files, and computes when the next of them is to be removed.
    fn report_kept(&mut self) {
        let directory = self.files.as_ref().map(|files| &files.directory);
        self.next_expiry_s = directory.and_then(AofDirectory::next_expiry_s).unwrap_or(i64::MAX);
        let kept = directory.map_or(0, AofDirectory::kept_bytes);
        self.aof.state.kept_bytes.store(kept, Ordering::Relaxed);
    }

    /// Applies the limit on records that are retained in case an fsync fails.
    fn limit_retained(&mut self) {
        let max = self.config.held_back_max(RETAINED_BYTES_MAX, RETAINED_SHARE);
        if let Some(files) = &mut self.files {
            files.writer.set_retained_max(max);
        }
    }

    fn begin_file(&mut self) {
        (self.written_time, self.needs_database) = (None, true);
    }

    fn rotate(&mut self, after: u64, base: Option<Base>) -> Result<(), AofError> {
        self.settle_sync();
        let Some(files) = &mut self.files else {
            base.into_iter().for_each(|base| self.give_up_rewrite(base));
            return Ok(());
        };
        files.directory.set_encryption(&self.server.encryption());
        if let Err(error) = files.directory.rotate(&mut files.writer) {
            // The rotation must be retried before any other append, even if its rewrite is given up.
            if let Some(base) = base {
                tracing::error!("the rewrite of the AOF failed: {error}");
                self.give_up_rewrite(base);
            }
            self.orders.push_front(Order::Rotate { after, base: None });
            return Err(error);
        }
        files.closed_size = rewriting::closed_size(&files.directory, &files.writer);
        self.synced_size = files.writer.size();
        let rewrite = files.directory.begin_rewrite().taken_at(unix_ms() / 1000);
        self.limit_retained();
        self.begin_file();
        // The rotation has synced the whole previous file.
        (self.synced, self.oldest) = (self.appended, None);
        if let Some(base) = base {
            self.begin_base(rewrite, base, false);
        }
        Ok(())
    }

    /// Fails rewrites that have not begun: while nothing can be written, they would not end.
    fn fail_waiting_rewrites(&mut self) {
        let Some(trouble) = &self.trouble else { return };
        let is_rewrite = |order: &Order| matches!(order, Order::Rotate { base: Some(_), .. });
        if !self.orders.iter().any(is_rewrite) {
            return;
        }
        tracing::error!("the rewrite of the AOF failed: {}", trouble.text);
        for order in std::mem::take(&mut self.orders) {
            match order {
                Order::Rotate { base: Some(base), .. } => self.give_up_rewrite(base),
                order => self.orders.push_back(order),
            }
        }
    }

    /// Ends a rewrite whose base was not begun.
    fn give_up_rewrite(&self, base: Base) {
        checkpoint::give_up(self.server, base);
        self.aof.state.end_rewrite(false);
    }

    /// Starts writing the base of a rewrite.
    fn begin_base(&mut self, rewrite: ember_persistence::aof::Rewrite, base: Base, is_beginning: bool) {
        let Some(files) = &mut self.files else { return };
        let done = rewriting::notify_writer(self.server);
        let begun = if base.is_checkpoint() {
            checkpoint::begin(self.server, rewrite.first(), base, done)
        } else {
            let begun = files.directory.begin_base(base.form()).map_err(|error| error.to_string());
            begun.and_then(|file| rewriting::write_base(self.server, file, base, done))
        };
        self.rewriting = Some(Rewriting { rewrite, is_beginning });
        if let Err(error) = begun {
            self.fail_rewrite(&error);
        }
    }

    fn finish_rewrite(&mut self, written: BaseWritten) {
        let (Some(rewrite), Some(files)) = (self.rewriting.take(), &mut self.files) else {
            self.aof.state.rewriting_since_ms.store(0, Ordering::Relaxed);
            let claims = &SnapshotState::of(self.server).claims;
            // A thread that waits for the end of this base takes the next claim, so this claim is released first.
            drop(written);
            claims.is_base_obsolete.store(false, Ordering::Release);
            return;
        };
        let finished = written.result.and_then(|file| {
            let finished = rewriting::finish(&mut files.directory, rewrite.rewrite.clone(), file);
            finished.map_err(|error| error.to_string())
        });
        match finished {
            Ok(()) => {
                self.holds = false;
                files.closed_size = rewriting::closed_size(&files.directory, &files.writer);
                self.report_size();
                self.report_kept();
                let aof = &self.aof.state;
                aof.needs_base.store(false, Ordering::Relaxed);
                aof.base_size.store(aof.size.load(Ordering::Relaxed), Ordering::Relaxed);
                aof.end_rewrite(true);
                if Tiers::of(self.server).store().is_none() {
                    tracing::info!("the rewrite of the AOF is complete");
                }
            }
            Err(error) => {
                self.rewriting = Some(rewrite);
                self.fail_rewrite(&error);
            }
        }
        drop(written.claim);
    }

    fn fail_rewrite(&mut self, error: &str) {
        tracing::error!("the rewrite of the AOF failed: {error}");
        self.aof.state.end_rewrite(false);
        // An increment without its base is not a valid AOF.
        if self.rewriting.take().is_some_and(|rewriting| rewriting.is_beginning) {
            self.is_lost = true;
            self.enter_trouble(error.to_owned());
        }
    }

    /// Creates the first file of an AOF that replaces an AOF that can no longer be written, and requests the data of
    /// its base.
    fn begin_replacement(&mut self) -> Result<(), AofError> {
        if let Some(files) = self.unopened.take() {
            return self.begin_unopened(files);
        }
        let Some(Files { directory, writer, closed_size }) = self.files.take() else { return Ok(()) };
        let lost = AofError::Lost(writer.path().to_owned());
        if self.new_files.is_some() || self.rewriting.is_some() {
            self.files = Some(Files { directory, writer, closed_size });
            return Err(lost);
        }
        let mut directory = directory;
        directory.set_encryption(&self.server.encryption());
        match NewFiles::create(directory) {
            Ok(files) => {
                self.await_base(files);
                Err(lost)
            }
            Err(failed) => {
                let (directory, error) = *failed;
                self.files = Some(Files { directory, writer, closed_size });
                Err(error)
            }
        }
    }

    /// Creates the first file of an AOF that has none yet, because the disk was full at startup, and requests the data
    /// of its base.
    fn begin_unopened(&mut self, mut files: UnopenedFiles) -> Result<(), AofError> {
        files.directory.set_encryption(&self.server.encryption());
        match NewFiles::create(files.directory) {
            Ok(files) => {
                self.await_base(files);
                Ok(())
            }
            Err(failed) => {
                let (directory, error) = *failed;
                self.unopened = Some(UnopenedFiles { directory, ..files });
                Err(error)
            }
        }
    }

    /// Requests the data of a base. Until they arrive, records are not written to a file: the base will contain their
    /// effects. If the AOF is lost (`is_lost`), records are not even accepted.
    fn await_base(&mut self, files: NewFiles) {
        self.new_files = Some(files);
        self.aof.state.awaits_base.store(true, Ordering::Relaxed);
    }

    /// Begins the AOF in the new files. Their base contains the effects of records up to number `after`.
    fn begin_with(&mut self, base: Base, after: u64) {
        // Without new files, the base is useless: the AOF was disabled again, or never needed new files.
        let Some(files) = self.new_files.take() else { return self.give_up_rewrite(base) };
        // Queued rotations refer to the abandoned files.
        self.orders.retain(|order| !matches!(order, Order::Rotate { .. }));
        let holds = self.is_lost;
        self.begin(files.begin(base, after, holds));
    }

    /// Makes all records durable and closes the AOF. A failure is only logged.
    fn end(&mut self, after: u64) {
        self.settle_sync();
        if let Some(mut files) = self.files.take()
            && let Err(error) = files.writer.recover().and_then(|()| files.writer.sync())
        {
            tracing::error!("the last records of the AOF could not be synced to the disk: {error}");
        }
        if self.rewriting.is_some() && Tiers::of(self.server).store().is_none() {
            tracing::info!("Killing the AOF child, which is a thread here: the AOF was switched off");
            SnapshotState::of(self.server).claims.is_base_obsolete.store(true, Ordering::Relaxed);
        }
        (self.rewriting, self.new_files, self.unopened) = (None, None, None);
        self.aof.state.awaits_base.store(false, Ordering::Relaxed);
        self.aof.state.needs_base.store(false, Ordering::Relaxed);
        (self.holds, self.is_lost) = (false, false);
        (self.appended, self.synced, self.oldest) = (after, after, None);
        self.aof.state.is_enabled.store(false, Ordering::Relaxed);
        self.report_kept();
    }

    // Functions for fsyncs.

    fn sync(&mut self) -> Result<(), AofError> {
        self.poll_sync()?;
        let is_lagging = self.synced < self.appended;
        let (is_due, policy) = (self.is_sync_due(), self.policy());
        let Some(files) = &mut self.files else { return Ok(()) };
        if is_lagging {
            let at_once = match policy {
                AppendFsync::Always => true,
                // After a failure, all records must be durable before writes are accepted.
                AppendFsync::EverySec => self.trouble.is_some(),
                // `no` promises no durability, and an fsync may take long.
                AppendFsync::No => false,
            };
            if at_once {
                self.aof.state.sync.begin(unix_ms());
                let synced = files.writer.sync();
                self.end_sync();
                synced?;
                let Some(files) = &self.files else { return Ok(()) };
                self.synced_size = files.writer.size();
                (self.synced, self.oldest) = (self.appended, None);
                self.sync_begun = Instant::now();
            } else if is_due && self.syncing.is_some() {
                self.aof.state.delayed_syncs.fetch_add(1, Ordering::Relaxed);
                self.sync_begun = Instant::now();
            } else if is_due {
                self.synced_size = files.writer.size();
                self.sync_begun = Instant::now();
                self.syncing = Some(Syncing { upto: self.appended, oldest: self.oldest.take() });
                self.aof.state.is_syncing.store(true, Ordering::Relaxed);
                self.aof.state.sync.begin(unix_ms());
                self.to_sync.send(files.writer.sync_task()).expect("the thread lives as long as the sender");
            }
        }
        Ok(())
    }

    /// Returns the policy in effect: `no` during a snapshot with `no-appendfsync-on-rewrite`, otherwise `appendfsync`.
    fn policy(&self) -> AppendFsync {
        let is_lenient = self.config.no_appendfsync_on_rewrite
            && SnapshotState::of(self.server).claims.purpose().is_some();
        if is_lenient { AppendFsync::No } else { self.config.appendfsync }
    }

    /// Whether a periodic fsync is due, as with `everysec` and `no`.
    fn is_sync_due(&self) -> bool {
        if self.synced == self.appended {
            return false;
        }
        match self.policy() {
            AppendFsync::No => {
                let size = self.files.as_ref().map_or(0, |files| files.writer.size());
                size.saturating_sub(self.synced_size) >= UNSYNCED_MAX
            }
            AppendFsync::EverySec | AppendFsync::Always => self.sync_begun.elapsed() >= SYNC_INTERVAL,
        }
    }

    /// Whether the AOF is valid even before the running rewrite is complete.
    fn has_base(&self) -> bool {
        self.new_files.is_none() && !self.rewriting.as_ref().is_some_and(|rewriting| rewriting.is_beginning)
    }

    /// Records the result of the fsync on the other thread, if it has ended.
    fn poll_sync(&mut self) -> Result<(), AofError> {
        if self.syncing.is_none() {
            return Ok(());
        }
        match self.from_sync.try_recv() {
            Ok(outcome) => self.record_sync(outcome),
            Err(TryRecvError::Empty) => Ok(()),
            Err(TryRecvError::Disconnected) => unreachable!("the thread lives as long as the sender"),
        }
    }

    fn record_sync(&mut self, outcome: SyncOutcome) -> Result<(), AofError> {
        self.aof.state.is_syncing.store(false, Ordering::Relaxed);
        self.end_sync();
        let Some(syncing) = self.syncing.take() else { return Ok(()) };
        let Some(files) = &mut self.files else { return Ok(()) };
        files.writer.finish_sync(outcome)?;
        self.synced = self.synced.max(syncing.upto);
        Ok(())
    }

    /// Records that an fsync has ended, successfully or not.
    fn end_sync(&self) {
        let sync = &self.aof.state.sync;
        sync.end();
        slow_disk::sample(self.server, &self.config, slow_disk::sync_event(self.policy()), sync.last_ms());
    }

    /// Waits for the running fsync, because the file is about to be closed. If the fsync has failed, the next use of
    /// the file reports that.
    fn settle_sync(&mut self) {
        if self.syncing.is_some()
            && let Ok(outcome) = self.from_sync.recv()
            && let Err(error) = self.record_sync(outcome)
        {
            tracing::error!("{error}");
        }
    }

    // Functions for failed writes.

    fn record_trouble(&mut self, error: &AofError) {
        self.is_stuck = true;
        self.is_lost |= matches!(error, AofError::Lost(_));
        self.enter_trouble(error.to_string());
        self.give_up_at_the_end();
    }

    /// When the AOF is disabled or the server shuts down, abandons the records that cannot be written, because neither
    /// action may wait for a failing disk.
    fn give_up_at_the_end(&mut self) {
        let is_end = |order: &Order| matches!(order, Order::End { .. } | Order::Stop { .. });
        let Some(at) = self.orders.iter().position(is_end) else { return };
        tracing::error!("the AOF is being closed: records that could not be written to it are lost");
        let Some(order) = self.orders.drain(..=at).next_back() else { return };
        self.skip_to(order.after());
        // Closing the AOF returns no error.
        let _ = self.carry_out(order);
        self.forget_trouble();
    }

    fn forget_trouble(&mut self) {
        self.trouble = None;
        self.aof.state.failing_since_ms.store(0, Ordering::Relaxed);
    }

    /// Records that writing fails, with the reason.
    fn enter_trouble(&mut self, text: String) {
        let now = Instant::now();
        let pause_max = if self.is_lost { BASE_RETRY_MAX } else { RETRY_MAX };
        let pause = self.trouble.as_ref().map_or(RETRY_MIN, |trouble| (trouble.pause * 2).min(pause_max));
        let known = self.trouble.as_ref().map(|trouble| (trouble.logged, trouble.text == text));
        let is_logged = known.is_some_and(|(logged, is_same)| is_same || logged.elapsed() < LOG_EVERY);
        if !is_logged {
            let unsynced = self.aof.state.unsynced_bytes.load(Ordering::Relaxed);
            tracing::error!(
                "the AOF cannot be written, so writes are refused: {text}; {unsynced} bytes of acknowledged writes \
                 are not durable yet"
            );
        }
        let logged = known.filter(|_| is_logged).map_or(now, |(logged, _)| logged);
        if self.trouble.is_none() {
            self.aof.state.failing_since_ms.store(unix_ms(), Ordering::Relaxed);
        }
        self.trouble = Some(Trouble { text, logged, next_try: now + pause, pause });
    }

    /// Postpones the next attempt until the data of a new base may be available.
    fn wait_for_base(&mut self) {
        if self.files.is_none() && self.new_files.is_some() {
            if let Some(trouble) = &mut self.trouble {
                trouble.next_try = Instant::now() + BASE_RETRY_MAX;
            }
            self.give_up_at_the_end();
        }
    }

    /// Records that writing succeeds again: no work is left from the failure.
    fn end_trouble(&mut self) {
        if self.trouble.is_some() {
            tracing::info!("the AOF can be written again: writes are accepted");
            self.forget_trouble();
        }
    }

    // Functions for the published state.

    fn report_size(&self) {
        let size = self.files.as_ref().map_or(0, |files| files.closed_size + files.writer.size());
        self.aof.state.size.store(size, Ordering::Relaxed);
    }

    fn report_state(&mut self, waiting_bytes: usize) {
        self.report_size();
        let aof = &self.aof.state;
        let files = self.files.as_ref();
        let unsynced = files.map_or(0, |files| files.writer.size() - files.writer.durable_size());
        aof.unsynced_bytes.store(unsynced, Ordering::Relaxed);
        let waiting = waiting_bytes + self.pending.len();
        aof.waiting_bytes.store(waiting as u64, Ordering::Relaxed);
        let oldest = self.syncing.as_ref().and_then(|syncing| syncing.oldest).or(self.oldest);
        let limit_ms = self.config.aof_lag_limit;
        let lag = match self.policy() {
            AppendFsync::EverySec if limit_ms != 0 => {
                oldest.map_or(Duration::ZERO, |oldest| oldest.elapsed())
            }
            // The lag does not matter: there is no limit, or `no` promises no durability, or with `always` replies
            // already wait for the fsync.
            AppendFsync::EverySec | AppendFsync::No | AppendFsync::Always => Duration::ZERO,
        };
        let lag_ms = lag.as_millis() as u64;
        let is_late = limit_ms != 0 && lag_ms > limit_ms;
        let is_too_late = is_late && lag_ms > limit_ms + self.config.aof_wait_limit;
        self.report_refusal(is_too_late);
        let conditions = &self.server.conditions;
        let is_lagging = is_late || waiting > slow_disk::waiting_bytes_max(&self.config);
        if is_lagging != conditions.get().contains(Condition::AOF_LAGS) {
            conditions.set(Condition::AOF_LAGS, is_lagging);
        }
    }

    /// Refuses writes while the AOF cannot be written or `is_too_late`, and accepts them otherwise.
    fn report_refusal(&mut self, is_too_late: bool) {
        let refusal = match &self.trouble {
            Some(trouble) => Some(without_directories(&trouble.text)),
            None if is_too_late => {
                Some("the disk lags by more than aof-lag-limit and aof-wait-limit allow".to_owned())
            }
            None => None,
        };
        if refusal != self.refusal {
            self.server.conditions.set_aof_error(refusal.clone());
            self.refusal = refusal;
        }
    }
}

impl Subscriber for AofSubscriber {
    fn reader(&self) -> Reader {
        Reader::Aof
    }

    fn begin_round(&mut self) {
        if self.aof.orders.has_some() {
            self.observed(AofSubscriber::take_orders);
        }
        self.is_stuck = self.trouble.as_ref().is_some_and(|trouble| Instant::now() < trouble.next_try);
        if !self.is_stuck
            && let Err(error) = self.observed(AofSubscriber::ensure_writable)
        {
            self.record_trouble(&error);
        }
        if self.is_stuck {
            self.fail_waiting_rewrites();
        } else {
            self.remove_expired();
        }
    }

    fn advance(&mut self, last: u64) {
        while !self.is_stuck
            && self.orders.front().is_some_and(|order| order.after() <= last)
            && let Some(order) = self.orders.pop_front()
        {
            if let Err(error) = self.observed(|subscriber| subscriber.carry_out(order)) {
                self.record_trouble(&error);
            }
        }
    }

    fn limit(&self, last: u64) -> u64 {
        if last < self.skipped {
            return self.skipped;
        }
        if self.is_stuck {
            return 0;
        }
        self.orders.front().map_or(u64::MAX, Order::after)
    }

    fn database(&self, last: u64) -> ReaderDatabase {
        match self.needs_database {
            _ if last < self.skipped || self.files.is_none() => ReaderDatabase::Any,
            true => ReaderDatabase::Unknown,
            false => ReaderDatabase::OfLastRecord,
        }
    }

    fn refresh(&mut self) {
        let generation = self.server.config.generation();
        if generation != self.generation {
            self.generation = generation;
            self.config = self.server.config.snapshot();
            self.limit_retained();
            self.limit_kept();
        }
    }

    fn append(&mut self, mut records: Records<'_>) {
        if records.first <= self.skipped {
            return;
        }
        if !self.pending.is_empty() {
            // A long record that is not for all readers arrives in several parts: the parts after a failed one must be
            // kept with it.
            self.pending.encoded(records.batch.commands());
            self.pending_last = records.last;
            return;
        }
        match self.write(&mut records) {
            Ok(()) => {
                self.appended = self.appended.max(records.last);
                if self.files.is_none() && self.new_files.is_none() {
                    // There is no AOF: only other subscribers need these records.
                    self.synced = self.appended;
                }
            }
            Err(error) => {
                std::mem::swap(&mut self.pending, records.batch);
                self.pending_last = records.last;
                self.record_trouble(&error);
            }
        }
    }

    fn end_round(&mut self) {
        if !self.is_stuck
            && let Err(error) = self.sync()
        {
            self.record_trouble(&error);
        }
        if !self.is_stuck {
            self.end_trouble();
        } else if self.is_lost {
            self.wait_for_base();
        }
        self.begins_interval = false;
    }

    fn report(&mut self, waiting_bytes: usize) {
        self.report_state(waiting_bytes);
    }

    fn is_left_to_thread(&self) -> bool {
        (self.files.is_some() && self.policy() == AppendFsync::Always)
            || self.trouble.is_some()
            || self.syncing.is_some()
            || self.new_files.is_some()
            || !self.orders.is_empty()
            || self.aof.orders.has_some()
    }

    fn has_work(&self) -> bool {
        self.trouble.is_some() || self.begins_interval || self.is_sync_due()
    }

    fn durable(&self) -> u64 {
        if self.has_base() { self.synced } else { 0 }
    }

    fn released(&self) -> u64 {
        // If an earlier AOF was valid, no write is acknowledged until the base of the new AOF is complete.
        match self.policy() {
            _ if !self.has_base() && self.holds => 0,
            AppendFsync::Always if self.files.is_some() || self.unopened.is_some() || self.is_lost => {
                self.synced
            }
            AppendFsync::Always | AppendFsync::EverySec | AppendFsync::No => self.appended,
        }
    }

    fn pause(&self) -> Pause {
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        if let Some(trouble) = &self.trouble {
            return Pause::Until(until(trouble.next_try));
        }
        let longest = if self.oldest.is_some() && self.policy() == AppendFsync::EverySec {
            until(self.sync_begun + SYNC_INTERVAL)
        } else if self.syncing.is_some() {
            RETRY_MIN
        } else {
            SLEEP_MAX
        };
        Pause::UntilPublished(longest)
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

/// Writes the bytes that must precede the next records, if there are any.
fn write_lead(lead: &mut Batch, writer: &mut AofWriter) -> Result<(), AofError> {
    if !lead.is_empty() {
        writer.append(lead)?;
        lead.clear();
    }
    Ok(())
}
