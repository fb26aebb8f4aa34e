//! GEOADD.

use super::positions::position;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::commands::sorted_set::zadd::{self, Options};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::geo::geohash;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "geoadd",
        summary: "Adds members with positions to a sorted set, or updates their positions.",
        since: "3.2.0",
        group: Group::Geo,
        complexity: "O(log(N)) for each member, N being the number of members in the sorted set.",
        arity: -5,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
        syntax: "key [NX | XX]@6.2.0 [CH]@6.2.0 longitude latitude member [longitude latitude member ...]",
        history: &[("6.2.0", "`CH`, `NX` and `XX` came.")],
        example: Example {
            given: &[],
            call: "GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania",
            reply: "(integer) 2",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(geoadd),
)];

fn geoadd(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let mut options = Options::default();
    let mut first = 2;
    while first < args.len() {
        if is_word(args, first, "NX") {
            options.only_new = true;
        } else if is_word(args, first, "XX") {
            options.only_existing = true;
        } else if is_word(args, first, "CH") {
            options.counts_changed = true;
        } else {
            break;
        }
        first += 1;
    }
    if !(args.len() - first).is_multiple_of(3) || (options.only_new && options.only_existing) {
        return Err(CommandError::Syntax);
    }
    let places = (first..args.len()).step_by(3);
    let scores = places.map(|arg| position(args, arg).map(geohash::score));
    let scores = scores.collect::<Result<Vec<f64>, _>>()?;
    let members = scores.iter().enumerate().map(|(index, &score)| (args.at(first + 3 * index + 2), score));
    zadd::add(call, options, members)
}
