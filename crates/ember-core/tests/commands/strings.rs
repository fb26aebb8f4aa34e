//! Tests of string commands, which compare the bytes of replies.

use ember_protocol::Protocol;
use emberkv_core::local::Local;

use crate::support::script::{Script, check, check_in};

const NOT_INTEGER: &str = "-ERR value is not an integer or out of range";
const NOT_FLOAT: &str = "-ERR value is not a valid float";
const OVERFLOW: &str = "-ERR increment or decrement would overflow";
const SYNTAX: &str = "-ERR syntax error";
const TOO_LONG: &str = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";

#[test]
fn get_returns_the_value_that_set_stored() {
    check(&[
        ("SET hello world", "+OK"),
        ("GET hello", "$5 world"),
        ("get other", "$-1"),
        ("SET hello \"\\xff\\x00\"", "+OK"),
        ("GET hello", "$2 \\xff\\x00"),
        ("SET hello \"\"", "+OK"),
        ("GET hello", "$0"),
        ("GET", "-ERR wrong number of arguments for 'get' command"),
    ]);
}

#[test]
fn the_encoding_depends_on_the_bytes() {
    check(&[
        ("SET k 123", "+OK"),
        ("ENTRY k", "int"),
        ("SET k 0123", "+OK"),
        ("ENTRY k", "embstr"),
        ("SET k 9223372036854775808", "+OK"),
        ("ENTRY k", "embstr"),
        ("SET k 12345678901234567890123456789012345678901234", "+OK"),
        ("ENTRY k", "embstr"),
        ("SET k 123456789012345678901234567890123456789012345", "+OK"),
        ("ENTRY k", "raw"),
        ("SET k a", "+OK"),
        ("APPEND k b", ":2"),
        ("ENTRY k", "raw"),
        ("APPEND n 5", ":1"),
        ("ENTRY n", "int"),
        ("SETRANGE r 0 5", ":1"),
        ("ENTRY r", "raw"),
        ("INCRBYFLOAT f 5", "$1 5"),
        ("ENTRY f", "embstr"),
        ("INCR f", ":6"),
        ("ENTRY f", "int"),
    ]);
}

#[test]
fn set_clears_the_expiry_without_keepttl() {
    check(&[
        ("SET k 1 EX 10", "+OK"),
        ("ENTRY k", "int 10000"),
        ("SET k 2 KEEPTTL", "+OK"),
        ("ENTRY k", "int 10000"),
        ("SET k 2", "+OK"),
        ("ENTRY k", "int"),
        ("SET k 2 PX 1500", "+OK"),
        ("ENTRY k", "int 1500"),
        ("SET k 2 EXAT 1000000001", "+OK"),
        ("ENTRY k", "int 1000"),
        ("SET k 2 PXAT 1000000000001", "+OK"),
        ("ENTRY k", "int 1"),
        ("PASS 1", ""),
        ("GET k", "$-1"),
        ("SET k 2 keepttl", "+OK"),
        ("ENTRY k", "int"),
    ]);
}

#[test]
fn an_expiry_in_the_past_removes_the_key() {
    check(&[
        ("SET k 1", "+OK"),
        ("SET k 2 EXAT 1", "+OK"),
        ("GET k", "$-1"),
        ("ENTRY k", ""),
        ("SET k 2 PXAT 1000000000000 GET", "$-1"),
        ("GET k", "$-1"),
        ("SET k 3", "+OK"),
        ("GETEX k PXAT 5", "$1 3"),
        ("GET k", "$-1"),
    ]);
}

#[test]
fn set_obeys_its_conditions() {
    check(&[
        ("SET k 1 XX", "$-1"),
        ("SET k 1 NX", "+OK"),
        ("SET k 2 nx", "$-1"),
        ("SET k 2 xx", "+OK"),
        ("SET k 3 GET", "$1 2"),
        ("SET k 4 NX GET", "$1 3"),
        ("GET k", "$1 3"),
        ("SET new 1 NX GET", "$-1"),
        ("GET new", "$1 1"),
        ("SET missing 1 XX GET", "$-1"),
        ("GET missing", "$-1"),
        ("SET k 5 GET XX EX 7", "$1 3"),
        ("ENTRY k", "int 7000"),
        ("SET k 6 XX XX GET GET", "$1 5"),
    ]);
}

#[test]
fn set_refuses_options_that_exclude_each_other() {
    check(&[
        ("SET k v NX XX", SYNTAX),
        ("SET k v XX NX", SYNTAX),
        ("SET k v EX 10 PX 10", SYNTAX),
        ("SET k v EX 10 KEEPTTL", SYNTAX),
        ("SET k v KEEPTTL EX 10", SYNTAX),
        ("SET k v EX", SYNTAX),
        ("SET k v PERSIST", SYNTAX),
        ("SET k v 10", SYNTAX),
        ("SET k v EX x XX NX", SYNTAX),
        ("SET k v EX x", NOT_INTEGER),
        ("SET k v EX 1.5", NOT_INTEGER),
        ("SET k v EX 0", "-ERR invalid expire time in 'set' command"),
        ("SET k v PXAT -1", "-ERR invalid expire time in 'set' command"),
        ("SET k v EX 9223372036854775", "-ERR invalid expire time in 'set' command"),
        ("SET k v PX 9223372036854775807", "-ERR invalid expire time in 'set' command"),
        ("SET k v EXAT 9223372036854775807", "-ERR invalid expire time in 'set' command"),
        ("GET k", "$-1"),
        ("SET k v EX 1 EX 20 ex 30", "+OK"),
        ("ENTRY k", "embstr 30000"),
        ("SET k v PXAT 9223372036854775807", "+OK"),
        ("SET k", "-ERR wrong number of arguments for 'set' command"),
    ]);
}

#[test]
fn setex_and_psetex_set_an_expiry() {
    check(&[
        ("SETEX k 10 v", "+OK"),
        ("ENTRY k", "embstr 10000"),
        ("PSETEX k 10 7", "+OK"),
        ("ENTRY k", "int 10"),
        ("SETEX k 0 v", "-ERR invalid expire time in 'setex' command"),
        ("PSETEX k -1 v", "-ERR invalid expire time in 'psetex' command"),
        ("SETEX k x v", NOT_INTEGER),
        ("GET k", "$1 7"),
        ("PASS 10", ""),
        ("GET k", "$-1"),
    ]);
}

#[test]
fn setnx_sets_only_absent_keys() {
    check(&[
        ("SETNX k 1", ":1"),
        ("SETNX k 2", ":0"),
        ("GET k", "$1 1"),
        ("SET k 1 PX 1", "+OK"),
        ("PASS 1", ""),
        ("SETNX k 3", ":1"),
        ("ENTRY k", "int"),
    ]);
}

#[test]
fn getset_returns_the_old_value_and_clears_the_expiry() {
    check(&[
        ("GETSET k 1", "$-1"),
        ("SETEX k 10 a", "+OK"),
        ("GETSET k 22", "$1 a"),
        ("ENTRY k", "int"),
        ("GET k", "$2 22"),
    ]);
}

#[test]
fn getdel_removes_the_key() {
    check(&[("GETDEL k", "$-1"), ("SET k 12", "+OK"), ("GETDEL k", "$2 12"), ("GET k", "$-1")]);
}

#[test]
fn getex_changes_the_expiry_alone() {
    check(&[
        ("GETEX k EX 10", "$-1"),
        ("GETEX k EX -1", "$-1"),
        ("SET k v", "+OK"),
        ("GETEX k", "$1 v"),
        ("ENTRY k", "embstr"),
        ("GETEX k EX 10", "$1 v"),
        ("ENTRY k", "embstr 10000"),
        ("GETEX k", "$1 v"),
        ("ENTRY k", "embstr 10000"),
        ("GETEX k px 10 PX 20", "$1 v"),
        ("ENTRY k", "embstr 20"),
        ("GETEX k PERSIST", "$1 v"),
        ("ENTRY k", "embstr"),
        ("GETEX k EX 0", "-ERR invalid expire time in 'getex' command"),
        ("GETEX k EX", SYNTAX),
        ("GETEX k EX 10 PERSIST", SYNTAX),
        ("GETEX k PERSIST EX 10", SYNTAX),
        ("GETEX k EX 10 PX 10", SYNTAX),
        ("GETEX k KEEPTTL", SYNTAX),
        ("GETEX k NX", SYNTAX),
        ("ENTRY k", "embstr"),
    ]);
}

#[test]
fn append_adds_bytes_and_keeps_the_expiry() {
    check(&[
        ("APPEND k \"\"", ":0"),
        ("GET k", "$0"),
        ("SETEX k 10 12", "+OK"),
        ("APPEND k 3", ":3"),
        ("ENTRY k", "raw 10000"),
        ("INCR k", ":124"),
        ("ENTRY k", "int 10000"),
        ("APPEND k \"\\xff\"", ":4"),
        ("GET k", "$4 124\\xff"),
    ]);
}

#[test]
fn a_value_may_grow_from_nothing_to_large_byte_by_byte() {
    let mut script = Script::new(Protocol::Resp2);
    let mut expected = Vec::new();
    let part = [b'a'; 7];
    while expected.len() < 80_000 {
        expected.extend_from_slice(&part);
        let reply = script.local.run(&[b"APPEND", b"k", &part]);
        assert_eq!(reply, format!(":{}\r\n", expected.len()).as_bytes());
    }
    let reply = script.local.run(&[b"GET", b"k"]);
    assert_eq!(&reply[8..reply.len() - 2], expected);
    assert_eq!(script.local.run(&[b"SETRANGE", b"k", b"79999", b"xyz"]), b":80003\r\n");
    assert_eq!(script.run("GETRANGE k 79996 -1"), "$7 aaaxyza");
    assert_eq!(script.run("STRLEN k"), ":80003");
    script.local.keyspace.check_invariants();
}

#[test]
fn a_reply_keeps_its_bytes_when_the_large_value_it_refers_to_changes() {
    let mut script = Script::new(Protocol::Resp2);
    let value = vec![b'v'; 50_000];
    script.local.run(&[b"SET", b"k", &value]);
    assert_eq!(script.local.run(&[b"SET", b"k", b"short", b"GET"]).len(), 50_010);
    script.local.run(&[b"SET", b"k", &value]);
    assert_eq!(script.run("INCR k"), NOT_INTEGER);
    assert_eq!(script.run("INCRBYFLOAT k 1"), NOT_FLOAT);
    assert_eq!(script.local.run(&[b"GETDEL", b"k"]).len(), 50_010);
    script.local.keyspace.check_invariants();
}

#[test]
fn setrange_pads_with_zeros() {
    check(&[
        ("SETRANGE k 2 ab", ":4"),
        ("GET k", "$4 \\x00\\x00ab"),
        ("SETRANGE k 0 xyz", ":4"),
        ("GET k", "$4 xyzb"),
        ("SETRANGE k 9 \"\"", ":4"),
        ("SETRANGE missing 9 \"\"", ":0"),
        ("ENTRY missing", ""),
        ("SETEX n 10 1234", "+OK"),
        ("SETRANGE n 1 xx", ":4"),
        ("GET n", "$4 1xx4"),
        ("ENTRY n", "raw 10000"),
        ("SETRANGE k -1 a", "-ERR offset is out of range"),
        ("SETRANGE k x a", NOT_INTEGER),
        ("SETRANGE k 536870911 ab", TOO_LONG),
        ("SETRANGE k 9223372036854775807 a", TOO_LONG),
        ("SETRANGE big 40000 a", ":40001"),
        ("GETRANGE big 39999 -1", "$2 \\x00a"),
    ]);
}

#[test]
fn strings_end_at_the_configured_length() {
    let mut script = Script::new(Protocol::Resp2);
    script.local.turn.settings.string_bytes_max = 10;
    assert_eq!(script.run("APPEND k 1234567890"), ":10");
    assert_eq!(script.run("APPEND k x"), TOO_LONG);
    assert_eq!(script.run("SETRANGE k 9 xy"), TOO_LONG);
    assert_eq!(script.run("SETRANGE k 9 x"), ":10");
    assert_eq!(script.run("GET k"), "$10 123456789x");
}

#[test]
fn getrange_ignores_offsets_out_of_range() {
    check(&[
        ("SET k \"This is a string\"", "+OK"),
        ("GETRANGE k 0 3", "$4 This"),
        ("GETRANGE k -3 -1", "$3 ing"),
        ("GETRANGE k 0 -1", "$16 This is a string"),
        ("SUBSTR k 10 100", "$6 string"),
        ("GETRANGE k 5 3", "$0"),
        ("GETRANGE k -1 -3", "$0"),
        ("GETRANGE k 100 200", "$0"),
        ("GETRANGE k -200 -100", "$1 T"),
        ("GETRANGE k -9223372036854775808 9223372036854775807", "$16 This is a string"),
        ("GETRANGE k x 1", NOT_INTEGER),
        ("GETRANGE missing 0 -1", "$0"),
        ("SET n -12345", "+OK"),
        ("GETRANGE n 0 1", "$2 -1"),
    ]);
}

#[test]
fn strlen_counts_bytes() {
    check(&[
        ("STRLEN k", ":0"),
        ("SET k -123", "+OK"),
        ("STRLEN k", ":4"),
        ("SET k \"\\xc3\\xa9\"", "+OK"),
        ("STRLEN k", ":2"),
    ]);
}

#[test]
fn integers_are_added_within_64_bits() {
    check(&[
        ("INCR k", ":1"),
        ("DECR k", ":0"),
        ("INCRBY k 41", ":41"),
        ("DECRBY k -1", ":42"),
        ("ENTRY k", "int"),
        ("INCRBY k x", NOT_INTEGER),
        ("INCRBY k 1.0", NOT_INTEGER),
        ("SET k 9223372036854775807", "+OK"),
        ("INCR k", OVERFLOW),
        ("DECRBY k -1", OVERFLOW),
        ("SET k -9223372036854775808", "+OK"),
        ("DECR k", OVERFLOW),
        ("DECRBY k -9223372036854775808", "-ERR decrement would overflow"),
        ("INCRBY k 9223372036854775807", ":-1"),
        ("SET k \" 1\"", "+OK"),
        ("INCR k", NOT_INTEGER),
        ("SET k 01", "+OK"),
        ("INCR k", NOT_INTEGER),
        ("SET k \"\"", "+OK"),
        ("INCR k", NOT_INTEGER),
        ("SETEX k 10 5", "+OK"),
        ("INCR k", ":6"),
        ("ENTRY k", "int 10000"),
    ]);
}

#[test]
fn floats_are_added_and_printed_as_redis_does() {
    check(&[
        ("INCRBYFLOAT k 10.50", "$4 10.5"),
        ("INCRBYFLOAT k 0.1", "$4 10.6"),
        ("INCRBYFLOAT k -5", "$3 5.6"),
        ("SET k 5.0e3", "+OK"),
        ("INCRBYFLOAT k 2.0e2", "$4 5200"),
        ("SET k 3", "+OK"),
        ("INCRBYFLOAT k 1.5", "$3 4.5"),
        ("INCRBYFLOAT k x", NOT_FLOAT),
        ("INCRBYFLOAT k nan", NOT_FLOAT),
        ("INCRBYFLOAT k inf", "-ERR increment would produce NaN or Infinity"),
        ("INCRBYFLOAT k \" 1\"", NOT_FLOAT),
        ("GET k", "$3 4.5"),
        ("SETEX k 10 1", "+OK"),
        ("INCRBYFLOAT k 0.1", "$3 1.1"),
        ("ENTRY k", "embstr 10000"),
        ("SET k abc", "+OK"),
        ("INCRBYFLOAT k 1", NOT_FLOAT),
        ("INCRBYFLOAT big 1e45", "$46 1000000000000000000010386253980881820456058880"),
    ]);
}

#[test]
fn increx_adds_within_bounds_and_changes_the_expiry() {
    const TOO_LARGE: &str = "-ERR applied increment would overflow";
    check(&[
        ("INCREX k", "*2 :1 :1"),
        ("increx k byint -5", "*2 :-4 :-5"),
        ("INCREX k BYINT 10 UBOUND 5", "*2 :-4 :0"),
        ("INCREX k UBOUND 5 BYINT 10 SATURATE", "*2 :5 :9"),
        ("INCREX k BYINT -10 LBOUND 0 UBOUND 9 SATURATE", "*2 :0 :-5"),
        ("INCREX k BYINT 9 LBOUND 0 UBOUND 9", "*2 :9 :9"),
        // A value that is out of bounds already.
        ("SET k 50", "+OK"),
        ("INCREX k BYINT -5 UBOUND 30", "*2 :50 :0"),
        ("INCREX k BYINT -25 UBOUND 30", "*2 :25 :-25"),
        ("INCREX k LBOUND 40 SATURATE", "*2 :40 :15"),
        // Without bounds in the call, the limits of integers are the bounds.
        ("SET k 9223372036854775800", "+OK"),
        ("INCREX k BYINT 100", "*2 :9223372036854775800 :0"),
        ("INCREX k BYINT 100 SATURATE", "*2 :9223372036854775807 :7"),
        ("INCREX k UBOUND -9223372036854775808 SATURATE", TOO_LARGE),
        ("GET k", "$19 9223372036854775807"),
        ("ENTRY k", "int"),
        // An expiry is changed only with the value.
        ("SET k 10", "+OK"),
        ("INCREX k BYINT 100 UBOUND 15 EX 100", "*2 :10 :0"),
        ("ENTRY k", "int"),
        ("INCREX k EX 100", "*2 :11 :1"),
        ("ENTRY k", "int 100000"),
        ("INCREX k", "*2 :12 :1"),
        ("INCREX k PX 5 ENX", "*2 :13 :1"),
        ("ENTRY k", "int 100000"),
        ("INCREX k PXAT 1 ENX", "*2 :14 :1"),
        ("INCREX k PERSIST", "*2 :15 :1"),
        ("ENTRY k", "int"),
        ("INCREX k ENX PX 500", "*2 :16 :1"),
        ("ENTRY k", "int 500"),
        ("INCREX k EXAT 1", "*2 :17 :1"),
        ("EXISTS k", ":0"),
        ("INCREX none BYINT 5 LBOUND 10", "*2 :0 :0"),
        ("INCREX none EXAT 1", "*2 :1 :1"),
        ("EXISTS none", ":0"),
        ("INCREX none UBOUND 0 SATURATE", "*2 :0 :0"),
        ("GET none", "$1 0"),
    ]);
}

#[test]
fn increx_adds_floating_point_numbers() {
    const INFINITE: &str = "-ERR applied increment would be Infinity";
    let lines = [
        ("SET f 10.0", "+OK"),
        ("INCREX f BYFLOAT 0.1", "*2 $4 10.1 $3 0.1"),
        ("INCREX f BYFLOAT 0.9 EX 9", "*2 $2 11 $3 0.9"),
        ("ENTRY f", "embstr 9000"),
        ("INCREX f BYFLOAT 10 UBOUND 15.5", "*2 $2 11 $1 0"),
        ("INCREX f BYFLOAT 10 UBOUND 15.5 SATURATE", "*2 $4 15.5 $3 4.5"),
        ("INCREX f BYFLOAT -0x10 LBOUND -inf UBOUND inf PERSIST", "*2 $4 -0.5 $3 -16"),
        ("ENTRY f", "embstr"),
        ("INCREX f BYFLOAT 1 LBOUND inf UBOUND inf", "*2 $4 -0.5 $1 0"),
        ("INCREX f BYFLOAT 1 LBOUND inf UBOUND inf SATURATE", INFINITE),
        ("INCREX f BYFLOAT 1 LBOUND inf UBOUND -inf", "-ERR LBOUND can't be greater than UBOUND"),
        ("SET f 1e4932", "+OK"),
        ("INCREX f BYFLOAT 1e4932 UBOUND inf SATURATE", INFINITE),
        ("SET f inf", "+OK"),
        ("INCREX f BYFLOAT 1", "-ERR value cannot be Infinity"),
        ("INCREX f BYFLOAT -inf", "-ERR BYFLOAT increment cannot be Infinity"),
    ];
    check_in(Protocol::Resp2, &lines);
    check_in(Protocol::Resp3, &[("SET f 10.0", "+OK"), ("INCREX f BYFLOAT 0.1", "*2 ,10.1 ,0.1")]);
}

#[test]
fn increx_refuses_repeated_options_and_wrong_numbers() {
    for options in [
        "FOO",
        "BYINT",
        "BYINT 1 BYINT 2",
        "BYINT 1 BYFLOAT 2",
        "LBOUND 1 LBOUND 2",
        "UBOUND 1 UBOUND 2",
        "SATURATE SATURATE",
        "EX 10 EX 20",
        "EX 10 PERSIST",
        "PERSIST PX 10",
        "PERSIST PERSIST",
        "PERSIST ENX",
        "ENX PERSIST",
        "ENX ENX EX 1",
        "EX",
    ] {
        check(&[(&format!("INCREX k {options}"), SYNTAX), ("EXISTS k", ":0")]);
    }
    const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    check(&[
        ("INCREX k ENX", "-ERR ENX flag requires an expiration"),
        ("INCREX k BYINT 1.5", "-ERR Increment is not an integer or out of range"),
        ("INCREX k BYFLOAT x", "-ERR Increment is not a valid float"),
        ("INCREX k LBOUND 1.5", "-ERR LBOUND is not an integer or out of range"),
        ("INCREX k UBOUND inf", "-ERR UBOUND is not an integer or out of range"),
        ("INCREX k BYFLOAT 1 LBOUND x", "-ERR LBOUND is not a valid float"),
        ("INCREX k BYFLOAT 1 UBOUND x", "-ERR UBOUND is not a valid float"),
        ("INCREX k LBOUND 10 UBOUND 5", "-ERR LBOUND can't be greater than UBOUND"),
        ("INCREX k EX 0", "-ERR invalid expire time in 'increx' command"),
        ("INCREX k PX -1", "-ERR invalid expire time in 'increx' command"),
        ("RPUSH list x", ":1"),
        ("INCREX list", WRONG_TYPE),
        ("INCREX list BYFLOAT 1", WRONG_TYPE),
        ("SET k hello", "+OK"),
        ("INCREX k", NOT_INTEGER),
        ("INCREX k BYFLOAT 1", NOT_FLOAT),
        ("INCREX", "-ERR wrong number of arguments for 'increx' command"),
    ]);
}

#[test]
fn mget_answers_for_each_key() {
    check(&[
        ("MSET a 1 b two c \"\"", "+OK"),
        ("MGET a b c d a", "*5 $1 1 $3 two $0  $-1 $1 1"),
        ("MGET", "-ERR wrong number of arguments for 'mget' command"),
    ]);
}

#[test]
fn mset_sets_all_and_msetnx_all_or_nothing() {
    check(&[
        ("SETEX a 10 old", "+OK"),
        ("MSET a 1 b 2 a 3", "+OK"),
        ("MGET a b", "*2 $1 3 $1 2"),
        ("ENTRY a", "int"),
        ("MSETNX c 1 b 9", ":0"),
        ("MGET b c", "*2 $1 2 $-1"),
        ("MSETNX c 1 d 2 c 3", ":1"),
        ("MGET c d", "*2 $1 3 $1 2"),
        ("MSET a 1 b", "-ERR wrong number of arguments for 'mset' command"),
        ("MSETNX a 1 b", "-ERR wrong number of arguments for 'msetnx' command"),
    ]);
}

#[test]
fn msetex_sets_all_with_one_expiry_or_none() {
    const NUMKEYS: &str = "-ERR invalid numkeys value";
    const PAIRS: &str = "-ERR wrong number of key-value pairs";
    check(&[
        ("MSETEX 2 a 1 b 2 EX 10", ":1"),
        ("ENTRY a", "int 10000"),
        ("ENTRY b", "int 10000"),
        ("MSETEX 2 a 3 c 4 keepttl", ":1"),
        ("ENTRY a", "int 10000"),
        ("ENTRY c", "int"),
        ("MSETEX 2 a 5 d 6 NX PX 10", ":0"),
        ("MSETEX 2 a 5 d 6 PX 10 XX", ":0"),
        ("MGET a d", "*2 $1 3 $-1"),
        ("MSETEX 2 a 5 b 6 XX px 7000 PX 8000 xx", ":1"),
        ("ENTRY a", "int 8000"),
        ("MSETEX 3 d 1 e 2 d 3 NX", ":1"),
        ("MGET d e", "*2 $1 3 $1 2"),
        ("MSETEX 1 a 7", ":1"),
        ("ENTRY a", "int"),
        ("MSETEX 2 a 8 e 9 PXAT 1", ":1"),
        ("MGET a e", "*2 $-1 $-1"),
        ("RPUSH list x", ":1"),
        ("MSETEX 1 list 1 XX", ":1"),
        ("MSETEX 1 a", "-ERR wrong number of arguments for 'msetex' command"),
        ("MSETEX key1 val1 EX 10", NUMKEYS),
        ("MSETEX 0 a 1", NUMKEYS),
        ("MSETEX -1 a 1", NUMKEYS),
        ("MSETEX 2147483648 a 1 EX 10", NUMKEYS),
        ("MSETEX 2147483647 a 1 EX 10", PAIRS),
        ("MSETEX 2 a 1 b", PAIRS),
        ("MSETEX 1 a 1 b 2", SYNTAX),
        ("MSETEX 1 a 1 NX XX", SYNTAX),
        ("MSETEX 1 a 1 EX 10 PX 5000", SYNTAX),
        ("MSETEX 1 a 1 KEEPTTL EX 10", SYNTAX),
        ("MSETEX 1 a 1 EX", SYNTAX),
        ("MSETEX 1 a 1 GET", SYNTAX),
        ("MSETEX 1 a 1 IFEQ 1", SYNTAX),
        ("MSETEX 1 a 1 EX x", NOT_INTEGER),
        ("MSETEX 1 a 1 EX 0", "-ERR invalid expire time in 'msetex' command"),
        ("MSETEX 1 a 1 PXAT -1", "-ERR invalid expire time in 'msetex' command"),
        ("EXISTS a", ":0"),
    ]);
}

/// A value whose digest begins with zeros.
const LEADING_ZEROS: &str =
    "v8lf0c11xh8ymlqztfd3eeq16kfn4sspw7fqmnuuq3k3t75em5wdizgcdw7uc26nnf961u2jkfzkjytls2kwlj7626sd";

const NO_DIGEST: &str = "-ERR a digest must be exactly 16 hexadecimal characters";

#[test]
fn a_digest_depends_only_on_the_bytes() {
    check(&[
        ("DIGEST missing", "$-1"),
        ("SET k \"Hello world\"", "+OK"),
        ("DIGEST k", "$16 b6acb9d84a38ff74"),
        (&format!("SET k {LEADING_ZEROS}"), "+OK"),
        ("DIGEST k", "$16 00006c38adf31777"),
        ("DELEX k IFDEQ 6c38adf31777", NO_DIGEST),
        ("DELEX k IFDEQ 00006C38ADF31777", ":1"),
        ("SET k \"\"", "+OK"),
        ("DIGEST k", "$16 2d06800538d394c2"),
        ("RPUSH list x", ":1"),
        ("DIGEST list", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("DIGEST", "-ERR wrong number of arguments for 'digest' command"),
        ("DIGEST k k", "-ERR wrong number of arguments for 'digest' command"),
    ]);
    let mut local = Local::new(Protocol::Resp2);
    local.run(&[b"SET", b"number", b"-12345"]);
    local.run(&[b"SET", b"text", b"-1234"]);
    local.run(&[b"APPEND", b"text", b"5"]);
    assert_eq!(local.run(&[b"DIGEST", b"number"]), local.run(&[b"DIGEST", b"text"]));
}

#[test]
fn set_compares_the_value_or_its_digest_first() {
    const DIGEST: &str = "b6acb9d84a38ff74";
    const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let hello = ("SET k \"Hello world\"", "+OK");
    for (condition, is_met, is_met_by_none) in [
        ("IFEQ \"Hello world\"".to_owned(), true, false),
        ("IFEQ other".to_owned(), false, false),
        ("IFNE \"Hello world\"".to_owned(), false, true),
        ("ifne other".to_owned(), true, true),
        (format!("IFDEQ {DIGEST}"), true, false),
        ("IFDEQ 0000000000000000".to_owned(), false, false),
        (format!("IFDNE {}", DIGEST.to_uppercase()), false, true),
        ("IFDNE 0000000000000000".to_owned(), true, true),
    ] {
        let set = format!("SET k new {condition} EX 10");
        let set_and_get = format!("SET k new GET {condition}");
        let met = |is_met: bool| if is_met { "+OK" } else { "$-1" };
        let after = if is_met { "$3 new" } else { "$11 Hello world" };
        let created = if is_met_by_none { "$3 new" } else { "$-1" };
        let delete = format!("DELEX k {condition}");
        check(&[
            hello,
            (&set, met(is_met)),
            ("GET k", after),
            hello,
            (&set_and_get, "$11 Hello world"),
            ("GET k", after),
            ("DEL k", ":1"),
            (&set, met(is_met_by_none)),
            ("GET k", created),
            ("DELEX k", if is_met_by_none { ":1" } else { ":0" }),
            (&set_and_get, "$-1"),
            ("GET k", created),
            ("DELEX k", if is_met_by_none { ":1" } else { ":0" }),
            (&delete, ":0"),
            hello,
            (&delete, if is_met { ":1" } else { ":0" }),
            ("GET k", if is_met { "$-1" } else { after }),
            ("RPUSH list x", ":1"),
            (&set.replace(" k ", " list "), WRONG_TYPE),
            (&delete.replace(" k ", " list "), WRONG_TYPE),
            ("DELEX list", ":1"),
        ]);
    }
    check(&[
        hello,
        ("SET k new IFEQ a IFNE b", SYNTAX),
        ("SET k new NX IFNE b", SYNTAX),
        ("SET k new IFDNE 0000000000000000 XX", SYNTAX),
        ("SET k new IFNE", SYNTAX),
        ("SET k new GET IFDEQ 1", NO_DIGEST),
        ("SET missing new IFDNE 000000000000000g", NO_DIGEST),
        ("DELEX k IFDNE +000000000000000", NO_DIGEST),
        ("DELEX k NX 1", "-ERR Invalid condition. Use IFEQ, IFNE, IFDEQ or IFDNE"),
        ("DELEX k IFEQ", "-ERR wrong number of arguments for 'delex' command"),
        ("DELEX k IFEQ a IFNE b", "-ERR wrong number of arguments for 'delex' command"),
        ("DELEX missing IFEQ", ":0"),
        ("GET k", "$11 Hello world"),
    ]);
}

#[test]
fn lcs_finds_the_longest_common_subsequence() {
    check(&[
        ("MSET key1 ohmytext key2 mynewtext n 1234", "+OK"),
        ("LCS key1 key2", "$6 mytext"),
        ("LCS key1 key2 LEN", ":6"),
        ("LCS key1 missing", "$0"),
        ("LCS missing other LEN", ":0"),
        ("LCS n n", "$4 1234"),
        ("LCS key1 key2 LEN IDX", "-ERR If you want both the length and indexes, please just use IDX."),
        ("LCS key1 key2 MINMATCHLEN", SYNTAX),
        ("LCS key1 key2 MINMATCHLEN x", NOT_INTEGER),
        ("LCS key1 key2 what", SYNTAX),
        ("LCS key1 key1 len", ":8"),
    ]);
}

#[test]
fn lcs_returns_the_matches_as_a_map() {
    for (protocol, head) in [(Protocol::Resp2, "*4"), (Protocol::Resp3, "%2")] {
        let mut script = Script::new(protocol);
        script.run("MSET key1 ohmytext key2 mynewtext");
        let text = "*2 :4 :7 *2 :5 :8";
        let my = "*2 :2 :3 *2 :0 :1";
        for (options, matches) in [
            ("IDX", format!("*2 *2 {text} *2 {my}")),
            ("idx minmatchlen 4", format!("*1 *2 {text}")),
            ("IDX MINMATCHLEN 5", "*0".to_string()),
            ("IDX MINMATCHLEN -5 WITHMATCHLEN", format!("*2 *3 {text} :4 *3 {my} :2")),
        ] {
            let expected = format!("{head} $7 matches {matches} $3 len :6");
            assert_eq!(script.run(&format!("LCS key1 key2 {options}")), expected);
        }
        assert_eq!(script.run("LCS key1 missing IDX"), format!("{head} $7 matches *0 $3 len :0"));
    }
}

#[test]
fn lcs_refuses_more_work_than_the_length_limit_allows() {
    let mut script = Script::new(Protocol::Resp2);
    script.local.turn.settings.string_bytes_max = 4 * 5 * 5;
    script.run("MSET a 1234 b 12345");
    assert_eq!(script.run("LCS a a"), "$4 1234");
    let refused = "-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len";
    assert_eq!(script.run("LCS a b LEN"), refused);
}

#[test]
fn lookups_are_counted() {
    let mut script = Script::new(Protocol::Resp2);
    script.run("MSET a 1 b 2");
    for line in ["GET a", "MGET a b missing", "STRLEN missing", "GETRANGE a 0 0", "LCS a b"] {
        script.run(line);
    }
    let counters = script.local.turn.counters;
    assert_eq!((counters.hits, counters.misses, counters.changes), (6, 2, 2));
    for line in ["INCR a", "APPEND b x", "SETRANGE b 0 y", "GETDEL missing", "MSETNX a 1", "SET a 1 NX"] {
        script.run(line);
    }
    assert_eq!(script.local.turn.counters.changes, 5, "calls that change nothing do not count");
}
