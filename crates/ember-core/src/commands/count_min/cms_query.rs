//! CMS.QUERY.

use super::NO_KEY;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::CountMin;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "cms.query",
        summary: "Returns the estimates of the counts of items in a count-min sketch.",
        since: "8.0.0",
        group: Group::CountMin,
        complexity: "O(N · D) for N items and D rows.",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key item [item ...]",
        example: Example {
            given: &["CMS.INITBYDIM visits 2000 5", "CMS.INCRBY visits home 3"],
            call: "CMS.QUERY visits home help",
            reply: "1) (integer) 3\n2) (integer) 0",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(cms_query),
)];

fn cms_query(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let sketch = call.keys.read_value::<CountMin>(1)?.ok_or(NO_KEY)?;
    call.reply.array(args.len() - 2);
    for arg in 2..args.len() {
        call.reply.integer(sketch.estimate(args.at(arg)).into());
    }
    Ok(())
}
