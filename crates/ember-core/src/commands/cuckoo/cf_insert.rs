//! CF.INSERT and CF.INSERTNX.

use ember_protocol::number;

use super::{CAPACITY_DEFAULT, Insertion, insert};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::sketch::letter;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::cuckoo::BUCKET_SIZE_DEFAULT;

const CF_INSERT: Spec = Spec {
    name: "cf.insert",
    summary: "Adds items to a cuckoo filter, even if the filter contains them, creating the key if it is missing; returns \
              for each item whether it was added.",
    since: "8.0.0",
    group: Group::Cuckoo,
    complexity: "O(N · (T + I)) for N items, T tables and I iterations.",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    syntax: "key [CAPACITY capacity] [NOCREATE] <ITEMS item [item ...]>",
    example: Example {
        given: &[],
        call: "CF.INSERT seen CAPACITY 1000 ITEMS ann bob",
        reply: "1) (integer) 1\n2) (integer) 1",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(CF_INSERT, Run::Keys(cf_insert)),
    Command::new(
        Spec {
            name: "cf.insertnx",
            summary: "Adds items to a cuckoo filter that does not seem to contain them, creating the key if it is missing; \
                      returns for each item whether it was added.",
            example: Example {
                given: &["CF.ADD seen ann"],
                call: "CF.INSERTNX seen ITEMS ann bob",
                reply: "1) (integer) 0\n2) (integer) 1",
            },
            ..CF_INSERT
        },
        Run::Keys(cf_insertnx),
    ),
];

fn cf_insert(call: &mut Call<'_, '_>) -> CommandResult {
    parse_and_insert(call, false, "cf.insert")
}

fn cf_insertnx(call: &mut Call<'_, '_>) -> CommandResult {
    parse_and_insert(call, true, "cf.insertnx")
}

fn parse_and_insert(call: &mut Call<'_, '_>, is_unique: bool, event: &'static str) -> CommandResult {
    let args = call.args;
    let arity = || CommandError::WrongArity(event.into());
    let (mut capacity, mut creates) = (CAPACITY_DEFAULT, true);
    let mut at = 2;
    // As in RedisBloom, the first letters distinguish the options.
    while letter(args, at, 0) != b'i' {
        at += match letter(args, at, 0) {
            b'c' => {
                let number = number::parse_i64(args.get(at + 1).ok_or_else(arity)?).ok_or("Bad capacity")?;
                let number =
                    u64::try_from(number).ok().filter(|&number| number >= 2 * u64::from(BUCKET_SIZE_DEFAULT));
                capacity = number.ok_or("Capacity must be at least (BucketSize * 2)")?;
                2
            }
            b'n' => {
                creates = false;
                1
            }
            _ => return Err("Unknown argument received".into()),
        };
        if at == args.len() {
            return Err(arity());
        }
    }
    if at + 1 == args.len() {
        return Err(arity());
    }
    let capacity = creates.then_some(capacity);
    insert(call, at + 1, Insertion { event, capacity, is_unique, is_multi: true })
}
