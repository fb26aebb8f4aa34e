//! The origin of measured figures: time, machine, program and command line.

use std::time::{SystemTime, UNIX_EPOCH};

use ember_protocol::moment::format_moment;

/// Options whose values are secrets.
const SECRET_OPTIONS: [&str; 2] = ["-a", "--pass"];
/// The text shown instead of a secret.
const HIDDEN: &str = "***";

/// The origin of measured figures.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// `2026-11-23 06:20:11 UTC`
    pub(super) date: String,
    /// Host name, system and processors.
    pub(super) host: String,
    /// Name and version of this program.
    pub(super) client: String,
    /// The command line without passwords.
    pub(super) command_line: String,
}

impl Origin {
    /// Returns the origin of figures measured now on this machine.
    pub(super) fn now() -> Origin {
        let system = rustix::system::uname();
        let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
        Origin {
            date: date(since.as_secs()),
            host: format!(
                "{} ({} {} {}, {processors} processors)",
                text(system.nodename()),
                text(system.sysname()),
                text(system.release()),
                text(system.machine())
            ),
            client: concat!("ember-cli ", env!("CARGO_PKG_VERSION")).to_owned(),
            command_line: shown(words),
        }
    }

    /// Formats the origin as two lines.
    pub(super) fn lines(&self) -> String {
        let Origin { date, host, client, command_line } = self;
        format!("{date} on {host}\n{client}: {command_line}\n")
    }
}

/// Formats a command line without its secrets.
fn shown(words: impl Iterator<Item = String>) -> String {
    let mut text = "ember-cli".to_owned();
    let mut is_secret = false;
    for word in words {
        let joined =
            SECRET_OPTIONS.iter().find(|option| word.len() > option.len() && word.starts_with(*option));
        let word = match joined {
            _ if is_secret => HIDDEN.to_owned(),
            Some(option) => format!("{option}{}{HIDDEN}", if option.len() > 2 { "=" } else { "" }),
            None => without_password(&word),
        };
        is_secret = SECRET_OPTIONS.contains(&word.as_str());
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:,=@%+".contains(letter);
        text.push(' ');
        match !word.is_empty() && word.chars().all(is_plain) {
            true => text.push_str(&word),
            false => text.push_str(&format!("'{}'", word.replace('\'', "'\\''"))),
        }
    }
    text
}

/// Removes the password from a URI; returns other words unchanged.
fn without_password(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let Some((login, place)) = rest.rsplit_once('@') else { return word.to_owned() };
    let user = login.split_once(':').map_or("", |(user, _)| user);
    format!("{scheme}://{user}:{HIDDEN}@{place}")
}

/// Formats a Unix time in seconds as a date and a time of day in UTC.
fn date(seconds: u64) -> String {
    let moment = format_moment(i64::try_from(seconds).unwrap_or(i64::MAX));
    format!("{} UTC", moment.trim_end_matches('Z').replace('T', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_times_are_formatted_as_dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }

    #[test]
    fn passwords_are_not_in_reports() {
        let shown = |line: &str| shown(line.split('|').map(str::to_owned));
        assert_eq!(shown("benchmark|-a|hunter2|-q"), "ember-cli benchmark -a '***' -q");
        for line in [
            "-ahunter2",
            "--pass=hunter2",
            "--pass|hunter2",
            "-u|redis://me:hunter2@h:1/2",
            "-uredis://hunter2@h",
        ] {
            assert!(!shown(line).contains("hunter2"), "{}", shown(line));
        }
        assert_eq!(shown("--command|GET it's"), "ember-cli --command 'GET it'\\''s'");
    }
}
