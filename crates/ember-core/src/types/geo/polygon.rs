//! A polygon on the map: straight lines between its vertices in degrees, the last one joined to the first.
//!
//! The even-odd rule (M. Shimrat, Algorithm 112, 1962) decides whether it covers a place: if so, a ray from the place
//! to the east crosses its edges an odd number of times. Edges do not cross the 180th meridian.

use super::area::Bounds;
use super::{Position, degrees, radians};

/// The minimum number of vertices of a polygon.
pub const VERTICES_MIN: usize = 3;

/// Three or more vertices, and the bounds that follow from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Polygon {
    vertices: Vec<Position>,
    bounds: Bounds,
}

impl Polygon {
    /// Returns the polygon with these vertices, which must be valid and at least [`VERTICES_MIN`]. O(vertices).
    pub fn new(vertices: Vec<Position>) -> Polygon {
        assert!(vertices.len() >= VERTICES_MIN, "the caller counts them");
        let nowhere = Bounds {
            west: f64::INFINITY,
            south: f64::INFINITY,
            east: f64::NEG_INFINITY,
            north: f64::NEG_INFINITY,
        };
        let bounds = vertices.iter().fold(nowhere, |bounds, vertex| Bounds {
            west: bounds.west.min(vertex.longitude),
            south: bounds.south.min(vertex.latitude),
            east: bounds.east.max(vertex.longitude),
            north: bounds.north.max(vertex.latitude),
        });
        Polygon { vertices, bounds }
    }

    /// Returns the point from which distances are measured: the direction of the sum of the vertices as vectors from
    /// the center of the earth.
    pub fn centre(&self) -> Position {
        let (mut x, mut y, mut z) = (0.0, 0.0, 0.0);
        for vertex in &self.vertices {
            let (longitude, latitude) = (radians(vertex.longitude), radians(vertex.latitude));
            x += latitude.cos() * longitude.cos();
            y += latitude.cos() * longitude.sin();
            z += latitude.sin();
        }
        let latitude = z.atan2((x * x + y * y).sqrt());
        Position { longitude: degrees(y.atan2(x)), latitude: degrees(latitude) }
    }

    /// Returns the smallest rectangle around the polygon.
    pub(super) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Returns the distance in meters from `centre` to the farthest corner of the polygon's bounds.
    pub(super) fn reach_m(&self, centre: Position) -> f64 {
        let Bounds { west, south, east, north } = self.bounds;
        let corners = [(west, north), (east, north), (west, south), (east, south)];
        let distances =
            corners.map(|(longitude, latitude)| centre.distance_m(Position { longitude, latitude }));
        distances.into_iter().fold(0.0, f64::max)
    }

    /// Returns whether the polygon covers `place`. O(vertices) within its bounds.
    pub fn covers(&self, place: Position) -> bool {
        if !self.bounds.contains(place) {
            return false;
        }
        let next = self.vertices.iter().cycle().skip(1);
        let crossings = self.vertices.iter().zip(next).filter(|&(&from, &to)| is_crossed(place, to, from));
        crossings.count() % 2 == 1
    }
}

/// Returns whether the ray from `place` to the east crosses the edge between `a` and `b`, which includes one of its
/// ends.
fn is_crossed(place: Position, a: Position, b: Position) -> bool {
    if (a.latitude > place.latitude) == (b.latitude > place.latitude) {
        return false;
    }
    let part = (place.latitude - a.latitude) / (b.latitude - a.latitude);
    place.longitude < (b.longitude - a.longitude) * part + a.longitude
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polygon(vertices: &[(f64, f64)]) -> Polygon {
        Polygon::new(vertices.iter().map(|&(longitude, latitude)| Position { longitude, latitude }).collect())
    }

    fn covers(polygon: &Polygon, longitude: f64, latitude: f64) -> bool {
        polygon.covers(Position { longitude, latitude })
    }

    #[test]
    fn a_concave_polygon_leaves_its_notch_out() {
        let polygon = polygon(&[(0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (5.0, 2.0), (0.0, 10.0)]);
        assert!(covers(&polygon, 1.0, 5.0) && covers(&polygon, 9.0, 5.0) && covers(&polygon, 5.0, 1.0));
        assert!(!covers(&polygon, 5.0, 5.0) && !covers(&polygon, 11.0, 5.0) && !covers(&polygon, 5.0, -1.0));
    }

    #[test]
    fn areas_enclosed_twice_are_outside() {
        // A star of five edges, drawn in one line.
        let star = polygon(&[(0.0, 10.0), (6.0, -8.0), (-9.5, 3.0), (9.5, 3.0), (-6.0, -8.0)]);
        assert!(!covers(&star, 0.0, 0.0));
        assert!(covers(&star, 0.0, 7.0) && covers(&star, 7.0, 2.5));
    }

    #[test]
    fn a_shared_edge_belongs_to_one_polygon() {
        let west = polygon(&[(0.0, 0.0), (5.0, 0.0), (5.0, 5.0), (0.0, 5.0)]);
        let east = polygon(&[(5.0, 0.0), (9.0, 0.0), (9.0, 5.0), (5.0, 5.0)]);
        assert!(covers(&west, 5.0, 2.0) != covers(&east, 5.0, 2.0));
    }

    #[test]
    fn the_center_is_the_mean_of_the_vertices() {
        let centre = polygon(&[(0.0, -5.0), (10.0, -5.0), (10.0, 5.0), (0.0, 5.0)]).centre();
        assert!((centre.longitude - 5.0).abs() < 1e-9 && centre.latitude.abs() < 1e-9, "{centre:?}");
        let pole = polygon(&[(-120.0, 80.0), (0.0, 80.0), (120.0, 80.0)]).centre();
        assert!((pole.latitude - 90.0).abs() < 1e-6, "{pole:?}");
    }
}
