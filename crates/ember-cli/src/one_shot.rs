//! Runs one command from the command line: determines its words, from the arguments and from standard input, and the
//! exit code.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::{fs, io};

use ember_protocol::client::split_arguments;

use crate::arguments::{ClientArguments, RunOptions};
use crate::client::{Client, Outcome};
use crate::repl::help_once;
use ember_client::cause;
use ember_client::put_line;

const BAD_QUOTES: &str = "Invalid quoted string";

/// Runs the command in the arguments.
pub(crate) fn run(client: &mut Client, arguments: &ClientArguments) -> ExitCode {
    let typed: Vec<_> = arguments.command.iter().map(|word| word.to_string_lossy()).collect();
    if let [name, topic @ ..] = typed.as_slice()
        && arguments.run.eval.is_none()
        && (name.eq_ignore_ascii_case("help") || name == "?")
    {
        help_once(client, &topic.iter().map(AsRef::as_ref).collect::<Vec<_>>());
        return ExitCode::SUCCESS;
    }
    match words(arguments) {
        Ok(words) => match client.run(&words, arguments.run.repeat) {
            Outcome::Answered => ExitCode::SUCCESS,
            Outcome::Refused | Outcome::Failed => ExitCode::FAILURE,
        },
        Err(error) if error == BAD_QUOTES => {
            // Printed on standard output, as by redis-cli.
            put_line(error);
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the words of the command.
fn words(arguments: &ClientArguments) -> Result<Vec<Vec<u8>>, String> {
    let options = &arguments.run;
    let mut words: Vec<Vec<u8>> = arguments.command.iter().cloned().map(OsString::into_vec).collect();
    if options.quoted_input {
        for word in &mut words {
            *word = unquoted(word)?;
        }
    }
    if let Some(file) = &options.eval {
        let script = fs::read(file)
            .map_err(|error| format!("Can't open file '{}': {}", file.display(), cause(&error)))?;
        words = eval(script, words);
    }
    add_from_stdin(options, &mut words)?;
    Ok(words)
}

/// Parses a quoted string; a word without quotes is returned unchanged.
pub(crate) fn unquoted(word: &[u8]) -> Result<Vec<u8>, String> {
    let words = split_arguments(word).filter(|words| words.len() == 1);
    words.and_then(|mut words| words.pop()).ok_or_else(|| BAD_QUOTES.to_owned())
}

/// Builds EVAL with a script: words before a comma are keys, those after it other arguments.
fn eval(script: Vec<u8>, words: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let keys = words.iter().position(|word| word == b",").unwrap_or(words.len());
    let mut command = vec![b"EVAL".to_vec(), script, keys.to_string().into_bytes()];
    let mut rest = words.into_iter();
    command.extend(rest.by_ref().take(keys));
    command.extend(rest.skip(1));
    command
}

fn add_from_stdin(options: &RunOptions, words: &mut Vec<Vec<u8>>) -> Result<(), String> {
    let read = || {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map_err(|error| format!("Error reading stdin: {error}"))?;
        Ok::<Vec<u8>, String>(bytes)
    };
    match &options.tag_from_stdin {
        Some(_) if options.last_from_stdin => Err("Options -x and -X are mutually exclusive.".to_owned()),
        Some(tag) => {
            let tag = tag.clone().into_vec();
            let Some(word) = words.iter_mut().find(|word| **word == tag) else {
                return Err("Using -X option but stdin tag not match.".to_owned());
            };
            *word = read()?;
            Ok(())
        }
        None if options.last_from_stdin => {
            words.push(read()?);
            Ok(())
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_ends_the_keys_of_a_script() {
        let words = |text: &[&str]| text.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        let script = b"return 1".to_vec();
        assert_eq!(
            eval(script.clone(), words(&["k", ",", "a", ","])),
            words(&["EVAL", "return 1", "1", "k", "a", ","])
        );
        assert_eq!(eval(script.clone(), words(&["k", "l"])), words(&["EVAL", "return 1", "2", "k", "l"]));
        assert_eq!(eval(script, vec![]), words(&["EVAL", "return 1", "0"]));
    }

    #[test]
    fn quoted_words_are_one_string() {
        assert_eq!(unquoted(b"\"\\xff\""), Ok(vec![0xFF]));
        assert_eq!(unquoted(b"plain"), Ok(b"plain".to_vec()));
        for word in [&b"\"open"[..], b"two words", b""] {
            assert!(unquoted(word).is_err(), "{word:?}");
        }
    }
}
