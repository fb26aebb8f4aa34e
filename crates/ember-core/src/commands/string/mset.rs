//! MSET, MSETNX.

use super::value;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

const MSET: Spec = Spec {
    name: "mset",
    summary: "Sets the values of several keys atomically, ignoring their types.",
    since: "1.0.1",
    group: Group::String,
    complexity: "O(N), N being the number of keys",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: &[KeySpec::from(1, 2, KeyFlags::OW.union(KeyFlags::UPDATE))],
    tips: &["request_policy:multi_shard", "response_policy:all_succeeded"],
    syntax: "key value [key value ...]",
    example: Example { given: &[], call: "MSET one 1 two 2", reply: "OK" },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(MSET, Run::Keys(mset)),
    Command::new(
        Spec {
            name: "msetnx",
            summary: "Sets the values of several keys atomically, only if all of them are missing.",
            keys: &[KeySpec::from(1, 2, KeyFlags::OW.union(KeyFlags::INSERT))],
            tips: &["request_policy:multi_shard", "response_policy:agg_min"],
            example: Example { given: &["SET two 2"], call: "MSETNX one 1 two other", reply: "(integer) 0" },
            ..MSET
        },
        Run::Keys(msetnx),
    ),
];

fn mset(call: &mut Call<'_, '_>) -> CommandResult {
    check_pairs(call, "mset")?;
    set_all(call);
    call.reply.ok();
    Ok(())
}

fn msetnx(call: &mut Call<'_, '_>) -> CommandResult {
    check_pairs(call, "msetnx")?;
    let all_absent = (1..call.args.len()).step_by(2).all(|arg| !call.keys.key(arg).exists());
    if all_absent {
        set_all(call);
    }
    call.reply.integer(i64::from(all_absent));
    Ok(())
}

fn check_pairs(call: &Call<'_, '_>, name: &'static str) -> CommandResult {
    if call.args.len() % 2 == 1 { Ok(()) } else { Err(CommandError::WrongArity(name.into())) }
}

fn set_all(call: &mut Call<'_, '_>) {
    for arg in (1..call.args.len()).step_by(2) {
        value::store(&mut call.keys.key(arg), value::of_argument(call.args, arg + 1), None);
    }
}
