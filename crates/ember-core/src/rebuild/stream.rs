//! The commands that rebuild a stream, in this order:
//!
//! ```text
//! XADD                                each entry, including deleted ones that are still pending, in order
//! XGROUP CREATE, CREATECONSUMER       groups with their positions, consumers without pending entries
//! XCLAIM                              each pending entry, with the time and number of its deliveries
//! XTRIM, XDEL                         deleted entries are deleted again and stay pending
//! XSETID                              the counters
//! ```

use std::collections::BTreeSet;
use std::io;

use ember_protocol::{push_command_head, push_word};

use super::{CommandSink, command};
use crate::types::stream::{Consumer, Entry, Group, Log, Stream, StreamId};

const EVERY_ID: std::ops::RangeInclusive<StreamId> = StreamId::MIN..=StreamId::MAX;

/// The smallest ID that a stream entry may have.
const FIRST_ID: StreamId = StreamId::new(0, 1);

/// The maximum number of bytes of an ID as text.
const ID_BYTES_MAX: usize = StreamId::TEXT_BYTES_MAX;

/// Writes the commands that build a stream. O(entries · log(pending entries) + pending entries · log(entries)).
pub(super) fn write(sink: &mut impl CommandSink, name: &[u8], stream: &Stream) -> io::Result<()> {
    let log = stream.log();
    let mut deleted = pending_and_deleted(stream);
    if log.is_empty() && deleted.is_empty() {
        // A stream without entries is built by adding an entry and deleting it: commands offer no other way.
        deleted.insert(log.last_id().max(FIRST_ID));
    }
    let mut before = deleted.iter().copied().peekable();
    for entry in log.range(EVERY_ID) {
        while let Some(id) = before.next_if(|&id| id < entry.id) {
            write_deleted(sink, name, id)?;
        }
        write_entry(sink, name, &entry)?;
    }
    before.try_for_each(|id| write_deleted(sink, name, id))?;
    for (group_name, group) in stream.groups().iter() {
        write_group(sink, name, group_name, group)?;
    }
    delete(sink, name, log, &deleted)?;
    write_counters(sink, name, log)
}

/// Returns the IDs of deleted entries that are pending in a group. IDs after the stream's last ID occur only in
/// hand-made payloads and are omitted, because commands cannot rebuild them.
fn pending_and_deleted(stream: &Stream) -> BTreeSet<StreamId> {
    let log = stream.log();
    let pending = stream.groups().iter().flat_map(|(_, group)| group.pending(EVERY_ID).map(|(id, _)| id));
    pending.filter(|&id| (FIRST_ID..=log.last_id()).contains(&id) && !log.contains(id)).collect()
}

fn write_deleted(sink: &mut impl CommandSink, name: &[u8], id: StreamId) -> io::Result<()> {
    command(sink, &[b"XADD", name, id.text(&mut [0; ID_BYTES_MAX]), b"x", b"y"])
}

fn write_entry(sink: &mut impl CommandSink, name: &[u8], entry: &Entry<'_>) -> io::Result<()> {
    let bytes = sink.bytes();
    push_command_head(3 + 2 * entry.field_count, bytes);
    push_word(b"XADD", bytes);
    push_word(name, bytes);
    push_word(entry.id.text(&mut [0; ID_BYTES_MAX]), bytes);
    for (field, value) in entry.fields() {
        push_word(field.bytes(&mut itoa::Buffer::new()), bytes);
        push_word(value.bytes(&mut itoa::Buffer::new()), bytes);
    }
    sink.end_command()
}

fn write_group(sink: &mut impl CommandSink, name: &[u8], group_name: &[u8], group: &Group) -> io::Result<()> {
    let mut digits = itoa::Buffer::new();
    let read = digits.format(group.entries_read.unwrap_or(-1)).as_bytes();
    let last_id = &mut [0; ID_BYTES_MAX];
    let last_id = group.last_id.text(last_id);
    command(sink, &[b"XGROUP", b"CREATE", name, group_name, last_id, b"ENTRIESREAD", read])?;
    for consumer in group.consumers() {
        if consumer.pending_count() == 0 {
            command(sink, &[b"XGROUP", b"CREATECONSUMER", name, group_name, consumer.name()])?;
        }
        write_pending(sink, [name, group_name], group, consumer)?;
    }
    Ok(())
}

fn write_pending(
    sink: &mut impl CommandSink,
    [name, group_name]: [&[u8]; 2],
    group: &Group,
    consumer: &Consumer,
) -> io::Result<()> {
    for id in consumer.pending(EVERY_ID) {
        let Some(pending) = group.pending_entry(id) else { continue };
        let (mut time, mut count) = (itoa::Buffer::new(), itoa::Buffer::new());
        let time = time.format(pending.delivered_ms).as_bytes();
        let count = count.format(pending.deliveries).as_bytes();
        let id = &id.text(&mut [0; ID_BYTES_MAX]).to_vec();
        let options: [&[u8]; 6] = [b"TIME", time, b"RETRYCOUNT", count, b"FORCE", b"JUSTID"];
        let words: [&[u8]; 6] = [b"XCLAIM", name, group_name, consumer.name(), b"0", id];
        command(sink, &[words, options].concat())?;
    }
    Ok(())
}

/// Deletes the entries that were added only so that they can be pending. Entries before the first remaining entry are
/// deleted by XTRIM, which does not change the greatest deleted ID.
fn delete(
    sink: &mut impl CommandSink,
    name: &[u8],
    log: &Log,
    deleted: &BTreeSet<StreamId>,
) -> io::Result<()> {
    let Some(&first_deleted) = deleted.first() else { return Ok(()) };
    if log.is_empty() {
        return command(sink, &[b"XTRIM", name, b"MAXLEN", b"=", b"0"]);
    }
    let first_id = log.first_id();
    if first_deleted < first_id {
        command(sink, &[b"XTRIM", name, b"MINID", b"=", first_id.text(&mut [0; ID_BYTES_MAX])])?;
    }
    for id in deleted.range(first_id..) {
        command(sink, &[b"XDEL", name, id.text(&mut [0; ID_BYTES_MAX])])?;
    }
    Ok(())
}

/// Writes the command that sets the counters; counters of hand-made payloads are limited to the range that XSETID
/// accepts.
fn write_counters(sink: &mut impl CommandSink, name: &[u8], log: &Log) -> io::Result<()> {
    let added = log.entries_added().max(log.len()).min(i64::MAX as u64);
    let mut digits = itoa::Buffer::new();
    let added = digits.format(added).as_bytes();
    let (mut last, mut deleted) = ([0; ID_BYTES_MAX], [0; ID_BYTES_MAX]);
    let deleted = log.max_deleted_id().min(log.last_id()).text(&mut deleted);
    let last = log.last_id().text(&mut last);
    command(sink, &[b"XSETID", name, last, b"ENTRIESADDED", added, b"MAXDELETEDID", deleted])
}
