//! LTRIM.

use super::ends::{limit, range};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::integer;
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::list::List;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "ltrim",
        summary: "Trims a list to the elements between two positions.",
        since: "1.0.0",
        group: Group::List,
        complexity: "O(N), N being the number of elements removed",
        arity: 4,
        flags: Flags::WRITE,
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
        syntax: "key start stop",
        example: Example { given: &["RPUSH letters a b c"], call: "LTRIM letters 0 1", reply: "OK" },
        ..Spec::DEFAULT
    },
    Run::Keys(ltrim),
)];

fn ltrim(call: &mut Call<'_, '_>) -> CommandResult {
    let limit = limit(call.keys.turn);
    let (start, stop) = (integer(call.args, 2)?, integer(call.args, 3)?);
    call.keys.key(1).edit_value(Event::list("ltrim"), |list: &mut List| {
        let kept = range(start, stop, list.len());
        list.remove_range(kept.end, usize::MAX, limit);
        list.remove_range(0, kept.start, limit);
    })?;
    call.reply.ok();
    Ok(())
}
