//! Tests of commands on vector sets, which compare the bytes of replies. The replies equal those of Redis 8.0.6 except
//! for the last digits of scores.

use ember_protocol::Protocol;
use emberkv_core::linking::{self, Next};
use emberkv_core::local::Local;

use crate::support::vectors::{check, reply, run};

#[test]
fn elements_are_added_and_removed() {
    check(&[
        ("VADD k VALUES 2 1 0 a", ":1"),
        ("VADD k VALUES 2 0 1 b SETATTR {\"n\":1}", ":1"),
        ("VADD k VALUES 2 1 1 a", ":0"),
        ("VADD k FP32 \"\\x00\\x00\\x80?\\x00\\x00\\x00\\x00\" c", ":1"),
        ("VCARD k", ":3"),
        ("VCARD none", ":0"),
        ("VDIM k", ":2"),
        ("VDIM none", "-ERR key does not exist"),
        ("VISMEMBER k a", ":1"),
        ("VISMEMBER k x", ":0"),
        ("VISMEMBER none x", ":0"),
        ("TYPE k", "+vectorset"),
        ("OBJECT ENCODING k", "$3 raw"),
        ("VREM k a", ":1"),
        ("VREM k a", ":0"),
        ("VREM none a", ":0"),
        ("VREM k b", ":1"),
        ("VREM k c", ":1"),
        ("EXISTS k", ":0"),
        ("VINFO k", "*-1"),
        ("VRANDMEMBER k", "$-1"),
        ("VRANDMEMBER k 2", "*0"),
        ("VEMB k a", "$-1"),
        ("VLINKS k a", "$-1"),
        ("VSIM k VALUES 1 1", "*0"),
        ("VSIM k NONSENSE 1", "*0"),
    ]);
}

#[test]
fn removed_elements_are_invisible_before_their_slot_is_freed() {
    let mut local = Local::new(Protocol::Resp2);
    local.turn.settings.links_vectors_later = true;
    for id in 0..300 {
        let line = format!("VADD k VALUES 3 {} {} 1 e{id:03} M 4 SETATTR {id}", id % 17, id % 23);
        assert_eq!(run(&mut local, &line), ":1");
        if id % 3 == 0 {
            link_all(&local, b"k");
        }
    }
    for id in 0..200 {
        // Half of the elements are replaced, the others are removed.
        let line = match id % 2 {
            0 => format!("VADD k VALUES 3 1 2 {id} e{id:03} M 4"),
            _ => format!("VREM k e{id:03}"),
        };
        assert_eq!(run(&mut local, &line), format!(":{}", id % 2));
        local.keyspace.check_invariants();
    }
    for round in 0..2 {
        assert_eq!(run(&mut local, "VCARD k"), ":200", "{round}");
        assert_eq!(run(&mut local, "VREM k e001"), ":0");
        assert_eq!(run(&mut local, "VSIM k ELE e001"), "-ERR element not found in set");
        assert_eq!(run(&mut local, "VGETATTR k e002"), "$1 2", "a new vector keeps the attributes");
        let names = (0..300).filter(|id| id % 2 == 0 || *id > 200);
        let names: Vec<String> = names.map(|id| format!("$4 e{id:03}")).collect();
        let all = format!("*200 {}", names.join(" "));
        assert_eq!(run(&mut local, "VRANGE k - +"), all);
        for line in ["VRANDMEMBER k 1000", "VSIM k VALUES 3 1 1 1 COUNT 1000 EF 1000"] {
            let mut found: Vec<String> =
                run(&mut local, line).split('$').skip(1).map(|name| format!("${}", name.trim())).collect();
            found.sort();
            assert_eq!(found, names, "{line}");
        }
        assert!(!run(&mut local, "VRANDMEMBER k -1000").contains("e001"));
        for name in &names {
            let own = name.trim_start_matches("$4 ");
            let links = run(&mut local, &format!("VLINKS k {own}"));
            let mut linked = links.split('$').skip(1).map(|link| format!("${}", link.trim()));
            let is_other = |link: String| {
                let link = link.split(" *").next().unwrap().to_owned();
                link != *name && names.contains(&link)
            };
            assert!(links.contains("$4") && linked.all(is_other), "{own}: {links}");
        }
        // The payload contains no removed elements.
        let payload = dump(&mut local, "k");
        assert_eq!(reply(&mut local, &[b"RESTORE", b"copy", b"0", &payload, b"REPLACE"]), "+OK");
        assert_eq!(run(&mut local, "VRANGE copy - +"), all);
        local.keyspace.check_invariants();
        link_all(&local, b"k");
        local.keyspace.check_invariants();
    }
    for id in (0..300).filter(|id| id % 2 == 0 || *id > 200) {
        assert_eq!(run(&mut local, &format!("VREM k e{id:03}")), ":1");
    }
    assert_eq!(run(&mut local, "EXISTS k"), ":0");
}

#[test]
fn a_call_links_no_elements_itself() {
    const COUNT: usize = 5000;
    let mut local = Local::new(Protocol::Resp2);
    local.turn.settings.links_vectors_later = true;
    let elements: Vec<String> = (0..COUNT).map(|id| format!(" e{id} {} {}", id % 71, id % 67 + 1)).collect();
    let batch = format!("VADD_BATCH k DIM 2{}", elements.concat());
    assert_eq!(run(&mut local, &batch), format!(":{COUNT}"));
    assert_eq!(linking::left(&local.keyspace, 0, b"k"), COUNT);
    assert_eq!(local.turn.notices.errands.len(), 1, "the linking thread is notified");
    // Searches find elements whose addition was acknowledged, even before they are linked.
    assert_eq!(run(&mut local, "VSIM k 70 1 COUNT 1"), "*1 $5 e1206");
    assert_eq!(run(&mut local, &batch), ":0");
    assert_eq!(linking::left(&local.keyspace, 0, b"k"), 2 * COUNT, "replaced elements leave unused slots");
    let names: Vec<String> = (0..COUNT - 1).map(|id| format!(" e{id}")).collect();
    assert_eq!(run(&mut local, &format!("VECTOR.DEL k{}", names.concat())), format!(":{}", COUNT - 1));
    assert_eq!(linking::left(&local.keyspace, 0, b"k"), 2 * COUNT);
    assert_eq!(run(&mut local, "VRANGE k - +"), "*1 $5 e4999");
    local.keyspace.check_invariants();
    link_all(&local, b"k");
    assert_eq!(linking::left(&local.keyspace, 0, b"k"), 0);
    assert_eq!(run(&mut local, "VSIM k 70 1 COUNT 1"), "*1 $5 e4999");
    local.keyspace.check_invariants();
}

/// Does all pending work of the linking threads on a key.
fn link_all(local: &Local, key: &[u8]) {
    while linking::bury(&local.keyspace, 0, key) > 0 {}
    while let Next::Linking(batch) = linking::begin(&local.keyspace, 0, key) {
        linking::commit(&local.keyspace, 0, key, &linking::plan(&batch));
    }
}

#[test]
fn attributes_are_kept_until_they_are_removed() {
    check(&[
        ("VADD k VALUES 2 1 0 a SETATTR {\"year\":1984}", ":1"),
        ("VADD k VALUES 2 0 1 a", ":0"),
        ("VGETATTR k a", "$13 {\"year\":1984}"),
        ("VSETATTR k a \"no json\"", ":1"),
        ("VGETATTR k a", "$7 no json"),
        ("VSETATTR k a \"\"", ":1"),
        ("VGETATTR k a", "$-1"),
        ("VSETATTR k x {}", ":0"),
        ("VSETATTR none x {}", ":0"),
        ("VGETATTR k x", "$-1"),
        ("VGETATTR none x", "$-1"),
    ]);
}

#[test]
fn vectors_are_stored_as_in_redis() {
    check(&[
        ("VADD q VALUES 3 3 -4 0 a", ":1"),
        ("VEMB q a RAW", "*4 +int8 $3 _\\x81\\x00 $1 5 $17 0.800000011920929"),
        ("VEMB q a", "*3 $17 2.992125988006592 $2 -4 $1 0"),
        ("VEMB q a raw RAW", "*4 +int8 $3 _\\x81\\x00 $1 5 $17 0.800000011920929"),
        ("VEMB q a x", "-ERR invalid option"),
        ("VADD b VALUES 3 3 -4 0 a BIN", ":1"),
        ("VEMB b a RAW", "*3 +bin $8 \\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00 $1 5"),
        ("VEMB b a", "*3 $1 1 $2 -1 $2 -1"),
        ("VADD f VALUES 2 3 -4 a NOQUANT", ":1"),
        ("VEMB f a RAW", "*3 +f32 $8 \\x9a\\x99\\x19?\\xcd\\xccL\\xbf $1 5"),
        ("VEMB f a", "*2 $1 3 $2 -4"),
        ("VADD z VALUES 2 0 0 a", ":1"),
        ("VEMB z a RAW", "*4 +int8 $2 \\x00\\x00 $1 1 $1 0"),
        ("VADD r REDUCE 2 VALUES 4 1 2 3 4 a NOQUANT", ":1"),
        ("VDIM r", ":2"),
        ("VEMB r a RAW", "*3 +f32 $8 V\\x07{?\\xab\\xd2H\\xbe $17 5.099019527435303"),
        ("VSIM r VALUES 4 1 2 3 4", "*1 $1 a"),
        ("VSIM r VALUES 2 1 1", "*1 $1 a"),
    ]);
}

#[test]
fn errors_equal_those_of_redis_in_the_same_order() {
    let invalid = "-ERR invalid vector specification";
    check(&[
        ("VADD k VALUES 2 1 0 a", ":1"),
        ("VADD r REDUCE 2 VALUES 3 1 1 1 a", ":1"),
        ("SET s v", "+OK"),
        ("VADD k FOO x 1", invalid),
        ("VADD k VALUES x 1 1", invalid),
        ("VADD k VALUES 5 1 1", invalid),
        ("VADD k VALUES 2 1 x a", invalid),
        ("VADD k VALUES 2 1 nan a", invalid),
        ("VADD k VALUES 2 1 inf a", invalid),
        ("VADD k VALUES 2 1e30 1e30 a", invalid),
        ("VADD k VALUES 65537 1 1", invalid),
        ("VADD k FP32 abc a", invalid),
        ("VADD k REDUCE 0 VALUES 2 1 1 a", invalid),
        ("VADD k REDUCE 3 VALUES 2 1 1 a", invalid),
        ("VADD k VALUES 2 1 1", "-ERR wrong number of arguments for 'vadd' command"),
        ("VADD s VALUES 2 1 1 a NOPE", "-ERR invalid option after element"),
        ("VADD s VALUES 2 1 1 a EF", "-ERR invalid option after element"),
        ("VADD s VALUES 2 1 1 a EF 0", "-ERR invalid EF"),
        ("VADD s VALUES 2 1 1 a EF 1000001", "-ERR invalid EF"),
        ("VADD s VALUES 2 1 1 a M 3", "-ERR invalid M"),
        ("VADD s VALUES 2 1 1 a M 4097", "-ERR invalid M"),
        ("VADD s VALUES 2 1 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("VADD k VALUES 3 1 1 1 a BIN M 8", "-ERR asked quantization mismatch with existing vector set"),
        ("VADD k VALUES 3 1 1 1 a M 8", "-ERR asked M value mismatch with existing vector set"),
        ("VADD k VALUES 3 1 1 1 a", "-ERR Vector dimension mismatch - got 3 but set has 2"),
        ("VADD k REDUCE 2 VALUES 2 1 1 a", "-ERR cannot add projection to existing set without projection"),
        ("VADD r VALUES 2 1 1 a", "-ERR Vector dimension mismatch - got 2 but set has 2"),
        ("VADD r REDUCE 1 VALUES 3 1 1 1 a", "-ERR Vector dimension mismatch - got 3 but set has 2"),
        (
            "VADD r REDUCE 2 VALUES 4 1 1 1 1 a",
            "-ERR Input dimension mismatch for projection - got 4 but projection expects 3",
        ),
        ("VADD k VALUES 2 1 0 a M 8 M 16 BIN Q8 CAS", ":0"),
        ("VSIM s VALUES 2 1 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("VSIM k ELE x COUNT 0", "-ERR element not found in set"),
        ("VSIM k FOO x", invalid),
        ("VSIM k VALUES 3 1 1 1 COUNT 0", "-ERR Vector dimension mismatch - got 3 but set has 2"),
        (
            "VSIM r VALUES 5 1 1 1 1 1",
            "-ERR Input dimension mismatch for projection - got 5 but projection expects 3",
        ),
        ("VSIM k ELE a COUNT 0", "-ERR invalid COUNT"),
        ("VSIM k ELE a EF 0", "-ERR invalid EF"),
        ("VSIM k ELE a EPSILON 0", "-ERR invalid EPSILON"),
        ("VSIM k ELE a EPSILON x", "-ERR invalid EPSILON"),
        ("VSIM k ELE a FILTER-EF 0", "-ERR invalid FILTER-EF"),
        ("VSIM k ELE a FILTER \".a =! 3\"", "-ERR syntax error in FILTER expression near:  3"),
        ("VSIM k ELE a FILTER \"(1\"", "-ERR syntax error in FILTER expression near: (1"),
        ("VSIM k ELE a FILTER", "-ERR syntax error in VSIM command"),
        ("VSIM k ELE a NOPE", "-ERR syntax error in VSIM command"),
        ("VRANDMEMBER k x", "-ERR COUNT value is not an integer"),
        ("VRANDMEMBER k 1 2", "-ERR wrong number of arguments for 'vrandmember' command"),
        ("VLINKS k a WITHSCORE", "-ERR wrong number of arguments for 'vlinks' command"),
        ("VREM s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("VRANGE k a +", "-ERR invalid start range format"),
        ("VRANGE k - b", "-ERR invalid end range format"),
        ("VRANGE k + -", "-ERR '-' can only be used as first argument, '+' only as second"),
        ("VRANGE k - + x", "-ERR invalid COUNT value"),
        ("SADD k a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("ZUNION 1 k", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SORT k", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ]);
}

#[test]
fn filters_and_reductions_beyond_their_limit_fail_with_the_limit() {
    let search = |filter: String| format!("VSIM k ELE a FILTER \"{filter}\"");
    let ones = " 1".repeat(65_536);
    let reduced = |dim: usize| format!("VADD r{dim} REDUCE {dim} VALUES 65536{ones} a");
    check(&[
        ("VADD k VALUES 2 1 0 a SETATTR {\"n\":1}", ":1"),
        (&search("(".repeat(64_000)), "-ERR FILTER is nested more than 1024 levels deep"),
        (&search("1**".repeat(64_000)), "-ERR FILTER is nested more than 1024 levels deep"),
        (&search("1".repeat(262_145)), "-ERR FILTER has 262145 bytes, more than 262144"),
        (&search(format!(".n==1{}", " and .n==1".repeat(20_000))), "*1 $1 a"),
        (&reduced(1024), ":1"),
        (&reduced(65_536), "-ERR REDUCE of 65536 to 65536 dimensions: their product is limited to 67108864"),
    ]);
}

#[test]
fn searches_return_the_requested_elements() {
    check(&[
        ("VADD k VALUES 2 1 0 a SETATTR {\"n\":1}", ":1"),
        ("VADD k VALUES 2 0 1 b", ":1"),
        ("VADD k VALUES 2 -1 0 c SETATTR {\"n\":3}", ":1"),
        ("VSIM k VALUES 2 1 0", "*3 $1 a $1 b $1 c"),
        ("VSIM k ELE c", "*3 $1 c $1 b $1 a"),
        ("VSIM k ELE c COUNT 1 EF 1", "*1 $1 c"),
        ("VSIM k ELE c COUNT 9223372036854775807", "*3 $1 c $1 b $1 a"),
        ("VSIM k VALUES 2 1 0 WITHSCORES", "*6 $1 a $1 1 $1 b $3 0.5 $1 c $1 0"),
        ("VSIM k VALUES 2 1 0 WITHATTRIBS COUNT 2", "*4 $1 a $7 {\"n\":1} $1 b $-1"),
        ("VSIM k VALUES 2 1 0 WITHSCORES WITHATTRIBS COUNT 1", "*3 $1 a $1 1 $7 {\"n\":1}"),
        ("VSIM k VALUES 2 1 0 EPSILON 0.5", "*2 $1 a $1 b"),
        ("VSIM k VALUES 2 1 0 EPSILON 0.4", "*1 $1 a"),
        ("VSIM k VALUES 2 1 0 TRUTH NOTHREAD COUNT 2", "*2 $1 a $1 b"),
        ("VSIM k VALUES 2 1 0 FILTER \".n > 0\"", "*2 $1 a $1 c"),
        ("VSIM k VALUES 2 1 0 FILTER \".n > 1\" FILTER-EF 100", "*1 $1 c"),
        ("VSIM k VALUES 2 1 0 FILTER \".n > 1\" TRUTH", "*1 $1 c"),
        ("VSIM k VALUES 2 1 0 FILTER \".x\"", "*0"),
        ("VLINKS k a", "*1 *2 $1 b $1 c"),
        ("VLINKS k a WITHSCORES", "*1 *4 $1 b $3 0.5 $1 c $1 0"),
        ("VRANGE k - +", "*3 $1 a $1 b $1 c"),
        ("VRANGE k (a [b", "*1 $1 b"),
        ("VRANGE k [a (c -1", "*2 $1 a $1 b"),
        ("VRANGE k - + 2", "*2 $1 a $1 b"),
        ("VRANGE k - + 0", "*0"),
        ("VRANGE k (c [a", "*0"),
        ("VRANGE none - +", "*0"),
    ]);
}

#[test]
fn replies_of_resp3_are_maps_booleans_and_doubles() {
    let mut local = Local::new(Protocol::Resp3);
    for (line, expected) in [
        ("VADD k VALUES 2 1 0 a SETATTR x", "#t"),
        ("VADD k VALUES 2 1 0 a", "#f"),
        ("VADD k VALUES 2 0 1 b", "#t"),
        ("VISMEMBER k a", "#t"),
        ("VSIM k VALUES 2 1 0 WITHSCORES", "%2 $1 a ,1 $1 b ,0.5"),
        ("VSIM k VALUES 2 1 0 WITHATTRIBS", "%2 $1 a $1 x $1 b _"),
        ("VSIM k VALUES 2 1 0 WITHSCORES WITHATTRIBS", "%2 $1 a *2 ,1 $1 x $1 b *2 ,0.5 _"),
        ("VSIM k VALUES 2 1 0", "*2 $1 a $1 b"),
        ("VLINKS k a WITHSCORES", "*1 %1 $1 b ,0.5"),
        ("VEMB k a RAW", "*4 +int8 $2 \\x7f\\x00 ,1 ,1"),
        ("VEMB k a", "*2 ,1 ,0"),
        ("VREM k x", "#f"),
        ("VEMB k x", "_"),
        ("VINFO x", "_"),
    ] {
        assert_eq!(run(&mut local, line), expected, "{line}");
    }
    let facts = run(&mut local, "VINFO k");
    assert!(
        facts
            .starts_with("%9 +quant-type +int8 +hnsw-m :16 +vector-dim :2 +projection-input-dim :0 +size :2")
    );
    assert!(facts.ends_with("+hnsw-max-node-uid :3"), "{facts}");
}

/// The reply of DUMP by Redis 8.0.6 after `VADD k VALUES 3 3 -4 0 first SETATTR {"year":1984}`, `… 1 2 2 second` and
/// `… -0.5 0.25 8 third SETATTR {"year":1990}`.
const INT8_OF_REDIS: &str = "\
    0781bde72da2bb1eb40002030203025001020205057468697264050d7b2279656172223a313939307d0503f8047f020b02030280010000\
    01020202200202020102813f8807dd0000000102000210020002813f7f609641004fe705067365636f6e6405000503407f7f0208020202\
    8001000000020202200201020302813faa88660000000002813f2aaaab4040000005056669727374050d7b2279656172223a313938347d\
    05035f810002080201028001000000020202200202020302813faa88660000000002813f4ccccd40a00000000c0053ee4ed9dacf9080";

/// The reply of DUMP by Redis 8.0.6 after `VADD k REDUCE 2 VALUES 4 1 2 3 4 a NOQUANT M 4` and
/// `… 4 -2 3 1 b NOQUANT M 4`.
const REDUCED_OF_REDIS: &str = "\
    0781bde72da2bb1eb400020202020244000201020405c31020040000003f00e0090300bf80130100bf05016205089a99193fcdcc4c3f02\
    07020202800100000002010208020102813f118c210000000002813f2aaaab40a00000050161050856077b3fabd248be02070201028001\
    00000002010208020202813f118c210000000002813f4ccccd40a32b2b000c006d52b4a92424a49d";

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().map(|digit| char::from(digit).to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn dump(local: &mut Local, key: &str) -> Vec<u8> {
    let reply = local.run(&[b"DUMP", key.as_bytes()]);
    let start = reply.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    reply[start..reply.len() - 2].to_vec()
}

#[test]
fn payloads_of_redis_are_loaded_with_their_graph() {
    let mut local = Local::new(Protocol::Resp2);
    assert_eq!(reply(&mut local, &[b"RESTORE", b"k", b"0", &bytes_of(INT8_OF_REDIS)]), "+OK");
    assert_eq!(reply(&mut local, &[b"RESTORE", b"r", b"0", &bytes_of(REDUCED_OF_REDIS)]), "+OK");
    for (line, expected) in [
        ("VCARD k", ":3"),
        ("VEMB k first RAW", "*4 +int8 $3 _\\x81\\x00 $1 5 $17 0.800000011920929"),
        ("VEMB k second RAW", "*4 +int8 $3 @\\x7f\\x7f $1 3 $18 0.6666666865348816"),
        ("VEMB k third RAW", "*4 +int8 $3 \\xf8\\x04\\x7f $16 8.01950740814209 $18 0.9975675344467163"),
        ("VGETATTR k first", "$13 {\"year\":1984}"),
        ("VGETATTR k second", "$-1"),
        ("VLINKS k first", "*1 *2 $6 second $5 third"),
        ("VSIM k VALUES 3 0 0 1 FILTER \".year > 0\"", "*2 $5 third $5 first"),
        ("VEMB r a RAW", "*3 +f32 $8 V\\x07{?\\xab\\xd2H\\xbe $17 5.099019527435303"),
        ("VSIM r VALUES 4 1 2 3 4 COUNT 1", "*1 $1 a"),
        ("VADD r REDUCE 2 VALUES 4 1 1 1 1 c NOQUANT M 4", ":1"),
    ] {
        assert_eq!(run(&mut local, line), expected, "{line}");
    }
    assert!(run(&mut local, "VINFO r").contains("projection-input-dim :4 +size :3"));
    local.keyspace.check_invariants();
    // The server can also restore the payload that it writes for this value.
    let bytes = dump(&mut local, "r");
    assert_eq!(reply(&mut local, &[b"RESTORE", b"copy", b"0", &bytes]), "+OK");
    assert_eq!(dump(&mut local, "copy"), bytes);
}

#[test]
fn a_damaged_payload_is_refused_or_loaded_safely() {
    let mut local = Local::new(Protocol::Resp2);
    for line in ["VADD k VALUES 3 3 -4 0 a SETATTR {}", "VADD k VALUES 3 1 1 1 b", "VADD k VALUES 3 0 1 1 c"]
    {
        run(&mut local, line);
    }
    let whole = dump(&mut local, "k");
    let body = &whole[..whole.len() - 10];
    let mut read = 0;
    for at in 1..body.len() {
        for byte in [0, 1, 2, 5, 0x40, 0x7F, 0x80, 0x81, 0xC3, 0xFF, body[at] ^ 1] {
            let mut damaged = body.to_vec();
            damaged[at] = byte;
            for damaged in [&damaged[..], &damaged[..at]] {
                let mut payload = [damaged, b"\x08\x00"].concat();
                let checksum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Redis, &payload);
                payload.extend_from_slice(&checksum.to_le_bytes());
                let answer = reply(&mut local, &[b"RESTORE", b"copy", b"0", &payload, b"REPLACE"]);
                if answer == "+OK" {
                    read += 1;
                    local.keyspace.check_invariants();
                    run(&mut local, "VSIM copy VALUES 3 1 1 1");
                }
            }
        }
    }
    assert!(read > 0, "damaged links are repaired, damaged names are other names");
}

#[test]
fn a_large_set_is_complete_in_every_encoding() {
    let mut local = Local::new(Protocol::Resp2);
    let mut state = 1u64;
    let mut number = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    };
    for element in 0..3000 {
        let blob: Vec<u8> = (0..16).flat_map(|_| number().to_le_bytes()).collect();
        let name = format!("element:{element}");
        let attributes = format!("{{\"n\":{}}}", element % 100);
        let words: [&[u8]; 8] =
            [b"VADD", b"k", b"FP32", &blob, name.as_bytes(), b"SETATTR", attributes.as_bytes(), b"CAS"];
        assert_eq!(reply(&mut local, &words), ":1");
    }
    let ask = |local: &mut Local, key: &str| {
        let mut answers = String::new();
        for element in 0..20 {
            answers += &run(local, &format!("VSIM {key} ELE element:{element} WITHSCORES COUNT 20"));
            answers += &run(local, &format!("VSIM {key} ELE element:{element} FILTER \".n == 7\" COUNT 40"));
        }
        answers
    };
    let expected = ask(&mut local, "k");
    assert!(expected.contains("*30 "), "all matches are found");
    let bytes = dump(&mut local, "k");
    assert_eq!(reply(&mut local, &[b"RESTORE", b"restored", b"0", &bytes]), "+OK");
    assert_eq!(run(&mut local, "COPY k copy"), ":1");
    for element in 0..2990 {
        run(&mut local, &format!("VREM k element:{element}"));
    }
    assert!(ask(&mut local, "restored") == expected && ask(&mut local, "copy") == expected);
    local.keyspace.check_invariants();
    assert_eq!(run(&mut local, "VCARD k"), ":10");
}

#[test]
fn repeated_filters_see_changed_attributes() {
    const ELEMENTS: usize = 3000;
    let mut local = Local::new(Protocol::Resp2);
    let mut random = 1_u64;
    let mut below = move |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    // The attribute of each element, by the element's number. There are more vectors than any search scans exactly.
    let mut model: Vec<Option<u64>> = Vec::new();
    let add = |local: &mut Local, number: usize, attribute: u64| {
        let state = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let floats = (0..48).map(|at| (state.rotate_left(at) & 0xFFFF) as f32 / 32768.0 - 1.0);
        let blob: Vec<u8> = floats.flat_map(f32::to_le_bytes).collect();
        let (name, attributes) = (format!("e{number}"), format!("{{\"n\":{attribute}}}"));
        let words: [&[u8]; 8] =
            [b"VADD", b"k", b"FP32", &blob, name.as_bytes(), b"NOQUANT", b"SETATTR", attributes.as_bytes()];
        reply(local, &words);
    };
    for number in 0..ELEMENTS {
        let attribute = below(100);
        add(&mut local, number, attribute);
        model.push(Some(attribute));
    }
    for round in 0..60 {
        for _ in 0..round % 4 * 20 {
            let number = below(ELEMENTS as u64) as usize;
            let attribute = below(100);
            match (below(4), model[number]) {
                (0, Some(_)) => {
                    run(&mut local, &format!("VREM k e{number}"));
                    model[number] = None;
                }
                (_, None) => {
                    add(&mut local, number, attribute);
                    model[number] = Some(attribute);
                }
                (_, Some(_)) => {
                    run(&mut local, &format!("VSETATTR k e{number} {{\"n\":{attribute}}}"));
                    model[number] = Some(attribute);
                }
            }
        }
        let element = model.iter().position(Option::is_some).unwrap();
        let all = run(&mut local, &format!("VSIM k ELE e{element} TRUTH COUNT {ELEMENTS}"));
        for limit in [1, 10, 50] {
            let matches = |name: &&str| {
                let number = name.strip_prefix('e').and_then(|number| number.parse::<usize>().ok());
                number.and_then(|number| model[number]).is_some_and(|attribute| attribute < limit)
            };
            let expected: Vec<&str> = all.split(' ').filter(matches).take(20).collect();
            let filtered = format!("VSIM k ELE e{element} COUNT 20 FILTER \".n < {limit}\"");
            let exact = run(&mut local, &format!("{filtered} TRUTH"));
            assert!(exact.split(' ').filter(|word| word.starts_with('e')).eq(expected.iter().copied()));
            let near = run(&mut local, &filtered);
            let near: Vec<&str> = near.split(' ').filter(|word| word.starts_with('e')).collect();
            assert_eq!(near.len(), expected.len());
            assert!(near.iter().all(matches), "{near:?}");
        }
    }
}
