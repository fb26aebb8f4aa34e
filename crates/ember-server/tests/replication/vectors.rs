//! Vector sets on replicas: they have the same elements, vectors and attributes as on their primary, and thus the same
//! exact results.

use ember_testkit::{Random, RawClient, Value, wait_until};

use crate::pairs::{ARGUMENTS, follow};
use crate::{MODES, start};

const DIM: usize = 12;

fn numbers(random: &mut Random, separator: &str) -> String {
    let numbers = (0..DIM).map(|_| (random.below(2001) as f32 / 1000.0 - 1.0001).to_string());
    numbers.collect::<Vec<_>>().join(separator)
}

/// The commands that create vector sets and indexes of all kinds.
const CREATED: [&str; 4] = [
    "VECTOR.CREATE graph DIM 12 DISTANCE L2 QUANT F16 M 5 EF_CONSTRUCTION 31",
    "VECTOR.CREATE lists DIM 12 TYPE IVF NLIST 4 NPROBE 2 QUANT BF16",
    "VECTOR.CREATE flat DIM 12 TYPE FLAT DISTANCE IP",
    "VADD_BATCH batch DIM 2 a 1 2 b 3 4 c -1 5 METRIC L2 QUANT F32",
];

const SETS: [(&str, &str); 4] =
    [("q8", " Q8"), ("floats", " NOQUANT EF 30 M 4"), ("bits", " BIN"), ("reduced", "")];

const INDEXES: [&str; 3] = ["graph", "lists", "flat"];

/// Adds, replaces and removes elements, some of them in batches.
fn change(client: &mut RawClient, random: &mut Random, calls: usize) {
    for call in 0..calls {
        let id = random.below(60);
        let (set, options) = SETS[random.below(SETS.len())];
        let index = INDEXES[random.below(INDEXES.len())];
        let reduce = if set == "reduced" { "REDUCE 7 " } else { "" };
        let line = match random.below(12) {
            0..=3 => {
                let attributes =
                    if id.is_multiple_of(3) { format!(" SETATTR {call}") } else { String::new() };
                let numbers = numbers(random, " ");
                format!("VADD {set} {reduce}VALUES {DIM} {numbers} e{id}{options}{attributes}")
            }
            4 | 5 => format!("VREM {set} e{id}"),
            6 => format!("VSETATTR {set} e{id} {}", random.below(3)),
            7 | 8 => format!("VECTOR.ADD {index} e{id} [{}]", numbers(random, ",")),
            9 => format!("VECTOR.ADD {index} e{id} [{}] {id}", numbers(random, ",")),
            10 => format!("VECTOR.DEL {index} e{id} e{}", id + 1),
            _ => format!("VECTOR.UPDATE {index} e{id} PAYLOAD {call}"),
        };
        if call % 10 == 0 {
            client.run("MULTI");
        }
        let reply = client.run(&line);
        assert!(!reply.is_error(), "{line}: {reply:?}");
        if call % 10 == 4 {
            assert!(!client.run("EXEC").is_error());
        }
    }
}

/// Returns all replies about the sets that do not depend on links.
fn answers(client: &mut RawClient) -> Vec<Value> {
    let mut answers = Vec::new();
    let mut ask = |line: String| answers.push(client.run(&line));
    for key in SETS.map(|(key, _)| key).into_iter().chain(INDEXES).chain(["batch"]) {
        ask(format!("VRANGE {key} - +"));
        for id in 0..60 {
            for line in ["VEMB KEY eN RAW", "VGETATTR KEY eN"] {
                ask(line.replace("KEY", key).replace('N', &id.to_string()));
            }
        }
        for id in 0..6 {
            ask(format!("VSIM {key} ELE e{id} TRUTH COUNT 60 WITHSCORES WITHATTRIBS"));
        }
    }
    // Elements at equal distance are ordered by slots, which differ between servers.
    for answer in &mut answers {
        if let Value::Array(hits) = answer
            && hits.len().is_multiple_of(3)
        {
            let mut hits: Vec<[Value; 3]> = hits.as_chunks().0.to_vec();
            hits.sort();
            *answer = Value::Array(hits.concat());
        }
    }
    answers
}

#[test]
fn a_replica_gives_the_exact_search_results_of_its_primary() {
    for mode in MODES {
        for other_mode in MODES {
            let servers = [start(mode, &ARGUMENTS), start(other_mode, &ARGUMENTS)];
            let [mut one, mut other] = [servers[0].client(), servers[1].client()];
            let mut random = Random::new(41);
            for line in CREATED {
                assert!(!one.run(line).is_error(), "{line}");
            }
            // Some of these changes are in the full sync, the others arrive as commands.
            change(&mut one, &mut random, 600);
            follow(&mut other, &servers[0]);
            for _ in 0..3 {
                change(&mut one, &mut random, 300);
                let script = "return redis.call('VADD', KEYS[1], 'VALUES', 2, 1, ARGV[1], 's', 'NOQUANT')";
                one.command(&["EVAL", script, "1", "scripted", &random.below(100).to_string()]);
                wait_until("the stream is applied", || {
                    one.info("master_repl_offset") == other.info("slave_repl_offset")
                });
                assert_eq!(answers(&mut other), answers(&mut one), "{mode:?} {other_mode:?}");
                assert_eq!(other.run("VEMB scripted s RAW"), one.run("VEMB scripted s RAW"));
            }
            assert_eq!(one.info("sync_full"), "1");
        }
    }
}
