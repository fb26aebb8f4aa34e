//! Failovers: a replica takes over the slots of its primary, after failures and by command.

use std::thread;
use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Value, wait_until};

use crate::group::{Member, stop, wait_for_agreement, wait_until_served};
use crate::{MODES, assert_error, assert_ok, cluster_info, text};

/// Starts nodes of which the first owns all slots and the next ones are its replicas; any others own nothing.
fn start_shard(mode: &[&str], count: usize, replicas: usize, arguments: &[&str]) -> Vec<Member> {
    let arguments = [arguments, &["--repl-diskless-sync-delay", "0"]].concat();
    let members: Vec<Member> = (0..count).map(|_| Member::start(mode, &arguments)).collect();
    assert_ok(&mut members[0].client(), "CLUSTER ADDSLOTSRANGE 0 16383");
    members[1..].iter().for_each(|member| member.meet(&members[0]));
    wait_for_agreement(&members);
    let voters = if count < 5 { "3" } else { "5" };
    wait_until("enough nodes vote", || {
        cluster_info(&mut members[0].client(), "cluster_raft_voters") == voters
    });
    wait_until_served(&members);
    for member in &members[1..=replicas] {
        assert_ok(&mut member.client(), &format!("CLUSTER REPLICATE {}", members[0].name()));
    }
    wait_for_agreement(&members);
    wait_until("the replicas are connected", || has_replicas(&members[0], replicas));
    members
}

/// Returns whether a primary has this number of replicas, which have all its data.
fn has_replicas(member: &Member, count: usize) -> bool {
    let info = text(&mut member.client(), "INFO replication");
    info.contains("role:master") && info.matches("state=online").count() == count
}

/// Returns the first running node that accepts a write, except one.
fn accepts(members: &[Member], except: usize, line: &str) -> Option<usize> {
    let others =
        members.iter().enumerate().filter(|(number, member)| *number != except && member.server.is_some());
    others
        .map(|(number, member)| (number, member.client().run(line)))
        .find_map(|(number, reply)| matches!(reply, Value::Simple(_) | Value::Integer(_)).then_some(number))
}

/// Waits until a node accepts a write, except one, and returns it with the time since `begun`.
fn wait_for_write(members: &[Member], except: usize, line: &str, begun: Instant) -> (usize, Duration) {
    let mut found = None;
    wait_until("a node accepts a write", || {
        found = accepts(members, except, line);
        found.is_some()
    });
    (found.unwrap(), begun.elapsed())
}

/// Increments a counter on a connection until it ends; returns the last acknowledged value.
fn count_until_the_end(mut client: RawClient) -> thread::JoinHandle<i64> {
    thread::spawn(move || {
        let mut last = 0;
        while client.send_command(&["INCR", "counter"]).is_ok() {
            match client.read_value() {
                Ok(Value::Integer(value)) => last = value,
                Ok(Value::Error(error)) => {
                    // Until the replica is in sync.
                    assert!(error.starts_with(b"NOREPLICAS"), "{}", String::from_utf8_lossy(&error));
                }
                Ok(other) => panic!("{other:?}"),
                Err(_) => break,
            }
        }
        last
    })
}

fn counter(member: &Member) -> i64 {
    match member.client().run("GET counter") {
        Value::Null => 0,
        value => value.text().parse().unwrap(),
    }
}

#[test]
fn a_killed_primary_is_replaced_and_returns_as_a_replica() {
    for mode in MODES {
        let mut members = start_shard(mode, 3, 1, &[]);
        let writes = count_until_the_end(members[0].client());
        wait_until("there are writes", || counter(&members[0]) > 100);
        let begun = Instant::now();
        members[0].kill();
        let (winner, elapsed) = wait_for_write(&members, 0, "SET after failover", begun);
        eprintln!("SIGKILL to the first accepted write: {} ms", elapsed.as_millis());
        assert_eq!(winner, 1, "the other node is no replica");
        let (last, kept) = (writes.join().unwrap(), counter(&members[1]));
        eprintln!("{} of {last} acknowledged writes are lost", (last - kept).max(0));
        // The old primary has no data, and it copies them from the new one.
        members[0].restart();
        wait_until("the old primary replicates", || has_replicas(&members[1], 1));
        wait_for_agreement(&members);
        let client = &mut members[0].client();
        assert_error(client, "SET a 1", &format!("MOVED 15495 127.0.0.1:{}", members[1].port));
        assert_ok(client, "READONLY");
        assert_eq!(text(client, "GET after"), "failover");
        assert_eq!(client.run("GET counter").text(), kept.to_string());
        stop(members);
    }
}

#[test]
fn a_frozen_primary_is_replaced_and_refuses_the_writes_that_waited() {
    for mode in MODES {
        let members = start_shard(mode, 3, 1, &[]);
        let client = &mut members[0].client();
        assert_ok(client, "SET a before");
        wait_until("the replica has it", || members[1].client().run("DBSIZE") == Value::Integer(1));
        members[0].server.as_ref().unwrap().signal("STOP");
        let begun = Instant::now();
        client.send_command(&["SET", "a", "late"]).unwrap();
        let (winner, elapsed) = wait_for_write(&members, 0, "SET a after", begun);
        eprintln!("SIGSTOP to the first accepted write: {} ms", elapsed.as_millis());
        assert_eq!(winner, 1);
        members[0].server.as_ref().unwrap().signal("CONT");
        let reply = client.read_value().unwrap();
        assert!(matches!(reply, Value::Error(_)), "{reply:?}");
        wait_until("the old primary replicates", || has_replicas(&members[1], 1));
        assert_eq!(text(&mut members[1].client(), "GET a"), "after");
        stop(members);
    }
}

#[test]
fn with_sync_replicas_no_acknowledged_write_is_lost_whichever_node_is_killed() {
    let mut members = start_shard(MODES[0], 5, 2, &["--sync-replicas", "1"]);
    let (mut primary, mut acknowledged) = (0, 0);
    for round in 0..3 {
        wait_until("the replicas are in sync", || {
            text(&mut members[primary].client(), "CLUSTER INFO").contains("cluster_in_sync_replicas:2")
        });
        let before = counter(&members[primary]);
        assert!(before >= acknowledged, "{before} of {acknowledged}");
        let writes = count_until_the_end(members[primary].client());
        wait_until("there are writes", || counter(&members[primary]) > before + 100);
        // A killed replica delays the writes, which then continue.
        let replica = (primary + 1) % 3;
        if round == 1 {
            members[replica].kill();
            let now = counter(&members[primary]);
            wait_until("writes continue", || counter(&members[primary]) > now + 10);
        }
        let begun = Instant::now();
        members[primary].kill();
        acknowledged = writes.join().unwrap();
        if round == 1 {
            // The other one takes over, and needs a replica to accept writes.
            members[replica].restart();
        }
        let (winner, elapsed) = wait_for_write(&members, primary, "INCR counter", begun);
        eprintln!("SIGKILL to the first accepted write: {} ms", elapsed.as_millis());
        assert!(counter(&members[winner]) > acknowledged, "acknowledged writes are lost");
        acknowledged += 1;
        members[primary].restart();
        primary = winner;
        wait_until("all replicas are connected", || has_replicas(&members[primary], 2));
    }
    stop(members);
}

#[test]
fn a_command_hands_over_the_slots_without_losing_a_write() {
    for mode in MODES {
        let members = start_shard(mode, 3, 1, &[]);
        let mut client = members[0].client();
        let (other_port, to_stop) = (members[1].port, members[1].client());
        let writes = thread::spawn(move || {
            let (mut last, mut longest) = (0, Duration::ZERO);
            loop {
                let begun = Instant::now();
                match client.run("INCR counter") {
                    Value::Integer(value) => last = value,
                    Value::Error(error) => {
                        let error = String::from_utf8_lossy(&error).into_owned();
                        return (last, longest.max(begun.elapsed()), error);
                    }
                    other => panic!("{other:?}"),
                }
                longest = longest.max(begun.elapsed());
            }
        });
        let mut replica = to_stop;
        wait_until("there are writes", || counter(&members[0]) > 100);
        // A replica reports the number of its data some time after it is online.
        wait_until("the slots are handed over", || {
            let reply = replica.run("CLUSTER FAILOVER");
            assert!(
                reply == Value::ok() || reply.text().contains("does not receive the stream"),
                "{reply:?}"
            );
            reply == Value::ok()
        });
        let (last, longest, error) = writes.join().unwrap();
        assert!(error.starts_with("MOVED ") && error.ends_with(&format!(":{other_port}")), "{error}");
        eprintln!("the longest write during the hand-over took {} ms", longest.as_millis());
        assert_eq!(counter(&members[1]), last);
        wait_until("the old primary replicates", || has_replicas(&members[1], 1));
        wait_for_agreement(&members);
        let not_a_replica = "ERR You should send CLUSTER FAILOVER to a replica";
        assert_error(&mut replica, "CLUSTER FAILOVER", not_a_replica);
        assert_error(&mut replica, "CLUSTER FAILOVER FORCE", not_a_replica);
        assert!(
            replica.run("CLUSTER FAILOVER TAKEOVER").text().contains("a majority of the voters must agree")
        );
        assert_error(&mut replica, "CLUSTER FAILOVER NOW", "ERR syntax error");
        // Without the help of the primary, its leases must end first.
        assert_ok(&mut members[0].client(), "CLUSTER FAILOVER FORCE");
        wait_until("the first one is the primary again", || has_replicas(&members[0], 1));
        assert_eq!(counter(&members[0]), last);
        stop(members);
    }
}

#[test]
fn a_node_that_is_not_to_lead_becomes_a_primary_only_by_command() {
    let mut members = start_shard(MODES[0], 3, 1, &["--cluster-replica-no-failover", "yes"]);
    assert_ok(&mut members[0].client(), "SET a 1");
    wait_until("the replica has it", || members[1].client().run("DBSIZE") == Value::Integer(1));
    members[0].kill();
    wait_until("the failure is known", || {
        let info = text(&mut members[1].client(), "CLUSTER INFO");
        info.contains("cluster_slots_fail:16384")
    });
    assert!(text(&mut members[1].client(), "CLUSTER NODES").contains(" master,fail - 0 0 "));
    assert_ok(&mut members[1].client(), "CLUSTER FAILOVER FORCE");
    wait_until("the write is accepted", || members[1].client().run("SET a 2") == Value::ok());
    stop(members);
}
