//! What can be written on the command line.

#[cfg(test)]
mod packaging_tests;
mod tools;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use ember_benchmark::BenchmarkArguments;
use ember_client::{ServerOptions, TlsOptions};

pub(crate) use tools::{EXIT_USAGE, for_tool};

const TOOLS: &str = "Tools, each with a --help of its own:
  ember-cli benchmark                        Measure what a server can do
  ember-cli check FILE|DIRECTORY             Say whether files are whole, and what is in them
  ember-cli repair FILE --output NEW         Copy what is good of a damaged file
  ember-cli convert FILE --output NEW --to   Copy an RDB file or AOF, encrypted or plain

Options for the server may also stand before the name of a tool: ember-cli -p 6380 benchmark.

Environment: EMBERCLI_AUTH or REDISCLI_AUTH has the password, EMBERCLI_HISTFILE the file of the history,
EMBERCLI_RCFILE that of the settings (~/.emberclirc).
Exit codes: 0 the command was answered; 1 it could not be sent, or with -e the answer is an error.";

/// The command line of ember, for servers. Without a command it reads commands from the terminal or standard input.
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

/// In which database, and in which words.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct SessionOptions {
    /// The number of the database.
    #[arg(short = 'n', value_name = "DATABASE")]
    pub(crate) database: Option<u32>,
    /// Speak RESP2.
    #[arg(short = '2')]
    pub(crate) resp2: bool,
    /// Speak RESP3.
    #[arg(short = '3')]
    pub(crate) resp3: bool,
    /// Follow the redirections of a cluster (MOVED, ASK).
    #[arg(short = 'c')]
    pub(crate) cluster: bool,
    /// Say on standard error where connections go to, and how long they take.
    #[arg(long)]
    pub(crate) verbose: bool,
}

/// How commands are run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Commands")]
pub(crate) struct RunOptions {
    /// Run the command this many times; -1 for ever.
    #[arg(short = 'r', value_name = "COUNT", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) repeat: i64,
    /// Wait this many seconds between: with -r, --scan, --stat and others; for --latency how long it is measured.
    #[arg(short = 'i', value_name = "SECONDS", default_value_t = 0.0)]
    pub(crate) interval: f64,
    /// Read the last argument from standard input.
    #[arg(short = 'x')]
    pub(crate) last_from_stdin: bool,
    /// Read the argument that is written as this word from standard input.
    #[arg(short = 'X', value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) tag_from_stdin: Option<OsString>,
    /// Read arguments as quoted strings: \"\\xff\" is one byte.
    #[arg(long)]
    pub(crate) quoted_input: bool,
    /// Exit with 1 when the answer is an error.
    #[arg(short = 'e')]
    pub(crate) error_code: bool,
    /// Run the script in a file; the arguments are keys, and behind a comma other arguments.
    #[arg(long, value_name = "FILE")]
    pub(crate) eval: Option<PathBuf>,
}

/// How answers are written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputOptions {
    /// Bytes as they are; this is what is done when the output is no terminal.
    #[arg(long)]
    pub(crate) raw: bool,
    /// As on a terminal, also when the output is none.
    #[arg(long)]
    pub(crate) no_raw: bool,
    /// As comma-separated values.
    #[arg(long)]
    pub(crate) csv: bool,
    /// As JSON; speaks RESP3 if the server does and -2 is not given.
    #[arg(long)]
    pub(crate) json: bool,
    /// As JSON in ASCII, with the escapes of quoted strings.
    #[arg(long)]
    pub(crate) quoted_json: bool,
    /// What stands between elements in raw output.
    #[arg(
        short = 'd',
        value_name = "TEXT",
        default_value = "\n",
        allow_hyphen_values = true,
        hide_default_value = true
    )]
    pub(crate) element_delimiter: OsString,
    /// What stands behind each answer in raw output.
    #[arg(
        short = 'D',
        value_name = "TEXT",
        default_value = "\n",
        allow_hyphen_values = true,
        hide_default_value = true
    )]
    pub(crate) answer_delimiter: OsString,
    /// Whether messages of RESP3 that nobody asked for are shown; they are on a terminal.
    #[arg(long, value_name = "YES|NO", value_parser = yes_or_no)]
    pub(crate) show_pushes: Option<bool>,
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        "n" | "no" => Ok(false),
        _ => Err("it is yes or no".to_owned()),
    }
}

/// What is done instead of running commands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Modes")]
pub(crate) struct ModeOptions {
    /// Send requests from standard input as they are, as fast as the server takes them.
    #[arg(long)]
    pub(crate) pipe: bool,
    /// Give up when no answer comes for this many seconds behind the last request; 0 never.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) pipe_timeout: u64,
    /// List all keys.
    #[arg(long)]
    pub(crate) scan: bool,
    /// Only keys that match; for --scan, --bigkeys, --memkeys and --hotkeys.
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub(crate) pattern: Option<OsString>,
    /// The same as a quoted string.
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub(crate) quoted_pattern: Option<OsString>,
    /// Ask for this many keys at once.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) count: u64,
    /// Look for the largest key of each type, by elements.
    #[arg(long)]
    pub(crate) bigkeys: bool,
    /// Look for the largest key of each type, by memory.
    #[arg(long)]
    pub(crate) memkeys: bool,
    /// The same; of this many elements each, 0 for all.
    #[arg(long, value_name = "COUNT")]
    pub(crate) memkeys_samples: Option<u64>,
    /// Look for the keys most used; needs an LFU eviction policy.
    #[arg(long)]
    pub(crate) hotkeys: bool,
    /// A line of statistics each second.
    #[arg(long)]
    pub(crate) stat: bool,
    /// Watch the command: a line for each new result, with its version; a lost connection goes on where it was.
    #[arg(long)]
    pub(crate) watch: bool,
    /// The version that --watch begins behind.
    #[arg(long, value_name = "VERSION", requires = "watch")]
    pub(crate) since: Option<String>,
    /// Measure the time an answer takes.
    #[arg(long)]
    pub(crate) latency: bool,
    /// The same, a new line every 15 seconds (-i).
    #[arg(long)]
    pub(crate) latency_history: bool,
    /// The same as a spectrum in colours, a new line every second (-i).
    #[arg(long)]
    pub(crate) latency_dist: bool,
    /// Measure for this many seconds how long this machine keeps a program waiting that needs nothing; no server is asked.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) intrinsic_latency: Option<u64>,
    /// Use the server as a cache of this many keys, a fifth of which are most of the use, and count the hits.
    #[arg(long, value_name = "KEYS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) lru_test: Option<u64>,
    /// Copy the data of the server into an RDB file here; - is standard output.
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    pub(crate) rdb: Option<PathBuf>,
    /// Show the commands that a replica of the server gets, as comma-separated values.
    #[arg(long)]
    pub(crate) replica: bool,
    /// As --rdb, of the functions alone.
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    pub(crate) functions_rdb: Option<PathBuf>,
}

/// The tools.
#[derive(Debug, Parser)]
#[command(name = "ember-cli", version = ember_version::SHOWN, disable_help_subcommand = true)]
pub(crate) struct ToolArguments {
    /// What is to be done.
    #[command(subcommand)]
    pub(crate) tool: Tool,
}

/// What is done with servers under load, and with files.
#[derive(Debug, Subcommand)]
pub(crate) enum Tool {
    /// Measure what a server can do.
    Benchmark(Box<BenchmarkArguments>),
    /// Say whether files are whole, and what is in them.
    Check(Check),
    /// Copy what is good of a damaged file. The original is only read.
    Repair(Repair),
    /// Copy an RDB file or AOF, encrypted or plain.
    Convert(Convert),
}

const CODES_OF_CHECK: &str = "Exit codes: 0 all is whole; 1 something is damaged, or has a torn end; 2 something could not \
                              be read, or the command line is wrong.";
const CODES_OF_COPIES: &str = "Exit codes: 0 the copy is there; 1 the original is damaged so that there is none; 2 \
                               something could not be read or written, or the command line is wrong.";

/// `ember-cli check`.
#[derive(Debug, Args)]
#[command(after_help = CODES_OF_CHECK)]
pub(crate) struct Check {
    /// RDB files, AOFs, manifests of AOFs, stores, or directories that have some of them.
    #[arg(required = true, value_name = "FILE|DIRECTORY")]
    pub(crate) paths: Vec<PathBuf>,
    /// The path is that of a copy of this store, which may be opened.
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
    /// Leave out the commands of an AOF that are marked with a later time (Unix time in seconds).
    #[arg(long, value_name = "SECONDS")]
    pub(crate) until: Option<i64>,
    #[command(flatten)]
    pub(crate) key: KeyOption,
}

/// `ember-cli convert`.
#[derive(Debug, Args)]
#[command(after_help = CODES_OF_COPIES)]
pub(crate) struct Convert {
    #[command(flatten)]
    pub(crate) copy: Copy,
    /// What the copy is to be. Encrypted files are encrypted anew, with the first of the keys. Without it the copy is
    /// what the original is.
    #[arg(long, value_enum, required_unless_present = "target")]
    pub(crate) to: Option<Form>,
    /// The server that is to read the copy.
    #[arg(long = "for", value_enum, value_name = "SERVER")]
    pub(crate) target: Option<ForServer>,
    /// Leave out what that server lacks: expiries of hash fields, vector sets, vector indexes. Without it that is an error
    /// which names the keys.
    #[arg(long, requires = "target")]
    pub(crate) leave_out: bool,
    #[command(flatten)]
    pub(crate) key: KeyOption,
}

/// From where to where.
#[derive(Debug, Args)]
pub(crate) struct Copy {
    /// An RDB file, an AOF, the manifest of an AOF, or a directory with one of them.
    #[arg(value_name = "FILE|DIRECTORY")]
    pub(crate) path: PathBuf,
    /// Where the copy goes: a file that is not there, or for the AOF of a manifest a directory without one.
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

/// Where the keys of encrypted files come from.
#[derive(Debug, Args)]
pub(crate) struct KeyOption {
    /// The keys of encrypted files: 32 bytes, or lines of 64 hexadecimal digits or base64. Without it they are those in
    /// the environment variable EMBER_ENCRYPTION_KEY, if that is set.
    #[arg(long, value_name = "FILE")]
    pub(crate) encryption_key_file: Option<PathBuf>,
}
