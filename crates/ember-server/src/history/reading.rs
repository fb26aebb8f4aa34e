//! Reads of the history.
//!
//! ```text
//! worker   under the locks of the keys: closes the moment, reads the last record's number and the current states
//! worker   indexes the records that the stream has published; replies if all states are in memory
//! thread   otherwise waits until the changes up to that number are indexed, and for the disk
//! ```
//!
//! The answer for a closed moment never changes, because later changes of the keys have later times. A key without a
//! version is unchanged since the oldest moment, at least until that number, so its current state is the answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ember_protocol::moment::parse_moment;
use ember_protocol::{OwnedBatch, Reply};
use ember_storage::segments::ReadError;
use emberkv_core::capture::State;
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;
use emberkv_core::turn::Settings;

use super::index::{Found, Index, Moment, Stored, Version};
use super::{Active, History, stored};
use crate::catalogue::registry::Command;
use crate::clients::client::ClientView;
use crate::executor::Executor;
use crate::executor::jobs::{Effort, Finished, Job, Jobs, Settled};
use crate::executor::session::{Execution, Outcome, SessionResult};
use crate::server::Server;
use crate::server::conditions::{Condition, READ_ONLY_ERROR};
use crate::server::slots::Refusal;

/// The number of attempts to read a record that is moved at the same time.
const ATTEMPTS_MAX: usize = 8;

/// A moment that a client has named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// The present.
    Now,
    /// The end of this millisecond, Unix time in ms.
    At(i64),
}

/// Returns the history of a server.
///
/// # Errors
/// Returns an error if it is off.
pub(crate) fn history_of(server: &'static Server) -> Result<&'static Active, CommandError> {
    History::of(server).ok_or_else(|| "ERR the history is off: set history-keys".into())
}

impl Active {
    /// Returns the present time of the history, Unix time in ms.
    pub(crate) fn now_ms(&self) -> i64 {
        self.covered.now_ms()
    }

    /// Parses a moment.
    ///
    /// # Errors
    /// Returns an error if the text is not a time, or the moment has not come yet.
    pub(crate) fn parse_when(&self, text: &[u8]) -> Result<When, CommandError> {
        let text = std::str::from_utf8(text).unwrap_or("");
        if text.eq_ignore_ascii_case("now") {
            return Ok(When::Now);
        }
        let now_ms = self.covered.now_ms();
        let at_ms = parse_moment(text, now_ms).map_err(|error| CommandError::from(format!("ERR {error}")))?;
        if at_ms > now_ms {
            return Err(format!("ERR the moment {at_ms} is in the future: it is {now_ms}").into());
        }
        Ok(When::At(at_ms))
    }
}

/// The selection of a key's versions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection {
    /// The first moment, Unix time in ms; `None` for the oldest one.
    pub(crate) from_ms: Option<i64>,
    /// The last moment.
    pub(crate) to_ms: i64,
    /// The number of versions that are skipped, in the order of the reply.
    pub(crate) offset: usize,
    /// The maximum number of versions.
    pub(crate) limit: usize,
    /// Whether the newest version comes first.
    pub(crate) is_descending: bool,
}

impl Default for Selection {
    fn default() -> Selection {
        Selection { from_ms: None, to_ms: i64::MAX, offset: 0, limit: usize::MAX, is_descending: false }
    }
}

/// A version of a key.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    /// The number of the change.
    pub(crate) number: u64,
    /// The time of the change, Unix time in ms.
    pub(crate) at_ms: i64,
    /// The cause of the change: the name of a command, or an action of the server.
    pub(crate) operation: &'static str,
    /// The state after the change, if it was read.
    pub(crate) state: Option<State>,
}

/// The data that a call reads from the history.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// The states of keys at moments.
    States(Vec<When>),
    /// Versions of one key, with their values if `values`.
    Versions { selection: Selection, values: bool },
}

/// The answer to a [`Question`].
pub(crate) enum Answer {
    /// For each moment in its order, the states of the keys in their order, with the moment's time, Unix time in ms.
    States(Vec<(State, i64)>),
    /// The selected versions.
    Versions(Vec<Past>),
}

/// A function that writes the reply of an answer.
pub(crate) type Write = Box<dyn FnOnce(&mut Writing<'_>, Answer) -> Result<(), CommandError> + Send>;

/// A function that acts on an answer, on the client's worker: it receives the number of the client's database.
pub(crate) type Act =
    Box<dyn FnOnce(&mut Executor, usize, Answer, &mut Reply) -> Result<(), CommandError> + Send>;

/// The action after the answer is known.
pub(crate) enum Then {
    /// The reply is written, possibly on a job thread.
    Write(Write),
    /// The call changes keys, on its worker.
    Act(Act),
}

/// The context in which a reply is written: a worker or a job thread.
pub(crate) struct Writing<'w> {
    pub(crate) server: &'static Server,
    pub(crate) settings: &'w Settings,
    pub(crate) database: usize,
    pub(crate) reply: &'w mut Reply,
}

/// The states that were read under the locks of the keys.
struct Notes {
    /// The number of the last record.
    number: u64,
    /// The present time of the history.
    now_ms: i64,
    /// For each key, its state in each database on which the answer may depend.
    states: Vec<Vec<(usize, State)>>,
}

/// Why a question has no answer yet.
enum Unanswered {
    /// The thread would have to wait.
    MustWait,
    Failed(CommandError),
}

impl From<CommandError> for Unanswered {
    fn from(error: CommandError) -> Unanswered {
        Unanswered::Failed(error)
    }
}

/// Answers a question about keys, on a job thread if the answer requires a wait, and then runs `then`.
///
/// # Errors
/// Returns an error if the answer is not known, or that of `then`.
pub(crate) fn ask(
    execution: &mut Execution<'_>,
    keys: Vec<Box<[u8]>>,
    question: Question,
    then: Then,
) -> SessionResult {
    let Execution { executor, client, command, reply, args } = execution;
    let server = executor.server;
    let history = history_of(server)?;
    for key in &keys {
        if !history.covers(key) {
            return Err("ERR the history does not cover this key: see history-keys".into());
        }
    }
    let database = client.database;
    let Some(notes) = note(executor, history, database, &keys, &question) else { return Ok(Outcome::Fetch) };
    history.counters.reads.fetch_add(1, Ordering::Relaxed);
    if history.taken_in() < notes.number {
        server.journal.pass_on_published();
        history.take_in(server, false);
    }
    let settings = executor.turn.settings;
    match history.answer(database, &keys, &question, &notes, false) {
        Ok(answer) => {
            match then {
                Then::Write(write) => {
                    write(&mut Writing { server, settings: &settings, database, reply }, answer)?;
                }
                Then::Act(act) => act(executor, database, answer, reply)?,
            }
            return Ok(Outcome::Done);
        }
        Err(Unanswered::Failed(error)) => return Err(error),
        Err(Unanswered::MustWait) => {}
    }
    let mut call = OwnedBatch::new();
    call.append(*args);
    let read = Box::new(PastRead {
        client: Arc::clone(&client.view),
        command,
        call,
        begun: Instant::now(),
        database,
        keys,
        question,
        notes,
        settings,
        replicas: executor.sync_replicas(Some(client)),
        then: Some(then),
        answer: None,
        result: Ok(()),
        reply: Box::new(Reply::new(reply.protocol())),
    });
    if let Err((_, error)) = Jobs::begin(server, Effort::Processor, read) {
        return Err(format!("ERR cannot start a thread: {error}").into());
    }
    Ok(Outcome::Wait(executor.park(command, client, reply)))
}

/// Records the current states of keys and the last record's number under the locks of all keys, and closes the moment
/// of the question. Returns `None` if values must be fetched first ([`emberkv_core::turn::Turn::missing`]).
fn note(
    executor: &mut Executor,
    history: &Active,
    database: usize,
    keys: &[Box<[u8]>],
    question: &Question,
) -> Option<Notes> {
    let keyspace = &executor.server.keyspace;
    let mut guards = Guards::None;
    let turn = &mut executor.turn;
    let mut shards = keys.iter().map(|key| keyspace.hash(key).shard()).collect();
    guards.hold_many(keyspace, turn, &mut shards);
    let now_ms = history.covered.now_ms();
    if let Question::States(moments) = question {
        for moment in moments {
            if let When::At(at_ms) = moment {
                history.covered.close(*at_ms);
            }
        }
    }
    let number = executor.server.journal.last_number();
    let databases =
        if history.covered.has_swapped() { 0..keyspace.databases() } else { database..database + 1 };
    turn.missing.clear();
    let mut states = Vec::new();
    for key in keys {
        let hash = keyspace.hash(key);
        let data = guards.data(hash.shard());
        let mut of_key = Vec::new();
        if !history.is_settled(database, key, question) {
            for other in databases.clone() {
                if data.is_missing(other, hash, key, turn.expired_ms()) {
                    turn.missing.push((other, key.clone()));
                }
                of_key.push((other, data.state(other, hash, key, usize::MAX)));
            }
        }
        states.push(of_key);
    }
    guards.release(keyspace, turn);
    turn.missing.is_empty().then_some(Notes { number, now_ms, states })
}

impl Active {
    /// Returns whether the answer about a key does not depend on its current state.
    fn is_settled(&self, database: usize, key: &[u8], question: &Question) -> bool {
        match question {
            Question::States(moments) => {
                let index = self.index.read();
                moments.iter().all(|moment| match moment {
                    When::Now => false,
                    When::At(at_ms) => {
                        *at_ms >= index.oldest.at_ms && index.settled(database, key, *at_ms).is_some()
                    }
                })
            }
            // Without an exchange of databases, only the key's own versions matter.
            Question::Versions { .. } => !self.covered.has_swapped(),
        }
    }

    /// Answers a question; without `may_wait`, only if no wait is necessary.
    fn answer(
        &self,
        database: usize,
        keys: &[Box<[u8]>],
        question: &Question,
        notes: &Notes,
        may_wait: bool,
    ) -> Result<Answer, Unanswered> {
        let needs_notes = notes.states.iter().any(|states| !states.is_empty())
            || matches!(question, Question::Versions { .. });
        if needs_notes && self.taken_in() < notes.number {
            return Err(Unanswered::MustWait);
        }
        match question {
            Question::States(moments) => {
                let mut states = Vec::new();
                for moment in moments {
                    for (key, captured) in keys.iter().zip(&notes.states) {
                        states.push(match *moment {
                            When::Now => {
                                let current = captured.iter().find(|(number, _)| *number == database);
                                let state = current.map_or(State::Unknown, |(_, state)| state.clone());
                                (known(state)?, notes.now_ms)
                            }
                            When::At(at_ms) => {
                                let find = |index: &Index| index.at(database, key, at_ms);
                                (
                                    self.state(
                                        (database, key),
                                        captured,
                                        notes.number,
                                        at_ms,
                                        find,
                                        may_wait,
                                    )?,
                                    at_ms,
                                )
                            }
                        });
                    }
                }
                Ok(Answer::States(states))
            }
            Question::Versions { selection, values } => {
                let key = &keys[0];
                let (versions, oldest_ms) = {
                    let index = self.index.read();
                    (index.versions(database, key, notes.number), index.oldest.at_ms)
                };
                let from_ms = selection.from_ms.unwrap_or(oldest_ms);
                if from_ms < oldest_ms {
                    return Err(too_old(oldest_ms).into());
                }
                let is_within =
                    |(version, _): &(Version, Found)| (from_ms..=selection.to_ms).contains(&version.at_ms);
                let mut selected: Vec<_> = versions.into_iter().filter(is_within).collect();
                if selection.is_descending {
                    selected.reverse();
                }
                let mut all = Vec::new();
                for (version, found) in selected.into_iter().skip(selection.offset).take(selection.limit) {
                    let mut state = None;
                    if *values {
                        // The record may be moved meanwhile, and the version may become too old.
                        let mut found = Some(found);
                        let find = |index: &Index| match found.take() {
                            Some(found) => found,
                            None if version.number < index.oldest.number => Found::Stored(Stored::Lost),
                            None => index.at_number(database, key, version.number),
                        };
                        let captured = &notes.states[0];
                        let read = self.state(
                            (database, key),
                            captured,
                            notes.number,
                            version.at_ms,
                            find,
                            may_wait,
                        );
                        state = Some(read?);
                    }
                    let Version { number, at_ms, operation, .. } = version;
                    all.push(Past { number, at_ms, operation, state });
                }
                Ok(Answer::Versions(all))
            }
        }
    }

    /// Returns the state of a key that `find` finds in the index.
    fn state(
        &self,
        (database, key): (usize, &[u8]),
        captured: &[(usize, State)],
        number: u64,
        at_ms: i64,
        mut find: impl FnMut(&Index) -> Found,
        may_wait: bool,
    ) -> Result<State, Unanswered> {
        for _ in 0..ATTEMPTS_MAX {
            let (found, names) = {
                let index = self.index.read();
                let Moment { at_ms: oldest_ms, .. } = index.oldest;
                if at_ms < oldest_ms {
                    return Err(too_old(oldest_ms).into());
                }
                if let Some(up_to_ms) = index.forgotten_up_to(database, key, at_ms) {
                    return Err(forgotten(up_to_ms).into());
                }
                (find(&index), index.names_at_number(number).to_vec())
            };
            let location = match found {
                Found::Unchanged(name) => {
                    let current = captured.iter().find(|(database, _)| names[*database] == name);
                    return known(current.map_or(State::Unknown, |(_, state)| state.clone()));
                }
                Found::Stored(Stored::Absent) => return Ok(State::Absent),
                Found::Stored(Stored::Lost) => return known(State::Unknown),
                Found::Stored(Stored::At(location)) => location,
            };
            let mut buffer = Vec::new();
            let read = match self.log.read_ready(location, &mut buffer) {
                Ok(None) if !may_wait => return Err(Unanswered::MustWait),
                Ok(Some(record)) => Ok(stored::decode(key, &record)),
                Ok(None) => {
                    self.counters.disk_reads.fetch_add(1, Ordering::Relaxed);
                    self.log.read(location, &mut buffer).map(|record| stored::decode(key, &record))
                }
                Err(error) => Err(error),
            };
            match read {
                Ok(Some(state)) => return Ok(state),
                // The segment was removed: its record was moved, or it is too old.
                Err(ReadError::Removed) | Ok(None) => {}
                Err(error) => {
                    return Err(
                        CommandError::from(format!("ERR the past state cannot be read: {error}")).into()
                    );
                }
            }
        }
        known(State::Unknown)
    }
}

fn forgotten(up_to_ms: i64) -> CommandError {
    format!("FORGOTTEN the past of the key before {up_to_ms} was erased").into()
}

fn too_old(oldest_ms: i64) -> CommandError {
    format!("TOOOLD history begins at {oldest_ms}").into()
}

/// Returns the state, or the error for an unknown state.
fn known(state: State) -> Result<State, Unanswered> {
    match state {
        State::Unknown => Err(CommandError::from(
            "GAP the state of the key at that moment was not recorded: its value was larger than \
             history-max-value, not in memory, or the disk was full",
        )
        .into()),
        state => Ok(state),
    }
}

/// A read of the history on a job thread.
struct PastRead {
    client: Arc<ClientView>,
    command: &'static Command,
    call: OwnedBatch,
    begun: Instant,
    database: usize,
    keys: Vec<Box<[u8]>>,
    question: Question,
    notes: Notes,
    settings: Settings,
    /// The number of replicas that must have the call's writes.
    replicas: u32,
    then: Option<Then>,
    /// The answer, if the call changes keys.
    answer: Option<Answer>,
    result: Result<(), CommandError>,
    reply: Box<Reply>,
}

impl PastRead {
    fn read(&mut self, server: &'static Server) -> Result<(), CommandError> {
        let history = history_of(server)?;
        history.wait_for(server, self.notes.number);
        let answer = history.answer(self.database, &self.keys, &self.question, &self.notes, true);
        let answer = answer.map_err(|unanswered| match unanswered {
            Unanswered::Failed(error) => error,
            Unanswered::MustWait => unreachable!("the thread may wait"),
        })?;
        match self.then.take() {
            Some(Then::Write(write)) => {
                let (settings, database) = (&self.settings, self.database);
                write(&mut Writing { server, settings, database, reply: &mut self.reply }, answer)
            }
            then => {
                (self.then, self.answer) = (then, Some(answer));
                Ok(())
            }
        }
    }

    /// Changes keys, if the server still accepts writes.
    fn act(&mut self, executor: &mut Executor) -> Result<(), CommandError> {
        let (Some(Then::Act(act)), Some(answer)) = (self.then.take(), self.answer.take()) else {
            return Ok(());
        };
        let server = executor.server;
        if server.conditions.get().contains(Condition::REPLICA) {
            return Err(READ_ONLY_ERROR.into());
        }
        if let Some(refusal) = server.conditions.write_refusal(self.replicas) {
            return Err(refusal.into());
        }
        let checked =
            executor.check_slots(self.client.slot_caller(), self.command, None, self.call.command(0));
        checked.map_err(Refusal::error)?;
        act(executor, self.database, answer, &mut self.reply)
    }
}

impl Job for PastRead {
    fn worker(&self) -> usize {
        self.client.worker
    }

    fn run(&mut self, server: &'static Server) {
        self.result = self.read(server);
    }

    fn settle(mut self: Box<Self>, executor: &mut Executor) -> Option<Settled> {
        if self.result.is_ok() {
            executor.publish();
            self.result = self.act(executor);
        }
        let PastRead { client, command, call, begun, result, reply, .. } = *self;
        let call = Finished {
            client: &client,
            command,
            args: call.command(0),
            wire_bytes_max: call.wire_bytes_max(),
            begun,
            keys: &[],
        };
        Some(executor.finish_job(&call, result, reply))
    }
}
