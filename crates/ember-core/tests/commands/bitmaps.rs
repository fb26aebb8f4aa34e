//! Tests of bitmap commands, which compare the bytes of replies.

use ember_protocol::Protocol;

use crate::support::script::{Script, check};

const NOT_INTEGER: &str = "-ERR value is not an integer or out of range";
const BAD_OFFSET: &str = "-ERR bit offset is not an integer or out of range";
const BAD_BIT: &str = "-ERR bit is not an integer or out of range";
const BAD_TYPE: &str =
    "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";
const SYNTAX: &str = "-ERR syntax error";

#[test]
fn getbit_returns_the_bit_that_was_set() {
    check(&[
        ("SETBIT k 7 1", ":0"),
        ("GET k", "$1 \\x01"),
        ("ENTRY k", "raw"),
        ("GETBIT k 7", ":1"),
        ("GETBIT k 6", ":0"),
        ("GETBIT k 1000", ":0"),
        ("GETBIT missing 0", ":0"),
        ("SETBIT k 7 0", ":1"),
        ("GET k", "$1 \\x00"),
        ("SETBIT k 15 0", ":0"),
        ("STRLEN k", ":2"),
        ("SETEX n 10 1", "+OK"),
        ("GETBIT n 3", ":1"),
        ("SETBIT n 6 1", ":0"),
        ("GET n", "$1 3"),
        ("ENTRY n", "raw 10000"),
        ("SETBIT large 400000 1", ":0"),
        ("STRLEN large", ":50001"),
        ("SETBIT large 400000 1", ":1"),
    ]);
}

#[test]
fn bits_and_offsets_out_of_range_are_refused() {
    check(&[
        ("SETBIT k 0 2", BAD_BIT),
        ("SETBIT k 0 x", BAD_BIT),
        ("SETBIT k 0 -1", BAD_BIT),
        ("SETBIT k x 2", BAD_OFFSET),
        ("SETBIT k -1 1", BAD_OFFSET),
        ("SETBIT k 4294967296 1", BAD_OFFSET),
        ("GETBIT k 4294967296", BAD_OFFSET),
        ("GETBIT k 4294967295", ":0"),
        ("GETBIT k 1.5", BAD_OFFSET),
        ("ENTRY k", ""),
    ]);
    let mut script = Script::new(Protocol::Resp2);
    script.local.turn.settings.string_bytes_max = 10;
    assert_eq!(script.run("SETBIT k 79 1"), ":0");
    assert_eq!(script.run("SETBIT k 80 1"), BAD_OFFSET);
    assert_eq!(script.run("BITFIELD k SET u8 #10 1"), BAD_OFFSET);
}

#[test]
fn setting_a_bit_to_its_own_value_changes_nothing() {
    let mut script = Script::new(Protocol::Resp2);
    script.run("SETBIT k 7 1");
    let before = script.local.turn.counters.changes;
    assert_eq!(script.run("SETBIT k 7 1"), ":1");
    assert_eq!(script.run("SETBIT k 0 0"), ":0");
    assert_eq!(script.local.turn.counters.changes, before);
    for (given, line, counts) in [
        ("SET k 10", "SETBIT k 7 1", false),
        ("SET k 10", "SETBIT k 7 0", true),
        ("SET k 10", "SETBIT k 99 0", true),
        ("SET k 10", "BITFIELD k SET u8 0 49", false),
        ("SET k 10", "BITFIELD k INCRBY u8 0 0 GET u8 8", false),
        ("SET k 10", "BITFIELD k OVERFLOW FAIL INCRBY u8 0 255", false),
        ("SET k 10", "BITFIELD k SET u8 0 49 INCRBY u8 8 1", true),
        ("SET k 10", "BITFIELD k SET u8 16 0", true),
        ("DEL k", "SETBIT k 0 0", true),
        ("DEL k", "BITFIELD k SET u8 0 0", true),
    ] {
        script.run(given);
        let before = script.local.turn.counters.changes;
        script.run(line);
        assert_eq!(script.local.turn.counters.changes - before, u64::from(counts), "{line}");
    }
    // The string is not changed, but its encoding is that of an edited string from then on.
    check(&[("SET k A", "+OK"), ("ENTRY k", "embstr"), ("SETBIT k 7 1", ":1"), ("ENTRY k", "raw")]);
}

#[test]
fn bitcount_counts_in_bytes_or_bits() {
    check(&[
        ("SET k foobar", "+OK"),
        ("BITCOUNT k", ":26"),
        ("BITCOUNT k 0 0", ":4"),
        ("BITCOUNT k 1 1 BYTE", ":6"),
        ("BITCOUNT k 1 1 byte", ":6"),
        ("BITCOUNT k 5 30 BIT", ":17"),
        ("BITCOUNT k -8 -1 bit", ":4"),
        ("BITCOUNT k 0 -1", ":26"),
        ("BITCOUNT k -100 -1", ":26"),
        ("BITCOUNT k 3 1", ":0"),
        ("BITCOUNT k -1 -3", ":0"),
        ("BITCOUNT k 100 200", ":0"),
        ("BITCOUNT k -9223372036854775808 9223372036854775807 BIT", ":26"),
        ("BITCOUNT missing", ":0"),
        ("BITCOUNT missing 0 -1", ":0"),
        ("BITCOUNT k 0", ":26"),
        ("BITCOUNT k 1", ":22"),
        ("BITCOUNT k -1", ":4"),
        ("BITCOUNT k 100", ":0"),
        ("BITCOUNT k x", NOT_INTEGER),
        ("BITCOUNT k 0 1 BITS", SYNTAX),
        ("BITCOUNT k 0 1 BIT 1", SYNTAX),
        ("BITCOUNT k x 1", NOT_INTEGER),
        ("BITCOUNT missing x 1", NOT_INTEGER),
        ("SET n 7", "+OK"),
        ("BITCOUNT n", ":5"),
    ]);
}

#[test]
fn bitpos_finds_the_first_bit() {
    check(&[
        ("SET k \"\\xff\\xf0\\x00\"", "+OK"),
        ("BITPOS k 0", ":12"),
        ("BITPOS k 1", ":0"),
        ("BITPOS k 1 2", ":-1"),
        ("BITPOS k 1 -3", ":0"),
        ("BITPOS k 0 0 0", ":-1"),
        ("BITPOS k 0 0 -1", ":12"),
        ("BITPOS k 1 7 15 BIT", ":7"),
        ("BITPOS k 0 7 11 BIT", ":-1"),
        ("BITPOS k 0 7 12 bit", ":12"),
        ("BITPOS k 0 5 3", ":-1"),
        ("SET ones \"\\xff\\xff\"", "+OK"),
        ("BITPOS ones 0", ":16"),
        ("BITPOS ones 0 1", ":16"),
        ("BITPOS ones 0 0 -1", ":-1"),
        ("BITPOS ones 0 2", ":-1"),
        ("SET empty \"\"", "+OK"),
        ("BITPOS empty 0", ":-1"),
        ("BITPOS missing 0", ":0"),
        ("BITPOS missing 1", ":-1"),
        ("BITPOS missing 0 5 3", ":0"),
        ("BITPOS k 2", "-ERR The bit argument must be 1 or 0."),
        ("BITPOS k x", NOT_INTEGER),
        ("BITPOS k 1 x", NOT_INTEGER),
        ("BITPOS k 1 0 1 BITS", SYNTAX),
        ("BITPOS k 1 0 1 BIT 5", SYNTAX),
        ("BITPOS missing 1 x", NOT_INTEGER),
    ]);
}

#[test]
fn bitop_combines_strings_of_any_length() {
    check(&[
        ("MSET a foobar b abcdef short \"\\xff\"", "+OK"),
        ("BITOP AND d a b", ":6"),
        ("GET d", "$6 `bc`ab"),
        ("ENTRY d", "raw"),
        ("BITOP or d a short", ":6"),
        ("GET d", "$6 \\xffoobar"),
        ("BITOP AND d a short", ":6"),
        ("GET d", "$6 f\\x00\\x00\\x00\\x00\\x00"),
        ("BITOP XOR d short a", ":6"),
        ("GET d", "$6 \\x99oobar"),
        ("BITOP AND d a missing", ":6"),
        ("GET d", "$6 \\x00\\x00\\x00\\x00\\x00\\x00"),
        ("BITOP NOT d short", ":1"),
        ("GET d", "$1 \\x00"),
        ("SET n 12 EX 100", "+OK"),
        ("BITOP OR n n", ":2"),
        ("ENTRY n", "raw"),
        ("GET n", "$2 12"),
        ("BITOP XOR a a a", ":6"),
        ("BITCOUNT a", ":0"),
        ("BITOP OR d missing other", ":0"),
        ("ENTRY d", ""),
        ("BITOP NOT d a b", "-ERR BITOP NOT must be called with a single source key."),
        ("BITOP NAND d a b", SYNTAX),
        ("BITOP AND d", "-ERR wrong number of arguments for 'bitop' command"),
    ]);
}

#[test]
fn bitop_distinguishes_the_first_source_from_the_others() {
    check(&[
        ("MSET a \"\\xf0\\xff\" b \"\\x30\" c \"\\x11\\x01\\x02\"", "+OK"),
        ("BITOP DIFF d a b c", ":3"),
        ("GET d", "$3 \\xc0\\xfe\\x00"),
        ("BITOP diff1 d a b c", ":3"),
        ("GET d", "$3 \\x01\\x00\\x02"),
        ("BITOP ANDOR d a b c", ":3"),
        ("GET d", "$3 0\\x01\\x00"),
        ("BITOP ONE d a b c", ":3"),
        ("GET d", "$3 \\xc1\\xfe\\x02"),
        ("BITOP ONE d a a", ":2"),
        ("GET d", "$2 \\x00\\x00"),
        ("BITOP ONE d b", ":1"),
        ("GET d", "$1 0"),
        ("BITOP DIFF d missing b", ":1"),
        ("GET d", "$1 \\x00"),
        ("BITOP DIFF b b b", ":1"),
        ("GET b", "$1 \\x00"),
        ("BITOP ONE d missing", ":0"),
        ("ENTRY d", ""),
        ("BITOP diff d a", "-ERR BITOP DIFF must be called with at least two source keys."),
        ("BITOP DIFF1 d a", "-ERR BITOP DIFF1 must be called with at least two source keys."),
        ("BITOP ANDOR d a", "-ERR BITOP ANDOR must be called with at least two source keys."),
    ]);
}

#[test]
fn a_large_result_of_bitop_is_stored_whole() {
    let mut script = Script::new(Protocol::Resp2);
    script.local.run(&[b"SET", b"a", &[0x0f; 40_000]]);
    script.local.run(&[b"SET", b"b", &[0xf0; 50_000]]);
    assert_eq!(script.run("BITOP OR d a b"), ":50000");
    assert_eq!(script.run("BITCOUNT d"), ":360000");
    assert_eq!(script.run("BITOP NOT d d"), ":50000");
    assert_eq!(script.run("BITPOS d 1"), ":320004");
    script.local.keyspace.check_invariants();
}

#[test]
fn bitfield_reads_and_writes_integers() {
    check(&[
        ("BITFIELD k", "*0"),
        ("BITFIELD k GET u4 0", "*1 :0"),
        ("ENTRY k", ""),
        ("BITFIELD k INCRBY i5 100 1 GET u4 0", "*2 :1 :0"),
        ("STRLEN k", ":14"),
        ("ENTRY k", "raw"),
        ("BITFIELD k set i8 #1 -5 get u8 #1 get i8 #1 get u4 8", "*4 :0 :251 :-5 :15"),
        ("BITFIELD wide SET i64 3 -9223372036854775808 GET i64 3", "*2 :0 :-9223372036854775808"),
        ("BITFIELD_RO k GET u63 900", "*1 :0"),
        ("SET n 1", "+OK"),
        ("BITFIELD n GET u8 0", "*1 :49"),
        ("ENTRY n", "int"),
    ]);
}

#[test]
fn bitfield_handles_overflow_as_specified() {
    check(&[
        ("BITFIELD k SET u8 0 250", "*1 :0"),
        ("BITFIELD k INCRBY u8 0 10", "*1 :4"),
        (
            "BITFIELD k OVERFLOW SAT INCRBY u8 0 255 INCRBY u8 0 -300 OVERFLOW WRAP INCRBY u8 0 -1",
            "*3 :255 :0 :255",
        ),
        ("BITFIELD k OVERFLOW FAIL INCRBY u8 0 1 GET u8 0 SET u8 0 256", "*3 $-1 :255 $-1"),
        ("BITFIELD k OVERFLOW SAT SET u8 0 -1 SET u8 0 7 GET u8 0", "*3 :255 :255 :7"),
        ("BITFIELD k SET i8 8 127 INCRBY i8 8 1", "*2 :0 :-128"),
        ("BITFIELD k OVERFLOW sat INCRBY i8 8 -1 INCRBY i8 8 1000", "*2 :-128 :127"),
        ("BITFIELD wide SET i64 0 9223372036854775807 INCRBY i64 0 1", "*2 :0 :-9223372036854775808"),
        ("BITFIELD wide OVERFLOW FAIL INCRBY i64 0 -1", "*1 $-1"),
        ("BITFIELD new OVERFLOW FAIL SET u1 8 5", "*1 $-1"),
        ("GET new", "$2 \\x00\\x00"),
    ]);
}

#[test]
fn bitfield_refuses_invalid_arguments() {
    check(&[
        ("BITFIELD k GET u64 0", BAD_TYPE),
        ("BITFIELD k GET i65 0", BAD_TYPE),
        ("BITFIELD k GET u0 0", BAD_TYPE),
        ("BITFIELD k GET I8 0", BAD_TYPE),
        ("BITFIELD k GET 8 0", BAD_TYPE),
        ("BITFIELD k GET u8 x", BAD_OFFSET),
        ("BITFIELD k GET u8 -1", BAD_OFFSET),
        ("BITFIELD k GET u8 #-1", BAD_OFFSET),
        ("BITFIELD k GET u8 #536870912", BAD_OFFSET),
        ("BITFIELD k GET u8 #9223372036854775807", BAD_OFFSET),
        ("BITFIELD k SET u8 0 x", NOT_INTEGER),
        ("BITFIELD k SET u8 0", SYNTAX),
        ("BITFIELD k GET u8", SYNTAX),
        ("BITFIELD k OVERFLOW", SYNTAX),
        ("BITFIELD k OVERFLOW NO", "-ERR Invalid OVERFLOW type specified"),
        ("BITFIELD k ADD u8 0 1", SYNTAX),
        ("BITFIELD k SET u8 0 1 GET u64 0", BAD_TYPE),
        ("ENTRY k", ""),
        ("BITFIELD_RO k SET u8 0 1", "-ERR BITFIELD_RO only supports the GET subcommand"),
        ("BITFIELD_RO k OVERFLOW SAT GET u8 0", "*1 :0"),
    ]);
}
