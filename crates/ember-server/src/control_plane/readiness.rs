//! Determines the result of `/ready`: whether traffic should be sent to this server.

use crate::aof::slow_disk;
use crate::server::Server;
use crate::server::conditions::Condition;

/// The state of a server with regard to new traffic.
pub(super) enum Readiness {
    /// The server executes commands.
    Ready,
    /// The server executes commands, but slowly, for this reason.
    Slow(String),
    /// The server executes no commands, or refuses or delays writes, for this reason.
    Not(String),
}

/// Returns whether traffic should be sent to the server.
pub(super) fn readiness(server: &Server) -> Readiness {
    if server.is_stopping() {
        return Readiness::Not("stopping: connections are drained".to_owned());
    }
    if server.is_loading() {
        return Readiness::Not("loading the data set".to_owned());
    }
    if let Some(refusal) = server.conditions.disk_refusal() {
        return Readiness::Not(format!("writes are refused: {refusal}"));
    }
    let slow = slow_disk::slowness(server);
    let is_lagging = server.conditions.get().contains(Condition::AOF_LAGS);
    match slow {
        Some(slow) if is_lagging || slow.delays_writes() => Readiness::Not(slow.to_string()),
        _ if is_lagging => Readiness::Not("writes wait for the append-only file".to_owned()),
        Some(slow) => Readiness::Slow(slow.to_string()),
        None => Readiness::Ready,
    }
}
