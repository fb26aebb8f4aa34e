//! SSCAN.

use ember_protocol::Reply;

use super::write_member;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::cursor;
use crate::commands::element_scan::{
    FEW_ELEMENTS, ScanOptions, count_of, is_long, write_nothing, write_page,
};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::set::Set;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "sscan",
        summary: "Returns some of the members of a set and a cursor to continue from; a whole iteration \
                  returns each member that existed throughout.",
        since: "2.8.0",
        group: Group::Set,
        complexity: "O(COUNT) for a call, O(N) for a whole iteration over N members.",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        syntax: "key cursor [MATCH pattern] [COUNT count]",
        example: Example {
            given: &["SADD tags rust cache fast"],
            call: "SSCAN tags 0 MATCH *a*",
            reply: "1) \"0\"\n2) 1) \"cache\"\n   2) \"fast\"",
        },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: |args| count_of(args) > FEW_ELEMENTS, run: sscan },
)];

fn sscan(call: &mut Call<'_, '_>) -> AttemptResult {
    let cursor = cursor(call.args, 2)?;
    if is_long::<Set>(call, count_of(call.args)) {
        return Ok(Attempt::Offload);
    }
    let Some(set) = call.keys.read_value::<Set>(1)? else {
        write_nothing(call.reply);
        return Ok(Attempt::Done);
    };
    let options = ScanOptions::parse(call.args, 3)?;
    let mut members = Reply::new(call.reply.protocol());
    let mut count = 0;
    let next = set.scan(cursor, options.count, |member| {
        if options.accept(member.bytes(&mut itoa::Buffer::new())) {
            write_member(&mut members, member);
            count += 1;
        }
    });
    write_page(call.reply, next, &members, count);
    Ok(Attempt::Done)
}
