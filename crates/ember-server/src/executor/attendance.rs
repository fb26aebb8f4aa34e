//! Attending to the other connections of a worker while one of them runs a script for long.

use scoped_tls_hkt::scoped_thread_local;

use super::Executor;

/// What a script's runner asks now and then.
pub(crate) trait Attend {
    /// Serves the connections for a moment; `executor` is the one that runs the script.
    fn attend(&mut self, executor: &mut Executor);

    /// Sends the replies of connections that were served before in the same turn.
    fn send_replies(&mut self, executor: &Executor);
}

scoped_thread_local!(static mut ATTENDANT: for<'a> &'a mut (dyn Attend + 'a));

/// Runs `act`, during which [`attend`] serves the others.
pub(crate) fn beside<R>(others: &mut dyn Attend, act: impl FnOnce() -> R) -> R {
    ATTENDANT.set(others, act)
}

/// Serves the connections of this thread's worker for a moment, if it has any.
pub(crate) fn attend(executor: &mut Executor) {
    if ATTENDANT.is_set() {
        // For them it is now, even if what goes on is a replay.
        let (now_ms, noted_ms) = (executor.turn.now_ms, executor.turn.noted_ms.take());
        executor.turn.now_ms = noted_ms.unwrap_or(now_ms);
        let applies = executor.pause_applying(false);
        ATTENDANT.with(|others| others.attend(executor));
        executor.pause_applying(applies);
        (executor.turn.now_ms, executor.turn.noted_ms) = (now_ms, noted_ms);
    }
}

/// Sends the replies that wait on this thread's worker to be sent together.
pub(crate) fn send_replies(executor: &Executor) {
    if ATTENDANT.is_set() {
        ATTENDANT.with(|others| others.send_replies(executor));
    }
}
