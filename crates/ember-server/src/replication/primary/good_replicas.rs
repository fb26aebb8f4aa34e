//! Good replicas: connected, with all data, and with a report within `min-replicas-max-lag`. Writes may require a
//! number of good replicas.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ember_config::{Config, SYNC_REPLICAS_MAX, SyncLevel};

use super::Primary;
use super::followers::connected_in_sync;
use super::replica::{ReplicaView, Stage};
use crate::server::Server;
use crate::server::conditions::Condition;
use crate::system::clock::unix_ms;

/// Returns the number of good replicas.
pub(crate) fn count(server: &Server, config: &Config) -> usize {
    let (now_ms, max_lag_s) = (unix_ms(), i64::from(config.min_replicas_max_lag));
    let is_good = |view: &&Arc<ReplicaView>| {
        view.stage() == Stage::Online && (max_lag_s == 0 || view.lag_s(now_ms) <= max_lag_s)
    };
    Primary::of(server).replicas().iter().filter(is_good).count()
}

/// Refuses writes while fewer replicas are good than `min-replicas-to-write` or a client requires, and accepts them
/// otherwise. Commands from this server's own primary are never refused.
pub(crate) fn refuse_writes(server: &Server, config: &Config) {
    let primary = Primary::of(server);
    let (wanted, to_sync) = (config.min_replicas_to_write as usize, config.sync_replicas as usize);
    let most_to_sync = if primary.sync_wishes.has_any() { SYNC_REPLICAS_MAX } else { to_sync };
    primary.requires_disk.store(config.sync_level == SyncLevel::Disk, Ordering::Relaxed);
    primary.wanted_replicas.store(to_sync, Ordering::SeqCst);
    primary.syncs.store(most_to_sync != 0, Ordering::SeqCst);
    let is_replica = server.conditions.get().contains(Condition::REPLICA);
    let counts = !is_replica && (wanted != 0 || most_to_sync != 0);
    let good = if counts { count(server, config) } else { usize::MAX };
    // In a cluster, a write may be acknowledged only by replicas of which one replaces this server.
    let in_sync = if counts { connected_in_sync(server) } else { None };
    let good_to_sync = in_sync.map_or(good, |in_sync| in_sync.min(good));
    server.conditions.set_good_replicas(u32::try_from(good_to_sync).unwrap_or(u32::MAX));
    server.conditions.set(Condition::FEW_TO_SYNC, good_to_sync < most_to_sync);
    server.conditions.set(Condition::FEW_REPLICAS, config.min_replicas_max_lag != 0 && good < wanted);
}
