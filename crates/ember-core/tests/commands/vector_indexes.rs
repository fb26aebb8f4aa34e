//! Tests of commands on vector indexes, and of the forms of vector set commands that Redis does not support, which
//! compare the bytes of replies.

use ember_protocol::Protocol;
use emberkv_core::local::Local;
use emberkv_core::turn::Random;

use crate::support::vectors::{check, run};

const OF_GRAPHS: &str = "-ERR M, EF_CONSTRUCTION and EF_SEARCH apply only to indexes of type HNSW";

#[test]
fn indexes_are_created_listed_and_dropped() {
    check(&[
        ("VECTOR.CREATE films DIM 2", "+OK"),
        ("VECTOR.CREATE films DIM 3", "-ERR index already exists"),
        ("VECTOR.CREATE flat DIM 2 TYPE flat DISTANCE l2 QUANT F16", "+OK"),
        ("VADD set VALUES 2 1 0 a", ":1"),
        ("SET text x", "+OK"),
        ("VECTOR.LIST", "*3 $5 films $4 flat $3 set"),
        ("TYPE films", "+vectorset"),
        ("VCARD films", ":0"),
        ("VSIM films VALUES 2 1 0", "*0"),
        ("VECTOR.SEARCH films [1,0] K 3", "*0"),
        ("VECTOR.INFO none", "-ERR no such index"),
        ("VECTOR.INFO text", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("VECTOR.DROP films", "+OK"),
        ("VECTOR.DROP films", "-ERR no such index"),
        ("EXISTS films", ":0"),
        ("VECTOR.CREATE k DIM 0", "-ERR invalid DIM"),
        ("VECTOR.CREATE k TYPE FLAT", "-ERR DIM is missing"),
        ("VECTOR.CREATE k DIM 2 TYPE TREE", "-ERR invalid TYPE"),
        ("VECTOR.CREATE k DIM 2 DISTANCE far", "-ERR invalid DISTANCE"),
        ("VECTOR.CREATE k DIM 2 M 3", "-ERR invalid M"),
        ("VECTOR.CREATE k DIM 2 EF_CONSTRUCTION", "-ERR syntax error"),
        ("VECTOR.CREATE k DIM 2 SPEED 9", "-ERR syntax error"),
        ("VECTOR.CREATE k DIM 2 TYPE IVF NLIST 0", "-ERR invalid NLIST"),
        ("VECTOR.CREATE k DIM 2 TYPE IVF NLIST 65537", "-ERR invalid NLIST"),
        ("VECTOR.CREATE k DIM 2 TYPE IVF NPROBE x", "-ERR invalid NPROBE"),
        ("VECTOR.CREATE k DIM 2 NLIST 9", "-ERR NLIST and NPROBE apply only to indexes of type IVF"),
        (
            "VECTOR.CREATE k DIM 2 TYPE FLAT NPROBE 9",
            "-ERR NLIST and NPROBE apply only to indexes of type IVF",
        ),
        ("VECTOR.CREATE k DIM 2 TYPE FLAT M 9", OF_GRAPHS),
        ("VECTOR.CREATE k DIM 2 EF_CONSTRUCTION 9 TYPE IVF", OF_GRAPHS),
        ("VECTOR.CREATE k DIM 2 TYPE FLAT EF_SEARCH 9", OF_GRAPHS),
        ("EXISTS k", ":0"),
    ]);
}

#[test]
fn elements_are_added_in_any_format_and_removed() {
    check(&[
        ("VECTOR.ADD films alien [1,0]", "-ERR no such index"),
        ("VECTOR.CREATE films DIM 2", "+OK"),
        ("VECTOR.ADD films alien [1,0] PAYLOAD {\"year\":1979}", ":1"),
        ("VECTOR.ADD films brazil \" [ 0 , 1.0e0 ] \" {\"year\":1985}", ":1"),
        ("VECTOR.ADD films cube VALUES 1 1", ":1"),
        ("VECTOR.ADD films dune FP32 \"\\x00\\x00\\x80?\\x00\\x00\\x80?\"", ":1"),
        ("VECTOR.ADD films eraser \"\\x00\\x00\\x80?\\x00\\x00\\x80\\xbf\" {}", ":1"),
        ("VECTOR.ADD films alien [2,0]", ":0"),
        ("VECTOR.ADD films x [1,2,3]", "-ERR vector has 3 dimensions, but the index has 2"),
        ("VECTOR.ADD films x VALUES 1", "-ERR vector has 1 dimensions, but the index has 2"),
        ("VECTOR.ADD films x [1,inf]", "-ERR invalid vector specification"),
        ("VECTOR.ADD films x [1,a]", "-ERR invalid vector specification"),
        ("VECTOR.ADD films x [1,2] a b", "-ERR syntax error"),
        ("VECTOR.GET films alien", "*4 $2 id $5 alien $7 payload $13 {\"year\":1979}"),
        (
            "VECTOR.GET films alien WITHVECTOR",
            "*6 $2 id $5 alien $7 payload $13 {\"year\":1979} $6 vector *2 $1 2 $1 0",
        ),
        ("VECTOR.GET films cube", "*4 $2 id $4 cube $7 payload $-1"),
        ("VECTOR.GET films x", "$-1"),
        ("VECTOR.UPDATE films cube PAYLOAD {\"year\":1997}", ":1"),
        ("VECTOR.UPDATE films x PAYLOAD {}", ":0"),
        ("VECTOR.UPDATE films cube {\"year\":1998}", ":1"),
        ("VECTOR.UPDATE films cube PAYLOAD {\"year\":1997}", ":1"),
        ("VECTOR.UPDATE films cube DATA {}", "-ERR syntax error"),
        ("VECTOR.UPDATE films cube PAYLOAD {} {}", "-ERR syntax error"),
        ("VECTOR.UPDATE films cube", "-ERR wrong number of arguments for 'vector.update' command"),
        ("VGETATTR films cube", "$13 {\"year\":1997}"),
        ("VECTOR.DEL films cube x dune", ":2"),
        ("VECTOR.REINDEX films", "+OK"),
        ("VECTOR.REINDEX films BACKGROUND", "-ERR BACKGROUND is for indexes of type IVF"),
        ("VECTOR.REINDEX films NOW", "-ERR syntax error"),
        ("VECTOR.DEL films alien brazil eraser", ":3"),
        ("VECTOR.LIST", "*1 $5 films"),
        ("VADD films VALUES 2 1 1 x NOQUANT", ":1"),
        ("VREM films x", ":1"),
        ("EXISTS films", ":1"),
    ]);
}

#[test]
fn searches_return_the_requested_results() {
    for kind in ["HNSW", "IVF", "IVF NLIST 1", "FLAT"] {
        let mut local = Local::new(Protocol::Resp2);
        run(&mut local, &format!("VECTOR.CREATE films DIM 2 TYPE {kind}"));
        for (name, vector, payload) in [
            ("alien", "[1,0]", "{\"year\":1979,\"maker\":{\"name\":\"Scott\"}}"),
            ("brazil", "[0,1]", "{\"year\":1985,\"tags\":[\"odd\",\"sad\"]}"),
            ("cube", "[1,1]", "{\"year\":1997}"),
        ] {
            let add = format!("VECTOR.ADD films {name} {vector} PAYLOAD {}", payload.replace('"', "\\\""));
            let add = add.replace("PAYLOAD ", "PAYLOAD \"") + "\"";
            assert_eq!(run(&mut local, &add), ":1", "{add}");
        }
        for (line, expected) in [
            ("VECTOR.SEARCH films [1,0]", "*3 $5 alien $4 cube $6 brazil"),
            ("VECTOR.SEARCH films [1,0] TOP 1", "*1 $5 alien"),
            ("VECTOR.SEARCH films VALUES 1 0 LIMIT 2", "*2 $5 alien $4 cube"),
            ("VECTOR.SEARCH films [1,0] KNN 1 WITHSCORES", "*1 *2 $5 alien $1 1"),
            ("VECTOR.SEARCH films [1,0] K 1 WITHVECTORS", "*1 *2 $5 alien *2 $1 1 $1 0"),
            (
                "VECTOR.SEARCH films [1,0] K 1 RETURN year maker.name none WITHSCORES",
                "*1 *3 $5 alien $1 1 *6 $4 year $4 1979 $10 maker.name $5 Scott $4 none $-1",
            ),
            ("VECTOR.SEARCH films [1,0] FILTER \"year > 1980 AND NOT tags CONTAINS x\"", "*1 $6 brazil"),
            ("VECTOR.SEARCH films [1,0] FILTER \"year >\"", "-ERR syntax error in FILTER expression near:"),
            ("VECTOR.SEARCH films [1,0] K 0", "-ERR invalid K"),
            ("VECTOR.SEARCH films [1,0] K", "-ERR syntax error"),
            ("VECTOR.SEARCH films [1,0,0]", "-ERR vector has 3 dimensions, but the index has 2"),
            ("VECTOR.MSEARCH films VECTORS [1,0] [0,1] K 1", "*1 $4 cube"),
            ("VECTOR.MSEARCH films VECTORS [1,0] [0,1] K 1 AGGREGATE MAX WITHSCORES", "*1 *2 $5 alien $1 1"),
            ("VECTOR.MSEARCH films VECTORS [1,0] [0,1] K 3 AGGREGATE MIN", "*3 $4 cube $5 alien $6 brazil"),
            ("VECTOR.MSEARCH films VECTORS K 3", "-ERR syntax error"),
            ("VECTOR.MSEARCH films [1,0] K 3", "-ERR syntax error"),
            ("VECTOR.MSEARCH films VECTORS [1,0] AGGREGATE SUM", "-ERR invalid AGGREGATE"),
        ] {
            assert_eq!(run(&mut local, line), expected, "{kind}: {line}");
        }
        // An option that belongs to another kind of index is an error.
        for (line, of, expected) in [
            ("VECTOR.SEARCH films VALUES 1 0 LIMIT 2 EF 9", "HNSW", "*2 $5 alien $4 cube"),
            ("VECTOR.MSEARCH films VECTORS [1,0] K 1 EF 9", "HNSW", "*1 $5 alien"),
            ("VECTOR.SEARCH films [1,0] K 1 NPROBE 9", "IVF", "*1 $5 alien"),
        ] {
            let reply = run(&mut local, line);
            if kind.starts_with(of) {
                assert_eq!(reply, expected, "{kind}: {line}");
            } else {
                assert!(reply.ends_with(&format!(" is for indexes of type {of}")), "{kind}: {line}: {reply}");
            }
        }
    }
}

/// Returns the value of a field in the reply of VECTOR.INFO.
fn info_field(local: &mut Local, index: &str, name: &str) -> String {
    let info = run(local, &format!("VECTOR.INFO {index}"));
    info.split_once(&format!(" {name} ")).unwrap().1.split(' ').next().unwrap().to_owned()
}

/// Returns point number `of` among `all` points on a circle.
fn point(of: usize, all: usize) -> String {
    let (sine, cosine) = (of as f64 / all as f64 * std::f64::consts::TAU).sin_cos();
    format!("[{cosine:.5},{sine:.5}]")
}

#[test]
fn lists_are_built_when_there_are_enough_vectors() {
    let mut local = Local::new(Protocol::Resp2);
    assert_eq!(run(&mut local, "VECTOR.CREATE points DIM 2 TYPE IVF NLIST 8 NPROBE 2 QUANT F16"), "+OK");
    for id in 0..39 * 8 {
        assert_eq!(info_field(&mut local, "points", "is_trained"), ":0");
        run(&mut local, &format!("VECTOR.ADD points p{id} {}", point(id, 39 * 8)));
    }
    assert_eq!(info_field(&mut local, "points", "is_trained"), ":1");
    assert_eq!(info_field(&mut local, "points", "nlist"), ":8");
    assert_eq!(info_field(&mut local, "points", "nprobe"), ":2");
    for line in ["REMOVE", "VECTOR.REINDEX points", "VECTOR.REINDEX points BACKGROUND"] {
        if line == "REMOVE" {
            (100..200).for_each(|id| _ = run(&mut local, &format!("VECTOR.DEL points p{id}")));
            run(&mut local, "VECTOR.ADD points p0 [0,0.5]");
        } else {
            assert_eq!(run(&mut local, line), "+OK");
        }
        for (query, expected) in [
            ("[1,0] K 2", "*2 $2 p1 $4 p311"),
            ("[0,1] K 1 NPROBE 1 WITHSCORES", "*1 *2 $2 p0 $1 1"),
            ("[-1,0] K 1 NPROBE 100", "*1 $4 p200"),
        ] {
            assert_eq!(run(&mut local, &format!("VECTOR.SEARCH points {query}")), expected, "{line}");
        }
        local.keyspace.check_invariants();
    }
    assert_eq!(run(&mut local, "VECTOR.SEARCH points [1,0] K 300 NPROBE 1").split(' ').next(), Some("*212"));
    // A dump contains the lists, and RESTORE restores them.
    let payload = local.run(&[b"DUMP", b"points"]);
    let start = payload.windows(2).position(|pair| pair == b"\r\n").unwrap() + 2;
    let payload = payload[start..payload.len() - 2].to_vec();
    assert_eq!(local.run(&[b"RESTORE", b"copy", b"0", &payload]), b"+OK\r\n");
    assert_eq!(info_field(&mut local, "copy", "is_trained"), ":1");
    for query in ["[1,0] K 9 NPROBE 1", "[0.3,-0.9] K 30 NPROBE 2 WITHSCORES WITHVECTORS"] {
        let of = |local: &mut Local, index| run(local, &format!("VECTOR.SEARCH {index} {query}"));
        assert_eq!(of(&mut local, "copy"), of(&mut local, "points"));
    }
    assert_eq!(run(&mut local, "VECTOR.INFO points").len(), run(&mut local, "VECTOR.INFO copy").len() + 2);
    assert_eq!(run(&mut local, "VSIM points VALUES 2 1 0 COUNT 1"), "*1 $2 p1");
    assert_eq!(
        run(&mut local, "VECTOR.MSEARCH points VECTORS [1,0] [0.9,0.1] K 1 NPROBE 8"),
        run(&mut local, "VECTOR.SEARCH points [1.9,0.1] K 1 NPROBE 8")
    );
    run(&mut local, "VECTOR.CREATE graph DIM 2");
    assert_eq!(
        run(&mut local, "VECTOR.SEARCH graph [1,0] NPROBE 4"),
        "-ERR NPROBE is for indexes of type IVF"
    );
    for damaged in 20..payload.len() {
        let mut payload = payload.clone();
        payload.truncate(damaged);
        assert!(local.run(&[b"RESTORE", b"x", b"0", &payload]).starts_with(b"-ERR"));
    }
    local.keyspace.check_invariants();
}

#[test]
fn scores_follow_the_metric() {
    check(&[
        ("VECTOR.CREATE l2 DIM 2 DISTANCE L2", "+OK"),
        ("VECTOR.ADD l2 a [3,4]", ":1"),
        ("VECTOR.SEARCH l2 [0,0] WITHSCORES", "*1 *2 $1 a $1 5"),
        ("VECTOR.MSEARCH l2 VECTORS [0,0] [3,3] AGGREGATE MAX WITHSCORES", "*1 *2 $1 a $1 1"),
        ("VSIM l2 VALUES 2 0 0 WITHSCORES", "*2 $1 a $1 5"),
        ("VECTOR.CREATE ip DIM 2 DISTANCE IP", "+OK"),
        (
            "VSIM ip VALUES 2 1 0 EPSILON 0.5",
            "-ERR EPSILON requires a distance, which the inner product is not",
        ),
        ("VECTOR.ADD ip a [3,4]", ":1"),
        ("VECTOR.SEARCH ip [1,2] WITHSCORES", "*1 *2 $1 a $2 11"),
    ]);
}

#[test]
fn the_original_forms_of_vector_sets_are_accepted() {
    check(&[
        ("VADD k a 1 0 METRIC L2", ":1"),
        ("VADD k b 3 4 QUANT F32", ":1"),
        ("VADD k c 3 4 METRIC IP", "-ERR asked metric mismatch with existing vector set"),
        ("VADD k c 1 2 3", "-ERR Vector dimension mismatch - got 3 but set has 2"),
        ("VADD k c d", "-ERR wrong number of arguments for 'vadd' command"),
        ("VADD k c d e", "-ERR invalid vector specification"),
        ("VSIM k 0 0 COUNT 2 WITHSCORES", "*4 $1 a $1 1 $1 b $1 5"),
        ("VGET k b", "*2 $1 3 $1 4"),
        ("VGET k x", "$-1"),
        ("VADD_BATCH k DIM 2 c 0 1 M 5 5 a 0 0 METRIC L2", ":2"),
        ("VCARD k", ":4"),
        ("VADD_BATCH k DIM 2 BINARY d \"\\x00\\x00\\x80?\\x00\\x00\\x80?\" EF 50", ":1"),
        ("VADD_BATCH k DIM 3 e 1 2 3", "-ERR Vector dimension mismatch - got 3 but set has 2"),
        ("VADD_BATCH k DIM 2 e 1", "-ERR invalid vector specification"),
        ("VADD_BATCH k DIM 2 e 1 x", "-ERR invalid vector specification"),
        ("VADD_BATCH k DIM 2 e 1 2 f 1", "-ERR invalid vector specification"),
        ("VADD_BATCH k DIM x e 1 2", "-ERR invalid DIM"),
        ("VADD_BATCH k BINARY DIM 2 e 1 2", "-ERR syntax error"),
        ("VCARD k", ":5"),
    ]);
}

#[test]
fn an_index_is_dumped_and_restored() {
    let mut local = Local::new(Protocol::Resp2);
    for line in [
        "VECTOR.CREATE films DIM 2 DISTANCE L2 QUANT BF16 M 7 EF_CONSTRUCTION 31 EF_SEARCH 17",
        "VECTOR.ADD films alien [1,0] {\"a\":1}",
        "VECTOR.ADD films brazil [0,1]",
        "VECTOR.CREATE empty DIM 3 TYPE FLAT",
    ] {
        run(&mut local, line);
    }
    for name in ["films", "empty"] {
        let payload = local.run(&[b"DUMP", name.as_bytes()]);
        let start = payload.windows(2).position(|pair| pair == b"\r\n").unwrap() + 2;
        let payload = payload[start..payload.len() - 2].to_vec();
        assert_eq!(local.run(&[b"RESTORE", b"copy", b"0", &payload, b"REPLACE"]), b"+OK\r\n");
        let info = run(&mut local, &format!("VECTOR.INFO {name}"));
        assert_eq!(
            run(&mut local, "VECTOR.INFO copy"),
            info.replace(&format!("${} {name}", name.len()), "$4 copy")
        );
    }
    assert_eq!(
        run(&mut local, "VECTOR.INFO empty"),
        "*28 $4 name $5 empty $8 distance $6 COSINE $4 type $4 FLAT \
        $12 quantization $3 F32 $10 dimensions :3 $7 vectors :0 $6 memory :800 $1 m :0 $15 ef_construction :200 \
        $9 ef_search :50 $5 nlist :0 $6 nprobe :0 $10 is_trained :1 $7 pending :0"
    );
    local.keyspace.check_invariants();
}

#[test]
fn any_arguments_are_answered() {
    const CALLS: [&str; 9] = [
        "VADD",
        "VADD_BATCH",
        "VSIM",
        "VREM",
        "VECTOR.CREATE",
        "VECTOR.ADD",
        "VECTOR.SEARCH",
        "VECTOR.MSEARCH",
        "VECTOR.DEL",
    ];
    const WORDS: [&str; 47] = [
        "k",
        "l",
        "a",
        "b",
        "1",
        "0",
        "-1",
        "2",
        "3",
        "1e38",
        "nan",
        "inf",
        "65537",
        "9223372036854775807",
        "",
        "DIM",
        "FP32",
        "VALUES",
        "REDUCE",
        "ELE",
        "BINARY",
        "METRIC",
        "L2",
        "IP",
        "QUANT",
        "BIN",
        "Q8",
        "F16",
        "M",
        "4",
        "EF",
        "COUNT",
        "K",
        "FILTER",
        ".a > 1",
        "a > 1",
        "RETURN",
        "WITHSCORES",
        "VECTORS",
        "[1,2]",
        "[1",
        "{\"a\":2}",
        "AGGREGATE",
        "TYPE",
        "IVF",
        "NLIST",
        "NPROBE",
    ];
    let mut random = Random::seeded(42);
    let mut local = Local::new(Protocol::Resp3);
    for step in 0..60_000 {
        let mut words = vec![CALLS[random.below(CALLS.len())].as_bytes()];
        // Half of the calls begin with valid arguments.
        match (words[0], random.below(4)) {
            (b"VADD", 0) => words.extend([&b"k"[..], b"VALUES", b"2", b"1", b"2"]),
            (b"VADD", 1) => words.extend([&b"l"[..], b"a", b"1", b"2"]),
            (b"VADD_BATCH", 0) => words.extend([&b"l"[..], b"DIM", b"2", b"a", b"1", b"2"]),
            (b"VSIM", 0) => words.extend([&b"k"[..], b"VALUES", b"2", b"1", b"2"]),
            (b"VECTOR.CREATE", 0) => words.extend([&b"l"[..], b"DIM", b"2"]),
            (b"VECTOR.ADD", 0 | 1) => words.extend([&b"l"[..], b"b", b"[1,2]"]),
            (b"VECTOR.SEARCH", 0 | 1) => words.extend([&b"l"[..], b"[1,2]"]),
            (b"VECTOR.MSEARCH", 0 | 1) => words.extend([&b"l"[..], b"VECTORS", b"[1,2]"]),
            _ => {}
        }
        words.extend((0..random.below(7)).map(|_| WORDS[random.below(WORDS.len())].as_bytes()));
        assert!(words.len() == 1 || !local.run(&words).is_empty());
        if step % 1000 == 0 {
            local.keyspace.check_invariants();
            local.run(&[b"FLUSHALL"]);
        }
    }
}

#[test]
fn requested_fields_are_returned_by_name_even_if_repeated() {
    let path = vec!["a"; 17].join(".");
    let long = "-ERR a field has more than 16 names separated by dots";
    check(&[
        ("VECTOR.CREATE i DIM 2", "+OK"),
        ("VECTOR.ADD i x [1,0] '{\"a\":{\"b\":1,\"c\":\"t\"},\"a.c\":2,\"d\":[1,2]}'", ":1"),
        (
            "VECTOR.SEARCH i [1,0] RETURN d a.b a.c a d none",
            "*1 *2 $1 x *12 $1 d $5 [1,2] $3 a.b $1 1 $3 a.c $1 2 $1 a $15 {\"b\":1,\"c\":\"t\"} $1 d $5 [1,2] $4 none $-1",
        ),
        ("VECTOR.SEARCH i [1,0] FILTER \"a.b=1 AND a.c=2 AND d CONTAINS 2\"", "*1 $1 x"),
        (&format!("VECTOR.SEARCH i [1,0] RETURN {path}"), long),
        (&format!("VECTOR.SEARCH i [1,0] FILTER \"{path}=1\""), long),
        (
            &format!("VECTOR.SEARCH i [1,0] FILTER \"{}a=1\"", "(".repeat(65)),
            "-ERR FILTER is nested more than 64 levels deep",
        ),
    ]);
}
