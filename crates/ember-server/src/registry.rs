//! All commands by name: the keyspace's and the server's own, with what dispatch wants to know ready at hand.

use emberkv_core::call::{DataCommand, Run};
use emberkv_core::commands::FAMILIES as DATA_FAMILIES;
use emberkv_core::dispatch::Access;
use emberkv_core::error::{CommandError, quoted, quoted_up_to};
use emberkv_core::spec::{Flags, Spec};

use ember_protocol::Args;

use crate::commands::FAMILIES as SERVER_FAMILIES;
use crate::session::{ServerCommand, ServerHandler};

/// How a command is run.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// On the keyspace, by the core.
    Data(&'static DataCommand),
    /// By the server.
    Server(ServerHandler),
    /// Not itself: it has subcommands.
    Container,
}

/// A command or subcommand.
pub(crate) struct Command {
    /// Its facts.
    pub(crate) spec: &'static Spec,
    /// The name in lower case, a subcommand's with its container's: `client|list`.
    pub(crate) full_name: String,
    /// What runs it.
    pub(crate) handler: Handler,
    /// Which locks its keys need.
    pub(crate) access: Access,
    /// Whether a call takes so little and so constant time that calls of one batch share one reading of the clock.
    pub(crate) is_quick: bool,
    /// The indexes of its subcommands in the registry.
    pub(crate) subcommands: Vec<u16>,
    /// Its own index in the registry.
    pub(crate) index: u16,
    /// Whether it stands in a container.
    pub(crate) is_subcommand: bool,
}

/// The table of all commands.
pub(crate) struct Registry {
    commands: Vec<Command>,
    /// Open addressing by [`name_hash`]: index + 1, or 0. At most a quarter full.
    buckets: Vec<u16>,
}

/// A hash of a command's name that does not distinguish the case of letters.
#[inline]
fn name_hash(name: &[u8]) -> usize {
    let mut hash = name.len() as u64;
    for &byte in name {
        hash = (hash ^ u64::from(byte | 0x20)).wrapping_mul(0x0100_0000_01B3);
    }
    (hash ^ hash >> 17) as usize
}

impl Registry {
    /// The table made of the families of both crates.
    pub(crate) fn new() -> Registry {
        let mut registry = Registry { commands: Vec::new(), buckets: Vec::new() };
        for command in DATA_FAMILIES.iter().copied().flatten().copied().flatten() {
            registry.add_data(command, None);
        }
        for command in SERVER_FAMILIES.iter().copied().flatten().copied().flatten() {
            registry.add_server(command, None);
        }
        registry.index_names();
        registry
    }

    fn add_data(&mut self, command: &'static DataCommand, container: Option<&str>) -> u16 {
        let handler = match command.run {
            Run::Container => Handler::Container,
            Run::Keys(_) | Run::KeysOrAlone { .. } | Run::Blocking(_) | Run::Keyspace(_) | Run::Alone(_) => {
                Handler::Data(command)
            }
        };
        let index = self.add(&command.spec, handler, container);
        for subcommand in command.subcommands {
            let subcommand = self.add_data(subcommand, Some(command.spec.name));
            self.commands[usize::from(index)].subcommands.push(subcommand);
        }
        index
    }

    fn add_server(&mut self, command: &'static ServerCommand, container: Option<&str>) -> u16 {
        let handler = match command.run {
            Some(run) => Handler::Server(run),
            None => Handler::Container,
        };
        let index = self.add(&command.spec, handler, container);
        for subcommand in command.subcommands {
            let subcommand = self.add_server(subcommand, Some(command.spec.name));
            self.commands[usize::from(index)].subcommands.push(subcommand);
        }
        index
    }

    fn add(&mut self, spec: &'static Spec, handler: Handler, container: Option<&str>) -> u16 {
        let index = u16::try_from(self.commands.len()).expect("there are fewer commands than 65,536");
        let full_name = match container {
            Some(container) => format!("{container}|{}", spec.name),
            None => spec.name.to_owned(),
        };
        let access = Access::of(spec);
        self.commands.push(Command {
            spec,
            full_name,
            handler,
            access,
            is_quick: matches!(access, Access::One(_))
                && (spec.flags.contains(Flags::FAST) || spec.complexity == "O(1)"),
            subcommands: Vec::new(),
            index,
            is_subcommand: container.is_some(),
        });
        index
    }

    fn index_names(&mut self) {
        self.buckets = vec![0; (self.commands.len() * 4).next_power_of_two()];
        for command in self.commands.iter().filter(|command| !command.is_subcommand) {
            let mut bucket = name_hash(command.spec.name.as_bytes()) & (self.buckets.len() - 1);
            while self.buckets[bucket] != 0 {
                bucket = (bucket + 1) & (self.buckets.len() - 1);
            }
            self.buckets[bucket] = command.index + 1;
        }
    }

    /// All commands and subcommands.
    pub(crate) fn all(&self) -> &[Command] {
        &self.commands
    }

    /// All commands but subcommands.
    pub(crate) fn top_level(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|command| !command.is_subcommand)
    }

    /// The command at an index taken from [`Command::index`] or [`Command::subcommands`].
    #[inline]
    pub(crate) fn get(&self, index: u16) -> &Command {
        &self.commands[usize::from(index)]
    }

    /// The top-level command of this name, in any case.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Command> {
        let mut bucket = name_hash(name) & (self.buckets.len() - 1);
        loop {
            let index = self.buckets[bucket].checked_sub(1)?;
            let command = self.get(index);
            if command.spec.name.as_bytes().eq_ignore_ascii_case(name) {
                return Some(command);
            }
            bucket = (bucket + 1) & (self.buckets.len() - 1);
        }
    }

    /// The command or, named `container|subcommand`, the subcommand of this name, in any case.
    pub(crate) fn find_full(&self, name: &[u8]) -> Option<&Command> {
        match name.iter().position(|&byte| byte == b'|') {
            None => self.find(name),
            Some(at) => self.find(&name[..at]).and_then(|container| self.find_in(container, &name[at + 1..])),
        }
    }

    /// The subcommand of `container` of this name, in any case.
    pub(crate) fn find_in(&self, container: &Command, name: &[u8]) -> Option<&Command> {
        let mut subcommands = container.subcommands.iter().map(|&index| self.get(index));
        subcommands.find(|command| command.spec.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// The command that a call means, if there is one and it takes so many arguments.
    ///
    /// # Errors
    /// In Redis's words: unknown command, unknown subcommand, or wrong number of arguments.
    pub(crate) fn resolve(&self, args: Args<'_>) -> Result<&Command, CommandError> {
        self.find(args.at(0))
            .ok_or_else(|| unknown_command(args))
            .and_then(|command| self.check(command, args))
    }

    /// As [`Registry::resolve`] for a call whose first word was found already.
    pub(crate) fn check<'r>(
        &'r self,
        command: &'r Command,
        args: Args<'_>,
    ) -> Result<&'r Command, CommandError> {
        let mut command = command;
        if !command.subcommands.is_empty()
            && let Some(name) = args.get(1)
        {
            command = self.find_in(command, name).ok_or_else(|| unknown_subcommand(command, name))?;
        }
        if !command.spec.accepts(args.len()) || matches!(command.handler, Handler::Container) {
            return Err(CommandError::WrongArity(command.full_name.clone().into()));
        }
        Ok(command)
    }
}

/// Bytes of an unknown command's arguments together, quotes and blanks included, that the error repeats.
const ARGUMENTS_QUOTED_MAX: usize = 128;

fn unknown_command(args: Args<'_>) -> CommandError {
    let mut list = Vec::new();
    for arg in args.skip(1).iter() {
        if list.len() >= ARGUMENTS_QUOTED_MAX {
            break;
        }
        let arg = quoted_up_to(arg, ARGUMENTS_QUOTED_MAX - list.len());
        list.extend_from_slice(&[b"'", arg, b"' "].concat());
    }
    [b"ERR unknown command '", quoted(args.at(0)), b"', with args beginning with: ", &list].concat().into()
}

fn unknown_subcommand(container: &Command, name: &[u8]) -> CommandError {
    let container = container.spec.name.to_ascii_uppercase();
    [b"ERR unknown subcommand '", quoted(name), b"'. Try ", container.as_bytes(), b" HELP."].concat().into()
}

/// Whether a request is the beginning of one over HTTP, whose body would otherwise be run as commands: a page in a
/// browser can make it send such requests to a server on its own machine.
pub(crate) fn is_http(args: Args<'_>) -> bool {
    args.at(0).eq_ignore_ascii_case(b"post") || args.at(0).eq_ignore_ascii_case(b"host:")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::TcpListener;
    use std::thread;

    use ember_protocol::OwnedBatch;
    use ember_testkit::{Exchange, RawClient, Value, run_session, split_arguments};
    use emberkv_core::spec::{Begin, KeyFlags};

    use super::*;
    use crate::config::{Config, ConfigHandle, LogLevel};
    use crate::start;
    use crate::syntax::{self, Argument};

    #[test]
    fn names_are_unique_and_in_lower_case() {
        let registry = Registry::new();
        let mut names = HashSet::new();
        for command in registry.all() {
            assert!(names.insert(&command.full_name), "{} is there twice", command.full_name);
            assert_eq!(command.full_name, command.full_name.to_ascii_lowercase());
            let found = registry.find_full(command.full_name.to_ascii_uppercase().as_bytes());
            assert!(found.is_some_and(|found| found.index == command.index), "{}", command.full_name);
        }
        assert!(registry.find(b"nothing").is_none() && registry.find_full(b"client|nothing").is_none());
    }

    #[test]
    fn every_command_is_documented() {
        for Command { spec, full_name, .. } in Registry::new().all() {
            assert!(spec.summary.ends_with('.') && spec.summary.len() > 10, "{full_name}: {}", spec.summary);
            assert_eq!(spec.since.split('.').count(), 3, "{full_name}: {}", spec.since);
            assert!(!spec.complexity.is_empty(), "{full_name}");
            assert!(spec.history.iter().all(|(version, _)| version.split('.').count() == 3), "{full_name}");
        }
    }

    #[test]
    fn the_number_of_arguments_is_that_of_the_syntax() {
        for command in Registry::new().all() {
            let (spec, name) = (command.spec, &command.full_name);
            let words = 1 + i32::from(command.is_subcommand);
            let arguments = syntax::arguments(spec);
            let required = words + least(&arguments);
            let varies = arguments.iter().any(varies);
            if arguments.is_empty() {
                // What containers take says the syntax of their subcommands.
                assert!(spec.arity.abs() >= words, "{name}");
            } else {
                assert_eq!(spec.arity, if varies { -required } else { required }, "{name} {}", spec.syntax);
            }
            for (number, keys) in spec.keys.iter().enumerate() {
                if let Begin::Index(first) = keys.begin
                    && !keys.flags.contains(KeyFlags::NOT_KEY)
                {
                    // Only PFMERGE's further keys may be missing.
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
        argument.is_optional
            || argument.is_multiple
            || is_one_of_lengths
            || argument.children.iter().any(varies)
    }

    fn words_of(line: &str) -> Vec<Vec<u8>> {
        split_arguments(line).unwrap_or_else(|| panic!("not a command line: {line}"))
    }

    #[test]
    fn every_example_is_a_call_of_its_command() {
        let registry = Registry::new();
        for command in registry.all().iter().filter(|command| !matches!(command.handler, Handler::Container))
        {
            let words = words_of(command.spec.example.call);
            let mut batch = OwnedBatch::new();
            batch.push(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let called = registry.resolve(batch.command(0)).map(|called| called.full_name.as_str());
            assert_eq!(called, Ok(command.full_name.as_str()), "{}", command.spec.example.call);
        }
    }

    #[test]
    fn every_example_answers_what_it_says() {
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
        for command in Registry::new().all() {
            let example = &command.spec.example;
            if example.call.is_empty() {
                continue;
            }
            let mut client = connect();
            assert_eq!(client.run("FLUSHALL"), Value::ok());
            // One snapshot at a time.
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
}
