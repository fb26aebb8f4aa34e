//! DEBUG: what tests and developers need, closed unless `enable-debug-command` opens it.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use ember_protocol::number::parse_i64;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::glob::{self, Case};
use emberkv_core::keyspace::SHARDS;
use emberkv_core::keyspace::entry::{EntryRef, NewValue};
use emberkv_core::rdb;
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};
use emberkv_core::types::limits::EncodingLimits;
use emberkv_core::types::list::NodeView;
use emberkv_core::types::{Aggregate, Collection};

use super::digest::Digest;
use crate::catalogue::registry::wrong_subcommand;
use crate::commands::help::reply_help;
use crate::config::DebugCommand;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

const REFUSED: &str = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can \
                       run it from a local connection, otherwise you need to set this option in the configuration \
                       file, and then restart the server.";

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "debug",
        is_system: true,
        summary: "Holds commands for tests and developers.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "Depends on the subcommand.",
        arity: -2,
        flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
        example: Example {
            given: &[],
            call: "DEBUG SLEEP 0",
            reply: "(error) ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you \
                    can run it from a local connection, otherwise you need to set this option in the configuration \
                    file, and then restart the server.",
        },
        ..Spec::DEFAULT
    },
    Some(debug),
)];

const HELP: &[&str] = &[
    "DIGEST",
    "    Tell a signature of all data: equal data has equal signatures.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    Tell signatures of the values of keys.",
    "ERROR <string>",
    "    Answer <string> as an error.",
    "HTSTATS <dbid>",
    "    Tell about the tables of a database.",
    "HTSTATS-KEY <key>",
    "    Tell about the table that is the value of <key>.",
    "LOG <message>",
    "    Write <message> to the log.",
    "OBJECT <key>",
    "    Tell how <key> and its value are kept.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Make <count> strings whose keys are <prefix>:0, <prefix>:1, … (default: key),",
    "    of <size> bytes each. Keys that exist stay as they are.",
    "PROTOCOL (STRING|INTEGER|DOUBLE|BIGNUM|NULL|ARRAY|SET|MAP|ATTRIB|PUSH|VERBATIM|TRUE|FALSE)",
    "    Answer a value of this type.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Whether keys expire before somebody asks for them.",
    "SLEEP <seconds>",
    "    Let nobody access the data for <seconds>; decimals are allowed.",
    "STRINGMATCH-LEN <pattern> <string>",
    "    Tell whether a glob-like <pattern> matches <string>.",
];

/// A subcommand, the least and the greatest number of arguments after it, and what runs it.
type Subcommand = (&'static str, usize, usize, fn(&mut Session<'_>) -> SessionResult);

const SUBCOMMANDS: &[Subcommand] = &[
    ("DIGEST", 0, 0, digest),
    ("DIGEST-VALUE", 0, usize::MAX, digest_value),
    ("ERROR", 1, 1, error),
    ("HELP", 0, 0, |session| reply_help(session, HELP)),
    ("HTSTATS", 1, 2, htstats),
    ("HTSTATS-KEY", 1, 2, htstats_key),
    ("LOG", 1, 1, log),
    ("OBJECT", 1, 2, object),
    ("POPULATE", 1, 3, populate),
    ("PROTOCOL", 1, 1, protocol),
    ("SET-ACTIVE-EXPIRE", 1, 1, set_active_expire),
    ("SLEEP", 1, 1, sleep),
    ("STRINGMATCH-LEN", 2, 2, stringmatch_len),
];

fn debug(session: &mut Session<'_>) -> SessionResult {
    let is_allowed = match session.server.config.snapshot().enable_debug_command {
        DebugCommand::No => false,
        DebugCommand::Yes => true,
        DebugCommand::Local => session.client.view.peer.is_loopback(),
    };
    if !is_allowed {
        return Err(REFUSED.into());
    }
    let arguments = session.args.len() - 2;
    let found = SUBCOMMANDS
        .iter()
        .find(|(name, min, max, _)| is_word(session.args, 1, name) && (*min..=*max).contains(&arguments));
    match found {
        Some((_, _, _, run)) => run(session),
        None => Err(wrong_subcommand("DEBUG", session.args.at(1))),
    }
}

/// A longer sleep is a mistake: nothing but a signal would end it.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

fn sleep(session: &mut Session<'_>) -> SessionResult {
    let seconds = ember_protocol::number::parse_f64(session.args.at(2)).unwrap_or(0.0);
    let duration = Duration::try_from_secs_f64(seconds).unwrap_or_default().min(SLEEP_MAX);
    let keyspace = &session.server.keyspace;
    let guards = keyspace.lock_all();
    thread::sleep(duration);
    keyspace.release_all(guards);
    session.reply.ok();
    Ok(Outcome::Done)
}

fn set_active_expire(session: &mut Session<'_>) -> SessionResult {
    let is_on = parse_i64(session.args.at(2)).is_some_and(|number| number != 0);
    session.server.expires_actively.store(is_on, Ordering::Relaxed);
    session.reply.ok();
    Ok(Outcome::Done)
}

fn stringmatch_len(session: &mut Session<'_>) -> SessionResult {
    let matches = glob::matches(session.args.at(2), session.args.at(3), Case::Sensitive);
    session.reply.integer(i64::from(matches));
    Ok(Outcome::Done)
}

fn error(session: &mut Session<'_>) -> SessionResult {
    Err(CommandError::Bytes(session.args.at(2).to_vec()))
}

fn log(session: &mut Session<'_>) -> SessionResult {
    tracing::warn!("DEBUG LOG: {}", String::from_utf8_lossy(session.args.at(2)));
    session.reply.ok();
    Ok(Outcome::Done)
}

/// Looks at the entry of a key that is there and has not expired.
fn with_entry<R>(session: &Session<'_>, key: &[u8], look: impl FnOnce(EntryRef<'_>) -> R) -> Option<R> {
    let keyspace = &session.server.keyspace;
    let database = session.client.database;
    let hash = keyspace.hash(key);
    let data = keyspace.lock(hash.shard());
    let entry = data.find(database, hash, key).map(|at| data.entry(database, at));
    entry.filter(|entry| !entry.is_expired(session.turn.now_ms)).map(look)
}

/// The bytes of a payload of DUMP that are not the value's: its kind, version and checksum.
const PAYLOAD_FRAME_BYTES: usize = 11;

fn object(session: &mut Session<'_>) -> SessionResult {
    let key = session.args.at(2);
    let hash = session.server.keyspace.hash(key);
    let line = with_entry(session, key, |entry| {
        // Where Redis tells an address, this tells shard and tag: enough to see whether two keys are neighbours.
        format!(
            "Value at:0x{:03x}{:05x} refcount:1 encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{}{}",
            hash.shard(),
            hash.tag(),
            entry.encoding_name(),
            rdb::dump(entry).len() - PAYLOAD_FRAME_BYTES,
            entry.clock(),
            session.turn.idle_seconds(entry.clock()),
            nodes_line(entry, &session.turn.settings.encoding),
        )
    });
    session.reply.simple(&line.ok_or(CommandError::NoSuchKey)?);
    Ok(Outcome::Done)
}

/// What more there is to tell of a list of several nodes.
fn nodes_line(entry: EntryRef<'_>, limits: &EncodingLimits) -> String {
    let Some(Aggregate::List(list)) = entry.aggregate() else { return String::new() };
    if list.encoding_name() != "quicklist" {
        return String::new();
    }
    let (mut nodes, mut bytes) = (0, 0);
    for node in list.nodes() {
        nodes += 1;
        bytes += match node {
            NodeView::Packed(listpack) => listpack.len_bytes(),
            NodeView::Large(element) => element.len(),
        };
    }
    let average = list.len() as f64 / f64::from(nodes);
    format!(
        " ql_nodes:{nodes} ql_avg_node:{average:.2} ql_listpack_max:{} ql_compressed:{} \
         ql_uncompressed_size:{bytes}",
        limits.list_max_listpack_size,
        u8::from(limits.list_compress_depth != 0),
    )
}

fn htstats(session: &mut Session<'_>) -> SessionResult {
    let keyspace = &session.server.keyspace;
    let database = parse_i64(session.args.at(2)).ok_or(CommandError::NotInteger)?;
    let database = usize::try_from(database).ok().filter(|&database| database < keyspace.databases());
    let database = database.ok_or("ERR Out of range database")?;
    let (mut slots, mut keys, mut volatile, mut fullest) = (0, 0, 0, 0);
    for shard in 0..SHARDS {
        let data = keyspace.lock(shard);
        let data = data.database(database);
        slots += data.table().capacity();
        keys += data.table().len();
        volatile += data.volatile();
        fullest = fullest.max(data.table().len());
    }
    let text = format!(
        "[Dictionary HT]\nHash table 0 stats (main hash table):\n table size: {slots}\n number of elements: {keys}\n \
         shards: {SHARDS}\n elements in the fullest shard: {fullest}\n[Expires HT]\nHash table 0 stats (main hash \
         table):\n number of elements: {volatile}\n"
    );
    session.reply.verbatim(b"txt", text.as_bytes());
    Ok(Outcome::Done)
}

fn htstats_key(session: &mut Session<'_>) -> SessionResult {
    let found = with_entry(session, session.args.at(2), |entry| {
        let is_table = matches!(entry.encoding_name(), "hashtable" | "skiplist");
        entry.aggregate().filter(|_| is_table).map(Aggregate::len)
    });
    let elements = found
        .ok_or(CommandError::NoSuchKey)?
        .ok_or("ERR The value stored at the specified key is not represented using an hash table")?;
    let text = format!("Hash table 0 stats (main hash table):\n number of elements: {elements}\n");
    session.reply.verbatim(b"txt", text.as_bytes());
    Ok(Outcome::Done)
}

/// Keys that one POPULATE makes at most: more than fit into any machine.
const POPULATE_MAX: i64 = 1 << 36;

fn populate(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    let positive = "ERR value is out of range, must be positive";
    let count = parse_i64(args.at(2)).filter(|count| (0..=POPULATE_MAX).contains(count)).ok_or(positive)?;
    let prefix = args.get(3).unwrap_or(b"key");
    let size = match args.get(4) {
        None => 0,
        Some(size) => parse_i64(size).and_then(|size| usize::try_from(size).ok()).ok_or(positive)?,
    };
    if size > session.turn.settings.string_bytes_max {
        return Err(CommandError::StringTooLong);
    }
    let keyspace = &session.server.keyspace;
    let database = session.client.database;
    let clock = session.turn.new_clock();
    for number in 0..count {
        let key = [prefix, format!(":{number}").as_bytes()].concat();
        let mut value = format!("value:{number}").into_bytes();
        if size > 0 {
            value.resize(size, 0);
        }
        let hash = keyspace.hash(&key);
        let mut data = keyspace.lock(hash.shard());
        if data.find(database, hash, &key).is_none() {
            data.insert(database, hash, &key, NewValue::from_bytes(&value), None, clock);
            session.turn.counters.changes += 1;
        }
        keyspace.publish_bytes(keyspace.release(hash.shard(), data));
    }
    session.reply.ok();
    Ok(Outcome::Done)
}

/// The number of a database that has keys comes before them; the order of the keys says nothing.
fn digest(session: &mut Session<'_>) -> SessionResult {
    let keyspace = &session.server.keyspace;
    let now_ms = session.turn.now_ms;
    let mut all = Digest::default();
    let guards = keyspace.lock_all();
    for database in 0..keyspace.databases() {
        let entries = guards.iter().flat_map(|data| data.database(database).table().iter());
        let mut entries = entries.filter(|entry| !entry.is_expired(now_ms)).peekable();
        if entries.peek().is_some() {
            all.mix(&(database as u32).to_be_bytes());
        }
        for entry in entries {
            let mut one = Digest::default();
            one.mix(entry.key());
            one.add_value(entry, now_ms);
            all.combine_digest(&one);
        }
    }
    keyspace.release_all(guards);
    session.reply.simple(&all.text());
    Ok(Outcome::Done)
}

fn digest_value(session: &mut Session<'_>) -> SessionResult {
    let keys = session.args.skip(2);
    let now_ms = session.turn.now_ms;
    session.reply.array(keys.len());
    for key in keys.iter() {
        let mut digest = Digest::default();
        with_entry(session, key, |entry| digest.add_value(entry, now_ms));
        session.reply.simple(&digest.text());
    }
    Ok(Outcome::Done)
}

#[expect(clippy::approx_constant, reason = "what Redis answers")]
fn protocol(session: &mut Session<'_>) -> SessionResult {
    let reply = &mut *session.reply;
    match session.args.at(2).to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.integer(12_345),
        b"double" => reply.double(3.141),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        b"attrib" => {
            if reply.attribute(1) {
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" => {
            if !reply.is_resp3() {
                return Err("ERR RESP2 is not supported by this command".into());
            }
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
            reply.bulk(b"Some real reply following the push reply");
        }
        b"verbatim" => reply.verbatim(b"txt", b"This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        b"bignum" => reply.big_number("1234567999999999999999999999999999999"),
        _ => {
            return Err("ERR Wrong protocol type name. Please use one of the following: \
                        string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false"
                .into());
        }
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_subcommand() {
        for (name, ..) in SUBCOMMANDS.iter().filter(|(name, ..)| *name != "HELP") {
            assert!(HELP.iter().any(|line| line.split(' ').next() == Some(name)), "{name}");
        }
    }
}
