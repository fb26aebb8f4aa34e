//! Replies of a standalone server: no replica, no node of a cluster, no modules.

use ember_testkit::Value;

use crate::{assert_error, assert_ok, everywhere};

const DISABLED: &str = "ERR This instance has cluster support disabled";

#[test]
fn role_reports_a_primary_without_replicas() {
    everywhere(&[], |_, client| {
        let role = [Value::from("master"), Value::Integer(0), Value::Array(Vec::new())];
        assert_eq!(client.run("ROLE"), Value::Array(role.to_vec()));
    });
}

#[test]
fn a_server_starts_without_a_primary() {
    everywhere(&[], |_, client| {
        for name in ["REPLICAOF", "SLAVEOF"] {
            assert_ok(client, &format!("{name} no one"));
            assert_error(client, &format!("{name} 127.0.0.1 x"), "ERR Invalid master port");
            assert_error(client, &format!("{name} 127.0.0.1 70000"), "ERR Invalid master port");
        }
    });
}

#[test]
fn cluster_commands_report_that_cluster_mode_is_off() {
    everywhere(&[], |_, client| {
        for line in [
            "CLUSTER INFO",
            "CLUSTER KEYSLOT key",
            "CLUSTER HELP",
            "cluster nodes",
            "CLUSTER RESET HARD",
            "READONLY",
            "READWRITE",
            "ASKING",
        ] {
            assert_error(client, line, DISABLED);
        }
        assert_error(
            client,
            "CLUSTER KEYSLOT",
            "ERR wrong number of arguments for 'cluster|keyslot' command",
        );
        assert_error(client, "CLUSTER", "ERR wrong number of arguments for 'cluster' command");
        assert_error(client, "CLUSTER NOSUCH", "ERR unknown subcommand 'NOSUCH'. Try CLUSTER HELP.");
    });
}

#[test]
fn module_commands_report_the_modules_that_are_built_in() {
    everywhere(&[], |_, client| {
        let modules = client.run("MODULE LIST");
        let info = client.run("INFO modules").text();
        for (module, (name, version)) in
            modules.elements().unwrap().iter().zip([("ReJSON", 20803), ("bf", 20802)])
        {
            assert_eq!(
                (module.get("name").unwrap().text(), module.get("ver").unwrap()),
                (name.to_owned(), Value::Integer(version))
            );
            assert!(info.contains(&format!("module:name={name},ver={version},")), "{info}");
        }
        let head = "MODULE <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";
        assert_eq!(client.run("MODULE HELP").elements().unwrap()[0].text(), head);
        let refused = "ERR Error loading the extension: this server loads no modules.";
        assert_error(client, "MODULE LOAD /tmp/module.so", refused);
        assert_error(client, "MODULE LOADEX /tmp/module.so ARGS a", refused);
        let unknown = "ERR Error unloading module: no such module with that name";
        assert_error(client, "MODULE UNLOAD module", unknown);
    });
}
