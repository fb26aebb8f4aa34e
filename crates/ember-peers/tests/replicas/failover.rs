//! FAILOVER between ember and redis-server or valkey-server, under load.

use std::path::PathBuf;

use ember_peers::{Mode, require_program, require_valkey, start_ember, write_while};
use ember_testkit::{Server, Value, wait_until};

use crate::replica::{MODES, link, start_other};

/// The number of times that the roles are exchanged and exchanged back.
const ROUNDS: usize = 4;

fn change_places(mode: Mode, program: PathBuf) {
    let other = start_other(program, &[]);
    let ember = start_ember(mode);
    other.client().run("DEBUG POPULATE 10000 key 10");
    link(&ember, other.address());
    let servers = [&other, &ember];
    let written = write_while(&[other.address(), ember.address()], || {
        for round in 0..ROUNDS {
            let (from, to) = (servers[round % 2], servers[1 - round % 2]);
            let (mut from, mut to) = (from.client(), to.client());
            let before = to.info_number("slave_repl_offset");
            wait_until("enough data are written", || to.info_number("slave_repl_offset") > before + 50_000);
            let port = servers[1 - round % 2].port();
            let line =
                if round < 2 { format!("FAILOVER TO 127.0.0.1 {port}") } else { "FAILOVER".to_owned() };
            assert_eq!(from.run(&line), Value::ok());
            wait_until("the other server is the primary", || to.info("role") == "master");
            wait_until("the old primary follows", || {
                from.info("role") == "slave" && from.info("master_link_status") == "up"
            });
            assert_eq!(from.info("master_failover_state"), "no-failover");
        }
    });
    assert!(written.count() > 100);
    let [mut one, mut another] = [other.client(), ember.client()];
    wait_until("both have the same data", || {
        one.info("master_repl_offset") == another.info("slave_repl_offset")
            && one.run("DEBUG DIGEST") == another.run("DEBUG DIGEST")
    });
    written.check(&mut one);
    written.check(&mut another);
    // The only full sync was ember's, at the beginning.
    assert_eq!([one.info("sync_full"), another.info("sync_full")], ["1", "0"], "{}", ember.log());
}

#[test]
fn redis_and_ember_exchange_roles() {
    for mode in MODES {
        change_places(mode, require_program("redis-server"));
    }
}

#[test]
fn valkey_and_ember_exchange_roles() {
    for mode in MODES {
        change_places(mode, require_valkey());
    }
}

#[test]
fn a_promoted_replica_of_redis_keeps_its_own_replicas() {
    for mode in MODES {
        let redis = start_other(require_program("redis-server"), &[]);
        let (ember, chained) = (start_ember(mode), start_ember(mode));
        let other = start_other(require_program("redis-server"), &[]);
        let digest = |server: &Server| server.client().run("DEBUG DIGEST");
        redis.client().run("DEBUG POPULATE 1000 key 10");
        link(&ember, redis.address());
        link(&chained, ember.address());
        link(&other, ember.address());
        let mut client = redis.client();
        for number in 0..100 {
            client.run(&format!("SELECT {}", number % 16));
            client.run(&format!("RPUSH list {number}"));
        }
        for server in [&ember, &chained, &other] {
            wait_until("all have the same data", || digest(server) == digest(&redis));
            let [mut one, mut another] = [redis.client(), server.client()];
            wait_until("offsets are the same", || {
                one.info("master_repl_offset") == another.info("slave_repl_offset")
            });
            assert_eq!(one.info("master_replid"), another.info("master_replid"));
        }
        // The other servers resume without ember in between.
        for server in [&chained, &other] {
            link(server, redis.address());
        }
        client.run("INCR n");
        for server in [&ember, &chained, &other] {
            wait_until("all have the same data", || digest(server) == digest(&redis));
        }
        assert_eq!([client.info("sync_full"), ember.client().info("sync_full")], ["1", "2"]);
    }
}
