//! The commands on HyperLogLogs. PFSELFTEST has no data to disagree about and is not asked for.

use super::{Draw, Generator, Step};

pub(super) const COMMANDS: &[Generator] = &[
    Generator { name: "PFADD", weight: 45, make: pfadd },
    Generator { name: "PFCOUNT", weight: 25, make: pfcount },
    Generator { name: "PFDEBUG", weight: 10, make: pfdebug },
    Generator { name: "PFMERGE", weight: 10, make: pfmerge },
];

/// Up to so many different elements are drawn at once: enough to leave the sparse encoding soon.
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
    draw.any(&[
        "PFDEBUG DECODE {hll}",
        "PFDEBUG ENCODING {hll}",
        "PFDEBUG TODENSE {hll}",
        "PFDEBUG {word} {hll}",
        // Damaged registers, and bytes that are none any more.
        "SETRANGE {hll} 17 {value}",
        "SETRANGE {hll} 4 {value}",
    ])
}
