//! Builds the Debian packages, installs them in a folder that serves as the system's root, uses the programs there, and
//! removes the packages.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ember_peers::require_program;
use ember_testkit::{Server, find_ember_cli, find_ember_server};

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
    for path in [
        "usr/bin/ember-cli",
        "usr/share/man/man1/ember-server.1.gz",
        "usr/share/man/man1/ember-cli-benchmark.1.gz",
        "usr/share/bash-completion/completions/ember-server",
        "usr/share/zsh/vendor-completions/_ember-cli",
        "usr/share/fish/vendor_completions.d/ember-cli.fish",
        "usr/share/doc/ember-server/copyright",
    ] {
        let mode =
            fs::metadata(at(path)).unwrap_or_else(|error| panic!("{path}: {error}")).permissions().mode();
        assert_eq!(mode & 0o777, if path.starts_with("usr/bin") { 0o755 } else { 0o644 }, "{path}");
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
