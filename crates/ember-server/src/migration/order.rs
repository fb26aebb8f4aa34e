//! The arguments of MIGRATE.

use std::time::Duration;

use ember_protocol::Args;
use emberkv_core::commands::arguments::{integer, is_word};
use emberkv_core::error::CommandError;

/// Argument index of the first option.
const FIRST_OPTION: usize = 6;

/// Argument index of the single key, which may be empty.
const KEY: usize = 3;

/// The timeout of each step, in ms, if the call contains no valid timeout.
const DEFAULT_TIMEOUT_MS: u64 = 1000;

/// The maximum timeout of each step: a year.
const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The credentials for the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Credentials {
    /// The user name, if the call contains one.
    pub(super) user: Option<Vec<u8>>,
    pub(super) password: Vec<u8>,
}

/// The target server and the credentials for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) host: Vec<u8>,
    pub(super) port: Vec<u8>,
    pub(super) credentials: Option<Credentials>,
}

/// The parsed arguments of a MIGRATE call.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) destination: Destination,
    /// The number of the database on the target.
    pub(super) target_database: i64,
    /// The timeout of each step: connecting, sending a chunk, receiving a reply.
    pub(super) timeout: Duration,
    /// Whether the keys are kept on this server (COPY).
    pub(super) copies: bool,
    /// Whether existing keys on the target are replaced (REPLACE).
    pub(super) replaces: bool,
}

/// The parsed options of a call.
struct Options<'a> {
    args: Args<'a>,
    copies: bool,
    replaces: bool,
    /// The argument indexes of the user name and the password.
    user: Option<usize>,
    password: Option<usize>,
    /// The argument index of KEYS.
    keys: Option<usize>,
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>) -> Result<Options<'a>, CommandError> {
        let mut options =
            Options { args, copies: false, replaces: false, user: None, password: None, keys: None };
        let mut at = FIRST_OPTION;
        while at < args.len() {
            let left = args.len() - 1 - at;
            if is_word(args, at, "COPY") {
                options.copies = true;
            } else if is_word(args, at, "REPLACE") {
                options.replaces = true;
            } else if is_word(args, at, "AUTH") && left >= 1 {
                (options.user, options.password) = (options.user, Some(at + 1));
                at += 1;
            } else if is_word(args, at, "AUTH2") && left >= 2 {
                (options.user, options.password) = (Some(at + 1), Some(at + 2));
                at += 2;
            } else if is_word(args, at, "KEYS") {
                if !args.at(KEY).is_empty() {
                    return Err("ERR When using MIGRATE KEYS option, the key argument must be set to the empty string"
                        .into());
                }
                options.keys = Some(at);
                break;
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }

    fn credentials(&self) -> Option<Credentials> {
        let word = |at: usize| self.args.at(at).to_vec();
        self.password.map(|at| Credentials { user: self.user.map(word), password: word(at) })
    }
}

impl Order {
    /// Parses the arguments of a call.
    ///
    /// # Errors
    /// Returns the error for the client.
    pub(super) fn parse(args: Args<'_>) -> Result<Order, CommandError> {
        let options = Options::parse(args)?;
        let timeout_ms = u64::try_from(integer(args, 5)?).ok().filter(|&ms| ms > 0);
        let destination = Destination {
            host: args.at(1).to_vec(),
            port: args.at(2).to_vec(),
            credentials: options.credentials(),
        };
        Ok(Order {
            destination,
            target_database: integer(args, 4)?,
            timeout: Duration::from_millis(timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS)).min(TIMEOUT_MAX),
            copies: options.copies,
            replaces: options.replaces,
        })
    }
}

/// Iterates over the options of a call, valid or not: the argument index of each option, and the number of secret
/// arguments that follow it. An unknown word counts as an option without secret arguments. Ends at KEYS.
fn options(args: Args<'_>) -> impl Iterator<Item = (usize, usize)> {
    let mut at = FIRST_OPTION;
    std::iter::from_fn(move || {
        let option = at;
        if option >= args.len() || is_word(args, option, "KEYS") {
            return None;
        }
        let secrets = match () {
            () if is_word(args, option, "AUTH") => 1,
            () if is_word(args, option, "AUTH2") => 2,
            () => 0,
        };
        at += 1 + secrets;
        Some((option, secrets))
    })
}

/// Whether argument `index` of a call is a user name or a password, even if the call is invalid.
pub(crate) fn has_secret_at(args: Args<'_>, index: usize) -> bool {
    options(args).any(|(option, secrets)| (option + 1..=option + secrets).contains(&index))
}

/// Returns the argument indexes of the keys of a call; none if the call contains both a single key and KEYS, which is
/// an error.
pub(crate) fn key_positions(args: Args<'_>) -> Vec<usize> {
    let first_secret = options(args).last().map_or(FIRST_OPTION, |(option, secrets)| option + 1 + secrets);
    if first_secret >= args.len() {
        return (KEY..args.len().min(KEY + 1)).collect();
    }
    if args.at(KEY).is_empty() { (first_secret + 1..args.len()).collect() } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use ember_protocol::OwnedBatch;

    use super::*;

    fn with_call<R>(line: &str, inspect: impl FnOnce(Args<'_>) -> R) -> R {
        let words: Vec<&[u8]> =
            line.split(' ').map(|word| if word == "-" { b"" } else { word.as_bytes() }).collect();
        let mut batch = OwnedBatch::new();
        batch.push(&words);
        inspect(batch.command(0))
    }

    #[test]
    fn key_positions_are_those_of_the_arguments() {
        let keys = |line| with_call(line, key_positions);
        assert_eq!(keys("MIGRATE h 1 k 0 9"), [3]);
        assert_eq!(keys("MIGRATE h 1 k 0 9 COPY AUTH keys"), [3], "a password may be any word");
        assert_eq!(keys("MIGRATE h 1 - 0 9 AUTH2 keys keys KEYS a b"), [10, 11]);
        assert_eq!(keys("MIGRATE h 1 - 0 9 keys auth x"), [7, 8]);
        assert_eq!(keys("MIGRATE h 1 - 0 9 KEYS"), [0; 0]);
        assert_eq!(keys("MIGRATE h 1 k 0 9 KEYS a"), [0; 0]);
        assert_eq!(keys("MIGRATE"), [0; 0]);
    }

    #[test]
    fn users_and_passwords_are_secrets_even_after_a_syntax_error() {
        let secrets = |line| {
            with_call(line, |args| (0..args.len()).filter(|&at| has_secret_at(args, at)).collect::<Vec<_>>())
        };
        assert_eq!(secrets("MIGRATE h 1 k 0 9 COPY AUTH x REPLACE"), [8]);
        assert_eq!(secrets("MIGRATE h 1 k 0 9 what AUTH2 u x"), [8, 9]);
        assert_eq!(secrets("MIGRATE h 1 k 0 9 AUTH2 u"), [7]);
        assert_eq!(secrets("MIGRATE h 1 - 0 9 KEYS AUTH x"), [0; 0], "keys may have any name");
    }

    #[test]
    fn arguments_are_parsed_as_in_redis() {
        let order = |line| with_call(line, Order::parse);
        let asked = order("MIGRATE h 1 - 3 0 copy AUTH2 u x KEYS a").unwrap();
        assert_eq!((asked.copies, asked.replaces, asked.target_database), (true, false, 3));
        assert_eq!(asked.timeout, Duration::from_secs(1));
        let credentials = Credentials { user: Some(b"u".to_vec()), password: b"x".to_vec() };
        assert_eq!(asked.destination.credentials, Some(credentials));
        for line in ["MIGRATE h 1 k 0 9 AUTH", "MIGRATE h 1 k 0 9 AUTH2 u", "MIGRATE h 1 k 0 x what"] {
            assert_eq!(order(line).err(), Some(CommandError::Syntax), "{line}");
        }
        assert_eq!(order("MIGRATE h 1 k 0 x").err(), Some(CommandError::NotInteger));
        assert!(order("MIGRATE h 1 k 0 9 KEYS a").is_err());
    }
}
