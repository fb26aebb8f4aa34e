//! XAUTOCLAIM.

use ember_protocol::{Args, Reply};

use super::group_effects::{Claimed, journal_acknowledged, journal_consumer};
use super::ids::{integer_or, interval_start, no_key_or_group, reply_entry, reply_id};
use super::xreadgroup::see_consumer;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group as CommandGroup, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::stream::{Group, Log, Pending, Stream, StreamId};

/// The default value of COUNT.
const COUNT: u64 = 100;
/// The maximum number of pending entries visited per entry of COUNT.
const ATTEMPTS_FACTOR: u64 = 10;
/// The maximum value of COUNT.
const COUNT_MAX: u64 = i64::MAX as u64 / 16;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "xautoclaim",
        summary: "Transfers pending entries that were idle for a minimum time to another consumer; returns an ID to continue from.",
        since: "6.2.0",
        group: CommandGroup::Stream,
        complexity: "O(COUNT log P), where P entries are pending",
        arity: -6,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
        tips: &["nondeterministic_output"],
        syntax: "key group consumer min-idle-time start [COUNT count] [JUSTID]",
        history: &[("7.0.0", "The reply has the IDs of deleted entries, which are pending no longer.")],
        example: Example {
            given: &[
                "XADD readings 1-1 a 1",
                "XGROUP CREATE readings workers 0",
                "XREADGROUP GROUP workers w1 STREAMS readings >",
            ],
            call: "XAUTOCLAIM readings workers w2 0 0 JUSTID",
            reply: "1) \"0-0\"\n2) 1) \"1-1\"\n3) (empty array)",
        },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: |args| args.len() > 6, run: xautoclaim },
)];

/// The parameters of a call.
struct Claim {
    min_idle_ms: i64,
    start: StreamId,
    count: u64,
    ids_only: bool,
    now_ms: i64,
}

impl Claim {
    /// Returns the approximate number of steps: one step for each claimed entry, or for several visited entries that
    /// are not idle for long enough.
    fn steps(&self, group: &Group) -> usize {
        const CHECKS_PER_STEP: usize = 8;
        let pending = group.pending_count();
        let at_most = |count: u64| usize::try_from(count).unwrap_or(usize::MAX).min(pending);
        let looks = if self.min_idle_ms == 0 { 0 } else { at_most(self.count * ATTEMPTS_FACTOR) };
        at_most(self.count).max(looks / CHECKS_PER_STEP)
    }
}

fn read_claim(args: Args<'_>, now_ms: i64) -> Result<Claim, CommandError> {
    let min_idle_ms = integer_or(args, 4, "ERR Invalid min-idle-time argument for XAUTOCLAIM")?.max(0);
    let start = interval_start(args.at(5))?;
    let mut claim = Claim { min_idle_ms, start, count: COUNT, ids_only: false, now_ms };
    let mut arg = 6;
    while arg < args.len() {
        if is_word(args, arg, "COUNT") && arg + 1 < args.len() {
            arg += 1;
            let text = "ERR COUNT must be > 0";
            let count = u64::try_from(integer_or(args, arg, text)?).unwrap_or(0);
            claim.count = Some(count).filter(|count| (1..=COUNT_MAX).contains(count)).ok_or(text)?;
        } else if is_word(args, arg, "JUSTID") {
            claim.ids_only = true;
        } else {
            return Err(CommandError::Syntax);
        }
        arg += 1;
    }
    Ok(claim)
}

fn xautoclaim(call: &mut Call<'_, '_>) -> AttemptResult {
    let (args, now_ms) = (call.args, call.keys.turn.clock_ms());
    let claim = read_claim(args, now_ms)?;
    let stream = call.keys.read_value::<Stream>(1)?;
    let Some((stream, group)) = stream.and_then(|stream| Some((stream, stream.groups().get(args.at(2))?)))
    else {
        return Err(no_key_or_group(args.at(1), args.at(2), "'"));
    };
    let (steps, len) = (claim.steps(group), stream.len().max(group.pending_count()));
    if call.is_long_change(steps, len) {
        return Ok(Attempt::Offload);
    }
    let Call { keys, reply, .. } = call;
    let mut key = keys.key(1);
    let claimed = Claimed::of(&key);
    let outcome = key.edit_unobserved(|stream: &mut Stream| {
        stream.edit_group(args.at(2), |log, group| run(log, group, args.at(3), &claim, claimed, reply))
    })?;
    let Outcome { is_new, changes, claimed, deleted } =
        outcome.flatten().expect("it was read under the same lock");
    let (group, consumer) = (args.at(2), args.at(3));
    if is_new && !claimed.creates_consumer() {
        journal_consumer(&mut key, group, consumer);
    }
    claimed.journal(&mut key, group, consumer);
    journal_acknowledged(&mut key, group, &deleted);
    if is_new {
        key.notify(Event::stream("xgroup-createconsumer"));
    }
    key.count_changes(changes);
    Ok(Attempt::Done)
}

/// The changes that a claim has made.
struct Outcome {
    /// Whether the claim has created the consumer.
    is_new: bool,
    changes: u64,
    claimed: Claimed,
    /// The entries that were removed from the pending entries, because they were deleted from the stream.
    deleted: Vec<StreamId>,
}

/// Claims entries and writes the reply.
fn run(
    log: &Log,
    group: &mut Group,
    consumer: &[u8],
    claim: &Claim,
    mut claimed: Claimed,
    reply: &mut Reply,
) -> Outcome {
    let (consumer, is_new) = see_consumer(group, consumer, claim.now_ms);
    let mut entries = Reply::new(reply.protocol());
    let mut deleted = Vec::new();
    let mut left = claim.count;
    let mut attempts = claim.count * ATTEMPTS_FACTOR;
    let mut next = Some(claim.start);
    while attempts > 0 && left > 0 {
        attempts -= 1;
        let found = next.and_then(|start| group.pending(start..=StreamId::MAX).next());
        let Some((id, &before)) = found else {
            next = None;
            break;
        };
        next = id.next();
        let Some(entry) = log.entry(id) else {
            group.acknowledge(id);
            deleted.push(id);
            left -= 1;
            continue;
        };
        if claim.min_idle_ms != 0 && claim.now_ms.wrapping_sub(before.delivered_ms) < claim.min_idle_ms {
            continue;
        }
        let deliveries = before.deliveries.wrapping_add(u64::from(!claim.ids_only));
        let pending = Pending { delivered_ms: claim.now_ms, deliveries, consumer };
        group.set_pending(id, pending);
        group.consumer_mut(consumer).active_ms = Some(claim.now_ms);
        if claim.ids_only {
            reply_id(&mut entries, id);
        } else {
            reply_entry(&mut entries, &entry);
        }
        claimed.add(id, pending);
        left -= 1;
    }
    let following = next.and_then(|start| group.pending(start..=StreamId::MAX).next());
    reply.array(3);
    reply_id(reply, following.map_or(StreamId::MIN, |(id, _)| id));
    reply.array(claimed.len());
    reply.append(&entries);
    reply.array(deleted.len());
    deleted.iter().for_each(|&id| reply_id(reply, id));
    Outcome { is_new, changes: u64::from(is_new) + (claimed.len() + deleted.len()) as u64, claimed, deleted }
}
