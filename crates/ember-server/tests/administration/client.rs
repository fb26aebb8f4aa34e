//! CLIENT: names and modes of connections, and how they are closed.

use ember_testkit::{RawClient, Value};

use crate::{MODES, assert_error, assert_ok, builder, everywhere, field, wait_until};

fn id(client: &mut RawClient) -> i64 {
    client.run("CLIENT ID").integer().unwrap()
}

fn line_of(client: &mut RawClient, id: i64) -> String {
    client.run(&format!("CLIENT LIST ID {id}")).text()
}

#[test]
fn names_are_visible_characters_or_refused() {
    everywhere(&[], |_, client| {
        assert_eq!(client.run("CLIENT GETNAME"), Value::Null);
        assert_ok(client, "CLIENT SETNAME worker:1");
        assert_eq!(client.run("CLIENT GETNAME"), Value::from("worker:1"));
        let refused = "ERR Client names cannot contain spaces, newlines or special characters.";
        for name in ["a b", "a\nb", "a\x7f", "é"] {
            assert_eq!(client.command(&["CLIENT", "SETNAME", name]), Value::Error(refused.into()));
            assert_eq!(client.command(&["HELLO", "2", "SETNAME", name]), Value::Error(refused.into()));
        }
        assert_eq!(client.run("CLIENT GETNAME"), Value::from("worker:1"));
        assert_eq!(client.command(&["CLIENT", "SETNAME", ""]), Value::ok());
        assert_eq!(client.run("CLIENT GETNAME"), Value::Null);

        assert_ok(client, "CLIENT SETINFO LIB-NAME some-library");
        assert_ok(client, "CLIENT SETINFO lib-ver 1.2.3");
        assert_error(client, "CLIENT SETINFO lib-x 1", "ERR Unrecognized option 'lib-x'");
        let refused = "ERR lib-ver cannot contain spaces, newlines or special characters.";
        assert_eq!(client.command(&["CLIENT", "SETINFO", "lib-ver", "1 2"]), Value::Error(refused.into()));
        let line = client.run("CLIENT INFO").text();
        assert_eq!(
            (field(&line, "lib-name"), field(&line, "lib-ver")),
            ("some-library".into(), "1.2.3".into())
        );
    });
}

#[test]
fn list_and_info_describe_connections() {
    everywhere(&[], |server, client| {
        client.run("SELECT 3");
        let own = id(client);
        let line = client.run("CLIENT INFO").text();
        assert!(line.ends_with('\n'));
        assert_eq!(field(&line, "id"), own.to_string());
        assert_eq!(field(&line, "db"), "3");
        assert_eq!(field(&line, "cmd"), "client|info");
        assert_eq!(field(&line, "laddr"), server.address().to_string());
        assert_eq!(field(&line, "user"), "default");
        let mut other = server.client();
        assert_ok(&mut other, "SET a 1");
        let other_id = id(&mut other);
        assert!(other_id > own);
        other.run("GET a");
        assert_eq!(field(&line_of(client, other_id), "cmd"), "get");
        let list = client.run(&format!("CLIENT LIST ID {own} 9999999 {other_id}")).text();
        assert_eq!(
            list.lines().map(|line| field(line, "id")).collect::<Vec<_>>(),
            [own.to_string(), other_id.to_string()]
        );
        let all = client.run("CLIENT LIST").text();
        assert_eq!(client.run("CLIENT LIST TYPE NORMAL").text().lines().count(), all.lines().count());
        for kind in ["master", "replica", "slave", "pubsub"] {
            assert_eq!(client.run(&format!("CLIENT LIST TYPE {kind}")).text(), "");
        }
        assert_error(client, "CLIENT LIST TYPE x", "ERR Unknown client type 'x'");
        assert_error(client, "CLIENT LIST ID x", "ERR Invalid client ID");
        assert_error(client, "CLIENT LIST ID 0", "ERR Invalid client ID");
        for line in ["CLIENT LIST ID", "CLIENT LIST x", "CLIENT LIST TYPE normal x"] {
            assert_error(client, line, "ERR syntax error");
        }
    });
}

#[test]
fn filters_select_connections_and_not_excludes_them() {
    everywhere(&[], |server, client| {
        let mut worker = server.client();
        assert_ok(&mut worker, "CLIENT SETNAME worker");
        let mut listener = server.client();
        assert_ok(&mut worker, "CLIENT SETINFO LIB-NAME redis-py");
        assert_ok(&mut worker, "CLIENT SETINFO LIB-VER 8.0");
        assert_ok(&mut worker, "SELECT 3");
        assert_ok(&mut worker, "CLIENT CAPA unknown REDIRECT");
        assert_ok(&mut listener, "CLIENT CAPA unknown");
        let [me, worker_id, listener_id] = [id(client), id(&mut worker), id(&mut listener)];
        listener.run("SUBSCRIBE news");
        assert_ok(client, "ACL SETUSER reader on nopass +@all");
        assert_ok(client, "AUTH reader any");
        let address = field(&line_of(client, worker_id), "addr");
        let ids = |client: &mut RawClient, filters: &str| -> Vec<i64> {
            let text = client.run(&format!("CLIENT LIST {filters}")).text();
            text.lines().map(|line| field(line, "id").parse().unwrap()).collect()
        };
        for (filters, chosen) in [
            ("NAME worker", vec![worker_id]),
            ("NOT-NAME worker", vec![me, listener_id]),
            ("LIB-NAME redis-py LIB-VER 8.0", vec![worker_id]),
            ("LIB-NAME redis-py LIB-VER 8.1", vec![]),
            ("NOT-LIB-NAME redis-py NOT-LIB-VER 8.0", vec![me, listener_id]),
            ("DB 3", vec![worker_id]),
            ("not-db 3 not-flags P", vec![me]),
            ("FLAGS P", vec![listener_id]),
            ("FLAGS Px", vec![]),
            ("CAPA r", vec![worker_id]),
            ("NOT-CAPA rr", vec![me, listener_id]),
            ("TYPE pubsub", vec![listener_id]),
            ("NOT-TYPE pubsub", vec![me, worker_id]),
            ("USER reader", vec![me]),
            ("NOT-USER reader", vec![worker_id, listener_id]),
            ("SKIPME yes", vec![worker_id, listener_id]),
            ("IP 127.0.0.1 SKIPME yes IDLE 1000", vec![]),
            ("IP 127.0.0.1 MAXAGE 1000", vec![]),
            ("NOT-IP 127.0.0.1", vec![]),
            ("IP 127.0.0.1 TYPE normal", vec![me, worker_id]),
            ("NAME x NAME worker", vec![worker_id]),
            (&format!("ADDR {address}"), vec![worker_id]),
            (&format!("NOT-ADDR {address}"), vec![me, listener_id]),
            (&format!("ID {listener_id} {me} {worker_id} SKIPME yes"), vec![listener_id, worker_id]),
            (&format!("NOT-ID {me} {worker_id}"), vec![listener_id]),
            (&format!("LADDR 127.0.0.1:{} NOT-TYPE normal", server.port()), vec![listener_id]),
        ] {
            assert_eq!(ids(client, filters), chosen, "{filters}");
        }
        for (filters, text) in [
            ("FLAGS P-", "ERR Unknown flags found in the provided filter: P-"),
            ("CAPA rx", "ERR Unknown capa found in the provided filter: rx"),
            ("DB 16", "ERR DB number should be between 0 and 15"),
            ("DB x", "ERR DB is not an integer or out of range"),
            ("IDLE 0", "ERR idle should be greater than 0"),
            ("MAXAGE x", "ERR maxage is not an integer or out of range"),
            ("NOT-SKIPME yes", "ERR syntax error"),
            ("NOT-IDLE 1", "ERR syntax error"),
            ("NOT-USER nobody", "ERR No such user 'nobody'"),
            ("ID 1 x", "ERR syntax error"),
            ("ID 1 0", "ERR Invalid client ID"),
        ] {
            assert_error(client, &format!("CLIENT LIST {filters}"), text);
        }
        assert_eq!(client.run("CLIENT KILL NOT-TYPE pubsub"), Value::Integer(1));
        assert!(worker.is_closed().unwrap());
        assert_eq!(client.run(&format!("CLIENT KILL ID {worker_id} {listener_id}")), Value::Integer(1));
        assert!(listener.is_closed().unwrap());
    });
}

#[test]
fn a_killed_connection_is_closed_by_its_worker() {
    everywhere(&[], |server, client| {
        // There are enough clients that both workers have some.
        let mut others: Vec<RawClient> = (0..6).map(|_| server.client()).collect();
        let ids: Vec<i64> = others.iter_mut().map(id).collect();
        let address = field(&line_of(client, ids[0]), "addr");
        assert_ok(client, &format!("CLIENT KILL {address}"));
        assert_error(client, &format!("CLIENT KILL {address}0"), "ERR No such client");
        assert_eq!(client.run(&format!("CLIENT KILL ID {}", ids[1])), Value::Integer(1));
        let address = field(&line_of(client, ids[2]), "addr");
        assert_eq!(client.run(&format!("CLIENT KILL ADDR {address} TYPE normal")), Value::Integer(1));
        for killed in &mut others[..3] {
            assert!(killed.is_closed().unwrap());
        }
        assert_eq!(client.run(&format!("CLIENT KILL ID {} TYPE pubsub", ids[3])), Value::Integer(0));
        assert_eq!(client.run("CLIENT KILL LADDR 1.2.3.4:5"), Value::Integer(0));
        assert_eq!(client.run("CLIENT KILL MAXAGE 1000000"), Value::Integer(0));
        assert_eq!(others[3].run("PING").text(), "PONG");
        assert_eq!(client.run("CLIENT KILL USER default"), Value::Integer(3));
        // Killed clients are no longer listed, even before their workers close them.
        let ids = ids.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(client.run(&format!("CLIENT LIST ID {ids}")).text(), "");
        assert_eq!(client.run(&format!("CLIENT KILL ID {ids}")), Value::Integer(0));
        assert!(others[5].is_closed().unwrap());
        wait_until("the others are disconnected", || client.run("CLIENT LIST").text().lines().count() == 1);
        for (line, text) in [
            ("CLIENT KILL ID 0", "ERR client-id should be greater than 0"),
            ("CLIENT KILL ID x", "ERR client-id should be greater than 0"),
            ("CLIENT KILL TYPE x", "ERR Unknown client type 'x'"),
            ("CLIENT KILL USER nobody", "ERR No such user 'nobody'"),
            ("CLIENT KILL ID 1 ADDR", "ERR syntax error"),
            ("CLIENT KILL SKIPME maybe", "ERR syntax error"),
            ("CLIENT KILL x y", "ERR syntax error"),
            ("CLIENT KILL", "ERR wrong number of arguments for 'client|kill' command"),
        ] {
            assert_error(client, line, text);
        }
        // The client's own connection receives its reply first, and runs no further command.
        client.send(b"CLIENT KILL SKIPME no\r\nPING\r\n").unwrap();
        assert_eq!(client.read_to_close().unwrap(), b":1\r\n");
    });
}

#[test]
fn replies_are_switched_off_and_skipped() {
    everywhere(&[], |_, client| {
        client.send(b"CLIENT REPLY OFF\r\nSET a 1\r\nPING\r\nNONSENSE\r\n").unwrap();
        client.send(b"CLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\nPING\r\n").unwrap();
        assert_eq!(client.read_bytes(12).unwrap(), b"+OK\r\n+PONG\r\n");
        client.send(b"CLIENT REPLY SKIP\r\nGET a\r\nECHO 2\r\n").unwrap();
        assert_eq!(client.read_bytes(7).unwrap(), b"$1\r\n2\r\n");
        assert_error(client, "CLIENT REPLY x", "ERR syntax error");
    });
}

/// Sends lines and asserts that the server replies exactly these bytes.
#[track_caller]
fn assert_answers(client: &mut RawClient, lines: &[&str], expected: &str) {
    let end = "CLIENT REPLY ON\r\nECHO end\r\n";
    client.send(format!("{}\r\n{end}", lines.join("\r\n")).as_bytes()).unwrap();
    let expected = format!("{expected}+OK\r\n$3\r\nend\r\n");
    let got = client.read_bytes(expected.len()).unwrap();
    assert_eq!(String::from_utf8_lossy(&got), expected, "{lines:?}");
}

#[test]
fn every_skip_skips_the_next_command() {
    // The expected replies are those of redis-server.
    let cases: [(&[&str], &str); 9] = [
        (&["CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "PING"], ""),
        (&["CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "NONSENSE", "PING"], "+PONG\r\n"),
        (&["CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "PING", "ECHO 1"], "$1\r\n1\r\n"),
        (&["CLIENT REPLY SKIP", "CLIENT REPLY ON", "PING"], "+OK\r\n+PONG\r\n"),
        (&["CLIENT REPLY OFF", "CLIENT REPLY SKIP", "PING", "PING"], ""),
        (&["CLIENT REPLY SKIP", "CLIENT REPLY OFF", "PING", "PING"], ""),
        (&["CLIENT REPLY SKIP", "BLPOP nothing 0.01", "PING"], "+PONG\r\n"),
        (&["CLIENT REPLY SKIP", "RESET", "PING"], "+PONG\r\n"),
        (&["CLIENT REPLY OFF", "RESET", "PING"], "+RESET\r\n+PONG\r\n"),
    ];
    assert_all_answer(&cases);
}

/// Asserts the replies of a table's cases, which are sent one after the other on one connection, in each mode.
#[track_caller]
fn assert_all_answer(cases: &[(&[&str], &str)]) {
    for mode in MODES {
        let server = builder(mode).start();
        let mut client = server.client();
        for (lines, expected) in cases {
            assert_answers(&mut client, lines, expected);
        }
    }
}

#[test]
fn client_reply_modes_apply_to_queued_commands_too() {
    let cases: [(&[&str], &str); 6] = [
        (&["CLIENT REPLY OFF", "MULTI", "SET a 1", "NONSENSE", "DISCARD"], ""),
        (&["CLIENT REPLY OFF", "MULTI", "PING", "EXEC"], ""),
        (&["MULTI", "CLIENT REPLY SKIP", "DISCARD"], "+OK\r\n+QUEUED\r\n+OK\r\n"),
        (&["CLIENT REPLY SKIP", "MULTI", "PING", "EXEC"], "+QUEUED\r\n*1\r\n+PONG\r\n"),
        // The reply to a transaction that disables or enables replies is not an array, as in Redis.
        (
            &["MULTI", "PING", "CLIENT REPLY OFF", "PING", "EXEC"],
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+PONG\r\n",
        ),
        (&["CLIENT REPLY OFF", "MULTI", "PING", "CLIENT REPLY ON", "PING", "EXEC"], "+OK\r\n+PONG\r\n"),
    ];
    assert_all_answer(&cases);
}

#[test]
fn pushes_arrive_with_replies_off_but_monitor_lines_do_not() {
    for mode in MODES {
        let server = builder(mode).start();
        let mut other = server.client();
        let mut client = server.client();
        client.run("HELLO 3");
        assert_ok(&mut client, "CLIENT TRACKING ON BCAST");
        client.send(b"CLIENT REPLY OFF\r\nSUBSCRIBE c\r\n").unwrap();
        assert_eq!(client.read_value().unwrap().elements().unwrap()[0].text(), "subscribe");
        assert_eq!(other.run("PUBLISH c news").integer(), Some(1));
        assert_eq!(client.read_value().unwrap().elements().unwrap()[2].text(), "news");
        assert_ok(&mut other, "SET key 1");
        assert_eq!(client.read_value().unwrap().elements().unwrap()[0].text(), "invalidate");

        let mut monitor = server.client();
        let monitor_id = id(&mut monitor);
        assert_ok(&mut monitor, "MONITOR");
        monitor.send(b"CLIENT REPLY OFF\r\nECHO 1\r\n").unwrap();
        wait_until("the monitor is silent", || field(&line_of(&mut other, monitor_id), "cmd") == "echo");
        assert_eq!(other.run("PING").text(), "PONG");
        monitor.send(b"CLIENT REPLY ON\r\n").unwrap();
        assert_eq!(monitor.read_value().unwrap(), Value::ok());
    }
}

#[test]
fn a_pause_of_writes_does_not_block_reads() {
    everywhere(&[], |server, client| {
        assert_ok(client, "SET paused 0");
        assert_ok(client, "CLIENT PAUSE 100000 WRITE");
        let mut writer = server.client();
        let writer_id = id(&mut writer);
        writer.send_command(&["SET", "paused", "1"]).unwrap();
        wait_until("the write waits", || field(&line_of(client, writer_id), "flags").contains('b'));
        assert_eq!(client.run("GET paused"), Value::from("0"));
        assert_ok(client, "CLIENT UNPAUSE");
        assert_eq!(writer.read_value().unwrap(), Value::ok());
        assert_eq!(client.run("GET paused"), Value::from("1"));
    });
}

#[test]
fn nothing_is_evicted_while_writes_are_paused() {
    everywhere(&["--hz", "100"], |_, client| {
        assert_ok(client, "CONFIG SET maxmemory-policy allkeys-random maxmemory 0");
        assert_ok(client, "MSET a 1 b 2 c 3");
        assert_ok(client, "CLIENT PAUSE 100000 WRITE");
        assert_ok(client, "CONFIG SET maxmemory 1");
        for _ in 0..1000 {
            assert_eq!(client.run("EXISTS a b c").integer(), Some(3));
        }
        assert_ok(client, "CLIENT UNPAUSE");
        wait_until("all keys are evicted", || client.run("DBSIZE").integer() == Some(0));
        assert_ok(client, "CONFIG SET maxmemory-policy noeviction maxmemory 0");
    });
}

#[test]
fn nothing_expires_while_writes_are_paused() {
    everywhere(&["--hz", "100"], |_, client| {
        assert_ok(client, "CONFIG RESETSTAT");
        for line in ["MULTI", "SET brief x PX 1", "HSET fields a 1 b 2", "HPEXPIRE fields 1 FIELDS 1 a"] {
            assert!(!client.run(line).is_error());
        }
        client.run("CLIENT PAUSE 100000 WRITE");
        assert!(!client.run("EXEC").is_error());
        wait_until("the key has expired", || client.run("GET brief") == Value::Null);
        wait_until("the field has expired", || client.run("HGET fields a") == Value::Null);
        assert_eq!(client.run("EXISTS brief"), Value::Integer(0));
        assert_eq!(client.run("TTL brief"), Value::Integer(-2));
        assert_eq!(client.run("SCAN 0 MATCH brief").elements().unwrap()[1], Value::Array(vec![]));
        assert_eq!(client.info("expired_keys"), "0");
        assert_eq!(client.info("expired_subkeys"), "0");
        assert_ok(client, "CLIENT UNPAUSE");
        wait_until("the key is removed", || client.info("expired_keys") == "1");
        wait_until("the field is removed", || client.info("expired_subkeys") == "1");
    });
}

#[test]
fn paused_clients_are_blocked_clients() {
    everywhere(&[], |server, client| {
        assert_ok(client, "CLIENT PAUSE 100000 WRITE");
        let (mut writer, mut counter) = (server.client(), server.client());
        writer.send_command(&["SET", "paused", "1"]).unwrap();
        // The command may store its estimate in the key.
        counter.send_command(&["PFCOUNT", "paused:log"]).unwrap();
        wait_until("both wait", || client.info("blocked_clients") == "2");
        drop(counter);
        wait_until("one client is unblocked", || client.info("blocked_clients") == "1");
        assert_ok(client, "CLIENT UNPAUSE");
        assert_eq!(writer.read_value().unwrap(), Value::ok());
        assert_eq!(client.info("blocked_clients"), "0");
    });
}

#[test]
fn a_pause_of_all_commands_ends_after_its_time() {
    everywhere(&[], |_, client| {
        assert_ok(client, "CLIENT PAUSE 1");
        assert_eq!(client.run("PING").text(), "PONG");
        for (line, text) in [
            ("CLIENT PAUSE x", "ERR timeout is not an integer or out of range"),
            ("CLIENT PAUSE -1", "ERR timeout is negative"),
            ("CLIENT PAUSE 9223372036854775807", "ERR timeout is out of range"),
            ("CLIENT PAUSE 1 MORE", "ERR CLIENT PAUSE mode must be WRITE or ALL"),
        ] {
            assert_error(client, line, text);
        }
    });
}

#[test]
fn modes_appear_in_the_flags_and_end_with_reset() {
    everywhere(&[], |_, client| {
        assert_ok(client, "CLIENT NO-EVICT ON");
        assert_ok(client, "CLIENT NO-TOUCH on");
        assert_error(client, "CLIENT NO-TOUCH x", "ERR syntax error");
        assert_error(client, "CLIENT NO-EVICT x", "ERR syntax error");
        assert_ok(client, "CLIENT SETNAME me");
        client.run("SELECT 2");
        assert_eq!(field(&client.run("CLIENT INFO").text(), "flags"), "eT");
        assert_eq!(client.run("RESET"), Value::Simple(b"RESET".to_vec()));
        let line = client.run("CLIENT INFO").text();
        let fields = ["flags", "db", "name", "resp"].map(|name| field(&line, name));
        assert_eq!(fields, ["N", "0", "", "2"]);
    });
}

#[test]
fn client_unblock_and_getredir_check_their_arguments() {
    everywhere(&[], |_, client| {
        assert_eq!(client.run("CLIENT UNBLOCK 1"), Value::Integer(0));
        assert_eq!(client.run("CLIENT UNBLOCK 1 ERROR"), Value::Integer(0));
        assert_error(client, "CLIENT UNBLOCK 1 x", "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
        assert_error(client, "CLIENT UNBLOCK x", "ERR value is not an integer or out of range");
        assert_eq!(client.run("CLIENT GETREDIR"), Value::Integer(-1));
        assert_error(client, "CLIENT", "ERR wrong number of arguments for 'client' command");
        assert_error(client, "CLIENT x", "ERR unknown subcommand 'x'. Try CLIENT HELP.");
    });
}

#[test]
fn clients_beyond_maxclients_are_refused() {
    everywhere(&[], |server, client| {
        let mut second = server.client();
        assert_eq!(second.run("PING").text(), "PONG");
        wait_until("earlier connections are closed", || {
            client.run("CLIENT LIST").text().lines().count() == 2
        });
        assert_ok(client, "CONFIG SET maxclients 2");
        let mut third = server.client();
        assert_eq!(third.read_to_close().unwrap(), b"-ERR max number of clients reached\r\n");
        assert_ok(client, "CONFIG SET maxclients 10000");
        assert_eq!(server.client().run("PING").text(), "PONG");
    });
}

#[test]
fn an_id_that_is_listed_twice_is_one_connection() {
    everywhere(&[], |server, client| {
        let (mut one, mut two) = (server.client(), server.client());
        let (one_id, two_id) = (id(&mut one), id(&mut two));
        let kill = format!(
            "CLIENT KILL ID {one_id} {two_id} {one_id} ADDR 1.2.3.4:5 ID {one_id} {one_id} TYPE normal"
        );
        assert_eq!(client.run(&kill), Value::Integer(0), "no connection has the address");
        let kill = format!("CLIENT KILL ID {one_id} {two_id} {one_id} TYPE normal");
        assert_eq!(client.run(&kill), Value::Integer(2));
        assert!(one.is_closed().unwrap() && two.is_closed().unwrap());
    });
}

#[test]
fn list_counts_watched_keys_commands_and_bytes() {
    everywhere(&[], |server, client| {
        let mut other = server.client();
        let other_id = id(&mut other);
        let number = |client: &mut RawClient, name: &str| -> u64 {
            field(&line_of(client, other_id), name).parse().unwrap()
        };
        assert_eq!(number(client, "watch"), 0);
        for (line, watched) in [
            ("WATCH a b a", 2),
            ("WATCH b c", 3),
            ("SELECT 1", 3),
            ("WATCH c", 4),
            ("UNWATCH", 0),
            ("WATCH a", 1),
            ("MULTI", 1),
            ("EXEC", 0),
            ("WATCH a", 1),
            ("RESET", 0),
        ] {
            assert!(!other.run(line).is_error(), "{line}");
            assert_eq!(number(client, "watch"), watched, "{line}");
        }
        let mut counted = server.client();
        counted.send(b"CLIENT ID\r\n").unwrap();
        let reply = counted.read_raw().unwrap();
        let counted_id = String::from_utf8(reply[1..].to_vec()).unwrap().trim_end().parse().unwrap();
        let requests = b"SET key value\r\nGET key\r\n";
        counted.send(requests).unwrap();
        let replies = [reply, counted.read_raw().unwrap(), counted.read_raw().unwrap()].concat();
        let line_has = |client: &mut RawClient, name: &str, number: usize| {
            field(&line_of(client, counted_id), name) == number.to_string()
        };
        // Sent bytes are counted right after sending.
        wait_until("the replies are counted", || line_has(client, "tot-net-out", replies.len()));
        assert!(line_has(client, "tot-net-in", "CLIENT ID\r\n".len() + requests.len()));
        assert!(line_has(client, "tot-cmds", 3));
    });
}
