//! CF.ADD and CF.ADDNX.

use super::{CAPACITY_DEFAULT, Insertion, insert};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

const CF_ADD: Spec = Spec {
    name: "cf.add",
    summary: "Adds an item to a cuckoo filter, even if the filter contains it, creating the key if it is missing.",
    since: "8.0.0",
    group: Group::Cuckoo,
    complexity: "O(T + I) for T tables and I iterations.",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    syntax: "key item",
    example: Example { given: &[], call: "CF.ADD seen ann", reply: "(integer) 1" },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(CF_ADD, Run::Keys(cf_add)),
    Command::new(
        Spec {
            name: "cf.addnx",
            summary: "Adds an item to a cuckoo filter that does not seem to contain it, creating the key if it is missing; \
                      returns whether it was added.",
            example: Example { given: &["CF.ADD seen ann"], call: "CF.ADDNX seen ann", reply: "(integer) 0" },
            ..CF_ADD
        },
        Run::Keys(cf_addnx),
    ),
];

const ADD: Insertion =
    Insertion { event: "cf.add", capacity: Some(CAPACITY_DEFAULT), is_unique: false, is_multi: false };

fn cf_add(call: &mut Call<'_, '_>) -> CommandResult {
    insert(call, 2, ADD)
}

fn cf_addnx(call: &mut Call<'_, '_>) -> CommandResult {
    insert(call, 2, Insertion { event: "cf.addnx", is_unique: true, ..ADD })
}
