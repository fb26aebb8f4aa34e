//! PFCOUNT.

use super::value::bytes;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::string::value::edit_bytes;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::hyperloglog::{self, Union};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "pfcount",
        summary: "Estimates how many different elements were added to HyperLogLogs.",
        since: "2.8.9",
        group: Group::HyperLogLog,
        complexity: "O(1) for one key whose estimate is cached, otherwise O(N) for N keys with 16384 registers each",
        arity: -2,
        flags: Flags::READONLY.union(Flags::MAY_REPLICATE),
        keys: &[KeySpec::from(1, 1, KeyFlags::RW.union(KeyFlags::ACCESS)).with_notes(
            "RW because it may change the internal representation of the key, and propagate to replicas",
        )],
        syntax: "key [key ...]",
        example: Example {
            given: &["PFADD visitors ann bob cid", "PFADD members bob dan"],
            call: "PFCOUNT visitors members",
            reply: "(integer) 4",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(pfcount),
)];

fn pfcount(call: &mut Call<'_, '_>) -> CommandResult {
    let estimate = if call.args.len() == 2 { estimate_one(call)? } else { estimate_union(call)? };
    call.reply.integer(estimate as i64);
    Ok(())
}

/// Returns the estimate for one key, and caches it in the key's value.
fn estimate_one(call: &mut Call<'_, '_>) -> Result<u64, CommandError> {
    let Some(bytes) = bytes(call.keys.read(1))? else { return Ok(0) };
    if let Some(kept) = hyperloglog::kept_estimate(bytes) {
        return Ok(kept);
    }
    let estimate = hyperloglog::estimate(bytes)?;
    edit_bytes(&mut call.keys.key(1), 0, |bytes| hyperloglog::keep_estimate(bytes, estimate));
    Ok(estimate)
}

fn estimate_union(call: &mut Call<'_, '_>) -> Result<u64, CommandError> {
    let mut union = Union::default();
    for arg in 1..call.args.len() {
        if let Some(bytes) = bytes(call.keys.read(arg))? {
            union.add(bytes)?;
        }
    }
    Ok(union.estimate())
}
