//! Cold values: commands that need no value, commands that fetch it, and the records that are freed with their keys.

use ember_testkit::{RawClient, Server, http_get, wait_until};

use crate::{MODES, builder, demote, figure, shown, start};

/// A key of each type, with the call that creates it and a call that reads its value.
const TYPES: [(&str, &str, &str); 13] = [
    (
        "SET string 0123456789012345678901234567890123456789012345678901234567890123456789",
        "string",
        "GET string",
    ),
    ("RPUSH list a b c 4", "list", "LRANGE list 0 -1"),
    ("SADD set 1 2 3 x", "set", "SISMEMBER set x"),
    ("ZADD zset 1 a 2 b", "zset", "ZRANGE zset 0 -1 WITHSCORES"),
    ("HSET hash a 1 b 2", "hash", "HGETALL hash"),
    ("XADD stream 1-1 a b", "stream", "XRANGE stream - +"),
    ("VADD vectorset VALUES 2 1 0 east", "vectorset", "VCARD vectorset"),
    ("JSON.SET json $ [1,{\"a\":2}]", "json", "JSON.GET json"),
    ("BF.ADD bloom a", "bloom", "BF.SCANDUMP bloom 1"),
    ("CF.ADD cuckoo a", "cuckoo", "CF.SCANDUMP cuckoo 1"),
    ("CMS.INITBYDIM counts 8 3", "counts", "CMS.INFO counts"),
    ("TOPK.RESERVE top 3", "top", "TOPK.INFO top"),
    ("TDIGEST.CREATE digest", "digest", "TDIGEST.INFO digest"),
];

fn fill(client: &mut RawClient) {
    client.run("FLUSHALL");
    for (make, ..) in TYPES {
        assert!(!client.run(make).is_error(), "{make}");
    }
}

fn tier(client: &mut RawClient, key: &str) -> String {
    client.command(&["TIERING", "TIER", key]).text()
}

#[test]
fn commands_on_entries_fetch_no_values() {
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        fill(&mut client);
        for (_, key, _) in TYPES {
            let questions =
                ["TYPE", "OBJECT ENCODING", "MEMORY USAGE", "TTL", "EXISTS", "OBJECT IDLETIME", "TOUCH"];
            let questions: Vec<String> = questions.iter().map(|name| format!("{name} {key}")).collect();
            let before: Vec<String> = questions.iter().map(|line| shown(&mut client, line)).collect();
            demote(&mut client, key);
            let after: Vec<String> = questions.iter().map(|line| shown(&mut client, line)).collect();
            assert_eq!(before, after, "{key}");
            assert_eq!(shown(&mut client, &format!("EXPIRE {key} 1000")), "(integer) 1");
            assert_eq!(shown(&mut client, &format!("PERSIST {key}")), "(integer) 1");
            assert_ne!(tier(&mut client, key), "hot", "{key}: no command has read it");
        }
        assert_eq!(client.run("SCAN 0 COUNT 1000").elements().unwrap().len(), 2);
        assert_eq!(client.run("KEYS *").elements().unwrap().len(), TYPES.len());
        assert_eq!(figure(&mut client, "cold_keys"), TYPES.len() as u64);
        assert_eq!(figure(&mut client, "fetches"), 0);
        for (_, key, _) in TYPES {
            assert_eq!(shown(&mut client, &format!("DEL {key}")), "(integer) 1");
        }
        assert_eq!((figure(&mut client, "cold_keys"), figure(&mut client, "fetches")), (0, 0));
    }
}

#[test]
fn values_are_fetched_unchanged_with_their_encodings() {
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        fill(&mut client);
        for (_, key, read) in TYPES {
            let (value, encoding) =
                (shown(&mut client, read), shown(&mut client, &format!("OBJECT ENCODING {key}")));
            demote(&mut client, key);
            assert_eq!(shown(&mut client, read), value);
            assert_eq!(tier(&mut client, key), "hot");
            assert_eq!(shown(&mut client, &format!("OBJECT ENCODING {key}")), encoding);
        }
        assert_eq!(figure(&mut client, "fetches"), TYPES.len() as u64);
    }
}

#[test]
fn large_values_of_all_types_are_fetched_completely() {
    let server = start(MODES[0]);
    let mut client = server.client();
    let fill = "for i = 1, 20000 do redis.call('RPUSH', 'list', i .. ':' .. string.rep('x', i % 50)) \
                redis.call('SADD', 'set', 'm' .. i) redis.call('ZADD', 'zset', i / 7, 'm' .. i) \
                redis.call('HSET', 'hash', 'f' .. i, string.rep('v', i % 90)) \
                redis.call('XADD', 'stream', i .. '-1', 'field', i) end \
                redis.call('SET', 'string', string.rep('large', 100000))";
    assert!(!client.command(&["EVAL", fill, "0"]).is_error());
    let digest = shown(&mut client, "DEBUG DIGEST");
    for key in ["list", "set", "zset", "hash", "stream", "string"] {
        demote(&mut client, key);
    }
    assert_eq!(shown(&mut client, "DEBUG DIGEST"), digest);
    for line in ["LLEN list", "SCARD set", "ZCARD zset", "HLEN hash", "XLEN stream"] {
        assert_eq!(shown(&mut client, line), "(integer) 20000");
    }
    assert_eq!(shown(&mut client, "STRLEN string"), "(integer) 500000");
    assert_eq!(shown(&mut client, "DEBUG DIGEST"), digest);
    assert_eq!(figure(&mut client, "cold_keys"), 0);
}

#[test]
fn transactions_and_scripts_find_all_values() {
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        fill(&mut client);
        for (_, key, _) in TYPES {
            demote(&mut client, key);
        }
        client.run("MULTI");
        for (_, _, read) in TYPES {
            client.run(read);
        }
        client.run("SELECT 1");
        let replies = client.run("EXEC");
        assert!(replies.elements().unwrap().iter().all(|reply| !reply.is_error()), "{replies:?}");
        client.run("SELECT 0");
        demote(&mut client, "string");
        demote(&mut client, "list");
        let script = "return {#redis.call('GET', KEYS[1]), redis.call('LLEN', 'list')}";
        let reply = client.command(&["EVAL", script, "1", "string"]);
        assert_eq!(ember_testkit::render(&reply).trim_end(), "1) (integer) 70\n2) (integer) 4");
        demote(&mut client, "string");
        // Demoting and fetching a value does not abort a transaction that watches its key.
        assert_eq!(shown(&mut client, "WATCH string"), "OK");
        shown(&mut client, "STRLEN string");
        demote(&mut client, "string");
        client.run("MULTI");
        client.run("STRLEN string");
        assert_eq!(shown(&mut client, "EXEC"), "1) (integer) 70");
    }
}

#[test]
fn sort_fetches_the_keys_of_its_patterns() {
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        for line in
            ["RPUSH ids 1 2 3", "MSET weight:1 3 weight:2 1 weight:3 2", "HSET o:1 n one", "HSET o:2 n two"]
        {
            client.run(line);
        }
        let line = "SORT ids BY weight:* GET o:*->n GET # STORE sorted";
        assert_eq!(shown(&mut client, line), "(integer) 6");
        let expected = shown(&mut client, "LRANGE sorted 0 -1");
        for key in ["ids", "weight:1", "weight:2", "weight:3", "o:1", "o:2", "sorted"] {
            demote(&mut client, key);
        }
        assert_eq!(shown(&mut client, line), "(integer) 6");
        assert_eq!(shown(&mut client, "LRANGE sorted 0 -1"), expected);
    }
}

fn restarted(server: Server, mode: &[&str], more: &[&str]) -> Server {
    let mut server = server;
    let directory = server.directory().to_owned();
    server.signal("TERM");
    assert!(server.wait().success());
    builder(mode).directory(directory).arguments(more).start()
}

#[test]
fn saved_files_contain_cold_values() {
    for (mode, more) in [
        (MODES[0], ["--appendonly", "no"]),
        (MODES[1], ["--appendonly", "yes"]),
        (MODES[0], ["--rdbcompression", "no"]),
    ] {
        let directory = ember_testkit::Directory::new("tiers-files");
        let server = builder(mode).directory(directory.0.clone()).arguments(&more).start();
        let mut client = server.client();
        fill(&mut client);
        client.run("SELECT 3");
        client.run("SET elsewhere something-that-is-long-enough");
        demote(&mut client, "elsewhere");
        client.run("SELECT 0");
        let digest = shown(&mut client, "DEBUG DIGEST");
        for (_, key, _) in TYPES {
            demote(&mut client, key);
        }
        assert_eq!(shown(&mut client, "DEBUG DIGEST"), digest);
        if more[1] == "yes" {
            assert!(!client.run("BGREWRITEAOF").is_error());
            ember_testkit::wait_until("the AOF is rewritten", || {
                client.info("aof_rewrite_in_progress") == "0"
            });
        } else {
            assert_eq!(shown(&mut client, "BGSAVE SCHEDULE").split(' ').next(), Some("Background"));
            ember_testkit::wait_until("the file is written", || client.info("rdb_bgsave_in_progress") == "0");
            assert_eq!(client.info("rdb_last_bgsave_status"), "ok");
        }
        assert_eq!(figure(&mut client, "cold_keys"), TYPES.len() as u64 + 1, "saving a file fetches nothing");
        let server = restarted(server, mode, &more);
        let mut client = server.client();
        assert_eq!(shown(&mut client, "DEBUG DIGEST"), digest, "{more:?}");
        assert_eq!(figure(&mut client, "cold_keys"), 0);
        // SAVE reads cold values over a separate path.
        for (_, key, _) in TYPES {
            demote(&mut client, key);
        }
        assert_eq!(shown(&mut client, "SAVE"), "OK");
        assert_eq!(shown(&mut client, "DEBUG RELOAD NOSAVE"), "OK");
        assert_eq!(shown(&mut client, "DEBUG DIGEST"), digest);
    }
}

#[test]
fn pinned_values_stay_resident_until_their_keys_are_removed() {
    let server = start(MODES[0]);
    let mut client = server.client();
    fill(&mut client);
    assert_eq!(shown(&mut client, "TIERING PIN list set nothing"), "(integer) 2");
    assert_eq!(shown(&mut client, "TIERING PIN list"), "(integer) 0");
    assert!(client.run("TIERING MIGRATE list COLD").is_error());
    assert_eq!(figure(&mut client, "pinned_keys"), 2);
    assert_eq!(shown(&mut client, "TIERING UNPIN list nothing"), "(integer) 1");
    assert_eq!(shown(&mut client, "TIERING MIGRATE list COLD"), "OK");
    assert_ne!(tier(&mut client, "list"), "hot");
    assert_eq!(shown(&mut client, "TIERING MIGRATE list HOT"), "OK");
    assert_eq!(tier(&mut client, "list"), "hot");
    client.run("DEL set");
    client.run("SADD set 1 2 3");
    assert_eq!(shown(&mut client, "TIERING MIGRATE set COLD"), "OK");
    assert_eq!(figure(&mut client, "pinned_keys"), 0);
    for wrong in
        ["TIERING MIGRATE list", "TIERING MIGRATE list WARM", "TIERING TIER", "TIERING MIGRATE nothing COLD"]
    {
        assert!(client.run(wrong).is_error(), "{wrong}");
    }
    assert_eq!(shown(&mut client, "TIERING TIER nothing"), "(nil)");
}

#[test]
fn a_value_that_is_only_read_is_written_once() {
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        fill(&mut client);
        demote(&mut client, "list");
        for round in 1..=5 {
            assert_eq!(shown(&mut client, "LLEN list"), "(integer) 4");
            demote(&mut client, "list");
            assert_eq!((figure(&mut client, "demotions"), figure(&mut client, "free_drops")), (1, round));
        }
        // A change makes the record obsolete.
        assert_eq!(shown(&mut client, "RPUSH list more"), "(integer) 5");
        demote(&mut client, "list");
        assert_eq!(figure(&mut client, "demotions"), 2);
        assert_eq!(shown(&mut client, "LRANGE list -1 -1"), "1) \"more\"");
        // Replacing the value makes the record obsolete, too, and no record outlives its key.
        client.run("SET list short-string");
        client.run("FLUSHALL");
        assert_eq!(figure(&mut client, "live_bytes"), 0);
    }
}

#[test]
fn set_selects_the_tier_of_its_value() {
    const VALUE: &str = "0123456789012345678901234567890123456789012345678901234567890123456789";
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        let is_cold = |client: &mut RawClient| matches!(tier(client, "k").as_str(), "warm" | "cold");
        for before in ["DEL k", "SET k other", "RPUSH list a", "SET k other TIER HOT PIN"] {
            client.run(before);
            assert_eq!(shown(&mut client, &format!("SET k {VALUE} EX 1000 TIER COLD")), "OK");
            wait_until("the value is cold", || is_cold(&mut client));
            assert_eq!(shown(&mut client, "TTL k"), "(integer) 1000");
            assert_eq!(figure(&mut client, "pinned_keys"), 0, "{before}");
            assert_eq!(client.run("GET k").text(), VALUE);
        }
        assert_eq!(shown(&mut client, &format!("SET k {VALUE} XX GET TIER HOT PIN")), format!("\"{VALUE}\""));
        assert_eq!(figure(&mut client, "pinned_keys"), 1);
        assert!(client.run("TIERING MIGRATE k COLD").is_error(), "the value is pinned");
        // If SET does not store the value, it does not demote it, either.
        assert_eq!(shown(&mut client, "SET k x NX TIER COLD"), "(nil)");
        assert_eq!(figure(&mut client, "pinned_keys"), 1);
        // `TIER COLD` also works in transactions and scripts.
        client.run("MULTI");
        client.run(&format!("SET k {VALUE} TIER COLD"));
        client.run("EXEC");
        wait_until("the value is cold", || is_cold(&mut client));
        client.run("GET k");
        client.command(&["EVAL", "redis.call('SET', KEYS[1], ARGV[1], 'TIER', 'COLD')", "1", "k", VALUE]);
        wait_until("the value is cold", || is_cold(&mut client));
        for wrong in ["TIER", "TIER WARM", "PIN", "TIER COLD PIN", "TIER HOT TIER HOT"] {
            assert_eq!(
                shown(&mut client, &format!("SET k v {wrong}")),
                "(error) ERR syntax error",
                "{wrong}"
            );
        }
        assert_eq!(client.run("GET k").text(), VALUE);
    }
}

#[test]
fn without_tiers_set_refuses_the_tier_option() {
    for mode in MODES {
        let server = Server::builder(env!("CARGO_BIN_EXE_ember-server")).arguments(mode).start();
        let mut client = server.client();
        assert_eq!(
            shown(&mut client, "SET k v TIER HOT"),
            "(error) ERR values cannot be demoted: tiered-path is not set"
        );
        assert_eq!(shown(&mut client, "EXISTS k"), "(integer) 0");
    }
}

#[test]
fn metrics_count_values_by_tier() {
    for mode in MODES {
        let server = builder(mode).metrics().start();
        let mut client = server.client();
        fill(&mut client);
        client.run("TIERING PIN list");
        demote(&mut client, "string");
        demote(&mut client, "hash");
        client.run("GET string");
        let samples = http_get(server.metrics_address(), "/metrics").unwrap().body;
        let hot = format!("ember_tier_keys{{tier=\"hot\"}} {}", TYPES.len() - 1);
        for line in [
            &hot,
            "ember_tier_keys{tier=\"cold\"} 1",
            "ember_tier_pinned_keys 1",
            "ember_tier_demotions_total 2",
            "ember_tier_fetches_total 1",
            "ember_tier_demotion_stuck 0",
        ] {
            assert!(samples.contains(&format!("\n{line}\n")), "{line}");
        }
    }
}
