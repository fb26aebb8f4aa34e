//! Finds the most frequently used keys by the counters of an LFU policy (`--hotkeys`).

use ember_protocol::client::{Value, quote};

use super::failure::Failure;
use super::key_scan::{Progress, Scan, print_head};
use ember_client::Connection;
use ember_client::put;

/// The maximum number of keys reported at the end.
const SHOWN_MAX: usize = 16;

/// Scans all keys.
pub(super) fn run(connection: &mut Connection, mut scan: Scan) -> Result<(), Failure> {
    let mut hottest = Hottest::default();
    let mut progress = Progress::new(connection)?;
    print_head("hot");
    loop {
        progress.begin_round();
        let Some(keys) = scan.next(connection)? else { break };
        let asked: Vec<Vec<&[u8]>> = keys.iter().map(|key| vec![&b"OBJECT"[..], b"FREQ", key]).collect();
        for (key, answer) in keys.iter().zip(connection.ask_all(&asked)?) {
            let frequency = match answer {
                Value::Integer(frequency) => frequency,
                Value::Error(text) => {
                    return Err(Failure::Said(format!("Error: {}", String::from_utf8_lossy(&text))));
                }
                _ => 0,
            };
            progress.count();
            if hottest.add(quote(key), frequency) {
                put(format!(
                    "{} Hot key '{}' found so far with counter {frequency}\n",
                    progress.shown(),
                    quote(key)
                )
                .as_bytes());
            }
        }
        scan.pause();
    }
    let mut text =
        format!("\n-------- summary -------\n\nSampled {} keys in the keyspace!\n", progress.sampled);
    for (key, frequency) in hottest.0.iter().rev() {
        text += &format!("hot key found with counter: {frequency}\tkeyname: {key}\n");
    }
    put(text.as_bytes());
    Ok(())
}

/// The hottest keys so far, the hottest last; among equally hot keys, those found first.
#[derive(Default)]
struct Hottest(Vec<(String, i64)>);

impl Hottest {
    /// Adds a key if it is one of the hottest; returns whether it was added.
    fn add(&mut self, key: String, frequency: i64) -> bool {
        let at = self.0.partition_point(|(_, other)| *other < frequency);
        if frequency <= 0 || (at == 0 && self.0.len() == SHOWN_MAX) {
            return false;
        }
        self.0.insert(at, (key, frequency));
        if self.0.len() > SHOWN_MAX {
            self.0.remove(0);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hottest_keys_are_kept_and_ties_favor_the_first() {
        let mut hottest = Hottest::default();
        assert!(!hottest.add("cold".to_owned(), 0));
        for number in 0..SHOWN_MAX {
            assert!(hottest.add(number.to_string(), 5));
        }
        assert!(!hottest.add("late".to_owned(), 5));
        assert!(hottest.add("hot".to_owned(), 6));
        assert_eq!(hottest.0.len(), SHOWN_MAX);
        assert_eq!(hottest.0.last(), Some(&("hot".to_owned(), 6)));
        assert!(!hottest.0.iter().any(|(key, _)| *key == (SHOWN_MAX - 1).to_string()));
    }
}
