//! The commands on HyperLogLogs. PFSELFTEST is omitted, because it has no comparable data.

use super::{Draw, Generator, HYPERLOGLOG_KEYS, Step};

pub(super) const COMMANDS: &[Generator] = &[
    Generator { name: "PFADD", weight: 45, make: pfadd },
    Generator { name: "PFCOUNT", weight: 25, make: pfcount },
    Generator { name: "PFDEBUG", weight: 10, make: pfdebug },
    Generator { name: "PFMERGE", weight: 10, make: pfmerge },
];

/// The maximum number of distinct elements drawn at a time: enough to leave the sparse encoding soon.
const ELEMENTS_MAX: usize = 400;

fn pfadd(draw: &mut Draw) -> Vec<Step> {
    let mut words = draw.line("PFADD {hll}");
    match draw.random.below(10) {
        0 => {}
        1 => {
            for _ in 0..draw.random.below(ELEMENTS_MAX) {
                words.push(draw.random.below(100_000).to_string().into_bytes());
            }
        }
        2 => words.extend((0..draw.random.below(4)).map(|_| Vec::new())),
        _ => {
            for _ in 0..draw.random.below(5) {
                words.push(draw.value());
            }
        }
    }
    // A key that commands of all types use may have been changed by APPEND: see [`damaged`].
    if !HYPERLOGLOG_KEYS.contains(&&words[1][..]) {
        words.truncate(3);
    }
    vec![Step::reply(words)]
}

fn pfcount(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "PFCOUNT {hll}",
        "PFCOUNT {hll}",
        "PFCOUNT {hll} {hll}",
        "PFCOUNT {hll} {hll} {hll}",
        "GET {hll}",
    ])
}

fn pfmerge(draw: &mut Draw) -> Vec<Step> {
    draw.any(&["PFMERGE {hll}", "PFMERGE {hll} {hll}", "PFMERGE {hll} {hll} {hll}", "DEL {hll}"])
}

fn pfdebug(draw: &mut Draw) -> Vec<Step> {
    if draw.random.chance(15) {
        return damaged(draw);
    }
    draw.any(&[
        "PFDEBUG DECODE {hll}",
        "PFDEBUG ENCODING {hll}",
        "PFDEBUG TODENSE {hll}",
        "PFDEBUG {word} {hll}",
        "SETRANGE {hll} 4 5",
        "SETRANGE {hll} 0 {word}",
    ])
}

/// Opcodes of the sparse encoding, for runs of registers that are invalid in most places.
const DAMAGE: &[&[u8]] = &[b"\x00", b"\x3f\x3f\x3f", b"\x80", b"\xff\xff\xff\xff", b"\x00\x80\x00"];

/// Damages the registers of a HyperLogLog, and removes the key afterwards. Of several elements, Redis adds those that
/// it processes before it detects the damage, although it returns an error and notifies no client of a change; ember
/// adds all elements or none.
fn damaged(draw: &mut Draw) -> Vec<Step> {
    let key = draw.random.pick(HYPERLOGLOG_KEYS);
    let templates =
        ["SETRANGE", "APPEND", "PFCOUNT", "PFADD", "GET", "PFMERGE hll:1", "PFDEBUG TODENSE", "DEL"];
    let mut steps = Vec::new();
    for template in templates {
        let mut words = draw.line(template);
        words.push(key.to_vec());
        match template {
            "SETRANGE" => {
                words.push((16 + draw.random.below(8)).to_string().into_bytes());
                words.push(draw.random.pick(DAMAGE).to_vec());
            }
            // Damage can turn the second half of a run into a first half, and then Redis reads one byte past the end.
            "APPEND" => words.push(b"\x80".to_vec()),
            "PFADD" => words.push(draw.value()),
            _ => {}
        }
        steps.push(Step::reply(words));
    }
    steps
}
