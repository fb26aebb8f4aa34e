//! Finds the largest key of each type: by elements (`--bigkeys`) or by memory (`--memkeys`).

use ember_protocol::client::{Value, quote};

use super::failure::Failure;
use super::key_scan::{Progress, Scan, answered, print_head};
use ember_client::Connection;
use ember_client::put;

/// The measure of a key's size.
pub(super) enum Measure {
    /// By the number of elements; strings by their length in bytes.
    Elements,
    /// By memory in bytes, sampling at most this many elements of each key.
    Memory(Option<u64>),
}

/// The results for a type.
struct TypeFacts {
    name: &'static str,
    size_command: &'static str,
    unit: &'static str,
    count: u64,
    total: u64,
    largest: Option<(String, u64)>,
}

/// The types in the order of the summary: name, command for the size, unit.
pub(super) const TYPES: [(&str, &str, &str); 13] = [
    ("list", "LLEN", "items"),
    ("hash", "HLEN", "fields"),
    ("string", "STRLEN", "bytes"),
    ("stream", "XLEN", "entries"),
    ("set", "SCARD", "members"),
    ("zset", "ZCARD", "members"),
    ("vectorset", "VCARD", "elements"),
    ("ReJSON-RL", "JSON.DEBUG MEMORY", "bytes"),
    ("MBbloom--", "BF.CARD", "items"),
    ("MBbloomCF", "MEMORY USAGE", "bytes"),
    ("CMSk-TYPE", "MEMORY USAGE", "bytes"),
    ("TopK-TYPE", "MEMORY USAGE", "bytes"),
    ("TDIS-TYPE", "MEMORY USAGE", "bytes"),
];

/// The number of types that redis-cli knows. The summary omits the others if no key has them.
const TYPES_OF_REDIS: usize = 6;

/// Scans all keys.
pub(super) fn run(connection: &mut Connection, mut scan: Scan, measure: &Measure) -> Result<(), Failure> {
    let mut types: Vec<TypeFacts> = TYPES
        .iter()
        .map(|&(name, size_command, unit)| {
            let unit = if matches!(measure, Measure::Memory(_)) { "bytes" } else { unit };
            TypeFacts { name, size_command, unit, count: 0, total: 0, largest: None }
        })
        .collect();
    let mut progress = Progress::new(connection)?;
    let mut names_bytes = 0;
    print_head("biggest");
    loop {
        progress.begin_round();
        let Some(keys) = scan.next(connection)? else { break };
        for (key, kind, size) in sizes(connection, keys, measure, &types)? {
            let facts = &mut types[kind];
            facts.count += 1;
            facts.total += size;
            names_bytes += key.len() as u64;
            if facts.largest.as_ref().map_or(0, |(_, largest)| *largest) < size {
                let (name, unit, key) = (facts.name, facts.unit, quote(&key));
                put(format!(
                    "{} Biggest {name:<6} found so far '{key}' with {size} {unit}\n",
                    progress.shown()
                )
                .as_bytes());
                facts.largest = Some((key, size));
            }
            progress.count();
        }
        scan.pause();
    }
    put(summary(&types, progress.sampled, names_bytes).as_bytes());
    Ok(())
}

/// Returns the size of each key that still exists, with its name and type.
fn sizes(
    connection: &mut Connection,
    keys: Vec<Vec<u8>>,
    measure: &Measure,
    types: &[TypeFacts],
) -> Result<Vec<(Vec<u8>, usize, u64)>, Failure> {
    let asked: Vec<Vec<&[u8]>> = keys.iter().map(|key| vec![&b"TYPE"[..], key]).collect();
    let answers = connection.ask_all(&asked)?;
    let mut known = Vec::new();
    for (key, answer) in keys.into_iter().zip(answers) {
        let name = answered(answer)?.text();
        known.extend(types.iter().position(|facts| facts.name == name).map(|kind| (key, kind)));
    }
    let samples = |samples: &Option<u64>| samples.map(|count| count.to_string());
    let samples = match measure {
        Measure::Elements => None,
        Measure::Memory(count) => samples(count),
    };
    let asked: Vec<Vec<&[u8]>> = known
        .iter()
        .map(|(key, kind)| match measure {
            Measure::Elements => {
                let words = types[*kind].size_command.split(' ').map(str::as_bytes);
                words.chain([&key[..]]).collect()
            }
            Measure::Memory(_) => {
                let mut command: Vec<&[u8]> = vec![b"MEMORY", b"USAGE", key];
                if let Some(samples) = &samples {
                    command.extend([b"SAMPLES", samples.as_bytes()]);
                }
                command
            }
        })
        .collect();
    let answers = connection.ask_all(&asked)?;
    let size = |answer: &Value| answer.integer().and_then(|size| u64::try_from(size).ok()).unwrap_or(0);
    Ok(known.into_iter().zip(&answers).map(|((key, kind), answer)| (key, kind, size(answer))).collect())
}

fn summary(types: &[TypeFacts], sampled: u64, names_bytes: u64) -> String {
    let share = |part: f64, whole: u64| if whole == 0 { 0.0 } else { part / whole as f64 };
    let mut text = format!(
        "\n-------- summary -------\n\nSampled {sampled} keys in the keyspace!\nTotal key length in bytes is \
         {names_bytes} (avg len {:.2})\n\n",
        share(names_bytes as f64, sampled)
    );
    for TypeFacts { name, unit, largest, .. } in types {
        if let Some((key, size)) = largest {
            text += &format!("Biggest {name:>6} found '{key}' has {size} {unit}\n");
        }
    }
    text.push('\n');
    let is_of_redis = |name: &str| TYPES[..TYPES_OF_REDIS].iter().any(|&(known, ..)| known == name);
    let shown = types.iter().filter(|facts| facts.count > 0 || is_of_redis(facts.name));
    for TypeFacts { name, unit, count, total, .. } in shown {
        text += &format!(
            "{count} {name}s with {total} {unit} ({:05.2}% of keys, avg size {:.2})\n",
            share(100.0 * *count as f64, sampled),
            share(*total as f64, *count)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_lists_types_of_modules_only_if_there_are_any() {
        const VECTOR_SET: &str = "vectorset";
        let facts = |name, count| TypeFacts {
            name,
            size_command: "",
            unit: "elements",
            count,
            total: 6 * count,
            largest: (count > 0).then(|| ("\"points\"".to_owned(), 6)),
        };
        let text = summary(&[facts("zset", 0), facts(VECTOR_SET, 1)], 2, 9);
        assert!(text.contains("Biggest vectorset found '\"points\"' has 6 elements\n"), "{text}");
        assert!(text.contains("0 zsets") && text.contains("1 vectorsets with 6 elements"), "{text}");
        assert!(!summary(&[facts("zset", 1), facts(VECTOR_SET, 0)], 1, 9).contains(VECTOR_SET));
    }
}
