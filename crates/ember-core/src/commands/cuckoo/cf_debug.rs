//! CF.DEBUG.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::sketch::NOT_FOUND;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::Cuckoo;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "cf.debug",
        summary: "Returns the properties of a cuckoo filter as one text.",
        since: "8.0.0",
        group: Group::Cuckoo,
        complexity: "O(1).",
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key",
        example: Example {
            given: &["CF.RESERVE seen 1000"],
            call: "CF.DEBUG seen",
            reply: "\"bktsize:2 buckets:512 items:0 deletes:0 filters:1 max_iterations:20 expansion:1\"",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(cf_debug),
)];

fn cf_debug(call: &mut Call<'_, '_>) -> CommandResult {
    let filter = call.keys.read_value::<Cuckoo>(1)?.ok_or(NOT_FOUND)?;
    let facts = filter.facts();
    let text = format!(
        "bktsize:{} buckets:{} items:{} deletes:{} filters:{} max_iterations:{} expansion:{}",
        facts.bucket_size,
        facts.buckets,
        facts.items,
        facts.deletes,
        filter.tables().len(),
        facts.iterations,
        facts.expansion,
    );
    call.reply.bulk(text.as_bytes());
    Ok(())
}
