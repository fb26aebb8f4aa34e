//! Payloads of DUMP from one server are restored by the other.

use ember_peers::{Mode, start_ember, start_redis};
use ember_testkit::{RawClient, Value};

/// The highest footer version that redis-server 7.0 reads.
const PEER_VERSION_MAX: u8 = 10;

/// Payloads end with two bytes of version and eight of checksum.
const FOOTER_BYTES: usize = 10;

pub(crate) struct Case {
    pub(crate) key: &'static str,
    pub(crate) lines: Vec<String>,
    /// Commands whose replies show the value.
    show: &'static [&'static str],
    /// Whether the peer is too old for the format that ember writes.
    pub(crate) is_newer: bool,
}

fn list_of(command: &str, count: usize, element: impl Fn(usize) -> String) -> String {
    (0..count).fold(command.to_owned(), |line, number| line + " " + &element(number))
}

fn case(key: &'static str, lines: &[&str], show: &'static [&'static str]) -> Case {
    Case { key, lines: lines.iter().map(|&line| line.to_owned()).collect(), show, is_newer: false }
}

pub(crate) fn cases() -> Vec<Case> {
    let large = "x".repeat(40_000);
    let mut stream: Vec<String> =
        (1..=250).map(|number| format!("XADD stream {number}-1 f {number} g{} v", number % 3)).collect();
    stream.extend(
        [
            "XDEL stream 3-1 250-1",
            "XGROUP CREATE stream one 0",
            "XGROUP CREATE stream two 100-1 ENTRIESREAD 99",
            "XREADGROUP GROUP one alice COUNT 5 STREAMS stream >",
            "XREADGROUP GROUP one bob COUNT 3 STREAMS stream >",
        ]
        .map(str::to_owned),
    );
    let show_stream =
        &["XRANGE stream - +", "XINFO GROUPS stream", "XPENDING stream one", "XINFO STREAM stream"];
    vec![
        case("int", &["SET int 12"], &["GET int"]),
        case("large-int", &["SET large-int -9223372036854775808"], &["GET large-int"]),
        case("text", &["SET text hello"], &["GET text"]),
        case("empty", &["SET empty \"\""], &["GET empty"]),
        case("repeated", &[&format!("SET repeated {}", "ab".repeat(5000))], &["GET repeated"]),
        case("large", &[&format!("SET large {large}")], &["GET large"]),
        case("list", &["RPUSH list a 1 -5 70000 \"\\x00\\xff\" \"\""], &["LRANGE list 0 -1"]),
        case(
            "long-list",
            &[&list_of("RPUSH long-list", 3000, |number| format!("element:{number}"))],
            &["LRANGE long-list 0 -1"],
        ),
        case("wide-list", &[&format!("RPUSH wide-list a {large} b")], &["LRANGE wide-list 0 -1"]),
        case("intset", &["SADD intset 3 1 70000000000"], &["SMEMBERS intset"]),
        Case { is_newer: true, ..case("set", &["SADD set a b 1"], &["SORT set ALPHA"]) },
        case(
            "large-set",
            &[&list_of("SADD large-set", 300, |number| format!("m{number}"))],
            &["SORT large-set ALPHA"],
        ),
        case("zset", &["ZADD zset 1 a 2.5 b -inf c inf d 3 7"], &["ZRANGE zset 0 -1 WITHSCORES"]),
        case(
            "large-zset",
            &[&list_of("ZADD large-zset", 300, |number| format!("{}.25 m{number}", number * 7 % 300))],
            &["ZRANGE large-zset 0 -1 WITHSCORES"],
        ),
        case("hash", &["HSET hash f v 1 2"], &["HGETALL hash"]),
        case(
            "large-hash",
            &[&list_of("HSET large-hash", 600, |number| format!("f{number} {number}"))],
            &["HLEN large-hash", "HMGET large-hash f0 f599 f600"],
        ),
        Case { key: "stream", lines: stream, show: show_stream, is_newer: true },
    ]
}

/// Returns a server's replies about a key, omitting elapsed times and facts that only one of the servers reports.
pub(crate) fn described(client: &mut RawClient, case: &Case) -> Vec<Value> {
    let mut described: Vec<Value> = case.show.iter().map(|line| client.run(line)).collect();
    for value in &mut described {
        assert!(!value.is_error(), "{}: {value:?}", case.key);
        if let Some(groups) = value.get("groups") {
            // In the reply to XINFO STREAM the layout of entries differs between servers, but not their number.
            *value = Value::Array(vec![
                groups,
                value.get("length").unwrap_or(Value::Null),
                value.get("last-generated-id").unwrap_or(Value::Null),
                value.get("max-deleted-entry-id").unwrap_or(Value::Null),
                value.get("entries-added").unwrap_or(Value::Null),
            ]);
        }
    }
    described.push(client.command(&["DEBUG", "DIGEST-VALUE", case.key]));
    described
}

/// Creates the value of a case at `source` and restores it at `target`, if that is possible.
fn exchange(source: &mut RawClient, target: &mut RawClient, case: &Case) -> Result<(), Value> {
    for client in [&mut *source, &mut *target] {
        client.command(&["FLUSHALL"]);
    }
    for line in &case.lines {
        let reply = source.run(line);
        assert!(!reply.is_error(), "{line}: {reply:?}");
    }
    let payload = source.command(&["DUMP", case.key]);
    let payload = payload.bytes().expect("the key exists").to_vec();
    let restored = target.command(&[b"RESTORE", case.key.as_bytes(), b"0", &payload]);
    if restored != Value::ok() {
        assert!(payload[payload.len() - FOOTER_BYTES] > PEER_VERSION_MAX, "{}: {restored:?}", case.key);
        return Err(restored);
    }
    assert_eq!(described(source, case), described(target, case), "{}", case.key);
    Ok(())
}

#[test]
fn ember_restores_payloads_of_redis() {
    let (redis_server, ember_server) = (start_redis(), start_ember(Mode::Concurrent));
    let (mut redis, mut ember) = (redis_server.client(), ember_server.client());
    for case in cases() {
        let restored = exchange(&mut redis, &mut ember, &case);
        assert_eq!(restored, Ok(()), "{}", case.key);
    }
}

#[test]
fn redis_restores_payloads_of_ember_in_supported_formats() {
    let (redis_server, ember_server) = (start_redis(), start_ember(Mode::Concurrent));
    let (mut redis, mut ember) = (redis_server.client(), ember_server.client());
    for case in cases() {
        let restored = exchange(&mut ember, &mut redis, &case);
        assert_eq!(restored.is_err(), case.is_newer, "{}", case.key);
    }
}
