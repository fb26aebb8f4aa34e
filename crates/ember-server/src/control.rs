//! Being alone at the keyspace from a thread that is no worker.

use emberkv_core::turn::Turn;
use parking_lot::Mutex;

use crate::server::{Server, unix_ms};

/// The right of one thread at a time to stand at the gate in a place of its own, behind those of the workers.
#[derive(Default)]
pub(crate) struct ControlPlace(Mutex<()>);

/// Runs `act` with nobody else at the keyspace. The calling thread is no worker and holds no lock.
pub(crate) fn alone<R>(server: &Server, act: impl FnOnce(&mut Turn) -> R) -> R {
    let _one = server.control.0.lock();
    let place = server.workers.len();
    let alone = server.gate.close(place);
    let mut turn = Turn::new(unix_ms(), 1);
    turn.policy = server.config.snapshot().maxmemory_policy;
    let result = act(&mut turn);
    drop(alone);
    server.gate.leave(place);
    result
}
