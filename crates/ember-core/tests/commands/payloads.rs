//! DUMP and RESTORE: every type and encoding is restored, formats of other servers and older versions are read,
//! malformed payloads are refused.

use crate::support::words::words_of;
use ember_protocol::Protocol;
use emberkv_core::eviction::EvictionPolicy;
use emberkv_core::local::Local;
use emberkv_core::rdb::Target;
use emberkv_core::turn::Random;
use emberkv_core::types::limits::EncodingLimits;

fn run(local: &mut Local, line: &str) -> String {
    let words = words_of(line);
    reply(local, &words.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn reply(local: &mut Local, words: &[&[u8]]) -> String {
    String::from_utf8_lossy(&local.run(words)).trim_end().replace("\r\n", " ")
}

fn dump(local: &mut Local, key: &str) -> Vec<u8> {
    let reply = local.run(&[b"DUMP", key.as_bytes()]);
    let start = reply.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    reply[start..reply.len() - 2].to_vec()
}

/// Returns the payload of a value encoded in any format, with its footer.
fn payload(value: &[u8]) -> Vec<u8> {
    let mut bytes = [value, b"\x0B\x00"].concat();
    let checksum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Redis, &bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

fn numbers(command: &str, count: usize, element: impl Fn(usize) -> String) -> String {
    (0..count).fold(command.to_owned(), |line, number| line + " " + &element(number))
}

/// Returns for each type and encoding the lines that create the key `k`, its encoding afterwards, and a line that shows
/// all its contents in a fixed order.
fn values() -> Vec<(Vec<String>, &'static str, &'static str)> {
    let one = |line: &str| vec![line.to_owned()];
    let large = "x".repeat(40_000);
    let mut stream: Vec<String> =
        (1..=250).map(|number| format!("XADD k {number}-1 f {number} g{} v", number % 3)).collect();
    stream.extend(
        [
            "XDEL k 3-1",
            "XDEL k 250-1",
            "XGROUP CREATE k one 0",
            "XGROUP CREATE k \"t w o\" 100-1 ENTRIESREAD 99",
            "XGROUP CREATECONSUMER k one idle",
            "XREADGROUP GROUP one alice COUNT 5 STREAMS k >",
            "XREADGROUP GROUP one bob COUNT 3 STREAMS k >",
            "XCLAIM k one bob 0 1-1",
        ]
        .map(str::to_owned),
    );
    vec![
        (one("SET k 12"), "int", "GET k"),
        (one("SET k -70000"), "int", "GET k"),
        (one("SET k 9223372036854775807"), "int", "GET k"),
        (one("SET k hello"), "embstr", "GET k"),
        (one("SET k \"\""), "embstr", "GET k"),
        (one(&format!("SET k {}", "ab".repeat(500))), "raw", "GET k"),
        (one(&format!("SET k {large}")), "raw", "GET k"),
        (one("RPUSH k a 1 -5 70000 \"\\x00\\xff\" \"\""), "listpack", "LRANGE k 0 -1"),
        (one(&numbers("RPUSH k", 3000, |number| format!("element:{number}"))), "quicklist", "LRANGE k 0 -1"),
        (one(&format!("RPUSH k a {large} b")), "quicklist", "LRANGE k 0 -1"),
        (one("SADD k 3 1 2"), "intset", "SMEMBERS k"),
        (one("SADD k 3 1 70000000000"), "intset", "SMEMBERS k"),
        (one("SADD k a b 1"), "listpack", "SMEMBERS k"),
        (one(&numbers("SADD k", 300, |number| format!("m{number}"))), "hashtable", "SORT k ALPHA"),
        (one("ZADD k 1 a 2.5 b -inf c inf d 3 7"), "listpack", "ZRANGE k 0 -1 WITHSCORES"),
        (
            one(&numbers("ZADD k", 300, |number| format!("{}.25 m{number}", number * 7 % 300))),
            "skiplist",
            "ZRANGE k 0 -1 WITHSCORES",
        ),
        (one("HSET k f v 1 2"), "listpack", "HGETALL k"),
        (one(&numbers("HSET k", 600, |number| format!("f{number} {number}"))), "hashtable", "SORT k ALPHA"),
        (one(&format!("HSET k f {large}")), "hashtable", "HGETALL k"),
        (
            vec!["HSET k f v g w h x".into(), "HPEXPIRE k 500 FIELDS 1 g".into()],
            "listpackex",
            "HPTTL k FIELDS 3 f g h",
        ),
        (
            vec![
                numbers("HSET k", 600, |number| format!("f{number} {number}")),
                "HPEXPIRE k 500 FIELDS 2 f7 f8".into(),
                "HPEXPIRE k 400 FIELDS 1 f9".into(),
            ],
            "hashtable",
            "HPTTL k FIELDS 4 f7 f8 f9 f10",
        ),
        (stream, "stream", "XINFO STREAM k FULL COUNT 0"),
        (
            vec!["VADD k VALUES 2 1 0 a SETATTR {}".into(), "VADD k VALUES 2 0 1 b".into()],
            "raw",
            "VSIM k VALUES 2 1 0 WITHSCORES WITHATTRIBS",
        ),
        (one("JSON.SET k $ {\"a\":[1,2.5,\"x\",null]}"), "raw", "JSON.GET k"),
        (one("XADD k 5-5 a b"), "stream", "XINFO STREAM k FULL"),
        (vec!["XADD k 5-5 a b".into(), "XDEL k 5-5".into()], "stream", "XINFO STREAM k FULL"),
    ]
}

/// Returns properties of a value that distinguish it from other values, and show that it is complete.
fn fingerprint(local: &mut Local, key: &str, encoding: &str, show: &str) -> String {
    let show = show.replace(" k", &format!(" {key}"));
    assert_eq!(
        run(local, &format!("OBJECT ENCODING {key}")),
        format!("${} {encoding}", encoding.len()),
        "{key}"
    );
    if show.starts_with("SORT") {
        // The value has too many elements for commands with a fixed order; a digest of the elements is equivalent.
        let kind = run(local, &format!("TYPE {key}"));
        let command = if kind == "+hash" { "HGETALL" } else { "SMEMBERS" };
        let all = run(local, &format!("{command} {key}"));
        let mut parts: Vec<&str> = all.split(' ').collect();
        parts.sort_unstable();
        return parts.join(" ");
    }
    run(local, &show)
}

#[test]
fn every_type_and_encoding_is_restored() {
    for (lines, encoding, show) in values() {
        let mut local = Local::new(Protocol::Resp3);
        for line in &lines {
            let answer = run(&mut local, line);
            assert!(!answer.starts_with('-'), "{line}: {answer}");
        }
        let expected = fingerprint(&mut local, "k", encoding, show);
        let bytes = dump(&mut local, "k");
        assert_eq!(reply(&mut local, &[b"RESTORE", b"copy", b"0", &bytes]), "+OK", "{encoding}");
        assert!(fingerprint(&mut local, "copy", encoding, show) == expected, "{encoding}");
        assert_eq!(run(&mut local, "TYPE copy"), run(&mut local, "TYPE k"));
        local.keyspace.check_invariants();
        // The payload may differ, because hash tables have no order and a restored list has new nodes.
        let is_same = dump(&mut local, "copy") == bytes;
        assert!(is_same || ["hashtable", "quicklist"].contains(&encoding), "{encoding}");
    }
}

#[test]
fn a_payload_has_the_lowest_version_that_supports_its_format() {
    for (line, version) in [
        ("SET k hello", 6),
        ("RPUSH k a", 10),
        ("SADD k 1", 6),
        ("SADD k a", 11),
        ("ZADD k 1 a", 10),
        ("HSET k f v", 10),
        ("XADD k 1-1 f v", 11),
        ("VADD k VALUES 2 1 0 a", 8),
        ("JSON.SET k $ 1", 8),
    ] {
        let mut local = Local::new(Protocol::Resp2);
        run(&mut local, line);
        let bytes = dump(&mut local, "k");
        assert_eq!(bytes[bytes.len() - 10..][..2], [version, 0], "{line}");
    }
    let mut local = Local::new(Protocol::Resp2);
    run(&mut local, "HSET k f v");
    run(&mut local, "HPEXPIRE k 100 FIELDS 1 f");
    let bytes = dump(&mut local, "k");
    assert_eq!((bytes[0], bytes[bytes.len() - 10]), (25, 12));
    run(&mut local, "HPERSIST k FIELDS 1 f");
    let bytes = dump(&mut local, "k");
    assert_eq!((bytes[0], bytes[bytes.len() - 10]), (16, 10), "no field expires any more");
}

#[test]
fn restore_gives_the_encoding_of_the_configuration() {
    let mut local = Local::new(Protocol::Resp2);
    let lines =
        ["RPUSH l a b c d", "SADD i 1 2 3 4", "SADD s a b c d", "ZADD z 1 a 2 b 3 c 4 d", "HSET h a b c d"];
    lines.iter().for_each(|line| drop(run(&mut local, line)));
    let payloads: Vec<Vec<u8>> = ["l", "i", "s", "z", "h"].iter().map(|key| dump(&mut local, key)).collect();
    local.turn.settings.encoding = EncodingLimits {
        hash_max_listpack_entries: 1,
        set_max_intset_entries: 3,
        set_max_listpack_entries: 3,
        zset_max_listpack_entries: 3,
        list_max_listpack_size: 2,
        ..EncodingLimits::DEFAULT
    };
    let encodings = ["quicklist", "hashtable", "hashtable", "skiplist", "hashtable"];
    for (bytes, encoding) in payloads.iter().zip(encodings) {
        assert_eq!(reply(&mut local, &[b"RESTORE", b"k", b"0", bytes, b"REPLACE"]), "+OK");
        assert_eq!(run(&mut local, "OBJECT ENCODING k"), format!("${} {encoding}", encoding.len()));
        local.keyspace.check_invariants();
    }
}

#[test]
fn options_of_restore_take_effect() {
    let mut local = Local::new(Protocol::Resp2);
    run(&mut local, "SET k v");
    let bytes = dump(&mut local, "k");
    let mut restore = |words: &[&str]| {
        let mut all: Vec<&[u8]> = vec![b"RESTORE", words[0].as_bytes(), words[1].as_bytes(), &bytes];
        all.extend(words[2..].iter().map(|word| word.as_bytes()));
        reply(&mut local, &all)
    };
    assert_eq!(restore(&["k", "0"]), "-BUSYKEY Target key name already exists.");
    assert_eq!(restore(&["k", "x"]), "-BUSYKEY Target key name already exists.");
    assert_eq!(restore(&["n", "x"]), "-ERR value is not an integer or out of range");
    assert_eq!(restore(&["n", "-1"]), "-ERR Invalid TTL value, must be >= 0");
    assert_eq!(restore(&["n", "0", "IDLETIME", "-1"]), "-ERR Invalid IDLETIME value, must be >= 0");
    assert_eq!(restore(&["n", "0", "FREQ", "256"]), "-ERR Invalid FREQ value, must be >= 0 and <= 255");
    assert_eq!(restore(&["n", "0", "FREQ", "1", "IDLETIME", "1"]), "-ERR syntax error");
    assert_eq!(restore(&["n", "0", "IDLETIME", "1", "FREQ", "1"]), "-ERR syntax error");
    assert_eq!(restore(&["n", "0", "FREQ"]), "-ERR syntax error");
    assert_eq!(restore(&["n", "0", "REPLACES"]), "-ERR syntax error");
    assert_eq!(restore(&["k", "5000", "replace"]), "+OK");
    assert_eq!(restore(&["idle", "0", "IDLETIME", "1000"]), "+OK");
    assert_eq!(restore(&["absolute", "33177117420000", "ABSTTL"]), "+OK");
    assert_eq!(restore(&["past", "1", "ABSTTL"]), "+OK");
    assert_eq!(restore(&["counted", "0", "FREQ", "77"]), "+OK");
    for (line, expected) in [
        ("PTTL k", ":5000"),
        ("OBJECT IDLETIME idle", ":1000"),
        ("PEXPIRETIME absolute", ":33177117420000"),
        ("EXISTS past", ":0"),
        ("GET counted", "$1 v"),
        ("DUMP none", "$-1"),
    ] {
        assert_eq!(run(&mut local, line), expected, "{line}");
    }
    local.turn.settings.policy = EvictionPolicy::AllkeysLfu;
    let words: [&[u8]; 7] = [b"RESTORE", b"counted", b"0", &bytes, b"REPLACE", b"FREQ", b"77"];
    assert_eq!(reply(&mut local, &words), "+OK");
    assert_eq!(run(&mut local, "OBJECT FREQ counted"), ":77");
}

#[test]
fn a_hash_whose_fields_have_all_expired_is_not_restored() {
    let mut local = Local::new(Protocol::Resp2);
    run(&mut local, "HSET k f v");
    run(&mut local, "HPEXPIRE k 100 FIELDS 1 f");
    let bytes = dump(&mut local, "k");
    local.turn.now_ms += 200;
    assert_eq!(reply(&mut local, &[b"RESTORE", b"k", b"0", &bytes, b"REPLACE"]), "+OK");
    assert_eq!(run(&mut local, "EXISTS k"), ":0");
}

#[test]
fn formats_of_older_versions_are_read() {
    // The last entry is at offset 13.
    let ziplist = |entries: &[u8], count: u8| {
        let total = 11 + entries.len() as u8;
        [&[total, 0, 0, 0, 13, 0, 0, 0, count, 0], entries, &[0xFF]].concat()
    };
    let string = |bytes: &[u8]| [&[bytes.len() as u8], bytes].concat();
    let two = string(&ziplist(b"\x00\x01a\x03\xF3", 2));
    let stream = {
        let mut local = Local::new(Protocol::Resp2);
        run(&mut local, "XADD k 1-2 f v");
        let bytes = dump(&mut local, "k");
        // The part of the value after the kind (21) and before the number of entries, which precedes the IDs.
        let end = bytes.len() - 10 - 9;
        bytes[1..end].to_vec()
    };
    let group = b"\x01\x01g\x01\x02\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\x05\0\0\0\0\0\0\0\x03\x01\x01c\x07\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02";
    let stream1 = [b"\x0F", &stream[..], b"\x01\x01\x02", group].concat();
    for (value, line, expected) in [
        (b"\x01\x02\x01a\xC0\x07".to_vec(), "LRANGE k 0 -1", "*2 $1 a $1 7"),
        (b"\x02\x02\x01a\xC0\x07".to_vec(), "SMEMBERS k", "*2 $1 a $1 7"),
        (
            b"\x03\x02\x01a\x031.5\x01b\xFF".to_vec(),
            "ZRANGE k 0 -1 WITHSCORES",
            "*4 $1 b $4 -inf $1 a $3 1.5",
        ),
        (b"\x04\x01\x01f\x01v".to_vec(), "HGETALL k", "*2 $1 f $1 v"),
        (b"\x09\x0B\x01\x03foo\x03\x00bar\xFF".to_vec(), "HGETALL k", "*2 $3 foo $3 bar"),
        ([b"\x0A", &two[..]].concat(), "LRANGE k 0 -1", "*2 $1 a $1 2"),
        ([b"\x0C", &two[..]].concat(), "ZRANGE k 0 -1 WITHSCORES", "*2 $1 a $1 2"),
        ([b"\x0D", &two[..]].concat(), "HGETALL k", "*2 $1 a $1 2"),
        ([b"\x0E\x02", &two[..], &two].concat(), "LRANGE k 0 -1", "*4 $1 a $1 2 $1 a $1 2"),
        (stream1, "XPENDING k g - + 1", "*1 *4 $3 1-2 $1 c :999999999995 :3"),
    ] {
        let mut local = Local::new(Protocol::Resp2);
        let answer = reply(&mut local, &[b"RESTORE", b"k", b"0", &payload(&value)]);
        assert_eq!(answer, "+OK", "{}", value.escape_ascii());
        assert_eq!(run(&mut local, line), expected, "{}", value.escape_ascii());
        local.keyspace.check_invariants();
    }
}

#[test]
fn contradictions_are_refused() {
    for value in [
        &b""[..],
        b"\x06",
        b"\x08\x00",
        b"\x16\x00",
        b"\x63",
        b"\x00\x05abc",
        b"\x01\x00",
        b"\x02\x00",
        b"\x02\x02\x01a\x01a",
        b"\x02\x81\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01a",
        b"\x04\x01\x01a",
        b"\x04\x02\x01a\x01b\x01a\x01c",
        b"\x05\x01\x01a\x00\x00\x00\x00\x00\x00\xF8\x7F",
        b"\x05\x02\x01a\0\0\0\0\0\0\0\0\x01a\0\0\0\0\0\0\0\0",
        b"\x0B\x08\x02\x00\x00\x00\x00\x00\x00\x00",
        b"\x10\x07\x07\x00\x00\x00\x00\x00\xFF",
        b"\x10\x0A\x0A\x00\x00\x00\x01\x00\x81a\x02\xFF",
        b"\x12\x01\x03\x01a",
        b"\x12\x00",
        b"\x15\x01\x10\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\x07\x07\0\0\0\0\0\xFF\0\0\0\0\0\0\0\0\0",
        b"\x18\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F\x01\x02\x01f\x01v",
    ] {
        let mut local = Local::new(Protocol::Resp2);
        let answer = reply(&mut local, &[b"RESTORE", b"k", b"0", &payload(value)]);
        assert_eq!(answer, "-ERR Bad data format", "{}", value.escape_ascii());
        assert_eq!(run(&mut local, "EXISTS k"), ":0");
    }
}

#[test]
fn a_wrong_footer_is_refused() {
    let mut local = Local::new(Protocol::Resp2);
    run(&mut local, "SET k v");
    let good = dump(&mut local, "k");
    let mut newer = good[..good.len() - 10].to_vec();
    newer.extend_from_slice(&13u16.to_le_bytes());
    let checksum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Redis, &newer);
    newer.extend_from_slice(&checksum.to_le_bytes());
    let mut bytes: Vec<Vec<u8>> = (0..good.len()).map(|len| good[..len].to_vec()).collect();
    bytes.extend((0..good.len()).map(|index| {
        let mut changed = good.clone();
        changed[index] ^= 1;
        changed
    }));
    bytes.push(newer);
    for bytes in bytes {
        let answer = reply(&mut local, &[b"RESTORE", b"n", b"0", &bytes]);
        assert_eq!(answer, "-ERR DUMP payload version or checksum are wrong");
    }
}

/// Returns the payload of a value that declares this version.
fn payload_of(version: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = [value, &version.to_le_bytes()].concat();
    let checksum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Redis, &bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Returns a hash with one field that expires and one that does not, encoded like Valkey 9.
fn hash_of_valkey() -> Vec<u8> {
    let value = [&b"\x16\x02\x01f\x01v"[..], &4_000_000_000_000_i64.to_le_bytes(), b"\x01g\x01w", &[0xFF; 8]];
    value.concat()
}

#[test]
fn payloads_of_valkey_are_read_and_unknown_versions_if_allowed() {
    let restore = |local: &mut Local, version: u16, value: &[u8]| {
        reply(local, &[b"RESTORE", b"k", b"0", &payload_of(version, value), b"REPLACE"])
    };
    let (string, hash) = (b"\x00\x01v".as_slice(), hash_of_valkey());
    const FOOTER: &str = "-ERR DUMP payload version or checksum are wrong";
    let mut local = Local::new(Protocol::Resp2);
    for (version, of_string, of_hash) in [
        (11, "+OK", "-ERR Bad data format"),
        (12, "+OK", "-ERR Bad data format"),
        (13, FOOTER, FOOTER),
        (79, FOOTER, FOOTER),
        (80, "+OK", "+OK"),
        (81, FOOTER, FOOTER),
    ] {
        assert_eq!(restore(&mut local, version, string), of_string, "{version}");
        assert_eq!(restore(&mut local, version, &hash), of_hash, "{version}");
    }
    assert_eq!(restore(&mut local, 80, &hash), "+OK");
    assert_eq!(run(&mut local, "HPEXPIRETIME k FIELDS 2 f g"), "*2 :4000000000000 :-1");
    // Valkey does not support the kinds with which Redis encodes such hashes.
    assert_eq!(restore(&mut local, 80, b"\x18\0\0\0\0\0\0\0\x01\x01\x01\x01f\x01v"), "-ERR Bad data format");
    local.turn.settings.payload_checks.version_max = u16::MAX;
    for (version, of_hash) in
        [(13, "-ERR Bad data format"), (79, "-ERR Bad data format"), (80, "+OK"), (99, "+OK")]
    {
        assert_eq!(restore(&mut local, version, string), "+OK", "{version}");
        assert_eq!(restore(&mut local, version, &hash), of_hash, "{version}");
    }
}

#[test]
fn a_payload_has_the_format_of_its_target_server() {
    for (target, version, kind) in [
        (Target::Redis, 12, 25),
        (Target::Redis72, 12, 25),
        (Target::Redis8, 12, 25),
        (Target::Valkey9, 80, 22),
    ] {
        let mut local = Local::new(Protocol::Resp2);
        local.turn.settings.payload_version = target.payload_version();
        assert_eq!(reply(&mut local, &[b"RESTORE", b"h", b"0", &payload_of(80, &hash_of_valkey())]), "+OK");
        let dumped = dump(&mut local, "h");
        let footer = u16::from_le_bytes(dumped[dumped.len() - 10..dumped.len() - 8].try_into().unwrap());
        assert_eq!((footer, dumped[0]), (version, kind), "{target:?}");
        assert_eq!(reply(&mut local, &[b"RESTORE", b"copy", b"0", &dumped]), "+OK");
        assert_eq!(run(&mut local, "HPEXPIRETIME copy FIELDS 2 f g"), "*2 :4000000000000 :-1");
        // The payload of a value declares the lowest version that supports the value's encoding.
        run(&mut local, "SET s v");
        let dumped = dump(&mut local, "s");
        assert_eq!(dumped[dumped.len() - 10], 6);
    }
}

/// RESTORE refuses altered payloads with correct checksums, or the restored values satisfy all invariants.
#[test]
fn altered_payloads_do_no_harm() {
    let mut random = Random::seeded(20_261_121);
    for (lines, ..) in values() {
        let mut local = Local::new(Protocol::Resp2);
        lines.iter().for_each(|line| drop(run(&mut local, line)));
        let good = dump(&mut local, "k");
        let value = &good[..good.len() - 10];
        for _ in 0..300 {
            let mut changed = value.to_vec();
            for _ in 0..=random.below(3) {
                let index = random.below(changed.len().min(400));
                changed[index] = match random.below(3) {
                    0 => random.next_u32() as u8,
                    1 => changed[index].wrapping_add(1),
                    _ => changed[index] ^ (1 << random.below(8)),
                };
            }
            if random.below(10) == 0 {
                changed.truncate(random.below(changed.len()));
            }
            let answer = reply(&mut local, &[b"RESTORE", b"n", b"0", &payload(&changed), b"REPLACE"]);
            assert!(answer == "+OK" || answer == "-ERR Bad data format", "{answer}");
            if answer == "+OK" {
                use_value(&mut local);
            }
        }
        local.keyspace.check_invariants();
    }
}

/// Runs commands that read, change and remove parts of the value at the key `n`, whatever its type.
fn use_value(local: &mut Local) {
    local.keyspace.check_invariants();
    let kind = run(local, "TYPE n");
    let lines: &[&str] = match kind.as_str() {
        "+list" => &["LRANGE n 0 -1", "LREM n 0 a", "LPOP n 2", "RPUSH n x"],
        "+set" => &["SMEMBERS n", "SADD n x", "SREM n a", "SPOP n"],
        "+zset" => &["ZRANGE n 0 -1 WITHSCORES", "ZADD n 1 x", "ZREM n a", "ZPOPMIN n 2"],
        "+hash" => &["HGETALL n", "HSET n x y", "HDEL n f", "HPTTL n FIELDS 1 f"],
        "+stream" => &[
            "XRANGE n - +",
            "XREVRANGE n + -",
            "XINFO STREAM n FULL",
            "XTRIM n MAXLEN 2",
            "XADD n * a b",
            "XREADGROUP GROUP one alice STREAMS n >",
        ],
        _ => &["GET n", "APPEND n x"],
    };
    for line in lines {
        run(local, line);
    }
    local.keyspace.check_invariants();
    run(local, "DUMP n");
}

/// Trimming leaves a block whose entries are all deleted, followed by a block that contains entries.
#[test]
fn a_stream_with_a_block_without_entries_is_restored() {
    let mut local = Local::new(Protocol::Resp2);
    for line in [
        "XADD s 1-0 n 1",
        "XADD s 5-0 n 5",
        &format!("XADD s 6-0 n {}", "x".repeat(5000)),
        "XADD s 7-0 n 7",
        "XDEL s 5-0",
        "XTRIM s MINID = 2",
    ] {
        assert!(!run(&mut local, line).starts_with('-'), "{line}");
    }
    let bytes = dump(&mut local, "s");
    assert_eq!(reply(&mut local, &[b"RESTORE", b"copy", b"0", &bytes]), "+OK");
    assert_eq!(run(&mut local, "XRANGE copy - +"), run(&mut local, "XRANGE s - +"));
    assert_eq!(run(&mut local, "XLEN copy"), ":2");
    assert_eq!(run(&mut local, "XADD copy 8-0 n 8"), "$3 8-0");
    local.keyspace.check_invariants();
}
