//! Changes of the role: a server becomes a replica, behaves as one, and becomes a primary again.

use ember_testkit::{Directory, RawClient, Server, Value, http_get, wait_until};

use crate::pairs::{ARGUMENTS, follow};
use crate::primary::{ID, Primary};
use crate::{MODES, link, linked, program, replicaof, start, wait_for_offset};

const READ_ONLY: &str = "READONLY You can't write against a read only replica.";

fn words(value: &Value) -> Vec<String> {
    value.elements().unwrap_or_default().iter().map(Value::text).collect()
}

#[test]
fn a_replica_without_a_primary_keeps_its_data_and_retries() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        client.run("SET own 1");
        let hello_role = |client: &mut RawClient| client.run("HELLO").get("role").unwrap().text();
        assert_eq!(words(&client.run("ROLE"))[0], "master");
        assert_eq!(hello_role(&mut client), "master");
        replicaof(&mut client, 0);
        assert_eq!(hello_role(&mut client), "replica");
        let line = "OK Already connected to specified master";
        assert_eq!(client.run("REPLICAOF 127.0.0.1 0").text(), line);
        let role = client.run("ROLE");
        let role = role.elements().unwrap();
        assert_eq!([role[0].text(), role[1].text()], ["slave", "127.0.0.1"]);
        assert_eq!([&role[2], &role[4]], [&Value::Integer(0), &Value::Integer(-1)]);
        assert!(["connect", "connecting"].contains(&role[3].text().as_str()));
        for (name, value) in [
            ("role", "slave"),
            ("master_host", "127.0.0.1"),
            ("master_port", "0"),
            ("master_link_status", "down"),
            ("master_last_io_seconds_ago", "-1"),
            ("master_sync_in_progress", "0"),
            ("slave_priority", "100"),
            ("slave_read_only", "1"),
            ("replica_announced", "1"),
            ("connected_slaves", "0"),
        ] {
            assert_eq!(client.info(name), value, "{name}");
        }
        assert!(client.info_number("master_link_down_since_seconds") < 60);
        assert_eq!(client.run("GET own").text(), "1");
        assert_eq!(client.run("SET own 2").text(), READ_ONLY);
        assert_eq!(words(&client.run("CONFIG GET replicaof")), ["replicaof", "127.0.0.1 0"]);
        assert_eq!(client.run("REPLICAOF NO ONE"), Value::ok());
        assert_eq!(client.run("SET own 2"), Value::ok());
        assert_eq!(hello_role(&mut client), "master");
        assert_eq!(words(&client.run("CONFIG GET slaveof")), ["slaveof", ""]);
        for wrong in ["REPLICAOF host 65536", "REPLICAOF host -1", "REPLICAOF host x"] {
            assert_eq!(client.run(wrong).text(), "ERR Invalid master port");
        }
        assert_eq!(client.command(&["REPLICAOF", "a b", "1"]).text(), "ERR Invalid master host");
    }
}

#[test]
fn clients_of_a_replica_cannot_write() {
    for mode in MODES {
        let (server, _primary, _link) = linked(mode, &[], &[("k", "1")]);
        let mut client = server.client();
        for line in
            ["SET k 2", "DEL k", "FLUSHALL", "SWAPDB 0 1", "FUNCTION FLUSH", "BLPOP l 1", "GETEX k PERSIST"]
        {
            assert_eq!(client.run(line).text(), READ_ONLY, "{line}");
        }
        client.run("MULTI");
        assert_eq!(client.run("SET k 2").text(), READ_ONLY);
        assert!(client.run("EXEC").text().starts_with("EXECABORT"));
        let error = client.command(&["EVAL", "return redis.call('SET', KEYS[1], '2')", "1", "k"]).text();
        assert!(error.starts_with(READ_ONLY), "{error}");
        let script = "#!lua\nreturn redis.call('SET', KEYS[1], '2')";
        let error = client.command(&["EVAL", script, "1", "k"]).text();
        assert_eq!(error, READ_ONLY);
        assert_eq!(client.command(&["EVAL", "return redis.call('GET', KEYS[1])", "1", "k"]).text(), "1");
        client.run("MULTI");
        client.run("GET k");
        assert_eq!(words(&client.run("EXEC")), ["1"]);
        assert_eq!(client.run("PUBLISH c m"), Value::Integer(0));
        let pipeline: Vec<Vec<&str>> = (0..50).map(|_| vec!["SET", "k", "2"]).collect();
        assert!(client.pipeline(&pipeline).unwrap().iter().all(|reply| reply.text() == READ_ONLY));
        let refusal = client.run("CONFIG SET replica-read-only no").text();
        assert!(refusal.contains("it is always read-only"), "{refusal}");
    }
}

#[test]
fn reads_of_stale_data_are_refused_if_configured() {
    for mode in MODES {
        let (server, primary, link) = linked(mode, &["--replica-serve-stale-data", "no"], &[("k", "1")]);
        let mut client = server.client();
        assert_eq!(client.run("GET k").text(), "1");
        drop(link);
        drop(primary);
        wait_until("the link is down", || client.info("master_link_status") == "down");
        let down = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
        assert_eq!(client.run("GET k").text(), down);
        let pipeline: Vec<Vec<&str>> = (0..50).map(|_| vec!["GET", "k"]).collect();
        assert!(client.pipeline(&pipeline).unwrap().iter().all(|reply| reply.text() == down));
        let error = client.command(&["EVAL", "return redis.call('GET', KEYS[1])", "1", "k"]).text();
        assert!(error.starts_with("ERR Can not execute the command on a stale replica"), "{error}");
        client.run("CONFIG SET replica-serve-stale-data yes");
        assert_eq!(client.run("GET k").text(), "1");
    }
}

#[test]
fn waiting_clients_get_an_error_when_the_server_becomes_a_replica() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut waiting: Vec<RawClient> = (0..4).map(|_| server.client()).collect();
        for (number, client) in waiting.iter_mut().enumerate() {
            client.send_command(&["BLPOP", &format!("list{number}"), "0"]).unwrap();
        }
        wait_until("the clients wait", || server.client().info_number("blocked_clients") == 4);
        replicaof(&mut server.client(), 0);
        for client in &mut waiting {
            let reply = client.read_to_close().unwrap();
            let text = "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n";
            assert_eq!(String::from_utf8(reply).unwrap(), text);
        }
        assert_eq!(server.client().info_number("blocked_clients"), 0);
    }
}

/// Checks that a long call replies `refusal` and stores nothing if `change` happens during the call.
fn check_long_call(change: fn(&mut RawClient), refusal: &str) {
    for mode in MODES {
        let server = start(mode, &["--long-call-elements", "2"]);
        let (mut client, mut other) = (server.client(), server.client());
        let fill = "for i = 1, 100000 do redis.call('ZADD', KEYS[1], i, i) end";
        client.command(&["EVAL", fill, "1", "from"]);
        client.send(b"ZUNIONSTORE to 1 from\r\n").unwrap();
        wait_until("the call has begun", || other.info_number("ember_long_calls") == 1);
        change(&mut other);
        let answer = client.read_value().unwrap();
        let stored = other.run("EXISTS to");
        match answer {
            // The call ended before the change.
            Value::Integer(100_000) => assert_eq!(stored, Value::Integer(1)),
            answer => assert_eq!((answer.text(), stored), (refusal.to_owned(), Value::Integer(0))),
        }
    }
}

#[test]
fn a_long_call_stores_nothing_on_a_server_that_has_become_a_replica() {
    check_long_call(|client| replicaof(client, 0), "READONLY You can't write against a read only replica.");
}

#[test]
fn a_long_call_stores_nothing_when_writes_become_refused() {
    let change = |client: &mut RawClient| _ = client.run("CONFIG SET min-replicas-to-write 1");
    check_long_call(change, "NOREPLICAS Not enough good replicas to write.");
}

#[test]
fn the_link_is_listed_as_a_client_with_its_own_flag() {
    for mode in MODES {
        let (server, primary, link) = linked(mode, &[], &[("k", "1")]);
        let mut client = server.client();
        let address = format!("addr=127.0.0.1:{}", primary.port());
        wait_until("the link is listed", || {
            let list = client.run("CLIENT LIST TYPE master").text();
            list.contains(&address) && list.contains(" flags=M")
        });
        assert!(!client.run("CLIENT LIST TYPE normal").text().contains(" flags=M"));
        assert_eq!(client.run("CLIENT KILL TYPE normal"), Value::Integer(0));
        assert_eq!(client.run("CLIENT KILL TYPE master"), Value::Integer(1));
        drop(link);
        let mut again = primary.accept();
        assert_eq!(again.read_handshake(), ["PSYNC", ID, "1"]);
        let other = ID.replace('0', "f");
        again.send(format!("+CONTINUE {other}\r\n").as_bytes());
        again.write("SELECT 0");
        again.write("INCR k");
        wait_for_offset(&mut client, again.offset);
        assert_eq!(client.info("master_replid"), other);
        assert_eq!(client.run("GET k").text(), "2");
    }
}

#[test]
fn metrics_describe_the_link() {
    for mode in MODES {
        let server = Server::builder(program()).arguments(mode).metrics().start();
        let metrics = || http_get(server.metrics_address(), "/metrics").unwrap().body;
        assert!(metrics().contains("\nember_replica 0\n"));
        let primary = Primary::new();
        let mut link = link(&server, &primary, &[]);
        link.write("PING");
        wait_for_offset(&mut server.client(), 14);
        let text = metrics();
        for line in ["ember_replica 1", "ember_replica_link_up 1", "ember_replica_applied_bytes 14"] {
            assert!(text.contains(&format!("\n{line}\n")), "{line}");
        }
        link.write("NOSUCH");
        wait_until("the metrics show it", || metrics().contains("\nember_replica_link_stopped 1\n"));
    }
}

#[test]
fn metrics_describe_replicas() {
    for mode in MODES {
        let server = Server::builder(program()).arguments(mode).arguments(&ARGUMENTS).metrics().start();
        let metrics = || http_get(server.metrics_address(), "/metrics").unwrap().body;
        let has_line = |line: &str| metrics().contains(&format!("\n{line}\n"));
        for line in [
            "ember_connected_replicas{state=\"online\"} 0",
            "ember_good_replicas 0",
            "ember_replication_sent_bytes_total 0",
            "ember_replication_backlog_bytes 0",
            "ember_failover_state{state=\"no-failover\"} 1",
        ] {
            assert!(has_line(line), "{line}");
        }
        let replica = start(mode, &ARGUMENTS);
        let (mut client, mut other) = (server.client(), replica.client());
        follow(&mut other, &server);
        client.run("SET a b");
        let name = format!("{{replica=\"127.0.0.1:{}\"}}", replica.port());
        wait_until("the stream is confirmed", || {
            has_line(&format!("ember_connected_replica_lag_bytes{name} 0"))
        });
        let offset = client.info("master_repl_offset");
        for line in [
            "ember_connected_replicas{state=\"online\"} 1",
            "ember_good_replicas 1",
            "ember_connected_clients 1",
            "ember_replication_spilled_bytes 0",
            "ember_replica_synchronizations_total{kind=\"full\"} 1",
            "ember_replica_synchronizations_total{kind=\"partial\"} 0",
            "ember_replica_synchronizations_total{kind=\"refused\"} 0",
            "ember_sync_waits_total 0",
            &format!("ember_replication_offset_bytes {offset}"),
        ] {
            wait_until(line, || has_line(line));
        }
        assert!(metrics().contains(&format!("\nember_connected_replica_lag_seconds{name} 0.")));
        assert!(!has_line("ember_replication_sent_bytes_total 0"));
        assert!(!has_line("ember_replication_backlog_bytes 0"));

        // A write that waits for a silent replica is counted as a wait, and after the timeout as a closed connection.
        client.run("CONFIG SET sync-timeout 300");
        client.run("CLIENT SYNC-REPLICAS 1");
        client.run("SET a c");
        let waits = || {
            let text = metrics();
            let line = text.lines().find_map(|line| line.strip_prefix("ember_sync_waits_total "));
            line.unwrap().parse::<u64>().unwrap()
        };
        // If the replica acknowledges immediately, the acknowledgement may be processed before any write waits.
        let waits_before = waits();
        replica.signal("STOP");
        client.send_command(&["SET", "a", "d"]).unwrap();
        wait_until("the wait is counted", || waits() > waits_before);
        wait_until("the connection is closed", || client.is_closed().unwrap());
        wait_until("the metrics show it", || has_line("ember_sync_timeouts_total 1"));
        assert!(!has_line(&format!("ember_connected_replica_lag_bytes{name} 0")));
        let mut client = server.client();
        assert_eq!(client.run("FAILOVER"), Value::ok());
        assert!(has_line("ember_failover_state{state=\"waiting-for-sync\"} 1"));
        client.run("FAILOVER ABORT");
        replica.signal("CONT");
    }
}

/// Returns the lines of a server's log that contain a text.
fn lines_with(server: &Server, text: &str) -> Vec<String> {
    server.log().lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
}

#[test]
fn each_change_of_role_and_link_is_logged_once_with_its_reason() {
    for mode in MODES {
        let servers = [start(mode, &ARGUMENTS), start(mode, &ARGUMENTS)];
        let [mut one, mut other] = [servers[0].client(), servers[1].client()];
        let (port, other_port) = (servers[0].port(), servers[1].port());
        let client_id = |client: &mut RawClient| client.run("CLIENT ID").integer().unwrap();
        let assert_logged = |server: &Server, line: &str| {
            wait_until(line, || lines_with(server, line).len() == 1);
        };
        follow(&mut other, &servers[0]);
        let asked = format!("REPLICAOF of client {} at 127.0.0.1:", client_id(&mut other));
        assert_logged(&servers[1], &format!("this server is a replica of 127.0.0.1:{port} now: {asked}"));
        assert_logged(&servers[0], &format!("the replica 127.0.0.1:{other_port} has received the full sync"));

        // The reason logged by the side that has not closed the connection depends on the data in transit.
        let is_by_peer = |line: &str| {
            line.ends_with(": the peer has closed the connection") || line.contains("(os error ")
        };
        let kill = |client: &mut RawClient, kind: &str| {
            wait_until("the link is killed", || {
                client.run(&format!("CLIENT KILL TYPE {kind}")) == Value::Integer(1)
            });
        };
        kill(&mut one, "replica");
        let lost = format!("the replica 127.0.0.1:{other_port} is disconnected: ");
        assert_logged(&servers[0], &format!("{lost}the connection was killed"));
        let broken = format!("the link to the primary 127.0.0.1:{port} is broken at offset");
        wait_until("the log has it", || lines_with(&servers[1], &broken).len() == 1);
        assert!(is_by_peer(&lines_with(&servers[1], &broken)[0]), "{}", servers[1].log());
        wait_until("the link is up", || other.info("master_link_status") == "up");
        kill(&mut other, "master");
        wait_until("the log has it", || lines_with(&servers[0], &lost).len() == 2);
        assert!(is_by_peer(&lines_with(&servers[0], &lost)[1]), "{}", servers[0].log());
        wait_until("the log has it", || lines_with(&servers[1], &broken).len() == 2);
        assert!(lines_with(&servers[1], &broken)[1].ends_with(": the connection was killed"));

        wait_until("the replica is online", || one.run("INFO replication").text().contains("state=online"));
        one.run("FAILOVER");
        wait_until("the roles are exchanged", || {
            one.info("role") == "slave"
                && other.info("role") == "master"
                && one.info("master_link_status") == "up"
        });
        assert_logged(&servers[0], &format!("client {} at 127.0.0.1:", client_id(&mut one)));
        assert_logged(
            &servers[0],
            &format!("replica of 127.0.0.1:{other_port} now: FAILOVER to a replica that has received all"),
        );
        assert_logged(
            &servers[1],
            "this server is a primary now: its primary has requested a failover to it",
        );
        one.run("REPLICAOF NO ONE");
        assert_logged(
            &servers[0],
            &format!("this server is a primary now: REPLICAOF of client {}", client_id(&mut one)),
        );
        // A change to the same role is not logged.
        one.run("REPLICAOF NO ONE");
        assert_eq!(lines_with(&servers[0], "this server is a ").len(), 2, "{}", servers[0].log());

        let own = ["--replicaof", &format!("127.0.0.1 {other_port}")];
        let third = start(mode, &own);
        assert_logged(
            &third,
            &format!("this server is a replica of 127.0.0.1:{other_port} now: set in the configuration"),
        );
    }
}

#[test]
fn a_replica_reports_its_role() {
    for mode in MODES {
        let arguments = [
            "--masterauth",
            "secret",
            "--masteruser",
            "copier",
            "--replica-announce-ip",
            "10.1.2.3",
            "--replica-announce-port",
            "77",
        ];
        let (server, primary) = (start(mode, &arguments), Primary::new());
        replicaof(&mut server.client(), primary.port());
        let mut link = primary.accept();
        let mut said = Vec::new();
        for answer in ["+OK", "+PONG", "+OK", "+OK", "+OK", "-ERR unknown"] {
            said.push(link.command().join(" "));
            link.send(format!("{answer}\r\n").as_bytes());
        }
        let expected = [
            "AUTH copier secret",
            "PING",
            "REPLCONF listening-port 77",
            "REPLCONF ip-address 10.1.2.3",
            "REPLCONF capa eof capa psync2 capa ember",
            "REPLCONF version 9.0.0",
        ];
        assert_eq!(said, expected);
        assert_eq!(link.command(), ["PSYNC", "?", "-1"]);
    }
}

#[test]
fn a_replica_that_becomes_a_primary_keeps_its_data() {
    for mode in MODES {
        let (server, primary, mut link) = linked(mode, &[], &[("k", "1")]);
        link.write("SELECT 0");
        link.write("SET more 1 PXAT 1");
        let mut client = server.client();
        wait_for_offset(&mut client, link.offset);
        client.run("MULTI");
        client.run("REPLICAOF NO ONE");
        client.run("CLIENT KILL TYPE normal");
        assert_eq!(client.run("EXEC"), Value::Array(vec![Value::ok(), Value::Integer(0)]));
        link.write("SET k late");
        link.wait_for_close();
        assert_eq!(client.run("GET k").text(), "1");
        assert_eq!(client.run("SET k 2"), Value::ok());
        assert_eq!(words(&client.run("ROLE"))[0], "master");
        assert_ne!(client.info("master_replid"), ID);
        // As a primary, the server removes expired keys again.
        wait_until("the key expires", || client.run("DBSIZE") == Value::Integer(1));
        // The server's own writes are not in the history of the old primary.
        let own = client.info("master_replid");
        replicaof(&mut client, primary.port());
        let mut again = primary.accept();
        assert_eq!(again.read_handshake()[1], own);
    }
}

#[test]
fn the_role_is_in_the_configuration() {
    for mode in MODES {
        let directory = Directory::new("role");
        let file = directory.0.join("ember.conf");
        std::fs::write(&file, "# mine\n").unwrap();
        let primary = Primary::new();
        let from_file = |extra: &[&str]| {
            let path = file.to_str().unwrap();
            Server::builder(program()).arguments(&["--config", path]).arguments(mode).arguments(extra).start()
        };
        let server = from_file(&[]);
        let mut client = server.client();
        replicaof(&mut client, primary.port());
        assert_eq!(client.run("CONFIG REWRITE"), Value::ok());
        drop(primary.accept());
        drop(server);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(&format!("replicaof 127.0.0.1 {}\n", primary.port())), "{text}");
        let again = from_file(&[]);
        let mut link = primary.accept();
        link.copy(0, &[("k", "1")]);
        let mut client = again.client();
        wait_until("the link is up", || client.info("master_link_status") == "up");
        client.run("REPLICAOF NO ONE");
        assert_eq!(client.run("CONFIG REWRITE"), Value::ok());
        assert!(!std::fs::read_to_string(&file).unwrap().contains("replicaof"));
        let port = primary.port().to_string();
        let third = from_file(&["--replicaof", "127.0.0.1", &port]);
        drop(primary.accept());
        assert_eq!(third.client().run("SET a 1").text(), READ_ONLY);
    }
}

#[test]
fn the_files_of_a_replica_have_the_data_of_its_primary() {
    for mode in MODES {
        for policy in ["always", "everysec"] {
            let directory = Directory::new("files");
            let arguments = ["--appendonly", "yes", "--appendfsync", policy];
            let start = || {
                Server::builder(program())
                    .arguments(mode)
                    .arguments(&arguments)
                    .directory(&directory.0)
                    .start()
            };
            let server = start();
            let mut client = server.client();
            client.run("SET own 1");
            let primary = Primary::new();
            let mut link = link(&server, &primary, &[("k", "1"), ("gone", "1")]);
            link.write("SELECT 0");
            link.write("INCR k");
            wait_until("a new AOF has begun", || server.log().contains("the AOF starts again"));
            wait_until("its base is complete", || client.info("aof_rewrite_in_progress") == "0");
            for line in ["INCR k", "DEL gone", "MULTI", "SET a 1", "SELECT 5", "SET five 5", "EXEC"] {
                link.write(line);
            }
            wait_for_offset(&mut client, link.offset);
            link.write("REPLCONF GETACK *");
            let asked = link.offset;
            link.acknowledged(asked);
            assert_eq!(client.info("aof_enabled"), "1");
            drop((client, link, primary));
            server.crash();
            let again = start();
            let mut client = again.client();
            assert_eq!(words(&client.run("MGET k a")), ["3", "1"]);
            assert_eq!(client.run("EXISTS own gone"), Value::Integer(0));
            client.run("SELECT 5");
            assert_eq!(client.run("GET five").text(), "5");
        }
    }
}

#[test]
fn the_link_connects_from_the_configured_address() {
    for mode in MODES {
        let (primary, replica) = (start(mode, &[]), start(mode, &["--bind-source-addr", "127.0.0.2"]));
        let (mut one, mut other) = (primary.client(), replica.client());
        replicaof(&mut other, primary.port());
        wait_until("the replica is connected", || one.info_number("connected_slaves") == 1);
        assert!(one.info("slave0").starts_with("ip=127.0.0.2,"), "{}", one.info("slave0"));
        // An address that this machine does not have is ignored.
        assert_eq!(other.run("CONFIG SET bind-source-addr 192.0.2.1"), Value::ok());
        assert_eq!(one.run("CLIENT KILL TYPE replica"), Value::Integer(1));
        wait_until("the replica is connected again", || {
            one.run("INFO replication").text().contains("connected_slaves:1\r\nslave0:ip=127.0.0.1,")
        });
        assert!(replica.log().contains("cannot use bind-source-addr"));
    }
}
