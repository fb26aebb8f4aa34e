//! Publishing of messages, and delivery of pushes to connections.
//!
//! A message is sent once to each worker that has receivers; the worker writes it to each of its connections. A worker
//! handles its messages in order, so all subscribers receive one client's messages in the order of publication.
//! Publishing never waits for a subscriber: unread output counts against the subscriber's `client-output-buffer-limit`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use emberkv_core::events::{EventClass, Notice};

use crate::clients::ending::EndReason;
use crate::clients::mailbox::Message;
use crate::clients::push::{Push, Receiver};
use crate::clients::subscriptions::{Address, Kind, Name};
use crate::server::conditions::Condition;
use crate::server::{Server, WorkerHandle};

/// The bytes of pushes queued for one worker above which commands wait until the worker has taken the pushes: most
/// commands would add more.
const DELAYING_BYTES: usize = 16 * 1024 * 1024;

/// The bytes of pushes queued for one worker above which further pushes are dropped and their receivers disconnected.
/// Only a script or a transaction can exceed it, because the calls in them cannot wait.
const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

impl Server {
    /// Sends a message to all subscribers of a channel; returns their number.
    pub(crate) fn publish(&self, kind: Kind, channel: &[u8], payload: &[u8]) -> usize {
        let receivers = self.pubsub.receivers(kind, channel);
        let count = receivers.len();
        if count > 0 {
            let is_sharded = kind == Kind::ShardChannel;
            let payload = Arc::new(payload.to_vec());
            self.push(Push::Message { channel: channel.to_vec(), payload, is_sharded }, receivers);
        }
        count
    }

    /// Sends a push to connections.
    pub(crate) fn push(&self, push: Push, receivers: Vec<(Address, Option<Name>)>) {
        let push = Arc::new(push);
        let mut by_worker: Vec<Vec<Receiver>> = self.workers.iter().map(|_| Vec::new()).collect();
        for (Address { worker, token, client_id }, pattern) in receivers {
            by_worker[worker].push(Receiver { token, client_id, pattern });
        }
        for (worker, receivers) in self.workers.iter().zip(by_worker) {
            if receivers.is_empty() {
                continue;
            }
            let bytes = push.message_bytes(&receivers);
            let waiting = worker.push_bytes.fetch_add(bytes, Ordering::Relaxed);
            if waiting > WAITING_BYTES_MAX {
                worker.push_bytes.fetch_sub(bytes, Ordering::Relaxed);
                receivers.iter().for_each(|receiver| self.overrun(receiver.client_id));
                continue;
            }
            worker.mailbox.send(Message::Push(Arc::clone(&push), receivers));
            if waiting + bytes > DELAYING_BYTES {
                self.conditions.set(Condition::PUSHES_LAG, true);
                // The worker may have taken the pushes before the condition was set, so it must check again.
                worker.mailbox.ring();
            }
        }
    }

    /// Disconnects a client to which a push was not delivered.
    #[cold]
    fn overrun(&self, client_id: u64) {
        if let Some(view) = self.clients.get(client_id) {
            self.kill(&view, EndReason::PushDropped);
        }
    }

    /// Returns the bytes of pushes on their way to connections.
    pub(crate) fn push_memory(&self) -> u64 {
        self.workers.iter().map(|worker| worker.push_bytes.load(Ordering::Relaxed) as u64).sum()
    }

    /// Resumes commands that wait for pushes to be taken, if no worker has too many of them.
    #[inline]
    pub(crate) fn end_push_delay(&self) {
        let is_short = |worker: &WorkerHandle| worker.push_bytes.load(Ordering::Relaxed) <= DELAYING_BYTES;
        if self.conditions.get().contains(Condition::PUSHES_LAG) && self.workers.iter().all(is_short) {
            self.conditions.set(Condition::PUSHES_LAG, false);
            self.workers.iter().for_each(|worker| worker.mailbox.send(Message::TryAgain));
        }
    }

    /// Publishes a key event on the channels of the key and of the event, as selected by `classes`.
    pub(crate) fn publish_event(&self, notice: &Notice, classes: EventClass) {
        let Notice { event, database, key } = notice;
        if classes.contains(EventClass::KEYSPACE) {
            let channel = [format!("__keyspace@{database}__:").as_bytes(), key].concat();
            self.publish(Kind::Channel, &channel, event.name.as_bytes());
        }
        if classes.contains(EventClass::KEYEVENT) {
            let channel = format!("__keyevent@{database}__:{}", event.name);
            self.publish(Kind::Channel, channel.as_bytes(), key);
        }
    }
}
