//! Tests of list commands, which compare the bytes of replies in both encodings.

use ember_protocol::Protocol;
use emberkv_core::events::EventClass;

use crate::support::script::{Script, check};

const NOT_INTEGER: &str = "-ERR value is not an integer or out of range";
const NOT_POSITIVE: &str = "-ERR value is out of range, must be positive";
const SYNTAX: &str = "-ERR syntax error";
const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

/// Runs a script with lists in listpacks, and with lists in nodes of two elements, compressed or not, and expects the
/// same replies.
fn check_both_forms(steps: &[(&str, &str)]) {
    for (list_max_listpack_size, list_compress_depth) in [(-2, 0), (2, 0), (2, 1)] {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let mut script = Script::new(protocol);
            script.local.turn.settings.encoding.list_max_listpack_size = list_max_listpack_size;
            script.local.turn.settings.encoding.list_compress_depth = list_compress_depth;
            for (line, expected) in steps {
                assert_eq!(script.run(line), *expected, "{line} in {protocol:?}, {list_max_listpack_size}");
            }
            script.local.keyspace.check_invariants();
        }
    }
}

/// Runs the lines of a script, and compares the encoding of the key after each line, with nodes limited by
/// `list_max_listpack_size`.
fn check_encodings(list_max_listpack_size: i64, steps: &[(&str, &str)]) {
    let mut script = Script::new(Protocol::Resp2);
    script.local.turn.settings.encoding.list_max_listpack_size = list_max_listpack_size;
    for (line, expected) in steps {
        let reply = script.run(line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
        assert_eq!(script.entry("l"), *expected, "{line}");
    }
    script.local.keyspace.check_invariants();
}

/// Runs a line and returns the events that it publishes, as `name key`.
fn events_of(script: &mut Script, line: &str) -> Vec<String> {
    script.local.turn.notices.classes = EventClass::ALL | EventClass::NEW;
    script.local.turn.notices.events.clear();
    script.run(line);
    let published = script.local.turn.notices.events.drain(..);
    published.map(|notice| format!("{} {}", notice.event.name, notice.key.escape_ascii())).collect()
}

#[test]
fn elements_are_pushed_one_after_the_other() {
    check_both_forms(&[
        ("RPUSH l a", ":1"),
        ("RPUSH l b c", ":3"),
        ("LPUSH l 1 2 3", ":6"),
        ("LRANGE l 0 -1", "*6 $1 3 $1 2 $1 1 $1 a $1 b $1 c"),
        ("LLEN l", ":6"),
        ("LLEN none", ":0"),
        ("LPUSHX none a", ":0"),
        ("RPUSHX none a", ":0"),
        ("EXISTS none", ":0"),
        ("RPUSHX l d e", ":8"),
        ("LPUSHX l 4", ":9"),
        ("LRANGE l -3 -1", "*3 $1 c $1 d $1 e"),
        ("TYPE l", "+list"),
        ("LPUSH l", "-ERR wrong number of arguments for 'lpush' command"),
    ]);
}

#[test]
fn elements_of_any_bytes_are_returned_unchanged() {
    check_both_forms(&[
        ("RPUSH l \"\" \"\\x00\\xff\" \"a\\r\\nb\" 007 -0 -5 9223372036854775808 -9223372036854775808", ":8"),
        (
            "LRANGE l 0 -1",
            "*8 $0  $2 \\x00\\xff $4 a b $3 007 $2 -0 $2 -5 $19 9223372036854775808 $20 -9223372036854775808",
        ),
        ("LPOS l -5", ":5"),
        ("LPOS l 7", "$-1"),
        ("LPOS l \"\"", ":0"),
    ]);
}

#[test]
fn commands_on_a_key_of_another_type_fail_with_wrongtype() {
    let mut steps = vec![("SET k string", "+OK"), ("RPUSH l a", ":1")];
    steps.extend(
        [
            "LPUSH k a",
            "RPUSHX k a",
            "LPOP k",
            "RPOP k 0",
            "LLEN k",
            "LINDEX k 0",
            "LSET k 0 a",
            "LRANGE k 0 1",
            "LREM k 0 a",
            "LTRIM k 0 1",
            "LINSERT k BEFORE a b",
            "LPOS k a",
            "LMOVE k l LEFT LEFT",
            "LMOVE l k LEFT LEFT",
            "RPOPLPUSH k k",
            "LMPOP 2 k l LEFT",
            "BLPOP none k 0.1",
            "BRPOP k l 0.1",
            "BLMOVE k l LEFT LEFT 0.1",
            "BRPOPLPUSH l k 0.1",
            "BLMPOP 0.1 1 k LEFT",
        ]
        .map(|line| (line, WRONG_TYPE)),
    );
    steps.extend([("LRANGE l 0 -1", "*1 $1 a"), ("GET k", "$6 string"), ("GET l", WRONG_TYPE)]);
    check_both_forms(&steps);
}

#[test]
fn lpop_and_rpop_remove_from_their_end() {
    check_both_forms(&[
        ("RPUSH l a b c d e", ":5"),
        ("LPOP l", "$1 a"),
        ("RPOP l", "$1 e"),
        ("LPOP none", "$-1"),
        ("LPOP l", "$1 b"),
        ("RPOP l", "$1 d"),
        ("RPOP l", "$1 c"),
        ("EXISTS l", ":0"),
        ("LPOP l", "$-1"),
    ]);
}

#[test]
fn pop_with_count_removes_in_order() {
    check_both_forms(&[
        ("RPUSH l a b c d e f", ":6"),
        ("LPOP l 2", "*2 $1 a $1 b"),
        ("RPOP l 3", "*3 $1 f $1 e $1 d"),
        ("LPOP l 0", "*0"),
        ("LPOP l 9223372036854775807", "*1 $1 c"),
        ("EXISTS l", ":0"),
        ("RPUSH l a", ":1"),
        ("LPOP l -1", NOT_POSITIVE),
        ("LPOP l x", NOT_POSITIVE),
        ("RPOP l 9223372036854775808", NOT_POSITIVE),
        ("LPOP none x", NOT_POSITIVE),
        ("LPOP l 1 2", "-ERR wrong number of arguments for 'lpop' command"),
        ("RPOP l 1 2", "-ERR wrong number of arguments for 'rpop' command"),
    ]);
    let mut script = Script::new(Protocol::Resp2);
    assert_eq!(
        (script.run("LPOP none 0"), script.run("LPOP none 5")),
        ("*-1".to_string(), "*-1".to_string())
    );
}

#[test]
fn lindex_and_lset_count_from_either_end() {
    check_both_forms(&[
        ("RPUSH l a b c d e", ":5"),
        ("LINDEX l 0", "$1 a"),
        ("LINDEX l 4", "$1 e"),
        ("LINDEX l -1", "$1 e"),
        ("LINDEX l -5", "$1 a"),
        ("LINDEX l 5", "$-1"),
        ("LINDEX l -6", "$-1"),
        ("LINDEX l -9223372036854775808", "$-1"),
        ("LINDEX l x", NOT_INTEGER),
        ("LINDEX none x", "$-1"),
        ("LSET l 2 middle", "+OK"),
        ("LSET l -1 12345", "+OK"),
        ("LSET l 0 \"\"", "+OK"),
        ("LRANGE l 0 -1", "*5 $0  $1 b $6 middle $1 d $5 12345"),
        ("LSET l 5 x", "-ERR index out of range"),
        ("LSET l -6 x", "-ERR index out of range"),
        ("LSET l x x", NOT_INTEGER),
        ("LSET none 0 x", "-ERR no such key"),
        ("LSET none x x", "-ERR no such key"),
        ("LLEN l", ":5"),
    ]);
}

#[test]
fn lrange_ignores_indexes_out_of_range() {
    check_both_forms(&[
        ("RPUSH l a b c d e", ":5"),
        ("LRANGE l 1 3", "*3 $1 b $1 c $1 d"),
        ("LRANGE l -100 0", "*1 $1 a"),
        ("LRANGE l 3 100", "*2 $1 d $1 e"),
        ("LRANGE l 3 2", "*0"),
        ("LRANGE l 5 9", "*0"),
        ("LRANGE l 0 -6", "*0"),
        ("LRANGE l -2 -3", "*0"),
        ("LRANGE l -9223372036854775808 9223372036854775807", "*5 $1 a $1 b $1 c $1 d $1 e"),
        ("LRANGE none 0 -1", "*0"),
        ("LRANGE none x -1", NOT_INTEGER),
        ("LRANGE l 0 1.0", NOT_INTEGER),
    ]);
}

#[test]
fn ltrim_keeps_a_range() {
    check_both_forms(&[
        ("RPUSH l a b c d e f g", ":7"),
        ("LTRIM l 0 -1", "+OK"),
        ("LLEN l", ":7"),
        ("LTRIM l 1 -2", "+OK"),
        ("LRANGE l 0 -1", "*5 $1 b $1 c $1 d $1 e $1 f"),
        ("LTRIM l 2 100", "+OK"),
        ("LRANGE l 0 -1", "*3 $1 d $1 e $1 f"),
        ("LTRIM l 3 4", "+OK"),
        ("EXISTS l", ":0"),
        ("LTRIM none 0 1", "+OK"),
        ("LTRIM none x 1", NOT_INTEGER),
    ]);
}

#[test]
fn lrem_removes_from_the_end_given_by_the_sign_of_the_count() {
    check_both_forms(&[
        ("RPUSH l x a x b x c x", ":7"),
        ("LREM l 2 x", ":2"),
        ("LRANGE l 0 -1", "*5 $1 a $1 b $1 x $1 c $1 x"),
        ("LREM l -1 x", ":1"),
        ("LRANGE l 0 -1", "*4 $1 a $1 b $1 x $1 c"),
        ("LREM l 0 none", ":0"),
        ("RPUSH l x x", ":6"),
        ("LREM l -9223372036854775808 x", ":3"),
        ("LRANGE l 0 -1", "*3 $1 a $1 b $1 c"),
        ("LREM l 0 a", ":1"),
        ("LREM l 5 b", ":1"),
        ("LREM l -5 c", ":1"),
        ("EXISTS l", ":0"),
        ("LREM l 0 a", ":0"),
        ("LREM l x a", NOT_INTEGER),
    ]);
}

#[test]
fn linsert_finds_the_first_pivot() {
    check_both_forms(&[
        ("RPUSH l 10 20 10 30", ":4"),
        ("LINSERT l before 10 5", ":5"),
        ("LINSERT l AFTER 10 15", ":6"),
        ("LINSERT l AFTER 30 35", ":7"),
        ("LINSERT l BEFORE 30 25", ":8"),
        ("LRANGE l 0 -1", "*8 $1 5 $2 10 $2 15 $2 20 $2 10 $2 25 $2 30 $2 35"),
        ("LINSERT l BEFORE 010 x", ":-1"),
        ("LINSERT none AFTER a b", ":0"),
        ("LINSERT l BETWEEN a b", SYNTAX),
        ("LINSERT none BETWEEN a b", SYNTAX),
        ("LINSERT l BEFORE a", "-ERR wrong number of arguments for 'linsert' command"),
    ]);
}

#[test]
fn lpos_finds_matches_by_rank() {
    check_both_forms(&[
        ("RPUSH l a b c 1 2 3 c c", ":8"),
        ("LPOS l c", ":2"),
        ("LPOS l c RANK 2", ":6"),
        ("LPOS l c RANK -1", ":7"),
        ("LPOS l c RANK -3", ":2"),
        ("LPOS l c RANK 4", "$-1"),
        ("LPOS l c COUNT 2", "*2 :2 :6"),
        ("LPOS l c COUNT 0", "*3 :2 :6 :7"),
        ("LPOS l c COUNT 1 RANK -2", "*1 :6"),
        ("LPOS l c RANK -1 COUNT 0", "*3 :7 :6 :2"),
        ("LPOS l c RANK 2 COUNT 5", "*2 :6 :7"),
        ("LPOS l c RANK 9 COUNT 5", "*0"),
        ("LPOS l c MAXLEN 2", "$-1"),
        ("LPOS l c MAXLEN 3", ":2"),
        ("LPOS l c MAXLEN 7 COUNT 0", "*2 :2 :6"),
        ("LPOS l c maxlen 1 rank -1", ":7"),
        ("LPOS l c MAXLEN 0 COUNT 9223372036854775807", "*3 :2 :6 :7"),
        ("LPOS l c COUNT 1 COUNT 2", "*2 :2 :6"),
        ("LPOS none c", "$-1"),
        ("LPOS none c COUNT 0", "*0"),
    ]);
}

#[test]
fn lpos_refuses_options_out_of_range() {
    check_both_forms(&[
        ("RPUSH l c", ":1"),
        (
            "LPOS l c RANK 0",
            "-ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to \
             start from the end of the list",
        ),
        (
            "LPOS l c RANK -9223372036854775808",
            "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        ),
        ("LPOS l c RANK x", NOT_INTEGER),
        ("LPOS l c COUNT -1", "-ERR COUNT can't be negative"),
        ("LPOS l c COUNT x", "-ERR COUNT can't be negative"),
        ("LPOS l c MAXLEN -1", "-ERR MAXLEN can't be negative"),
        ("LPOS none c MAXLEN -1", "-ERR MAXLEN can't be negative"),
        ("LPOS l c RANK", SYNTAX),
        ("LPOS l c RANK 1 COUNT", SYNTAX),
        ("LPOS l c FIRST 1", SYNTAX),
    ]);
}

#[test]
fn lmove_moves_between_ends_and_lists() {
    check_both_forms(&[
        ("RPUSH s a b c d", ":4"),
        ("LMOVE s t LEFT RIGHT", "$1 a"),
        ("LMOVE s t right left", "$1 d"),
        ("LRANGE t 0 -1", "*2 $1 d $1 a"),
        ("LMOVE s s LEFT RIGHT", "$1 b"),
        ("LRANGE s 0 -1", "*2 $1 c $1 b"),
        ("LMOVE s s LEFT LEFT", "$1 c"),
        ("LRANGE s 0 -1", "*2 $1 c $1 b"),
        ("RPOPLPUSH s t", "$1 b"),
        ("RPOPLPUSH s t", "$1 c"),
        ("EXISTS s", ":0"),
        ("RPOPLPUSH s t", "$-1"),
        ("LRANGE t 0 -1", "*4 $1 c $1 b $1 d $1 a"),
        ("RPOPLPUSH t t", "$1 a"),
        ("LRANGE t 0 -1", "*4 $1 a $1 c $1 b $1 d"),
        ("LMOVE none t LEFT LEFT", "$-1"),
        ("LMOVE s t UP DOWN", SYNTAX),
        ("LMOVE t t LEFT DOWN", SYNTAX),
    ]);
}

#[test]
fn lmpop_pops_from_the_first_list_that_exists() {
    check_both_forms(&[
        ("RPUSH l a b c d e", ":5"),
        ("LMPOP 2 none l LEFT", "*2 $1 l *1 $1 a"),
        ("LMPOP 1 l right count 2", "*2 $1 l *2 $1 e $1 d"),
        ("LMPOP 1 l LEFT COUNT 9223372036854775807", "*2 $1 l *2 $1 b $1 c"),
        ("EXISTS l", ":0"),
        ("LMPOP 0 l LEFT", "-ERR numkeys should be greater than 0"),
        ("LMPOP x l LEFT", "-ERR numkeys should be greater than 0"),
        ("LMPOP 1 l UP", SYNTAX),
        ("LMPOP 2 l LEFT", SYNTAX),
        ("LMPOP 9223372036854775807 l LEFT", SYNTAX),
        ("LMPOP 1 l LEFT COUNT", SYNTAX),
        ("LMPOP 1 l LEFT LIMIT 1", SYNTAX),
        ("LMPOP 1 l LEFT COUNT 0", "-ERR count should be greater than 0"),
        ("LMPOP 1 l LEFT COUNT x", "-ERR count should be greater than 0"),
        ("LMPOP 1 l LEFT COUNT 1 COUNT 1", SYNTAX),
        ("LMPOP 1 l LEFT COUNT 0 COUNT 1", "-ERR count should be greater than 0"),
    ]);
    let mut script = Script::new(Protocol::Resp2);
    assert_eq!(script.run("LMPOP 1 none LEFT"), "*-1");
}

#[test]
fn blocking_commands_do_not_wait_when_an_element_exists() {
    check_both_forms(&[
        ("RPUSH l a b c d e f g", ":7"),
        ("BLPOP none l 0", "*2 $1 l $1 a"),
        ("BRPOP l none l 0", "*2 $1 l $1 g"),
        ("BLMOVE l t LEFT RIGHT 0", "$1 b"),
        ("BRPOPLPUSH l t 0", "$1 f"),
        ("BLMPOP 0 2 none l RIGHT COUNT 2", "*2 $1 l *2 $1 e $1 d"),
        ("BLMPOP 0 1 l LEFT", "*2 $1 l *1 $1 c"),
        ("EXISTS l", ":0"),
        ("LRANGE t 0 -1", "*2 $1 f $1 b"),
    ]);
}

#[test]
fn a_call_that_may_not_wait_returns_null_at_once() {
    let mut script = Script::new(Protocol::Resp2);
    for line in ["BLPOP l 1", "BRPOP l m 0", "BLMPOP 1 1 l LEFT", "BLPOP l 0.0000000001"] {
        assert_eq!(script.run(line), "*-1", "{line}");
    }
    for line in ["BLMOVE l m LEFT LEFT 1", "BRPOPLPUSH l m 1"] {
        assert_eq!(script.run(line), "$-1", "{line}");
    }
}

#[test]
fn timeouts_are_seconds_with_fractions() {
    let (not_float, negative, too_long) = (
        "-ERR timeout is not a float or out of range",
        "-ERR timeout is negative",
        "-ERR timeout is out of range",
    );
    let cases = [
        ("abc", not_float),
        ("nan", not_float),
        ("1 ", not_float),
        ("\"\"", not_float),
        ("1e5000", not_float),
        ("-1", negative),
        ("-0.002", negative),
        ("-inf", negative),
        ("-1e30", negative),
        ("inf", too_long),
        ("1e30", too_long),
        ("9223372036854776", too_long),
        ("9223372036854775", too_long),
    ];
    for (timeout, expected) in cases {
        let quoted = if timeout.ends_with(' ') { format!("\"{timeout}\"") } else { timeout.to_string() };
        for line in [
            format!("BLPOP l {quoted}"),
            format!("BRPOP l {quoted}"),
            format!("BLMOVE l l LEFT LEFT {quoted}"),
            format!("BRPOPLPUSH l l {quoted}"),
            format!("BLMPOP {quoted} 1 l LEFT"),
        ] {
            check(&[(&line, expected)]);
        }
    }
    let mut script = Script::new(Protocol::Resp2);
    for timeout in ["0", "-0", "0.001", "-0.001", "0x1p-3", "5e-1", "8223372036854775"] {
        assert_eq!(script.run(&format!("BLPOP l {timeout}")), "*-1", "{timeout}");
    }
}

#[test]
fn arguments_are_checked_in_redis_order() {
    check(&[
        ("BLMPOP x 0 l LEFT", "-ERR numkeys should be greater than 0"),
        ("BLMPOP x 1 l UP", SYNTAX),
        ("BLMOVE l l UP LEFT x", SYNTAX),
        ("BLPOP 1", "-ERR wrong number of arguments for 'blpop' command"),
        ("SET k string", "+OK"),
        ("BLPOP k x", "-ERR timeout is not a float or out of range"),
        ("BLMOVE k k LEFT LEFT x", "-ERR timeout is not a float or out of range"),
        ("LRANGE k x 1", NOT_INTEGER),
        ("LTRIM k 1 x", NOT_INTEGER),
        ("LREM k x a", NOT_INTEGER),
        ("LINDEX k x", WRONG_TYPE),
        ("LSET k x a", WRONG_TYPE),
        ("LPOP k x", NOT_POSITIVE),
        ("LPOS k a RANK x", NOT_INTEGER),
    ]);
}

#[test]
fn a_list_becomes_a_quicklist_when_it_would_exceed_a_node() {
    check_encodings(
        4,
        &[
            ("RPUSH l a b c d", "listpack"),
            ("LINSERT l BEFORE none e", "quicklist"),
            ("LPOP l", "quicklist"),
            ("LPOP l", "listpack"),
            ("RPUSH l c d e", "quicklist"),
            ("LREM l 0 c", "quicklist"),
            ("LTRIM l 0 1", "listpack"),
            ("RPUSH l 1 2", "listpack"),
            ("LMOVE l l LEFT RIGHT", "listpack"),
            ("RPUSH l 3", "quicklist"),
            ("LMPOP 1 l RIGHT COUNT 3", "listpack"),
            ("DEL l", ""),
            ("RPUSH l a b c d e", "quicklist"),
        ],
    );
    let (half, large) = ("x".repeat(4000), "x".repeat(9000));
    check_encodings(
        -2,
        &[
            (&format!("RPUSH l {half} {half}"), "listpack"),
            (&format!("RPUSH l {half}"), "quicklist"),
            ("RPOP l", "quicklist"),
            ("RPOP l", "listpack"),
            (&format!("LSET l 0 {large}"), "quicklist"),
            ("RPUSH l a", "quicklist"),
            ("LSET l 0 b", "listpack"),
            (&format!("LINSERT l AFTER a {large}"), "quicklist"),
            ("RPOP l", "listpack"),
        ],
    );
}

#[test]
fn integers_are_measured_as_text_when_a_list_grows() {
    let numbers = "1 ".repeat(3000);
    check_encodings(
        -1,
        &[
            (&format!("RPUSH l {numbers}"), "listpack"),
            ("RPUSH l 1", "quicklist"),
            ("LTRIM l 0 1022", "quicklist"),
            ("LTRIM l 0 1010", "listpack"),
        ],
    );
}

#[test]
fn a_copy_of_a_list_is_independent() {
    check_both_forms(&[
        ("RPUSH l a b c d e", ":5"),
        ("COPY l m", ":1"),
        ("RPOP l 4", "*4 $1 e $1 d $1 c $1 b"),
        ("LRANGE m 0 -1", "*5 $1 a $1 b $1 c $1 d $1 e"),
        ("RENAME m n", "+OK"),
        ("LSET n 4 x", "+OK"),
        ("LINDEX n -1", "$1 x"),
        ("SET l string", "+OK"),
        ("GET l", "$6 string"),
    ]);
}

#[test]
fn changes_keep_the_expiry_and_a_new_list_has_none() {
    check(&[
        ("RPUSH l a b", ":2"),
        ("PEXPIRE l 1000", ":1"),
        ("RPUSH l c", ":3"),
        ("LPOP l", "$1 a"),
        ("ENTRY l", "listpack 1000"),
        ("RPOPLPUSH l m", "$1 c"),
        ("ENTRY m", "listpack"),
        ("PASS 1000", ""),
        ("LLEN l", ":0"),
        ("LPUSH l a", ":1"),
        ("ENTRY l", "listpack"),
    ]);
}

#[test]
fn changes_are_published_as_in_redis() {
    let mut script = Script::new(Protocol::Resp2);
    let steps: &[(&str, &[&str])] = &[
        ("RPUSH l a b c", &["new l", "rpush l"]),
        ("LPUSH l d", &["lpush l"]),
        ("LPUSHX l e", &["lpush l"]),
        ("LPUSHX none e", &[]),
        ("LSET l 0 f", &["lset l"]),
        ("LINSERT l AFTER f g", &["linsert l"]),
        ("LINSERT l AFTER none g", &[]),
        ("LREM l 0 g", &["lrem l"]),
        ("LREM l 0 g", &[]),
        ("LTRIM l 0 -1", &["ltrim l"]),
        ("LPOP l", &["lpop l"]),
        ("RPOP l 0", &[]),
        ("LMOVE l l LEFT RIGHT", &["rpush l", "lpop l"]),
        ("LMOVE l m RIGHT LEFT", &["new m", "lpush m", "rpop l"]),
        ("RPOPLPUSH m l", &["lpush l", "rpop m", "del m"]),
        ("BLPOP l 0", &["lpop l"]),
        ("BLMPOP 0 1 l RIGHT COUNT 9", &["rpop l", "del l"]),
        ("RPUSH l a", &["new l", "rpush l"]),
        ("LMOVE l l LEFT LEFT", &["lpush l", "lpop l"]),
        ("LTRIM l 5 6", &["ltrim l", "del l"]),
        ("RPUSH l a", &["new l", "rpush l"]),
        ("LREM l 1 a", &["lrem l", "del l"]),
    ];
    for (line, expected) in steps {
        assert_eq!(events_of(&mut script, line), *expected, "{line}");
    }
}

#[test]
fn an_element_that_moves_is_one_change() {
    let mut script = Script::new(Protocol::Resp2);
    script.run("RPUSH l a b");
    for line in ["LMOVE l m LEFT LEFT", "RPOPLPUSH m l", "LMOVE l l LEFT RIGHT", "BLMOVE l m LEFT LEFT 0"] {
        let before = script.local.turn.counters.changes;
        script.run(line);
        assert_eq!(script.local.turn.counters.changes, before + 1, "{line}");
    }
}

#[test]
fn a_failed_command_changes_nothing() {
    let mut script = Script::new(Protocol::Resp2);
    script.run("RPUSH l a b");
    script.run("SET k string");
    let changes = script.local.turn.counters.changes;
    for line in [
        "LMOVE l k LEFT LEFT",
        "LSET l 9 x",
        "LREM l 0 x",
        "LINSERT l AFTER x y",
        "LPOP l 0",
        "LPUSHX none x",
        "BLMOVE l k LEFT LEFT 0",
    ] {
        script.run(line);
    }
    assert_eq!(script.local.turn.counters.changes, changes);
    assert_eq!(script.run("LRANGE l 0 -1"), "*2 $1 a $1 b");
}

#[test]
fn only_reads_count_as_hits() {
    let mut script = Script::new(Protocol::Resp2);
    script.run("RPUSH l a b");
    for line in ["LLEN l", "LINDEX l 0", "LRANGE l 0 -1", "LPOS l a", "LLEN none", "LPOP none", "LPOP l"] {
        script.run(line);
    }
    let counters = script.local.turn.counters;
    assert_eq!((counters.hits, counters.misses), (4, 1));
}

#[test]
fn large_elements_are_returned_whole() {
    let large = "x".repeat(100_000);
    let mut script = Script::new(Protocol::Resp2);
    script.run(&format!("RPUSH l a {large} b"));
    let bulk = format!("$100000 {large}");
    assert_eq!(script.entry("l"), "quicklist");
    assert_eq!(script.run("LRANGE l 0 -1"), format!("*3 $1 a {bulk} $1 b"));
    assert_eq!(script.run(&format!("LPOS l {large}")), ":1");
    assert_eq!(script.run(&format!("LINSERT l BEFORE {large} c")), ":4");
    assert_eq!(script.run("LMOVE l m RIGHT LEFT"), "$1 b");
    assert_eq!(script.run("LMOVE l m RIGHT LEFT"), bulk);
    assert_eq!(script.run("LRANGE m 0 -1"), format!("*2 {bulk} $1 b"));
    assert_eq!(script.run(&format!("LREM m 0 {large}")), ":1");
    assert_eq!(script.entry("m"), "listpack");
    script.local.keyspace.check_invariants();
}
