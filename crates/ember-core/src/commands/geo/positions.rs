//! Parsing and writing of positions and distances.

use std::io::Write;

use ember_protocol::{Args, Reply, number};

use crate::commands::arguments::is_word;
use crate::error::CommandError;
use crate::types::geo::Position;

fn float(args: Args<'_>, arg: usize) -> Result<f64, CommandError> {
    number::parse_f64(args.at(arg)).ok_or(CommandError::NotFloat)
}

/// Parses the position whose longitude is in argument `arg` and whose latitude is in the next argument.
pub(super) fn position(args: Args<'_>, arg: usize) -> Result<Position, CommandError> {
    let position = Position { longitude: float(args, arg)?, latitude: float(args, arg + 1)? };
    if !position.is_valid() {
        let Position { longitude, latitude } = position;
        return Err(format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}").into());
    }
    Ok(position)
}

/// Parses the unit in argument `arg` and returns its length in metres.
pub(super) fn unit(args: Args<'_>, arg: usize) -> Result<f64, CommandError> {
    const UNITS: [(&str, f64); 4] = [("M", 1.0), ("KM", 1000.0), ("FT", 0.3048), ("MI", 1609.34)];
    let unit = UNITS.into_iter().find(|(word, _)| is_word(args, arg, word));
    unit.map(|(_, metres)| metres)
        .ok_or_else(|| "ERR unsupported unit provided. please use M, KM, FT, MI".into())
}

/// Parses the length in argument `arg`; returns `error` if the argument is not a number.
pub(super) fn length(args: Args<'_>, arg: usize, error: &'static str) -> Result<f64, CommandError> {
    number::parse_f64(args.at(arg)).ok_or_else(|| error.into())
}

/// Writes a distance, with four decimal places.
pub(super) fn write_distance(reply: &mut Reply, distance: f64) {
    let mut text = Vec::with_capacity(24);
    // Writing to a vector cannot fail.
    let _ = write!(text, "{distance:.4}");
    reply.bulk(&text);
}

/// Writes a position as an array of longitude and latitude.
pub(super) fn write_position(reply: &mut Reply, position: Position) {
    reply.array(2);
    write_degrees(reply, position.longitude);
    write_degrees(reply, position.latitude);
}

/// Writes a number of degrees, with up to 17 decimal places and without trailing zeros.
fn write_degrees(reply: &mut Reply, degrees: f64) {
    let text = format!("{degrees:.17}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let text = if text == "-0" { "0" } else { text };
    if reply.is_resp3() {
        reply.raw(format!(",{text}\r\n").as_bytes());
    } else {
        reply.bulk(text.as_bytes());
    }
}
