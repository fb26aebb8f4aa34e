//! LMOVE, and its older form RPOPLPUSH.

use ember_protocol::Args;

use super::ends::{end, limit};
use super::{lpop, lpush};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::list::{End, List};

/// The specification of LMOVE, which the other commands that move an element adapt.
pub(super) const LMOVE: Spec = Spec {
    name: "lmove",
    summary: "Moves an element from one end of a list to an end of another or the same list, and returns it.",
    since: "6.2.0",
    group: Group::List,
    arity: 5,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: &[
        KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
        KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT)),
    ],
    syntax: "source destination wherefrom:<LEFT | RIGHT> whereto:<LEFT | RIGHT>",
    example: Example { given: &["RPUSH todo a b c"], call: "LMOVE todo done LEFT RIGHT", reply: "\"a\"" },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(LMOVE, Run::Keys(lmove)),
    Command::new(
        Spec {
            name: "rpoplpush",
            summary: "Moves the last element of a list to the front of another, and returns it.",
            since: "1.2.0",
            arity: 3,
            syntax: "source destination",
            deprecated: Some(("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments")),
            example: Example { given: &["RPUSH todo a b c"], call: "RPOPLPUSH todo done", reply: "\"c\"" },
            ..LMOVE
        },
        Run::Keys(rpoplpush),
    ),
];

/// The end of the source from which an element is removed, and the end of the destination to which it is added.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) from: End,
    pub(super) to: End,
    /// Whether the arguments of the command name the ends.
    pub(super) are_given: bool,
}

impl Ends {
    /// The ends of RPOPLPUSH and BRPOPLPUSH, which are not in the arguments.
    pub(super) const USUAL: Ends = Ends { from: End::Back, to: End::Front, are_given: false };

    /// Parses the ends in arguments 3 and 4.
    pub(super) fn parse_ends(args: Args<'_>) -> Result<Ends, CommandError> {
        Ok(Ends { from: end(args, 3)?, to: end(args, 4)?, are_given: true })
    }
}

/// Moves an element from one end of the list in argument 1 to an end of the list in argument 2 and writes it to the
/// reply. If there is no element, writes nothing and returns false.
pub(super) fn move_element(call: &mut Call<'_, '_>, ends: Ends) -> Result<bool, CommandError> {
    let is_moved = try_move_element(call, ends.from, ends.to)?;
    if is_moved {
        let args = call.args;
        // Each command is recorded in its own form, as in Redis: all readers of the journal support both forms.
        call.keys.journal(|words| match ends.are_given {
            true => {
                let words = words.word(b"LMOVE").word(args.at(1)).word(args.at(2));
                words.word(args.at(3)).word(args.at(4));
            }
            false => _ = words.word(b"RPOPLPUSH").word(args.at(1)).word(args.at(2)),
        });
    }
    Ok(is_moved)
}

fn try_move_element(call: &mut Call<'_, '_>, from: End, to: End) -> Result<bool, CommandError> {
    let Call { args, keys, reply, .. } = call;
    let limit = limit(keys.turn);
    let mut source = keys.key(1);
    if args.at(1) == args.at(2) {
        let moved = source.edit_value(lpush::event(to), |list: &mut List| list.rotate(from, to, limit))?;
        let Some(moved) = moved.flatten() else { return Ok(false) };
        source.notify(lpop::event(from));
        moved.write(reply);
        return Ok(true);
    }
    let Some(element) = source.value::<List>()?.and_then(|list| list.end(from)) else { return Ok(false) };
    let element = element.to_owned();
    keys.key(2).edit_or_create(lpush::event(to), |list: &mut List| list.push(to, element.as_new(), limit))?;
    keys.key(1).edit_value(lpop::event(from), |list: &mut List| list.remove_end(from, 1, limit))?;
    // The changes of both keys count as one change, as in Redis.
    keys.turn.counters.changes -= 1;
    element.write(reply);
    Ok(true)
}

fn lmove(call: &mut Call<'_, '_>) -> CommandResult {
    let ends = Ends::parse_ends(call.args)?;
    reply_moved(call, ends)
}

fn rpoplpush(call: &mut Call<'_, '_>) -> CommandResult {
    reply_moved(call, Ends::USUAL)
}

fn reply_moved(call: &mut Call<'_, '_>, ends: Ends) -> CommandResult {
    if !move_element(call, ends)? {
        call.reply.null();
    }
    Ok(())
}
