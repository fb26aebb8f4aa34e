//! Closes connections, and removes them from all tables.

use std::sync::atomic::Ordering;

use super::Worker;
use super::serving::set_paused;
use super::waits::forget_waiting;
use crate::clients::connection::Connection;
use crate::clients::ending::EndReason;
use crate::clients::subscriptions::Address;
use crate::clients::transaction;
use crate::server::Server;

impl Worker {
    /// Decides that a connection is closed, or applies a decision that was already made: the client's waiting calls are
    /// not served any more.
    pub(super) fn end(&mut self, token: usize, reason: EndReason) {
        let Some(connection) = self.connections.all[token].as_deref_mut() else { return };
        self.server.begin_ending(&connection.client.view, reason);
        connection.begin_closing();
        connection.parked = None;
        self.finish_ending(token);
    }

    /// Closes a connection that is being disconnected, unless its waiter was served before and the reply is still to
    /// arrive. Sends as much output as the socket accepts now.
    pub(super) fn finish_ending(&mut self, token: usize) {
        let Some(connection) = self.connections.all[token].as_deref_mut() else { return };
        if connection.awaits_last_reply() {
            connection.has_last_reply = true;
            return;
        }
        let mut is_whole = self.flush(token);
        while is_whole && self.connections.all[token].as_deref().is_some_and(Connection::has_to_flush) {
            is_whole = self.flush(token);
        }
        let Some(connection) = self.connections.all[token].as_deref_mut() else { return };
        // The last reply may have to wait until the removal of the popped elements is in the append-only file.
        if is_whole && connection.has_last_reply && connection.acknowledges != 0 {
            return;
        }
        if is_whole && connection.unsent_bytes() == 0 {
            connection.discard_unread(&mut self.scratch);
        }
        self.close(token);
    }

    pub(super) fn close(&mut self, token: usize) {
        if let Some(mut connection) = self.connections.all[token].take() {
            if let Some(why) = connection.handshake_failure() {
                let peer = connection.client.view.peer.remote();
                self.server.tls.log_failure(&peer, why, self.executor.turn.now_ms);
            }
            tracing::debug!(
                "{} is disconnected: {}",
                connection.client.view.log_name(),
                connection.why_it_ends()
            );
            connection.send_close_notify();
            if self.server.is_stopping() && self.has_requested_shutdown(&connection) {
                match connection.duplicate_socket() {
                    Ok(socket) => self.server.keep_to_the_end(socket),
                    Err(error) => {
                        tracing::warn!(
                            "SHUTDOWN: cannot keep the client's connection open until the process exits: {error}"
                        )
                    }
                }
            }
            self.forget(&mut connection, token);
            self.executor.client_memory.leave(&connection.client.view);
            self.server.leave(&connection.client.view);
            self.connections.vacant.push(token);
            drop(connection);
            self.discount();
        }
    }

    /// Returns whether the last command of a connection is SHUTDOWN.
    fn has_requested_shutdown(&self, connection: &Connection) -> bool {
        let last = connection.client.view.command.load(Ordering::Relaxed);
        let last = (last as usize).checked_sub(1).and_then(|index| self.server.registry.all().get(index));
        last.is_some_and(|command| command.full_name == "shutdown")
    }

    /// Removes a connection's state from the keyspace: waiters and watches.
    pub(super) fn forget(&mut self, connection: &mut Connection, token: usize) {
        if let Some(blocked) = connection.blocked.take() {
            forget_waiting(&mut self.deadlines, self.server, connection, &blocked, token);
            // If another worker is serving the waiter right now, that worker removes it from the queues, and the reply
            // is discarded.
            blocked.waiter.end();
            self.withdraw(&blocked);
        }
        if let Some(primary) = connection.client.primary.take() {
            primary.link.end(Some(connection.why_it_ends()));
        }
        let why = connection.client.is_fed().then(|| connection.why_it_ends());
        if let (Some(why), Some(replica)) = (why, connection.client.replica.as_mut())
            && let Some(feed) = &mut replica.feed
        {
            feed.record_end(why);
        }
        set_paused(self.server, &connection.client.view, false);
        self.leave_queries(connection, token);
        if let Some(mut subscriptions) = connection.client.subscriptions.take() {
            self.server.pubsub.forget(Address::of(&connection.client.view), &mut subscriptions);
        }
        let view = &connection.client.view;
        self.server.trackers.end(view);
        if view.is_monitor.load(Ordering::Relaxed) {
            self.server.monitors.remove(Address::of(view));
        }
        // This need not run inside the gate; see `Worker::withdraw`.
        transaction::unwatch(&self.server.keyspace, &mut self.executor.turn, &mut connection.client);
    }

    /// Subtracts a closed connection from the worker's count; wakes the other workers if they may wait for the last
    /// connection to close.
    pub(super) fn discount(&self) {
        let workers = &self.server.workers;
        workers[self.executor.index].connections.fetch_sub(1, Ordering::SeqCst);
        if self.stop_at.is_some() && is_drained(self.server) {
            workers.iter().for_each(|worker| worker.mailbox.ring());
        }
    }
}

/// Returns whether no worker has a connection.
pub(super) fn is_drained(server: &Server) -> bool {
    // SeqCst pairs with the subtraction in `Worker::discount`: if two workers close their last connections
    // concurrently, at least one of them sees that none is left.
    server.workers.iter().all(|worker| worker.connections.load(Ordering::SeqCst) == 0)
}
