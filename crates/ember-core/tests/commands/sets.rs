//! Tests of set commands, which compare the bytes of replies.

use std::collections::{BTreeMap, BTreeSet};

use ember_protocol::Protocol;
use emberkv_core::events::EventClass;
use proptest::prelude::*;

use crate::support::script::{Script, check};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_INTEGER: &str = "-ERR value is not an integer or out of range";
const NOT_POSITIVE: &str = "-ERR value is out of range, must be positive";
const SYNTAX: &str = "-ERR syntax error";

/// Like [`check`], with RESP3 sets written as in RESP2.
fn check_sets(steps: &[(&str, &str)]) {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let mut script = Script::new(protocol);
        for (line, expected) in steps {
            let actual = match line.split_once(' ') {
                Some(("ENTRY", key)) => script.entry(key),
                _ => script.run(line).replace('~', "*"),
            };
            assert_eq!(actual, *expected, "{line} in {protocol:?}");
        }
        script.local.keyspace.check_invariants();
    }
}

/// Returns the members in a reply that is an array or a set of bulk strings.
fn members(reply: &str) -> Vec<String> {
    let mut words = reply.split(' ');
    assert!(words.next().is_some_and(|head| head.starts_with(['*', '~'])), "{reply} is no set");
    words.collect::<Vec<_>>().chunks(2).map(|pair| pair[1].to_string()).collect()
}

/// Runs `SADD key m<first> … m<last>`.
fn add_range(script: &mut Script, key: &str, range: std::ops::Range<usize>) {
    for number in range {
        assert_eq!(script.run(&format!("SADD {key} m{number}")), ":1");
    }
}

#[test]
fn members_are_added_once_and_the_key_is_removed_with_the_last() {
    check_sets(&[
        ("SADD s a b a", ":2"),
        ("SADD s b c", ":1"),
        ("SADD s a", ":0"),
        ("SCARD s", ":3"),
        ("SMEMBERS s", "*3 $1 a $1 b $1 c"),
        ("SISMEMBER s b", ":1"),
        ("SISMEMBER s d", ":0"),
        ("SMISMEMBER s a d c a", "*4 :1 :0 :1 :1"),
        ("TYPE s", "+set"),
        ("SREM s b d b", ":1"),
        ("SREM s a c x", ":2"),
        ("EXISTS s", ":0"),
        ("SREM s a", ":0"),
        ("SCARD s", ":0"),
        ("SMEMBERS s", "*0"),
        ("SISMEMBER s a", ":0"),
        ("SMISMEMBER s a b", "*2 :0 :0"),
        ("SADD s \"\" \"\\x00\\xff\" \"\"", ":2"),
        ("SMEMBERS s", "*2 $0  $2 \\x00\\xff"),
        ("SADD s", "-ERR wrong number of arguments for 'sadd' command"),
    ]);
}

#[test]
fn integers_are_returned_sorted_and_other_members_in_insertion_order() {
    check_sets(&[
        ("SADD n 5 -3 70000 1 5 9223372036854775807", ":5"),
        ("SMEMBERS n", "*5 $2 -3 $1 1 $1 5 $5 70000 $19 9223372036854775807"),
        ("ENTRY n", "intset"),
        ("SREM n 5 x 05", ":1"),
        ("SISMEMBER n 70000", ":1"),
        ("SISMEMBER n 070000", ":0"),
        ("SADD n z 07", ":2"),
        ("ENTRY n", "listpack"),
        ("SMEMBERS n", "*6 $2 -3 $1 1 $5 70000 $19 9223372036854775807 $1 z $2 07"),
        ("SREM n z 07 1", ":3"),
        ("ENTRY n", "listpack"),
        ("SADD n 2", ":1"),
        ("SMEMBERS n", "*4 $2 -3 $5 70000 $19 9223372036854775807 $1 2"),
    ]);
}

#[test]
fn the_encoding_depends_on_number_and_length_of_members() {
    let mut script = Script::new(Protocol::Resp2);
    for number in 0..512 {
        script.run(&format!("SADD ints {number}"));
    }
    assert_eq!(script.entry("ints"), "intset");
    script.run("SADD ints 511 512");
    assert_eq!(script.entry("ints"), "hashtable");
    assert_eq!(script.run("SCARD ints"), ":513");
    add_range(&mut script, "words", 0..128);
    assert_eq!((script.run("SADD words m5"), script.entry("words")), (":0".into(), "listpack".into()));
    script.run("SADD words one-more");
    assert_eq!(script.entry("words"), "hashtable");
    script.run(&format!("SADD short {}", "x".repeat(64)));
    assert_eq!(script.entry("short"), "listpack");
    script.run(&format!("SADD short {}", "x".repeat(65)));
    assert_eq!(script.entry("short"), "hashtable");
    // An intset with too many members for a listpack becomes a hash table.
    (0..129).for_each(|number| drop(script.run(&format!("SADD more {number}"))));
    script.run("SADD more word");
    assert_eq!(script.entry("more"), "hashtable");
    // The encoding depends on the number of arguments, not on the number of different members.
    script.run(&format!("SADD hinted{}", " a".repeat(129)));
    assert_eq!((script.run("SCARD hinted"), script.entry("hinted")), (":1".into(), "hashtable".into()));
    script.run(&format!("SADD ints2{}", " 7".repeat(512)));
    assert_eq!(script.entry("ints2"), "intset");
    script.run(&format!("SADD ints3{}", " 7".repeat(513)));
    assert_eq!(script.entry("ints3"), "hashtable");
    script.run("SADD grows a");
    script.run(&format!("SADD grows{}", " a".repeat(129)));
    assert_eq!((script.run("SCARD grows"), script.entry("grows")), (":1".into(), "hashtable".into()));
    script.local.keyspace.check_invariants();
}

#[test]
fn limits_are_configurable() {
    let mut script = Script::new(Protocol::Resp2);
    script.local.turn.settings.encoding.set_max_listpack_value = 3;
    script.run("SADD k 1000");
    script.run("SADD k abc");
    assert_eq!(script.entry("k"), "hashtable", "1000 is too long for a listpack");
    script.local.turn.settings.encoding.set_max_listpack_entries = 0;
    script.run("SADD words a");
    assert_eq!(script.entry("words"), "hashtable");
    script.local.turn.settings.encoding.set_max_intset_entries = 2;
    script.run("SADD ints 1 2");
    assert_eq!(script.entry("ints"), "intset");
    script.run("SADD ints 3");
    assert_eq!(script.entry("ints"), "hashtable");
    script.local.keyspace.check_invariants();
}

#[test]
fn keys_of_other_types_are_refused() {
    let mut steps = vec![("SET str x", "+OK"), ("SADD s a", ":1")];
    let refused = [
        "SADD str a",
        "SREM str a",
        "SMEMBERS str",
        "SISMEMBER str a",
        "SMISMEMBER str a",
        "SCARD str",
        "SPOP str",
        "SPOP str 0",
        "SRANDMEMBER str",
        "SRANDMEMBER str 0",
        "SMOVE str s a",
        "SMOVE s str missing",
        "SINTER missing str",
        "SINTER s str",
        "SINTERSTORE s missing str",
        "SINTERCARD 2 missing str",
        "SUNION s str",
        "SUNIONSTORE s str",
        "SDIFF missing str",
        "SDIFFSTORE s s str",
        "SSCAN str 0",
        "GET s",
        "APPEND s x",
    ];
    steps.extend(refused.map(|line| (line, WRONG_TYPE)));
    steps.extend([("SMOVE missing str a", ":0"), ("SMEMBERS s", "*1 $1 a"), ("GET str", "$1 x")]);
    check_sets(&steps);
}

#[test]
fn smove_moves_a_member_that_exists() {
    check(&[
        ("SADD from a b", ":2"),
        ("SMOVE from to a", ":1"),
        ("SMOVE from to a", ":0"),
        ("SISMEMBER to a", ":1"),
        ("SMOVE from from b", ":1"),
        ("SMOVE from from a", ":0"),
        ("SADD to b", ":1"),
        ("SMOVE from to b", ":1"),
        ("EXISTS from", ":0"),
        ("SCARD to", ":2"),
        ("SMOVE missing to b", ":0"),
        ("SMOVE to ints 5", ":0"),
        ("SADD to 5", ":1"),
        ("SMOVE to ints 5", ":1"),
        ("ENTRY ints", "intset"),
    ]);
}

#[test]
fn spop_removes_the_members_it_returns() {
    check_sets(&[
        ("SADD s a", ":1"),
        ("SPOP s", "$1 a"),
        ("EXISTS s", ":0"),
        ("SPOP s", "$-1"),
        ("SPOP s 3", "*0"),
        ("SADD s 2 1 3", ":3"),
        ("SPOP s 0", "*0"),
        ("SPOP s -1", NOT_POSITIVE),
        ("SPOP s x", NOT_POSITIVE),
        ("SPOP s 1 2", SYNTAX),
        ("SPOP s 9223372036854775807", "*3 $1 1 $1 2 $1 3"),
        ("EXISTS s", ":0"),
        ("SADD s b a", ":2"),
        ("SPOP s 2", "*2 $1 b $1 a"),
        ("EXISTS s", ":0"),
    ]);
}

/// Creates sets in all encodings; returns their keys and numbers of members.
fn build_sets(script: &mut Script) -> [(&'static str, usize); 4] {
    (0..300).for_each(|number| drop(script.run(&format!("SADD ints {number}"))));
    add_range(script, "words", 0..100);
    add_range(script, "many", 0..2000);
    add_range(script, "more", 0..20_000);
    [("ints", 300), ("words", 100), ("many", 2000), ("more", 20_000)]
}

#[test]
fn spop_with_a_count_returns_different_members_for_any_share_of_the_set() {
    let mut script = Script::new(Protocol::Resp2);
    for (key, len) in build_sets(&mut script) {
        let all: BTreeSet<String> = members(&script.run(&format!("SMEMBERS {key}"))).into_iter().collect();
        let mut left = all.clone();
        for share in [100, 3, 2] {
            let count = left.len() / share;
            let popped = members(&script.run(&format!("SPOP {key} {count}")));
            assert_eq!(popped.len(), count);
            assert!(popped.iter().all(|member| left.remove(member)), "every member is popped once");
        }
        let last = left.len() - 3;
        let popped = members(&script.run(&format!("SPOP {key} {last}")));
        assert!(popped.iter().all(|member| left.remove(member)));
        let rest: BTreeSet<String> = members(&script.run(&format!("SMEMBERS {key}"))).into_iter().collect();
        assert_eq!((rest.len(), &rest), (3, &left), "of {len}");
        script.local.keyspace.check_invariants();
    }
    // The few remaining members are stored in a new set.
    assert_eq!((script.entry("many"), script.entry("ints")), ("listpack".into(), "intset".into()));
}

#[test]
fn srandmember_returns_members_and_removes_none() {
    check(&[
        ("SRANDMEMBER s", "$-1"),
        ("SRANDMEMBER s 3", "*0"),
        ("SRANDMEMBER s -3", "*0"),
        ("SADD s a", ":1"),
        ("SRANDMEMBER s", "$1 a"),
        ("SRANDMEMBER s 0", "*0"),
        ("SRANDMEMBER s 5", "*1 $1 a"),
        ("SRANDMEMBER s -3", "*3 $1 a $1 a $1 a"),
        ("SRANDMEMBER s x", NOT_INTEGER),
        ("SRANDMEMBER s 1 2", SYNTAX),
        (
            "SRANDMEMBER s -9223372036854775808",
            "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        ),
        ("SRANDMEMBER s -9223372036854775807", "-ERR the reply would be longer than proto-max-bulk-len"),
        ("SRANDMEMBER s 9223372036854775807", "*1 $1 a"),
        ("SCARD s", ":1"),
    ]);
}

#[test]
fn srandmember_with_a_count_returns_different_members_of_all_encodings() {
    let mut script = Script::new(Protocol::Resp2);
    for (key, len) in build_sets(&mut script) {
        for count in [1, 2, len / 4, len / 3, len / 2, len - 1, len, len + 7] {
            let drawn = members(&script.run(&format!("SRANDMEMBER {key} {count}")));
            let different: BTreeSet<&String> = drawn.iter().collect();
            assert_eq!((drawn.len(), different.len()), (count.min(len), count.min(len)), "{count} of {key}");
            for member in drawn.iter().take(50) {
                assert_eq!(script.run(&format!("SISMEMBER {key} {member}")), ":1");
            }
        }
        let repeated = members(&script.run(&format!("SRANDMEMBER {key} -{}", 2 * len)));
        let different: BTreeSet<&String> = repeated.iter().collect();
        assert!(repeated.len() == 2 * len && different.len() < len);
    }
}

#[test]
fn members_are_drawn_with_equal_probability_in_every_encoding() {
    let mut script = Script::new(Protocol::Resp2);
    (0..40).for_each(|number| drop(script.run(&format!("SADD ints {number}"))));
    add_range(&mut script, "words", 0..40);
    script.local.turn.settings.encoding.set_max_listpack_entries = 0;
    add_range(&mut script, "table", 0..40);
    for key in ["ints", "words", "table"] {
        for count in ["3", "20", "-10"] {
            let mut drawn: BTreeMap<String, f64> = BTreeMap::new();
            const CALLS: usize = 3000;
            for _ in 0..CALLS {
                let reply = script.run(&format!("SRANDMEMBER {key} {count}"));
                members(&reply).into_iter().for_each(|member| *drawn.entry(member).or_default() += 1.0);
            }
            let expected = drawn.values().sum::<f64>() / 40.0;
            let chi_square: f64 = drawn.values().map(|count| (count - expected).powi(2) / expected).sum();
            // The statistic has 39 degrees of freedom: it exceeds 100 by chance once in ten million runs. It varies
            // less if one call returns different members.
            assert!(drawn.len() == 40 && chi_square < 100.0, "{key} {count}: {chi_square}");
        }
    }
}

#[test]
fn intersections_unions_and_differences_are_computed() {
    check_sets(&[
        ("SADD a 1 2 3 x", ":4"),
        ("SADD b 2 3 4", ":3"),
        ("SADD c 3 x", ":2"),
        ("SINTER a b", "*2 $1 2 $1 3"),
        ("SINTER a b c", "*1 $1 3"),
        ("SINTER a a", "*4 $1 1 $1 2 $1 3 $1 x"),
        ("SINTER a missing", "*0"),
        ("SINTER missing", "*0"),
        ("SUNION b", "*3 $1 2 $1 3 $1 4"),
        ("SUNION b missing b", "*3 $1 2 $1 3 $1 4"),
        ("SUNION missing", "*0"),
        ("SDIFF a b", "*2 $1 1 $1 x"),
        ("SDIFF a b c", "*1 $1 1"),
        ("SDIFF a missing", "*4 $1 1 $1 2 $1 3 $1 x"),
        ("SDIFF missing a", "*0"),
        ("SDIFF a b a", "*0"),
        ("SADD d 9 2", ":2"),
        ("SUNION b d", "*4 $1 2 $1 3 $1 4 $1 9"),
        ("SINTERCARD 2 a b", ":2"),
        ("SINTERCARD 2 a b LIMIT 1", ":1"),
        ("SINTERCARD 2 a b LIMIT 0", ":2"),
        ("SINTERCARD 2 a b limit 5 LIMIT 1", ":1"),
        ("SINTERCARD 2 a missing", ":0"),
        ("SINTERCARD 0 a", "-ERR numkeys should be greater than 0"),
        ("SINTERCARD x a", "-ERR numkeys should be greater than 0"),
        ("SINTERCARD 3 a b", "-ERR Number of keys can't be greater than number of args"),
        ("SINTERCARD 9223372036854775807 a b", "-ERR Number of keys can't be greater than number of args"),
        ("SINTERCARD 1 a LIMIT", SYNTAX),
        ("SINTERCARD 1 a b", SYNTAX),
        ("SINTERCARD 1 a LIMIT -1", "-ERR LIMIT can't be negative"),
        ("SINTERCARD 1 a LIMIT x", "-ERR LIMIT can't be negative"),
    ]);
}

#[test]
fn results_replace_a_key_of_any_type() {
    check_sets(&[
        ("SADD a 1 2 3 x", ":4"),
        ("SADD b 2 3 4", ":3"),
        ("SET r text EX 100", "+OK"),
        ("SINTERSTORE r a b", ":2"),
        ("TTL r", ":-1"),
        ("SMEMBERS r", "*2 $1 2 $1 3"),
        ("ENTRY r", "intset"),
        ("SUNIONSTORE r b a", ":5"),
        ("SMEMBERS r", "*5 $1 1 $1 2 $1 3 $1 4 $1 x"),
        ("SDIFFSTORE a a b", ":2"),
        ("SMEMBERS a", "*2 $1 1 $1 x"),
        ("ENTRY a", "listpack"),
        ("SINTERSTORE a a b", ":0"),
        ("EXISTS a", ":0"),
        ("SUNIONSTORE b missing", ":0"),
        ("EXISTS b", ":0"),
        ("SDIFFSTORE none missing", ":0"),
        ("EXISTS none", ":0"),
    ]);
}

#[test]
fn the_encoding_of_a_stored_result_depends_on_the_algorithm() {
    let mut script = Script::new(Protocol::Resp2);
    add_range(&mut script, "big", 0..200);
    add_range(&mut script, "few", 0..190);
    (0..600).for_each(|number| drop(script.run(&format!("SADD numbers {number}"))));
    (0..50).for_each(|number| drop(script.run(&format!("SADD ints {number}"))));
    // The result of an intersection begins as a listpack, and a result of integers only becomes an intset.
    assert_eq!((script.run("SINTERSTORE r big few"), script.entry("r")), (":190".into(), "hashtable".into()));
    assert_eq!(
        (script.run("SINTERSTORE r numbers ints"), script.entry("r")),
        (":50".into(), "intset".into())
    );
    script.run("SUNIONSTORE n2 numbers");
    assert_eq!(
        (script.run("SINTERSTORE r n2 numbers"), script.entry("r")),
        (":600".into(), "hashtable".into())
    );
    // A difference computed by lookups contains only the result; one computed by removals begins with all members.
    assert_eq!((script.run("SDIFFSTORE r big few"), script.entry("r")), (":10".into(), "listpack".into()));
    add_range(&mut script, "one", 0..1);
    add_range(&mut script, "two", 0..2);
    let other_keys = "SDIFFSTORE r numbers one two one two one two";
    assert_eq!((script.run(other_keys), script.entry("r")), (":600".into(), "hashtable".into()));
    script.local.keyspace.check_invariants();
}

#[test]
fn sscan_returns_compact_sets_at_once_and_tables_in_steps() {
    check(&[
        ("SSCAN missing 0", "*2 $1 0 *0"),
        ("SSCAN missing 0 FOO", "*2 $1 0 *0"),
        ("SADD s 3 1 2", ":3"),
        ("SSCAN s 0", "*2 $1 0 *3 $1 1 $1 2 $1 3"),
        ("SSCAN s 7 COUNT 1", "*2 $1 0 *3 $1 1 $1 2 $1 3"),
        ("SSCAN s 0 MATCH [12]", "*2 $1 0 *2 $1 1 $1 2"),
        ("SADD s word", ":1"),
        ("SSCAN s 0 match w* count 100", "*2 $1 0 *1 $4 word"),
        ("SSCAN s x", "-ERR invalid cursor"),
        ("SSCAN s -", "-ERR invalid cursor"),
        ("SSCAN s 18446744073709551616", "-ERR invalid cursor"),
        ("SSCAN s 0 COUNT 0", SYNTAX),
        ("SSCAN s 0 COUNT x", NOT_INTEGER),
        ("SSCAN s 0 COUNT", SYNTAX),
        ("SSCAN s 0 TYPE set", SYNTAX),
    ]);
    let mut script = Script::new(Protocol::Resp2);
    add_range(&mut script, "table", 0..10_000);
    let (mut cursor, mut seen) = ("0".to_string(), BTreeSet::new());
    loop {
        let reply = script.run(&format!("SSCAN table {cursor} COUNT 100"));
        let mut words = reply.splitn(4, ' ').skip(2);
        cursor = words.next().unwrap().to_string();
        let page = members(words.next().unwrap());
        assert!(page.len() < 150);
        page.into_iter()
            .for_each(|member| assert!(seen.insert(member), "a set at rest returns each member once"));
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 10_000);
    assert_eq!(script.run("SSCAN table 18446744073709551615"), "*2 $1 0 *0");
}

#[test]
fn replies_that_are_sets_are_sets_in_resp3() {
    let mut script = Script::new(Protocol::Resp3);
    script.run("SADD s a");
    for line in ["SMEMBERS s", "SINTER s", "SUNION s", "SDIFF s", "SPOP s 1"] {
        assert_eq!(script.run(line), "~1 $1 a");
    }
    for line in ["SMEMBERS s", "SINTER s", "SUNION s", "SDIFF s", "SPOP s 1"] {
        assert_eq!(script.run(line), "~0");
    }
    script.run("SADD s a");
    assert_eq!(script.run("SRANDMEMBER s 1"), "*1 $1 a");
    assert_eq!(script.run("SMISMEMBER s a"), "*1 :1");
    assert_eq!(script.run("SSCAN s 0"), "*2 $1 0 *1 $1 a");
}

#[test]
fn events_are_published_as_in_redis() {
    let steps = [
        ("SADD s a b c", "sadd s"),
        ("SADD s a", ""),
        ("SREM s x", ""),
        ("SREM s a", "srem s"),
        ("SMOVE s t b", "srem s, sadd t"),
        ("SMOVE s t c", "srem s, del s, sadd t"),
        ("SADD s b", "sadd s"),
        ("SMOVE s t b", "srem s, del s"),
        ("SPOP t", "spop t"),
        ("SPOP t 5", "spop t, del t"),
        ("SADD a 1 2", "sadd a"),
        ("SADD b 2", "sadd b"),
        ("SINTERSTORE d a b", "sinterstore d"),
        ("SUNIONSTORE d a b", "sunionstore d"),
        ("SDIFFSTORE d a b", "sdiffstore d"),
        ("SINTERSTORE d a missing", "del d"),
        ("SINTERSTORE d a missing", ""),
        ("SREM b 2", "srem b, del b"),
        ("SRANDMEMBER a", ""),
    ];
    let mut script = Script::new(Protocol::Resp2);
    script.local.turn.notices.classes = EventClass::ALL;
    for (line, expected) in steps {
        script.run(line);
        let published = std::mem::take(&mut script.local.turn.notices.events);
        let published: Vec<String> = published
            .iter()
            .map(|notice| format!("{} {}", notice.event.name, String::from_utf8_lossy(&notice.key)))
            .collect();
        assert_eq!(published.join(", "), expected, "{line}");
    }
}

#[test]
fn a_copy_of_a_set_is_independent() {
    let mut script = Script::new(Protocol::Resp2);
    for (key, len) in build_sets(&mut script) {
        assert_eq!(script.run(&format!("COPY {key} copy REPLACE")), ":1");
        assert_eq!(script.entry("copy"), script.entry(key));
        script.run("SADD copy one-more");
        assert_eq!(script.run(&format!("SCARD {key}")), format!(":{len}"));
        assert_eq!(script.run(&format!("SDIFF copy {key}")), "*1 $8 one-more");
        assert_eq!(script.run(&format!("SDIFF {key} copy")), "*0");
    }
    script.local.keyspace.check_invariants();
}

type Model = BTreeMap<&'static str, BTreeSet<String>>;

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Debug)]
enum Step {
    Add(usize, Vec<String>),
    Remove(usize, Vec<String>),
    Move(usize, usize, String),
    Pop(usize, usize),
    Store(&'static str, usize, Vec<usize>),
}

fn member() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (-20i32..20).prop_map(|number| number.to_string()),
        2 => (0u32..60).prop_map(|number| format!("m{number}")),
        1 => (8usize..12).prop_map(|length| "x".repeat(length)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..KEYS.len();
    let some = || prop::collection::vec(member(), 1..12);
    let operation = prop::sample::select(vec!["SINTER", "SUNION", "SDIFF"]);
    prop_oneof![
        4 => (key.clone(), some()).prop_map(|(key, members)| Step::Add(key, members)),
        2 => (key.clone(), some()).prop_map(|(key, members)| Step::Remove(key, members)),
        1 => (key.clone(), key.clone(), member()).prop_map(|(from, to, member)| Step::Move(from, to, member)),
        1 => (key.clone(), 0usize..20).prop_map(|(key, count)| Step::Pop(key, count)),
        2 => (operation, key.clone(), prop::collection::vec(key, 1..5))
            .prop_map(|(operation, to, keys)| Step::Store(operation, to, keys)),
    ]
}

/// Returns the result of an operation on the model's sets.
fn operate(model: &Model, operation: &str, keys: &[usize]) -> BTreeSet<String> {
    let mut sets = keys.iter().map(|&key| model.get(KEYS[key]).cloned().unwrap_or_default());
    let first = sets.next().unwrap_or_default();
    sets.fold(first, |left, right| match operation {
        "SINTER" => &left & &right,
        "SUNION" => &left | &right,
        _ => &left - &right,
    })
}

fn run_step(script: &mut Script, model: &mut Model, step: &Step) {
    match step {
        Step::Add(key, members) => {
            let set = model.entry(KEYS[*key]).or_default();
            let added = members.iter().filter(|member| set.insert((*member).clone())).count();
            assert_eq!(
                script.run(&format!("SADD {} {}", KEYS[*key], members.join(" "))),
                format!(":{added}")
            );
        }
        Step::Remove(key, members) => {
            let set = model.entry(KEYS[*key]).or_default();
            let removed = members.iter().filter(|member| set.remove(*member)).count();
            assert_eq!(
                script.run(&format!("SREM {} {}", KEYS[*key], members.join(" "))),
                format!(":{removed}")
            );
        }
        Step::Move(from, to, member) => {
            let is_there = model.get(KEYS[*from]).is_some_and(|set| set.contains(member));
            if is_there {
                model.entry(KEYS[*from]).or_default().remove(member);
                model.entry(KEYS[*to]).or_default().insert(member.clone());
            }
            let reply = script.run(&format!("SMOVE {} {} {member}", KEYS[*from], KEYS[*to]));
            assert_eq!(reply, format!(":{}", u8::from(is_there)));
        }
        Step::Pop(key, count) => {
            let set = model.entry(KEYS[*key]).or_default();
            let popped = members(&script.run(&format!("SPOP {} {count}", KEYS[*key])));
            assert_eq!(popped.len(), set.len().min(*count));
            assert!(popped.iter().all(|member| set.remove(member)));
        }
        Step::Store(operation, to, keys) => {
            let result = operate(model, operation, keys);
            let names = keys.iter().map(|&key| KEYS[key]).collect::<Vec<_>>().join(" ");
            let direct: BTreeSet<String> =
                members(&script.run(&format!("{operation} {names}"))).into_iter().collect();
            assert_eq!(direct, result, "{operation} {names}");
            let stored = script.run(&format!("{operation}STORE {} {names}", KEYS[*to]));
            assert_eq!(stored, format!(":{}", result.len()));
            model.insert(KEYS[*to], result);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(8) * 5))]

    #[test]
    fn sets_equal_a_model_in_every_encoding(
        steps in prop::collection::vec(step(), 1..80),
        intset_entries in 0usize..30,
        listpack_entries in 0usize..30,
    ) {
        let mut script = Script::new(Protocol::Resp2);
        let limits = &mut script.local.turn.settings.encoding;
        limits.set_max_intset_entries = intset_entries;
        limits.set_max_listpack_entries = listpack_entries;
        limits.set_max_listpack_value = 9;
        let mut model = Model::new();
        for step in &steps {
            run_step(&mut script, &mut model, step);
            for (key, set) in &model {
                let reply = script.run(&format!("SMEMBERS {key}"));
                let found = members(&reply);
                prop_assert_eq!(found.len(), set.len(), "{} after {:?}", key, step);
                prop_assert_eq!(&found.into_iter().collect::<BTreeSet<_>>(), set);
                prop_assert_eq!(script.entry(key).is_empty(), set.is_empty(), "an empty set has no key");
            }
        }
        script.local.keyspace.check_invariants();
    }
}
