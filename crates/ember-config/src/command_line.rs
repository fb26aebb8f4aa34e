//! The command line: `ember-server [FILE] [--check-config [FILE]] [--name value …] [-]`.
//!
//! A flag takes one value, or for parameters of several words all words up to the next flag. `--name=value` and a name
//! with its value in one argument (`"--name value"`) are accepted, too. A yes/no flag without a value means `yes`. If a
//! flag of several words is repeated, its words are combined: `--host A --host B` listens on both addresses. `--user`
//! takes a name and its rules.

use std::ffi::OsString;
use std::iter::Peekable;
use std::path::PathBuf;
use std::vec::IntoIter;

use super::assignment::{Assignment, Statement};
use super::file::{USER_DIRECTIVE, unsupported};
use super::parameter::Parameter;
use super::words;

/// The contents of a command line.
#[derive(Debug, Default)]
pub(crate) struct CommandLine {
    /// The path of the configuration file, if one is given.
    pub file: Option<PathBuf>,
    /// Whether directives are also read from standard input.
    pub reads_stdin: bool,
    /// The parameters that flags set.
    pub assignments: Vec<Assignment>,
    /// Whether the server only checks the configuration and exits.
    pub checks_only: bool,
    /// The text to print instead of starting (`--help`, `--version`), which takes precedence over everything else.
    pub request: Option<Request>,
}

/// A text to print instead of starting a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Help,
    Version,
}

impl CommandLine {
    /// Reads the arguments after the program's name.
    ///
    /// # Errors
    /// Returns one line that names the argument.
    pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<CommandLine, String> {
        let arguments: Vec<_> = arguments
            .map(OsString::into_string)
            .collect::<Result<_, _>>()
            .map_err(|bad| format!("the argument '{}' is not valid UTF-8", bad.to_string_lossy()))?;
        let mut line = CommandLine::default();
        let mut arguments = arguments.into_iter().peekable();
        if let Some(file) = arguments.next_if(|argument| !argument.starts_with('-')) {
            line.file = Some(file.into());
        }
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "-h" | "--help" => line.request = Some(Request::Help),
                "-v" | "--version" => line.request = Some(Request::Version),
                "--check-config" => {
                    line.checks_only = true;
                    if let Some(file) = arguments.next_if(|argument| !argument.starts_with('-')) {
                        line.name_file(file, "--check-config")?;
                    }
                }
                "-" => line.reads_stdin = true,
                "-p" => line.flag("port", None, "-p", &mut arguments)?,
                "-c" => line.flag("config", None, "-c", &mut arguments)?,
                flag => match flag.strip_prefix("--").filter(|flag| !flag.is_empty()) {
                    Some(flag) => match flag.split_once(['=', ' ']) {
                        Some((name, value)) => {
                            let origin = format!("--{name}");
                            let is_line = flag[name.len()..].starts_with(' ');
                            let value = if is_line { unquoted(value, &origin)? } else { value.to_owned() };
                            line.flag(name, Some(&value), &origin, &mut arguments)?
                        }
                        None => line.flag(flag, None, &argument, &mut arguments)?,
                    },
                    None => return Err(line.unexpected(&argument)),
                },
            }
            if line.request.is_some() {
                break;
            }
        }
        Ok(line)
    }

    fn flag(
        &mut self,
        name: &str,
        value: Option<&str>,
        origin: &str,
        rest: &mut Peekable<IntoIter<String>>,
    ) -> Result<(), String> {
        if name.eq_ignore_ascii_case("config") {
            let value = value.map(str::to_owned).or_else(|| rest.next_if(|next| !next.starts_with('-')));
            let path = value.ok_or_else(|| format!("{origin}: a value is missing"))?;
            return self.name_file(path, origin);
        }
        if name.eq_ignore_ascii_case(USER_DIRECTIVE) {
            let mut words: Vec<_> =
                value.into_iter().flat_map(str::split_whitespace).map(str::to_owned).collect();
            words.extend(std::iter::from_fn(|| rest.next_if(|word| !word.starts_with("--"))));
            self.assignments
                .push(Assignment { statement: Statement::User(words), origin: origin.to_owned() });
            return Ok(());
        }
        let unknown = || {
            let first = value.or_else(|| rest.peek().map(String::as_str)).unwrap_or_default();
            match unsupported(&name.to_ascii_lowercase(), first) {
                Some(why) => format!("{origin}: {why}: remove this flag"),
                None => Parameter::unknown(origin),
            }
        };
        let parameter = Parameter::find(name).ok_or_else(unknown)?;
        let text = match value {
            Some(value) => value.to_owned(),
            None => value_of(parameter, rest).ok_or_else(|| format!("{origin}: a value is missing"))?,
        };
        let earlier = self.assignments.iter_mut().find_map(|earlier| match &mut earlier.statement {
            Statement::Value(known, text) if std::ptr::eq(*known, parameter) => Some(text),
            _ => None,
        });
        match earlier {
            Some(earlier) if parameter.takes_words() && !parameter.adds_lines() => {
                earlier.push(' ');
                earlier.push_str(&text);
            }
            _ => self.assignments.push(Assignment::value(parameter, text, origin.to_owned())),
        }
        Ok(())
    }

    fn name_file(&mut self, path: String, origin: &str) -> Result<(), String> {
        match self.file.replace(path.into()) {
            Some(_) => Err(format!("{origin}: there can be only one configuration file")),
            None => Ok(()),
        }
    }

    /// Returns the error message for an argument that is not a flag. The message does not repeat the argument: it may
    /// be part of a password.
    fn unexpected(&self, argument: &str) -> String {
        match self.assignments.last() {
            Some(flag) if !argument.starts_with('-') => {
                format!(
                    "{}: only one value is allowed (a configuration file must precede all flags)",
                    flag.origin
                )
            }
            _ => format!("unexpected argument '{argument}'"),
        }
    }
}

/// Removes the words of the value of `parameter` from `rest` and returns them; `None` if the value is missing.
fn value_of(parameter: &Parameter, rest: &mut Peekable<IntoIter<String>>) -> Option<String> {
    let mut words = Vec::new();
    while words.is_empty() || parameter.takes_words() {
        // The first word of a value may look like a short flag: a negative number, an optional address, a password.
        let may_be_short_flag = words.is_empty() && parameter.bare_value().is_none();
        let is_flag = |word: &str| word.starts_with("--") || (is_short_flag(word) && !may_be_short_flag);
        match rest.next_if(|word| !is_flag(word)) {
            Some(word) => words.push(word),
            None => break,
        }
    }
    if words.is_empty() { parameter.bare_value().map(str::to_owned) } else { Some(words.join(" ")) }
}

/// Removes the quotes of a value that is in one argument with its name, as in a line of a configuration file.
fn unquoted(value: &str, origin: &str) -> Result<String, String> {
    words::split(value).map(|words| words.join(" ")).map_err(|error| format!("{origin}: {error}"))
}

fn is_short_flag(word: &str) -> bool {
    matches!(word, "-" | "-h" | "-v" | "-p" | "-c")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<CommandLine, String> {
        CommandLine::parse(arguments.iter().map(OsString::from))
    }

    fn assigned(line: &CommandLine) -> Vec<(&str, &str)> {
        let value = |assignment: &'_ Assignment| match &assignment.statement {
            Statement::Value(parameter, text) => (parameter.name, text.clone().leak() as &str),
            other => panic!("{other:?}"),
        };
        line.assignments.iter().map(value).collect()
    }

    #[test]
    fn flags_take_one_value_or_all_words_up_to_the_next_flag() {
        let line =
            parse(&["--port", "6380", "--bind", "127.0.0.1", "-::1", "--SAVE", "", "--hz=20", "-p", "1"]);
        let line = line.unwrap();
        let expected =
            [("port", "6380"), ("bind", "127.0.0.1 -::1"), ("save", ""), ("hz", "20"), ("port", "1")];
        assert_eq!(assigned(&line), expected);
        assert_eq!(line.file, None);
    }

    #[test]
    fn a_switch_without_a_value_means_yes() {
        let line = parse(&["--concurrent", "--appendonly", "no", "--latency-tracking", "-p", "7"]).unwrap();
        let expected =
            [("concurrent", "yes"), ("appendonly", "no"), ("latency-tracking", "yes"), ("port", "7")];
        assert_eq!(assigned(&line), expected);
        assert_eq!(assigned(&parse(&["--appendonly"]).unwrap()), [("appendonly", "yes")]);
        let line = parse(&["--save", "--appendonly", "no"]).unwrap();
        assert_eq!(assigned(&line), [("save", ""), ("appendonly", "no")]);
        let line = parse(&["--save", "60", "1", "--save", "", "--save=5 6"]).unwrap();
        assert_eq!(assigned(&line), [("save", "60 1"), ("save", ""), ("save", "5 6")]);
    }

    #[test]
    fn a_flag_and_its_value_may_be_one_argument() {
        let line = parse(&["--maxmemory 700mb", "--maxmemory-policy 'allkeys-lru'", "--save 60 1"]).unwrap();
        let expected = [("maxmemory", "700mb"), ("maxmemory-policy", "allkeys-lru"), ("save", "60 1")];
        assert_eq!(assigned(&line), expected);
        assert_eq!(parse(&["--maxmemory '1"]).unwrap_err(), "--maxmemory: unbalanced quotes");
    }

    #[test]
    fn users_have_rules_up_to_the_next_flag() {
        let line = parse(&["--user", "alice", "on", "-@all", "--user bob off", "--port", "1"]).unwrap();
        let words = |at: usize| match &line.assignments[at].statement {
            Statement::User(words) => words.join(" "),
            other => panic!("{other:?}"),
        };
        assert_eq!((words(0), words(1)), ("alice on -@all".to_owned(), "bob off".to_owned()));
        assert_eq!(line.assignments.len(), 3);
    }

    #[test]
    fn repeated_hosts_are_combined() {
        let line = parse(&["--host", "10.0.0.1", "--bind", "10.0.0.2", "--host=::1"]).unwrap();
        assert_eq!(assigned(&line), [("bind", "10.0.0.1 10.0.0.2 ::1")]);
    }

    #[test]
    fn the_file_comes_first_or_after_config() {
        assert_eq!(parse(&["a.conf", "--port", "1"]).unwrap().file, Some("a.conf".into()));
        assert_eq!(parse(&["--port", "1", "--config", "a.conf"]).unwrap().file, Some("a.conf".into()));
        assert_eq!(parse(&["-c", "a.conf"]).unwrap().file, Some("a.conf".into()));
        assert_eq!(parse(&["--config=a.conf"]).unwrap().file, Some("a.conf".into()));
        assert!(parse(&["a.conf", "-", "--port", "1"]).unwrap().reads_stdin);
        assert!(parse(&["--port", "1", "-"]).unwrap().reads_stdin);
    }

    #[test]
    fn values_may_look_like_short_flags() {
        assert_eq!(
            assigned(&parse(&["--slowlog-log-slower-than", "-1"]).unwrap()),
            [("slowlog-log-slower-than", "-1")]
        );
        assert_eq!(assigned(&parse(&["--requirepass", "-p"]).unwrap()), [("requirepass", "-p")]);
        assert_eq!(assigned(&parse(&["--requirepass=--x=y"]).unwrap()), [("requirepass", "--x=y")]);
    }

    #[test]
    fn help_and_version_stop_the_parse() {
        assert_eq!(parse(&["--port", "1", "--help", "--bogus"]).unwrap().request, Some(Request::Help));
        assert_eq!(parse(&["-v"]).unwrap().request, Some(Request::Version));
    }

    #[test]
    fn errors_name_the_argument() {
        for (arguments, error) in [
            (&["--prot", "1"][..], "unknown parameter '--prot' (did you mean '--port'?)"),
            (
                &["--loadmodule", "/lib/search.so", "MAXSIZE", "5"],
                "--loadmodule: modules are not supported, so '/lib/search.so' cannot be loaded: remove this flag",
            ),
            (
                &["--LoadModule=/lib/search.so"],
                "--LoadModule: modules are not supported, so '/lib/search.so' cannot be loaded: remove this flag",
            ),
            (&["--sentinel"], "--sentinel: Sentinel is not available: remove this flag"),
            (
                &["--search.maxsize", "5"],
                "--search.maxsize: modules are not supported and have no parameters: remove this flag",
            ),
            (&["--port"], "--port: a value is missing"),
            (&["--port", "--hz", "1"], "--port: a value is missing"),
            (&["--bind", "--port", "1"], "--bind: a value is missing"),
            (&["--config"], "--config: a value is missing"),
            (&["a.conf", "--config", "b.conf"], "--config: there can be only one configuration file"),
            (
                &["--port", "1", "a.conf"],
                "--port: only one value is allowed (a configuration file must precede all flags)",
            ),
            (&["-", "a.conf"], "unexpected argument 'a.conf'"),
            (&["-x"], "unexpected argument '-x'"),
            (&["--"], "unexpected argument '--'"),
        ] {
            assert_eq!(parse(arguments).unwrap_err(), error);
        }
    }
}
