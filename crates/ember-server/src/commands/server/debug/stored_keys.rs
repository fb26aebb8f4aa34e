//! DEBUG OBJECT, SDSLEN, HTSTATS, HTSTATS-KEY and POPULATE: show how keys are stored, and create many keys.

use ember_protocol::number::parse_i64;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::keyspace::SHARDS;
use emberkv_core::keyspace::entry::{EntryRef, NewValue, StringValue, ValueType};
use emberkv_core::keyspace::shard::cold_values::DemotionRules;
use emberkv_core::rdb;
use emberkv_core::types::limits::EncodingLimits;
use emberkv_core::types::list::NodeView;
use emberkv_core::types::{Aggregate, Collection};

use crate::executor::session::{Outcome, Session, SessionResult};
use crate::tiers::{Tiers, demotion};

/// Calls `inspect` with the entry of a key, even if the key has expired but is not removed yet.
pub(super) fn with_entry<R>(
    session: &Session<'_>,
    key: &[u8],
    inspect: impl FnOnce(EntryRef<'_>) -> R,
) -> Option<R> {
    let keyspace = &session.server.keyspace;
    let database = session.client.database;
    let hash = keyspace.hash(key);
    let data = keyspace.lock(hash.shard());
    data.find(database, hash, key).map(|at| inspect(data.entry(database, at)))
}

/// Like [`with_entry`], but fetches a cold value first. The worker waits for the disk, which is acceptable only for
/// debugging.
///
/// # Errors
/// Returns an error if the value cannot be read.
pub(super) fn with_value<R>(
    session: &Session<'_>,
    key: &[u8],
    inspect: impl FnOnce(EntryRef<'_>) -> R,
) -> Result<Option<R>, CommandError> {
    let (server, database) = (session.server, session.client.database);
    let hash = server.keyspace.hash(key);
    let mut data = server.keyspace.lock(hash.shard());
    if let Some(order) = data.order_now(database, hash, key) {
        let limits = &session.turn.settings.encoding;
        match Tiers::of(server).read(&order, limits, &mut Vec::new()) {
            Ok(fetched) => _ = data.store_fetched(&order, fetched),
            Err(reason) => {
                data.fail(&order, &reason);
                return Err(reason.into());
            }
        }
    }
    // `inspect` runs under the same lock as the fetch, because the value could be demoted again.
    let found = data.find(database, hash, key).map(|at| inspect(data.entry(database, at)));
    server.keyspace.publish_bytes(server.keyspace.release(hash.shard(), data));
    Ok(found)
}

/// The number of bytes of a DUMP payload that are not part of the value: its type, version and checksum.
const PAYLOAD_FRAME_BYTES: usize = 11;

pub(super) fn tier(session: &mut Session<'_>) -> SessionResult {
    let (server, database, args) = (session.server, session.client.database, session.args);
    let key = args.at(args.len() - 1);
    match args.len() {
        3 => {}
        _ if is_word(args, 2, "DEMOTE") => demotion::demote_key(server, database, key, &DemotionRules::ANY)?,
        _ => return Err(CommandError::Syntax),
    }
    with_entry(session, key, |_| ()).ok_or(CommandError::NoSuchKey)?;
    let line = match demotion::location_of(server, database, key) {
        None => "tier:hot".to_owned(),
        Some(location) => {
            let is_buffered = Tiers::of(server).records.is_buffered(location);
            let tier = if is_buffered { "warm" } else { "cold" };
            format!(
                "tier:{tier} segment:{} location:{:#018x} bytes:{}",
                location.segment(),
                location.bits(),
                location.len_bytes(),
            )
        }
    };
    session.reply.simple(&line);
    Ok(Outcome::Done)
}

pub(super) fn object(session: &mut Session<'_>) -> SessionResult {
    let key = session.args.at(2);
    let hash = session.server.keyspace.hash(key);
    let line = with_value(session, key, |entry| {
        // Redis shows an address here. Shard and tag suffice to see whether two keys are adjacent.
        format!(
            "Value at:0x{:03x}{:05x} refcount:1 encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{}{}",
            hash.shard(),
            hash.tag(),
            entry.encoding_name(),
            rdb::dump(entry, session.turn.settings.payload_version).len() - PAYLOAD_FRAME_BYTES,
            entry.clock(),
            session.turn.idle_seconds(entry.clock()),
            nodes_line(entry, &session.turn.settings.encoding),
        )
    })?;
    session.reply.simple(&line.ok_or(CommandError::NoSuchKey)?);
    Ok(Outcome::Done)
}

/// Returns the additional fields for a list that consists of several nodes.
fn nodes_line(entry: EntryRef<'_>, limits: &EncodingLimits) -> String {
    let Some(Aggregate::List(list)) = entry.aggregate() else { return String::new() };
    if list.encoding_name() != "quicklist" {
        return String::new();
    }
    let (mut nodes, mut bytes) = (0, 0);
    for node in list.nodes() {
        nodes += 1;
        bytes += match node {
            NodeView::Packed(listpack) => listpack.len_bytes(),
            NodeView::Large(element) => element.len(),
        };
    }
    let average = list.len() as f64 / f64::from(nodes);
    format!(
        " ql_nodes:{nodes} ql_avg_node:{average:.2} ql_listpack_max:{} ql_compressed:{} \
         ql_uncompressed_size:{bytes}",
        limits.list_max_listpack_size,
        u8::from(limits.list_compress_depth != 0),
    )
}

pub(super) fn htstats(session: &mut Session<'_>) -> SessionResult {
    let keyspace = &session.server.keyspace;
    let database = parse_i64(session.args.at(2)).ok_or(CommandError::NotInteger)?;
    let database = usize::try_from(database).ok().filter(|&database| database < keyspace.databases());
    let database = database.ok_or("ERR Out of range database")?;
    let (mut slots, mut keys, mut volatile, mut fullest) = (0, 0, 0, 0);
    for shard in 0..SHARDS {
        let data = keyspace.lock(shard);
        let data = data.database(database);
        slots += data.table().capacity();
        keys += data.table().len();
        volatile += data.volatile();
        fullest = fullest.max(data.table().len());
    }
    let text = format!(
        "[Dictionary HT]\nHash table 0 stats (main hash table):\n table size: {slots}\n number of elements: {keys}\n \
         shards: {SHARDS}\n elements in the fullest shard: {fullest}\n[Expires HT]\nHash table 0 stats (main hash \
         table):\n number of elements: {volatile}\n"
    );
    session.reply.verbatim(b"txt", text.as_bytes());
    Ok(Outcome::Done)
}

pub(super) fn htstats_key(session: &mut Session<'_>) -> SessionResult {
    let now_ms = session.turn.now_ms;
    let found = with_value(session, session.args.at(2), |entry| {
        let is_table = matches!(entry.encoding_name(), "hashtable" | "skiplist");
        (!entry.is_expired(now_ms)).then(|| entry.aggregate().filter(|_| is_table).map(Aggregate::len))
    })?;
    let elements = found
        .flatten()
        .ok_or(CommandError::NoSuchKey)?
        .ok_or("ERR The value stored at the specified key is not represented using an hash table")?;
    let text = format!("Hash table 0 stats (main hash table):\n number of elements: {elements}\n");
    session.reply.verbatim(b"txt", text.as_bytes());
    Ok(Outcome::Done)
}

/// The maximum number of keys that one POPULATE creates, which exceeds the memory of any machine.
const POPULATE_MAX: i64 = 1 << 36;

pub(super) fn populate(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    let positive = "ERR value is out of range, must be positive";
    let count = parse_i64(args.at(2)).filter(|count| (0..=POPULATE_MAX).contains(count)).ok_or(positive)?;
    let prefix = args.get(3).unwrap_or(b"key");
    let size = match args.get(4) {
        None => 0,
        Some(size) => parse_i64(size).and_then(|size| usize::try_from(size).ok()).ok_or(positive)?,
    };
    if size > session.turn.settings.string_bytes_max {
        return Err(CommandError::StringTooLong);
    }
    let keyspace = &session.server.keyspace;
    let database = session.client.database;
    let clock = session.turn.new_clock();
    for number in 0..count {
        let key = [prefix, format!(":{number}").as_bytes()].concat();
        let mut value = format!("value:{number}").into_bytes();
        if size > 0 {
            value.resize(size, 0);
        }
        let hash = keyspace.hash(&key);
        let mut data = keyspace.lock(hash.shard());
        if data.find(database, hash, &key).is_none() {
            data.insert(database, hash, &key, NewValue::from_bytes(&value), None, clock);
            session.turn.counters.changes += 1;
        }
        keyspace.publish_bytes(keyspace.release(hash.shard(), data));
    }
    session.reply.ok();
    Ok(Outcome::Done)
}

/// Handles DEBUG SDSLEN: replies with the lengths of a key and of its string value. Neither has spare capacity. The
/// allocated size of both together is reported as that of the value.
pub(super) fn sdslen(session: &mut Session<'_>) -> SessionResult {
    let key = session.args.at(2);
    let found = with_value(session, key, |entry| {
        let is_string = entry.value_type() == ValueType::String;
        let length = match is_string.then(|| entry.string()) {
            Some(StringValue::Inline(bytes)) => Some(bytes.len()),
            Some(StringValue::Large(large)) => Some(large.bytes().len()),
            Some(StringValue::Int(_)) | None => None,
        };
        length.map(|length| (length, entry.footprint_bytes()))
    })?;
    let (length, footprint) =
        found.ok_or(CommandError::NoSuchKey)?.ok_or("ERR Not an sds encoded string.")?;
    session.reply.simple(&format!(
        "key_sds_len:{0}, key_sds_avail:0, key_zmalloc: {0}, val_sds_len:{length}, val_sds_avail:0, val_zmalloc: {1}",
        key.len(),
        footprint.saturating_sub(key.len()),
    ));
    Ok(Outcome::Done)
}
