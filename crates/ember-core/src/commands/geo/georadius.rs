//! GEORADIUS and GEORADIUSBYMEMBER, which were replaced by GEOSEARCH and GEOSEARCHSTORE, and their read-only variants.

use ember_protocol::Args;

use super::positions::position;
use super::search::{self, Kind, Query, circle, position_of};
use crate::call::{AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sorted_set::SortedSet;

const TEMPLATE: Spec = Spec {
    since: "3.2.0",
    group: Group::Geo,
    complexity: "O(N+log(M)), N being the number of members in the cells around the circle and M in the sorted set.",
    ..Spec::DEFAULT
};

const WRITES: Flags = Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS);
const READ_KEY: KeySpec = KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS));
const STORE_FLAGS: KeyFlags = KeyFlags::OW.union(KeyFlags::UPDATE);
const GIVEN: &[&str] = &["GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania"];

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "georadius",
            summary: "Returns or stores the members whose positions are within a distance of a point.",
            arity: -6,
            flags: WRITES,
            keys: &[
                READ_KEY,
                KeySpec::after("STORE", 6, STORE_FLAGS),
                KeySpec::after("STOREDIST", 6, STORE_FLAGS),
            ],
            syntax: "key longitude latitude radius unit:<M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] count:[COUNT count [ANY]@6.2.0] [ASC | DESC] store:[STORE key | STOREDIST key]",
            deprecated: Some(("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument")),
            history: &[("6.2.0", "`ANY` came."), ("7.0.0", "Units may be in upper case.")],
            keys_of: Some(|args| keys_of(args, 6)),
            example: Example {
                given: GIVEN,
                call: "GEORADIUS Sicily 15 37 100 km WITHDIST",
                reply: "1) 1) \"Catania\"\n   2) \"56.4413\"",
            },
            ..TEMPLATE
        },
        Run::Long(|call| around_point(call, GEORADIUS)),
    ),
    Command::new(
        Spec {
            name: "georadius_ro",
            summary: "Returns the members whose positions are within a distance of a point.",
            since: "3.2.10",
            arity: -6,
            flags: Flags::READONLY,
            keys: &[READ_KEY],
            syntax: "key longitude latitude radius unit:<M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] count:[COUNT count [ANY]@6.2.0] [ASC | DESC]",
            deprecated: Some(("6.2.0", "`GEOSEARCH` with the `BYRADIUS` argument")),
            history: &[("6.2.0", "`ANY` came.")],
            example: Example {
                given: GIVEN,
                call: "GEORADIUS_RO Sicily 15 37 200 km DESC COUNT 1",
                reply: "1) \"Palermo\"",
            },
            ..TEMPLATE
        },
        Run::Long(|call| around_point(call, GEORADIUS_RO)),
    ),
    Command::new(
        Spec {
            name: "georadiusbymember",
            summary: "Returns or stores the members whose positions are within a distance of another's.",
            arity: -5,
            flags: WRITES,
            keys: &[
                READ_KEY,
                KeySpec::after("STORE", 5, STORE_FLAGS),
                KeySpec::after("STOREDIST", 5, STORE_FLAGS),
            ],
            syntax: "key member radius unit:<M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] count:[COUNT count [ANY]] [ASC | DESC] store:[STORE key | STOREDIST key]",
            deprecated: Some((
                "6.2.0",
                "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
            )),
            history: &[("7.0.0", "Units may be in upper case.")],
            keys_of: Some(|args| keys_of(args, 5)),
            example: Example {
                given: GIVEN,
                call: "GEORADIUSBYMEMBER Sicily Palermo 200 km STORE near",
                reply: "(integer) 2",
            },
            ..TEMPLATE
        },
        Run::Long(|call| around_member(call, GEORADIUS)),
    ),
    Command::new(
        Spec {
            name: "georadiusbymember_ro",
            summary: "Returns the members whose positions are within a distance of another's.",
            since: "3.2.10",
            arity: -5,
            flags: Flags::READONLY,
            keys: &[READ_KEY],
            syntax: "key member radius unit:<M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] count:[COUNT count [ANY]] [ASC | DESC]",
            deprecated: Some(("6.2.0", "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments")),
            example: Example {
                given: GIVEN,
                call: "GEORADIUSBYMEMBER_RO Sicily Palermo 100 km",
                reply: "1) \"Palermo\"",
            },
            ..TEMPLATE
        },
        Run::Long(|call| around_member(call, GEORADIUS_RO)),
    ),
];

const GEORADIUS: Kind = Kind { source: 1, is_by_options: false, target: None, may_store: true };
const GEORADIUS_RO: Kind = Kind { may_store: false, ..GEORADIUS };

/// Returns the argument indexes of the keys: the searched key, and the destination of the last STORE or STOREDIST
/// option from argument `first` on.
fn keys_of(args: Args<'_>, first: usize) -> Vec<usize> {
    let mut keys = vec![1];
    let mut arg = first;
    while arg + 1 < args.len() {
        if is_word(args, arg, "STORE") || is_word(args, arg, "STOREDIST") {
            arg += 1;
            keys.truncate(1);
            keys.push(arg);
        }
        arg += 1;
    }
    keys
}

fn around_point(call: &mut Call<'_, '_>, kind: Kind) -> AttemptResult {
    let args = call.args;
    let set = call.keys.read_value::<SortedSet>(1)?;
    let centre = position(args, 2)?;
    let mut query = Query::new(kind, Some(centre), Some(circle(args, 4)?));
    query.read_options(args, 6, kind, set)?;
    search::run(call, kind, &query)
}

/// Runs GEORADIUSBYMEMBER; if the key is missing, the radius is not checked.
fn around_member(call: &mut Call<'_, '_>, kind: Kind) -> AttemptResult {
    let args = call.args;
    let set = call.keys.read_value::<SortedSet>(1)?;
    let mut query = match set {
        Some(set) => {
            let centre = position_of(set, args.at(2))?;
            Query::new(kind, Some(centre), Some(circle(args, 3)?))
        }
        None => Query::new(kind, None, None),
    };
    query.read_options(args, 5, kind, set)?;
    search::run(call, kind, &query)
}
