//! HRANDFIELD.

use ember_protocol::{Args, Reply};

use super::access;
use crate::algorithms::random::Random;
use crate::call::{Attempt, AttemptResult, Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{integer, is_large_count, is_word};
use crate::commands::drawn_reply;
use crate::commands::string::value;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::hash::{Field, Hash};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hrandfield",
        summary: "Returns random fields of a hash, distinct unless the count is negative.",
        since: "6.2.0",
        group: Group::Hash,
        complexity: "O(N) for N fields returned.",
        arity: -2,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        syntax: "key options:[count [WITHVALUES]]",
        example: Example { given: &["HSET user name Ann"], call: "HRANDFIELD user", reply: "\"name\"" },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: |args| is_large_count(args, 2), run: hrandfield },
)];

/// The requested number of fields, and whether the reply includes their values.
#[derive(Clone, Copy)]
struct Wanted {
    count: u64,
    may_repeat: bool,
    with_values: bool,
}

impl Wanted {
    fn parse(args: Args<'_>) -> Result<Wanted, CommandError> {
        let count = integer(args, 2)?;
        if count == i64::MIN {
            return Err(
                "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"
                    .into(),
            );
        }
        let with_values = args.len() == 4 && is_word(args, 3, "WITHVALUES");
        if args.len() > 3 && !with_values {
            return Err(CommandError::Syntax);
        }
        if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
            return Err("ERR value is out of range".into());
        }
        Ok(Wanted { count: count.unsigned_abs(), may_repeat: count < 0, with_values })
    }

    /// Returns the number of fields to draw from a hash with `len` fields.
    fn draws(self, len: usize) -> usize {
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        if self.may_repeat && len > 0 { count } else { count.min(len) }
    }
}

fn hrandfield(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    let wanted = if args.len() == 2 { None } else { Some(Wanted::parse(args)?) };
    // Removes or excludes all expired fields: if all fields had expired, a draw would never end.
    let keeps_expired = call.keys.turn.keeps_expired;
    if !keeps_expired {
        access::remove_expired(&mut call.keys.key(1), usize::MAX)?;
    }
    let steps_max = call.steps_max();
    if let Some(wanted) = wanted.filter(|wanted| wanted.draws(usize::MAX) > steps_max) {
        let hash = call.keys.value::<Hash>(1)?;
        if wanted.draws(hash.map_or(0, Hash::len)) > steps_max {
            call.keys.read(1);
            return Ok(Attempt::Offload);
        }
    }
    let mut random = Random::seeded(call.keys.turn.random.next_u64());
    let (bytes_max, limits) = (call.keys.turn.settings.string_bytes_max, call.keys.turn.settings.encoding);
    access::read(call, |hash, reply, expired_ms| {
        let due = hash.filter(|hash| keeps_expired && hash.is_due(expired_ms));
        let rest = due.map(|hash| hash.without_expired(expired_ms, &limits));
        let hash = rest.as_ref().or(hash).filter(|hash| !hash.is_empty());
        reply_fields(reply, hash, wanted, &mut random, bytes_max)
    })??;
    Ok(Attempt::Done)
}

/// Replies with random fields of a hash that contains no expired fields.
fn reply_fields(
    reply: &mut Reply,
    hash: Option<&Hash>,
    wanted: Option<Wanted>,
    random: &mut Random,
    bytes_max: usize,
) -> CommandResult {
    match (wanted, hash) {
        (None, hash) => {
            let field = hash.and_then(|hash| hash.random(random));
            value::reply(reply, field.map(|field| field.name));
            Ok(())
        }
        (Some(wanted), Some(hash)) if wanted.count > 0 && wanted.may_repeat => {
            drawn_reply::bounded(reply, wanted.count, bytes_max, |reply, bound| {
                reply_head(reply, wanted.count as usize, wanted);
                hash.draw(wanted.count, random, |field| {
                    reply_field(reply, field, wanted);
                    bound.holds(reply)
                });
            })
        }
        (Some(wanted), Some(hash)) => {
            reply_different(reply, hash, wanted, random);
            Ok(())
        }
        (Some(_), None) => {
            reply.array(0);
            Ok(())
        }
    }
}

/// Writes the head of a reply with `count` fields.
fn reply_head(reply: &mut Reply, count: usize, wanted: Wanted) {
    let is_flat = wanted.with_values && !reply.is_resp3();
    reply.array(if is_flat { count * 2 } else { count });
}

fn reply_different(reply: &mut Reply, hash: &Hash, wanted: Wanted, random: &mut Random) {
    let count = usize::try_from(wanted.count).map_or(hash.len(), |count| count.min(hash.len()));
    reply_head(reply, count, wanted);
    hash.draw_different(count, random, |field| reply_field(reply, field, wanted));
}

fn reply_field(reply: &mut Reply, field: Field<'_>, wanted: Wanted) {
    if wanted.with_values && reply.is_resp3() {
        reply.array(2);
    }
    value::reply(reply, Some(field.name));
    if wanted.with_values {
        value::reply(reply, Some(field.value));
    }
}
