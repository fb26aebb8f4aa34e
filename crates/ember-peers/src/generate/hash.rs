//! The 16 commands on hashes that redis-server 7.0.15 has.

use ember_testkit::Random;

use super::{Draw, Generator, Outcome, Step, Words};

pub(super) const COMMANDS: &[Generator] = &[
    Generator {
        name: "HDEL",
        weight: 20,
        make: |draw| draw.any(&["HDEL {hash} {field}", "HDEL {hash} {fields}"]),
    },
    Generator { name: "HEXISTS", weight: 8, make: |draw| draw.one("HEXISTS {hash} {field}") },
    Generator { name: "HGET", weight: 12, make: |draw| draw.one("HGET {hash} {field}") },
    Generator { name: "HGETALL", weight: 12, make: |draw| draw.one("HGETALL {hash}") },
    Generator { name: "HINCRBY", weight: 15, make: |draw| draw.one("HINCRBY {hash} {field} {integer}") },
    Generator {
        name: "HINCRBYFLOAT",
        weight: 15,
        make: |draw| draw.one("HINCRBYFLOAT {hash} {field} {float}"),
    },
    Generator { name: "HKEYS", weight: 8, make: |draw| draw.one("HKEYS {hash}") },
    Generator { name: "HLEN", weight: 8, make: |draw| draw.one("HLEN {hash}") },
    Generator { name: "HMGET", weight: 10, make: |draw| draw.one("HMGET {hash} {fields}") },
    Generator { name: "HMSET", weight: 12, make: |draw| set(draw, "HMSET") },
    Generator { name: "HRANDFIELD", weight: 12, make: hrandfield },
    Generator { name: "HSCAN", weight: 10, make: hscan },
    Generator { name: "HSET", weight: 45, make: |draw| set(draw, "HSET") },
    Generator { name: "HSETNX", weight: 12, make: |draw| draw.one("HSETNX {hash} {field} {value}") },
    Generator { name: "HSTRLEN", weight: 8, make: |draw| draw.one("HSTRLEN {hash} {field}") },
    Generator { name: "HVALS", weight: 8, make: |draw| draw.one("HVALS {hash}") },
];

const FIELDS: &[&[u8]] = &[
    b"a",
    b"b",
    b"c",
    b"name",
    b"age",
    b"1",
    b"2",
    b"-7",
    b"007",
    b"9223372036854775807",
    b"",
    b"\xff\x00field",
    b"with space",
    b"a\r\nb",
    b"a-field-of-exactly-sixty-four-bytes-which-a-listpack-takes-0123456",
    b"NAME",
];

/// Returns a field, mostly one of few, so that fields collide.
pub(super) fn field(random: &mut Random) -> Vec<u8> {
    match random.below(30) {
        0 => random.bytes(12),
        1 => vec![b'f'; random.below(90)],
        _ => random.pick(FIELDS).to_vec(),
    }
}

fn set(draw: &mut Draw, command: &str) -> Vec<Step> {
    let words = match draw.random.below(40) {
        // More fields than fit in a listpack.
        0 => many(draw, command),
        // The value of the last field is missing.
        1 => draw.line(&format!("{command} {{hash}} {{field}} {{value}} {{field}}")),
        _ => {
            let mut words = draw.line(&format!("{command} {{hash}}"));
            for _ in 0..=draw.random.below(4) {
                words.extend(draw.line("{field} {value}"));
            }
            words
        }
    };
    vec![Step::reply(words)]
}

/// Returns a command with up to 600 numbered fields.
fn many(draw: &mut Draw, command: &str) -> Words {
    let mut words = draw.line(&format!("{command} {{hash}}"));
    for number in 0..=draw.random.below(600) {
        words.extend([format!("f{number}").into_bytes(), number.to_string().into_bytes()]);
    }
    words
}

fn hrandfield(draw: &mut Draw) -> Vec<Step> {
    // Counts are not large negative numbers: Redis would allocate memory for that many elements.
    draw.any(&[
        "HRANDFIELD {hash}",
        "HRANDFIELD {hash} 1",
        "HRANDFIELD {hash} 3",
        "HRANDFIELD {hash} 3 WITHVALUES",
        "HRANDFIELD {hash} 200 WITHVALUES",
        "HRANDFIELD {hash} 1000",
        "HRANDFIELD {hash} 9223372036854775807",
        "HRANDFIELD {hash} 9223372036854775807 WITHVALUES",
        "HRANDFIELD {hash} 0",
        "HRANDFIELD {hash} -3",
        "HRANDFIELD {hash} -50 WITHVALUES",
        "HRANDFIELD {hash} -9223372036854775808",
        "HRANDFIELD {hash} -9223372036854775807 WITHVALUES",
        "HRANDFIELD {hash} x",
        "HRANDFIELD {hash} 1 {word}",
        "HRANDFIELD {hash} 1 WITHVALUES {word}",
    ])
}

fn hscan(draw: &mut Draw) -> Vec<Step> {
    if draw.random.chance(40) {
        return draw.any(&[
            "HSCAN {hash} abc",
            "HSCAN {hash} 0 COUNT 0",
            "HSCAN {hash} 0 COUNT -5",
            "HSCAN {hash} 0 COUNT abc",
            "HSCAN {hash} 0 COUNT",
            "HSCAN {hash} 0 MATCH",
            "HSCAN {hash} 0 {word}",
            "HSCAN {hash} 0 TYPE hash",
            "HSCAN {hash} 0x",
        ]);
    }
    let options = ["MATCH {pattern}", "COUNT 1", "COUNT 3", "COUNT 1000"];
    let mut steps = draw.with_options("HSCAN {hash} 0", &options, 3);
    steps[0].outcome = Outcome::Iterate;
    steps
}
