//! PFMERGE.

use super::value::bytes;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::string::value::set_raw;
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::hyperloglog::{self, Encoding, Union};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "pfmerge",
        summary: "Merges HyperLogLogs into one.",
        since: "2.8.9",
        group: Group::HyperLogLog,
        complexity: "O(N) for N keys with 16384 registers each",
        arity: -2,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[
            KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::INSERT)),
            KeySpec::from(2, 1, KeyFlags::RO.union(KeyFlags::ACCESS)),
        ],
        syntax: "destkey [sourcekey [sourcekey ...]]",
        example: Example {
            given: &["PFADD visitors ann bob cid", "PFADD members bob dan"],
            call: "PFMERGE all visitors members",
            reply: "OK",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(pfmerge),
)];

fn pfmerge(call: &mut Call<'_, '_>) -> CommandResult {
    let sparse_bytes_max = call.keys.turn.settings.encoding.hll_sparse_max_bytes;
    let mut union = Union::default();
    let mut is_dense = false;
    for arg in 1..call.args.len() {
        if let Some(bytes) = bytes(call.keys.read(arg))? {
            is_dense |= hyperloglog::encoding(bytes) == Some(Encoding::Dense);
            union.add(bytes)?;
        }
    }
    let mut key = call.keys.key(1);
    let mut merged = bytes(key.entry())?.map_or_else(hyperloglog::empty, <[u8]>::to_vec);
    if is_dense {
        hyperloglog::convert_to_dense(&mut merged)?;
    }
    for observation in union.observations() {
        hyperloglog::observe(&mut merged, observation, sparse_bytes_max)?;
    }
    hyperloglog::forget_estimate(&mut merged);
    let expire_at_ms = key.expire_at_ms();
    set_raw(&mut key, merged, expire_at_ms);
    key.notify(Event::string("pfadd"));
    call.reply.ok();
    Ok(())
}
