//! Determines all data of a server that is visible to clients and that its replicas must also have. It covers more than
//! DEBUG DIGEST.

use std::collections::BTreeMap;

use ember_testkit::{RawClient, Server, Value, quote};

use crate::exceptions::comparable_contents;

/// The default number of databases in all servers.
const DATABASES: usize = 16;

/// The maximum number of pending entries of a consumer group that are compared.
const PENDING_MAX: &str = "100000";

/// Returns a line about each key of all databases, by database and key. Omits everything that depends on the age or the
/// encoding of a value, because a replica may differ, and the fields of stream groups that `left_out` names. O(all
/// data).
pub fn contents(server: &Server, left_out: &[&str]) -> BTreeMap<String, String> {
    let mut client = server.client();
    let mut lines = BTreeMap::new();
    for database in 0..DATABASES {
        assert_eq!(client.run(&format!("SELECT {database}")), Value::ok(), "there are 16 databases");
        let keys = client.run("KEYS *");
        for key in keys.elements().unwrap_or_default().iter().filter_map(Value::bytes) {
            lines.insert(format!("{database} {}", quote(key)), line(&mut client, key, left_out));
        }
    }
    lines
}

/// Returns the expiry times of hash fields, by database and key, for hashes with such fields. O(all data); the server
/// must support field expiry.
pub fn field_expiries(server: &Server) -> BTreeMap<String, String> {
    let mut client = server.client();
    let mut lines = BTreeMap::new();
    for database in 0..DATABASES {
        client.run(&format!("SELECT {database}"));
        let keys = client.run("KEYS *");
        for key in keys.elements().unwrap_or_default().iter().filter_map(Value::bytes) {
            let fields = client.command(&[b"HKEYS", key]);
            let mut fields: Vec<&[u8]> =
                fields.elements().unwrap_or_default().iter().filter_map(Value::bytes).collect();
            fields.sort_unstable();
            let count = fields.len().to_string();
            let mut words = vec![b"HPEXPIRETIME".as_slice(), key, b"FIELDS", count.as_bytes()];
            words.extend(&fields);
            // Values of other types have no fields.
            let times = client.command(&words);
            let times = fields.iter().zip(times.elements().unwrap_or_default());
            for (field, time) in times.filter(|(_, time)| time.integer() != Some(-1)) {
                lines.insert(format!("{database} {} {}", quote(key), quote(field)), render(time));
            }
        }
    }
    lines
}

/// Returns the first differing lines.
pub fn differences(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> String {
    let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
    let different = keys.filter(|key| one.get(*key) != other.get(*key)).take(5);
    let shown =
        |line: Option<&String>| line.map_or("nothing".to_owned(), |line| line.chars().take(2000).collect());
    different.fold(String::new(), |text, key| {
        text + &format!("{key}:\n  {}\n  {}\n", shown(one.get(key)), shown(other.get(key)))
    })
}

/// Formats a value on one line.
fn render(value: &Value) -> String {
    ember_testkit::render(value).replace('\n', " ")
}

fn line(client: &mut RawClient, key: &[u8], left_out: &[&str]) -> String {
    let mut ask = |words: &[&[u8]]| client.command(words);
    let kind = ask(&[b"TYPE", key]).text();
    let expires = render(&ask(&[b"PEXPIRETIME", key]));
    let words: &[&[u8]] = match kind.as_str() {
        "stream" => return format!("stream expires {expires}: {}", stream(client, key, left_out)),
        "list" => &[b"LRANGE", key, b"0", b"-1"],
        "set" => &[b"SMEMBERS", key],
        "zset" => &[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"],
        "hash" => &[b"HGETALL", key],
        "ReJSON-RL" => &[b"JSON.GET", key],
        "MBbloom--" => &[b"BF.SCANDUMP", key, b"1"],
        "MBbloomCF" => &[b"CF.SCANDUMP", key, b"1"],
        "CMSk-TYPE" => &[b"CMS.INFO", key],
        "TopK-TYPE" => &[b"TOPK.LIST", key, b"WITHCOUNT"],
        "TDIS-TYPE" => &[b"TDIGEST.MAX", key],
        _ => &[b"GET", key],
    };
    let mut value = render(&comparable_contents(&kind, &ask(words)));
    if kind == "zset" {
        // Small sorted sets do not store the sign of zero, large ones do: a replica's copy may have the small encoding
        // although the original was converted to the large one.
        value = value.replace("\"-0\"", "\"0\"");
    }
    format!("{kind} expires {expires}: {value}")
}

/// Formats the fields of a map in RESP2 form, omitting the fields that `left_out` names.
fn fields_without(map: &Value, left_out: &[&str]) -> String {
    let words = map.elements().unwrap_or_default();
    let kept = words.chunks(2).filter(|pair| !left_out.contains(&pair[0].text().as_str()));
    kept.map(|pair| format!("{} {} ", pair[0].text(), render(&pair[1]))).collect()
}

/// Formats the entries and groups of a stream, with consumers and pending entries, but without times.
fn stream(client: &mut RawClient, key: &[u8], left_out: &[&str]) -> String {
    let mut ask = |words: &[&[u8]]| client.command(words);
    let forms = ["radix-tree-keys", "radix-tree-nodes"];
    let mut text = fields_without(&ask(&[b"XINFO", b"STREAM", key]), &forms);
    text += &render(&ask(&[b"XRANGE", key, b"-", b"+"]));
    for group in ask(&[b"XINFO", b"GROUPS", key]).elements().unwrap_or_default() {
        text += &fields_without(group, left_out);
        let name = group.elements().and_then(|words| words[1].bytes()).unwrap_or_default();
        let mut consumers: Vec<String> = Vec::new();
        for consumer in ask(&[b"XINFO", b"CONSUMERS", key, name]).elements().unwrap_or_default() {
            consumers.push(fields_without(consumer, &["idle", "inactive"]));
        }
        consumers.sort();
        let pending = ask(&[b"XPENDING", key, name, b"-", b"+", PENDING_MAX.as_bytes()]);
        for message in pending.elements().unwrap_or_default() {
            let parts: Vec<String> = message.elements().unwrap_or_default().iter().map(Value::text).collect();
            text += &format!("{} {} {}; ", parts[0], parts[1], parts[3]);
        }
        text += &consumers.concat();
    }
    text
}
