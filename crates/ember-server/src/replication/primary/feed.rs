//! The output of a replica's connection, sent instead of replies.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ember_protocol::Reply;

use super::copy::{Copy, Spooled};
use super::replica::{ReplicaView, Stage};
use super::spool::Portion;
use super::vocabulary::{Reader, Vocabulary, Words};
use super::{Primary, good_replicas};
use crate::clients::replica::{Feed, Over};
use crate::server::Server;
use crate::system::clock::unix_ms;
use crate::system::random_name::random_name;

/// The reason for disconnecting a replica that needs bytes which are no longer kept.
pub(super) const LAG_EXCEEDED: &str =
    "it lags by more than repl-backlog-size and repl-backlog-spill, or client-output-buffer-limit, allow";

/// The reason for disconnecting a replica that requested a full sync without the stream after it.
const SERVED: &str = "it has received the requested full sync";

/// The maximum number of bytes read from the snapshot or the stream at once.
const PORTION_BYTES: usize = 256 * 1024;

/// Interval of keepalives to a replica that waits for its snapshot: empty lines, which the replica skips.
const SIGN_INTERVAL: Duration = Duration::from_secs(1);

enum State {
    /// The snapshot has not begun; `is_position_sent` says whether the replica has received the position at which the
    /// stream continues.
    Waiting { copy: Arc<Copy>, is_position_sent: bool, next_sign: Instant },
    /// The replica has received `sent` bytes of the snapshot. After the snapshot, it receives the mark, if it supports
    /// one, and then the stream from `position`.
    Copying { copy: Arc<Copy>, sent: u64, mark: Option<String>, position: u64 },
    /// The replica has received the mark. The stream is sent only after the replica confirms that it loaded the
    /// snapshot, because a replica that waits for a mark treats bytes that arrive with the mark as the end of the
    /// snapshot.
    Marked { position: u64 },
    /// The replica receives the stream from this position on.
    Following { position: u64 },
}

/// The output of one replica's connection.
pub(super) struct ReplicaFeed {
    server: &'static Server,
    view: Arc<ReplicaView>,
    /// The partial snapshot to send instead of the full one, if the replica requested only a part of the data.
    part: Option<Arc<Copy>>,
    vocabulary: Vocabulary,
    /// The check of the stream for unsupported commands; `None` if the replica supports all commands.
    reader: Option<Reader>,
    /// The groups of commands that the replica proves to support by confirming that it has loaded its snapshot.
    shows: Option<Words>,
    /// Whether the replica supports a mark at the end of a snapshot.
    knows_marks: bool,
    /// Whether the replica has received its whole snapshot.
    has_copy: bool,
    state: State,
}

impl ReplicaFeed {
    /// Returns the feed of a replica that receives a snapshot. `is_position_sent` is true for a replica that sent SYNC:
    /// such a replica must not receive the position at which the stream continues.
    pub(super) fn with_copy(
        server: &'static Server,
        view: Arc<ReplicaView>,
        vocabulary: Vocabulary,
        (copy, part): (Arc<Copy>, Option<Arc<Copy>>),
        (is_position_sent, knows_marks): (bool, bool),
    ) -> ReplicaFeed {
        let next_sign = Instant::now() + SIGN_INTERVAL;
        let state = State::Waiting { copy, is_position_sent, next_sign };
        let mut feed = ReplicaFeed::new(server, view, vocabulary, state);
        (feed.part, feed.knows_marks) = (part, knows_marks);
        feed
    }

    /// Returns the feed of a replica that resumes at a position; the stream from there on is kept.
    pub(super) fn following(
        server: &'static Server,
        view: Arc<ReplicaView>,
        vocabulary: Vocabulary,
        position: u64,
    ) -> ReplicaFeed {
        ReplicaFeed::new(server, view, vocabulary, State::Following { position })
    }

    fn new(
        server: &'static Server,
        view: Arc<ReplicaView>,
        vocabulary: Vocabulary,
        state: State,
    ) -> ReplicaFeed {
        let reader = Reader::new(vocabulary.known);
        ReplicaFeed {
            server,
            view,
            part: None,
            vocabulary,
            reader,
            shows: None,
            knows_marks: false,
            has_copy: false,
            state,
        }
    }

    /// Records that the replica has received a snapshot of this RDB version. A replica that does not support the
    /// contents cannot load the snapshot, and receives nothing more.
    fn has_got_copy(&mut self, version: u16) {
        let Vocabulary { program, known, missed } = self.vocabulary;
        let shown = Words::shown_by_copy(program, version, missed);
        self.reader = Reader::new(known.and(shown));
        self.shows = Some(shown);
        self.has_copy = true;
    }

    /// Marks the replica online: it has all data, and counts as a good replica for writes that require good replicas.
    fn go_online(&mut self) {
        self.view.enter(Stage::Online, unix_ms());
        good_replicas::refuse_writes(self.server, &self.server.config.snapshot());
    }

    /// Checks the output from byte `from` on for commands that the replica does not support.
    fn check_commands(&mut self, output: &mut Reply, from: usize) -> Result<(), Over> {
        let primary = Primary::of(self.server);
        if let Some(shown) = self.shows.filter(|_| self.view.has_confirmed()) {
            self.shows = None;
            primary.learnt_words.lock().record_loaded(self.view.name(), shown, unix_ms());
        }
        let Some(reader) = &mut self.reader else { return Ok(()) };
        reader.read(output, from).map_err(|unsent| {
            output.clear();
            self.view.is_dropped.store(true, Ordering::Relaxed);
            primary.learnt_words.lock().record_unsent(self.view.name(), unsent.words, unix_ms());
            unsent.reason.into()
        })
    }

    /// Appends the next bytes of the stream to the output.
    fn follow(&mut self, position: u64, output: &mut Reply) -> Result<(), Over> {
        let primary = Primary::of(self.server);
        let from = output.len_bytes();
        let (in_memory, on_disk) = {
            let stream = primary.stream.lock();
            // If the history has branched, the connection is about to be closed: the bytes that follow belong to a
            // replication ID that the replica does not know.
            if self.view.client.is_cut() {
                return Ok(());
            }
            let read = stream.backlog.read(position, PORTION_BYTES, |piece| output.raw(piece));
            (read.ok(), stream.spill.part(position))
        };
        let count = match (in_memory, on_disk) {
            (Some(count), _) => count,
            (None, Some(part)) => {
                let read = part.read(PORTION_BYTES);
                let bytes = read.map_err(|error| {
                    format!("the part of the stream that it needs cannot be read: {error}")
                })?;
                output.raw(&bytes);
                bytes.len()
            }
            (None, None) => {
                primary.record_slow(&self.view);
                return Err(LAG_EXCEEDED.to_owned().into());
            }
        };
        self.check_commands(output, from)?;
        let position = position + count as u64;
        self.view.position.store(position, Ordering::Relaxed);
        self.state = State::Following { position };
        Ok(())
    }
}

impl Feed for ReplicaFeed {
    fn record_end(&mut self, why: String) {
        self.view.record_end(why);
    }

    fn feed(&mut self, output: &mut Reply) -> Result<(), Over> {
        match &mut self.state {
            State::Waiting { copy, is_position_sent, next_sign } => {
                if !*is_position_sent && let Some(position) = copy.position() {
                    *is_position_sent = true;
                    let id = Primary::of(self.server).history().id;
                    output.simple(&format!("FULLRESYNC {id} {position}"));
                }
                let file = self.part.as_ref().unwrap_or(copy);
                let begun = file.begun().zip(copy.position().filter(|_| *is_position_sent));
                let (head, mark, position) = match begun {
                    Some((Err(error), _)) => return Err(has_no_copy(error)),
                    Some((Ok(Spooled { is_streamed: true, .. }), position)) if self.knows_marks => {
                        let mark = random_name().map_err(|error| has_no_copy(&error.to_string()))?;
                        (format!("$EOF:{mark}\r\n"), Some(mark), position)
                    }
                    Some((Ok(Spooled { spool, .. }), position)) if let Some(whole) = spool.whole() => {
                        (format!("${}\r\n", whole.map_err(|error| has_no_copy(&error))?), None, position)
                    }
                    _ if Instant::now() >= *next_sign => {
                        *next_sign = Instant::now() + SIGN_INTERVAL;
                        output.raw(b"\n");
                        return Ok(());
                    }
                    _ => return Ok(()),
                };
                output.raw(head.as_bytes());
                self.view.enter(Stage::Copying, unix_ms());
                self.state = State::Copying { copy: Arc::clone(file), sent: 0, mark, position };
                Ok(())
            }
            State::Copying { copy, sent, mark, position } => {
                let position = *position;
                let Some(Ok(Spooled { spool, version, .. })) = copy.begun() else {
                    return Err("the data of its full sync is lost".to_owned().into());
                };
                match spool.read(*sent, PORTION_BYTES).map_err(|error| has_no_copy(&error))? {
                    Portion::Bytes(bytes) => {
                        *sent += bytes.len() as u64;
                        copy.record_sent(&self.view, *sent);
                        output.raw(&bytes);
                        return Ok(());
                    }
                    Portion::None => return Ok(()),
                    Portion::End => {}
                }
                let (is_marked, version) = (mark.is_some(), *version);
                if let Some(mark) = mark.take() {
                    output.raw(mark.as_bytes());
                    // The pending output is sent before the connection is closed.
                    self.state = State::Copying { copy: Arc::clone(copy), sent: *sent, mark: None, position };
                }
                if self.view.is_copied_only && is_marked {
                    return Ok(());
                }
                if self.view.is_copied_only {
                    self.view.record_end(SERVED.to_owned());
                    return Err(Over::Served);
                }
                tracing::info!("the replica {} has received the full sync", self.view.name());
                self.has_got_copy(version);
                if is_marked {
                    self.state = State::Marked { position };
                    return Ok(());
                }
                self.go_online();
                self.follow(position, output)
            }
            &mut State::Marked { position } => {
                if !self.view.has_confirmed() {
                    return Ok(());
                }
                self.go_online();
                self.follow(position, output)
            }
            &mut State::Following { position } => self.follow(position, output),
        }
    }
}

fn has_no_copy(error: &str) -> Over {
    format!("its full sync failed: {error}").into()
}

impl Drop for ReplicaFeed {
    fn drop(&mut self) {
        self.view.is_closed.store(true, Ordering::Relaxed);
        let name = self.view.name();
        match self.view.why_it_ends() {
            Some(SERVED) => tracing::info!("the replica {name} is disconnected: {SERVED}"),
            Some(why) => tracing::warn!("the replica {name} is disconnected: {why}"),
            None => tracing::info!("the replica {name} is disconnected: this server is stopping"),
        }
        let primary = Primary::of(self.server);
        primary.leave(&self.view);
        if self.has_copy {
            primary.record_copied(&self.view);
        }
        good_replicas::refuse_writes(self.server, &self.server.config.snapshot());
    }
}
