//! Sentinel of Redis and of Valkey monitors three ember servers, and promotes another server when the primary is
//! unreachable.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ember_peers::{Mode, clients_directory, require_program, require_valkey, tools_directory};
use ember_testkit::{Directory, RawClient, Server, Value, find_ember_server, free_port, wait_until};

/// The variable with the number of failovers of each test.
const FAILOVERS_VARIABLE: &str = "SENTINEL_FAILOVERS";

/// Shortens Sentinel's periods, in milliseconds. A replica may be promoted if its last INFO is no older than five
/// periods of PING, and while a primary is down replicas are queried only once a second, whatever the other period is.
const PERIODS: &str = "SENTINEL DEBUG INFO-PERIOD 100 PING-PERIOD 250 ASK-PERIOD 50 PUBLISH-PERIOD 100 \
                       SLAVE-RECONF-TIMEOUT 1000 ELECTION-TIMEOUT 1000 MIN-LINK-RECONNECT-PERIOD 100 TILT-PERIOD 1000";

/// A Sentinel process.
struct Sentinel {
    process: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Sentinel {
    fn start(program: &Path, folder: &Path, primary: u16) -> Sentinel {
        let port = free_port();
        let file = folder.join(format!("sentinel-{port}.conf"));
        let lines = [
            format!("port {port}"),
            "bind 127.0.0.1".to_owned(),
            format!("dir {}", folder.display()),
            format!("sentinel monitor ember 127.0.0.1 {primary} 2"),
            "sentinel down-after-milliseconds ember 400".to_owned(),
            "sentinel failover-timeout ember 2000".to_owned(),
            "sentinel parallel-syncs ember 2".to_owned(),
        ];
        fs::write(&file, lines.join("\n")).unwrap();
        let log = folder.join(format!("sentinel-{port}.log"));
        let mut command = Command::new(program);
        command.arg(&file).arg("--sentinel").stdin(Stdio::null()).stdout(fs::File::create(&log).unwrap());
        let address = (Ipv4Addr::LOCALHOST, port).into();
        let sentinel = Sentinel { process: command.spawn().unwrap(), address, log };
        wait_until("Sentinel listens", || RawClient::connect(sentinel.address).is_ok());
        assert_eq!(sentinel.client().run(PERIODS), Value::ok());
        sentinel
    }

    fn client(&self) -> RawClient {
        RawClient::connect(self.address).unwrap()
    }

    /// Returns the port of the server that this Sentinel considers the primary.
    fn primary(&self) -> u16 {
        let address = self.client().run("SENTINEL GET-MASTER-ADDR-BY-NAME ember");
        address.elements().unwrap()[1].text().parse().unwrap()
    }

    /// Whether this Sentinel knows the other Sentinels, and all replicas follow the primary.
    fn sees_all_well(&self) -> bool {
        let facts = |value: &Value| -> Vec<(String, String)> {
            let words: Vec<String> = value.elements().unwrap().iter().map(Value::text).collect();
            words.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
        };
        let fact = |facts: &[(String, String)], name: &str| {
            facts.iter().find(|(other, _)| other == name).map_or(String::new(), |(_, value)| value.clone())
        };
        let mut client = self.client();
        let primary = facts(&client.run("SENTINEL MASTER ember"));
        let replicas = client.run("SENTINEL REPLICAS ember");
        let replicas: Vec<_> = replicas.elements().unwrap().iter().map(facts).collect();
        let port = fact(&primary, "port");
        fact(&primary, "num-other-sentinels") == "2"
            && fact(&primary, "flags") == "master"
            && replicas.len() == 2
            && replicas.iter().all(|replica| {
                fact(replica, "flags") == "slave"
                    && fact(replica, "master-link-status") == "ok"
                    && fact(replica, "master-port") == port
            })
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        // Both calls fail only if the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            println!("Sentinel {}:\n{}", self.address, fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

/// A writing client of redis-py that finds the primary through Sentinel.
struct PythonWriter(Child);

impl PythonWriter {
    fn start(sentinels: &[Sentinel]) -> PythonWriter {
        let mut command = Command::new(tools_directory().join("python/bin/python"));
        command.arg("-u").arg(clients_directory().join("python/sentinel.py"));
        command.args(sentinels.iter().map(|sentinel| sentinel.address.port().to_string()));
        PythonWriter(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Stops the writer; returns the numbers of the acknowledged writes.
    fn end(mut self) -> BTreeSet<String> {
        drop(self.0.stdin.take());
        let mut printed = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        assert!(self.0.wait().unwrap().success());
        printed.lines().map(str::to_owned).collect()
    }
}

impl Drop for PythonWriter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The condition for counting a write as acknowledged: the primary has applied it, or both replicas have, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acknowledged {
    Here,
    Everywhere,
}

fn start_ember(mode: Mode, acknowledged: Acknowledged, folder: &Path, port: Option<u16>) -> Server {
    fs::create_dir_all(folder).unwrap();
    let file = folder.join("ember.conf");
    if port.is_none() {
        let replicas = if acknowledged == Acknowledged::Everywhere { 2 } else { 0 };
        let lines = format!(
            "repl-diskless-sync-delay 0\nenable-debug-command yes\nsync-replicas {replicas}\nsync-timeout 300\n"
        );
        fs::write(&file, lines).unwrap();
    }
    let concurrent = if mode == Mode::Concurrent { "yes" } else { "no" };
    let builder = Server::builder(find_ember_server())
        .arguments(&["--concurrent", concurrent, "--shards", "2", "--config", file.to_str().unwrap()])
        .directory(folder);
    match port {
        None => builder.start(),
        Some(port) => builder.port(port).start(),
    }
}

fn fail_over(name: &str, mode: Mode, acknowledged: Acknowledged, program: &Path, failovers: usize) {
    let directory = Directory::new(&format!("sentinel-{name}"));
    let folder = |number: usize| directory.0.join(number.to_string());
    let mut servers: Vec<Server> =
        (0..3).map(|number| start_ember(mode, acknowledged, &folder(number), None)).collect();
    for replica in &servers[1..] {
        let line = format!("REPLICAOF 127.0.0.1 {}", servers[0].port());
        assert_eq!(replica.client().run(&line), Value::ok());
    }
    let first = servers[0].port();
    let sentinels: Vec<Sentinel> = (0..3).map(|_| Sentinel::start(program, &directory.0, first)).collect();
    let all_well = || sentinels.iter().all(Sentinel::sees_all_well);
    wait_until("all servers know each other", all_well);
    let writer = PythonWriter::start(&sentinels);
    for round in 0..failovers {
        let led = sentinels[0].primary();
        let at = servers.iter().position(|server| server.port() == led).unwrap();
        let before = servers[at].client().run("SCARD written");
        wait_until("writes continue", || servers[at].client().run("SCARD written") != before);
        let is_killed = round % 2 == 0;
        servers[at].signal(if is_killed { "KILL" } else { "STOP" });
        wait_until("another server is the primary", || {
            sentinels.iter().all(|sentinel| sentinel.primary() != led)
        });
        let leads = sentinels[0].primary();
        let leader = servers.iter().find(|server| server.port() == leads).unwrap();
        let before = leader.client().run("SCARD written");
        let is_written_to = || leader.client().run("SCARD written") != before;
        // Writes that need all replicas wait for the old primary.
        if acknowledged == Acknowledged::Here {
            wait_until("writes continue", is_written_to);
        }
        if is_killed {
            let stopped = servers.remove(at);
            drop(stopped);
            servers.insert(at, start_ember(mode, acknowledged, &folder(at), Some(led)));
        } else {
            servers[at].signal("CONT");
        }
        wait_until("the old primary follows", all_well);
        assert_eq!(servers[at].client().info("role"), "slave");
    }
    let answered = writer.end();
    let led = sentinels[0].primary();
    let leader = servers.iter().position(|server| server.port() == led).unwrap();
    let mut client = servers[leader].client();
    for other in servers.iter().filter(|server| server.port() != led) {
        wait_until("all have the same data", || {
            client.run("DEBUG DIGEST") == other.client().run("DEBUG DIGEST")
        });
        // Sentinel has made the server rewrite its configuration, so that a restarted server keeps its role.
        let file = fs::read_to_string(other.directory().join("ember.conf")).unwrap();
        assert!(file.contains(&format!("replicaof 127.0.0.1 {led}\n")), "{file}");
    }
    let file = fs::read_to_string(servers[leader].directory().join("ember.conf")).unwrap();
    assert!(!file.contains("replicaof"), "{file}");
    let written = client.run("SMEMBERS written");
    let written: BTreeSet<String> = written.elements().unwrap().iter().map(Value::text).collect();
    let lost = answered.difference(&written).count();
    assert!(answered.len() > 10 * failovers);
    assert!(acknowledged == Acknowledged::Here || lost == 0, "{lost} acknowledged writes are lost");
    println!(
        "{name}: {failovers} failovers, {} writes acknowledged {acknowledged:?}, {lost} of them lost",
        answered.len()
    );
}

/// Returns the number of failovers in the environment variable, or `usual`.
fn failovers(usual: usize) -> usize {
    let wanted = std::env::var(FAILOVERS_VARIABLE).ok();
    wanted.map_or(usual, |text| text.parse().unwrap())
}

/// Tests two groups of three servers at the same time, because they wait most of the time. More groups would compete
/// for the processors, and their servers would be considered unreachable.
fn fail_over_twice(name: &str, program: &Path, in_async: Mode, in_sync: Mode, usual: usize) {
    std::thread::scope(|scope| {
        for (mode, acknowledged) in [(in_async, Acknowledged::Here), (in_sync, Acknowledged::Everywhere)] {
            let name = format!("{name}-{mode:?}");
            scope.spawn(move || fail_over(&name, mode, acknowledged, program, failovers(usual)));
        }
    });
}

#[test]
fn sentinel_promotes_another_server() {
    fail_over_twice("redis", &require_program("redis-server"), Mode::Concurrent, Mode::Sharded, 3);
    fail_over_twice("valkey", &require_valkey(), Mode::Sharded, Mode::Concurrent, 2);
}
