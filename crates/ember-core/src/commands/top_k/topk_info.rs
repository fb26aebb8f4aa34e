//! TOPK.INFO.

use super::NO_KEY;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::TopK;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "topk.info",
        summary: "Returns the properties of a top-k sketch.",
        since: "8.0.0",
        group: Group::TopK,
        arity: 2,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key",
        example: Example {
            given: &["TOPK.RESERVE words 3"],
            call: "TOPK.INFO words",
            reply: "1) k\n2) (integer) 3\n3) width\n4) (integer) 8\n5) depth\n6) (integer) 7\n7) decay\n8) \"0.9\"",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(topk_info),
)];

fn topk_info(call: &mut Call<'_, '_>) -> CommandResult {
    let sketch = call.keys.read_value::<TopK>(1)?.ok_or(NO_KEY)?;
    call.reply.map(4);
    let numbers = [
        ("k", sketch.items_max() as i64),
        ("width", sketch.width().into()),
        ("depth", sketch.depth().into()),
    ];
    for (name, number) in numbers {
        call.reply.simple(name);
        call.reply.integer(number);
    }
    call.reply.simple("decay");
    call.reply.double(sketch.decay());
    Ok(())
}
