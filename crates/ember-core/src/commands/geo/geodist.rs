//! GEODIST.

use super::positions::{unit, write_distance};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::geo::geohash;
use crate::types::sorted_set::SortedSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "geodist",
        summary: "Returns the distance between the positions of two members.",
        since: "3.2.0",
        group: Group::Geo,
        complexity: "O(1)",
        arity: -4,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        syntax: "key member1 member2 unit:[M | KM | FT | MI]",
        example: Example {
            given: &["GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania"],
            call: "GEODIST Sicily Palermo Catania km",
            reply: "\"166.2742\"",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(geodist),
)];

fn geodist(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let metres = match args.len() {
        4 => 1.0,
        5 => unit(args, 4)?,
        _ => return Err(CommandError::Syntax),
    };
    let set = call.keys.read_value::<SortedSet>(1)?;
    let position = |arg: usize| set.and_then(|set| set.score(args.at(arg))).map(geohash::position);
    match (position(2), position(3)) {
        (Some(from), Some(to)) => write_distance(call.reply, from.distance_m(to) / metres),
        _ => call.reply.null(),
    }
    Ok(())
}
