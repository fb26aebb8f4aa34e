//! Tests of hash commands, which compare the bytes of replies for every encoding.

use std::collections::HashSet;

use ember_protocol::Protocol;
use emberkv_core::events::EventClass;
use emberkv_core::local::Local;

use crate::support::hash::check_encodings;
use crate::support::script::Script;
use crate::support::words::words_of;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_INTEGER: &str = "-ERR value is not an integer or out of range";
const SYNTAX: &str = "-ERR syntax error";

#[test]
fn hget_returns_the_value_that_hset_stored() {
    check_encodings(&[
        ("HSET h name Ann age 30", ":2"),
        ("HGET h name", "$3 Ann"),
        ("HGET h age", "$2 30"),
        ("HGET h other", "$-1"),
        ("HGET missing name", "$-1"),
        ("HSET h name Bob city Rome", ":1"),
        ("HGET h name", "$3 Bob"),
        ("HLEN h", ":3"),
        ("HLEN missing", ":0"),
        ("ENTRY h", "listpack"),
        ("HSET h \"\" \"\"", ":1"),
        ("HGET h \"\"", "$0"),
        ("HSET h \"\\xff\\x00\" \"a\\r\\nb\"", ":1"),
        ("HGET h \"\\xff\\x00\"", "$4 a b"),
        ("HSET h 12 -0 -0 012", ":2"),
        ("HMGET h 12 -0 012", "*3 $2 -0 $3 012 $-1"),
        ("HSET h f", "-ERR wrong number of arguments for 'hset' command"),
        ("HSET h f 1 g", "-ERR wrong number of arguments for 'hset' command"),
        ("HSET h f 1 f 2 f 3", ":1"),
        ("HGET h f", "$1 3"),
        ("HGET h", "-ERR wrong number of arguments for 'hget' command"),
    ]);
}

#[test]
fn hmset_replies_ok() {
    check_encodings(&[
        ("HMSET h a 1 b 2", "+OK"),
        ("HMSET h a 3", "+OK"),
        ("HMGET h a b c", "*3 $1 3 $1 2 $-1"),
        ("HMGET missing a b", "*2 $-1 $-1"),
        ("HMSET h a 1 b", "-ERR wrong number of arguments for 'hmset' command"),
    ]);
}

#[test]
fn hsetnx_sets_only_absent_fields() {
    check_encodings(&[
        ("HSETNX h a 1", ":1"),
        ("HSETNX h a 2", ":0"),
        ("HSETNX h b 3", ":1"),
        ("HMGET h a b", "*2 $1 1 $1 3"),
    ]);
}

#[test]
fn hdel_removes_fields_and_the_key_with_the_last_one() {
    check_encodings(&[
        ("HSET h a 1 b 2 c 3", ":3"),
        ("HDEL h a missing a", ":1"),
        ("HEXISTS h a", ":0"),
        ("HEXISTS h b", ":1"),
        ("HDEL h missing", ":0"),
        ("HDEL h b c d", ":2"),
        ("ENTRY h", ""),
        ("HDEL h b", ":0"),
        ("EXISTS h", ":0"),
        ("HEXISTS h b", ":0"),
    ]);
}

#[test]
fn hstrlen_counts_bytes() {
    check_encodings(&[
        ("HSET h a hello b -12 c \"\"", ":3"),
        ("HSTRLEN h a", ":5"),
        ("HSTRLEN h b", ":3"),
        ("HSTRLEN h c", ":0"),
        ("HSTRLEN h d", ":0"),
        ("HSTRLEN missing d", ":0"),
    ]);
}

#[test]
fn hincrby_adds_to_integers() {
    check_encodings(&[
        ("HINCRBY h n 5", ":5"),
        ("HINCRBY h n -7", ":-2"),
        ("HINCRBY h n 2", ":0"),
        ("HGET h n", "$1 0"),
        ("HSET h s abc f 1.5 big 9223372036854775807 spaced \" 1\"", ":4"),
        ("HINCRBY h s 1", "-ERR hash value is not an integer"),
        ("HINCRBY h f 1", "-ERR hash value is not an integer"),
        ("HINCRBY h spaced 1", "-ERR hash value is not an integer"),
        ("HINCRBY h big 1", "-ERR increment or decrement would overflow"),
        ("HINCRBY h big -1", ":9223372036854775806"),
        ("HINCRBY h n x", NOT_INTEGER),
        ("HINCRBY new n x", NOT_INTEGER),
        ("ENTRY new", ""),
        ("HINCRBY h new -9223372036854775808", ":-9223372036854775808"),
        ("HINCRBY h new -1", "-ERR increment or decrement would overflow"),
    ]);
}

#[test]
fn hincrbyfloat_adds_long_doubles() {
    check_encodings(&[
        ("HINCRBYFLOAT h f 10.5", "$4 10.5"),
        ("HINCRBYFLOAT h f 0.1", "$4 10.6"),
        ("HINCRBYFLOAT h f -10.6", "$1 0"),
        ("HSET h n 5 e 5.0e3 s abc i inf", ":4"),
        ("HINCRBYFLOAT h n 2.0", "$1 7"),
        ("HINCRBYFLOAT h e 200", "$4 5200"),
        ("HINCRBYFLOAT h s 1", "-ERR hash value is not a float"),
        ("HINCRBYFLOAT h n x", "-ERR value is not a valid float"),
        ("HINCRBYFLOAT h n nan", "-ERR value is not a valid float"),
        ("HINCRBYFLOAT h n inf", "-ERR value is NaN or Infinity"),
        ("HINCRBYFLOAT h n -inf", "-ERR value is NaN or Infinity"),
        ("HINCRBYFLOAT h i 1", "-ERR increment would produce NaN or Infinity"),
        ("HINCRBYFLOAT h \"\" 0.1", "$3 0.1"),
        ("HINCRBYFLOAT new n x", "-ERR value is not a valid float"),
        ("ENTRY new", ""),
        ("HGET h n", "$1 7"),
    ]);
}

#[test]
fn a_hash_of_one_field_is_read_whole() {
    check_encodings(&[
        ("HSET h a 1", ":1"),
        ("HKEYS h", "*1 $1 a"),
        ("HVALS h", "*1 $1 1"),
        ("HRANDFIELD h", "$1 a"),
        ("HRANDFIELD h 5", "*1 $1 a"),
        ("HRANDFIELD h -3", "*3 $1 a $1 a $1 a"),
        ("HRANDFIELD h 0", "*0"),
        ("HSCAN h 0", "*2 $1 0 *2 $1 a $1 1"),
        ("HSCAN h 0 NOVALUES", "*2 $1 0 *1 $1 a"),
        ("HSCAN h 0 COUNT 1 NOVALUES MATCH b*", "*2 $1 0 *0"),
        ("HKEYS missing", "*0"),
        ("HVALS missing", "*0"),
        ("HRANDFIELD missing", "$-1"),
        ("HRANDFIELD missing 3", "*0"),
        ("HRANDFIELD missing 3 WITHVALUES", "*0"),
        ("HSCAN missing 0", "*2 $1 0 *0"),
    ]);
}

#[test]
fn pairs_are_maps_and_arrays_of_two_in_resp3() {
    let run = |protocol, line: &str| {
        let mut script = Script::new(protocol);
        script.run("HSET h a 1");
        script.run(line)
    };
    assert_eq!(run(Protocol::Resp2, "HGETALL h"), "*2 $1 a $1 1");
    assert_eq!(run(Protocol::Resp3, "HGETALL h"), "%1 $1 a $1 1");
    assert_eq!(run(Protocol::Resp2, "HGETALL missing"), "*0");
    assert_eq!(run(Protocol::Resp3, "HGETALL missing"), "%0");
    assert_eq!(run(Protocol::Resp2, "HRANDFIELD h -2 WITHVALUES"), "*4 $1 a $1 1 $1 a $1 1");
    assert_eq!(run(Protocol::Resp3, "HRANDFIELD h -2 WITHVALUES"), "*2 *2 $1 a $1 1 *2 $1 a $1 1");
    assert_eq!(run(Protocol::Resp2, "HRANDFIELD h 2 withvalues"), "*2 $1 a $1 1");
    assert_eq!(run(Protocol::Resp3, "HRANDFIELD h 2 withvalues"), "*1 *2 $1 a $1 1");
    assert_eq!(run(Protocol::Resp3, "HSCAN h 0"), "*2 $1 0 *2 $1 a $1 1");
}

#[test]
fn options_are_validated_as_in_redis() {
    let range = "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
    check_encodings(&[
        ("HSET h a 1 b 2", ":2"),
        ("HRANDFIELD h x", NOT_INTEGER),
        ("HRANDFIELD h 1 x", SYNTAX),
        ("HRANDFIELD h 1 WITHVALUES x", SYNTAX),
        ("HRANDFIELD h -9223372036854775808", range),
        ("HRANDFIELD h -9223372036854775807 WITHVALUES", "-ERR value is out of range"),
        ("HRANDFIELD h 4611686018427387904 WITHVALUES", "-ERR value is out of range"),
        ("HRANDFIELD missing 1 x", SYNTAX),
        ("HSCAN h x", "-ERR invalid cursor"),
        ("HSCAN missing x", "-ERR invalid cursor"),
        ("HSCAN h 0 foo", SYNTAX),
        ("HSCAN h 0 COUNT 0", SYNTAX),
        ("HSCAN h 0 COUNT x", NOT_INTEGER),
        ("HSCAN h 0 MATCH", SYNTAX),
        ("HSCAN h 0 TYPE hash", SYNTAX),
        ("HSCAN missing 0 COUNT 0", "*2 $1 0 *0"),
    ]);
}

#[test]
fn other_types_are_refused() {
    let lines = [
        "HSET s f v",
        "HSETNX s f v",
        "HMSET s f v",
        "HGET s f",
        "HMGET s f",
        "HGETALL s",
        "HKEYS s",
        "HVALS s",
        "HLEN s",
        "HSTRLEN s f",
        "HEXISTS s f",
        "HDEL s f",
        "HINCRBY s f 1",
        "HINCRBYFLOAT s f 1",
        "HRANDFIELD s",
        "HRANDFIELD s 1",
        "HSCAN s 0",
        "HEXPIRE s x FIELDS 1 f",
        "HPEXPIRE s 1 FIELDS 1 f",
        "HEXPIREAT s 1 FIELDS 1 f",
        "HPEXPIREAT s 1 FIELDS 1 f",
        "HTTL s FIELDS 0 f",
        "HPTTL s FIELDS 1 f",
        "HEXPIRETIME s FIELDS 1 f",
        "HPEXPIRETIME s FIELDS 1 f",
        "HPERSIST s x 1 f",
        "HGETDEL s FIELDS 2 f",
        "HGETEX s EX x FIELDS 1 f",
        "HSETEX s FIELDS 1 f v",
    ];
    let mut script = Script::new(Protocol::Resp2);
    script.run("SET s 1");
    for line in lines {
        assert_eq!(script.run(line), WRONG_TYPE, "{line}");
    }
    script.run("HSET h f v");
    assert_eq!(script.run("GET h"), WRONG_TYPE);
    assert_eq!(script.run("TYPE h"), "+hash");
    assert_eq!(script.run("SET h 1"), "+OK");
}

/// Returns the events of the last line of a script, such as `hset h`.
fn events_of(lines: &[&str]) -> Vec<String> {
    let mut script = Script::new(Protocol::Resp2);
    let (last, before) = lines.split_last().expect("the script has a line");
    before.iter().for_each(|line| drop(script.step(line)));
    script.local.turn.notices.classes = EventClass::ALL;
    script.step(last);
    let events = std::mem::take(&mut script.local.turn.notices.events);
    events.iter().map(|notice| format!("{} {}", notice.event.name, notice.key.escape_ascii())).collect()
}

#[test]
fn changes_are_published_as_events() {
    let cases: [(&[&str], &[&str]); 41] = [
        (&["HSET h a 1 b 2"], &["hset h"]),
        (&["HMSET h a 1"], &["hset h"]),
        (&["HSETNX h a 1"], &["hset h"]),
        (&["HSET h a 1", "HSETNX h a 2"], &[]),
        (&["HSET h a 1", "HGET h a"], &[]),
        (&["HINCRBY h a 1"], &["hincrby h"]),
        (&["HINCRBY h a 0"], &["hincrby h"]),
        (&["HSET h a x", "HINCRBY h a 1"], &[]),
        (&["HINCRBYFLOAT h a 1"], &["hincrbyfloat h"]),
        (&["HSET h a 1 b 2", "HDEL h a c"], &["hdel h"]),
        (&["HSET h a 1 b 2", "HDEL h a b"], &["hdel h", "del h"]),
        (&["HSET h a 1", "HDEL h c"], &[]),
        (&["HSET h a 1", "HEXPIRE h 10 FIELDS 2 a b"], &["hexpire h"]),
        (&["HSET h a 1 b 2", "HPEXPIRE h 10 FIELDS 2 a b"], &["hexpire h"]),
        (&["HSET h a 1 b 2 c 3", "HEXPIREAT h 1 FIELDS 2 a b"], &["hdel h"]),
        (&["HSET h a 1 b 2", "HPEXPIREAT h 1 FIELDS 2 a b"], &["hdel h", "del h"]),
        (&["HSETEX h EX 9 FIELDS 2 a 1 b 2", "HPERSIST h FIELDS 2 a b"], &["hpersist h"]),
        (&["HSET h a 1 b 2", "HGETEX h PXAT 1 FIELDS 2 a b"], &["hdel h", "del h"]),
        (&["HSETEX h EX 9 FIELDS 2 a 1 b 2", "HGETEX h PERSIST FIELDS 2 a b"], &["hpersist h"]),
        (&["HSETEX h EXAT 1 FIELDS 2 a 1 b 2"], &["hset h", "hdel h", "del h"]),
        (&["HSET h a 1", "HEXPIRE h 10 XX FIELDS 2 a b"], &[]),
        (&["HSET h a 1 b 2", "HEXPIRE h 0 FIELDS 1 a"], &["hdel h"]),
        (&["HSET h a 1", "HEXPIRE h 0 FIELDS 1 a"], &["hdel h", "del h"]),
        (&["HSETEX h EX 9 FIELDS 1 a 1", "HPERSIST h FIELDS 1 a"], &["hpersist h"]),
        (&["HSET h a 1", "HPERSIST h FIELDS 1 a"], &[]),
        (&["HSET h a 1", "HGETDEL h FIELDS 1 a"], &["hdel h", "del h"]),
        (&["HSET h a 1", "HGETDEL h FIELDS 1 b"], &[]),
        (&["HSET h a 1", "HGETEX h FIELDS 1 a"], &[]),
        (&["HSET h a 1", "HGETEX h EX 9 FIELDS 1 a"], &["hexpire h"]),
        (&["HSET h a 1", "HGETEX h EX 0 FIELDS 1 a"], &["hdel h", "del h"]),
        (&["HSET h a 1", "HGETEX h PERSIST FIELDS 1 a"], &[]),
        (&["HSETEX h EX 9 FIELDS 1 a 1", "HGETEX h PERSIST FIELDS 1 a"], &["hpersist h"]),
        (&["HSETEX h FIELDS 1 a 1"], &["hset h"]),
        (&["HSETEX h KEEPTTL FIELDS 1 a 1"], &["hset h"]),
        (&["HSETEX h EX 9 FIELDS 1 a 1"], &["hset h", "hexpire h"]),
        (&["HSETEX h EX 0 FIELDS 1 a 1"], &["hset h", "hdel h", "del h"]),
        (&["HSETEX h FXX EX 9 FIELDS 1 a 1"], &[]),
        (&["HSETEX h PX 1 FIELDS 2 a 1 b 2", "HSET h c 3", "PASS 1", "HGET h a"], &["hexpired h"]),
        (&["HSETEX h PX 1 FIELDS 2 a 1 b 2", "PASS 1", "HGET h a"], &["hexpired h", "del h"]),
        (&["HSETEX h PX 1 FIELDS 1 a 1", "PASS 1", "HSET h b 2"], &["hexpired h", "del h", "hset h"]),
        (&["HSETEX h PX 1 FIELDS 1 a 1", "PASS 1", "HGETDEL h FIELDS 1 a"], &["hexpired h", "del h"]),
    ];
    for (lines, expected) in cases {
        assert_eq!(events_of(lines), expected, "{lines:?}");
    }
}

#[test]
fn the_encoding_depends_on_the_limits() {
    let long = "x".repeat(65);
    let fits = "y".repeat(64);
    let mut script = Script::new(Protocol::Resp2);
    let encoding_after = |script: &mut Script, line: &str| {
        script.run(line);
        script.entry("h")
    };
    assert_eq!(encoding_after(&mut script, &format!("HSET h f {fits} {fits} v")), "listpack");
    assert_eq!(encoding_after(&mut script, &format!("HSET h f {long}")), "hashtable");
    assert_eq!(encoding_after(&mut script, "HSET h f v"), "hashtable");
    script.run("DEL h");
    assert_eq!(encoding_after(&mut script, &format!("HSET h {long} v")), "hashtable");
    script.run("DEL h");
    for number in 0..512 {
        assert_eq!(encoding_after(&mut script, &format!("HSET h f{number} v")), "listpack");
    }
    assert_eq!(encoding_after(&mut script, "HSET h f0 w"), "listpack");
    assert_eq!(encoding_after(&mut script, "HPEXPIRE h 100 FIELDS 2 f1 f2"), "listpackex");
    assert_eq!(encoding_after(&mut script, "HSET h other v"), "hashtable");
    assert_eq!(script.run("HPTTL h FIELDS 4 f1 f2 f3 other"), "*4 :100 :100 :-1 :-1");
    assert_eq!(script.run("HLEN h"), ":513");
    script.run("DEL h");
    script.local.turn.settings.encoding.hash_max_listpack_value = 3;
    assert_eq!(encoding_after(&mut script, "HSET h a 999"), "listpack");
    assert_eq!(encoding_after(&mut script, "HINCRBY h a 1"), "hashtable");
    script.local.keyspace.check_invariants();
}

#[test]
fn a_large_value_is_shared_and_not_copied() {
    let mut local = Local::new(Protocol::Resp2);
    let value = vec![b'v'; 100_000];
    assert_eq!(local.run(&[b"HSET", b"h", b"large", &value, b"small", b"1"]), b":2\r\n");
    let reply = local.run(&[b"HGET", b"h", b"large"]);
    assert_eq!(reply.len(), b"$100000\r\n".len() + value.len() + 2);
    assert_eq!(local.run(&[b"HSTRLEN", b"h", b"large"]), b":100000\r\n");
    assert_eq!(local.run(&[b"HINCRBY", b"h", b"large", b"1"]), b"-ERR hash value is not an integer\r\n");
    assert_eq!(local.run(&[b"HINCRBYFLOAT", b"h", b"large", b"1"]), b"-ERR hash value is not a float\r\n");
    local.keyspace.check_invariants();
}

/// Returns a keyspace with a hash of `len` fields `0`, `1`, … whose values equal their names.
fn numbered(len: usize) -> Local {
    let mut local = Local::new(Protocol::Resp2);
    for number in 0..len {
        let name = number.to_string();
        local.run(&[b"HSET", b"h", name.as_bytes(), name.as_bytes()]);
    }
    local
}

/// Returns the bulk strings of a flat reply.
fn bulks(reply: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(reply);
    let lines: Vec<&str> = text.split("\r\n").collect();
    let is_head = |index: usize| index > 0 && lines[index - 1].starts_with('$');
    (0..lines.len()).filter(|&index| is_head(index)).map(|index| lines[index].to_string()).collect()
}

#[test]
fn hrandfield_returns_different_fields_up_to_all() {
    for len in [1, 10, 500, 2000] {
        let mut local = numbered(len);
        for count in [1, len / 4, len / 2, len - 1, len, len + 5] {
            let count_text = count.to_string();
            let fields = bulks(&local.run(&[b"HRANDFIELD", b"h", count_text.as_bytes()]));
            let different: HashSet<&String> = fields.iter().collect();
            assert_eq!((fields.len(), different.len()), (count.min(len), count.min(len)), "{count} of {len}");
            let pairs = bulks(&local.run(&[b"HRANDFIELD", b"h", count_text.as_bytes(), b"WITHVALUES"]));
            assert_eq!(pairs.len(), 2 * count.min(len));
            assert!(pairs.chunks(2).all(|pair| pair[0] == pair[1]), "each value follows its field");
        }
        let many = bulks(&local.run(&[b"HRANDFIELD", b"h", b"-3000"]));
        assert_eq!(many.len(), 3000);
    }
}

#[test]
fn hrandfield_returns_every_field_with_equal_probability() {
    for len in [10, 600] {
        let mut local = numbered(len);
        for count in ["-30000", "3"] {
            let mut seen = vec![0usize; len];
            while seen.iter().sum::<usize>() < 30_000 {
                for field in bulks(&local.run(&[b"HRANDFIELD", b"h", count.as_bytes()])) {
                    seen[field.parse::<usize>().unwrap()] += 1;
                }
            }
            let expected = seen.iter().sum::<usize>() as f64 / len as f64;
            let chi_squared: f64 = seen.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
            // The limit of chi-square: its mean, which is the number of degrees of freedom, plus six standard
            // deviations.
            let limit = len as f64 + 6.0 * (2.0 * len as f64).sqrt();
            assert!(chi_squared < limit, "{count} of {len}: {chi_squared}");
        }
    }
}

#[test]
fn replies_are_bounded_for_any_count() {
    let mut local = numbered(10);
    let too_long = b"-ERR the reply would be longer than proto-max-bulk-len\r\n";
    assert_eq!(local.run(&[b"HRANDFIELD", b"h", b"-9223372036854775807"]), too_long);
    local.turn.settings.string_bytes_max = 1000;
    assert_eq!(local.run(&[b"HRANDFIELD", b"h", b"-166"]), too_long);
    assert_eq!(bulks(&local.run(&[b"HRANDFIELD", b"h", b"-100"])).len(), 100);
    assert_eq!(bulks(&local.run(&[b"HRANDFIELD", b"h", b"9223372036854775807"])).len(), 10);
}

#[test]
fn hscan_returns_every_field_present_throughout() {
    for len in [5, 400, 5000] {
        let mut local = numbered(len);
        let (mut cursor, mut seen, mut calls) = (String::from("0"), HashSet::new(), 0);
        loop {
            let reply = bulks(&local.run(&[b"HSCAN", b"h", cursor.as_bytes(), b"COUNT", b"50", b"NOVALUES"]));
            seen.extend(reply[1..].iter().cloned());
            cursor = reply[0].clone();
            calls += 1;
            if cursor == "0" {
                break;
            }
            // The iteration must return the fields that remain, whatever fields are added and removed meanwhile.
            let coming = format!("new{calls}");
            local.run(&[b"HSET", b"h", coming.as_bytes(), b"1"]);
            local.run(&[b"HDEL", b"h", format!("new{}", calls / 2).as_bytes()]);
        }
        assert!((0..len).all(|number| seen.contains(&number.to_string())), "{len} fields in {calls} calls");
        assert!(len <= 512 || calls > len / 100, "{calls} calls");
    }
}

#[test]
fn lines_with_arguments_of_any_bytes_do_not_panic() {
    let mut script = Script::new(Protocol::Resp3);
    let words =
        ["h", "", "0", "-1", "FIELDS", "1", "EX", "NX", "9223372036854775807", "\"\\xff\"", "PERSIST"];
    let commands =
        ["HSET", "HGETEX", "HSETEX", "HEXPIRE", "HTTL", "HPERSIST", "HGETDEL", "HSCAN", "HRANDFIELD"];
    let mut number = 1u64;
    for round in 0..20_000 {
        let mut draw = |below: usize| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (number >> 33) as usize % below
        };
        let mut line = format!("{} h", commands[draw(commands.len())]);
        for _ in 0..draw(8) {
            let word = words[draw(words.len())];
            line = format!("{line} {}", if word.is_empty() { "\"\"" } else { word });
        }
        assert!(!words_of(&line).is_empty());
        script.run(&line);
        if round % 1000 == 0 {
            script.step("PASS 1000");
            script.local.keyspace.check_invariants();
        }
    }
}
