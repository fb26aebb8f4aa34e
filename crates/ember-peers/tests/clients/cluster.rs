//! Cluster clients with three nodes of a topology written by hand, and clusters that redis-cli creates.

use std::path::PathBuf;
use std::process::Command;

use ember_peers::{clients_directory, require_program, tools_directory};
use ember_testkit::{Server, ServerBuilder, Value, find_ember_server, free_port, wait_until};

/// The slots of the three nodes.
const SLOTS: [&str; 3] = ["0-5460", "5461-10922", "10923-16383"];

/// The execution modes, as arguments.
const MODES: [&str; 2] = ["yes", "no"];

/// Three nodes, which are removed with their directories when this value is dropped.
struct Nodes {
    servers: Vec<Server>,
    directory: PathBuf,
}

fn builder(concurrent: &str, bus_port: u16) -> ServerBuilder {
    let bus_port = bus_port.to_string();
    let arguments = [
        "--cluster-enabled",
        "yes",
        "--cluster-port",
        &bus_port,
        "--shards",
        "2",
        "--concurrent",
        concurrent,
    ];
    Server::builder(find_ember_server()).arguments(&arguments)
}

impl Nodes {
    fn start(concurrent: &str) -> Nodes {
        let name = format!("ember-nodes-{}-{}", std::process::id(), free_port());
        let directory = std::env::temp_dir().join(name);
        let ports: Vec<u16> = SLOTS.iter().map(|_| free_port()).collect();
        // The port of clients plus 10000 may be that of a connection of another test.
        let bus_ports: Vec<u16> = SLOTS.iter().map(|_| free_port()).collect();
        let line = |number: usize, myself: usize| {
            let (port, slots) = (ports[number], SLOTS[number]);
            let flag = if number == myself { "myself," } else { "" };
            let bus_port = bus_ports[number];
            format!("{number:040x} 127.0.0.1:{port}@{bus_port} {flag}master - 0 0 1 connected {slots}\n")
        };
        let start = |myself: usize| {
            let own = directory.join(myself.to_string());
            std::fs::create_dir_all(&own).unwrap();
            let text: String = (0..SLOTS.len()).map(|number| line(number, myself)).collect();
            std::fs::write(own.join("nodes.conf"), text).unwrap();
            builder(concurrent, bus_ports[myself]).port(ports[myself]).directory(own).start()
        };
        Nodes { servers: (0..SLOTS.len()).map(start).collect(), directory }
    }

    /// Starts nodes that are in no cluster and own no slots.
    fn start_lone(concurrent: &str, count: usize) -> Nodes {
        let name = format!("ember-nodes-{}-{}", std::process::id(), free_port());
        let directory = std::env::temp_dir().join(name);
        let start = |number: usize| {
            let own = directory.join(number.to_string());
            std::fs::create_dir_all(&own).unwrap();
            builder(concurrent, free_port()).directory(own).start()
        };
        Nodes { servers: (0..count).map(start).collect(), directory }
    }

    fn port(&self) -> String {
        self.servers[0].port().to_string()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.servers.clear();
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

/// Runs a program and returns its output.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

#[test]
fn redis_py_finds_the_node_of_each_key() {
    for mode in MODES {
        let nodes = Nodes::start(mode);
        let mut command = Command::new(tools_directory().join("python/bin/python"));
        run(command.arg(clients_directory().join("python/cluster.py")).arg(nodes.port()));
    }
}

#[test]
fn redis_cli_follows_redirections_and_checks_the_cluster() {
    for mode in MODES {
        let nodes = Nodes::start(mode);
        let cli = |arguments: &[&str]| run(Command::new(require_program("redis-cli")).args(arguments));
        let port = nodes.port();
        for key in ["a", "b", "c", "hello"] {
            assert_eq!(cli(&["-c", "-p", &port, "SET", key, "value"]), "OK\n");
            assert_eq!(cli(&["-c", "-p", &port, "GET", key]), "value\n");
        }
        let address = format!("127.0.0.1:{port}");
        let checked = cli(&["--cluster", "check", &address]);
        assert!(checked.contains("[OK] All 16384 slots covered."), "{checked}");
        assert!(checked.contains("[OK] 4 keys in 3 masters."), "{checked}");
        let called = cli(&["--cluster", "call", &address, "DBSIZE"]);
        assert_eq!(called.matches("127.0.0.1:").count(), SLOTS.len(), "{called}");
    }
}

#[test]
fn redis_cli_creates_clusters_with_and_without_replicas() {
    for (mode, count) in MODES.into_iter().zip([3, 6]) {
        let nodes = Nodes::start_lone(mode, count);
        let replicas = count / 3 - 1;
        let addresses: Vec<String> =
            nodes.servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
        let mut create = Command::new(require_program("redis-cli"));
        create.args(["--cluster", "create"]).args(&addresses);
        let created = run(create.args(["--cluster-replicas", &replicas.to_string(), "--cluster-yes"]));
        assert!(created.contains("[OK] All nodes agree about slots configuration."), "{created}");
        assert!(created.contains("[OK] All 16384 slots covered."), "{created}");
        wait_until("all nodes serve", || {
            nodes
                .servers
                .iter()
                .all(|server| server.client().run("CLUSTER INFO").text().contains("cluster_state:ok"))
        });
        let cli = |arguments: &[&str]| run(Command::new(require_program("redis-cli")).args(arguments));
        let port = nodes.port();
        for key in ["a", "b", "c", "hello"] {
            assert_eq!(cli(&["-c", "-p", &port, "SET", key, "value"]), "OK\n");
            assert_eq!(cli(&["-c", "-p", &port, "GET", key]), "value\n");
        }
        let checked = cli(&["--cluster", "check", &addresses[count - 1]]);
        assert!(checked.contains("[OK] All 16384 slots covered."), "{checked}");
        assert!(checked.contains("[OK] 4 keys in 3 masters."), "{checked}");
        assert_eq!(checked.matches("1 additional replica(s)").count(), 3 * replicas, "{checked}");
        // Each replica has the keys of its primary.
        for replica in &nodes.servers[3..] {
            let client = &mut replica.client();
            let keys = |client: &mut ember_testkit::RawClient| client.run("DBSIZE");
            let primary = client.info("master_port").parse::<u16>().unwrap();
            let primary = nodes.servers.iter().find(|server| server.port() == primary).unwrap();
            let count = keys(&mut primary.client());
            wait_until("the replica has the keys", || keys(client) == count);
            assert_eq!(client.run("READONLY"), Value::ok());
        }
    }
}
