//! HSCAN.

use ember_protocol::{Args, Mark, Reply};

use super::access;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{cursor, integer, is_word};
use crate::commands::string::value;
use crate::error::CommandError;
use crate::glob::{self, Case};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::hash::Field;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hscan",
        summary: "Returns some of the fields of a hash with their values, and a cursor to go on from; a whole \
                  iteration returns each field that was there all the time.",
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
    Run::Keys(hscan),
)];

/// `COUNT` when it is not given.
const COUNT_DEFAULT: usize = 10;

struct Options<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
    with_values: bool,
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>) -> Result<Options<'a>, CommandError> {
        let mut options = Options { pattern: None, count: COUNT_DEFAULT, with_values: true };
        let mut arg = 3;
        while arg < args.len() {
            let has_next = arg + 1 < args.len();
            if is_word(args, arg, "COUNT") && has_next {
                let count = integer(args, arg + 1)?;
                options.count =
                    usize::try_from(count).ok().filter(|&count| count > 0).ok_or(CommandError::Syntax)?;
                arg += 2;
            } else if is_word(args, arg, "MATCH") && has_next {
                options.pattern = Some(args.at(arg + 1)).filter(|pattern| !glob::matches_all(pattern));
                arg += 2;
            } else if is_word(args, arg, "NOVALUES") {
                options.with_values = false;
                arg += 1;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }

    fn accept(&self, field: &Field<'_>) -> bool {
        self.pattern.is_none_or(|pattern| {
            let mut digits = itoa::Buffer::new();
            glob::matches(pattern, value::bytes(field.name, &mut digits), Case::Sensitive)
        })
    }
}

fn hscan(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let from = cursor(args, 2)?;
    access::read(call, |hash, reply, now_ms| {
        // As in Redis, nobody looks at the options when there is nothing to look for.
        let Some(hash) = hash else {
            reply_found(reply, 0, 0, &Reply::new(reply.protocol()));
            return Ok(());
        };
        let options = Options::parse(args)?;
        let mut found = Reply::new(reply.protocol());
        let mut len = 0;
        let next = hash.scan(from, options.count, |field| {
            if field.is_expired(now_ms) || !options.accept(&field) {
                return;
            }
            value::reply(&mut found, Some(field.name));
            len += 1;
            if options.with_values {
                value::reply(&mut found, Some(field.value));
                len += 1;
            }
        });
        reply_found(reply, next, len, &found);
        Ok(())
    })?
}

fn reply_found(reply: &mut Reply, cursor: u64, len: usize, found: &Reply) {
    reply.array(2);
    reply.bulk(itoa::Buffer::new().format(cursor).as_bytes());
    reply.array(len);
    reply.append_from(found, Mark::default(), found.mark());
}
