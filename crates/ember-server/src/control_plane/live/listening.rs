//! Streams of published messages (SUBSCRIBE) and of the commands of all clients (MONITOR) for the dashboard, as
//! server-sent events, five a second at most.
//!
//! ```text
//! data: {"rows":["1764212345.123456 [0 127.0.0.1:4000] \"GET\" \"a\""],"missed":12}
//! data: {"rows":[{"at_ms":1764212345123,"channel":{"text":"news"},"message":{"text":"x"},"length":1}],"missed":0}
//! data: {"end":"the limit of 10 minutes is reached"}
//! ```
//!
//! A task reads the connection whether or not the browser reads the stream, so a page that does not read never makes the
//! worker keep output for it. The task keeps the rows of one event; those beyond its limits are counted as missed. It ends
//! after a time, a number of rows and a number of bytes, and when the worker produces output faster than the task reads.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, timeout_at};

use super::events::Refusal;
use super::following::{Refused, refused};
use super::frames::{Frame, Frames, Part, Unreadable};
use super::session::Session;
use super::stream_place::{StreamPlace, Streams};
use super::{Excuse, introduce};
use crate::clients::client::ClientView;
use crate::control_plane::answer::{AnswerBody, Pieces};
use crate::control_plane::door::Credentials;
use crate::control_plane::visitor::Visitor;
use crate::server::Server;
use crate::system::clock::unix_ms;

/// The connection name of the streams in `CLIENT LIST`.
const CLIENT_NAME: &str = "dashboard-stream";

/// The time between two events.
const EVENT_EVERY: Duration = Duration::from_millis(200);

/// The number of periods without rows after which an empty comment is sent, by which disconnected browsers are detected.
const COMMENT_AFTER: u32 = 75;

/// The limits of an event, which a page can display.
const EVENT_ROWS_MAX: usize = 200;
const EVENT_BYTES_MAX: usize = 128 * 1024;

/// The size of one read of the connection, in bytes.
const READ_BYTES: usize = 64 * 1024;

/// The number of unsent bytes of the worker from which the stream ends.
const UNSENT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The contents of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// The commands of all clients. The server formats each of them while such a stream is open.
    Commands,
    /// Published messages.
    Messages,
}

/// The limits of a stream.
struct Limits {
    /// The number of concurrent streams.
    streams: u64,
    minutes: u64,
    /// The number of rows that are sent, and of their bytes.
    rows: usize,
    bytes: usize,
}

static MONITORS: Streams = Streams::new();
static SUBSCRIBERS: Streams = Streams::new();

impl Subject {
    /// Returns the subject of a command, if it is one whose replies can be streamed.
    fn of(words: &[Vec<u8>]) -> Option<Subject> {
        let (name, arguments) = words.split_first()?;
        match (name.to_ascii_lowercase().as_slice(), arguments) {
            (b"monitor", []) => Some(Subject::Commands),
            (b"subscribe" | b"psubscribe" | b"ssubscribe", [_, ..]) => Some(Subject::Messages),
            _ => None,
        }
    }

    fn limits(self) -> Limits {
        match self {
            Subject::Commands => Limits { streams: 2, minutes: 10, rows: 100_000, bytes: 16 * 1024 * 1024 },
            Subject::Messages => Limits { streams: 32, minutes: 60, rows: 100_000, bytes: 64 * 1024 * 1024 },
        }
    }

    fn place(self) -> Result<StreamPlace, Excuse> {
        let streams = match self {
            Subject::Commands => &MONITORS,
            Subject::Messages => &SUBSCRIBERS,
        };
        let Limits { streams: max, .. } = self.limits();
        let too_many = || format!("the limit of {max} such streams is reached");
        streams.take(max).ok_or_else(|| Excuse::new(StatusCode::SERVICE_UNAVAILABLE, too_many()))
    }
}

/// An authenticated stream that has no command yet.
pub(crate) struct Listener(Session, &'static Server);

/// Authenticates a user for a stream.
///
/// # Errors
/// Returns the server's error.
pub(crate) async fn enter(
    credentials: Option<&Credentials>,
    visitor: Visitor,
    server: &'static Server,
) -> Result<Listener, Refused> {
    let session = introduce(credentials, CLIENT_NAME, visitor, server).await.map_err(refused)?;
    Ok(Listener(session, server))
}

impl Listener {
    /// Streams the messages that a MONITOR or a SUBSCRIBE receives.
    ///
    /// # Errors
    /// Returns an error for another command, the error of the server, or that there are too many streams.
    pub(crate) async fn listen(self, commands: &[Vec<Vec<u8>>]) -> Result<Response<AnswerBody>, Refused> {
        self.start(commands).await.map_err(refused)
    }

    async fn start(self, commands: &[Vec<Vec<u8>>]) -> Result<Response<AnswerBody>, Excuse> {
        let Listener(mut session, server) = self;
        let subject = match commands {
            [words] => Subject::of(words),
            _ => None,
        };
        let (Some(subject), [words]) = (subject, commands) else {
            let reason = "a stream has one command: MONITOR, SUBSCRIBE, PSUBSCRIBE or SSUBSCRIBE";
            return Err(Excuse::new(StatusCode::BAD_REQUEST, reason));
        };
        let place = subject.place()?;
        session.send(words).await.map_err(Refusal::Closed)?;
        // The first reply is small: a confirmation, or an error.
        let reply = session.receive().await.map_err(Refusal::Closed)?;
        if reply.is_error() {
            return Err(Excuse::of_error(reply.text()));
        }
        let closed = || Excuse::new(StatusCode::SERVICE_UNAVAILABLE, "the connection was closed");
        let view = server.clients.get(session.client_id).ok_or_else(closed)?;
        let (socket, received) = session.into_parts();
        let batch = Arc::new(Mutex::new(Batch::default()));
        let reader = Reader { subject, socket, view, batch: Arc::clone(&batch), rows: 0, bytes: 0 };
        let task = tokio::spawn(reader.run(received));
        let mut ticks = interval(EVENT_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first piece is a comment, which flushes the headers.
        let events = Events { batch, ticks, quiet: COMMENT_AFTER, is_over: false, task, _place: place };
        let mut response = Response::new(AnswerBody::Stream(Box::new(events)));
        let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Ok(response)
    }
}

/// The rows of the next event.
#[derive(Default)]
struct Batch {
    /// The rows as JSON, separated by commas.
    rows: Vec<u8>,
    count: usize,
    /// The number of rows that were omitted.
    missed: u64,
    /// The reason why the stream has ended.
    end: Option<String>,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.count >= EVENT_ROWS_MAX || self.rows.len() >= EVENT_BYTES_MAX
    }

    fn add(&mut self, row: &Json) {
        if self.count > 0 {
            self.rows.push(b',');
        }
        serde_json::to_writer(&mut self.rows, row).expect("every row has a form, and memory takes it");
        self.count += 1;
    }

    /// Returns the event, and begins the next one; `None` without rows.
    fn take(&mut self) -> Option<Bytes> {
        if self.count == 0 && self.missed == 0 {
            return None;
        }
        let mut text = b"data: {\"rows\":[".to_vec();
        text.append(&mut self.rows);
        text.extend_from_slice(format!("],\"missed\":{}}}\n\n", self.missed).as_bytes());
        (self.count, self.missed) = (0, 0);
        Some(text.into())
    }
}

/// The task that reads the connection.
struct Reader {
    subject: Subject,
    socket: UnixStream,
    view: Arc<ClientView>,
    batch: Arc<Mutex<Batch>>,
    /// The rows of all events, and their bytes.
    rows: usize,
    bytes: usize,
}

impl Reader {
    /// Reads until a limit is reached or the connection is closed; `received` are the bytes that were read already.
    async fn run(mut self, received: Vec<u8>) {
        let Limits { minutes, .. } = self.subject.limits();
        let deadline = Instant::now() + Duration::from_secs(60 * minutes);
        let reason = timeout_at(deadline, self.read(received)).await;
        let reason = reason.unwrap_or_else(|_| format!("the limit of {minutes} minutes is reached"));
        self.batch.lock().end = Some(reason);
    }

    /// Returns the reason for its end.
    async fn read(&mut self, received: Vec<u8>) -> String {
        let mut frames = Frames::default();
        let mut bytes = vec![0; READ_BYTES];
        let Limits { rows, bytes: bytes_max, .. } = self.subject.limits();
        let mut arrived = received;
        loop {
            if let Err(Unreadable) = frames.read(&arrived, &mut |frame| self.add(&frame)) {
                return "the server sent a message of an unexpected type or with too many parts".to_owned();
            }
            if self.rows >= rows {
                return format!("the limit of {rows} rows is reached");
            }
            if self.bytes >= bytes_max {
                return format!("the limit of {} MiB is reached", bytes_max >> 20);
            }
            if self.view.output_bytes.load(Ordering::Relaxed) > UNSENT_BYTES_MAX {
                return "the server sends more messages than the page can show".to_owned();
            }
            let read = match self.socket.readable().await {
                Ok(()) => self.socket.try_read(&mut bytes),
                Err(error) => Err(error),
            };
            arrived.clear();
            match read {
                Ok(0) => return "the server closed the connection".to_owned(),
                Ok(count) => arrived.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return format!("the connection was closed: {error}"),
            }
        }
    }

    fn add(&mut self, frame: &Frame) {
        let mut batch = self.batch.lock();
        if batch.is_full() {
            batch.missed += u64::from(self.is_row(frame));
            return;
        }
        let Some(row) = self.row(frame) else { return };
        let before = batch.rows.len();
        batch.add(&row);
        self.rows += 1;
        self.bytes += batch.rows.len() - before;
    }

    /// Whether a message is a row: not, for example, the confirmation of a subscription.
    fn is_row(&self, frame: &Frame) -> bool {
        match (self.subject, frame) {
            (Subject::Commands, Frame::Line(_)) => true,
            (Subject::Messages, Frame::Push(parts)) => message(parts).is_some(),
            _ => false,
        }
    }

    fn row(&self, frame: &Frame) -> Option<Json> {
        match (self.subject, frame) {
            (Subject::Commands, Frame::Line(line)) => {
                let text = String::from_utf8_lossy(&line.bytes);
                let rest = if line.is_cut() { format!("… ({} bytes)", line.length) } else { String::new() };
                Some(format!("{text}{rest}").into())
            }
            (Subject::Messages, Frame::Push(parts)) => {
                let (pattern, channel, content) = message(parts)?;
                let mut row = json!({
                    "at_ms": unix_ms(),
                    "channel": shown(channel),
                    "message": shown(content),
                    "length": content.length,
                });
                if let Some(pattern) = pattern {
                    row["pattern"] = shown(pattern);
                }
                Some(row)
            }
            _ => None,
        }
    }
}

/// Returns the pattern, the channel and the content of a published message.
fn message(parts: &[Part]) -> Option<(Option<&Part>, &Part, &Part)> {
    match parts {
        [kind, channel, content] if matches!(&kind.bytes[..], b"message" | b"smessage") => {
            Some((None, channel, content))
        }
        [kind, pattern, channel, content] if kind.bytes == b"pmessage" => {
            Some((Some(pattern), channel, content))
        }
        _ => None,
    }
}

/// Returns the JSON form of a string. Text is not cut within a character.
fn shown(part: &Part) -> Json {
    let bytes = match std::str::from_utf8(&part.bytes) {
        Err(error) if part.is_cut() && error.error_len().is_none() => &part.bytes[..error.valid_up_to()],
        _ => &part.bytes[..],
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}

/// The stream of events.
struct Events {
    batch: Arc<Mutex<Batch>>,
    ticks: Interval,
    /// The number of periods since the last event.
    quiet: u32,
    is_over: bool,
    task: JoinHandle<()>,
    _place: StreamPlace,
}

impl Pieces for Events {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        while !self.is_over {
            ready!(self.ticks.poll_tick(context));
            let mut batch = self.batch.lock();
            if let Some(event) = batch.take() {
                self.quiet = 0;
                return Poll::Ready(Some(event));
            }
            if let Some(reason) = batch.end.take() {
                self.is_over = true;
                return Poll::Ready(Some(format!("data: {}\n\n", json!({ "end": reason })).into()));
            }
            self.quiet += 1;
            if self.quiet > COMMENT_AFTER {
                self.quiet = 0;
                return Poll::Ready(Some(Bytes::from_static(b":\n\n")));
            }
        }
        Poll::Ready(None)
    }
}

impl Drop for Events {
    /// Closes the connection.
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn only_commands_whose_replies_are_messages_are_streamed() {
        assert_eq!(Subject::of(&words("Monitor")), Some(Subject::Commands));
        for line in ["SUBSCRIBE a", "psubscribe a* b", "SSubscribe a"] {
            assert_eq!(Subject::of(&words(line)), Some(Subject::Messages), "{line}");
        }
        for line in ["MONITOR x", "SUBSCRIBE", "SYNC", "GET a", "UNSUBSCRIBE a"] {
            assert_eq!(Subject::of(&words(line)), None, "{line}");
        }
    }

    #[test]
    fn an_event_has_limits_and_counts_the_missed_rows() {
        let mut batch = Batch::default();
        assert_eq!(batch.take(), None);
        batch.add(&json!("a"));
        batch.add(&json!({ "b": "\n" }));
        batch.missed = 3;
        let event = batch.take().unwrap();
        assert_eq!(event, "data: {\"rows\":[\"a\",{\"b\":\"\\n\"}],\"missed\":3}\n\n");
        assert_eq!(batch.take(), None);
        (0..EVENT_ROWS_MAX).for_each(|_| batch.add(&json!("x")));
        assert!(batch.is_full());
        batch.take();
        batch.add(&json!("x".repeat(EVENT_BYTES_MAX)));
        assert!(batch.is_full());
    }

    #[test]
    fn long_text_is_not_cut_within_a_character() {
        let part = |bytes: &[u8], length| Part { bytes: bytes.to_vec(), length };
        assert_eq!(shown(&part(b"a\xc3", 10)), json!({ "text": "a" }));
        assert_eq!(shown(&part(b"a\xc3", 2)), json!({ "base64": "YcM=" }));
        assert_eq!(shown(&part("ä".as_bytes(), 2)), json!({ "text": "ä" }));
    }
}
