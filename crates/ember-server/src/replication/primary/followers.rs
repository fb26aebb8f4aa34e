//! The replicas of a cluster node, for the agreement on those that are in sync (`ember_cluster::in_sync`).

use std::sync::atomic::Ordering;

use ember_cluster::in_sync::{Follower, InSync};
use ember_cluster::node::{DataSet, ShardState};

use super::Primary;
use super::replica::Stage;
use crate::server::Server;
use crate::system::clock::unix_ms;

/// The time in ms without a message after which a replica counts as disconnected: replicas send a message each second.
const SILENT_MS: i64 = 2_500;

impl Primary {
    /// Returns the replicas in the cluster that receive the stream, with the records that they have: on disk, if replies
    /// wait for that.
    pub(crate) fn followers(&self) -> Vec<Follower> {
        let now_ms = unix_ms();
        let requires_disk = self.requires_disk.load(Ordering::Relaxed);
        let replicas = self.replicas();
        let stream = self.stream.lock();
        // Before its first acknowledgement, a replica may not have loaded the snapshot of its full sync.
        let online = replicas.iter().filter(|view| view.stage() == Stage::Online && view.has_confirmed());
        let follower = online.filter_map(|view| {
            let position = if requires_disk { view.durable() } else { view.acknowledged() };
            Some(Follower {
                data: view.node_data()?,
                record: stream.milestones.record_at(position).unwrap_or(0),
                is_alive: now_ms - view.acknowledged_ms() < SILENT_MS,
            })
        });
        follower.collect()
    }

    /// Returns the last record that all in-sync replicas have. `None` if this server is in no cluster, or need not wait for
    /// replicas.
    pub(super) fn record_in_sync(&self, server: &Server) -> Option<(usize, u64)> {
        let wanted = self.wanted_replicas.load(Ordering::Relaxed);
        let slots = server.slots.as_ref().filter(|_| wanted != 0)?;
        // The lock is taken first: a replica is joining until a topology with it was reviewed under the lock.
        let in_sync = self.in_sync.lock();
        let view = slots.view();
        view.topology.group()?;
        let record = in_sync.released(&view.topology, slots.incarnation(), wanted, &self.followers());
        Some((wanted, record))
    }
}

/// Returns the number of replicas that are in sync and connected. `None` if this server is in no cluster, or need not wait
/// for replicas.
pub(super) fn connected_in_sync(server: &Server) -> Option<usize> {
    let primary = Primary::of(server);
    let wanted = primary.wanted_replicas.load(Ordering::Relaxed);
    let slots = server.slots.as_ref().filter(|_| wanted != 0)?;
    let view = slots.view();
    view.topology.group()?;
    if InSync::count(&view.topology, slots.incarnation()) == 0 {
        return Some(0);
    }
    let ShardState { in_sync, .. } = &view.topology.myself().state;
    let followers = primary.followers();
    let is_connected = |data: &&DataSet| followers.iter().any(|it| it.data == **data && it.is_alive);
    Some(in_sync.iter().flatten().filter(is_connected).count())
}
