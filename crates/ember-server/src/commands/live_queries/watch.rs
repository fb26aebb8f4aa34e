//! GET.WATCH and its equivalents for all commands that read keys, GET.UNWATCH, and UNWATCH with fingerprints.

use ember_protocol::OwnedBatch;
use emberkv_core::spec::{Command, Example, Flags, Spec};

use super::TEMPLATE;
use crate::clients::watchers::{Form, Pace};
use crate::executor::session::{Execution, Outcome, ServerCommand, SessionResult};
use crate::live_queries::opening::{self, Wish};

/// Templates, each of which defines one command per watchable command.
pub(super) const COMMANDS: &[ServerCommand] = &[
    Command::new(
        Spec {
            name: ".watch",
            summary: "Watches the command of this name: returns its result, and sends each new result.",
            example: Example { given: &[], call: "", reply: "..." },
            ..TEMPLATE
        },
        Some(|_| Ok(Outcome::Continue(watch))),
    ),
    Command::new(
        Spec {
            name: ".unwatch",
            summary: "Stops watching the live query with this fingerprint.",
            complexity: "O(N) for N keys of the query.",
            arity: 2,
            flags: TEMPLATE.flags.union(Flags::LOADING).union(Flags::STALE),
            syntax: "fingerprint",
            example: Example { given: &[], call: "GET.UNWATCH 2714318480", reply: "OK" },
            ..TEMPLATE
        },
        Some(opening::unwatch),
    ),
];

fn watch(execution: &mut Execution<'_>) -> SessionResult {
    let registry = &execution.executor.server.registry;
    let base = execution.command.base.map(|index| registry.get(index));
    let base = base.filter(|base| registry.is_available(base));
    let base = base.ok_or("ERR the command that this one watches is not available")?;
    let mut words: Vec<&[u8]> = vec![registry.called(base).as_bytes()];
    words.extend(execution.args.iter().skip(1));
    let mut call = OwnedBatch::new();
    call.push(&words);
    let database = execution.client.database;
    let wish =
        Wish { call: call.command(0), database, form: Form::Watch, pace: Pace::default(), since: None };
    opening::open(execution, &wish)
}
