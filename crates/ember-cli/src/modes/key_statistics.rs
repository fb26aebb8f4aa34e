//! `--keystats`: the keys that take most memory, and memory, elements and sizes of all keys by type.

use std::cmp::Reverse;

use ember_protocol::client::{Value, quote};

use super::failure::Failure;
use super::key_scan::{Progress, Scan, answered, print_head};
use super::largest::TYPES;
use ember_client::Connection;
use ember_client::put;

/// A key with its type, memory and number of elements.
struct Key {
    name: Vec<u8>,
    /// The index in [`TYPES`].
    kind: usize,
    memory_bytes: u64,
    elements: u64,
}

/// The sums over all keys of one type.
#[derive(Clone, Copy, Default)]
struct Sums {
    keys: u64,
    memory_bytes: u64,
    elements: u64,
    elements_max: u64,
}

/// The statistics of all keys of a scan.
struct Statistics {
    /// The largest keys by memory, in descending order.
    top: Vec<Key>,
    top_count: usize,
    types: [Sums; TYPES.len()],
    /// The number of keys by memory: at index `n`, those of more than 2ⁿ⁻¹ bytes and at most 2ⁿ.
    by_memory: [u64; u64::BITS as usize + 1],
    names_bytes: u64,
    longest_name: Vec<u8>,
}

/// Scans all keys; `samples` limits the elements of a key that MEMORY USAGE reads.
pub(super) fn run(
    connection: &mut Connection,
    mut scan: Scan,
    samples: Option<u64>,
    top_count: usize,
) -> Result<(), Failure> {
    let mut progress = Progress::new(connection)?;
    let mut statistics = Statistics::new(top_count);
    print_head("biggest");
    loop {
        progress.begin_round();
        let Some(names) = scan.next(connection)? else { break };
        for key in facts(connection, names, samples)? {
            statistics.add(key);
            progress.count();
        }
        scan.pause();
    }
    put(statistics.shown().as_bytes());
    Ok(())
}

/// Returns the facts of all keys that still exist and have a known type.
fn facts(
    connection: &mut Connection,
    names: Vec<Vec<u8>>,
    samples: Option<u64>,
) -> Result<Vec<Key>, Failure> {
    let asked: Vec<Vec<&[u8]>> = names.iter().map(|name| vec![&b"TYPE"[..], name]).collect();
    let answers = connection.ask_all(&asked)?;
    let mut known = Vec::new();
    for (name, answer) in names.into_iter().zip(answers) {
        let found = answered(answer)?.text();
        known.extend(TYPES.iter().position(|(kind, ..)| *kind == found).map(|kind| (name, kind)));
    }
    let samples = samples.map(|count| count.to_string());
    let mut asked: Vec<Vec<&[u8]>> = Vec::new();
    for (name, kind) in &known {
        let mut usage: Vec<&[u8]> = vec![b"MEMORY", b"USAGE", name];
        if let Some(samples) = &samples {
            usage.extend([b"SAMPLES", samples.as_bytes()]);
        }
        asked.push(usage);
        asked.push(vec![TYPES[*kind].1.as_bytes(), name]);
    }
    let answers = connection.ask_all(&asked)?;
    let number = |answer: &Value| answer.integer().and_then(|number| u64::try_from(number).ok());
    let mut keys = Vec::new();
    for ((name, kind), pair) in known.into_iter().zip(answers.chunks(2)) {
        if let [Value::Error(text), _] | [_, Value::Error(text)] = pair {
            return Err(Failure::Said(format!("ERROR: {}", String::from_utf8_lossy(text))));
        }
        // A key that has been removed since the scan has no memory.
        if let Some(memory_bytes) = number(&pair[0]) {
            keys.push(Key { name, kind, memory_bytes, elements: number(&pair[1]).unwrap_or(0) });
        }
    }
    Ok(keys)
}

impl Statistics {
    fn new(top_count: usize) -> Statistics {
        Statistics {
            top: Vec::new(),
            top_count,
            types: [Sums::default(); TYPES.len()],
            by_memory: [0; u64::BITS as usize + 1],
            names_bytes: 0,
            longest_name: Vec::new(),
        }
    }

    fn add(&mut self, key: Key) {
        let sums = &mut self.types[key.kind];
        sums.keys += 1;
        sums.memory_bytes += key.memory_bytes;
        sums.elements += key.elements;
        sums.elements_max = sums.elements_max.max(key.elements);
        self.by_memory[power_of_two(key.memory_bytes)] += 1;
        self.names_bytes += key.name.len() as u64;
        if key.name.len() > self.longest_name.len() {
            self.longest_name.clone_from(&key.name);
        }
        let at = self.top.partition_point(|other| Reverse(other.memory_bytes) <= Reverse(key.memory_bytes));
        if at < self.top_count {
            self.top.insert(at, key);
            self.top.truncate(self.top_count);
        }
    }

    fn shown(&self) -> String {
        let keys: u64 = self.types.iter().map(|sums| sums.keys).sum();
        let memory: u64 = self.types.iter().map(|sums| sums.memory_bytes).sum();
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let mut text = format!("\n-------- {} keys with most memory --------\n\n", self.top.len());
        for (index, key) in self.top.iter().enumerate() {
            let (kind, _, unit) = TYPES[key.kind];
            text += &format!(
                "{:>4}  {kind:<9} {:>14} bytes {:>12} {unit:<8} {}\n",
                index + 1,
                key.memory_bytes,
                key.elements,
                quote(&key.name)
            );
        }
        text += "\n-------- keys by memory --------\n\n";
        let mut below = 0;
        for (power, count) in self.by_memory.iter().enumerate().filter(|(_, count)| **count > 0) {
            below += count;
            text += &format!(
                "up to {:>20} bytes: {count:>12} keys, {:>6.2}% of all up to here\n",
                1u128 << power,
                100.0 * share(below, keys)
            );
        }
        text += "\n-------- types --------\n\n";
        for (sums, (kind, _, unit)) in self.types.iter().zip(TYPES).filter(|(sums, _)| sums.keys > 0) {
            text += &format!(
                "{kind:<9} {:>12} keys ({:05.2}%), {} bytes ({:05.2}%, avg {:.2}), {} {unit} (avg {:.2}, max {})\n",
                sums.keys,
                100.0 * share(sums.keys, keys),
                sums.memory_bytes,
                100.0 * share(sums.memory_bytes, memory),
                share(sums.memory_bytes, sums.keys),
                sums.elements,
                share(sums.elements, sums.keys),
                sums.elements_max
            );
        }
        text += &format!(
            "\nSampled {keys} keys in the keyspace, {memory} bytes (avg {:.2})\nTotal key length in bytes is {} (avg len \
             {:.2})\n",
            share(memory, keys),
            self.names_bytes,
            share(self.names_bytes, keys)
        );
        if keys > 0 {
            text += &format!(
                "Longest name {} has {} bytes\n",
                quote(&self.longest_name),
                self.longest_name.len()
            );
        }
        text
    }
}

/// Returns the exponent of the smallest power of two that is not below a size.
fn power_of_two(size: u64) -> usize {
    match size {
        0 | 1 => 0,
        size => (u64::BITS - (size - 1).leading_zeros()) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_with_most_memory_are_listed_and_all_are_counted() {
        let mut statistics = Statistics::new(2);
        for (name, memory_bytes) in [("a", 64), ("bb", 65), ("c", 1000), ("d", 70)] {
            statistics.add(Key { name: name.into(), kind: 2, memory_bytes, elements: 3 });
        }
        let names: Vec<&[u8]> = statistics.top.iter().map(|key| key.name.as_slice()).collect();
        assert_eq!(names, [b"c", b"d"]);
        let text = statistics.shown();
        for part in [
            "64 bytes:            1 keys,  25.00% of all up to here",
            "128 bytes:            2 keys,  75.00% of all up to here",
            "1024 bytes:            1 keys, 100.00% of all up to here",
            "string               4 keys (100.00%), 1199 bytes (100.00%, avg 299.75), 12 bytes (avg 3.00, max 3)",
            "Longest name \"bb\" has 2 bytes",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
    }

    #[test]
    fn sizes_are_grouped_by_powers_of_two() {
        assert_eq!([0, 1, 2, 3, 4, 5, 1 << 63, u64::MAX].map(power_of_two), [0, 0, 1, 2, 2, 3, 63, 64]);
    }
}
