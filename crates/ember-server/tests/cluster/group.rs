//! Nodes that agree on their topology: they form a cluster over the bus, change it, and still have it after crashes.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;

use ember_testkit::{Proxy, RawClient, Server, Value, free_port, refusal, wait_until};

use crate::{MODES, assert_error, assert_ok, builder, cluster_info, directory, program, remove, text};

/// The node timeout of the nodes: leases of 1.5 s, elections of 0.5 to 1 s.
pub(crate) const TIMEOUT: [&str; 2] = ["--cluster-node-timeout", "3000"];

/// A node with its own directory, which can be killed and started again.
pub(crate) struct Member {
    pub(crate) port: u16,
    pub(crate) bus_port: u16,
    directory: PathBuf,
    arguments: Vec<String>,
    pub(crate) server: Option<Server>,
}

impl Member {
    pub(crate) fn start(mode: &[&str], arguments: &[&str]) -> Member {
        Member::start_at(mode, arguments, free_port())
    }

    fn start_at(mode: &[&str], arguments: &[&str], bus_port: u16) -> Member {
        let arguments = [mode, &TIMEOUT, arguments].concat().iter().map(|&word| word.to_owned()).collect();
        let port = free_port();
        let mut member = Member { port, bus_port, directory: directory(), arguments, server: None };
        member.restart();
        member
    }

    pub(crate) fn restart(&mut self) {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let bus_port = self.bus_port.to_string();
        let arguments = [&arguments[..], &["--cluster-port", &bus_port]].concat();
        let server = builder(&[]).arguments(&arguments).port(self.port).directory(&self.directory);
        self.server = Some(server.start());
    }

    pub(crate) fn kill(&mut self) {
        self.server.take().unwrap().crash();
    }

    pub(crate) fn client(&self) -> RawClient {
        self.server.as_ref().unwrap().client()
    }

    pub(crate) fn name(&self) -> String {
        text(&mut self.client(), "CLUSTER MYID")
    }

    pub(crate) fn meet(&self, other: &Member) {
        assert_ok(&mut self.client(), &format!("CLUSTER MEET 127.0.0.1 {} {}", other.port, other.bus_port));
    }

    /// Returns the topology of the node: the lines of CLUSTER NODES without its own flag, sorted.
    pub(crate) fn view(&self) -> Vec<String> {
        let nodes = text(&mut self.client(), "CLUSTER NODES").replace("myself,", "");
        let mut lines: Vec<String> = nodes.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }
}

/// Starts nodes that form a cluster; the slots are assigned to the first three of them.
fn start_group(mode: &[&str], count: usize, arguments: &[&str]) -> Vec<Member> {
    let members: Vec<Member> = (0..count).map(|_| Member::start(mode, arguments)).collect();
    for (member, range) in members.iter().zip(["0 5460", "5461 10922", "10923 16383"]) {
        assert_ok(&mut member.client(), &format!("CLUSTER ADDSLOTSRANGE {range}"));
    }
    for member in &members[1..] {
        member.meet(&members[0]);
    }
    wait_for_agreement(&members);
    wait_until_served(&members);
    members
}

/// Waits until all slots are served, as all running nodes report.
pub(crate) fn wait_until_served(members: &[Member]) {
    wait_until("all slots are served", || {
        let mut running = members.iter().filter(|member| member.server.is_some());
        running.all(|member| cluster_info(&mut member.client(), "cluster_state") == "ok")
    });
}

/// Waits until all running nodes have the same nodes and slots.
pub(crate) fn wait_for_agreement(members: &[Member]) {
    wait_until("all nodes agree", || {
        let mut running = members.iter().filter(|member| member.server.is_some());
        let first = running.next().unwrap().view();
        first.len() == members.len() && running.all(|member| member.view() == first)
    });
}

pub(crate) fn stop(members: Vec<Member>) {
    for member in members {
        drop(member.server);
        remove(&member.directory);
    }
}

#[test]
fn nodes_that_meet_form_a_cluster_and_agree_on_changes() {
    for mode in MODES {
        let members = start_group(mode, 3, &[]);
        for member in &members {
            let client = &mut member.client();
            assert_eq!(cluster_info(client, "cluster_state"), "ok");
            assert_eq!(cluster_info(client, "cluster_known_nodes"), "3");
            assert_eq!(cluster_info(client, "cluster_slots_assigned"), "16384");
        }
        wait_until("three nodes vote", || {
            cluster_info(&mut members[1].client(), "cluster_raft_voters") == "3"
        });
        // Slot 15495 belongs to the third node.
        let moved = format!("MOVED 15495 127.0.0.1:{}", members[2].port);
        assert_error(&mut members[0].client(), "SET a 1", &moved);
        assert_ok(&mut members[2].client(), "SET a 1");
        // Any node changes the cluster; the reply means that the change is in effect there.
        let client = &mut members[1].client();
        assert_ok(client, "CLUSTER DELSLOTS 15495");
        assert_error(client, "CLUSTER DELSLOTS 15495", "ERR Slot 15495 is already unassigned");
        assert_error(client, "CLUSTER ADDSLOTS 0", "ERR Slot 0 is already busy");
        assert_eq!(cluster_info(client, "cluster_slots_assigned"), "16383");
        wait_for_agreement(&members);
        assert_ok(client, "CLUSTER ADDSLOTS 15495");
        assert_ok(client, &format!("CLUSTER SETSLOT 15495 NODE {}", members[1].name()));
        wait_for_agreement(&members);
        let moved = format!("MOVED 15495 127.0.0.1:{}", members[1].port);
        assert_error(&mut members[0].client(), "GET a", &moved);
        stop(members);
    }
}

#[test]
fn every_node_can_be_killed_and_keeps_the_topology() {
    let mut members = start_group(MODES[0], 3, &[]);
    wait_until("three nodes vote", || cluster_info(&mut members[0].client(), "cluster_raft_voters") == "3");
    for victim in 0..3 {
        members[victim].kill();
        // The others are a majority, after an election if the leader was killed.
        let other = (victim + 1) % 3;
        let slot = 100 + victim;
        let is_ok = |line: &str| members[other].client().run(line) == Value::ok();
        wait_until("a change is possible", || is_ok(&format!("CLUSTER DELSLOTS {slot}")));
        wait_until("a change is possible", || is_ok(&format!("CLUSTER ADDSLOTS {slot}")));
        members[victim].restart();
        wait_for_agreement(&members);
        let owned =
            members[victim].view().iter().find(|line| line.starts_with(&members[other].name())).cloned();
        assert!(owned.is_some());
    }
    for member in &mut members {
        member.kill();
    }
    members.iter_mut().for_each(Member::restart);
    wait_for_agreement(&members);
    assert_eq!(cluster_info(&mut members[2].client(), "cluster_slots_assigned"), "16384");
    stop(members);
}

#[test]
fn without_a_majority_a_change_fails_and_no_slot_is_served_after_the_lease() {
    let mut members = start_group(MODES[0], 3, &[]);
    wait_until("three nodes vote", || cluster_info(&mut members[0].client(), "cluster_raft_voters") == "3");
    members[1].kill();
    members[2].kill();
    let client = &mut members[0].client();
    // The slot of this key is 5061.
    let down = Value::Error(b"CLUSTERDOWN The cluster is down".to_vec());
    wait_until("the lease ends", || client.run("SET bar 1") == down);
    assert_eq!(client.run("GET bar"), down);
    assert_eq!(cluster_info(client, "cluster_state"), "fail");
    let error = client.run("CLUSTER DELSLOTS 0");
    assert!(matches!(error, Value::Error(_)), "{error:?}");
    members[1].restart();
    wait_until("there is a lease", || client.run("SET bar 1") == Value::ok());
    wait_until("a change is possible", || client.run("CLUSTER DELSLOTS 5460") == Value::ok());
    stop(members);
}

#[test]
fn members_agree_on_changes_although_their_links_break_again_and_again() {
    // Other nodes connect to the bus of each node through its proxy.
    let mut members: Vec<Member> = Vec::new();
    let mut proxies = Vec::new();
    for _ in 0..3 {
        let bus_port = free_port();
        let bus = SocketAddr::from((Ipv4Addr::LOCALHOST, bus_port));
        let proxy = Proxy::cutting(bus, |number| 4_000 + 1_000 * (number % 7));
        let announced = proxy.address().port().to_string();
        let arguments = ["--cluster-announce-ip", "127.0.0.1", "--cluster-announce-bus-port", &announced];
        members.push(Member::start_at(MODES[0], &arguments, bus_port));
        proxies.push(proxy);
    }
    let through = |number: usize| proxies[number].address().port();
    for member in &members[1..] {
        let line = format!("CLUSTER MEET 127.0.0.1 {} {}", members[0].port, through(0));
        wait_until("the node has joined", || member.client().run(&line) == Value::ok());
    }
    wait_for_agreement(&members);
    wait_until("three nodes vote", || cluster_info(&mut members[0].client(), "cluster_raft_voters") == "3");
    let mut slot = 0;
    while proxies.iter().any(|proxy| proxy.connections() < 6) {
        let member = &members[slot % 3];
        let line = format!("CLUSTER ADDSLOTS {slot}");
        // A reply may be lost with its link: the change is in effect then.
        wait_until("the slot is assigned", || {
            let reply = member.client().run(&line).text();
            reply == "OK" || reply.ends_with("is already busy")
        });
        slot += 1;
    }
    wait_for_agreement(&members);
    assert_eq!(cluster_info(&mut members[2].client(), "cluster_slots_assigned"), slot.to_string());
    stop(members);
}

#[test]
fn a_frozen_leader_is_replaced_and_follows_afterwards() {
    let members = start_group(MODES[0], 3, &[]);
    wait_until("three nodes vote", || cluster_info(&mut members[0].client(), "cluster_raft_voters") == "3");
    let role = |member: &Member| cluster_info(&mut member.client(), "cluster_raft_role");
    let leader = members.iter().position(|member| role(member) == "leader").unwrap();
    let others: Vec<&Member> = members.iter().filter(|member| member.port != members[leader].port).collect();
    members[leader].server.as_ref().unwrap().signal("STOP");
    wait_until("another node leads", || others.iter().any(|member| role(member) == "leader"));
    assert_ok(&mut others[0].client(), "CLUSTER DELSLOTS 7");
    members[leader].server.as_ref().unwrap().signal("CONT");
    wait_for_agreement(&members);
    wait_until("the old leader follows", || role(&members[leader]) == "follower");
    assert_eq!(cluster_info(&mut members[leader].client(), "cluster_slots_assigned"), "16383");
    stop(members);
}

#[test]
fn nodes_with_a_written_file_form_a_cluster_when_one_begins_it() {
    let mut nodes = crate::start_nodes(MODES[0], &TIMEOUT, &crate::THREE);
    let first = nodes.remove(0);
    let (port, directory) = (first.port, first.server.crash());
    let file = std::fs::read_to_string(directory.join("nodes.conf")).unwrap();
    let line = file.lines().find(|line| line.contains(" myself,")).unwrap();
    let bus_port = line.split(['@', ',']).nth(1).unwrap();
    let arguments = [&TIMEOUT[..], &["--cluster-bootstrap", "yes", "--cluster-port", bus_port]].concat();
    let server = builder(MODES[0]).arguments(&arguments).port(port).directory(directory).start();
    nodes.insert(0, crate::Node { server, port, name: first.name });
    wait_until("all nodes are members", || {
        nodes.iter().all(|node| text(&mut node.client(), "CLUSTER INFO").contains("cluster_raft_voters:3"))
    });
    assert_ok(&mut nodes[2].client(), "CLUSTER DELSLOTS 3");
    for node in &nodes {
        wait_until("the change arrives", || {
            cluster_info(&mut node.client(), "cluster_slots_assigned") == "16383"
        });
    }
    crate::stop(nodes);
}

#[test]
fn a_node_becomes_a_replica_and_copies_its_primary() {
    for mode in MODES {
        let members = start_group(mode, 4, &[]);
        assert_ok(&mut members[2].client(), "SET a 1");
        let (primary, replica) = (members[2].name(), members[3].name());
        assert_ok(&mut members[3].client(), &format!("CLUSTER REPLICATE {primary}"));
        wait_for_agreement(&members);
        let client = &mut members[3].client();
        assert_ok(client, "READONLY");
        wait_until("the data are copied", || client.run("GET a") == Value::from("1"));
        let line = members[0].view().into_iter().find(|line| line.starts_with(&replica)).unwrap();
        assert!(line.contains(&format!(" slave {primary} ")), "{line}");
        stop(members);
    }
}

#[test]
fn a_removed_node_owns_nothing_and_can_join_again() {
    let mut members = start_group(MODES[0], 4, &[]);
    let name = members[3].name();
    for member in &members[..3] {
        // Sends the command to all nodes, as redis-cli does.
        assert_ok(&mut member.client(), &format!("CLUSTER FORGET {name}"));
    }
    assert_ok(&mut members[3].client(), "CLUSTER RESET SOFT");
    assert_eq!(cluster_info(&mut members[3].client(), "cluster_known_nodes"), "1");
    let left = members.pop().unwrap();
    wait_for_agreement(&members);
    left.meet(&members[1]);
    members.push(left);
    wait_for_agreement(&members);
    // The leader can leave, too: another node is elected.
    let last = members.pop().unwrap();
    assert_ok(&mut last.client(), "CLUSTER RESET HARD");
    wait_for_agreement(&members);
    members.push(last);
    stop(members);
}

#[test]
fn two_clusters_and_overlapping_slots_are_refused() {
    let members = start_group(MODES[0], 3, &[]);
    let other = Member::start(MODES[0], &[]);
    assert_ok(&mut other.client(), "CLUSTER ADDSLOTS 5");
    let line = format!("CLUSTER MEET 127.0.0.1 {} {}", members[0].port, members[0].bus_port);
    let error = other.client().run(&line);
    assert!(error.text().contains("slot 5 belongs to both node"), "{error:?}");
    let second = Member::start(MODES[0], &[]);
    second.meet(&other);
    let error = second.client().run(&line);
    assert!(error.text().contains("both nodes are members of clusters"), "{error:?}");
    stop(members);
    stop(vec![other, second]);
}

#[test]
fn nodes_with_another_secret_do_not_meet() {
    let one = Member::start(MODES[0], &["--cluster-auth-pass", "secret"]);
    let other = Member::start(MODES[0], &["--cluster-auth-pass", "another"]);
    let third = Member::start(MODES[0], &["--cluster-auth-pass", "secret"]);
    let error = other.client().run(&format!("CLUSTER MEET 127.0.0.1 {} {}", one.port, one.bus_port));
    assert!(error.text().contains("no answer"), "{error:?}");
    third.meet(&one);
    assert_eq!(cluster_info(&mut one.client(), "cluster_known_nodes"), "2");
    stop(vec![one, other, third]);
}

#[test]
fn nodes_beyond_the_loopback_interface_need_a_secret() {
    let open = Member::start(MODES[0], &[]);
    let error = open.client().run("CLUSTER MEET 192.0.2.1 7000");
    assert!(error.text().contains("cluster-unauthenticated yes"), "{error:?}");
    stop(vec![open]);
}

#[test]
fn a_node_begins_a_cluster_with_all_slots() {
    let member = Member::start(MODES[0], &["--cluster-bootstrap", "yes"]);
    let client = &mut member.client();
    wait_until("all slots are assigned", || cluster_info(client, "cluster_slots_assigned") == "16384");
    assert_eq!(cluster_info(client, "cluster_raft_role"), "leader");
    wait_until("there is a lease", || cluster_info(client, "cluster_state") == "ok");
    assert_ok(client, "SET key value");
    stop(vec![member]);
}

#[test]
fn damaged_and_missing_files_of_the_agreement_stop_the_start() {
    let mut members = start_group(MODES[0], 3, &[]);
    members[0].kill();
    let start = |member: &Member| {
        let mut command = Command::new(program());
        command.current_dir(&member.directory).args(["--cluster-enabled", "yes", "--save", ""]);
        let ports = [member.port, member.bus_port].map(|port| port.to_string());
        refusal(command.args(["--port", &ports[0], "--cluster-port", &ports[1]]))
    };
    let log = members[0].directory.join("raft/log");
    let whole = std::fs::read(&log).unwrap();
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    std::fs::write(&log, damaged).unwrap();
    let error = start(&members[0]);
    assert!(error.contains("raft/log: line 1: the line is damaged"), "{error}");
    assert!(error.contains("CLUSTER FORGET"), "{error}");
    std::fs::remove_file(&log).unwrap();
    let error = start(&members[0]);
    assert!(error.contains("raft next to the file is missing or incomplete"), "{error}");
    std::fs::write(&log, whole).unwrap();
    members[0].restart();
    wait_for_agreement(&members);
    stop(members);
}
