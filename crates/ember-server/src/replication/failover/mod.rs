//! FAILOVER: a replica takes over from this server without losing data.
//!
//! ```text
//! begin      writes are paused                                                             Waiting
//! work       a replica has the whole stream (or the timeout has passed, with FORCE):
//!            this server becomes a replica of that replica                                 HandingOver
//! the link   PSYNC … FAILOVER: the replica becomes a primary and continues with its history
//! end        paused writes are resumed, and receive READONLY                               Off
//! abort      this server stays the primary, or becomes the primary again                   Off
//! ```
//!
//! The replica that takes over runs [`take_over`] before the old primary becomes an ordinary replica of it.

pub(crate) mod stage;

use ember_config::PrimaryAddress;
use emberkv_core::error::CommandError;
use stage::{Failover, FailoverStage, Underway, Wish};

use super::link::Link;
use super::link::role;
use super::primary::Primary;
use super::primary::replica::{ReplicaView, Stage};
use crate::clients::client::ClientView;
use crate::executor::Executor;
use crate::server::Server;

/// Interval between GETACKs to the replicas while a failover waits, in ms.
const GETACK_INTERVAL_MS: i64 = 1000;

/// Begins a failover at the request of client `who`: writes are paused from now on.
///
/// # Errors
/// Returns an error if no replica can take over, or a failover is running.
pub(crate) fn begin(server: &Server, who: &ClientView, wish: Wish, now_ms: i64) -> Result<(), CommandError> {
    let failover = Failover::of(server);
    let mut underway = failover.underway.lock();
    if failover.stage() != FailoverStage::Off {
        return Err("ERR FAILOVER already in progress.".into());
    }
    if Link::report(server).is_some() {
        return Err("ERR FAILOVER is not valid when server is a replica.".into());
    }
    let replicas = Primary::of(server).replicas();
    if replicas.is_empty() {
        return Err("ERR FAILOVER requires connected replicas.".into());
    }
    if wish.is_forced && (wish.timeout_ms.is_none() || wish.target.is_none()) {
        return Err("ERR FAILOVER with force option requires both a timeout and target HOST and IP.".into());
    }
    if let Some(target) = &wish.target {
        let view = replicas.iter().find(|view| is_at(view, target));
        let view = view.ok_or("ERR FAILOVER target HOST and PORT is not a replica.")?;
        if view.stage() != Stage::Online {
            return Err("ERR FAILOVER target replica is not online.".into());
        }
    }
    tracing::info!("failover to a replica, requested by {}: writes wait", who.log_name());
    let until_ms = wish.timeout_ms.map(|timeout_ms| now_ms.saturating_add(timeout_ms));
    *underway = Underway { wish, until_ms, requested_ms: now_ms };
    failover.enter(FailoverStage::Waiting);
    server.pause.wait_for_failover(true);
    Primary::of(server).request_acks(server);
    Ok(())
}

fn is_at(view: &ReplicaView, (address, port): &(String, u16)) -> bool {
    view.address == *address && view.port == *port
}

/// Hands over the role when a replica has the whole stream or, with FORCE, the timeout has passed. The worker is inside
/// the gate and holds no lock.
pub(crate) fn work(executor: &mut Executor) {
    let server = executor.server;
    let failover = Failover::of(server);
    if failover.stage() != FailoverStage::Waiting {
        return;
    }
    let now_ms = executor.turn.now_ms;
    let (wish, is_late) = {
        let mut underway = failover.underway.lock();
        let is_late = underway.until_ms.is_some_and(|until_ms| now_ms >= until_ms);
        if now_ms - underway.requested_ms >= GETACK_INTERVAL_MS {
            underway.requested_ms = now_ms;
            Primary::of(server).request_acks(server);
        }
        (underway.wish.clone(), is_late)
    };
    let forced = wish.target.clone().filter(|_| wish.is_forced && is_late);
    let has_all = forced.is_none();
    let Some(target) = forced.or_else(|| with_all(server, wish.target.as_ref())) else {
        if is_late {
            let why = "no replica has received all writes within the timeout";
            failover.end(server, why);
        }
        return;
    };
    let address = PrimaryAddress::new(target.0.clone(), target.1);
    if !has_all {
        tracing::warn!("the failover to {}:{}: time out exceeded, failing over.", target.0, target.1);
    }
    let is_fit = |server: &Server| {
        let continues = failover.stage() == FailoverStage::Waiting;
        // A command that was running when writes were paused may have written since the check above.
        let is_fit = continues
            && (!has_all
                || (Primary::of(server).has_all_records(server)
                    && with_all(server, Some(&target)).is_some()));
        if is_fit {
            failover.enter(FailoverStage::HandingOver);
        }
        is_fit
    };
    let why = match has_all {
        true => "FAILOVER to a replica that has received all writes",
        false => "FAILOVER with FORCE to a replica that lacks the writes it has not received in time",
    };
    match role::cede_role(executor, address, why, is_fit) {
        Ok(_) => {}
        Err(error) => {
            let why = format!("this server cannot become a replica: {}", error.text().escape_ascii());
            failover.end(server, &why);
        }
    }
}

/// Returns the address of a replica that has the whole stream: `target` if given, otherwise any replica.
fn with_all(server: &Server, target: Option<&(String, u16)>) -> Option<(String, u16)> {
    let primary = Primary::of(server);
    let replicas = primary.replicas();
    let mut online = replicas.iter().filter(|view| view.stage() == Stage::Online);
    let view = online.find(|view| {
        target.is_none_or(|target| is_at(view, target)) && primary.is_all(view.acknowledged())
    })?;
    Some((view.address.clone(), view.port))
}

/// Aborts the failover: this server stays the primary, or becomes the primary again. The worker is inside the gate and
/// holds no lock.
///
/// # Errors
/// Returns an error if the role cannot be changed.
pub(crate) fn abort(executor: &mut Executor, client_id: Option<u64>, why: &str) -> Result<(), CommandError> {
    let failover = Failover::of(executor.server);
    if failover.stage() == FailoverStage::HandingOver {
        let why = format!("the failover is abandoned: {why}");
        role::change(executor, client_id, PrimaryAddress::NONE, &why)?;
    }
    failover.end(executor.server, why);
    Ok(())
}

/// Makes this server the primary at the request of its current primary, whose replication ID is `id`.
///
/// # Errors
/// Returns an error if this server is not a replica, or its data belong to another history.
pub(crate) fn take_over(executor: &mut Executor, client_id: u64, id: &str) -> Result<(), CommandError> {
    let server = executor.server;
    if Link::report(server).is_none() {
        return Err("ERR PSYNC FAILOVER can't be sent to a master.".into());
    }
    let held = Primary::of(server).held();
    if held.is_none_or(|(own, _)| own != id) {
        return Err("ERR PSYNC FAILOVER replid must match my replid.".into());
    }
    let why = "its primary has requested a failover to it";
    role::change(executor, Some(client_id), PrimaryAddress::NONE, why).map(|_| ())
}
