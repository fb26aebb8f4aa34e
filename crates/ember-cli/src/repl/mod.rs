//! Interactive sessions: commands typed at a prompt, or read line by line from standard input.

mod assistant;
mod docs;
mod editor;
mod help;
mod secrets;
mod settings;
mod subscribed;

use std::io::{self, BufRead, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ember_protocol::client::split_arguments;

use crate::client::{Client, Outcome};
use crate::output::Form;
use docs::Docs;
use editor::{Editor, Typed};
use ember_client::Place;
use ember_client::{put, put_line};
use secrets::has_secret;
use settings::Setting;

pub(crate) use subscribed::count_in;

/// The minimum duration of a command whose duration is shown after the reply.
const SLOW: Duration = Duration::from_millis(500);

/// A session at a prompt, or of commands from standard input.
struct Repl<'a> {
    client: &'a mut Client,
    /// The server's command documentation, once loaded.
    docs: Option<Docs>,
    /// The client's identity ([`Client::identity`]) at the last attempt to load the documentation.
    asked_as: u64,
}

/// Whether the session continues with another line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Line,
    End,
}

/// Reads and runs commands until the input ends.
pub(crate) fn run(client: &mut Client) -> ExitCode {
    client.set_interactive();
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let is_connected = client.connect();
    let mut repl = Repl { client, docs: None, asked_as: 0 };
    if is_terminal {
        if !is_connected {
            put_line(
                "No server replies there: is it running? Start one with `ember-server`, or specify its \
                 address with -h and -p, or -s.",
            );
        }
        return repl.run_typed();
    }
    for line in io::stdin().lock().split(b'\n') {
        match line {
            Ok(line) if repl.take(&line) == Next::Line => {}
            Ok(_) => break,
            Err(error) => {
                eprintln!("Error reading stdin: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

impl Repl<'_> {
    /// Runs the session at a prompt.
    fn run_typed(&mut self) -> ExitCode {
        self.client.output.is_coloured = self.client.output.form == Form::Standard && has_colours();
        self.client.output.indents_documents = true;
        self.client.is_typed = true;
        let mut editor = match Editor::new(has_colours()) {
            Ok(editor) => editor,
            Err(error) => {
                eprintln!("The terminal cannot be used: {error}");
                return ExitCode::FAILURE;
            }
        };
        settings::load().into_iter().for_each(|setting| self.set(setting, &mut editor));
        loop {
            if self.load_docs() {
                editor.set_docs(self.docs.clone());
            }
            let line = match self.read_line(&mut editor) {
                Typed::Line(line) => line,
                Typed::Interrupted if self.client.is_subscribed() => {
                    // Reconnecting is the only way to end a continuous sequence of messages.
                    self.client.connect();
                    continue;
                }
                Typed::Interrupted | Typed::End => return ExitCode::SUCCESS,
            };
            // A line that cannot be split cannot be sent, and may contain part of a password.
            if split_arguments(&line).is_some_and(|words| !words.is_empty() && !has_secret(&words)) {
                editor.remember(&line);
            }
            if let Some(setting) = Setting::of(&line) {
                self.set(setting, &mut editor);
                continue;
            }
            if self.take(line.as_bytes()) == Next::End {
                return ExitCode::SUCCESS;
            }
            let shown = if self.client.is_monitoring() {
                // Only closing the connection ends MONITOR, so a new one is opened.
                subscribed::show_monitored(self.client).map(|()| _ = self.client.connect())
            } else if self.client.is_subscribed() {
                subscribed::show_messages(self.client)
            } else {
                Ok(())
            };
            if let Err(error) = shown {
                crate::client::report_lost(&error);
                self.client.disconnect();
            }
        }
    }

    fn set(&mut self, setting: Setting, editor: &mut Editor) {
        if let Setting::Indent(is_on) = setting {
            self.client.output.indents_documents = is_on;
        }
        editor.set(setting);
    }

    /// Waits for a line. In a transaction, Tab completion must not query the server, because the query would be queued.
    fn read_line(&mut self, editor: &mut Editor) -> Typed {
        let prompt = self.prompt();
        if self.client.is_in_transaction || self.client.is_subscribed() || self.client.connection.is_none() {
            return editor.read(&prompt, &mut None);
        }
        let typed = editor.read(&prompt, &mut self.client.connection);
        if self.client.connection.is_none() {
            self.client.disconnect();
        }
        typed
    }

    /// `127.0.0.1:6379[1](TX)> `
    fn prompt(&self) -> String {
        if self.client.connection.is_none() {
            return "not connected> ".to_owned();
        }
        let mut prompt = self.client.address.shown();
        if self.client.database != 0 {
            prompt += &format!("[{}]", self.client.database);
        }
        if self.client.is_in_transaction {
            prompt += "(TX)";
        }
        if self.client.is_subscribed() {
            prompt += "(subscribed mode)";
        }
        prompt + "> "
    }

    /// Runs a line, which may be a command of the session itself, such as HELP, or a comment: a line that begins with
    /// `#`, because no command's name does.
    fn take(&mut self, line: &[u8]) -> Next {
        if line.trim_ascii_start().starts_with(b"#") {
            return Next::Line;
        }
        let Some(mut words) = split_arguments(line) else {
            put(b"Invalid argument(s)\n");
            return Next::Line;
        };
        let Some(first) = words.first() else { return Next::Line };
        let mut repeat = 1;
        if words.len() > 1
            && let Some(count) = std::str::from_utf8(first).ok().and_then(|first| first.parse::<i64>().ok())
        {
            if count <= 0 {
                put(b"Invalid ember-cli repeat command option value.\n");
                return Next::Line;
            }
            repeat = count;
            words.remove(0);
        }
        let lower: Vec<String> =
            words.iter().map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect();
        match lower.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["quit" | "exit", ..] => return Next::End,
            ["clear"] => put(b"\x1b[H\x1b[2J"),
            ["connect", host, port] => self.move_to(host, port),
            ["help" | "?", topic @ ..] => self.help(topic),
            // Settings have an effect only at a prompt.
            _ if Setting::of(&lower.join(" ")).is_some() => {}
            [command, ..] if command.starts_with(':') => put_line(settings::KNOWN),
            _ => self.run_command(&words, repeat),
        }
        Next::Line
    }

    fn run_command(&mut self, words: &[Vec<u8>], repeat: i64) {
        if self.client.is_subscribed() {
            self.client.send_only(words);
            return;
        }
        let begin = Instant::now();
        let outcome = self.client.run(words, repeat);
        let took = begin.elapsed();
        if took >= SLOW && outcome == Outcome::Answered && self.client.output.form == Form::Standard {
            put(format!("({:.2}s)\n", took.as_secs_f64()).as_bytes());
        }
    }

    /// Loads the command documentation: once for each identity of the client, until it succeeds, and never in a state
    /// in which the query would have another effect. Returns whether it was loaded now.
    fn load_docs(&mut self) -> bool {
        let is_known = self.docs.is_some() || self.asked_as == self.client.identity;
        if is_known || self.client.is_in_transaction || self.client.is_subscribed() {
            return false;
        }
        self.asked_as = self.client.identity;
        self.docs = self.client.connection.as_mut().and_then(Docs::load);
        self.docs.is_some()
    }

    fn move_to(&mut self, host: &str, port: &str) {
        match port.parse() {
            Ok(port) => {
                self.client.address.place = Place::Tcp { host: host.to_owned(), port };
                self.client.connect();
            }
            Err(_) => put_line(format!("{port} is not a port")),
        }
    }

    fn help(&mut self, topic: &[&str]) {
        if !topic.is_empty() {
            self.load_docs();
        }
        print_help(self.docs.as_ref(), topic);
    }
}

/// Shows help from the command line about a topic.
pub(crate) fn help_once(client: &mut Client, topic: &[&str]) {
    let docs = match topic {
        [] => None,
        _ if !client.connect() => return,
        _ => client.connection.as_mut().and_then(Docs::load),
    };
    print_help(docs.as_ref(), topic);
}

fn print_help(docs: Option<&Docs>, topic: &[&str]) {
    match docs {
        _ if topic.is_empty() => put(help::OVERVIEW.as_bytes()),
        Some(docs) => put(help::about(docs, &topic.join(" "), has_colours()).as_bytes()),
        None => put(b"The server does not support COMMAND DOCS, or cannot run it now.\n"),
    }
}

/// Whether to use colours: on a terminal that supports them, unless NO_COLOR is set (see no-color.org).
fn has_colours() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
    io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb
}
