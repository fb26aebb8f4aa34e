//! The cells that a search reads: the one around the center and those of its eight neighbors that the shape reaches.
//!
//! Cells are chosen as large as the shape, so that three by three of them cover it. Near the poles cells are narrower
//! than at the equator, so larger ones are used. The center of a polygon may be outside of it, even on the other side
//! of the earth: its cells grow until they cover it. The order and number of cells are those of Redis, because they
//! determine the order of the results of a search without sorting.

use super::geohash::{Cell, STEP_MAX};
use super::{EARTH_RADIUS_M, Position, Shape, degrees, radians};

/// Half the length of the equator in meters, according to the Mercator projection.
const MERCATOR_MAX: f64 = 20_037_726.37;

/// The latitudes in degrees from which, towards the poles, cells are one step and two steps larger.
const NARROW_LATITUDE: f64 = 66.0;
const NARROWER_LATITUDE: f64 = 80.0;

/// The neighbors in the order of the search, as steps to the east and to the north; the cell itself comes first.
const NEIGHBORS: [(i32, i32); 8] = [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];

/// The greatest coordinates, in degrees, around which cells of a polygon are searched: a center at the edge of the area
/// of geohashes, or outside of it, is moved here. The cells still cover the polygon.
const CENTRE_MAX: Position = Position { longitude: 179.9, latitude: 85.0 };

/// A rectangle in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    pub(super) west: f64,
    pub(super) south: f64,
    pub(super) east: f64,
    pub(super) north: f64,
}

impl Bounds {
    /// Returns the smallest rectangle around `shape` at `centre`.
    fn around(centre: Position, shape: &Shape) -> Bounds {
        match *shape {
            Shape::Circle { radius_m } => Bounds::of_sides(centre, radius_m, radius_m),
            Shape::Rectangle { width_m, height_m } => Bounds::of_sides(centre, width_m / 2.0, height_m / 2.0),
            Shape::Polygon(ref polygon) => polygon.bounds(),
        }
    }

    /// Returns the rectangle around `centre` with sides of twice these lengths in meters. Its width in degrees is
    /// computed at the latitude where degrees are narrowest.
    fn of_sides(centre: Position, half_width: f64, half_height: f64) -> Bounds {
        let height = degrees(half_height / EARTH_RADIUS_M);
        let width_at = |latitude: f64| degrees(half_width / EARTH_RADIUS_M / radians(latitude).cos());
        let width = if centre.latitude < 0.0 {
            width_at(centre.latitude - height)
        } else {
            width_at(centre.latitude + height)
        };
        Bounds {
            west: centre.longitude - width,
            south: centre.latitude - height,
            east: centre.longitude + width,
            north: centre.latitude + height,
        }
    }

    /// Returns whether a place is inside or at the edge.
    pub(super) fn contains(self, place: Position) -> bool {
        (self.west..=self.east).contains(&place.longitude)
            && (self.south..=self.north).contains(&place.latitude)
    }
}

/// Returns the number of bits per axis for which three by three cells cover a circle of `radius_m` meters around
/// `latitude`.
fn steps_for(mut radius_m: f64, latitude: f64) -> u32 {
    if radius_m == 0.0 {
        return STEP_MAX;
    }
    let mut step = 1;
    while radius_m < MERCATOR_MAX {
        radius_m *= 2.0;
        step += 1;
    }
    // Cells are two steps larger, so that they also cover a circle whose center is at the edge of its cell.
    step -= 2;
    step -= i32::from(latitude.abs() > NARROW_LATITUDE);
    step -= i32::from(latitude.abs() > NARROWER_LATITUDE);
    step.clamp(1, STEP_MAX as i32) as u32
}

/// Returns whether `cell` and its neighbors do not cover the bounds.
fn is_too_small(cell: Cell, bounds: &Bounds) -> bool {
    cell.neighbor(0, 1).bounds().latitude.max < bounds.north
        || cell.neighbor(0, -1).bounds().latitude.min > bounds.south
        || cell.neighbor(1, 0).bounds().longitude.max < bounds.east
        || cell.neighbor(-1, 0).bounds().longitude.min > bounds.west
}

/// Returns the position nearest to `centre` that certainly has cells on all sides.
fn within_cells(centre: Position) -> Position {
    let Position { longitude, latitude } = CENTRE_MAX;
    Position {
        longitude: centre.longitude.clamp(-longitude, longitude),
        latitude: centre.latitude.clamp(-latitude, latitude),
    }
}

/// Returns the cells that contain all positions covered by `shape` around `centre`, in the order of the search, without
/// the same cell twice in succession.
pub fn cells(centre: Position, shape: &Shape) -> impl Iterator<Item = Cell> + use<> {
    let bounds = Bounds::around(centre, shape);
    let mut step = steps_for(shape.reach_m(centre), centre.latitude);
    let is_polygon = matches!(shape, Shape::Polygon(_));
    let centre = if is_polygon { within_cells(centre) } else { centre };
    let mut cell = Cell::around(centre, step);
    while step > 1 && is_too_small(cell, &bounds) {
        step -= 1;
        cell = Cell::around(centre, step);
        if !is_polygon {
            break;
        }
    }
    let own = cell.bounds();
    // Where the cell extends beyond the bounds, its neighbor on that side is not needed, unless cells are so large that
    // they meet on the other side of the earth.
    let is_useless = move |(east, north): (i32, i32)| {
        step >= 2
            && ((north < 0 && own.latitude.min < bounds.south)
                || (north > 0 && own.latitude.max > bounds.north)
                || (east < 0 && own.longitude.min < bounds.west)
                || (east > 0 && own.longitude.max > bounds.east))
    };
    let mut previous = None;
    let neighbors = NEIGHBORS.into_iter().filter(move |&way| !is_useless(way));
    let neighbors = neighbors.map(move |(east, north)| cell.neighbor(east, north));
    // Neighbors of a very large cell may be identical.
    let distinct = neighbors.filter(move |&neighbor| previous.replace(neighbor) != Some(neighbor));
    std::iter::once(cell).chain(distinct)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::random::Random;
    use crate::types::geo::geohash;
    use crate::types::geo::polygon::Polygon;

    #[test]
    fn cells_are_as_large_as_the_search() {
        assert_eq!(steps_for(0.0, 0.0), 26);
        assert_eq!(steps_for(1.0, 0.0), 24);
        assert_eq!(steps_for(1e9, 0.0), 1);
        assert_eq!(steps_for(1000.0, 0.0) - steps_for(1000.0, 70.0), 1);
        assert_eq!(steps_for(1000.0, 0.0) - steps_for(1000.0, -81.0), 2);
    }

    #[test]
    fn the_cells_of_a_search_contain_its_area() {
        let mut random = Random::seeded(5);
        let mut covered = 0;
        for _ in 0..20_000 {
            let centre =
                Position { longitude: random.unit() * 340.0 - 170.0, latitude: random.unit() * 150.0 - 75.0 };
            let reach = 10f64.powf(random.unit() * 5.0);
            let shape = if random.below(2) == 0 {
                Shape::Circle { radius_m: reach }
            } else {
                Shape::Rectangle { width_m: reach, height_m: reach * random.unit() }
            };
            let spread = reach / 100_000.0;
            let place = Position {
                longitude: centre.longitude + (random.unit() - 0.5) * spread,
                latitude: centre.latitude + (random.unit() - 0.5) * spread,
            };
            let score = geohash::score(place);
            if shape.distance_m(centre, geohash::position(score)).is_some() {
                covered += 1;
                assert!(is_found(centre, &shape, score), "{place:?} of {shape:?} around {centre:?}");
            }
        }
        assert!(covered > 1000, "{covered}");
    }

    /// Returns whether exactly one of the cells contains the score.
    fn is_found(centre: Position, shape: &Shape, score: f64) -> bool {
        let holds = |cell: &Cell| {
            let (first, end) = cell.scores();
            (first..end).contains(&score)
        };
        cells(centre, shape).filter(holds).count() == 1
    }

    #[test]
    fn the_cells_of_a_polygon_contain_its_area() {
        let mut random = Random::seeded(6);
        let mut covered = 0;
        for _ in 0..20_000 {
            // Polygons are small or span the earth, and their center may be anywhere.
            let spread = 10f64.powf(random.unit() * 3.5 - 1.0);
            let middle = (random.unit() * 340.0 - 170.0, random.unit() * 160.0 - 80.0);
            let place = |random: &mut Random| Position {
                longitude: (middle.0 + (random.unit() - 0.5) * spread).clamp(-180.0, 180.0),
                latitude: (middle.1 + (random.unit() - 0.5) * spread).clamp(-85.0, 85.0),
            };
            let polygon = Polygon::new((0..3 + random.below(5)).map(|_| place(&mut random)).collect());
            let (centre, shape) = (polygon.centre(), Shape::Polygon(polygon));
            let score = geohash::score(place(&mut random));
            if shape.distance_m(centre, geohash::position(score)).is_some() {
                covered += 1;
                assert!(is_found(centre, &shape, score), "{score} of {shape:?} around {centre:?}");
            }
        }
        assert!(covered > 1000, "{covered}");
    }
}
