//! BF.INFO.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::commands::sketch::NOT_FOUND;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::Bloom;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "bf.info",
        summary: "Returns the properties of a Bloom filter, or one of them.",
        since: "8.0.0",
        group: Group::Bloom,
        complexity: "O(L) for L links.",
        arity: -2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]",
        example: Example { given: &["BF.ADD seen ann"], call: "BF.INFO seen ITEMS", reply: "1) (integer) 1" },
        ..Spec::DEFAULT
    },
    Run::Keys(bf_info),
)];

fn bf_info(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    if args.len() > 3 {
        return Err(CommandError::WrongArity("bf.info".into()));
    }
    let filter = call.keys.read_value::<Bloom>(1)?.ok_or(NOT_FOUND)?;
    let facts = [
        ("CAPACITY", "Capacity", Some(filter.capacity())),
        ("SIZE", "Size", Some(filter.reported_bytes())),
        ("FILTERS", "Number of filters", Some(filter.links_count() as u64)),
        ("ITEMS", "Number of items inserted", Some(filter.size())),
        ("EXPANSION", "Expansion rate", filter.growth().map(u64::from)),
    ];
    let is_one = args.len() == 3;
    let wanted = |word: &str| !is_one || is_word(args, 2, word);
    let shown = facts.iter().filter(|(word, ..)| wanted(word));
    match (is_one, shown.clone().count()) {
        (true, 0) => return Err("Invalid information value".into()),
        // In RESP2, a single property has no name.
        (true, _) if !call.reply.is_resp3() => call.reply.array(1),
        (_, count) => call.reply.map(count),
    }
    for (_, name, number) in shown {
        if !is_one || call.reply.is_resp3() {
            call.reply.simple(name);
        }
        match number {
            Some(number) => call.reply.integer(number.cast_signed()),
            None => call.reply.null(),
        }
    }
    Ok(())
}
