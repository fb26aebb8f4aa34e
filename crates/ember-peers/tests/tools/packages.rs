//! Builds the Debian packages, installs them in a folder that serves as the system's root, uses the programs there, and
//! removes the packages. Builds, checks and uses the archive for other systems.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ember_peers::require_program;
use ember_testkit::{RawClient, Server, Value, find_ember_cli, find_ember_server, wait_until};

/// Runs a program that must succeed; returns its output.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns a dpkg command for a folder. It checks no dependencies, because no other package is installed, and runs the
/// scripts of packages outside the folder, which contains no shell.
fn dpkg(root: &Path) -> Command {
    let mut command = Command::new(require_program("dpkg"));
    command.arg(format!("--root={}", root.display()));
    command.args(["--force-depends", "--force-script-chrootless", "--force-not-root"]);
    command
}

/// Collects the programs of this build in one folder.
fn programs(folder: &Path) -> PathBuf {
    let programs = folder.join("programs");
    fs::create_dir_all(&programs).unwrap();
    for (program, name) in [(find_ember_server(), "ember-server"), (find_ember_cli(), "ember-cli")] {
        fs::copy(program, programs.join(name)).unwrap();
    }
    programs
}

#[test]
fn the_packages_are_built_installed_used_and_removed() {
    let folder = std::env::temp_dir().join(format!("ember-packages-{}", std::process::id()));
    let (built, root) = (folder.join("built"), folder.join("root"));
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
    fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/package-deb.sh");
    // Compression is disabled: it would take longer than everything else in this test, and is dpkg's task.
    let mut build = Command::new(script);
    run(build.arg(programs(&folder)).arg(&built).env("DPKG_DEB_COMPRESSOR_TYPE", "none"));
    let packages: Vec<PathBuf> = fs::read_dir(&built).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(packages.len(), 2, "{packages:?}");
    run(dpkg(&root).arg("--install").args(&packages));
    // Each installed file equals the file in its package.
    assert_eq!(run(dpkg(&root).arg("--verify")), "");

    let at = |path: &str| root.join(path);
    let unit = fs::read_to_string(at("usr/lib/systemd/system/ember.service")).unwrap();
    assert!(
        unit.starts_with("[Unit]")
            && unit.contains("\nExecStart=/usr/bin/ember-server /etc/ember/ember.conf ")
    );
    for (path, expected) in [("etc/ember/ember.conf", 0o640), ("etc/ember", 0o750)] {
        let mode = fs::metadata(at(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, expected, "{path} may contain passwords");
    }
    for path in [
        "usr/bin/ember-cli",
        "usr/share/man/man1/ember-server.1.gz",
        "usr/share/man/man1/ember-cli-benchmark.1.gz",
        "usr/share/bash-completion/completions/ember-server",
        "usr/share/zsh/vendor-completions/_ember-cli",
        "usr/share/fish/vendor_completions.d/ember-cli.fish",
        "usr/share/doc/ember-server/copyright",
        "usr/share/doc/ember-server/ember.cdx.json",
        "usr/share/doc/ember-server-dbgsym/copyright",
    ] {
        let mode =
            fs::metadata(at(path)).unwrap_or_else(|error| panic!("{path}: {error}")).permissions().mode();
        assert_eq!(mode & 0o777, if path.starts_with("usr/bin") { 0o755 } else { 0o644 }, "{path}");
    }
    for folder in ["ember-server", "ember-server-dbgsym"] {
        let notices = fs::read_to_string(at(&format!("usr/share/doc/{folder}/copyright"))).unwrap();
        for part in ["MIT License", "jemalloc", "OpenLDAP Public License", "Lua.org", "AWS-LC"] {
            assert!(notices.contains(part), "{folder}: no notice of {part}");
        }
    }
    run(Command::new("gzip").arg("--test").arg(at("usr/share/man/man1/ember-server.1.gz")));
    // The programs contain no symbols; the symbols in the other package match them.
    let sections = |path: &Path| run(Command::new(require_program("readelf")).args(["-SW"]).arg(path));
    let program = at("usr/bin/ember-server");
    assert!(!sections(&program).contains(".symtab") && sections(&program).contains(".gnu_debuglink"));
    let notes = run(Command::new(require_program("readelf")).arg("-n").arg(&program));
    let id = notes.split("Build ID: ").nth(1).unwrap().split_whitespace().next().unwrap();
    let symbols = at(&format!("usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]));
    assert!(sections(&symbols).contains(".symtab"));

    let configuration = at("etc/ember/ember.conf").display().to_string();
    let server = Server::builder(&program).arguments(&["--config", &configuration]).start();
    let port = server.port().to_string();
    let mut cli = Command::new(at("usr/bin/ember-cli"));
    assert_eq!(run(cli.args(["-p", &port, "SET", "key", "value"])), "OK\n");
    drop(server);

    fs::write(at("etc/ember/ember.conf"), "port 6380\n").unwrap();
    run(dpkg(&root).args(["--remove", "ember-server-dbgsym", "ember-server"]));
    assert!(!program.exists() && !symbols.exists());
    assert_eq!(fs::read_to_string(at("etc/ember/ember.conf")).unwrap(), "port 6380\n");
    run(dpkg(&root).args(["--purge", "ember-server"]));
    assert!(!at("etc/ember").exists());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_archive_is_built_checked_and_used_and_is_reproducible() {
    let folder = std::env::temp_dir().join(format!("ember-archive-{}", std::process::id()));
    let programs = programs(&folder);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/package-tar.sh");
    let build = |to: &str| {
        let path =
            run(Command::new(&script).arg(&programs).arg(folder.join(to)).env("SOURCE_DATE_EPOCH", "0"));
        PathBuf::from(path.trim_end())
    };
    let (archive, again) = (build("first"), build("second"));
    assert!(
        fs::read(&archive).unwrap() == fs::read(&again).unwrap(),
        "two archives of the same programs differ"
    );
    let checksum = format!("{}.sha256", archive.file_name().unwrap().display());
    run(Command::new("sha256sum").arg("--check").arg(checksum).current_dir(archive.parent().unwrap()));
    run(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&folder));
    let name = archive.file_name().unwrap().to_str().unwrap().strip_suffix(".tar.gz").unwrap();
    let at = |path: &str| folder.join(name).join(path);
    for path in [
        "LICENSE",
        "THIRD-PARTY.txt",
        "ember.cdx.json",
        "etc/ember.conf",
        "etc/ember.service",
        "share/man/man1/ember-server.1",
        "share/completions/_ember-cli",
    ] {
        assert_eq!(fs::metadata(at(path)).unwrap().permissions().mode() & 0o777, 0o644, "{path}");
    }
    let requirements = fs::read_to_string(at("REQUIREMENTS")).unwrap();
    assert!(requirements.starts_with("Requires glibc 2."), "{requirements}");
    let server = Server::builder(at("bin/ember-server"))
        .arguments(&["--config", at("etc/ember.conf").to_str().unwrap()])
        .start();
    let mut cli = Command::new(at("bin/ember-cli"));
    assert_eq!(run(cli.args(["-p", &server.port().to_string(), "SET", "key", "value"])), "OK\n");
    drop(server);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_packages_script_gives_the_configuration_to_the_user_of_the_service() {
    let folder = std::env::temp_dir().join(format!("ember-postinst-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    // Commands that only record their arguments; getent finds no user.
    for (name, code) in [("getent", 1), ("useradd", 0), ("chown", 0), ("systemctl", 0)] {
        let script = format!("#!/bin/sh\necho {name} \"$@\"\nexit {code}\n");
        fs::write(folder.join(name), script).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/debian/postinst");
    let configure = |version: &str| {
        let mut command = Command::new("/bin/sh");
        run(command.arg(&script).args(["configure", version]).env("PATH", &folder).env_remove("DPKG_ROOT"))
    };
    let owns = "chown ember:ember /etc/ember /etc/ember/ember.conf\n";
    let first = configure("");
    assert!(first.contains("useradd --system") && first.contains(owns), "{first}");
    // An upgrade keeps the owner that the administrator has chosen.
    assert!(!configure("0.0.9").contains("chown"));
    fs::remove_dir_all(folder).unwrap();
}

/// The root folder of the system in `$1`, in a mount namespace: everything is read-only except the paths in `$2`; then
/// the other arguments are run.
const RESTRICTED: &str = r#"
root=$1 writable=$2
shift 2
mount --bind "$root" "$root"
for path in $writable; do mount --bind "$root$path" "$root$path"; done
mount -o remount,bind,ro "$root"
if touch "$root/usr/file" 2>/dev/null; then echo "the folder is writable" >&2; exit 1; fi
exec "$@"
"#;

#[test]
fn the_service_can_rewrite_its_configuration_under_the_restrictions_of_its_unit() {
    let root = std::env::temp_dir().join(format!("ember-unit-restricted-{}", std::process::id()));
    for path in ["etc/ember", "var/lib/ember", "usr"] {
        fs::create_dir_all(root.join(path)).unwrap();
    }
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::copy(repository.join("deploy/ember.conf"), root.join("etc/ember/ember.conf")).unwrap();
    fs::write(root.join("etc/ember/users.acl"), "").unwrap();
    let unit = fs::read_to_string(repository.join("deploy/systemd/ember.service")).unwrap();
    let of = |name: &str| unit.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    assert_eq!(of("ProtectSystem"), Some("strict"));
    let state = format!("/var/lib/{}", of("StateDirectory").unwrap());
    let writable = format!("{state} {}", of("ReadWritePaths").unwrap_or_default().replace('-', ""));
    let at = |path: &str| root.join(path.trim_start_matches('/')).display().to_string();
    let words = of("ExecStart").unwrap().split(' ').skip(1);
    let arguments: Vec<String> =
        words.map(|word| if word.starts_with('/') { at(word) } else { word.to_owned() }).collect();
    let socket = at("var/lib/ember/server.sock");
    let mut server = Command::new(require_program("unshare"))
        .args(["--user", "--map-root-user", "--mount", "sh", "-euc", RESTRICTED, "sh"])
        .arg(&root)
        .arg(&writable)
        .arg(find_ember_server())
        .args(&arguments)
        .args(["--port", "0", "--unixsocket", &socket, "--aclfile", &at("etc/ember/users.acl")])
        .args(["--logfile", &at("var/lib/ember/log")])
        .spawn()
        .unwrap();
    wait_until("the server listens", || {
        assert!(server.try_wait().unwrap().is_none(), "the server has ended");
        RawClient::connect_unix(Path::new(&socket)).is_ok()
    });
    let mut client = RawClient::connect_unix(Path::new(&socket)).unwrap();
    for line in [
        "CONFIG SET maxmemory 123mb",
        "CONFIG REWRITE",
        "ACL SETUSER alice on >secret ~* +@read",
        "ACL SAVE",
        "SET key value",
        "SAVE",
    ] {
        assert_eq!(client.run(line), Value::ok(), "{line}");
    }
    assert!(fs::read_to_string(root.join("etc/ember/ember.conf")).unwrap().contains("\nmaxmemory 123mb"));
    assert!(fs::read_to_string(root.join("etc/ember/users.acl")).unwrap().contains("user alice on "));
    client.send(b"SHUTDOWN NOSAVE\r\n").unwrap();
    assert!(server.wait().unwrap().success());
    fs::remove_dir_all(root).unwrap();
}
