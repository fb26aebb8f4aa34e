//! Tests of generic and keyspace-wide commands, which compare the bytes of replies in RESP2 and RESP3.

use std::collections::BTreeSet;

use ember_protocol::Protocol;
use emberkv_core::eviction::EvictionPolicy;
use emberkv_core::keyspace::SHARDS;
use emberkv_core::local::Local;

const LFU_NEEDED: &str = "-ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.\r\n";
const LFU_UNWANTED: &str = "-ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.\r\n";

/// Runs the words of `command`; `''` is an empty word.
fn run(local: &mut Local, command: &str) -> String {
    let words: Vec<&[u8]> =
        command.split(' ').map(|word| if word == "''" { b"" } else { word.as_bytes() }).collect();
    String::from_utf8(local.run(&words)).unwrap()
}

/// Runs the commands on an empty keyspace and compares their replies; expected replies of one line (`+`, `-`, `:`) omit
/// the line end, other expected replies contain `/` instead of `\r\n`.
fn check(protocol: Protocol, steps: &[(&str, &str)]) -> Local {
    let mut local = Local::new(protocol);
    for (command, expected) in steps {
        let expected = match expected.as_bytes()[0] {
            b'+' | b'-' | b':' => format!("{expected}\r\n"),
            _ => expected.replace('/', "\r\n"),
        };
        assert_eq!(run(&mut local, command), expected, "{command}");
    }
    local.keyspace.check_invariants();
    local
}

fn check_both(steps: &[(&str, &str)]) {
    check(Protocol::Resp2, steps);
    check(Protocol::Resp3, steps);
}

fn keys_of(local: &mut Local, pattern: &str) -> BTreeSet<String> {
    let reply = run(local, pattern);
    let keys: Vec<&str> = reply.split("\r\n").skip(2).step_by(2).collect();
    let set: BTreeSet<String> = keys.iter().map(|key| (*key).into()).collect();
    assert_eq!(set.len(), keys.len(), "no key is returned twice");
    set
}

#[test]
fn copy_copies_value_and_expiry() {
    check_both(&[
        ("SET a 1 PX 5000", "+OK"),
        ("COPY a b", ":1"),
        ("GET b", "$1/1/"),
        ("PTTL b", ":5000"),
        ("COPY a b", ":0"),
        ("SET a hello", "+OK"),
        ("COPY a b REPLACE", ":1"),
        ("GET b", "$5/hello/"),
        ("PTTL b", ":-1"),
        ("COPY none b REPLACE", ":0"),
        ("EXISTS b", ":1"),
        ("COPY a a DB 1", ":1"),
        ("COPY a a DB 1", ":0"),
        ("COPY a a DB 2 replace db 1", ":1"),
        ("COPY a a", "-ERR source and destination objects are the same"),
        ("COPY none none", "-ERR source and destination objects are the same"),
        ("COPY a a DB 0", "-ERR source and destination objects are the same"),
        ("COPY a b DB 99", "-ERR DB index is out of range"),
        ("COPY a b DB -1", "-ERR DB index is out of range"),
        ("COPY a b DB x", "-ERR value is not an integer or out of range"),
        (
            "COPY a b DB 99999999999",
            "-ERR value is out of range, value must between -2147483648 and 2147483647",
        ),
        ("COPY a b DB", "-ERR syntax error"),
        ("COPY a b foo", "-ERR syntax error"),
        ("COPY a", "-ERR wrong number of arguments for 'copy' command"),
    ]);
}

#[test]
fn del_unlink_exists_and_touch_count_keys() {
    check_both(&[
        ("SET a 1", "+OK"),
        ("SET b 1", "+OK"),
        ("SET c 1", "+OK"),
        ("EXISTS a b c d a", ":4"),
        ("TOUCH a b d a", ":3"),
        ("DEL a a d", ":1"),
        ("UNLINK b c b", ":2"),
        ("EXISTS a b c", ":0"),
        ("DBSIZE", ":0"),
        ("DEL", "-ERR wrong number of arguments for 'del' command"),
        ("UNLINK", "-ERR wrong number of arguments for 'unlink' command"),
        ("EXISTS", "-ERR wrong number of arguments for 'exists' command"),
        ("TOUCH", "-ERR wrong number of arguments for 'touch' command"),
    ]);
}

#[test]
fn large_values_are_unlinked_copied_and_renamed() {
    let mut local = Local::new(Protocol::Resp2);
    let empty_bytes = local.keyspace.used_bytes();
    let large = vec![b'x'; 3_000_000];
    assert_eq!(local.run(&[b"SET", b"a", &large]), b"+OK\r\n");
    assert_eq!(run(&mut local, "COPY a b"), ":1\r\n");
    assert_eq!(run(&mut local, "RENAME a c"), "+OK\r\n");
    assert_eq!(local.run(&[b"GET", b"c"]), [b"$3000000\r\n", &large[..], b"\r\n"].concat());
    assert!(local.keyspace.used_bytes() > 6_000_000);
    assert_eq!(run(&mut local, "UNLINK b c"), ":2\r\n");
    assert_eq!(local.keyspace.used_bytes(), empty_bytes);
    local.keyspace.check_invariants();
}

#[test]
fn expire_sets_conditions_and_deletes_as_redis_does() {
    let incompatible = "-ERR NX and XX, GT or LT options at the same time are not compatible";
    check_both(&[
        ("SET b 1", "+OK"),
        ("EXPIRE b 10 NX XX", incompatible),
        ("EXPIRE b 10 NX GT", incompatible),
        ("EXPIRE b 10 LT NX", incompatible),
        ("EXPIRE b foo NX XX", incompatible),
        ("EXPIRE b 10 GT LT", "-ERR GT and LT options at the same time are not compatible"),
        ("EXPIRE b 10 foo", "-ERR Unsupported option foo"),
        ("EXPIRE b 10 NX XX Foo", "-ERR Unsupported option Foo"),
        ("EXPIRE none x", "-ERR value is not an integer or out of range"),
        ("EXPIRE b", "-ERR wrong number of arguments for 'expire' command"),
        ("EXPIRE b 9223372036854775807", "-ERR invalid expire time in 'expire' command"),
        ("EXPIRE b -9223372036854775807", "-ERR invalid expire time in 'expire' command"),
        ("EXPIRE none 99999999999999999", "-ERR invalid expire time in 'expire' command"),
        ("PEXPIRE b 9223372036854775807", "-ERR invalid expire time in 'pexpire' command"),
        ("EXPIREAT b 9223372036854775807", "-ERR invalid expire time in 'expireat' command"),
        ("EXPIRE b 10 XX", ":0"),
        ("EXPIRE b 10 GT", ":0"),
        ("EXPIRE b 10 LT", ":1"),
        ("EXPIRE b 20 LT", ":0"),
        ("EXPIRE b 10 LT", ":0"),
        ("EXPIRE b 10 GT", ":0"),
        ("EXPIRE b 20 gt", ":1"),
        ("EXPIRE b 5 XX GT", ":0"),
        ("EXPIRE b 5 XX LT", ":1"),
        ("EXPIRE b 5 NX", ":0"),
        ("TTL b", ":5"),
        ("PEXPIRE b 2500", ":1"),
        ("TTL b", ":3"),
        ("PEXPIRE b 2499", ":1"),
        ("TTL b", ":2"),
        ("PTTL b", ":2499"),
        ("EXPIRETIME b", ":1000000002"),
        ("PEXPIRETIME b", ":1000000002499"),
        ("PERSIST b", ":1"),
        ("PERSIST b", ":0"),
        ("PERSIST none", ":0"),
        ("TTL b", ":-1"),
        ("PTTL b", ":-1"),
        ("EXPIRETIME b", ":-1"),
        ("PEXPIRETIME none", ":-2"),
        ("TTL none", ":-2"),
        ("PEXPIREAT b 9223372036854775807", ":1"),
        ("PEXPIRETIME b", ":9223372036854775807"),
        ("EXPIRETIME b", ":9223372036854776"),
        ("PTTL b", ":9223371036854775807"),
        ("EXPIREAT b 1000000100", ":1"),
        ("TTL b", ":100"),
        ("EXPIRE b -1", ":1"),
        ("EXISTS b", ":0"),
        ("EXPIRE b 1", ":0"),
        ("SET c 1", "+OK"),
        ("PEXPIREAT c 1000000000000", ":1"),
        ("EXISTS c", ":0"),
        ("SET c 1 EX 10", "+OK"),
        ("PEXPIRE c -9223372036854775808", ":1"),
        ("DBSIZE", ":0"),
    ]);
}

#[test]
fn expired_keys_are_invisible_to_every_command() {
    for command in
        ["EXISTS k", "TOUCH k", "DEL k", "UNLINK k", "EXPIRE k 10", "PERSIST k", "MOVE k 1", "COPY k other"]
    {
        let mut local = check(Protocol::Resp2, &[("SET k 1 PX 10", "+OK")]);
        local.turn.now_ms += 10;
        assert_eq!(run(&mut local, command), ":0\r\n", "{command}");
        local.keyspace.check_invariants();
    }
    for remover in [("SCAN 0", "*2\r\n$1\r\n0\r\n*0\r\n"), ("RANDOMKEY", "$-1\r\n")] {
        let mut local = check(Protocol::Resp2, &[("SET k 1 PX 10", "+OK")]);
        local.turn.now_ms += 10;
        for (command, expected) in [
            ("KEYS *", "*0\r\n"),
            ("DBSIZE", ":1\r\n"),
            remover,
            ("DBSIZE", ":0\r\n"),
            ("TTL k", ":-2\r\n"),
            ("TYPE k", "+none\r\n"),
            ("RENAME k other", "-ERR no such key\r\n"),
        ] {
            assert_eq!(run(&mut local, command), expected, "{command}");
        }
        assert_eq!(local.turn.counters.expired, 1);
        local.keyspace.check_invariants();
    }
}

#[test]
fn move_takes_a_key_to_another_database() {
    let mut local = check(
        Protocol::Resp2,
        &[
            ("SET a 1 PX 5000", "+OK"),
            ("SET b 2", "+OK"),
            ("MOVE a 0", "-ERR source and destination objects are the same"),
            ("MOVE a 99", "-ERR DB index is out of range"),
            ("MOVE a -1", "-ERR DB index is out of range"),
            ("MOVE a x", "-ERR value is not an integer or out of range"),
            (
                "MOVE a 99999999999999",
                "-ERR value is out of range, value must between -2147483648 and 2147483647",
            ),
            ("MOVE none 1", ":0"),
            ("MOVE a 1", ":1"),
            ("EXISTS a", ":0"),
            ("MOVE b 1", ":1"),
            ("SET b 3", "+OK"),
            ("MOVE b 1", ":0"),
            ("GET b", "$1/3/"),
        ],
    );
    local.database = 1;
    assert_eq!(run(&mut local, "PTTL a"), ":5000\r\n");
    assert_eq!(run(&mut local, "GET b"), "$1\r\n2\r\n");
}

#[test]
fn rename_keeps_value_expiry_and_encoding() {
    check_both(&[
        ("SET a 7 PX 5000", "+OK"),
        ("SET b other", "+OK"),
        ("RENAME a b", "+OK"),
        ("EXISTS a", ":0"),
        ("GET b", "$1/7/"),
        ("PTTL b", ":5000"),
        ("OBJECT ENCODING b", "$3/int/"),
        ("RENAME b b", "+OK"),
        ("PTTL b", ":5000"),
        ("RENAMENX b b", ":0"),
        ("RENAME none b", "-ERR no such key"),
        ("RENAME none none", "-ERR no such key"),
        ("RENAMENX none none", "-ERR no such key"),
        ("SET c 1", "+OK"),
        ("RENAMENX b c", ":0"),
        ("RENAMENX b d", ":1"),
        ("RENAME c d", "+OK"),
        ("TTL d", ":-1"),
        ("DBSIZE", ":1"),
        ("RENAME a", "-ERR wrong number of arguments for 'rename' command"),
    ]);
}

#[test]
fn object_reports_encoding_references_and_use() {
    let mut local = check(
        Protocol::Resp2,
        &[
            ("SET n 12", "+OK"),
            ("SET short hello", "+OK"),
            ("SET long 123456789012345678901234567890123456789012345", "+OK"),
            ("OBJECT ENCODING n", "$3/int/"),
            ("OBJECT ENCODING short", "$6/embstr/"),
            ("object encoding long", "$3/raw/"),
            ("OBJECT ENCODING none", "$-1/"),
            ("OBJECT REFCOUNT n", ":2147483647"),
            ("OBJECT REFCOUNT short", ":1"),
            ("OBJECT REFCOUNT none", "$-1/"),
            ("OBJECT IDLETIME none", "$-1/"),
            ("OBJECT FREQ none", "$-1/"),
            ("OBJECT", "-ERR wrong number of arguments for 'object' command"),
            ("OBJECT FREQ", "-ERR wrong number of arguments for 'object|freq' command"),
            ("OBJECT ENCODING n n", "-ERR wrong number of arguments for 'object|encoding' command"),
            ("OBJECT foo", "-ERR unknown subcommand 'foo'. Try OBJECT HELP."),
        ],
    );
    assert_eq!(run(&mut local, "OBJECT FREQ n"), LFU_NEEDED);
    local.turn.now_ms += 61_500;
    assert_eq!(run(&mut local, "OBJECT IDLETIME n"), ":61\r\n");
    assert_eq!(run(&mut local, "TYPE n"), "+string\r\n");
    assert_eq!(run(&mut local, "TTL n"), ":-1\r\n");
    assert_eq!(run(&mut local, "OBJECT IDLETIME n"), ":61\r\n", "reading its facts is no access");
    local.turn.no_touch = true;
    run(&mut local, "GET n");
    assert_eq!(run(&mut local, "OBJECT IDLETIME n"), ":61\r\n");
    run(&mut local, "TOUCH n");
    assert_eq!(run(&mut local, "OBJECT IDLETIME n"), ":0\r\n", "TOUCH touches whatever the client asked for");
    local.turn.settings.policy = EvictionPolicy::AllkeysLfu;
    assert_eq!(run(&mut local, "OBJECT IDLETIME n"), LFU_UNWANTED);
    run(&mut local, "SET fresh 1");
    assert_eq!(run(&mut local, "OBJECT FREQ fresh"), ":5\r\n");
    assert!(run(&mut local, "OBJECT HELP").starts_with("*12\r\n+OBJECT <subcommand>"));
    check(Protocol::Resp3, &[("OBJECT ENCODING none", "_/"), ("OBJECT FREQ none", "_/")]);
}

#[test]
fn keys_filters_by_pattern_and_stops_at_the_limit() {
    let mut local = check(
        Protocol::Resp2,
        &[
            ("KEYS *", "*0/"),
            ("SET one 1", "+OK"),
            ("SET two 2", "+OK"),
            ("SET '' 0", "+OK"),
            ("KEYS o*", "*1/$3/one/"),
            ("KEYS ''", "*1/$0//"),
            ("KEYS **e", "*1/$3/one/"),
            ("KEYS * LIMIT 0", "*0/"),
            ("KEYS * LIMIT x", "-ERR value is not an integer or out of range"),
            ("KEYS * LIMIT -1", "-ERR syntax error"),
            ("KEYS * LIMIT 1 2", "-ERR wrong number of arguments for 'keys' command"),
            ("KEYS * foo 1", "-ERR wrong number of arguments for 'keys' command"),
            ("KEYS a b", "-ERR wrong number of arguments for 'keys' command"),
            ("KEYS", "-ERR wrong number of arguments for 'keys' command"),
        ],
    );
    assert_eq!(keys_of(&mut local, "KEYS *").len(), 3);
    assert_eq!(keys_of(&mut local, "KEYS * limit 2").len(), 2);
    assert_eq!(keys_of(&mut local, "KEYS *o* LIMIT 99").len(), 2);
}

#[test]
fn randomkey_gives_every_key_the_same_chance() {
    let mut local = check(Protocol::Resp2, &[("RANDOMKEY", "$-1/")]);
    check(Protocol::Resp3, &[("RANDOMKEY", "_/")]);
    const KEYS: usize = 50;
    const DRAWS: usize = 10_000;
    for key in 0..KEYS {
        run(&mut local, &format!("SET {key} 1"));
    }
    let mut seen = [0; KEYS];
    for _ in 0..DRAWS {
        let reply = run(&mut local, "RANDOMKEY");
        seen[reply.split("\r\n").nth(1).unwrap().parse::<usize>().unwrap()] += 1;
    }
    // Each key is expected 200 times, with a standard deviation of 14; the limits are six standard deviations away.
    assert!(seen.iter().all(|&count| (115..=285).contains(&count)), "{seen:?}");
}

#[test]
fn randomkey_finds_the_one_key_that_has_not_expired() {
    let mut local = Local::new(Protocol::Resp2);
    for key in 0..2000 {
        run(&mut local, &format!("SET {key} 1 PX 1"));
    }
    run(&mut local, "SET live 1");
    local.turn.now_ms += 1;
    assert_eq!(run(&mut local, "RANDOMKEY"), "$4\r\nlive\r\n");
    run(&mut local, "DEL live");
    assert_eq!(run(&mut local, "RANDOMKEY"), "$-1\r\n");
}

#[test]
fn scan_parses_cursors_and_options_as_redis_does() {
    let nothing = "*2/$1/0/*0/";
    check_both(&[
        ("SCAN 0", nothing),
        ("SCAN 00", nothing),
        ("SCAN +0", nothing),
        ("SCAN ''", nothing),
        ("SCAN -1", nothing),
        ("SCAN 18446744073709551615", nothing),
        ("SCAN 18446744073709551616", "-ERR invalid cursor"),
        ("SCAN x", "-ERR invalid cursor"),
        ("SCAN 0x0", "-ERR invalid cursor"),
        ("SCAN -", "-ERR invalid cursor"),
        ("SCAN 0 COUNT 0", "-ERR syntax error"),
        ("SCAN 0 COUNT -5", "-ERR syntax error"),
        ("SCAN 0 COUNT x", "-ERR value is not an integer or out of range"),
        ("SCAN 0 COUNT 9223372036854775807", nothing),
        ("SCAN 0 MATCH", "-ERR syntax error"),
        ("SCAN 0 TYPE", "-ERR syntax error"),
        ("SCAN 0 NOVALUES", "-ERR syntax error"),
        ("SCAN 0 foo bar", "-ERR syntax error"),
        ("SCAN", "-ERR wrong number of arguments for 'scan' command"),
        ("SET hello 1", "+OK"),
        ("SCAN 0", "*2/$1/0/*1/$5/hello/"),
        ("SCAN 0 TYPE STRING", "*2/$1/0/*1/$5/hello/"),
        ("SCAN 0 TYPE hash", nothing),
        ("SCAN 0 TYPE nonsense", nothing),
        ("SCAN 0 MATCH x* MATCH h* COUNT 1 COUNT 5", "*2/$1/0/*1/$5/hello/"),
        ("SCAN 0 MATCH x*", nothing),
        ("SCAN 1073741823", nothing),
        ("SCAN 1073741824", nothing),
    ]);
}

#[test]
fn flush_and_swapdb_affect_whole_databases() {
    let mut local = check(
        Protocol::Resp2,
        &[
            ("FLUSHALL foo", "-ERR syntax error"),
            ("FLUSHALL ASYNC SYNC", "-ERR syntax error"),
            ("FLUSHDB ''", "-ERR syntax error"),
            ("DBSIZE foo", "-ERR wrong number of arguments for 'dbsize' command"),
            ("SWAPDB 0 0", "+OK"),
            ("SWAPDB 0 99", "-ERR DB index is out of range"),
            ("SWAPDB -1 0", "-ERR DB index is out of range"),
            ("SWAPDB x x", "-ERR invalid first DB index"),
            ("SWAPDB 0 x", "-ERR invalid second DB index"),
            ("SWAPDB 0 99999999999999", "-ERR invalid second DB index"),
            ("SET a 0 PX 1000", "+OK"),
            ("SET b 0", "+OK"),
            ("SWAPDB 0 1", "+OK"),
            ("DBSIZE", ":0"),
            ("SET c 0 PX 1000", "+OK"),
        ],
    );
    local.turn.now_ms += 1200;
    local.keyspace.expire_due(0..SHARDS, &mut local.turn, usize::MAX);
    assert_eq!(run(&mut local, "DBSIZE"), ":0\r\n");
    local.database = 1;
    assert_eq!(
        keys_of(&mut local, "KEYS *"),
        BTreeSet::from(["b".into()]),
        "a expired where it was swapped to"
    );
    for flush in ["FLUSHDB", "FLUSHDB sync", "FLUSHDB ASYNC", "FLUSHALL", "FLUSHALL SYNC", "FLUSHALL async"] {
        for database in 0..3 {
            local.database = database;
            run(&mut local, "SET k v PX 100");
        }
        local.database = 1;
        assert_eq!(run(&mut local, flush), "+OK\r\n");
        assert_eq!(run(&mut local, "DBSIZE"), ":0\r\n");
        local.database = 2;
        let left = if flush.starts_with("FLUSHALL") { ":0\r\n" } else { ":1\r\n" };
        assert_eq!(run(&mut local, "DBSIZE"), left, "{flush}");
        local.keyspace.check_invariants();
    }
}

#[test]
fn a_flushed_keyspace_takes_no_memory_even_for_deleted_keys_that_had_an_expiry() {
    let mut local = Local::new(Protocol::Resp2);
    for number in 0..2000 {
        run(&mut local, &format!("SET {number} x EX 1000"));
        run(&mut local, &format!("DEL {number}"));
    }
    assert!(
        local.keyspace.is_empty(0) && local.keyspace.used_bytes() > 0,
        "references stay until they are due"
    );
    assert_eq!(run(&mut local, "FLUSHALL"), "+OK\r\n");
    assert_eq!(local.keyspace.used_bytes(), 0);
    local.keyspace.check_invariants();
}

#[test]
fn reads_count_hits_and_misses_and_writes_count_changes() {
    let local = check(
        Protocol::Resp2,
        &[
            ("SET a 1", "+OK"),
            ("EXISTS a b", ":1"),
            ("TTL a", ":-1"),
            ("OBJECT ENCODING a", "$3/int/"),
            ("RENAME a b", "+OK"),
            ("COPY b c", ":1"),
            ("MOVE c 1", ":1"),
            ("PERSIST b", ":0"),
            ("DEL b b", ":1"),
        ],
    );
    let counters = local.turn.counters;
    assert_eq!((counters.hits, counters.misses, counters.changes), (3, 1, 5));
}

#[test]
fn sort_orders_numbers_and_texts() {
    check_both(&[
        ("RPUSH l 10 9 1.5 -2 1e1", ":5"),
        ("SORT l", "*5/$2/-2/$3/1.5/$1/9/$2/10/$3/1e1/"),
        ("SORT l DESC LIMIT 0 2", "*2/$3/1e1/$2/10/"),
        ("SORT l ALPHA LIMIT 1 2", "*2/$3/1.5/$2/10/"),
        ("SORT l LIMIT -5 -5", "*5/$2/-2/$3/1.5/$1/9/$2/10/$3/1e1/"),
        ("SORT l LIMIT 5 1", "*0/"),
        ("SORT l LIMIT 0 0", "*0/"),
        ("SORT_RO l DESC LIMIT 4 1", "*1/$2/-2/"),
        ("SADD s b a", ":2"),
        ("SORT s", "-ERR One or more scores can't be converted into double"),
        ("SORT s ALPHA", "*2/$1/a/$1/b/"),
        ("SORT none", "*0/"),
        ("SET k v", "+OK"),
        ("SORT k", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SORT l LIMIT x 1", "-ERR value is not an integer or out of range"),
        ("SORT l LIMIT 1", "-ERR syntax error"),
        ("SORT_RO l STORE k", "-ERR syntax error"),
    ]);
}

#[test]
fn sort_refuses_numbers_too_small_to_keep_their_digits() {
    check_both(&[
        ("RPUSH l 5e-324 1", ":2"),
        ("SORT l", "-ERR One or more scores can't be converted into double"),
        ("SORT l ALPHA", "*2/$1/1/$6/5e-324/"),
        ("RPUSH smallest 2.2250738585072014e-308 1", ":2"),
        ("SORT smallest LIMIT 0 1", "*1/$23/2.2250738585072014e-308/"),
    ]);
}

#[test]
fn sort_takes_weights_and_values_from_other_keys() {
    let mut local = Local::new(Protocol::Resp2);
    for (line, expected) in [
        ("RPUSH l 1 2 3 4", ":4/"),
        ("MSET w_1 30 w_2 10 w_3 20 n_1 one n_2 two", "+OK/"),
        ("SORT l BY w_* GET # GET n_*", "*8/$1/4/$-1/$1/2/$3/two/$1/3/$-1/$1/1/$3/one/"),
        ("HSET h_1 f 4", ":1/"),
        ("HSET h_2 f 3", ":1/"),
        ("SORT l BY h_*->f LIMIT 2 2 GET h_*->f", "*2/$1/3/$1/4/"),
        ("SORT l BY nosort GET h_*", "*4/$-1/$-1/$-1/$-1/"),
        ("SORT l BY nosort GET plain GET #", "*8/$-1/$1/1/$-1/$1/2/$-1/$1/3/$-1/$1/4/"),
        ("SORT l BY nosort DESC LIMIT 1 2", "*2/$1/3/$1/2/"),
        ("SORT l BY n_* ALPHA DESC", "*4/$1/2/$1/1/$1/3/$1/4/"),
        ("ZADD z 3 a 1 b 2 c", ":3/"),
        ("SORT z BY nosort", "*3/$1/b/$1/c/$1/a/"),
        ("SORT z BY nosort DESC LIMIT 0 2", "*2/$1/a/$1/c/"),
        ("OBJECT ENCODING z", "$8/skiplist/"),
    ] {
        assert_eq!(run(&mut local, line).replace("\r\n", "/"), expected, "{line}");
    }
    local.keyspace.check_invariants();
}

#[test]
fn sort_stores_a_list_or_removes_the_key() {
    check_both(&[
        ("RPUSH l 3 1 2", ":3"),
        ("SET t x EX 100", "+OK"),
        ("SORT l STORE t", ":3"),
        ("LRANGE t 0 -1", "*3/$1/1/$1/2/$1/3/"),
        ("TTL t", ":-1"),
        ("SORT l GET none_* STORE t", ":3"),
        ("LRANGE t 0 -1", "*3/$0//$0//$0//"),
        ("SORT l STORE l", ":3"),
        ("LRANGE l 0 -1", "*3/$1/1/$1/2/$1/3/"),
        ("SADD s c a b", ":3"),
        ("SORT s BY nosort STORE t", ":3"),
        ("LRANGE t 0 -1", "*3/$1/a/$1/b/$1/c/"),
        ("SORT none STORE t", ":0"),
        ("EXISTS t", ":0"),
    ]);
}

#[test]
fn a_condition_is_compared_with_the_value() {
    check(
        Protocol::Resp2,
        &[
            ("SET k one", "+OK"),
            ("SET k two IFEQ other", "$-1/"),
            ("SET k two IFEQ one", "+OK"),
            ("SET k 3 IFEQ two GET", "$3/two/"),
            ("SET k 4 IFEQ two GET", "$1/3/"),
            ("SET k 4 IFEQ 3 EX 100", "+OK"),
            ("TTL k", ":100"),
            ("SET none v IFEQ v", "$-1/"),
            ("SET k v IFEQ", "-ERR syntax error"),
            ("SET k v NX IFEQ 4", "-ERR syntax error"),
            ("SET k v IFEQ 4 XX", "-ERR syntax error"),
            ("RPUSH l a", ":1"),
            ("SET l v IFEQ a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
            ("DELIFEQ l a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
            ("DELIFEQ k 5", ":0"),
            ("DELIFEQ k 4", ":1"),
            ("DELIFEQ k 4", ":0"),
        ],
    );
}

#[test]
fn scan_and_copy_support_every_type() {
    let mut local = Local::new(Protocol::Resp2);
    let values = [
        ("list", "RPUSH list a", "LRANGE copy 0 -1", "*1/$1/a/"),
        ("set", "SADD set a", "SMEMBERS copy", "*1/$1/a/"),
        ("zset", "ZADD zset 1 a", "ZRANGE copy 0 -1", "*1/$1/a/"),
        ("hash", "HSET hash f v", "HGETALL copy", "*2/$1/f/$1/v/"),
        ("stream", "XADD stream 1-1 f v", "XLEN copy", ":1/"),
        ("vectorset", "VADD vectorset VALUES 2 1 0 a", "VCARD copy", ":1/"),
        ("ReJSON-RL", "JSON.SET ReJSON-RL $ 1", "JSON.GET copy", "$1/1/"),
    ];
    for (name, make, show, expected) in values {
        run(&mut local, make);
        let found = keys_of_type(&mut local, name);
        assert_eq!(found, [name], "SCAN TYPE {name}");
        assert_eq!(run(&mut local, &format!("COPY {name} copy REPLACE")), ":1\r\n");
        assert_eq!(run(&mut local, show).replace("\r\n", "/"), expected, "{name}");
        assert_eq!(run(&mut local, "UNLINK copy"), ":1\r\n");
        assert_eq!(run(&mut local, &format!("OBJECT REFCOUNT {name}")), ":1\r\n");
        assert_eq!(run(&mut local, &format!("OBJECT IDLETIME {name}")), ":0\r\n");
    }
    local.keyspace.check_invariants();
}

/// Returns the keys that SCAN returns for a type.
fn keys_of_type(local: &mut Local, name: &str) -> Vec<String> {
    let reply = run(local, &format!("SCAN 0 COUNT 100000 TYPE {name}"));
    reply.split("\r\n").skip(4).skip(1).step_by(2).filter(|key| !key.is_empty()).map(String::from).collect()
}
