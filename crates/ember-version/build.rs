//! Determines the commit that programs are built from: the environment variable `EMBER_COMMIT`, otherwise in a release
//! build the checked-out commit of this repository, otherwise empty. Debug builds ignore git; otherwise they would be
//! rebuilt after each commit.

use std::path::Path;
use std::process::Command;

/// The number of characters of a commit that are shown.
const SHOWN: usize = 10;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=EMBER_COMMIT");
    let named = std::env::var("EMBER_COMMIT").ok().filter(|commit| !commit.trim().is_empty());
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = named.or_else(|| if is_release { of_repository() } else { None }).unwrap_or_default();
    let is_hash = commit.trim().chars().all(|letter| letter.is_ascii_hexdigit());
    let shown: String = commit.trim().chars().take(SHOWN).collect();
    let shown = if is_hash { shown } else { String::new() };
    println!("cargo::rustc-env=EMBER_COMMIT={shown}");
    let version = env!("CARGO_PKG_VERSION");
    let whole = if shown.is_empty() { version.to_owned() } else { format!("{version} (commit {shown})") };
    println!("cargo::rustc-env=EMBER_VERSION_SHOWN={whole}");
}

/// Returns the checked-out commit, if this is a repository of ember and git is installed.
fn of_repository() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().ok()?;
    // The sources may be in a subdirectory of another repository.
    if Path::new(&git(&root, &["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != root {
        return None;
    }
    for file in ["HEAD", "logs/HEAD"] {
        let path = root.join(git(&root, &["rev-parse", "--git-path", file])?);
        // For a missing file, cargo would run this script in each build.
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&root, &["rev-parse", "HEAD"])
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
