//! Denied commands are counted and logged.

use ember_testkit::Value;

use crate::{assert_error, assert_ok, builder, everywhere, login};

/// Formats the entries of ACL LOG, newest first, each as `count reason context object username`.
fn entries(log: &Value) -> Vec<String> {
    let Value::Array(entries) = log else { panic!("no array: {log:?}") };
    let line = |entry: &Value| {
        let count = entry.get("count").unwrap().integer().unwrap();
        let words = ["reason", "context", "object", "username"].map(|name| entry.get(name).unwrap().text());
        format!("{count} {}", words.join(" "))
    };
    entries.iter().map(line).collect()
}

#[test]
fn each_kind_of_denial_is_logged_with_its_caller() {
    everywhere(&[], |server, admin| {
        admin.run("HELLO 3");
        assert_ok(admin, "ACL SETUSER alice on >pw ~a* +get");
        assert_eq!(admin.info("acl_access_denied_auth"), "0");
        let mut alice = login(server, "alice", "pw");
        for line in ["GET x", "SET a 1", "GET x", "GET y", "CONFIG GET hz", "AUTH alice no", "auth bob no"] {
            assert!(alice.run(line).is_error(), "{line}");
        }
        let log = admin.run("ACL LOG");
        let expected = [
            "1 auth toplevel auth bob",
            "1 auth toplevel AUTH alice",
            "1 command toplevel config|get alice",
            "1 key toplevel y alice",
            "2 key toplevel x alice",
            "1 command toplevel set alice",
        ];
        assert_eq!(entries(&log), expected);
        let Value::Array(list) = &log else { panic!("{log:?}") };
        let about = list[3].get("client-info").unwrap().text();
        assert!(about.contains(" user=alice ") && about.contains(" cmd=get "), "{about}");
        assert_eq!(list[0].get("entry-id"), Some(Value::Integer(5)));
        let Some(Value::Double(age)) = list[0].get("age-seconds") else { panic!("{log:?}") };
        let age: f64 = String::from_utf8(age).unwrap().parse().unwrap();
        assert!((0.0..60.0).contains(&age), "{age}");
        let created = list[4].get("timestamp-created").unwrap().integer().unwrap();
        assert!(list[4].get("timestamp-last-updated").unwrap().integer().unwrap() >= created);
        assert_eq!(entries(&admin.run("ACL LOG 1")), expected[..1]);
        assert!(entries(&admin.run("ACL LOG -1")).is_empty());
        assert_error(admin, "ACL LOG x", "ERR value is not an integer or out of range");
        for (name, count) in [("auth", "2"), ("cmd", "2"), ("key", "3"), ("channel", "0")] {
            assert_eq!(admin.info(&format!("acl_access_denied_{name}")), count, "{name}");
        }
        assert_ok(admin, "ACL LOG RESET");
        assert!(entries(&admin.run("ACL LOG")).is_empty());
    });
}

#[test]
fn the_log_has_the_length_that_is_configured() {
    let server = builder(&["--acllog-max-len", "2"]).start();
    let mut admin = server.client();
    let mut stranger = server.client();
    for name in ["a", "b", "c"] {
        assert!(stranger.run(&format!("AUTH {name} x")).is_error());
    }
    assert_eq!(entries(&admin.run("ACL LOG")), ["1 auth toplevel AUTH c", "1 auth toplevel AUTH b"]);
    assert_ok(&mut admin, "CONFIG SET acllog-max-len 0");
    assert!(stranger.run("AUTH d x").is_error());
    assert!(entries(&admin.run("ACL LOG")).is_empty());
    assert_eq!(admin.info("acl_access_denied_auth"), "4");
}

#[test]
fn the_log_stores_the_beginning_of_long_names() {
    everywhere(&[], |server, admin| {
        admin.run("HELLO 3");
        assert_ok(admin, "ACL SETUSER alice on >pw resetchannels ~a* +get +publish");
        let mut alice = login(server, "alice", "pw");
        let long = "x".repeat(1_000_000);
        assert!(alice.command(&["GET", &long]).is_error());
        assert!(alice.command(&["PUBLISH", &long, "message"]).is_error());
        assert!(alice.command(&["AUTH", &long, "pw"]).is_error());
        let cut = format!("{}... (999872 more bytes)", "x".repeat(128));
        let expected = [
            format!("1 auth toplevel AUTH {cut}"),
            format!("1 channel toplevel {cut} alice"),
            format!("1 key toplevel {cut} alice"),
        ];
        assert_eq!(entries(&admin.run("ACL LOG")), expected);
    });
}

#[test]
fn refused_commands_are_counted_as_rejected() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER alice on nopass");
        let mut alice = login(server, "alice", "x");
        (0..3).for_each(|_| assert!(alice.run("GET a").is_error()));
        assert!(admin.info("cmdstat_get").ends_with(",rejected_calls=3,failed_calls=0"));
        assert_eq!(admin.info("errorstat_NOPERM"), "count=3");
    });
}

#[test]
fn migrate_needs_the_rights_to_read_and_remove_keys() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER mover on >pw ~mine %R~seen +migrate");
        let mut mover = login(server, "mover", "pw");
        let migrate = |options: &[&str], key: &str| {
            let words = [&["MIGRATE", "127.0.0.1", "1", key, "0", "9"], options].concat();
            words.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(mover.command(&migrate(&[], "mine")).text(), "NOKEY");
        let calls = [
            migrate(&[], "seen"),
            migrate(&["KEYS", "mine", "seen"], ""),
            // The last word `KEYS` is a key, and the option KEYS before it does not hide it.
            migrate(&["KEYS", "other", "KEYS", "mine"], ""),
            migrate(&["AUTH2", "KEYS", "x", "KEYS", "other"], ""),
        ];
        for call in calls {
            let answer = mover.command(&call).text();
            assert!(answer.contains("NOPERM No permissions to access a key"), "{call:?}: {answer}");
        }
    });
}
