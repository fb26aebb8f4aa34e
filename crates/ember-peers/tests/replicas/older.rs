//! Replicas older than some of the commands that ember supports: they receive the effects of such commands as commands
//! that they support.

use ember_peers::{require_program, start_ember};
use ember_testkit::Value;

use crate::matrix::assert_same_contents;
use crate::replica::{MODES, link, start_other};

/// Writes with commands and options that are newer than Redis 7.0 or specific to ember.
const LINES: &[&str] = &[
    "SET a 1",
    "SET a 2 IFEQ 1",
    "SET b 1",
    "DELIFEQ b 1",
    "SET compared 1 IFNE 1",
    "SET compared 2 IFDNE 0000000000000000",
    "SET removed 1",
    "DELEX removed IFEQ 1",
    "INCREX counted BYINT 5 EX 1000",
    "INCREX counted BYFLOAT 0.5 UBOUND 5.25 SATURATE",
    "MSETEX 2 c 1 d 2 EX 1000",
    "MSETEX 2 c 3 d 4 KEEPTTL",
    "MSETEX 2 c 5 e 6 NX",
    "MSETEX 2 e 7 f 8",
    "MSET one abc two bcd",
    "BITOP DIFF difference one two",
    "BITOP DIFF1 opposite one two",
    "BITOP ANDOR shared one two",
    "BITOP ONE single one two",
    "BITOP DIFF shared none none",
    "HSET h one 1 two 2 three 3",
    "HSETEX h FXX FIELDS 1 one 10",
    "HSETEX h KEEPTTL FIELDS 2 two 20 four 4",
    "HGETEX h FIELDS 1 one",
    "HGETDEL h FIELDS 2 three none",
    "XADD x 1-1 a 1",
    "XADD x 2-1 a 1",
    "XADD x 3-1 a 1",
    "XADD x 4-1 a 1",
    "XADD x 5-1 a 1",
    "XADD x 6-1 a 1",
    "XGROUP CREATE x g 0",
    "XGROUP CREATE x other 0",
    "XREADGROUP GROUP g c COUNT 5 STREAMS x >",
    "XREADGROUP GROUP other c COUNT 5 STREAMS x >",
    "XDELEX x DELREF IDS 1 1-1",
    "XACKDEL x g KEEPREF IDS 1 2-1",
    "XACKDEL x g ACKED IDS 1 3-1",
    "XACK x g 4-1",
    "XACK x other 4-1",
    "XTRIM x MAXLEN 1 ACKED",
    "XADD x DELREF MAXLEN 2 7-1 a 1",
    "XADD x ACKED MAXLEN 1 8-1 a 1",
];

/// The checksum of a payload with the string `v` and version 11.
const CHECKSUM: [u8; 8] = [0xf8, 0xd7, 0x73, 0xc1, 0xe4, 0xa7, 0x63, 0x47];

#[test]
fn an_older_redis_receives_the_effects_of_newer_commands() {
    for mode in MODES {
        let ember = start_ember(mode);
        let redis = start_other(require_program("redis-server"), &[]);
        link(&redis, ember.address());
        let mut client = ember.client();
        for line in LINES {
            let reply = client.run(line);
            assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
        }
        // A payload of Redis 7.2 or later declares its version, whatever it contains.
        let payload = [b"\x00\x01v\x0b\x00".as_slice(), &CHECKSUM].concat();
        let restored = client.command(&[b"RESTORE".as_slice(), b"r", b"0", &payload]);
        assert_eq!(restored, Value::ok());
        assert_same_contents(&ember, &redis);
        assert!(!redis.log().contains("unknown command"), "{}", redis.log());
    }
}
