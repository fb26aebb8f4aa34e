//! `ember-cli benchmark`: measures the performance of a server, and how reliable the result is.

mod arguments;
mod compare;
mod engine;
mod facts;
mod failure;
mod figures;
mod idle;
mod key_patterns;
mod link;
mod matrix;
mod origin;
mod progress;
mod recorder;
mod replies;
mod report;
mod requests;
mod sweep;
mod target;
mod thread_time;
mod watching;
mod workload;

use std::process::ExitCode;

pub use arguments::BenchmarkArguments;

use arguments::MatrixOf;
use ember_client::Address;
use ember_client::put;
use failure::Failure;
use report::{csv, html, json, text};
use target::{Load, Target, TestResult};
use workload::Workload;

/// The maximum number of bytes sent at a time on a connection.
const BATCH_BYTES_MAX: usize = 1 << 30;

/// The exit code for an invalid command line.
const EXIT_USAGE: u8 = 2;

/// Runs the measurements that the options select, and prints the results.
pub fn run(arguments: &BenchmarkArguments) -> ExitCode {
    let prepared = workload::chosen(arguments).and_then(|workloads| {
        check_batches(&workloads, arguments.load.pipeline)?;
        let target = &arguments.target;
        Ok((workloads, Address::of(&arguments.server, &arguments.tls, target.database)?))
    });
    let (workloads, address) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    match measure(arguments, &workloads, address) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(errors) => {
            eprintln!("{errors} replies were errors");
            ExitCode::FAILURE
        }
        Err(failure) => {
            eprintln!("{}", failure.0);
            ExitCode::FAILURE
        }
    }
}

fn check_batches(workloads: &[Workload], pipeline: u32) -> Result<(), String> {
    let longest =
        workloads.iter().flat_map(|workload| &workload.parts).map(|(template, _)| template.len()).max();
    match longest.unwrap_or(0).checked_mul(pipeline as usize) {
        Some(bytes) if bytes <= BATCH_BYTES_MAX => Ok(()),
        _ => Err("-P requests of -d bytes exceed 1 GiB".to_owned()),
    }
}

/// Runs the selected measurement; returns the number of error replies.
fn measure(arguments: &BenchmarkArguments, workloads: &[Workload], address: Address) -> Result<u64, Failure> {
    if arguments.load.idle {
        return idle::run(arguments, address);
    }
    if arguments.load.watch.is_some() {
        return watching::run(arguments, address);
    }
    match arguments.output.matrix {
        Some(MatrixOf::Server) => return matrix::run(arguments, workloads, address),
        Some(MatrixOf::Stores) => return matrix::stores::run(arguments, workloads, &address),
        None => {}
    }
    if !arguments.target.compare.is_empty() {
        return compare::run(arguments, workloads, address);
    }
    single(arguments, workloads, address)
}

/// Measures one server, test by test.
fn single(arguments: &BenchmarkArguments, workloads: &[Workload], address: Address) -> Result<u64, Failure> {
    let (output, data_bytes) = (&arguments.output, arguments.work.data_bytes);
    let load = Load::of(arguments);
    let mut target = Target::open(address, arguments)?;
    let page = output.report.as_deref().map(html::Page::create).transpose()?;
    if output.csv {
        put(csv::head().as_bytes());
    } else if !output.json && !output.quiet {
        put(text::head(&target, data_bytes).as_bytes());
    }
    let mut results: Vec<TestResult> = Vec::new();
    let rounds = if arguments.load.endless { usize::MAX } else { 1 };
    for workload in std::iter::repeat_n(workloads, rounds).flatten() {
        let result = target.measure(workload, &load)?;
        if output.csv {
            put(csv::line(&result).as_bytes());
        } else if output.quiet {
            put(text::line(&result).as_bytes());
        } else if !output.json {
            put(text::block(&result).as_bytes());
        }
        // Endless runs never evaluate results again.
        if !arguments.load.endless {
            results.push(result);
        }
    }
    if output.json {
        put(json::document(&target, data_bytes, &results).as_bytes());
    }
    if let Some(page) = page {
        let scalings = sweep::run(&mut target, workloads, &load)?;
        page.write(&target, data_bytes, &results, &scalings)?;
    }
    Ok(results.iter().map(|result| result.measured.tally.errors).sum())
}
