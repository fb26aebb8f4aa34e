//! The specifications of the generic and keyspace-wide commands, as `COMMAND INFO` of redis-server 7.0.15 shows them.

use emberkv_core::call::DataCommand;
use emberkv_core::commands::FAMILIES;
use emberkv_core::spec::{Category, Group};

/// The name, arity, flags, (first key, last key, step), ACL categories, tips, and key flags of a command.
type Facts = (&'static str, i32, &'static str, (i64, i64, i64), &'static str, &'static str, &'static str);

const FACTS: &[Facts] = &[
    ("copy", -3, "write denyoom", (1, 2, 1), "keyspace write slow", "", "RO access | OW update"),
    (
        "del",
        -2,
        "write",
        (1, -1, 1),
        "keyspace write slow",
        "request_policy:multi_shard response_policy:agg_sum",
        "RM delete",
    ),
    (
        "unlink",
        -2,
        "write fast",
        (1, -1, 1),
        "keyspace write fast",
        "request_policy:multi_shard response_policy:agg_sum",
        "RM delete",
    ),
    (
        "exists",
        -2,
        "readonly fast",
        (1, -1, 1),
        "keyspace read fast",
        "request_policy:multi_shard response_policy:agg_sum",
        "RO",
    ),
    ("expire", -3, "write fast", (1, 1, 1), "keyspace write fast", "", "RW update"),
    ("pexpire", -3, "write fast", (1, 1, 1), "keyspace write fast", "", "RW update"),
    ("expireat", -3, "write fast", (1, 1, 1), "keyspace write fast", "", "RW update"),
    ("pexpireat", -3, "write fast", (1, 1, 1), "keyspace write fast", "", "RW update"),
    ("expiretime", 2, "readonly fast", (1, 1, 1), "keyspace read fast", "", "RO access"),
    ("pexpiretime", 2, "readonly fast", (1, 1, 1), "keyspace read fast", "", "RO access"),
    ("ttl", 2, "readonly fast", (1, 1, 1), "keyspace read fast", "nondeterministic_output", "RO access"),
    ("pttl", 2, "readonly fast", (1, 1, 1), "keyspace read fast", "nondeterministic_output", "RO access"),
    ("persist", 2, "write fast", (1, 1, 1), "keyspace write fast", "", "RW update"),
    (
        "keys",
        2,
        "readonly",
        (0, 0, 0),
        "keyspace read slow dangerous",
        "request_policy:all_shards nondeterministic_output_order",
        "",
    ),
    ("dump", 2, "readonly", (1, 1, 1), "keyspace read slow", "nondeterministic_output", "RO access"),
    ("restore", -4, "write denyoom", (1, 1, 1), "keyspace write slow dangerous", "", "OW update"),
    (
        "restore-asking",
        -4,
        "write denyoom asking",
        (1, 1, 1),
        "keyspace write slow dangerous",
        "",
        "OW update",
    ),
    (
        "sort",
        -2,
        "write denyoom movablekeys",
        (1, 1, 1),
        "write set sortedset list slow dangerous",
        "",
        "RO access | RO access | OW update",
    ),
    (
        "sort_ro",
        -2,
        "readonly movablekeys",
        (1, 1, 1),
        "read set sortedset list slow dangerous",
        "",
        "RO access | RO access",
    ),
    ("lolwut", -1, "readonly fast", (0, 0, 0), "read fast", "", ""),
    ("move", 3, "write fast", (1, 1, 1), "keyspace write fast", "", "RW access update"),
    ("object", -2, "", (0, 0, 0), "slow", "", ""),
    ("object|encoding", 3, "readonly", (2, 2, 1), "keyspace read slow", "nondeterministic_output", "RO"),
    ("object|freq", 3, "readonly", (2, 2, 1), "keyspace read slow", "nondeterministic_output", "RO"),
    ("object|help", 2, "loading stale", (0, 0, 0), "keyspace slow", "", ""),
    ("object|idletime", 3, "readonly", (2, 2, 1), "keyspace read slow", "nondeterministic_output", "RO"),
    ("object|refcount", 3, "readonly", (2, 2, 1), "keyspace read slow", "nondeterministic_output", "RO"),
    (
        "randomkey",
        1,
        "readonly",
        (0, 0, 0),
        "keyspace read slow",
        "request_policy:all_shards nondeterministic_output",
        "",
    ),
    ("rename", 3, "write", (1, 2, 1), "keyspace write slow", "", "RW access delete | OW update"),
    ("renamenx", 3, "write fast", (1, 2, 1), "keyspace write fast", "", "RW access delete | OW insert"),
    (
        "scan",
        -2,
        "readonly",
        (0, 0, 0),
        "keyspace read slow",
        "nondeterministic_output request_policy:special",
        "",
    ),
    (
        "touch",
        -2,
        "readonly fast",
        (1, -1, 1),
        "keyspace read fast",
        "request_policy:multi_shard response_policy:agg_sum",
        "RO",
    ),
    ("type", 2, "readonly fast", (1, 1, 1), "keyspace read fast", "", "RO"),
    (
        "dbsize",
        1,
        "readonly fast",
        (0, 0, 0),
        "keyspace read fast",
        "request_policy:all_shards response_policy:agg_sum",
        "",
    ),
    (
        "flushdb",
        -1,
        "write",
        (0, 0, 0),
        "keyspace write slow dangerous",
        "request_policy:all_shards response_policy:all_succeeded",
        "",
    ),
    (
        "flushall",
        -1,
        "write",
        (0, 0, 0),
        "keyspace write slow dangerous",
        "request_policy:all_shards response_policy:all_succeeded",
        "",
    ),
    ("swapdb", 3, "write fast", (0, 0, 0), "keyspace write fast dangerous", "", ""),
];

fn find(name: &str) -> Option<&'static DataCommand> {
    let mut commands = FAMILIES.iter().copied().flatten().copied().flatten();
    let (name, subname) = name.split_once('|').map_or((name, None), |(name, sub)| (name, Some(sub)));
    let command = commands.find(|command| command.spec.name == name)?;
    match subname {
        None => Some(command),
        Some(subname) => command.subcommands.iter().find(|command| command.spec.name == subname),
    }
}

#[test]
fn every_generic_command_is_in_the_table() {
    let of_group = |command: &&DataCommand| matches!(command.spec.group, Group::Generic | Group::Server);
    for command in FAMILIES.iter().copied().flatten().copied().flatten().filter(of_group) {
        let name = command.spec.name;
        let has_row = |name: &str| FACTS.iter().any(|facts| facts.0 == name);
        assert!(has_row(name), "{name}");
        for subcommand in command.subcommands {
            assert!(has_row(&format!("{name}|{}", subcommand.spec.name)), "{name}|{}", subcommand.spec.name);
        }
    }
}

fn sorted(words: impl IntoIterator<Item = &'static str>) -> Vec<&'static str> {
    let mut words: Vec<&str> = words.into_iter().collect();
    words.sort_unstable();
    words
}

#[test]
fn every_specification_states_the_facts_of_redis() {
    for &(name, arity, flags, range, categories, tips, keys) in FACTS {
        let spec = find(name).unwrap_or_else(|| panic!("{name} is missing")).spec;
        // In ember, KEYS accepts a limit.
        let arity = if name == "keys" { -2 } else { arity };
        assert_eq!(spec.arity, arity, "{name}");
        assert_eq!(sorted(spec.flags.names()), sorted(flags.split_whitespace()), "{name}");
        assert_eq!(spec.legacy_key_range(), range, "{name}");
        let stated = Category::NAMES.iter().filter(|(category, _)| spec.all_categories().contains(*category));
        assert_eq!(sorted(stated.map(|&(_, name)| name)), sorted(categories.split_whitespace()), "{name}");
        assert_eq!(sorted(spec.tips.iter().copied()), sorted(tips.split_whitespace()), "{name}");
        let key_flags: Vec<String> =
            spec.keys.iter().map(|key| key.flags.names().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(key_flags.join(" | "), keys, "{name}");
    }
}
