//! `--matrix stores`: measures each store in each durability mode, each time with a new server, and prints the results
//! with KVBench's.

use std::path::{Path, PathBuf};

use ember_client::{Address, Place, put};

use super::process::Process;
use super::seed::{ROWS, SeedRow};
use super::{SUITES, load, show};
use crate::arguments::BenchmarkArguments;
use crate::failure::Failure;
use crate::figures::Figures;
use crate::target::Target;
use crate::workload::Workload;

const COLUMNS: [&str; 13] = [
    "KVBench",
    "Store",
    "Pipeline",
    "Clients",
    "Persist",
    "Fsync",
    "SET/sec",
    "GET/sec",
    "Hits",
    "Written/SET",
    "Files MiB",
    "KVBench SET/sec",
    "KVBench GET/sec",
];

/// Stores by KVBench's names, and ember's equivalents. KVBench has no store like LMDB.
const STORES: [(&str, &str); 6] = [
    ("map", "map"),
    ("btree", "btree"),
    ("bolt", "redb"),
    ("leveldb", "fjall"),
    (NOTHING, "lmdb"),
    ("redis", "redis"),
];

/// The durability modes: whether data is stored on disk, and whether it is durable before a reply.
const WAYS: [(bool, bool); 3] = [(true, true), (true, false), (false, false)];

/// The text shown for unmeasured values.
const NOTHING: &str = "–";

/// The names of server programs.
const SERVER: &str = "ember-server";
const REDIS: &str = "redis-server";

const REMARK: &str = "\nThe last two columns are from KVBench's README (MacBook Pro 15\", Core i7 of 2.8 GHz, Go 1.7). \
                      In brackets: GETs that KVBench rejected with an error: it accepts only lower-case names.\n";

/// Measures all stores and prints the table; returns the number of error replies.
///
/// # Errors
/// Returns a message if a server that this function started cannot be measured.
pub(crate) fn run(
    arguments: &BenchmarkArguments,
    workloads: &[Workload],
    address: &Address,
) -> Result<u64, Failure> {
    let program = arguments.target.server_program.clone().unwrap_or_else(server_in_own_directory);
    let parent = arguments.target.folder.clone().unwrap_or_else(std::env::temp_dir);
    let mut rows = Vec::new();
    let mut errors = 0;
    for (kvbench, store) in STORES {
        for (persist, fsync) in WAYS {
            let is_known =
                ROWS.iter().any(|row| (row.store, row.persist, row.fsync) == (kvbench, persist, fsync));
            if !is_known && (store != "lmdb" || !persist) {
                continue;
            }
            let server = start(&program, &parent, store, persist, fsync);
            if let Err(failure) = &server {
                eprintln!("{store} is skipped: {}", failure.0);
            }
            for suite in SUITES {
                let seed = ROWS.iter().find(|row| {
                    (row.store, row.persist, row.fsync) == (kvbench, persist, fsync)
                        && (row.pipeline, row.clients) == suite
                });
                let measured = match &server {
                    Ok(server) => {
                        let (cells, wrong) = measure(arguments, workloads, address, server, suite)?;
                        errors += wrong;
                        cells
                    }
                    Err(_) => [NOTHING; 5].map(str::to_owned),
                };
                let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
                let mut row = vec![kvbench.to_owned(), store.to_owned()];
                row.extend([suite.0.to_string(), suite.1.to_string(), yes(persist), yes(fsync)]);
                row.extend(measured);
                row.extend(seed_cells(seed));
                rows.push((suite, row));
            }
        }
    }
    // Rows are in KVBench's order: suite by suite.
    let order = |suite: &(u32, u32)| SUITES.iter().position(|other| other == suite);
    rows.sort_by_key(|(suite, _)| order(suite));
    let mut all = vec![COLUMNS.map(str::to_owned).to_vec()];
    all.extend(rows.into_iter().map(|(_, row)| row));
    show(arguments, &all, 2);
    if arguments.output.csv || arguments.output.json {
        // Programs that read these formats expect only cells, so the remark goes to standard error.
        eprint!("{REMARK}");
    } else {
        put(REMARK.as_bytes());
    }
    Ok(errors)
}

/// Returns the path of the server program in the directory of this program.
fn server_in_own_directory() -> PathBuf {
    let this = std::env::current_exe().unwrap_or_default();
    this.parent()
        .map(|folder| folder.join(SERVER))
        .filter(|program| program.is_file())
        .unwrap_or_else(|| SERVER.into())
}

fn start(program: &Path, parent: &Path, store: &str, persist: bool, fsync: bool) -> Result<Process, Failure> {
    let yes = |is: bool| if is { "yes" } else { "no" };
    let name = format!("{store}-{}-{}", yes(persist), yes(fsync));
    if store == "redis" {
        let fsync = if fsync { "always" } else { "no" };
        let arguments = ["--appendonly", yes(persist), "--appendfsync", fsync, "--save", ""];
        return Process::start(Path::new(REDIS), &arguments, parent, &name);
    }
    let arguments: &[&str] = match persist {
        true => &["--store", store, "--path", "data.db", "--fsync", yes(fsync)],
        false => &["--store", store, "--path", ":memory:"],
    };
    Process::start(program, arguments, parent, &name)
}

/// Measures the rates of SET and GET, hits, bytes written per SET and MiB of files; returns these values and the number
/// of error replies.
fn measure(
    arguments: &BenchmarkArguments,
    workloads: &[Workload],
    address: &Address,
    server: &Process,
    (pipeline, clients): (u32, u32),
) -> Result<([String; 5], u64), Failure> {
    let place = Place::Tcp { host: "127.0.0.1".to_owned(), port: server.port };
    let address = Address { place, tls: None, credentials: None, ..address.clone() };
    let mut target = Target::open(address, arguments)?;
    let load = load(arguments, pipeline, clients);
    let [set, get] = workloads else { return Err(Failure("the table needs SET and GET".to_owned())) };
    let before = server.written_bytes();
    let sets = target.measure(set, &load)?;
    let written = server.written_bytes().zip(before).map(|(after, before)| after.saturating_sub(before));
    let gets = target.measure(get, &load)?;
    let answers = sets.measured.tally.replies.max(1);
    let hits = Figures::of(&gets).hit_rate;
    let cells = [
        format!("{:.0}", Figures::of(&sets).rate),
        format!("{:.0}", Figures::of(&gets).rate),
        hits.map_or_else(|| NOTHING.to_owned(), |rate| format!("{:.0} %", rate * 100.0)),
        written.map_or_else(|| NOTHING.to_owned(), |bytes| (bytes / answers).to_string()),
        format!("{:.1}", server.file_bytes() as f64 / f64::from(1 << 20)),
    ];
    Ok((cells, sets.measured.tally.errors + gets.measured.tally.errors))
}

fn seed_cells(seed: Option<&SeedRow>) -> [String; 2] {
    let Some(row) = seed else { return [NOTHING; 2].map(str::to_owned) };
    let gets = if row.gets_are_replies() { row.gets.to_string() } else { format!("({})", row.gets) };
    [row.sets.to_string(), gets]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kvbench_row_matches_a_store_and_a_suite() {
        for row in &ROWS {
            assert!(STORES.iter().any(|(kvbench, _)| *kvbench == row.store), "{}", row.store);
            assert!(
                WAYS.contains(&(row.persist, row.fsync)) && SUITES.contains(&(row.pipeline, row.clients))
            );
            assert!(row.sets > 0 && row.gets > 0);
        }
        let (gets, replies) = (ROWS[0].gets, &ROWS[12]);
        assert_eq!(seed_cells(Some(&ROWS[0])), ["9246".to_owned(), format!("({gets})")]);
        assert_eq!(seed_cells(Some(replies)), ["33704", "32879"].map(str::to_owned));
    }
}
