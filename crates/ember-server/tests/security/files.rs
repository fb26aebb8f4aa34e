//! Users in files: in an ACL file, or in the configuration.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use ember_testkit::{RawClient, Server, Value};

use crate::{assert_error, assert_ok, builder, login, program, texts};

/// A directory for one test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("ember-users-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A file that remains is harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}

const HASH: &str = "30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4";
const DEFAULT: &str = "user default on nopass sanitize-payload ~* &* +@all";

fn start(arguments: &[&str]) -> (Server, RawClient) {
    let server = builder(arguments).start();
    let client = server.client();
    (server, client)
}

/// Starts a server that must refuse to start; returns its output.
fn refusal(directory: &Directory, arguments: &[&str]) -> String {
    let socket = directory.0.join("server.sock");
    let mut command = Command::new(program());
    command.args(["--port", "0", "--unixsocket"]).arg(socket).args(arguments);
    ember_testkit::refusal(&mut command)
}

#[test]
fn users_of_the_acl_file_are_loaded_at_startup() {
    let directory = Directory::new("start");
    let path = directory.write("users.acl", "user alice on >pw ~a* +get (~b +set)\r\n\nuser bob off\n");
    let (server, mut admin) = start(&["--aclfile", &path]);
    let lines = texts(&admin.run("ACL LIST"));
    let alice = format!(
        "user alice on sanitize-payload #{HASH} ~a* resetchannels -@all +get (~b resetchannels -@all +set)"
    );
    assert_eq!(lines, [alice.as_str(), "user bob off sanitize-payload resetchannels -@all", DEFAULT]);
    let mut client = login(&server, "alice", "pw");
    assert_ok(&mut client, "SET b 1");
}

#[test]
fn a_file_that_names_absent_commands_is_preserved() {
    let directory = Directory::new("absent");
    let text = format!(
        "user alice on nopass sanitize-payload ~* resetchannels -@all +psync +replconf +sync -migrate\n{DEFAULT}\n"
    );
    let file = directory.write("users.acl", &text);
    let (_server, mut client) = start(&["--aclfile", &file]);
    assert_ok(&mut client, "ACL SAVE");
    assert_eq!(directory.read("users.acl"), text);
    assert_ok(&mut client, "ACL LOAD");
    assert_eq!(texts(&client.run("ACL LIST")), text.lines().collect::<Vec<_>>());
}

#[test]
fn saved_users_are_restored_by_load() {
    let directory = Directory::new("save");
    let path = directory.write("users.acl", "");
    let (server, mut admin) = start(&["--aclfile", &path]);
    assert_ok(&mut admin, "ACL SETUSER alice on >pw ~a* +get");
    let before = texts(&admin.run("ACL LIST"));
    assert_ok(&mut admin, "ACL SAVE");
    assert_eq!(directory.read("users.acl"), before.join("\n") + "\n");
    assert_ok(&mut admin, "ACL SETUSER alice reset");
    assert_ok(&mut admin, "ACL SETUSER bob on nopass +@all");
    let mut bob = login(&server, "bob", "x");
    assert_ok(&mut admin, "ACL LOAD");
    assert_eq!(texts(&admin.run("ACL LIST")), before);
    assert!(bob.is_closed().unwrap(), "users that are not in the file are removed");
    login(&server, "alice", "pw");
}

#[test]
fn a_file_with_errors_changes_nothing() {
    let directory = Directory::new("mistakes");
    let path = directory.write("users.acl", "user alice on nopass +get\n");
    let (_server, mut admin) = start(&["--aclfile", &path]);
    let before = texts(&admin.run("ACL LIST"));
    directory.write("users.acl", "user alice on\nuser carol +nosuch\n");
    let error = "ERR users.acl:2: Error in applying operation '+nosuch': Unknown command or category name in ACL. WARNING: \
                 ACL errors detected, no change to the previously active ACL rules was performed";
    assert_error(&mut admin, "ACL LOAD", error);
    assert_eq!(texts(&admin.run("ACL LIST")), before);
    fs::remove_file(&path).unwrap();
    let error = "ERR Error loading ACLs, opening file 'users.acl': No such file or directory";
    assert_error(&mut admin, "ACL LOAD", error);
    // Errors for clients contain only the file's name; a server that refuses to start reports the full path.
    directory.write("relative.acl", "user alice on\n");
    let server = builder(&["--aclfile", "relative.acl"]).directory(&directory.0).start();
    fs::remove_file(directory.0.join("relative.acl")).unwrap();
    let error = "ERR Error loading ACLs, opening file 'relative.acl': No such file or directory";
    assert_error(&mut server.client(), "ACL LOAD", error);
    let folder = fs::canonicalize(&directory.0).unwrap();
    let said = refusal(&directory, &["--aclfile", "relative.acl", "--dir", folder.to_str().unwrap()]);
    assert!(said.contains(&format!("opening file '{}/relative.acl'", folder.display())), "{said}");
}

#[test]
fn without_an_acl_file_there_is_nothing_to_load_or_save() {
    let (_server, mut admin) = start(&[]);
    for line in ["ACL LOAD", "ACL SAVE"] {
        assert!(admin.run(line).text().starts_with(
            "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL \
             SETUSER command"
        ));
    }
}

#[test]
fn a_server_does_not_start_with_wrong_users() {
    let directory = Directory::new("wrong");
    let path = directory.write("users.acl", "user alice on\nuser bob what\n");
    let said = refusal(&directory, &["--aclfile", &path]);
    assert!(said.contains(&format!("{path}:2: Syntax error. ")), "{said}");
    let said = refusal(&directory, &["--aclfile", "/nowhere/users.acl"]);
    assert!(said.contains("opening file '/nowhere/users.acl': No such file or directory"), "{said}");
    let configuration = directory.write("ember.conf", "hz 10\nuser alice on +nosuch\n");
    let said = refusal(&directory, &["--config", &configuration]);
    let expected = format!(
        "{configuration}:2: user: Error in ACL SETUSER modifier '+nosuch': Unknown command or category name in ACL"
    );
    assert!(said.contains(&expected), "{said}");
    let configuration = directory.write("twice.conf", "user alice on\nuser alice off\n");
    let said = refusal(&directory, &["--config", &configuration]);
    assert!(said.contains(&format!("{configuration}:2: user: Duplicate user found.")), "{said}");
    let configuration = directory.write("both.conf", &format!("user alice on\naclfile {path}\n"));
    let said = refusal(&directory, &["--config", &configuration]);
    assert!(said.contains("not in both"), "{said}");
}

#[test]
fn users_of_the_configuration_are_rewritten_with_it() {
    let directory = Directory::new("rewrite");
    let text = "# Users.\nuser alice on >pw ~a* +get\nuser bob off\nhz 10\n";
    let path = directory.write("ember.conf", text);
    let (server, mut admin) = start(&["--config", &path]);
    login(&server, "alice", "pw");
    assert_eq!(admin.run("ACL DELUSER bob"), Value::Integer(1));
    assert_ok(&mut admin, "ACL SETUSER carol on nopass ~\"c (~d +set)");
    assert_ok(&mut admin, "CONFIG REWRITE");
    let expected = format!(
        "# Users.\nuser alice on sanitize-payload #{HASH} ~a* resetchannels -@all +get\n\
         user carol on nopass sanitize-payload \"~\\\"c\" resetchannels -@all (~d resetchannels -@all +set)\nhz 10\n"
    );
    let new = directory.read("ember.conf");
    assert!(new.starts_with(&expected), "{new}");
    let lines = texts(&admin.run("ACL LIST"));
    drop(server);
    let (_server, mut admin) = start(&["--config", &path]);
    assert_eq!(texts(&admin.run("ACL LIST")), lines);
}

#[test]
fn the_default_user_is_written_when_it_was_changed() {
    let directory = Directory::new("default");
    let path = directory.write("ember.conf", "hz 10\n");
    let (server, mut admin) = start(&["--config", &path]);
    assert_ok(&mut admin, "CONFIG REWRITE");
    assert!(!directory.read("ember.conf").contains("user"), "{}", directory.read("ember.conf"));
    assert_ok(&mut admin, "ACL SETUSER default -flushall");
    assert_ok(&mut admin, "CONFIG REWRITE");
    let line = "user default on nopass sanitize-payload ~* &* +@all -flushall";
    assert!(directory.read("ember.conf").contains(line), "{}", directory.read("ember.conf"));
    drop(server);
    let (_server, mut admin) = start(&["--config", &path]);
    let denied = "NOPERM User default has no permissions to run the 'flushall' command";
    assert_error(&mut admin, "FLUSHALL", denied);
}

#[test]
fn load_closes_the_connections_of_users_that_were_changed_or_removed() {
    let directory = Directory::new("keep");
    let same = format!("user same on #{HASH} ~a* &news +@all (~b +get)");
    let text = format!("{same}\nuser changed on nopass ~a* +@all\nuser removed on nopass ~a* +@all\n");
    let path = directory.write("users.acl", &text);
    let (server, mut admin) = start(&["--aclfile", &path]);
    let mut clients = ["same", "changed", "removed"].map(|name| login(&server, name, "pw"));
    assert!(!clients[0].run("SUBSCRIBE news").is_error());
    directory
        .write("users.acl", &format!("user changed on nopass ~b* +@all\nuser added on nopass\n{same}\n"));
    for _ in 0..2 {
        assert_ok(&mut admin, "ACL LOAD");
        assert!(!clients[0].run("PING").is_error());
    }
    assert!(clients[1].is_closed().unwrap() && clients[2].is_closed().unwrap());
    assert_eq!(admin.run("PUBLISH news x"), Value::Integer(1), "subscriptions are kept");
    // The caller's own connection is closed after its reply.
    let mut same = login(&server, "same", "pw");
    directory.write("users.acl", "");
    assert_ok(&mut same, "ACL LOAD");
    assert!(same.is_closed().unwrap() && clients[0].read_to_close().is_ok());
}
