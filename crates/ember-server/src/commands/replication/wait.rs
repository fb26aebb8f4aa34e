//! WAIT and WAITAOF: until enough replicas, or disks, have what the connection has written.
//!
//! There are no replicas, so none ever confirms anything: what is asked of them is waited for until the time is over. The
//! disk of this server is that of its append-only file.

use ember_protocol::Reply;
use emberkv_core::call::Wait;
use emberkv_core::commands::arguments::integer;
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;
use emberkv_core::spec::{Category, Command, Example, Flags, Group, Spec};

use crate::executor::Section;
use crate::executor::session::{Execution, Outcome, ServerCommand, SessionResult};

/// In Redis they are documented with the commands on keys.
const TEMPLATE: Spec = Spec {
    group: Group::Generic,
    complexity: "O(1)",
    flags: Flags::BLOCKING,
    categories: Category::CONNECTION,
    is_in_group_category: false,
    tips: &["request_policy:all_shards", "response_policy:agg_min"],
    ..Spec::DEFAULT
};

pub(super) const COMMANDS: &[ServerCommand] = &[
    Command::new(
        Spec {
            name: "wait",
            summary: "Waits until a number of replicas have what the connection has written; returns how many do.",
            since: "3.0.0",
            arity: 3,
            syntax: "numreplicas timeout",
            example: Example { given: &[], call: "WAIT 0 100", reply: "(integer) 0" },
            ..TEMPLATE
        },
        Some(|session| {
            let wanted = integer(session.args, 1)?;
            timeout_ms(session.args, 2)?;
            if wanted <= 0 {
                reply_count(session.reply);
                return Ok(Outcome::Done);
            }
            Ok(Outcome::Continue(|execution| wait(execution, 2, reply_count)))
        }),
    ),
    Command::new(
        Spec {
            name: "waitaof",
            summary: "Waits until the disks of this server and of a number of replicas have what the connection has written.",
            since: "7.2.0",
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
            let replicas = integer(session.args, 2)?;
            if replicas < 0 {
                return Err("ERR value is out of range, must be positive".into());
            }
            timeout_ms(session.args, 3)?;
            if local > 0 && !session.server.journal.is_on() {
                return Err(
                    "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.".into()
                );
            }
            Ok(Outcome::Continue(wait_for_disks))
        }),
    ),
];

fn reply_count(reply: &mut Reply) {
    reply.integer(0);
}

/// Answers how many disks have it: of this server and of replicas.
fn reply_counts(reply: &mut Reply, local: i64) {
    reply.array(2);
    reply.integer(local);
    reply.integer(0);
}

fn reply_none(reply: &mut Reply) {
    reply_counts(reply, 0);
}

fn reply_local(reply: &mut Reply) {
    reply_counts(reply, 1);
}

/// WAITAOF.
fn wait_for_disks(execution: &mut Execution<'_>) -> SessionResult {
    let Execution { executor, client, args, reply, .. } = execution;
    let (local, replicas) = (integer(*args, 1)?, integer(*args, 2)?);
    let journal = &executor.server.journal;
    let record = executor.last_record.max(client.last_record);
    let is_durable = journal.is_on() && record <= journal.durable();
    if replicas == 0 && (local == 0 || is_durable) {
        reply_counts(reply, i64::from(is_durable));
        return Ok(Outcome::Done);
    }
    if replicas > 0 {
        return wait(execution, 3, if is_durable { reply_local } else { reply_none });
    }
    let outcome = wait(execution, 3, reply_none)?;
    if let Outcome::Wait(mut blocked) = outcome {
        blocked.durable = Some((record, reply_local));
        return Ok(Outcome::Wait(blocked));
    }
    Ok(outcome)
}

/// The time-out in argument `arg`, in ms; `None` is for ever.
fn timeout_ms(args: ember_protocol::Args<'_>, arg: usize) -> Result<Option<u64>, CommandError> {
    let ms = ember_protocol::number::parse_i64(args.at(arg))
        .ok_or("ERR timeout is not an integer or out of range")?;
    let ms = u64::try_from(ms).map_err(|_| CommandError::from("ERR timeout is negative"))?;
    Ok(Some(ms).filter(|&ms| ms > 0))
}

fn wait(execution: &mut Execution<'_>, timeout_arg: usize, empty_reply: fn(&mut Reply)) -> SessionResult {
    let Execution { executor, client, command, args, reply } = execution;
    if executor.section != Section::Shared {
        empty_reply(reply);
        return Ok(Outcome::Done);
    }
    let wait = Wait { timeout_ms: timeout_ms(*args, timeout_arg)?, empty_reply, instead: None };
    let mut blocked = executor.enlist(command, wait, *args, client, &mut Guards::None, reply);
    blocked.on_timeout = empty_reply;
    Ok(Outcome::Wait(blocked))
}
