//! SINTER, SINTERSTORE and SINTERCARD.

use std::ops::ControlFlow;

use super::{sources, write_member};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::{integer, is_word};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::set::{Set, algebra};

const COMPLEXITY: &str = "O(N*M) at worst, N being the members of the smallest set and M the sets.";

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "sinter",
            summary: "Returns the intersection of several sets.",
            since: "1.0.0",
            group: Group::Set,
            complexity: COMPLEXITY,
            arity: -2,
            flags: Flags::READONLY,
            keys: &[KeySpec::from(1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))],
            tips: &["nondeterministic_output_order"],
            syntax: "key [key ...]",
            example: Example {
                given: &["SADD even 2 4 6", "SADD prime 2 3 5"],
                call: "SINTER even prime",
                reply: "1) \"2\"",
            },
            ..Spec::DEFAULT
        },
        Run::Long(sinter),
    ),
    Command::new(
        Spec {
            name: "sinterstore",
            summary: "Stores the intersection of several sets; returns its size.",
            since: "1.0.0",
            group: Group::Set,
            complexity: COMPLEXITY,
            arity: -3,
            flags: Flags::WRITE.union(Flags::DENYOOM),
            keys: &[
                KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE)),
                KeySpec::from(2, 1, KeyFlags::RO.union(KeyFlags::ACCESS)),
            ],
            syntax: "destination key [key ...]",
            example: Example {
                given: &["SADD even 2 4 6", "SADD prime 2 3 5"],
                call: "SINTERSTORE both even prime",
                reply: "(integer) 1",
            },
            ..Spec::DEFAULT
        },
        Run::Long(sinterstore),
    ),
    Command::new(
        Spec {
            name: "sintercard",
            summary: "Returns the number of members in the intersection of several sets, up to a limit.",
            since: "7.0.0",
            group: Group::Set,
            complexity: COMPLEXITY,
            arity: -3,
            flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
            keys: &[KeySpec::counted(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
            syntax: "numkeys key [key ...] [LIMIT limit]",
            example: Example {
                given: &["SADD even 2 4 6", "SADD prime 2 3 5"],
                call: "SINTERCARD 2 even prime",
                reply: "(integer) 1",
            },
            ..Spec::DEFAULT
        },
        Run::Long(sintercard),
    ),
];

fn sinter(call: &mut Call<'_, '_>) -> AttemptResult {
    let range = 1..call.args.len();
    if !sources::look_up(&mut call.keys, range.clone())? {
        call.reply.set(0);
        return Ok(Attempt::Done);
    }
    if sources::common_steps(&call.keys, range.clone()) > call.steps_max() {
        return Ok(Attempt::Offload);
    }
    let mark = call.reply.mark();
    let mut count = 0;
    algebra::for_each_in_all(&mut sources::sets(&call.keys, range), |member| {
        write_member(call.reply, member);
        count += 1;
        ControlFlow::Continue(())
    });
    call.reply.insert_set(mark, count);
    Ok(Attempt::Done)
}

fn sinterstore(call: &mut Call<'_, '_>) -> AttemptResult {
    let range = 2..call.args.len();
    let intersection = if sources::look_up(&mut call.keys, range.clone())? {
        if sources::common_steps(&call.keys, range.clone()) > call.steps_max() {
            return Ok(Attempt::Offload);
        }
        algebra::intersection(&mut sources::sets(&call.keys, range), &call.keys.turn.settings.encoding)
    } else {
        Set::default()
    };
    call.reply.integer(intersection.len() as i64);
    call.keys.key(1).store_value(Event::set("sinterstore"), intersection);
    Ok(Attempt::Done)
}

fn sintercard(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    let key_count = integer(args, 1).ok().and_then(|count| usize::try_from(count).ok());
    let key_count = key_count.filter(|&count| count > 0).ok_or("ERR numkeys should be greater than 0")?;
    if key_count > args.len() - 2 {
        return Err("ERR Number of keys can't be greater than number of args".into());
    }
    let end = 2 + key_count;
    let mut limit = 0;
    for arg in (end..args.len()).step_by(2) {
        if !is_word(args, arg, "LIMIT") || arg + 1 == args.len() {
            return Err(CommandError::Syntax);
        }
        let number = integer(args, arg + 1).ok().and_then(|number| usize::try_from(number).ok());
        limit = number.ok_or("ERR LIMIT can't be negative")?;
    }
    let mut count = 0;
    if sources::look_up(&mut call.keys, 2..end)? {
        if sources::common_steps(&call.keys, 2..end) > call.steps_max() {
            return Ok(Attempt::Offload);
        }
        algebra::for_each_in_all(&mut sources::sets(&call.keys, 2..end), |_| {
            count += 1;
            if count == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    call.reply.integer(count as i64);
    Ok(Attempt::Done)
}
