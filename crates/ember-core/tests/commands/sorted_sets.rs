//! Tests of sorted set commands, which compare the bytes of replies in both encodings.

use std::collections::{BTreeMap, BTreeSet};

use ember_protocol::Protocol;
use emberkv_core::events::EventClass;
use emberkv_core::turn::Random;

use crate::support::script::Script;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_INTEGER: &str = "-ERR value is not an integer or out of range";
const NOT_FLOAT: &str = "-ERR value is not a valid float";
const NOT_A_RANGE: &str = "-ERR min or max is not a float";
const NOT_A_LEX_RANGE: &str = "-ERR min or max not valid string range item";
const SYNTAX: &str = "-ERR syntax error";

/// Returns a reply without the lengths of its strings: `*2 $1 a $3 100` becomes `*2 a 100`, and null becomes `nil`.
fn plain(reply: &str) -> String {
    let is_length = |word: &str| word.strip_prefix('$').is_some_and(|digits| digits.parse::<u32>().is_ok());
    let words = reply.split(' ').filter(|word| !is_length(word));
    words.map(|word| if word == "$-1" { "nil" } else { word }).collect::<Vec<_>>().join(" ")
}

/// Returns a script whose sorted sets with more than `entries` members are trees.
fn script_with(protocol: Protocol, entries: usize) -> Script {
    let mut script = Script::new(protocol);
    script.local.turn.settings.encoding.zset_max_listpack_entries = entries;
    script
}

/// Runs a script in RESP2 with both encodings; expected replies are in the form of [`plain`].
fn check(steps: &[(&str, &str)]) {
    for entries in [128, 0] {
        let mut script = script_with(Protocol::Resp2, entries);
        for (line, expected) in steps {
            assert_eq!(plain(&script.step(line)), *expected, "{line} with up to {entries} members packed");
        }
        script.local.keyspace.check_invariants();
    }
}

/// Like [`check`], in RESP3.
fn check_resp3(steps: &[(&str, &str)]) {
    for entries in [128, 0] {
        let mut script = script_with(Protocol::Resp3, entries);
        for (line, expected) in steps {
            assert_eq!(plain(&script.step(line)), *expected, "{line} with up to {entries} members packed");
        }
    }
}

#[test]
fn zadd_adds_members_or_changes_their_scores() {
    check(&[
        ("ZADD z 1 a 2 b", ":2"),
        ("ZADD z 1 a 3 b 4 c", ":1"),
        ("ZADD z CH 1 a 2 b 5 d", ":2"),
        ("ZRANGE z 0 -1 WITHSCORES", "*8 a 1 b 2 c 4 d 5"),
        ("ZADD z 0 d 0 d 7 d", ":0"),
        ("ZSCORE z d", "7"),
        ("ZADD z NX 9 a 6 e", ":1"),
        ("ZADD z XX CH 9 a 6 f", ":1"),
        ("ZMSCORE z a e f", "*3 9 6 nil"),
        ("ZADD z GT CH 8 a 10 b 1 g", ":2"),
        ("ZADD z LT CH 12 a 3 b", ":1"),
        ("ZADD z XX GT CH 4 a 4 h", ":0"),
        ("ZMSCORE z a b g h", "*4 9 3 1 nil"),
        ("ZADD missing XX 1 a", ":0"),
        ("EXISTS missing", ":0"),
        ("ZCARD z", ":6"),
        ("ZCARD missing", ":0"),
    ]);
}

#[test]
fn zadd_with_incr_returns_the_score_or_null() {
    check(&[
        ("ZADD z INCR 5 a", "5"),
        ("ZADD z INCR 1.5 a", "6.5"),
        ("ZADD z INCR 0 a", "6.5"),
        ("ZADD z NX INCR 1 a", "nil"),
        ("ZADD z XX INCR 1 b", "nil"),
        ("ZADD z GT INCR -1 a", "nil"),
        ("ZADD z LT INCR -1 a", "5.5"),
        ("ZADD z INCR inf a", "inf"),
        ("ZADD z INCR -inf a", "-ERR resulting score is not a number (NaN)"),
        ("ZINCRBY z -inf a", "-ERR resulting score is not a number (NaN)"),
        ("ZSCORE z a", "inf"),
        ("ZINCRBY new -3 m", "-3"),
        ("ZINCRBY new 0.1 m", "-2.9"),
        ("ZINCRBY new x m", NOT_FLOAT),
        ("ZADD missing XX INCR 1 b", "nil"),
        ("EXISTS missing", ":0"),
    ]);
}

#[test]
fn contradictory_options_are_refused_before_anything_changes() {
    check(&[
        ("ZADD z NX XX 1 a", "-ERR XX and NX options at the same time are not compatible"),
        ("ZADD z GT LT 1 a", "-ERR GT, LT, and/or NX options at the same time are not compatible"),
        ("ZADD z NX GT 1 a", "-ERR GT, LT, and/or NX options at the same time are not compatible"),
        ("ZADD z INCR 1 a 2 b", "-ERR INCR option supports a single increment-element pair"),
        ("ZADD z 1 a 2", SYNTAX),
        ("ZADD z NX 1", SYNTAX),
        ("ZADD z 1 a x b", NOT_FLOAT),
        ("ZADD z nan a", NOT_FLOAT),
        ("ZADD z 1 a FOO b", NOT_FLOAT),
        ("EXISTS z", ":0"),
    ]);
}

#[test]
fn negative_zeros_keep_their_sign_in_a_set_that_one_command_makes_large() {
    let members: String = (0..200).map(|number| format!(" -0 m{number}")).collect();
    let mut script = script_with(Protocol::Resp2, 128);
    script.step(&format!("ZADD large{members}"));
    assert_eq!(plain(&script.step("ZSCORE large m7")), "-0");
    // A listpack does not store the sign of a zero, so the set to which it is converted has none either.
    for member in 0..200 {
        script.step(&format!("ZADD grown -0 m{member}"));
    }
    assert_eq!(plain(&script.step("ZSCORE grown m7")), "0");
    assert_eq!(plain(&script.step("ZSCORE grown m199")), "-0");
}

#[test]
fn scores_may_be_any_number() {
    check(&[
        ("ZADD z inf a -inf b 0x10 c 1e3 d 3.0 e 1e-5 f .5 g", ":7"),
        ("ZRANGE z 0 -1 WITHSCORES", "*14 b -inf f 0.00001 g 0.5 e 3 c 16 d 1000 a inf"),
        ("ZADD n 1e17 a 123456789012345678 b 2251799813685249.5 c", ":3"),
        ("ZRANGE n 0 -1 WITHSCORES", "*6 c 2251799813685249.5 a 100000000000000000 b 123456789012345680"),
        ("ZADD n 1e400 x", NOT_FLOAT),
    ]);
    // A listpack does not store the sign of a zero.
    for (entries, zero) in [(128, "0"), (0, "-0")] {
        let mut script = script_with(Protocol::Resp2, entries);
        assert_eq!(script.run("ZADD z -0 a"), ":1");
        assert_eq!(plain(&script.run("ZSCORE z a")), zero);
    }
}

#[test]
fn members_with_equal_scores_are_ordered_by_bytes() {
    check(&[
        ("ZADD z 1 b 1 a 1 \"\" 1 10 1 9 1 \"\\xff\" 1 aa 0 z", ":8"),
        ("ZRANGE z 0 -1", "*8 z  10 9 a aa b \\xff"),
        ("ZRANK z 9", ":3"),
        ("ZREVRANK z 9", ":4"),
        ("ZRANK z nobody", "nil"),
        ("ZRANK missing a", "nil"),
        ("ZRANK z 9 WITHSCORE", "*2 :3 1"),
        ("ZREVRANK z z WITHSCORE", "*2 :7 0"),
        ("ZRANK z nobody WITHSCORE", "*-1"),
        ("ZRANK z 9 WITHSCORES", SYNTAX),
        ("ZRANK z 9 WITHSCORE x", "-ERR wrong number of arguments for 'zrank' command"),
        ("ZREVRANK z 9 WITHSCORE x", "-ERR wrong number of arguments for 'zrevrank' command"),
    ]);
}

#[test]
fn zrange_by_rank_counts_from_either_end() {
    check(&[
        ("ZADD z 1 a 2 b 3 c 4 d", ":4"),
        ("ZRANGE z 1 2", "*2 b c"),
        ("ZRANGE z -2 -1", "*2 c d"),
        ("ZRANGE z 0 100", "*4 a b c d"),
        ("ZRANGE z -100 0", "*1 a"),
        ("ZRANGE z 2 1", "*0"),
        ("ZRANGE z 0 -100", "*0"),
        ("ZRANGE z 4 10", "*0"),
        ("ZRANGE z 9223372036854775807 -9223372036854775808", "*0"),
        ("ZRANGE z 0 1 REV", "*2 d c"),
        ("ZRANGE z -1 -1 REV WITHSCORES", "*2 a 1"),
        ("ZREVRANGE z 0 1 WITHSCORES", "*4 d 4 c 3"),
        ("ZRANGE missing 0 -1", "*0"),
        ("ZRANGE z x 1", NOT_INTEGER),
        (
            "ZRANGE z 0 1 LIMIT 0 1",
            "-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
        ),
        ("ZRANGE z 0 1 LIMIT 1 -1", "*2 a b"),
        ("ZREVRANGE z 0 1 REV", SYNTAX),
        ("ZRANGE z 0 1 BYSCORE BYLEX", SYNTAX),
    ]);
}

#[test]
fn zrange_by_score_takes_exclusive_and_infinite_ends_and_a_limit() {
    check(&[
        ("ZADD z 1 a 2 b 2 c 3 d inf e", ":5"),
        ("ZRANGE z 2 3 BYSCORE", "*3 b c d"),
        ("ZRANGE z (2 inf BYSCORE WITHSCORES", "*4 d 3 e inf"),
        ("ZRANGE z (2 (2 BYSCORE", "*0"),
        ("ZRANGE z 3 1 BYSCORE", "*0"),
        ("ZRANGE z 3 2 BYSCORE REV", "*3 d c b"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT 1 2", "*2 b c"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT 3 -1", "*2 d e"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT -1 2", "*0"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT 9 2", "*0"),
        ("ZRANGE z +inf -inf BYSCORE REV LIMIT 1 2", "*2 d c"),
        ("ZRANGEBYSCORE z (1 3 LIMIT 1 1 WITHSCORES", "*2 c 2"),
        ("ZREVRANGEBYSCORE z 3 (1 LIMIT 0 2", "*2 d c"),
        ("ZCOUNT z (1 3", ":3"),
        ("ZCOUNT z -inf inf", ":5"),
        ("ZCOUNT z 5 1", ":0"),
        ("ZCOUNT missing 0 1", ":0"),
        ("ZCOUNT z a 1", NOT_A_RANGE),
        ("ZRANGE z 1 nan BYSCORE", NOT_A_RANGE),
        ("ZRANGEBYSCORE z 1 2 LIMIT 1", SYNTAX),
        ("ZRANGEBYSCORE z 1 2 LIMIT a 1", NOT_INTEGER),
    ]);
}

#[test]
fn zrange_by_lex_orders_members_of_equal_score() {
    check(&[
        ("ZADD z 0 a 0 b 0 c 0 d 0 10", ":5"),
        ("ZRANGE z - + BYLEX", "*5 10 a b c d"),
        ("ZRANGE z [b (d BYLEX", "*2 b c"),
        ("ZRANGE z (b + BYLEX LIMIT 1 1", "*1 d"),
        ("ZRANGE z + [c BYLEX REV", "*2 d c"),
        ("ZREVRANGEBYLEX z (c - LIMIT 0 2", "*2 b a"),
        ("ZRANGEBYLEX z + -", "*0"),
        ("ZRANGEBYLEX z [d [a", "*0"),
        ("ZLEXCOUNT z - +", ":5"),
        ("ZLEXCOUNT z [1 (b", ":2"),
        ("ZLEXCOUNT missing - +", ":0"),
        ("ZRANGEBYLEX z a +", NOT_A_LEX_RANGE),
        ("ZLEXCOUNT z [a +x", NOT_A_LEX_RANGE),
        (
            "ZRANGE z - + BYLEX WITHSCORES",
            "-ERR syntax error, WITHSCORES not supported in combination with BYLEX",
        ),
        ("ZREMRANGEBYLEX z [a (c", ":2"),
        ("ZRANGE z 0 -1", "*3 10 c d"),
    ]);
}

#[test]
fn a_lex_range_over_different_scores_is_searched_from_its_end_in_a_listpack() {
    let mut script = Script::new(Protocol::Resp2);
    script.run("ZADD z 1 c 2 a 3 d 4 b");
    for (line, expected) in [
        ("ZRANGEBYLEX z [b +", "*4 c a d b"),
        ("ZRANGEBYLEX z [d +", "*0"),
        ("ZRANGEBYLEX z [b [c", "*2 c a"),
        ("ZREVRANGEBYLEX z [c [a", "*4 b d a c"),
        ("ZLEXCOUNT z [a [c", ":2"),
    ] {
        assert_eq!(plain(&script.run(line)), expected, "{line}");
    }
}

#[test]
fn zrangestore_replaces_the_target() {
    check(&[
        ("ZADD z 1 a 2 b 3 c", ":3"),
        ("SET t x", "+OK"),
        ("ZRANGESTORE t z 0 1", ":2"),
        ("ZRANGE t 0 -1 WITHSCORES", "*4 a 1 b 2"),
        ("ZRANGESTORE t z (3 1 BYSCORE REV LIMIT 0 1", ":1"),
        ("ZRANGE t 0 -1", "*1 b"),
        ("ZRANGESTORE z z 0 0", ":1"),
        ("ZRANGE z 0 -1", "*1 a"),
        ("ZRANGESTORE t missing 0 -1", ":0"),
        ("EXISTS t", ":0"),
        ("ZRANGESTORE t z 0 -1 WITHSCORES", SYNTAX),
        ("SET s x", "+OK"),
        ("ZRANGESTORE t s 0 -1", WRONG_TYPE),
    ]);
}

#[test]
fn members_are_removed_by_name_rank_and_score() {
    check(&[
        ("ZADD z 1 a 2 b 3 c 4 d 5 e 6 f", ":6"),
        ("ZREM z a nobody a", ":1"),
        ("ZREMRANGEBYRANK z -1 -1", ":1"),
        ("ZREMRANGEBYRANK z 5 9", ":0"),
        ("ZREMRANGEBYSCORE z (2 3", ":1"),
        ("ZRANGE z 0 -1", "*3 b d e"),
        ("ZREMRANGEBYSCORE z -inf inf", ":3"),
        ("EXISTS z", ":0"),
        ("ZREM missing a", ":0"),
        ("ZREMRANGEBYRANK missing 0 -1", ":0"),
        ("ZREMRANGEBYRANK z x 1", NOT_INTEGER),
        ("ZREMRANGEBYSCORE z x 1", NOT_A_RANGE),
        ("ZREMRANGEBYLEX z x +", NOT_A_LEX_RANGE),
    ]);
}

#[test]
fn pops_take_members_from_either_end() {
    check(&[
        ("ZADD z 1 a 2 b 3 c 4 d", ":4"),
        ("ZPOPMIN z", "*2 a 1"),
        ("ZPOPMAX z 2", "*4 d 4 c 3"),
        ("ZPOPMAX z 0", "*0"),
        ("ZPOPMIN z 10", "*2 b 2"),
        ("EXISTS z", ":0"),
        ("ZPOPMIN z", "*0"),
        ("ZPOPMIN z -1", "-ERR value is out of range, must be positive"),
        ("ZPOPMIN z x", "-ERR value is out of range, must be positive"),
        ("ZPOPMIN z 1 2", SYNTAX),
    ]);
    check_resp3(&[
        ("ZADD z 1 a 2 b 3 c", ":3"),
        ("ZPOPMIN z", "*2 a ,1"),
        ("ZPOPMIN z 2", "*2 *2 b ,2 *2 c ,3"),
    ]);
}

#[test]
fn zmpop_pops_from_the_first_key_that_has_members() {
    check(&[
        ("ZADD z 1 a 2 b 3 c", ":3"),
        ("ZMPOP 2 missing z MIN", "*2 z *1 *2 a 1"),
        ("ZMPOP 1 z MAX COUNT 5", "*2 z *2 *2 c 3 *2 b 2"),
        ("ZMPOP 2 missing z MAX", "*-1"),
        ("ZMPOP 0 z MAX", "-ERR numkeys should be greater than 0"),
        ("ZMPOP x z MAX", "-ERR numkeys should be greater than 0"),
        ("ZMPOP 1 z MIDDLE", SYNTAX),
        ("ZMPOP 3 z MAX", SYNTAX),
        ("ZMPOP 9223372036854775807 z MAX", SYNTAX),
        ("ZMPOP 1 z MAX COUNT 0", "-ERR count should be greater than 0"),
        ("ZMPOP 1 z MAX COUNT 1 COUNT 1", SYNTAX),
        ("ZMPOP 1 z MAX COUNT", SYNTAX),
        ("SET s x", "+OK"),
        ("ZMPOP 2 s z MAX", WRONG_TYPE),
    ]);
}

#[test]
fn blocking_pops_answer_at_once_if_they_can() {
    check(&[
        ("ZADD z 1 a 2 b 3 c 4 d", ":4"),
        ("BZPOPMIN missing z 0", "*3 z a 1"),
        ("BZPOPMAX z missing 0.5", "*3 z d 4"),
        ("BZMPOP 1 2 missing z MAX COUNT 9", "*2 z *2 *2 c 3 *2 b 2"),
        ("BZPOPMIN z -1", "-ERR timeout is negative"),
        ("BZPOPMIN z x", "-ERR timeout is not a float or out of range"),
        ("BZMPOP x 1 z MIN", "-ERR timeout is not a float or out of range"),
        ("BZMPOP x 1 z MIDDLE", SYNTAX),
        ("SET s x", "+OK"),
        ("BZPOPMIN s z 0", WRONG_TYPE),
    ]);
    check_resp3(&[("ZADD z 1 a", ":1"), ("BZPOPMIN z 0", "*3 z a ,1")]);
}

#[test]
fn unions_add_up_scores() {
    check(&[
        ("ZADD one 1 a 2 b", ":2"),
        ("ZADD two 10 b 20 c", ":2"),
        ("SADD set b x", ":2"),
        ("ZUNION 2 one two", "*3 a b c"),
        ("ZUNION 3 one two set WITHSCORES", "*8 a 1 x 1 b 13 c 20"),
        ("ZUNION 2 one two WEIGHTS 2 -1 WITHSCORES", "*6 c -20 b -6 a 2"),
        ("ZUNION 2 one two AGGREGATE MIN WITHSCORES", "*6 a 1 b 2 c 20"),
        ("ZUNION 2 one two AGGREGATE max WITHSCORES", "*6 a 1 b 10 c 20"),
        ("ZUNIONSTORE t 2 one missing", ":2"),
        ("ZRANGE t 0 -1 WITHSCORES", "*4 a 1 b 2"),
        ("ZUNIONSTORE t 1 missing", ":0"),
        ("EXISTS t", ":0"),
        ("ZUNIONSTORE one 2 one two", ":3"),
        ("ZUNION 2 one", SYNTAX),
        ("ZUNION 0 one", "-ERR at least 1 input key is needed for 'zunion' command"),
        ("ZUNIONSTORE t -1 one", "-ERR at least 1 input key is needed for 'zunionstore' command"),
        ("ZUNION x one", NOT_INTEGER),
        ("ZUNION 1 one WEIGHTS x", "-ERR weight value is not a float"),
        ("ZUNION 2 one two WEIGHTS 1", SYNTAX),
        ("ZUNION 1 one AGGREGATE MEAN", SYNTAX),
        ("ZUNIONSTORE t 1 one WITHSCORES", SYNTAX),
        ("SET s x", "+OK"),
        ("ZUNION 2 one s BAD", WRONG_TYPE),
    ]);
    check_resp3(&[
        ("ZADD one 1 a 2 b", ":2"),
        ("ZUNION 1 one WITHSCORES", "*2 *2 a ,1 *2 b ,2"),
        ("ZRANGE one 0 -1 WITHSCORES", "*2 *2 a ,1 *2 b ,2"),
        ("ZUNION 1 one", "*2 a b"),
    ]);
}

#[test]
fn infinities_that_meet_become_zero() {
    check(&[
        ("ZADD one inf a inf b", ":2"),
        ("ZADD two -inf a 1 b", ":2"),
        ("ZUNION 2 one two WITHSCORES", "*4 a 0 b inf"),
        ("ZUNION 2 one two WEIGHTS 0 1 WITHSCORES", "*4 a -inf b 1"),
        ("ZINTER 2 one two WITHSCORES", "*4 a 0 b inf"),
    ]);
}

#[test]
fn intersections_contain_the_members_of_all_sets() {
    check(&[
        ("ZADD one 1 a 2 b 3 c", ":3"),
        ("ZADD two 10 b 20 c 30 d", ":3"),
        ("SADD set c b z", ":3"),
        ("ZINTER 2 one two WITHSCORES", "*4 b 12 c 23"),
        ("ZINTER 3 one two set WEIGHTS 1 1 100 WITHSCORES", "*4 b 112 c 123"),
        ("ZINTER 2 one one WITHSCORES", "*6 a 2 b 4 c 6"),
        ("ZINTER 2 one missing", "*0"),
        ("ZINTERSTORE t 2 one two AGGREGATE MIN", ":2"),
        ("ZRANGE t 0 -1 WITHSCORES", "*4 b 2 c 3"),
        ("ZINTERCARD 2 one two", ":2"),
        ("ZINTERCARD 2 one two LIMIT 1", ":1"),
        ("ZINTERCARD 2 one two LIMIT 0", ":2"),
        ("ZINTERCARD 2 one two LIMIT -1", "-ERR LIMIT can't be negative"),
        ("ZINTERCARD 2 one two WITHSCORES", SYNTAX),
        ("ZINTERCARD 2 one missing", ":0"),
    ]);
}

#[test]
fn differences_contain_the_members_of_the_first_set_alone() {
    check(&[
        ("ZADD one 1 a 2 b 3 c", ":3"),
        ("ZADD two 10 b", ":1"),
        ("SADD set c", ":1"),
        ("ZDIFF 2 one two WITHSCORES", "*4 a 1 c 3"),
        ("ZDIFF 3 one two set", "*1 a"),
        ("ZDIFF 2 missing one", "*0"),
        ("ZDIFF 2 one missing", "*3 a b c"),
        ("ZDIFF 2 one one", "*0"),
        // With many other sets, their members are removed from the first set instead of looked up.
        ("ZDIFF 9 one set set set set set set two two WITHSCORES", "*2 a 1"),
        ("ZDIFFSTORE t 3 one two set", ":1"),
        ("ZRANGE t 0 -1 WITHSCORES", "*2 a 1"),
        ("ZDIFF 1 one WEIGHTS 1", SYNTAX),
    ]);
}

#[test]
fn random_members_are_members() {
    for entries in [128, 0] {
        let mut script = script_with(Protocol::Resp2, entries);
        assert_eq!(script.run("ZRANDMEMBER z"), "$-1");
        assert_eq!(script.run("ZRANDMEMBER z 3"), "*0");
        script.run("ZADD z 1 a 2 b 3 c 4 d 5 e");
        let all: BTreeSet<String> = ["a", "b", "c", "d", "e"].map(String::from).into();
        let mut met = BTreeSet::new();
        for _ in 0..200 {
            met.insert(plain(&script.run("ZRANDMEMBER z")));
            let reply = plain(&script.run("ZRANDMEMBER z 3"));
            let three: BTreeSet<String> = reply.split(' ').skip(1).map(String::from).collect();
            assert!(three.len() == 3 && three.is_subset(&all), "{reply}");
            let reply = plain(&script.run("ZRANDMEMBER z -9"));
            assert!(reply.split(' ').skip(1).filter(|member| all.contains(*member)).count() == 9, "{reply}");
        }
        assert_eq!(met, all);
        assert_eq!(plain(&script.run("ZRANDMEMBER z 9 WITHSCORES")), "*10 a 1 b 2 c 3 d 4 e 5");
        assert_eq!(script.run("ZRANDMEMBER z 0"), "*0");
        assert_eq!(script.run("ZRANDMEMBER z 1 WITH"), SYNTAX);
        assert_eq!(script.run("ZRANDMEMBER z x"), NOT_INTEGER);
        assert_eq!(script.run("ZRANDMEMBER z 9223372036854775807 WITHSCORES"), "-ERR value is out of range");
        let too_long = "-ERR the reply would be longer than proto-max-bulk-len";
        assert_eq!(script.run("ZRANDMEMBER z -9223372036854775807"), too_long);
        assert_eq!(script.run("ZRANDMEMBER z -4611686018427387903 WITHSCORES"), too_long);
    }
}

#[test]
fn zscan_returns_every_member_with_its_score() {
    check(&[
        ("ZADD z 1 a 2 ab 3 b", ":3"),
        ("ZSCAN z 0 MATCH ab", "*2 0 *2 ab 2"),
        ("ZSCAN missing 0", "*2 0 *0"),
        ("ZSCAN missing 0 COUNT 0", "*2 0 *0"),
        ("ZSCAN z 0 MATCH ab NOSCORES", "*2 0 *1 ab"),
        ("ZSCAN z 0 noscores COUNT 1 MATCH ab", "*2 0 *1 ab"),
        ("ZSCAN z 0 NOVALUES", SYNTAX),
        ("HSCAN missing 0 NOSCORES", "*2 0 *0"),
        ("ZSCAN z x", "-ERR invalid cursor"),
        ("ZSCAN z 0 COUNT 0", SYNTAX),
        ("ZSCAN z 0 LIMIT 1", SYNTAX),
    ]);
    let mut script = Script::new(Protocol::Resp2);
    for number in 0..3000 {
        script.run(&format!("ZADD z {number} m{number}"));
    }
    let (mut cursor, mut found) = (String::from("0"), BTreeMap::new());
    loop {
        let reply = plain(&script.run(&format!("ZSCAN z {cursor} COUNT 20")));
        let words: Vec<&str> = reply.split(' ').collect();
        for pair in words[3..].chunks(2) {
            found.insert(pair[0].to_string(), pair[1].to_string());
        }
        cursor = words[1].to_string();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(found.len(), 3000);
    assert!(found.iter().all(|(member, score)| member[1..] == **score));
}

#[test]
fn a_set_that_grows_over_the_limits_leaves_the_listpack_for_good() {
    let mut script = Script::new(Protocol::Resp2);
    for number in 0..128 {
        script.run(&format!("ZADD z {number} m{number}"));
    }
    assert_eq!(script.entry("z"), "listpack");
    script.run("ZADD z 7 m9");
    assert_eq!(script.entry("z"), "listpack");
    script.run("ZADD z 7 another");
    assert_eq!(script.entry("z"), "skiplist");
    script.run("ZREMRANGEBYRANK z 0 100");
    assert_eq!(script.entry("z"), "skiplist");
    // The result of a storing command is a new set.
    script.run("ZUNIONSTORE t 1 z");
    assert_eq!(script.entry("t"), "listpack");
    script.run("ZRANGESTORE t z 0 -1");
    assert_eq!(script.entry("t"), "listpack");
    let (fits, long) = ("x".repeat(64), "x".repeat(65));
    script.run(&format!("ZADD v 1 {fits}"));
    assert_eq!(script.entry("v"), "listpack");
    script.run(&format!("ZADD v 1 {long}"));
    assert_eq!(script.entry("v"), "skiplist");
    script.run("ZRANGESTORE t v 0 -1");
    assert_eq!(script.entry("t"), "skiplist");
    script.run("ZDIFFSTORE t 1 v");
    assert_eq!(script.entry("t"), "skiplist");
    script.local.keyspace.check_invariants();
}

#[test]
fn a_copy_does_not_change_with_the_original() {
    check(&[
        ("ZADD z 1 a 2 b", ":2"),
        ("COPY z copy", ":1"),
        ("ZADD z 3 a", ":0"),
        ("ZREM z b", ":1"),
        ("ZRANGE copy 0 -1 WITHSCORES", "*4 a 1 b 2"),
        ("ZADD copy 0 b", ":0"),
        ("ZRANGE copy 0 -1 WITHSCORES", "*4 b 0 a 1"),
        ("TYPE copy", "+zset"),
    ]);
}

#[test]
fn another_type_is_refused() {
    check(&[
        ("SET s x", "+OK"),
        ("ZADD s 1 a", WRONG_TYPE),
        ("ZADD s XX 1 a", WRONG_TYPE),
        ("ZINCRBY s 1 a", WRONG_TYPE),
        ("ZREM s a", WRONG_TYPE),
        ("ZCARD s", WRONG_TYPE),
        ("ZCOUNT s 0 1", WRONG_TYPE),
        ("ZLEXCOUNT s - +", WRONG_TYPE),
        ("ZSCORE s a", WRONG_TYPE),
        ("ZMSCORE s a", WRONG_TYPE),
        ("ZRANK s a", WRONG_TYPE),
        ("ZRANGE s 0 -1", WRONG_TYPE),
        ("ZREMRANGEBYRANK s 0 -1", WRONG_TYPE),
        ("ZPOPMIN s", WRONG_TYPE),
        ("ZRANDMEMBER s", WRONG_TYPE),
        ("ZRANDMEMBER s 3", WRONG_TYPE),
        ("ZSCAN s 0", WRONG_TYPE),
        ("ZDIFF 1 s", WRONG_TYPE),
        ("ZINTERCARD 1 s", WRONG_TYPE),
        ("ZADD z 1 a", ":1"),
        ("GET z", WRONG_TYPE),
        ("SET z x", "+OK"),
    ]);
}

#[test]
fn changes_are_published_as_events() {
    for (line, expected) in [
        ("ZADD z 9 new", "zadd"),
        ("ZADD z 1 a", ""),
        ("ZADD z INCR 1 a", "zincr"),
        ("ZINCRBY z 1 a", "zincr"),
        ("ZINCRBY z 0 a", ""),
        ("ZREM z a", "zrem"),
        ("ZREM z nobody", ""),
        ("ZREM z a b", "zrem del"),
        ("ZREMRANGEBYRANK z 0 0", "zremrangebyrank"),
        ("ZREMRANGEBYSCORE z 1 1", "zremrangebyscore"),
        ("ZREMRANGEBYLEX z - +", "zremrangebylex del"),
        ("ZPOPMIN z", "zpopmin"),
        ("ZPOPMAX z 2", "zpopmax del"),
        ("ZPOPMAX z 0", ""),
        ("ZMPOP 1 z MIN", "zpopmin"),
        ("BZPOPMAX z 0", "zpopmax"),
        ("ZRANGESTORE t z 0 -1", "zrangestore"),
        ("ZRANGESTORE z missing 0 -1", "del"),
        ("ZUNIONSTORE t 1 z", "zunionstore"),
        ("ZINTERSTORE t 1 z", "zinterstore"),
        ("ZDIFFSTORE t 1 z", "zdiffstore"),
        ("ZDIFFSTORE z 2 z z", "del"),
    ] {
        let mut script = Script::new(Protocol::Resp2);
        script.run("ZADD z 1 a 2 b");
        script.local.turn.notices.classes = EventClass::ALL;
        script.local.turn.notices.events.clear();
        script.run(line);
        let events: Vec<&str> =
            script.local.turn.notices.events.iter().map(|notice| notice.event.name).collect();
        assert_eq!(events.join(" "), expected, "{line}");
    }
}

/// The expected contents of a sorted set.
#[derive(Default)]
struct Model(BTreeMap<String, i64>);

impl Model {
    fn ordered(&self) -> Vec<(i64, &str)> {
        let mut all: Vec<(i64, &str)> = self.0.iter().map(|(member, score)| (*score, &**member)).collect();
        all.sort_unstable();
        all
    }

    fn listed(elements: &[(i64, &str)]) -> String {
        let mut text = format!("*{}", 2 * elements.len());
        for (score, member) in elements {
            text += &format!(" {member} {score}");
        }
        text
    }
}

#[test]
fn random_commands_keep_a_set_equal_to_its_model() {
    for (entries, seed) in [(128, 1), (128, 2), (0, 3), (0, 4), (20, 5), (20, 6)] {
        let mut script = script_with(Protocol::Resp2, entries);
        let mut random = Random::seeded(seed * 7919);
        let mut model = Model::default();
        let spread = if seed % 2 == 0 { 5 } else { 10_000 };
        for step in 0..4000 {
            let member = format!("m{}", random.below(400));
            let score = random.below(spread) as i64;
            match random.below(12) {
                0..=4 => {
                    let added = model.0.insert(member.clone(), score).is_none();
                    assert_eq!(
                        script.run(&format!("ZADD z {score} {member}")),
                        format!(":{}", i64::from(added))
                    );
                }
                5 => {
                    let total = model.0.entry(member.clone()).or_insert(0);
                    *total += score;
                    assert_eq!(plain(&script.run(&format!("ZINCRBY z {score} {member}"))), total.to_string());
                }
                6..=7 => {
                    let removed = model.0.remove(&member).is_some();
                    assert_eq!(script.run(&format!("ZREM z {member}")), format!(":{}", i64::from(removed)));
                }
                8 => {
                    let all = model.ordered();
                    let rank = all.iter().position(|(_, other)| *other == member);
                    let expected = rank.map_or("$-1".to_string(), |rank| format!(":{rank}"));
                    assert_eq!(script.run(&format!("ZRANK z {member}")), expected);
                }
                9 => {
                    let (min, max) = (score, score + random.below(spread) as i64);
                    let all = model.ordered();
                    let found: Vec<_> =
                        all.into_iter().filter(|(score, _)| (min..=max).contains(score)).collect();
                    let reply = script.run(&format!("ZRANGE z {min} {max} BYSCORE WITHSCORES"));
                    assert_eq!(plain(&reply), Model::listed(&found));
                }
                10 if random.below(20) == 0 => {
                    let (min, max) = (score, score + random.below(spread) as i64 / 4);
                    let before = model.0.len();
                    model.0.retain(|_, score| !(min..=max).contains(score));
                    let reply = script.run(&format!("ZREMRANGEBYSCORE z {min} {max}"));
                    assert_eq!(reply, format!(":{}", before - model.0.len()));
                }
                11 if random.below(20) == 0 => {
                    let count = random.below(30);
                    let popped = model.ordered().into_iter().rev().take(count);
                    let popped: Vec<(i64, String)> =
                        popped.map(|(score, member)| (score, member.into())).collect();
                    let listed: Vec<_> = popped.iter().map(|(score, member)| (*score, &**member)).collect();
                    assert_eq!(plain(&script.run(&format!("ZPOPMAX z {count}"))), Model::listed(&listed));
                    popped.iter().for_each(|(_, member)| assert!(model.0.remove(member).is_some()));
                }
                _ => {
                    let all = model.ordered();
                    let start = random.below(all.len() + 1);
                    let end = (start + random.below(20)).min(all.len());
                    let reply = script.run(&format!("ZRANGE z {start} {} WITHSCORES", end as i64 - 1));
                    // An end of -1 is the last member.
                    let expected = if end == 0 { &all[..] } else { &all[start..end] };
                    assert_eq!(plain(&reply), Model::listed(expected));
                }
            }
            if step % 500 == 0 {
                assert_eq!(plain(&script.run("ZRANGE z 0 -1 WITHSCORES")), Model::listed(&model.ordered()));
                let mut reversed = model.ordered();
                reversed.reverse();
                assert_eq!(plain(&script.run("ZREVRANGE z 0 -1 WITHSCORES")), Model::listed(&reversed));
                script.local.keyspace.check_invariants();
            }
        }
        script.local.keyspace.check_invariants();
    }
}
