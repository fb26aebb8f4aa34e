//! CMS.INFO.

use super::NO_KEY;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::CountMin;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "cms.info",
        summary: "Returns the dimensions of a count-min sketch and the sum of all counts.",
        since: "8.0.0",
        group: Group::CountMin,
        arity: 2,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key",
        example: Example {
            given: &["CMS.INITBYDIM visits 2000 5"],
            call: "CMS.INFO visits",
            reply: "1) width\n2) (integer) 2000\n3) depth\n4) (integer) 5\n5) count\n6) (integer) 0",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(cms_info),
)];

fn cms_info(call: &mut Call<'_, '_>) -> CommandResult {
    let sketch = call.keys.read_value::<CountMin>(1)?.ok_or(NO_KEY)?;
    call.reply.map(3);
    for (name, number) in [("width", sketch.width()), ("depth", sketch.depth()), ("count", sketch.total())] {
        call.reply.simple(name);
        call.reply.integer(number.cast_signed());
    }
    Ok(())
}
