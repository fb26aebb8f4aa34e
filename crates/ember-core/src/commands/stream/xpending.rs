//! XPENDING.

use super::ids::{count, interval_last, interval_start, no_key_or_group, reply_id};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::{integer, is_word};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group as CommandGroup, KeyFlags, KeySpec, Spec};
use crate::types::stream::{Group, Pending, Stream, StreamId};
use ember_protocol::{Args, Reply};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "xpending",
        summary: "Returns the pending entries of a consumer group, as a summary or as a list.",
        since: "5.0.0",
        group: CommandGroup::Stream,
        complexity: "O(N) for N visited entries, or for N consumers in the summary",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        syntax: "key group filters:[[IDLE min-idle-time]@6.2.0 start end count [consumer]]",
        history: &[("6.2.0", "Added `IDLE`; `(` before an ID excludes it.")],
        example: Example {
            given: &[
                "XADD readings 1-1 a 1",
                "XGROUP CREATE readings workers 0",
                "XREADGROUP GROUP workers w1 STREAMS readings >",
            ],
            call: "XPENDING readings workers",
            reply: "1) (integer) 1\n2) \"1-1\"\n3) \"1-1\"\n4) 1) 1) \"w1\"\n      2) \"1\"",
        },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: |args| args.len() > 3, run: xpending },
)];

/// The filter of the pending entries to return.
struct Filter<'a> {
    min_idle_ms: i64,
    start: StreamId,
    last: StreamId,
    count: usize,
    consumer: Option<&'a [u8]>,
}

impl Filter<'_> {
    /// Returns the number of pending entries that a call visits.
    fn steps(&self, group: &Group) -> usize {
        let pending = match self.consumer {
            None => group.pending_count(),
            Some(name) => group.number_of(name).map_or(0, |number| group.consumer(number).pending_count()),
        };
        if self.min_idle_ms == 0 { pending.min(self.count) } else { pending }
    }
}

fn read_filter<'a>(args: Args<'a>) -> Result<Option<Filter<'a>>, CommandError> {
    if args.len() == 3 {
        return Ok(None);
    }
    if !(6..=9).contains(&args.len()) {
        return Err(CommandError::Syntax);
    }
    let mut first = 3;
    let mut min_idle_ms = 0;
    if is_word(args, 3, "IDLE") {
        min_idle_ms = integer(args, 4)?;
        if args.len() < 8 {
            return Err(CommandError::Syntax);
        }
        first = 5;
    }
    let count = count(args, first + 2)?;
    let start = interval_start(args.at(first))?;
    let last = interval_last(args.at(first + 1))?;
    Ok(Some(Filter { min_idle_ms, start, last, count, consumer: args.get(first + 3) }))
}

fn xpending(call: &mut Call<'_, '_>) -> AttemptResult {
    let (args, now_ms, steps_max) = (call.args, call.keys.turn.now_ms, call.steps_max());
    let filter = read_filter(args)?;
    let Call { keys, reply, .. } = call;
    let group = keys.read_value::<Stream>(1)?.and_then(|stream| stream.groups().get(args.at(2)));
    let group = group.ok_or_else(|| no_key_or_group(args.at(1), args.at(2), "'"))?;
    if filter.as_ref().is_some_and(|filter| filter.steps(group) > steps_max) {
        return Ok(Attempt::Offload);
    }
    match filter {
        None => reply_summary(reply, group),
        Some(filter) => reply_entries(reply, group, &filter, now_ms),
    }
    Ok(Attempt::Done)
}

/// Replies with the number of pending entries, the first and the last of their IDs, and the number per consumer.
fn reply_summary(reply: &mut Reply, group: &Group) {
    reply.array(4);
    reply.integer(group.pending_count() as i64);
    let mut all = group.pending(StreamId::MIN..=StreamId::MAX);
    let Some((first, _)) = all.next() else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    reply_id(reply, first);
    reply_id(reply, all.next_back().map_or(first, |(last, _)| last));
    let with_pending = || group.consumers().filter(|consumer| consumer.pending_count() > 0);
    reply.array(with_pending().count());
    for consumer in with_pending() {
        reply.array(2);
        reply.bulk(consumer.name());
        reply.bulk_integer(consumer.pending_count() as i64);
    }
}

/// Replies with the pending entries that match the filter.
fn reply_entries(reply: &mut Reply, group: &Group, filter: &Filter<'_>, now_ms: i64) {
    let mark = reply.mark();
    let mut left = filter.count;
    let mut reply_entry = |id: StreamId, pending: &Pending| {
        let idle_ms = now_ms.wrapping_sub(pending.delivered_ms);
        if filter.min_idle_ms == 0 || idle_ms >= filter.min_idle_ms {
            left -= 1;
            reply.array(4);
            reply_id(reply, id);
            reply.bulk(group.consumer(pending.consumer).name());
            reply.integer(idle_ms.max(0));
            reply.integer(pending.deliveries as i64);
        }
        left == 0
    };
    let ids = filter.start..=filter.last;
    match filter.consumer {
        _ if filter.count == 0 => {}
        None => {
            group.pending(ids).find(|(id, pending)| reply_entry(*id, pending));
        }
        Some(name) => {
            if let Some(number) = group.number_of(name) {
                let mut of_consumer = group.consumer(number).pending(ids);
                of_consumer
                    .find(|&id| group.pending_entry(id).is_some_and(|pending| reply_entry(id, pending)));
            }
        }
    }
    reply.insert_array(mark, filter.count - left);
}
