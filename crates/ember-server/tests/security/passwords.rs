//! Passwords: authentication of connections as users; passwords are never shown.

use ember_protocol::client::SECRET_PARAMETERS;
use ember_testkit::{Value, render};

use crate::{assert_error, assert_ok, builder, everywhere, texts};

const WRONGPASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";

#[test]
fn any_of_several_passwords_is_accepted() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER alice on >one >two");
        let mut client = server.client();
        for password in ["one", "two"] {
            assert_ok(&mut client, &format!("AUTH alice {password}"));
        }
        for wrong in ["AUTH alice three", "AUTH alice onetwo", "AUTH Alice one", "AUTH nobody one"] {
            assert_error(&mut client, wrong, WRONGPASS);
        }
        assert_ok(admin, "ACL SETUSER alice <one");
        assert_error(&mut client, "AUTH alice one", WRONGPASS);
        assert_ok(&mut client, "AUTH alice two");
    });
}

#[test]
fn requirepass_is_the_password_of_the_default_user() {
    for mode in crate::MODES {
        let server = builder(mode).arguments(&["--requirepass", "secret"]).start();
        let mut client = server.client();
        assert_error(&mut client, "PING", "NOAUTH Authentication required.");
        assert_ok(&mut client, "AUTH secret");
        let hash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
        let lines = texts(&client.run("ACL LIST"));
        assert_eq!(lines, [format!("user default on sanitize-payload #{hash} ~* &* +@all")]);
        assert_ok(&mut client, "ACL SETUSER default >other");
        let mut other = server.client();
        assert_ok(&mut other, "AUTH other");
        assert_ok(&mut other, "AUTH default secret");
        assert_ok(&mut client, "CONFIG SET requirepass third");
        let mut other = server.client();
        assert_error(&mut other, "AUTH other", WRONGPASS);
        assert_error(&mut other, "AUTH secret", WRONGPASS);
        assert_ok(&mut other, "AUTH third");
        assert_eq!(client.command(&["CONFIG", "SET", "requirepass", ""]), Value::ok());
        assert!(texts(&client.run("ACL LIST"))[0].starts_with("user default on nopass "));
        assert_eq!(server.client().run("PING"), Value::Simple(b"PONG".to_vec()));
    }
}

#[test]
fn secrets_appear_in_no_log() {
    everywhere(&["--slowlog-log-slower-than", "0", "--loglevel", "debug"], |server, admin| {
        assert_ok(admin, "ACL SETUSER alice on >hunter2 +@all");
        assert_ok(admin, "AUTH alice hunter2");
        assert!(!admin.run("HELLO 3 AUTH alice hunter2 SETNAME me").is_error());
        assert!(admin.run("AUTH alice hunter2x").is_error());
        assert_ok(admin, "CONFIG SET requirepass hunter2");
        let calls = render(&admin.run("SLOWLOG GET 100"));
        assert!(calls.matches("(redacted)").count() >= 5 && !calls.contains("hunter2"), "{calls}");
        assert!(!server.log().contains("hunter2"), "{}", server.log());
        assert!(!admin.run("INFO everything").text().contains("hunter2"));
        assert!(!render(&admin.run("ACL LOG")).contains("hunter2"));
        assert_eq!(admin.command(&["CONFIG", "SET", "requirepass", ""]), Value::ok());
    });
}

#[test]
fn the_value_of_every_secret_parameter_is_redacted_by_each_of_its_names() {
    let thresholds = ["--slowlog-log-slower-than", "0", "--commandlog-request-larger-than", "0"];
    everywhere(&[&thresholds[..], &["--loglevel", "debug"]].concat(), |server, admin| {
        for name in SECRET_PARAMETERS {
            let was = admin.command(&["CONFIG", "GET", name]).elements().unwrap()[1].text();
            assert_eq!(admin.command(&["CONFIG", "SET", "hz", "10", name, "hunter2"]), Value::ok(), "{name}");
            // Refused calls are logged as well: a value with blanks, and a second error.
            assert!(admin.command(&["CONFIG", "SET", name, "my", "hunter2"]).is_error());
            assert!(admin.command(&["CONFIG", "SET", name, "hunter2", "hz", "hunter"]).is_error());
            assert_eq!(admin.command(&["CONFIG", "SET", name, was.as_str()]), Value::ok(), "{name}");
        }
        let logs =
            ["SLOWLOG GET 100", "COMMANDLOG GET 100 large-request"].map(|line| render(&admin.run(line)));
        for shown in &logs {
            assert!(!shown.contains("hunter2"), "{shown}");
            assert!(shown.matches("(redacted)").count() >= 4 * SECRET_PARAMETERS.len(), "{shown}");
        }
        assert!(!server.log().contains("hunter2"), "{}", server.log());
        assert!(!admin.run("INFO everything").text().contains("hunter2"));
    });
}
