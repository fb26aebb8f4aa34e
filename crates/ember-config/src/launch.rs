//! The action of the program, which follows from its arguments, environment and configuration files.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use super::assignment::{Assignment, apply};
use super::command_line::{CommandLine, Request};
use super::handle::ConfigHandle;
use super::parameter::VALUE_BYTES_MAX;
use super::value::Secret;
use super::{environment, file, reference, store};

/// The environment variable that names the configuration file if the command line does not.
const FILE_VARIABLE: &str = "EMBER_CONFIG";

/// The action that the program performs.
#[derive(Debug)]
pub enum Launch {
    /// Starts the server with this configuration.
    Serve(ConfigHandle),
    /// Reports whether the server would start with this configuration.
    Check(ConfigHandle),
    /// Prints this text and exits: `--help` or `--version`.
    Print(String),
}

/// Reads the configuration: defaults, then files, then the environment, then the command line.
///
/// `arguments` excludes the program's name, `variable` looks up an environment variable, and `stdin` is read if an
/// argument is `-`.
///
/// # Errors
/// Returns a line for each mistake, with its origin.
pub fn launch(
    arguments: impl Iterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
    stdin: impl Read,
) -> Result<Launch, String> {
    let line = CommandLine::parse(arguments)?;
    match line.request {
        Some(Request::Help) => return Ok(Launch::Print(reference::help())),
        Some(Request::Version) => return Ok(Launch::Print(reference::version())),
        None => {}
    }
    let path =
        line.file.or_else(|| variable(FILE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from));
    let mut statements = Vec::new();
    if let Some(path) = &path {
        statements.extend(file::read(path)?);
    }
    if line.reads_stdin {
        statements.extend(file::read_from(stdin, "standard input")?);
    }
    statements.extend(environment::read(variable)?.into_iter().map(Ok));
    statements.extend(line.assignments.into_iter().map(Ok));
    let mut config = apply(&statements).map_err(|mistakes| mistakes.join("\n"))?;
    store::apply(&mut config, |name| stated_at(name, &statements).map(str::to_owned))?;
    let secret = |name: &str, path: &str| {
        read_secret(path)
            .map_err(|error| format!("{}: {error}", stated_at(name, &statements).unwrap_or(name)))
    };
    if !config.requirepass_file.is_empty() {
        config.requirepass = secret("requirepass-file", &config.requirepass_file)?;
    }
    if !config.cluster_auth_pass_file.is_empty() {
        config.cluster_auth_pass = secret("cluster-auth-pass-file", &config.cluster_auth_pass_file)?;
    }
    // The server may change its working directory later, so the path must not depend on it.
    let path = path
        .map(std::path::absolute)
        .transpose()
        .map_err(|error| format!("cannot read the current directory: {error}"))?;
    let handle = ConfigHandle::new(config, path);
    Ok(if line.checks_only { Launch::Check(handle) } else { Launch::Serve(handle) })
}

/// Returns the origin of the last statement that sets the parameter `name`, if there is one.
fn stated_at<'a>(name: &str, statements: &'a [Result<Assignment, String>]) -> Option<&'a str> {
    let is_its = |stated: &&Assignment| stated.parameter().is_some_and(|parameter| parameter.name == name);
    statements.iter().flatten().rfind(is_its).map(|last| &*last.origin)
}

/// Returns the first line of the file at `path`, without the line break.
fn read_secret(path: &str) -> Result<Secret, String> {
    let unreadable = |error: std::io::Error| format!("cannot read '{path}': {error}");
    let file = File::open(path).map_err(unreadable)?;
    let mut line = String::new();
    let line_bytes_max = VALUE_BYTES_MAX as u64 + 2;
    BufReader::new(file.take(line_bytes_max)).read_line(&mut line).map_err(unreadable)?;
    let secret = line.trim_end_matches(['\r', '\n']);
    if secret.is_empty() {
        return Err(format!("the first line of '{path}' is empty"));
    }
    if secret.len() > VALUE_BYTES_MAX {
        return Err(format!("the first line of '{path}' is longer than {VALUE_BYTES_MAX} bytes"));
    }
    Ok(Secret::new(secret))
}

#[cfg(test)]
mod tests {
    use super::super::fields::Config;
    use super::super::testing::TestDirectory;
    use super::*;

    fn start(arguments: &[&str], variables: &[(&str, &str)], stdin: &str) -> Result<Launch, String> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        launch(arguments.iter().map(OsString::from), variable, stdin.as_bytes())
    }

    fn config(arguments: &[&str], variables: &[(&str, &str)], stdin: &str) -> Config {
        match start(arguments, variables, stdin).unwrap() {
            Launch::Serve(handle) => (*handle.snapshot()).clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_later_source_wins() {
        let directory = TestDirectory::new();
        let path = directory.write("a.conf", "port 1\nhz 1\ntimeout 1\nshards 1\n");
        let variables = [("EMBER_TIMEOUT", "3"), ("EMBER_SHARDS", "3")];
        let config = config(&[&path, "--shards", "4", "-"], &variables, "hz 2\ntimeout 2\nshards 2\n");
        let values = (config.port, config.hz, config.timeout, config.shards, config.tcp_backlog);
        assert_eq!(values, (1, 2, 3, 4, 511));
    }

    #[test]
    fn the_environment_names_the_file_unless_the_command_line_does() {
        let directory = TestDirectory::new();
        let (a, b) = (directory.write("a.conf", "port 1\n"), directory.write("b.conf", "port 2\n"));
        assert_eq!(config(&[], &[("EMBER_CONFIG", &a)], "").port, 1);
        assert_eq!(config(&[&b], &[("EMBER_CONFIG", &a)], "").port, 2);
    }

    #[test]
    fn the_later_of_password_and_password_file_counts() {
        let directory = TestDirectory::new();
        let secret = directory.write("secret", "from file\n");
        let variables = [("EMBER_REQUIREPASS_FILE", secret.as_str())];
        assert_eq!(config(&[], &variables, "").requirepass.reveal(), "from file");
        assert_eq!(config(&["--requirepass", "x"], &variables, "").requirepass.reveal(), "x");
        assert_eq!(config(&["-"], &variables, "requirepass y\n").requirepass.reveal(), "from file");
    }

    #[test]
    fn a_password_file_has_a_first_line_of_bounded_length() {
        let directory = TestDirectory::new();
        let path = directory.write("secret", "hunter2\r\nsecond line\n");
        assert_eq!(config(&["--requirepass-file", &path], &[], "").requirepass.reveal(), "hunter2");
        let empty = directory.write("empty", "\n");
        let error = start(&["--requirepass-file", &empty], &[], "").unwrap_err();
        assert_eq!(error, format!("--requirepass-file: the first line of '{empty}' is empty"));
        let missing = directory.path("missing");
        let error = start(&[], &[("EMBER_REQUIREPASS_FILE", &missing)], "").unwrap_err();
        assert!(error.starts_with(&format!("EMBER_REQUIREPASS_FILE: cannot read '{missing}': ")), "{error}");
        let long = directory.write("long", &"x".repeat(5000));
        assert!(start(&["--requirepass-file", &long], &[], "").is_err());
    }

    #[test]
    fn errors_are_one_line_with_their_place() {
        for (arguments, variables, stdin, error) in [
            (&["--port", "x"][..], &[][..], "", "--port: argument couldn't be parsed into an integer"),
            (
                &["--appendfsync", "often"],
                &[],
                "",
                "--appendfsync: argument(s) must be one of the following: always, everysec, no",
            ),
            (&["--max-memory", "10%"], &[], "", "--max-memory: argument must be a memory value"),
            (&[], &[("EMBER_HZ", "501")], "", "EMBER_HZ: argument must be between 1 and 500 inclusive"),
            (&["-"], &[], "\nhz 0\n", "standard input:2: hz: argument must be between 1 and 500 inclusive"),
        ] {
            assert_eq!(start(arguments, variables, stdin).unwrap_err(), error);
        }
    }

    #[test]
    fn help_and_version_need_no_valid_configuration() {
        let bad = [("EMBER_PORT", "x")];
        assert!(matches!(start(&["--help"], &bad, ""), Ok(Launch::Print(text)) if text.contains("--port")));
        assert!(
            matches!(start(&["-v"], &bad, ""), Ok(Launch::Print(text)) if text.starts_with("ember-server "))
        );
    }
}
