//! LMPOP, and its blocking form BLMPOP.

use std::ops::Range;

use ember_protocol::{Args, Reply};

use super::ends::{at_least, end};
use super::lpop::{take_many, takes_long};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run, Wait};
use crate::commands::arguments::{is_word, timeout_ms};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::list::End;

const TAKEN: KeyFlags = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE);

const LMPOP: Spec = Spec {
    name: "lmpop",
    summary: "Removes and returns elements from one end of the first non-empty list.",
    since: "7.0.0",
    group: Group::List,
    complexity: "O(N+M), N being the number of keys, M that of elements returned",
    arity: -4,
    flags: Flags::WRITE.union(Flags::MOVABLEKEYS),
    keys: &[KeySpec::counted(1, TAKEN)],
    syntax: "numkeys key [key ...] where:<LEFT | RIGHT> [COUNT count]",
    example: Example {
        given: &["RPUSH letters a b c"],
        call: "LMPOP 2 none letters RIGHT COUNT 2",
        reply: "1) \"letters\"\n2) 1) \"c\"\n   2) \"b\"",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(LMPOP, Run::Long(lmpop)),
    Command::new(
        Spec {
            name: "blmpop",
            summary: "Removes and returns elements from one end of the first non-empty list; waits until there is one.",
            arity: -5,
            flags: LMPOP.flags.union(Flags::BLOCKING),
            keys: &[KeySpec::counted(2, TAKEN)],
            syntax: "timeout numkeys key [key ...] where:<LEFT | RIGHT> [COUNT count]",
            example: Example {
                given: &["RPUSH letters a b c"],
                call: "BLMPOP 1 1 letters LEFT",
                reply: "1) \"letters\"\n2) 1) \"a\"",
            },
            ..LMPOP
        },
        Run::Blocking(blmpop),
    ),
];

/// The parameters of a call.
struct Request {
    /// The argument indexes of the keys.
    keys: Range<usize>,
    end: End,
    count: usize,
}

impl Request {
    /// Parses the arguments from argument `arg` on, which is the number of keys.
    fn read(args: Args<'_>, arg: usize) -> Result<Request, CommandError> {
        let key_count = at_least(1, args, arg, "ERR numkeys should be greater than 0")?;
        let end_arg = (arg + 1).saturating_add(key_count);
        if end_arg >= args.len() {
            return Err(CommandError::Syntax);
        }
        let end = end(args, end_arg)?;
        let count = match args.len() - end_arg {
            1 => 1,
            2 => return Err(CommandError::Syntax),
            more => {
                if !is_word(args, end_arg + 1, "COUNT") {
                    return Err(CommandError::Syntax);
                }
                let count = at_least(1, args, end_arg + 2, "ERR count should be greater than 0")?;
                if more > 3 {
                    return Err(CommandError::Syntax);
                }
                count
            }
        };
        Ok(Request { keys: arg + 1..end_arg, end, count })
    }

    /// Removes the requested elements from the first list that exists; returns `None` if no list exists.
    fn run(self, call: &mut Call<'_, '_>) -> Result<Option<Attempt>, CommandError> {
        for arg in self.keys {
            if takes_long(call, arg, self.count)? {
                return Ok(Some(Attempt::Offload));
            }
            let Call { args, keys, reply, .. } = &mut *call;
            let name_key = |reply: &mut Reply| {
                reply.array(2);
                reply.bulk(args.at(arg));
            };
            if take_many(keys, arg, self.end, self.count, reply, name_key)? {
                return Ok(Some(Attempt::Done));
            }
        }
        Ok(None)
    }
}

fn lmpop(call: &mut Call<'_, '_>) -> AttemptResult {
    let taken = Request::read(call.args, 1)?.run(call)?;
    Ok(taken.unwrap_or_else(|| {
        call.reply.null_array();
        Attempt::Done
    }))
}

fn blmpop(call: &mut Call<'_, '_>) -> AttemptResult {
    let request = Request::read(call.args, 2)?;
    let timeout = timeout_ms(call.args, 1, call.keys.turn.now_ms)?;
    if let Some(attempt) = request.run(call)? {
        return Ok(attempt);
    }
    Ok(Attempt::Wait(Wait { timeout_ms: timeout, empty_reply: Reply::null_array, instead: None }))
}
