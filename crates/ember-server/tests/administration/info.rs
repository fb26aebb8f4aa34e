//! INFO: sections and fields.

use ember_testkit::{RawClient, Value};

use crate::{assert_ok, everywhere, wait_until};

const DEFAULT: [&str; 11] = [
    "Server",
    "Clients",
    "Memory",
    "Persistence",
    "Stats",
    "Replication",
    "CPU",
    "Modules",
    "Errorstats",
    "Cluster",
    "Keyspace",
];

fn titles(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_prefix("# ")).map(str::to_owned).collect()
}

#[test]
fn info_sections_are_selected_by_name() {
    everywhere(&[], |_, client| {
        let about_protocol = client.run("HELLO").get("proto");
        let reply = client.run("INFO");
        assert_eq!(matches!(reply, Value::Verbatim(..)), about_protocol == Some(Value::Integer(3)));
        assert_eq!(titles(&reply.text()), DEFAULT);
        assert_eq!(titles(&client.run("INFO default").text()), DEFAULT);
        assert_eq!(titles(&client.run("INFO everything").text()).len(), 16);
        assert_eq!(titles(&client.run("INFO ALL").text()).len(), 16);
        assert_eq!(titles(&client.run("INFO keyspace server SERVER nothing").text()), ["Server", "Keyspace"]);
        assert_eq!(client.run("INFO nothing").text(), "");
        assert_eq!(client.run("INFO cluster").text(), "# Cluster\r\ncluster_enabled:0\r\n");
    });
}

#[test]
fn info_fields_describe_the_state_of_the_server() {
    everywhere(&[], |server, client| {
        assert_eq!(client.info("redis_version"), "7.2.4");
        assert_eq!(client.info("redis_mode"), "standalone");
        assert_eq!(client.info("process_id"), server.pid().to_string());
        assert_eq!(client.info("tcp_port"), server.port().to_string());
        assert_eq!(client.info("role"), "master");
        assert_eq!(client.info("loading"), "0");
        assert_eq!(client.info("run_id").len(), 40);
        assert!(client.info_number("used_memory_rss") > 1 << 20);
        assert!(client.info("used_cpu_user").parse::<f64>().unwrap() >= 0.0);
    });
}

#[test]
fn watched_and_blocking_keys_are_counted() {
    everywhere(&[], |server, client| {
        let (mut one, mut other) = (server.client(), server.client());
        let (mut popping, mut reading) = (server.client(), server.client());
        assert_ok(&mut one, "WATCH a b");
        assert_ok(&mut other, "WATCH b c");
        client.run("XGROUP CREATE s g $ MKSTREAM");
        popping.send_command(&["BLPOP", "l", "m", "0"]).unwrap();
        let call = ["XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"];
        reading.send_command(&call).unwrap();
        wait_until("two clients wait", || client.info("blocked_clients") == "2");
        assert_eq!(client.info("watching_clients"), "2");
        assert_eq!(client.info("total_watched_keys"), "3");
        assert_eq!(client.info("total_blocking_keys"), "3");
        assert_eq!(client.info("total_blocking_keys_on_nokey"), "1");
        assert_ok(&mut one, "UNWATCH");
        assert_eq!(client.info("watching_clients"), "1");
        assert_eq!(client.info("total_watched_keys"), "2");
        client.run("RPUSH m x");
        client.run("DEL s");
        assert_eq!(client.info("total_blocking_keys"), "0");
        drop(other);
        wait_until("the client is disconnected", || client.info("total_watched_keys") == "0");
        assert_ok(client, "FLUSHALL");
    });
}

#[test]
fn a_call_is_counted_once_however_it_ends() {
    everywhere(&[], |server, client| {
        let counts = |client: &mut RawClient, name: &str| {
            let line = client.info(&format!("cmdstat_{name}"));
            let fields = line.split(',').filter(|field| !field.starts_with("usec"));
            fields.map(str::to_owned).collect::<Vec<_>>().join(",")
        };
        let mut waiting = server.client();
        let id = waiting.run("CLIENT ID").integer().unwrap();
        for how in ["TIMEOUT", "ERROR"] {
            assert_ok(client, "CONFIG RESETSTAT");
            waiting.send_command(&["BLPOP", "l", "0"]).unwrap();
            wait_until("the call waits", || client.info("blocked_clients") == "1");
            client.run(&format!("CLIENT UNBLOCK {id} {how}"));
            assert_eq!(waiting.read_value().unwrap().is_error(), how == "ERROR");
            let failed = u8::from(how == "ERROR");
            assert_eq!(counts(client, "blpop"), format!("calls=1,rejected_calls=0,failed_calls={failed}"));
        }
        assert_eq!(client.info("errorstat_UNBLOCKED"), "count=1");
        assert_ok(client, "CONFIG SET maxmemory 1");
        assert!(client.run("SET a b").text().starts_with("OOM "));
        assert_eq!(counts(client, "set"), "calls=0,rejected_calls=1,failed_calls=0");
        assert_ok(client, "CONFIG SET maxmemory 0");
    });
}

#[test]
fn values_freed_in_the_background_are_counted() {
    everywhere(&[], |_, client| {
        assert_ok(client, "CONFIG RESETSTAT");
        for number in 0..10 {
            assert_ok(client, &format!("SET key:{number} x"));
        }
        assert_ok(client, "FLUSHALL ASYNC");
        wait_until("all keys are freed", || client.info("lazyfreed_objects") == "10");
        assert_eq!(client.info("lazyfree_pending_objects"), "0");
        assert_ok(client, "CONFIG RESETSTAT");
        assert_eq!(client.info("lazyfreed_objects"), "0");
    });
}

#[test]
fn a_stream_of_many_blocks_is_freed_in_the_background_by_unlink() {
    everywhere(&[], |_, client| {
        assert_ok(client, "CONFIG SET stream-node-max-entries 5");
        assert_ok(client, "CONFIG RESETSTAT");
        for (key, entries) in [("small", 5), ("large", 100)] {
            for number in 1..=entries {
                client.run(&format!("XADD {key} {number} f v"));
            }
        }
        assert_eq!(client.run("UNLINK small large"), Value::Integer(2));
        wait_until("one value is freed", || client.info("lazyfreed_objects") == "1");
        assert_eq!(client.info("lazyfree_pending_objects"), "0");
        assert_ok(client, "CONFIG SET stream-node-max-entries 100");
    });
}

#[test]
fn unlink_frees_values_of_many_allocations_in_the_background() {
    everywhere(&["--stream-node-max-entries", "5", "--set-max-listpack-entries", "0"], |_, client| {
        for (given, count) in
            [("XADD k * a b", 400), ("SADD k member", 100), ("ZADD k 1 member", 200), ("HSET k field 1", 600)]
        {
            assert_ok(client, "CONFIG RESETSTAT");
            for number in 0..count {
                let line =
                    given.replace("member", &format!("m{number}")).replace("field", &format!("f{number}"));
                assert!(!client.run(&line).is_error(), "{line}");
            }
            assert_eq!(client.run("UNLINK k"), Value::Integer(1));
            wait_until("the value is freed", || {
                client.info("lazyfreed_objects") == "1" && client.info("lazyfree_pending_objects") == "0"
            });
            // A few allocations are freed directly, because passing them to the background thread would take longer.
            assert!(!client.run(given).is_error());
            assert_eq!(client.run("UNLINK k"), Value::Integer(1));
            assert_eq!(client.info("lazyfree_pending_objects"), "0");
            assert_eq!(client.info("lazyfreed_objects"), "1");
        }
    });
}

#[test]
fn keys_with_fields_that_expire_are_counted_in_their_database() {
    everywhere(&[], |_, client| {
        assert_ok(client, "FLUSHALL");
        let line = |client: &mut RawClient| client.info("db0");
        assert_ok(client, "SET s 1");
        assert_eq!(line(client), "keys=1,expires=0,avg_ttl=0,keys_with_volatile_items=0");
        for key in ["a", "b"] {
            client.run(&format!("HSET {key} f 1 g 2"));
            client.run(&format!("HEXPIRE {key} 100 FIELDS 2 f g"));
        }
        client.run("HSET c f 1");
        assert_eq!(line(client), "keys=4,expires=0,avg_ttl=0,keys_with_volatile_items=2");
        client.run("HPERSIST a FIELDS 1 f");
        client.run("HDEL b f g");
        assert_eq!(line(client), "keys=3,expires=0,avg_ttl=0,keys_with_volatile_items=1");
        client.run("HPERSIST a FIELDS 1 g");
        client.run("MOVE c 1");
        assert_eq!(line(client), "keys=2,expires=0,avg_ttl=0,keys_with_volatile_items=0");
        client.run("FLUSHALL");
    });
}

#[test]
fn the_time_above_the_memory_limit_is_reported() {
    everywhere(&[], |_, client| {
        assert_eq!(client.info("current_eviction_exceeded_time"), "0");
        assert_ok(client, &format!("SET a {}", "x".repeat(100_000)));
        assert_ok(client, "CONFIG SET maxmemory 1000");
        wait_until("the time is counted", || client.info("current_eviction_exceeded_time") != "0");
        assert_ok(client, "CONFIG SET maxmemory 0");
        wait_until("memory is below the limit", || client.info("current_eviction_exceeded_time") == "0");
        assert_ne!(client.info("total_eviction_exceeded_time"), "0");
        assert_ok(client, "FLUSHALL");
        assert_ok(client, "CONFIG RESETSTAT");
    });
}

#[test]
fn turns_of_the_event_loop_are_counted_and_timed() {
    everywhere(&[], |_, client| {
        let number = RawClient::info_number;
        let (cycles, duration) =
            (number(client, "eventloop_cycles"), number(client, "eventloop_duration_sum"));
        for number in 0..100 {
            assert_ok(client, &format!("SET key:{number} x"));
        }
        assert!(number(client, "eventloop_cycles") >= cycles + 100);
        assert!(number(client, "eventloop_duration_sum") > duration);
        // The figure may be 100 ms old.
        wait_until("commands are timed", || number(client, "eventloop_duration_cmd_sum") > 0);
        let commands = number(client, "eventloop_duration_cmd_sum");
        assert!((1..=number(client, "eventloop_duration_sum")).contains(&commands), "{commands}");
        wait_until("a rate is known", || number(client, "instantaneous_eventloop_cycles_per_sec") > 0);
    });
}

#[test]
fn expired_fields_are_counted() {
    everywhere(&[], |_, client| {
        assert_ok(client, "CONFIG RESETSTAT");
        client.run("HSET h a 1 b 2 c 3");
        client.run("HPEXPIRE h 1 FIELDS 2 a b");
        wait_until("the fields are removed", || client.run("HLEN h") == Value::Integer(1));
        wait_until("the fields are counted", || client.info("expired_subkeys") == "2");
        assert_eq!(client.info("expired_keys"), "0");
        client.run("DEL h");
    });
}

#[test]
fn counters_are_summed_over_workers() {
    everywhere(&[], |server, client| {
        assert_ok(client, "FLUSHALL");
        assert_ok(client, "CONFIG RESETSTAT");
        let mut other = server.client();
        for number in 0..50 {
            let asker = if number % 2 == 0 { &mut *client } else { &mut other };
            assert_ok(asker, &format!("SET key:{number} value"));
            assert_eq!(asker.run(&format!("GET key:{number}")).text(), "value");
            asker.run(&format!("GET none:{number}"));
        }
        assert_eq!(client.info("keyspace_hits"), "50");
        assert_eq!(client.info("keyspace_misses"), "50");
        assert!(client.info("cmdstat_get").starts_with("calls=100,usec="));
        assert!(client.info("cmdstat_set").ends_with("rejected_calls=0,failed_calls=0"));
        assert!(client.info("latency_percentiles_usec_get").starts_with("p50="));
        assert_eq!(client.info("db0"), "keys=50,expires=0,avg_ttl=0,keys_with_volatile_items=0");
        client.run("EXPIRE key:0 1000");
        let line = client.info("db0");
        let ttl = line.strip_prefix("keys=50,expires=1,avg_ttl=").unwrap();
        let ttl = ttl.strip_suffix(",keys_with_volatile_items=0").unwrap();
        assert!((900_000..=1_000_000).contains(&ttl.parse().unwrap()), "{line}");
        for line in
            ["HSET h a 1 b 2", "HSET i a 1", "HEXPIRE h 1000 FIELDS 2 a b", "HEXPIRE i 1000 FIELDS 1 a"]
        {
            client.run(line);
        }
        assert!(client.info("db0").ends_with(",keys_with_volatile_items=2"), "{}", client.info("db0"));
        client.run("HPERSIST h FIELDS 2 a b");
        assert!(client.info("db0").ends_with(",keys_with_volatile_items=1"), "{}", client.info("db0"));
    });
}

#[test]
fn histograms_are_kept_only_while_enabled() {
    everywhere(&[], |_, client| {
        assert_ok(client, "CONFIG SET latency-tracking no");
        assert_ok(client, "CONFIG RESETSTAT");
        client.run("GET a");
        assert_eq!(client.run("INFO latencystats").text(), "# Latencystats\r\n");
        assert_eq!(client.run("LATENCY HISTOGRAM get").pairs().unwrap(), []);
        assert_ok(client, "CONFIG SET latency-tracking yes latency-tracking-info-percentiles 50");
        crate::wait_until("all workers use the parameter", || {
            client.run("GET a");
            client.run("INFO latencystats").text().contains("latency_percentiles_usec_get:p50=")
        });
        assert_eq!(
            client.command(&["CONFIG", "SET", "latency-tracking-info-percentiles", "50 99 99.9"]),
            Value::ok()
        );
    });
}

#[test]
fn lolwut_reports_the_same_redis_version_as_info() {
    everywhere(&[], |_, client| {
        let version = client.info("redis_version");
        for line in ["LOLWUT", "LOLWUT 5 6 7 8", "LOLWUT VERSION 2", "LOLWUT VERSION 9"] {
            assert!(client.run(line).text().ends_with(&format!("Redis ver. {version}\n")), "{line}");
        }
    });
}

#[test]
fn clients_and_scripts_see_the_configured_version() {
    for (arguments, version, number) in
        [(&[][..], "7.2.4", 0x0007_0204), (&["--redis-version", "8.10.255"][..], "8.10.255", 0x0008_0AFF)]
    {
        everywhere(arguments, |_, client| {
            assert_eq!(client.info("redis_version"), version);
            assert_eq!(client.run("HELLO").get("version").unwrap().text(), version);
            assert!(client.run("LOLWUT").text().contains(&format!("Redis ver. {version}\n")));
            let script = "return {redis.REDIS_VERSION, redis.REDIS_VERSION_NUM}";
            let expected = Value::Array(vec![Value::from(version), Value::Integer(number)]);
            assert_eq!(client.command(&["EVAL", script, "0"]), expected);
            let library = "#!lua name=v\nlocal v = redis.REDIS_VERSION
                redis.register_function('v', function() return v .. ' ' .. redis.REDIS_VERSION end)";
            client.command(&["FUNCTION", "LOAD", "REPLACE", library]);
            assert_eq!(client.run("FCALL v 0").text(), format!("{version} {version}"));
            assert!(client.run("CONFIG SET redis-version 7.4.0").text().ends_with("immutable config"));
        });
    }
}
