//! Tests of the specifications of all commands; their examples are run on a server.

use std::collections::HashSet;
use std::net::TcpListener;
use std::thread;

use ember_config::{Config, ConfigHandle, LogLevel};
use ember_protocol::OwnedBatch;
use ember_testkit::{Exchange, RawClient, Value, run_session, split_arguments};
use emberkv_core::spec::{Begin, KeyFlags};

use crate::catalogue::registry::{Command, Handler, Registry};
use crate::catalogue::syntax::{self, Argument};
use crate::start;

/// Returns the registry of all commands.
pub(super) fn registry() -> Registry {
    Registry::new(super::FAMILIES).0
}

#[test]
fn names_are_unique_and_in_lower_case() {
    let registry = registry();
    let mut names = HashSet::new();
    for command in registry.all() {
        assert!(names.insert(&command.full_name), "{} occurs twice", command.full_name);
        assert_eq!(command.full_name, command.full_name.to_ascii_lowercase());
        let found = registry.find_full(command.full_name.to_ascii_uppercase().as_bytes());
        assert!(found.is_some_and(|found| found.index == command.index), "{}", command.full_name);
    }
    assert!(registry.find(b"nothing").is_none() && registry.find_full(b"client|nothing").is_none());
}

#[test]
fn every_command_is_documented() {
    for Command { spec, full_name, .. } in registry().all() {
        assert!(spec.summary.ends_with('.') && spec.summary.len() > 10, "{full_name}: {}", spec.summary);
        assert_eq!(spec.since.split('.').count(), 3, "{full_name}: {}", spec.since);
        assert!(!spec.complexity.is_empty(), "{full_name}");
        assert!(spec.history.iter().all(|(version, _)| version.split('.').count() == 3), "{full_name}");
    }
}

#[test]
fn the_number_of_arguments_is_that_of_the_syntax() {
    // Derived commands are skipped, because their specifications are those of other commands.
    for command in registry().all().iter().filter(|command| command.base.is_none()) {
        let (spec, name) = (command.spec, &command.full_name);
        let words = 1 + i32::from(command.is_subcommand);
        let arguments = syntax::arguments(spec);
        let required = words + least(&arguments);
        let varies = arguments.iter().any(varies);
        if arguments.is_empty() {
            // The syntax of a container does not include arguments; its subcommands have their own syntax.
            assert!(spec.arity.abs() >= words, "{name}");
        } else if ["geosearch", "geosearchstore"].contains(&name.as_str()) {
            // The syntax marks the centre as optional, because a polygon has none, but the vertices of a polygon are
            // even more words.
            assert_eq!(spec.arity, -(required + 2), "{name} {}", spec.syntax);
        } else {
            assert_eq!(spec.arity, if varies { -required } else { required }, "{name} {}", spec.syntax);
        }
        for (number, keys) in spec.keys.iter().enumerate() {
            if let Begin::Index(first) = keys.begin
                && !keys.flags.contains(KeyFlags::NOT_KEY)
            {
                // Only PFMERGE has optional keys after its first key.
                let end = spec.arity.unsigned_abs() as usize + usize::from(number > 0);
                assert!((words as usize..end).contains(&first), "{name}");
            }
        }
    }
}

fn least(arguments: &[Argument]) -> i32 {
    let one = |argument: &Argument| {
        let words = i32::from(argument.token.is_some());
        match argument.argument_type {
            _ if argument.is_optional => 0,
            syntax::ArgumentType::PureToken => 1,
            syntax::ArgumentType::Block => words + least(&argument.children),
            syntax::ArgumentType::OneOf => {
                let each = argument.children.iter().map(|child| least(std::slice::from_ref(child)));
                words + each.filter(|&least| least > 0).min().unwrap_or(0)
            }
            _ => words + 1,
        }
    };
    arguments.iter().map(one).sum()
}

fn varies(argument: &Argument) -> bool {
    let is_one_of_lengths = argument.argument_type == syntax::ArgumentType::OneOf
        && argument.children.iter().any(|child| {
            least(std::slice::from_ref(child)) != least(std::slice::from_ref(&argument.children[0]))
        });
    argument.is_optional || argument.is_multiple || is_one_of_lengths || argument.children.iter().any(varies)
}

fn words_of(line: &str) -> Vec<Vec<u8>> {
    split_arguments(line).unwrap_or_else(|| panic!("not a command line: {line}"))
}

#[test]
fn every_example_is_a_call_of_its_command() {
    let registry = registry();
    for command in registry.all().iter().filter(|command| !matches!(command.handler, Handler::Container)) {
        let words = words_of(command.spec.example.call);
        let mut batch = OwnedBatch::new();
        batch.push(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let called = registry.resolve(batch.command(0)).map(|called| called.full_name.as_str());
        assert_eq!(called, Ok(command.full_name.as_str()), "{}", command.spec.example.call);
    }
}

#[test]
fn every_example_returns_its_documented_reply() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let saved = std::env::temp_dir().join(format!("ember-examples-{}", std::process::id()));
    std::fs::create_dir_all(&saved).unwrap();
    let file = |name: &str| saved.join(name).to_string_lossy().into_owned();
    let config = Config {
        port: address.port(),
        loglevel: LogLevel::Nothing,
        shards: 2,
        dbfilename: file("dump.rdb"),
        appenddirname: file("appendonlydir"),
        ..Config::default()
    };
    let server = thread::spawn(|| start::serve(ConfigHandle::new(config, None)));
    let connect = || loop {
        match RawClient::connect(address) {
            Ok(client) => break client,
            Err(_) => thread::yield_now(),
        }
        assert!(!server.is_finished(), "the server serves");
    };
    let mut differences = Vec::new();
    for command in registry().all() {
        let example = &command.spec.example;
        // PSYNC and SYNC are skipped: their reply is a file, preceded by empty lines.
        if example.call.is_empty() || matches!(command.spec.name, "psync" | "sync") {
            continue;
        }
        let mut client = connect();
        assert_eq!(client.run("FLUSHALL"), Value::ok());
        // Waits for the previous snapshot, because only one runs at a time.
        while client.run("INFO persistence").text().contains("_in_progress:1") {
            thread::yield_now();
        }
        for line in example.given {
            let answer = client.command(&words_of(line));
            assert!(!answer.is_error(), "{}: {line}: {answer:?}", command.full_name);
        }
        let exchange =
            Exchange { line: 1, command: example.call.to_owned(), expected: example.reply.to_owned() };
        differences.extend(run_session(&mut client, &[exchange]));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    connect().send(b"SHUTDOWN\r\n").unwrap();
    assert_eq!(server.join().unwrap(), Ok(()));
    std::fs::remove_dir_all(saved).unwrap();
}
