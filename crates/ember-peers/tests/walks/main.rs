//! Walks through README and the step-by-step pages: every command runs in order, as a reader would type it.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use ember_peers::{PORTS, Walk, require_program, tools_directory, write_while};
use ember_testkit::{RawClient, Value, find_ember_cli, find_ember_server, wait_until};

const REDIS: &str = PORTS[0];
const EMBER: &str = PORTS[1];

/// The environment variable with which the README's server is built. Without it, the programs of the current build are
/// copied to the build's output folder, and cargo only checks that all dependencies exist.
const BUILD_VARIABLE: &str = "WALK_BUILDS";

/// Cargo settings for a quicker release build: the walk tests the steps, not the speed of the result.
const QUICK_RELEASE: [(&str, &str); 5] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "64"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
    ("CARGO_PROFILE_RELEASE_INCREMENTAL", "true"),
];

/// A script that replaces cargo in `make run` when nothing is built: it only checks that the packages and all their
/// dependencies exist.
const RESOLVING_CARGO: &str = "#!/bin/sh
[ \"$*\" = 'build --release -p ember-server -p ember-cli' ] || { echo \"unexpected: cargo $*\" >&2; exit 1; }
exec cargo tree --quiet --locked -p ember-server -p ember-cli >/dev/null
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn document(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn fresh_folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("ember-walk-{name}-{}", std::process::id()))
}

/// Creates a walk with the programs of ember and Redis.
fn walk(name: &str) -> Walk {
    let python = tools_directory().join("python/bin/python");
    let programs = [
        ("ember-server", find_ember_server()),
        ("ember-cli", find_ember_cli()),
        ("redis-server", require_program("redis-server")),
        ("redis-cli", require_program("redis-cli")),
        ("python", python),
    ];
    Walk::new(fresh_folder(name), &programs)
}

fn end(mut walk: Walk) {
    walk.stop_all();
    let folder = walk.folder().to_owned();
    drop(walk);
    fs::remove_dir_all(folder).unwrap();
}

/// Copies all files that are under version control, or will be with the next commit, with their modification times, so
/// that a second build is short.
fn copy_of_the_repository(to: &Path) {
    let text = "git ls-files -z --cached --others --exclude-standard --deduplicate |
        while IFS= read -r -d '' path; do [ ! -e \"$path\" ] || printf '%s\\0' \"$path\"; done |
        tar --create --null --files-from - | tar --extract --directory \"$1\"";
    let status = Command::new(require_program("bash"))
        .args(["-euo", "pipefail", "-c", text, "bash"])
        .arg(to)
        .current_dir(root())
        .status()
        .unwrap();
    assert!(status.success(), "the repository cannot be copied");
}

/// Makes `make run` in the copy build into a folder that is reused by the next test run.
fn build_into(walk: &mut Walk, target: &Path) {
    fs::create_dir_all(target).unwrap();
    symlink(target, walk.folder().join("target")).unwrap();
    QUICK_RELEASE.iter().for_each(|(name, value)| walk.set(name, value));
}

/// Copies the programs of the current build to the folder where `make run` in the copy expects its results.
fn build_nothing(walk: &mut Walk, place: &Path) {
    let release = walk.folder().join("target/release");
    fs::create_dir_all(&release).unwrap();
    symlink(find_ember_server(), release.join("ember-server")).unwrap();
    symlink(find_ember_cli(), release.join("ember-cli")).unwrap();
    let cargo = place.join("cargo");
    fs::write(&cargo, RESOLVING_CARGO).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    walk.set("CARGO", &cargo.display().to_string());
}

#[test]
fn the_readme_leads_from_a_fresh_copy_to_a_server() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fresh");
    let mut walk = Walk::new(place.join("ember"), &[]);
    copy_of_the_repository(walk.folder());
    if std::env::var_os(BUILD_VARIABLE).is_some() {
        build_into(&mut walk, &place.join("target"));
    } else {
        build_nothing(&mut walk, &place);
    }
    // `make test` is skipped, because the tests must not run inside a test.
    let count = walk.follow(&document("README.md"), |line| line == "make test");
    assert_eq!(count, 6, "README.md");
    let tests = walk.run("make --dry-run test");
    assert!(tests.contains("test --workspace --no-fail-fast"), "{tests}");
    // The last server has loaded the data that the first one has saved.
    assert_eq!(walk.client(PORTS[0]).run("GET hello"), Value::from("world"));
    let policy = walk.client(PORTS[1]).run("CONFIG GET maxmemory-policy");
    assert_eq!(policy.get("maxmemory-policy"), Some(Value::from("allkeys-lru")));
    walk.stop_all();
}

#[test]
fn getting_started_can_be_followed() {
    let text = document("docs/getting-started.md");
    let mut walk = walk("getting-started");
    let is_build = |line: &str| line.starts_with("cargo build ");
    let count = walk.follow(&text, is_build);
    assert!(count > 15, "{count}");
    let mut client = walk.client(EMBER);
    assert!(client.run("GET private").is_error());
    assert_eq!(client.run("AUTH open-sesame"), Value::ok());
    assert_eq!(client.run("GET private"), Value::from("yes"));
    end(walk);
    let manifest = document("crates/ember-server/Cargo.toml");
    let features = manifest.split("[features]").nth(1).unwrap();
    for line in text.lines().filter(|line| is_build(line)) {
        let mut words = line.split(' ').skip_while(|word| *word != "--features");
        for feature in words.nth(1).unwrap_or_default().split(',').filter(|name| !name.is_empty()) {
            assert!(features.contains(&format!("\n{feature} = [")), "{line}: no feature {feature}");
        }
    }
}

#[test]
fn encrypted_connections_can_be_set_up() {
    let mut walk = walk("tls");
    let text = document("docs/tls.md");
    let (first, second) = text.split_once("## Passwords instead").unwrap();
    assert!(walk.follow(first, |_| false) >= 13);
    let shop = "ember-cli -p 6380 --tls --cacert ca.crt --cert shop.crt --key shop.key";
    assert_eq!(walk.run(&format!("{shop} ACL WHOAMI")), "shop\n");
    assert_eq!(walk.run(&format!("{shop} SET cart:1 apples")), "OK\n");
    assert!(walk.run(&format!("{shop} GET hello")).starts_with("NOPERM"));
    let unknown = walk.run("ember-cli -p 6380 --tls --cacert ca.crt PING 2>&1 || true");
    assert!(unknown.contains("the server requires a client certificate"), "{unknown}");
    // Without `-extfile` a certificate has version 1, and the server explains what to change.
    walk.run("openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out old-server.crt");
    let refused = walk.run(
        "timeout 20 ember-server --port 0 --tls-port 6379 --tls-cert-file old-server.crt --tls-key-file server.key \
         --tls-ca-cert-file ca.crt 2>&1 || true",
    );
    assert!(refused.contains("version 3 is needed") && refused.contains("-extfile"), "{refused}");
    assert!(walk.follow(second, |_| false) >= 4);
    end(walk);
}

/// Returns the section of a document below a heading.
fn section<'t>(text: &'t str, heading: &str) -> &'t str {
    let (_, rest) = text.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    rest.split("\n## ").next().unwrap()
}

/// Creates data of all types in two databases, with expiries and binary values.
fn fill(client: &mut RawClient) {
    for line in [
        "SET greeting hello",
        "SET user:1 alice EX 5000",
        "HSET user:2 name bob city Lund",
        "RPUSH queue one two three",
        "SADD numbers 1 2 3",
        "ZADD scores 1.5 ann 2.5 bob",
        "XADD log 5-1 field value",
        "SELECT 1",
        "SET elsewhere yes",
        "SELECT 0",
    ] {
        let reply = client.run(line);
        assert!(!reply.is_error(), "{line}: {reply:?}");
    }
    assert_eq!(client.command(&[&b"SET"[..], b"user:3", b"\x00\r\n\xff"]), Value::ok());
    let library = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    assert!(!client.command(&["FUNCTION", "LOAD", library]).is_error());
}

/// Returns the contents of a server: the keys of both databases with their values and expiries, and the number of
/// libraries.
fn contents(client: &mut RawClient) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for database in ["0", "1"] {
        assert_eq!(client.command(&["SELECT", database]), Value::ok());
        for key in client.run("KEYS *").elements().unwrap() {
            let key = key.text();
            let value = match client.command(&["TYPE", &key]).text().as_str() {
                "string" => client.command(&["GET", &key]),
                "hash" => client.command(&["HGETALL", &key]),
                "list" => client.command(&["LRANGE", &key, "0", "-1"]),
                "set" => client.command(&["SORT_RO", &key]),
                "zset" => client.command(&["ZRANGE", &key, "0", "-1", "WITHSCORES"]),
                "stream" => client.command(&["XRANGE", &key, "-", "+"]),
                other => panic!("{key} is a {other}"),
            };
            all.insert(format!("{database} {key}"), value);
            all.insert(format!("{database} {key} expires"), client.command(&["PEXPIRETIME", &key]));
        }
    }
    let libraries = client.run("FUNCTION LIST").elements().unwrap().len();
    all.insert("libraries".to_owned(), Value::Integer(libraries as i64));
    all
}

/// Creates a walk with two folders, and starts a server with data in one of them; also returns the data.
fn with_data(name: &str, line: &str, port: &str) -> (Walk, BTreeMap<String, Value>) {
    let mut walk = walk(name);
    walk.run("mkdir redis ember");
    walk.run(line);
    let mut client = walk.client(port);
    fill(&mut client);
    let all = contents(&mut client);
    (walk, all)
}

#[test]
fn redis_is_migrated_to_ember_and_back_under_load() {
    let (mut walk, all) = with_data("replication", "redis-server --port 6379 --dir redis", REDIS);
    let text = document("docs/migration.md");
    let (current, old) = section(&text, "Replication").split_once("If you may not use").unwrap();
    let (there, back) = current.split_once("in the same way:").unwrap();
    // The server listens before it receives writes.
    let start = "ember-server --port 6380 --dir ember";
    walk.run(start);
    let addresses = [REDIS, EMBER].map(|port| walk.address(port));
    let written = write_while(&addresses, || {
        assert!(walk.follow(there, |line| line == start) >= 5);
        assert_eq!(walk.client(REDIS).info("role"), "slave");
        let before = walk.client(EMBER).info_number("master_repl_offset");
        let mut ember = walk.client(EMBER);
        wait_until("ember is written to", || ember.info_number("master_repl_offset") > before + 10_000);
        assert_eq!(walk.follow(back, |_| false), 2);
        let before = walk.client(REDIS).info_number("master_repl_offset");
        let mut redis = walk.client(REDIS);
        wait_until("Redis is written to", || redis.info_number("master_repl_offset") > before + 10_000);
    });
    let (mut ember, mut redis) = (walk.client(EMBER), walk.client(REDIS));
    wait_until("ember has the whole stream", || {
        redis.info("master_repl_offset") == ember.info("slave_repl_offset")
    });
    for client in [&mut ember, &mut redis] {
        written.check(client);
        let now = contents(client);
        for (name, value) in &all {
            assert_eq!(now.get(name), Some(value), "{name}");
        }
    }
    // Tests the migration without FAILOVER.
    assert_eq!(walk.follow(old, |_| false), 1);
    assert_eq!(ember.run("SET written-on-ember yes"), Value::ok());
    wait_until("Redis has it", || redis.run("GET written-on-ember").text() == "yes");
    end(walk);
}

#[test]
fn data_moves_into_stores_and_out_of_them() {
    let (mut walk, all) = with_data("stores", "redis-server --port 6379 --dir redis", REDIS);
    let text = document("docs/migration.md");
    let text = section(&text, "Migration to and from a store");
    let (into, rest) = text.split_once("With `cp").unwrap();
    let (from_map, out) = rest.split_once("To migrate from a store").unwrap();
    assert_eq!(walk.follow(into, |_| false), 5);
    let mut ember = walk.client(EMBER);
    assert_eq!((ember.info("ember_store").as_str(), contents(&mut ember)), ("redb", all.clone()));
    // Data that was written to this store is migrated to the next.
    assert_eq!(ember.run("SET written-in-redb yes"), Value::ok());
    let more = contents(&mut ember);
    assert_eq!(walk.follow(from_map, |_| false), 6);
    let mut ember = walk.client(EMBER);
    let found = (ember.info("ember_store"), ember.run("GET kept-by").text());
    assert_eq!(found, ("redb".to_owned(), "map".to_owned()));
    assert_eq!(walk.follow(out, |_| false), 7);
    let mut ember = walk.client(EMBER);
    assert_eq!((ember.info("ember_store").as_str(), contents(&mut ember)), ("lmdb", more));
    // `map` still opens the copy.
    walk.run("ember-server --port 6380 --store map --path ember/copy");
    assert_eq!(walk.client(EMBER).run("GET kept-by"), Value::from("map"));
    end(walk);
}

#[test]
fn tiers_are_enabled_and_disabled() {
    let mut walk = walk("tiers");
    walk.run("mkdir ember");
    let text = document("docs/migration.md");
    let (with, without) =
        section(&text, "Migration to and from tiers").split_once("ember-cli -p 6380 SHUTDOWN").unwrap();
    assert_eq!(walk.follow(with, |_| false), 2);
    let tier = |walk: &Walk| walk.client(EMBER).run("TIERING TIER page:1").text();
    wait_until("the value is cold", || tier(&walk) != "hot");
    assert_eq!(walk.follow(&format!("```sh\nember-cli -p 6380 SHUTDOWN{without}"), |_| false), 3);
    assert_eq!(walk.client(EMBER).run("GET page:1"), Value::from("demoted and still readable"));
    end(walk);
}

#[test]
fn redis_moves_to_ember_by_rdb_file() {
    let (mut walk, all) = with_data("rdb", "redis-server --port 6379 --dir redis", REDIS);
    let text = document("docs/migration.md");
    let (first, second) = section(&text, "RDB file").split_once("If you cannot read").unwrap();
    for part in [first, second] {
        assert!(walk.follow(part, |_| false) >= 3);
        assert_eq!(contents(&mut walk.client(EMBER)), all);
    }
    end(walk);
}

#[test]
fn redis_moves_to_ember_by_append_only_file() {
    let (mut walk, all) = with_data("aof", "redis-server --port 6379 --dir redis --appendonly yes", REDIS);
    assert!(walk.follow(section(&document("docs/migration.md"), "Append-only file"), |_| false) >= 4);
    assert_eq!(contents(&mut walk.client(EMBER)), all);
    end(walk);
}

#[test]
fn redis_moves_to_ember_key_by_key() {
    let (mut walk, mut all) = with_data("keys", "redis-server --port 6379 --dir redis", REDIS);
    assert!(walk.follow(section(&document("docs/migration.md"), "Single keys"), |_| false) >= 3);
    all.retain(|name, _| name.starts_with("0 user:") || name.contains("greeting") || name.contains("queue"));
    all.insert("libraries".to_owned(), Value::Integer(0));
    assert_eq!(contents(&mut walk.client(EMBER)), all);
    end(walk);
}

#[test]
fn ember_moves_back_to_redis() {
    let text = document("docs/migration.md");
    let (by_rdb, by_aof) = section(&text, "Return to Redis").split_once("By append-only file").unwrap();
    for (name, part) in [("back-by-rdb", by_rdb), ("back-by-aof", by_aof)] {
        let (mut walk, all) = with_data(name, "ember-server --port 6380 --dir ember --appendonly yes", EMBER);
        assert!(walk.follow(part, |_| false) >= 4);
        assert_eq!(contents(&mut walk.client(REDIS)), all);
        end(walk);
    }
    // Migrates key by key, with programs and ports exchanged, as the page describes.
    let (mut walk, mut all) = with_data("back-by-keys", "ember-server --port 6380 --dir ember", EMBER);
    walk.run("redis-server --port 6379 --dir redis");
    let script =
        section(&text, "Single keys").split("```bash\n").nth(1).unwrap().split("```").next().unwrap();
    let exchanged = script
        .replace("redis-cli", "<ember>")
        .replace("ember-cli", "redis-cli")
        .replace("<ember>", "ember-cli")
        .replace(REDIS, "<ember>")
        .replace(EMBER, REDIS)
        .replace("<ember>", EMBER);
    walk.run(&exchanged);
    all.retain(|name, _| name.starts_with("0 user:"));
    all.insert("libraries".to_owned(), Value::Integer(0));
    assert_eq!(contents(&mut walk.client(REDIS)), all);
    end(walk);
}
