//! INFO contains the fields of redis-server in the same sections, except for the listed fields, each of which has a
//! reason.

use std::collections::{BTreeMap, BTreeSet};

use ember_peers::{Mode, start_ember, start_redis};
use ember_testkit::{RawClient, Server, wait_until};

/// Fields of redis-server that ember does not have, each with its reason.
const MISSING: &[(&str, &str)] = &[
    ("atomicvar_api", "names the C interface of its atomic counters"),
    ("gcc_version", "names the C compiler; ember is Rust, and ember_version identifies the build"),
];

/// Fields in another section than in the redis-server of the tests.
const MOVED: &[(&str, &str)] = &[];

/// Returns the names of fields by section. Names that depend on data are truncated before their variable part.
fn fields(client: &mut RawClient) -> BTreeMap<String, BTreeSet<String>> {
    let text = client.run("INFO everything").text();
    let mut fields: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            section = title.to_owned();
            fields.entry(section.clone()).or_default();
        } else if let Some((name, _)) = line.split_once(':') {
            fields.get_mut(&section).expect("a title comes first").insert(name.to_owned());
        }
    }
    fields
}

/// Makes fields appear that depend on data.
fn use_server(client: &mut RawClient) {
    for line in ["SET a b EX 100", "GET a", "LPUSH a b", "NOSUCHCOMMAND", "GET"] {
        client.run(line);
    }
}

#[test]
fn no_field_of_redis_is_missing_without_a_reason() {
    let (redis_server, ember_server) = (start_redis(), start_ember(Mode::Concurrent));
    let (mut redis, mut ember) = (redis_server.client(), ember_server.client());
    use_server(&mut redis);
    use_server(&mut ember);
    let (redis, ember) = (fields(&mut redis), fields(&mut ember));
    let wrong = missing(&redis, &ember);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (name, reason) in [MISSING, MOVED].concat() {
        assert!(
            !reason.is_empty() && redis.values().any(|names| names.contains(name)),
            "{name} is not an exception"
        );
    }
    for (name, _) in MISSING {
        assert!(!ember.values().any(|names| names.contains(*name)), "{name} exists: it needs no exception");
    }
}

type Fields = BTreeMap<String, BTreeSet<String>>;

/// Fields of redis-server that ember does not have in the same section, and that are not listed as exceptions.
fn missing(redis: &Fields, ember: &Fields) -> Vec<String> {
    let excepted = |list: &[(&str, &str)], name: &str| list.iter().any(|(excepted, _)| *excepted == name);
    let mut wrong = Vec::new();
    for (section, names) in redis {
        let Some(ours) = ember.get(section) else {
            wrong.push(format!("no section {section}"));
            continue;
        };
        for name in names.difference(ours) {
            if excepted(MISSING, name) {
                continue;
            }
            let elsewhere = ember.iter().find(|(_, ours)| ours.contains(name)).map(|(section, _)| section);
            match elsewhere {
                Some(_) if excepted(MOVED, name) => {}
                Some(elsewhere) => wrong.push(format!("{name} is in {elsewhere}, not in {section}")),
                None => wrong.push(format!("{section} has no {name}")),
            }
        }
    }
    wrong
}

/// Makes `replica` follow `primary`, and runs commands on both that make fields of replication appear.
fn link(primary: &Server, replica: &Server) -> [RawClient; 2] {
    let [mut one, mut other] = [primary.client(), replica.client()];
    for line in ["CONFIG SET repl-diskless-sync-delay 0", "CONFIG SET min-replicas-to-write 1"] {
        one.run(line);
    }
    other.run(&format!("REPLICAOF 127.0.0.1 {}", primary.port()));
    wait_until("the link is up", || other.info("master_link_status") == "up");
    wait_until("the replica follows", || one.run("INFO replication").text().contains("state=online"));
    one.run(&format!("SET key {}", "x".repeat(100_000)));
    wait_until("the replica has the stream", || {
        one.info("master_repl_offset") == other.info("slave_repl_offset")
    });
    [one, other]
}

#[test]
fn a_primary_and_its_replica_have_the_info_fields_of_redis() {
    for mode in [Mode::Concurrent, Mode::Sharded] {
        let [of_redis, of_ember] = [[start_redis(), start_redis()], [start_ember(mode), start_ember(mode)]];
        let [mut redis, mut ember] = [&of_redis, &of_ember].map(|[primary, replica]| link(primary, replica));
        for (redis, ember) in redis.iter_mut().zip(&mut ember) {
            let wrong = missing(&fields(redis), &fields(ember));
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
            for name in ["connected_clients", "connected_slaves", "role", "master_link_status"] {
                // The connection that waited for the startup of the server may still be counted.
                let reported = |client: &mut RawClient| {
                    let text = client.run("INFO").text();
                    text.lines().find(|line| line.starts_with(name)).map(str::to_owned)
                };
                wait_until(name, || reported(redis) == reported(ember));
            }
        }
        for servers in [&mut redis, &mut ember] {
            let [primary, replica] = servers;
            assert_eq!(primary.info("min_slaves_good_slaves"), "1");
            let sent = primary.info_number("total_net_repl_output_bytes");
            let received = replica.info_number("total_net_repl_input_bytes");
            assert!(sent > 100_000 && received > 100_000, "{sent} {received}");
            assert_eq!(primary.info_number("total_net_repl_input_bytes"), 0);
            assert!(replica.info_number("total_net_input_bytes") >= received);
        }
        let [primary, replica] = &mut ember;
        wait_until("nothing is missing", || primary.info("slave0").ends_with(",lag_bytes=0"));
        wait_until("its memory is reported", || primary.info_number("mem_clients_slaves") > 0);
        assert_eq!(replica.info_number("mem_clients_slaves"), 0);
        wait_until("the rate is reported", || {
            primary.run(&format!("SET key {}", "x".repeat(100_000)));
            primary.info("instantaneous_output_repl_kbps") != "0.00"
                && replica.info("instantaneous_input_repl_kbps") != "0.00"
        });
    }
}

/// Fields that Redis 7.2 has and the redis-server of the tests, which may be older, does not have.
const LATER: [(&str, &[&str]); 2] = [
    (
        "Clients",
        &[
            "pubsub_clients",
            "watching_clients",
            "total_watched_keys",
            "total_blocking_keys",
            "total_blocking_keys_on_nokey",
        ],
    ),
    (
        "Stats",
        &[
            "total_net_repl_input_bytes",
            "instantaneous_input_repl_kbps",
            "pubsubshard_channels",
            "reply_buffer_shrinks",
            "eventloop_cycles",
            "eventloop_duration_sum",
            "eventloop_duration_cmd_sum",
            "instantaneous_eventloop_cycles_per_sec",
            "instantaneous_eventloop_duration_usec",
            "acl_access_denied_auth",
            "acl_access_denied_cmd",
            "acl_access_denied_key",
            "acl_access_denied_channel",
        ],
    ),
];

#[test]
fn the_fields_that_redis_7_2_added_are_there() {
    let server = start_ember(Mode::Sharded);
    let fields = fields(&mut server.client());
    for (section, names) in LATER {
        for name in names {
            assert!(fields[section].contains(*name), "{section} has no {name}");
        }
    }
    assert!(fields["Server"].contains("listener0") && fields["Server"].contains("monotonic_clock"));
}
