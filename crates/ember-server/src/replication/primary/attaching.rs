//! PSYNC and SYNC: a client becomes a replica.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ember_config::Config;

use super::Primary;
use super::absent::Fault;
use super::copy::{Copy, Form};
use super::feed::ReplicaFeed;
use super::replica::{ReplicaView, Stage};
use super::taking;
use super::vocabulary::{Vocabulary, Words};
use crate::clients::client::{Client, ReplyMode};
use crate::clients::mailbox::Message;
use crate::clients::primary::PrimaryOrder;
use crate::clients::replica::Contents;
use crate::executor::session::{Execution, Outcome, SessionResult};
use crate::replication::failover::stage::{Failover, FailoverStage};
use crate::replication::link::Link;
use crate::replication::shutdown::stage::{Shutdown, ShutdownStage};

/// The data that a replica has: the stream with this replication ID, up to this position.
pub(crate) struct Held<'a> {
    pub(crate) id: &'a str,
    pub(crate) position: u64,
}

/// Makes the client a replica. A replica resumes at its position if possible; otherwise it receives a snapshot of the
/// data. A client that sent SYNC (`is_old`) understands no reply except the snapshot.
///
/// # Errors
/// Returns an error if this server currently has no data to pass on.
pub(crate) fn attach(execution: &mut Execution<'_>, held: Option<Held<'_>>, is_old: bool) -> SessionResult {
    let Execution { executor, client, reply, .. } = execution;
    let server = executor.server;
    let primary = Primary::of(server);
    let replica = client.replica.get_or_insert_default();
    if replica.feed.is_some() {
        return Ok(Outcome::Done);
    }
    if Failover::of(server).stage() != FailoverStage::Off {
        return Err("NOMASTERLINK Can't SYNC while failing over".into());
    }
    if !Link::of(server).has_data() {
        return Err("NOMASTERLINK Can't SYNC while not connected with my master".into());
    }
    if replica.data.is_some() && server.slots.as_ref().is_none_or(|slots| !slots.serves_own_data()) {
        return Err(
            "NOMASTERLINK The nodes have not agreed that this node is a primary with its present data".into(),
        );
    }
    let address = match &*replica.address {
        "" => client.view.peer.remote_ip().map_or_else(|| client.view.peer.remote(), |ip| ip.to_string()),
        address => address.to_owned(),
    };
    let (is_copied_only, contents) = (replica.is_copy_only, replica.contents);
    // A replica that sent SYNC never confirms that it has loaded its snapshot.
    let knows_marks = replica.knows_marks && !is_old;
    let now_ms = executor.turn.now_ms;
    let mut view = ReplicaView::new(Arc::clone(&client.view), replica.port, address, now_ms);
    view.is_copied_only = is_copied_only;
    view.node_data = replica.data;
    view.is_old = is_old;
    view.receives_all = contents == Contents::All;
    if contents != Contents::All {
        view.copied = u64::MAX.into();
    }
    let view = Arc::new(view);
    let (knows_new_names, program) = (replica.knows_new_names, replica.program);
    let said = Words::of(program);
    let (learnt, missed) = primary.learnt_words.lock().of(&view.name(), now_ms);
    let vocabulary = Vocabulary { program, known: said.and(learnt), missed: missed.without(said) };
    if let Some(held) = held.filter(|_| !is_copied_only) {
        let has_all = vocabulary.missed == Words::NONE;
        if let Some(id) = has_all.then(|| resume(primary, &held, &view)).flatten() {
            reply.simple(&if knows_new_names { format!("CONTINUE {id}") } else { "CONTINUE".to_owned() });
            primary.counts.partial.fetch_add(1, Ordering::Relaxed);
            tracing::info!("the replica {} resumes at {}", view.name(), held.position);
            let feed = ReplicaFeed::following(server, view, vocabulary, held.position);
            become_replica(client, Box::new(feed), &executor.config);
            return Ok(Outcome::Done);
        }
        primary.counts.partial_refused.fetch_add(1, Ordering::Relaxed);
        tracing::info!(
            "the replica {} cannot resume at {} of {}: {}",
            view.name(),
            held.position,
            held.id,
            if has_all {
                "this part of the stream is not kept, or belongs to another history"
            } else {
                "it was not sent all commands"
            }
        );
    }
    if let Some((left_ms, fault)) = primary.absent.lock().held_back_ms(&view.name(), now_ms) {
        // Without the delay, the replica would begin one full sync after another and complete none. The replica retries
        // after this reply.
        let left_s = left_ms / 1000 + 1;
        let why = match fault {
            Fault::Slow => "was too slow",
            Fault::Unloaded => "does not load the data of its full syncs",
        };
        return Err(format!(
            "NOMASTERLINK This replica {why}: its next full sync starts in {left_s} seconds"
        )
        .into());
    }
    view.begin_copy();
    primary.counts.full.fetch_add(1, Ordering::Relaxed);
    tracing::info!("the replica {} needs a full sync", view.name());
    primary.join(&view);
    let part = match contents {
        Contents::All => None,
        Contents::Functions => Some(taking::without_keys(server, true, now_ms)),
        Contents::Nothing => Some(taking::without_keys(server, false, now_ms)),
    };
    let copy = match &part {
        Some(part) if is_copied_only => Arc::clone(part),
        // A replica that receives only a part of the data still needs the position at which the stream continues.
        _ => {
            let form = Form::of(program, vocabulary.known.and(vocabulary.missed));
            // A snapshot that has begun is unsuitable in three cases: the replica missed commands, whose effects the
            // snapshot must contain; the replica receives no stream, so the snapshot must be current; or the client
            // sent SYNC, and tools that do so treat the stream as the changes from then on.
            let takes_begun = vocabulary.missed == Words::NONE && !is_copied_only && !is_old;
            Copy::join(server, &executor.config, &view, form, takes_begun)
        }
    };
    let feed = ReplicaFeed::with_copy(server, view, vocabulary, (copy, part), (is_old, knows_marks));
    become_replica(client, Box::new(feed), &executor.config);
    taking::begin_due(executor);
    Ok(Outcome::Done)
}

fn become_replica(client: &mut Client, feed: Box<ReplicaFeed>, config: &Config) {
    client.view.is_replica.store(true, Ordering::Relaxed);
    client.reply_mode = ReplyMode::Off;
    let replica = client.replica.get_or_insert_default();
    replica.gathers = config.repl_disable_tcp_nodelay;
    replica.feed = Some(feed);
}

/// Resumes a replica at its position, if this history includes that position and the bytes after it are kept. Returns
/// the replication ID of the history.
fn resume(primary: &Primary, held: &Held<'_>, view: &Arc<ReplicaView>) -> Option<String> {
    // Until the replica is registered, no part of the stream may be discarded and the replication ID must not change.
    let stream = primary.stream.lock();
    let history = primary.history();
    let is_kept = (stream.first()..=stream.backlog.end()).contains(&held.position);
    if !primary.is_on.load(Ordering::Relaxed) || !is_kept || !history.includes(held.id, held.position) {
        return None;
    }
    view.begin_at(held.position);
    view.enter(Stage::Online, view.acknowledged_ms());
    primary.join(view);
    Some(history.id)
}

impl Primary {
    /// Records the acknowledgement of a client, if it is a replica.
    pub(crate) fn acknowledge(
        &self,
        server: &crate::server::Server,
        client_id: u64,
        position: u64,
        durable: Option<u64>,
        now_ms: i64,
    ) {
        let Some(view) = self.replica(client_id) else { return };
        view.acknowledge(position, durable, self.end(), now_ms);
        self.serve_waits(server);
        self.release_replies(server);
        let waits = Failover::of(server).stage() == FailoverStage::Waiting
            || Shutdown::of(server).stage() == ShutdownStage::Waiting
            || server.pause.is_handing_over();
        if waits && self.is_all(position) {
            server.workers[0].mailbox.send(Message::Primary(PrimaryOrder::CheckReplicas));
        }
    }
}
