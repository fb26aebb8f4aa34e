//! The prompt in a terminal: its output, completions and hints, and the contents of the history, which must not include
//! secrets.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::io::{Read, Write};
use std::num::NonZero;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use ember_testkit::{Directory, Server, find_ember_server};
use rustix::termios::{LocalModes, tcgetattr};

/// The timeout for a text to appear on the screen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lines and columns of the terminal. There are enough lines for a whole test, because replies on the screen are
/// counted, so none may be scrolled out of view. Input typed before the prompt appears is shown twice.
const LINES: u16 = 200;
const COLUMNS: u16 = 120;

fn size(cells: u16) -> NonZero<u16> {
    NonZero::new(cells).unwrap()
}

/// A terminal with ember-cli in it.
struct Terminal {
    child: std::process::Child,
    keys: pty_process::blocking::Pty,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    folder: Rc<Directory>,
}

impl Terminal {
    fn start(arguments: &[&str]) -> Terminal {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Terminal::start_in(Rc::new(Directory::new(&format!("prompt-{number}"))), arguments)
    }

    fn start_in(folder: Rc<Directory>, arguments: &[&str]) -> Terminal {
        Terminal::start_with(folder, arguments, None)
    }

    fn start_with(folder: Rc<Directory>, arguments: &[&str], history: Option<&str>) -> Terminal {
        let (pty, side) = pty_process::blocking::open().unwrap();
        pty.resize(pty_process::Size::new(LINES, COLUMNS)).unwrap();
        let command = pty_process::blocking::Command::new(env!("CARGO_BIN_EXE_ember-cli"))
            .args(arguments)
            .env("HOME", &folder.0)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .env_remove("EMBERCLI_HISTFILE")
            .env_remove("EMBERCLI_RCFILE")
            .env_remove("EMBERCLI_AUTH")
            .env_remove("REDISCLI_AUTH");
        let command = match history {
            Some(file) => command.env("EMBERCLI_HISTFILE", file),
            None => command,
        };
        let child = command.spawn(side).unwrap();
        let mut reader: fs::File = std::os::fd::AsFd::as_fd(&pty).try_clone_to_owned().unwrap().into();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Terminal {
            child,
            keys: pty,
            output,
            screen: vt100::Parser::new(size(LINES), size(COLUMNS), 0),
            folder,
        }
    }

    fn type_keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line and waits until the screen contains `answer` once more than before.
    fn run(&mut self, line: &str, answer: &str) {
        let count = |screen: &vt100::Screen| screen.contents().matches(answer).count();
        let before = count(self.screen.screen());
        self.type_keys(&format!("{line}\r"));
        self.wait_until(answer, |screen| count(screen) > before);
    }

    /// Waits until the screen contains a text.
    fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |screen| screen.contents().contains(text));
    }

    /// Waits until the line of the cursor is `line`, without blanks at its end. Hints that follow the input are
    /// compared only as far as `line` contains them.
    fn wait_for_line(&mut self, line: &str) {
        self.wait_until(line, |screen| {
            let (row, _) = screen.cursor_position();
            screen.rows(0, COLUMNS).nth(usize::from(row)).is_some_and(|shown| {
                shown.trim_end() == line.trim_end() || (line.contains('[') && shown.starts_with(line))
            })
        });
    }

    /// Waits until the terminal no longer echoes input.
    fn wait_for_silence(&self) {
        let deadline = Instant::now() + PATIENCE;
        while tcgetattr(&self.keys).unwrap().local_modes.contains(LocalModes::ECHO) {
            assert!(Instant::now() < deadline, "input is still echoed");
            std::thread::yield_now();
        }
    }

    fn wait_until(&mut self, what: &str, is_there: impl Fn(&vt100::Screen) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_there(self.screen.screen()) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.screen.process(&bytes),
                Err(_) => panic!("no {what:?} on the screen:\n{}", self.screen.screen().contents()),
            }
        }
    }

    /// Ends ember-cli, and returns the directory and the history.
    fn quit(mut self) -> (Rc<Directory>, String) {
        self.type_keys("quit\r");
        assert!(self.child.wait().unwrap().success());
        let history = fs::read_to_string(self.folder.0.join(".embercli_history")).unwrap_or_default();
        (Rc::clone(&self.folder), history)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn server(arguments: &[&str]) -> Server {
    Server::start(find_ember_server(), &[&["--save", ""], arguments].concat())
}

fn connect(server: &Server) -> (Terminal, String) {
    let mut terminal = Terminal::start(&["-p", &server.port().to_string()]);
    let address = server.address().to_string();
    terminal.wait_for_line(&format!("{address}>"));
    (terminal, address)
}

#[test]
fn commands_are_answered_and_the_prompt_shows_the_state() {
    let server = server(&[]);
    let (mut terminal, address) = connect(&server);
    terminal.run("set greeting hello", "OK");
    terminal.run("get greeting", "\"hello\"");
    terminal.run("select 3", &format!("{address}[3]>"));
    terminal.run("multi", &format!("{address}[3](TX)>"));
    terminal.run("incr n", "QUEUED");
    terminal.run("exec", "1) (integer) 1");
    terminal.wait_for_line(&format!("{address}[3]>"));
    terminal.run("5 incr n", "(integer) 6");
    terminal.run("set pasted 1\rincrby pasted 41\rget pasted", "\"42\"");
    terminal.run("get \"open", "Invalid argument(s)");
    terminal.run("lrange n 0 -1", "(error) WRONGTYPE");
    terminal.type_keys("clear\r");
    terminal.wait_until("an empty screen", |screen| screen.contents().trim_end() == format!("{address}[3]>"));
    let (_, history) = terminal.quit();
    assert!(history.contains("set greeting hello") && history.contains("5 incr n"), "{history}");
}

#[test]
fn values_are_colored_by_type() {
    let server = server(&[]);
    let (mut terminal, _) = connect(&server);
    terminal.run("incr n", "(integer) 1");
    terminal.run("get n", "\"1\"");
    let screen = terminal.screen.screen();
    let colour = |text: &str| {
        let row = screen.rows(0, COLUMNS).position(|row| row.starts_with(text)).unwrap();
        screen.cell(u16::try_from(row).unwrap(), 0).unwrap().fgcolor()
    };
    assert_ne!(colour("(integer) 1"), colour("\"1\""));
    assert_ne!(colour("\"1\""), vt100::Color::Default);
}

#[test]
fn names_are_completed_and_arguments_hinted() {
    let server = server(&[]);
    let (mut terminal, address) = connect(&server);
    terminal.type_keys("persi\t");
    terminal.wait_for_line(&format!("{address}> persist key"));
    terminal.type_keys(" k");
    terminal.wait_for_line(&format!("{address}> persist k"));
    terminal.run("", "(integer) 0");
    terminal.type_keys("EXPIRE k ");
    terminal.wait_for_line(&format!("{address}> EXPIRE k seconds [NX|XX|GT|LT]"));
    terminal.type_keys("10 gt");
    terminal.wait_for_line(&format!("{address}> EXPIRE k 10 gt"));
    terminal.run("", "(integer) 0");
    // Forms with `.WATCH` are offered after the dot: until then `STRLEN` is the only command with this beginning.
    terminal.type_keys("strlen\t k");
    terminal.wait_for_line(&format!("{address}> strlen k"));
    terminal.run("", "(integer) 0");
    terminal.type_keys("strlen.w\t");
    terminal.wait_for_line(&format!("{address}> strlen.watch key"));
    terminal.type_keys("\x15help @sc\t");
    terminal.wait_for_line(&format!("{address}> help @scripting"));
    terminal.run("", "SCRIPT LOAD script");
    terminal.run("help expire", "group: generic");
    terminal.run("help nothing", "No help for nothing");
    terminal.run(":set nohints", &format!("{address}>"));
    terminal.type_keys("clear\rGET ");
    terminal.wait_for_line(&format!("{address}> GET"));
}

#[test]
fn lines_are_stored_in_the_history_but_no_secrets() {
    let server = server(&[]);
    let (mut terminal, address) = connect(&server);
    terminal.run("acl setuser alice on >hunter1 ~* +@all", "OK");
    terminal.run("config set requirepass hunter2", "OK");
    terminal.run("auth hunter2", "OK");
    terminal.run("hello 2 auth default hunter2", "server");
    terminal.run("migrate 127.0.0.1 1 k 0 10 auth hunter2", "NOKEY");
    terminal.run("auth \"hunter2", "Invalid argument(s)");
    terminal.run("set remembered yes", "OK");
    terminal.type_keys("clear\r");
    terminal.wait_for_line(&format!("{address}>"));
    // The Up key recalls the previous line of the history.
    terminal.type_keys("\x1b[A\x1b[A");
    terminal.wait_for_line(&format!("{address}> set remembered yes [NX"));
    terminal.type_keys("\x15");
    let (folder, history) = terminal.quit();
    assert!(history.contains("set remembered yes") && !history.contains("hunter"), "{history}");
    // The next session loads the history.
    let port = server.port().to_string();
    let mut next =
        Terminal::start_in(Rc::clone(&folder), &["-p", &port, "--no-auth-warning", "-a", "hunter2"]);
    next.wait_for_line(&format!("{address}>"));
    next.type_keys("\x1b[A\x1b[A\x1b[A");
    next.wait_for_line(&format!("{address}> set remembered yes [NX"));
}

#[test]
fn messages_are_shown_until_a_key_is_pressed() {
    let server = server(&[]);
    let (mut terminal, address) = connect(&server);
    let mut other = server.client();
    terminal.run("subscribe news", "Reading messages...");
    terminal.wait_for("3) (integer) 1");
    other.run("PUBLISH news first");
    terminal.wait_for("3) \"first\"");
    terminal.type_keys("p");
    terminal.wait_for_line(&format!("{address}(subscribed mode)> p"));
    terminal.type_keys("subscribe also*\x15");
    terminal.run("psubscribe also*", "3) (integer) 2");
    other.run("PUBLISH also-this second");
    terminal.wait_for("4) \"second\"");
    terminal.run("unsubscribe", "1) \"unsubscribe\"");
    terminal.run("punsubscribe", &format!("{address}> "));
    terminal.run("echo back", "\"back\"");
    terminal.run("subscribe again", "Reading messages...");
    // Ctrl-C ends the subscription with the connection.
    terminal.type_keys("\x03");
    terminal.wait_for_line(&format!("{address}>"));
    terminal.run("echo again", "\"again\"");
}

#[test]
fn states_are_shown_until_a_key_is_pressed() {
    for hello in ["", "hello 3"] {
        let server = server(&[]);
        let (mut terminal, address) = connect(&server);
        let mut other = server.client();
        other.run("SET price ten");
        if !hello.is_empty() {
            terminal.run(hello, "proto");
        }
        terminal.run("get.watch price", "Reading messages...");
        terminal.wait_for("\"ten\"");
        other.run("SET price eleven");
        terminal.wait_for("\"eleven\"");
        terminal.type_keys("p");
        terminal.wait_for_line(&format!("{address}(subscribed mode)> p"));
        terminal.type_keys("\x15");
        terminal.run("get.unwatch 3058063992", "OK");
        terminal.run("get price", "\"eleven\"");
    }
}

#[test]
fn monitored_commands_are_shown_until_control_c() {
    let server = server(&[]);
    let (mut terminal, address) = connect(&server);
    let mut other = server.client();
    terminal.run("select 3", &format!("{address}[3]>"));
    terminal.run("monitor", "OK");
    other.run("ECHO watched");
    terminal.wait_for("\"ECHO\" \"watched\"");
    terminal.type_keys("x");
    other.run("ECHO again");
    terminal.wait_for("\"ECHO\" \"again\"");
    terminal.type_keys("\x03");
    terminal.wait_for_line(&format!("{address}[3]>"));
    terminal.run("echo back", "\"back\"");
}

#[test]
fn keys_parameters_and_tokens_are_completed() {
    let server = server(&[]);
    let mut other = server.client();
    other.run("SET session:alice 1");
    other.command(&["SET", "with blank", "1"]);
    let (mut terminal, address) = connect(&server);
    terminal.run(":set nohints", &format!("{address}>"));
    let mut completes = |typed: &str, line: &str| {
        terminal.type_keys(&format!("{typed}\t"));
        terminal.wait_for_line(&format!("{address}> {line}"));
        // Ctrl-U empties the line.
        terminal.type_keys("\x15");
        terminal.wait_for_line(&format!("{address}>"));
    };
    completes("get ses", "get session:alice");
    completes("3 get ses", "3 get session:alice");
    completes("mget a b ses", "mget a b session:alice");
    completes("DEL wi", "DEL \"with blank\"");
    completes("config get maxmemory-s", "config get maxmemory-samples");
    completes("config set maxmemory-s", "config set maxmemory-samples");
    completes("client se", "client setinfo");
    completes("set k v kee", "set k v keepttl");
    // The commands that completion sends are not queued.
    terminal.run("multi", "OK");
    terminal.type_keys("get ses\t");
    terminal.wait_for_line(&format!("{address}(TX)> get ses"));
    terminal.run("", "QUEUED");
    terminal.run("exec", "1) (nil)");
}

#[test]
fn input_is_colored_unless_the_settings_disable_it() {
    let server = server(&[]);
    let (mut terminal, address) = connect(&server);
    let prompt = u16::try_from(address.len() + 2).unwrap();
    let colours = |screen: &vt100::Screen| {
        let (row, _) = screen.cursor_position();
        [0, 4, 6, 8].map(|column| screen.cell(row, prompt + column).unwrap().fgcolor())
    };
    terminal.run(":set nohints", &format!("{address}>"));
    terminal.type_keys("set k 5 \"x\"");
    terminal.wait_until("colours", |screen| {
        let [name, key, number, string] = colours(screen);
        key == vt100::Color::Default && name != key && number != key && string != key && number != string
    });
    terminal.type_keys("\x15");
    let folder = Rc::clone(&terminal.folder);
    fs::write(folder.0.join(".emberclirc"), "# mine\n:set nohints\n:set nohighlight\n:set nonsense\n")
        .unwrap();
    let mut next = Terminal::start_in(Rc::clone(&folder), &["-p", &server.port().to_string()]);
    next.wait_for(".emberclirc:4: \":set nonsense\" is not a setting.");
    next.type_keys("set k 5 \"x\"");
    next.wait_for_line(&format!("{address}> set k 5 \"x\""));
    assert_eq!(colours(next.screen.screen()), [vt100::Color::Default; 4]);
}

#[test]
fn documents_have_one_member_per_line_unless_the_settings_disable_it() {
    let server = server(&[]);
    let (mut terminal, address) = connect(&server);
    terminal.run(r#"json.set doc $ '{"a":[1],"b":null}'"#, "OK");
    let lines = ["{", "  \"a\": [", "    1", "  ],", "  \"b\": null", "}"].join("\n");
    terminal.run("json.get doc", &lines);
    terminal.run("json.mget doc none $.a", "1) [\n     [\n       1\n     ]\n   ]\n2) (nil)");
    terminal.run(":set noindent", &format!("{address}>"));
    terminal.run("json.get doc", r#""{\"a\":[1],\"b\":null}""#);
}

#[test]
fn a_lost_connection_is_reopened_and_an_absent_server_reported() {
    let server = server(&[]);
    let (mut terminal, address) = connect(&server);
    terminal.run("client id", "(integer)");
    let mut other = server.client();
    other.run("CLIENT KILL TYPE normal SKIPME yes");
    terminal.run("echo back", "\"back\"");
    let port = server.port().to_string();
    drop(server);
    terminal.run("ping", &format!("Could not connect to Redis at {address}: Connection refused"));
    terminal.wait_for_line("not connected>");
    let mut alone = Terminal::start(&["-p", &port]);
    alone.wait_for("No server replies there: is it running?");
    alone.wait_for_line("not connected>");
}

#[test]
fn a_password_is_prompted_for_and_not_shown() {
    let server = server(&["--requirepass", "hunter2"]);
    let mut terminal = Terminal::start(&["-p", &server.port().to_string(), "--askpass"]);
    terminal.wait_for("Please input password: ");
    terminal.wait_for_silence();
    terminal.type_keys("hunter2\r");
    let address = server.address().to_string();
    terminal.wait_for_line(&format!("{address}>"));
    terminal.run("ping", "PONG");
    assert!(!terminal.screen.screen().contents().contains("hunter2"));
}

#[test]
fn hints_appear_after_the_password_is_given() {
    let server = server(&["--requirepass", "hunter2"]);
    let (mut terminal, address) = connect(&server);
    terminal.run("get x", "NOAUTH");
    terminal.run("help get", "does not support COMMAND DOCS");
    terminal.run("auth hunter2", "OK");
    terminal.wait_for_line(&format!("{address}>"));
    terminal.type_keys("persi\t");
    terminal.wait_for_line(&format!("{address}> persist key"));
}

#[test]
fn the_history_file_is_readable_only_by_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let server = server(&[]);
    let (mut terminal, _) = connect(&server);
    terminal.run("set a 1", "OK");
    let file = terminal.folder.0.join(".embercli_history");
    let (_folder, _) = terminal.quit();
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_history_is_written_to_the_configured_file() {
    let server = server(&[]);
    let port = server.port().to_string();
    let folder = Rc::new(Directory::new("prompt-history"));
    let file = folder.0.join("lines");
    for (history, is_kept) in [(file.to_str().unwrap(), true), ("/dev/null", false), ("", false)] {
        let mut terminal = Terminal::start_with(Rc::clone(&folder), &["-p", &port], Some(history));
        terminal.run("set a 1", "OK");
        let (_, at_home) = terminal.quit();
        assert_eq!(at_home, "");
        assert_eq!(fs::read_to_string(&file).is_ok_and(|lines| lines.contains("set a 1")), is_kept);
        let _ = fs::remove_file(&file);
    }
}
