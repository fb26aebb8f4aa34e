//! COMMAND: the facts about commands that clients receive.

use ember_testkit::{Value, render};

use crate::{assert_error, everywhere};

#[test]
fn command_info_has_the_format_of_redis() {
    everywhere(&[], |_, client| {
        let info = client.run("COMMAND INFO get nothing client|kill GET");
        let info = info.elements().unwrap();
        assert_eq!(info.len(), 4);
        assert_eq!((&info[0], &info[1]), (&info[3], &Value::Null));
        let get = info[0].elements().unwrap();
        assert_eq!(get.len(), 10);
        assert_eq!(get[0], Value::from("get"));
        assert_eq!(get[1..2], [Value::Integer(2)]);
        let words = |value: &Value| value.elements().unwrap().iter().map(Value::text).collect::<Vec<_>>();
        assert_eq!(words(&get[2]), ["readonly", "fast"]);
        assert_eq!(get[3..6], [1, 1, 1].map(Value::Integer));
        assert_eq!(words(&get[6]), ["@read", "@string", "@fast"]);
        let keys = &get[8].elements().unwrap()[0];
        assert_eq!(words(&keys.get("flags").unwrap()), ["RO", "access"]);
        assert_eq!(
            keys.get("begin_search").unwrap().get("spec").unwrap().get("index"),
            Some(Value::Integer(1))
        );
        assert_eq!(
            keys.get("find_keys").unwrap().get("spec").unwrap().get("lastkey"),
            Some(Value::Integer(0))
        );
        assert_eq!(info[2].elements().unwrap()[0], Value::from("client|kill"));
        let all = client.run("COMMAND");
        assert_eq!(client.run("COMMAND COUNT"), Value::Integer(all.elements().unwrap().len() as i64));
        assert_eq!(client.run("COMMAND INFO"), all);
        let container = client.run("COMMAND INFO config");
        let subcommands = container.elements().unwrap()[0].elements().unwrap()[9].clone();
        assert_eq!(subcommands.elements().unwrap().len(), 5);
    });
}

#[test]
fn command_docs_has_the_tree_of_arguments() {
    everywhere(&[], |_, client| {
        let docs = client.run("COMMAND DOCS set nothing");
        assert_eq!(docs.pairs().unwrap().len(), 1);
        let set = docs.get("set").unwrap();
        assert_eq!(set.get("group"), Some(Value::from("string")));
        assert_eq!(set.get("since"), Some(Value::from("1.0.0")));
        let arguments = set.get("arguments").unwrap();
        let arguments = arguments.elements().unwrap();
        let names: Vec<String> =
            arguments.iter().map(|argument| argument.get("name").unwrap().text()).collect();
        assert_eq!(names, ["key", "value", "condition", "get", "expiration", "tier", "pin"]);
        assert_eq!(arguments[0].get("key_spec_index"), Some(Value::Integer(0)));
        assert_eq!(arguments[2].get("type"), Some(Value::from("oneof")));
        assert_eq!(render(&arguments[2].get("flags").unwrap()).replace('~', ")"), "1) optional");
        let expiration = arguments[4].get("arguments").unwrap();
        assert_eq!(expiration.elements().unwrap()[0].get("token"), Some(Value::from("EX")));
        assert_eq!(set.get("module"), None);
        for (name, module) in [("json.get", "ReJSON"), ("cf.add", "bf"), ("tdigest.min", "bf")] {
            let docs = client.run(&format!("COMMAND DOCS {name}")).get(name).unwrap();
            assert_eq!(docs.get("module"), Some(Value::from(module)));
        }
        let client_docs = client.run("COMMAND DOCS client").get("client").unwrap();
        assert!(client_docs.get("subcommands").unwrap().get("client|kill").is_some());
        let all = client.run("COMMAND DOCS").pairs().unwrap().len();
        assert_eq!(client.run("COMMAND COUNT"), Value::Integer(all as i64));
    });
}

#[test]
fn a_wrong_key_count_is_refused() {
    everywhere(&[], |_, client| {
        for subcommand in ["GETKEYS", "GETKEYSANDFLAGS"] {
            for call in [
                "ZUNIONSTORE d 0 a",
                "ZUNIONSTORE d 3 a b",
                "ZUNION -1 a",
                "SINTERCARD x a",
                "LMPOP 4 a b LEFT",
                "ZINTERSTORE d 9223372036854775807 a",
                "MSETEX 3 a 1 b 2",
                "MSETEX 2147483647 a 1",
                "PFMERGE d",
            ] {
                let line = format!("COMMAND {subcommand} {call}");
                assert_error(client, &line, "ERR Invalid arguments specified for command");
            }
            for call in ["EVAL s 2 a", "EVALSHA s 9223372036854775807 a", "FCALL f x", "EVAL_RO s 0 a"] {
                let line = format!("COMMAND {subcommand} {call}");
                assert_eq!(client.run(&line), Value::Array(Vec::new()), "{line}");
            }
        }
        let two = Value::Array(vec![Value::from("a"), Value::from("b")]);
        for call in ["FCALL f 2 a b c", "LMPOP 2 a b LEFT", "MSETEX 2 a 1 b 2 NX", "XREAD STREAMS a b 0 0"] {
            assert_eq!(client.run(&format!("COMMAND GETKEYS {call}")), two, "{call}");
        }
    });
}

#[test]
fn keys_of_a_call_are_found() {
    everywhere(&[], |_, client| {
        let strings = |words: &[&str]| Value::Array(words.iter().map(|word| Value::from(*word)).collect());
        assert_eq!(client.run("COMMAND GETKEYS MSET a 1 b 2"), strings(&["a", "b"]));
        assert_eq!(client.run("COMMAND GETKEYS memory usage k"), strings(&["k"]));
        assert_eq!(client.run("COMMAND GETKEYS DEL a b c"), strings(&["a", "b", "c"]));
        let flags = client.run("COMMAND GETKEYSANDFLAGS RENAME a b");
        let keys: Vec<_> =
            flags.elements().unwrap().iter().map(|key| key.elements().unwrap()[0].text()).collect();
        assert_eq!(keys, ["a", "b"]);
        for (call, flags) in [
            ("SET a 1", "OW update"),
            ("SET a 1 get", "RW access update"),
            ("BITFIELD a GET u8 0", "RO access"),
            ("BITFIELD a OVERFLOW SAT GET u8 0 SET u8 0 1", "RW access update"),
        ] {
            let keys = client.run(&format!("COMMAND GETKEYSANDFLAGS {call}"));
            let found = keys.elements().unwrap()[0].elements().unwrap()[1].clone();
            let found: Vec<_> = found.elements().unwrap().iter().map(Value::text).collect();
            assert_eq!(found.join(" "), flags, "{call}");
        }
        for (line, text) in [
            ("COMMAND GETKEYS nothing a", "ERR Invalid command specified"),
            ("COMMAND GETKEYS PING a", "ERR The command has no key arguments"),
            ("COMMAND GETKEYS GET a b", "ERR Invalid number of arguments specified for command"),
            ("COMMAND GETKEYS GET", "ERR Invalid number of arguments specified for command"),
            ("COMMAND GETKEYS PING", "ERR The command has no key arguments"),
            ("COMMAND GETKEYS SSUBSCRIBE a", "ERR The command has no key arguments"),
            ("COMMAND GETKEYS OBJECT nothing k", "ERR Invalid command specified"),
            ("COMMAND GETKEYS", "ERR wrong number of arguments for 'command|getkeys' command"),
        ] {
            assert_error(client, line, text);
        }
    });
}

#[test]
fn list_filters_names() {
    everywhere(&[], |_, client| {
        let names = |value: Value| value.elements().unwrap().iter().map(Value::text).collect::<Vec<_>>();
        assert!(names(client.run("COMMAND LIST")).contains(&"client|kill".to_owned()));
        assert_eq!(names(client.run("COMMAND LIST FILTERBY PATTERN Ech?")), ["echo"]);
        assert_eq!(names(client.run("COMMAND LIST FILTERBY MODULE any")), [""; 0]);
        let sketches = names(client.run("COMMAND LIST FILTERBY MODULE bf"));
        assert!(sketches.contains(&"topk.add".to_owned()) && !sketches.contains(&"json.get".to_owned()));
        assert_eq!(names(client.run("COMMAND LIST FILTERBY ACLCAT nothing")), [""; 0]);
        let connection = names(client.run("COMMAND LIST FILTERBY ACLCAT connection"));
        assert!(connection.contains(&"hello".to_owned()) && !connection.contains(&"get".to_owned()));
        for line in ["COMMAND LIST x", "COMMAND LIST FILTERBY", "COMMAND LIST FILTERBY x y"] {
            assert_error(client, line, "ERR syntax error");
        }
    });
}
