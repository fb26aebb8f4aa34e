//! The scripts of `bench/` run: each prints tables, writes the same figures to CSV files and stops what it started.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use ember_peers::{require_program, start_redis};
use ember_testkit::{find_ember_cli, find_ember_server, free_port};

/// Environment variables with values so small that a script ends within seconds. A script receives those that it has.
const SMALL: [(&str, &str); 7] = [
    ("BENCH_REQUESTS", "1000"),
    ("BENCH_ROUNDS", "1"),
    ("BENCH_CLIENTS", "5"),
    ("BENCH_THREADS", "1"),
    ("BENCH_KEYS", "500"),
    ("KEY_COUNT", "5000"),
    ("ELEMENT_COUNT", "1000"),
];

/// Variables of the test's environment that would affect the scripts.
const PORTS: [&str; 6] = [
    "EMBER_CONCURRENT_PORT",
    "EMBER_SHARDED_PORT",
    "REDIS_PORT",
    "VALKEY_PORT",
    "KEYDB_PORT",
    "DRAGONFLY_PORT",
];

/// Rows of cells; the first row contains the names of the columns.
type Table = Vec<Vec<String>>;

/// A separate folder for a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ember-bench-{name}-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Writes a program that precedes the machine's programs in PATH.
    fn add_program(&self, name: &str, script: &str) {
        let path = self.0.join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn path(&self) -> String {
        format!("{}:{}", self.0.display(), std::env::var("PATH").unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs a command line whose first word is a script.
fn run(line: &str, folder: &Folder, variables: &[(&str, &str)]) -> Output {
    require_program("redis-benchmark");
    let (script, arguments) = line.split_once(' ').unwrap_or((line, ""));
    let path = root().join("bench").join(script);
    let text = fs::read_to_string(&path).unwrap();
    let head: String = text.lines().take_while(|line| line.starts_with('#')).collect();
    let mut command = Command::new(path);
    command.args(arguments.split_whitespace());
    for port in PORTS {
        command.env(port, free_port().to_string());
    }
    command
        .env("EMBER_SERVER", find_ember_server())
        .env("EMBER_CLI", find_ember_cli())
        .env("BENCH_RESULTS", folder.0.join("results"))
        .env_remove("REDIS_SERVER")
        .envs(SMALL.into_iter().filter(|(name, _)| head.contains(name)))
        .envs(variables.iter().copied());
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Parses the Markdown tables in a text, omitting the separator lines below their headers.
fn markdown_tables(text: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        let is_table = line.starts_with('|');
        if is_table && !is_inside {
            tables.push(Vec::new());
        }
        is_inside = is_table;
        if is_table && !line.starts_with("|---") {
            let cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
            tables.last_mut().unwrap().push(cells.collect());
        }
    }
    tables
}

fn csv_cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cells.last_mut().unwrap().push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            _ => cells.last_mut().unwrap().push(letter),
        }
    }
    cells
}

/// Returns the files with results that end with `extension`, ordered by name.
fn results(folder: &Folder, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.0.join("results")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.extension().unwrap() == extension).collect();
    paths.sort();
    paths
}

/// Returns the tables of all CSV files in the folder, ordered by file name, without the column of conditions.
fn csv_tables(folder: &Folder, script: &str) -> Vec<Table> {
    let table = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with(script.trim_end_matches(".sh")) && name.ends_with("Z.csv"), "{name}");
        let text = fs::read_to_string(path).unwrap();
        let mut table: Table = text.lines().map(csv_cells).collect();
        let conditions: Vec<String> = table.iter_mut().map(|line| line.pop().unwrap()).collect();
        assert_eq!(conditions[0], "setup");
        assert!(conditions[1..].iter().all(|setup| setup.contains('=')), "{name}: {conditions:?}");
        table
    };
    results(folder, "csv").iter().map(table).collect()
}

/// Returns the tables of all Markdown files in the folder, each of which has the conditions in its first line.
fn written_markdown_tables(folder: &Folder) -> Vec<Table> {
    let texts = results(folder, "md").into_iter().map(|path| fs::read_to_string(path).unwrap());
    let tables = texts.map(|text| {
        assert!(text.lines().next().unwrap().contains('='), "{text}");
        markdown_tables(&text)
    });
    tables.flatten().collect()
}

/// Runs a script that must succeed, and returns its printed tables, which must equal the tables in the files.
fn tables(line: &str, variables: &[(&str, &str)]) -> (Vec<Table>, String) {
    let script = line.split(' ').next().unwrap();
    let folder = Folder::new(script);
    tables_in(&folder, line, variables)
}

/// Does what [`tables`] does, with the results in a folder that the caller reads, too.
fn tables_in(folder: &Folder, line: &str, variables: &[(&str, &str)]) -> (Vec<Table>, String) {
    let script = line.split(' ').next().unwrap();
    let output = run(line, folder, variables);
    let (printed, log) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{script}: {printed}\n{log}");
    let tables = markdown_tables(printed);
    let mut sorted = tables.clone();
    sorted.sort();
    for mut written in [csv_tables(folder, script), written_markdown_tables(folder)] {
        written.sort();
        assert_eq!(sorted, written, "{script}");
    }
    for table in &tables {
        assert!(table.len() > 1, "{script}: {table:?}");
        for line in &table[1..] {
            assert_eq!(line.len(), table[0].len(), "{script}: {line:?}");
            let is_figure = |cell: &&String| cell.as_str() == "-" || cell.parse::<f64>().is_ok();
            assert_eq!(line[1..].iter().filter(is_figure).count(), line.len() - 1, "{script}: {line:?}");
        }
    }
    (tables, log.to_owned())
}

fn column(table: &Table, name: &str) -> Vec<f64> {
    let index =
        table[0].iter().position(|title| title == name).unwrap_or_else(|| panic!("{name}: {table:?}"));
    table[1..].iter().map(|line| line[index].parse().unwrap_or(0.0)).collect()
}

#[test]
fn bench_quick_measures_both_modes() {
    let (tables, _) = tables("bench-quick.sh", &[("BENCH_PIPELINE", "8")]);
    assert_eq!(tables.len(), 1);
    let tests: Vec<&str> = tables[0].iter().map(|line| line[0].as_str()).collect();
    let expected = ["test", "SET (64 B, P=1)", "GET (64 B, P=1)", "SET (64 B, P=8)", "GET (64 B, P=8)"];
    assert_eq!(tests, expected);
    for name in ["ember concurrent", "ember sharded"] {
        assert!(column(&tables[0], name).iter().all(|rate| *rate > 100.0), "{tables:?}");
    }
}

#[test]
fn bench_and_compare_redis_have_rates_latencies_and_ratios_of_each_server() {
    for (script, lines) in [("bench.sh", 6), ("compare-redis.sh", 8)] {
        let (tables, log) = tables(script, &[]);
        let servers = tables[0][0].len() - 1;
        let rows: Vec<usize> = tables.iter().map(Vec::len).collect();
        assert_eq!(rows, [lines + 1, lines * servers + 1, lines + 1], "{script}");
        for name in ["ember concurrent", "ember sharded", "redis"] {
            assert!(column(&tables[0], name).iter().all(|rate| *rate > 100.0), "{script}: {tables:?}");
        }
        for name in ["p50", "p99", "p100"] {
            assert!(column(&tables[1], name).iter().all(|latency| *latency > 0.0), "{script}: {tables:?}");
        }
        let rate = |name: &str| column(&tables[0], name)[0];
        let ratio = column(&tables[2], "ember sharded / redis")[0];
        assert!((ratio - rate("ember sharded") / rate("redis")).abs() < 0.01, "{script}: {tables:?}");
        for peer in ["valkey", "keydb", "dragonfly"] {
            let is_measured = tables[0][0].iter().any(|name| name == peer);
            let is_skipped = log.lines().any(|line| line.starts_with(peer) && line.ends_with("skipped"));
            assert_eq!(is_measured, !is_skipped, "{peer}: {log}");
        }
    }
}

#[test]
fn servers_to_compare_with_have_columns_where_they_are_installed() {
    let programs = Folder::new("peers");
    for name in ["valkey-server", "keydb-server", "dragonfly"] {
        // A substitute for the server, whose first argument is a port.
        programs.add_program(
            name,
            "#!/bin/sh\nexec redis-server --port \"$2\" --bind 127.0.0.1 --save '' >/dev/null\n",
        );
    }
    let (tables, _) = tables("bench.sh", &[("PATH", &programs.path())]);
    let names = ["ember concurrent", "ember sharded", "redis", "valkey", "keydb", "dragonfly"];
    assert_eq!(tables[0][0][1..], names);
    let ratios = &tables[2][0];
    assert!(ratios.len() == 9 && ratios.iter().any(|name| name == "ember concurrent / keydb"), "{ratios:?}");
}

#[test]
fn bench_parallel_compares_one_load_process_with_several() {
    let variables = [("BENCH_PROCESSES", "3"), ("BENCH_REQUESTS", "3000")];
    let (tables, _) = tables("bench-parallel.sh", &variables);
    let servers: Vec<&str> = tables[0][1..4].iter().map(|line| line[0].as_str()).collect();
    assert_eq!(servers, ["ember concurrent", "ember sharded", "redis"]);
    for name in ["one process", "3 processes"] {
        assert!(column(&tables[0], name).iter().all(|rate| *rate > 100.0), "{tables:?}");
    }
}

#[test]
fn bench_workers_has_a_line_for_each_number_of_workers_and_a_chart() {
    let folder = Folder::new("workers");
    let (tables, _) = tables_in(&folder, "bench-workers.sh --ember-only", &[("WORKER_COUNTS", "1 3")]);
    for table in &tables {
        assert_eq!(table[0], ["test, workers", "ember concurrent", "ember sharded"]);
        let lines: Vec<&str> = table[1..].iter().map(|line| line[0].as_str()).collect();
        assert_eq!(lines, ["SET, 1", "SET, 3", "GET, 1", "GET, 3"]);
    }
    assert_eq!(tables.len(), 2);
    assert_eq!(column(&tables[1], "ember sharded")[0], 1.0);
    let charts = results(&folder, "svg");
    let chart = fs::read_to_string(&charts[0]).unwrap();
    assert!(charts.len() == 1 && chart.contains("Throughput by number of workers"), "{chart}");
}

#[test]
fn options_and_settings_without_effect_are_refused() {
    let folder = Folder::new("refused");
    for (line, variable, error) in [
        ("bench-quick.sh --ember-only", ("BENCH_KEYS", "10"), "bench-quick.sh has no option --ember-only"),
        ("compare-redis.sh --all", ("BENCH_KEYS", "10"), "compare-redis.sh has no option --all"),
        ("bench-memory.sh", ("BENCH_REQUESTS", "10"), "bench-memory.sh has no setting BENCH_REQUESTS"),
        ("bench-encryption.sh", ("BENCH_THREADS", "2"), "bench-encryption.sh has no setting BENCH_THREADS"),
        ("bench-limit.sh", ("MEMTIER_REQUESTS", "10"), "bench-limit.sh has no setting MEMTIER_REQUESTS"),
    ] {
        let output = run(line, &folder, &[variable]);
        assert!(!output.status.success() && text(&output.stderr).contains(error), "{line}: {output:?}");
    }
}

#[test]
fn bench_memory_has_a_line_for_each_server() {
    let (tables, _) = tables("bench-memory.sh", &[("VALUE_SIZE", "128"), ("KEY_COUNT", "20000")]);
    let servers: Vec<&str> = tables[0][1..].iter().map(|line| line[0].as_str()).collect();
    assert_eq!(servers, ["ember concurrent", "ember sharded", "redis"]);
    assert!(column(&tables[0], "bytes per key").iter().all(|bytes| *bytes > 20.0), "{tables:?}");
}

#[test]
fn bench_cache_has_sizes_and_hits() {
    let small = [
        // The memory of this number of keys exceeds the variation of all other memory.
        ("KEY_COUNT", "100000"),
        ("CACHE_SIZES", "100 600"),
        ("CACHE_LIMIT", "2mb"),
        ("CACHE_READS", "12000"),
        ("CACHE_SECONDS", "1"),
        ("CACHE_KEYS", "6000"),
        ("CACHE_TRACE_LIMIT", "2mb"),
        ("CACHE_TRACES", "shift zipf"),
        ("CACHE_POLICIES", "allkeys-lru allkeys-ghosts"),
        ("VALKEY_SERVER", "no-such-server"),
    ];
    let (tables, _) = tables("bench-cache.sh", &small);
    // Of each trace: two servers with the first policy, ember alone with the second.
    assert_eq!((tables.len(), tables[0].len(), tables[1].len()), (2, 4, 7));
    assert!(column(&tables[0], "ember, allocated").iter().all(|bytes| *bytes > 1.0), "{tables:?}");
    assert!(column(&tables[1], "hits, %").iter().all(|hits| (5.0..99.0).contains(hits)), "{tables:?}");
}

#[test]
fn bench_tails_has_each_type_and_background_load() {
    let small = [("BENCH_REQUESTS", "20000"), ("ELEMENT_COUNT", "10000"), ("BENCH_ROUNDS", "1")];
    let (tables, _) = tables("bench-tails.sh", &small);
    assert_eq!((tables.len(), tables[0].len()), (1, 16));
    assert!(column(&tables[0], "ember, requests/s").iter().all(|rate| *rate > 100.0), "{tables:?}");
}

/// A trace of perf in which two threads of process 7 run while its worker waits: 300 µs after it was preempted, of which
/// `journal` runs for 200, and 50 µs after a wakeup.
const TRACE: &str = "\
           time    cpu  task name                       wait time  sch delay   run time  state
                        [tid/pid]                          (msec)     (msec)     (msec)
--------------- ------  ------------------------------  ---------  ---------  ---------  -----
      10.000400 [0000]  worker-0[8/7]                       0.000      0.000      0.400      R
      10.000600 [0000]  journal[9/7]                        0.000      0.100      0.200      S
      10.000700 [0000]  redis-cli[20]                       0.000      0.000      0.100      S
      10.001000 [0000]  worker-0[8/7]                       0.300      0.000      0.300      S
      10.001100 [0000]  aof-sync-1[10/7]                    0.000      0.000      0.100      S
      10.001500 [0000]  worker-0[8/7]                       0.100      0.050      0.400      S
      10.002000 [0000]  <idle>                              0.000      0.000      0.500      I
";

#[test]
fn delays_of_workers_are_divided_among_the_threads_that_ran_meanwhile() {
    let threads = |process: &str| {
        let mut program = Command::new("python3")
            .arg(root().join("bench/threads.py"))
            .arg(process)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        program.stdin.take().unwrap().write_all(TRACE.as_bytes()).unwrap();
        let output = program.wait_with_output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let lines = [
        "worker\t733.3\t400\t-",
        "journal\t133.3\t200\t200",
        "aof-sync\t66.7\t100\t50",
        "threads of other processes\t66.7\t100\t100",
        "",
    ];
    assert_eq!(threads("7"), (true, lines.join("\n")));
    assert_eq!(threads("21"), (false, String::new()), "a trace without workers is an error");
}

#[test]
fn bench_cpu_divides_by_redis() {
    let (tables, _) = tables("bench-cpu.sh", &[("BENCH_REQUESTS", "20000")]);
    assert_eq!(tables[0][0], ["workload", "redis-server", "ember", "ember / redis-server"]);
    assert_eq!(tables[0].len(), 9);
}

#[test]
fn bench_encryption_compares_encrypted_with_plain_in_both_modes() {
    let (tables, _) = tables("bench-encryption.sh", &[]);
    assert_eq!(tables[0].len(), 9);
    assert!(tables[0][8][0] == "GET (P=16), sharded", "{tables:?}");
    for name in ["plain, requests/s", "encrypted"] {
        assert!(column(&tables[0], name).iter().all(|rate| *rate > 100.0), "{tables:?}");
    }
}

#[test]
fn bench_replication_has_costs_lag_and_full_syncs() {
    let server = find_ember_server();
    let variables =
        [("BENCH_REQUESTS", "4000"), ("BENCH_SECONDS", "2"), ("EMBER_BEFORE", server.to_str().unwrap())];
    let (tables, _) = tables("bench-replication.sh", &variables);
    let rows: Vec<usize> = tables.iter().map(Vec::len).collect();
    // A machine with one processor cannot compare two cores with two.
    assert!(rows == [5, 5, 2, 3, 4, 3] || rows == [5, 5, 2, 3, 2, 3], "{tables:?}");
    for (table, name) in [
        (0, "this server"),
        (1, "one replica"),
        (1, "no replica, busy program"),
        (2, "sync-replicas 1"),
        (3, "p99, ms"),
        (4, "replica applies"),
        (5, "seconds"),
        (5, "stall that the server reports, ms"),
    ] {
        assert!(column(&tables[table], name).iter().all(|figure| *figure > 0.0), "{tables:?}");
    }
}

#[test]
fn bench_vector_latency_has_each_command_and_background_load() {
    let folder = Folder::new("vectors");
    let number = |at: u32| (at.wrapping_mul(2_654_435_761) >> 8) as f32 / 16_777_216.0 - 0.5;
    let bytes: Vec<u8> = (0..1300 * 8).flat_map(|at| number(at).to_le_bytes()).collect();
    let file = folder.0.join("vectors.f32");
    fs::write(&file, bytes).unwrap();
    let variables = [("VECTORS_FILE", file.to_str().unwrap()), ("VECTORS_DIM", "8"), ("BENCH_SECONDS", "1")];
    let (tables, _) = tables("bench-vector-latency.sh", &variables);
    assert_eq!(tables.iter().map(Vec::len).collect::<Vec<_>>(), [9, 2]);
    assert!(column(&tables[0], "ember, p99 in ms").iter().all(|ms| *ms > 0.0), "{tables:?}");
    assert!(column(&tables[1], "load time in s").iter().all(|seconds| *seconds > 0.0), "{tables:?}");
}

#[test]
fn bench_tiers_has_costs_loads_and_memory() {
    let variables = [("TIERS_MIB", "8"), ("BENCH_SECONDS", "1"), ("BENCH_ROUNDS", "1")];
    let (tables, _) = tables("bench-tiers.sh", &variables);
    assert_eq!(tables.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 4]);
    assert!(column(&tables[0], "with tiers").iter().all(|ns| *ns > 0.0), "{tables:?}");
    assert!(column(&tables[1], "a quarter resident, p99 in ms").iter().all(|ms| *ms > 0.0), "{tables:?}");
    assert!(column(&tables[2], "written, MiB")[0] > 0.0, "{tables:?}");
}

#[test]
fn bench_engines_has_durable_sets_larger_data_and_starts() {
    let variables =
        [("ENGINES_MIB", "8"), ("KEY_COUNT", "5000"), ("BENCH_SECONDS", "4"), ("ENGINES", "redb")];
    let (tables, _) = tables("bench-engines.sh", &variables);
    assert_eq!(tables.iter().map(Vec::len).collect::<Vec<_>>(), [7, 3, 2]);
    assert!(column(&tables[0], "requests/s").iter().all(|rate| *rate > 0.0), "{tables:?}");
    assert!(column(&tables[2], "keys/s")[0] > 1000.0, "{tables:?}");
}

#[test]
fn bench_types_has_memory_and_commands() {
    // The memory of this number of elements exceeds the variation of all other memory.
    let (tables, _) = tables("bench-types.sh", &[("ELEMENT_COUNT", "20000")]);
    assert_eq!((tables.len(), tables[0].len(), tables[1].len()), (2, 7, 14));
    assert!(column(&tables[0], "ember, bytes per element").iter().all(|bytes| *bytes > 1.0), "{tables:?}");
}

#[test]
fn bench_documents_has_memory_and_commands_of_both_servers() {
    let (tables, _) = tables("bench-documents.sh", &[]);
    assert_eq!(tables.iter().map(Vec::len).collect::<Vec<_>>(), [3, 7], "{tables:?}");
    for name in ["Redis Stack", "ember"] {
        assert!(column(&tables[0], name)[0] > 500.0, "{tables:?}");
        assert!(column(&tables[1], name).iter().all(|time| *time >= 0.0), "{tables:?}");
    }
}

#[test]
fn bench_persistence_has_policies_and_files() {
    let (tables, _) = tables("bench-persistence.sh", &[]);
    assert_eq!((tables.len(), tables[0].len(), tables[1].len()), (2, 9, 3));
    assert_eq!((&*tables[0][0][4], &*tables[0][0][7]), ("ember, none", "ember sharded, none"));
    assert_eq!((&*tables[0][2][0], &*tables[0][2][4]), ("P=1, requests/s compared with none", "1.00"));
    assert!(column(&tables[1], "startup, s").iter().all(|seconds| *seconds > 0.0), "{tables:?}");
}

#[test]
fn bench_latency_has_both_servers_idle_and_while_saving() {
    let (tables, _) = tables("bench-latency.sh", &[("BENCH_SECONDS", "1")]);
    assert_eq!(tables[0].len(), 3);
    for name in ["p99, ms", "p99 while saving, ms", "saves"] {
        assert!(column(&tables[0], name).iter().all(|figure| *figure > 0.0), "{tables:?}");
    }
}

/// A memtier_benchmark that reports 617,280 requests in its JSON file, and logs its arguments.
const MEMTIER: &str = r#"#!/bin/sh
echo "$*" >>"$(dirname "$0")/calls"
while [ $# -gt 0 ]; do
    [ "$1" = --json-out-file ] && cat >"$2" <<'END'
{
  "ALL STATS":{
    "Sets":{
      "Count": 10
      ,"Ops/sec": 2.00
      ,"KB/sec": 4.00
      ,"KB/sec RX": 1.00
      ,"Accumulated Latency": 25
      ,"Max Latency": 9.000
      ,"Percentile Latencies":{
        "p50.00": 2.001
        ,"p99.00": 3.001
        ,"p99.90": 4.001
      }
    }
    ,"Gets":{
      "Count": 20
      ,"Ops/sec": 2.00
      ,"Hits/sec": 0.50
      ,"Misses/sec": 1.50
      ,"Accumulated Latency": 30
      ,"Percentile Latencies":{
        "p99.00": 9.999
      }
    }
    ,"Waits":{
      "Count": 0
    }
    ,"Totals":{
      "Count": 617280
      ,"Ops/sec": 0.00
      ,"Latency": 0.000
      ,"Accumulated Latency": 1234560
      ,"Max Latency": 8.125
      ,"Time-Serie": {
        "0": {
          "Count": 200000
          ,"Max Latency": 99.000
          ,"p99.00": 4.567
        }
        ,"1": {
          "Count": 417280
          ,"p99.00": 4.567
        }
      }
      ,"Percentile Latencies":{
        "p50.00": 0.501
        ,"p99.00": 1.231
        ,"p99.90": 4.561
      }
    }
  }
}
END
    shift
done
"#;

#[test]
fn bench_memtier_reads_the_counts_of_memtier_benchmark() {
    let programs = Folder::new("memtier-programs");
    programs.add_program("memtier_benchmark", MEMTIER);
    let variables =
        [("PATH", programs.path()), ("MEMTIER_THREADS", "2".into()), ("MEMTIER_PIPELINE", "7".into())];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let (tables, _) = tables("bench-memtier.sh", &variables);
    assert_eq!((tables.len(), tables[0].len()), (3, 10));
    assert!(column(&tables[0], "redis").iter().all(|rate| *rate == 123_456.0), "{tables:?}");
    let servers = tables[0][0].len() - 1;
    assert_eq!(tables[1].len(), 9 * servers + 1);
    assert!(tables[1][1..].iter().all(|line| line[1..] == ["2.000", "0.501", "1.231", "4.561", "8.125"]));
    assert!(column(&tables[2], "ember sharded / redis").iter().all(|ratio| *ratio == 1.0), "{tables:?}");
    let calls = fs::read_to_string(programs.0.join("calls")).unwrap();
    let mixed = "--ratio 1:10 --pipeline 7 --test-time 5 --threads 2 --clients 12";
    assert_eq!(calls.lines().filter(|call| call.contains(mixed)).count(), servers, "{calls}");
}

#[test]
fn bench_memtier_measures_a_number_of_requests_and_one_value_size_of_ember_alone() {
    let programs = Folder::new("memtier-requests");
    programs.add_program("memtier_benchmark", MEMTIER);
    let path = programs.path();
    let requests = [("PATH", &*path), ("MEMTIER_REQUESTS", "300"), ("MEMTIER_BYTES", "256")];
    let (tables, _) = tables("bench-memtier.sh --ember-only", &requests);
    assert_eq!(tables[0][0], ["test", "ember concurrent", "ember sharded"]);
    let tests: Vec<&str> = tables[0][1..].iter().map(|line| line[0].as_str()).collect();
    let expected = ["SET", "GET", "1:1"].map(|test| format!("{test} (256 B, P=1)"));
    assert_eq!(tests[..3], expected);
    assert_eq!((tables.len(), tests.len()), (2, 6));
    let calls = fs::read_to_string(programs.0.join("calls")).unwrap();
    assert_eq!(calls.matches("--requests 300").count(), 12, "{calls}");
    assert!(!calls.contains("--test-time"), "{calls}");
    let both = [requests[0], requests[1], ("MEMTIER_SECONDS", "1")];
    let output = run("bench-memtier.sh", &programs, &both);
    assert!(text(&output.stderr).contains("set MEMTIER_REQUESTS or MEMTIER_SECONDS, not both"), "{output:?}");
}

#[test]
fn bench_load_has_operations_a_summary_and_numbers_of_workers() {
    let programs = Folder::new("load-programs");
    programs.add_program("memtier_benchmark", MEMTIER);
    let path = programs.path();
    let variables =
        [("PATH", &*path), ("MEMTIER_SECONDS", "5"), ("WORKER_COUNTS", "1 2"), ("LOAD_SECONDS", "10")];
    let (tables, _) = tables_in(&programs, "bench-load.sh", &variables);
    let servers = tables[2][0].len() - 1;
    let rows: Vec<usize> = tables.iter().map(Vec::len).collect();
    assert_eq!(rows, [1 + 3 * servers, 1 + servers, 3]);
    let line = |name: &str| tables[0].iter().find(|line| line[0] == name).unwrap()[1..].join(" ");
    assert_eq!(line("redis, Sets"), "2 2.500 2.001 3.001 4.001 9.000 - - 4");
    assert_eq!(line("redis, Gets"), "4 1.500 0.000 9.999 0.000 0.000 1 3 0");
    assert_eq!(line("ember sharded, Totals"), "123456 2.000 0.501 1.231 4.561 8.125 - - -");
    let summary = "ember concurrent 417280 123456 2.000 0.501 1.231 4.561 1.00";
    assert_eq!(tables[1].iter().find(|line| line[0] == "ember concurrent").unwrap().join(" "), summary);
    assert!(column(&tables[2], "ember sharded").iter().all(|rate| *rate == 61_728.0), "{tables:?}");
    assert_eq!(results(&programs, "svg").len(), 1);
    let calls = fs::read_to_string(programs.0.join("calls")).unwrap();
    let load = "--ratio 1:1 --data-size 256 --pipeline 1 --key-maximum 10000000 --test-time 5 --threads 24 --clients 50";
    assert_eq!(calls.lines().filter(|call| call.contains(load)).count(), servers, "{calls}");
}

#[test]
fn bench_limit_has_resident_memory_of_each_third_and_at_most() {
    let programs = Folder::new("limit-programs");
    programs.add_program("memtier_benchmark", MEMTIER);
    let variables = [("PATH", &*programs.path()), ("LIMIT_SECONDS", "4"), ("VALKEY_SERVER", "redis-server")];
    let (tables, _) = tables("bench-limit.sh", &variables);
    let names: Vec<&str> = tables[0][1..].iter().map(|line| &*line[0]).collect();
    let expected =
        ["ember, files", "redis, files", "valkey, files", "ember, none", "redis, none", "valkey, none"];
    assert_eq!(names, expected);
    for name in ["resident before, MiB", "last third, MiB", "maximum, MiB"] {
        assert!(column(&tables[0], name).iter().all(|figure| *figure > 1.0), "{tables:?}");
    }
    assert!(column(&tables[0], "p99.9, ms").iter().all(|latency| *latency == 4.56), "{tables:?}");
    let rates = column(&tables[0], "ops/s");
    assert_eq!(rates, [154_320.0, 154_320.0, 154_320.0, 617_280.0, 617_280.0, 617_280.0]);
    let calls = fs::read_to_string(programs.0.join("calls")).unwrap();
    assert_eq!(calls.lines().filter(|call| call.contains("--test-time 4")).count(), 3, "{calls}");
}

#[test]
fn bench_kvbench_has_both_servers_for_each_store() {
    let programs = Folder::new("kvbench-programs");
    // A substitute for KVBench, whose first argument is a port.
    programs.add_program(
        "kvbench",
        "#!/bin/sh\nexec \"$EMBER_SERVER\" --port \"$2\" --bind 127.0.0.1 --save ''\n",
    );
    let program = programs.0.join("kvbench");
    let variables = [("KVBENCH", program.to_str().unwrap()), ("STORES_SECONDS", "0.1")];
    let (tables, _) = tables("bench-kvbench.sh", &variables);
    assert_eq!(tables[0].len(), 1 + 4 * 2 * 2, "stores, fsync, pipelines: {tables:?}");
    for name in ["SET/s, KVBench", "SET/s, ember", "GET/s, KVBench", "GET/s, ember"] {
        assert!(column(&tables[0], name).iter().all(|rate| *rate > 0.0), "{tables:?}");
    }
    let without = run("bench-kvbench.sh", &programs, &[("KVBENCH", "")]);
    assert!(text(&without.stderr).contains("KVBENCH is required"), "{without:?}");
}

#[test]
fn bench_memtier_fails_without_counts() {
    let programs = Folder::new("memtier-without-requests");
    programs.add_program("memtier_benchmark", &MEMTIER.replace("617280", "0"));
    let output = run("bench-memtier.sh", &programs, &[("PATH", &programs.path())]);
    assert!(!output.status.success());
    let said = text(&output.stderr);
    assert!(said.contains("memtier_benchmark counted no requests on port"), "{said}");
}

#[test]
fn an_absent_server_is_left_out_with_a_note() {
    let absent = [("REDIS_SERVER", "no-such-server")];
    for script in ["bench.sh", "bench-memory.sh", "bench-cpu.sh", "bench-types.sh", "bench-persistence.sh"] {
        let (tables, log) = tables(script, &absent);
        assert!(log.contains("no-such-server is not installed: skipped"), "{script}: {log}");
        let cells: Vec<&String> = tables.iter().flatten().flatten().collect();
        assert!(!cells.iter().any(|cell| cell.contains("redis")), "{script}: {cells:?}");
    }
}

#[test]
fn another_server_is_not_taken_for_ember() {
    let redis = start_redis();
    let port = redis.port().to_string();
    let folder = Folder::new("another");
    let output = run("compare-redis.sh", &folder, &[("EMBER_CONCURRENT_PORT", &port)]);
    assert!(!output.status.success());
    let expected = format!("port {port}: expected concurrent, found other");
    assert!(text(&output.stderr).contains(&expected), "{}", text(&output.stderr));
}

#[test]
fn setup_vm_installs_what_has_no_package_and_builds_the_server() {
    let programs = Folder::new("setup-programs");
    programs.add_program("cargo", "#!/bin/sh\necho \"cargo $*\"\n");
    programs.add_program("apt-cache", "#!/bin/sh\nexit 1\n");
    programs.add_program("pkg-config", "#!/bin/sh\n");
    // A substitute for the sources of memtier_benchmark.
    programs.add_program("git", "#!/bin/sh\nprintf '#!/bin/sh\\n' >configure\nchmod +x configure\n");
    programs.add_program("autoreconf", "#!/bin/sh\n");
    programs.add_program("make", "#!/bin/sh\necho built >memtier_benchmark\nchmod +x memtier_benchmark\n");
    // A substitute for the download of dragonfly.
    programs.add_program(
        "curl",
        "#!/bin/sh\nname=${7##*/}\nname=${name%.tar.gz}\nfolder=${6%/*}\n\
         echo loaded >\"$folder/$name\"\ntar -czf \"$6\" -C \"$folder\" \"$name\"\n",
    );
    let tools = programs.0.join("tools");
    let setup = || {
        let mut command = Command::new(root().join("bench/setup-vm.sh"));
        let output = command.env("PATH", programs.path()).env("BENCH_TOOLS", &tools).output().unwrap();
        let printed = text(&output.stdout).to_owned();
        assert!(output.status.success(), "{printed}{}", text(&output.stderr));
        printed
    };
    assert_eq!(setup(), "cargo build --release -p ember-server\n");
    let is_installed = |name: &str, contents: &str| {
        let is_here = Command::new("which").arg(name).output().unwrap().status.success();
        is_here || fs::read_to_string(tools.join(name)).is_ok_and(|text| text.trim() == contents)
    };
    assert!(is_installed("memtier_benchmark", "built") && is_installed("dragonfly", "loaded"));
    // Without a network, the script names the missing programs.
    for name in ["git", "curl"] {
        programs.add_program(name, "#!/bin/sh\nexit 1\n");
    }
    let _ = fs::remove_dir_all(&tools);
    let printed = setup();
    for name in ["memtier_benchmark", "dragonfly"] {
        assert!(is_installed(name, "") || printed.contains(&format!("{name} is not installed")), "{printed}");
    }
}

#[test]
fn the_document_names_every_script_and_variable() {
    let document = fs::read_to_string(root().join("docs/benchmarks.md")).unwrap();
    let mut variables = BTreeSet::new();
    for entry in fs::read_dir(root().join("bench")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "sh") {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            name == "common.sh" || document.contains(&format!("| `bench/{name}` |")),
            "{name} is not described"
        );
        let script = fs::read_to_string(&path).unwrap();
        let names = script.split("${").skip(1).filter_map(|rest| rest.split_once(":-").map(|(name, _)| name));
        let is_setting = |name: &&str| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        variables.extend(names.filter(is_setting).map(str::to_owned));
    }
    let described = document.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let is_variable = |name: &&str| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let described: BTreeSet<String> = described.filter(is_variable).map(str::to_owned).collect();
    assert_eq!(described, variables);
}

#[test]
fn figures_in_the_readme_equal_those_of_the_benchmarks() {
    let document = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let (readme, benchmarks) = (document("README.md"), document("docs/benchmarks.md"));
    let table = readme.split("## Why ember").nth(1).unwrap().split("\n\n").nth(1).unwrap();
    let rows: Vec<&str> = table.lines().skip(2).collect();
    assert!(rows.len() >= 6, "{table}");
    // A figure is a whole cell, or the beginning of a cell that continues with its range.
    let is_there = |figure: &str| {
        [format!("| {figure} |"), format!("| {figure} (")].iter().any(|cell| benchmarks.contains(cell))
    };
    for row in rows {
        for cell in row.split('|').skip(2) {
            let figure = cell.trim().trim_matches('*').replace(',', "");
            let is_figure =
                figure.len() > 1 && figure.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
            assert!(!is_figure || is_there(&figure), "docs/benchmarks.md has no {figure}, of {row:?}");
        }
    }
}
