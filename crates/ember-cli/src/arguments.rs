//! What can be written on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// The command line of ember.
#[derive(Debug, Parser)]
#[command(name = "ember-cli", version, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    /// What is to be done.
    #[command(subcommand)]
    pub(crate) tool: Tool,
}

/// What is done with files.
#[derive(Debug, Subcommand)]
pub(crate) enum Tool {
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
    /// RDB files, AOFs, manifests of AOFs, or directories that have some of them.
    #[arg(required = true, value_name = "FILE|DIRECTORY")]
    pub(crate) paths: Vec<PathBuf>,
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
    /// What the copy is to be. Encrypted files are encrypted anew, with the first of the keys.
    #[arg(long, value_enum)]
    pub(crate) to: Form,
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

/// Where the keys of encrypted files come from.
#[derive(Debug, Args)]
pub(crate) struct KeyOption {
    /// The keys of encrypted files: 32 bytes, or lines of 64 hexadecimal digits or base64. Without it they are those in
    /// the environment variable EMBER_ENCRYPTION_KEY, if that is set.
    #[arg(long, value_name = "FILE")]
    pub(crate) encryption_key_file: Option<PathBuf>,
}
