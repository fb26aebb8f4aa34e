//! Checks that the manual pages and shell completions in `deploy/` match the command line. `EMBER_BLESS=1` regenerates
//! them.

use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use ember_testkit::assert_generated;

use super::{ClientArguments, ToolArguments};

/// The whole command line: the tools, and the options and commands for servers.
fn command() -> Command {
    let tools = ToolArguments::command();
    // Generated files are identical for all commits.
    let whole = ClientArguments::command().version(ember_version::VERSION).disable_help_subcommand(true);
    whole.subcommands(tools.get_subcommands().cloned())
}

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)
}

#[test]
fn the_manual_pages_are_the_generated_ones() {
    let mut whole = command();
    whole.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(whole.clone()).render(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("\\-\\-pipe\\-timeout") && page.contains("ember\\-cli\\-repair(1)"), "{page}");
    assert_generated(&deploy("man/ember-cli.1"), &page);
    for tool in whole.get_subcommands() {
        let mut page = Vec::new();
        clap_mangen::Man::new(tool.clone()).render(&mut page).unwrap();
        let path = deploy(&format!("man/ember-cli-{}.1", tool.get_name()));
        assert_generated(&path, &String::from_utf8(page).unwrap());
    }
}

#[test]
fn the_completions_are_the_generated_ones() {
    for (shell, path) in [
        (Shell::Bash, "completions/ember-cli.bash"),
        (Shell::Zsh, "completions/_ember-cli"),
        (Shell::Fish, "completions/ember-cli.fish"),
    ] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command(), "ember-cli", &mut script);
        let script = String::from_utf8(script).unwrap();
        for word in ["quoted-pattern", "repair", "encryption-key-file", "key-pattern"] {
            assert!(script.contains(word), "{path} has no {word}");
        }
        assert_generated(&deploy(path), &script);
    }
}
