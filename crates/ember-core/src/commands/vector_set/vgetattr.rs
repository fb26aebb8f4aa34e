//! VGETATTR and VSETATTR.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::VectorSet;

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "vgetattr",
            summary: "Returns the attributes of an element of a vector set.",
            since: "8.0.0",
            group: Group::VectorSet,
            complexity: "O(log N) for N elements.",
            arity: 3,
            flags: Flags::READONLY.union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
            syntax: "key element",
            example: Example {
                given: &["VADD points VALUES 2 1.0 1.0 pt:A SETATTR {}"],
                call: "VGETATTR points pt:A",
                reply: "\"{}\"",
            },
            ..Spec::DEFAULT
        },
        Run::Keys(vgetattr),
    ),
    Command::new(
        Spec {
            name: "vsetattr",
            summary: "Sets the attributes of an element of a vector set, or removes them if they are empty; \
                      returns whether the element exists.",
            since: "8.0.0",
            group: Group::VectorSet,
            complexity: "O(log N) for N elements.",
            arity: 4,
            flags: Flags::WRITE.union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
            syntax: "key element attributes",
            example: Example {
                given: &["VADD points VALUES 2 1.0 1.0 pt:A"],
                call: "VSETATTR points pt:A {}",
                reply: "(integer) 1",
            },
            ..Spec::DEFAULT
        },
        Run::Keys(vsetattr),
    ),
];

fn vgetattr(call: &mut Call<'_, '_>) -> CommandResult {
    let name = call.args.at(2);
    let set = call.keys.read_value::<VectorSet>(1)?;
    let element = set.and_then(|set| Some(set.element(set.find(name)?)));
    match element.and_then(|element| element.attributes()) {
        Some(attributes) => call.reply.bulk(attributes),
        None => call.reply.null(),
    }
    Ok(())
}

fn vsetattr(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let is_there = call.keys.key(1).edit_value(Event::module("vsetattr"), |set: &mut VectorSet| {
        let slot = set.find(args.at(2))?;
        set.set_attributes(slot, args.at(3));
        Some(())
    })?;
    call.reply.boolean(is_there.flatten().is_some());
    Ok(())
}
