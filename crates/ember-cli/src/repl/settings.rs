//! Settings of the prompt: `:set NAME` typed there, or a line each of a file at home.

use std::fs;
use std::path::PathBuf;

/// What is said of a setting that does not exist.
pub(super) const KNOWN: &str =
    "There are the settings `:set hints`, `:set nohints`, `:set highlight` and `:set nohighlight`.";

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// Whether arguments that are to come are shown behind the line.
    Hints(bool),
    /// Whether the words of the line have colours.
    Highlight(bool),
}

impl Setting {
    /// What a line sets; `None` if it is something else.
    pub(super) fn of(line: &str) -> Option<Setting> {
        let words: Vec<String> = line.split_whitespace().map(str::to_ascii_lowercase).collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [":set", "hints"] => Some(Setting::Hints(true)),
            [":set", "nohints"] => Some(Setting::Hints(false)),
            [":set", "highlight"] => Some(Setting::Highlight(true)),
            [":set", "nohighlight"] => Some(Setting::Highlight(false)),
            _ => None,
        }
    }
}

/// The settings of `$EMBERCLI_RCFILE`, or of `~/.emberclirc`. A line that sets nothing is told of; no file is no setting.
pub(super) fn load() -> Vec<Setting> {
    let home = || std::env::var_os("HOME").filter(|home| !home.is_empty());
    let file = match std::env::var_os("EMBERCLI_RCFILE") {
        Some(name) => Some(PathBuf::from(name)),
        None => home().map(|home| PathBuf::from(home).join(".emberclirc")),
    };
    let Some(file) = file.filter(|file| !file.as_os_str().is_empty()) else { return Vec::new() };
    let Ok(text) = fs::read_to_string(&file) else { return Vec::new() };
    let (settings, wrong) = parse(&text);
    for (number, line) in wrong {
        eprintln!("{}:{number}: {line:?} is no setting. {KNOWN}", file.display());
    }
    settings
}

/// The settings of a file, and the lines that are none.
fn parse(text: &str) -> (Vec<Setting>, Vec<(usize, &str)>) {
    let (mut settings, mut wrong) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        match Setting::of(line) {
            Some(setting) => settings.push(setting),
            None if line.is_empty() || line.starts_with('#') => {}
            None => wrong.push((number, line)),
        }
    }
    (settings, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_setting_on_each_line() {
        let (settings, wrong) = parse("# mine\n\n :SET nohints\n:set highlight\n:set\nGET x\n");
        assert_eq!(settings, [Setting::Hints(false), Setting::Highlight(true)]);
        assert_eq!(wrong, [(5, ":set"), (6, "GET x")]);
    }
}
