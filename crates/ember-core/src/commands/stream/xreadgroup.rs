//! XREADGROUP.

use ember_protocol::Reply;

use super::group_effects::{journal_consumer, journal_pending, journal_position};
use super::ids::{exact_id, no_key_or_group, reply_entry, reply_id};
use super::reading::{ReadOptions, Words, keys_from, read_options};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group as CommandGroup, Spec};
use crate::types::Collection;
use crate::types::stream::{ConsumerNumber, Group, Log, Pending, Stream, StreamId};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "xreadgroup",
        summary: "Delivers new or pending entries of streams to a consumer of a group; optionally waits for new ones.",
        since: "5.0.0",
        group: CommandGroup::Stream,
        complexity: "O(N log P) for N entries delivered where P are pending; an XADD takes O(M) to serve M clients that wait",
        arity: -7,
        flags: Flags::WRITE.union(Flags::BLOCKING).union(Flags::MOVABLEKEYS),
        keys: &[keys_from(4)],
        syntax: "GROUP <group consumer> [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS streams:<key [key ...] id [id ...]>",
        example: Example {
            given: &["XADD readings 1-1 a 1", "XGROUP CREATE readings workers 0"],
            call: "XREADGROUP GROUP workers w1 STREAMS readings >",
            reply: "1) 1) \"readings\"\n   2) 1) 1) \"1-1\"\n         2) 1) \"a\"\n            2) \"1\"",
        },
        ..Spec::DEFAULT
    },
    Run::Blocking(xreadgroup),
)];

const WORDS: Words = Words { name: "xreadgroup", new_entries: '>', takes_group: true };

/// The entries of one stream that a call requests.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    /// Entries that the group has not delivered yet.
    New,
    /// Entries after this ID that were delivered to the consumer and not acknowledged yet.
    Pending(StreamId),
}

/// The parameters of a call.
struct Request<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
    options: ReadOptions<'a>,
    now_ms: i64,
}

fn xreadgroup(call: &mut Call<'_, '_>) -> AttemptResult {
    let options = read_options(call.args, WORDS, call.keys.turn.now_ms)?;
    options.refuse_in_script(call.waiting, call.args)?;
    let (group, consumer) = options.group.ok_or("ERR Missing GROUP option for XREADGROUP")?;
    let request = Request { group, consumer, options, now_ms: call.keys.turn.clock_ms() };
    let wanted = read_ids(call, &request)?;
    for ((key, _), &wanted) in request.options.streams().zip(&wanted) {
        if let Some(stream) = call.keys.value::<Stream>(key)?
            && call.is_long_change(steps(stream, &request, wanted, call.steps_max()), stream.len())
        {
            return Ok(Attempt::Offload);
        }
    }
    let mark = call.reply.mark();
    let mut found = 0;
    for ((key, _), wanted) in options.streams().zip(wanted) {
        found += usize::from(deliver(call, &request, key, wanted)?);
    }
    if found > 0 {
        if call.reply.is_resp3() {
            call.reply.insert_map(mark, found);
        } else {
            call.reply.insert_array(mark, found);
        }
        return Ok(Attempt::Done);
    }
    Ok(match options.wait() {
        Some(wait) => Attempt::Wait(wait),
        None => {
            call.reply.null_array();
            Attempt::Done
        }
    })
}

/// Returns the number of entries of a stream that the call delivers; new entries are counted only until they exceed
/// `steps_max`.
fn steps(stream: &Stream, request: &Request<'_>, wanted: Wanted, steps_max: usize) -> usize {
    let Some(group) = stream.groups().get(request.group) else { return 0 };
    let count = if request.options.count == 0 { usize::MAX } else { request.options.count };
    match wanted {
        Wanted::Pending(_) => {
            let number = group.number_of(request.consumer);
            number.map_or(0, |number| group.consumer(number).pending_count()).min(count)
        }
        Wanted::New => {
            let Some(start) = group.last_id.next() else { return 0 };
            let counted_max = count.min(stream.len()).min(steps_max.saturating_mul(2).saturating_add(1));
            if counted_max <= steps_max {
                return counted_max;
            }
            let counted = stream.log().range(start..=StreamId::MAX).take(counted_max).count();
            if counted < counted_max {
                return counted;
            }
            let lag = group.lag(stream.log()).and_then(|lag| usize::try_from(lag).ok());
            counted.max(lag.unwrap_or(stream.len()).min(count))
        }
    }
}

/// Records that the consumer was seen, and writes the key in argument `arg` with the entries delivered to the consumer.
/// Returns false if there are no such entries.
fn deliver(
    call: &mut Call<'_, '_>,
    request: &Request<'_>,
    arg: usize,
    wanted: Wanted,
) -> Result<bool, CommandError> {
    let Call { args, keys, reply, .. } = call;
    let mut key = keys.key(arg);
    let is_journaled = key.is_journaled();
    let mut journaled = Vec::new();
    let mut position = None;
    let delivered = key.edit_unobserved(|stream: &mut Stream| {
        stream.edit_group(request.group, |log, group| {
            let (consumer, is_new) = see_consumer(group, request.consumer, request.now_ms);
            let has_new = || log.last_entry_id().is_some_and(|last| last > group.last_id);
            if matches!(wanted, Wanted::New) && !has_new() {
                return (is_new, false, false);
            }
            if !reply.is_resp3() {
                reply.array(2);
            }
            reply.bulk(args.at(arg));
            let is_change = match wanted {
                Wanted::New => {
                    let first = group.last_id.next();
                    deliver_new(log, group, request, consumer, reply);
                    position = Some((group.last_id, group.entries_read));
                    if let Some(first) = first.filter(|_| is_journaled && !request.options.no_ack) {
                        let read = group.pending(first..=group.last_id).map(|(id, &pending)| (id, pending));
                        // Another consumer may have claimed an entry before its delivery, and the entry may have been
                        // deleted.
                        let is_read = |&(id, pending): &(StreamId, Pending)| {
                            pending.consumer == consumer && log.entry(id).is_some()
                        };
                        journaled.extend(read.filter(is_read));
                    }
                    true
                }
                Wanted::Pending(after) => deliver_pending(log, group, request, consumer, after, reply),
            };
            (is_new, true, is_change)
        })
    })?;
    let (is_new, is_found, is_change) = delivered.flatten().expect("it was read under the same lock");
    if is_new {
        key.notify(Event::stream("xgroup-createconsumer"));
    }
    key.count_changes(u64::from(is_new) + u64::from(is_change));
    let (group, consumer) = (request.group, request.consumer);
    // A new consumer with pending entries needs no record: the record of a pending entry creates its consumer.
    if is_new && journaled.is_empty() {
        journal_consumer(&mut key, group, consumer);
    }
    journaled.into_iter().for_each(|(id, pending)| journal_pending(&mut key, group, consumer, id, pending));
    if let Some((last_id, entries_read)) = position {
        journal_position(&mut key, group, last_id, entries_read);
    }
    Ok(is_found)
}

/// Returns the requested entries of each stream, or an error if a stream does not have the group.
fn read_ids(call: &mut Call<'_, '_>, request: &Request<'_>) -> Result<Vec<Wanted>, CommandError> {
    let args = call.args;
    let mut wanted = Vec::new();
    for (key, id) in request.options.streams() {
        let stream = call.keys.read_value::<Stream>(key)?;
        if stream.and_then(|stream| stream.groups().get(request.group)).is_none() {
            return Err(no_key_or_group(args.at(key), request.group, "' in XREADGROUP with GROUP option"));
        }
        wanted.push(match args.at(id) {
            b"$" => {
                return Err("ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history \
                            of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ \
                            ID would just return an empty result set."
                    .into());
            }
            b"+" => {
                return Err("ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history \
                            of this consumer by specifying a proper ID, or use the > ID to get new messages. The + \
                            ID would just return an empty result set."
                    .into());
            }
            b">" => Wanted::New,
            id => match exact_id(id, 0)? {
                StreamId::MAX => Wanted::New,
                after => Wanted::Pending(after),
            },
        });
    }
    Ok(wanted)
}

/// Returns the number of a consumer, which is created if it is missing and marked as seen now, and whether it is new.
pub(super) fn see_consumer(group: &mut Group, name: &[u8], now_ms: i64) -> (ConsumerNumber, bool) {
    let known = group.number_of(name);
    let number = known.unwrap_or_else(|| group.add_consumer(name, now_ms));
    group.consumer_mut(number).seen_ms = now_ms;
    (number, known.is_none())
}

/// Delivers entries that the group has not delivered yet.
fn deliver_new(
    log: &Log,
    group: &mut Group,
    request: &Request<'_>,
    consumer: ConsumerNumber,
    reply: &mut Reply,
) {
    let start = group.last_id.next().expect("there are entries with greater IDs");
    let mark = reply.mark();
    let mut delivered = 0;
    for entry in log.range(start..=StreamId::MAX) {
        group.advance(log, entry.id);
        reply_entry(reply, &entry);
        if !request.options.no_ack {
            group.set_pending(entry.id, Pending { delivered_ms: request.now_ms, deliveries: 1, consumer });
            group.consumer_mut(consumer).active_ms = Some(request.now_ms);
        }
        delivered += 1;
        if delivered == request.options.count {
            break;
        }
    }
    reply.insert_array(mark, delivered);
}

/// Delivers again the entries that the consumer has not acknowledged yet. For a deleted entry, the reply contains only
/// the ID. Returns false, because this does not count as a change.
fn deliver_pending(
    log: &Log,
    group: &mut Group,
    request: &Request<'_>,
    consumer: ConsumerNumber,
    after: StreamId,
    reply: &mut Reply,
) -> bool {
    let start = after.next().expect("the greatest ID means new entries");
    let limit = if request.options.count == 0 { usize::MAX } else { request.options.count };
    let ids: Vec<StreamId> = group.consumer(consumer).pending(start..=StreamId::MAX).take(limit).collect();
    reply.array(ids.len());
    for id in ids {
        match log.entry(id) {
            Some(entry) => {
                reply_entry(reply, &entry);
                let mut pending =
                    *group.pending_entry(id).expect("a consumer's pending entries are the group's");
                pending.delivered_ms = request.now_ms;
                pending.deliveries = pending.deliveries.wrapping_add(1);
                group.set_pending(id, pending);
            }
            None => {
                reply.array(2);
                reply_id(reply, id);
                reply.null_array();
            }
        }
    }
    false
}
