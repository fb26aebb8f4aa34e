//! Servers as nodes of a cluster, in both execution modes.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod commands;
mod failover;
mod file;
mod group;
mod lone;
mod losing;
mod redirecting;
mod replicas;
mod scripts;

use std::path::{Path, PathBuf};

use ember_testkit::{RawClient, Server, ServerBuilder, Value, free_port};

/// Both execution modes, each with two workers.
const MODES: [&[&str]; 2] =
    [&["--concurrent", "yes", "--shards", "2"], &["--concurrent", "no", "--shards", "2"]];

/// The number of slots.
const SLOTS: u16 = 16_384;

fn program() -> PathBuf {
    std::env::var_os("EMBER_SERVER").map_or_else(|| env!("CARGO_BIN_EXE_ember-server").into(), PathBuf::from)
}

fn builder(mode: &[&str]) -> ServerBuilder {
    // The port of clients plus 10000 may be that of a connection of another test.
    let bus_port = free_port().to_string();
    let arguments = ["--cluster-enabled", "yes", "--cluster-port", &bus_port];
    Server::builder(program()).arguments(mode).arguments(&arguments)
}

/// Starts a lone node that owns all slots.
fn start_with_all_slots(mode: &[&str]) -> Server {
    let server = builder(mode).start();
    assert_ok(&mut server.client(), "CLUSTER ADDSLOTSRANGE 0 16383");
    server
}

fn assert_ok(client: &mut RawClient, line: &str) {
    assert_eq!(client.run(line), Value::ok(), "{line}");
}

fn assert_error(client: &mut RawClient, line: &str, error: &str) {
    assert_eq!(client.run(line), Value::Error(error.as_bytes().to_vec()), "{line}");
}

/// Returns the text of a reply.
fn text(client: &mut RawClient, line: &str) -> String {
    client.run(line).text()
}

/// Returns the value of a line of CLUSTER INFO.
fn cluster_info(client: &mut RawClient, name: &str) -> String {
    let info = text(client, "CLUSTER INFO");
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {info}")).to_owned()
}

/// A node of a written topology.
struct Node {
    server: Server,
    port: u16,
    name: String,
}

impl Node {
    fn client(&self) -> RawClient {
        self.server.client()
    }

    /// Returns the error that redirects a client to this node.
    fn moved(&self, slot: u16) -> String {
        format!("MOVED {slot} 127.0.0.1:{}", self.port)
    }
}

/// The part of a line of `nodes.conf` that differs between nodes: the slots, or the number of the replicated node.
enum Part<'p> {
    Slots(&'p str),
    ReplicaOf(usize),
}

fn name_of(number: usize) -> String {
    format!("{:040x}", number + 0xa0)
}

/// Starts nodes that know each other from files written by hand, with these parts and further arguments.
fn start_nodes(mode: &[&str], arguments: &[&str], parts: &[Part<'_>]) -> Vec<Node> {
    let ports: Vec<u16> = parts.iter().map(|_| free_port()).collect();
    let bus_ports: Vec<u16> = parts.iter().map(|_| free_port()).collect();
    let start = |myself: usize| {
        let directory = directory();
        std::fs::write(directory.join("nodes.conf"), written(&ports, &bus_ports, parts, myself)).unwrap();
        let bus_port = bus_ports[myself].to_string();
        let arguments = [arguments, &["--cluster-port", &bus_port]].concat();
        let server = builder(mode).arguments(&arguments).port(ports[myself]).directory(directory).start();
        Node { server, port: ports[myself], name: name_of(myself) }
    };
    (0..parts.len()).map(start).collect()
}

/// Returns the file of a node.
fn written(ports: &[u16], bus_ports: &[u16], parts: &[Part<'_>], myself: usize) -> String {
    let mut text = "# The nodes of a test.\n".to_owned();
    for (number, part) in parts.iter().enumerate() {
        let flag = if number == myself { "myself," } else { "" };
        let (role, slots) = match part {
            Part::Slots(slots) => ("master -".to_owned(), *slots),
            Part::ReplicaOf(primary) => (format!("slave {}", name_of(*primary)), ""),
        };
        let (name, port, bus_port) = (name_of(number), ports[number], bus_ports[number]);
        text += &format!("{name} 127.0.0.1:{port}@{bus_port} {flag}{role} 0 0 {number} connected {slots}\n");
    }
    text
}

/// Three primaries that own all slots together.
const THREE: [Part<'_>; 3] = [Part::Slots("0-5460"), Part::Slots("5461-10922"), Part::Slots("10923-16383")];

/// Returns a new directory, which the test removes with [`remove`], or leaves when it fails.
fn directory() -> PathBuf {
    let directory =
        std::env::temp_dir().join(format!("ember-cluster-{}-{}", std::process::id(), free_port()));
    std::fs::create_dir(&directory).unwrap();
    directory
}

fn remove(directory: &Path) {
    std::fs::remove_dir_all(directory).unwrap();
}

/// Stops nodes and removes their directories.
fn stop(nodes: Vec<Node>) {
    for node in nodes {
        let directory = node.server.directory().to_owned();
        drop(node);
        remove(&directory);
    }
}
