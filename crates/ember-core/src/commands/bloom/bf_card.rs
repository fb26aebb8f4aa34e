//! BF.CARD.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::Bloom;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "bf.card",
        summary: "Returns the number of items that were added to a Bloom filter.",
        since: "8.0.0",
        group: Group::Bloom,
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key",
        example: Example { given: &["BF.MADD seen ann bob"], call: "BF.CARD seen", reply: "(integer) 2" },
        ..Spec::DEFAULT
    },
    Run::Keys(bf_card),
)];

fn bf_card(call: &mut Call<'_, '_>) -> CommandResult {
    let size = call.keys.read_value::<Bloom>(1)?.map_or(0, Bloom::size);
    call.reply.integer(size.cast_signed());
    Ok(())
}
