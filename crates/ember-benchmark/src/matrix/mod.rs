//! `--matrix`: measures the running server and prints the result as a table like KVBench's.

mod process;
mod seed;
pub(crate) mod stores;

use serde_json::{Value, json};

use crate::arguments::BenchmarkArguments;
use crate::facts::Facts;
use crate::failure::Failure;
use crate::figures::Figures;
use crate::report::{csv, table};
use crate::target::{Load, Target};
use crate::workload::Workload;
use ember_client::Address;
use ember_client::put;

/// Pipeline and number of clients of KVBench's three suites.
const SUITES: [(u32, u32); 3] = [(1, 1), (1, 256), (256, 256)];

const COLUMNS: [&str; 7] = ["Store", "Pipeline", "Clients", "Persist", "Fsync", "SET/sec", "GET/sec"];

/// Measures SET and GET in each suite and prints the table; returns the number of error replies.
///
/// # Errors
/// Returns a message if the server cannot be measured.
pub(crate) fn run(
    arguments: &BenchmarkArguments,
    workloads: &[Workload],
    address: Address,
) -> Result<u64, Failure> {
    let mut target = Target::open(address, arguments)?;
    let (persist, fsync) = durability(&target.facts);
    let mut rows = vec![COLUMNS.map(str::to_owned).to_vec()];
    let mut errors = 0;
    for (pipeline, clients) in SUITES {
        let mut row = vec![target.facts.store.clone()];
        row.extend([pipeline.to_string(), clients.to_string(), persist.clone(), fsync.clone()]);
        let load = load(arguments, pipeline, clients);
        for workload in workloads {
            let result = target.measure(workload, &load)?;
            errors += result.measured.tally.errors;
            row.push(format!("{:.0}", Figures::of(&result).rate));
        }
        rows.push(row);
    }
    show(arguments, &rows, 1);
    Ok(errors)
}

/// Returns the load of a suite; options other than pipeline and clients apply.
fn load(arguments: &BenchmarkArguments, pipeline: u32, clients: u32) -> Load {
    let threads = arguments.load.threads.min(clients);
    Load { pipeline, clients, threads, ..Load::of(arguments) }
}

/// Prints the table in the selected format; the first `left` columns contain words.
fn show(arguments: &BenchmarkArguments, rows: &[Vec<String>], left: usize) {
    let text = if arguments.output.json {
        format!("{:#}\n", document(rows))
    } else if arguments.output.csv {
        rows.iter().map(|row| csv::row(row.iter().cloned())).collect()
    } else {
        table(rows, left)
    };
    put(text.as_bytes());
}

/// Converts rows to JSON objects whose fields are the columns.
fn document(rows: &[Vec<String>]) -> Value {
    let objects = rows.iter().skip(1).map(|row| {
        let cells =
            row.iter().map(|cell| cell.parse::<u64>().map_or_else(|_| json!(cell), |number| json!(number)));
        let names = rows[0].iter().map(|name| name.to_lowercase().replace('/', "_per_").replace(' ', "_"));
        Value::Object(names.zip(cells).collect())
    });
    Value::Array(objects.collect())
}

/// Returns whether writes are stored on a disk, and whether they are durable before the reply.
fn durability(facts: &Facts) -> (String, String) {
    let persist = facts.append_only.clone().unwrap_or_else(|| "unknown".to_owned());
    let fsync = match facts.append_fsync.as_deref() {
        _ if persist == "no" => "no",
        Some("always") => "yes",
        Some(other) => other,
        None => "unknown",
    };
    (persist, fsync.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_follows_the_configuration_of_the_log() {
        let of = |append_only: Option<&str>, append_fsync: Option<&str>| {
            let (persist, fsync) = durability(&Facts {
                server: String::new(),
                store: String::new(),
                threads: None,
                append_only: append_only.map(str::to_owned),
                append_fsync: append_fsync.map(str::to_owned),
            });
            format!("{persist} {fsync}")
        };
        assert_eq!(of(Some("no"), Some("everysec")), "no no");
        assert_eq!(of(Some("yes"), Some("always")), "yes yes");
        assert_eq!(of(Some("yes"), Some("no")), "yes no");
        assert_eq!(of(Some("yes"), Some("everysec")), "yes everysec");
        assert_eq!(of(None, None), "unknown unknown");
    }
}
