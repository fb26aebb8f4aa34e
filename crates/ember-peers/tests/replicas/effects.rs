//! Replicated changes other than ordinary commands of clients: functions, effects of scripts, and evictions.

use std::path::PathBuf;

use ember_peers::{require_program, require_valkey};
use ember_testkit::{RawClient, Server, Value};

use crate::matrix::{assert_same_contents, in_both_modes};
use crate::replica::link;

/// The number of commands sent at once, fewer than fit in the socket buffers.
const BATCH: usize = 50;

/// The number of keys that are written under eviction: several times as many as fit in memory.
const KEYS: usize = 20_000;

fn library(name: &str, result: u32) -> String {
    format!(
        "#!lua name={name}\nredis.register_function('{name}', function(keys, args)
            redis.call('INCRBY', keys[1], {result})
            redis.call('RPUSH', keys[2], redis.call('TIME')[1], redis.call('SRANDMEMBER', 'set') or 'none')
            redis.call('PEXPIRE', keys[1], 100000)
            return {result} end)"
    )
}

fn functions(client: &mut RawClient) -> Vec<String> {
    let listed = client.run("FUNCTION LIST WITHCODE");
    let mut functions: Vec<String> = listed.elements().unwrap().iter().map(ember_testkit::render).collect();
    functions.sort();
    functions
}

fn call(client: &mut RawClient, name: &str) {
    let reply = client.command(&["FCALL", name, "2", "counter", "list"]);
    assert!(reply.integer().is_some(), "{reply:?}");
}

fn run_functions(ember: &Server, other: &Server) {
    let (mut one, mut another) = (ember.client(), other.client());
    one.run("SADD set a b c d e");
    one.command(&["FUNCTION", "LOAD", &library("before", 1)]);
    one.command(&["FUNCTION", "LOAD", &library("gone", 2)]);
    link(other, ember.address());
    assert_eq!(functions(&mut one), functions(&mut another), "the full sync has them");
    let check = |one: &mut RawClient, another: &mut RawClient| {
        assert_same_contents(ember, other);
        assert_eq!(functions(one), functions(another), "{}", other.log());
    };
    one.command(&["FUNCTION", "LOAD", &library("behind", 3)]);
    one.command(&["FUNCTION", "LOAD", "REPLACE", &library("before", 4)]);
    for name in ["before", "behind", "gone"] {
        call(&mut one, name);
    }
    assert_eq!(one.run("FUNCTION DELETE gone"), Value::ok());
    check(&mut one, &mut another);
    let kept = one.run("FUNCTION DUMP");
    assert_eq!(one.run("FUNCTION FLUSH"), Value::ok());
    check(&mut one, &mut another);
    let restored = one.command(&[b"FUNCTION".as_slice(), b"RESTORE", kept.bytes().unwrap(), b"FLUSH"]);
    assert_eq!(restored, Value::ok());
    one.run("MULTI");
    one.run("FCALL before 2 counter list");
    one.run("SET behind 1");
    one.run("EXEC");
    // Scripts are replicated as their effects, whichever command calls them.
    let script =
        "for _, key in ipairs(KEYS) do redis.call('SET', key, redis.call('SPOP', 'set') or ARGV[1]) end
        return redis.call('DBSIZE')";
    let digest = one.command(&["SCRIPT", "LOAD", script]).text();
    for _ in 0..4 {
        one.command(&["EVAL", script, "2", "x", "y", "last"]);
        one.command(&["EVALSHA", &digest, "2", "y", "z", "last"]);
    }
    check(&mut one, &mut another);
    assert_eq!(one.info("sync_full"), "1", "{}", other.log());
}

#[test]
fn redis_receives_functions_and_scripts() {
    in_both_modes(Some(|| require_program("redis-server")), &[], true, |_, ember, redis| {
        run_functions(ember, redis);
    });
}

#[test]
fn valkey_receives_functions_and_scripts() {
    in_both_modes(Some(require_valkey), &[], true, |_, ember, valkey| run_functions(ember, valkey));
}

fn evict(program: Option<fn() -> PathBuf>) {
    in_both_modes(program, &[], true, |_, ember, other| {
        let mut client = ember.client();
        link(other, ember.address());
        let limit = client.info_number("used_memory") + (4 << 20);
        client.run("CONFIG SET maxmemory-policy allkeys-lru");
        client.run(&format!("CONFIG SET maxmemory {limit}"));
        let value = "x".repeat(1000);
        let calls: Vec<Vec<String>> =
            (0..KEYS).map(|number| vec!["SET".to_owned(), format!("key:{number}"), value.clone()]).collect();
        for calls in calls.chunks(BATCH) {
            client.pipeline(calls).unwrap();
        }
        assert!(client.info_number("evicted_keys") > KEYS as u64 / 2);
        assert_same_contents(ember, other);
        assert_eq!(client.run("DBSIZE"), other.client().run("DBSIZE"));
        assert_eq!(client.info("sync_full"), "1", "{}", other.log());
    });
}

#[test]
fn ember_receives_evictions() {
    evict(None);
}

#[test]
fn redis_receives_evictions() {
    evict(Some(|| require_program("redis-server")));
}

#[test]
fn valkey_receives_evictions() {
    evict(Some(require_valkey));
}
