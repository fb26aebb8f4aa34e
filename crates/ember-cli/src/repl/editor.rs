//! The line that is typed: history, completion and hints.

use std::borrow::Cow;
use std::path::PathBuf;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Helper};

use super::docs::Docs;
use super::help::topics;

/// Lines that are remembered.
const HISTORY_LINES: usize = 10_000;

/// What came from the terminal.
#[derive(Debug)]
pub(super) enum Typed {
    /// A line, without its end.
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the terminal is gone.
    End,
}

/// The editor of the line.
pub(super) struct Editor {
    line: rustyline::Editor<Assistant, FileHistory>,
    /// Where lines are remembered; nowhere without a home.
    file: Option<PathBuf>,
}

impl Editor {
    /// An editor that remembers what was typed before.
    ///
    /// # Errors
    /// Those of the terminal.
    pub(super) fn new() -> Result<Editor, ReadlineError> {
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)?
            .history_ignore_dups(true)?
            .completion_type(CompletionType::Circular)
            .auto_add_history(false)
            // Lines that are pasted are commands, each of them.
            .bracketed_paste(false)
            .build();
        let mut line = rustyline::Editor::with_config(config)?;
        line.set_helper(Some(Assistant { docs: None, shows_hints: true }));
        let file = history_file();
        if let Some(file) = &file {
            // There is none at the first time.
            let _ = line.load_history(file);
        }
        Ok(Editor { line, file })
    }

    /// Completes and hints from now on by what a server says of its commands.
    pub(super) fn set_docs(&mut self, docs: Option<Docs>) {
        if let Some(assistant) = self.line.helper_mut() {
            assistant.docs = docs;
        }
    }

    /// Whether arguments that are to come are shown behind the line.
    pub(super) fn show_hints(&mut self, shows_hints: bool) {
        if let Some(assistant) = self.line.helper_mut() {
            assistant.shows_hints = shows_hints;
        }
    }

    /// Waits for a line.
    pub(super) fn read(&mut self, prompt: &str) -> Typed {
        match self.line.readline(prompt) {
            Ok(line) => Typed::Line(line),
            Err(ReadlineError::Interrupted) => Typed::Interrupted,
            Err(_) => Typed::End,
        }
    }

    /// Remembers a line, at once: the session may be killed.
    pub(super) fn remember(&mut self, line: &str) {
        let is_new = self.line.add_history_entry(line).unwrap_or(false);
        if let Some(file) = self.file.as_ref().filter(|_| is_new) {
            // A line that is not remembered is no reason to stop.
            let _ = self.line.append_history(file);
        }
    }
}

/// `$EMBERCLI_HISTFILE`, or a file at home; an empty name or /dev/null for none.
fn history_file() -> Option<PathBuf> {
    let file = match std::env::var_os("EMBERCLI_HISTFILE") {
        Some(name) => PathBuf::from(name),
        None => {
            PathBuf::from(std::env::var_os("HOME").filter(|home| !home.is_empty())?).join(".embercli_history")
        }
    };
    (!file.as_os_str().is_empty() && file.as_os_str() != "/dev/null").then_some(file)
}

/// What completes and hints.
struct Assistant {
    docs: Option<Docs>,
    shows_hints: bool,
}

impl Helper for Assistant {}
impl Validator for Assistant {}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let Some(docs) = &self.docs else { return Ok((0, Vec::new())) };
        let typed = &line[..position];
        if typed.get(..5).is_some_and(|begin| begin.eq_ignore_ascii_case("help ")) {
            return Ok((5, topics(docs, typed[5..].trim_start())));
        }
        let upper = typed.to_ascii_uppercase();
        let names = docs.commands.iter().filter(|command| command.name.starts_with(&upper));
        // As it is typed: in small letters or capital ones.
        let is_small = typed.chars().any(char::is_lowercase) && !typed.chars().any(char::is_uppercase);
        let names = names.map(|command| match is_small {
            true => command.name.to_ascii_lowercase(),
            false => command.name.clone(),
        });
        Ok((0, names.collect()))
    }
}

impl Hinter for Assistant {
    type Hint = String;

    fn hint(&self, line: &str, position: usize, _: &Context<'_>) -> Option<String> {
        if !self.shows_hints || position < line.len() {
            return None;
        }
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        // So many times.
        if words.len() > 1 && words[0].parse::<i64>().is_ok() {
            words.remove(0);
        }
        let (command, count) = self.docs.as_ref()?.find(&words)?;
        let rest = command.rest_behind(&words[count..]);
        let gap = if line.ends_with(' ') { "" } else { " " };
        (!rest.is_empty()).then(|| format!("{gap}{rest}"))
    }
}

impl Highlighter for Assistant {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[90m{hint}\x1b[0m"))
    }
}
