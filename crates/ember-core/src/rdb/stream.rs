//! Encoding and decoding of streams.
//!
//! ```text
//! blocks, each: ID of 16 bytes, big-endian, as a string; listpack as a string
//! entries | last ID | [2: first ID | greatest deleted ID | entries ever added]
//! groups, each: name | last ID | [2: entries read] | pending | consumers
//! pending, each: ID of 16 bytes | delivery time | deliveries
//! consumers, each: name | seen time | [3: active time] | IDs of 16 bytes
//! ```
//!
//! All other IDs are two numbers, encoded like lengths. A part in brackets exists only in [`Kind::Stream2`] and later
//! (2), or in [`Kind::Stream3`] (3).

use std::io::{self, BufRead, Write};

use super::format::{LoadError, Reader, Writer};
use super::kind::Kind;
use crate::types::listpack::Listpack;
use crate::types::stream::{Consumer, Group, Log, Pending, Stream, StreamId};

const EVERY_ID: std::ops::RangeInclusive<StreamId> = StreamId::MIN..=StreamId::MAX;

/// The value for an unknown number of entries read, and for a consumer that was never active.
const UNKNOWN: i64 = -1;

fn id_bytes(id: StreamId) -> [u8; 16] {
    (u128::from(id.ms) << 64 | u128::from(id.sequence)).to_be_bytes()
}

fn id_of(bytes: [u8; 16]) -> StreamId {
    let number = u128::from_be_bytes(bytes);
    StreamId::new((number >> 64) as u64, number as u64)
}

/// Writes a stream as [`Kind::Stream3`], or as [`Kind::Stream2`] without the times at which consumers were active.
/// O(its bytes).
pub(super) fn write<W: Write>(writer: &mut Writer<W>, stream: &Stream, kind: Kind) -> io::Result<()> {
    let log = stream.log();
    writer.length(log.block_count() as u64)?;
    for (first_id, bytes) in log.blocks() {
        writer.string(&id_bytes(first_id))?;
        writer.string(bytes)?;
    }
    writer.length(log.len())?;
    for id in [log.last_id(), log.first_id(), log.max_deleted_id()] {
        write_id(writer, id)?;
    }
    writer.length(log.entries_added())?;
    writer.length(stream.groups().len() as u64)?;
    stream.groups().iter().try_for_each(|(name, group)| write_group(writer, name, group, kind))
}

fn write_id<W: Write>(writer: &mut Writer<W>, id: StreamId) -> io::Result<()> {
    writer.length(id.ms)?;
    writer.length(id.sequence)
}

fn write_group<W: Write>(writer: &mut Writer<W>, name: &[u8], group: &Group, kind: Kind) -> io::Result<()> {
    writer.string(name)?;
    write_id(writer, group.last_id)?;
    writer.length(group.entries_read.unwrap_or(UNKNOWN) as u64)?;
    writer.length(group.pending_count() as u64)?;
    for (id, pending) in group.pending(EVERY_ID) {
        writer.raw(&id_bytes(id))?;
        writer.time_ms(pending.delivered_ms)?;
        writer.length(pending.deliveries)?;
    }
    writer.length(group.consumers().len() as u64)?;
    group.consumers().try_for_each(|consumer| write_consumer(writer, consumer, kind))
}

fn write_consumer<W: Write>(writer: &mut Writer<W>, consumer: &Consumer, kind: Kind) -> io::Result<()> {
    writer.string(consumer.name())?;
    writer.time_ms(consumer.seen_ms)?;
    if kind == Kind::Stream3 {
        writer.time_ms(consumer.active_ms.unwrap_or(UNKNOWN))?;
    }
    writer.length(consumer.pending_count() as u64)?;
    consumer.pending(EVERY_ID).try_for_each(|id| writer.raw(&id_bytes(id)))
}

/// Reads a stream of one of the three kinds.
pub(super) fn read<R: BufRead>(reader: &mut Reader<R>, kind: Kind) -> Result<Stream, LoadError> {
    let mut stream = Stream::default();
    read_log(reader, kind, stream.log_mut())?;
    for _ in 0..reader.length()? {
        let name = reader.string()?;
        let group = read_group(reader, kind, stream.log())?;
        if !stream.groups_mut().create(&name, group) {
            return Err(LoadError::Corrupt("a stream has two groups with the same name"));
        }
    }
    Ok(stream)
}

fn read_log<R: BufRead>(reader: &mut Reader<R>, kind: Kind, log: &mut Log) -> Result<(), LoadError> {
    for _ in 0..reader.length()? {
        let id = <[u8; 16]>::try_from(reader.string()?);
        let id = id.map_err(|_| LoadError::Corrupt("the ID of a stream's block is not 16 bytes long"))?;
        let listpack = Listpack::from_bytes(reader.string()?);
        let is_block = listpack.is_ok_and(|listpack| log.push_block(id_of(id), listpack));
        if !is_block {
            return Err(LoadError::Corrupt("a block of a stream contradicts itself or those before it"));
        }
    }
    let len = reader.length()?;
    let last_id = read_id(reader)?;
    let (max_deleted_id, added) = if kind == Kind::Stream1 {
        (StreamId::MIN, len)
    } else {
        // The first ID follows from the entries.
        read_id(reader)?;
        (read_id(reader)?, reader.length()?)
    };
    if len != log.len() || last_id < log.last_id() {
        return Err(LoadError::Corrupt("the counters of a stream contradict its entries"));
    }
    log.set_counters(last_id, max_deleted_id, added);
    Ok(())
}

fn read_id<R: BufRead>(reader: &mut Reader<R>) -> Result<StreamId, LoadError> {
    Ok(StreamId::new(reader.length()?, reader.length()?))
}

/// Pending entries whose consumers are not known yet: delivery time and number of deliveries.
type Unclaimed = std::collections::BTreeMap<StreamId, (i64, u64)>;

fn read_group<R: BufRead>(reader: &mut Reader<R>, kind: Kind, log: &Log) -> Result<Group, LoadError> {
    let last_id = read_id(reader)?;
    let mut group = if kind == Kind::Stream1 {
        Group::reckoned(log, last_id)
    } else {
        let entries_read = reader.length()? as i64;
        Group::new(last_id, Some(entries_read).filter(|&read| read != UNKNOWN))
    };
    let mut unclaimed = Unclaimed::new();
    for _ in 0..reader.length()? {
        let id = id_of(reader.array()?);
        let delivery = (reader.time_ms()?, reader.length()?);
        if unclaimed.insert(id, delivery).is_some() {
            return Err(LoadError::Corrupt("an entry of a stream is pending twice"));
        }
    }
    for _ in 0..reader.length()? {
        read_consumer(reader, kind, &mut group, &mut unclaimed)?;
    }
    if !unclaimed.is_empty() {
        return Err(LoadError::Corrupt("a pending entry of a stream has no consumer"));
    }
    Ok(group)
}

fn read_consumer<R: BufRead>(
    reader: &mut Reader<R>,
    kind: Kind,
    group: &mut Group,
    unclaimed: &mut Unclaimed,
) -> Result<(), LoadError> {
    let name = reader.string()?;
    let seen_ms = reader.time_ms()?;
    let active_ms = if kind == Kind::Stream3 { reader.time_ms()? } else { seen_ms };
    if group.number_of(&name).is_some() {
        return Err(LoadError::Corrupt("a group of a stream has two consumers with the same name"));
    }
    let number = group.add_consumer(&name, seen_ms);
    group.consumer_mut(number).active_ms = Some(active_ms).filter(|&at_ms| at_ms != UNKNOWN);
    for _ in 0..reader.length()? {
        let id = id_of(reader.array()?);
        let delivery = unclaimed.remove(&id);
        let (delivered_ms, deliveries) =
            delivery.ok_or(LoadError::Corrupt("a consumer of a stream has an entry that is not pending"))?;
        group.set_pending(id, Pending { delivered_ms, deliveries, consumer: number });
    }
    Ok(())
}
