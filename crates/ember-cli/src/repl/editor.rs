//! The line editor and its history.

use std::path::PathBuf;

use ember_client::Connection;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config};

use super::assistant::Assistant;
use super::docs::Docs;
use super::settings::Setting;

/// The maximum number of lines in the history.
const HISTORY_LINES: usize = 10_000;

/// Input from the terminal.
#[derive(Debug)]
pub(super) enum Typed {
    /// A line, without its end.
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the terminal was closed.
    End,
}

/// The line editor.
pub(super) struct Editor {
    line: rustyline::Editor<Assistant, FileHistory>,
    /// The history file; None without a home directory.
    file: Option<PathBuf>,
}

impl Editor {
    /// Creates an editor with the stored history.
    ///
    /// # Errors
    /// Returns the errors of the terminal.
    pub(super) fn new(has_colours: bool) -> Result<Editor, ReadlineError> {
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)?
            .history_ignore_dups(true)?
            .completion_type(CompletionType::Circular)
            .auto_add_history(false)
            // Each pasted line is a command.
            .bracketed_paste(false)
            .build();
        let mut line = rustyline::Editor::with_config(config)?;
        line.set_helper(Some(Assistant::new(has_colours)));
        let file = history_file();
        if let Some(file) = &file {
            // The file does not exist in the first session.
            let _ = line.load_history(file);
        }
        Ok(Editor { line, file })
    }

    /// Sets the command documentation for completion and hints.
    pub(super) fn set_docs(&mut self, docs: Option<Docs>) {
        if let Some(assistant) = self.line.helper_mut() {
            assistant.set_docs(docs);
        }
    }

    /// Applies a setting.
    pub(super) fn set(&mut self, setting: Setting) {
        if let Some(assistant) = self.line.helper_mut() {
            assistant.set(setting);
        }
    }

    /// Waits for a line. Meanwhile Tab completion sends its queries over `connection`, if there is one; if it breaks,
    /// it is `None` afterwards.
    pub(super) fn read(&mut self, prompt: &str, connection: &mut Option<Connection>) -> Typed {
        if let Some(assistant) = self.line.helper_mut() {
            assistant.lend(connection.take());
        }
        let typed = self.line.readline(prompt);
        if let Some(assistant) = self.line.helper_mut() {
            *connection = assistant.give_back();
        }
        match typed {
            Ok(line) => Typed::Line(line),
            Err(ReadlineError::Interrupted) => Typed::Interrupted,
            Err(_) => Typed::End,
        }
    }

    /// Adds a line to the history file immediately, because the session may be killed.
    pub(super) fn remember(&mut self, line: &str) {
        let is_new = self.line.add_history_entry(line).unwrap_or(false);
        if let Some(file) = self.file.as_ref().filter(|_| is_new) {
            // Failing to save the history is not fatal.
            let _ = self.line.append_history(file);
        }
    }
}

/// `$EMBERCLI_HISTFILE`, or a file in the home directory; None for an empty name or /dev/null.
fn history_file() -> Option<PathBuf> {
    let file = match std::env::var_os("EMBERCLI_HISTFILE") {
        Some(name) => PathBuf::from(name),
        None => {
            PathBuf::from(std::env::var_os("HOME").filter(|home| !home.is_empty())?).join(".embercli_history")
        }
    };
    (!file.as_os_str().is_empty() && file.as_os_str() != "/dev/null").then_some(file)
}
