//! Libraries of functions: compiles and changes them, for clients and when the data set is loaded.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use ember_config::Config;
use ember_protocol::{Args, Reply};
use ember_scripting::confinement::confined_functions;
use ember_scripting::interpreter::{CommandRunner, CompiledLibrary};
use ember_scripting::library::{self, Libraries, Library, Policy};
use ember_scripting::payload;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::rdb::{PayloadChecks, library_for_redis, plain_library};

use crate::catalogue::registry::{Command, wrong_subcommand};
use crate::server::Server;

/// The maximum time that the code of a library may take to declare its functions.
const LOAD_TIME_MAX: Duration = Duration::from_millis(500);

/// The runner of a library that is being loaded: the library cannot call commands, and its run time is limited.
struct Loading(Instant);

impl CommandRunner for Loading {
    fn run(&mut self, _: &[&[u8]], _: &mut Reply) -> Result<(), Vec<u8>> {
        Err(b"ERR redis.call can not be called while a library is loaded".to_vec())
    }

    fn may_run(&mut self, _: &[&[u8]]) -> Option<bool> {
        None
    }

    fn choose_readers(&mut self, _: bool, _: bool) {}

    fn is_due(&self) -> bool {
        false
    }

    fn may_continue(&mut self) -> bool {
        self.0.elapsed() < LOAD_TIME_MAX
    }
}

/// Returns the library that `code` declares, compiled by this worker's interpreter.
pub(crate) fn declared(
    server: &Server,
    config: &Config,
    code: &[u8],
) -> Result<(Library, CompiledLibrary), CommandError> {
    let code = &*plain_library(code);
    let (name, body) = library::head(code)?;
    let declared = server.scripting.with_interpreter(config.script_memory_limit, |interpreter| {
        interpreter.load(body, &mut Loading(Instant::now()))
    })??;
    if declared.is_empty() {
        return Err("ERR No functions registered".into());
    }
    let mut compiled = CompiledLibrary::new();
    let confined = confined_functions(&server.registry, body);
    let mut library = Library { name, code: code.to_vec(), functions: Default::default(), confined };
    for (declaration, function) in declared {
        compiled.insert(declaration.name.clone(), function);
        library.functions.insert(declaration.name.clone(), declaration);
    }
    Ok((library, compiled))
}

/// The change of the libraries that a subcommand makes, for a client or when an AOF is loaded. It returns its reply if
/// that is not OK.
pub(crate) type Change = fn(&Server, &Config, Args<'_>) -> Result<Option<Vec<u8>>, CommandError>;

/// The subcommands that change libraries, by name.
const CHANGES_BY_NAME: &[(&str, Change)] =
    &[("delete", delete), ("flush", flush), ("load", load), ("restore", restore)];

/// Returns the words of a change in a form that all replicas and older programs can read: the text of a library has the
/// form of [`library_for_redis`], and a payload has a version that Redis 7.0 and Valkey 9 read. O(bytes of the texts).
pub(crate) fn recorded<'a>(args: Args<'a>) -> Vec<Cow<'a, [u8]>> {
    let mut words: Vec<Cow<'a, [u8]>> = args.iter().map(Cow::Borrowed).collect();
    if is_word(args, 1, "LOAD") {
        words[args.len() - 1] = library_for_redis(args.at(args.len() - 1));
    } else if is_word(args, 1, "RESTORE") {
        let checks = PayloadChecks { version_max: u16::MAX, ..PayloadChecks::ALL };
        let texts = payload::read(args.at(2), checks).unwrap_or_default();
        let written: Vec<Cow<'_, [u8]>> = texts.iter().map(|text| library_for_redis(text)).collect();
        let is_same = written.iter().zip(&texts).all(|(written, text)| **written == **text);
        if !is_same || !payload::is_for_stream(args.at(2)) {
            words[2] = Cow::Owned(payload::write(written.iter().map(|text| &**text)));
        }
    }
    words
}

/// Applies a change of the libraries from an AOF; returns `None` if the command is not such a change.
pub(crate) fn replay(
    server: &Server,
    config: &Config,
    command: &Command,
    args: Args<'_>,
) -> Option<Result<(), CommandError>> {
    let name = command.full_name.strip_prefix("function|")?;
    let (_, change) = CHANGES_BY_NAME.iter().find(|(known, _)| *known == name)?;
    Some(change(server, config, args).map(drop))
}

pub(crate) fn delete(server: &Server, _: &Config, args: Args<'_>) -> Result<Option<Vec<u8>>, CommandError> {
    let name = args.at(2);
    server.scripting.libraries.change_one(|libraries| {
        if libraries.remove(name) { Ok(()) } else { Err("ERR Library not found".into()) }
    })?;
    server.scripting.forget_compiled();
    Ok(None)
}

pub(crate) fn load(
    server: &Server,
    config: &Config,
    args: Args<'_>,
) -> Result<Option<Vec<u8>>, CommandError> {
    let code = args.at(args.len() - 1);
    let mut replaces = false;
    for number in 2..args.len() - 1 {
        if !is_word(args, number, "REPLACE") {
            return Err(CommandError::quoting("ERR Unknown option given: ", args.at(number), ""));
        }
        replaces = true;
    }
    let registry = &server.scripting.libraries;
    let (name, _) = library::head(code)?;
    if !replaces && registry.snapshot().get(&name).is_some() {
        return Err(CommandError::quoting("ERR Library '", &name, "' already exists"));
    }
    let (library, _) = declared(server, config, code)?;
    registry.change_one(|libraries| libraries.add(library, replaces))?;
    Ok(Some(name))
}

pub(crate) fn restore(
    server: &Server,
    config: &Config,
    args: Args<'_>,
) -> Result<Option<Vec<u8>>, CommandError> {
    let policy = match args.get(3) {
        _ if args.len() > 4 => return Err(wrong_subcommand("FUNCTION", args.at(1))),
        None => Policy::Append,
        Some(_) if is_word(args, 3, "FLUSH") => Policy::Flush,
        Some(_) if is_word(args, 3, "APPEND") => Policy::Append,
        Some(_) if is_word(args, 3, "REPLACE") => Policy::Replace,
        Some(_) => {
            return Err(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.".into()
            );
        }
    };
    let checks = PayloadChecks { version_max: config.version_check().newest(), ..PayloadChecks::ALL };
    let texts = payload::read(args.at(2), checks)?;
    let mut restored = Vec::new();
    for text in texts {
        restored.push(declared(server, config, &text)?.0);
    }
    server.scripting.libraries.change(|libraries| {
        if policy == Policy::Flush {
            *libraries = Libraries::default();
        }
        restored.into_iter().try_for_each(|library| {
            if policy != Policy::Replace && libraries.get(&library.name).is_some() {
                return Err(CommandError::quoting("ERR Library ", &library.name, " already exists"));
            }
            libraries.add(library, policy == Policy::Replace)
        })
    })?;
    Ok(None)
}

pub(crate) fn flush(server: &Server, _: &Config, args: Args<'_>) -> Result<Option<Vec<u8>>, CommandError> {
    if args.len() > 3 {
        return Err(wrong_subcommand("FUNCTION", args.at(1)));
    }
    if args.len() == 3 && !is_word(args, 2, "SYNC") && !is_word(args, 2, "ASYNC") {
        return Err("ERR FUNCTION FLUSH only supports SYNC|ASYNC option".into());
    }
    server.scripting.libraries.change(|libraries| {
        *libraries = Libraries::default();
        Ok(())
    })?;
    server.scripting.forget_compiled();
    Ok(None)
}
