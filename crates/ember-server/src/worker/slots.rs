//! Slots that this cluster node no longer serves: ends blocked calls, subscriptions and watches of this worker's
//! clients in them.

use std::sync::atomic::Ordering;

use ember_cluster::slots::slot_of;
use emberkv_core::error::CommandError;

use super::Worker;
use super::connections::{connection_of, list};
use super::waits::Ending;
use crate::clients::connection::Connection;
use crate::clients::subscriptions::{Address, Kind, Name, write_change};
use crate::live_queries::opening::{self, Refused};
use crate::live_queries::{version, writing};
use crate::server::slots::{DOWN_ERROR, Slots, slots_of};

impl Worker {
    /// Ends blocked calls, subscriptions of shard channels, and watches of live queries whose keys or channels are in slots
    /// that this node no longer serves.
    pub(super) fn lose_slots(&mut self) {
        let Some(slots) = &self.server.slots else { return };
        for token in 0..self.connections.all.len() {
            self.end_subscriptions(slots, token);
            self.end_watches(token);
            self.end_lost_wait(slots, token);
        }
    }

    fn end_lost_wait(&mut self, slots: &Slots, token: usize) {
        let Some(connection) = self.connections.all[token].as_deref_mut() else { return };
        let Some(blocked) = &connection.blocked else { return };
        let (command, call) =
            (self.server.registry.get(blocked.waiter.command), blocked.waiter.call.command(0));
        if connection.client.primary.is_some() || slots_of(command, call).next().is_none() {
            return;
        }
        let view = &connection.client.view;
        let Err(refusal) = self.executor.check_slots(view.slot_caller(), command, None, call) else { return };
        // As in Redis, the state of the whole cluster is the first reason.
        let error = if slots.view().is_ok { refusal.error() } else { CommandError::from(DOWN_ERROR) };
        // A waiter that is being served right now receives that reply instead; a job is checked when it ends.
        if blocked.waiter.cancel() {
            let client_id = view.id;
            let text = String::from_utf8_lossy(&error.text()).into_owned();
            self.end_waiting(token, client_id, Ending::Redirected(text));
        }
    }

    fn end_subscriptions(&mut self, slots: &Slots, token: usize) {
        let Some(connection) = self.connections.all[token].as_deref_mut() else { return };
        let Connection { client, output, .. } = connection;
        let Some(subscriptions) = &mut client.subscriptions else { return };
        let is_lost = |name: &&Name| !slots.has_data_of(slot_of(name));
        let lost: Vec<Name> = subscriptions.of(Kind::ShardChannel).iter().filter(is_lost).cloned().collect();
        if lost.is_empty() {
            return;
        }
        let address = Address::of(&client.view);
        for name in &lost {
            self.server.pubsub.unsubscribe(Kind::ShardChannel, name, address, subscriptions);
            let count = subscriptions.count(Kind::ShardChannel);
            write_change(output, Kind::ShardChannel.words().1, Some(name), count);
        }
        let left = subscriptions.of(Kind::ShardChannel).len() as u32;
        client.view.shard_channels.store(left, Ordering::Relaxed);
        client.subscriptions.take_if(|subscriptions| subscriptions.is_empty());
        list(&mut self.connections.ready, connection, token);
    }

    fn end_watches(&mut self, token: usize) {
        let Some(connection) = self.connections.all[token].as_deref_mut() else { return };
        let client_id = connection.client.view.id;
        // A watch without a first state is refused when that state arrives.
        let queries = connection.client.subscriptions.iter().flat_map(|all| all.queries.iter());
        let numbers: Vec<u32> =
            queries.filter(|(_, watcher)| !watcher.is_new()).map(|(number, _)| number).collect();
        for number in numbers {
            let Some(connection) = connection_of(&mut self.connections.all, token, client_id) else { return };
            let Connection { client, output, .. } = connection;
            let Some(watcher) = client.subscriptions.as_mut().and_then(|all| all.queries.get_mut(number))
            else {
                continue;
            };
            let Err(Refused(error)) = opening::check_slots(self.server, &client.view, &watcher.query) else {
                continue;
            };
            let text = version::text(self.server, watcher.sequence, watcher.hash, watcher.position());
            writing::write_end(number, &watcher.form(), &watcher.query, &text, &error, output);
            opening::end(self.server, &mut self.executor.turn, client, number);
            list(&mut self.connections.ready, connection, token);
        }
    }
}
