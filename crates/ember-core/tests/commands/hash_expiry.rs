//! Expiries of hash fields: the commands, the visibility of expired fields to clients, and the removal of expired
//! fields.

use ember_protocol::Protocol;
use emberkv_core::events::EventClass;
use emberkv_core::keyspace::SHARDS;
use emberkv_core::local::Local;
use emberkv_core::types::limits::EncodingLimits;

use crate::support::hash::{TABLES, check_encodings};
use crate::support::script::Script;

const NOT_INTEGER: &str = "-ERR value is not an integer or out of range";
const NO_FIELDS: &str = "-ERR Mandatory argument FIELDS is missing or not at the right position";
const NOT_POSITIVE: &str = "-ERR Number of fields must be a positive integer";
const NOT_POSITIVE_EXPIRE: &str = "-ERR Parameter `numFields` should be greater than 0";
const NO_MATCH: &str = "-ERR The `numfields` parameter must match the number of arguments";
const NEGATIVE: &str = "-ERR invalid expire time, must be >= 0";

#[test]
fn a_field_is_removed_when_it_expires() {
    check_encodings(&[
        ("HSET h a 1 b 2 c 3", ":3"),
        ("HEXPIRE h 10 FIELDS 2 a missing", "*2 :1 :-2"),
        ("ENTRY h", "listpackex"),
        ("HPEXPIRE h 10001 FIELDS 1 b", "*1 :1"),
        ("HTTL h FIELDS 4 a b c missing", "*4 :10 :11 :-1 :-2"),
        ("HPTTL h FIELDS 4 a b c missing", "*4 :10000 :10001 :-1 :-2"),
        ("HEXPIRETIME h FIELDS 2 a b", "*2 :1000000010 :1000000011"),
        ("HPEXPIRETIME h FIELDS 2 a c", "*2 :1000000010000 :-1"),
        ("PASS 9999", ""),
        ("HMGET h a b c", "*3 $1 1 $1 2 $1 3"),
        ("HTTL h FIELDS 1 a", "*1 :1"),
        ("PASS 1", ""),
        ("HMGET h a b c", "*3 $-1 $1 2 $1 3"),
        ("HLEN h", ":2"),
        ("PASS 1", ""),
        ("HEXISTS h b", ":0"),
        ("HKEYS h", "*1 $1 c"),
        ("HLEN h", ":1"),
    ]);
}

#[test]
fn every_command_skips_expired_fields() {
    let lines = [
        ("HGET h a", "$-1"),
        ("HMGET h a b", "*2 $-1 $1 2"),
        ("HKEYS h", "*1 $1 b"),
        ("HVALS h", "*1 $1 2"),
        ("HLEN h", ":1"),
        ("HSTRLEN h a", ":0"),
        ("HEXISTS h a", ":0"),
        ("HDEL h a", ":0"),
        ("HRANDFIELD h", "$1 b"),
        ("HRANDFIELD h 2", "*1 $1 b"),
        ("HRANDFIELD h -2", "*2 $1 b $1 b"),
        ("HSCAN h 0", "*2 $1 0 *2 $1 b $1 2"),
        ("HSETNX h a 9", ":1"),
        ("HSET h a 9", ":1"),
        ("HINCRBY h a 5", ":5"),
        ("HINCRBYFLOAT h a 5", "$1 5"),
        ("HTTL h FIELDS 1 a", "*1 :-2"),
        ("HPERSIST h FIELDS 1 a", "*1 :-2"),
        ("HEXPIRE h 10 FIELDS 1 a", "*1 :-2"),
        ("HGETDEL h FIELDS 1 a", "*1 $-1"),
        ("HGETEX h PERSIST FIELDS 1 a", "*1 $-1"),
        ("HSETEX h FNX FIELDS 1 a 9", ":1"),
        ("HSETEX h FXX FIELDS 1 a 9", ":0"),
        ("HSETEX h KEEPTTL FIELDS 1 a 9", ":1"),
    ];
    for (line, expected) in lines {
        check_encodings(&[
            ("HSET h a 1 b 2", ":2"),
            ("HPEXPIRE h 1 FIELDS 1 a", "*1 :1"),
            ("PASS 1", ""),
            (line, expected),
            ("HPTTL h FIELDS 1 b", "*1 :-1"),
        ]);
    }
}

#[test]
fn a_hash_whose_fields_have_all_expired_is_removed_at_the_next_access() {
    for line in
        ["HGET h a", "HLEN h", "HRANDFIELD h", "HDEL h a", "HTTL h FIELDS 1 a", "HGETDEL h FIELDS 1 a"]
    {
        let mut script = Script::new(Protocol::Resp2);
        script.run("HSETEX h PX 5 FIELDS 2 a 1 b 2");
        script.step("PASS 5");
        assert_eq!(script.run("EXISTS h"), ":1", "no command has accessed the fields");
        script.run(line);
        assert_eq!(script.run("EXISTS h"), ":0", "{line}");
        script.local.keyspace.check_invariants();
    }
    check_encodings(&[
        ("HSETEX h PX 5 FIELDS 1 a 1", ":1"),
        ("EXPIRE h 100", ":1"),
        ("PASS 5", ""),
        ("HSET h b 2", ":1"),
        ("TTL h", ":-1"),
    ]);
}

#[test]
fn hexpire_obeys_its_conditions() {
    check_encodings(&[
        ("HSET h a 1 b 2", ":2"),
        ("HPEXPIRE h 1000 FIELDS 1 a", "*1 :1"),
        ("HPEXPIRE h 2000 NX FIELDS 2 a b", "*2 :0 :1"),
        ("HPERSIST h FIELDS 1 b", "*1 :1"),
        ("HPEXPIRE h 2000 XX FIELDS 2 a b", "*2 :1 :0"),
        ("HPEXPIRE h 2000 GT FIELDS 2 a b", "*2 :0 :0"),
        ("HPEXPIRE h 2001 gt FIELDS 2 a b", "*2 :1 :0"),
        ("HPEXPIRE h 2001 LT FIELDS 2 a b", "*2 :0 :1"),
        ("HPEXPIRE h 1999 lt FIELDS 2 a b", "*2 :1 :1"),
        ("HPTTL h FIELDS 2 a b", "*2 :1999 :1999"),
        ("HPEXPIRE h 0 NX FIELDS 2 a c", "*2 :0 :-2"),
        ("HPEXPIRE h 0 GT FIELDS 1 a", "*1 :0"),
        ("HPEXPIRE h 0 LT FIELDS 1 a", "*1 :2"),
        ("HKEYS h", "*1 $1 b"),
    ]);
}

#[test]
fn an_expiry_in_the_past_removes_the_field() {
    check_encodings(&[
        ("HSET h a 1 b 2 c 3", ":3"),
        ("HEXPIRE h 0 FIELDS 1 a", "*1 :2"),
        ("HEXPIREAT h 1 FIELDS 2 a b", "*2 :-2 :2"),
        ("HKEYS h", "*1 $1 c"),
        ("HPEXPIREAT h 1000000000000 FIELDS 2 c c", "*2 :2 :-2"),
        ("EXISTS h", ":0"),
        ("HEXPIRE h 10 FIELDS 2 a b", "*2 :-2 :-2"),
        ("HSET h a 1", ":1"),
        ("HGETEX h EX 0 FIELDS 2 a a", "*2 $1 1 $-1"),
        ("EXISTS h", ":0"),
        ("HSETEX h PXAT 1 FIELDS 2 a 1 b 2", ":1"),
        ("EXISTS h", ":0"),
        ("HSET h a 1 b 2", ":2"),
        ("HSETEX h EX 0 FIELDS 2 a 3 c 4", ":1"),
        ("HKEYS h", "*1 $1 b"),
    ]);
}

#[test]
fn expiries_are_validated_as_in_redis() {
    check_encodings(&[
        ("HSET h a 1", ":1"),
        ("HEXPIRE h x FIELDS 1 a", NOT_INTEGER),
        ("HEXPIRE h -1 FIELDS 1 a", NEGATIVE),
        ("HPEXPIREAT h -1 FIELDS 1 a", NEGATIVE),
        ("HEXPIRE h 9223372036854775807 FIELDS 1 a", "-ERR invalid expire time in 'hexpire' command"),
        ("HPEXPIRE h 69368744177664 FIELDS 1 a", "-ERR invalid expire time in 'hpexpire' command"),
        ("HPEXPIRE h 69368744177663 FIELDS 1 a", "*1 :1"),
        ("HPEXPIRETIME h FIELDS 1 a", "*1 :70368744177663"),
        ("HEXPIREAT h 70368744178 FIELDS 1 a", "-ERR invalid expire time in 'hexpireat' command"),
        ("HPEXPIREAT h 70368744177664 FIELDS 1 a", "-ERR invalid expire time in 'hpexpireat' command"),
        ("HPEXPIREAT h 70368744177663 FIELDS 1 a", "*1 :1"),
        ("HEXPIRE missing x FIELDS 1 a", NOT_INTEGER),
        ("HEXPIRE h 10 FOO FIELDS 1 a", NO_FIELDS),
        ("HEXPIRE h 10 NX GT FIELDS 1 a", NO_FIELDS),
        ("HEXPIRE h 10 FIELDS 0 a", NOT_POSITIVE_EXPIRE),
        ("HEXPIRE h 10 FIELDS x a", NOT_POSITIVE_EXPIRE),
        ("HEXPIRE h 10 FIELDS 2 a", NO_MATCH),
        ("HEXPIRE h 10 FIELDS 1 a b", NO_MATCH),
        ("HEXPIRE h 10 NX FIELDS 1", NO_MATCH),
        ("HEXPIRE h 10 FIELDS 1", "-ERR wrong number of arguments for 'hexpire' command"),
        ("HTTL h FIELD 1 a", NO_FIELDS),
        ("HTTL h FIELDS 0 a", NOT_POSITIVE),
        ("HTTL missing FIELDS x a", NOT_POSITIVE),
        ("HPTTL h FIELDS 2 a", NO_MATCH),
        ("HTTL missing FIELDS 2 a b", "*2 :-2 :-2"),
        ("HPERSIST h FIELDS -1 a", NOT_POSITIVE),
        ("HPERSIST h FIELDS 9223372036854775808 a", NOT_POSITIVE),
        ("HPERSIST h FIELDS 1 a b", NO_MATCH),
        ("HPERSIST missing FIELDS 1 a", "*1 :-2"),
    ]);
}

#[test]
fn hpersist_removes_expiries() {
    check_encodings(&[
        ("HSETEX h PX 10 FIELDS 2 a 1 b 2", ":1"),
        ("HSET h c 3", ":1"),
        ("HPERSIST h FIELDS 4 a c missing a", "*4 :1 :-1 :-2 :-1"),
        ("PASS 10", ""),
        ("HMGET h a b c", "*3 $1 1 $-1 $1 3"),
        ("ENTRY h", "listpackex"),
    ]);
}

#[test]
fn a_set_field_loses_its_expiry_and_an_increased_one_keeps_it() {
    check_encodings(&[
        ("HSETEX h PX 1000 FIELDS 3 a 1 b 2 c 3", ":1"),
        ("HSET h a 9", ":0"),
        ("HINCRBY h b 1", ":3"),
        ("HINCRBYFLOAT h c 0.5", "$3 3.5"),
        ("HPTTL h FIELDS 3 a b c", "*3 :-1 :1000 :1000"),
        ("HSETNX h b 7", ":0"),
        ("HPTTL h FIELDS 1 b", "*1 :1000"),
        ("HMSET h b 7", "+OK"),
        ("HPTTL h FIELDS 1 b", "*1 :-1"),
    ]);
}

#[test]
fn hgetdel_returns_the_values_it_removes() {
    check_encodings(&[
        ("HSET h a 1 b 2 c 3", ":3"),
        ("HGETDEL h FIELDS 3 a missing a", "*3 $1 1 $-1 $-1"),
        ("HLEN h", ":2"),
        ("HGETDEL h FIELDS 2 b c", "*2 $1 2 $1 3"),
        ("EXISTS h", ":0"),
        ("HGETDEL h FIELDS 2 b c", "*2 $-1 $-1"),
        ("HGETDEL h FIELD 2 b c", NO_FIELDS),
        ("HGETDEL h FIELDS 0 b", NOT_POSITIVE),
        ("HGETDEL h FIELDS 2 b", NO_MATCH),
        ("HGETDEL h FIELDS 1", "-ERR wrong number of arguments for 'hgetdel' command"),
    ]);
}

#[test]
fn hgetex_returns_values_and_changes_expiries() {
    check_encodings(&[
        ("HSET h a 1 b 2 c text", ":3"),
        ("HGETEX h FIELDS 3 a c missing", "*3 $1 1 $4 text $-1"),
        ("ENTRY h", "listpack"),
        ("HGETEX h EX 10 FIELDS 2 a missing", "*2 $1 1 $-1"),
        ("HGETEX h px 500 fields 1 b", "*1 $1 2"),
        ("HPTTL h FIELDS 3 a b c", "*3 :10000 :500 :-1"),
        ("HGETEX h EXAT 1000000002 FIELDS 1 a", "*1 $1 1"),
        ("HGETEX h PXAT 1000000000300 FIELDS 1 b", "*1 $1 2"),
        ("HPTTL h FIELDS 3 a b c", "*3 :2000 :300 :-1"),
        ("HGETEX h FIELDS 1 a", "*1 $1 1"),
        ("HGETEX h PERSIST FIELDS 2 a c", "*2 $1 1 $4 text"),
        ("HPTTL h FIELDS 3 a b c", "*3 :-1 :300 :-1"),
        ("HGETEX missing EX 10 FIELDS 2 a b", "*2 $-1 $-1"),
        ("EXISTS missing", ":0"),
        ("HGETEX h XFIELDX 1 a", NO_FIELDS),
        ("HGETEX h PXAT 1 1", NO_FIELDS),
        ("HGETEX h PERSIST 1 FIELDS 1 a", NO_FIELDS),
        ("HGETEX h EX 10 PERSIST FIELDS 1 a", NO_FIELDS),
        ("HGETEX h KEEPTTL FIELDS 1 a", NO_FIELDS),
        ("HGETEX h EX 10 FIELDS", NOT_POSITIVE),
        ("HGETEX h FIELDS 2 a", NO_MATCH),
        ("HGETEX h FIELDS 0 a", NOT_POSITIVE),
        ("HGETEX h FIELDS 9223372036854775808 a", NOT_POSITIVE),
        ("HGETEX h EX x FIELDS 1 a", NOT_INTEGER),
        ("HGETEX h PX -1 FIELDS 1 a", NEGATIVE),
        ("HGETEX h EXAT 99999999999 FIELDS 1 a", "-ERR invalid expire time in 'hgetex' command"),
        ("HGETEX h FIELDS 1", "-ERR wrong number of arguments for 'hgetex' command"),
    ]);
}

#[test]
fn hsetex_sets_fields_with_an_expiry() {
    check_encodings(&[
        ("HSETEX h FIELDS 2 a 1 b 2", ":1"),
        ("ENTRY h", "listpack"),
        ("HSETEX h EX 10 FIELDS 1 a 3", ":1"),
        ("HSETEX h px 500 fields 1 c 4", ":1"),
        ("HPTTL h FIELDS 3 a b c", "*3 :10000 :-1 :500"),
        ("HMGET h a b c", "*3 $1 3 $1 2 $1 4"),
        ("HSETEX h KEEPTTL FIELDS 3 a 5 b 6 d 7", ":1"),
        ("HPTTL h FIELDS 4 a b c d", "*4 :10000 :-1 :500 :-1"),
        ("HSETEX h FIELDS 1 a 8", ":1"),
        ("HPTTL h FIELDS 1 a", "*1 :-1"),
        ("HSETEX h EXAT 1000000001 FXX FIELDS 2 a 9 b 9", ":1"),
        ("HPTTL h FIELDS 2 a b", "*2 :1000 :1000"),
        ("HSETEX h FXX EX 9 FIELDS 2 a 0 missing 0", ":0"),
        ("HSETEX h FNX EX 9 FIELDS 2 missing 0 a 0", ":0"),
        ("HSETEX h FNX PXAT 1000000000777 FIELDS 2 x 1 y 2", ":1"),
        ("HMGET h a b x y missing", "*5 $1 9 $1 9 $1 1 $1 2 $-1"),
        ("HPTTL h FIELDS 2 x a", "*2 :777 :1000"),
        ("HSETEX new FXX FIELDS 1 a 1", ":0"),
        ("EXISTS new", ":0"),
        ("HSETEX new FNX FIELDS 2 a 1 a 2", ":1"),
        ("HGET new a", "$1 2"),
        ("HSETEX new NX FIELDS 1 b 1", ":0"),
        ("HSETEX other XX EX 9 FIELDS 1 b 1", ":0"),
        ("EXISTS other", ":0"),
        ("HSETEX other nx EX 9 FIELDS 1 b 1", ":1"),
        ("HSETEX other XX FNX KEEPTTL FIELDS 1 b 1", ":0"),
        ("HSETEX other FXX XX KEEPTTL FIELDS 1 b 2", ":1"),
        ("HPTTL other FIELDS 1 b", "*1 :9000"),
    ]);
}

#[test]
fn hsetex_refuses_the_same_calls_as_redis() {
    const EXPIRY: &str = "-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified";
    const CONDITION: &str = "-ERR Only one of FXX or FNX arguments can be specified";
    const ARITY: &str = "-ERR wrong number of arguments for 'hsetex' command";
    check_encodings(&[
        ("HSETEX h FIELDS 1 a", ARITY),
        ("HSETEX h FIELDS 2 a b", ARITY),
        ("HSETEX h FIELDS 2 a b c", ARITY),
        ("HSETEX h FIELDS 3 a b c d", ARITY),
        ("HSETEX h FIELDS 1 a b unknown", ARITY),
        ("HSETEX h FIELDS 1 a b EX 10", ARITY),
        ("HSETEX h EX 10 FIELDS 1 a", ARITY),
        ("HSETEX h FIELDS 0 a b", "-ERR invalid number of fields"),
        ("HSETEX h FIELDS x a b", "-ERR invalid number of fields"),
        ("HSETEX h FIELDS 2147483648 a b", "-ERR invalid number of fields"),
        ("HSETEX h GT FIELDS 1 a b", "-ERR unknown argument: GT"),
        ("HSETEX h NX XX FIELDS 1 a b", "-ERR Only one of NX or XX arguments can be specified"),
        ("HSETEX h 1 FIELDS 1 a b", "-ERR unknown argument: 1"),
        ("HSETEX h FXX FXX FIELDS 1 a b", CONDITION),
        ("HSETEX h FNX FXX FIELDS 1 a b", CONDITION),
        ("HSETEX h EX 10 EX 10 FIELDS 1 a b", EXPIRY),
        ("HSETEX h EX 10 KEEPTTL FIELDS 1 a b", EXPIRY),
        ("HSETEX h KEEPTTL PXAT 10 FIELDS 1 a b", EXPIRY),
        ("HSETEX h FNX KEEPTTL FXX EX", CONDITION),
        ("HSETEX h a b c EX", "-ERR unknown argument: a"),
        ("HSETEX h EX 10 FNX PX", EXPIRY),
        ("HSETEX h EX x FIELDS 1 a b", NOT_INTEGER),
        ("HSETEX h EX -1 FIELDS 1 a b", NEGATIVE),
        ("HSETEX h EX 9223372036854775807 FIELDS 1 a b", "-ERR invalid expire time in 'hsetex' command"),
        ("EXISTS h", ":0"),
    ]);
}

/// Runs active expiry on all shards with a budget of `budget` checks; returns the number of checks.
fn expire(local: &mut Local, budget: usize) -> usize {
    local.keyspace.expire_due(0..SHARDS, &mut local.turn, budget).1
}

#[test]
fn expired_fields_are_removed_without_any_access() {
    for limits in [EncodingLimits::DEFAULT, TABLES] {
        let mut script = Script::new(Protocol::Resp2);
        script.local.turn.settings.encoding = limits;
        for key in 0..100 {
            script.run(&format!("HSETEX all{key} PX {} FIELDS 2 a 1 b 2", 1000 + key));
            script.run(&format!("HSETEX some{key} PX {} FIELDS 2 a 1 b 2", 1000 + key));
            script.run(&format!("HSET some{key} c 3"));
        }
        let before = script.local.keyspace.used_bytes();
        expire(&mut script.local, usize::MAX);
        assert_eq!(script.local.keyspace.len(0), 200, "no field is removed early");
        script.local.turn.now_ms += 1300;
        script.local.turn.notices.classes = EventClass::ALL;
        expire(&mut script.local, usize::MAX);
        assert_eq!(script.local.keyspace.len(0), 100);
        assert_eq!(script.local.turn.counters.expired, 0, "no key has an expiry");
        let count = |name: &str| {
            script.local.turn.notices.events.iter().filter(|notice| notice.event.name == name).count()
        };
        assert_eq!((count("hexpired"), count("del"), count("expired")), (200, 100, 0));
        script.local.turn.notices.classes = EventClass::empty();
        assert_eq!(script.run("HGETALL some7"), "*2 $1 c $1 3");
        assert!(script.local.keyspace.used_bytes() < before);
        script.local.keyspace.check_invariants();
    }
}

#[test]
fn many_fields_that_expire_at_once_are_removed_in_bounded_steps() {
    const FIELDS: usize = 200_000;
    const BUDGET: usize = 1000;
    let mut local = Local::new(Protocol::Resp2);
    for number in 0..FIELDS {
        let name = number.to_string();
        local.run(&[b"HSETEX", b"h", b"PX", b"10", b"FIELDS", b"1", name.as_bytes(), b"v"]);
    }
    local.run(&[b"HSET", b"h", b"kept", b"v"]);
    local.turn.now_ms += 200;
    // An access to the hash removes some expired fields, hides the other expired fields, and does not take the time to
    // remove them.
    assert_eq!(local.run(&[b"HGET", b"h", b"7"]), b"$-1\r\n");
    let left = |local: &mut Local| -> usize {
        String::from_utf8(local.run(&[b"HLEN", b"h"])).unwrap()[1..].trim_end().parse().unwrap()
    };
    assert!(left(&mut local) > FIELDS / 2);
    assert_eq!(local.run(&[b"HKEYS", b"h"]), b"*1\r\n$4\r\nkept\r\n");
    assert_eq!(
        local.run(&[b"HSCAN", b"h", b"0", b"COUNT", b"1000000"]).split(|&byte| byte == b'*').count(),
        3
    );
    let mut rounds = 0;
    while left(&mut local) > 1 {
        let looks = expire(&mut local, BUDGET);
        assert!((1..=BUDGET).contains(&looks), "{looks} looks");
        rounds += 1;
    }
    assert!(rounds <= FIELDS / BUDGET, "{rounds} rounds");
    local.keyspace.check_invariants();
}

#[test]
fn expiries_of_fields_move_and_copy_with_the_hash() {
    for entries in ["512", "0"] {
        let mut script = Script::new(Protocol::Resp2);
        script.local.turn.settings.encoding.hash_max_listpack_entries = entries.parse().unwrap();
        script.run("HSETEX h PX 1000 FIELDS 1 a 1");
        script.run("HSET h b 2");
        script.run("COPY h copied");
        script.run("RENAME h renamed");
        script.run("HSETEX h PX 1000 FIELDS 1 a 1");
        script.run("MOVE h 1");
        assert_eq!(script.run("HPTTL copied FIELDS 2 a b"), "*2 :1000 :-1");
        assert_eq!(script.run("HPTTL renamed FIELDS 2 a b"), "*2 :1000 :-1");
        script.local.turn.now_ms += 1200;
        expire(&mut script.local, usize::MAX);
        assert_eq!(script.local.keyspace.len(0), 2);
        assert_eq!(script.local.keyspace.len(1), 0);
        assert_eq!(script.run("HKEYS copied"), "*1 $1 b");
        assert_eq!(script.run("HKEYS renamed"), "*1 $1 b");
        script.local.keyspace.check_invariants();
    }
}

#[test]
fn stale_references_to_fields_stay_bounded() {
    type Step = fn(u64) -> String;
    let steps: [(&str, Step); 5] = [
        ("an expiry that moves later", |n| format!("HPEXPIRE h {} FIELDS 1 a", 1_000_000 + n)),
        ("an expiry that moves earlier", |n| format!("HPEXPIRE h {} FIELDS 1 a", 100_000_000 - n)),
        ("an expiry that is set and removed", |n| match n % 2 {
            0 => "HPEXPIRE h 5000 FIELDS 1 a".into(),
            _ => "HPERSIST h FIELDS 1 a".into(),
        }),
        ("fields that are added and removed", |n| match n % 2 {
            0 => format!("HSETEX h PX 60000 FIELDS 1 f{} 1", n / 2 % 50),
            _ => format!("HDEL h f{}", n / 2 % 50),
        }),
        ("fields set again", |n| format!("HSETEX h PX {} FIELDS 1 f{} 1", 60_000 + n, n % 50)),
    ];
    for entries in [512, 0] {
        for (what, step) in steps {
            let mut script = Script::new(Protocol::Resp2);
            script.local.turn.settings.encoding.hash_max_listpack_entries = entries;
            script.run("HSET h a 1");
            (0..100).for_each(|n| drop(script.run(&step(n))));
            let before = script.local.keyspace.used_bytes();
            (100..20_000).for_each(|n| drop(script.run(&step(n))));
            script.local.keyspace.check_invariants();
            let after = script.local.keyspace.used_bytes();
            assert!(after <= before + 8192, "{what}: {before} bytes became {after}");
        }
    }
}
