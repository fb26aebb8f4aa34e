//! ASOF and `GET key AS OF moment`: a read call on past states of its keys.

use ember_protocol::{Args, OwnedBatch};
use emberkv_core::call::DataCommand;
use emberkv_core::capture::State;
use emberkv_core::commands::FAMILIES;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::dispatch::past;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, KeyFlags, KeySpec, Spec};

use super::TEMPLATE;
use crate::catalogue::registry::{self, Handler};
use crate::executor::authorization;
use crate::executor::session::{Execution, Outcome, ServerCommand, SessionResult};
use crate::history::reading::{Answer, Question, Then, ask, history_of};
use crate::server::slots::Refusal;

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "asof",
        summary: "Runs a read command on earlier states of its keys.",
        complexity: "That of the command, and O(N) for values of N bytes.",
        arity: -4,
        keys: &[KeySpec::unknown(KeyFlags::RO.union(KeyFlags::ACCESS))],
        keys_of: Some(keys_of),
        syntax: "moment command arg [arg ...]",
        example: Example {
            given: &[],
            call: "ASOF -1h HGETALL user:1",
            reply: "(error) ERR the history is off: set history-keys",
        },
        ..TEMPLATE
    },
    Some(|_| Ok(Outcome::Continue(read))),
)];

/// Returns the index of the moment and those of the called words.
fn parts(args: Args<'_>) -> (usize, Vec<usize>) {
    if registry::is_get_as_of(args) { (4, vec![0, 1]) } else { (1, (2..args.len()).collect()) }
}

fn read(execution: &mut Execution<'_>) -> SessionResult {
    let (args, server) = (execution.args, execution.executor.server);
    let history = history_of(server)?;
    let (moment, words) = parts(args);
    let mut call = OwnedBatch::new();
    call.push(&words.iter().map(|&at| args.at(at)).collect::<Vec<_>>());
    let called = call.command(0);
    let command = server.registry.resolve(called)?;
    let data = match command.handler {
        Handler::Data(data) if past::may_read_past(data, called) => data,
        _ => {
            let name = &command.full_name;
            return Err(CommandError::from(format!(
                "ERR '{name}' cannot read the past: only commands that read the keys in their arguments can"
            )));
        }
    };
    authorization::authorize(server, execution.client, command, called)?;
    let executor = &mut *execution.executor;
    let checked = executor.check_slots(execution.client.view.slot_caller(), command, None, called);
    checked.map_err(Refusal::error)?;
    let when = history.parse_when(args.at(moment))?;
    let keys = command.spec.key_positions(called).map(|at| called.at(at).into()).collect();
    ask(
        execution,
        keys,
        Question::States(vec![when]),
        Then::Write(Box::new(move |writing, answer| {
            let Answer::States(states) = answer else { unreachable!("states were asked for") };
            let at_ms = states.first().map_or(0, |(_, at_ms)| *at_ms);
            let states: Vec<State> = states.into_iter().map(|(state, _)| state).collect();
            let (keyspace, settings) = (&writing.server.keyspace, writing.settings);
            let moment = (writing.database, at_ms);
            past::run(data, keyspace, settings, moment, call.command(0), &states, writing.reply)
        })),
    )
}

/// Returns the positions of the called command's keys. Does not find a command under a name set by `rename-command`;
/// access to its keys is checked later, when the command is resolved.
fn keys_of(args: Args<'_>) -> Vec<usize> {
    let (_, words) = parts(args);
    if is_word(args, words[0], "GET") {
        return words[1..].to_vec();
    }
    let name = args.at(words[0]);
    let is_it = |command: &&DataCommand| name.eq_ignore_ascii_case(command.spec.name.as_bytes());
    let mut commands = FAMILIES.iter().copied().flatten().copied().flatten();
    let Some(command) = commands.find(is_it) else { return Vec::new() };
    let called = args.skip(words[0]);
    command.spec.key_positions(called).map(|at| at + words[0]).collect()
}
