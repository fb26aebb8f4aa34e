//! GEOSEARCH and GEOSEARCHSTORE.

use super::search::{self, Kind, Query};
use crate::call::{AttemptResult, Call, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sorted_set::SortedSet;

const COMPLEXITY: &str =
    "O(N+log(M)), N being the number of members in the cells around the shape and M in the sorted set.";

const GIVEN: &[&str] = &[
    "GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania",
    "GEOADD Sicily 12.758489 38.788135 edge1 17.241510 38.788135 edge2",
];

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "geosearch",
            summary: "Returns the members whose positions are within a circle, a box or a polygon.",
            since: "6.2.0",
            group: Group::Geo,
            complexity: COMPLEXITY,
            arity: -7,
            flags: Flags::READONLY,
            keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
            syntax: "key from:[FROMMEMBER member | FROMLONLAT longitude latitude] by:<circle:<BYRADIUS radius unit:<M | KM | FT | MI>> | box:<<BYBOX width> height unit:<M | KM | FT | MI>> | polygon:<<BYPOLYGON num-vertices> longitude latitude [longitude latitude ...]> @9.0.0> [ASC | DESC] count:[COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]",
            history: &[("7.0.0", "Units may be in upper case."), ("9.0.0", "`BYPOLYGON` came, in Valkey.")],
            example: Example {
                given: GIVEN,
                call: "GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km ASC",
                reply: "1) \"Catania\"\n2) \"Palermo\"",
            },
            ..Spec::DEFAULT
        },
        Run::Long(|call| geosearch(call, GEOSEARCH)),
    ),
    Command::new(
        Spec {
            name: "geosearchstore",
            summary: "Stores the members whose positions are within a circle, a box or a polygon in another key.",
            since: "6.2.0",
            group: Group::Geo,
            complexity: COMPLEXITY,
            arity: -8,
            flags: Flags::WRITE.union(Flags::DENYOOM),
            keys: &[
                KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE)),
                KeySpec::one(2, KeyFlags::RO.union(KeyFlags::ACCESS)),
            ],
            syntax: "destination source from:[FROMMEMBER member | FROMLONLAT longitude latitude] by:<circle:<BYRADIUS radius unit:<M | KM | FT | MI>> | box:<<BYBOX width> height unit:<M | KM | FT | MI>> | polygon:<<BYPOLYGON num-vertices> longitude latitude [longitude latitude ...]> @9.0.0> [ASC | DESC] count:[COUNT count [ANY]] [STOREDIST]",
            history: &[("7.0.0", "Units may be in upper case."), ("9.0.0", "`BYPOLYGON` came, in Valkey.")],
            example: Example {
                given: GIVEN,
                call: "GEOSEARCHSTORE near Sicily FROMLONLAT 15 37 BYBOX 400 400 km ASC COUNT 3",
                reply: "(integer) 3",
            },
            ..Spec::DEFAULT
        },
        Run::Long(|call| geosearch(call, GEOSEARCHSTORE)),
    ),
];

const GEOSEARCH: Kind = Kind { source: 1, is_by_options: true, target: None, may_store: false };
const GEOSEARCHSTORE: Kind = Kind { source: 2, target: Some(1), ..GEOSEARCH };

fn geosearch(call: &mut Call<'_, '_>, kind: Kind) -> AttemptResult {
    let set = call.keys.read_value::<SortedSet>(kind.source)?;
    let mut query = Query::new(kind, None, None);
    query.read_options(call.args, kind.source + 1, kind, set)?;
    search::run(call, kind, &query)
}
