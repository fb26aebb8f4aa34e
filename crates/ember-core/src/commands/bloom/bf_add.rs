//! BF.ADD and BF.MADD.

use super::{Creation, insert};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

const BF_ADD: Spec = Spec {
    name: "bf.add",
    summary: "Adds an item to a Bloom filter, creating the key if it is missing; returns whether the filter did not \
              seem to contain the item.",
    since: "8.0.0",
    group: Group::Bloom,
    complexity: "O(H · L) for H hashes in each of L links.",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    syntax: "key item",
    example: Example { given: &[], call: "BF.ADD seen ann", reply: "(integer) 1" },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(BF_ADD, Run::Keys(bf_add)),
    Command::new(
        Spec {
            name: "bf.madd",
            summary: "Adds items to a Bloom filter, creating the key if it is missing; returns for each item whether the \
                      filter did not seem to contain it.",
            complexity: "O(N · H · L) for N items and H hashes in each of L links.",
            arity: -3,
            syntax: "key item [item ...]",
            example: Example {
                given: &["BF.ADD seen ann"],
                call: "BF.MADD seen ann bob",
                reply: "1) (integer) 0\n2) (integer) 1",
            },
            ..BF_ADD
        },
        Run::Keys(bf_madd),
    ),
];

fn bf_add(call: &mut Call<'_, '_>) -> CommandResult {
    insert(call, 2, Some(Creation::DEFAULT), false, "bf.add")
}

fn bf_madd(call: &mut Call<'_, '_>) -> CommandResult {
    insert(call, 2, Some(Creation::DEFAULT), true, "bf.madd")
}
