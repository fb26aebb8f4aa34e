//! CF.EXISTS, CF.MEXISTS and CF.COUNT.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::entries::entry::EntryRef;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Variant;
use crate::types::sketches::Cuckoo;

const CF_EXISTS: Spec = Spec {
    name: "cf.exists",
    summary: "Returns whether a cuckoo filter seems to contain an item.",
    since: "8.0.0",
    group: Group::Cuckoo,
    complexity: "O(T) for T tables.",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    syntax: "key item",
    example: Example { given: &["CF.ADD seen ann"], call: "CF.EXISTS seen ann", reply: "(integer) 1" },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(CF_EXISTS, Run::Keys(cf_exists)),
    Command::new(
        Spec {
            name: "cf.mexists",
            summary: "Returns for each item whether a cuckoo filter seems to contain it.",
            complexity: "O(N · T) for N items and T tables.",
            arity: -3,
            syntax: "key item [item ...]",
            example: Example {
                given: &["CF.ADD seen ann"],
                call: "CF.MEXISTS seen ann bob",
                reply: "1) (integer) 1\n2) (integer) 0",
            },
            ..CF_EXISTS
        },
        Run::Keys(cf_mexists),
    ),
    Command::new(
        Spec {
            name: "cf.count",
            summary: "Returns an estimate of how often an item is in a cuckoo filter.",
            example: Example {
                given: &["CF.INSERT seen ITEMS ann ann"],
                call: "CF.COUNT seen ann",
                reply: "(integer) 2",
            },
            ..CF_EXISTS
        },
        Run::Keys(cf_count),
    ),
];

/// Returns the filter in argument 1. As in RedisBloom, a value of another type contains no items.
fn filter<'k>(call: &'k mut Call<'_, '_>) -> Option<&'k Cuckoo> {
    call.keys.read(1).and_then(EntryRef::aggregate).and_then(Cuckoo::of)
}

fn cf_exists(call: &mut Call<'_, '_>) -> CommandResult {
    let item = call.args.at(2);
    let contains = filter(call).is_some_and(|filter| filter.contains(item));
    call.reply.boolean(contains);
    Ok(())
}

fn cf_mexists(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let filter = filter(call);
    let contained: Vec<bool> =
        (2..args.len()).map(|arg| filter.is_some_and(|filter| filter.contains(args.at(arg)))).collect();
    call.reply.array(contained.len());
    contained.into_iter().for_each(|contains| call.reply.boolean(contains));
    Ok(())
}

fn cf_count(call: &mut Call<'_, '_>) -> CommandResult {
    let item = call.args.at(2);
    let count = filter(call).map_or(0, |filter| filter.count(item));
    call.reply.integer(count.cast_signed());
    Ok(())
}
