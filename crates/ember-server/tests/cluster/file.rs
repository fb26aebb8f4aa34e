//! The file of the topology.

use std::path::Path;
use std::process::Command;

use ember_testkit::refusal;

use crate::{MODES, assert_ok, builder, directory, program, remove, text};

/// Returns the output of a node that does not start in this directory.
fn refused(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(program());
    command.current_dir(directory).args(["--port", "10000", "--cluster-enabled", "yes", "--save", ""]);
    refusal(command.args(arguments))
}

#[test]
fn a_damaged_file_stops_the_start_and_names_the_line() {
    let server = builder(MODES[0]).start();
    assert_ok(&mut server.client(), "CLUSTER ADDSLOTSRANGE 0 16383");
    let directory = server.crash();
    let path = directory.join("nodes.conf");
    let text = std::fs::read_to_string(&path).unwrap();
    let damaged = text.replace("0-16383", "0-16382");
    assert_ne!(text, damaged);
    std::fs::write(&path, &damaged).unwrap();
    let said = refused(&directory, &[]);
    assert!(said.contains("nodes.conf:2: the line is damaged") && said.contains("restore it"), "{said}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), damaged, "the file is kept");
    std::fs::write(&path, "").unwrap();
    assert!(refused(&directory, &[]).contains("nodes.conf:1: no node has the flag myself"));
    remove(&directory);
}

#[test]
fn a_file_written_by_hand_becomes_one_with_checksums() {
    let directory = directory();
    let path = directory.join("of-node.conf");
    let name = "0123456789abcdef0123456789abcdef01234567";
    let line = format!("{name} 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-16383");
    std::fs::write(&path, format!("# one node\n\n{line}\n")).unwrap();
    let arguments = ["--cluster-config-file", "of-node.conf"];
    let server = builder(MODES[1]).arguments(&arguments).directory(&directory).start();
    let client = &mut server.client();
    assert_eq!(text(client, "CLUSTER MYID"), name);
    assert_ok(client, "SET a 1");
    let port = server.port();
    let nodes = text(client, "CLUSTER NODES");
    let bus_port = client.run("CONFIG GET cluster-port").elements().unwrap()[1].text();
    assert_eq!(
        nodes,
        format!("{name} 127.0.0.1:{port}@{bus_port} myself,master - 0 0 1 connected 0-16383\n")
    );
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written.starts_with("ember-nodes 1 crc="), "{written}");
    drop(server);
    let server = builder(MODES[0]).arguments(&arguments).directory(&directory).start();
    assert_eq!(text(&mut server.client(), "CLUSTER MYID"), name);
    drop(server);
    remove(&directory);
}

#[test]
fn a_node_refuses_settings_that_contradict_the_cluster() {
    let directory = directory();
    let said = refused(&directory, &["--replicaof", "127.0.0.1 1"]);
    assert!(said.contains("replicaof directive not allowed in cluster mode"), "{said}");
    let said = refused(&directory, &["--port", "60000"]);
    assert!(said.contains("port 60000 is too high for cluster mode"), "{said}");
    remove(&directory);
}

#[test]
fn announced_addresses_take_effect_and_are_stored() {
    let server = builder(MODES[0]).start();
    let client = &mut server.client();
    assert_ok(client, "CLUSTER ADDSLOTSRANGE 0 16383");
    assert_ok(client, "CONFIG SET cluster-announce-ip 10.1.2.3 cluster-announce-port 7000");
    assert_ok(client, "CONFIG SET cluster-announce-bus-port 7001 cluster-announce-hostname node-a.example");
    assert!(text(client, "CLUSTER NODES").contains(" 10.1.2.3:7000@7001,node-a.example myself,"));
    assert_ok(client, "CONFIG SET cluster-announce-human-nodename one");
    let directory = server.crash();
    let written = std::fs::read_to_string(directory.join("nodes.conf")).unwrap();
    assert!(written.contains("10.1.2.3:7000@7001,node-a.example,tls-port=0,nodename=one,"), "{written}");
    remove(&directory);
}
