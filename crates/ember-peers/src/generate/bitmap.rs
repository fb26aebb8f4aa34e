//! The 7 bitmap commands.

use super::{Draw, Generator, Step};

pub(super) const COMMANDS: &[Generator] = &[
    Generator { name: "BITCOUNT", weight: 20, make: bitcount },
    Generator { name: "BITFIELD", weight: 30, make: bitfield },
    Generator { name: "BITFIELD_RO", weight: 10, make: bitfield_ro },
    Generator { name: "BITOP", weight: 20, make: bitop },
    Generator { name: "BITPOS", weight: 20, make: bitpos },
    Generator { name: "GETBIT", weight: 12, make: |draw| draw.one("GETBIT {key} {bit_offset}") },
    Generator { name: "SETBIT", weight: 20, make: |draw| draw.one("SETBIT {key} {bit_offset} {bit}") },
];

fn bitcount(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "BITCOUNT {key}",
        "BITCOUNT {key} {index} {index}",
        "BITCOUNT {key} {index} {index} BIT",
        "BITCOUNT {key} {index} {index} BYTE",
        "BITCOUNT {key} {index}",
        "BITCOUNT {key} {index} {index} {word}",
        "BITCOUNT {key} {index} {index} BIT {word}",
    ])
}

fn bitpos(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "BITPOS {key} {bit}",
        "BITPOS {key} {bit} {index}",
        "BITPOS {key} {bit} {index} {index}",
        "BITPOS {key} {bit} {index} {index} BIT",
        "BITPOS {key} {bit} {index} {index} BYTE",
        "BITPOS {key} {bit} {index} {index} {word}",
        "BITPOS {key} {bit} {index} {index} BIT {word}",
    ])
}

fn bitop(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "BITOP AND {key} {keys}",
        "BITOP OR {key} {keys}",
        "BITOP XOR {key} {keys}",
        "BITOP NOT {key} {key}",
        "BITOP NOT {key} {keys}",
        "BITOP {word} {key} {keys}",
        "BITOP AND {key}",
    ])
}

/// The lowest number that a signed field narrower than 64 bits saturates to correctly in Redis.
const SATURATED_MIN: i64 = -(1 << 62);

fn bitfield(draw: &mut Draw) -> Vec<Step> {
    let mut words = draw.line("BITFIELD {key}");
    for _ in 0..draw.random.below(4) {
        let kind = draw.random.pick(&["GET", "SET", "INCRBY", "OVERFLOW", "SET", "INCRBY", "{word}"]);
        words.extend(draw.line(kind));
        if kind == "OVERFLOW" {
            let behaviour = draw.random.pick(&["WRAP", "SAT", "FAIL", "WRAP", "SAT", "FAIL", "{word}"]);
            words.extend(draw.line(behaviour));
            continue;
        }
        words.push(field_type(draw).into_bytes());
        words.push(field_offset(draw).into_bytes());
        if kind != "GET" {
            let number = draw.integer();
            // For numbers below this, the overflow check of Redis itself overflows, and SET with SAT saturates to the
            // wrong limit.
            let wrong_in_redis = number.parse::<i64>().is_ok_and(|number| number < SATURATED_MIN);
            let number = if wrong_in_redis { SATURATED_MIN.to_string() } else { number };
            words.push(number.into_bytes());
        }
    }
    if draw.random.chance(3) {
        words.pop().filter(|_| words.len() > 1);
    }
    vec![Step::reply(words)]
}

fn bitfield_ro(draw: &mut Draw) -> Vec<Step> {
    let mut words = draw.line("BITFIELD_RO {key}");
    for _ in 0..draw.random.below(3) {
        let kind = draw.random.pick(&["GET", "GET", "GET", "GET", "SET", "OVERFLOW WRAP GET"]);
        words.extend(draw.line(kind));
        words.push(field_type(draw).into_bytes());
        words.push(field_offset(draw).into_bytes());
        if kind == "SET" {
            words.extend(draw.line("{integer}"));
        }
    }
    vec![Step::reply(words)]
}

fn field_type(draw: &mut Draw) -> String {
    match draw.random.below(12) {
        0 => draw
            .random
            .pick(&["u64", "i65", "u0", "i0", "x8", "u", "", "8", "i-1", "u8x", "I8", "U8"])
            .to_owned(),
        1..=5 => {
            draw.random.pick(&["u8", "i8", "u16", "i16", "u32", "i32", "u63", "i64", "u1", "i1"]).to_owned()
        }
        6..=8 => format!("u{}", draw.random.between(1, 63)),
        _ => format!("i{}", draw.random.between(1, 64)),
    }
}

/// Returns a bit position that is low or invalid: the highest valid position would create a value of 512 MiB.
fn field_offset(draw: &mut Draw) -> String {
    match draw.random.below(20) {
        0 => draw
            .random
            .pick(&["-1", "abc", "", "#", "#-1", "#abc", "4294967296", "#4294967296", "9223372036854775807"])
            .to_owned(),
        1..=8 => format!("#{}", draw.random.below(12)),
        _ => draw.random.below(100).to_string(),
    }
}
