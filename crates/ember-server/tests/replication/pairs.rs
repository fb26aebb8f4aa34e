//! Two servers of this program: one is a replica of the other, and then vice versa.

use ember_testkit::{RawClient, Server, Value, wait_until};

use crate::{MODES, replicaof, start};

pub(crate) const ARGUMENTS: [&str; 4] = ["--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"];

pub(crate) fn follow(replica: &mut RawClient, primary: &Server) {
    replicaof(replica, primary.port());
    wait_until("the link is up", || replica.info("master_link_status") == "up");
}

pub(crate) fn assert_same(one: &mut RawClient, other: &mut RawClient) {
    wait_until("both have the same", || {
        one.info("master_repl_offset") == other.info("slave_repl_offset")
            && one.run("DEBUG DIGEST") == other.run("DEBUG DIGEST")
    });
}

#[test]
fn a_replica_follows_and_is_then_promoted() {
    for mode in MODES {
        for other_mode in MODES {
            let servers = [start(mode, &ARGUMENTS), start(other_mode, &ARGUMENTS)];
            let [mut one, mut other] = [servers[0].client(), servers[1].client()];
            one.run("DEBUG POPULATE 1000 key 100");
            one.run("HSET h a 1 b 2");
            one.run("HPEXPIRE h 1000000 FIELDS 1 a");
            follow(&mut other, &servers[0]);
            for line in [
                "INCR n",
                "MULTI",
                "RPUSH l a b c",
                "SPOP nothing",
                "LPOP l",
                "EXEC",
                "HPERSIST h FIELDS 1 a",
            ] {
                one.run(line);
            }
            assert_eq!(one.run("WAIT 1 0"), Value::Integer(1));
            assert_same(&mut one, &mut other);
            // A broken link does not cause a full sync.
            assert_eq!(other.run("CLIENT KILL TYPE master"), Value::Integer(1));
            one.run("INCR n");
            assert_same(&mut one, &mut other);
            assert_eq!((one.info("sync_full"), one.info("sync_partial_ok")), ("1".into(), "1".into()));
            assert_eq!(other.run("REPLICAOF NO ONE"), Value::ok());
            other.run("SET mine 1");
            follow(&mut one, &servers[1]);
            other.run("INCR n");
            assert_same(&mut other, &mut one);
            assert_eq!(one.run("GET mine").text(), "1");
            assert_eq!(other.info("connected_slaves"), "1");
        }
    }
}

#[test]
fn replicas_of_a_replica_receive_its_stream() {
    for mode in MODES {
        let servers = [start(mode, &ARGUMENTS), start(mode, &ARGUMENTS), start(mode, &ARGUMENTS)];
        let [mut first, mut middle, mut last] = [0, 1, 2].map(|at: usize| servers[at].client());
        first.run("SET of first");
        middle.run("SET own 1");
        follow(&mut last, &servers[1]);
        // The data of the middle server is replaced, and its replicas must receive the new data.
        follow(&mut middle, &servers[0]);
        first.run("INCR n");
        let digest = |client: &mut RawClient| client.run("DEBUG DIGEST");
        wait_until("all have the same data", || {
            let wanted = digest(&mut first);
            digest(&mut middle) == wanted && digest(&mut last) == wanted
        });
        // The last server may receive more than one full sync.
        wait_until("the last has both keys", || last.run("EXISTS own of n") == Value::Integer(2));
        // The test is repeated with another primary.
        let other = start(mode, &ARGUMENTS);
        other.client().run("SET of other");
        follow(&mut middle, &other);
        wait_until("the last has it too", || last.run("GET of").text() == "other");
        wait_until("and nothing else", || last.run("EXISTS n") == Value::Integer(0));
    }
}

/// The writes of a new primary belong to a history that its replicas do not know until they reconnect.
#[test]
fn replicas_of_a_new_primary_resume() {
    for mode in MODES {
        for round in 0..5 {
            let [first, middle, last] = [(); 3].map(|()| start(mode, &ARGUMENTS));
            let [mut leading, mut following] = [middle.client(), last.client()];
            follow(&mut leading, &first);
            follow(&mut following, &middle);
            first.client().run("SET before 1");
            let mut writers = [(); 4].map(|()| middle.client());
            // These writes are in the stream before all workers are notified of the role change.
            leading.send(&[&b"REPLICAOF NO ONE\r\n"[..], &b"INCR behind\r\n".repeat(100)].concat()).unwrap();
            writers.iter_mut().for_each(|writer| writer.send(&b"INCR behind\r\n".repeat(20)).unwrap());
            (0..101).for_each(|_| _ = leading.read_value().unwrap());
            writers.iter_mut().for_each(|writer| (0..20).for_each(|_| _ = writer.read_value().unwrap()));
            wait_until("the data are equal", || following.run("GET behind") == leading.run("GET behind"));
            assert_eq!(leading.info("sync_full"), "1", "round {round}: {}", middle.log());
        }
    }
}

/// At a full sync the replica closes its append-only file and begins a new one, with or without replicas of its own.
#[test]
fn a_replica_with_replicas_restarts_its_aof_after_a_full_sync() {
    for mode in MODES {
        let [first, middle, last] = [(); 3].map(|()| start(mode, &ARGUMENTS));
        let [mut leading, mut following] = [middle.client(), last.client()];
        assert_eq!(leading.run("CONFIG SET appendonly yes"), Value::ok());
        follow(&mut following, &middle);
        first.client().run("SET a 1");
        follow(&mut leading, &first);
        wait_until("the AOF is on", || leading.info("aof_enabled") == "1");
        wait_until("the AOF has its base", || leading.info("aof_rewrite_in_progress") == "0");
        wait_until("the data are equal", || following.run("GET a") == Value::from("1"));
    }
}

/// Whether the connection to a server's only replica sends data immediately (TCP_NODELAY).
#[cfg(target_os = "linux")]
fn sends_at_once(server: &Server) -> bool {
    use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

    let list = server.client().run("CLIENT LIST TYPE replica").text();
    let descriptor = list.split(' ').find_map(|field| field.strip_prefix("fd=")).unwrap().parse().unwrap();
    let pid = Pid::from_raw(server.pid().try_into().unwrap()).unwrap();
    let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let socket = pidfd_getfd(&process, descriptor, PidfdGetfdFlags::empty()).unwrap();
    rustix::net::sockopt::tcp_nodelay(&socket).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn packets_for_replicas_are_combined_on_demand() {
    for mode in MODES {
        let servers = [start(mode, &ARGUMENTS), start(mode, &ARGUMENTS)];
        let [mut one, mut other] = [servers[0].client(), servers[1].client()];
        follow(&mut other, &servers[0]);
        assert!(sends_at_once(&servers[0]));
        one.run("CONFIG SET repl-disable-tcp-nodelay yes");
        assert_eq!(other.run("REPLICAOF NO ONE"), Value::ok());
        wait_until("the replica is disconnected", || one.info("connected_slaves") == "0");
        follow(&mut other, &servers[0]);
        wait_until("the replica receives data", || !sends_at_once(&servers[0]));
        one.run("SET a b");
        assert_same(&mut one, &mut other);
    }
}

#[test]
fn old_data_of_a_replica_are_freed_in_the_background_on_demand() {
    for mode in MODES {
        for is_lazy in ["yes", "no"] {
            let servers = [start(mode, &ARGUMENTS), start(mode, &ARGUMENTS)];
            let mut other = servers[1].client();
            other.run("DEBUG POPULATE 1000 key 100");
            other.run(&format!("CONFIG SET replica-lazy-flush {is_lazy}"));
            follow(&mut other, &servers[0]);
            assert_eq!(other.run("DBSIZE"), Value::Integer(0));
            let freed = if is_lazy == "yes" { 1000 } else { 0 };
            wait_until("the old data are freed", || other.info_number("lazyfreed_objects") == freed);
        }
    }
}
