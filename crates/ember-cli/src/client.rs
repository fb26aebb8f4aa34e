//! A client: a connection with its state, which runs commands and prints their replies.

mod redirection;

use std::io;
use std::time::{Duration, Instant};

use ember_protocol::client::{Value, quote, render};

use crate::output::{Contents, Form, Output};
use crate::pause::pause;
use crate::repl::count_in;
use ember_client::{Address, Connection, Place, cause, put, put_line};
use redirection::{REDIRECTIONS_MAX, Redirection};

/// The protocol to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// RESP2, the server's default.
    Resp2,
    /// RESP3; connecting fails if the server does not support it.
    Resp3,
    /// RESP3 if the server supports it.
    Resp3IfPossible,
}

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A reply arrived that does not determine the exit code.
    Answered,
    /// The reply was an error, which determines the exit code.
    Refused,
    /// The command could not be sent, or no reply arrived. The reason has been printed.
    Failed,
}

/// A connection and its state, as derived from the commands sent and their replies.
pub(crate) struct Client {
    pub(crate) address: Address,
    pub(crate) output: Output,
    wish: Wish,
    /// Whether error replies determine the exit code (`-e`).
    has_error_code: bool,
    /// Whether a lost connection is reopened.
    is_interactive: bool,
    /// Whether commands are typed by a user. Then messages of subscriptions are shown until a key is pressed.
    pub(crate) is_typed: bool,
    /// Whether MONITOR is active, so that the commands of all clients arrive.
    is_monitoring: bool,
    /// Whether push messages are shown.
    pub(crate) shows_pushes: bool,
    /// Whether cluster redirections are followed.
    pub(crate) follows_redirections: bool,
    /// Whether connections are reported.
    pub(crate) is_verbose: bool,
    pub(crate) interval: Duration,
    pub(crate) connection: Option<Connection>,
    /// The selected database.
    pub(crate) database: u32,
    /// The database that was selected before MULTI.
    outer_database: u32,
    pub(crate) is_in_transaction: bool,
    subscriptions: Subscriptions,
    /// Number of times that the client has connected or authenticated.
    pub(crate) identity: u64,
}

/// The sources of messages on a connection: its subscriptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Subscriptions {
    /// Whether messages are expected: a SUBSCRIBE, PSUBSCRIBE or SSUBSCRIBE was sent, and not all subscriptions of its
    /// kind have ended.
    is_on: bool,
    /// The number of subscribed channels and patterns.
    channels: u64,
    /// The number of subscribed shard channels.
    shard_channels: u64,
    /// Whether states of live queries are expected: a live query was begun, and none has ended since.
    is_watching: bool,
}

impl Client {
    pub(crate) fn new(address: Address, output: Output, wish: Wish) -> Client {
        let database = address.database;
        Client {
            address,
            output,
            wish,
            has_error_code: false,
            is_interactive: false,
            is_typed: false,
            is_monitoring: false,
            shows_pushes: io::IsTerminal::is_terminal(&io::stdout()),
            follows_redirections: false,
            is_verbose: false,
            interval: Duration::ZERO,
            connection: None,
            database,
            outer_database: 0,
            is_in_transaction: false,
            subscriptions: Subscriptions::default(),
            identity: 0,
        }
    }

    /// Makes error replies determine the exit code.
    pub(crate) fn set_error_code(&mut self) {
        self.has_error_code = true;
    }

    /// Enables reconnecting after a lost connection, at most once per command.
    pub(crate) fn set_interactive(&mut self) {
        self.is_interactive = true;
    }

    /// Connects, authenticates, and selects the database and the protocol. Prints errors; returns whether commands can
    /// be sent.
    pub(crate) fn connect(&mut self) -> bool {
        self.disconnect();
        let begin = Instant::now();
        let mut connection = match Connection::open(&self.address) {
            Ok(connection) => connection,
            Err(error) => {
                eprintln!("Could not connect to Redis at {}: {error}", self.address.shown_in_errors());
                return false;
            }
        };
        if self.is_verbose {
            let tls = connection.tls_shown().map(|tls| format!(", {tls}")).unwrap_or_default();
            let took = begin.elapsed().as_secs_f64() * 1e3;
            eprintln!("Connected to {} in {took:.3} ms{tls}", self.address.shown());
        }
        if let Err(error) = self.introduce(&mut connection) {
            report_lost(&error);
            return false;
        }
        self.connection = Some(connection);
        self.identity += 1;
        true
    }

    /// Drops the connection and its state.
    pub(crate) fn disconnect(&mut self) {
        self.connection = None;
        self.is_in_transaction = false;
        self.is_monitoring = false;
        self.subscriptions = Subscriptions::default();
    }

    /// Whether MONITOR is active.
    pub(crate) fn is_monitoring(&self) -> bool {
        self.is_monitoring
    }

    /// Whether messages are expected.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.subscriptions.is_on
    }

    /// Sends a command without waiting for its reply, which arrives among messages.
    pub(crate) fn send_only(&mut self, words: &[Vec<u8>]) {
        let Some(connection) = &mut self.connection else { return };
        if let Err(error) = connection.send(words) {
            self.give_up(&error);
        }
    }

    /// Prints the next message, and updates the subscriptions.
    ///
    /// # Errors
    /// Returns the errors of the connection.
    pub(crate) fn show_message(&mut self) -> io::Result<()> {
        let connection = self.connection.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let message = connection.receive()?;
        self.print(&message, Contents::Values);
        let subscriptions = &mut self.subscriptions;
        match count_in(&message) {
            Some((count, false)) => subscriptions.channels = count,
            Some((count, true)) => subscriptions.shard_channels = count,
            // OK is the reply that ends a live query; an error means that no live query was begun.
            None if message == Value::ok() || message.is_error() => subscriptions.is_watching = false,
            None if matches!(&message, Value::Simple(text) if text == b"RESET") => {
                *subscriptions = Subscriptions::default();
                self.database = 0;
            }
            None => {}
        }
        let channels = subscriptions.channels + subscriptions.shard_channels;
        subscriptions.is_on = channels > 0 || subscriptions.is_watching;
        Ok(())
    }

    fn introduce(&mut self, connection: &mut Connection) -> io::Result<()> {
        let said = |what: &str, answer: Value| match answer {
            Value::Error(text) => {
                eprintln!("{what} failed: {}", String::from_utf8_lossy(&text));
                false
            }
            _ => true,
        };
        if let Some(credentials) = &self.address.credentials
            && !said("AUTH", connection.ask(&credentials.command())?)
        {
            self.database = 0;
            return Ok(());
        }
        if self.database != 0 {
            let number = self.database.to_string();
            if !said(&format!("SELECT {number}"), connection.ask(&["SELECT", &number])?) {
                self.database = 0;
                return Ok(());
            }
        }
        if self.wish != Wish::Resp2
            && !said("HELLO 3", connection.ask(&["HELLO", "3"])?)
            && self.wish == Wish::Resp3
        {
            return Err(io::Error::other("the server does not support RESP3"));
        }
        Ok(())
    }

    /// Runs a command `repeat` times, or forever if `repeat` is negative, and prints the replies.
    pub(crate) fn run(&mut self, words: &[Vec<u8>], repeat: i64) -> Outcome {
        let mut left = repeat;
        let mut outcome = Outcome::Answered;
        while left != 0 {
            left -= i64::from(left > 0);
            outcome = match self.run_once(words) {
                Ok(outcome) => outcome,
                Err(error) if self.is_interactive && is_lost(&error) => {
                    if !self.connect() {
                        return Outcome::Failed;
                    }
                    self.run_once(words).unwrap_or_else(|error| self.give_up(&error))
                }
                Err(error) => self.give_up(&error),
            };
            if outcome != Outcome::Answered {
                return outcome;
            }
            pause(self.interval);
        }
        outcome
    }

    fn give_up(&mut self, error: &io::Error) -> Outcome {
        report_lost(error);
        self.disconnect();
        Outcome::Failed
    }

    /// Sends a command and prints its reply, or all replies that follow.
    fn run_once(&mut self, words: &[Vec<u8>]) -> io::Result<Outcome> {
        if self.connection.is_none() && !self.connect() {
            return Ok(Outcome::Failed);
        }
        let kind = Kind::of(words);
        let contents = contents_of(words);
        let connection = self.connection.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        connection.send(words)?;
        match kind {
            Kind::Shutdown => match connection.receive() {
                Ok(answer) => Ok(self.print(&answer, contents)),
                // SHUTDOWN succeeded: the lost connection is the requested result.
                Err(_) => {
                    self.disconnect();
                    Ok(Outcome::Answered)
                }
            },
            Kind::Subscribe => self.begin_subscription(),
            Kind::Watch => {
                self.subscriptions.is_watching = true;
                self.begin_subscription()
            }
            Kind::Monitor if self.is_typed => {
                let answer = self.receive_answer()?;
                self.is_monitoring = !matches!(answer, Value::Error(_));
                Ok(self.print(&answer, contents))
            }
            Kind::Monitor => {
                self.follow(contents)?;
                Ok(Outcome::Refused)
            }
            Kind::Other => {
                let Some(answer) = self.receive_followed(words)? else { return Ok(Outcome::Failed) };
                self.learn(words, &answer);
                Ok(self.print(&answer, contents))
            }
        }
    }

    /// Receives the reply to a command, following redirections to other nodes; `None` if such a node is unreachable;
    /// that error has been printed. In a transaction no redirection is followed, because the commands before are on
    /// this node.
    fn receive_followed(&mut self, words: &[Vec<u8>]) -> io::Result<Option<Value>> {
        let mut answer = self.receive_answer()?;
        for _ in 0..REDIRECTIONS_MAX {
            let Value::Error(text) = &answer else { break };
            let Some(redirection) = Redirection::of(text) else { break };
            if !self.follows_redirections || self.is_in_transaction {
                break;
            }
            if !self.move_to(&redirection) {
                return Ok(None);
            }
            let connection = self.connection.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            if redirection.is_ask {
                connection.ask(&["ASKING"])?;
            }
            connection.send(words)?;
            answer = self.receive_answer()?;
        }
        Ok(Some(answer))
    }

    /// Connects to the node of a redirection; returns whether that succeeded.
    fn move_to(&mut self, redirection: &Redirection) -> bool {
        let Redirection { slot, host, port, .. } = redirection;
        let host = match &self.address.place {
            Place::Tcp { host, .. } if redirection.host.is_empty() => host.clone(),
            Place::Unix(_) if redirection.host.is_empty() => "127.0.0.1".to_owned(),
            _ => host.clone(),
        };
        self.address.place = Place::Tcp { host, port: *port };
        if self.is_interactive {
            put_line(format!("-> Redirected to slot [{slot}] located at {}", self.address.shown_in_errors()));
        }
        self.connect()
    }

    /// Receives the next reply. Push messages before it are shown on a terminal.
    pub(crate) fn receive_answer(&mut self) -> io::Result<Value> {
        loop {
            let connection = self.connection.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            match connection.receive()? {
                Value::Push(_) if !self.subscriptions.is_on && !self.shows_pushes => {}
                Value::Push(message) if !self.subscriptions.is_on => put(&shown_push(message)),
                answer => return Ok(answer),
            }
        }
    }

    /// Handles SUBSCRIBE: prints all messages, without end; if commands are typed, the REPL shows them instead.
    fn begin_subscription(&mut self) -> io::Result<Outcome> {
        self.subscriptions.is_on = true;
        if self.is_typed {
            return Ok(Outcome::Answered);
        }
        if self.output.form != Form::Raw {
            put(b"Reading messages... (press Ctrl-C to quit)\n");
        }
        self.follow(Contents::Values)?;
        self.subscriptions = Subscriptions::default();
        Ok(Outcome::Answered)
    }

    /// Prints the next command of another client.
    ///
    /// # Errors
    /// Returns the errors of the connection.
    pub(crate) fn show_monitored(&mut self) -> io::Result<()> {
        let line = self.receive_answer()?;
        self.print(&line, Contents::Values);
        Ok(())
    }

    /// Prints replies until an error occurs.
    fn follow(&mut self, contents: Contents) -> io::Result<()> {
        loop {
            let answer = self.receive_answer()?;
            self.print(&answer, contents);
            if matches!(answer, Value::Error(_)) {
                return Ok(());
            }
        }
    }

    /// Prints a reply.
    pub(crate) fn print(&self, answer: &Value, contents: Contents) -> Outcome {
        match answer {
            Value::Error(text) if self.has_error_code => {
                eprintln!("{}", String::from_utf8_lossy(text));
                Outcome::Refused
            }
            _ => {
                put(&self.output.format(answer, contents));
                Outcome::Answered
            }
        }
    }

    /// Updates the connection's state according to a command and its reply.
    fn learn(&mut self, words: &[Vec<u8>], answer: &Value) {
        let Some((name, arguments)) = words.split_first() else { return };
        let is_error = matches!(answer, Value::Error(_));
        match (name.to_ascii_lowercase().as_slice(), arguments) {
            (b"select", [number])
                if !is_error && !matches!(answer, Value::Simple(text) if text == b"QUEUED") =>
            {
                let number = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
                self.database = number.unwrap_or(self.database);
            }
            (b"auth" | b"hello", _) if !is_error => self.identity += 1,
            (b"multi", []) if !is_error => {
                self.is_in_transaction = true;
                self.outer_database = self.database;
            }
            (b"exec", []) if self.is_in_transaction => {
                self.is_in_transaction = false;
                if is_error || *answer == Value::Null {
                    self.database = self.outer_database;
                }
            }
            (b"discard", []) if !is_error => {
                self.is_in_transaction = false;
                self.database = self.outer_database;
            }
            (b"reset", []) if !is_error => {
                self.is_in_transaction = false;
                self.subscriptions = Subscriptions::default();
                self.database = 0;
            }
            _ => {}
        }
    }
}

/// The effect of a command on the replies that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The command has one reply.
    Other,
    /// Messages follow.
    Subscribe,
    /// States of a live query follow.
    Watch,
    /// The commands of all clients follow.
    Monitor,
    /// The server shuts down.
    Shutdown,
}

impl Kind {
    fn of(words: &[Vec<u8>]) -> Kind {
        match words.first().map(|name| name.to_ascii_lowercase()).as_deref() {
            Some(b"subscribe" | b"psubscribe" | b"ssubscribe") => Kind::Subscribe,
            Some(name) if name == b"watch.open" || name.ends_with(b".watch") => Kind::Watch,
            Some(b"monitor") => Kind::Monitor,
            Some(b"shutdown") => Kind::Shutdown,
            _ => Kind::Other,
        }
    }
}

/// Returns the contents of the reply to a command.
fn contents_of(words: &[Vec<u8>]) -> Contents {
    let lower: Vec<Vec<u8>> = words.iter().take(2).map(|word| word.to_ascii_lowercase()).collect();
    let count = words.len();
    let is_text = match (lower.first().map(Vec::as_slice), lower.get(1).map(Vec::as_slice)) {
        (Some(b"json.get" | b"json.mget" | b"json.arrpop"), _) => return Contents::Documents,
        (Some(b"info" | b"lolwut"), _) => true,
        (Some(b"debug"), Some(b"htstats" | b"htstats-key" | b"client-eviction")) => true,
        (Some(b"memory"), Some(b"malloc-stats" | b"doctor")) => true,
        (Some(b"cluster"), Some(b"nodes" | b"info")) => count == 2,
        (Some(b"client"), Some(b"list" | b"info")) => true,
        (Some(b"latency"), Some(b"graph")) => count == 3,
        (Some(b"latency"), Some(b"doctor")) => count == 2,
        (Some(b"proxy"), Some(b"info")) => true,
        _ => false,
    };
    if is_text { Contents::Text } else { Contents::Values }
}

/// Formats a push message.
fn shown_push(message: Vec<Value>) -> Vec<u8> {
    match message.as_slice() {
        [Value::Bulk(kind), Value::Array(keys)] if kind == b"invalidate" => {
            let keys: Vec<String> = keys.iter().filter_map(Value::bytes).map(quote).collect();
            format!("-> invalidate: {}\n", keys.join(", ")).into_bytes()
        }
        _ => [render(&Value::Push(message)), b"\n".to_vec()].concat(),
    }
}

/// Whether an error means that the connection is lost, as opposed to an invalid reply.
fn is_lost(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
    )
}

/// Prints that the connection is lost.
pub(crate) fn report_lost(error: &io::Error) {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        eprintln!("Error: Server closed the connection");
    } else {
        eprintln!("Error: {}", cause(error));
    }
}
