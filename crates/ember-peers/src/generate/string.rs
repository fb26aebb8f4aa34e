//! The 22 string commands.

use super::{Draw, Generator, Step};

pub(super) const COMMANDS: &[Generator] = &[
    Generator { name: "APPEND", weight: 20, make: |draw| draw.one("APPEND {key} {value}") },
    Generator { name: "DECR", weight: 15, make: |draw| draw.one("DECR {key}") },
    Generator { name: "DECRBY", weight: 15, make: |draw| draw.one("DECRBY {key} {integer}") },
    Generator { name: "GET", weight: 30, make: |draw| draw.one("GET {key}") },
    Generator { name: "GETDEL", weight: 10, make: |draw| draw.one("GETDEL {key}") },
    Generator { name: "GETEX", weight: 20, make: getex },
    Generator { name: "GETRANGE", weight: 20, make: |draw| draw.one("GETRANGE {key} {index} {index}") },
    Generator { name: "GETSET", weight: 12, make: |draw| draw.one("GETSET {key} {value}") },
    Generator { name: "INCR", weight: 15, make: |draw| draw.one("INCR {key}") },
    Generator { name: "INCRBY", weight: 15, make: |draw| draw.one("INCRBY {key} {integer}") },
    Generator { name: "INCRBYFLOAT", weight: 20, make: |draw| draw.one("INCRBYFLOAT {key} {float}") },
    Generator { name: "LCS", weight: 12, make: lcs },
    Generator { name: "MGET", weight: 15, make: |draw| draw.one("MGET {keys}") },
    Generator {
        name: "MSET",
        weight: 12,
        make: |draw| draw.any(&["MSET {pairs}", "MSET {pairs}", "MSET {pairs} {key}"]),
    },
    Generator {
        name: "MSETNX",
        weight: 12,
        make: |draw| draw.any(&["MSETNX {pairs}", "MSETNX {pairs}", "MSETNX {pairs} {key}"]),
    },
    Generator { name: "PSETEX", weight: 8, make: |draw| draw.one("PSETEX {key} {milliseconds} {value}") },
    Generator { name: "SET", weight: 80, make: set },
    Generator { name: "SETEX", weight: 8, make: |draw| draw.one("SETEX {key} {seconds} {value}") },
    Generator { name: "SETNX", weight: 10, make: |draw| draw.one("SETNX {key} {value}") },
    Generator { name: "SETRANGE", weight: 20, make: |draw| draw.one("SETRANGE {key} {offset} {value}") },
    Generator { name: "STRLEN", weight: 12, make: |draw| draw.one("STRLEN {key}") },
    Generator { name: "SUBSTR", weight: 8, make: |draw| draw.one("SUBSTR {key} {index} {index}") },
];

fn set(draw: &mut Draw) -> Vec<Step> {
    if draw.random.chance(50) {
        return draw.one("SET {key} {value}");
    }
    let options = [
        "NX",
        "XX",
        "GET",
        "KEEPTTL",
        "EX {seconds}",
        "PX {milliseconds}",
        "EXAT {at_seconds}",
        "PXAT {at_milliseconds}",
        "NX",
        "XX",
        "GET",
        "KEEPTTL",
        "EX",
        "{word}",
    ];
    let steps = draw.with_options("SET {key} {value}", &options, 3);
    then_exists(steps)
}

fn getex(draw: &mut Draw) -> Vec<Step> {
    let options = [
        "PERSIST",
        "EX {seconds}",
        "PX {milliseconds}",
        "EXAT {at_seconds}",
        "PXAT {at_milliseconds}",
        "PX",
        "{word}",
    ];
    let count_max = if draw.random.chance(80) { 1 } else { 3 };
    let steps = draw.with_options("GETEX {key}", &options, count_max);
    then_exists(steps)
}

/// Appends an access to the steps: a time in the past removes a key at once or at the next access, so both servers have
/// the same state after the access.
fn then_exists(mut steps: Vec<Step>) -> Vec<Step> {
    let key = steps[0].words[1].clone();
    steps.push(Step::reply(vec![b"EXISTS".to_vec(), key]));
    steps
}

fn lcs(draw: &mut Draw) -> Vec<Step> {
    let options = [
        "LEN",
        "IDX",
        "WITHMATCHLEN",
        "MINMATCHLEN {count}",
        "IDX",
        "IDX WITHMATCHLEN",
        "MINMATCHLEN",
        "{word}",
    ];
    // LCS takes time and memory in proportion to the product of both lengths: values of a few kilobytes are fine.
    draw.with_options("LCS {key} {key}", &options, 3)
}
