//! Shutdown of a server that has replicas, or is a replica: after the restart, no full sync should be necessary.
//!
//! ```text
//! begin    writes are paused                                                    Waiting
//! work     all replicas have the whole stream, or the timeout has passed:
//!          the stream ends, the data are saved                                  Ending
//!          if they cannot be saved, the server continues                        Off
//! abort    the server continues                                                 Off
//! ```
//!
//! The saved files contain the stream position of their data (`primary/place.rs`). So a replica that has the stream up
//! to that position can resume there after the restart. Once the stream has ended nothing is appended to it, not even a
//! GETACK.

pub(crate) mod stage;

use std::fmt::{self, Display};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ember_config::ShutdownOptions;
use emberkv_core::observers::Waiter;
use stage::{Shutdown, ShutdownStage, Underway};

use super::link::Link;
use super::primary::Primary;
use super::primary::replica::ReplicaView;
use crate::aof::service::Aof;
use crate::executor::Executor;
use crate::server::Server;
use crate::snapshot::saving;
use crate::snapshot::state::SnapshotState;

/// The reason why the server does not shut down without `FORCE`: the data set would be lost.
enum Obstacle {
    /// The append-only file was enabled, and its first base is not complete.
    InitialAof,
    /// The data set cannot be saved, for this reason.
    Unsaved(String),
}

impl Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::InitialAof => f.write_str("Writing initial AOF, can't exit"),
            Obstacle::Unsaved(error) => write!(f, "Error trying to save the DB, can't exit: {error}"),
        }
    }
}

/// Begins a shutdown: writes are paused from now on. `waiter` is a client that waits for this shutdown, or for the
/// shutdown that is already running. The worker is inside the gate and holds no lock.
pub(crate) fn begin(executor: &mut Executor, options: ShutdownOptions, waiter: Option<&Arc<Waiter>>) {
    let server = executor.server;
    let shutdown = Shutdown::of(server);
    {
        let mut underway = shutdown.underway.lock();
        if shutdown.stage() != ShutdownStage::Off {
            underway.waiting.extend(waiter.cloned());
            return;
        }
        let timeout_ms = i64::from(executor.config.shutdown_timeout) * 1000;
        let until_ms = if options.is_immediate { 0 } else { executor.turn.now_ms.saturating_add(timeout_ms) };
        *underway = Underway { options, until_ms, waiting: waiter.cloned().into_iter().collect() };
        shutdown.enter(ShutdownStage::Waiting);
    }
    if !Primary::of(server).replicas().is_empty() {
        server.pause.wait_for_shutdown(true);
        // A GETACK is sent only if a replica lags: each one lengthens the stream, and a replica that reconnects may
        // have to distinguish the longer stream from the earlier one.
        if !options.is_immediate && has_lagging_replicas(server) {
            Primary::of(server).request_acks(server);
        }
    }
    work(executor);
    if shutdown.stage() == ShutdownStage::Waiting {
        tracing::info!("waiting for replicas to receive all writes before the server stops");
    }
}

/// Stops the server when all replicas have the whole stream or the timeout has passed. The worker is inside the gate
/// and holds no lock.
pub(crate) fn work(executor: &mut Executor) {
    let server = executor.server;
    let shutdown = Shutdown::of(server);
    if shutdown.stage() != ShutdownStage::Waiting {
        return;
    }
    let (options, until_ms) = {
        let underway = shutdown.underway.lock();
        (underway.options, underway.until_ms)
    };
    let is_late = executor.turn.now_ms >= until_ms;
    if !is_late && has_lagging_replicas(server) {
        return;
    }
    let state = SnapshotState::of(server);
    let saves = options.saves.unwrap_or_else(|| !executor.config.save.is_empty());
    if saves {
        state.background.give_up(server, None);
    }
    let ended = executor.with_exclusive_access(|executor, _| {
        executor.publish();
        // Nothing is appended to the stream from here on. Before that, a command that was running when writes were
        // paused may have written since the check above, and a GETACK may have been sent.
        shutdown.enter(ShutdownStage::Ending);
        if !is_late && has_lagging_replicas(server) {
            shutdown.enter(ShutdownStage::Waiting);
            return None;
        }
        Link::of(server).cut();
        if Aof::of(server).state.needs_base.load(Ordering::Relaxed) {
            if !options.is_forced {
                return Some(Err(Obstacle::InitialAof));
            }
            tracing::warn!("Writing initial AOF. Exit anyway.");
        }
        Some(if saves { saving::save_before_end(executor).map_err(Obstacle::Unsaved) } else { Ok(()) })
    });
    if !matches!(ended, Some(Ok(()))) {
        state.is_given_up.store(false, Ordering::Relaxed);
    }
    if ended.is_some() {
        report_replicas(server);
    }
    match ended {
        None => return Primary::of(server).request_acks(server),
        Some(Ok(())) => {}
        Some(Err(Obstacle::Unsaved(error))) if options.is_forced => {
            tracing::error!("the data set could not be saved: {error}");
        }
        Some(Err(obstacle)) => {
            tracing::error!("Errors trying to shut down the server: {obstacle}");
            state.is_ending.store(false, Ordering::Relaxed);
            return shutdown.give_up(server);
        }
    }
    server.request_stop();
}

/// Logs how many replicas have received the whole stream, which has ended, and the name of each other replica.
fn report_replicas(server: &Server) {
    let primary = Primary::of(server);
    let replicas = primary.replicas();
    let end = primary.settled_end();
    let all: Vec<&Arc<ReplicaView>> = replicas.iter().filter(|view| !view.is_copied_only()).collect();
    if all.is_empty() {
        return;
    }
    let lagging: Vec<&&Arc<ReplicaView>> = all.iter().filter(|view| view.acknowledged() != end).collect();
    for view in &lagging {
        let missing = end.saturating_sub(view.acknowledged());
        tracing::warn!("Lagging replica {}: it has not confirmed the last {missing} bytes", view.name());
    }
    let in_sync = all.len() - lagging.len();
    tracing::info!("{in_sync} of {} replicas are in sync when shutting down", all.len());
}

/// Whether a replica has not received the whole stream. Exact with exclusive access.
fn has_lagging_replicas(server: &Server) -> bool {
    let primary = Primary::of(server);
    let replicas = primary.replicas();
    let end = primary.settled_end();
    let all: Vec<&Arc<ReplicaView>> = replicas.iter().filter(|view| !view.is_copied_only()).collect();
    let is_whole = all.is_empty() || Link::report(server).is_some() || primary.has_all_records(server);
    !is_whole || all.iter().any(|view| view.acknowledged() != end)
}

/// Aborts a shutdown that waits for replicas; returns false if there is none.
pub(crate) fn abort(server: &Server) -> bool {
    let shutdown = Shutdown::of(server);
    if shutdown.stage() != ShutdownStage::Waiting {
        return false;
    }
    tracing::info!("Shutdown manually aborted");
    SnapshotState::of(server).is_ending.store(false, Ordering::Relaxed);
    shutdown.give_up(server);
    true
}
