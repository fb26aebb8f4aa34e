//! Tests of geographic commands, which compare the bytes of replies.

use ember_protocol::Protocol;
use emberkv_core::events::EventClass;

use crate::support::script::Script;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const SYNTAX: &str = "-ERR syntax error";
const UNIT: &str = "-ERR unsupported unit provided. please use M, KM, FT, MI";
const NO_MEMBER: &str = "-ERR could not decode requested zset member";

const SICILY: [(&str, &str); 2] = [
    ("GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania", ":2"),
    ("GEOADD Sicily 12.758489 38.788135 edge1 17.241510 38.788135 edge2", ":2"),
];

/// Returns a reply without the lengths of its strings.
fn plain(reply: &str) -> String {
    let is_length = |word: &str| word.strip_prefix('$').is_some_and(|digits| digits.parse::<u32>().is_ok());
    let words = reply.split(' ').filter(|word| !is_length(word));
    words.map(|word| if word == "$-1" { "nil" } else { word }).collect::<Vec<_>>().join(" ")
}

fn check_in(protocol: Protocol, steps: &[(&str, &str)]) {
    for entries in [128, 0] {
        let mut script = Script::new(protocol);
        script.local.turn.settings.encoding.zset_max_listpack_entries = entries;
        for (line, expected) in SICILY.iter().chain(steps) {
            assert_eq!(plain(&script.step(line)), *expected, "{line}");
        }
        script.local.keyspace.check_invariants();
    }
}

/// Runs a script on the key `Sicily` in RESP2.
fn check(steps: &[(&str, &str)]) {
    check_in(Protocol::Resp2, steps);
}

#[test]
fn positions_are_scores_of_a_sorted_set() {
    check(&[
        ("ZSCORE Sicily Palermo", "3479099956230698"),
        ("TYPE Sicily", "+zset"),
        ("GEOADD Sicily NX CH 0 0 Palermo 1 1 Rome", ":1"),
        ("GEOADD Sicily XX CH 1 1 Palermo 2 2 Nowhere", ":1"),
        ("GEOADD Sicily CH 2 2 Rome", ":1"),
        ("GEOADD Sicily NX XX 1 1 a", SYNTAX),
        ("GEOADD Sicily 1 1", "-ERR wrong number of arguments for 'geoadd' command"),
        ("GEOADD Sicily 1 1 a 2", SYNTAX),
        ("GEOADD Sicily x 1 a", "-ERR value is not a valid float"),
        ("GEOADD Sicily 181 1 a", "-ERR invalid longitude,latitude pair 181.000000,1.000000"),
        ("GEOADD Sicily 1 1 a 0 -86 b", "-ERR invalid longitude,latitude pair 0.000000,-86.000000"),
        ("ZCARD Sicily", ":5"),
    ]);
}

#[test]
fn geopos_and_geohash_return_positions_and_hashes() {
    check(&[
        ("GEOPOS Sicily Palermo nobody", "*2 *2 13.36138933897018433 38.11555639549629859 *-1"),
        ("GEOPOS missing a", "*1 *-1"),
        ("GEOPOS Sicily", "*0"),
        ("GEOHASH Sicily Palermo Catania nobody", "*3 sqc8b49rny0 sqdtr74hyu0 nil"),
        ("GEOHASH missing a", "*1 nil"),
        ("GEODIST Sicily Palermo Catania", "166274.1516"),
        ("GEODIST Sicily Palermo Catania km", "166.2742"),
        ("GEODIST Sicily Palermo Catania MI", "103.3182"),
        ("GEODIST Sicily Palermo Catania ft", "545518.8700"),
        ("GEODIST Sicily Palermo Palermo", "0.0000"),
        ("GEODIST Sicily Palermo nobody", "nil"),
        ("GEODIST missing a b", "nil"),
        ("GEODIST Sicily Palermo Catania yd", UNIT),
        ("GEODIST Sicily Palermo Catania m m", SYNTAX),
    ]);
    check_in(
        Protocol::Resp3,
        &[("GEOPOS Sicily Palermo nobody", "*2 *2 ,13.36138933897018433 ,38.11555639549629859 nil")],
    );
}

#[test]
fn a_search_finds_the_members_inside_its_shape() {
    check(&[
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km ASC", "*2 Catania Palermo"),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km DESC", "*2 Palermo Catania"),
        (
            "GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 km ASC WITHCOORD WITHDIST",
            "*4 *3 Catania 56.4413 *2 15.08726745843887329 37.50266842333162032 \
             *3 Palermo 190.4424 *2 13.36138933897018433 38.11555639549629859 \
             *3 edge2 279.7403 *2 17.24151045083999634 38.78813451624225195 \
             *3 edge1 279.7405 *2 12.7584877610206604 38.78813451624225195",
        ),
        ("GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 0 m", "*1 Palermo"),
        (
            "GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 100 km WITHHASH ASC",
            "*2 *2 Palermo :3479099956230698 *2 edge1 :3479273021651468",
        ),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 300 km COUNT 1", "*1 Catania"),
        ("GEOSEARCH Sicily BYRADIUS 300 km FROMLONLAT 15 37 COUNT 2 DESC", "*2 edge1 edge2"),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 20000 km ASC", "*4 Catania Palermo edge2 edge1"),
        ("GEOSEARCH missing FROMMEMBER a BYRADIUS 1 m", "*0"),
        ("GEOSEARCH Sicily FROMLONLAT 0 0 BYBOX 1 1 m", "*0"),
    ]);
    let mut script = Script::new(Protocol::Resp2);
    SICILY.iter().for_each(|(line, _)| drop(script.run(line)));
    let any = plain(&script.run("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 300 km COUNT 2 ANY"));
    assert_eq!(any.split(' ').count(), 3, "{any}");
}

#[test]
fn a_search_around_the_date_line_finds_both_sides() {
    check(&[
        ("GEOADD line 179.9 10 west -179.9 10 east", ":2"),
        ("GEOSEARCH line FROMLONLAT 179.95 10 BYRADIUS 50 km ASC", "*2 west east"),
        ("GEOSEARCH line FROMLONLAT -179.95 10 BYBOX 100 10 km ASC", "*2 east west"),
    ]);
}

#[test]
fn wrong_searches_are_refused() {
    check(&[
        ("GEOSEARCH Sicily FROMMEMBER nobody BYRADIUS 1 m", NO_MEMBER),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS x km", "-ERR need numeric radius"),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS -1 km", "-ERR radius cannot be negative"),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 1 yd", UNIT),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX x 1 km", "-ERR need numeric width"),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 1 x km", "-ERR need numeric height"),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 1 -1 km", "-ERR height or width cannot be negative"),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 1 km COUNT 0", "-ERR COUNT must be > 0"),
        (
            "GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 1 km ANY",
            "-ERR the ANY argument requires COUNT argument",
        ),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 FROMMEMBER a BYRADIUS 1 km", SYNTAX),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 1 km BYBOX 1 1 km", SYNTAX),
        (
            "geosearch Sicily BYRADIUS 1 km ASC WITHDIST",
            "-ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for geosearch",
        ),
        (
            "GEOSEARCH Sicily FROMLONLAT 15 37 ASC WITHDIST",
            "-ERR exactly one of BYRADIUS and BYBOX can be specified for GEOSEARCH",
        ),
        (
            "GEOSEARCHSTORE t Sicily FROMLONLAT 15 37 BYRADIUS 1 km WITHDIST",
            "-ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options",
        ),
        (
            "GEORADIUS Sicily 15 37 1 km WITHDIST STORE t",
            "-ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options",
        ),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 1 km STOREDIST", SYNTAX),
        ("GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 1 km STORE t", SYNTAX),
        ("GEORADIUS_RO Sicily 15 37 1 km STORE t", SYNTAX),
        ("GEORADIUSBYMEMBER Sicily nobody 1 km", NO_MEMBER),
        ("SET s x", "+OK"),
        ("GEOADD s 1 1 a", WRONG_TYPE),
        ("GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 1 km", WRONG_TYPE),
        ("GEODIST s a b", WRONG_TYPE),
        ("GEOPOS s a", WRONG_TYPE),
        ("GEORADIUS s 15 37 1 km", WRONG_TYPE),
    ]);
}

#[test]
fn results_are_stored_as_positions_or_distances() {
    check(&[
        ("GEOSEARCHSTORE t Sicily FROMLONLAT 15 37 BYRADIUS 200 km", ":2"),
        ("ZRANGE t 0 -1 WITHSCORES", "*4 Palermo 3479099956230698 Catania 3479447370796909"),
        ("GEOSEARCHSTORE t Sicily FROMLONLAT 15 37 BYRADIUS 200 km COUNT 1 STOREDIST", ":1"),
        ("ZRANGE t 0 -1", "*1 Catania"),
        ("GEOSEARCHSTORE t Sicily FROMLONLAT 0 0 BYRADIUS 1 km", ":0"),
        ("EXISTS t", ":0"),
        ("GEORADIUS Sicily 15 37 200 km STORE t", ":2"),
        ("GEORADIUSBYMEMBER Sicily Palermo 200 km STOREDIST t", ":3"),
        ("ZSCORE t Palermo", "0"),
        ("GEORADIUS Sicily 15 37 200 km STORE a STOREDIST b", ":2"),
        ("EXISTS a b", ":1"),
        // A key may have the same name as an option.
        ("GEORADIUS Sicily 15 37 200 km STOREDIST STORE STORE c", ":2"),
        ("EXISTS STORE c", ":1"),
        ("GEORADIUS missing 15 37 200 km STORE c", ":0"),
        ("EXISTS c", ":0"),
    ]);
}

#[test]
fn a_polygon_is_searched_around_the_middle_of_its_vertices() {
    const FEW: &str = "-ERR GEOSEARCH BYPOLYGON must have at least 3 vertices";
    check(&[
        ("GEOSEARCH Sicily BYPOLYGON 4 13 38 13 39 15 38 15 37.9 ASC", "*1 Palermo"),
        ("GEOSEARCH Sicily bypolygon 4 12 37 17.5 37 17.5 40 12 40 asc", "*4 Catania Palermo edge1 edge2"),
        ("GEOSEARCH Sicily BYPOLYGON 4 12 37 17.5 37 17.5 40 12 40 DESC COUNT 1", "*1 edge2"),
        ("GEOSEARCH Sicily BYPOLYGON 3 13 38 13 39 15 38 WITHDIST", "*1 *2 Palermo 36510.9513"),
        // The notch of the polygon excludes Catania.
        ("GEOSEARCH Sicily BYPOLYGON 5 12 37 15 38 17.5 37 17.5 40 12 40 ASC", "*3 Palermo edge1 edge2"),
        ("GEOSEARCHSTORE t Sicily BYPOLYGON 3 12 38 12 40 14 38 STOREDIST", ":2"),
        ("ZRANGE t 0 -1", "*2 edge1 Palermo"),
        ("GEOSEARCH none BYPOLYGON 3 13 38 13 39 15 38", "*0"),
        ("GEOSEARCH Sicily BYPOLYGON 2 13 38 13 39", FEW),
        ("GEOSEARCH Sicily BYPOLYGON 3 13 38 13 39", FEW),
        ("GEOSEARCH Sicily BYPOLYGON -1 13 38 13 39", FEW),
        ("GEOSEARCH Sicily BYPOLYGON 2000000000 13 38 13 39 15 38", FEW),
        ("GEOSEARCH Sicily BYPOLYGON x 13 38 13 39 15 38", "-ERR invalid number of vertices"),
        ("GEOSEARCH Sicily BYPOLYGON 3 13 38 13 39 15 x", "-ERR value is not a valid float"),
        (
            "GEOSEARCH Sicily BYPOLYGON 3 13 38 13 39 15 95",
            "-ERR invalid longitude,latitude pair 15.000000,95.000000",
        ),
        ("GEOSEARCH Sicily BYPOLYGON 3 13 38 13 39 15 38 BYBOX 1 1 km", SYNTAX),
        ("GEOSEARCH Sicily BYBOX 1 1 km BYPOLYGON 3 13 38 13 39 15 38", SYNTAX),
        ("GEOSEARCH Sicily BYRADIUS 1 km BYPOLYGON 3 13 38 13 39 15 38", SYNTAX),
        ("GEOSEARCH Sicily BYPOLYGON 3 13 38 13 39 15 38 FROMLONLAT 13 38", SYNTAX),
        ("GEOSEARCH Sicily FROMMEMBER Palermo BYPOLYGON 3 13 38 13 39 15 38", SYNTAX),
        ("GEORADIUS Sicily 13 38 1 km BYPOLYGON 3 13 38 13 39 15 38", SYNTAX),
    ]);
}

#[test]
fn older_commands_search_too() {
    check(&[
        ("GEORADIUS Sicily 15 37 200 km ASC", "*2 Catania Palermo"),
        ("GEORADIUS_RO Sicily 15 37 200 km WITHDIST DESC", "*2 *2 Palermo 190.4424 *2 Catania 56.4413"),
        ("GEORADIUSBYMEMBER Sicily Palermo 170 km DESC", "*3 Catania edge1 Palermo"),
        ("GEORADIUSBYMEMBER_RO Sicily Palermo 170 km COUNT 2", "*2 Palermo edge1"),
        ("GEORADIUS missing 15 37 200 km", "*0"),
        ("GEORADIUSBYMEMBER missing a 200 km", "*0"),
        ("GEORADIUS Sicily 15 37 200 yd", UNIT),
    ]);
}

#[test]
fn changes_are_published_as_events() {
    for (line, expected) in [
        ("GEOADD Sicily 1 1 a", "zadd"),
        ("GEOSEARCHSTORE t Sicily FROMLONLAT 15 37 BYRADIUS 200 km", "geosearchstore"),
        ("GEOSEARCHSTORE Sicily Sicily FROMLONLAT 0 0 BYRADIUS 1 m", "del"),
        ("GEORADIUS Sicily 15 37 200 km STORE t", "georadiusstore"),
    ] {
        let mut script = Script::new(Protocol::Resp2);
        SICILY.iter().for_each(|(line, _)| drop(script.run(line)));
        script.local.turn.notices.classes = EventClass::ALL;
        script.local.turn.notices.events.clear();
        script.run(line);
        let events: Vec<&str> =
            script.local.turn.notices.events.iter().map(|notice| notice.event.name).collect();
        assert_eq!(events.join(" "), expected, "{line}");
    }
}
