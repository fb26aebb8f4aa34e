//! Tests of HyperLogLog commands, which compare the bytes of replies with those of redis-server 7.0.15.

use ember_protocol::Protocol;

use crate::support::script::{Script, check};

#[test]
fn pfadd_reports_whether_the_estimate_may_change() {
    check(&[
        ("PFADD h a b c", ":1"),
        ("PFADD h a b", ":0"),
        ("PFADD h d", ":1"),
        ("PFADD h", ":0"),
        ("PFADD empty", ":1"),
        ("PFADD empty", ":0"),
        ("PFCOUNT h", ":4"),
        ("PFCOUNT empty", ":0"),
        ("PFCOUNT none", ":0"),
        ("PFCOUNT h none empty", ":4"),
        ("GET empty", "$18 HYLL\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x7f\\xff"),
    ]);
}

#[test]
fn pfcount_caches_the_estimate_with_the_registers() {
    check(&[
        ("PFADD h a b c d e f g", ":1"),
        ("GETRANGE h 8 15", "$8 \\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x80"),
        ("PFCOUNT h", ":7"),
        ("GETRANGE h 8 15", "$8 \\x07\\x00\\x00\\x00\\x00\\x00\\x00\\x00"),
        ("PFADD h a", ":0"),
        ("GETRANGE h 8 15", "$8 \\x07\\x00\\x00\\x00\\x00\\x00\\x00\\x00"),
        ("PFADD h z", ":1"),
        ("GETRANGE h 8 15", "$8 \\x07\\x00\\x00\\x00\\x00\\x00\\x00\\x80"),
    ]);
}

#[test]
fn pfmerge_unites_the_added_elements() {
    check(&[
        ("PFADD h1 foo bar zap a", ":1"),
        ("PFADD h2 a b c foo", ":1"),
        ("PFMERGE h3 h1 h2", "+OK"),
        ("PFCOUNT h3", ":6"),
        ("PFMERGE h1", "+OK"),
        ("PFCOUNT h1", ":4"),
        ("PFMERGE none", "+OK"),
        ("PFCOUNT none", ":0"),
        ("PFMERGE h1 absent", "+OK"),
        ("PFMERGE h1 h2 h3", "+OK"),
        ("PFCOUNT h1", ":6"),
        ("PFADD t x", ":1"),
        ("EXPIRE t 100", ":1"),
        ("PFMERGE t h1", "+OK"),
    ]);
}

#[test]
fn the_bytes_equal_those_of_redis() {
    check(&[
        ("PFADD h a b c", ":1"),
        (
            "GET h",
            "$27 HYLL\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x80`\\xf3\\x80P\\xb1\\x84K\\xfb\\x80BZ",
        ),
        ("PFDEBUG ENCODING h", "+sparse"),
        ("PFDEBUG DECODE h", "$44 Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603"),
        ("PFDEBUG TODENSE h", ":1"),
        ("PFDEBUG TODENSE h", ":0"),
        ("PFDEBUG ENCODING h", "+dense"),
        ("STRLEN h", ":12304"),
        ("PFCOUNT h", ":3"),
        ("PFDEBUG DECODE h", "-ERR HLL encoding is not sparse"),
        ("PFDEBUG bla h", "-ERR Unknown PFDEBUG subcommand 'bla'"),
        ("PFDEBUG ENCODING none", "-ERR The specified key does not exist"),
        ("PFADD h a", ":0"),
        ("PFADD h q", ":1"),
    ]);
}

#[test]
fn values_that_are_no_hyperloglogs_are_refused() {
    check(&[
        ("SET k \"HYLL\"", "+OK"),
        ("PFCOUNT k", "-WRONGTYPE Key is not a valid HyperLogLog string value."),
        ("SET k 123", "+OK"),
        ("PFADD k a", "-WRONGTYPE Key is not a valid HyperLogLog string value."),
        ("PFMERGE new k", "-WRONGTYPE Key is not a valid HyperLogLog string value."),
        ("PFDEBUG ENCODING k", "-WRONGTYPE Key is not a valid HyperLogLog string value."),
        ("XADD s 1-1 a b", "$3 1-1"),
        ("PFADD s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("PFCOUNT s", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("EXISTS new", ":0"),
        ("SET k \"HYLL\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\"", "+OK"),
        ("PFCOUNT k", "-WRONGTYPE Key is not a valid HyperLogLog string value."),
        ("SET k \"HYLL\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\"", "+OK"),
        ("PFCOUNT k", "-WRONGTYPE Key is not a valid HyperLogLog string value."),
        ("SET k \"hYLL\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\"", "+OK"),
        ("PFCOUNT k", "-WRONGTYPE Key is not a valid HyperLogLog string value."),
    ]);
}

#[test]
fn corrupt_registers_are_an_error() {
    check(&[
        ("SET k \"HYLL\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x80\"", "+OK"),
        ("PFCOUNT k", "-INVALIDOBJ Corrupted HLL object detected"),
        ("PFADD k a", "-INVALIDOBJ Corrupted HLL object detected"),
        ("PFCOUNT k k", "-INVALIDOBJ Corrupted HLL object detected"),
        ("PFMERGE new k", "-INVALIDOBJ Corrupted HLL object detected"),
        ("PFDEBUG TODENSE k", "-INVALIDOBJ Corrupted HLL object detected"),
        ("SET k \"HYLL\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x80\\x7f\\xff\\x00\"", "+OK"),
        ("PFCOUNT k", "-INVALIDOBJ Corrupted HLL object detected"),
        ("PFMERGE new k", "-INVALIDOBJ Corrupted HLL object detected"),
        ("EXISTS new", ":0"),
        ("SET k \"HYLL\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x80\\x7f\\xff\\x80\"", "+OK"),
        ("PFCOUNT k", "-INVALIDOBJ Corrupted HLL object detected"),
        ("SET k \"HYLL\\x01\\x00\\x00\\x00\\x2a\\x00\\x00\\x00\\x00\\x00\\x00\\x00\"", "+OK"),
        ("PFCOUNT k", ":42"),
    ]);
}

/// Adds the elements `0` to `count - 1` to a HyperLogLog; returns its estimate and the encoding of its registers.
fn estimate(count: u64) -> (String, String) {
    let mut script = Script::new(Protocol::Resp2);
    for first in (0..count).step_by(100) {
        let elements: Vec<String> =
            (first..count.min(first + 100)).map(|number| number.to_string()).collect();
        script.run(&format!("PFADD h {}", elements.join(" ")));
    }
    script.local.keyspace.check_invariants();
    (script.run("PFCOUNT h"), script.run("PFDEBUG ENCODING h"))
}

#[test]
fn estimates_equal_those_of_redis() {
    for (count, reply, encoding) in [
        (1, ":1", "+sparse"),
        (10, ":10", "+sparse"),
        (100, ":100", "+sparse"),
        (500, ":503", "+sparse"),
        (1000, ":1001", "+sparse"),
        (1500, ":1512", "+sparse"),
        (2000, ":2007", "+dense"),
        (5000, ":4985", "+dense"),
        (20000, ":19891", "+dense"),
        (100000, ":99565", "+dense"),
    ] {
        assert_eq!(estimate(count), (reply.to_owned(), encoding.to_owned()), "{count} elements");
    }
}

#[test]
fn a_hyperloglog_is_sparse_up_to_the_configured_size() {
    let mut script = Script::new(Protocol::Resp2);
    script.local.turn.settings.encoding.hll_sparse_max_bytes = 30;
    script.run("PFADD h a b c");
    assert_eq!(script.run("PFDEBUG ENCODING h"), "+sparse");
    script.run("PFADD h d e f");
    assert_eq!(script.run("PFDEBUG ENCODING h"), "+dense");
    assert_eq!(script.run("PFCOUNT h"), ":6");
}

#[test]
fn an_expiry_survives_added_elements() {
    check(&[
        ("PFADD h a", ":1"),
        ("PEXPIRE h 1500", ":1"),
        ("PFADD h b", ":1"),
        ("ENTRY h", "raw 1500"),
        ("PFMERGE h h", "+OK"),
        ("ENTRY h", "raw 1500"),
        ("PFDEBUG TODENSE h", ":1"),
        ("PFADD h c", ":1"),
        ("PFCOUNT h", ":3"),
        ("ENTRY h", "raw 1500"),
        ("PFSELFTEST", "+OK"),
    ]);
}
