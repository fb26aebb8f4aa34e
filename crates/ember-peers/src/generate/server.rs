//! Commands on the server as a whole.

use super::{Draw, Generator, Step};

pub(super) const COMMANDS: &[Generator] = &[
    Generator { name: "CLUSTER", weight: 4, make: cluster },
    Generator { name: "COMMAND", weight: 15, make: command },
    Generator { name: "CONFIG", weight: 20, make: config },
    Generator { name: "DBSIZE", weight: 5, make: |draw| draw.one("DBSIZE") },
    Generator { name: "DEBUG", weight: 5, make: debug },
    Generator { name: "FLUSHALL", weight: 1, make: |draw| flush(draw, "FLUSHALL") },
    Generator { name: "FLUSHDB", weight: 1, make: |draw| flush(draw, "FLUSHDB") },
    Generator { name: "LATENCY", weight: 4, make: latency },
    Generator { name: "MEMORY", weight: 4, make: memory },
    Generator {
        name: "MODULE",
        weight: 1,
        make: |draw| draw.any(&["MODULE LIST", "MODULE {word}", "MODULE UNLOAD"]),
    },
    Generator { name: "REPLICAOF", weight: 2, make: replicaof },
    Generator { name: "ROLE", weight: 2, make: |draw| draw.any(&["ROLE", "ROLE {word}"]) },
    Generator { name: "SLOWLOG", weight: 4, make: slowlog },
    Generator { name: "SWAPDB", weight: 4, make: |draw| draw.one("SWAPDB {database} {database}") },
];

fn flush(draw: &mut Draw, name: &str) -> Vec<Step> {
    if draw.random.chance(50) {
        let mut words = draw.line(name);
        words.extend(draw.line("{word}"));
        return vec![Step::reply(words)];
    }
    draw.with_options(name, &["ASYNC", "SYNC"], 2)
}

fn command(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "COMMAND GETKEYS SET {key} {value}",
        "COMMAND GETKEYS GET {key}",
        "COMMAND GETKEYS MSET {pairs}",
        "COMMAND GETKEYS MGET {keys}",
        "COMMAND GETKEYS BITOP AND {key} {keys}",
        "COMMAND GETKEYS PING",
        "COMMAND GETKEYS GET",
        "COMMAND GETKEYS nosuchcommand {key}",
        "COMMAND GETKEYS MSET {key}",
        "COMMAND GETKEYS LCS {key} {key}",
        "COMMAND GETKEYS COPY {key} {key}",
        "COMMAND GETKEYS OBJECT ENCODING {key}",
        "COMMAND GETKEYS BITFIELD {key} GET u8 0",
        "COMMAND GETKEYS DEL {keys}",
        "COMMAND GETKEYS MEMORY USAGE {key}",
        "COMMAND GETKEYS CLIENT GETNAME",
        "COMMAND GETKEYSANDFLAGS SET {key} {value}",
        "COMMAND GETKEYSANDFLAGS SET {key} {value} GET",
        "COMMAND GETKEYSANDFLAGS GET {key}",
        "COMMAND GETKEYSANDFLAGS MSET {pairs}",
        "COMMAND GETKEYSANDFLAGS COPY {key} {key}",
        "COMMAND GETKEYSANDFLAGS BITOP OR {key} {keys}",
        "COMMAND GETKEYSANDFLAGS RENAME {key} {key}",
        "COMMAND GETKEYSANDFLAGS DEL {keys}",
        "COMMAND GETKEYSANDFLAGS PING",
        "COMMAND GETKEYSANDFLAGS GETDEL {key}",
        "COMMAND GETKEYSANDFLAGS SET {key} {value} {word}",
        "COMMAND GETKEYSANDFLAGS BITFIELD {key} GET u8 0",
        "COMMAND GETKEYSANDFLAGS BITFIELD {key} OVERFLOW SAT GET u8 0",
        "COMMAND GETKEYSANDFLAGS BITFIELD {key} GET u8 0 SET u8 0 1",
        "COMMAND GETKEYSANDFLAGS BITFIELD {key} {word}",
        "COMMAND GETKEYSANDFLAGS BITFIELD_RO {key} GET u8 0",
        "COMMAND INFO nosuchcommand",
        "COMMAND LIST FILTERBY",
        "COMMAND LIST FILTERBY {word} {word}",
        "COMMAND LIST {word}",
        "COMMAND LIST FILTERBY PATTERN nosuch*",
        "COMMAND LIST FILTERBY MODULE nosuch",
        "COMMAND LIST FILTERBY ACLCAT nosuch",
        "COMMAND LIST FILTERBY PATTERN set",
        "COMMAND LIST FILTERBY PATTERN GETEX",
        "COMMAND DOCS nosuchcommand",
        "COMMAND HELP",
        "COMMAND {word}",
        "COMMAND {word} {word}",
    ])
}

/// Returns CLUSTER commands; neither server is a cluster node.
fn cluster(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "CLUSTER INFO",
        "CLUSTER KEYSLOT {key}",
        "CLUSTER COUNTKEYSINSLOT {integer}",
        "CLUSTER SHARDS",
        "CLUSTER HELP",
        "CLUSTER RESET",
        "CLUSTER {word}",
        "READONLY",
        "READWRITE",
        "ASKING",
    ])
}

/// Returns REPLICAOF commands by which no server becomes a replica.
fn replicaof(draw: &mut Draw) -> Vec<Step> {
    draw.any(&["REPLICAOF NO ONE", "SLAVEOF NO ONE", "REPLICAOF localhost port", "SLAVEOF localhost 65536"])
}

fn config(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "CONFIG GET nosuch",
        "CONFIG GET nosuch*",
        "CONFIG SET nosuch 1",
        "CONFIG SET nosuch",
        "CONFIG GET maxmemory-policy",
        "CONFIG GET MAXMEMORY",
        "CONFIG SET maxmemory-policy noeviction",
        "CONFIG SET maxmemory-policy nosuch",
        "CONFIG SET maxmemory 0",
        "CONFIG SET maxmemory abc",
        "CONFIG SET maxmemory -1",
        "CONFIG SET maxmemory 10gb maxmemory 10gb",
        "CONFIG GET timeout",
        "CONFIG SET timeout 0",
        "CONFIG SET timeout -1",
        "CONFIG SET timeout abc",
        "CONFIG GET slowlog-max-len",
        "CONFIG SET slowlog-max-len 128",
        "CONFIG SET slowlog-max-len abc",
        "CONFIG GET appendonly",
        "CONFIG GET databases",
        "CONFIG SET databases 8",
        "CONFIG SET port",
        "CONFIG GET",
        "CONFIG HELP",
        "CONFIG {word}",
        "CONFIG foo {word}",
        "CONFIG GET save",
        "CONFIG SET tcp-keepalive 300",
        "CONFIG GET tcp-keepalive",
        "CONFIG GET proto-max-bulk-len",
        "CONFIG GET lazyfree-lazy-user-del",
        "CONFIG SET lazyfree-lazy-user-del yes",
        "CONFIG SET lazyfree-lazy-user-del no",
        "CONFIG SET lazyfree-lazy-user-del maybe",
        "CONFIG SET maxmemory-samples 5",
        "CONFIG SET maxmemory-samples 2147483648",
        "CONFIG GET MAXMEMORY maxmemory",
        "CONFIG GET maxmemory MAXMEMORY-P* timeout timeout",
        "CONFIG GET TIMEOUT [t]imeout h?",
        "CONFIG SET maxmemory-samples 0",
        "CONFIG GET maxmemory-samples",
        "CONFIG SET timeout 0 nosuch 1",
        "CONFIG SET timeout 0 maxmemory 0",
        "CONFIG SET timeout 0 timeout 1",
        "CONFIG RESETSTAT",
        "CONFIG RESETSTAT {word}",
    ])
}

fn slowlog(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "SLOWLOG LEN",
        "SLOWLOG RESET",
        "SLOWLOG GET",
        "SLOWLOG GET 5",
        "SLOWLOG GET -1",
        "SLOWLOG GET -2",
        "SLOWLOG GET abc",
        "SLOWLOG HELP",
        "SLOWLOG {word}",
        "SLOWLOG GET 1 2",
        "SLOWLOG RESET {word}",
    ])
}

fn latency(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "LATENCY RESET",
        "LATENCY RESET {word}",
        "LATENCY LATEST",
        "LATENCY HISTORY {word}",
        "LATENCY GRAPH nosuch",
        "LATENCY HELP",
        "LATENCY {word}",
        "LATENCY HISTORY",
        "LATENCY LATEST {word}",
        "LATENCY HISTOGRAM nosuch",
    ])
}

fn memory(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "MEMORY USAGE {key}",
        "MEMORY USAGE {key} SAMPLES {count}",
        "MEMORY USAGE {key} {word}",
        "MEMORY USAGE",
        "MEMORY HELP",
        "MEMORY {word}",
        "MEMORY PURGE",
        "MEMORY PURGE {word}",
        "MEMORY USAGE {key} SAMPLES",
    ])
}

fn debug(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "DEBUG SLEEP 0",
        "DEBUG SLEEP",
        "DEBUG OBJECT nosuch",
        "DEBUG DIGEST-VALUE {keys}",
        "DEBUG {word}",
        "DEBUG {word} {word}",
        "DEBUG SET-ACTIVE-EXPIRE 1",
        "DEBUG HELP",
        "DEBUG PROTOCOL string",
        "DEBUG PROTOCOL integer",
        "DEBUG PROTOCOL double",
        "DEBUG PROTOCOL null",
        "DEBUG PROTOCOL array",
        "DEBUG PROTOCOL set",
        "DEBUG PROTOCOL map",
        "DEBUG PROTOCOL verbatim",
        "DEBUG PROTOCOL true",
        "DEBUG PROTOCOL false",
        "DEBUG PROTOCOL bignum",
        "DEBUG PROTOCOL {word}",
    ])
}
