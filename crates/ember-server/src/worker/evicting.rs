//! Client eviction: when all clients together take more than `maxmemory-clients`, the largest are disconnected.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Worker;
use crate::clients::client::ClientView;
use crate::clients::ending::EndReason;

/// The interval of searches for clients to evict: evicted clients of other workers still exist until their workers
/// close them.
const SEARCH_INTERVAL: Duration = Duration::from_millis(1);

/// The interval after a search that found too few clients to evict.
const FAILED_SEARCH_INTERVAL: Duration = Duration::from_millis(100);

impl Worker {
    /// Evicts clients of any worker while the memory of all clients exceeds the limit. O(workers) if it does not.
    #[inline]
    pub(super) fn evict_clients(&mut self) {
        if let Some(limit) = self.executor.config.client_memory_max()
            && self.server.client_memory() >= limit
        {
            self.evict_largest();
        }
    }

    #[cold]
    fn evict_largest(&mut self) {
        let now = Instant::now();
        if now < self.evicts_at {
            return;
        }
        self.evicts_at = now + SEARCH_INTERVAL;
        // This is the current limit, which may have been raised since the turn began.
        let Some(limit) = self.server.config.snapshot().client_memory_max() else { return };
        let mut total = self.server.client_memory();
        let mut views: Vec<(u64, Arc<ClientView>)> =
            self.server.clients.all().into_iter().map(|view| (view.memory_bytes(), view)).collect();
        // Clients that are being closed, on any worker, are not counted.
        views.retain(|(bytes, view)| {
            let is_closing = view.is_cut();
            total = total.saturating_sub(if is_closing { *bytes } else { 0 });
            !is_closing && !view.no_evict.load(Ordering::Relaxed)
        });
        views.sort_unstable_by_key(|(bytes, _)| *bytes);
        while total >= limit {
            let Some((bytes, view)) = views.pop() else {
                tracing::warn!("clients use {total} bytes, and no remaining client may be evicted");
                self.evicts_at = now + FAILED_SEARCH_INTERVAL;
                return;
            };
            total = total.saturating_sub(bytes);
            if !self.server.begin_ending(&view, EndReason::Evicted) {
                continue; // another worker was faster
            }
            tracing::warn!(
                "evicting client {}, which uses {bytes} bytes: clients exceed maxmemory-clients",
                view.id
            );
            self.executor.stats.evicted_clients.add(1);
            if view.worker == self.executor.index {
                self.end(view.token, EndReason::Evicted);
            } else {
                self.server.check_connection(view.worker, view.token, view.id);
            }
        }
    }
}
