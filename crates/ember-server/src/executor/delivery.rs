//! Publishing, and pushes on their way to connections.
//!
//! A message is sent once to each worker that has receivers, and written by the worker to each of its connections. A
//! worker handles its messages in order, so what one client publishes arrives in order everywhere. Publishing never
//! waits for a subscriber: what a slow one does not read counts against its output-buffer limit.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use emberkv_core::events::{EventClass, Notice};

use crate::clients::ending::EndReason;
use crate::clients::mailbox::Message;
use crate::clients::push::{Push, Receiver};
use crate::clients::subscriptions::{Address, Kind, Name};
use crate::server::conditions::Condition;
use crate::server::{Server, WorkerHandle};

/// Bytes of pushes that wait for one worker from which on commands wait, until it has taken them: most commands
/// would make more.
const DELAYING_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of pushes that wait for one worker from which on no more are kept, and their receivers are disconnected. Only a
/// script or a transaction comes so far: between its calls nobody can wait.
const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

impl Server {
    /// Sends a message to all who listen to a channel; returns how many there are.
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
                self.conditions.set(Condition::PUSHES_BEHIND, true);
                // It may have taken them before the condition was there to be ended.
                worker.mailbox.ring();
            }
        }
    }

    /// Lets a client be disconnected because it misses a push.
    #[cold]
    fn overrun(&self, client_id: u64) {
        if let Some(view) = self.clients.get(client_id) {
            self.kill(&view, EndReason::PushDropped);
        }
    }

    /// Bytes of pushes that are on their way to connections.
    pub(crate) fn push_memory(&self) -> u64 {
        self.workers.iter().map(|worker| worker.push_bytes.load(Ordering::Relaxed) as u64).sum()
    }

    /// Lets commands go on that wait until pushes are taken, if they are.
    #[inline]
    pub(crate) fn end_push_delay(&self) {
        let is_short = |worker: &WorkerHandle| worker.push_bytes.load(Ordering::Relaxed) <= DELAYING_BYTES;
        if self.conditions.get().contains(Condition::PUSHES_BEHIND) && self.workers.iter().all(is_short) {
            self.conditions.set(Condition::PUSHES_BEHIND, false);
            self.workers.iter().for_each(|worker| worker.mailbox.send(Message::TryAgain));
        }
    }

    /// Publishes an event of a key on the channels of the key and of the event, as far as `classes` asks for them.
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
