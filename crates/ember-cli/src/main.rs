//! `ember-cli`, the command-line program of ember: a client, a load generator, and tools for the files of servers.

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

use arguments::{ClientArguments, Tool, ToolArguments};
use client::{Client, Wish};
use ember_client::{Address, seconds};
use output::{Form, Output};

fn main() -> ExitCode {
    let arguments = arguments::with_help(std::env::args_os().collect());
    match arguments::for_tool(&arguments) {
        Ok(Some(tool)) => run_tool(ToolArguments::parse_from(tool).tool),
        Ok(None) => match ClientArguments::try_parse_from(&arguments) {
            Ok(arguments) => run_client(&arguments),
            Err(error) => {
                // If the message cannot be shown, nothing else can be done.
                let _ = error.print();
                match error.kind() {
                    ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                    _ => ExitCode::FAILURE,
                }
            }
        },
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(arguments::EXIT_USAGE)
        }
    }
}

fn run_tool(tool: Tool) -> ExitCode {
    match tool {
        Tool::Benchmark(arguments) => ember_benchmark::run(&arguments),
        Tool::Check(check) => files::check(&check),
        Tool::Repair(repair) => files::repair(&repair),
        Tool::Convert(convert) => files::convert(&convert),
        Tool::Restore(restore) => files::restore(&restore),
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
        _ if arguments.modes.watch => Wish::Resp3,
        _ if matches!(output.form, Form::Json | Form::QuotedJson) => Wish::Resp3IfPossible,
        _ => Wish::Resp2,
    };
    let mut client = Client::new(address, output, wish);
    client.interval = seconds(arguments.run.interval);
    client.follows_redirections = arguments.session.cluster;
    client.is_verbose = arguments.session.verbose;
    client.shows_pushes = arguments.output.show_pushes.unwrap_or(client.shows_pushes);
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
