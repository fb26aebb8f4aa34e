//! The end of a server that others follow, or that follows others: nobody is to need a copy of the data when it comes back.
//!
//! ```text
//! begin    writes wait from now on                                                      Waiting
//! work     all replicas have all, or the time is over: the stream ends, data are saved  Ending
//!          they cannot be saved: the server goes on                                     Off
//! abort    the server goes on                                                           Off
//! ```
//!
//! The files say where their data stand in the stream (`primary/place.rs`). So whoever has all of it goes on there when the
//! server is back; behind the end of the stream nothing is added to it, not even a question to replicas.

pub(crate) mod stage;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use emberkv_core::observers::Waiter;
use stage::{Shutdown, ShutdownStage, Underway};

use super::link::Link;
use super::primary::Primary;
use super::primary::replica::ReplicaView;
use crate::config::ShutdownOptions;
use crate::executor::Executor;
use crate::server::Server;
use crate::snapshot::saving;
use crate::snapshot::state::SnapshotState;

/// Begins it: writes wait from now on. If one is under way, `waiter` waits for that. The worker is inside the gate and holds
/// no lock.
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
        // Each question makes the stream longer: who comes back may have to tell it from what there was before.
        if !options.is_immediate && behind(server).is_some() {
            Primary::of(server).ask_replicas(server);
        }
    }
    work(executor);
    if shutdown.stage() == ShutdownStage::Waiting {
        tracing::info!("waiting for replicas to get all that was written before the server ends");
    }
}

/// Ends the server if it is time to. The worker is inside the gate and holds no lock.
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
    if !is_late && behind(server).is_some() {
        return;
    }
    let state = SnapshotState::of(server);
    let saves = options.saves.unwrap_or_else(|| !executor.config.save.is_empty());
    if saves {
        state.background.give_up(server, None);
    }
    let ended = executor.with_exclusive_access(|executor, _| {
        executor.publish();
        // Nothing is added to the stream from here on. Whoever was at it when writes began to wait may have written since it
        // was looked at, and replicas may have been asked.
        shutdown.enter(ShutdownStage::Ending);
        if !is_late && behind(server).is_some() {
            shutdown.enter(ShutdownStage::Waiting);
            return None;
        }
        Link::of(server).cut();
        Some(if saves { saving::save_before_end(executor) } else { Ok(()) })
    });
    if !matches!(ended, Some(Ok(()))) {
        state.is_given_up.store(false, Ordering::Relaxed);
    }
    match ended {
        None => return Primary::of(server).ask_replicas(server),
        Some(Ok(())) => {}
        Some(Err(error)) if options.is_forced => tracing::error!("the data set is not saved: {error}"),
        Some(Err(error)) => {
            tracing::error!("the server does not end, because the data set is not saved: {error}");
            state.is_ending.store(false, Ordering::Relaxed);
            return shutdown.give_up(server);
        }
    }
    if let Some((behind, all)) = behind(server) {
        tracing::warn!("{behind} of {all} replicas have not got all that was written when the server ends");
    }
    server.request_stop();
}

/// How many replicas lack something of the stream, and how many there are; nothing if they have all of it. Exact with
/// exclusive access.
fn behind(server: &Server) -> Option<(usize, usize)> {
    let primary = Primary::of(server);
    let replicas = primary.replicas();
    let end = primary.settled_end();
    let all: Vec<&Arc<ReplicaView>> = replicas.iter().filter(|view| !view.is_copied_only()).collect();
    let is_behind = |view: &&&Arc<ReplicaView>| view.acknowledged() != end;
    let count = all.iter().filter(is_behind).count();
    let is_whole = all.is_empty() || Link::report(server).is_some() || primary.has_all_records(server);
    (count > 0 || !is_whole).then_some((count, all.len()))
}

/// Gives up a shutdown that waits; false if there is none.
pub(crate) fn abort(server: &Server) -> bool {
    let shutdown = Shutdown::of(server);
    if shutdown.stage() != ShutdownStage::Waiting {
        return false;
    }
    tracing::info!("the shutdown is given up: SHUTDOWN ABORT");
    SnapshotState::of(server).is_ending.store(false, Ordering::Relaxed);
    shutdown.give_up(server);
    true
}
