//! Places on the earth as scores of a sorted set: positions, distances, and the scores that a search reads.
//!
//! A position is stored as a 52-bit geohash ([`geohash`]), so that near places mostly have near scores. A search reads
//! the cell around its center and the cells next to it ([`area`]), and measures the distances of the members that it
//! finds.

pub mod area;
pub mod geohash;
pub mod polygon;

use polygon::Polygon;

/// The mean radius of the earth in meters; all distances here are computed with it.
pub const EARTH_RADIUS_M: f64 = 6_372_797.560_856;

/// A position on the earth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Degrees east, -180 to 180.
    pub longitude: f64,
    /// Degrees north; a geohash covers -85.05112878 to 85.05112878.
    pub latitude: f64,
}

/// Converts degrees to radians. The factor is the same double everywhere, so that results agree to the last bit.
fn radians(degrees: f64) -> f64 {
    degrees * (std::f64::consts::PI / 180.0)
}

fn degrees(radians: f64) -> f64 {
    radians / (std::f64::consts::PI / 180.0)
}

impl Position {
    /// Returns whether a geohash can represent the place.
    pub fn is_valid(self) -> bool {
        (geohash::LONGITUDE.min..=geohash::LONGITUDE.max).contains(&self.longitude)
            && (geohash::LATITUDE.min..=geohash::LATITUDE.max).contains(&self.latitude)
    }

    /// Returns the distance in meters on a sphere, by the haversine formula.
    pub fn distance_m(self, other: Position) -> f64 {
        let half_longitude = ((radians(other.longitude) - radians(self.longitude)) / 2.0).sin();
        if half_longitude == 0.0 {
            return latitude_distance_m(self.latitude, other.latitude);
        }
        let (from, to) = (radians(self.latitude), radians(other.latitude));
        let half_latitude = ((to - from) / 2.0).sin();
        let chord = half_latitude * half_latitude + from.cos() * to.cos() * half_longitude * half_longitude;
        2.0 * EARTH_RADIUS_M * chord.sqrt().asin()
    }
}

/// Returns the distance in meters between two places of one longitude.
fn latitude_distance_m(from: f64, to: f64) -> f64 {
    EARTH_RADIUS_M * (radians(to) - radians(from)).abs()
}

/// The shape that a search covers, in meters.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// All places within this distance.
    Circle {
        /// The maximum distance from the center.
        radius_m: f64,
    },
    /// All places in a box whose sides run along the axes.
    Rectangle {
        /// The length of the sides from west to east.
        width_m: f64,
        /// The length of the sides from south to north.
        height_m: f64,
    },
    /// All places in a polygon, wherever the center is.
    Polygon(Polygon),
}

impl Shape {
    /// Returns the distance in meters from `centre` to `place` if the shape around the center covers it.
    pub fn distance_m(&self, centre: Position, place: Position) -> Option<f64> {
        match *self {
            Shape::Polygon(ref polygon) => polygon.covers(place).then(|| centre.distance_m(place)),
            Shape::Circle { radius_m } => {
                let distance = centre.distance_m(place);
                (distance <= radius_m).then_some(distance)
            }
            Shape::Rectangle { width_m, height_m } => {
                if latitude_distance_m(place.latitude, centre.latitude) > height_m / 2.0 {
                    return None;
                }
                let same_latitude = Position { longitude: centre.longitude, latitude: place.latitude };
                if place.distance_m(same_latitude) > width_m / 2.0 {
                    return None;
                }
                Some(centre.distance_m(place))
            }
        }
    }

    /// Returns an upper bound in meters of the distance between the center and any position inside the shape.
    fn reach_m(&self, centre: Position) -> f64 {
        match *self {
            Shape::Circle { radius_m } => radius_m,
            Shape::Rectangle { width_m, height_m } => {
                ((width_m / 2.0) * (width_m / 2.0) + (height_m / 2.0) * (height_m / 2.0)).sqrt()
            }
            Shape::Polygon(ref polygon) => polygon.reach_m(centre),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PALERMO: Position = Position { longitude: 13.361389, latitude: 38.115556 };
    const CATANIA: Position = Position { longitude: 15.087269, latitude: 37.502669 };

    #[test]
    fn distances_follow_the_haversine_formula() {
        assert!((PALERMO.distance_m(CATANIA) - 166_274.0).abs() < 1.0);
        assert_eq!(PALERMO.distance_m(PALERMO), 0.0);
        let north = Position { latitude: 39.115556, ..PALERMO };
        assert_eq!(PALERMO.distance_m(north), latitude_distance_m(38.115556, 39.115556));
    }

    #[test]
    fn shapes_cover_points_within_their_distance() {
        let around = |shape: Shape| shape.distance_m(PALERMO, CATANIA).is_some();
        assert!(around(Shape::Circle { radius_m: 166_275.0 }));
        assert!(!around(Shape::Circle { radius_m: 166_273.0 }));
        assert!(around(Shape::Rectangle { width_m: 310_000.0, height_m: 140_000.0 }));
        assert!(!around(Shape::Rectangle { width_m: 290_000.0, height_m: 140_000.0 }));
        assert!(!around(Shape::Rectangle { width_m: 310_000.0, height_m: 130_000.0 }));
    }
}
