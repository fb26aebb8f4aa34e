//! PSYNC, SYNC and REPLCONF: requests of a replica to its primary.

use ember_cluster::node::DataSet;
use ember_protocol::Args;
use ember_protocol::number::parse_i64;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::clients::replica::{Contents, EMBER_CAPABILITY, NODE_DATA, Program};
use crate::executor::session::{Execution, Outcome, ServerCommand, Session, SessionResult};
use crate::replication::failover;
use crate::replication::primary::Primary;
use crate::replication::primary::attaching::{self, Held};

/// The length of a replication ID in hexadecimal digits.
const ID_BYTES: usize = 40;

const TEMPLATE: Spec = Spec {
    group: Group::Server,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING).union(Flags::NO_MULTI),
    ..Spec::DEFAULT
};

pub(super) const COMMANDS: &[ServerCommand] = &[
    Command::new(
        Spec {
            name: "psync",
            summary: "Turns the connection into the link of a replica: a partial sync from an offset, or a full \
                      sync.",
            since: "2.8.0",
            complexity: "O(1); a full sync is O(N) for N keys, in the background.",
            arity: -3,
            syntax: "replicationid offset [FAILOVER]@6.2.0",
            example: Example { given: &[], call: "PSYNC ? -1", reply: "..." },
            ..TEMPLATE
        },
        Some(|_| Ok(Outcome::Continue(psync))),
    ),
    Command::new(
        Spec {
            name: "sync",
            summary: "Turns the connection into the link of a replica and starts a full sync, as before version 2.8.",
            since: "1.0.0",
            complexity: "O(1); a full sync is O(N) for N keys, in the background.",
            arity: 1,
            example: Example { given: &[], call: "SYNC", reply: "..." },
            ..TEMPLATE
        },
        Some(|_| Ok(Outcome::Continue(|execution| attaching::attach(execution, None, true)))),
    ),
    Command::new(
        Spec {
            name: "replconf",
            summary: "Sends a replica's properties and its offset to its primary.",
            since: "3.0.0",
            complexity: "O(1)",
            arity: -1,
            is_system: true,
            flags: Flags::ADMIN
                .union(Flags::NOSCRIPT)
                .union(Flags::LOADING)
                .union(Flags::STALE)
                .union(Flags::ALLOW_BUSY),
            example: Example { given: &[], call: "REPLCONF listening-port 6380", reply: "OK" },
            ..TEMPLATE
        },
        Some(replconf),
    ),
];

fn psync(execution: &mut Execution<'_>) -> SessionResult {
    let args = execution.args;
    let offset = parse_i64(args.at(2)).ok_or("ERR value is not an integer or out of range")?;
    let id = std::str::from_utf8(args.at(1)).ok().filter(|id| id.len() == ID_BYTES);
    // The requested offset is that of the first byte that the replica needs, counted from 1.
    let position = offset.checked_sub(1).and_then(|position| u64::try_from(position).ok());
    let held = id.zip(position).map(|(id, position)| Held { id, position });
    if args.get(3).is_some_and(|word| word.eq_ignore_ascii_case(b"failover")) {
        let id = String::from_utf8_lossy(args.at(1));
        failover::take_over(execution.executor, execution.client.view.id, &id)?;
    }
    attaching::attach(execution, held, false)
}

fn replconf(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    if args.len().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    for arg in (1..args.len()).step_by(2) {
        let value = args.at(arg + 1);
        if is_word(args, arg, "ACK") {
            acknowledge(session, arg)?;
            return Ok(Outcome::Done);
        } else if is_word(args, arg, "GETACK") {
            // GETACK is meant for replicas; a primary ignores it.
            return Ok(Outcome::Done);
        }
        let replica = session.client.replica.get_or_insert_default();
        if is_word(args, arg, "LISTENING-PORT") {
            let port = parse_i64(value).and_then(|port| u16::try_from(port).ok());
            replica.port = port.ok_or("ERR value is not an integer or out of range")?;
        } else if is_word(args, arg, "IP-ADDRESS") {
            let address = std::str::from_utf8(value).ok().filter(|address| address.len() <= 255);
            replica.address =
                address.ok_or("ERR REPLCONF ip-address provided by replica instance is too long")?.into();
        } else if is_word(args, arg, "CAPA") {
            replica.knows_new_names |= value.eq_ignore_ascii_case(b"psync2");
            replica.knows_marks |= value.eq_ignore_ascii_case(b"eof");
            replica.program = replica.program.or(program_with(value));
        } else if is_word(args, arg, "RDB-ONLY") {
            replica.is_copy_only = match parse_i64(value) {
                Some(number @ (0 | 1)) => number == 1,
                Some(_) => return Err("ERR value is out of range, value must between 0 and 1".into()),
                None => return Err("ERR value is not an integer or out of range".into()),
            };
        } else if is_word(args, arg, "RDB-FILTER-ONLY") {
            replica.contents = contents(value)?;
        } else if is_word(args, arg, NODE_DATA) {
            let data = std::str::from_utf8(value).ok().and_then(|word| DataSet::parse(word).ok());
            replica.data = Some(data.ok_or("ERR invalid node or number of its data")?);
        } else if is_word(args, arg, "VERSION") {
            replica.program = replica.program.or(program_of_version(value));
        } else {
            return Err(CommandError::quoting("ERR Unrecognized REPLCONF option: ", args.at(arg), ""));
        }
    }
    session.reply.ok();
    Ok(Outcome::Done)
}

/// Returns the program of a replica that announces this capability.
fn program_with(capability: &[u8]) -> Program {
    match capability {
        EMBER_CAPABILITY => Program::Ember,
        // Redis 8 introduced full syncs over a separate connection.
        b"rdb-channel-repl" => Program::Redis8,
        _ => Program::Unknown,
    }
}

/// Returns the program of a replica that announces its version, as Valkey does from 8.0 on.
fn program_of_version(version: &[u8]) -> Program {
    let major = version.split(|&byte| byte == b'.').next().and_then(parse_i64);
    if major.is_some_and(|major| major >= 9) { Program::Valkey9 } else { Program::Unknown }
}

/// Returns the contents of a full sync that REPLCONF rdb-filter-only selects. The only supported part is `functions`.
fn contents(parts: &[u8]) -> Result<Contents, CommandError> {
    let mut contents = Contents::Nothing;
    for part in parts.split(u8::is_ascii_whitespace).filter(|part| !part.is_empty()) {
        if !part.eq_ignore_ascii_case(b"functions") {
            return Err(CommandError::quoting("ERR Unsupported rdb-filter-only option: ", part, ""));
        }
        contents = Contents::Functions;
    }
    Ok(contents)
}

/// Handles `REPLCONF ACK offset [FACK offset]`, which has no reply.
fn acknowledge(session: &mut Session<'_>, arg: usize) -> Result<(), CommandError> {
    let args: Args<'_> = session.args;
    let number = |at: usize| parse_i64(args.at(at)).and_then(|number| u64::try_from(number).ok());
    let wrong = || CommandError::from("ERR value is not an integer or out of range");
    let position = number(arg + 1).ok_or_else(wrong)?;
    let has_durable = arg + 3 < args.len() && is_word(args, arg + 2, "FACK");
    let durable = if has_durable { Some(number(arg + 3).ok_or_else(wrong)?) } else { None };
    let (server, id) = (session.server, session.client.view.id);
    Primary::of(server).acknowledge(server, id, position, durable, session.turn.now_ms);
    Ok(())
}
