//! Scripts and functions on cluster nodes.

use ember_testkit::Value;

use crate::{MODES, THREE, start_nodes, stop};

const FOREIGN: &str = "ERR Script attempted to access a non local key in a cluster node";

fn error_of(value: &Value) -> String {
    match value {
        Value::Error(text) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("{other:?} is no error"),
    }
}

#[test]
fn declared_keys_are_checked_before_a_script_runs_and_others_when_they_are_used() {
    for mode in MODES {
        let nodes = start_nodes(mode, &[], &THREE);
        let client = &mut nodes[0].client();
        let set = "return redis.call('SET', KEYS[1], 1)";
        assert_eq!(client.command(&["EVAL", set, "1", "b"]), Value::ok());
        let reply = client.command(&["EVAL", set, "1", "a"]);
        assert_eq!(error_of(&reply), nodes[2].moved(15495));
        let reply = client.command(&["EVAL", set, "2", "a", "b"]);
        assert_eq!(error_of(&reply), "CROSSSLOT Keys in request don't hash to the same slot");
        let undeclared = client.command(&["EVAL", "return redis.call('GET', 'a')", "0"]);
        assert!(error_of(&undeclared).starts_with(FOREIGN), "{undeclared:?}");
        // Without a shebang line, undeclared keys of this node may be in different slots.
        let two = "redis.call('SET', 'b', 1) return redis.call('SET', 'f', 2)";
        assert_eq!(client.command(&["EVAL", two, "0"]), Value::ok());
        stop(nodes);
    }
}

#[test]
fn scripts_with_flags_stay_in_one_slot_unless_they_say_otherwise() {
    for mode in MODES {
        let nodes = start_nodes(mode, &[], &THREE);
        let client = &mut nodes[0].client();
        let two = "redis.call('SET', KEYS[1], 1) return redis.call('SET', ARGV[1], 2)";
        let one_slot = format!("#!lua\n{two}");
        let reply = client.command(&["EVAL", &one_slot, "1", "b", "f"]);
        let error = "ERR Script attempted to access keys that do not hash to the same slot";
        assert!(error_of(&reply).starts_with(error), "{reply:?}");
        assert_eq!(client.command(&["EVAL", &one_slot, "1", "b", "{b}2"]), Value::ok());
        let crossing = format!("#!lua flags=allow-cross-slot-keys\n{two}");
        assert_eq!(client.command(&["EVAL", &crossing, "1", "b", "f"]), Value::ok());
        let reply = client.command(&["EVAL", &crossing, "1", "b", "a"]);
        assert!(error_of(&reply).starts_with(FOREIGN), "{reply:?}");
        let reply = client.command(&["EVAL", "#!lua flags=no-cluster\nreturn 1", "0"]);
        assert_eq!(error_of(&reply), "ERR Can not run script on cluster, 'no-cluster' flag is set.");
        stop(nodes);
    }
}

#[test]
fn functions_are_checked_like_scripts() {
    for mode in MODES {
        let nodes = start_nodes(mode, &[], &THREE);
        let client = &mut nodes[0].client();
        let library = "#!lua name=lib\nredis.register_function('put', function(keys, args) \
                       return redis.call('SET', keys[1] or args[1], 1) end)";
        assert_eq!(client.command(&["FUNCTION", "LOAD", library]), Value::from("lib"));
        assert_eq!(client.command(&["FCALL", "put", "1", "b"]), Value::ok());
        let reply = client.command(&["FCALL", "put", "1", "a"]);
        assert_eq!(error_of(&reply), nodes[2].moved(15495));
        let reply = client.command(&["FCALL", "put", "0", "a"]);
        assert!(error_of(&reply).starts_with(FOREIGN), "{reply:?}");
        stop(nodes);
    }
}
