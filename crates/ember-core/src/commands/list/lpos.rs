//! LPOS.

use std::ops::ControlFlow;

use ember_protocol::Args;

use super::ends::at_least;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::{integer, is_word};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::list::{End, List, Needle};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "lpos",
        summary: "Returns the positions of elements of a list that are equal to a given one.",
        since: "6.0.6",
        group: Group::List,
        complexity: "O(N), N being the number of compared elements",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        syntax: "key element [RANK rank] [COUNT num-matches] [MAXLEN len]",
        example: Example {
            given: &["RPUSH letters a b c b"],
            call: "LPOS letters b RANK -1",
            reply: "(integer) 3",
        },
        ..Spec::DEFAULT
    },
    Run::Long(lpos),
)];

struct Options {
    /// The number of matches to skip.
    skip: usize,
    /// Whether the search begins at the end of the list.
    backwards: bool,
    /// The maximum number of positions in the reply, which is an array; `None` for a single position without an array.
    count: Option<usize>,
    /// The maximum number of elements to compare.
    len_max: usize,
}

/// Returns a number as a limit; 0 means no limit.
fn unlimited(number: usize) -> usize {
    if number == 0 { usize::MAX } else { number }
}

fn lpos(call: &mut Call<'_, '_>) -> AttemptResult {
    let steps_max = call.steps_max();
    let Call { args, keys, reply, .. } = call;
    let options = read_options(*args)?;
    let needle = Needle::new(args.at(2));
    let Some(list) = keys.read_value::<List>(1)? else {
        if options.count.is_some() {
            reply.array(0)
        } else {
            reply.null()
        }
        return Ok(Attempt::Done);
    };
    if list.len().min(options.len_max) > steps_max {
        return Ok(Attempt::Offload);
    }
    let last = list.len().saturating_sub(1);
    let from = if options.backwards { End::Back } else { End::Front };
    let wanted = options.count.unwrap_or(1);
    let mark = reply.mark();
    let (mut skipped, mut found) = (0, 0);
    list.find(&needle, from, options.len_max, |distance| {
        if skipped < options.skip {
            skipped += 1;
            return ControlFlow::Continue(());
        }
        found += 1;
        reply.integer(if options.backwards { last - distance } else { distance } as i64);
        if found == wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if options.count.is_some() {
        reply.insert_array(mark, found);
    } else if found == 0 {
        reply.null();
    }
    Ok(Attempt::Done)
}

fn read_options(args: Args<'_>) -> Result<Options, CommandError> {
    let mut options = Options { skip: 0, backwards: false, count: None, len_max: usize::MAX };
    for arg in (3..args.len()).step_by(2) {
        if arg + 1 == args.len() {
            return Err(CommandError::Syntax);
        } else if is_word(args, arg, "RANK") {
            let rank = integer(args, arg + 1)?;
            if rank == i64::MIN {
                return Err("ERR value is out of range, value must between -9223372036854775807 and \
                    9223372036854775807"
                    .into());
            }
            options.backwards = rank < 0;
            let rank = usize::try_from(rank.unsigned_abs()).unwrap_or(usize::MAX);
            options.skip = rank.checked_sub(1).ok_or(
                "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative \
                 to start from the end of the list",
            )?;
        } else if is_word(args, arg, "COUNT") {
            options.count = Some(unlimited(at_least(0, args, arg + 1, "ERR COUNT can't be negative")?));
        } else if is_word(args, arg, "MAXLEN") {
            options.len_max = unlimited(at_least(0, args, arg + 1, "ERR MAXLEN can't be negative")?);
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(options)
}
