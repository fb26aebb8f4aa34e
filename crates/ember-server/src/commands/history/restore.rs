//! RESTORE.FROM: restores a past state of a key.

use ember_protocol::{Args, OwnedBatch, Reply};
use emberkv_core::capture::State;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::dispatch::{Context, Waiting};
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;
use emberkv_core::rdb::{self, Kind};
use emberkv_core::spec::{Command, Example, Flags, KeyFlags, KeySpec, Spec};

use super::TEMPLATE;
use crate::catalogue::registry::Handler;
use crate::executor::Executor;
use crate::executor::session::{Execution, Outcome, ServerCommand, SessionResult};
use crate::history::reading::{Answer, Question, Then, ask, history_of};
use crate::tiers::Tiers;

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "restore.from",
        summary: "Restores an earlier value of a key, in that key or in a new one.",
        complexity: "O(N) for a value of N bytes, O(N*log(N)) for a sorted set.",
        arity: -3,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::NOSCRIPT).union(Flags::NO_MULTI),
        keys: &[
            KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE)),
            KeySpec::unknown(KeyFlags::OW.union(KeyFlags::UPDATE)),
        ],
        keys_of: Some(keys_of),
        syntax: "key moment [NEWKEY newkey]",
        example: Example {
            given: &[],
            call: "RESTORE.FROM user:1 -1h NEWKEY user:1:before",
            reply: "(error) ERR the history is off: set history-keys",
        },
        ..TEMPLATE
    },
    Some(|_| Ok(Outcome::Continue(restore))),
)];

/// The argument index of the new key, if the call names one.
fn new_key(args: Args<'_>) -> Option<usize> {
    (args.len() == 5 && is_word(args, 3, "NEWKEY")).then_some(4)
}

fn keys_of(args: Args<'_>) -> Vec<usize> {
    std::iter::once(1).chain(new_key(args)).collect()
}

fn restore(execution: &mut Execution<'_>) -> SessionResult {
    let args = execution.args;
    let history = history_of(execution.executor.server)?;
    let target = new_key(args);
    if args.len() > 3 && target.is_none() {
        return Err(CommandError::Syntax);
    }
    let when = history.parse_when(args.at(2))?;
    let name: Box<[u8]> = args.at(target.unwrap_or(1)).into();
    ask(
        execution,
        vec![args.at(1).into()],
        Question::States(vec![when]),
        Then::Act(Box::new(move |executor, database, answer, reply| {
            let Answer::States(states) = answer else { unreachable!("states were asked for") };
            let (state, at_ms) = &states[0];
            put_back(executor, (database, &*name), state, *at_ms, target.is_none(), reply)
        })),
    )
}

/// Stores a past state as the key `name`. An expiry time that has passed is left out.
fn put_back(
    executor: &mut Executor,
    (database, name): (usize, &[u8]),
    state: &State,
    at_ms: i64,
    replaces: bool,
    reply: &mut Reply,
) -> Result<(), CommandError> {
    const NO_KEY: &str = "ERR the key did not exist at that moment";
    let State::Present(image) = state else { return Err(NO_KEY.into()) };
    if image.expire_at_ms.is_some_and(|expire_at_ms| expire_at_ms <= at_ms) {
        return Err(NO_KEY.into());
    }
    let (server, settings) = (executor.server, &executor.turn.settings);
    let kind = Kind::from_byte(image.kind).ok_or("ERR a past value is damaged")?;
    let payload = rdb::dump_encoded(kind, &image.bytes, settings.payload_version);
    let payload =
        payload.map_err(|error| CommandError::from(format!("ERR a past value is damaged: {error}")))?;
    let expire_at_ms = image.expire_at_ms.filter(|&expire_at_ms| expire_at_ms > executor.turn.now_ms);
    let expire_at_ms = expire_at_ms.unwrap_or(0).to_string();
    let mut words: Vec<&[u8]> = vec![b"RESTORE", name, expire_at_ms.as_bytes(), &payload, b"ABSTTL"];
    if replaces {
        words.push(b"REPLACE");
    }
    let mut call = OwnedBatch::new();
    call.push(&words);
    let command = server.registry.find_declared(b"restore").expect("there is such a command");
    let Handler::Data(data) = command.handler else { unreachable!("it is a command on keys") };
    let mut guards = Guards::None;
    let (keyspace, turn) = (&server.keyspace, &mut executor.turn);
    let mut context = Context { keyspace, guards: &mut guards, turn, database, waiting: Waiting::Never };
    let done = Tiers::of(server).run_fetching((data, command.access), &mut context, call.command(0), reply);
    guards.release(keyspace, &mut executor.turn);
    done.map(|_| ())
}
