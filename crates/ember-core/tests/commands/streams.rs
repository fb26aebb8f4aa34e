//! Tests of stream commands, which compare the bytes of replies in RESP2, and in RESP3 where the structure differs.

use ember_protocol::Protocol;
use emberkv_core::events::EventClass;

use crate::support::script::{Script, check, check_in};

/// Like [`check`], in RESP2 only, for replies with maps or null arrays, whose form differs in RESP3.
fn check_resp2(steps: &[(&str, &str)]) {
    check_in(Protocol::Resp2, steps);
}

/// A stream of three entries, with a group that has read none.
const GIVEN: [(&str, &str); 4] = [
    ("XADD s 1-1 n 1", "$3 1-1"),
    ("XADD s 2-1 n 2", "$3 2-1"),
    ("XADD s 3-1 n 3", "$3 3-1"),
    ("XGROUP CREATE s g 0", "+OK"),
];

fn check_given(steps: &[(&str, &str)]) {
    check_resp2(&[&GIVEN, steps].concat());
}

#[test]
fn xadd_assigns_ascending_ids() {
    check(&[
        ("XADD s 5-1 a 1", "$3 5-1"),
        (
            "XADD s 5-1 a 1",
            "-ERR The ID specified in XADD is equal or smaller than the target stream top item",
        ),
        ("XADD s 4 a 1", "-ERR The ID specified in XADD is equal or smaller than the target stream top item"),
        ("XADD s 5-* a 1", "$3 5-2"),
        ("XADD s 6-* a 1", "$3 6-0"),
        (
            "XADD s 4-* a 1",
            "-ERR The ID specified in XADD is equal or smaller than the target stream top item",
        ),
        ("XADD s 7 a 1", "$3 7-0"),
        ("XADD s 18446744073709551615-* a 1", "$22 18446744073709551615-0"),
        (
            "XADD s 18446744073709551615-18446744073709551615 a 1",
            "$41 18446744073709551615-18446744073709551615",
        ),
        (
            "XADD s 18446744073709551615-* a 1",
            "-ERR The stream has exhausted the last possible ID, unable to add more items",
        ),
        ("XADD s * a 1", "-ERR The stream has exhausted the last possible ID, unable to add more items"),
        ("XLEN s", ":6"),
    ]);
}

#[test]
fn xadd_refuses_invalid_ids_and_incomplete_pairs() {
    check(&[
        ("XADD s 0-0 a 1", "-ERR The ID specified in XADD must be greater than 0-0"),
        ("XADD s 0 a 1", "-ERR The ID specified in XADD must be greater than 0-0"),
        ("XADD s x a 1", "-ERR Invalid stream ID specified as stream command argument"),
        ("XADD s 1-x a 1", "-ERR Invalid stream ID specified as stream command argument"),
        ("XADD s -1 a 1", "-ERR Invalid stream ID specified as stream command argument"),
        ("XADD s + a 1", "-ERR Invalid stream ID specified as stream command argument"),
        ("XADD s 1-1 a", "-ERR wrong number of arguments for 'xadd' command"),
        ("XADD s 1-1 a 1 b", "-ERR wrong number of arguments for 'xadd' command"),
        ("XADD s 1-1", "-ERR wrong number of arguments for 'xadd' command"),
        ("XADD s NOMKSTREAM", "-ERR wrong number of arguments for 'xadd' command"),
        ("XADD s MAXLEN 5 NOMKSTREAM 1-1", "-ERR wrong number of arguments for 'xadd' command"),
        ("EXISTS s", ":0"),
        ("XADD s 0-* a 1", "$3 0-1"),
    ]);
}

#[test]
fn xadd_with_nomkstream_creates_no_key() {
    check(&[
        ("XADD s NOMKSTREAM 1-1 a 1", "$-1"),
        ("EXISTS s", ":0"),
        ("XADD s 1-1 a 1", "$3 1-1"),
        ("XADD s NOMKSTREAM 2-1 a 1", "$3 2-1"),
    ]);
}

#[test]
fn xadd_trims_after_adding_the_entry() {
    check(&[
        ("XADD s 1-1 a 1", "$3 1-1"),
        ("XADD s 2-1 a 1", "$3 2-1"),
        ("XADD s MAXLEN 2 3-1 a 1", "$3 3-1"),
        ("XADD s MAXLEN = 1 4-1 a 1", "$3 4-1"),
        ("XRANGE s - +", "*1 *2 $3 4-1 *2 $1 a $1 1"),
        ("XADD s MINID 5 5-1 a 1", "$3 5-1"),
        ("XRANGE s - +", "*1 *2 $3 5-1 *2 $1 a $1 1"),
        ("XADD s MAXLEN 0 6-1 a 1", "$3 6-1"),
        ("XLEN s", ":0"),
        ("TYPE s", "+stream"),
        ("XADD s MAXLEN ~ 1 7-1 a 1", "$3 7-1"),
        ("XADD s MAXLEN ~ 1 8-1 a 1", "$3 8-1"),
        ("XLEN s", ":2"),
    ]);
}

#[test]
fn invalid_trimming_options_are_errors() {
    check(&[
        ("XADD s MAXLEN -1 1-1 a 1", "-ERR The MAXLEN argument must be >= 0."),
        ("XADD s MAXLEN x 1-1 a 1", "-ERR value is not an integer or out of range"),
        ("XADD s MINID x 1-1 a 1", "-ERR Invalid stream ID specified as stream command argument"),
        (
            "XADD s MAXLEN 5 MINID 5 1-1 a 1",
            "-ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
        ),
        (
            "XADD s MAXLEN 5 LIMIT 5 1-1 a 1",
            "-ERR syntax error, LIMIT cannot be used without the special ~ option",
        ),
        ("XADD s MAXLEN ~ 5 LIMIT -1 1-1 a 1", "-ERR The LIMIT argument must be >= 0."),
        (
            "XADD s LIMIT 5 1-1 a 1",
            "-ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
        ),
        ("XADD s LIMIT 0 1-1 a 1", "-ERR syntax error, LIMIT cannot be used without the special ~ option"),
        ("XTRIM s MAXLEN", "-ERR wrong number of arguments for 'xtrim' command"),
        ("XTRIM s LIMIT 5", "-ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"),
        ("XTRIM s MAXLEN 5 LIMIT 5", "-ERR syntax error, LIMIT cannot be used without the special ~ option"),
        ("XTRIM s MAXLEN 5 bla", "-ERR syntax error"),
        ("XTRIM s bla 5", "-ERR syntax error"),
        ("EXISTS s", ":0"),
    ]);
}

#[test]
fn xtrim_returns_the_number_of_removed_entries() {
    check(&[
        ("XTRIM none MAXLEN 5", ":0"),
        ("XADD s 1-1 a 1", "$3 1-1"),
        ("XADD s 2-1 a 1", "$3 2-1"),
        ("XADD s 3-1 a 1", "$3 3-1"),
        ("XADD s 3-2 a 1", "$3 3-2"),
        ("XTRIM s MAXLEN ~ 1", ":0"),
        ("XTRIM s MINID 2", ":1"),
        ("XTRIM s MAXLEN 5", ":0"),
        ("XTRIM s MINID 3-2", ":2"),
        ("XRANGE s - +", "*1 *2 $3 3-2 *2 $1 a $1 1"),
        ("XTRIM s MAXLEN 0", ":1"),
        ("XLEN s", ":0"),
        ("EXISTS s", ":1"),
    ]);
}

#[test]
fn xdel_deletes_entries_and_leaves_the_stream() {
    check(&[
        ("XADD s 1-1 a 1", "$3 1-1"),
        ("XADD s 2-1 a 1", "$3 2-1"),
        ("XADD s 3-1 a 1", "$3 3-1"),
        ("XDEL s 2-1 2-1 9-9", ":1"),
        ("XDEL s 2-1", ":0"),
        ("XDEL s 1 x", "-ERR Invalid stream ID specified as stream command argument"),
        ("XRANGE s - +", "*2 *2 $3 1-1 *2 $1 a $1 1 *2 $3 3-1 *2 $1 a $1 1"),
        ("XDEL s 1-1 3-1", ":2"),
        ("XLEN s", ":0"),
        ("EXISTS s", ":1"),
        (
            "XADD s 3-1 a 1",
            "-ERR The ID specified in XADD is equal or smaller than the target stream top item",
        ),
        ("XDEL none 1-1", ":0"),
        ("XDEL none x", ":0"),
    ]);
}

#[test]
fn ranges_are_bounded_by_ids_open_or_closed() {
    check_resp2(&[
        ("XADD s 1-1 a 1", "$3 1-1"),
        ("XADD s 1-2 b 2 c 3", "$3 1-2"),
        ("XADD s 2-1 a \"\\x00\\xff\"", "$3 2-1"),
        (
            "XRANGE s - +",
            "*3 *2 $3 1-1 *2 $1 a $1 1 *2 $3 1-2 *4 $1 b $1 2 $1 c $1 3 *2 $3 2-1 *2 $1 a $2 \\x00\\xff",
        ),
        ("XRANGE s 1 1", "*2 *2 $3 1-1 *2 $1 a $1 1 *2 $3 1-2 *4 $1 b $1 2 $1 c $1 3"),
        ("XRANGE s 1-2 +", "*2 *2 $3 1-2 *4 $1 b $1 2 $1 c $1 3 *2 $3 2-1 *2 $1 a $2 \\x00\\xff"),
        ("XRANGE s (1-1 (2-1", "*1 *2 $3 1-2 *4 $1 b $1 2 $1 c $1 3"),
        ("XRANGE s 2 1", "*0"),
        (
            "XREVRANGE s + -",
            "*3 *2 $3 2-1 *2 $1 a $2 \\x00\\xff *2 $3 1-2 *4 $1 b $1 2 $1 c $1 3 *2 $3 1-1 *2 $1 a $1 1",
        ),
        ("XREVRANGE s 1 1", "*2 *2 $3 1-2 *4 $1 b $1 2 $1 c $1 3 *2 $3 1-1 *2 $1 a $1 1"),
        ("XREVRANGE s (2-1 (1-1", "*1 *2 $3 1-2 *4 $1 b $1 2 $1 c $1 3"),
        ("XRANGE s - + COUNT 1", "*1 *2 $3 1-1 *2 $1 a $1 1"),
        ("XRANGE s - + COUNT 2 COUNT 1", "*1 *2 $3 1-1 *2 $1 a $1 1"),
        ("XREVRANGE s + - COUNT 2", "*2 *2 $3 2-1 *2 $1 a $2 \\x00\\xff *2 $3 1-2 *4 $1 b $1 2 $1 c $1 3"),
        ("XRANGE s - + COUNT 0", "*-1"),
        ("XRANGE s - + COUNT -5", "*-1"),
        ("XRANGE s - + COUNT", "-ERR syntax error"),
        ("XRANGE s - + bla", "-ERR syntax error"),
        ("XRANGE s - + COUNT x", "-ERR value is not an integer or out of range"),
        ("XRANGE s (- +", "-ERR Invalid stream ID specified as stream command argument"),
        ("XRANGE s (18446744073709551615-18446744073709551615 +", "-ERR invalid start ID for the interval"),
        ("XRANGE s - (0-0", "-ERR invalid end ID for the interval"),
        ("XRANGE s x +", "-ERR Invalid stream ID specified as stream command argument"),
        ("XRANGE none - +", "*0"),
        ("XRANGE none - + COUNT 0", "*0"),
    ]);
}

#[test]
fn entries_keep_their_fields_unchanged() {
    check(&[
        ("XADD s 1-1 name 1 name 2", "$3 1-1"),
        ("XADD s 2-1 name 3 name 4", "$3 2-1"),
        ("XADD s 3-1 name 5", "$3 3-1"),
        ("XADD s 4-1 \"\" \"\" 007 9223372036854775807", "$3 4-1"),
        ("XADD s 5-1 other 1 name 2", "$3 5-1"),
        (
            "XRANGE s - +",
            "*5 *2 $3 1-1 *4 $4 name $1 1 $4 name $1 2 *2 $3 2-1 *4 $4 name $1 3 $4 name $1 4 *2 $3 3-1 *2 $4 name $1 5 *2 $3 4-1 *4 $0  $0  $3 007 $19 9223372036854775807 *2 $3 5-1 *4 $5 other $1 1 $4 name $1 2",
        ),
    ]);
}

#[test]
fn xread_returns_later_entries() {
    check_resp2(&[
        ("XADD a 1-1 n 1", "$3 1-1"),
        ("XADD a 2-1 n 2", "$3 2-1"),
        ("XADD b 5-1 n 3", "$3 5-1"),
        ("XREAD STREAMS a 0", "*1 *2 $1 a *2 *2 $3 1-1 *2 $1 n $1 1 *2 $3 2-1 *2 $1 n $1 2"),
        ("XREAD STREAMS a b 1-1 0", "*2 *2 $1 a *1 *2 $3 2-1 *2 $1 n $1 2 *2 $1 b *1 *2 $3 5-1 *2 $1 n $1 3"),
        (
            "XREAD COUNT 1 STREAMS a b 0 0",
            "*2 *2 $1 a *1 *2 $3 1-1 *2 $1 n $1 1 *2 $1 b *1 *2 $3 5-1 *2 $1 n $1 3",
        ),
        ("XREAD COUNT 0 STREAMS a 1-1", "*1 *2 $1 a *1 *2 $3 2-1 *2 $1 n $1 2"),
        ("XREAD COUNT -1 STREAMS a 1-1", "*1 *2 $1 a *1 *2 $3 2-1 *2 $1 n $1 2"),
        ("XREAD STREAMS a b 2-1 5-1", "*-1"),
        ("XREAD STREAMS a $", "*-1"),
        ("XREAD STREAMS none 0", "*-1"),
        ("XREAD STREAMS a 2", "*1 *2 $1 a *1 *2 $3 2-1 *2 $1 n $1 2"),
    ]);
}

#[test]
fn xread_refuses_unknown_options() {
    check_resp2(&[
        (
            "XREAD STREAMS a >",
            "-ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
        ),
        ("XREAD STREAMS a x", "-ERR Invalid stream ID specified as stream command argument"),
        ("XREAD COUNT x STREAMS a 0", "-ERR value is not an integer or out of range"),
        ("XREAD BLOCK x STREAMS a 0", "-ERR timeout is not an integer or out of range"),
        ("XREAD BLOCK -1 STREAMS a 0", "-ERR timeout is negative"),
        ("XREAD BLOCK 9223372036854775807 STREAMS a 0", "-ERR timeout is out of range"),
        (
            "XREAD GROUP g c STREAMS a 0",
            "-ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
        ),
        (
            "XREAD NOACK STREAMS a 0",
            "-ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
        ),
        ("XREAD bla 1 STREAMS a 0", "-ERR syntax error"),
        ("XREAD COUNT 1 BLOCK 1", "-ERR syntax error"),
        ("SET a x", "+OK"),
        ("XREAD STREAMS a 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ]);
}

#[test]
fn xgroup_creates_and_removes_groups() {
    check(&[
        (
            "XGROUP CREATE s g 0",
            "-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.",
        ),
        ("XGROUP CREATE s g 0 MKSTREAM", "+OK"),
        ("XGROUP CREATE s g 0", "-BUSYGROUP Consumer Group name already exists"),
        ("XGROUP CREATE s h x", "-ERR Invalid stream ID specified as stream command argument"),
        ("XGROUP CREATE s h $ ENTRIESREAD 3", "+OK"),
        ("XGROUP CREATE s i $ ENTRIESREAD -2", "-ERR value for ENTRIESREAD must be positive or -1"),
        (
            "XGROUP CREATE s i $ ENTRIESREAD",
            "-ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP.",
        ),
        ("XGROUP CREATE s i - ", "-ERR Invalid stream ID specified as stream command argument"),
        (
            "XGROUP CREATE s i $ bla",
            "-ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP.",
        ),
        (
            "XGROUP CREATE s i 0 MKSTREAM MKSTREAM ENTRIESREAD 1",
            "-ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP.",
        ),
        ("XLEN s", ":0"),
        ("XGROUP SETID s g 5-5", "+OK"),
        ("XGROUP SETID s g - ENTRIESREAD 4", "+OK"),
        ("XGROUP SETID s none 0", "-NOGROUP No such consumer group 'none' for key name 's'"),
        (
            "XGROUP SETID none g 0",
            "-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.",
        ),
        ("XGROUP SETID s g x", "-ERR Invalid stream ID specified as stream command argument"),
        (
            "XGROUP SETID s g 0 MKSTREAM",
            "-ERR unknown subcommand or wrong number of arguments for 'SETID'. Try XGROUP HELP.",
        ),
        ("XGROUP CREATECONSUMER s g c", ":1"),
        ("XGROUP CREATECONSUMER s g c", ":0"),
        ("XGROUP CREATECONSUMER s none c", "-NOGROUP No such consumer group 'none' for key name 's'"),
        ("XGROUP DELCONSUMER s g c", ":0"),
        ("XGROUP DELCONSUMER s g c", ":0"),
        ("XGROUP DESTROY s g", ":1"),
        ("XGROUP DESTROY s g", ":0"),
        (
            "XGROUP DESTROY none g",
            "-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.",
        ),
        ("SET k x", "+OK"),
        (
            "XGROUP CREATE k g 0 MKSTREAM",
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        ("XGROUP CREATE k g 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ]);
}

#[test]
fn xreadgroup_delivers_each_entry_once_and_again_until_it_is_acknowledged() {
    check_resp2(&[
        ("XADD s 1-1 n 1", "$3 1-1"),
        ("XADD s 2-1 n 2", "$3 2-1"),
        ("XADD s 3-1 n 3", "$3 3-1"),
        ("XGROUP CREATE s g 0", "+OK"),
        ("XREADGROUP GROUP g one COUNT 1 STREAMS s >", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
        ("XREADGROUP GROUP g two COUNT 1 STREAMS s >", "*1 *2 $1 s *1 *2 $3 2-1 *2 $1 n $1 2"),
        ("XREADGROUP GROUP g one STREAMS s 0", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
        ("XREADGROUP GROUP g one STREAMS s 1-1", "*1 *2 $1 s *0"),
        ("XDEL s 1-1", ":1"),
        ("XREADGROUP GROUP g one STREAMS s 0", "*1 *2 $1 s *1 *2 $3 1-1 *-1"),
        ("XREADGROUP GROUP g one NOACK STREAMS s >", "*1 *2 $1 s *1 *2 $3 3-1 *2 $1 n $1 3"),
        ("XREADGROUP GROUP g one STREAMS s >", "*-1"),
        ("XACK s g 1-1 2-1 3-1", ":2"),
        ("XACK s g 1-1", ":0"),
        ("XACK s g x", "-ERR Invalid stream ID specified as stream command argument"),
        ("XACK s none 1-1", ":0"),
        ("XACK none g x", ":0"),
        ("XREADGROUP GROUP g one STREAMS s 0", "*1 *2 $1 s *0"),
    ]);
}

#[test]
fn xreadgroup_refuses_unknown_options() {
    check_resp2(&[
        ("XADD s 1-1 n 1", "$3 1-1"),
        (
            "XREADGROUP GROUP g c STREAMS s >",
            "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option",
        ),
        (
            "XREADGROUP GROUP g c STREAMS none >",
            "-NOGROUP No such key 'none' or consumer group 'g' in XREADGROUP with GROUP option",
        ),
        ("XGROUP CREATE s g 0", "+OK"),
        (
            "XREADGROUP GROUP g c STREAMS s $",
            "-ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.",
        ),
        ("XREADGROUP GROUP g c STREAMS s x", "-ERR Invalid stream ID specified as stream command argument"),
        ("XREADGROUP COUNT 1 NOACK STREAMS s s > >", "-ERR Missing GROUP option for XREADGROUP"),
        ("XREADGROUP GROUP g c COUNT 1 BLOCK 0", "-ERR syntax error"),
        ("XREADGROUP GROUP g c STREAMS s s s > > >", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
    ]);
}

#[test]
fn xpending_lists_unacknowledged_entries_by_consumer() {
    check_resp2(&[
        ("XADD s 1-1 n 1", "$3 1-1"),
        ("XADD s 2-1 n 2", "$3 2-1"),
        ("XADD s 3-1 n 3", "$3 3-1"),
        ("XGROUP CREATE s g 0", "+OK"),
        ("XPENDING s g", "*4 :0 $-1 $-1 *-1"),
        ("XREADGROUP GROUP g two COUNT 1 STREAMS s >", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
        ("XREADGROUP GROUP g one STREAMS s >", "*1 *2 $1 s *2 *2 $3 2-1 *2 $1 n $1 2 *2 $3 3-1 *2 $1 n $1 3"),
        ("XGROUP CREATECONSUMER s g idle", ":1"),
        ("XPENDING s g", "*4 :3 $3 1-1 $3 3-1 *2 *2 $3 one $1 2 *2 $3 two $1 1"),
        ("XPENDING s g - + 10 nobody", "*0"),
        ("XPENDING s g - + 0", "*0"),
        ("XPENDING s g 5 + 10", "*0"),
        ("XPENDING s g IDLE 100000 - + 10", "*0"),
        ("XPENDING s g -", "-ERR syntax error"),
        ("XPENDING s g - +", "-ERR syntax error"),
        ("XPENDING s g IDLE 1 - +", "-ERR syntax error"),
        ("XPENDING s g - + x", "-ERR value is not an integer or out of range"),
        ("XPENDING s g x + 10", "-ERR Invalid stream ID specified as stream command argument"),
        ("XPENDING s none", "-NOGROUP No such key 's' or consumer group 'none'"),
        ("XPENDING none g", "-NOGROUP No such key 'none' or consumer group 'g'"),
    ]);
}

#[test]
fn xclaim_moves_pending_entries() {
    check_resp2(&[
        ("XADD s 1-1 n 1", "$3 1-1"),
        ("XADD s 2-1 n 2", "$3 2-1"),
        ("XGROUP CREATE s g 0", "+OK"),
        ("XREADGROUP GROUP g one STREAMS s >", "*1 *2 $1 s *2 *2 $3 1-1 *2 $1 n $1 1 *2 $3 2-1 *2 $1 n $1 2"),
        ("XCLAIM s g two 0 1-1", "*1 *2 $3 1-1 *2 $1 n $1 1"),
        ("XCLAIM s g two 0 1-1 2-1 JUSTID", "*2 $3 1-1 $3 2-1"),
        ("XCLAIM s g two 100000 1-1", "*0"),
        ("XCLAIM s g two 0 7-7", "*0"),
        ("XCLAIM s g two 0 7-7 FORCE", "*0"),
        ("XPENDING s g", "*4 :2 $3 1-1 $3 2-1 *1 *2 $3 two $1 2"),
        ("XACK s g 1-1", ":1"),
        ("XCLAIM s g three 0 1-1", "*0"),
        ("XCLAIM s g three 0 1-1 FORCE", "*1 *2 $3 1-1 *2 $1 n $1 1"),
        ("XPENDING s g", "*4 :2 $3 1-1 $3 2-1 *2 *2 $5 three $1 1 *2 $3 two $1 1"),
        ("XDEL s 2-1", ":1"),
        ("XCLAIM s g three 0 2-1", "*0"),
        ("XPENDING s g", "*4 :1 $3 1-1 $3 1-1 *1 *2 $5 three $1 1"),
        ("XCLAIM s none two 0 1-1", "-NOGROUP No such key 's' or consumer group 'none'"),
        ("XCLAIM s g two x 1-1", "-ERR Invalid min-idle-time argument for XCLAIM"),
        ("XCLAIM s g two 0 1-1 IDLE x", "-ERR Invalid IDLE option argument for XCLAIM"),
        ("XCLAIM s g two 0 1-1 TIME x", "-ERR Invalid TIME option argument for XCLAIM"),
        ("XCLAIM s g two 0 1-1 RETRYCOUNT x", "-ERR Invalid RETRYCOUNT option argument for XCLAIM"),
        ("XCLAIM s g two 0 1-1 LASTID x", "-ERR Invalid stream ID specified as stream command argument"),
        ("XCLAIM s g two 0 1-1 bla", "-ERR Unrecognized XCLAIM option 'bla'"),
    ]);
}

#[test]
fn xautoclaim_continues_at_the_given_id() {
    check_resp2(&[
        ("XADD s 1-1 n 1", "$3 1-1"),
        ("XADD s 2-1 n 2", "$3 2-1"),
        ("XADD s 3-1 n 3", "$3 3-1"),
        ("XGROUP CREATE s g 0", "+OK"),
        (
            "XREADGROUP GROUP g one STREAMS s >",
            "*1 *2 $1 s *3 *2 $3 1-1 *2 $1 n $1 1 *2 $3 2-1 *2 $1 n $1 2 *2 $3 3-1 *2 $1 n $1 3",
        ),
        ("XAUTOCLAIM s g two 0 - COUNT 1", "*3 $3 2-1 *1 *2 $3 1-1 *2 $1 n $1 1 *0"),
        ("XAUTOCLAIM s g two 0 2-1 COUNT 1 JUSTID", "*3 $3 3-1 *1 $3 2-1 *0"),
        ("XDEL s 2-1", ":1"),
        ("XAUTOCLAIM s g two 0 (1-1", "*3 $3 0-0 *1 *2 $3 3-1 *2 $1 n $1 3 *1 $3 2-1"),
        ("XAUTOCLAIM s g two 100000 0", "*3 $3 0-0 *0 *0"),
        ("XAUTOCLAIM s g two 0 0 COUNT 0", "-ERR COUNT must be > 0"),
        ("XAUTOCLAIM s g two 0 0 COUNT x", "-ERR COUNT must be > 0"),
        ("XAUTOCLAIM s g two 0 x", "-ERR Invalid stream ID specified as stream command argument"),
        ("XAUTOCLAIM s g two x 0", "-ERR Invalid min-idle-time argument for XAUTOCLAIM"),
        ("XAUTOCLAIM s g two 0 0 bla", "-ERR syntax error"),
        ("XAUTOCLAIM s none two 0 0", "-NOGROUP No such key 's' or consumer group 'none'"),
    ]);
}

#[test]
fn xsetid_sets_the_last_id_and_counters() {
    check_resp2(&[
        ("XSETID s 5-0", "-ERR no such key"),
        ("XADD s 3-0 n 1", "$3 3-0"),
        ("XADD s 4-0 n 1", "$3 4-0"),
        ("XSETID s 3-0", "-ERR The ID specified in XSETID is smaller than the target stream top item"),
        ("XSETID s 5-0", "+OK"),
        (
            "XADD s 4-5 n 1",
            "-ERR The ID specified in XADD is equal or smaller than the target stream top item",
        ),
        (
            "XSETID s 6-0 ENTRIESADDED 1",
            "-ERR The entries_added specified in XSETID is smaller than the target stream length",
        ),
        ("XSETID s 6-0 ENTRIESADDED -1", "-ERR entries_added must be positive"),
        (
            "XSETID s 6-0 MAXDELETEDID 7-0",
            "-ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
        ),
        ("XSETID s 6-0 ENTRIESADDED 9 MAXDELETEDID 1-0", "+OK"),
        ("XSETID s x", "-ERR Invalid stream ID specified as stream command argument"),
        ("XSETID s 6-0 bla", "-ERR syntax error"),
        (
            "XINFO STREAM s",
            "*20 $6 length :2 $15 radix-tree-keys :1 $16 radix-tree-nodes :2 $17 last-generated-id $3 6-0 $20 max-deleted-entry-id $3 1-0 $13 entries-added :9 $23 recorded-first-entry-id $3 3-0 $6 groups :0 $11 first-entry *2 $3 3-0 *2 $1 n $1 1 $10 last-entry *2 $3 4-0 *2 $1 n $1 1",
        ),
    ]);
}

#[test]
fn xinfo_describes_groups() {
    check_resp2(&[
        ("XADD s 1-1 n 1", "$3 1-1"),
        ("XADD s 2-1 n 2", "$3 2-1"),
        ("XGROUP CREATE s g 0", "+OK"),
        ("XREADGROUP GROUP g one COUNT 1 STREAMS s >", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
        (
            "XINFO GROUPS s",
            "*1 *12 $4 name $1 g $9 consumers :1 $7 pending :1 $17 last-delivered-id $3 1-1 $12 entries-read :1 $3 lag :1",
        ),
        ("XINFO GROUPS none", "-ERR no such key"),
        ("XINFO CONSUMERS s none", "-NOGROUP No such consumer group 'none' for key name 's'"),
        (
            "XINFO STREAM s bla",
            "-ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.",
        ),
        (
            "XINFO STREAM s FULL COUNT",
            "-ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.",
        ),
        ("XINFO STREAM s FULL COUNT x", "-ERR value is not an integer or out of range"),
        ("XINFO STREAM none", "-ERR no such key"),
    ]);
}

#[test]
fn commands_on_a_key_that_is_no_stream_fail_with_wrongtype() {
    check_resp2(&[
        ("XADD s 1-1 n 1", "$3 1-1"),
        ("GET s", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("TYPE s", "+stream"),
        ("OBJECT ENCODING s", "$6 stream"),
        ("SET k x", "+OK"),
        ("XADD k 1-1 n 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("XLEN k", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("XRANGE k - +", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("XDEL k 1-1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("XTRIM k MAXLEN 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("XACK k g 1-1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("XPENDING k g", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("XCLAIM k g c 0 1-1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("XAUTOCLAIM k g c 0 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("XINFO STREAM k", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("XSETID k 1-1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ]);
}

#[test]
fn automatic_ids_follow_the_clock_and_never_decrease() {
    check(&[
        ("XADD s * a 1", "$15 1000000000000-0"),
        ("XADD s * a 1", "$15 1000000000000-1"),
        ("PASS 5", ""),
        ("XADD s * a 1", "$15 1000000000005-0"),
        ("PASS -3", ""),
        ("XADD s * a 1", "$15 1000000000005-1"),
        ("XADD s 1000000000005-* a 1", "$15 1000000000005-2"),
    ]);
}

#[test]
fn pending_entries_are_as_old_as_their_last_delivery() {
    check_given(&[
        ("XREADGROUP GROUP g c COUNT 1 STREAMS s >", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
        ("PASS 1000", ""),
        ("XREADGROUP GROUP g c COUNT 1 STREAMS s >", "*1 *2 $1 s *1 *2 $3 2-1 *2 $1 n $1 2"),
        ("PASS 10", ""),
        ("XPENDING s g - + 10", "*2 *4 $3 1-1 $1 c :1010 :1 *4 $3 2-1 $1 c :10 :1"),
        ("XPENDING s g IDLE 11 - + 10", "*1 *4 $3 1-1 $1 c :1010 :1"),
        ("XPENDING s g IDLE 10 - + 10 c", "*2 *4 $3 1-1 $1 c :1010 :1 *4 $3 2-1 $1 c :10 :1"),
        ("XPENDING s g - + 1 c", "*1 *4 $3 1-1 $1 c :1010 :1"),
        ("XREADGROUP GROUP g c COUNT 1 STREAMS s 0", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
        ("XPENDING s g - (2-1 10", "*1 *4 $3 1-1 $1 c :0 :2"),
    ]);
}

#[test]
fn a_claim_sets_delivery_time_and_count() {
    check_given(&[
        ("XREADGROUP GROUP g c COUNT 1 STREAMS s >", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
        ("PASS 100", ""),
        ("XCLAIM s g d 101 1-1 JUSTID", "*0"),
        ("XCLAIM s g d 100 1-1 JUSTID", "*1 $3 1-1"),
        ("XPENDING s g - + 10", "*1 *4 $3 1-1 $1 d :0 :1"),
        ("XCLAIM s g d 0 1-1 IDLE 70", "*1 *2 $3 1-1 *2 $1 n $1 1"),
        ("XPENDING s g - + 10", "*1 *4 $3 1-1 $1 d :70 :2"),
        ("XCLAIM s g d 0 1-1 TIME 999999999999 RETRYCOUNT 7 JUSTID", "*1 $3 1-1"),
        ("XPENDING s g - + 10", "*1 *4 $3 1-1 $1 d :101 :7"),
        ("XCLAIM s g d 0 1-1 IDLE -9223372036854775808 JUSTID", "*1 $3 1-1"),
        ("XCLAIM s g d 0 1-1 TIME 9999999999999 RETRYCOUNT -1 JUSTID", "*1 $3 1-1"),
        ("XPENDING s g - + 10", "*1 *4 $3 1-1 $1 d :0 :7"),
        ("XCLAIM s g d 0 2-1 FORCE LASTID 2-1", "*1 *2 $3 2-1 *2 $1 n $1 2"),
        ("XPENDING s g (1-1 + 10", "*1 *4 $3 2-1 $1 d :0 :2"),
        ("XREADGROUP GROUP g c STREAMS s >", "*1 *2 $1 s *1 *2 $3 3-1 *2 $1 n $1 3"),
    ]);
}

#[test]
fn an_entry_read_again_after_setid_is_pending_for_its_last_reader_only() {
    check_given(&[
        ("XREADGROUP GROUP g a COUNT 1 STREAMS s >", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
        ("XREADGROUP GROUP g a STREAMS s 0", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
        ("XGROUP SETID s g 0", "+OK"),
        ("XREADGROUP GROUP g b COUNT 1 STREAMS s >", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
        ("XPENDING s g - + 10", "*1 *4 $3 1-1 $1 b :0 :1"),
        ("XREADGROUP GROUP g a STREAMS s 0", "*1 *2 $1 s *0"),
        ("XGROUP DELCONSUMER s g b", ":1"),
        ("XPENDING s g", "*4 :0 $-1 $-1 *-1"),
    ]);
}

#[test]
fn a_consumer_is_created_by_its_first_attempt_and_active_from_its_first_entry() {
    check_resp2(&[
        ("XGROUP CREATE s g $ MKSTREAM", "+OK"),
        ("XREADGROUP GROUP g c STREAMS s >", "*-1"),
        ("PASS 7", ""),
        ("XINFO CONSUMERS s g", "*1 *8 $4 name $1 c $7 pending :0 $4 idle :7 $8 inactive :-1"),
        ("XREADGROUP GROUP g c STREAMS s 0", "*1 *2 $1 s *0"),
        ("XADD s 1-1 n 1", "$3 1-1"),
        ("XREADGROUP GROUP g c STREAMS s >", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
        ("PASS 5", ""),
        ("XREADGROUP GROUP g c STREAMS s >", "*-1"),
        ("PASS 1", ""),
        ("XINFO CONSUMERS s g", "*1 *8 $4 name $1 c $7 pending :1 $4 idle :1 $8 inactive :6"),
    ]);
}

#[test]
fn xinfo_stream_full_describes_a_whole_stream() {
    check_given(&[
        (
            "XREADGROUP GROUP g c COUNT 2 STREAMS s >",
            "*1 *2 $1 s *2 *2 $3 1-1 *2 $1 n $1 1 *2 $3 2-1 *2 $1 n $1 2",
        ),
        (
            "XINFO STREAM s FULL COUNT 1",
            "*18 $6 length :3 $15 radix-tree-keys :1 $16 radix-tree-nodes :2 $17 last-generated-id $3 3-1 \
             $20 max-deleted-entry-id $3 0-0 $13 entries-added :3 $23 recorded-first-entry-id $3 1-1 $7 entries *1 *2 \
             $3 1-1 *2 $1 n $1 1 $6 groups *1 *14 $4 name $1 g $17 last-delivered-id $3 2-1 $12 entries-read :2 $3 lag \
             :1 $9 pel-count :2 $7 pending *1 *4 $3 1-1 $1 c :1000000000000 :1 $9 consumers *1 *10 $4 name $1 c \
             $9 seen-time :1000000000000 $11 active-time :1000000000000 $9 pel-count :2 $7 pending *1 *3 $3 1-1 \
             :1000000000000 :1",
        ),
        ("XGROUP CREATE s other $", "+OK"),
        ("XDEL s 1-1 3-1", ":2"),
        (
            "XINFO GROUPS s",
            "*2 *12 $4 name $1 g $9 consumers :1 $7 pending :2 $17 last-delivered-id $3 2-1 $12 entries-read :2 \
             $3 lag $-1 *12 $4 name $5 other $9 consumers :0 $7 pending :0 $17 last-delivered-id $3 3-1 \
             $12 entries-read $-1 $3 lag :0",
        ),
    ]);
}

#[test]
fn replies_are_maps_in_resp3() {
    check_in(
        Protocol::Resp3,
        &[
            ("XADD s 1-1 n 1", "$3 1-1"),
            ("XGROUP CREATE s g 0", "+OK"),
            ("XREAD STREAMS s 0", "%1 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
            ("XREAD STREAMS s s 0 0", "%2 $1 s *1 *2 $3 1-1 *2 $1 n $1 1 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
            ("XREAD STREAMS s 1-1", "$-1"),
            ("XREADGROUP GROUP g c STREAMS s s > >", "%1 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
            ("XREADGROUP GROUP g c STREAMS s >", "$-1"),
            ("XINFO CONSUMERS s g", "*1 %4 $4 name $1 c $7 pending :1 $4 idle :0 $8 inactive :0"),
            (
                "XINFO GROUPS s",
                "*1 %6 $4 name $1 g $9 consumers :1 $7 pending :1 $17 last-delivered-id $3 1-1 $12 entries-read :1 \
                 $3 lag :0",
            ),
            ("XRANGE s - + COUNT 0", "$-1"),
        ],
    );
}

#[test]
fn a_blocking_read_that_finds_nothing_returns_null_where_it_may_not_wait() {
    check_resp2(&[
        ("XADD s 1-1 n 1", "$3 1-1"),
        ("XREAD BLOCK 0 STREAMS s $", "*-1"),
        ("XREAD BLOCK 0 STREAMS s 0", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
        ("XGROUP CREATE s g $", "+OK"),
        ("XREADGROUP GROUP g c BLOCK 0 STREAMS s >", "*-1"),
        ("XREADGROUP GROUP g c BLOCK 0 STREAMS s 0", "*1 *2 $1 s *0"),
        (
            "XREAD STREAMS s s 0",
            "-ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified.",
        ),
        (
            "XREADGROUP GROUP g c STREAMS s s 0",
            "-ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified.",
        ),
        ("XREAD BLOCK 9000000000000000000 STREAMS s 0", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 n $1 1"),
    ]);
}

#[test]
fn xsetid_does_not_go_below_the_highest_deleted_id() {
    check(&[
        ("XADD s 5-0 n 1", "$3 5-0"),
        ("XDEL s 5-0", ":1"),
        ("XSETID s 4-0", "-ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"),
        ("XSETID s 5-0", "+OK"),
    ]);
}

#[test]
fn xdelex_reports_the_outcome_for_each_entry() {
    check_given(&[
        (
            "XREADGROUP GROUP g c COUNT 2 STREAMS s >",
            "*1 *2 $1 s *2 *2 $3 1-1 *2 $1 n $1 1 *2 $3 2-1 *2 $1 n $1 2",
        ),
        ("XACK s g 1-1", ":1"),
        // In order: an acknowledged entry, a pending entry, an entry that was not read yet, and a missing entry.
        ("XDELEX s ACKED IDS 4 1-1 2-1 3-1 9-9", "*4 :1 :2 :2 :-1"),
        ("XDELEX s KEEPREF IDS 1 2-1", "*1 :1"),
        ("XPENDING s g", "*4 :1 $3 2-1 $3 2-1 *1 *2 $1 c $1 1"),
        ("XREADGROUP GROUP g c STREAMS s >", "*1 *2 $1 s *1 *2 $3 3-1 *2 $1 n $1 3"),
        ("XDELEX s IDS 2 3-1 9-9 DELREF", "*2 :1 :-1"),
        ("XPENDING s g", "*4 :1 $3 2-1 $3 2-1 *1 *2 $1 c $1 1"),
        ("XLEN s", ":0"),
        ("XDELEX none IDS 2 1-1 x", "*2 :-1 :-1"),
    ]);
}

#[test]
fn without_groups_xdelex_deletes_every_entry() {
    check(&[
        ("XADD s 1-1 n 1", "$3 1-1"),
        ("XDELEX s ACKED IDS 1 1-1", "*1 :1"),
        ("XDELEX s IDS 1 x", "-ERR Invalid stream ID specified as stream command argument"),
        ("XDELEX s IDS 0 1-1", "-ERR Number of IDs must be a positive integer"),
        ("XDELEX s IDS x 1-1", "-ERR Number of IDs must be a positive integer"),
        (
            "XDELEX s IDS 9223372036854775807 1-1",
            "-ERR The `numids` parameter must match the number of arguments",
        ),
        ("XDELEX s IDS 1 1-1 2-1", "-ERR syntax error"),
        ("XDELEX s KEEPREF ACKED IDS 1 1-1", "-ERR syntax error"),
        ("XDELEX s KEEPREF 1 1-1", "-ERR syntax error"),
    ]);
}

#[test]
fn xackdel_acknowledges_and_deletes_entries_that_no_other_group_needs() {
    check_given(&[
        ("XGROUP CREATE s h 0", "+OK"),
        (
            "XREADGROUP GROUP g c STREAMS s >",
            "*1 *2 $1 s *3 *2 $3 1-1 *2 $1 n $1 1 *2 $3 2-1 *2 $1 n $1 2 *2 $3 3-1 *2 $1 n $1 3",
        ),
        (
            "XREADGROUP GROUP h c COUNT 2 STREAMS s >",
            "*1 *2 $1 s *2 *2 $3 1-1 *2 $1 n $1 1 *2 $3 2-1 *2 $1 n $1 2",
        ),
        ("XACKDEL s g ACKED IDS 2 1-1 9-9", "*2 :2 :-1"),
        ("XACKDEL s h ACKED IDS 1 1-1", "*1 :1"),
        ("XACKDEL s g DELREF IDS 1 2-1", "*1 :1"),
        ("XPENDING s h", "*4 :0 $-1 $-1 *-1"),
        ("XDEL s 3-1", ":1"),
        ("XACKDEL s g IDS 1 3-1", "*1 :1"),
        ("XACKDEL s g IDS 1 3-1", "*1 :-1"),
        ("XACKDEL s none IDS 1 3-1", "*1 :-1"),
        ("XACKDEL none g IDS 1 3-1", "*1 :-1"),
        ("XACKDEL s g IDS 1", "-ERR wrong number of arguments for 'xackdel' command"),
    ]);
}

#[test]
fn changes_publish_events_and_reads_publish_none() {
    let mut script = Script::new(Protocol::Resp2);
    script.local.turn.notices.classes = EventClass::STREAM;
    let mut events_of = |line: &str| {
        script.run(line);
        let notices = std::mem::take(&mut script.local.turn.notices.events);
        notices.iter().map(|notice| notice.event.name).collect::<Vec<_>>().join(" ")
    };
    for (line, events) in [
        ("XGROUP CREATE s g $ MKSTREAM", "xgroup-create"),
        ("XADD s 1-1 n 1", "xadd"),
        ("XADD s MAXLEN 1 2-1 n 1", "xadd xtrim"),
        ("XADD s MAXLEN 5 3-1 n 1", "xadd"),
        ("XADD s 1-1 n 1", ""),
        ("XTRIM s MAXLEN 5", ""),
        ("XTRIM s MAXLEN 1", "xtrim"),
        ("XREADGROUP GROUP g c STREAMS s >", "xgroup-createconsumer"),
        ("XREADGROUP GROUP g c STREAMS s 0", ""),
        ("XCLAIM s g d 0 3-1", "xgroup-createconsumer"),
        ("XAUTOCLAIM s g e 0 0", "xgroup-createconsumer"),
        ("XACK s g 3-1", ""),
        ("XGROUP CREATECONSUMER s g c", ""),
        ("XGROUP SETID s g 0", "xgroup-setid"),
        ("XGROUP DELCONSUMER s g c", "xgroup-delconsumer"),
        ("XGROUP DELCONSUMER s g c", ""),
        ("XSETID s 9-0", "xsetid"),
        ("XDEL s 3-1 3-1", "xdel"),
        ("XDEL s 3-1", ""),
        ("XGROUP DESTROY s g", "xgroup-destroy"),
        ("XGROUP DESTROY s g", ""),
    ] {
        assert_eq!(events_of(line), events, "{line}");
    }
}

#[test]
fn changes_are_counted_as_in_redis() {
    let mut script = Script::new(Protocol::Resp2);
    let mut changes = |line: &str| {
        let before = script.local.turn.counters.changes;
        script.run(line);
        script.local.turn.counters.changes - before
    };
    for (line, count) in [
        ("XADD s 1-1 n 1", 1),
        ("XADD s 2-1 n 1", 1),
        ("XADD s 3-1 n 1", 1),
        ("XADD s 4-1 n 1", 1),
        ("XGROUP CREATE s g 0", 1),
        ("XREADGROUP GROUP g c STREAMS s >", 2),
        ("XREADGROUP GROUP g c STREAMS s 0", 0),
        ("XACK s g 1-1 2-1 9-9", 2),
        ("XDEL s 1-1 2-1 9-9", 2),
        ("XTRIM s MAXLEN 0", 2),
        ("XTRIM s MAXLEN 0", 0),
    ] {
        assert_eq!(changes(line), count, "{line}");
    }
}
