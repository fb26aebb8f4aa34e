//! The 17 commands on sets.

use super::{Draw, Generator, Outcome, Step, Words};

pub(super) const COMMANDS: &[Generator] = &[
    Generator { name: "SADD", weight: 45, make: sadd },
    Generator { name: "SCARD", weight: 8, make: |draw| draw.one("SCARD {set}") },
    Generator { name: "SDIFF", weight: 10, make: |draw| draw.one("SDIFF {sets}") },
    Generator { name: "SDIFFSTORE", weight: 10, make: |draw| draw.one("SDIFFSTORE {set} {sets}") },
    Generator { name: "SINTER", weight: 10, make: |draw| draw.one("SINTER {sets}") },
    Generator { name: "SINTERCARD", weight: 12, make: sintercard },
    Generator { name: "SINTERSTORE", weight: 10, make: |draw| draw.one("SINTERSTORE {set} {sets}") },
    Generator { name: "SISMEMBER", weight: 10, make: |draw| draw.one("SISMEMBER {set} {value}") },
    Generator { name: "SMEMBERS", weight: 12, make: |draw| draw.one("SMEMBERS {set}") },
    Generator { name: "SMISMEMBER", weight: 8, make: smismember },
    Generator { name: "SMOVE", weight: 15, make: |draw| draw.one("SMOVE {set} {set} {value}") },
    Generator { name: "SPOP", weight: 10, make: spop },
    Generator { name: "SRANDMEMBER", weight: 8, make: srandmember },
    Generator { name: "SREM", weight: 20, make: srem },
    Generator { name: "SSCAN", weight: 5, make: sscan },
    Generator { name: "SUNION", weight: 10, make: |draw| draw.one("SUNION {sets}") },
    Generator { name: "SUNIONSTORE", weight: 8, make: |draw| draw.one("SUNIONSTORE {set} {sets}") },
];

/// Fills a template and appends up to `count_max` values.
fn with_values(draw: &mut Draw, template: &str, count_max: usize) -> Words {
    let mut words = draw.line(template);
    for _ in 0..draw.random.below(count_max) {
        words.push(draw.value());
    }
    words
}

fn sadd(draw: &mut Draw) -> Vec<Step> {
    let words = match draw.random.below(30) {
        // More members than fit in a compact encoding, or longer ones.
        0 => many(draw, 520, ""),
        1 => many(draw, 140, "m"),
        2..=9 => {
            let mut words = draw.line("SADD {set}");
            for _ in 0..=draw.random.below(4) {
                words.push(draw.random.between(-40, 40).to_string().into_bytes());
            }
            words
        }
        _ => with_values(draw, "SADD {set} {value}", 6),
    };
    vec![Step::reply(words)]
}

/// Returns SADD with up to `count_max` numbered members.
fn many(draw: &mut Draw, count_max: usize, prefix: &str) -> Words {
    let mut words = draw.line("SADD {set}");
    let count = 1 + draw.random.below(count_max);
    words.extend((0..count).map(|number| format!("{prefix}{number}").into_bytes()));
    words
}

fn srem(draw: &mut Draw) -> Vec<Step> {
    vec![Step::reply(with_values(draw, "SREM {set} {value}", 6))]
}

fn smismember(draw: &mut Draw) -> Vec<Step> {
    vec![Step::reply(with_values(draw, "SMISMEMBER {set} {value}", 6))]
}

fn sintercard(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "SINTERCARD 1 {set}",
        "SINTERCARD 2 {set} {set}",
        "SINTERCARD 3 {set} {set} {set}",
        "SINTERCARD 2 {set} {set} LIMIT {count}",
        "SINTERCARD 2 {set} {set} LIMIT 3 LIMIT {count}",
        "SINTERCARD 2 {set} {set} LIMIT",
        "SINTERCARD 2 {set} {set} {word}",
        "SINTERCARD {integer} {sets}",
        "SINTERCARD 4 {set} {set}",
    ])
}

/// Returns SPOPs whose effect is deterministic: of all members, or of the only one. Random members would make the two
/// servers' sets differ.
fn spop(draw: &mut Draw) -> Vec<Step> {
    if draw.random.chance(70) {
        return draw.any(&[
            "SPOP {set} 100000",
            "SPOP {set} 9223372036854775807",
            "SPOP {set} 0",
            "SPOP {set} -1",
            "SPOP {set} x",
            "SPOP {set} 1.5",
            "SPOP {set} 1 2",
            "SPOP missing",
            "SPOP missing 3",
        ]);
    }
    let name = draw.line("{set}").swap_remove(0);
    let on_set = |draw: &mut Draw, before: &str, after: &str| {
        let mut words = draw.line(before);
        words.push(name.clone());
        words.extend(draw.line(after));
        Step::reply(words)
    };
    vec![on_set(draw, "DEL", ""), on_set(draw, "SADD", "{value}"), on_set(draw, "SPOP", "")]
}

fn srandmember(draw: &mut Draw) -> Vec<Step> {
    // Counts are not large negative numbers: Redis would allocate memory for that many elements.
    draw.any(&[
        "SRANDMEMBER {set}",
        "SRANDMEMBER {set} 1",
        "SRANDMEMBER {set} 3",
        "SRANDMEMBER {set} 60",
        "SRANDMEMBER {set} 1000",
        "SRANDMEMBER {set} 9223372036854775807",
        "SRANDMEMBER {set} 0",
        "SRANDMEMBER {set} -3",
        "SRANDMEMBER {set} -100",
        "SRANDMEMBER {set} -9223372036854775808",
        "SRANDMEMBER {set} x",
        "SRANDMEMBER {set} 1 2",
    ])
}

fn sscan(draw: &mut Draw) -> Vec<Step> {
    if draw.random.chance(40) {
        return draw.any(&[
            "SSCAN {set} abc",
            "SSCAN {set} 0 COUNT 0",
            "SSCAN {set} 0 COUNT -5",
            "SSCAN {set} 0 COUNT abc",
            "SSCAN {set} 0 COUNT",
            "SSCAN {set} 0 MATCH",
            "SSCAN {set} 0 {word}",
            "SSCAN {set} 0 TYPE set",
            "SSCAN {set} 0 foo {word}",
            "SSCAN {set} 0x",
        ]);
    }
    let options = ["MATCH {pattern}", "COUNT 1", "COUNT 3", "COUNT 1000"];
    let mut steps = draw.with_options("SSCAN {set} 0", &options, 3);
    steps[0].outcome = Outcome::Iterate;
    steps
}
