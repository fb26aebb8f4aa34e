//! TOPK.QUERY and TOPK.COUNT.

use super::NO_KEY;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::TopK;

const TOPK_QUERY: Spec = Spec {
    name: "topk.query",
    summary: "Returns for each item whether it is in the list of a top-k sketch.",
    since: "8.0.0",
    group: Group::TopK,
    complexity: "O(N · K) for N items and a list of K items.",
    arity: -3,
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    syntax: "key item [item ...]",
    example: Example {
        given: &["TOPK.RESERVE words 3", "TOPK.ADD words the"],
        call: "TOPK.QUERY words the and",
        reply: "1) (integer) 1\n2) (integer) 0",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(TOPK_QUERY, Run::Keys(topk_query)),
    Command::new(
        Spec {
            name: "topk.count",
            summary: "Returns estimates of the counts of items in a top-k sketch.",
            complexity: "O(N · (D + K)) for N items, D rows and a list of K items.",
            deprecated: Some(("2.4.0", "`TOPK.LIST` with `WITHCOUNT`")),
            example: Example {
                given: &["TOPK.RESERVE words 3", "TOPK.ADD words the the"],
                call: "TOPK.COUNT words the and",
                reply: "1) (integer) 2\n2) (integer) 0",
            },
            ..TOPK_QUERY
        },
        Run::Keys(topk_count),
    ),
];

fn topk_query(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let sketch = call.keys.read_value::<TopK>(1)?.ok_or(NO_KEY)?;
    call.reply.array(args.len() - 2);
    (2..args.len()).for_each(|arg| call.reply.boolean(sketch.contains(args.at(arg))));
    Ok(())
}

fn topk_count(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let sketch = call.keys.read_value::<TopK>(1)?.ok_or(NO_KEY)?;
    call.reply.array(args.len() - 2);
    (2..args.len()).for_each(|arg| call.reply.integer(sketch.count(args.at(arg)).into()));
    Ok(())
}
