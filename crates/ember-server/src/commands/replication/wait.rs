//! WAIT and WAITAOF: wait until enough replicas or disks have stored the writes of the connection.
//!
//! Replicas have stored the writes that they have acknowledged; a waiting call requests acknowledgements from them. The
//! disk of this server has stored the writes that are durable in the append-only file.

use ember_protocol::Reply;
use emberkv_core::call::Wait;
use emberkv_core::commands::arguments::{integer, timeout_in_ms};
use emberkv_core::keys::Guards;
use emberkv_core::spec::{Category, Command, Example, Flags, Group, Spec};

use crate::executor::Section;
use crate::executor::session::{Execution, Outcome, ServerCommand, SessionResult};
use crate::journal::Reader;
use crate::replication::primary::Primary;
use crate::replication::primary::waiting::{NO_AOF, Wanted};
use crate::server::conditions::Condition;

/// The group is generic, because Redis documents these commands among those on keys.
const TEMPLATE: Spec = Spec {
    group: Group::Generic,
    complexity: "O(1)",
    categories: Category::CONNECTION,
    is_in_group_category: false,
    tips: &["request_policy:all_shards", "response_policy:agg_min"],
    ..Spec::DEFAULT
};

pub(super) const COMMANDS: &[ServerCommand] = &[
    Command::new(
        Spec {
            name: "wait",
            summary: "Waits until a number of replicas have the connection's writes; returns that number.",
            since: "3.0.0",
            arity: 3,
            syntax: "numreplicas timeout",
            example: Example { given: &[], call: "WAIT 0 100", reply: "(integer) 0" },
            ..TEMPLATE
        },
        Some(|session| {
            integer(session.args, 1)?;
            timeout_in_ms(session.args, 2, session.turn.now_ms)?;
            Ok(Outcome::Continue(|execution| {
                let replicas = u64::try_from(integer(execution.args, 1)?).unwrap_or_default();
                wait(execution, replicas, None, 2)
            }))
        }),
    ),
    Command::new(
        Spec {
            name: "waitaof",
            summary: "Waits until the connection's writes are on disk on this server and a number of replicas.",
            since: "7.2.0",
            flags: Flags::NOSCRIPT,
            arity: 4,
            syntax: "numlocal numreplicas timeout",
            example: Example { given: &[], call: "WAITAOF 0 0 100", reply: "1) (integer) 0\n2) (integer) 0" },
            ..TEMPLATE
        },
        Some(|session| {
            let local = integer(session.args, 1)?;
            if !(0..=1).contains(&local) {
                return Err("ERR value is out of range, must be between 0 and 1".into());
            }
            if integer(session.args, 2)? < 0 {
                return Err("ERR value is out of range, must be positive".into());
            }
            timeout_in_ms(session.args, 3, session.turn.now_ms)?;
            if local > 0 && !session.server.journal.is_read_by(Reader::Aof) {
                return Err(NO_AOF.into());
            }
            Ok(Outcome::Continue(|execution| {
                let (local, replicas) = (integer(execution.args, 1)?, integer(execution.args, 2)?);
                wait(execution, replicas.unsigned_abs(), Some(local > 0), 3)
            }))
        }),
    ),
];

/// Waits until this number of replicas have stored the client's writes: in memory or, with `on_disk`, on disk. With
/// `Some(true)`, the writes must also be on this server's disk.
fn wait(
    execution: &mut Execution<'_>,
    replicas: u64,
    on_disk: Option<bool>,
    timeout_arg: usize,
) -> SessionResult {
    let Execution { executor, client, command, args, reply } = execution;
    let server = executor.server;
    if server.conditions.get().contains(Condition::REPLICA) {
        let name = command.spec.name.to_uppercase();
        return Err(format!(
            "ERR {name} cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is \
             configured to be writable (which is not the default) writes to replicas are just local and are not propagated."
        )
        .into());
    }
    let wanted = Wanted { record: executor.last_record.max(client.last_record), replicas, on_disk };
    if wanted.is_settled(server) || executor.section != Section::Shared {
        wanted.answer(server, reply);
        return Ok(Outcome::Done);
    }
    let timeout_ms = Some(timeout_in_ms(*args, timeout_arg, executor.turn.now_ms)?).filter(|&ms| ms > 0);
    let waiting = Wait { timeout_ms, empty_reply: Reply::null, instead: None };
    let mut blocked = executor.enlist(command, waiting, *args, client, &mut Guards::None, reply);
    blocked.on_timeout = Box::new(move |reply| wanted.answer(server, reply));
    if replicas > 0 {
        Primary::of(server).wait(server, &blocked.waiter, wanted);
    } else {
        blocked.durable = Some((wanted.record, Box::new(move |reply| wanted.answer(server, reply))));
    }
    Ok(Outcome::Wait(blocked))
}
