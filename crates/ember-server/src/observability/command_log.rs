//! The command log: calls that were slow, had a large request or reply, or made a key large.
//!
//! There is one log per [`LogKind`]. Formats and names are those of Valkey 8.1, which does not log large keys. SLOWLOG
//! shows the log of slow calls.

use std::collections::VecDeque;

use ember_protocol::Args;
use parking_lot::Mutex;

use crate::catalogue::registry::Command;
use crate::clients::client::{ClientView, cut_name};

/// The maximum number of arguments stored per call, as in Redis.
const ARGUMENTS_MAX: usize = 32;

/// The maximum number of bytes stored per argument, as in Redis; also of a denied key, channel or user name.
const ARGUMENT_BYTES_MAX: usize = 128;

/// The text that replaces arguments that other clients must not see.
const REDACTED: &[u8] = b"(redacted)";

/// The reason for which a call is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogKind {
    /// The call was slow.
    Slow,
    /// The request was large.
    LargeRequest,
    /// The reply was large.
    LargeReply,
    /// The call made a key large.
    LargeKey,
}

impl LogKind {
    /// The kinds, with their names in COMMANDLOG.
    const NAMED: [(LogKind, &str); 4] = [
        (LogKind::Slow, "slow"),
        (LogKind::LargeRequest, "large-request"),
        (LogKind::LargeReply, "large-reply"),
        (LogKind::LargeKey, "large-key"),
    ];

    /// Returns the kind with this name, ignoring case.
    pub(crate) fn find(name: &[u8]) -> Option<LogKind> {
        let found = LogKind::NAMED.iter().find(|(_, known)| name.eq_ignore_ascii_case(known.as_bytes()));
        found.map(|&(kind, _)| kind)
    }
}

/// A logged call.
#[derive(Clone, Debug)]
pub(crate) struct LoggedCall {
    /// The number of the call in its log, counted since startup.
    pub(crate) id: u64,
    /// When the call ran, as Unix time in seconds.
    pub(crate) at_seconds: i64,
    /// The duration of the call in µs, or the size in bytes of its request, its reply or the key that it made large.
    pub(crate) amount: u64,
    /// The arguments, truncated to the limits above.
    pub(crate) arguments: Vec<Vec<u8>>,
    /// The client's address; empty if the client is unknown.
    pub(crate) address: String,
    /// The client's name.
    pub(crate) name: String,
}

impl LoggedCall {
    /// Creates a logged call; the log sets its `id`. Copies only the part of the arguments that is shown.
    pub(crate) fn new(
        at_seconds: i64,
        amount: u64,
        command: &Command,
        args: Args<'_>,
        client: Option<&ClientView>,
    ) -> LoggedCall {
        let (address, name) = client.map_or_else(Default::default, |client| {
            (client.peer.remote(), cut_name(&client.names.lock().name).to_owned())
        });
        LoggedCall { id: 0, at_seconds, amount, arguments: cut_arguments(command, args), address, name }
    }
}

/// The logged calls of one kind, newest first.
#[derive(Debug, Default)]
struct Log {
    next_id: u64,
    calls: VecDeque<LoggedCall>,
}

/// The logs of all kinds.
#[derive(Debug, Default)]
pub(crate) struct CommandLog([Mutex<Log>; LogKind::NAMED.len()]);

impl CommandLog {
    /// Adds a call to a log, which retains at most `max` calls.
    pub(crate) fn enter(&self, kind: LogKind, max: usize, call: LoggedCall) {
        let mut log = self.0[kind as usize].lock();
        let id = log.next_id;
        log.next_id += 1;
        log.calls.push_front(LoggedCall { id, ..call });
        log.calls.truncate(max);
    }

    /// Returns the newest `count` calls. Takes O(count) steps.
    pub(crate) fn newest(&self, kind: LogKind, count: usize) -> Vec<LoggedCall> {
        self.0[kind as usize].lock().calls.iter().take(count).cloned().collect()
    }

    /// Returns the number of logged calls of a kind.
    pub(crate) fn len(&self, kind: LogKind) -> usize {
        self.0[kind as usize].lock().calls.len()
    }

    /// Returns the number of calls of a kind logged since startup.
    pub(crate) fn total(&self, kind: LogKind) -> u64 {
        self.0[kind as usize].lock().next_id
    }

    /// Removes all calls of a kind.
    pub(crate) fn clear(&self, kind: LogKind) {
        self.0[kind as usize].lock().calls.clear();
    }
}

fn cut_arguments(command: &Command, args: Args<'_>) -> Vec<Vec<u8>> {
    let more = args.len().saturating_sub(ARGUMENTS_MAX);
    let shown = if more > 0 { ARGUMENTS_MAX - 1 } else { args.len() };
    let shown_argument = |at: usize| {
        if command.spec.has_secret_at(args, at) { REDACTED.to_vec() } else { cut_argument(args.at(at)) }
    };
    let mut arguments: Vec<Vec<u8>> = (0..shown).map(shown_argument).collect();
    if more > 0 {
        arguments.push(format!("... ({} more arguments)", more + 1).into_bytes());
    }
    arguments
}

/// Returns an argument in the form in which logs store it: its first bytes, and the number of the others.
pub(crate) fn cut_argument(argument: &[u8]) -> Vec<u8> {
    let Some((shown, rest)) =
        argument.split_at_checked(ARGUMENT_BYTES_MAX).filter(|(_, rest)| !rest.is_empty())
    else {
        return argument.to_vec();
    };
    [shown, format!("... ({} more bytes)", rest.len()).as_bytes()].concat()
}
