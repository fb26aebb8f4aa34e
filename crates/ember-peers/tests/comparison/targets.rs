//! Files and payloads for the server that `rdb-target` or `ember-cli convert --for` names: Valkey 9 and Redis load them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ember_peers::{field_expiries, require_program, require_valkey};
use ember_testkit::{RawClient, Server, Value, find_ember_cli, find_ember_server, wait_until};

/// A library that uses the name of Valkey's API, both while it is loaded and when its function runs.
const LIBRARY: &str = "#!lua name=lib\nlocal api = server
    server.register_function('f', function(keys) return server.call('SET', keys[1], server.sha1hex('')) end)";

/// A number of fields that exceeds the limits of a listpack.
const MANY: usize = 1000;

fn fresh_folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ember-targets-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn start(program: PathBuf, folder: &Path, arguments: &[&str]) -> Server {
    Server::builder(program).directory(folder).arguments(&["--save", ""]).arguments(arguments).start()
}

fn run(client: &mut RawClient, line: &str) -> Value {
    let reply = client.run(line);
    assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
    reply
}

/// Writes hashes of both encodings with some expiring fields, and values of other types.
fn write(client: &mut RawClient) {
    for line in [
        "HSET small a 1 b 2",
        "HPEXPIREAT small 4000000000000 FIELDS 1 a",
        "SET text hello",
        "SADD set a b 1",
        "ZADD scores 1 a 2 b",
        "RPUSH list a b",
        "XADD stream 1-1 f v",
    ] {
        run(client, line);
    }
    for number in 0..MANY {
        run(client, &format!("HSET large field{number} {number}"));
        if number % 3 == 0 {
            let at_ms = 4_000_000_000_000_u64 + number as u64;
            run(client, &format!("HPEXPIREAT large {at_ms} FIELDS 1 field{number}"));
        }
    }
}

fn convert(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(find_ember_cli()).arg("convert").args(arguments).current_dir(folder).output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Returns the source of the library, and checks that its function runs.
fn check_library(client: &mut RawClient) -> String {
    assert_eq!(client.run("FCALL f 1 digest"), Value::ok());
    assert_eq!(client.run("GET digest").text(), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    run(client, "FUNCTION LIST WITHCODE").elements().unwrap()[0].get("library_code").unwrap().text()
}

fn assert_same_fields(one: &Server, other: &Server) {
    let found = [field_expiries(one), field_expiries(other)];
    assert!(found[0] == found[1] && found[0].len() > MANY / 3, "{found:#?}");
}

#[test]
fn valkey_loads_files_and_payloads_written_for_it() {
    let folder = fresh_folder("valkey");
    let ember = start(find_ember_server(), &folder, &["--rdb-target", "valkey-9"]);
    let mut client = ember.client();
    write(&mut client);
    client.command(&["FUNCTION", "LOAD", LIBRARY]);
    assert_eq!(client.run("SAVE"), Value::ok());
    let valkey = start(require_valkey(), &folder, &[]);
    let mut other = valkey.client();
    assert_eq!(other.run("DBSIZE"), client.run("DBSIZE"), "{}", valkey.log());
    assert_same_fields(&ember, &valkey);
    assert_eq!(check_library(&mut other), LIBRARY);
    for key in ["small", "large", "set", "stream"] {
        let payload = client.command(&["DUMP", key]);
        let call = [b"RESTORE".as_slice(), key.as_bytes(), b"0", payload.bytes().unwrap(), b"REPLACE"];
        assert_eq!(other.command(&call), Value::ok(), "{key}");
        let payload = other.command(&["DUMP", key]);
        let call = [b"RESTORE".as_slice(), key.as_bytes(), b"0", payload.bytes().unwrap(), b"REPLACE"];
        assert_eq!(client.command(&call), Value::ok(), "{key}");
    }
    assert_same_fields(&ember, &valkey);
    drop((ember, valkey));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn valkey_starts_from_the_base_of_an_aof_written_for_it() {
    let folder = fresh_folder("valkey-aof");
    let arguments = ["--appendonly", "yes", "--rdb-target", "valkey-9"];
    let ember = start(find_ember_server(), &folder, &arguments);
    let mut client = ember.client();
    write(&mut client);
    client.command(&["FUNCTION", "LOAD", LIBRARY]);
    run(&mut client, "BGREWRITEAOF");
    wait_until("the AOF is rewritten", || client.info("aof_rewrite_in_progress") == "0");
    run(&mut client, "HPEXPIREAT small 4000000000001 FIELDS 1 b");
    let expected = field_expiries(&ember);
    drop(ember);
    let valkey = start(require_valkey(), &folder, &["--appendonly", "yes"]);
    assert_eq!(field_expiries(&valkey), expected, "{}", valkey.log());
    drop(valkey);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_library_with_the_name_of_valkey_survives_a_round_trip_through_redis() {
    let folder = fresh_folder("library");
    let ember = start(find_ember_server(), &folder, &[]);
    let mut client = ember.client();
    client.command(&["FUNCTION", "LOAD", LIBRARY]);
    assert_eq!(client.run("SAVE"), Value::ok());
    let payload = client.run("FUNCTION DUMP");
    let redis = start(require_program("redis-server"), &folder, &[]);
    let mut other = redis.client();
    assert_ne!(check_library(&mut other), LIBRARY);
    let restore = |client: &mut RawClient, payload: &Value| {
        client.command(&[b"FUNCTION".as_slice(), b"RESTORE", payload.bytes().unwrap(), b"FLUSH"])
    };
    assert_eq!(restore(&mut other, &payload), Value::ok());
    let payload = other.run("FUNCTION DUMP");
    assert_eq!(restore(&mut client, &payload), Value::ok());
    assert_eq!(check_library(&mut client), LIBRARY);
    assert_eq!(other.run("SAVE"), Value::ok());
    drop((ember, redis));
    let ember = start(find_ember_server(), &folder, &[]);
    assert_eq!(check_library(&mut ember.client()), LIBRARY);
    drop(ember);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_is_converted_for_another_server() {
    let folder = fresh_folder("convert");
    let ember = start(find_ember_server(), &folder, &["--dbfilename", "ember.rdb"]);
    let mut client = ember.client();
    write(&mut client);
    client.command(&["FUNCTION", "LOAD", LIBRARY]);
    assert_eq!(client.run("SAVE"), Value::ok());
    let output = convert(&folder, &["ember.rdb", "--output", "dump.rdb", "--for", "valkey-9"]);
    assert!(output.status.success(), "{}", said(&output));
    let valkey = start(require_valkey(), &folder, &[]);
    assert_same_fields(&ember, &valkey);
    assert_eq!(check_library(&mut valkey.client()), LIBRARY);
    assert_eq!(valkey.client().run("SAVE"), Value::ok());
    drop(valkey);
    // When a file of Valkey is converted, data that Redis 7.2 does not support is reported, and omitted on request.
    let arguments = ["dump.rdb", "--output", "old.rdb", "--for", "redis-7.2"];
    let output = convert(&folder, &arguments);
    let message = "redis-7.2 has no hash fields that expire: the keys";
    assert!(!output.status.success() && said(&output).contains(message), "{}", said(&output));
    assert!(!folder.join("old.rdb").exists());
    let output = convert(&folder, &[&arguments[..], &["--leave-out"]].concat());
    assert!(output.status.success() && said(&output).contains("left out: hash fields"), "{}", said(&output));
    let bytes = std::fs::read(folder.join("old.rdb")).unwrap();
    assert!(bytes.starts_with(b"REDIS0011"));
    let old = start(require_valkey(), &folder, &["--dbfilename", "old.rdb"]);
    assert_eq!(old.client().run("HLEN large"), Value::Integer(MANY as i64));
    assert!(field_expiries(&old).is_empty());
    drop((ember, old));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_aof_is_converted_for_another_server() {
    let folder = fresh_folder("convert-aof");
    let ember = start(find_ember_server(), &folder, &["--appendonly", "yes"]);
    let mut client = ember.client();
    write(&mut client);
    run(&mut client, "BGREWRITEAOF");
    wait_until("the AOF is rewritten", || client.info("aof_rewrite_in_progress") == "0");
    client.command(&["FUNCTION", "LOAD", LIBRARY]);
    run(&mut client, "HPEXPIREAT small 4000000000001 FIELDS 1 b");
    let expected = field_expiries(&ember);
    drop(ember);
    for (target, wanted) in [("valkey-9", true), ("redis-7.2", false)] {
        let output = convert(&folder, &["appendonlydir", "--output", target, "--for", target]);
        assert_eq!(output.status.success(), wanted, "{}", said(&output));
    }
    let arguments = ["--appendonly", "yes", "--appenddirname", "valkey-9"];
    let valkey = start(require_valkey(), &folder, &arguments);
    assert_eq!(field_expiries(&valkey), expected, "{}", valkey.log());
    assert_eq!(check_library(&mut valkey.client()), LIBRARY);
    drop(valkey);
    std::fs::remove_dir_all(folder).unwrap();
}
