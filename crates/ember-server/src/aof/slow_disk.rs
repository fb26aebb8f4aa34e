//! Slow disk calls: while a call is slow, the log, LATENCY, INFO, the metrics, `/ready` and the dashboard report it.
//!
//! ```text
//! journal, aof-sync   begin and end of each disk call                    → `AofState::sync`, `AofState::write`
//! workers, each tick  the running call: log, LATENCY, full buffers       → [`watch`]
//! INFO, metrics, …    the running call, when requested                   → [`slowness`]
//! ```
//!
//! Neither the journal's thread nor a single worker can be relied on to report slow calls, because that thread may be
//! blocked in one. So every worker checks for them.

use std::fmt::{self, Display};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ember_config::{AppendFsync, Config};

use super::service::Aof;
use super::state::AofState;
use crate::server::Server;
use crate::server::conditions::Condition;
use crate::snapshot::state::SnapshotState;
use crate::system::clock::unix_ms;

/// Duration in ms after which a disk call is slow: less than a second, so that a call is reported within its first
/// second, although [`watch`] runs only ten times a second.
const SLOW_MS: u64 = 800;

/// The limit in bytes on records waiting to be written, above which writes wait; and the same limit as a fraction of
/// `maxmemory`.
const WAITING_MAX: usize = 256 * 1024 * 1024;
const WAITING_SHARE: u64 = 16;

/// Interval of log messages while the disk is slow.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// A slow disk call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slow {
    /// An fsync that has been running for `ms` ms; `delays_replies` (with `always`) says whether replies to writes wait
    /// for it.
    Sync { ms: u64, delays_replies: bool },
    /// A write to the file that has been running for `ms` ms; replies to writes wait for it.
    Write { ms: u64 },
}

impl Slow {
    /// Whether clients that write wait for the call.
    pub(crate) fn delays_writes(self) -> bool {
        matches!(self, Slow::Write { .. } | Slow::Sync { delays_replies: true, .. })
    }
}

impl Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, ms, effect) = match *self {
            Slow::Sync { ms, delays_replies: false } => ("an fsync", ms, "writes continue"),
            Slow::Sync { ms, delays_replies: true } => ("an fsync", ms, "replies to writes wait for it"),
            Slow::Write { ms } => ("a write", ms, "replies to writes wait for it"),
        };
        let seconds = ms as f64 / 1000.0;
        write!(
            f,
            "the disk is slow: {what} of the append-only file has been running for {seconds:.1} s; {effect}"
        )
    }
}

/// Returns the running slow call, if there is one. After a slow fsync, the next fsync counts as slow while it runs: the
/// disk is slow until a short fsync shows that it is not.
pub(crate) fn slowness(server: &Server) -> Option<Slow> {
    let aof = &Aof::of(server).state;
    if let Some(ms) = aof.write.running_ms().filter(|ms| *ms >= SLOW_MS) {
        return Some(Slow::Write { ms });
    }
    let ms = aof.sync.running_ms().filter(|ms| ms.max(&aof.sync.last_ms()) >= &SLOW_MS)?;
    Some(Slow::Sync { ms, delays_replies: server.config.snapshot().appendfsync == AppendFsync::Always })
}

/// Returns the latency monitor event of an fsync.
pub(super) fn sync_event(policy: AppendFsync) -> &'static str {
    match policy {
        AppendFsync::Always => "aof-fsync-always",
        AppendFsync::EverySec => "aof-fsync-everysec",
        AppendFsync::No => "aof-fsync-no",
    }
}

/// Returns the limit in bytes on records waiting to be written, above which writes wait.
pub(super) fn waiting_bytes_max(config: &Config) -> usize {
    config.held_back_max(WAITING_MAX, WAITING_SHARE)
}

/// Reports a slow call, and delays writes when the records that the journal cannot write during the call exceed their
/// limit. Every worker calls this in its ticks, because another worker may be inside a write.
pub(crate) fn watch(server: &Server, config: &Config) {
    let aof = Aof::of(server);
    let Some(mut reported) = aof.slow_disk.try_lock() else { return };
    let Some(slow) = slowness(server) else {
        if aof.state.sync.running_ms().is_none() && std::mem::take(&mut reported.is_announced) {
            tracing::info!("the disk is no longer slow: the last fsync took {} ms", aof.state.sync.last_ms());
        }
        return;
    };
    if reported.logged.is_none_or(|logged| logged.elapsed() >= LOG_EVERY) {
        (reported.logged, reported.is_announced) = (Some(Instant::now()), true);
        let unsynced = aof.state.unsynced_bytes.load(Ordering::Relaxed);
        tracing::warn!("{slow}; {unsynced} bytes in the file are not durable yet");
    }
    let (event, ms) = match slow {
        Slow::Sync { ms, .. } => (sync_event(config.appendfsync), ms),
        Slow::Write { ms } => (write_event(server, &aof.state), ms),
    };
    let now_s = unix_ms() / 1000;
    if reported.sampled_s != now_s {
        reported.sampled_s = now_s;
        sample(server, config, event, ms);
    }
    // Replies wait for the running write, so each waiting client adds at most the commands that it has already sent;
    // other writers add further records.
    if slow.delays_writes() && aof.buffer_bytes(server) > waiting_bytes_max(config) as u64 {
        server.conditions.set(Condition::AOF_LAGS, true);
    }
}

/// Records a disk call in the latency monitor, if it took at least the threshold.
pub(super) fn sample(server: &Server, config: &Config, event: &'static str, ms: u64) {
    let threshold = config.latency_monitor_threshold;
    if threshold != 0 && ms >= threshold {
        server.latency.enter(event, unix_ms() / 1000, ms);
    }
}

/// Returns the latency monitor event of a write, as in Redis.
pub(super) fn write_event(server: &Server, aof: &AofState) -> &'static str {
    if aof.is_syncing.load(Ordering::Relaxed) {
        "aof-write-pending-fsync"
    } else if SnapshotState::of(server).claims.purpose().is_some() {
        "aof-write-active-child"
    } else {
        "aof-write-alone"
    }
}
