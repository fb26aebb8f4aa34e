//! BF.EXISTS and BF.MEXISTS.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::entries::entry::EntryRef;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Variant;
use crate::types::sketches::Bloom;

const BF_EXISTS: Spec = Spec {
    name: "bf.exists",
    summary: "Returns whether a Bloom filter seems to contain an item.",
    since: "8.0.0",
    group: Group::Bloom,
    complexity: "O(H · L) for H hashes in each of L links.",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    syntax: "key item",
    example: Example { given: &["BF.ADD seen ann"], call: "BF.EXISTS seen ann", reply: "(integer) 1" },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(BF_EXISTS, Run::Keys(bf_exists)),
    Command::new(
        Spec {
            name: "bf.mexists",
            summary: "Returns for each item whether a Bloom filter seems to contain it.",
            complexity: "O(N · H · L) for N items and H hashes in each of L links.",
            arity: -3,
            syntax: "key item [item ...]",
            example: Example {
                given: &["BF.ADD seen ann"],
                call: "BF.MEXISTS seen ann bob",
                reply: "1) (integer) 1\n2) (integer) 0",
            },
            ..BF_EXISTS
        },
        Run::Keys(bf_mexists),
    ),
];

fn bf_exists(call: &mut Call<'_, '_>) -> CommandResult {
    reply(call);
    Ok(())
}

fn bf_mexists(call: &mut Call<'_, '_>) -> CommandResult {
    call.reply.array(call.args.len() - 2);
    reply(call);
    Ok(())
}

/// Replies for each argument from 2 on. As in RedisBloom, a value of another type contains no items.
fn reply(call: &mut Call<'_, '_>) {
    let filter = call.keys.read(1).and_then(EntryRef::aggregate).and_then(Bloom::of);
    for arg in 2..call.args.len() {
        call.reply.boolean(filter.is_some_and(|filter| filter.contains(call.args.at(arg))));
    }
}
