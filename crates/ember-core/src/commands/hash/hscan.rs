//! HSCAN.

use ember_protocol::Reply;

use super::access;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::cursor;
use crate::commands::element_scan::{
    FEW_ELEMENTS, ScanOptions, count_of, is_long, write_nothing, write_page,
};
use crate::commands::string::value;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::hash::Hash;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hscan",
        summary: "Returns some of the fields of a hash with their values, and a cursor to continue from; a \
                  whole iteration returns each field that existed throughout.",
        since: "2.8.0",
        group: Group::Hash,
        complexity: "O(COUNT) for a call, O(N) for a whole iteration over N fields; up to hash-max-listpack-entries \
                     are returned at once.",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        syntax: "key cursor [MATCH pattern] [COUNT count] [NOVALUES]@7.4.0",
        history: &[("7.4.0", "Option `NOVALUES`.")],
        example: Example {
            given: &["HSET user name Ann age 30"],
            call: "HSCAN user 0 MATCH n*",
            reply: "1) \"0\"\n2) 1) \"name\"\n   2) \"Ann\"",
        },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: |args| count_of(args) > FEW_ELEMENTS, run: hscan },
)];

fn hscan(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    let from = cursor(args, 2)?;
    if is_long::<Hash>(call, count_of(call.args)) {
        return Ok(Attempt::Offload);
    }
    access::read(call, |hash, reply, expired_ms| {
        // As in Redis, the options are not parsed if the key is missing.
        let Some(hash) = hash else {
            write_nothing(reply);
            return Ok::<(), CommandError>(());
        };
        let (options, without_values) = ScanOptions::parse_with(args, 3, Some("NOVALUES"))?;
        let mut found = Reply::new(reply.protocol());
        let mut count = 0;
        let next = hash.scan(from, options.count, |field| {
            if field.is_expired(expired_ms) || !options.accept(field.name.bytes(&mut itoa::Buffer::new())) {
                return;
            }
            value::reply(&mut found, Some(field.name));
            count += 1;
            if !without_values {
                value::reply(&mut found, Some(field.value));
                count += 1;
            }
        });
        write_page(reply, next, &found, count);
        Ok(())
    })?
    .map(|()| Attempt::Done)
}
