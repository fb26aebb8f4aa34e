//! The command line of ember-cli.

#[cfg(test)]
mod packaging_tests;
mod tools;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use ember_benchmark::BenchmarkArguments;
use ember_client::{ServerOptions, TlsOptions};
use ember_persistence::restore::DATABASES_MAX;

pub(crate) use tools::{EXIT_USAGE, for_tool, with_help};

const TOOLS: &str = "Tools, each with its own --help:
  ember-cli benchmark                        Measure the performance of a server
  ember-cli check FILE|DIRECTORY             Check data files for damage, and show what they contain
  ember-cli repair FILE --output NEW         Copy the intact part of a damaged file
  ember-cli convert FILE --output NEW --to   Copy an RDB file or AOF, encrypted or unencrypted
  ember-cli restore --to TIME --out NEW      Write the data set of an AOF at an earlier time to an RDB file

Server options may also precede the name of a tool: ember-cli -p 6380 benchmark.

Environment: EMBERCLI_AUTH or REDISCLI_AUTH (password), EMBERCLI_HISTFILE (history file),
EMBERCLI_RCFILE (settings file, default ~/.emberclirc).
Exit codes: 0 the server replied; 1 the command could not be sent, or with -e the reply is an error.";

/// Redis-compatible command-line client, with a load generator and tools for data files. Without a command, reads
/// commands from the terminal or standard input.
#[derive(Debug, Parser)]
#[command(
    name = "ember-cli",
    version = ember_version::SHOWN,
    disable_help_flag = true,
    disable_version_flag = true,
    args_override_self = true,
    after_help = TOOLS,
    override_usage = "ember-cli [OPTIONS] [COMMAND [ARGUMENT]...]"
)]
pub(crate) struct ClientArguments {
    #[command(flatten)]
    pub(crate) server: ServerOptions,
    #[command(flatten)]
    pub(crate) session: SessionOptions,
    #[command(flatten)]
    pub(crate) tls: TlsOptions,
    #[command(flatten)]
    pub(crate) run: RunOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    #[command(flatten)]
    pub(crate) modes: ModeOptions,
    /// The command to run.
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
    /// Print this help.
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
    /// Print the version.
    #[arg(short = 'v', long, action = ArgAction::Version)]
    version: Option<bool>,
}

/// The database and the protocol.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct SessionOptions {
    /// Database number.
    #[arg(short = 'n', value_name = "DATABASE")]
    pub(crate) database: Option<u32>,
    /// Use RESP2.
    #[arg(short = '2')]
    pub(crate) resp2: bool,
    /// Use RESP3.
    #[arg(short = '3')]
    pub(crate) resp3: bool,
    /// Follow cluster redirections (MOVED, ASK).
    #[arg(short = 'c')]
    pub(crate) cluster: bool,
    /// Report each connection and how long it took, on standard error.
    #[arg(long)]
    pub(crate) verbose: bool,
}

/// Options of running commands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Commands")]
pub(crate) struct RunOptions {
    /// Run the command this many times; -1 means forever.
    #[arg(short = 'r', value_name = "COUNT", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) repeat: i64,
    /// Seconds between repetitions of -r, --scan, --stat and other modes; for --latency, the duration of a measurement.
    #[arg(short = 'i', value_name = "SECONDS", default_value_t = 0.0)]
    pub(crate) interval: f64,
    /// Read the last argument from standard input.
    #[arg(short = 'x')]
    pub(crate) last_from_stdin: bool,
    /// Replace this word in the command by an argument from standard input.
    #[arg(short = 'X', value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) tag_from_stdin: Option<OsString>,
    /// Parse arguments as quoted strings: \"\\xff\" is one byte.
    #[arg(long)]
    pub(crate) quoted_input: bool,
    /// Exit with 1 if the reply is an error.
    #[arg(short = 'e')]
    pub(crate) error_code: bool,
    /// Run the script in this file with EVAL; the arguments are its keys, then, after a comma, its other arguments.
    #[arg(long, value_name = "FILE")]
    pub(crate) eval: Option<PathBuf>,
}

/// The format of replies.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputOptions {
    /// Print replies as raw bytes; the default if the output is not a terminal.
    #[arg(long)]
    pub(crate) raw: bool,
    /// Print formatted replies even if the output is not a terminal.
    #[arg(long)]
    pub(crate) no_raw: bool,
    /// Print replies as comma-separated values.
    #[arg(long)]
    pub(crate) csv: bool,
    /// Print replies as JSON; uses RESP3 if the server supports it, unless -2 is given.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print replies as ASCII JSON, with the escapes of quoted strings.
    #[arg(long)]
    pub(crate) quoted_json: bool,
    /// Delimiter between elements in raw output.
    #[arg(
        short = 'd',
        value_name = "TEXT",
        default_value = "\n",
        allow_hyphen_values = true,
        hide_default_value = true
    )]
    pub(crate) element_delimiter: OsString,
    /// Delimiter after each reply in raw output.
    #[arg(
        short = 'D',
        value_name = "TEXT",
        default_value = "\n",
        allow_hyphen_values = true,
        hide_default_value = true
    )]
    pub(crate) answer_delimiter: OsString,
    /// Show RESP3 push messages; the default is yes on a terminal.
    #[arg(long, value_name = "YES|NO", value_parser = yes_or_no)]
    pub(crate) show_pushes: Option<bool>,
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        "n" | "no" => Ok(false),
        _ => Err("must be yes or no".to_owned()),
    }
}

/// Modes other than running commands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Modes")]
pub(crate) struct ModeOptions {
    /// Send raw requests from standard input, as fast as the server accepts them.
    #[arg(long)]
    pub(crate) pipe: bool,
    /// With --pipe: exit if no reply arrives for this many seconds after the last request; 0 means never.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) pipe_timeout: u64,
    /// List all keys.
    #[arg(long)]
    pub(crate) scan: bool,
    /// Only keys that match this pattern; for --scan, --bigkeys, --memkeys, --keystats and --hotkeys.
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub(crate) pattern: Option<OsString>,
    /// Like --pattern, parsed as a quoted string.
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub(crate) quoted_pattern: Option<OsString>,
    /// COUNT of each SCAN call.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) count: u64,
    /// Find the largest key of each type, by number of elements.
    #[arg(long)]
    pub(crate) bigkeys: bool,
    /// Find the largest key of each type, by memory.
    #[arg(long)]
    pub(crate) memkeys: bool,
    /// Like --memkeys, sampling this many elements of each key; 0 means all.
    #[arg(long, value_name = "COUNT")]
    pub(crate) memkeys_samples: Option<u64>,
    /// Report the keys that take most memory, and memory, elements and sizes of all keys by type.
    #[arg(long)]
    pub(crate) keystats: bool,
    /// Like --keystats, sampling this many elements of each key; 0 means all.
    #[arg(long, value_name = "COUNT")]
    pub(crate) keystats_samples: Option<u64>,
    /// With --keystats: number of keys to list.
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) top: u32,
    /// Find the most frequently used keys; requires an LFU eviction policy.
    #[arg(long)]
    pub(crate) hotkeys: bool,
    /// Print a line of statistics every second.
    #[arg(long)]
    pub(crate) stat: bool,
    /// Watch the command: print a line for each new result, with its version; reconnects and resumes after a lost
    /// connection.
    #[arg(long)]
    pub(crate) watch: bool,
    /// With --watch: resume after this version.
    #[arg(long, value_name = "VERSION", requires = "watch")]
    pub(crate) since: Option<String>,
    /// Measure the round-trip time of PING.
    #[arg(long)]
    pub(crate) latency: bool,
    /// Like --latency, with a new line every 15 seconds (-i).
    #[arg(long)]
    pub(crate) latency_history: bool,
    /// Like --latency, as a coloured spectrum, with a new line every second (-i).
    #[arg(long)]
    pub(crate) latency_dist: bool,
    /// Measure for this many seconds how long this machine delays a running program; connects to no server.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) intrinsic_latency: Option<u64>,
    /// Test the server as a cache of this many keys, the last fifth of which gets most of the requests, and report the
    /// hit rate.
    #[arg(long, value_name = "KEYS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) lru_test: Option<u64>,
    /// Copy the server's data to a local RDB file; - means standard output.
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    pub(crate) rdb: Option<PathBuf>,
    /// Act as a replica and print the commands it receives, as comma-separated values.
    #[arg(long)]
    pub(crate) replica: bool,
    /// Like --rdb, for functions only.
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    pub(crate) functions_rdb: Option<PathBuf>,
}

/// The tools.
#[derive(Debug, Parser)]
#[command(name = "ember-cli", version = ember_version::SHOWN, disable_help_subcommand = true)]
pub(crate) struct ToolArguments {
    /// The tool to run.
    #[command(subcommand)]
    pub(crate) tool: Tool,
}

/// Tools for servers under load and for files.
#[derive(Debug, Subcommand)]
pub(crate) enum Tool {
    /// Measure the performance of a server.
    Benchmark(Box<BenchmarkArguments>),
    /// Check data files for damage, and show what they contain.
    Check(Check),
    /// Copy the intact part of a damaged file. The original is not modified.
    Repair(Repair),
    /// Copy an RDB file or AOF, encrypted or unencrypted.
    Convert(Convert),
    /// Write the data set of an AOF at an earlier time to an RDB file. The AOF is not modified.
    Restore(Restore),
}

const CODES_OF_CHECK: &str = "Exit codes: 0 all files are intact; 1 a file is damaged or has a torn end; \
                              2 a file could not be read, or the command line is invalid.";
const CODES_OF_COPIES: &str = "Exit codes: 0 the copy was written; 1 the original is too damaged \
                               to copy; 2 a file could not be read or written, or the command line is invalid.";

const CODES_OF_RESTORE: &str = "Exit codes: 0 the file was written; 1 a file that is needed is damaged or missing; 2 the \
                                files do not contain the time, a file could not be read or written, or the command line \
                                is invalid.";

/// `ember-cli check`.
#[derive(Debug, Args)]
#[command(after_help = CODES_OF_CHECK)]
pub(crate) struct Check {
    /// RDB files, AOFs, AOF manifests, stores, or directories containing them.
    #[arg(required = true, value_name = "FILE|DIRECTORY")]
    pub(crate) paths: Vec<PathBuf>,
    /// The store of which the path is a copy that may be opened.
    #[arg(long, hide = true, value_name = "FILE|DIRECTORY")]
    pub(crate) opened_as: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) key: KeyOption,
}

/// `ember-cli repair`.
#[derive(Debug, Args)]
#[command(after_help = CODES_OF_COPIES)]
pub(crate) struct Repair {
    #[command(flatten)]
    pub(crate) copy: Copy,
    /// Leave out AOF commands with a timestamp after the second of this time: Unix time in seconds or milliseconds, ISO
    /// 8601 (2026-11-26T10:00:00Z; UTC without an offset), a time before now (-90s, -5m, -1h, -2d, -1w, -1y), or now.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) until: Option<String>,
    #[command(flatten)]
    pub(crate) key: KeyOption,
}

/// `ember-cli convert`.
#[derive(Debug, Args)]
#[command(after_help = CODES_OF_COPIES)]
pub(crate) struct Convert {
    #[command(flatten)]
    pub(crate) copy: Copy,
    /// Form of the copy. Encrypted files are encrypted again, with the first of the keys. Default: the form of the
    /// original.
    #[arg(long, value_enum, required_unless_present = "target")]
    pub(crate) to: Option<Form>,
    /// The server that will read the copy.
    #[arg(long = "for", value_enum, value_name = "SERVER")]
    pub(crate) target: Option<ForServer>,
    /// Leave out data that the server does not support: expiries of hash fields, vector sets, vector indexes, JSON
    /// documents, sketches. Without this option such data is an error that names the keys.
    #[arg(long, requires = "target")]
    pub(crate) leave_out: bool,
    #[command(flatten)]
    pub(crate) key: KeyOption,
}

/// `ember-cli restore`.
#[derive(Debug, Args)]
#[command(after_help = CODES_OF_RESTORE)]
pub(crate) struct Restore {
    /// The time: Unix time in seconds or milliseconds, ISO 8601 (2026-11-26T10:00:00Z; UTC without an offset), a time
    /// before now (-90s, -5m, -1h, -2d, -1w, -1y), or now. The data set is that of the end of this second.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) to: String,
    /// The new RDB file.
    #[arg(short, long, value_name = "NEW", required_unless_present = "dry_run")]
    pub(crate) out: Option<PathBuf>,
    /// The data directory of the server, the directory of its AOF, or the manifest of the AOF.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// The number of databases of the server (`databases`).
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = databases)]
    pub(crate) databases: usize,
    /// Read all files that are needed and report the result, but write no file.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) key: KeyOption,
}

fn databases(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=DATABASES_MAX).contains(count));
    count.ok_or_else(|| format!("must be a number from 1 to {DATABASES_MAX}"))
}

/// The source and the target of a copy.
#[derive(Debug, Args)]
pub(crate) struct Copy {
    /// An RDB file, an AOF, an AOF manifest, or a directory containing one of them.
    #[arg(value_name = "FILE|DIRECTORY")]
    pub(crate) path: PathBuf,
    /// Target of the copy: a new file, or for an AOF with a manifest a directory without an AOF.
    #[arg(short, long, value_name = "NEW")]
    pub(crate) output: PathBuf,
}

/// Whether a file is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Encrypted.
    Encrypted,
    /// Not encrypted.
    Plain,
}

/// A server that reads files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ForServer {
    /// Redis 7.2.
    #[value(name = "redis-7.2")]
    Redis72,
    /// Redis 7.4 and 8.
    #[value(name = "redis-8")]
    Redis8,
    /// Valkey 9.
    #[value(name = "valkey-9")]
    Valkey9,
}

/// The source of encryption keys.
#[derive(Debug, Args)]
pub(crate) struct KeyOption {
    /// File with the keys of encrypted files: 32 bytes, or lines of 64 hexadecimal digits or base64. Default: the keys
    /// in the environment variable EMBER_ENCRYPTION_KEY, if set.
    #[arg(long, value_name = "FILE")]
    pub(crate) encryption_key_file: Option<PathBuf>,
}
