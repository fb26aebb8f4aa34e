//! The command line of ember: commands to a server, load for it, and tools for the files that servers leave.

mod arguments;
mod client;
mod files;
mod modes;
mod one_shot;
mod output;
mod pause;
mod repl;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use arguments::{ClientArguments, Tool, ToolArguments, is_tool};
use client::{Client, Wish};
use ember_client::{Address, seconds};
use output::{Form, Output};

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|first| is_tool(&first)) {
        return match ToolArguments::parse().tool {
            Tool::Benchmark(arguments) => ember_benchmark::run(&arguments),
            Tool::Check(check) => files::check(&check),
            Tool::Repair(repair) => files::repair(&repair),
            Tool::Convert(convert) => files::convert(&convert),
        };
    }
    match ClientArguments::try_parse() {
        Ok(arguments) => run_client(&arguments),
        Err(error) => {
            // Nothing can be done when it cannot be shown.
            let _ = error.print();
            match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn run_client(arguments: &ClientArguments) -> ExitCode {
    let address = match Address::of(&arguments.server, &arguments.tls, arguments.session.database) {
        Ok(address) => address,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let output = Output::of(&arguments.output);
    let wish = match &arguments.session {
        options if options.resp3 => Wish::Resp3,
        options if options.resp2 => Wish::Resp2,
        _ if matches!(output.form, Form::Json | Form::QuotedJson) => Wish::Resp3IfPossible,
        _ => Wish::Resp2,
    };
    let mut client = Client::new(address, output, wish);
    client.interval = seconds(arguments.run.interval);
    if let Some(mode) = modes::of(&arguments.modes) {
        return modes::run(mode, &mut client, arguments);
    }
    if arguments.command.is_empty() && arguments.run.eval.is_none() && !arguments.run.last_from_stdin {
        return repl::run(&mut client);
    }
    if arguments.run.error_code {
        client.set_error_code();
    }
    one_shot::run(&mut client, arguments)
}
