//! Generated files of packages: the example configuration, the manual page and the shell completions in `deploy/`,
//! derived from the table of parameters. `EMBER_BLESS=1` regenerates them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, ValueHint};
use clap_complete::Shell;
use ember_testkit::assert_generated;

use super::parameter::{Kind, Parameter};
use super::reference::{meaning, shape};
use super::stored::Form;
use super::table::PARAMETERS;
use super::{Config, Launch, launch, words};

/// The line width of the example configuration in columns, as in documents.
const WIDTH: usize = 100;

const HEAD: &str = "\
# The configuration of ember: every parameter with its meaning and its default.
#
# Lines that begin with \"# \" are explanations, lines that begin with \"#\" and a name are parameters with their defaults:
# remove the \"#\" to set them. Start the server with this file as its first argument. docs/configuration.md describes the
# syntax; the environment (EMBER_NAME) and the command line (--name value) override this file.
";

const SYNOPSIS: &str = "\
.SH SYNOPSIS
\\fBember\\-server\\fR [\\fIFILE\\fR] [\\fB\\-\\-NAME\\fR \\fIVALUE\\fR]... [\\-]
";

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

/// Appends `text` as comment lines, which begin with `# `.
fn comment(text: &str, file: &mut String) {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            file.push_str(&line);
            file.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    file.push_str(&line);
    file.push('\n');
}

fn example() -> String {
    let mut file = HEAD.to_owned();
    for parameter in PARAMETERS {
        file.push('\n');
        comment(&meaning(parameter).replace('`', ""), &mut file);
        comment(&format!("Values: {}.", shape(&parameter.kind).replace('`', "")), &mut file);
        if !parameter.aliases.is_empty() {
            comment(&format!("Other names: {}.", parameter.aliases.join(", ")), &mut file);
        }
        if parameter.mutable {
            comment("CONFIG SET changes it while the server runs.", &mut file);
        }
        let default = match parameter.takes_words() && !parameter.default.is_empty() {
            true => parameter.default.to_owned(),
            false => words::quote(parameter.default),
        };
        file.push_str(&format!("#{} {default}\n", parameter.name));
    }
    file
}

#[test]
fn the_example_configuration_is_the_generated_one() {
    assert_generated(&deploy("ember.conf"), &example());
}

#[test]
fn the_example_configuration_sets_the_defaults_with_and_without_its_marks() {
    let example = example();
    let set = example.lines().map(|line| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|letter: char| letter.is_ascii_lowercase()) => rest.to_owned(),
        _ => line.to_owned(),
    });
    let set = set.collect::<Vec<_>>().join("\n");
    let directives = set.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
    assert_eq!(directives, PARAMETERS.iter().count());
    for text in [example.clone(), set] {
        let nothing = |_: &str| None;
        match launch([OsString::from("-")].into_iter(), nothing, text.as_bytes()).unwrap() {
            Launch::Serve(handle) => assert_eq!(*handle.snapshot(), Config::default()),
            other => panic!("{other:?}"),
        }
    }
}

/// Returns the command line as a clap command, which only the manual page and the completions use: the server reads
/// parameters from four sources with its own parser.
fn command() -> Command {
    let mut command = Command::new("ember-server")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A Redis-compatible, multi-core, in-memory data server")
        .long_about(
            "FILE and the standard input (-) hold directives in the syntax of redis.conf. The environment (EMBER_NAME) \
             overrides them, the command line overrides both. SIGINT and SIGTERM drain the connections and stop the \
             server, a second one stops it at once. SIGHUP reloads the TLS files.",
        )
        .disable_help_flag(true)
        .disable_version_flag(true)
        .arg(Arg::new("file").value_name("FILE").value_hint(ValueHint::FilePath).help("The configuration file"))
        .arg(Arg::new("help").short('h').long("help").action(ArgAction::Help).help("Prints all parameters"))
        .arg(
            Arg::new("version")
                .short('v')
                .long("version")
                .action(ArgAction::Version)
                .help("Prints the version"),
        )
        .arg(
            Arg::new("config")
                .short('c')
                .long("config")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .help("The same as FILE"),
        )
        .arg(
            Arg::new("check-config")
                .long("check-config")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .num_args(0..=1)
                .help("Checks the configuration, prints its errors, and exits"),
        );
    for parameter in PARAMETERS {
        command = command.arg(argument(parameter));
    }
    command
}

fn argument(parameter: &'static Parameter) -> Arg {
    let default = if parameter.default.is_empty() { "empty" } else { parameter.default };
    let mut about = format!("{} (default: {default})", meaning(parameter));
    for alias in parameter.aliases {
        about += &format!(" Also --{alias}.");
    }
    let argument = Arg::new(parameter.name)
        .long(parameter.name)
        .visible_aliases(parameter.aliases.iter().copied())
        .help(about.replace('`', ""));
    let argument = if parameter.name == "port" { argument.short('p') } else { argument };
    match &parameter.kind {
        Kind::YesNo(_) | Kind::Stored { form: Form::YesNo, .. } => argument
            .value_parser(PossibleValuesParser::new(["yes", "no"]))
            .num_args(0..=1)
            .value_name("yes|no"),
        Kind::Choice { names, .. } | Kind::Stored { form: Form::Choice(names), .. } => {
            argument.value_parser(PossibleValuesParser::new(*names)).value_name("CHOICE")
        }
        Kind::Path(_) if parameter.name == "dir" => {
            argument.value_name("PATH").value_hint(ValueHint::DirPath)
        }
        Kind::Path(_) => argument.value_name("PATH").value_hint(ValueHint::FilePath),
        Kind::Integer { .. } | Kind::Octal { .. } | Kind::Stored { form: Form::Integer(_), .. } => {
            argument.value_name("NUMBER")
        }
        Kind::Memory { .. } | Kind::Stored { form: Form::Memory(_), .. } => argument.value_name("SIZE"),
        Kind::Secret { .. } | Kind::Stored { .. } => argument.value_name("TEXT"),
        Kind::Words { .. } | Kind::Lines { .. } => argument.value_name("WORDS").num_args(1..),
        Kind::Fixed { accepts, .. } => argument.value_name("VALUE").value_parser(PossibleValuesParser::new(
            accepts.iter().map(|accepted| if accepted.is_empty() { "\"\"" } else { accepted }),
        )),
    }
}

#[test]
fn the_manual_page_is_the_generated_one() {
    let mut page = Vec::new();
    let manual = clap_mangen::Man::new(command());
    manual.render_title(&mut page).unwrap();
    manual.render_name_section(&mut page).unwrap();
    // The synopsis is abbreviated: with all parameters it would fill a page.
    page.extend_from_slice(SYNOPSIS.as_bytes());
    manual.render_description_section(&mut page).unwrap();
    manual.render_options_section(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    for parameter in PARAMETERS {
        let name = format!("\\-\\-{}", parameter.name.replace('-', "\\-"));
        assert!(page.contains(&name), "the manual has no {name}");
    }
    assert_generated(&deploy("man/ember-server.1"), &page);
}

#[test]
fn the_completions_are_the_generated_ones() {
    for (shell, path) in [
        (Shell::Bash, "completions/ember-server.bash"),
        (Shell::Zsh, "completions/_ember-server"),
        (Shell::Fish, "completions/ember-server.fish"),
    ] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command(), "ember-server", &mut script);
        let script = String::from_utf8(script).unwrap();
        for name in PARAMETERS.iter().flat_map(Parameter::names) {
            assert!(script.contains(name), "{path} has no {name}");
        }
        assert_generated(&deploy(path), &script);
    }
}
