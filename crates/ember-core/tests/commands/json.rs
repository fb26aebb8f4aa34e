//! Tests of JSON commands, which compare the bytes of replies. The replies equal those of Redis Stack 7.4.1, except where
//! docs/json.md lists a difference.

use ember_protocol::Protocol;
use emberkv_core::local::Local;
use emberkv_core::types::Collection;
use emberkv_core::types::json::{Json, parse};

use crate::support::vectors::{check, run};

const DOCUMENT: &str = r#"JSON.SET k $ {"a":1,"b":[1,2,3],"s":"xy","o":{"p":1},"t":true,"n":null,"f":1.5}"#;
const OTHER_TYPE: &str = "-Existing key has wrong Redis type";
const MISSING_KEY: &str = "-ERR could not perform this operation on a key that doesn't exist";

/// Runs steps after [`DOCUMENT`] and `SET str x`.
fn check_on_document(steps: &[(&str, &str)]) {
    let given = [(DOCUMENT, "+OK"), ("SET str x", "+OK")];
    check(&[&given[..], steps].concat());
}

/// Like [`check_on_document`], in RESP3.
fn check_in_resp3(steps: &[(&str, &str)]) {
    let mut local = Local::new(Protocol::Resp3);
    run(&mut local, DOCUMENT);
    for (line, expected) in steps {
        assert_eq!(run(&mut local, line), *expected, "{line}");
    }
}

#[test]
fn documents_are_set_and_read() {
    check_on_document(&[
        ("TYPE k", "+ReJSON-RL"),
        ("OBJECT ENCODING k", "$3 raw"),
        ("JSON.GET k $.a", "$3 [1]"),
        ("JSON.GET k .a", "$1 1"),
        ("JSON.GET k a", "$1 1"),
        ("JSON.GET k $.q", "$2 []"),
        ("JSON.GET k .q", "-ERR Path '$.q' does not exist"),
        ("JSON.GET none", "$-1"),
        ("JSON.GET k $.a .b", r#"$26 {"$.a":[1],".b":[[1,2,3]]}"#),
        ("JSON.GET k .a b", r#"$20 {".a":1,"b":[1,2,3]}"#),
        ("JSON.GET k .a .q", "-ERR Path '.q' does not exist"),
        ("JSON.GET k $.q[ .f", r#"$12 {".f":[1.5]}"#),
        ("JSON.GET k .q[ .f", r#"$10 {".f":1.5}"#),
        ("JSON.GET k .q .f[", "-ERR Path '.q' does not exist"),
        ("JSON.GET k INDENT > NEWLINE / SPACE _ $.o", r#"$18 [/>{/>>"p":_1/>}/]"#),
        ("JSON.GET k NOESCAPE $.a", "$3 [1]"),
        ("JSON.GET k INDENT", "-ERR wrong number of arguments for 'json.get' command"),
        ("JSON.GET k FORMAT STRING", "-ERR FORMAT argument is not supported on RESP2"),
        ("JSON.SET k $.a 2", "+OK"),
        ("JSON.SET k $.new [{}]", "+OK"),
        ("JSON.SET k $.new[0].x 1", "+OK"),
        ("JSON.SET k $.q.x 1", "$-1"),
        ("JSON.SET k $.a.x 1", "$-1"),
        ("JSON.SET k $.a 3 NX", "$-1"),
        ("JSON.SET k $.z 3 XX", "$-1"),
        ("JSON.SET k $.z 3 NX", "+OK"),
        ("JSON.SET k $.b[9] 1", "-ERR array index out of range"),
        ("JSON.SET k $.b[0] 1 NX", "$-1"),
        ("JSON.SET k $.*.z 1", "-Err wrong static path"),
        ("JSON.SET k $..p 2", "+OK"),
        (
            "JSON.GET k",
            r#"$88 {"a":2,"b":[1,2,3],"s":"xy","o":{"p":2},"t":true,"n":null,"f":1.5,"new":[{"x":1}],"z":3}"#,
        ),
        ("JSON.SET none $.a 1", "-ERR new objects must be created at the root"),
        ("JSON.SET none $ {bad", "-key must be a string at line 1 column 2"),
        ("JSON.SET none $ ''", "-EOF while parsing a value at line 1 column 0"),
        ("JSON.SET none $ 1 XX", "$-1"),
        ("JSON.SET none $ 1 NX XX", "-ERR syntax error"),
        ("JSON.SET none $ 1 what", "-ERR syntax error"),
        ("JSON.SET none $ 1 FORMAT json", "-ERR wrong format"),
        ("JSON.SET str $ 1 FORMAT", "-ERR wrong number of arguments for 'json.set' command"),
        ("JSON.MERGE str $ 1 FORMAT", "-ERR wrong number of arguments for 'json.merge' command"),
        ("JSON.SET none $ 1 FORMAT JSON NX", "+OK"),
        ("JSON.SET none . 2", "+OK"),
        ("JSON.SET none $ 3 NX", "$-1"),
        ("JSON.GET none", "$1 2"),
        ("JSON.SET str $ 1", OTHER_TYPE),
        ("JSON.GET str", OTHER_TYPE),
        ("JSON.SET k $[ 1", "-Error occurred on position 2, \"$[ <<<<----\", the path ends too early."),
        ("JSON.MGET str missing none $", "*3 $-1 $-1 $3 [2]"),
        ("JSON.MGET k .a", "*1 $1 2"),
        ("JSON.MGET k .missing", "*1 $-1"),
        ("JSON.MGET k $[", "*1 $-1"),
        ("JSON.MSET k $.a 7 m $ {} k $.b[0] 8", "+OK"),
        ("JSON.MGET k m $.a", "*2 $3 [7] $2 []"),
        ("JSON.GET k $.b", "$9 [[8,2,3]]"),
        ("JSON.MSET k $.a 9 x $.a 2", "-ERR new objects must be created at the root"),
        ("JSON.MSET k $.a 9 x $ {", "-EOF while parsing an object at line 1 column 1"),
        ("JSON.MSET k $.a 9 k $.b[9] {", "-ERR array index out of range"),
        ("JSON.MSET k $.a 9 x $", "-ERR wrong number of arguments for 'json.mset' command"),
        ("JSON.GET k $.a", "$3 [7]"),
        ("EXISTS x", ":0"),
    ]);
}

#[test]
fn arrays_of_numbers_are_given_a_type_of_floats() {
    check_on_document(&[
        ("JSON.SET k $.a [0.3,3.14159,1,-42.42] FPHA FP16", "+OK"),
        ("JSON.GET k .a", "$20 [0.3,3.14,1.0,-42.4]"),
        ("JSON.SET k $.a [257.0,0.3,2.125] fpha bf16", "+OK"),
        ("JSON.GET k .a", "$16 [256.0,0.3,2.13]"),
        ("JSON.SET k $.a [12.345678912,0.3] NX FPHA FP32", "$-1"),
        ("JSON.SET k $.a [12.345678912,0.3] FPHA FP16 FPHA FP32 XX", "+OK"),
        ("JSON.GET k .a", "$15 [12.345679,0.3]"),
        ("JSON.SET k $.a [12.345678912,1] FORMAT JSON FPHA FP64", "+OK"),
        ("JSON.GET k .a", "$18 [12.345678912,1.0]"),
        // Other numbers keep their values: alone, or in an array with other values.
        ("JSON.SET k $.a {\"x\":3.14159,\"y\":[3.14159,\"s\"],\"z\":[[3.14159],[]]} FPHA FP16", "+OK"),
        ("JSON.GET k .a", r#"$47 {"x":3.14159,"y":[3.14159,"s"],"z":[[3.14],[]]}"#),
        ("JSON.SET k $.a [1,65520] FPHA FP16", "-value out of range for F16 at line 1 column 9"),
        ("JSON.SET k $.a [1e39] FPHA FP32", "-value out of range for F32 at line 1 column 6"),
        ("JSON.SET k $.a [1] FPHA FP8", "-ERR invalid FPHA type"),
        ("JSON.SET k $.a [1] FPHA", "-ERR wrong number of arguments for 'json.set' command"),
        ("JSON.MERGE k $.a [1] FPHA FP16", "-ERR syntax error"),
    ]);
}

#[test]
fn numbers_are_changed_exactly() {
    check_on_document(&[
        ("JSON.NUMINCRBY k $.a 1", "$3 [2]"),
        ("JSON.NUMINCRBY k .a 0.5", "$3 2.5"),
        ("JSON.NUMINCRBY k $.* 1", "$34 [3.5,null,null,null,null,null,2.5]"),
        ("JSON.NUMINCRBY k $.s 1", "$6 [null]"),
        ("JSON.NUMINCRBY k .s 1", "-ERR Path '$.s' does not exist or does not contains a number"),
        ("JSON.NUMINCRBY k $.zz 1", "$2 []"),
        ("JSON.NUMINCRBY k $.a x", "-ERR expected value at line 1 column 1"),
        ("JSON.NUMINCRBY k $.a '\"x\"'", "-bad input number"),
        ("JSON.NUMINCRBY none $.a 1", MISSING_KEY),
        ("JSON.NUMINCRBY str $.a 1", OTHER_TYPE),
        ("JSON.NUMMULTBY k $.f 1e308", "-ERR result is not a number"),
        ("JSON.SET k $.a 9223372036854775807", "+OK"),
        ("JSON.NUMINCRBY k $.a 1", "$21 [9223372036854775808]"),
        ("JSON.TYPE k $.a", "*1 $7 integer"),
        ("JSON.NUMINCRBY k $.a -1", "$21 [9223372036854775807]"),
        ("JSON.NUMMULTBY k $.a 4", "$23 [3.6893488147419103e19]"),
        ("JSON.SET k $.a 18446744073709551615", "+OK"),
        ("JSON.NUMINCRBY k $.a 0", "$22 [18446744073709551615]"),
        ("JSON.NUMINCRBY k $.a 1", "$23 [1.8446744073709552e19]"),
        ("JSON.SET k $.a -9223372036854775808", "+OK"),
        ("JSON.NUMINCRBY k $.a -1", "$23 [-9.223372036854776e18]"),
        ("JSON.SET k $.a 9007199254740992", "+OK"),
        ("JSON.NUMINCRBY k $.a 1", "$18 [9007199254740993]"),
        ("JSON.SET k $.a -0.0", "+OK"),
        ("JSON.NUMMULTBY k $.a 1", "$6 [-0.0]"),
        ("JSON.NUMINCRBY k $.b[0,0,2] 5", "$7 [6,6,8]"),
        ("JSON.GET k $.b", "$9 [[6,2,8]]"),
    ]);
    check_in_resp3(&[
        ("JSON.NUMINCRBY k $.* 1", "*7 :2 _ _ _ _ _ ,2.5"),
        ("JSON.NUMINCRBY k .a 1", "*1 :3"),
        ("JSON.NUMINCRBY k .s 1", "*1 _"),
        ("JSON.NUMINCRBY k .zz 1", "*0"),
    ]);
}

#[test]
fn strings_and_booleans_are_changed() {
    check_on_document(&[
        ("JSON.STRAPPEND k $.* '\"z\"'", "*7 $-1 $-1 :3 $-1 $-1 $-1 $-1"),
        ("JSON.STRAPPEND k .s '\"é\"'", ":5"),
        ("JSON.STRAPPEND k .s 1", "-WRONGTYPE wrong type of path value - expected string but found 1"),
        ("JSON.STRAPPEND k .a '\"z\"'", "-ERR Path '$.a' does not exist or not a string"),
        ("JSON.STRAPPEND k $.s z", "-ERR expected value at line 1 column 1"),
        ("JSON.STRAPPEND none '\"z\"'", MISSING_KEY),
        ("JSON.STRAPPEND str '\"z\"'", OTHER_TYPE),
        ("JSON.STRLEN k $.*", "*7 $-1 $-1 :5 $-1 $-1 $-1 $-1"),
        ("JSON.STRLEN k .s", ":5"),
        ("JSON.STRLEN k .a", "-WRONGTYPE wrong type of path value - expected string but found integer"),
        ("JSON.STRLEN k .zz", "-ERR Path '$.zz' does not exist"),
        ("JSON.STRLEN none .a", "$-1"),
        ("JSON.STRLEN none $.a", MISSING_KEY),
        ("JSON.TOGGLE k $.*", "*7 $-1 $-1 $-1 $-1 :0 $-1 $-1"),
        ("JSON.TOGGLE k .t", "$4 true"),
        ("JSON.TOGGLE k .a", "-ERR Path '$.a' does not exist or not a bool"),
        ("JSON.TOGGLE none $", MISSING_KEY),
        ("JSON.GET k .s .t", r#"$24 {".s":"xyz\xc3\xa9",".t":true}"#),
    ]);
}

#[test]
fn arrays_are_changed() {
    check_on_document(&[
        ("JSON.ARRAPPEND k $.* 4 5", "*7 $-1 :5 $-1 $-1 $-1 $-1 $-1"),
        ("JSON.ARRAPPEND k .b 6", ":6"),
        ("JSON.ARRAPPEND k .a 1", "-ERR Path '.a' does not exist or not an array"),
        ("JSON.ARRAPPEND k .b x", "-expected value at line 1 column 1"),
        ("JSON.ARRAPPEND none $ 1", MISSING_KEY),
        ("JSON.ARRINDEX k $.* 1", "*7 $-1 :0 $-1 $-1 $-1 $-1 $-1"),
        ("JSON.ARRINDEX k .b 2", ":1"),
        ("JSON.ARRINDEX k .b 2.0", ":-1"),
        ("JSON.ARRINDEX k .b 6 -1", ":5"),
        ("JSON.ARRINDEX k .b 6 0 -1", ":-1"),
        ("JSON.ARRINDEX k .a 2", "-WRONGTYPE wrong type of path value - expected array but found integer"),
        ("JSON.ARRINDEX k .zz 2", "-ERR Path '$.zz' does not exist"),
        ("JSON.ARRINDEX none .b 1", "-ERR Path '.b' does not exist"),
        ("JSON.ARRINDEX str .b x", "-ERR expected value at line 1 column 1"),
        ("JSON.ARRINDEX k .b 2 x", "-Couldn't parse as integer"),
        ("JSON.ARRINDEX k .b 2 0 0 0", "-ERR wrong number of arguments for 'json.arrindex' command"),
        ("JSON.ARRINSERT k $.* 1 9", "*7 $-1 :7 $-1 $-1 $-1 $-1 $-1"),
        ("JSON.ARRINSERT k .b 99 1", "-ERR index out of bounds"),
        ("JSON.ARRINSERT k .b -99 1", "-ERR index out of bounds"),
        ("JSON.ARRINSERT k .b -1 '\"q\"'", ":8"),
        ("JSON.ARRINSERT k .b x 1", "-Couldn't parse as integer"),
        ("JSON.ARRINSERT k .a 0 1", "-ERR Path '$.a' does not exist or not an array"),
        ("JSON.GET k .b", "$19 [1,9,2,3,4,5,\"q\",6]"),
        ("JSON.ARRLEN k $.*", "*7 $-1 :8 $-1 $-1 $-1 $-1 $-1"),
        ("JSON.ARRLEN k .b", ":8"),
        ("JSON.ARRLEN k .a", "-ERR Path '.a' does not exist or not an array"),
        ("JSON.ARRLEN k .zz", "-ERR Path '.zz' does not exist"),
        ("JSON.ARRLEN none .b", "$-1"),
        ("JSON.ARRLEN none .[", "$-1"),
        ("JSON.STRLEN none .[", "$-1"),
        ("JSON.OBJKEYS none .[", "$-1"),
        ("JSON.OBJLEN none .[", "$-1"),
        ("JSON.ARRLEN none $.b", MISSING_KEY),
        ("JSON.ARRPOP k $.*", "*7 $-1 $1 6 $-1 $-1 $-1 $-1 $-1"),
        ("JSON.ARRPOP k .b 0", "$1 1"),
        ("JSON.ARRPOP k .b 99", "$3 \"q\""),
        ("JSON.ARRPOP k .b x", "$1 5"),
        ("JSON.ARRPOP k .a", "-ERR Path '$.a' does not exist or not an array"),
        ("JSON.ARRPOP k FORMAT STRINGS $.b", "-ERR FORMAT argument is not supported on RESP2"),
        ("JSON.ARRTRIM k $.* 1 2", "*7 $-1 :2 $-1 $-1 $-1 $-1 $-1"),
        ("JSON.GET k .b", "$5 [2,3]"),
        ("JSON.ARRTRIM k .b 5 9", ":0"),
        ("JSON.ARRPOP k .b", "$-1"),
        ("JSON.ARRPOP k $.b", "*1 $-1"),
        ("JSON.ARRTRIM k .a 0 0", "-ERR Path '$.a' does not exist or not an array"),
        ("JSON.ARRTRIM none .a 0 0", MISSING_KEY),
        ("JSON.ARRAPPEND k $.b [[1],[2]]", "*1 :1"),
        ("JSON.ARRAPPEND k $.b..* 0", "*5 :3 :2 :2 $-1 $-1"),
        ("JSON.GET k .b", "$17 [[[1,0],[2,0],0]]"),
    ]);
}

#[test]
fn objects_are_listed_and_values_removed() {
    check_on_document(&[
        ("JSON.OBJKEYS k", "*7 $1 a $1 b $1 s $1 o $1 t $1 n $1 f"),
        ("JSON.OBJKEYS k $.*", "*7 $-1 $-1 $-1 *1 $1 p $-1 $-1 $-1"),
        ("JSON.OBJKEYS k .a", "-ERR Path '$.a' does not exist or not an object"),
        ("JSON.OBJKEYS k .zz", "$-1"),
        ("JSON.OBJKEYS none", "$-1"),
        ("JSON.OBJKEYS none $", MISSING_KEY),
        ("JSON.OBJLEN k", ":7"),
        ("JSON.OBJLEN k $.*", "*7 $-1 $-1 $-1 :1 $-1 $-1 $-1"),
        ("JSON.OBJLEN k .a", "-WRONGTYPE wrong type of path value - expected object but found integer"),
        ("JSON.OBJLEN k .zz", "$-1"),
        ("JSON.OBJLEN none $.a", "-ERR Path '$.a' does not exist or not an object"),
        ("JSON.TYPE k", "$6 object"),
        ("JSON.TYPE k $.*", "*7 $7 integer $5 array $6 string $6 object $7 boolean $4 null $6 number"),
        ("JSON.TYPE k .zz", "$-1"),
        ("JSON.TYPE none $", "$-1"),
        ("JSON.RESP k $.*", "*7 :1 *4 +[ :1 :2 :3 $2 xy *3 +{ $1 p :1 +true $-1 $3 1.5"),
        ("JSON.RESP k .o", "*3 +{ $1 p :1"),
        ("JSON.RESP k .zz", "-ERR Path '$.zz' does not exist"),
        ("JSON.RESP none", "$-1"),
        ("JSON.DEBUG MEMORY k $.a", "*1 :1"),
        ("JSON.DEBUG MEMORY none", ":0"),
        ("JSON.DEBUG MEMORY none $", "*0"),
        ("JSON.CLEAR k $.*", ":4"),
        ("JSON.GET k", r#"$54 {"a":0,"b":[],"s":"xy","o":{},"t":true,"n":null,"f":0}"#),
        ("JSON.CLEAR k .zz", ":0"),
        ("JSON.DEL k $.b", ":1"),
        ("JSON.DEL k .zz", ":0"),
        ("JSON.FORGET k $..*", ":6"),
        ("JSON.GET k", "$2 {}"),
        ("JSON.CLEAR none", MISSING_KEY),
        ("JSON.DEL k", ":1"),
        ("EXISTS k", ":0"),
        ("JSON.DEL k", ":0"),
        ("JSON.DEL str", OTHER_TYPE),
        ("JSON.SET k $ [0,1,2,3,4,5,6,7,8,9,10,[11]]", "+OK"),
        ("JSON.DEL k $[1,10,1]", ":2"),
        ("JSON.GET k", "$24 [0,2,3,4,5,6,7,8,9,[11]]"),
        ("JSON.DEL k $..*", ":10"),
    ]);
    check_in_resp3(&[
        ("JSON.TYPE k .a", "*1 $7 integer"),
        ("JSON.TYPE k $.zz", "*1 *0"),
        ("JSON.TYPE none", "*1 _"),
        ("JSON.GET k FORMAT EXPAND $.* $.q", "*2 *7 :1 *3 :1 :2 :3 $2 xy %1 $1 p :1 #t _ ,1.5 *0"),
        ("JSON.GET k FORMAT EXPAND1 $.b $.s", "*2 *1 $7 [1,2,3] *1 $4 \"xy\""),
        ("JSON.GET k FORMAT STRINGS $.b", "-ERR wrong reply format"),
        ("JSON.ARRPOP k FORMAT EXPAND $.b", "*1 :3"),
        ("JSON.ARRPOP k FORMAT EXPAND .b", "-Legacy paths are supported only with FORMAT STRINGS"),
        ("JSON.ARRPOP none FORMAT EXPAND .[", "-Legacy paths are supported only with FORMAT STRINGS"),
        (
            "JSON.DEBUG HELP",
            "*2 $42 MEMORY <key> [path] - reports memory usage $34 HELP                - this message",
        ),
    ]);
}

#[test]
fn values_are_merged() {
    check(&[
        ("JSON.MERGE k $.a 1", "-ERR new objects must be created at the root"),
        ("JSON.MERGE k $ {\"a\":null,\"b\":{\"c\":null,\"d\":1}}", "+OK"),
        ("JSON.MERGE k $.b {\"d\":null,\"e\":[1]}", "+OK"),
        ("JSON.GET k", r#"$33 {"a":null,"b":{"c":null,"e":[1]}}"#),
        ("JSON.MERGE k $.z.y 1", "$-1"),
        ("JSON.MERGE k $.q {\"r\":null}", "+OK"),
        ("JSON.MERGE k $.a {\"x\":{\"y\":null}}", "+OK"),
        ("JSON.MERGE k $..x {\"z\":2}", "+OK"),
        ("JSON.GET k", r#"$57 {"a":{"x":{"z":2}},"b":{"c":null,"e":[1]},"q":{"r":null}}"#),
        ("JSON.MERGE k $..* {\"w\":1}", "+OK"),
        ("JSON.GET k $.a", r#"$33 [{"x":{"z":{"w":1},"w":1},"w":1}]"#),
        ("JSON.MERGE k $ 5", "+OK"),
        ("JSON.GET k", "$1 5"),
    ]);
}

#[test]
fn overlapping_and_repeated_matches_leave_a_valid_document() {
    const NESTED: &str =
        r#"{"a":{"a":[{"a":1,"0":[[0],[1,[2]]]},{"a":"x","b":true}],"b":[1,2,3]},"b":[[],{},{"a":2.5}]}"#;
    let paths = [
        "$..*",
        "$..a",
        "$..b",
        "$..[0]",
        "$.a['a','a','b']",
        "$.b[0,0,2]",
        "$..[?(@.a)]",
        "$..[1:,0]",
        "..",
    ];
    let calls = [
        "JSON.SET k % {\"a\":[5]}",
        "JSON.MERGE k % {\"a\":null,\"c\":[1]}",
        "JSON.DEL k %",
        "JSON.CLEAR k %",
        "JSON.NUMINCRBY k % 1",
        "JSON.NUMMULTBY k % 1.5",
        "JSON.TOGGLE k %",
        "JSON.STRAPPEND k % \"yz\"",
        "JSON.ARRAPPEND k % {\"a\":[1]} 2",
        "JSON.ARRINSERT k % 0 [[1]] {}",
        "JSON.ARRPOP k % 0",
        "JSON.ARRTRIM k % 1 1",
    ];
    for call in calls {
        for path in paths {
            let mut local = Local::new(Protocol::Resp2);
            run(&mut local, &format!("JSON.SET k $ {NESTED}"));
            let line = call.replace('%', path);
            let reply = run(&mut local, &line);
            local.keyspace.check_invariants();
            let text = run(&mut local, "JSON.GET k $");
            let text = text.split_once(' ').unwrap().1;
            assert!(parse(text.as_bytes()).is_ok(), "{line} replies {reply} and leaves {text}");
        }
    }
}

#[test]
fn documents_take_little_more_memory_than_their_text() {
    for text in [
        r#"{"id":1234567,"name":"Ann Example","email":"ann@example.org","age":30,"active":true,"tags":["a","b","c"]}"#,
        r#"[[52.5200,13.4050],[48.8566,2.3522],[51.5072,-0.1276],[40.7128,-74.0060]]"#,
        r#"{"prices":[19.99,5.49,100.0,0.5,1299.95],"stock":{"berlin":12,"paris":0,"london":7},"discount":null}"#,
        r#"[0.123456789012,-0.987654321098,0.555555555555,0.111111111111,-0.222222222222,0.333333333333]"#,
    ] {
        let json = Json::new(parse(text.as_bytes()).unwrap().packed);
        assert!(
            json.memory_bytes() * 10 <= text.len() * 13,
            "{} bytes of {}: {text}",
            json.memory_bytes(),
            text.len()
        );
    }
}

#[test]
fn a_document_survives_dump_and_restore_and_counts_its_memory() {
    let mut local = Local::new(Protocol::Resp2);
    run(&mut local, DOCUMENT);
    let payload = local.run(&[b"DUMP", b"k"]);
    let payload = &payload[payload.iter().position(|&byte| byte == b'\n').unwrap() + 1..payload.len() - 2];
    // The payload is that of RedisJSON 2.8, except for the version of the format.
    assert!(payload.starts_with(b"\x07\x81\x45\xe2\x52\x38\xdf\x91\x2c\x03\x05"));
    assert_eq!(local.run(&[b"RESTORE", b"copy", b"0", payload]), b"+OK\r\n");
    assert_eq!(run(&mut local, "JSON.GET copy"), run(&mut local, "JSON.GET k"));
    for number in 0..3000 {
        run(
            &mut local,
            &format!("JSON.ARRAPPEND k $.b {{\"n\":{number},\"text\":\"{}\"}}", "x".repeat(number % 300)),
        );
        if number % 3 == 0 {
            run(&mut local, &format!("JSON.DEL k $.b[{}]", number / 9));
        }
    }
    local.keyspace.check_invariants();
    assert_eq!(run(&mut local, "JSON.ARRLEN k .b"), ":2003");
}
