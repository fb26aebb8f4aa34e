//! The transfer of keys, on any thread: sends the keys, and receives the acknowledgements.

use ember_protocol::push_word;
use emberkv_core::keyspace::external::Record;
use emberkv_core::rdb;

use super::order::Order;
use super::service::KeptTargets;
use super::target::{Failure, Target};
use crate::server::Server;
use crate::system::clock::unix_ms;
use crate::tiers::Tiers;

/// Number of bytes of requests that are collected before they are sent.
const GATHERED_BYTES: usize = 64 * 1024;

/// A key that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The index of the key among the keys of the call.
    pub(super) number: usize,
    /// When the key expires, Unix time in ms; `None` without an expiry.
    pub(super) expire_at_ms: Option<i64>,
}

/// The result of a transfer.
#[derive(Debug, Default)]
pub(super) struct Transferred {
    /// Whether any key existed and was sent.
    pub(super) has_sent: bool,
    /// The keys that the target has accepted.
    pub(super) taken: Vec<Sent>,
    /// The first error.
    pub(super) failure: Option<Failure>,
}

/// Sends keys of database `database` to the target, each in the state that it has when it is sent.
///
/// The target may have closed a connection that was kept from an earlier transfer: if such a connection breaks before
/// the first acknowledgement, all keys are sent again over a new connection.
pub(super) fn transfer(
    server: &Server,
    database: usize,
    keys: &[Box<[u8]>],
    order: &Order,
    kept: &KeptTargets,
) -> Transferred {
    let target = kept.take(&order.destination);
    let was_kept = target.is_some();
    let mut transferred = transfer_over(target, server, database, keys, order, kept);
    let is_broken = transferred.failure.as_ref().is_some_and(Failure::is_broken_connection);
    if was_kept && is_broken && transferred.taken.is_empty() {
        transferred = transfer_over(None, server, database, keys, order, kept);
    }
    transferred
}

fn transfer_over(
    target: Option<Target>,
    server: &Server,
    database: usize,
    keys: &[Box<[u8]>],
    order: &Order,
    kept: &KeptTargets,
) -> Transferred {
    let mut transferred = Transferred::default();
    let target = target.map_or_else(|| Target::connect(&order.destination, order.timeout), Ok);
    let mut run = |mut target: Target| {
        target.log_in(order.timeout)?;
        target.select(order.target_database, order.timeout)?;
        let sent = send_all(&mut target, server, database, keys, order)?;
        transferred.has_sent = !sent.is_empty();
        for key in sent {
            match target.acknowledgement(order.timeout) {
                Ok(()) => transferred.taken.push(key),
                // After rejecting one key, the target may accept the other keys.
                Err(refused @ Failure::Refused(_)) => _ = transferred.failure.get_or_insert(refused),
                Err(broken) => return Err(broken),
            }
        }
        if target.is_in_step() {
            kept.keep(target);
        }
        Ok(())
    };
    if let Err(failure) = target.and_then(&mut run) {
        transferred.failure.get_or_insert(failure);
    }
    transferred
}

/// Sends the keys that exist, and returns them. At most one large value is in memory at a time.
fn send_all(
    target: &mut Target,
    server: &Server,
    database: usize,
    keys: &[Box<[u8]>],
    order: &Order,
) -> Result<Vec<Sent>, Failure> {
    let mut sent = Vec::new();
    let mut requests = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        let now_ms = unix_ms();
        let Some((expire_at_ms, payload)) = dump(server, database, key, now_ms)? else { continue };
        let ttl_ms = expire_at_ms.map_or(0, |at_ms| at_ms - now_ms);
        let words = if order.replaces { 5 } else { 4 };
        requests.extend_from_slice(format!("*{words}\r\n").as_bytes());
        push_word(if server.slots.is_some() { b"RESTORE-ASKING" } else { b"RESTORE" }, &mut requests);
        push_word(key, &mut requests);
        push_word(ttl_ms.to_string().as_bytes(), &mut requests);
        requests.extend_from_slice(format!("${}\r\n", payload.len()).as_bytes());
        if requests.len() + payload.len() < GATHERED_BYTES {
            requests.extend_from_slice(&payload);
        } else {
            target.send(&requests, order.timeout)?;
            target.send(&payload, order.timeout)?;
            requests.clear();
        }
        requests.extend_from_slice(b"\r\n");
        if order.replaces {
            push_word(b"REPLACE", &mut requests);
        }
        sent.push(Sent { number, expire_at_ms });
    }
    target.send(&requests, order.timeout)?;
    Ok(sent)
}

/// The expiry of a key (Unix time in ms), if it has one, and its serialized value.
type Dumped = (Option<i64>, Vec<u8>);

/// Returns the expiry and the serialized value of a key; `None` if the key does not exist.
fn dump(server: &Server, database: usize, key: &[u8], now_ms: i64) -> Result<Option<Dumped>, Failure> {
    let keyspace = &server.keyspace;
    let hash = keyspace.hash(key);
    let data = keyspace.lock(hash.shard());
    let Some(at) = data.find(database, hash, key) else { return Ok(None) };
    let entry = data.entry(database, at);
    if entry.is_expired(now_ms) {
        return Ok(None);
    }
    let expire_at_ms = entry.expire_at_ms();
    let version = server.config.snapshot().rdb_target().payload_version();
    let Some(external) = entry.external() else { return Ok(Some((expire_at_ms, rdb::dump(entry, version)))) };
    // The record of a cold value is kept as long as it is referenced, and this thread may wait for the disk.
    let (record, name) = (Record::new(external.location), data.database_name(database));
    drop(data);
    let records = &Tiers::of(server).records;
    let encode = |kind, value: &[u8]| rdb::dump_encoded(kind, value, version);
    let dumped = records.read(record.location(), (name, key), &mut Vec::new(), encode);
    let dumped = dumped.and_then(|dumped| dumped.map_err(|error| error.to_string()));
    Ok(Some((expire_at_ms, dumped.map_err(Failure::Unreadable)?)))
}
