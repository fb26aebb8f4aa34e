//! The options of `ember-cli benchmark`. Those that redis-benchmark has too have its names and defaults.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, ArgGroup, Args, ValueEnum};

use super::keys::KEYS_MAX;
use ember_client::{ServerOptions, TlsOptions};

const AFTER: &str = "Tests: ping_inline, ping_mbulk (ping is both), set, get, incr, lpush, rpush, lpop, rpop, sadd, hset, \
                     spop, zadd, zpopmin, lrange_100, lrange_300, lrange_500, lrange_600 (lrange is all four), mset.\n\n\
                     Exit codes: 0 all was measured; 1 some answers were errors, or the server cannot be measured; 2 the \
                     command line is wrong.";

/// Most requests that are sent at once. Their bytes are kept once for each thread.
const PIPELINE_MAX: i64 = 100_000;

/// Most connections, and the most threads: a process has no more than about a million sockets.
const CLIENTS_MAX: i64 = 1_000_000;

/// Longest value, which is the longest a server takes.
const DATA_BYTES_MAX: i64 = 512 * 1024 * 1024;

/// `ember-cli benchmark`.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = AFTER,
    group = ArgGroup::new("kind").args(["tests", "ratio", "command", "words", "matrix"])
)]
pub struct BenchmarkArguments {
    #[command(flatten)]
    pub(crate) server: ServerOptions,
    #[command(flatten)]
    pub(crate) target: TargetOptions,
    #[command(flatten)]
    pub(crate) tls: TlsOptions,
    #[command(flatten)]
    pub(crate) load: LoadOptions,
    #[command(flatten)]
    pub(crate) work: WorkOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// Measure this command instead of the tests; as --command, already split into words.
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub(crate) words: Vec<OsString>,
    /// Print this help.
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// What of the server, and which others.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct TargetOptions {
    /// The number of the database.
    #[arg(long = "db", visible_alias = "dbnum", value_name = "DATABASE")]
    pub(crate) database: Option<u32>,
    /// Speak RESP3.
    #[arg(short = '3')]
    pub(crate) resp3: bool,
    /// Other servers, HOST:PORT with commas between, to compare with the first one, in turn.
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub(crate) compare: Vec<String>,
    /// With --compare: how often each test is run on each server.
    #[arg(long, value_name = "COUNT", default_value_t = 3, requires = "compare",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// With --matrix stores: the program of the server (default: ember-server beside this program).
    #[arg(long, value_name = "FILE", requires = "matrix")]
    pub(crate) server_program: Option<PathBuf>,
    /// With --matrix stores: the folder that stores are made in (default: that of temporary files).
    #[arg(long, value_name = "FOLDER", requires = "matrix")]
    pub(crate) folder: Option<PathBuf>,
}

/// How much load.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadOptions {
    /// Requests in each test.
    #[arg(short = 'n', value_name = "COUNT", default_value_t = 100_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: u64,
    /// Measure for this many seconds instead of a number of requests.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "requests")]
    pub(crate) duration: Option<Duration>,
    /// Connections.
    #[arg(short = 'c', value_name = "COUNT", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..=CLIENTS_MAX))]
    pub(crate) clients: u32,
    /// Requests that a connection sends at once.
    #[arg(short = 'P', value_name = "COUNT", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=PIPELINE_MAX))]
    pub(crate) pipeline: u32,
    /// Threads that make the load; the connections are divided among them.
    #[arg(long, value_name = "COUNT", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=CLIENTS_MAX))]
    pub(crate) threads: u32,
    /// Requests a second, whatever the server makes of them. Latency counts from when a request was due, also where it had
    /// to wait for a free connection: what a server's pause costs is seen in full.
    #[arg(long, value_name = "REQUESTS", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Load for this many seconds before each test that is not counted.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) warm_up: Option<Duration>,
    /// 0: a new connection for each request, or for each -P of them; latency counts from before it is made.
    #[arg(short = 'k', value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(crate) keep_alive: u8,
    /// Run the tests again and again, until Ctrl-C.
    #[arg(short = 'l', conflicts_with_all = ["json", "report", "compare", "matrix"])]
    pub(crate) endless: bool,
    /// Open the connections, send nothing over them, and tell when the server closes some; until Ctrl-C.
    #[arg(short = 'I', conflicts_with_all = ["kind", "form", "report", "compare", "endless", "requests", "duration"])]
    pub(crate) idle: bool,
    /// Have the connections watch so many keys together, tell what a watch takes, change --rate of them a second, and tell
    /// how late the last of those who watch one is told; for --duration, or until Ctrl-C. -P keys are written and watched
    /// at once.
    #[arg(long, value_name = "KEYS", conflicts_with_all = ["kind", "form", "report", "compare", "endless", "requests", "idle"],
          value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) watch: Option<u64>,
    /// Give up when no answer comes for this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "30")]
    pub(crate) timeout: Duration,
}

/// Which requests.
#[derive(Debug, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct WorkOptions {
    /// Tests, with commas between; without it all of them.
    #[arg(short = 't', value_name = "TESTS", value_delimiter = ',')]
    pub(crate) tests: Vec<String>,
    /// SET and GET mixed in this ratio: 1:10.
    #[arg(long, value_name = "SETS:GETS", value_parser = ratio)]
    pub(crate) ratio: Option<(u32, u32)>,
    /// A command of your own; __key__ is a key, __rand_int__ its number alone, __data__ a value.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<OsString>,
    /// Bytes of each value.
    #[arg(short = 'd', value_name = "BYTES", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=DATA_BYTES_MAX))]
    pub(crate) data_bytes: u32,
    /// Different keys (or elements of sets, hashes and sorted sets). Without it there is one.
    #[arg(short = 'r', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=KEYS_MAX))]
    pub(crate) keys: Option<u64>,
    /// Which of the keys are used how often.
    #[arg(long, value_enum, value_name = "PATTERN", default_value_t = KeyPattern::Uniform)]
    pub(crate) key_pattern: KeyPattern,
    /// Other keys in each run: the seed of each connection is drawn by lot. Without it a run can be repeated: the
    /// seeds, one for each connection, are the same every time.
    #[arg(long)]
    pub(crate) distinct_seeds: bool,
    /// Keys that SET writes expire after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ttl: Option<u32>,
}

/// How keys are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyPattern {
    /// All alike.
    Uniform,
    /// A few are used very often: the k-th key in proportion to 1/k^0.99.
    Zipf,
    /// Those in the middle more often: a sixth of the keys is one standard deviation.
    Gaussian,
    /// One behind the other.
    Sequential,
}

/// What is printed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputOptions {
    /// One line for each test.
    #[arg(short = 'q', group = "form", conflicts_with_all = ["compare", "matrix"])]
    pub(crate) quiet: bool,
    /// As comma-separated values; the first columns are those of redis-benchmark.
    #[arg(long, group = "form")]
    pub(crate) csv: bool,
    /// As JSON.
    #[arg(long, group = "form")]
    pub(crate) json: bool,
    /// Write a page with plots as well. Each test is then also measured shortly with other numbers of connections and
    /// with other pipelines.
    #[arg(long, value_name = "FILE.html", conflicts_with_all = ["compare", "matrix"])]
    pub(crate) report: Option<PathBuf>,
    /// Print SET and GET in the table of KVBench: -n requests (100000) on -r keys (as many as requests), with one client
    /// and with 256, and with pipelines of 256; for the options that the server runs with, or for all stores, each with a
    /// server of its own.
    #[arg(long, value_enum, value_name = "OF", num_args = 0..=1, default_missing_value = "server",
          conflicts_with_all = ["clients", "pipeline", "rate", "compare"])]
    pub(crate) matrix: Option<MatrixOf>,
}

/// What the table of KVBench is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MatrixOf {
    /// A server that runs.
    Server,
    /// All stores of ember, and Redis where it is installed, beside KVBench's own figures.
    Stores,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("it has to be a number above 0".to_owned()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    /// A year, so that no sum of times overflows.
    const SECONDS_MAX: f64 = 366.0 * 86_400.0;
    match positive(text)? {
        number if number <= SECONDS_MAX => Ok(Duration::from_secs_f64(number)),
        _ => Err("it is longer than a year".to_owned()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    /// One request in a day, and one in a nanosecond.
    const RATES: std::ops::RangeInclusive<f64> = 1.0 / 86_400.0..=1e9;
    let rate = positive(text)?;
    if RATES.contains(&rate) { Ok(rate) } else { Err("it is between 1 a day and 1e9 a second".to_owned()) }
}

fn ratio(text: &str) -> Result<(u32, u32), String> {
    let parsed = text.split_once(':').and_then(|(sets, gets)| {
        let (sets, gets): (u16, u16) = (sets.parse().ok()?, gets.parse().ok()?);
        Some((u32::from(sets), u32::from(gets)))
    });
    match parsed {
        Some((0, 0)) | None => Err("it is written SETS:GETS, as 1:10".to_owned()),
        Some(ratio) => Ok(ratio),
    }
}
