//! Commands on keys of any type.

use super::{Draw, Generator, Outcome, Step};

pub(super) const COMMANDS: &[Generator] = &[
    Generator { name: "COPY", weight: 12, make: copy },
    Generator { name: "DEL", weight: 12, make: |draw| draw.one("DEL {keys}") },
    Generator { name: "EXISTS", weight: 10, make: |draw| draw.one("EXISTS {keys}") },
    Generator { name: "EXPIRE", weight: 10, make: |draw| expire(draw, "EXPIRE {key} {seconds}") },
    Generator { name: "EXPIREAT", weight: 12, make: |draw| expire(draw, "EXPIREAT {key} {at_seconds}") },
    Generator { name: "EXPIRETIME", weight: 8, make: |draw| draw.one("EXPIRETIME {key}") },
    Generator { name: "KEYS", weight: 5, make: |draw| draw.one("KEYS {pattern}") },
    Generator { name: "MOVE", weight: 10, make: |draw| draw.one("MOVE {key} {database}") },
    Generator { name: "OBJECT", weight: 25, make: object },
    Generator { name: "PERSIST", weight: 8, make: |draw| draw.one("PERSIST {key}") },
    Generator { name: "PEXPIRE", weight: 10, make: |draw| expire(draw, "PEXPIRE {key} {milliseconds}") },
    Generator {
        name: "PEXPIREAT",
        weight: 12,
        make: |draw| expire(draw, "PEXPIREAT {key} {at_milliseconds}"),
    },
    Generator { name: "PEXPIRETIME", weight: 8, make: |draw| draw.one("PEXPIRETIME {key}") },
    Generator { name: "PTTL", weight: 8, make: |draw| draw.one("PTTL {key}") },
    Generator { name: "RANDOMKEY", weight: 3, make: |draw| draw.one("RANDOMKEY") },
    Generator { name: "RENAME", weight: 10, make: |draw| draw.one("RENAME {key} {key}") },
    Generator { name: "RENAMENX", weight: 10, make: |draw| draw.one("RENAMENX {key} {key}") },
    Generator { name: "RESTORE", weight: 6, make: restore },
    Generator { name: "SCAN", weight: 3, make: scan },
    Generator { name: "SORT", weight: 40, make: |draw| sort(draw, "SORT {key}") },
    Generator { name: "SORT_RO", weight: 20, make: |draw| sort(draw, "SORT_RO {key}") },
    Generator { name: "TOUCH", weight: 5, make: |draw| draw.one("TOUCH {keys}") },
    Generator { name: "TTL", weight: 8, make: |draw| draw.one("TTL {key}") },
    Generator { name: "TYPE", weight: 8, make: |draw| draw.one("TYPE {key}") },
    Generator { name: "UNLINK", weight: 8, make: |draw| draw.one("UNLINK {keys}") },
];

fn copy(draw: &mut Draw) -> Vec<Step> {
    let options = ["DB {database}", "REPLACE", "DB {database}", "REPLACE", "DB", "{word}"];
    draw.with_options("COPY {key} {key}", &options, 3)
}

fn expire(draw: &mut Draw, template: &str) -> Vec<Step> {
    let count_max = if draw.random.chance(70) { 1 } else { 3 };
    draw.with_options(template, &["NX", "XX", "GT", "LT", "NX", "XX", "GT", "LT", "{word}"], count_max)
}

fn object(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "OBJECT ENCODING {key}",
        "OBJECT ENCODING {key}",
        "OBJECT ENCODING {key}",
        "OBJECT REFCOUNT {key}",
        "OBJECT FREQ {key}",
        "OBJECT IDLETIME {key}",
        "OBJECT HELP",
        "OBJECT {word} {key}",
        "OBJECT {word}",
    ])
}

/// Returns a RESTORE with an invalid payload. The output of DUMP differs between the servers; other tests exchange
/// payloads.
fn restore(draw: &mut Draw) -> Vec<Step> {
    let options = ["REPLACE", "ABSTTL", "IDLETIME {integer}", "FREQ {integer}", "FREQ", "{word}"];
    draw.with_options("RESTORE {key} {integer} {value}", &options, 3)
}

/// Returns only sorts whose order is deterministic: texts found by patterns may be equal, and sets have no order. Redis
/// compares numbers with an `errno` that an earlier command may have left, and then reports that they are invalid. The
/// ZADD before the sort clears `errno`, and has no other effect here.
fn sort(draw: &mut Draw, template: &str) -> Vec<Step> {
    let mut steps = draw.one("ZADD missing XX 1 a");
    steps.extend(sorting(draw, template));
    steps
}

fn sorting(draw: &mut Draw, template: &str) -> Vec<Step> {
    let options = [
        "ASC",
        "DESC",
        "LIMIT {index} {count}",
        "LIMIT {index} {index}",
        "LIMIT {word} 1",
        "LIMIT 1",
        "GET #",
        "GET {pattern}",
        "GET *",
        "GET k*",
        "GET *->f1",
        "GET {word}",
        "STORE {key}",
        "STORE",
        "{word}",
    ];
    match draw.random.below(4) {
        0 => draw.with_options(&format!("{template} BY k*"), &options, 3),
        1 => draw.with_options(&format!("{template} BY *->f1"), &options, 3),
        2 => draw.with_options(&format!("{template} ALPHA"), &options, 3),
        _ => draw.with_options(template, &options, 3),
    }
}

fn scan(draw: &mut Draw) -> Vec<Step> {
    if draw.random.chance(40) {
        return draw.any(&[
            "SCAN abc",
            "SCAN 0 COUNT 0",
            "SCAN 0 COUNT -5",
            "SCAN 0 COUNT abc",
            "SCAN 0 COUNT",
            "SCAN 0 MATCH",
            "SCAN 0 {word}",
            "SCAN 0 MATCH * COUNT 0",
            "SCAN 0 TYPE",
            "SCAN 0 foo {word}",
            "SCAN foo",
            "SCAN 0x",
        ]);
    }
    let options = [
        "MATCH {pattern}",
        "COUNT 1",
        "COUNT 3",
        "COUNT 1000",
        "TYPE string",
        "TYPE STRING",
        "TYPE list",
        "TYPE nosuch",
    ];
    let mut steps = draw.with_options("SCAN 0", &options, 3);
    steps[0].outcome = Outcome::Iterate;
    steps
}
