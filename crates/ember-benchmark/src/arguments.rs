//! The options of `ember-cli benchmark`. Those that redis-benchmark also has use its names and defaults.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, ArgGroup, Args, ValueEnum};

use super::key_patterns::KEYS_MAX;
use ember_client::{ServerOptions, TlsOptions};

const AFTER: &str = "Tests: ping_inline, ping_mbulk (ping is both), set, get, incr, lpush, rpush, lpop, rpop, sadd, hset, \
                     spop, zadd, zpopmin, lrange_100, lrange_300, lrange_500, lrange_600 (lrange is all four), mset.\n\n\
                     Exit codes: 0 success; 1 some replies were errors, or the server cannot be \
                     measured; 2 the command line is invalid.";

/// The maximum pipeline. Its bytes are buffered once per thread.
const PIPELINE_MAX: i64 = 100_000;

/// The maximum number of connections and threads: a process can have about a million sockets.
const CLIENTS_MAX: i64 = 1_000_000;

/// The maximum value length, which is that of a server.
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
    /// Measure this command instead of the tests; like --command, split into words.
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub(crate) words: Vec<OsString>,
    /// Print this help.
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// The server's database, and other servers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct TargetOptions {
    /// Database number.
    #[arg(long = "db", visible_alias = "dbnum", value_name = "DATABASE")]
    pub(crate) database: Option<u32>,
    /// Use RESP3.
    #[arg(short = '3')]
    pub(crate) resp3: bool,
    /// Other servers (HOST:PORT, comma-separated) to measure in turn with the first one, for comparison.
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub(crate) compare: Vec<String>,
    /// With --compare: number of runs of each test on each server.
    #[arg(long, value_name = "COUNT", default_value_t = 3, requires = "compare",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// With --matrix stores: server program (default: ember-server in the directory of this program).
    #[arg(long, value_name = "FILE", requires = "matrix")]
    pub(crate) server_program: Option<PathBuf>,
    /// With --matrix stores: folder for the stores (default: the system's temporary folder).
    #[arg(long, value_name = "FOLDER", requires = "matrix")]
    pub(crate) folder: Option<PathBuf>,
}

/// The amount of load.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadOptions {
    /// Number of requests per test.
    #[arg(short = 'n', value_name = "COUNT", default_value_t = 100_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: u64,
    /// Duration of each test in seconds, instead of a number of requests.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "requests")]
    pub(crate) duration: Option<Duration>,
    /// Number of connections.
    #[arg(short = 'c', value_name = "COUNT", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..=CLIENTS_MAX))]
    pub(crate) clients: u32,
    /// Number of requests that a connection sends at a time (pipeline).
    #[arg(short = 'P', value_name = "COUNT", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=PIPELINE_MAX))]
    pub(crate) pipeline: u32,
    /// Number of load threads, among which the connections are divided.
    #[arg(long, value_name = "COUNT", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=CLIENTS_MAX))]
    pub(crate) threads: u32,
    /// Send this many requests per second, independent of the server's speed. Latency counts from when a request was
    /// due, including the wait for a free connection, so server pauses are measured in full.
    #[arg(long, value_name = "REQUESTS", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Run each test for this many seconds before measuring.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) warm_up: Option<Duration>,
    /// 0: open a new connection for each request, or each group of -P requests; latency includes connecting.
    #[arg(short = 'k', value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(crate) keep_alive: u8,
    /// Repeat the tests until Ctrl-C.
    #[arg(short = 'l', conflicts_with_all = ["json", "report", "compare", "matrix"])]
    pub(crate) endless: bool,
    /// Open idle connections and report those that the server closes; until Ctrl-C.
    #[arg(short = 'I', conflicts_with_all = ["kind", "form", "report", "compare", "endless", "requests", "duration"])]
    pub(crate) idle: bool,
    /// Watch this many keys over all connections and report the memory per watch; change --rate keys per second, and
    /// report the latency of the last notification of each change; for --duration, or until Ctrl-C. -P keys are written
    /// and watched at a time.
    #[arg(long, value_name = "KEYS", conflicts_with_all = ["kind", "form", "report", "compare", "endless", "requests", "idle"],
          value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) watch: Option<u64>,
    /// Exit if no reply arrives for this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "30")]
    pub(crate) timeout: Duration,
}

/// The requests.
#[derive(Debug, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct WorkOptions {
    /// Tests to run, comma-separated; default: all.
    #[arg(short = 't', value_name = "TESTS", value_delimiter = ',')]
    pub(crate) tests: Vec<String>,
    /// Mix SET and GET in this ratio, for example 1:10.
    #[arg(long, value_name = "SETS:GETS", value_parser = ratio)]
    pub(crate) ratio: Option<(u32, u32)>,
    /// Measure this command; __key__ is replaced by a key, __rand_int__ by its number, __data__ by a value.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<OsString>,
    /// Value size in bytes.
    #[arg(short = 'd', value_name = "BYTES", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=DATA_BYTES_MAX))]
    pub(crate) data_bytes: u32,
    /// Number of distinct keys (or elements of sets, hashes and sorted sets). Default: one.
    #[arg(short = 'r', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=KEYS_MAX))]
    pub(crate) keys: Option<u64>,
    /// Distribution of requests over the keys.
    #[arg(long, value_enum, value_name = "PATTERN", default_value_t = KeyPattern::Uniform)]
    pub(crate) key_pattern: KeyPattern,
    /// Use different random seeds in each run. By default each connection has a fixed seed, so that runs are
    /// repeatable.
    #[arg(long)]
    pub(crate) distinct_seeds: bool,
    /// Expiry of keys written by SET, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ttl: Option<u32>,
}

/// The distribution of the keys of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyPattern {
    /// All keys equally often.
    Uniform,
    /// A few keys very often: the k-th key in proportion to 1/k^0.99.
    Zipf,
    /// Keys in the middle more often: one standard deviation is a sixth of the keys.
    Gaussian,
    /// Keys in order.
    Sequential,
}

/// The output.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputOptions {
    /// Print one line per test.
    #[arg(short = 'q', group = "form", conflicts_with_all = ["compare", "matrix"])]
    pub(crate) quiet: bool,
    /// Print comma-separated values; the first columns are those of redis-benchmark.
    #[arg(long, group = "form")]
    pub(crate) csv: bool,
    /// Print JSON.
    #[arg(long, group = "form")]
    pub(crate) json: bool,
    /// Also write an HTML page with plots. Without --compare each test is then also measured briefly with other numbers
    /// of connections and other pipelines.
    #[arg(long, value_name = "FILE.html", conflicts_with = "matrix")]
    pub(crate) report: Option<PathBuf>,
    /// Print SET and GET in the table format of KVBench: -n requests (100000) on -r keys (as many as requests), with 1
    /// client, 256 clients, and 256 clients with pipelines of 256; for the running server, or for all stores, each with
    /// a new server.
    #[arg(long, value_enum, value_name = "OF", num_args = 0..=1, default_missing_value = "server",
          conflicts_with_all = ["clients", "pipeline", "rate", "compare"])]
    pub(crate) matrix: Option<MatrixOf>,
}

/// The servers that a table in KVBench's format covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MatrixOf {
    /// The running server.
    Server,
    /// All stores of ember, and Redis if it is installed, next to KVBench's own figures.
    Stores,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("must be a number above 0".to_owned()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    /// The maximum duration of an option in seconds: a year, so that sums of times cannot overflow.
    const SECONDS_MAX: f64 = 366.0 * 86_400.0;
    match positive(text)? {
        number if number <= SECONDS_MAX => Ok(Duration::from_secs_f64(number)),
        _ => Err("must not exceed a year".to_owned()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    /// The valid request rates per second: from one request per day to one per nanosecond.
    const RATES: std::ops::RangeInclusive<f64> = 1.0 / 86_400.0..=1e9;
    let rate = positive(text)?;
    if RATES.contains(&rate) {
        Ok(rate)
    } else {
        Err("must be between 1 per day and 1e9 per second".to_owned())
    }
}

fn ratio(text: &str) -> Result<(u32, u32), String> {
    let parsed = text.split_once(':').and_then(|(sets, gets)| {
        let (sets, gets): (u16, u16) = (sets.parse().ok()?, gets.parse().ok()?);
        Some((u32::from(sets), u32::from(gets)))
    });
    match parsed {
        Some((0, 0)) | None => Err("must be SETS:GETS, for example 1:10".to_owned()),
        Some(ratio) => Ok(ratio),
    }
}
