//! Begins and ends watches of live queries.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ember_protocol::number::parse_u64;
use ember_protocol::{Args, OwnedBatch, Protocol};
use emberkv_core::call::Run;
use emberkv_core::error::CommandError;
use emberkv_core::keys::{Guards, Keys};
use emberkv_core::live_query::{LiveQuery, Receiver};
use emberkv_core::spec::Flags;
use emberkv_core::turn::Turn;

use super::evaluation::{Evaluated, FirstResult, Question, evaluate_first};
use super::fingerprint::fingerprint;
use super::version::{self, Version};
use super::writing::{self, Notification};
use super::{LiveQueries, channel, fair_queue};
use crate::catalogue::registry::{Command, Handler};
use crate::clients::client::{Client, ClientView};
use crate::clients::subscriptions::{Kind, write_change};
use crate::clients::watchers::{AwaitedFirst, First, Form, Pace, Watcher};
use crate::executor::Executor;
use crate::executor::authorization;
use crate::executor::session::{Execution, Outcome, Session, SessionResult};
use crate::replication::primary::Primary;
use crate::replication::primary::position::Standing;
use crate::server::Server;
use crate::server::slots::{Refusal, SlotCall, slots_of};

/// The maximum time for which a call waits for this server to receive the state that the client has seen on another
/// server.
const LAG_WAIT_MAX: Duration = Duration::from_secs(5);

/// A request to watch a query.
pub(crate) struct Wish<'w> {
    /// The call to watch; its first word is the name of the command.
    pub(crate) call: Args<'w>,
    /// The number of the database.
    pub(crate) database: usize,
    pub(crate) form: Form,
    pub(crate) pace: Pace,
    /// The version of the state that the client already has, if it has named one.
    pub(crate) since: Option<&'w [u8]>,
}

/// Returns the command of a call that a client wants to watch.
///
/// # Errors
/// Returns why the call cannot be watched.
fn command_of(server: &'static Server, call: Args<'_>) -> Result<&'static Command, CommandError> {
    let command = server.registry.resolve(call)?;
    let name = &command.full_name;
    let by_chance =
        || CommandError::from(format!("ERR '{name}' cannot be watched: its reply depends on time or chance"));
    let Handler::Data(data) = command.handler else {
        return Err(format!("ERR '{name}' cannot be watched: it does not read keys").into());
    };
    if !command.is_watchable() {
        let is_random = command.spec.tips.contains(&"nondeterministic_output");
        return Err(if is_random && command.spec.flags.contains(Flags::READONLY) {
            by_chance()
        } else {
            format!("ERR '{name}' cannot be watched: it is not a command that only reads keys").into()
        });
    }
    if matches!(data.run, Run::KeysOrAllShards { all_shards_if, .. } if all_shards_if(call)) {
        return Err(
            format!("ERR '{name}' cannot be watched: it reads keys that its arguments do not name").into()
        );
    }
    if command.spec.key_positions(call).next().is_none() {
        return Err(format!("ERR '{name}' cannot be watched without a key").into());
    }
    Ok(command)
}

/// Returns the call with the canonical name of its command, regardless of letter case and `rename-command`.
fn named(command: &Command, call: Args<'_>) -> OwnedBatch {
    let name = command.spec.name.to_ascii_uppercase();
    let mut words = vec![name.as_bytes()];
    words.extend(call.iter().skip(1));
    let mut named = OwnedBatch::new();
    named.push(&words);
    named
}

/// Checks that a client may watch a call of a command: it needs the permission for the command, and for the watching
/// form of the command.
pub(crate) fn authorize(
    server: &'static Server,
    client: &Client,
    command: &'static Command,
    call: Args<'_>,
) -> Result<(), CommandError> {
    authorization::authorize(server, client, command, call)?;
    let watching = command.watched_by.map(|index| server.registry.get(index));
    watching.map_or(Ok(()), |watching| authorization::authorize(server, client, watching, call))
}

/// The error that a client receives when it may no longer watch a query.
pub(crate) struct Refused(pub(crate) Vec<u8>);

/// Checks that this server serves the slot of a query's keys, if it is a node of a cluster.
///
/// # Errors
/// Returns [`Refused`] if it does not.
pub(crate) fn check_slots(server: &Server, view: &ClientView, query: &LiveQuery) -> Result<(), Refused> {
    let Some(slots) = &server.slots else { return Ok(()) };
    let command = server.registry.get(query.command);
    let call = SlotCall::of(view.slot_caller(), command, slots.has_lease());
    let checked = slots.check(&server.config.snapshot(), call, slots_of(command, query.call()));
    checked.map(drop).map_err(|refusal| Refused(refusal.error().text().into_owned()))
}

/// Checks whether a client may still watch the query with this number, if ACL rules have changed since the last check,
/// and whether this server still serves it.
///
/// # Errors
/// Returns [`Refused`] if the client may not, or the server does not.
pub(crate) fn check_rights(server: &'static Server, client: &mut Client, number: u32) -> Result<(), Refused> {
    if server.slots.is_some()
        && let Some(watcher) = client.subscriptions.as_mut().and_then(|all| all.queries.get_mut(number))
    {
        check_slots(server, &client.view, &watcher.query)?;
    }
    let generation = client.identity.generation;
    let watcher = client.subscriptions.as_mut().and_then(|all| all.queries.get_mut(number));
    let Some(watcher) = watcher.filter(|watcher| watcher.generation != generation) else { return Ok(()) };
    watcher.generation = generation;
    let (query, channel) = (Arc::clone(&watcher.query), watcher.channel().cloned());
    let command = server.registry.get(query.command);
    let may_listen = channel.map_or(Ok(()), |name| {
        authorization::authorize_channel(client, &name)?;
        authorization::authorize_database(server, client, query.database())
    });
    may_listen
        .and_then(|()| authorize(server, client, command, query.call()))
        .map_err(|error| Refused(error.text().into_owned()))
}

/// Begins a watch, and replies with the present state. If the query is long-running, its owner evaluates it like a
/// query that has changed, and the call waits for that first state; a watch through a channel does not wait. The caller
/// holds no lock, and the worker is inside the gate.
///
/// # Errors
/// Returns an error if the call is invalid, a permission is missing, or a limit is reached. The watch does not exist
/// then.
pub(crate) fn open(execution: &mut Execution<'_>, wish: &Wish<'_>) -> SessionResult {
    let Execution { executor, client, command: caller, reply, .. } = execution;
    let server = executor.server;
    let Wish { call, database, form, pace, since } = wish;
    let database = *database;
    // The field is set again if the call has to wait longer.
    let lagging_since = client.subscriptions.as_mut().and_then(|all| all.queries.lagging_since.take());
    client.subscriptions.take_if(|subscriptions| subscriptions.is_empty());
    let since =
        since.map(|text| Version::parse(text).ok_or("ERR SINCE is not a version of a state")).transpose()?;
    let command = command_of(server, *call)?;
    authorize(server, client, command, *call)?;
    let checked = executor.check_slots(client.view.slot_caller(), command, None, *call);
    checked.map_err(Refusal::error)?;
    let live = LiveQueries::of(server);
    let has = client.subscriptions.as_ref().map_or(0, |subscriptions| subscriptions.queries.len());
    let most = executor.config.watch_max_per_client;
    if has as u64 >= most {
        return Err(
            format!("ERR this client watches {has} queries: watch-max-per-client allows {most}").into()
        );
    }
    let named = named(command, *call);
    let call = &named.command(0);
    let keyspace = &server.keyspace;
    let positions: Vec<usize> = command.spec.key_positions(*call).collect();
    let first = positions[0];
    let owner = server.owner_of(keyspace.hash(call.at(first)).shard());
    let worker = executor.index;
    // The messages of channels are converted from RESP3, which can express all types.
    let protocol = if matches!(form, Form::Channel(_)) { Protocol::Resp3 } else { reply.protocol() };
    let new = LiveQuery::new(*call, command.index, database, protocol, owner);
    let new = Arc::new(new.ok_or("ERR the command is too long to be watched")?);
    let bytes = new.memory_bytes() + Watcher::bytes_of(form, *pace);
    let bytes_max = executor.config.watch_max_memory;
    if live.memory_bytes() + bytes as u64 > bytes_max {
        return Err(format!("ERR live queries use the {bytes_max} bytes that watch-max-memory allows").into());
    }
    if let Some(position) = since.and_then(|since| since.position)
        && Primary::of(server).is_before(server, position)
    {
        // This server is a replica that has not received the state yet, but will if its primary is reachable.
        let lagging_since = lagging_since.unwrap_or_else(Instant::now);
        if lagging_since.elapsed() < LAG_WAIT_MAX {
            client.subscriptions.get_or_insert_default().queries.lagging_since = Some(lagging_since);
            return Ok(Outcome::Again);
        }
        return Err("BEHIND this server has not reached that version yet".into());
    }
    let mut guards = Guards::None;
    let question = Question { command, args: *call, database, protocol };
    let first_result = evaluate_first(executor, &mut guards, question);
    let (sequence, hash, position) = match &first_result {
        FirstResult::Found(found) => match standing_of_own(executor, found.record) {
            // The client receives the state once its position is known.
            Standing::NotYet => (found.sequence, None, None),
            Standing::At(position) => (found.sequence, Some(found.hash), Some(position)),
            Standing::Nowhere => (found.sequence, Some(found.hash), None),
        },
        FirstResult::Long(sequence) => (*sequence, None, None),
    };
    if let Some(since) = since
        && since.run == version::run(server).as_bytes()
        && since.sequence > sequence
    {
        guards.unpin(keyspace, &mut executor.turn);
        return Err(format!(
            "BEHIND the data of this server are at sequence {sequence}, older than the version of SINCE"
        )
        .into());
    }
    let mut keys =
        Keys::new(keyspace, &mut guards, *call, database, (0, keyspace.hash(&[])), &mut executor.turn);
    let known = keys.find_query(first, protocol);
    let is_new = known.is_none();
    let query = known.unwrap_or(new);
    fair_queue::enter(&query, &client.identity.user.name, is_new);
    if is_new {
        let places: isize = positions.iter().map(|&arg| keys.enter_query(arg, &query)).sum();
        live.count(1, 0, query.memory_bytes() as i64 + places as i64);
    }
    let wanted = fingerprint(query.call());
    let numbers = &client.subscriptions.get_or_insert_default().queries;
    let number = numbers.number_of(wanted, &query, form).unwrap_or_else(|| numbers.free_number(wanted));
    let since_text = wish.since.and_then(|text| std::str::from_utf8(text).ok()).zip(since);
    let first = match hash {
        Some(hash) => First::Sent(sequence, hash, position),
        None => {
            let since = since_text.map(|(text, since)| (text.into(), since.hash));
            First::Awaited(sequence, AwaitedFirst { begun: executor.clock, since })
        }
    };
    let receiver = receiver_of(client, number);
    let numbers = &mut client.subscriptions.get_or_insert_default().queries;
    let watcher = Watcher::new(&query, form, *pace, first, client.identity.generation);
    let added = watcher.memory_bytes() as i64;
    let before = numbers.enter(number, wanted, watcher);
    let audience_added = query.with_audience(|audience| {
        let before_bytes = audience.memory_bytes();
        if before.is_some() {
            audience.remove(receiver);
        }
        audience.add(worker, receiver, pace.sends_equal);
        let is_known = is_new || audience.known() == hash;
        audience.set_known(hash.filter(|_| is_known));
        audience.memory_bytes() as i64 - before_bytes as i64
    });
    if hash.is_none() {
        query.mark();
        // The query is evaluated immediately, without the delay after its last evaluation, because a client waits.
        query.not_before.store(0, Ordering::Relaxed);
    }
    let replaced = before.as_ref().map(|before| before.memory_bytes() as i64);
    live.count(0, i64::from(replaced.is_none()), added - replaced.unwrap_or(0) + audience_added);
    guards.unpin(keyspace, &mut executor.turn);
    if let Form::Channel(name) = form {
        let subscriptions = client.subscriptions.get_or_insert_default();
        subscriptions.enter_channel(name);
        write_change(reply, Kind::Channel.words().0, Some(name), subscriptions.count(Kind::Channel));
    }
    client
        .view
        .queries
        .store(client.subscriptions.as_ref().map_or(0, |all| all.queries.len() as u32), Ordering::Relaxed);
    let (FirstResult::Found(Evaluated { record, body, .. }), Some(hash)) = (first_result, hash) else {
        executor.send_to_owner(query);
        return Ok(match form {
            Form::Channel(_) => Outcome::Done,
            Form::Watch | Form::Open => Outcome::Wait(executor.park(caller, client, reply)),
        });
    };
    // Like later states, the reply is held until this record is released.
    executor.last_record = executor.last_record.max(record.unwrap_or(0));
    let body = Arc::new(body);
    let given = since_text.filter(|(_, since)| since.hash == hash).map(|(text, _)| text);
    let current = version::text(server, sequence, hash, position);
    let result = if given.is_some() { writing::Result::Unchanged } else { writing::Result::Body(&body) };
    Notification { number, query: &query, version: given.unwrap_or(&current), result }.reply(form, reply);
    Ok(Outcome::Done)
}

/// Returns the position of a state that this worker has just read; the locks of all its keys are held.
fn standing_of_own(executor: &mut Executor, record: Option<u64>) -> Standing {
    let server = executor.server;
    match Primary::of(server).standing(server, record) {
        Standing::NotYet => {
            executor.publish();
            server.journal.pass_on_published();
            Primary::of(server).standing(server, record)
        }
        standing => standing,
    }
}

/// Returns the receiver that represents a client's watch with this number in the query's audience.
fn receiver_of(client: &Client, number: u32) -> Receiver {
    let token = u32::try_from(client.view.token).expect("a worker has fewer connections than that");
    Receiver { client_id: client.view.id, token, number }
}

/// Ends a connection's watch of a query. The caller holds no lock; the worker need not be inside the gate.
pub(crate) fn leave(server: &'static Server, turn: &mut Turn, receiver: Receiver, watcher: &Watcher) {
    let live = LiveQueries::of(server);
    live.count(0, -1, -(watcher.memory_bytes() as i64));
    let query = &watcher.query;
    let keyspace = &server.keyspace;
    let call = query.call();
    let positions: Vec<usize> = server.registry.get(query.command).spec.key_positions(call).collect();
    let mut guards = Guards::None;
    let mut shards = positions.iter().map(|&arg| keyspace.hash(call.at(arg)).shard()).collect();
    guards.pin(keyspace, turn, &mut shards);
    let (is_over, audience_added) = query.with_audience(|audience| {
        let before = audience.memory_bytes();
        audience.remove(receiver);
        (audience.is_empty(), audience.memory_bytes() as i64 - before as i64)
    });
    live.count(0, 0, audience_added);
    if is_over {
        let mut keys =
            Keys::new(keyspace, &mut guards, call, query.database(), (0, keyspace.hash(&[])), turn);
        let places: isize = positions.iter().map(|&arg| keys.leave_query(arg, query)).sum();
        live.count(-1, 0, places as i64 - query.memory_bytes() as i64);
    }
    guards.unpin(keyspace, turn);
}

/// Handles UNWATCH and its variants: ends the watches whose numbers are the arguments. Watches through channels remain.
pub(crate) fn unwatch(session: &mut Session<'_>) -> SessionResult {
    let number = |word: &[u8]| parse_u64(word).and_then(|number| u32::try_from(number).ok());
    let numbers: Option<Vec<u32>> = session.args.iter().skip(1).map(number).collect();
    let numbers = numbers.ok_or(CommandError::from("ERR invalid fingerprint"))?;
    let Session { server, client, turn, .. } = session;
    for number in numbers {
        let watcher = client.subscriptions.as_mut().and_then(|all| all.queries.get_mut(number));
        if watcher.is_some_and(|watcher| !watcher.is_channel()) {
            end(server, turn, client, number);
        }
    }
    session.reply.ok();
    Ok(Outcome::Done)
}

/// Ends a client's watch through a channel, if there is one.
pub(crate) fn leave_channel(server: &'static Server, turn: &mut Turn, client: &mut Client, name: &[u8]) {
    let Some(subscriptions) = client.subscriptions.as_ref() else { return };
    let Some((_, words)) = channel::parse(name) else { return };
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let mut call = OwnedBatch::new();
    call.push(&words);
    let Ok(command) = command_of(server, call.command(0)) else { return };
    let wanted = fingerprint(named(command, call.command(0)).command(0));
    let number = subscriptions.queries.of_channel(wanted, name);
    if let Some(number) = number {
        end(server, turn, client, number);
    }
}

/// Ends a client's watch with this number, if there is one.
pub(crate) fn end(server: &'static Server, turn: &mut Turn, client: &mut Client, number: u32) {
    let Some(subscriptions) = &mut client.subscriptions else { return };
    let Some(watcher) = subscriptions.queries.leave(number) else { return };
    let left = subscriptions.queries.len();
    client.subscriptions.take_if(|subscriptions| subscriptions.is_empty());
    client.view.queries.store(left as u32, Ordering::Relaxed);
    let receiver = receiver_of(client, number);
    leave(server, turn, receiver, &watcher);
}

/// Ends all watches of a client.
pub(crate) fn end_all(server: &'static Server, turn: &mut Turn, client: &mut Client) {
    let numbers: Vec<u32> =
        client.subscriptions.iter().flat_map(|all| all.queries.iter().map(|(number, _)| number)).collect();
    numbers.into_iter().for_each(|number| end(server, turn, client, number));
}
