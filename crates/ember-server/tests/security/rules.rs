//! Forbidden commands are refused with the texts of Redis 7.2, wherever and however they are called.

use ember_testkit::Value;

use crate::{assert_error, assert_ok, everywhere, login, texts};

const NO_KEY: &str = "NOPERM No permissions to access a key";

#[test]
fn commands_and_keys_beyond_the_rules_are_refused() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER alice on >pw ~a* %R~r* +@string -append +config|get +ping");
        let mut alice = login(server, "alice", "pw");
        assert_ok(&mut alice, "SET a1 1");
        assert_eq!(alice.run("GET r1"), Value::Null);
        assert_error(&mut alice, "SET r1 1", NO_KEY);
        assert_error(&mut alice, "GET x", NO_KEY);
        assert_error(&mut alice, "MGET a1 x", NO_KEY);
        assert_error(
            &mut alice,
            "APPEND a1 x",
            "NOPERM User alice has no permissions to run the 'append' command",
        );
        assert_error(
            &mut alice,
            "CONFIG SET hz 20",
            "NOPERM User alice has no permissions to run the 'config|set' command",
        );
        assert!(!alice.run("CONFIG GET hz").is_error());
        assert_error(&mut alice, "DEL", "ERR wrong number of arguments for 'del' command");
        assert_error(&mut alice, "NOSUCH x", "ERR unknown command 'NOSUCH', with args beginning with: 'x' ");
        assert_eq!(alice.run("ACL").text(), "ERR wrong number of arguments for 'acl' command");
    });
}

#[test]
fn sort_reads_other_keys_only_for_users_that_may_read_all() {
    everywhere(&[], |server, admin| {
        admin.run("RPUSH l 3 1 2");
        let by = "ERR BY option of SORT denied due to insufficient ACL permissions.";
        let get = "ERR GET option of SORT denied due to insufficient ACL permissions.";
        assert_ok(admin, "ACL SETUSER alice on nopass +@all ~l %R~a* %W~*");
        let mut alice = login(server, "alice", "x");
        for (line, error) in [
            ("SORT l BY w_*", by),
            ("SORT l BY w_* NOSUCH", by),
            ("SORT l NOSUCH BY w_*", "ERR syntax error"),
            ("SORT l LIMIT 0 x BY w_*", "ERR value is not an integer or out of range"),
            ("SORT l GET #", get),
            ("SORT l BY nosort GET w_*", get),
            ("SORT_RO l GET x", get),
            ("SORT none BY w_*", NO_KEY),
        ] {
            assert_error(&mut alice, line, error);
        }
        let script = "return redis.call('SORT', KEYS[1], 'GET', 'w_*')";
        assert!(alice.command(&["EVAL", script, "1", "l"]).text().starts_with(get));
        assert_eq!(texts(&alice.run("SORT l BY nosort")), ["3", "1", "2"]);
        assert_ok(&mut alice, "MULTI");
        alice.run("SORT l BY w_*");
        assert_eq!(alice.run("EXEC"), Value::Array(vec![Value::Error(by.as_bytes().to_vec())]));
        assert_eq!(admin.run("ACL DRYRUN alice SORT l BY w_*"), Value::ok());
        // A single selector must allow both the command and reading all keys.
        assert_ok(admin, "ACL SETUSER alice (~* +get)");
        assert_error(&mut alice, "SORT l BY w_*", by);
        assert_ok(admin, "ACL SETUSER alice (%R~* +sort)");
        assert_eq!(texts(&alice.run("SORT l BY w_* GET #")).len(), 3);
        assert_error(&mut alice, "SORT_RO l BY w_*", by);
        admin.run("ACL DELUSER alice");
        admin.run("DEL l");
    });
}

#[test]
fn a_pipeline_answers_allowed_and_refused_commands_in_order() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER alice on nopass ~a* +set +get");
        let mut alice = login(server, "alice", "x");
        // The keys are on shards of both workers; some are allowed and some are not.
        let commands: Vec<Vec<String>> = (0..200)
            .map(|number| {
                let key = format!("{}{number}", if number % 3 == 0 { "b" } else { "a" });
                vec!["SET".to_owned(), key, "v".to_owned()]
            })
            .collect();
        for (number, reply) in alice.pipeline(&commands).unwrap().into_iter().enumerate() {
            let denied = Value::Error(NO_KEY.as_bytes().to_vec());
            assert_eq!(reply, if number % 3 == 0 { denied } else { Value::ok() }, "{number}");
        }
        assert_eq!(admin.run("DBSIZE"), Value::Integer(133), "refused calls have no effect");
    });
}

#[test]
fn a_change_of_rules_applies_to_existing_connections() {
    everywhere(&[], |server, admin| {
        assert_ok(admin, "ACL SETUSER alice on >pw ~* +get");
        let mut alice = login(server, "alice", "pw");
        assert_eq!(alice.run("GET a"), Value::Null);
        assert_ok(admin, "ACL SETUSER alice -get +set");
        let denied = "NOPERM User alice has no permissions to run the 'get' command";
        assert_error(&mut alice, "GET a", denied);
        assert_ok(&mut alice, "SET a 1");
        assert_ok(admin, "ACL SETUSER alice off");
        assert_ok(&mut alice, "SET a 2");
        let mut other = server.client();
        assert!(other.run("AUTH alice pw").is_error(), "a disabled user cannot log in");
    });
}

#[test]
fn a_change_of_own_rules_applies_to_the_next_command_of_the_batch() {
    everywhere(&[], |_, admin| {
        let replies = admin
            .pipeline(&[
                vec!["SET", "a", "1"],
                vec!["ACL", "SETUSER", "default", "-get"],
                vec!["GET", "a"],
                vec!["ACL", "SETUSER", "default", "+get"],
                vec!["GET", "a"],
            ])
            .unwrap();
        let denied = b"NOPERM User default has no permissions to run the 'get' command";
        let expected =
            [Value::ok(), Value::ok(), Value::Error(denied.to_vec()), Value::ok(), Value::from("1")];
        assert_eq!(replies, expected);
    });
}

#[test]
fn rules_are_listed_as_given() {
    everywhere(&[], |_, admin| {
        assert_ok(admin, "ACL SETUSER alice on >pw ~a* %R~b &c +@read -get (~k +set)");
        let hash = "30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4";
        let line = format!(
            "user alice on sanitize-payload #{hash} ~a* %R~b resetchannels &c -@all +@read -get \
             (~k resetchannels -@all +set)"
        );
        let default = "user default on nopass sanitize-payload ~* &* +@all";
        assert_eq!(texts(&admin.run("ACL LIST")), [line.as_str(), default]);
        assert_eq!(texts(&admin.run("ACL USERS")), ["alice", "default"]);
        admin.run("HELLO 3");
        let user = admin.run("ACL GETUSER alice");
        let fact = |name: &str| user.get(name).unwrap().clone();
        assert_eq!(fact("flags"), Value::Set(["on", "sanitize-payload"].map(Value::from).to_vec()));
        assert_eq!(fact("passwords"), Value::Array(vec![Value::from(hash)]));
        assert_eq!(fact("commands"), Value::from("-@all +@read -get"));
        assert_eq!(fact("keys"), Value::from("~a* %R~b"));
        assert_eq!(fact("channels"), Value::from("&c"));
        let Value::Array(selectors) = fact("selectors") else { panic!("{user:?}") };
        assert_eq!(selectors.len(), 1);
        assert_eq!(selectors[0].get("commands"), Some(&Value::from("-@all +set")).cloned());
        assert_eq!(admin.run("ACL GETUSER nobody"), Value::Null);
        admin.run("HELLO 2");
    });
}

#[test]
fn rules_may_name_commands_of_redis_that_do_not_exist_here() {
    everywhere(&[], |_, admin| {
        let rules =
            "+@all -Psync -sentinel|masters +sync +migrate|10.0.0.1 +Sentinel|MyID +cluster|info -module";
        assert_ok(admin, &format!("ACL SETUSER alice {rules}"));
        let shown =
            "+@all -psync -sentinel|masters +sync +migrate|10.0.0.1 +sentinel|myid +cluster|info -module";
        assert_eq!(admin.run("ACL GETUSER alice").get("commands"), Some(&Value::from(shown)).cloned());
        assert_ok(admin, "ACL SETUSER alice +sentinel -migrate");
        let shown = "+@all -psync +sync +cluster|info -module +sentinel -migrate";
        assert_eq!(admin.run("ACL GETUSER alice").get("commands"), Some(&Value::from(shown)).cloned());
        for (rule, error) in [
            ("+nosuch|a", "Unknown command or category name in ACL"),
            ("-sync|a", "Unknown command or category name in ACL"),
            ("+sentinel|nosuch", "Unknown command or category name in ACL"),
            ("+sentinel|myid|a", "Allowing first-arg of a subcommand is not supported"),
            ("+sync|", "Syntax error"),
        ] {
            let error = format!("ERR Error in ACL SETUSER modifier '{rule}': {error}");
            assert_error(admin, &format!("ACL SETUSER alice {rule}"), &error);
        }
        admin.run("ACL DELUSER alice");
    });
}

#[test]
fn a_wrong_rule_changes_nothing() {
    everywhere(&[], |_, admin| {
        for (rules, error) in [
            ("on +nosuch", "'+nosuch': Unknown command or category name in ACL"),
            ("on what", "'what': Syntax error"),
            (
                "~* ~x",
                "'~x': Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not \
                       have any effect. Try 'resetkeys' to start with an empty list of patterns",
            ),
        ] {
            let line = format!("ACL SETUSER alice {rules}");
            assert_error(admin, &line, &format!("ERR Error in ACL SETUSER modifier {error}"));
        }
        assert_error(
            admin,
            "ACL SETUSER alice (+get",
            "ERR Unmatched parenthesis in acl selector starting at '(+get'.",
        );
        let spaces = Value::Error(b"ERR Usernames can't contain spaces or null characters".to_vec());
        assert_eq!(admin.command(&["ACL", "SETUSER", "a b"]), spaces);
        assert_eq!(admin.command(&[&b"ACL"[..], b"SETUSER", b"a\0"]), spaces);
        assert_eq!(texts(&admin.run("ACL USERS")), ["default"]);
    });
}

#[test]
fn dryrun_reports_what_would_be_refused() {
    everywhere(&[], |_, admin| {
        assert_ok(admin, "ACL SETUSER alice ~a* +get +object");
        assert_ok(admin, "ACL DRYRUN alice GET a1");
        let say = |text: &str| Value::from(text);
        for (call, answer) in [
            ("GET b", say("User alice has no permissions to access the 'b' key")),
            ("SET a1 x", say("User alice has no permissions to run the 'set' command")),
            ("OBJECT FREQ b", say("User alice has no permissions to access the 'b' key")),
        ] {
            assert_eq!(admin.run(&format!("ACL DRYRUN alice {call}")), answer, "{call}");
        }
        assert_error(admin, "ACL DRYRUN nobody GET a", "ERR User 'nobody' not found");
        assert_error(admin, "ACL DRYRUN alice nosuch", "ERR Command 'nosuch' not found");
        assert_error(admin, "ACL DRYRUN alice GET", "ERR wrong number of arguments for 'get' command");
    });
}

#[test]
fn dryrun_checks_key_access_of_each_call() {
    everywhere(&[], |_, admin| {
        assert_ok(admin, "ACL SETUSER alice +@all %R~read* %W~write* %RW~rw*");
        for call in [
            "EVAL x 1 rw1",
            "EVAL_RO x 1 read",
            "FCALL_RO f 1 read",
            "EVAL x 0 other",
            // Errors that occur before any key is accessed.
            "EVAL x -1 other",
            "EVAL x 3 rw other",
            "ZUNIONSTORE other 3 read other",
            "SORT read STORE write",
            "GEORADIUS read 1 1 1 M STOREDIST write",
            "MIGRATE h p  0 500 AUTH2 KEYS KEYS KEYS rw",
            "DELEX write",
            "DELEX rw IFEQ x",
            "SET rw x IFDNE 0",
            "DIGEST read",
        ] {
            let said = admin.command(&format!("ACL DRYRUN alice {call}").split(' ').collect::<Vec<_>>());
            assert_eq!(said, Value::ok(), "{call}");
        }
        for (call, key) in [
            ("EVAL x 1 read", "read"),
            ("EVAL x 2 rw write", "write"),
            ("EVALSHA x 1 read", "read"),
            ("EVAL_RO x 1 write", "write"),
            ("FCALL f 1 read", "read"),
            ("SORT read STORE read", "read"),
            ("SORT write STORE write", "write"),
            ("GEORADIUS read 1 1 1 M STORE read2", "read2"),
            ("MIGRATE h p  0 500 AUTH KEYS KEYS read", "read"),
            ("ZUNIONSTORE write 2 read write2", "write2"),
            ("SET read x", "read"),
            ("SET write x GET", "write"),
            ("SET write x IFNE x", "write"),
            ("DELEX write IFDEQ x", "write"),
            ("DELEX read", "read"),
            ("DIGEST write", "write"),
        ] {
            let said = admin.command(&format!("ACL DRYRUN alice {call}").split(' ').collect::<Vec<_>>());
            let expected = format!("User alice has no permissions to access the '{key}' key");
            assert_eq!(said, Value::from(expected.as_str()), "{call}");
        }
        // Permitted calls are still checked when they run.
        assert_ok(admin, "ACL SETUSER alice on nopass");
        assert_ok(admin, "AUTH alice x");
        assert!(admin.run("EVAL x 3 rw other").text().contains("Number of keys can't be greater"));
        assert_error(admin, "ZUNIONSTORE other 3 read other", "ERR syntax error");
        assert_ok(admin, "AUTH default x");
    });
}

#[test]
fn names_patterns_and_passwords_may_be_any_bytes_without_spaces() {
    everywhere(&[], |server, admin| {
        let rules: [&[u8]; 8] =
            [b"ACL", b"SETUSER", b"\xff\xfe", b"on", b">\x00 \xff", b"~\xfe*", b"+set", b"+client|info"];
        assert_eq!(admin.command(&rules), Value::ok());
        let mut client = server.client();
        assert!(client.command(&[&b"AUTH"[..], b"\xff\xfe", b"\x00 "]).is_error());
        assert_eq!(client.command(&[&b"AUTH"[..], b"\xff\xfe", b"\x00 \xff"]), Value::ok());
        assert_eq!(client.command(&[&b"SET"[..], b"\xfe1", b"x"]), Value::ok());
        assert_error(&mut client, "SET x x", NO_KEY);
        let denied = b"NOPERM User \xff\xfe has no permissions to run the 'get' command";
        assert_eq!(client.run("GET x"), Value::Error(denied.to_vec()));
    });
}

#[test]
fn categories_contain_the_commands_that_declare_them() {
    everywhere(&[], |_, admin| {
        let categories = texts(&admin.run("ACL CAT"));
        assert_eq!(categories.len(), 28);
        let some = [0, 20, 21, 22, 23, 27].map(|at| &*categories[at]);
        assert_eq!(some, ["keyspace", "scripting", "vectorset", "json", "bloom", "tdigest"]);
        let of =
            |admin: &mut ember_testkit::RawClient, name: &str| texts(&admin.run(&format!("ACL CAT {name}")));
        let strings = of(admin, "STRING");
        assert!(strings.contains(&"get".to_owned()) && !strings.contains(&"del".to_owned()));
        assert!(of(admin, "admin").contains(&"acl|setuser".to_owned()));
        assert_error(admin, "ACL CAT nosuch", "ERR Unknown category 'nosuch'");
        assert_error(
            admin,
            "ACL CAT a b",
            "ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.",
        );
    });
}

#[test]
fn generated_passwords_have_the_requested_length() {
    everywhere(&[], |_, admin| {
        for (call, digits) in [("", 64), (" 5", 2), (" 1", 1), (" 4096", 1024)] {
            let password = admin.run(&format!("ACL GENPASS{call}")).text();
            assert_eq!(password.len(), digits);
            assert!(password.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit)));
        }
        assert_ne!(admin.run("ACL GENPASS"), admin.run("ACL GENPASS"));
        let wrong = "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up \
                     to 4096";
        assert_error(admin, "ACL GENPASS 0", wrong);
        assert_error(admin, "ACL GENPASS 4097", wrong);
        assert_error(admin, "ACL GENPASS x", "ERR value is not an integer or out of range");
    });
}
