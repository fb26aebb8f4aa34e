//! Encryption at rest: which files are encrypted, with which key, and what prevents the server from starting.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ember_testkit::{RawClient, Server, Value};

use crate::{Directory, builder, refusal, start_in};

/// Encryption keys as 64 hexadecimal digits.
const OLD: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const NEW: &str = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";

/// The first bytes of an encrypted file.
const MAGIC: &[u8] = b"EMBERENC";

/// Writes keys to a file in the directory that no other user can read.
fn write_keys(directory: &Path, name: &str, keys: &[&str]) {
    let path = directory.join(name);
    fs::write(&path, keys.join("\n")).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

fn with_keys(directory: &Path) -> Server {
    start_in(directory, &["--encryption-key-file", "keys"])
}

fn saved(directory: &Path) -> Vec<u8> {
    fs::read(directory.join("dump.rdb")).unwrap()
}

fn is_encrypted(file: &[u8]) -> bool {
    file.starts_with(MAGIC) && !file.windows(6).any(|window| window == b"secret")
}

fn fingerprint(client: &mut RawClient) -> String {
    client.info("encryption_key_fingerprint")
}

#[test]
fn saved_files_are_encrypted_and_loaded() {
    let directory = Directory::new("encrypted");
    write_keys(&directory.0, "keys", &[OLD]);
    let server = with_keys(&directory.0);
    let mut client = server.client();
    client.run("SET secret-key secret-value");
    assert_eq!(client.run("SAVE"), Value::ok());
    assert!(is_encrypted(&saved(&directory.0)));
    drop(server);
    assert_eq!(with_keys(&directory.0).client().run("GET secret-key"), Value::from("secret-value"));
    // The same key is passed in the environment.
    let server = builder(&[]).directory(&directory.0).environment("EMBER_ENCRYPTION_KEY", OLD).start();
    let mut client = server.client();
    assert_eq!(client.run("GET secret-key"), Value::from("secret-value"));
    assert!(client.run("INFO persistence").text().contains("encryption_enabled:1\r\n"));
    assert!(
        builder(&[]).start().client().run("INFO persistence").text().contains("encryption_enabled:0\r\n")
    );
}

#[test]
fn a_plain_file_is_loaded_and_encrypted_by_the_next_save() {
    let directory = Directory::new("was-plain");
    let server = start_in(&directory.0, &[]);
    server.client().run("SET secret 1");
    assert_eq!(server.client().run("SAVE"), Value::ok());
    assert!(!is_encrypted(&saved(&directory.0)));
    drop(server);
    write_keys(&directory.0, "keys", &[OLD]);
    let server = with_keys(&directory.0);
    assert!(
        server.log().contains("dump.rdb is not encrypted; the next save or rewrite encrypts it"),
        "{}",
        server.log()
    );
    assert_eq!(server.client().run("GET secret"), Value::from("1"));
    assert_eq!(server.client().run("SAVE"), Value::ok());
    assert!(is_encrypted(&saved(&directory.0)));
}

#[test]
fn a_key_is_changed_while_the_server_runs() {
    let directory = Directory::new("rotation");
    write_keys(&directory.0, "keys", &[OLD]);
    let server = with_keys(&directory.0);
    let mut client = server.client();
    client.run("SET a 1");
    assert_eq!(client.run("SAVE"), Value::ok());
    let old = fingerprint(&mut client);
    // With the new key alone, the existing files would be unreadable.
    write_keys(&directory.0, "keys", &[NEW]);
    let refused = client.run("CONFIG SET encryption-key-file keys").text();
    assert!(
        refused.contains(&format!("the key of fingerprint {old}, with which files were written, is missing")),
        "{refused}"
    );
    assert_eq!(fingerprint(&mut client), old);
    write_keys(&directory.0, "keys", &[NEW, OLD]);
    assert_eq!(client.run("CONFIG SET encryption-key-file keys"), Value::ok());
    assert_ne!(fingerprint(&mut client), old);
    drop(server);
    // The file is still encrypted with the old key.
    let server = with_keys(&directory.0);
    let mut client = server.client();
    assert_eq!(client.run("GET a"), Value::from("1"));
    assert_eq!(client.run("SAVE"), Value::ok());
    drop(server);
    write_keys(&directory.0, "keys", &[OLD]);
    let said = refusal(&directory.0, &["--encryption-key-file", "keys"], None);
    assert!(said.contains("it is encrypted with a key of fingerprint"), "{said}");
    write_keys(&directory.0, "keys", &[NEW]);
    let server = with_keys(&directory.0);
    assert_eq!(server.client().run("GET a"), Value::from("1"));
    // SIGHUP also reloads the key file.
    write_keys(&directory.0, "keys", &[OLD, NEW]);
    let mut client = server.client();
    server.signal("HUP");
    while fingerprint(&mut client) != old {}
}

#[test]
fn encryption_can_be_enabled_but_not_disabled_at_run_time() {
    let directory = Directory::new("begins");
    write_keys(&directory.0, "keys", &[OLD]);
    let server = start_in(&directory.0, &[]);
    let mut client = server.client();
    client.run("SET secret 1");
    assert_eq!(client.run("CONFIG SET encryption-key-file keys"), Value::ok());
    assert_eq!(client.run("SAVE"), Value::ok());
    assert!(is_encrypted(&saved(&directory.0)));
    let refused = client.command(&["CONFIG", "SET", "encryption-key-file", ""]).text();
    assert!(refused.contains("encryption cannot be disabled while the server runs"), "{refused}");
    assert_eq!(
        client.run("CONFIG GET encryption-key-file"),
        Value::Array(["encryption-key-file", "keys"].map(Value::from).to_vec())
    );
}

/// Returns all files of the AOF except its manifest.
fn aof_files(directory: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(directory.join("appendonlydir")).unwrap().map(|entry| entry.unwrap().path());
    let kept = entries.filter(|path| !path.to_string_lossy().ends_with("manifest"));
    kept.map(|path| fs::read(path).unwrap()).collect()
}

/// Rewrites the AOF and waits for its end.
fn rewrite(client: &mut RawClient) {
    let rewrites = |client: &mut RawClient| {
        assert_eq!(client.info("aof_last_bgrewrite_status"), "ok");
        (client.info_number("aof_rewrites"), client.info_number("aof_rewrite_in_progress"))
    };
    let (before, _) = rewrites(client);
    assert!(!client.run("BGREWRITEAOF").is_error());
    while rewrites(client) != (before + 1, 0) {}
}

#[test]
fn the_append_only_file_is_encrypted_and_a_rewrite_changes_its_key() {
    let directory = Directory::new("aof");
    write_keys(&directory.0, "old", &[OLD]);
    write_keys(&directory.0, "both", &[NEW, OLD]);
    write_keys(&directory.0, "new", &[NEW]);
    let with = |name: &str| {
        let arguments = ["--appendonly", "yes", "--appendfsync", "always", "--encryption-key-file", name];
        start_in(&directory.0, &arguments)
    };
    let server = with("old");
    assert_eq!(server.client().run("SET secret 1"), Value::ok());
    drop(server);
    assert!(aof_files(&directory.0).iter().all(|file| is_encrypted(file)));
    let said = refusal(&directory.0, &["--appendonly", "yes"], None);
    assert!(said.contains("cannot load the data set") && said.contains("no key is given"), "{said}");
    let server = with("old");
    let mut client = server.client();
    assert_eq!(client.run("INCR secret"), Value::Integer(2));
    assert_eq!(client.run("CONFIG SET encryption-key-file both"), Value::ok());
    rewrite(&mut client);
    assert_eq!(client.run("INCR secret"), Value::Integer(3));
    assert_eq!(client.run("CONFIG SET encryption-key-file new"), Value::ok());
    drop(server);
    let said = refusal(&directory.0, &["--appendonly", "yes", "--encryption-key-file", "old"], None);
    assert!(said.contains("it is encrypted with a key of fingerprint"), "{said}");
    assert_eq!(with("new").client().run("GET secret"), Value::from("3"));
}

#[test]
fn a_plain_append_only_file_is_loaded_and_encrypted_by_a_rewrite() {
    let directory = Directory::new("plain-aof");
    write_keys(&directory.0, "keys", &[OLD]);
    let server = start_in(&directory.0, &["--appendonly", "yes", "--appendfsync", "always"]);
    assert_eq!(server.client().run("SET secret 1"), Value::ok());
    drop(server);
    let arguments = ["--appendonly", "yes", "--encryption-key-file", "keys"];
    let server = start_in(&directory.0, &arguments);
    assert!(
        server.log().contains("is not encrypted; the next save or rewrite encrypts it"),
        "{}",
        server.log()
    );
    rewrite(&mut server.client());
    assert!(aof_files(&directory.0).iter().all(|file| is_encrypted(file)));
    drop(server);
    assert_eq!(start_in(&directory.0, &arguments).client().run("GET secret"), Value::from("1"));
}

#[test]
fn a_wrong_key_prevents_the_start() {
    let directory = Directory::new("no-key");
    write_keys(&directory.0, "bad", &["# of this week", "hunter2"]);
    write_keys(&directory.0, "empty", &[]);
    write_keys(&directory.0, "open", &[OLD]);
    fs::set_permissions(directory.0.join("open"), Permissions::from_mode(0o644)).unwrap();
    let place = format!("encryption-key-file '{}': ", directory.0.display());
    for (name, expected) in [
        ("bad", "line 2 is not a key; a key is 32 bytes"),
        ("empty", "there is no key; "),
        ("missing", "cannot open missing"),
        ("open", "its permissions 0644 are too open: remove those of other users (chmod o= 'open')"),
        (".", &place),
    ] {
        let said = refusal(&directory.0, &["--encryption-key-file", name], None);
        assert!(said.contains(expected) && !said.contains("hunter2"), "{name}: {said}");
    }
    let said = refusal(&directory.0, &[], Some("hunter2"));
    assert!(
        said.contains("EMBER_ENCRYPTION_KEY: line 1 is not a key") && !said.contains("hunter2"),
        "{said}"
    );
    // A key file that the group can read is accepted.
    fs::set_permissions(directory.0.join("open"), Permissions::from_mode(0o640)).unwrap();
    drop(start_in(&directory.0, &["--encryption-key-file", "open"]));
}

#[test]
fn a_damaged_or_foreign_file_prevents_the_start() {
    let directory = Directory::new("damaged-encrypted");
    write_keys(&directory.0, "keys", &[OLD]);
    write_keys(&directory.0, "other", &[NEW]);
    let server = with_keys(&directory.0);
    server.client().run("SET a 1");
    assert_eq!(server.client().run("SAVE"), Value::ok());
    drop(server);
    let said = refusal(&directory.0, &[], None);
    assert!(said.contains("cannot load the data set") && said.contains("no key is given"), "{said}");
    let said = refusal(&directory.0, &["--encryption-key-file", "other"], None);
    assert!(said.contains("it is encrypted with a key of fingerprint"), "{said}");
    let whole = saved(&directory.0);
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let longer = [&whole[..], b"x"].concat();
    for (bytes, expected) in [
        (&whole[..whole.len() - 1], "its last chunk is missing; restore a backup"),
        (&flipped, "it was altered"),
        (&longer, "it has data after its last chunk"),
    ] {
        fs::write(directory.0.join("dump.rdb"), bytes).unwrap();
        let said = refusal(&directory.0, &["--encryption-key-file", "keys"], None);
        assert!(said.contains("dump.rdb at offset") && said.contains(expected), "{expected}: {said}");
    }
    fs::write(directory.0.join("dump.rdb"), whole).unwrap();
    assert_eq!(with_keys(&directory.0).client().run("GET a"), Value::from("1"));
}

#[test]
fn encryption_keys_are_shown_nowhere() {
    let directory = Directory::new("unseen");
    write_keys(&directory.0, "keys", &[OLD]);
    let server = start_in(&directory.0, &["--encryption-key-file", "keys", "--loglevel", "debug"]);
    let mut client = server.client();
    client.run("SET a 1");
    client.run("SAVE");
    let shown =
        [client.run("INFO everything").text(), format!("{:?}", client.run("CONFIG GET *")), server.log()];
    for text in shown {
        assert!(!text.to_lowercase().contains(&OLD[..16]), "{text}");
    }
}
