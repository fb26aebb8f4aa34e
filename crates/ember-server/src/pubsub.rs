//! Publish and subscribe: who listens to which channels and patterns, and messages on their way to them.
//!
//! A message is sent once to each worker that has receivers, and written by the worker to each of its connections. A
//! worker opens its letters in order, so what one client publishes arrives in order everywhere. Publishing never
//! waits for a subscriber: what a slow one does not read counts against its output-buffer limit.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ember_protocol::Reply;
use emberkv_core::events::{EventClass, Notice};
use emberkv_core::glob::{self, Case};
use emberkv_core::keyspace::entry::LARGE_VALUE_MIN_BYTES;
use parking_lot::RwLock;

use crate::client::ClientView;
use crate::conditions::Condition;
use crate::mailbox::Letter;
use crate::server::{Server, WorkerHandle};
use crate::tracking::write_invalidation;

/// A name of a channel, or a pattern.
pub(crate) type Name = Arc<[u8]>;

/// What a subscription is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A channel.
    Channel,
    /// All channels whose names match a pattern.
    Pattern,
    /// A channel of a cluster's shard.
    ShardChannel,
}

impl Kind {
    /// The words of the replies to subscribing and unsubscribing.
    pub(crate) fn words(self) -> (&'static [u8], &'static [u8]) {
        match self {
            Kind::Channel => (b"subscribe", b"unsubscribe"),
            Kind::Pattern => (b"psubscribe", b"punsubscribe"),
            Kind::ShardChannel => (b"ssubscribe", b"sunsubscribe"),
        }
    }
}

/// The subscriptions of one client.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    channels: BTreeSet<Name>,
    patterns: BTreeSet<Name>,
    shard_channels: BTreeSet<Name>,
    /// About the memory in bytes that they take.
    bytes: usize,
}

/// About what a subscription takes in the tables of names, in bytes, besides the name.
const SUBSCRIPTION_BYTES: usize = 200;

impl Subscriptions {
    /// About the memory in bytes that they take; names count for each who listens.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// The names of a kind.
    pub(crate) fn of(&self, kind: Kind) -> &BTreeSet<Name> {
        match kind {
            Kind::Channel => &self.channels,
            Kind::Pattern => &self.patterns,
            Kind::ShardChannel => &self.shard_channels,
        }
    }

    fn of_mut(&mut self, kind: Kind) -> &mut BTreeSet<Name> {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
            Kind::ShardChannel => &mut self.shard_channels,
        }
    }

    /// The number that replies to subscribing and unsubscribing end with: channels and patterns count together.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::Channel | Kind::Pattern => self.channels.len() + self.patterns.len(),
            Kind::ShardChannel => self.shard_channels.len(),
        }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.patterns.is_empty() && self.shard_channels.is_empty()
    }
}

/// Where a connection is: its worker, its number there and its client's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) worker: usize,
    pub(crate) token: usize,
    pub(crate) client_id: u64,
}

impl Address {
    /// The address of a client's connection.
    pub(crate) fn of(view: &ClientView) -> Address {
        Address { worker: view.worker, token: view.token, client_id: view.id }
    }
}

type Topics = HashMap<Name, Vec<Address>>;

/// All subscriptions.
#[derive(Default)]
pub(crate) struct PubSub {
    channels: RwLock<Topics>,
    patterns: RwLock<Topics>,
    shard_channels: RwLock<Topics>,
}

/// Something for connections that did not ask for it just now.
#[derive(Debug)]
pub(crate) enum Push {
    /// A message on a channel.
    Message { channel: Vec<u8>, payload: Arc<Vec<u8>>, is_sharded: bool },
    /// Keys of which a client may have copies have changed; `None` is all.
    Invalidation(Option<Vec<Box<[u8]>>>),
    /// A line of its own, for monitors.
    Line(Vec<u8>),
    /// The client that was told of changes in place of the receiver is gone.
    RedirectBroken(u64),
}

impl Push {
    /// About the memory in bytes that it takes.
    fn memory_bytes(&self) -> usize {
        size_of::<Push>()
            + match self {
                Push::Message { channel, payload, .. } => channel.len() + payload.len(),
                Push::Invalidation(keys) => {
                    let keys = keys.as_deref().unwrap_or_default();
                    keys.iter().map(|key| size_of_val(key) + key.len()).sum()
                }
                Push::Line(line) => line.len(),
                Push::RedirectBroken(_) => 0,
            }
    }

    /// The same with those on one worker that are to get it.
    pub(crate) fn message_bytes(&self, receivers: &[Receiver]) -> usize {
        self.memory_bytes() + size_of_val(receivers)
    }

    /// Writes it for one receiver; `pattern` is what the receiver subscribed to, if not the channel itself, and
    /// `is_subscribed` whether it listens to anything.
    pub(crate) fn write(&self, pattern: Option<&[u8]>, is_subscribed: bool, reply: &mut Reply) {
        match self {
            Push::Invalidation(keys) => write_invalidation(keys.as_deref(), is_subscribed, reply),
            Push::RedirectBroken(id) if reply.is_resp3() => {
                reply.push(2);
                reply.bulk(b"tracking-redir-broken");
                reply.integer(*id as i64);
            }
            Push::RedirectBroken(_) => {}
            Push::Line(line) => reply.simple_bytes(line),
            Push::Message { channel, payload, is_sharded } => {
                match pattern {
                    Some(pattern) => {
                        reply.push(4);
                        reply.bulk(b"pmessage");
                        reply.bulk(pattern);
                    }
                    None => {
                        reply.push(3);
                        reply.bulk(if *is_sharded { b"smessage" } else { b"message" });
                    }
                }
                reply.bulk(channel);
                if payload.len() >= LARGE_VALUE_MIN_BYTES {
                    reply.bulk_shared(payload);
                } else {
                    reply.bulk(payload);
                }
            }
        }
    }
}

/// Bytes of pushes that wait for one worker from which on commands wait, until it has taken them: most commands
/// would make more.
const DELAYING_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of pushes that wait for one worker from which on no more are kept, and their receivers are disconnected. Only a
/// script or a transaction comes so far: between its calls nobody can wait.
const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A connection that is to get a push.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) token: usize,
    pub(crate) client_id: u64,
    /// The pattern that it subscribed to, if not the channel itself.
    pub(crate) pattern: Option<Name>,
}

impl PubSub {
    fn topics(&self, kind: Kind) -> &RwLock<Topics> {
        match kind {
            Kind::Channel => &self.channels,
            Kind::Pattern => &self.patterns,
            Kind::ShardChannel => &self.shard_channels,
        }
    }

    /// Subscribes a client; false if it was already.
    pub(crate) fn subscribe(
        &self,
        kind: Kind,
        name: &[u8],
        address: Address,
        subscriptions: &mut Subscriptions,
    ) -> bool {
        if subscriptions.of(kind).contains(name) {
            return false;
        }
        let mut topics = self.topics(kind).write();
        let name = topics.get_key_value(name).map_or_else(|| Name::from(name), |(name, _)| Arc::clone(name));
        topics.entry(Arc::clone(&name)).or_default().push(address);
        subscriptions.bytes += SUBSCRIPTION_BYTES + name.len();
        subscriptions.of_mut(kind).insert(name)
    }

    /// Ends a client's subscription; false if there was none.
    pub(crate) fn unsubscribe(
        &self,
        kind: Kind,
        name: &[u8],
        address: Address,
        subscriptions: &mut Subscriptions,
    ) -> bool {
        if !subscriptions.of_mut(kind).remove(name) {
            return false;
        }
        subscriptions.bytes -= SUBSCRIPTION_BYTES + name.len();
        let mut topics = self.topics(kind).write();
        if let Some(listeners) = topics.get_mut(name) {
            listeners.retain(|other| *other != address);
            if listeners.is_empty() {
                topics.remove(name);
            }
        }
        true
    }

    /// Ends all subscriptions of a client.
    pub(crate) fn forget(&self, address: Address, subscriptions: &mut Subscriptions) {
        for kind in [Kind::Channel, Kind::Pattern, Kind::ShardChannel] {
            for name in subscriptions.of(kind).clone() {
                self.unsubscribe(kind, &name, address, subscriptions);
            }
        }
    }

    /// The subscribers to names that are meant, each once for each name. O(names).
    pub(crate) fn subscribers(&self, is_meant: impl Fn(Kind, &[u8]) -> bool) -> Vec<Address> {
        let mut found = Vec::new();
        for kind in [Kind::Channel, Kind::Pattern, Kind::ShardChannel] {
            let topics = self.topics(kind).read();
            let meant = topics.iter().filter(|(name, _)| is_meant(kind, name));
            found.extend(meant.flat_map(|(_, addresses)| addresses));
        }
        found
    }

    /// The number of names that somebody subscribes to.
    pub(crate) fn len(&self, kind: Kind) -> usize {
        self.topics(kind).read().len()
    }

    /// The names that somebody subscribes to and that match a pattern, if there is one.
    pub(crate) fn names(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Name> {
        let topics = self.topics(kind).read();
        let matching = topics
            .keys()
            .filter(|name| pattern.is_none_or(|pattern| glob::matches(pattern, name, Case::Sensitive)));
        matching.cloned().collect()
    }

    /// The number of subscribers to a name.
    pub(crate) fn listeners(&self, kind: Kind, name: &[u8]) -> usize {
        self.topics(kind).read().get(name).map_or(0, Vec::len)
    }

    /// The receivers of a message on a channel.
    fn receivers(&self, kind: Kind, channel: &[u8]) -> Vec<(Address, Option<Name>)> {
        let direct = self.topics(kind).read();
        let mut receivers: Vec<_> =
            direct.get(channel).into_iter().flatten().map(|&address| (address, None)).collect();
        if kind == Kind::Channel {
            let patterns = self.patterns.read();
            let matching =
                patterns.iter().filter(|(pattern, _)| glob::matches(pattern, channel, Case::Sensitive));
            receivers.extend(matching.flat_map(|(pattern, addresses)| {
                addresses.iter().map(|&address| (address, Some(Arc::clone(pattern))))
            }));
        }
        receivers
    }
}

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
            worker.mailbox.send(Letter::Push(Arc::clone(&push), receivers));
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
        if let Some(view) = self.clients.get(client_id)
            && !view.is_overrun.swap(true, Ordering::Relaxed)
        {
            self.look_at(view.worker, view.token, view.id);
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
            self.workers.iter().for_each(|worker| worker.mailbox.send(Letter::TryAgain));
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
