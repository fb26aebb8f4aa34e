//! AUTH, HELLO and RESET: only clients that know the password are authenticated.

use ember_testkit::Value;

use crate::{MODES, assert_error, assert_ok, builder, everywhere, field};

const NOAUTH: &str = "NOAUTH Authentication required.";
const WRONGPASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";

#[test]
fn nothing_but_the_handshake_is_served_before_the_password() {
    for mode in MODES {
        let server = builder(mode).arguments(&["--requirepass", "secret"]).start();
        let mut client = server.client();
        for line in ["PING", "GET a", "SET a 1", "CLIENT ID", "COMMAND COUNT"] {
            assert_error(&mut client, line, NOAUTH);
        }
        for line in ["AUTH wrong", "AUTH secre", "AUTH secret2", "AUTH default wrong", "AUTH other secret"] {
            assert_error(&mut client, line, WRONGPASS);
        }
        assert_error(&mut client, "AUTH a b c", "ERR syntax error");
        assert_error(&mut client, "AUTH", "ERR wrong number of arguments for 'auth' command");
        assert!(client.run("HELLO 3").text().starts_with("NOAUTH HELLO must be called"));
        assert_error(&mut client, "HELLO 3 AUTH default wrong", WRONGPASS);
        assert_error(&mut client, "PING", NOAUTH);
        assert_ok(&mut client, "AUTH secret");
        assert_ok(&mut client, "SET a 1");
        assert_eq!(client.run("RESET"), Value::Simple(b"RESET".to_vec()));
        assert_error(&mut client, "GET a", NOAUTH);
        assert_ok(&mut client, "AUTH default secret");
        let mut other = server.client();
        let about = other.run("HELLO 3 AUTH default secret SETNAME me");
        assert_eq!(about.get("proto"), Some(Value::Integer(3)));
        assert_eq!(other.run("CLIENT GETNAME").text(), "me");
        let mut third = server.client();
        assert_ok(&mut third, "QUIT");
        assert!(third.is_closed().unwrap());
    }
}

#[test]
fn without_a_password_the_default_user_needs_none() {
    everywhere(&[], |_, client| {
        assert_error(
            client,
            "AUTH x",
            "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
             configuration is correct?",
        );
        assert_ok(client, "AUTH default anything");
        assert_error(client, "AUTH other anything", WRONGPASS);
    });
}

#[test]
fn a_password_set_at_run_time_is_required_of_new_connections() {
    everywhere(&[], |server, client| {
        assert_ok(client, "CONFIG SET requirepass later");
        assert_ok(client, "SET a 1");
        let mut other = server.client();
        assert_error(&mut other, "GET a", NOAUTH);
        assert_ok(&mut other, "AUTH later");
        assert_ok(client, "AUTH later");
        assert_eq!(client.command(&["CONFIG", "SET", "requirepass", ""]), Value::ok());
    });
}

#[test]
fn hello_selects_the_protocol_and_describes_server_and_connection() {
    everywhere(&[], |server, client| {
        let about = client.run("HELLO");
        assert_eq!(about.get("server"), Some(Value::from("redis")));
        assert_eq!(about.get("version"), Some(Value::from("7.2.4")));
        assert_eq!(about.get("mode"), Some(Value::from("standalone")));
        assert_eq!(about.get("role"), Some(Value::from("master")));
        assert_eq!(about.get("modules"), Some(client.run("MODULE LIST")));
        assert_eq!(about.get("id"), Some(client.run("CLIENT ID")));
        assert_error(client, "HELLO 1", "NOPROTO unsupported protocol version");
        assert_error(client, "HELLO 4", "NOPROTO unsupported protocol version");
        assert_error(client, "HELLO x", "ERR Protocol version is not an integer or out of range");
        assert_error(client, "HELLO 3 FOO", "ERR Syntax error in HELLO option 'FOO'");
        assert_error(client, "HELLO 3 AUTH a", "ERR Syntax error in HELLO option 'AUTH'");
        let mut other = server.client();
        for (protocol, null) in [("3", &b"_\r\n"[..]), ("2", b"$-1\r\n"), ("3", b"_\r\n")] {
            // HELLO is in one batch, between commands on keys of all shards: the replies after HELLO use the new
            // protocol.
            let commands: Vec<Vec<&str>> = [vec!["GET", "none"], vec!["HELLO", protocol]]
                .into_iter()
                .chain(["a", "b", "c", "d"].map(|key| vec!["GET", key]))
                .collect();
            other.pipeline(&commands).unwrap();
            other.send_command(&["GET", "none"]).unwrap();
            assert_eq!(other.read_raw().unwrap(), null);
            assert_eq!(field(&other.run("CLIENT INFO").text(), "resp"), protocol);
        }
        other
            .send(b"*1\r\n$5\r\nRESET\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n*2\r\n$3\r\nGET\r\n$1\r\nb\r\n")
            .unwrap();
        assert_eq!(other.read_bytes(8 + 10).unwrap(), b"+RESET\r\n$-1\r\n$-1\r\n");
    });
}
