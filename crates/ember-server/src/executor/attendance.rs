//! Serves the other connections of a worker while one of them runs a long script.

use scoped_tls_hkt::scoped_thread_local;

use super::Executor;

/// The callbacks of a long script to its worker.
pub(crate) trait Attend {
    /// Serves the other connections once; `executor` runs the script.
    fn attend(&mut self, executor: &mut Executor);

    /// Sends the delayed replies of connections that were served earlier in the same turn.
    fn send_replies(&mut self, executor: &Executor);
}

scoped_thread_local!(static mut ATTENDANT: for<'a> &'a mut (dyn Attend + 'a));

/// Runs `act`; during the call, [`attend`] serves the connections of `others`.
pub(crate) fn with_others<R>(others: &mut dyn Attend, act: impl FnOnce() -> R) -> R {
    ATTENDANT.set(others, act)
}

/// Serves the other connections of this thread's worker once, if it has any.
pub(crate) fn attend(executor: &mut Executor) {
    if ATTENDANT.is_set() {
        // The other connections use the current time, even if the script is part of a replay.
        let (now_ms, recorded_ms) = (executor.turn.now_ms, executor.turn.recorded_ms.take());
        executor.turn.now_ms = recorded_ms.unwrap_or(now_ms);
        let applies = executor.pause_applying(false);
        ATTENDANT.with(|others| others.attend(executor));
        executor.pause_applying(applies);
        (executor.turn.now_ms, executor.turn.recorded_ms) = (now_ms, recorded_ms);
    }
}

/// Sends the replies that this thread's worker has delayed in order to send several together.
pub(crate) fn send_replies(executor: &Executor) {
    if ATTENDANT.is_set() {
        ATTENDANT.with(|others| others.send_replies(executor));
    }
}
