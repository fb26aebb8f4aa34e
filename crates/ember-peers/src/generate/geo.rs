//! The geographic commands.
//!
//! These commands use separate keys, in which no two members have the same position, because the order in which Redis
//! returns members at equal distances depends on its sorting algorithm.

use super::{Draw, Generator, Step, Words};

pub(super) const COMMANDS: &[Generator] = &[
    Generator { name: "GEOADD", weight: 40, make: geoadd },
    Generator { name: "GEODIST", weight: 12, make: geodist },
    Generator { name: "GEOHASH", weight: 8, make: |draw| one(draw, "GEOHASH {geokey} {places}") },
    Generator { name: "GEOPOS", weight: 8, make: |draw| one(draw, "GEOPOS {geokey} {places}") },
    Generator {
        name: "GEORADIUS",
        weight: 12,
        make: |draw| georadius(draw, "GEORADIUS {geokey} {position}", true),
    },
    Generator {
        name: "GEORADIUS_RO",
        weight: 8,
        make: |draw| georadius(draw, "GEORADIUS_RO {geokey} {position}", false),
    },
    Generator {
        name: "GEORADIUSBYMEMBER",
        weight: 12,
        make: |draw| georadius(draw, "GEORADIUSBYMEMBER {geokey} {place}", true),
    },
    Generator {
        name: "GEORADIUSBYMEMBER_RO",
        weight: 8,
        make: |draw| georadius(draw, "GEORADIUSBYMEMBER_RO {geokey} {place}", false),
    },
    Generator { name: "GEOSEARCH", weight: 30, make: |draw| geosearch(draw, "GEOSEARCH {geokey}", FACTS) },
    Generator { name: "GEOSEARCHSTORE", weight: 20, make: geosearchstore },
];

const FACTS: &[&str] = &["WITHDIST", "WITHHASH", "WITHCOORD"];
const SHARED_OPTIONS: &[&str] = &["ASC", "DESC", "COUNT 3", "COUNT 1", "COUNT 3 ANY", "ANY"];

fn line(draw: &mut Draw, template: &str) -> Words {
    let mut words = Words::new();
    for word in template.split(' ') {
        match word {
            "{geokey}" => words.push(geo_key(draw)),
            "{place}" => words.push(place(draw)),
            "{places}" => {
                for _ in 0..draw.random.below(4) {
                    words.push(place(draw));
                }
            }
            "{position}" => words.extend(position(draw)),
            "{length}" => words.push(length(draw).into_bytes()),
            "{unit}" => {
                let unit = draw.random.pick(&["m", "km", "ft", "mi", "M", "Km", "km", "km", "km", "yd"]);
                words.push(unit.as_bytes().to_vec());
            }
            _ => words.extend(draw.line(word)),
        }
    }
    words
}

fn one(draw: &mut Draw, template: &str) -> Vec<Step> {
    vec![Step::reply(line(draw, template))]
}

fn geo_key(draw: &mut Draw) -> Vec<u8> {
    draw.random.pick(&[&b"geo:1"[..], b"geo:2", b"geo:1", b"geo:2", b"geo:missing", b"geo:string"]).to_vec()
}

fn place(draw: &mut Draw) -> Vec<u8> {
    format!("place {}", draw.random.below(300)).into_bytes()
}

/// Returns a position near one of a few centers, or an arbitrary one. All valid positions are different.
fn position(draw: &mut Draw) -> Words {
    let (longitude, latitude): (i64, i64) = match draw.random.below(12) {
        0 => {
            let wrong = [
                ["181", "0"],
                ["0", "86"],
                ["abc", "1"],
                ["1", ""],
                ["nan", "0"],
                ["-inf", "inf"],
                ["180", "x"],
            ];
            return wrong[draw.random.below(wrong.len())]
                .iter()
                .map(|word| word.as_bytes().to_vec())
                .collect();
        }
        1..=3 => {
            (draw.random.between(-179_999_999, 179_999_999), draw.random.between(-85_000_000, 85_000_000))
        }
        4 => (draw.random.between(179_000_000, 180_000_000), draw.random.between(-1_000_000, 1_000_000)),
        5 => (draw.random.between(-180_000_000, -179_000_000), draw.random.between(70_000_000, 85_051_128)),
        _ => (
            13_361_389 + draw.random.between(-3_000_000, 3_000_000),
            38_115_556 + draw.random.between(-3_000_000, 3_000_000),
        ),
    };
    [longitude, latitude]
        .iter()
        .map(|millionths| format!("{}", *millionths as f64 / 1e6).into_bytes())
        .collect()
}

fn length(draw: &mut Draw) -> String {
    match draw.random.below(20) {
        0 => draw.random.pick(&["-1", "abc", "", "nan", "inf", "0", "1e400"]).to_owned(),
        1..=4 => draw.random.between(1, 50_000_000).to_string(),
        5..=8 => format!("{}.{}", draw.random.below(1000), draw.random.below(1000)),
        _ => draw.random.between(1, 500).to_string(),
    }
}

fn geoadd(draw: &mut Draw) -> Vec<Step> {
    if draw.random.chance(2) {
        return one(draw, "SET geo:string 1");
    }
    let mut words = line(draw, "GEOADD {geokey}");
    for _ in 0..draw.random.below(3) / 2 + draw.random.below(2) {
        let option = draw.random.pick(&["NX", "XX", "CH", "CH", "{word}"]);
        words.extend(line(draw, option));
    }
    for _ in 0..=draw.random.below(8) {
        words.extend(line(draw, "{position} {place}"));
    }
    if draw.random.chance(3) {
        words.pop();
    }
    vec![Step::reply(words)]
}

fn geodist(draw: &mut Draw) -> Vec<Step> {
    let template = draw.random.pick(&[
        "GEODIST {geokey} {place} {place}",
        "GEODIST {geokey} {place} {place} {unit}",
        "GEODIST {geokey} {place} {place} {unit} {word}",
    ]);
    one(draw, template)
}

fn add_options(draw: &mut Draw, words: &mut Words, options: &[&str]) {
    for _ in 0..draw.random.below(4) {
        let facts_or_shared = if draw.random.chance(50) { options } else { SHARED_OPTIONS };
        let option = draw.random.pick(facts_or_shared);
        words.extend(line(draw, option));
    }
    if draw.random.chance(3) {
        words.extend(line(draw, "COUNT {count} {word}"));
    }
}

fn georadius(draw: &mut Draw, template: &str, may_store: bool) -> Vec<Step> {
    let mut words = line(draw, template);
    words.extend(line(draw, "{length} {unit}"));
    add_options(draw, &mut words, FACTS);
    if draw.random.chance(if may_store { 30 } else { 2 }) {
        // Distances are not positions, so they are stored separately.
        let option = draw.random.pick(&[
            "STORE {geokey}",
            "STOREDIST geo:distances",
            "STORE",
            "STOREDIST STORE STORE geo:stored",
        ]);
        words.extend(option.split(' ').flat_map(|word| {
            if word == "{geokey}" { vec![geo_key(draw)] } else { vec![word.as_bytes().to_vec()] }
        }));
    }
    vec![Step::reply(words)]
}

fn geosearch(draw: &mut Draw, template: &str, options: &[&str]) -> Vec<Step> {
    let mut words = line(draw, template);
    let mut parts = Vec::new();
    for _ in 0..1 + draw.random.below(20) / 19 {
        parts.push(draw.random.pick(&["FROMMEMBER {place}", "FROMLONLAT {position}"]));
        parts.push(draw.random.pick(&["BYRADIUS {length} {unit}", "BYBOX {length} {length} {unit}"]));
    }
    if draw.random.chance(50) {
        draw.random.shuffle(&mut parts);
    }
    for part in parts {
        if !draw.random.chance(2) {
            words.extend(line(draw, part));
        }
    }
    add_options(draw, &mut words, options);
    vec![Step::reply(words)]
}

fn geosearchstore(draw: &mut Draw) -> Vec<Step> {
    let stores_distances = draw.random.chance(30);
    let mut steps =
        geosearch(draw, "GEOSEARCHSTORE {geokey}", if stores_distances { &["STOREDIST"] } else { &["ASC"] });
    let words = &mut steps[0].words;
    let stores_distances = words.iter().any(|word| word.eq_ignore_ascii_case(b"STOREDIST"));
    let target = if stores_distances { b"geo:distances".to_vec() } else { geo_key(draw) };
    words.insert(1, target);
    if draw.random.chance(3) {
        words.extend(line(draw, "WITHDIST"));
    }
    steps
}
