//! BF.INSERT.

use ember_protocol::number;

use super::{Creation, expansion, insert};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::sketch::letter;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "bf.insert",
        summary: "Adds items to a Bloom filter, creating the key with the given parameters if it is missing; returns for \
                  each item whether the filter did not seem to contain it.",
        since: "8.0.0",
        group: Group::Bloom,
        complexity: "O(N · H · L) for N items and H hashes in each of L links.",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        syntax: "key [CAPACITY capacity] [ERROR error] [EXPANSION expansion] [NOCREATE] [NONSCALING] \
                 <ITEMS item [item ...]>",
        example: Example {
            given: &[],
            call: "BF.INSERT seen CAPACITY 1000 ERROR 0.001 ITEMS ann bob",
            reply: "1) (integer) 1\n2) (integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(bf_insert),
)];

fn bf_insert(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let arity = || CommandError::WrongArity("bf.insert".into());
    let mut creation = Creation::DEFAULT;
    let mut creates = true;
    let mut capacity = creation.capacity as i64;
    let mut at = 2;
    // As in RedisBloom, single letters distinguish the options.
    while letter(args, at, 0) != b'i' {
        let value = || args.get(at + 1).ok_or_else(arity);
        at += match letter(args, at, 0) {
            b'e' if letter(args, at, 1) == b'r' => {
                creation.error = number::parse_f64(value()?).ok_or("Bad error rate")?;
                2
            }
            b'e' => {
                // An integer that is not a valid factor is refused after all options are parsed, like the other invalid
                // values.
                let number = number::parse_i64(value()?).ok_or("Bad expansion")?;
                creation.expansion =
                    if number < 1 { 0 } else { expansion(value()?).ok_or("Bad expansion")? };
                2
            }
            b'c' => {
                capacity = number::parse_i64(value()?).ok_or("Bad capacity")?;
                2
            }
            b'n' if letter(args, at, 2) == b'c' => {
                creates = false;
                1
            }
            b'n' => {
                creation.is_scaling = false;
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
    let is_rate = creation.error > 0.0 && creation.error < 1.0;
    if !is_rate || capacity < 1 || creation.expansion == 0 {
        return Err("Bad argument received".into());
    }
    creation.capacity = capacity as u64;
    insert(call, at + 1, creates.then_some(creation), true, "bf.insert")
}
