//! Trimming of streams that consumer groups refer to (KEEPREF, DELREF, ACKED), and reads of the last entry.

use ember_protocol::Protocol;

use crate::support::script::{check, check_in};

/// A stream of six entries, three per block. A group has read five entries and acknowledged the first, the third and
/// the fourth.
const GIVEN: [(&str, &str); 9] = [
    ("XADD s 1-0 n 1", "$3 1-0"),
    ("XADD s 2-0 n 2", "$3 2-0"),
    ("XADD s 3-0 n 3", "$3 3-0"),
    ("XADD s 4-0 n 4", "$3 4-0"),
    ("XADD s 5-0 n 5", "$3 5-0"),
    ("XADD s 6-0 n 6", "$3 6-0"),
    ("XGROUP CREATE s g 0", "+OK"),
    (
        "XREADGROUP GROUP g c COUNT 5 STREAMS s >",
        "*1 *2 $1 s *5 *2 $3 1-0 *2 $1 n $1 1 *2 $3 2-0 *2 $1 n $1 2 *2 $3 3-0 *2 $1 n $1 3 \
         *2 $3 4-0 *2 $1 n $1 4 *2 $3 5-0 *2 $1 n $1 5",
    ),
    ("XACK s g 1-0 3-0 4-0", ":3"),
];

fn check_given(steps: &[(&str, &str)]) {
    check_in(Protocol::Resp2, &[&GIVEN, steps].concat());
}

#[test]
fn keepref_keeps_pending_entries() {
    check_given(&[
        ("XTRIM s MAXLEN 2 KEEPREF", ":4"),
        ("XPENDING s g", "*4 :2 $3 2-0 $3 5-0 *1 *2 $1 c $1 2"),
        ("XADD s KEEPREF MAXLEN 1 7-0 n 7", "$3 7-0"),
        ("XLEN s", ":1"),
        ("XPENDING s g", "*4 :2 $3 2-0 $3 5-0 *1 *2 $1 c $1 2"),
    ]);
}

#[test]
fn delref_removes_trimmed_entries_from_all_groups() {
    check_given(&[
        ("XGROUP CREATE s h 0", "+OK"),
        ("XREADGROUP GROUP h c COUNT 1 STREAMS s >", "*1 *2 $1 s *1 *2 $3 1-0 *2 $1 n $1 1"),
        ("XTRIM s DELREF MINID 4", ":3"),
        ("XPENDING s g", "*4 :1 $3 5-0 $3 5-0 *1 *2 $1 c $1 1"),
        ("XPENDING s h", "*4 :0 $-1 $-1 *-1"),
        ("XADD s DELREF MAXLEN = 1 7-0 n 7", "$3 7-0"),
        ("XPENDING s g", "*4 :0 $-1 $-1 *-1"),
        ("XRANGE s - +", "*1 *2 $3 7-0 *2 $1 n $1 7"),
    ]);
}

#[test]
fn delref_removes_references_to_deleted_entries_in_the_trimmed_range() {
    const ONE_LEFT: &str = "*4 :1 $3 5-0 $3 5-0 *1 *2 $1 c $1 1";
    check_given(&[
        ("XDEL s 2-0", ":1"),
        ("XTRIM s MAXLEN 5 DELREF", ":0"),
        ("XPENDING s g", "*4 :2 $3 2-0 $3 5-0 *1 *2 $1 c $1 2"),
        ("XTRIM s MAXLEN 1 DELREF", ":4"),
        ("XPENDING s g", "*4 :0 $-1 $-1 *-1"),
    ]);
    // The range contains only deleted entries.
    check_given(&[("XDEL s 1-0 2-0", ":2"), ("XTRIM s MINID 3 DELREF", ":0"), ("XPENDING s g", ONE_LEFT)]);
    check_given(&[
        ("XDEL s 2-0", ":1"),
        ("XADD s DELREF MINID 3 7-0 n 7", "$3 7-0"),
        ("XPENDING s g", ONE_LEFT),
    ]);
    // Trimmed entries count as deleted while their block contains other entries, as in Redis.
    check_given(&[
        ("XTRIM s MAXLEN 3 KEEPREF", ":3"),
        ("XTRIM s MAXLEN 1 DELREF", ":2"),
        ("XPENDING s g", "*4 :0 $-1 $-1 *-1"),
    ]);
}

#[test]
fn acked_trims_only_entries_that_no_group_needs() {
    check_given(&[
        ("XTRIM s MAXLEN 4 ACKED", ":2"),
        (
            "XRANGE s - +",
            "*4 *2 $3 2-0 *2 $1 n $1 2 *2 $3 4-0 *2 $1 n $1 4 *2 $3 5-0 *2 $1 n $1 5 *2 $3 6-0 *2 $1 n $1 6",
        ),
        // Entries 2 and 5 are pending, and entry 6 was not read, so they are not deleted.
        ("XTRIM s ACKED MAXLEN 0", ":1"),
        ("XTRIM s MINID 100 ACKED", ":0"),
        ("XLEN s", ":3"),
        ("XACK s g 2-0", ":1"),
        ("XADD s ACKED MINID 100 7-0 n 7", "$3 7-0"),
        ("XRANGE s - +", "*3 *2 $3 5-0 *2 $1 n $1 5 *2 $3 6-0 *2 $1 n $1 6 *2 $3 7-0 *2 $1 n $1 7"),
        ("XPENDING s g", "*4 :1 $3 5-0 $3 5-0 *1 *2 $1 c $1 1"),
        ("XGROUP DESTROY s g", ":1"),
        ("XTRIM s MAXLEN 0 ACKED", ":3"),
    ]);
}

#[test]
fn approximate_trimming_stops_at_a_block_with_a_needed_entry() {
    let mut steps = vec![("XGROUP CREATE s g 0 MKSTREAM".to_owned(), "+OK".to_owned())];
    for number in 1..=300 {
        steps.push((format!("XADD s {number} n v"), format!("${} {number}-0", number.to_string().len() + 2)));
    }
    for (call, reply) in [
        ("XGROUP SETID s g 250", "+OK"),
        ("XCLAIM s g c 0 150 FORCE JUSTID", "*1 $5 150-0"),
        ("XTRIM s MAXLEN ~ 0 ACKED LIMIT 99", ":0"),
        ("XTRIM s MAXLEN ~ 0 ACKED", ":100"),
        ("XTRIM s MAXLEN ~ 0 ACKED", ":0"),
        ("XACK s g 150", ":1"),
        ("XTRIM s MINID ~ 299 ACKED", ":100"),
        ("XLEN s", ":100"),
        ("XTRIM s MAXLEN ~ 0 DELREF", ":100"),
    ] {
        steps.push((call.to_owned(), reply.to_owned()));
    }
    let steps: Vec<(&str, &str)> =
        steps.iter().map(|(call, reply)| (call.as_str(), reply.as_str())).collect();
    check(&steps);
}

#[test]
fn only_one_reference_option_is_accepted() {
    check(&[
        ("XADD s 1 n v", "$3 1-0"),
        ("XTRIM s MAXLEN 1 ACKED DELREF", "-ERR syntax error"),
        ("XTRIM s KEEPREF", "-ERR wrong number of arguments for 'xtrim' command"),
        ("XTRIM s KEEPREF LIMIT 0", "-ERR syntax error, XTRIM must be called with a trimming strategy"),
        (
            "XADD s ACKED KEEPREF MAXLEN 1 2 n v",
            "-ERR Invalid stream ID specified as stream command argument",
        ),
        ("XADD s ACKED 2 n v", "$3 2-0"),
    ]);
}

#[test]
fn xread_with_plus_returns_the_last_entry() {
    check_in(
        Protocol::Resp2,
        &[
            ("XREAD STREAMS s +", "*-1"),
            ("XADD s 1-0 n 1", "$3 1-0"),
            ("XADD s 2-0 n 2", "$3 2-0"),
            ("XREAD STREAMS s +", "*1 *2 $1 s *1 *2 $3 2-0 *2 $1 n $1 2"),
            ("XDEL s 2-0", ":1"),
            ("XREAD COUNT 5 STREAMS s none + +", "*1 *2 $1 s *1 *2 $3 1-0 *2 $1 n $1 1"),
            ("XDEL s 1-0", ":1"),
            ("XREAD STREAMS s +", "*-1"),
            ("XGROUP CREATE s g 0", "+OK"),
            (
                "XREADGROUP GROUP g c STREAMS s +",
                "-ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this \
                 consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just \
                 return an empty result set.",
            ),
        ],
    );
}
