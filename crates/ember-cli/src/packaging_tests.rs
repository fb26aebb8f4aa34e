//! What packages contain besides the program, made from its arguments: the manual page and the completions of shells in
//! `deploy/`. `EMBER_BLESS=1` writes them again.

use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use ember_testkit::assert_generated;

use super::arguments::{ClientArguments, ToolArguments};

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

/// All that can be written behind the program's name.
fn command() -> Command {
    ClientArguments::command().subcommands(ToolArguments::command().get_subcommands().cloned())
}

#[test]
fn the_manual_page_is_the_generated_one() {
    let mut page = Vec::new();
    clap_mangen::Man::new(command()).render(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    for name in ["\\-\\-pipe", "\\-\\-tls", "convert"] {
        assert!(page.contains(name), "the manual has no {name}");
    }
    assert_generated(&deploy("man/ember-cli.1"), &page);
}

#[test]
fn the_manual_pages_of_tools_are_the_generated_ones() {
    for tool in ToolArguments::command().get_subcommands() {
        let name: &'static str = Box::leak(format!("ember-cli-{}", tool.get_name()).into_boxed_str());
        let mut page = Vec::new();
        clap_mangen::Man::new(tool.clone().name(name)).render(&mut page).unwrap();
        assert_generated(&deploy(&format!("man/{name}.1")), &String::from_utf8(page).unwrap());
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
        assert!(script.contains("pipe") && script.contains("repair"), "{path}");
        assert_generated(&deploy(path), &script);
    }
}
