//! GEOPOS and GEOHASH.

use super::positions::write_position;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::geo::{Position, geohash};
use crate::types::sorted_set::SortedSet;

const GEOPOS: Spec = Spec {
    name: "geopos",
    summary: "Returns the positions of members as longitude and latitude.",
    since: "3.2.0",
    group: Group::Geo,
    complexity: "O(N), N being the number of given members.",
    arity: -2,
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    syntax: "key [member [member ...]]",
    example: Example {
        given: &["GEOADD Sicily 13.361389 38.115556 Palermo"],
        call: "GEOPOS Sicily Palermo Rome",
        reply: "1) 1) \"13.36138933897018433\"\n   2) \"38.11555639549629859\"\n2) (nil)",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(GEOPOS, Run::Keys(geopos)),
    Command::new(
        Spec {
            name: "geohash",
            summary: "Returns the positions of members as geohash strings.",
            example: Example {
                given: &["GEOADD Sicily 13.361389 38.115556 Palermo"],
                call: "GEOHASH Sicily Palermo Rome",
                reply: "1) \"sqc8b49rny0\"\n2) (nil)",
            },
            ..GEOPOS
        },
        Run::Keys(geohash),
    ),
];

/// Returns the position of each member that is named in the arguments.
fn positions(call: &mut Call<'_, '_>) -> Result<Vec<Option<Position>>, CommandError> {
    let args = call.args;
    let set = call.keys.read_value::<SortedSet>(1)?;
    let members = (2..args.len()).map(|arg| args.at(arg));
    Ok(members.map(|member| set.and_then(|set| set.score(member)).map(geohash::position)).collect())
}

fn geopos(call: &mut Call<'_, '_>) -> CommandResult {
    let positions = positions(call)?;
    call.reply.array(positions.len());
    for position in positions {
        match position {
            Some(position) => write_position(call.reply, position),
            None => call.reply.null_array(),
        }
    }
    Ok(())
}

fn geohash(call: &mut Call<'_, '_>) -> CommandResult {
    let positions = positions(call)?;
    call.reply.array(positions.len());
    for position in positions {
        match position {
            Some(position) => call.reply.bulk(&geohash::text(position)),
            None => call.reply.null(),
        }
    }
    Ok(())
}
