//! All subscriptions by channel and pattern, and the subscriptions of one client.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use ember_protocol::Reply;
use emberkv_core::glob::{self, Case};
use parking_lot::RwLock;

use super::client::ClientView;
use super::ending::{EndReason, EndingClients};
use super::watchers::Watchers;

/// The name of a channel, or the text of a pattern.
pub(crate) type Name = Arc<[u8]>;

/// The target of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A channel.
    Channel,
    /// All channels whose names match this pattern.
    Pattern,
    /// A sharded channel (SSUBSCRIBE).
    ShardChannel,
}

impl Kind {
    /// Returns the first elements of the replies to subscribing and unsubscribing.
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
    /// The client's watchers of live queries.
    pub(crate) queries: Watchers,
    /// The approximate memory of the subscriptions, in bytes.
    bytes: usize,
}

/// The approximate bytes of a subscription in the tables of names, without the name itself.
const SUBSCRIPTION_BYTES: usize = 200;

impl Subscriptions {
    /// Returns the approximate memory in bytes; each subscriber of a name counts the name in full.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the subscribed names of a kind.
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

    /// Returns the count at the end of replies to subscribing and unsubscribing, in which channels and patterns count
    /// together.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::Channel | Kind::Pattern => self.channels.len() + self.patterns.len(),
            Kind::ShardChannel => self.shard_channels.len(),
        }
    }

    /// Adds a channel whose messages are the states of a live query; clients cannot publish to it.
    pub(crate) fn enter_channel(&mut self, name: &Name) {
        if self.channels.insert(Arc::clone(name)) {
            self.bytes += SUBSCRIPTION_BYTES + name.len();
        }
    }

    /// Returns whether there are no subscriptions.
    pub(crate) fn is_empty(&self) -> bool {
        self.channels.is_empty()
            && self.patterns.is_empty()
            && self.shard_channels.is_empty()
            && self.queries.is_empty()
    }
}

/// The address of a connection: its worker, its token there, and its client id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) worker: usize,
    pub(crate) token: usize,
    pub(crate) client_id: u64,
}

impl Address {
    /// Returns the address of a client's connection.
    pub(crate) fn of(view: &ClientView) -> Address {
        Address { worker: view.worker, token: view.token, client_id: view.id }
    }
}

/// Writes the reply to a subscription or to its end; `count` is the number of remaining subscriptions.
pub(crate) fn write_change(reply: &mut Reply, word: &[u8], name: Option<&[u8]>, count: usize) {
    reply.push(3);
    reply.bulk(word);
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.integer(count as i64);
}

type Topics = HashMap<Name, Vec<Address>>;

/// The subscriptions of all clients. Subscriptions of clients that are being disconnected remain until the connections
/// are closed, but do not count.
pub(crate) struct PubSub {
    ending: Arc<EndingClients>,
    channels: RwLock<Topics>,
    patterns: RwLock<Topics>,
    shard_channels: RwLock<Topics>,
}

impl PubSub {
    /// Creates an empty table; the subscriptions of clients in `ending` do not count.
    pub(crate) fn new(ending: Arc<EndingClients>) -> PubSub {
        PubSub {
            ending,
            channels: RwLock::default(),
            patterns: RwLock::default(),
            shard_channels: RwLock::default(),
        }
    }

    fn topics(&self, kind: Kind) -> &RwLock<Topics> {
        match kind {
            Kind::Channel => &self.channels,
            Kind::Pattern => &self.patterns,
            Kind::ShardChannel => &self.shard_channels,
        }
    }

    /// Subscribes a client to a name; returns false if it was already subscribed.
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

    /// Removes a client's subscription to a name; returns false if there was none.
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

    /// Removes all subscriptions of a client.
    pub(crate) fn forget(&self, address: Address, subscriptions: &mut Subscriptions) {
        for kind in [Kind::Channel, Kind::Pattern, Kind::ShardChannel] {
            for name in subscriptions.of(kind).clone() {
                self.unsubscribe(kind, &name, address, subscriptions);
            }
        }
    }

    /// Returns the subscribers to the names for which `is_meant` returns true; a client occurs once per name. O(names).
    pub(crate) fn subscribers(&self, is_meant: impl Fn(Kind, &[u8]) -> bool) -> Vec<Address> {
        let mut found = Vec::new();
        for kind in [Kind::Channel, Kind::Pattern, Kind::ShardChannel] {
            let topics = self.topics(kind).read();
            let meant = topics.iter().filter(|(name, _)| is_meant(kind, name));
            found.extend(meant.flat_map(|(_, addresses)| addresses));
        }
        found
    }

    /// Returns the number of names with subscribers. O(1), or O(subscriptions) while clients are being disconnected.
    pub(crate) fn len(&self, kind: Kind) -> usize {
        let topics = self.topics(kind).read();
        match self.ending.get() {
            None => topics.len(),
            Some(ending) => topics.values().filter(|addresses| is_awaited(addresses, &ending)).count(),
        }
    }

    /// Returns the names with subscribers; with `pattern`, only those that match it.
    pub(crate) fn names(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Name> {
        let topics = self.topics(kind).read();
        let ending = self.ending.get();
        let is_meant =
            |name: &[u8]| pattern.is_none_or(|pattern| glob::matches(pattern, name, Case::Sensitive));
        let meant = topics.iter().filter(|(name, addresses)| {
            is_meant(name) && ending.as_deref().is_none_or(|ending| is_awaited(addresses, ending))
        });
        meant.map(|(name, _)| Arc::clone(name)).collect()
    }

    /// Returns the number of subscribers to a name.
    pub(crate) fn listeners(&self, kind: Kind, name: &[u8]) -> usize {
        let topics = self.topics(kind).read();
        let Some(addresses) = topics.get(name) else { return 0 };
        match self.ending.get() {
            None => addresses.len(),
            Some(ending) => {
                addresses.iter().filter(|address| !ending.contains_key(&address.client_id)).count()
            }
        }
    }

    /// Returns the receivers of a message on a channel, each with the pattern through which it is subscribed, if any.
    pub(crate) fn receivers(&self, kind: Kind, channel: &[u8]) -> Vec<(Address, Option<Name>)> {
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
        if let Some(ending) = self.ending.get() {
            receivers.retain(|(address, _)| !ending.contains_key(&address.client_id));
        }
        receivers
    }
}

/// Returns whether any of these subscribers is not in `ending`, the clients that are being disconnected.
fn is_awaited(addresses: &[Address], ending: &HashMap<u64, EndReason>) -> bool {
    addresses.iter().any(|address| !ending.contains_key(&address.client_id))
}
