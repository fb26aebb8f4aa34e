//! A stream of states as server-sent events (WHATWG HTML, section 9.2).
//!
//! ```text
//! id: 5f3a9c01-81723-9f3c…,5f3a9c01-81724-02ab…            the newest version of each command, in the order of the URL
//! data: {"command":"GET price","result":"11","version":"5f3a9c01-81723-9f3c…"}
//! ```
//!
//! A browser that has lost the connection sends the last `id` with its next request, and receives the changes since
//! then. While the client does not read, the stream reads nothing from the worker, which retains the newest state of
//! each command.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use ember_protocol::client::Value;
use hyper::body::Bytes;
use serde_json::json;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::session::Session;
use super::stream_place::StreamPlace;
use super::wish::{Watched, Wish};
use crate::control_plane::answer::Pieces;
use crate::live_queries::json;

/// The interval of empty comments, by which proxies keep the connection open and disconnected clients are detected.
const COMMENT_EVERY: Duration = Duration::from_secs(15);

/// The first event of a stream. It flushes the headers, and sets the browser's delay before reconnecting to one second.
pub(super) const RECONNECT: &str = "retry: 1000\n\n";

/// A watched command of a stream.
struct Query {
    line: String,
    fingerprint: String,
    /// The version of the last state that was sent.
    version: String,
    is_over: bool,
}

/// The stream of events.
pub(super) struct Events {
    session: Session,
    queries: Vec<Query>,
    /// Formatted events that are not sent yet.
    ready: VecDeque<Bytes>,
    comments: Interval,
    _place: StreamPlace,
}

/// The reason why a stream could not start.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The server's error reply.
    Error(String),
    /// This server is a replica that has not reached the requested versions yet, but will soon.
    Lagging,
    /// The connection to the worker was closed.
    Closed(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::Closed(error)
    }
}

impl Events {
    /// Watches the commands on an authenticated session, and returns their stream of events.
    ///
    /// # Errors
    /// Returns the server's error for one of the commands.
    pub(super) async fn begin(
        mut session: Session,
        wish: Wish,
        place: StreamPlace,
    ) -> Result<Events, Refusal> {
        let database = wish.database.as_deref().map(|database| ["SELECT", database]);
        if let Some(select) = &database {
            session.send(select).await?;
            let reply = session.receive().await?;
            if reply.is_error() {
                return Err(Refusal::Error(reply.text()));
            }
        }
        let comments = interval_at(Instant::now() + COMMENT_EVERY, COMMENT_EVERY);
        let ready = VecDeque::from([Bytes::from_static(RECONNECT.as_bytes())]);
        let mut events = Events { session, queries: Vec::new(), ready, comments, _place: place };
        events.comments.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let Wish { commands, interval, sends_equal, .. } = wish;
        for Watched { line, words, since } in commands {
            let mut call: Vec<&[u8]> = vec![b"WATCH.OPEN"];
            if let Some(since) = &since {
                call.extend([&b"SINCE"[..], since.as_bytes()]);
            }
            if let Some(interval) = &interval {
                call.extend([&b"INTERVAL"[..], interval.as_bytes()]);
            }
            if sends_equal {
                call.push(b"EVERY");
            }
            call.push(b"COMMAND");
            call.extend(words.iter().map(Vec::as_slice));
            events.session.send(&call).await?;
            events.open(line, since.as_deref()).await?;
        }
        Ok(events)
    }

    /// Receives the reply to a command that was sent, and any states of other commands that precede the reply.
    async fn open(&mut self, line: String, since: Option<&str>) -> Result<(), Refusal> {
        let reply = loop {
            match self.session.receive().await? {
                push @ Value::Push(_) => self.take_state(&push),
                reply => break reply,
            }
        };
        if reply.is_error() {
            let text = reply.text();
            let is_lagging = text.starts_with("BEHIND ");
            return Err(if is_lagging { Refusal::Lagging } else { Refusal::Error(text) });
        }
        let text = |name: &str| reply.get(name).map(|value| value.text()).unwrap_or_default();
        let (fingerprint, version) = (text("fingerprint"), text("version"));
        let is_known = since == Some(version.as_str());
        self.queries.push(Query { line, fingerprint, version, is_over: false });
        if !is_known {
            let result = reply.get("result").unwrap_or(Value::Null);
            self.ready.push_back(self.event(self.queries.len() - 1, &result));
        }
        Ok(())
    }

    /// Converts a state that the worker pushed to events.
    fn take_state(&mut self, push: &Value) {
        let Some([_, fingerprint, version, result]) = push.elements() else { return };
        let (fingerprint, version) = (fingerprint.text(), version.text());
        for at in 0..self.queries.len() {
            if self.queries[at].fingerprint == fingerprint {
                version.clone_into(&mut self.queries[at].version);
                self.queries[at].is_over |= is_end(result);
                self.ready.push_back(self.event(at, result));
            }
        }
    }

    fn event(&self, at: usize, result: &Value) -> Bytes {
        let Query { line, version, .. } = &self.queries[at];
        let versions: Vec<&str> = self.queries.iter().map(|query| query.version.as_str()).collect();
        let data = json!({ "command": line, "version": version, "result": json::of_value(result) });
        format!("id: {}\ndata: {data}\n\n", versions.join(",")).into()
    }
}

impl Pieces for Events {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(event));
            }
            if self.queries.iter().all(|query| query.is_over) {
                return Poll::Ready(None);
            }
            match self.session.poll_receive(context) {
                Poll::Ready(Ok(push)) => self.take_state(&push),
                // The worker has closed the connection; the stream ends, and a browser reconnects.
                Poll::Ready(Err(_)) => return Poll::Ready(None),
                Poll::Pending => break,
            }
        }
        let comments = Pin::new(&mut self.comments);
        comments.get_mut().poll_tick(context).map(|_| Some(Bytes::from_static(b":\n\n")))
    }
}

/// Whether this state is the last one: the user has lost its permissions, or the keys are on another node.
fn is_end(result: &Value) -> bool {
    let Value::Error(text) = result else { return false };
    [&b"NOPERM "[..], b"MOVED "].iter().any(|code| text.starts_with(code))
}
