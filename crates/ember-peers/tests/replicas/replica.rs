//! ember as a replica of redis-server.

use std::net::SocketAddr;
use std::path::PathBuf;

use ember_peers::{Mode, Writer, contents, differences, require_program, start_ember};
use ember_testkit::{Proxy, RawClient, Server, Value, becomes_true, wait_until};

use crate::matrix::unreplicated;

pub(crate) const MODES: [Mode; 2] = [Mode::Concurrent, Mode::Sharded];

/// The number of commands that are written in each test and mode.
const COMMANDS: usize = 20_000;

fn start_redis(arguments: &[&str]) -> Server {
    start_other(require_program("redis-server"), arguments)
}

/// Starts redis-server or a compatible program.
pub(crate) fn start_other(program: PathBuf, arguments: &[&str]) -> Server {
    let fixed = ["--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"];
    Server::builder(program).arguments(&fixed).arguments(arguments).start()
}

/// Makes `replica` a replica of the server at `primary`, and waits for the link.
pub(crate) fn link(replica: &Server, primary: SocketAddr) {
    replicaof(replica, primary);
    wait_for_link(replica);
}

pub(crate) fn replicaof(replica: &Server, primary: SocketAddr) {
    let line = format!("REPLICAOF {} {}", primary.ip(), primary.port());
    assert_eq!(replica.client().run(&line), Value::ok());
}

pub(crate) fn wait_for_link(replica: &Server) {
    let mut client = replica.client();
    wait_until("the link is up", || {
        assert_not_stopped(replica, &mut client);
        client.info("master_link_status") == "up"
    });
}

/// Panics if replication has stopped with an error, which would make a test wait until its timeout.
pub(crate) fn assert_not_stopped(replica: &Server, client: &mut RawClient) {
    let is_stopped = client.run("INFO replication").text().contains("ember_link_stopped");
    assert!(!is_stopped, "{}", replica.log());
}

/// Waits until the replica has applied all writes of the primary, and compares all data: first by digests, which is
/// quick, and key by key if these differ. Digests may differ because only large sorted sets store the sign of a zero.
pub(crate) fn assert_same(primary: &Server, replica: &Server) {
    let (mut one, mut other) = (primary.client(), replica.client());
    let (mut offsets, mut found) = ([String::new(), String::new()], String::new());
    // Redis may delete expired keys later, and counts them until then, so the comparison is repeated.
    let is_same = becomes_true(|| {
        assert_not_stopped(replica, &mut other);
        offsets = [one.info("master_repl_offset"), other.info("slave_repl_offset")];
        if offsets[0] != offsets[1] {
            return false;
        }
        if one.run("DEBUG DIGEST") == other.run("DEBUG DIGEST") {
            return true;
        }
        let [here, there] = [primary, replica].map(|server| contents(server, unreplicated(primary)));
        found = differences(&here, &there);
        found.is_empty()
    });
    assert!(is_same, "the replica differs from its primary, at offsets {offsets:?}:\n{found}");
}

#[test]
fn a_replica_has_the_data_and_the_changes_of_redis() {
    for mode in MODES {
        for diskless in ["yes", "no"] {
            let redis = start_redis(&["--repl-diskless-sync", diskless]);
            let ember = start_ember(mode);
            ember.client().run("SET gone 1");
            ember.client().run("FUNCTION LOAD #!lua name=old\nredis.register_function('old',function()end)");
            let library = "#!lua name=lib\nredis.register_function('one', function() return 1 end)";
            redis.client().command(&["FUNCTION", "LOAD", library]);
            let mut writer = Writer::new(&redis, 7);
            writer.write(COMMANDS / 2);
            redis.client().run("DEBUG POPULATE 50000 many 100");
            replicaof(&ember, redis.address());
            // These commands are written during the full sync and after it.
            writer.write(COMMANDS);
            wait_for_link(&ember);
            writer.write(COMMANDS / 2);
            assert_same(&redis, &ember);
            let functions = [&ember, &redis].map(|server| server.client().run("FUNCTION LIST WITHCODE"));
            assert_eq!(functions[0], functions[1]);
        }
    }
}

#[test]
fn scripts_transactions_and_expiry_are_replicated() {
    for mode in MODES {
        let redis = start_redis(&[]);
        let ember = start_ember(mode);
        link(&ember, redis.address());
        let mut client = redis.client();
        for number in 0..200 {
            let script = "for i = 1, 10 do redis.call('RPUSH', KEYS[1], ARGV[1] .. i) end return redis.call('SPOP', 'set')";
            client.command(&["EVAL", script, "1", &format!("list{}", number % 7), &number.to_string()]);
            client.run(&format!("SADD set {number}"));
            client.run(&format!("SET soon{number} x PX {}", 1 + number % 20));
            client.run(&format!("SELECT {}", number % 16));
        }
        // The primary deletes the keys when they have expired.
        let mut reader = ember.client();
        for database in 0..16 {
            reader.run(&format!("SELECT {database}"));
            client.run(&format!("SELECT {database}"));
            wait_until("expired keys are removed", || {
                let left = client.run("KEYS soon*");
                left == Value::Array(Vec::new()) && reader.run("DBSIZE") == client.run("DBSIZE")
            });
        }
        assert_same(&redis, &ember);
    }
}

#[test]
fn an_interrupted_full_sync_is_repeated() {
    for mode in MODES {
        let redis = start_redis(&[]);
        redis.client().run("DEBUG POPULATE 20000 key 100");
        let ember = start_ember(mode);
        ember.client().run("SET old 1");
        let proxy =
            Proxy::cutting(
                redis.address(),
                |number| if number < 3 { 100_000 * (number + 1) } else { u64::MAX },
            );
        link(&ember, proxy.address());
        assert_same(&redis, &ember);
        assert_eq!(proxy.connections(), 4);
        assert_eq!(ember.client().run("EXISTS old"), Value::Integer(0));
    }
}

#[test]
fn a_replica_authenticates_and_reports_a_wrong_password() {
    for mode in MODES {
        let redis = start_redis(&["--requirepass", "secret"]);
        redis.client().run("AUTH secret");
        let ember = start_ember(mode);
        ember.client().run("CONFIG SET masterauth wrong");
        replicaof(&ember, redis.address());
        wait_until("the log has the reason", || ember.log().contains("replied to AUTH with '-WRONGPASS"));
        assert_eq!(ember.client().info("master_link_status"), "down");
        ember.client().run("CONFIG SET masterauth secret");
        wait_for_link(&ember);
        let mut client = redis.client();
        client.run("AUTH secret");
        client.run("ACL SETUSER copier on >other +psync +replconf +ping");
        ember.client().run("REPLICAOF NO ONE");
        ember.client().run("CONFIG SET masteruser copier masterauth other");
        link(&ember, redis.address());
    }
}

#[test]
fn unknown_commands_stop_the_link() {
    for mode in MODES {
        let redis = start_redis(&[]);
        let ember = start_ember(mode);
        link(&ember, redis.address());
        // An unknown command, such as one of a module.
        redis.client().run("SET before 1");
        redis.client().run("DEBUG REPLICATE NOSUCH COMMAND");
        redis.client().run("SET behind 1");
        wait_until("the link is down", || ember.client().info("master_link_status") == "down");
        let why = ember.client().info("ember_link_stopped");
        assert!(why.contains("command 'NOSUCH' at offset"), "{why}");
        assert!(ember.log().contains("command 'NOSUCH' at offset"));
        assert_eq!(ember.client().run("EXISTS before behind"), Value::Integer(1));
        // Only an operator's command restarts replication.
        assert_eq!(ember.client().run("REPLICAOF NO ONE"), Value::ok());
        let another = start_redis(&[]);
        link(&ember, another.address());
        assert_eq!(ember.client().run("DBSIZE"), Value::Integer(0));
    }
}

#[test]
fn wait_counts_a_replica_that_has_the_write() {
    for mode in MODES {
        let redis = start_redis(&[]);
        let ember = start_ember(mode);
        link(&ember, redis.address());
        let mut client = redis.client();
        client.run("SET a 1");
        assert_eq!(client.run("WAIT 1 10000"), Value::Integer(1));
        client.run("MULTI");
        client.run("SET a 2");
        client.run("INCR a");
        client.run("EXEC");
        assert_eq!(client.run("WAIT 1 10000"), Value::Integer(1));
        assert_eq!(ember.client().run("GET a").text(), "3");
        assert!(redis.client().info("slave0").starts_with("ip=127.0.0.1"));
    }
}
