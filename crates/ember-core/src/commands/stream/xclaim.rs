//! XCLAIM.

use ember_protocol::{Args, Reply};

use super::group_effects::{Claimed, journal_acknowledged, journal_consumer, journal_position};
use super::ids::{exact_id, integer_or, no_key_or_group, reply_entry, reply_id};
use super::xreadgroup::see_consumer;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::{is_word, names_many};
use crate::effects::events::Event;
use crate::error::{CommandError, quoted_up_to};
use crate::spec::{Command, Example, Flags, Group as CommandGroup, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::stream::{ConsumerNumber, Group, Log, Pending, Stream, StreamId};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "xclaim",
        summary: "Transfers pending entries to another consumer if they were idle for a minimum time.",
        since: "5.0.0",
        group: CommandGroup::Stream,
        complexity: "O(log P) for each entry, where P are pending",
        arity: -6,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
        tips: &["nondeterministic_output"],
        syntax: "key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID id]",
        example: Example {
            given: &[
                "XADD readings 1-1 a 1",
                "XGROUP CREATE readings workers 0",
                "XREADGROUP GROUP workers w1 STREAMS readings >",
            ],
            call: "XCLAIM readings workers w2 0 1-1 JUSTID",
            reply: "1) \"1-1\"",
        },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: names_many, run: xclaim },
)];

/// The parameters of a call.
struct Claim {
    ids: Vec<StreamId>,
    min_idle_ms: i64,
    delivered_ms: i64,
    deliveries: Option<u64>,
    is_forced: bool,
    ids_only: bool,
    last_id: StreamId,
    now_ms: i64,
}

fn read_claim(args: Args<'_>, now_ms: i64) -> Result<Claim, CommandError> {
    let min_idle_ms = integer_or(args, 4, "ERR Invalid min-idle-time argument for XCLAIM")?.max(0);
    // The first argument that is not an ID is the first option.
    let ids: Vec<StreamId> = args.skip(5).iter().map_while(|text| exact_id(text, 0).ok()).collect();
    let mut claim = Claim {
        min_idle_ms,
        delivered_ms: -1,
        deliveries: None,
        is_forced: false,
        ids_only: false,
        last_id: StreamId::MIN,
        now_ms,
        ids,
    };
    let mut arg = 5 + claim.ids.len();
    while arg < args.len() {
        let has_value = arg + 1 < args.len();
        if is_word(args, arg, "FORCE") {
            claim.is_forced = true;
        } else if is_word(args, arg, "JUSTID") {
            claim.ids_only = true;
        } else if is_word(args, arg, "IDLE") && has_value {
            arg += 1;
            let idle_ms = integer_or(args, arg, "ERR Invalid IDLE option argument for XCLAIM")?;
            claim.delivered_ms = now_ms.wrapping_sub(idle_ms);
        } else if is_word(args, arg, "TIME") && has_value {
            arg += 1;
            claim.delivered_ms = integer_or(args, arg, "ERR Invalid TIME option argument for XCLAIM")?;
        } else if is_word(args, arg, "RETRYCOUNT") && has_value {
            arg += 1;
            let count = integer_or(args, arg, "ERR Invalid RETRYCOUNT option argument for XCLAIM")?;
            claim.deliveries = u64::try_from(count).ok();
        } else if is_word(args, arg, "LASTID") && has_value {
            arg += 1;
            claim.last_id = exact_id(args.at(arg), 0)?;
        } else {
            let option = quoted_up_to(args.at(arg), usize::MAX);
            return Err(CommandError::quoting("ERR Unrecognized XCLAIM option '", option, "'"));
        }
        arg += 1;
    }
    // A time in the future is not an error, because clocks differ.
    if !(0..=now_ms).contains(&claim.delivered_ms) {
        claim.delivered_ms = now_ms;
    }
    Ok(claim)
}

fn xclaim(call: &mut Call<'_, '_>) -> AttemptResult {
    let (args, now_ms) = (call.args, call.keys.turn.clock_ms());
    let stream = call.keys.read_value::<Stream>(1)?;
    if stream.and_then(|stream| stream.groups().get(args.at(2))).is_none() {
        return Err(no_key_or_group(args.at(1), args.at(2), "'"));
    }
    let len = stream.map_or(0, Stream::len);
    if names_many(args) && call.is_long_change(args.len() - 5, len) {
        return Ok(Attempt::Offload);
    }
    let claim = read_claim(args, now_ms)?;
    let Call { keys, reply, .. } = call;
    let mut key = keys.key(1);
    let claimed = Claimed::of(&key);
    let outcome = key.edit_unobserved(|stream: &mut Stream| {
        stream.edit_group(args.at(2), |log, group| run(log, group, args.at(3), &claim, claimed, reply))
    })?;
    let Outcome { is_new, changes, position, claimed, deleted } =
        outcome.flatten().expect("it was read under the same lock");
    let (group, consumer) = (args.at(2), args.at(3));
    if is_new && !claimed.creates_consumer() {
        journal_consumer(&mut key, group, consumer);
    }
    if let Some((last_id, entries_read)) = position {
        journal_position(&mut key, group, last_id, entries_read);
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
    /// The group's new position, if it has changed.
    position: Option<(StreamId, Option<i64>)>,
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
    let moves_group = claim.last_id > group.last_id;
    if moves_group {
        group.last_id = claim.last_id;
    }
    let (consumer, is_new) = see_consumer(group, consumer, claim.now_ms);
    let mark = reply.mark();
    let mut deleted = Vec::new();
    for &id in &claim.ids {
        let Some(entry) = log.entry(id) else {
            if group.acknowledge(id) {
                deleted.push(id);
            }
            continue;
        };
        let Some(pending) = claimed_entry(group, id, consumer, claim) else { continue };
        group.set_pending(id, pending);
        group.consumer_mut(consumer).active_ms = Some(claim.now_ms);
        if claim.ids_only {
            reply_id(reply, id);
        } else {
            reply_entry(reply, &entry);
        }
        claimed.add(id, pending);
    }
    reply.insert_array(mark, claimed.len());
    let mut changes = (claimed.len() + deleted.len()) as u64;
    if changes == 0 {
        changes = u64::from(moves_group);
    }
    let position = moves_group.then_some((group.last_id, group.entries_read));
    Outcome { is_new, changes: changes + u64::from(is_new), position, claimed, deleted }
}

/// Returns the new pending state of an entry that is claimed; `None` if the entry cannot be claimed.
fn claimed_entry(group: &Group, id: StreamId, consumer: ConsumerNumber, claim: &Claim) -> Option<Pending> {
    let before = group.pending_entry(id);
    if let Some(before) = before {
        let idle_ms = claim.now_ms.wrapping_sub(before.delivered_ms);
        if claim.min_idle_ms != 0 && idle_ms < claim.min_idle_ms {
            return None;
        }
    } else if !claim.is_forced {
        return None;
    }
    // An entry that was not pending before counts as delivered once.
    let deliveries = before.map_or(1, |before| before.deliveries);
    let more = u64::from(!claim.ids_only);
    let deliveries = claim.deliveries.unwrap_or(deliveries.wrapping_add(more));
    Some(Pending { delivered_ms: claim.delivered_ms, deliveries, consumer })
}
