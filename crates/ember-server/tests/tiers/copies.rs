//! Cold values that are written to encrypted files, and sent to replicas with and without tiers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ember_testkit::{RawClient, Server, wait_until};

use crate::{MODES, builder, demote, figure, shown};

fn value(number: usize) -> String {
    format!("secret-{number}:").repeat(100)
}

fn fill(client: &mut RawClient, from: usize, to: usize) {
    for number in from..to {
        let reply = client.command(&["SET", &format!("key:{number}"), &value(number)]);
        assert!(!reply.is_error(), "{reply:?}");
    }
    client.command(&["RPUSH", "list", &value(1), &value(2)]);
    client.command(&["HSET", "hash", "field", &value(3)]);
}

fn digest(client: &mut RawClient) -> String {
    shown(client, "DEBUG DIGEST")
}

/// Whether a file in a folder contains these bytes.
fn has_bytes(folder: &Path, bytes: &[u8]) -> bool {
    let files =
        fs::read_dir(folder).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap_or_default());
    files.into_iter().any(|file| file.windows(bytes.len()).any(|window| window == bytes))
}

#[test]
fn encrypted_tiers_contain_no_plaintext() {
    for mode in MODES {
        let directory = ember_testkit::Directory::new("tiers-sealed");
        let key = directory.0.join("keys");
        fs::write(&key, "0f".repeat(32)).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let start = |more: &[&str]| {
            let more =
                [&["--maxmemory", "8mb", "--encryption-key-file", key.to_str().unwrap()], more].concat();
            builder(mode).arguments(&more).directory(&directory.0).start()
        };
        let server = start(&[]);
        let mut client = server.client();
        fill(&mut client, 0, 20_000);
        demote(&mut client, "list");
        assert!(figure(&mut client, "cold_keys") > 4000);
        wait_until("segments are written", || figure(&mut client, "bytes_written") > 4 << 20);
        assert!(!has_bytes(&directory.0.join("tiers"), b"secret-"), "{mode:?}");
        for number in (0..20_000).step_by(61) {
            assert_eq!(client.command(&["GET", &format!("key:{number}")]).text(), value(number));
        }
        assert_eq!(client.run("LINDEX list 1").text(), value(2));
        let before = digest(&mut client);
        assert_eq!(shown(&mut client, "SAVE"), "OK");
        assert!(!has_bytes(&directory.0, b"secret-"));
        drop(server);
        let server = start(&[]);
        assert_eq!(digest(&mut server.client()), before, "{mode:?}");
        assert_eq!(figure(&mut server.client(), "read_errors"), 0);
    }
}

/// Starts a replica of `primary` and waits until it has all data.
fn replica_of(primary: &Server, mode: &[&str], more: &[&str]) -> Server {
    let at = format!("{} {}", primary.address().ip(), primary.address().port());
    let replica = builder(mode).arguments(&[&["--replicaof", &at], more].concat()).start();
    let mut client = replica.client();
    wait_until("the link is up", || client.info("master_link_status") == "up");
    replica
}

#[test]
fn primaries_and_replicas_have_separate_tiers() {
    for (mode, other) in [(MODES[0], MODES[1]), (MODES[1], MODES[0])] {
        let primary = builder(mode).arguments(&["--maxmemory", "8mb"]).start();
        let mut client = primary.client();
        fill(&mut client, 0, 12_000);
        let cold = figure(&mut client, "cold_keys");
        assert!(cold > 4000);
        // One replica has less memory, one as much as it needs: the memory limit of a replica applies only to demotion.
        let small = ["--maxmemory", "6mb"];
        let replicas = [replica_of(&primary, other, &small), replica_of(&primary, mode, &[])];
        let mut clients: Vec<RawClient> = replicas.iter().map(Server::client).collect();
        let same = |client: &mut RawClient, clients: &mut [RawClient]| {
            let offset = |client: &mut RawClient| client.info_number("master_repl_offset");
            for replica in clients {
                wait_until("the replica is up to date", || offset(replica) == offset(client));
                assert_eq!(digest(replica), digest(client), "{mode:?}");
                assert_eq!(figure(replica, "read_errors"), 0);
            }
        };
        same(&mut client, &mut clients);
        assert!(figure(&mut clients[0], "cold_keys") > 4000, "{mode:?}");
        // Changes cold values, with and without fetching them.
        for number in (0..12_000).step_by(17) {
            client.command(&["APPEND", &format!("key:{number}"), "more"]);
            client.command(&["DEL", &format!("key:{}", number + 1)]);
            client.command(&["EXPIRE", &format!("key:{}", number + 2), "1000"]);
        }
        client.run("LPOP list");
        fill(&mut client, 12_000, 14_000);
        same(&mut client, &mut clients);
        // The values are also readable after the replica has become a primary.
        assert_eq!(shown(&mut clients[0], "REPLICAOF NO ONE"), "OK");
        assert_eq!(clients[0].command(&["GET", "key:13999"]).text(), value(13_999));
        fill(&mut clients[0], 14_000, 16_000);
        assert_eq!(clients[0].command(&["GET", "key:14000"]).text(), value(14_000));
    }
}
