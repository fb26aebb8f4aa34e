//! The 22 list commands. Blocking commands wait for milliseconds, or are generated so that they find an element.

use super::{Draw, Generator, Step};

pub(super) const COMMANDS: &[Generator] = &[
    Generator { name: "BLMOVE", weight: 6, make: blmove },
    Generator { name: "BLMPOP", weight: 6, make: blmpop },
    Generator { name: "BLPOP", weight: 6, make: |draw| blocking_pop(draw, "BLPOP") },
    Generator { name: "BRPOP", weight: 6, make: |draw| blocking_pop(draw, "BRPOP") },
    Generator { name: "BRPOPLPUSH", weight: 4, make: brpoplpush },
    Generator { name: "LINDEX", weight: 15, make: |draw| draw.one("LINDEX {key} {index}") },
    Generator {
        name: "LINSERT",
        weight: 25,
        make: |draw| {
            draw.any(&[
                "LINSERT {key} BEFORE {value} {value}",
                "LINSERT {key} AFTER {value} {value}",
                "LINSERT {key} {word} {value} {value}",
            ])
        },
    },
    Generator { name: "LLEN", weight: 10, make: |draw| draw.one("LLEN {key}") },
    Generator { name: "LMOVE", weight: 20, make: lmove },
    Generator { name: "LMPOP", weight: 15, make: lmpop },
    Generator { name: "LPOP", weight: 12, make: |draw| pop(draw, "LPOP") },
    Generator { name: "LPOS", weight: 25, make: lpos },
    Generator { name: "LPUSH", weight: 40, make: |draw| push(draw, "LPUSH") },
    Generator { name: "LPUSHX", weight: 12, make: |draw| push(draw, "LPUSHX") },
    Generator { name: "LRANGE", weight: 30, make: |draw| draw.one("LRANGE {key} {index} {index}") },
    Generator { name: "LREM", weight: 15, make: |draw| draw.one("LREM {key} {index} {value}") },
    Generator { name: "LSET", weight: 25, make: |draw| draw.one("LSET {key} {index} {value}") },
    Generator { name: "LTRIM", weight: 6, make: |draw| draw.one("LTRIM {key} {index} {index}") },
    Generator { name: "RPOP", weight: 12, make: |draw| pop(draw, "RPOP") },
    Generator { name: "RPOPLPUSH", weight: 15, make: |draw| draw.one("RPOPLPUSH {key} {key}") },
    Generator { name: "RPUSH", weight: 60, make: |draw| push(draw, "RPUSH") },
    Generator { name: "RPUSHX", weight: 12, make: |draw| push(draw, "RPUSHX") },
];

/// Timeouts in seconds: a few milliseconds, or invalid.
const TIMEOUTS: &[&str] =
    &["0.001", "0.002", "1e-3", "0x.008", "-1", "-0.5", "-inf", "nan", "abc", "0.001x", "inf", "1e400"];

/// Words for the ends of a list; a few are invalid.
const ENDS: &[&str] = &["LEFT", "RIGHT", "LEFT", "RIGHT", "LEFT", "RIGHT", "LEFT", "RIGHT", "{word}"];

fn push(draw: &mut Draw, name: &str) -> Vec<Step> {
    let count = 1 + draw.random.below(6);
    draw.one(&format!("{name} {{key}}{}", " {value}".repeat(count)))
}

fn pop(draw: &mut Draw, name: &str) -> Vec<Step> {
    let count = draw.random.pick(&["", "", " {count}", " {integer}", " {count} {word}"]);
    draw.one(&format!("{name} {{key}}{count}"))
}

fn lpos(draw: &mut Draw) -> Vec<Step> {
    let options = [
        "RANK 1",
        "RANK -1",
        "RANK 2",
        "RANK -3",
        "RANK 0",
        "RANK 9223372036854775807",
        "RANK x",
        "COUNT {count}",
        "COUNT 0",
        "MAXLEN {count}",
        "MAXLEN 3",
        "RANK",
        "{word} 1",
    ];
    draw.with_options("LPOS {key} {value}", &options, 3)
}

fn lmove(draw: &mut Draw) -> Vec<Step> {
    let (from, to) = (draw.random.pick(ENDS), draw.random.pick(ENDS));
    draw.one(&format!("LMOVE {{key}} {{key}} {from} {to}"))
}

/// Returns the arguments after the keys of LMPOP and BLMPOP.
fn end_and_count(draw: &mut Draw) -> String {
    let end = draw.random.pick(ENDS);
    let count = draw.random.pick(&["", "", " COUNT {count}", " COUNT 3", " COUNT", " COUNT 1 COUNT 1"]);
    format!("{end}{count}")
}

/// Returns some keys, mostly preceded by their correct number.
fn numbered_keys(draw: &mut Draw) -> String {
    let count = 1 + draw.random.below(3);
    let number = if draw.random.chance(90) {
        count.to_string()
    } else {
        draw.random.pick(&["0", "-1", "x", "9", "9223372036854775807"]).to_owned()
    };
    format!("{number}{}", " {key}".repeat(count))
}

fn lmpop(draw: &mut Draw) -> Vec<Step> {
    let (keys, rest) = (numbered_keys(draw), end_and_count(draw));
    draw.one(&format!("LMPOP {keys} {rest}"))
}

fn blmpop(draw: &mut Draw) -> Vec<Step> {
    let (timeout, keys, rest) = (draw.random.pick(TIMEOUTS), numbered_keys(draw), end_and_count(draw));
    draw.one(&format!("BLMPOP {timeout} {keys} {rest}"))
}

fn blmove(draw: &mut Draw) -> Vec<Step> {
    let (from, to) = (draw.random.pick(ENDS), draw.random.pick(ENDS));
    let timeout = draw.random.pick(TIMEOUTS);
    let steps = draw.one(&format!("BLMOVE {{key}} {{key}} {from} {to} {timeout}"));
    sometimes_filled(draw, steps)
}

fn brpoplpush(draw: &mut Draw) -> Vec<Step> {
    let timeout = draw.random.pick(TIMEOUTS);
    let steps = draw.one(&format!("BRPOPLPUSH {{key}} {{key}} {timeout}"));
    sometimes_filled(draw, steps)
}

fn blocking_pop(draw: &mut Draw, name: &str) -> Vec<Step> {
    let timeout = draw.random.pick(TIMEOUTS);
    let steps = draw.one(&format!("{name} {{keys}} {timeout}"));
    sometimes_filled(draw, steps)
}

/// Mostly inserts a push to the first key before the steps, so that the list contains an element and a timeout of 0 (no
/// timeout) does not block.
fn sometimes_filled(draw: &mut Draw, mut steps: Vec<Step>) -> Vec<Step> {
    if draw.random.chance(60) {
        let mut words = draw.line("RPUSH");
        words.push(steps[0].words[1].clone());
        words.push(draw.value());
        if draw.random.chance(50)
            && let Some(timeout) = steps[0].words.last_mut()
        {
            *timeout = b"0".to_vec();
        }
        steps.insert(0, Step::reply(words));
    }
    steps
}
