//! ACL rules apply in transactions, to waiting calls, and to messages.

use ember_testkit::{RawClient, Value, wait_until};

use crate::{assert_error, assert_ok, everywhere, login, texts};

const QUEUED: &str = "QUEUED";

/// Returns the command in each entry of the log, newest first.
fn running(log: &Value) -> Vec<String> {
    let command = |entry: &Value| {
        let client = entry.get("client-info").unwrap().text();
        client.split(' ').find_map(|field| field.strip_prefix("cmd=")).unwrap().to_owned()
    };
    log.elements().unwrap().iter().map(command).collect()
}

fn entries(log: &Value) -> Vec<String> {
    let words =
        |entry: &Value| ["reason", "context", "object"].map(|name| entry.get(name).unwrap().text()).join(" ");
    log.elements().unwrap().iter().map(words).collect()
}

#[test]
fn a_call_refused_while_queueing_aborts_the_transaction() {
    everywhere(&[], |server, admin| {
        admin.run("HELLO 3");
        assert_ok(admin, "ACL SETUSER alice on nopass ~a* +set +multi +exec");
        let mut alice = login(server, "alice", "x");
        assert_ok(&mut alice, "MULTI");
        assert_eq!(alice.run("SET a 1").text(), QUEUED);
        assert_error(&mut alice, "SET b 1", "NOPERM No permissions to access a key");
        assert_error(&mut alice, "EXEC", "EXECABORT Transaction discarded because of previous errors.");
        assert_eq!(entries(&admin.run("ACL LOG")), ["key multi b"]);
        assert_eq!(admin.run("EXISTS a"), Value::Integer(0));
    });
}

#[test]
fn a_call_that_is_no_longer_allowed_is_refused_at_exec() {
    everywhere(&[], |server, admin| {
        admin.run("HELLO 3");
        assert_ok(admin, "ACL SETUSER alice on nopass ~* +@all");
        let mut alice = login(server, "alice", "x");
        assert_ok(&mut alice, "MULTI");
        for line in ["SET a 1", "GET a", "SET b 1"] {
            assert_eq!(alice.run(line).text(), QUEUED);
        }
        assert_ok(admin, "ACL SETUSER alice -get resetkeys ~a*");
        let changed = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. \
                       This command is no longer allowed for the following reason: no permission to";
        let error = |reason: &str| Value::Error(format!("{changed} {reason}").into_bytes());
        let expected =
            vec![Value::ok(), error("execute the command or subcommand"), error("touch the specified keys")];
        assert_eq!(alice.run("EXEC"), Value::Array(expected));
        assert_eq!(entries(&admin.run("ACL LOG")), ["key multi b", "command multi get"]);
        assert_eq!(running(&admin.run("ACL LOG")), ["exec", "exec"]);
    });
}

#[test]
fn the_log_names_the_command_the_client_called() {
    everywhere(&[], |server, admin| {
        admin.run("HELLO 3");
        assert_ok(admin, "ACL SETUSER alice on nopass ~a* +@all -config|get");
        let mut alice = login(server, "alice", "x");
        assert!(alice.run("GET b").is_error());
        assert!(alice.run("CONFIG GET port").is_error());
        assert!(alice.command(&["EVAL", "return redis.call('GET', 'b')", "0"]).is_error());
        assert_ok(&mut alice, "MULTI");
        assert!(alice.run("GET b").is_error());
        assert_eq!(running(&admin.run("ACL LOG")), ["get", "eval", "config|get", "get"]);
    });
}

#[test]
fn a_user_that_removes_itself_in_a_transaction_is_disconnected_after_it() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER alice on nopass ~* +@all");
        let mut alice = login(server, "alice", "x");
        assert_ok(&mut alice, "MULTI");
        assert_eq!(alice.run("ACL DELUSER alice").text(), QUEUED);
        assert_eq!(alice.run("EXEC"), Value::Array(vec![Value::Integer(1)]));
        assert!(alice.is_closed().unwrap());
    });
}

#[test]
fn a_script_may_do_what_its_caller_may() {
    everywhere(&[], |server, admin| {
        admin.run("HELLO 3");
        assert_ok(admin, "ACL SETUSER alice on nopass ~a* +eval +set +get");
        let mut alice = login(server, "alice", "x");
        let mut eval = |script: &str, key: &str| alice.command(&["EVAL", script, "1", key]);
        assert_eq!(eval("return redis.call('set', KEYS[1], 'v')", "a1"), Value::ok());
        let text_of = |reply: Value| reply.text();
        let denied = eval("return redis.pcall('set', 'b', 'v')['err']", "a1");
        assert_eq!(text_of(denied), "ERR ACL failure in script: No permissions to access a key");
        let denied = eval("return redis.pcall('del', KEYS[1])['err']", "a1");
        let expected = "ERR ACL failure in script: User alice has no permissions to run the 'del' command";
        assert_eq!(text_of(denied), expected);
        let denied = eval("return redis.call('del', KEYS[1])", "a1");
        assert!(denied.is_error() && text_of(denied.clone()).starts_with(expected), "{denied:?}");
        let denied = eval("return 1", "b");
        assert_eq!(
            text_of(denied),
            "NOPERM No permissions to access a key",
            "declared keys are checked before"
        );
        for (call, allowed) in [("'get', 'a2'", 1), ("'get', 'b'", 0), ("'del', 'a2'", 0)] {
            let script = format!("return redis.acl_check_cmd({call})");
            let allowed = if allowed == 1 { Value::Integer(1) } else { Value::Null };
            assert_eq!(eval(&script, "a1"), allowed, "{call}");
        }
        let expected = ["key toplevel b", "command lua del", "key lua b"];
        assert_eq!(entries(&admin.run("ACL LOG")), expected, "a query is not logged");
        assert_eq!(admin.run("EXISTS a1 b"), Value::Integer(1));
    });
}

fn wait_for_blocked(admin: &mut RawClient) {
    wait_until("a call waits", || admin.info("blocked_clients") == "1");
}

#[test]
fn a_waiting_call_that_is_no_longer_allowed_is_refused_when_served() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER alice on nopass ~* +@all");
        let mut alice = login(server, "alice", "x");
        alice.send_command(&["BLPOP", "list", "0"]).unwrap();
        wait_for_blocked(admin);
        assert_ok(admin, "ACL SETUSER alice resetkeys ~other");
        assert_eq!(admin.run("RPUSH list v"), Value::Integer(1));
        let denied = Value::Error(b"NOPERM No permissions to access a key".to_vec());
        assert_eq!(alice.read_value().unwrap(), denied);
        assert_eq!(admin.run("LLEN list"), Value::Integer(1), "no element was taken");
        let counts = admin.info("cmdstat_blpop");
        assert_eq!(counts, "calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0");
        alice.send_command(&["BLPOP", "other", "0"]).unwrap();
        wait_for_blocked(admin);
        assert_eq!(admin.run("ACL DELUSER alice"), Value::Integer(1));
        assert!(alice.is_closed().unwrap());
    });
}

#[test]
fn channels_beyond_the_rules_are_refused() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER alice on nopass +@all &news.* &chat");
        let mut alice = login(server, "alice", "x");
        let denied = "NOPERM No permissions to access a channel";
        assert_eq!(alice.run("PUBLISH news.a x"), Value::Integer(0));
        assert_error(&mut alice, "PUBLISH other x", denied);
        assert_error(&mut alice, "SPUBLISH other x", denied);
        assert_error(&mut alice, "SUBSCRIBE chat other", denied);
        assert_error(&mut alice, "PSUBSCRIBE news.a*", denied);
        assert!(!alice.run("PSUBSCRIBE news.*").is_error());
        assert_eq!(admin.run("PUBLISH news.b hello"), Value::Integer(1));
        assert_eq!(texts(&alice.read_value().unwrap())[3], "hello");
        let reply = admin.run("ACL DRYRUN alice PUBLISH other x");
        assert_eq!(reply.text(), "User alice has no permissions to access the 'other' channel");
    });
}

#[test]
fn subscribers_of_channels_no_longer_allowed_are_disconnected() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER alice on nopass +@all allchannels");
        assert_ok(admin, "ACL SETUSER bob on nopass +@all allchannels");
        let mut listeners = ["SUBSCRIBE news.a", "SUBSCRIBE chat", "PSUBSCRIBE news.*", "SSUBSCRIBE chat"]
            .map(|line| {
                let mut alice = login(server, "alice", "x");
                assert!(!alice.run(line).is_error());
                alice
            });
        let mut bob = login(server, "bob", "x");
        assert!(!bob.run("SUBSCRIBE chat").is_error());
        assert_ok(admin, "ACL SETUSER alice resetchannels &news.*");
        for (at, ends) in [(1, true), (3, true)] {
            assert_eq!(listeners[at].is_closed().unwrap(), ends, "{at}");
        }
        assert_eq!(admin.run("PUBLISH news.a x"), Value::Integer(2));
        for at in [0, 2] {
            assert!(!listeners[at].read_value().unwrap().is_error());
        }
        assert_eq!(admin.run("PUBLISH chat x"), Value::Integer(1));
        assert!(!bob.read_value().unwrap().is_error());
    });
}

/// Every command that names a database requires the right to select it.
#[test]
fn a_forbidden_database_cannot_be_reached_by_any_command() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER alice on nopass +@all -select +select|0 +select|2 ~* &*");
        admin.run("MSET a 1 b 2 c 3");
        let denied = "NOPERM User alice has no permissions to run the 'select' command";
        let mut alice = login(server, "alice", "x");
        for line in [
            "SELECT 5",
            "COPY a b DB 5",
            "COPY a b REPLACE db 5",
            "COPY a b DB 0 DB 5",
            "MOVE a 5",
            "SWAPDB 0 5",
            "SWAPDB 5 0",
            "SWAPDB 5 6",
        ] {
            assert_error(&mut alice, line, denied);
        }
        let watched = alice.command(&["SUBSCRIBE", "__watch@5__:GET a"]);
        assert_eq!(watched, Value::Error(denied.into()));
        let scripted = [
            "redis.call('select', 5)",
            "redis.call('copy', 'a', 'b', 'DB', 5)",
            "redis.call('move', 'a', 5)",
        ];
        for call in scripted {
            let reply = alice.command(&["EVAL", &format!("return {call}"), "0"]);
            assert!(reply.is_error() && reply.text().contains("ACL failure in script"), "{call}: {reply:?}");
        }
        assert_ok(&mut alice, "MULTI");
        assert_error(&mut alice, "MOVE a 5", denied);
        assert_error(&mut alice, "EXEC", "EXECABORT Transaction discarded because of previous errors.");
        for (line, reply) in [
            ("COPY a d DB 0", Value::Integer(1)),
            ("COPY a d DB 2", Value::Integer(1)),
            ("MOVE b 2", Value::Integer(1)),
            ("SWAPDB 0 2", Value::ok()),
            ("SWAPDB 0 2", Value::ok()),
        ] {
            assert_eq!(alice.run(line), reply, "{line}");
        }
        assert!(!alice.command(&["SUBSCRIBE", "__watch@0__:GET a"]).is_error());
        let mut other = login(server, "alice", "x");
        assert!(!other.command(&["SUBSCRIBE", "__watch@2__:GET b"]).is_error());
        // A user without the right to SELECT uses the selected database.
        assert_ok(admin, "ACL SETUSER bob on nopass +@all -select ~* &*");
        let mut bob = login(server, "bob", "x");
        assert_eq!(bob.run("COPY a e DB 0"), Value::Integer(1));
        assert!(bob.run("COPY a e DB 1").is_error());
        // A revoked right also affects existing watches.
        assert_ok(admin, "ACL SETUSER alice -select +select|0");
        admin.run("SELECT 2");
        admin.run("SET b changed");
        let reply = loop {
            let text = texts(&other.read_value().unwrap()).pop().unwrap();
            if text.contains("NOPERM") || text.contains("changed") {
                break text;
            }
        };
        assert!(reply.contains("NOPERM"), "{reply}");
        for database in [5, 6] {
            admin.run(&format!("SELECT {database}"));
            assert_eq!(admin.run("DBSIZE"), Value::Integer(0), "{database}");
        }
    });
}
