//! The command line of ember: tools for the files that servers leave.

mod arguments;
mod files;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Tool};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.tool {
        Tool::Check(check) => files::check(&check),
        Tool::Repair(repair) => files::repair(&repair),
        Tool::Convert(convert) => files::convert(&convert),
    }
}
