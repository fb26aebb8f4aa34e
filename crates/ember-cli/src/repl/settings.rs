//! Settings of the prompt: typed as `:set NAME`, or one per line in a file in the home directory.

use std::fs;
use std::path::PathBuf;

/// The message for an unknown setting.
pub(super) const KNOWN: &str = "The settings are `:set hints`, `:set highlight` and `:set indent`, and the same \
    with `no`, for example `:set nohints`.";

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// Whether missing arguments are shown after the line.
    Hints(bool),
    /// Whether the words of the line are coloured.
    Highlight(bool),
    /// Whether JSON documents in replies are indented.
    Indent(bool),
}

impl Setting {
    /// Parses a line as a setting; `None` if it is something else.
    pub(super) fn of(line: &str) -> Option<Setting> {
        let words: Vec<String> = line.split_whitespace().map(str::to_ascii_lowercase).collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [":set", "hints"] => Some(Setting::Hints(true)),
            [":set", "nohints"] => Some(Setting::Hints(false)),
            [":set", "highlight"] => Some(Setting::Highlight(true)),
            [":set", "nohighlight"] => Some(Setting::Highlight(false)),
            [":set", "indent"] => Some(Setting::Indent(true)),
            [":set", "noindent"] => Some(Setting::Indent(false)),
            _ => None,
        }
    }
}

/// Loads the settings of `$EMBERCLI_RCFILE`, or of `~/.emberclirc`. Reports invalid lines; a missing file is ignored.
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
        eprintln!("{}:{number}: {line:?} is not a setting. {KNOWN}", file.display());
    }
    settings
}

/// Parses the settings in a file; returns them and the invalid lines.
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
