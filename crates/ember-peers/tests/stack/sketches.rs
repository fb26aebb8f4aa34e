//! Sketches: random commands, and payloads in both directions.
//!
//! The random commands avoid these differences (docs/sketches.md explains them): a t-digest is not changed after it was
//! read, and has no or at least two numbers; counters of top-k sketches decay with certainty; cuckoo filters do not grow
//! exponentially, because Redis Stack crashes when they become too large.

use ember_peers::{Mode, start_ember};
use ember_testkit::{Directory, Random, Value};

use crate::{Pair, Words, are_equal, commands, start_stack, words};

const MODES: [Mode; 2] = [Mode::Concurrent, Mode::Sharded];

/// The number of commands after which payloads are exchanged.
const COMMANDS_PER_EXCHANGE: usize = 50;

const KEYS: [&str; 5] = ["a", "b", "c", "text", "none"];

/// Templates of commands: `K` is a key, `I` an item, `II` several items, `N` a number or something else, `S` a small
/// number, `R` a rate, `P` a position, `F` a property, `W` a count of an item, `WW` several of these.
const BLOOM: &[&str] = &[
    "BF.RESERVE K R N",
    "BF.RESERVE K 0.1 S EXPANSION N",
    "BF.RESERVE K 0.1 S NONSCALING",
    "BF.ADD K I",
    "BF.ADD K I",
    "BF.MADD K II",
    "BF.MADD K II",
    "BF.INSERT K CAPACITY N ERROR R ITEMS II",
    "BF.INSERT K NOCREATE ITEMS II",
    "BF.INSERT K NONSCALING CAPACITY S ITEMS II",
    "BF.INSERT K EXPANSION N ITEMS II",
    "BF.INSERT K ITEMS",
    "BF.INSERT K I",
    "BF.EXISTS K I",
    "BF.MEXISTS K II",
    "BF.INFO K",
    "BF.INFO K F",
    "BF.CARD K",
    "BF.DEBUG K",
    "BF.SCANDUMP K P",
    "BF.LOADCHUNK K P I",
    "DEL K",
];

const CUCKOO: &[&str] = &[
    "CF.RESERVE K N",
    "CF.RESERVE K 20 BUCKETSIZE N EXPANSION 0",
    "CF.RESERVE K 8 MAXITERATIONS N",
    "CF.RESERVE K 16 BUCKETSIZE S MAXITERATIONS S",
    "CF.ADD K I",
    "CF.ADD K I",
    "CF.ADDNX K I",
    "CF.INSERT K ITEMS II",
    "CF.INSERT K CAPACITY N ITEMS II",
    "CF.INSERTNX K NOCREATE ITEMS II",
    "CF.INSERTNX K ITEMS II",
    "CF.INSERT K I",
    "CF.EXISTS K I",
    "CF.MEXISTS K II",
    "CF.COUNT K I",
    "CF.DEL K I",
    "CF.DEL K I",
    "CF.DEL K I",
    "CF.INFO K",
    "CF.DEBUG K",
    "CF.COMPACT K",
    "CF.SCANDUMP K P",
    "CF.LOADCHUNK K 5 abcd",
    "DEL K",
];

const COUNT_MIN: &[&str] = &[
    "CMS.INITBYDIM K 7 3",
    "CMS.INITBYDIM K N N",
    "CMS.INITBYPROB K R R",
    "CMS.INCRBY K WW",
    "CMS.INCRBY K WW",
    "CMS.INCRBY K I N",
    "CMS.INCRBY K I 4294967295",
    "CMS.QUERY K II",
    "CMS.INFO K",
    "CMS.MERGE K 1 K",
    "CMS.MERGE K 2 K K",
    "CMS.MERGE K 2 K K WEIGHTS N S",
    "CMS.MERGE K N K WEIGHTS S",
    "DEL K",
];

const TOP_K: &[&str] = &[
    "TOPK.RESERVE K S N 2 1",
    "TOPK.RESERVE K N 8 3 1",
    "TOPK.RESERVE K 3 8 3 N",
    "TOPK.ADD K II",
    "TOPK.ADD K II",
    "TOPK.INCRBY K WW",
    "TOPK.INCRBY K I N",
    "TOPK.QUERY K II",
    "TOPK.COUNT K II",
    "TOPK.LIST K",
    "TOPK.LIST K WITHCOUNT",
    "TOPK.LIST K I",
    "TOPK.INFO K",
    "DEL K",
];

const T_DIGEST: &[&str] = &[
    "TDIGEST.CREATE K",
    "TDIGEST.CREATE K COMPRESSION N",
    "TDIGEST.CREATE K I S",
    "TDIGEST.ADD K V V V V V V V V V V V V V V V V V V V V",
    "TDIGEST.ADD K V V V V V V V V V V V V V V V V V V V V",
    "TDIGEST.ADD K V V N",
    "TDIGEST.INFO K",
    "TDIGEST.MIN K",
    "TDIGEST.MAX K",
    "TDIGEST.RESET K",
];

/// Reads of a t-digest, after which it is removed.
const T_DIGEST_READS: &[&str] = &[
    "TDIGEST.QUANTILE K Q Q Q",
    "TDIGEST.QUANTILE K N",
    "TDIGEST.CDF K V V",
    "TDIGEST.RANK K V V N",
    "TDIGEST.REVRANK K V V",
    "TDIGEST.BYRANK K S N",
    "TDIGEST.BYREVRANK K S S",
    "TDIGEST.TRIMMED_MEAN K Q Q",
    "TDIGEST.MERGE merged 2 K K COMPRESSION N",
    "TDIGEST.MERGE merged 1 K OVERRIDE",
    "TDIGEST.QUANTILE merged Q",
    "DEL merged",
];

fn item(random: &mut Random) -> Vec<u8> {
    match random.below(5) {
        0 => random.bytes(9).into_iter().filter(|&byte| byte != 0).collect(),
        1 => random.pick(&["", "a", "b", "Items", "12345678", "xxxxxxxxxxxxxxxx"]).as_bytes().to_vec(),
        _ => format!("item{}", random.below(40)).into_bytes(),
    }
}

fn number(random: &mut Random) -> &'static str {
    random.pick(&["0", "1", "2", "5", "10", "20", "64", "-1", "x", "1.5", "9223372036854775808"])
}

fn fill(random: &mut Random, template: &str, key: Option<&str>) -> Words {
    // Redis Stack loses an empty item of top-k when it loads the value.
    let is_top_k = template.starts_with("TOPK.");
    let item = |random: &mut Random| match item(random) {
        item if is_top_k && item.is_empty() => b"empty".to_vec(),
        item => item,
    };
    let mut filled = Vec::new();
    for word in template.split(' ') {
        let text = |text: &str| vec![text.as_bytes().to_vec()];
        let counts = |random: &mut Random, count: usize| -> Words {
            (0..count).flat_map(|_| [item(random), (1 + random.below(9)).to_string().into_bytes()]).collect()
        };
        filled.extend(match word {
            "K" => text(key.unwrap_or_else(|| random.pick(&KEYS))),
            "I" => vec![item(random)],
            "II" => (0..1 + random.below(12)).map(|_| item(random)).collect(),
            "WW" => {
                let count = 1 + random.below(5);
                counts(random, count)
            }
            "N" => text(number(random)),
            "S" => text(random.pick(&["1", "2", "3", "4"])),
            "R" => text(random.pick(&["0.01", "0.3", "0.5", "0.99", "0", "1", "-1", "x"])),
            "P" => text(random.pick(&["0", "1", "2", "9", "17", "-1", "x", "1000000"])),
            "F" => text(random.pick(&["CAPACITY", "size", "FILTERS", "ITEMS", "EXPANSION", "x"])),
            "V" => text(&format!("{}.{}", random.between(-99, 99), random.below(1000))),
            "Q" => text(random.pick(&["0", "0.1", "0.5", "0.75", "0.999", "1", "1.5"])),
            other => text(other),
        });
    }
    filled
}

/// Exchanges the payloads of keys: each server restores those of the other as `copy`. If `is_exact`, the restored value
/// must have the same payload as the original. Then runs the commands that `reads` returns for each key that exists.
fn exchange(pair: &mut Pair, keys: &[&str], is_exact: bool, mut reads: impl FnMut(&str) -> Vec<Words>) {
    let dumps: Vec<Words> = keys.iter().map(|key| words(&format!("DUMP {key}"))).collect();
    let (of_ember, of_stack) = pair.run(&dumps, are_equal);
    let (mut for_ember, mut for_stack, mut originals) = (Vec::new(), Vec::new(), Vec::new());
    for (key, payloads) in keys.iter().zip(of_ember.iter().zip(&of_stack)) {
        if let (Some(ember), Some(stack)) = (payloads.0.bytes(), payloads.1.bytes()) {
            let restore = |payload| [&b"RESTORE"[..], b"copy", b"0", payload, b"REPLACE"].map(<[u8]>::to_vec);
            for (commands, payload) in [(&mut for_ember, stack), (&mut for_stack, ember)] {
                commands.extend([restore(payload).to_vec(), words("DUMP copy")]);
            }
            originals.push(ember);
        }
        let reads = reads(key);
        for_ember.extend_from_slice(&reads);
        for_stack.extend(reads);
    }
    let (ember, stack) = pair.run_each(&for_ember, &for_stack);
    let mut copies = Vec::new();
    for (command, (ember, stack)) in for_ember.iter().zip(ember.iter().zip(&stack)) {
        pair.compare(command, ember, stack, are_equal);
        match &command[0][..] {
            b"DUMP" => copies.extend(ember.bytes()),
            b"RESTORE" => assert_eq!(*ember, Value::ok(), "after\n{}", pair.history.join("\n")),
            _ => {}
        }
    }
    assert!(!is_exact || copies == originals, "after\n{}", pair.history.join("\n"));
}

/// Runs random commands, and compares payloads with the commands that `reads` returns for a key and its copy.
fn compare(
    templates: &[&str],
    keys: &[&str],
    is_exact: bool,
    reads: impl Fn(&mut Random, &str) -> Vec<Words>,
) {
    let directory = Directory::new("stack-sketches");
    let stack = start_stack(&directory);
    for (seed, mode) in MODES.into_iter().enumerate() {
        let ember = start_ember(mode);
        for protocol in ["2", "3"] {
            let mut random = Random::new(seed as u64 + 1);
            let mut pair = Pair::connect(&ember, &stack, protocol);
            for _ in 0..commands() / 4 / COMMANDS_PER_EXCHANGE {
                let batch: Vec<Words> = (0..COMMANDS_PER_EXCHANGE)
                    .map(|_| {
                        let template = random.pick(templates).to_owned();
                        fill(&mut random, &template, None)
                    })
                    .collect();
                pair.run(&batch, are_equal);
                exchange(&mut pair, keys, is_exact, |key| reads(&mut random, key));
            }
        }
    }
}

/// Returns these commands on the copy, which is removed after them.
fn on_copy(random: &mut Random, templates: &[&str]) -> Vec<Words> {
    let reads = templates.iter().map(|template| fill(random, template, Some("copy")));
    reads.chain([words("DEL copy")]).collect()
}

#[test]
fn bloom_filters_equal_those_of_redis_stack() {
    let reads = ["BF.MEXISTS K II", "BF.INFO K", "BF.SCANDUMP K 0", "BF.SCANDUMP K 1", "BF.MADD K II"];
    compare(BLOOM, &KEYS, true, |random, _| on_copy(random, &reads));
}

#[test]
fn cuckoo_filters_equal_those_of_redis_stack() {
    let reads = ["CF.MEXISTS K II", "CF.INFO K", "CF.SCANDUMP K 0", "CF.SCANDUMP K 1", "CF.DEL K I"];
    compare(CUCKOO, &KEYS, true, |random, _| on_copy(random, &reads));
}

#[test]
fn count_min_sketches_equal_those_of_redis_stack() {
    let reads = ["CMS.QUERY K II", "CMS.INFO K", "CMS.INCRBY K WW"];
    compare(COUNT_MIN, &KEYS, true, |random, _| on_copy(random, &reads));
}

#[test]
fn top_k_sketches_equal_those_of_redis_stack() {
    // The payloads of Redis Stack contain bytes that it did not set. Without its table of powers, which it does not
    // restore, counters of a restored sketch do not decay there.
    let reads = ["TOPK.LIST K WITHCOUNT", "TOPK.COUNT K II", "TOPK.QUERY K II", "TOPK.INFO K"];
    compare(TOP_K, &KEYS, false, |random, _| on_copy(random, &reads));
}

#[test]
fn t_digests_equal_those_of_redis_stack() {
    compare(T_DIGEST, &KEYS[..3], true, |random, key| {
        let mut reads: Vec<Words> = Vec::new();
        for template in T_DIGEST_READS {
            reads.extend([key, "copy"].map(|key| fill(random, template, Some(key))));
        }
        reads.push(words(&format!("DEL {key} copy")));
        reads
    });
}
