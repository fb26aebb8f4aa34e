//! Users are created and removed; removing a user closes its connections.

use ember_testkit::Value;

use crate::{assert_error, assert_ok, builder, everywhere, login, texts};

#[test]
fn a_connection_has_the_rights_of_its_user() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER alice on >pw +@all");
        assert_eq!(admin.run("ACL WHOAMI").text(), "default");
        let mut alice = login(server, "alice", "pw");
        assert_eq!(alice.run("ACL WHOAMI").text(), "alice");
        assert!(alice.run("CLIENT INFO").text().contains(" user=alice redir="));
        assert!(admin.run("CLIENT LIST").text().contains(" user=alice redir="));
        alice.run("RESET");
        assert_eq!(alice.run("ACL WHOAMI").text(), "default");
        let hello = alice.run("HELLO 3 AUTH alice pw");
        assert!(!hello.is_error());
        assert_eq!(alice.run("ACL WHOAMI").text(), "alice");
    });
}

#[test]
fn removing_a_user_closes_its_connections_and_no_others() {
    everywhere(&[], |server, admin| {
        for name in ["alice", "bob"] {
            assert_ok(admin, &format!("ACL SETUSER {name} on nopass ~* +@all"));
        }
        let mut theirs: Vec<_> = (0..6).map(|_| login(server, "alice", "x")).collect();
        let mut bob = login(server, "bob", "x");
        assert_eq!(admin.run("ACL DELUSER alice nobody"), Value::Integer(1));
        for client in &mut theirs {
            assert!(client.is_closed().unwrap());
        }
        assert_eq!(bob.run("PING"), Value::Simple(b"PONG".to_vec()));
        assert_error(admin, "ACL DELUSER bob default", "ERR The 'default' user cannot be removed");
        assert_eq!(bob.run("ACL DELUSER bob"), Value::Integer(1), "the reply precedes the end");
        assert!(bob.is_closed().unwrap());
        assert_eq!(texts(&admin.run("ACL USERS")), ["default"]);
    });
}

#[test]
fn a_recreated_user_is_a_different_user() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER alice on nopass ~* +@all");
        let mut alice = login(server, "alice", "x");
        let replies = admin
            .pipeline(&[
                vec!["ACL", "DELUSER", "alice"],
                vec!["ACL", "SETUSER", "alice", "on", "nopass", "~*", "+@all"],
            ])
            .unwrap();
        assert_eq!(replies, [Value::Integer(1), Value::ok()]);
        assert!(alice.is_closed().unwrap());
    });
}

#[test]
fn client_kill_finds_connections_by_their_user() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER alice on nopass +@all");
        let mut clients: Vec<_> = (0..3).map(|_| login(server, "alice", "x")).collect();
        assert_error(admin, "CLIENT KILL USER nobody", "ERR No such user 'nobody'");
        assert_eq!(admin.run("CLIENT KILL USER alice"), Value::Integer(3));
        for client in &mut clients {
            assert!(client.is_closed().unwrap());
        }
        assert_eq!(admin.run("PING"), Value::Simple(b"PONG".to_vec()));
    });
}

#[test]
fn a_user_without_rights_may_still_authenticate() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER nothing on nopass");
        assert_ok(admin, "ACL SETUSER alice on >pw +ping");
        let mut client = login(server, "nothing", "x");
        let denied = "NOPERM User nothing has no permissions to run the 'ping' command";
        assert_error(&mut client, "PING", denied);
        assert_ok(&mut client, "AUTH alice pw");
        assert_eq!(client.run("PING"), Value::Simple(b"PONG".to_vec()));
        assert_eq!(client.run("RESET"), Value::Simple(b"RESET".to_vec()));
        assert_ok(&mut client, "QUIT");
    });
}

#[test]
fn a_restricted_default_user_restricts_new_connections() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER admin on >pw ~* &* +@all");
        let mut admin = login(server, "admin", "pw");
        assert_ok(&mut admin, "ACL SETUSER default resetkeys ~public:* -@all +get +ping");
        let mut anybody = server.client();
        assert_eq!(anybody.run("GET public:a"), Value::Null);
        assert_error(&mut anybody, "GET a", "NOPERM No permissions to access a key");
        assert_ok(&mut admin, "ACL SETUSER default off");
        let mut stranger = server.client();
        assert_error(&mut stranger, "PING", "NOAUTH Authentication required.");
        assert_ok(&mut admin, "ACL SETUSER default on");
        assert_eq!(stranger.run("PING"), Value::Simple(b"PONG".to_vec()), "now no client needs to log in");
    });
}

#[test]
fn new_users_may_use_the_configured_channels() {
    let server = builder(&["--acl-pubsub-default", "allchannels"]).start();
    let mut admin = server.client();
    assert_ok(&mut admin, "ACL SETUSER alice");
    assert_ok(&mut admin, "CONFIG SET acl-pubsub-default resetchannels");
    assert_ok(&mut admin, "ACL SETUSER bob");
    let lines = texts(&admin.run("ACL LIST"));
    assert_eq!(lines[0], "user alice off sanitize-payload &* -@all");
    assert_eq!(lines[1], "user bob off sanitize-payload resetchannels -@all");
}
