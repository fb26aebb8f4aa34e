//! Periodic work of a primary, on worker 0.

use std::sync::atomic::Ordering;

use ember_config::Config;

use super::orders::Order;
use super::replica::Stage;
use super::{Primary, feed, good_replicas, taking};
use crate::clients::ending::EndReason;
use crate::executor::Executor;
use crate::journal::Reader;
use crate::replication::{failover, shutdown};
use crate::server::Server;
use crate::system::clock::unix_ms;
use crate::system::random_name::random_name;

/// Does the periodic work that is due. The worker is inside the gate and holds no lock.
pub(crate) fn work(executor: &mut Executor) {
    let server = executor.server;
    let primary = Primary::of(server);
    // Encryption may be switched on while the server runs.
    primary.encrypts.store(server.encryption().is_on(), Ordering::Relaxed);
    taking::begin_due(executor);
    primary.begun.lock().retain(|copy| copy.is_joinable());
    close_lost(server, primary, &executor.config);
    primary.serve_waits(server);
    good_replicas::refuse_writes(server, &executor.config);
    failover::work(executor);
    shutdown::work(executor);
    if server.journal.is_read_by(Reader::Replicas) {
        end_without_replicas(executor, primary);
    }
}

/// Closes the connections of replicas that were silent for `repl-timeout`, and of replicas whose next bytes are no
/// longer kept.
fn close_lost(server: &Server, primary: &Primary, config: &Config) {
    let (now_ms, timeout_s) = (unix_ms(), i64::from(config.repl_timeout));
    let first = primary.first_kept().unwrap_or_default();
    let ttl_ms = config.repl_backlog_ttl.saturating_mul(1000);
    let disconnected_before_ms = if ttl_ms == 0 { i64::MIN } else { now_ms.saturating_sub(ttl_ms) };
    primary.absent.lock().forget(first, disconnected_before_ms);
    for view in primary.replicas() {
        if view.position.load(Ordering::Relaxed) < first {
            view.record_end(feed::LAG_EXCEEDED.to_owned());
            primary.record_slow(&view);
            server.kill(&view.client, EndReason::Killed);
        }
        if view.stage() == Stage::Online && !view.is_old && view.lag_s(now_ms) > timeout_s {
            view.record_end(format!("it has sent nothing for {timeout_s} seconds"));
            server.kill(&view.client, EndReason::Killed);
        }
    }
}

/// Ends the stream when there has been no replica for `repl-backlog-ttl`.
fn end_without_replicas(executor: &mut Executor, primary: &Primary) {
    if !primary.replicas.lock().is_empty() {
        primary.without_replicas_since_ms.store(0, Ordering::Relaxed);
        return;
    }
    let now_ms = unix_ms();
    let since_ms = primary.without_replicas_since_ms.load(Ordering::Relaxed);
    if since_ms == 0 {
        primary.without_replicas_since_ms.store(now_ms, Ordering::Relaxed);
    }
    let ttl_ms = executor.config.repl_backlog_ttl.saturating_mul(1000);
    if since_ms == 0 || ttl_ms == 0 || now_ms - since_ms < ttl_ms {
        return;
    }
    tracing::info!(
        "no replica has connected for {} seconds: the replication backlog is freed",
        ttl_ms / 1000
    );
    end_stream(executor);
    primary.without_replicas_since_ms.store(now_ms, Ordering::Relaxed);
}

/// Ends the stream of a primary: later changes belong to no stream, and no replica can resume here. The worker is
/// inside the gate and holds no lock.
fn end_stream(executor: &mut Executor) {
    let server = executor.server;
    let primary = Primary::of(server);
    if !server.journal.is_read_by(Reader::Replicas) {
        return;
    }
    executor.with_exclusive_access(|executor, _| {
        executor.publish();
        let after = server.journal.switch(Reader::Replicas, false);
        primary.orders.add(Order::End { after });
        primary.disconnect_all(server, "the replication stream ends");
        match random_name() {
            Ok(id) => primary.rename_history(id),
            Err(error) => tracing::error!("the replication ID cannot be changed: {error}"),
        }
    });
    server.journal.call_thread();
}
