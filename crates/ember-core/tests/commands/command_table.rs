//! The command table: every specification is complete and consistent, and its example produces the documented reply.

use std::collections::HashSet;

use ember_protocol::{OwnedBatch, Protocol};
use emberkv_core::call::DataCommand;
use emberkv_core::commands::FAMILIES;
use emberkv_core::keyspace::SHARDS;
use emberkv_core::keyspace::shard::fetch_tickets::FetchOrder;
use emberkv_core::local::Local;
use emberkv_core::spec::{Begin, Category, Find, Flags, KeyFlags, Spec};

use crate::support::words::words_of;

/// Returns all commands without subcommands, with their full names: `get`, `object encoding`.
fn all_commands() -> Vec<(String, &'static DataCommand)> {
    let mut all = Vec::new();
    for command in FAMILIES.iter().copied().flatten().copied().flatten() {
        if command.subcommands.is_empty() {
            all.push((command.spec.name.to_string(), command));
        }
        for subcommand in command.subcommands {
            all.push((format!("{} {}", command.spec.name, subcommand.spec.name), subcommand));
        }
    }
    all
}

fn argc_min(spec: &Spec) -> usize {
    spec.arity.unsigned_abs() as usize
}

#[test]
fn names_are_unique_and_in_lower_case() {
    let mut seen = HashSet::new();
    for (name, _) in all_commands() {
        assert_eq!(name, name.to_ascii_lowercase());
        assert!(seen.insert(name.clone()), "{name} is in the table twice");
    }
}

#[test]
fn key_positions_lie_within_the_smallest_call() {
    for (name, command) in all_commands() {
        for (number, keys) in command.spec.keys.iter().enumerate() {
            let Begin::Index(first) = keys.begin else { continue };
            let argc = argc_min(&command.spec);
            // The smallest call may lack the first key of a second key specification, as that of PFMERGE does.
            let end = argc + usize::from(number > 0);
            assert!((1..end).contains(&first), "{name}: {keys:?}");
            if let Find::Range { step, .. } | Find::Counted { step, .. } = keys.find {
                assert!(step > 0, "{name}");
            }
        }
    }
}

#[test]
fn a_call_that_counts_more_keys_than_it_has_is_refused() {
    let mut counted = 0;
    for (name, command) in all_commands() {
        for keys in command.spec.keys {
            let (Begin::Index(begin), Find::Counted { count_at, first, step }) = (keys.begin, keys.find)
            else {
                continue;
            };
            counted += 1;
            let mut words: Vec<String> = name.split(' ').map(str::to_owned).collect();
            words.resize(begin + count_at, "0".to_owned());
            for given in [1, 2, 3] {
                let mut call = words.clone();
                call.push((given + 1).to_string());
                call.resize(begin + first, "0".to_owned());
                call.resize(begin + first + given * step, "k".to_owned());
                let mut local = Local::new(Protocol::Resp2);
                let reply = local.run(&call.iter().map(String::as_bytes).collect::<Vec<_>>());
                assert!(reply.starts_with(b"-"), "{call:?}: {}", reply.escape_ascii());
                assert_eq!(local.turn.counters.changes, 0, "{call:?}");
            }
        }
    }
    assert!(counted > 10, "{counted}");
}

#[test]
fn key_access_of_each_command_agrees_with_its_flags() {
    let changing = KeyFlags::RW | KeyFlags::OW | KeyFlags::RM;
    for (name, command) in all_commands() {
        let spec = &command.spec;
        let changes = spec.keys.iter().any(|keys| keys.flags.intersects(changing));
        // PFCOUNT reads its key, but caches the result in it, which the notes of its key specification mention.
        let remarks =
            spec.flags.contains(Flags::READONLY) && spec.keys.iter().all(|keys| keys.notes.is_some());
        // XREADGROUP only reads its keys according to their flags, but changes the state of the group.
        let is_aside = name == "xreadgroup";
        if !spec.keys.is_empty() && !remarks && !is_aside {
            assert_eq!(changes, spec.flags.contains(Flags::WRITE), "{name}");
        }
        assert!(!spec.flags.contains(Flags::WRITE | Flags::READONLY), "{name}");
        let kinds = KeyFlags::RO | changing;
        assert!(spec.keys.iter().all(|keys| (keys.flags & kinds).bits().count_ones() == 1), "{name}");
    }
}

/// The ACL check of databases depends on these positions.
#[test]
fn commands_that_name_databases_declare_the_position() {
    for (name, command) in all_commands() {
        let mut words = command.spec.syntax.split(' ').map(|word| word.trim_matches(['[', ']']));
        let names_one = words.any(|word| ["destination-db", "db", "index1"].contains(&word));
        assert_eq!(command.spec.databases_of.is_some(), names_one, "{name}");
    }
    for (line, databases) in [
        ("COPY a b", &[][..]),
        ("COPY DB db REPLACE DB 5", &[5]),
        ("COPY a b db 1 DB 2", &[4, 6]),
        ("COPY a b REPLACE DB", &[]),
        ("MOVE a 5", &[2]),
        ("SWAPDB 1 2", &[1, 2]),
    ] {
        let mut call = OwnedBatch::new();
        let words = words_of(line);
        call.push(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let name = line.split(' ').next().unwrap().to_ascii_lowercase();
        let (_, command) = all_commands().into_iter().find(|(known, _)| *known == name).unwrap();
        assert_eq!((command.spec.databases_of.unwrap())(call.command(0)), databases, "{line}");
    }
}

#[test]
fn every_command_is_documented() {
    for (name, command) in all_commands() {
        let spec = &command.spec;
        assert!(spec.summary.ends_with('.') && spec.summary.len() > 10, "{name}: summary");
        assert!(!spec.since.is_empty() && !spec.complexity.is_empty(), "{name}: since, complexity");
        let words = name.split(' ').count();
        assert_eq!(
            spec.syntax.is_empty(),
            spec.arity.unsigned_abs() as usize == words && spec.arity > 0,
            "{name}: syntax"
        );
        assert!(
            spec.history.iter().all(|(version, text)| !version.is_empty() && text.ends_with('.')),
            "{name}"
        );
        assert!(spec.example.call.to_ascii_lowercase().starts_with(&name), "{name}: example");
    }
}

#[test]
fn every_example_gives_its_documented_reply() {
    examples_are_true(false, Residency::Resident);
}

#[test]
fn every_example_holds_on_borrowed_values() {
    examples_are_true(true, Residency::Resident);
}

#[test]
fn every_example_holds_with_cold_values() {
    examples_are_true(false, Residency::Cold);
}

#[test]
fn every_example_holds_while_values_are_fetched() {
    examples_are_true(false, Residency::InFlight);
}

#[test]
fn every_example_holds_on_borrowed_values_that_were_cold() {
    examples_are_true(true, Residency::Cold);
}

/// The residency of the values that an example uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Residency {
    Resident,
    Cold,
    /// The values are cold, and another client has requested them.
    InFlight,
}

/// Demotes all values that may be demoted; with `InFlight`, also requests them and returns the orders.
fn demote_all(local: &mut Local, residency: Residency) -> Vec<FetchOrder> {
    let mut orders = Vec::new();
    if residency == Residency::Resident {
        return orders;
    }
    let selected = local.database;
    for database in 0..local.keyspace.databases() {
        local.database = database;
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for shard in 0..SHARDS {
            let data = local.keyspace.lock(shard);
            keys.extend(data.database(database).table().iter().map(|entry| entry.key().to_vec()));
        }
        for key in keys {
            let is_cold = local.demote(&key);
            if is_cold && residency == Residency::InFlight {
                orders.extend(local.begin_fetch(database, &key));
            }
        }
    }
    local.database = selected;
    orders
}

fn examples_are_true(borrows_values: bool, residency: Residency) {
    for (name, command) in all_commands() {
        let mut local = Local::new(Protocol::Resp2);
        (local.borrows_values, local.turn.settings.short_call_steps) = (borrows_values, 0);
        let example = &command.spec.example;
        for given in example.given {
            let reply = run(&mut local, given);
            assert!(!reply.starts_with("(error)"), "{name}: {given}: {reply}");
        }
        for order in demote_all(&mut local, residency) {
            local.expect_arrival(order);
        }
        let reply = run(&mut local, example.call);
        // An example may omit the end of a long reply.
        match example.reply.strip_suffix("...") {
            Some(beginning) => assert!(reply.starts_with(beginning), "{name}: {}: {reply}", example.call),
            None => assert_eq!(reply, example.reply, "{name}: {}", example.call),
        }
        local.keyspace.check_invariants();
    }
}

/// `COMMAND INFO` of Redis 7.0.15: name, arity, flags, the legacy key range, ACL categories, the flags of each key
/// specification, tips. Redis lists categories in another order, so the test compares them as sets.
type Golden = (&'static str, i32, &'static str, (i64, i64, i64), &'static str, &'static str, &'static str);

#[test]
fn command_facts_equal_those_of_redis() {
    let all = all_commands();
    for (name, arity, flags, key_range, categories, key_flags, tips) in GOLDEN {
        let (_, command) = all.iter().find(|(found, _)| found == name).expect(name);
        let spec = &command.spec;
        assert_eq!(spec.arity, *arity, "{name}");
        assert_eq!(spec.flags.names().collect::<Vec<_>>().join(" "), *flags, "{name}");
        assert_eq!(spec.legacy_key_range(), *key_range, "{name}");
        let found = Category::NAMES.iter().filter(|(category, _)| spec.all_categories().contains(*category));
        let found: HashSet<&str> = found.map(|&(_, name)| name).collect();
        assert_eq!(found, categories.split(' ').collect(), "{name}");
        let found: Vec<String> =
            spec.keys.iter().map(|keys| keys.flags.names().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(found.join(" / "), *key_flags, "{name}");
        assert_eq!(spec.tips.join(" "), *tips, "{name}");
    }
}

/// The key flags of commands that move an element of a list.
const MOVES: &str = "RW access delete / RW insert";

const GOLDEN: &[Golden] = &[
    ("append", 3, "write denyoom fast", (1, 1, 1), "write string fast", "RW insert", ""),
    ("decr", 2, "write denyoom fast", (1, 1, 1), "write string fast", "RW access update", ""),
    ("decrby", 3, "write denyoom fast", (1, 1, 1), "write string fast", "RW access update", ""),
    ("get", 2, "readonly fast", (1, 1, 1), "read string fast", "RO access", ""),
    ("getdel", 2, "write fast", (1, 1, 1), "write string fast", "RW access delete", ""),
    ("getex", -2, "write fast", (1, 1, 1), "write string fast", "RW access update", ""),
    ("getrange", 4, "readonly", (1, 1, 1), "read string slow", "RO access", ""),
    ("getset", 3, "write denyoom fast", (1, 1, 1), "write string fast", "RW access update", ""),
    ("incr", 2, "write denyoom fast", (1, 1, 1), "write string fast", "RW access update", ""),
    ("incrby", 3, "write denyoom fast", (1, 1, 1), "write string fast", "RW access update", ""),
    ("incrbyfloat", 3, "write denyoom fast", (1, 1, 1), "write string fast", "RW access update", ""),
    ("lcs", -3, "readonly", (1, 2, 1), "read string slow", "RO access", ""),
    ("mget", -2, "readonly fast", (1, -1, 1), "read string fast", "RO access", "request_policy:multi_shard"),
    (
        "mset",
        -3,
        "write denyoom",
        (1, -1, 2),
        "write string slow",
        "OW update",
        "request_policy:multi_shard response_policy:all_succeeded",
    ),
    (
        "msetnx",
        -3,
        "write denyoom",
        (1, -1, 2),
        "write string slow",
        "OW insert",
        "request_policy:multi_shard response_policy:agg_min",
    ),
    ("psetex", 4, "write denyoom", (1, 1, 1), "write string slow", "OW update", ""),
    ("set", -3, "write denyoom", (1, 1, 1), "write string slow", "RW access update variable_flags", ""),
    ("setex", 4, "write denyoom", (1, 1, 1), "write string slow", "OW update", ""),
    ("setnx", 3, "write denyoom fast", (1, 1, 1), "write string fast", "OW insert", ""),
    ("setrange", 4, "write denyoom", (1, 1, 1), "write string slow", "RW update", ""),
    ("strlen", 2, "readonly fast", (1, 1, 1), "read string fast", "RO", ""),
    ("substr", 4, "readonly", (1, 1, 1), "read string slow", "RO access", ""),
    ("bitcount", -2, "readonly", (1, 1, 1), "read bitmap slow", "RO access", ""),
    ("bitfield", -2, "write denyoom", (1, 1, 1), "write bitmap slow", "RW access update variable_flags", ""),
    ("bitfield_ro", -2, "readonly fast", (1, 1, 1), "read bitmap fast", "RO access", ""),
    ("bitop", -4, "write denyoom", (2, -1, 1), "write bitmap slow", "OW update / RO access", ""),
    ("bitpos", -3, "readonly", (1, 1, 1), "read bitmap slow", "RO access", ""),
    ("getbit", 3, "readonly fast", (1, 1, 1), "read bitmap fast", "RO access", ""),
    ("setbit", 4, "write denyoom", (1, 1, 1), "write bitmap slow", "RW access update", ""),
    ("blmove", 6, "write denyoom blocking", (1, 2, 1), "write list slow blocking", MOVES, ""),
    (
        "blmpop",
        -5,
        "write blocking movablekeys",
        (0, 0, 0),
        "write list slow blocking",
        "RW access delete",
        "",
    ),
    ("blpop", -3, "write blocking", (1, -2, 1), "write list slow blocking", "RW access delete", ""),
    ("brpop", -3, "write blocking", (1, -2, 1), "write list slow blocking", "RW access delete", ""),
    ("brpoplpush", 4, "write denyoom blocking", (1, 2, 1), "write list slow blocking", MOVES, ""),
    ("lindex", 3, "readonly", (1, 1, 1), "read list slow", "RO access", ""),
    ("linsert", 5, "write denyoom", (1, 1, 1), "write list slow", "RW insert", ""),
    ("llen", 2, "readonly fast", (1, 1, 1), "read list fast", "RO", ""),
    ("lmove", 5, "write denyoom", (1, 2, 1), "write list slow", MOVES, ""),
    ("lmpop", -4, "write movablekeys", (0, 0, 0), "write list slow", "RW access delete", ""),
    ("lpop", -2, "write fast", (1, 1, 1), "write list fast", "RW access delete", ""),
    ("lpos", -3, "readonly", (1, 1, 1), "read list slow", "RO access", ""),
    ("lpush", -3, "write denyoom fast", (1, 1, 1), "write list fast", "RW insert", ""),
    ("lpushx", -3, "write denyoom fast", (1, 1, 1), "write list fast", "RW insert", ""),
    ("lrange", 4, "readonly", (1, 1, 1), "read list slow", "RO access", ""),
    ("lrem", 4, "write", (1, 1, 1), "write list slow", "RW delete", ""),
    ("lset", 4, "write denyoom", (1, 1, 1), "write list slow", "RW update", ""),
    ("ltrim", 4, "write", (1, 1, 1), "write list slow", "RW delete", ""),
    ("rpop", -2, "write fast", (1, 1, 1), "write list fast", "RW access delete", ""),
    ("rpoplpush", 3, "write denyoom", (1, 2, 1), "write list slow", MOVES, ""),
    ("rpush", -3, "write denyoom fast", (1, 1, 1), "write list fast", "RW insert", ""),
    ("rpushx", -3, "write denyoom fast", (1, 1, 1), "write list fast", "RW insert", ""),
    ("hdel", -3, "write fast", (1, 1, 1), "write hash fast", "RW delete", ""),
    ("hexists", 3, "readonly fast", (1, 1, 1), "read hash fast", "RO", ""),
    ("hget", 3, "readonly fast", (1, 1, 1), "read hash fast", "RO access", ""),
    ("hgetall", 2, "readonly", (1, 1, 1), "read hash slow", "RO access", "nondeterministic_output_order"),
    ("hincrby", 4, "write denyoom fast", (1, 1, 1), "write hash fast", "RW access update", ""),
    ("hincrbyfloat", 4, "write denyoom fast", (1, 1, 1), "write hash fast", "RW access update", ""),
    ("hkeys", 2, "readonly", (1, 1, 1), "read hash slow", "RO access", "nondeterministic_output_order"),
    ("hlen", 2, "readonly fast", (1, 1, 1), "read hash fast", "RO", ""),
    ("hmget", -3, "readonly fast", (1, 1, 1), "read hash fast", "RO access", ""),
    ("hmset", -4, "write denyoom fast", (1, 1, 1), "write hash fast", "RW update", ""),
    ("hrandfield", -2, "readonly", (1, 1, 1), "read hash slow", "RO access", "nondeterministic_output"),
    ("hscan", -3, "readonly", (1, 1, 1), "read hash slow", "RO access", "nondeterministic_output"),
    ("hset", -4, "write denyoom fast", (1, 1, 1), "write hash fast", "RW update", ""),
    ("hsetnx", 4, "write denyoom fast", (1, 1, 1), "write hash fast", "RW insert", ""),
    ("hstrlen", 3, "readonly fast", (1, 1, 1), "read hash fast", "RO", ""),
    ("hvals", 2, "readonly", (1, 1, 1), "read hash slow", "RO access", "nondeterministic_output_order"),
];

fn run(local: &mut Local, line: &str) -> String {
    let words = words_of(line);
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let reply = local.run(&words);
    let mut rest = &reply[..];
    let text = render(&mut rest, 0);
    assert!(rest.is_empty(), "{line}: more than one reply");
    text
}

/// Removes one reply from `rest` and formats it as redis-cli does; lines after the first are indented by `indent`.
fn render(rest: &mut &[u8], indent: usize) -> String {
    let line = take_line(rest);
    let number = || line[1..].parse::<i64>().expect("a length or an integer");
    match line.as_bytes()[0] {
        b'+' => line[1..].to_string(),
        b'-' => format!("(error) {}", &line[1..]),
        b':' => format!("(integer) {}", number()),
        b'$' | b'*' if number() < 0 => "(nil)".to_string(),
        b'$' => {
            let (value, after) = rest.split_at(number() as usize);
            *rest = after.strip_prefix(b"\r\n").expect("a bulk string ends with its line");
            quote(value)
        }
        b'*' if number() == 0 => "(empty array)".to_string(),
        b'*' => {
            let count = number();
            let width = count.to_string().len();
            let lines = (1..=count).map(|index| {
                let pad = if index == 1 { 0 } else { indent };
                format!("{:pad$}{index:width$}) {}", "", render(rest, indent + width + 2))
            });
            lines.collect::<Vec<_>>().join("\n")
        }
        other => panic!("{} is no reply of RESP2", char::from(other)),
    }
}

fn take_line(rest: &mut &[u8]) -> String {
    let end = rest.windows(2).position(|pair| pair == b"\r\n").expect("a reply ends with its line");
    let line = String::from_utf8(rest[..end].to_vec()).expect("a reply's first line is text");
    *rest = &rest[end + 2..];
    line
}

fn quote(bytes: &[u8]) -> String {
    let escape = |&byte: &u8| match byte {
        b'"' => "\\\"".to_string(),
        b'\\' => "\\\\".to_string(),
        b'\n' => "\\n".to_string(),
        b'\r' => "\\r".to_string(),
        b'\t' => "\\t".to_string(),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    format!("\"{}\"", bytes.iter().map(escape).collect::<String>())
}
