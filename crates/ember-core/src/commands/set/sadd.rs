//! SADD.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::set::Set;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "sadd",
        summary: "Adds members to a set, creating the key if it is missing; returns the number of new members.",
        since: "1.0.0",
        group: Group::Set,
        complexity: "O(N) for N members.",
        arity: -3,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        elements: Some(ElementArgs::each(2, 1)),
        syntax: "key member [member ...]",
        history: &[("2.4.0", "Several members.")],
        example: Example { given: &[], call: "SADD tags rust cache fast rust", reply: "(integer) 3" },
        ..Spec::DEFAULT
    },
    Run::Keys(sadd),
)];

fn sadd(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let limits = call.keys.turn.settings.encoding;
    let added = call.keys.key(1).edit_or_create(Event::set("sadd"), |set: &mut Set| {
        let count = args.len() - 2;
        if set.is_empty() {
            *set = Set::for_members(args.at(2), count, &limits);
        } else {
            set.expect(count, &limits);
        }
        (2..args.len()).filter(|&arg| set.insert(args.at(arg), &limits)).count()
    })?;
    call.reply.integer(added as i64);
    Ok(())
}
