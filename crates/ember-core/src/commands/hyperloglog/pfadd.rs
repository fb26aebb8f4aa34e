//! PFADD.

use super::value::bytes;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::string::value::{edit_bytes, set_raw};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Key;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::hyperloglog::{self, Encoding, Observation};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "pfadd",
        summary: "Adds elements to a HyperLogLog and returns 1 if that changes its estimate.",
        since: "2.8.9",
        group: Group::HyperLogLog,
        complexity: "O(1) for each element",
        arity: -2,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        syntax: "key [element [element ...]]",
        example: Example { given: &[], call: "PFADD visitors ann bob cid", reply: "(integer) 1" },
        ..Spec::DEFAULT
    },
    Run::Keys(pfadd),
)];

fn pfadd(call: &mut Call<'_, '_>) -> CommandResult {
    let observations: Vec<Observation> = call.args.skip(2).iter().map(Observation::of).collect();
    let sparse_bytes_max = call.keys.turn.settings.encoding.hll_sparse_max_bytes;
    let mut key = call.keys.key(1);
    let is_change = observe(&mut key, &observations, sparse_bytes_max)?;
    if is_change {
        key.notify(Event::string("pfadd"));
    }
    call.reply.integer(i64::from(is_change));
    Ok(())
}

/// Adds elements to the HyperLogLog of a key, which is created if it is missing; returns whether this has changed the
/// key.
fn observe(
    key: &mut Key<'_>,
    observations: &[Observation],
    sparse_bytes_max: usize,
) -> Result<bool, CommandError> {
    let present = bytes(key.entry())?;
    if let Some(bytes) = present
        && hyperloglog::encoding(bytes) == Some(Encoding::Dense)
    {
        let has_change =
            observations.iter().any(|&observation| hyperloglog::changes_dense(bytes, observation));
        if has_change {
            edit_bytes(key, 0, |bytes| {
                observations.iter().for_each(|&observation| {
                    hyperloglog::observe_dense(bytes, observation);
                });
                hyperloglog::forget_estimate(bytes);
            });
        }
        return Ok(has_change);
    }
    let mut is_change = present.is_none();
    let mut bytes = present.map_or_else(hyperloglog::empty, <[u8]>::to_vec);
    for &observation in observations {
        is_change |= hyperloglog::observe(&mut bytes, observation, sparse_bytes_max)?;
    }
    if is_change {
        hyperloglog::forget_estimate(&mut bytes);
        let expire_at_ms = key.expire_at_ms();
        set_raw(key, bytes, expire_at_ms);
    }
    Ok(is_change)
}
