//! TOPK.LIST.

use super::NO_KEY;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::TopK;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "topk.list",
        summary: "Returns the items in the list of a top-k sketch, the most frequent first.",
        since: "8.0.0",
        group: Group::TopK,
        complexity: "O(K · log K) for a list of K items.",
        arity: -2,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key [WITHCOUNT]",
        example: Example {
            given: &["TOPK.RESERVE words 3", "TOPK.ADD words the the and"],
            call: "TOPK.LIST words WITHCOUNT",
            reply: "1) \"the\"\n2) (integer) 2\n3) \"and\"\n4) (integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(topk_list),
)];

fn topk_list(call: &mut Call<'_, '_>) -> CommandResult {
    const WORD: &[u8] = b"WITHCOUNT";
    let args = call.args;
    if args.len() > 3 {
        return Err(CommandError::WrongArity("topk.list".into()));
    }
    // As in RedisBloom, the beginning of the word suffices.
    let is_begin = |word: &[u8]| WORD.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    if args.get(2).is_some_and(|word| !is_begin(word)) {
        return Err("WITHCOUNT keyword expected".into());
    }
    let list = call.keys.read_value::<TopK>(1)?.ok_or(NO_KEY)?.list();
    call.reply.array(list.len() * (args.len() - 1));
    for (item, count) in list {
        call.reply.bulk(item);
        if args.len() == 3 {
            call.reply.integer(count.into());
        }
    }
    Ok(())
}
