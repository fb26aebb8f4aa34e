//! The commands on streams.
//!
//! The following is not generated, because Redis 7.2 and the redis-server of the tests reply differently, or the reply
//! depends on the clock:
//! * `*` for a whole ID, which is the time;
//! * times of delivery and idle times other than none or hours;
//! * XSETID with IDs below others', for which 7.2 also checks deleted entries;
//! * reading by a consumer that does not exist: since 7.2, a read creates the consumer even if there are no entries.

use super::{Draw, Generator, Step};

pub(super) const COMMANDS: &[Generator] = &[
    Generator { name: "XACK", weight: 12, make: |draw| some_ids(draw, "XACK {stream} {group}", "") },
    Generator { name: "XADD", weight: 90, make: xadd },
    Generator { name: "XAUTOCLAIM", weight: 14, make: xautoclaim },
    Generator { name: "XCLAIM", weight: 16, make: xclaim },
    Generator { name: "XDEL", weight: 14, make: |draw| some_ids(draw, "XDEL {stream}", "") },
    Generator { name: "XGROUP", weight: 30, make: xgroup },
    Generator { name: "XINFO", weight: 20, make: xinfo },
    Generator { name: "XLEN", weight: 6, make: |draw| fill_one(draw, "XLEN {stream}") },
    Generator { name: "XPENDING", weight: 20, make: xpending },
    Generator { name: "XRANGE", weight: 14, make: |draw| range(draw, "XRANGE {stream} {start} {end}") },
    Generator { name: "XREAD", weight: 14, make: xread },
    Generator { name: "XREADGROUP", weight: 40, make: xreadgroup },
    Generator { name: "XREVRANGE", weight: 14, make: |draw| range(draw, "XREVRANGE {stream} {end} {start}") },
    Generator { name: "XSETID", weight: 3, make: xsetid },
    Generator { name: "XTRIM", weight: 10, make: xtrim },
];

/// Like [`Draw::line`], with the placeholders of streams.
fn fill(draw: &mut Draw, template: &str) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    for word in template.split(' ').filter(|word| !word.is_empty()) {
        match word {
            "{id}" => words.push(id(draw).into_bytes()),
            "{new}" => words.push(new_id(draw).into_bytes()),
            "{start}" | "{end}" => words.push(interval_end(draw).into_bytes()),
            "{group}" => {
                words.push(draw.random.pick(&["g1", "g2", "g1", "g2", "", "nobody"]).as_bytes().to_vec())
            }
            "{consumer}" => words.push(draw.random.pick(&["c1", "c2", "c3", "\u{e9}"]).as_bytes().to_vec()),
            "{idle}" => {
                words.push(draw.random.pick(&["0", "0", "0", "3600000", "-1", "x"]).as_bytes().to_vec())
            }
            "{few}" => {
                words.push(draw.random.pick(&["1", "2", "3", "10", "0", "-1", "x"]).as_bytes().to_vec())
            }
            _ => words.extend(draw.line(word)),
        }
    }
    words
}

fn fill_one(draw: &mut Draw, template: &str) -> Vec<Step> {
    vec![Step::reply(fill(draw, template))]
}

fn fill_any(draw: &mut Draw, templates: &[&str]) -> Vec<Step> {
    let template = draw.random.pick(templates);
    fill_one(draw, template)
}

const ODD_IDS: &[&str] = &[
    "0",
    "0-0",
    "",
    "-",
    "+",
    "$",
    ">",
    "x",
    "1-",
    "-1",
    "1-x",
    "1-1-1",
    "01-02",
    " 3-1",
    "+3",
    "3-+1",
    "1-*",
    "18446744073709551615",
    "18446744073709551616",
    "18446744073709551615-18446744073709551615",
    "9223372036854775808-1",
    "(1-1",
];

/// Returns an entry ID that probably exists.
fn id(draw: &mut Draw) -> String {
    match draw.random.below(25) {
        0 => draw.random.pick(ODD_IDS).to_owned(),
        1..=3 => draw.random.below(60).to_string(),
        _ => format!("{}-{}", draw.random.below(60), draw.random.below(6)),
    }
}

/// Returns an ID for a new entry, often slightly greater than all others.
fn new_id(draw: &mut Draw) -> String {
    match draw.random.below(25) {
        0 => draw.random.pick(&["0-0", "0", "", "-", "x", "1-", "**", "1-x", "01-*", "0-*", "-*"]).to_owned(),
        1 => draw.random.below(60).to_string(),
        2..=4 => format!("{}-{}", draw.random.below(60), draw.random.below(6)),
        5..=12 => format!("{}-*", draw.random.below(12)),
        _ => format!("{}-*", draw.random.below(60)),
    }
}

fn interval_end(draw: &mut Draw) -> String {
    match draw.random.below(10) {
        0..=2 => {
            draw.random.pick(&["-", "+", "-", "+", "(-", "(", "(+", "(0", "(18446744073709551615"]).to_owned()
        }
        3 => format!("({}", id(draw)),
        _ => id(draw),
    }
}

/// Fills a template, and appends some IDs and another filled template.
fn some_ids(draw: &mut Draw, before: &str, after: &str) -> Vec<Step> {
    let mut words = fill(draw, before);
    for _ in 0..=draw.random.below(6) {
        words.push(id(draw).into_bytes());
    }
    words.extend(fill(draw, after));
    vec![Step::reply(words)]
}

fn trimming(draw: &mut Draw) -> Vec<Vec<u8>> {
    let template = draw.random.pick(&[
        "MAXLEN {few}",
        "MAXLEN = 12",
        "MAXLEN ~ 12",
        "MAXLEN ~ {few}",
        "MINID {id}",
        "MINID = {id}",
        "MINID ~ {id}",
        "MAXLEN ~ 5 LIMIT {few}",
        "MINID ~ 40 LIMIT 4",
        "MAXLEN 5 LIMIT {few}",
        "MAXLEN 5 MINID 4",
        "LIMIT {few}",
        "MAXLEN",
        "MAXLEN ~",
    ]);
    fill(draw, template)
}

fn xadd(draw: &mut Draw) -> Vec<Step> {
    if draw.random.chance(2) {
        return fill_one(draw, "DEL {stream}");
    }
    let mut words = fill(draw, "XADD {stream}");
    if draw.random.chance(10) {
        words.extend(fill(draw, "NOMKSTREAM"));
    }
    if draw.random.chance(20) {
        words.extend(trimming(draw));
    }
    words.push(new_id(draw).into_bytes());
    // Mostly the same field names, so that they are stored only once.
    match draw.random.below(6) {
        0 => words.extend(fill(draw, "{value} {value}")),
        1 => words.extend(fill(draw, "b 1 a {value} c 3")),
        2 => words.extend(fill(draw, "a {value} b")),
        // A large value: three such entries fill a block.
        3 => words.extend([
            b"a".to_vec(),
            vec![b'z'; 1000 + draw.random.below(500)],
            b"b".to_vec(),
            b"1".to_vec(),
        ]),
        _ => words.extend(fill(draw, "a {value} b {integer}")),
    }
    vec![Step::reply(words)]
}

fn xtrim(draw: &mut Draw) -> Vec<Step> {
    let mut words = fill(draw, "XTRIM {stream}");
    words.extend(trimming(draw));
    if words.len() < 4 {
        words.push(b"1".to_vec());
    }
    vec![Step::reply(words)]
}

fn range(draw: &mut Draw, template: &str) -> Vec<Step> {
    let mut words = fill(draw, template);
    if draw.random.chance(40) {
        words.extend(fill(draw, "COUNT {few}"));
    }
    vec![Step::reply(words)]
}

fn xread(draw: &mut Draw) -> Vec<Step> {
    fill_any(
        draw,
        &[
            "XREAD STREAMS {stream} {id}",
            "XREAD COUNT {few} STREAMS {stream} {id}",
            "XREAD COUNT {few} STREAMS {stream} {stream} {id} {id}",
            "XREAD STREAMS {stream} {stream} {id}",
            "XREAD BLOCK 1 STREAMS {stream} {id}",
            "XREAD BLOCK 1 STREAMS {stream} $",
            "XREAD BLOCK {idle} STREAMS {stream} 0 0",
            "XREAD STREAMS {stream} $",
            "XREAD STREAMS {stream} >",
            "XREAD GROUP {group} {consumer} STREAMS {stream} 0",
            "XREAD NOACK STREAMS {stream} 0",
            "XREAD {word} {few} STREAMS {stream} 0",
        ],
    )
}

/// Returns reads by an existing consumer.
fn xreadgroup(draw: &mut Draw) -> Vec<Step> {
    let names = fill(draw, "{stream} {group} {consumer}");
    let mut create = fill(draw, "XGROUP CREATECONSUMER");
    create.extend(names.iter().cloned());
    let mut read = fill(draw, "XREADGROUP GROUP");
    read.extend(names[1..].iter().cloned());
    if draw.random.chance(60) {
        read.extend(fill(draw, "COUNT {few}"));
    }
    if draw.random.chance(10) {
        read.extend(fill(draw, "NOACK"));
    }
    if draw.random.chance(10) {
        read.extend(fill(draw, "BLOCK 1"));
    }
    read.extend(fill(draw, "STREAMS"));
    read.push(names[0].clone());
    let from = draw.random.pick(&[">", ">", ">", ">", "0", "0", "{id}", "$"]);
    read.extend(fill(draw, from));
    if draw.random.chance(3) {
        read.pop();
    }
    vec![Step::reply(create), Step::reply(read)]
}

fn xgroup(draw: &mut Draw) -> Vec<Step> {
    fill_any(
        draw,
        &[
            "XGROUP CREATE {stream} {group} {id}",
            "XGROUP CREATE {stream} {group} 0",
            "XGROUP CREATE {stream} {group} 0 MKSTREAM",
            "XGROUP CREATE {stream} {group} $ MKSTREAM",
            "XGROUP CREATE {stream} {group} 0 ENTRIESREAD {few}",
            "XGROUP CREATE {stream} {group} 0 {word}",
            "XGROUP CREATE {stream} {group} 0 MKSTREAM MKSTREAM MKSTREAM MKSTREAM",
            "XGROUP SETID {stream} {group} {id}",
            "XGROUP SETID {stream} {group} $",
            "XGROUP SETID {stream} {group} 0 ENTRIESREAD {few}",
            "XGROUP SETID {stream} {group} 0 ENTRIESREAD 1 ENTRIESREAD 2",
            "XGROUP DESTROY {stream} {group}",
            "XGROUP CREATECONSUMER {stream} {group} {consumer}",
            "XGROUP DELCONSUMER {stream} {group} {consumer}",
            "XGROUP HELP",
            "XGROUP {word}",
        ],
    )
}

fn xinfo(draw: &mut Draw) -> Vec<Step> {
    fill_any(
        draw,
        &[
            "XINFO STREAM {stream}",
            "XINFO STREAM {stream} FULL",
            "XINFO STREAM {stream} FULL COUNT {few}",
            "XINFO STREAM {stream} {word}",
            "XINFO STREAM {stream} FULL {word} 1",
            "XINFO GROUPS {stream}",
            "XINFO CONSUMERS {stream} {group}",
            "XINFO HELP",
            "XINFO {word} {stream}",
        ],
    )
}

fn xpending(draw: &mut Draw) -> Vec<Step> {
    fill_any(
        draw,
        &[
            "XPENDING {stream} {group}",
            "XPENDING {stream} {group} - + 100",
            "XPENDING {stream} {group} {start} {end} {few}",
            "XPENDING {stream} {group} {start} {end} {few} {consumer}",
            "XPENDING {stream} {group} IDLE {idle} {start} {end} {few}",
            "XPENDING {stream} {group} IDLE {idle} {start} {end} {few} {consumer}",
            "XPENDING {stream} {group} IDLE {idle} -",
            "XPENDING {stream} {group} -",
        ],
    )
}

/// Returns `command` for a consumer, after the command that creates the consumer.
fn by_consumer(draw: &mut Draw, command: &str, rest: &[Vec<u8>]) -> Vec<Step> {
    let names = fill(draw, "{stream} {group} {consumer}");
    let mut steps = Vec::new();
    for command in ["XGROUP CREATECONSUMER", command] {
        let mut words = fill(draw, command);
        words.extend(names.iter().cloned());
        steps.push(Step::reply(words));
    }
    steps[1].words.extend_from_slice(rest);
    steps
}

fn xclaim(draw: &mut Draw) -> Vec<Step> {
    let mut rest = fill(draw, "{idle}");
    for _ in 0..=draw.random.below(6) {
        rest.push(id(draw).into_bytes());
    }
    for _ in 0..draw.random.below(4) {
        let option = draw.random.pick(&[
            "FORCE",
            "JUSTID",
            "IDLE 7200000",
            "IDLE 0",
            "IDLE x",
            "TIME 0",
            "TIME x",
            "RETRYCOUNT {few}",
            "LASTID {id}",
            "{word}",
        ]);
        rest.extend(fill(draw, option));
    }
    by_consumer(draw, "XCLAIM", &rest)
}

fn xautoclaim(draw: &mut Draw) -> Vec<Step> {
    let rest = draw.random.pick(&[
        "{idle} {start}",
        "0 0",
        "0 - JUSTID",
        "{idle} {start} COUNT {few}",
        "{idle} {start} COUNT {few} JUSTID",
        "0 0 {word}",
    ]);
    let rest = fill(draw, rest);
    by_consumer(draw, "XAUTOCLAIM", &rest)
}

fn xsetid(draw: &mut Draw) -> Vec<Step> {
    fill_any(
        draw,
        &[
            "XSETID {stream} 100-1",
            "XSETID {stream} 100-1 ENTRIESADDED 1000",
            "XSETID {stream} 100-1 ENTRIESADDED {few}",
            "XSETID {stream} 100-1 MAXDELETEDID 100-2",
            "XSETID {stream} x",
            "XSETID {stream} 100-1 {word}",
        ],
    )
}
