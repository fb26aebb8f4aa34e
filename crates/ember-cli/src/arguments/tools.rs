//! Determines the tool of a command line: the tool's name is the first word that is not an option; server options may
//! precede the name. `restore` is also the name of a command.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Subcommand};

use super::{ClientArguments, Tool};

/// The exit code for an invalid command line of a tool.
pub(crate) const EXIT_USAGE: u8 = 2;

/// Options with the same meaning before and after the name of a tool.
const SHARED: [&str; 16] = [
    "host",
    "port",
    "socket",
    "uri",
    "password",
    "user",
    "askpass",
    "no_auth_warning",
    "resp3",
    "tls",
    "sni",
    "cacert",
    "cacertdir",
    "insecure",
    "cert",
    "key",
];

/// Replaces a final `-h` without a host by a request for help, as redis-cli does.
pub(crate) fn with_help(mut arguments: Vec<OsString>) -> Vec<OsString> {
    // A command that has begun, or an option that expects a value, has this word as its argument.
    let is_alone = |arguments: &[OsString]| {
        let parsed = ClientArguments::command().try_get_matches_from(arguments);
        parsed.is_ok_and(|matches| match matches.get_many::<OsString>("command") {
            Some(mut words) => words.len() == 1 && words.next().is_some_and(|word| word == "benchmark"),
            None => true,
        })
    };
    if let Some((last, before)) = arguments.split_last()
        && last == "-h"
        && is_alone(before)
    {
        arguments.pop();
        arguments.push("--help".into());
    }
    arguments
}

/// Returns the command line with the name of the tool first; `None` if it is not for a tool.
///
/// # Errors
/// Returns a message if an option before the name has another meaning after the name.
pub(crate) fn for_tool(arguments: &[OsString]) -> Result<Option<Vec<OsString>>, String> {
    let Ok(matches) = ClientArguments::command().try_get_matches_from(arguments) else { return Ok(None) };
    let Ok(parsed) = ClientArguments::from_arg_matches(&matches) else { return Ok(None) };
    let name_at = arguments.len() - parsed.command.len();
    let (before, rest) = arguments.split_at(name_at);
    // After `--` comes a command for the server, whatever its name.
    let is_forced = before.last().is_some_and(|word| word == "--");
    let is_command = is_redis_command(&parsed.command);
    let Some(name) = parsed.command.first().filter(|name| is_tool(name) && !is_forced && !is_command) else {
        return Ok(None);
    };
    let is_written = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let command = ClientArguments::command();
    let other = command.get_arguments().find(|option| {
        let id = option.get_id().as_str();
        id != "command" && !SHARED.contains(&id) && is_written(id)
    });
    if let Some(option) = other {
        let shown = match (option.get_short(), option.get_long()) {
            (Some(short), _) => format!("-{short}"),
            (None, long) => format!("--{}", long.unwrap_or_default()),
        };
        let name = name.to_string_lossy();
        return Err(format!(
            "{shown} is not allowed before {name}, where only server options are; see `ember-cli {name} --help`"
        ));
    }
    let (program, options) = before.split_at(1);
    Ok(Some([program, &rest[..1], options, &rest[1..]].concat()))
}

fn is_tool(argument: &OsString) -> bool {
    <Tool as Subcommand>::has_subcommand(&argument.to_string_lossy())
}

/// Whether words that begin with the name of a tool are a command for the server: Redis's RESTORE is followed by a key,
/// the tool `restore` only by options.
fn is_redis_command(words: &[OsString]) -> bool {
    matches!(words, [name, second, ..] if name == "restore" && !second.to_string_lossy().starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reordered(line: &str) -> Result<Option<String>, String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let words = for_tool(&words)?;
        Ok(words.map(|words| words.join(" ".as_ref()).to_string_lossy().into_owned()))
    }

    #[test]
    fn options_for_the_server_may_precede_a_tool() {
        let found = |line: &str| reordered(line).unwrap();
        assert_eq!(found("ember-cli benchmark -q").as_deref(), Some("ember-cli benchmark -q"));
        assert_eq!(
            found("ember-cli -p 6380 --tls benchmark -q -n 5").as_deref(),
            Some("ember-cli benchmark -p 6380 --tls -q -n 5")
        );
        for line in
            ["ember-cli -p 1 get benchmark", "ember-cli", "ember-cli -a check ping", "ember-cli -- check x"]
        {
            assert_eq!(found(line), None, "{line}");
        }
    }

    #[test]
    fn the_command_restore_of_redis_is_distinguished_from_the_tool() {
        let found = |line: &str| reordered(line).unwrap();
        for line in
            ["ember-cli restore key 0 payload", "ember-cli -x restore key 0", "ember-cli RESTORE --to 0 x"]
        {
            assert_eq!(found(line), None, "{line}");
        }
        for line in ["ember-cli restore --to -1h --out x", "ember-cli restore --help", "ember-cli restore"] {
            assert_eq!(found(line).as_deref(), Some(line));
        }
    }

    #[test]
    fn a_last_h_without_a_host_asks_for_help() {
        for (line, last) in [
            ("ember-cli -h", "--help"),
            ("ember-cli -p 6380 -h", "--help"),
            ("ember-cli benchmark -h", "--help"),
            ("ember-cli -h 127.0.0.1", "127.0.0.1"),
            ("ember-cli -a -h", "-h"),
            ("ember-cli ECHO -h", "-h"),
            ("ember-cli", "ember-cli"),
        ] {
            let words = with_help(line.split(' ').map(OsString::from).collect());
            assert_eq!(words.last().unwrap(), last, "{line}");
        }
    }

    #[test]
    fn options_with_another_meaning_after_the_tool_are_rejected() {
        let said = reordered("ember-cli -n 3 benchmark -q").unwrap_err();
        assert!(said.starts_with("-n is not allowed before benchmark"), "{said}");
        assert!(reordered("ember-cli --scan check x").unwrap_err().starts_with("--scan is not"));
    }
}
