//! The common code of the geographic searches: parsing of options, search, and reply or stored result.

use std::cmp::Ordering;
use std::ops::Range;

use ember_protocol::{Args, Reply};

use super::positions::{length, position, unit, write_distance, write_position};
use crate::call::{Attempt, AttemptResult, Call, CommandResult};
use crate::commands::arguments::{integer, is_word};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::types::Collection;
use crate::types::geo::geohash::Cell;
use crate::types::geo::polygon::{Polygon, VERTICES_MIN};
use crate::types::geo::{Position, Shape, area, geohash};
use crate::types::limits::EncodingLimits;
use crate::types::sorted_set::SortedSet;
use crate::types::sorted_set::range::ScoreRange;

/// The properties in which the search commands differ.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// The index of the argument with the searched key.
    pub(super) source: usize,
    /// Whether centre and shape are given by options.
    pub(super) is_by_options: bool,
    /// The index of the argument with the destination key, for commands that have it at a fixed position.
    pub(super) target: Option<usize>,
    /// Whether an option may name a destination key.
    pub(super) may_store: bool,
}

/// The order of the results by their distance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sorting {
    None,
    Nearest,
    Farthest,
}

/// The parameters of a search. Centre and shape may be missing if the searched set is missing.
pub(super) struct Query {
    pub(super) centre: Option<Position>,
    pub(super) shape: Option<Shape>,
    /// The length in metres of the unit of all distances.
    pub(super) unit_m: f64,
    sorting: Sorting,
    /// The maximum number of results; 0 means no limit.
    count: usize,
    /// Whether any results are sufficient, instead of the nearest ones.
    is_any: bool,
    with_distance: bool,
    with_hash: bool,
    with_position: bool,
    /// The index of the argument with the destination key.
    target: Option<usize>,
    /// Whether the stored scores are distances.
    stores_distances: bool,
}

/// A member that a search has found.
struct Found {
    member: Vec<u8>,
    score: f64,
    position: Position,
    distance_m: f64,
}

/// Parses the radius in argument `arg` and its unit in the next argument.
pub(super) fn circle(args: Args<'_>, arg: usize) -> Result<(Shape, f64), CommandError> {
    let radius = length(args, arg, "ERR need numeric radius")?;
    if radius < 0.0 {
        return Err("ERR radius cannot be negative".into());
    }
    let unit_m = unit(args, arg + 1)?;
    Ok((Shape::Circle { radius_m: radius * unit_m }, unit_m))
}

/// Parses the width in argument `arg`, the height in the next argument, and their unit in the third.
fn rectangle(args: Args<'_>, arg: usize) -> Result<(Shape, f64), CommandError> {
    let width = length(args, arg, "ERR need numeric width")?;
    let height = length(args, arg + 1, "ERR need numeric height")?;
    if width < 0.0 || height < 0.0 {
        return Err("ERR height or width cannot be negative".into());
    }
    let unit_m = unit(args, arg + 2)?;
    Ok((Shape::Rectangle { width_m: width * unit_m, height_m: height * unit_m }, unit_m))
}

/// Parses the polygon whose number of vertices is in argument `arg`; returns the polygon, and the index of the argument
/// after its last vertex.
fn polygon(args: Args<'_>, arg: usize) -> Result<(Polygon, usize), CommandError> {
    let count = integer(args, arg).ok().and_then(|count| i32::try_from(count).ok());
    let count = usize::try_from(count.ok_or("ERR invalid number of vertices")?).unwrap_or(0);
    let given = (args.len() - arg - 1) / 2;
    if count < VERTICES_MIN || count > given {
        return Err("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices".into());
    }
    let vertices = (0..count).map(|vertex| position(args, arg + 1 + 2 * vertex));
    Ok((Polygon::new(vertices.collect::<Result<_, _>>()?), arg + 1 + 2 * count))
}

/// Returns the position of a member of an existing set.
pub(super) fn position_of(set: &SortedSet, member: &[u8]) -> Result<Position, CommandError> {
    let score = set.score(member).ok_or("ERR could not decode requested zset member")?;
    Ok(geohash::position(score))
}

impl Query {
    pub(super) fn new(kind: Kind, centre: Option<Position>, shape: Option<(Shape, f64)>) -> Query {
        Query {
            centre,
            unit_m: shape.as_ref().map_or(1.0, |(_, unit_m)| *unit_m),
            shape: shape.map(|(shape, _)| shape),
            sorting: Sorting::None,
            count: 0,
            is_any: false,
            with_distance: false,
            with_hash: false,
            with_position: false,
            target: kind.target,
            stores_distances: false,
        }
    }

    /// Parses the options from argument `first` on; `set` is the searched set.
    pub(super) fn read_options(
        &mut self,
        args: Args<'_>,
        first: usize,
        kind: Kind,
        set: Option<&SortedSet>,
    ) -> CommandResult {
        // The options for centre and shape that the call contains: each option may be repeated, but not combined with
        // an alternative.
        let (mut is_from_member, mut is_from_position) = (false, false);
        let (mut is_by_radius, mut is_by_box, mut is_by_polygon) = (false, false, false);
        let mut arg = first;
        while arg < args.len() {
            let left = args.len() - arg - 1;
            let is = |word: &str| is_word(args, arg, word);
            if is("WITHDIST") {
                self.with_distance = true;
            } else if is("WITHHASH") {
                self.with_hash = true;
            } else if is("WITHCOORD") {
                self.with_position = true;
            } else if is("ANY") {
                self.is_any = true;
            } else if is("ASC") {
                self.sorting = Sorting::Nearest;
            } else if is("DESC") {
                self.sorting = Sorting::Farthest;
            } else if is("COUNT") && left >= 1 {
                let count = usize::try_from(integer(args, arg + 1)?).unwrap_or(0);
                self.count = if count > 0 { count } else { return Err("ERR COUNT must be > 0".into()) };
                arg += 1;
            } else if kind.may_store && (is("STORE") || is("STOREDIST")) && left >= 1 {
                self.target = Some(arg + 1);
                self.stores_distances = is("STOREDIST");
                arg += 1;
            } else if kind.is_by_options && kind.target.is_some() && is("STOREDIST") {
                self.stores_distances = true;
            } else if kind.is_by_options
                && is("FROMMEMBER")
                && left >= 1
                && !is_from_position
                && !is_by_polygon
            {
                self.centre = set.map(|set| position_of(set, args.at(arg + 1))).transpose()?;
                is_from_member = true;
                arg += 1;
            } else if kind.is_by_options && is("FROMLONLAT") && left >= 2 && !is_from_member && !is_by_polygon
            {
                self.centre = Some(position(args, arg + 1)?);
                is_from_position = true;
                arg += 2;
            } else if kind.is_by_options && is("BYRADIUS") && left >= 2 && !is_by_box && !is_by_polygon {
                self.set_shape(circle(args, arg + 1)?);
                is_by_radius = true;
                arg += 2;
            } else if kind.is_by_options && is("BYBOX") && left >= 3 && !is_by_radius && !is_by_polygon {
                self.set_shape(rectangle(args, arg + 1)?);
                is_by_box = true;
                arg += 3;
            } else if kind.is_by_options
                && is("BYPOLYGON")
                && left >= 2
                && !(is_from_member || is_from_position || is_by_radius || is_by_box)
            {
                let (polygon, end) = polygon(args, arg + 1)?;
                self.centre = Some(polygon.centre());
                self.set_shape((Shape::Polygon(polygon), 1.0));
                is_by_polygon = true;
                arg = end - 1;
            } else {
                return Err(CommandError::Syntax);
            }
            arg += 1;
        }
        let has_centre = !kind.is_by_options || is_from_member || is_from_position || is_by_polygon;
        let has_shape = !kind.is_by_options || is_by_radius || is_by_box || is_by_polygon;
        self.check(args, kind, has_centre, has_shape)
    }

    fn set_shape(&mut self, (shape, unit_m): (Shape, f64)) {
        self.shape = Some(shape);
        self.unit_m = unit_m;
    }

    fn check(&self, args: Args<'_>, kind: Kind, has_centre: bool, has_shape: bool) -> CommandResult {
        if self.target.is_some() && (self.with_distance || self.with_hash || self.with_position) {
            let name = if kind.is_by_options { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            return Err(format!(
                "ERR {name} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )
            .into());
        }
        if !has_centre {
            let before = "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for ";
            return Err(CommandError::quoting(before, args.at(0), ""));
        }
        if !has_shape {
            let before = "ERR exactly one of BYRADIUS and BYBOX can be specified for ";
            return Err(CommandError::quoting(before, args.at(0), ""));
        }
        if self.is_any && self.count == 0 {
            return Err("ERR the ANY argument requires COUNT argument".into());
        }
        Ok(())
    }

    /// Returns the members within the shape, in the requested order and up to the requested number.
    fn results(&self, set: &SortedSet) -> Vec<Found> {
        let (Some(centre), Some(shape)) = (self.centre, &self.shape) else { return Vec::new() };
        let found_max = if self.is_any { self.count } else { usize::MAX };
        let mut results = search(set, centre, shape, found_max);
        // If COUNT is given without an order, the nearest members are returned.
        let is_nearest = self.sorting == Sorting::Nearest || (self.count > 0 && !self.is_any);
        let by_distance =
            |a: &Found, b: &Found| a.distance_m.partial_cmp(&b.distance_m).unwrap_or(Ordering::Equal);
        if self.sorting == Sorting::Farthest {
            results.sort_by(|a, b| by_distance(b, a));
        } else if is_nearest {
            results.sort_by(by_distance);
        }
        if self.count > 0 {
            results.truncate(self.count);
        }
        results
    }

    /// Returns the number of members that a search examines. O(log n).
    fn candidates(&self, set: &SortedSet) -> usize {
        let (Some(centre), Some(shape)) = (self.centre, &self.shape) else { return 0 };
        area::cells(centre, shape).map(|cell| ranks(set, cell).len()).sum()
    }

    /// Returns the result as a sorted set.
    fn stored(&self, results: &[Found], limits: &EncodingLimits) -> SortedSet {
        let longest = results.iter().map(|found| found.member.len()).max().unwrap_or(0);
        let mut stored = SortedSet::for_members(results.len(), longest, limits);
        for found in results {
            let score = if self.stores_distances { found.distance_m / self.unit_m } else { found.score };
            stored.set(&found.member, score, limits);
        }
        stored
    }

    fn write(&self, reply: &mut Reply, results: &[Found]) {
        let facts = [self.with_distance, self.with_hash, self.with_position];
        let facts = facts.into_iter().filter(|&is_wanted| is_wanted).count();
        reply.array(results.len());
        for found in results {
            if facts > 0 {
                reply.array(1 + facts);
            }
            reply.bulk(&found.member);
            if self.with_distance {
                write_distance(reply, found.distance_m / self.unit_m);
            }
            if self.with_hash {
                reply.integer(found.score as i64);
            }
            if self.with_position {
                write_position(reply, found.position);
            }
        }
    }
}

/// Returns the range of ranks of the members in a cell.
fn ranks(set: &SortedSet, cell: Cell) -> Range<usize> {
    let (first, end) = cell.scores();
    set.score_range(&ScoreRange::half_open(first, end))
}

/// Returns up to `found_max` members within `shape` around `centre`. O(members in the shape's cells + log n).
fn search(set: &SortedSet, centre: Position, shape: &Shape, found_max: usize) -> Vec<Found> {
    let mut results = Vec::new();
    for cell in area::cells(centre, shape) {
        for (member, score) in set.iter(ranks(set, cell)) {
            let position = geohash::position(score);
            if let Some(distance_m) = shape.distance_m(centre, position) {
                results.push(Found { member: member.to_vec(), score, position, distance_m });
                if results.len() >= found_max {
                    return results;
                }
            }
        }
    }
    results
}

/// Runs a parsed search on the sorted set, and writes the reply or stores the result.
pub(super) fn run(call: &mut Call<'_, '_>, kind: Kind, query: &Query) -> AttemptResult {
    let steps_max = call.steps_max();
    let set = call.keys.value::<SortedSet>(kind.source)?;
    // A destination key that an option names cannot be borrowed.
    let is_lendable = query.target == kind.target;
    if is_lendable && set.is_some_and(|set| set.len() > steps_max && query.candidates(set) > steps_max) {
        return Ok(Attempt::Offload);
    }
    let results = set.map_or_else(Vec::new, |set| query.results(set));
    let Some(target) = query.target else {
        query.write(call.reply, &results);
        return Ok(Attempt::Done);
    };
    let limits = call.keys.turn.settings.encoding;
    let event = if kind.is_by_options { "geosearchstore" } else { "georadiusstore" };
    let stored = query.stored(&results, &limits);
    call.reply.integer(results.len() as i64);
    call.keys.key(target).store_value(Event::sorted_set(event), stored);
    Ok(Attempt::Done)
}
