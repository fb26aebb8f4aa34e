//! The worker's part of the link to the primary.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use emberkv_core::keys::Guards;

use super::Worker;
use super::accepting::Socket;
use super::connections::{connection_of, list};
use super::serving::lend_buffer;
use super::waits::Ending;
use crate::acl::identity::Identity;
use crate::aof::rewriting;
use crate::clients::listener;
use crate::clients::mailbox::Message;
use crate::clients::primary::{FromPrimary, NewPrimary, PrimaryOrder};
use crate::cluster::shard;
use crate::journal::Reader;
use crate::replication::link::role;
use crate::replication::{failover, shutdown};

impl Worker {
    /// Handles a request of the link's thread, or of another worker.
    pub(super) fn follow(&mut self, order: PrimaryOrder) {
        match order {
            PrimaryOrder::Adopt(new) => self.adopt(*new),
            PrimaryOrder::Acknowledge(token, client_id) => self.acknowledge(token, client_id),
            PrimaryOrder::Empty { change, done } => self.empty(change, done),
            PrimaryOrder::BeginAof => self.begin_aof(),
            PrimaryOrder::Demote => self.demote(),
            PrimaryOrder::CheckReplicas => self.observed("replication", |worker| {
                failover::work(&mut worker.executor);
                shutdown::work(&mut worker.executor);
                shard::continue_hand_over(&mut worker.executor);
            }),
            PrimaryOrder::StayPrimary { why } => self.stay_primary(why),
        }
    }

    fn adopt(&mut self, new: NewPrimary) {
        let link = Arc::clone(&new.link);
        if self.stop_at.is_some() || link.is_cut() || self.try_adopt(new).is_none() {
            link.end(None);
            self.discount();
        }
    }

    fn try_adopt(&mut self, new: NewPrimary) -> Option<()> {
        if let Err(error) = listener::prepare(&new.socket, &new.peer, self.executor.config.tcp_keepalive) {
            tracing::warn!("cannot set up the connection to the primary: {error}");
            return None;
        }
        let NewPrimary { socket, tls, peer, input, link, relay } = new;
        let stream = Box::new(FromPrimary::new(Arc::clone(&link), relay));
        let identity = Identity::unknown(&self.server.acl);
        let socket = Socket { socket, tls, peer };
        let opened = self.connections.open(&mut self.executor, socket, identity, usize::MAX, true);
        let mut connection = opened.ok()?;
        let client = &mut connection.client;
        (client.is_authenticated, client.is_unrestricted) = (true, true);
        client.reply_mode = crate::clients::client::ReplyMode::Off;
        client.database = link.database();
        client.view.no_evict.store(true, std::sync::atomic::Ordering::Relaxed);
        client.primary = Some(stream);
        let (token, id) = (client.view.token, client.view.id);
        link.record_read(input.len(), self.executor.turn.now_ms);
        link.record_address(self.executor.index, token, id);
        connection.has_unparsed = !input.is_empty();
        connection.input = input;
        connection.readable = true;
        self.connections.all[token] = Some(Box::new(connection));
        self.acknowledge(token, id);
        Some(())
    }

    /// Acknowledges the applied offset to the primary.
    fn acknowledge(&mut self, token: usize, client_id: u64) {
        let Some(connection) = connection_of(&mut self.connections.all, token, client_id) else { return };
        // While the connection's output is held, no offset on disk is acknowledged, because the writes before it are
        // not on disk yet.
        let durable = self.executor.durable_to_confirm().filter(|_| !connection.is_held);
        lend_buffer(&mut self.buffers, connection);
        if !connection.is_closing()
            && let Some(primary) = &mut connection.client.primary
        {
            primary.acknowledge(&mut connection.output, durable);
        }
        list(&mut self.connections.ready, connection, token);
    }

    fn empty(&mut self, change: Option<u64>, done: SyncSender<bool>) {
        if !self.executor.enter_gate() {
            // The request is handled after the running script.
            return self.connections.postponed.push(Message::Primary(PrimaryOrder::Empty { change, done }));
        }
        let emptied = role::empty(&mut self.executor, change);
        self.executor.deliver(&mut Guards::None, None);
        self.server.gate.leave(self.executor.index);
        self.executor.publish();
        // The requester may no longer be waiting.
        let _ = done.send(emptied);
    }

    fn stay_primary(&mut self, why: String) {
        if !self.executor.enter_gate() {
            // The request is handled after the running script.
            return self.connections.postponed.push(Message::Primary(PrimaryOrder::StayPrimary { why }));
        }
        // Aborting can fail only for lack of random numbers, and is retried when the link is.
        if let Err(error) = failover::abort(&mut self.executor, None, &why) {
            tracing::error!("this server cannot become a primary again: {}", error.text().escape_ascii());
        }
        self.server.gate.leave(self.executor.index);
        self.executor.publish();
    }

    fn begin_aof(&mut self) {
        let is_on = self.server.journal.is_read_by(Reader::Aof);
        if !self.executor.config.appendonly || is_on || !self.executor.enter_gate() {
            return;
        }
        let begun = rewriting::switch_on(&mut self.executor);
        self.server.gate.leave(self.executor.index);
        self.executor.publish();
        match begun {
            Ok(()) => tracing::info!("the AOF starts again with the data of the primary"),
            Err(error) => tracing::warn!("the AOF cannot start yet: {error}"),
        }
    }

    /// Ends all blocked calls with an error, and closes their connections, as well as those of clients whose writes no
    /// replica may have confirmed: their replies must not follow acknowledgements of later writes.
    fn demote(&mut self) {
        for token in 0..self.connections.all.len() {
            let Some(connection) = self.connections.all[token].as_deref() else { continue };
            if self.waits_for_replicas(connection) {
                self.close(token);
                continue;
            }
            let Some(connection) = self.connections.all[token].as_deref_mut() else { continue };
            let client_id = connection.client.view.id;
            // A client whose waiter is being served right now receives the reply to its call instead of the error.
            if connection.blocked.as_ref().is_some_and(|blocked| blocked.waiter.cancel()) {
                connection.begin_closing();
                connection.parked = None;
                self.end_waiting(token, client_id, Ending::Demoted);
            }
        }
    }
}
