//! Frees large things on a thread of its own, so that no worker waits for it.
//!
//! The thread starts with the first thing to free and lives as long as the process. What it is given waits in a bounded
//! queue; when that is full, or no thread can be started, the caller frees by itself: memory that waits to be freed
//! is bounded by what arrives while the queue is full, and a flood of `UNLINK` slows down instead of piling up.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Values of at least this many bytes are worth the hand-over (some microseconds when the thread sleeps): freeing less
/// takes less.
pub const WORTH_BYTES_MIN: usize = 256 * 1024;

/// Things that may wait to be freed.
const QUEUE_MAX: usize = 1024;

/// What is to be freed, and how many values that is.
type Garbage = (Box<dyn Send>, u64);

static QUEUE: OnceLock<Option<SyncSender<Garbage>>> = OnceLock::new();

/// What the thread does first.
static PREPARE: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();

/// Values that wait to be freed.
static PENDING: AtomicU64 = AtomicU64::new(0);

/// Values that the background thread has freed.
static FREED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether this is the background thread.
    static IS_BACKGROUND: Cell<bool> = const { Cell::new(false) };
}

/// Lets the background thread do this when it starts. Has an effect before the first value is freed there.
pub fn prepare_thread(prepare: impl Fn() + Send + Sync + 'static) {
    // Who comes second has no thread to prepare.
    let _ = PREPARE.set(Box::new(prepare));
}

/// How many values wait to be freed in the background.
pub fn pending() -> u64 {
    PENDING.load(Ordering::Relaxed)
}

/// How many values were freed in the background since the start, or since [`forget_freed`].
pub fn freed() -> u64 {
    FREED.load(Ordering::Relaxed)
}

/// Begins to count what is freed anew.
pub fn forget_freed() {
    FREED.store(0, Ordering::Relaxed);
}

/// Frees `garbage`, which is `values` values, soon, on the background thread if it can take it. Called by that thread, for a
/// part of a value that it frees, it frees the part at once: it is counted with the value.
pub fn later(garbage: impl Send + 'static, values: u64) {
    if IS_BACKGROUND.get() {
        return drop(garbage);
    }
    let Some(queue) = QUEUE.get_or_init(start) else { return drop(garbage) };
    PENDING.fetch_add(values, Ordering::Relaxed);
    // A full queue hands the garbage back in the error, and it is dropped here.
    if queue.try_send((Box::new(garbage), values)).is_err() {
        PENDING.fetch_sub(values, Ordering::Relaxed);
    }
}

fn start() -> Option<SyncSender<Garbage>> {
    let (sender, receiver) = sync_channel(QUEUE_MAX);
    let thread = thread::Builder::new().name("reclaim".into());
    thread.spawn(move || run(&receiver)).is_ok().then_some(sender)
}

fn run(queue: &Receiver<Garbage>) {
    IS_BACKGROUND.set(true);
    if let Some(prepare) = PREPARE.get() {
        prepare();
    }
    while let Ok((garbage, values)) = queue.recv() {
        drop(garbage);
        FREED.fetch_add(values, Ordering::Relaxed);
        PENDING.fetch_sub(values, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    struct TellsWhere(Sender<Option<String>>);

    impl Drop for TellsWhere {
        fn drop(&mut self) {
            let name = thread::current().name().map(String::from);
            self.0.send(name).expect("the test waits for the message");
        }
    }

    #[test]
    fn garbage_is_freed_on_the_background_thread() {
        let (sender, receiver) = channel();
        later(TellsWhere(sender), 1);
        assert_eq!(receiver.recv().unwrap().as_deref(), Some("reclaim"));
    }

    #[test]
    fn more_than_the_queue_holds_is_freed_all_the_same() {
        let (sender, receiver) = channel();
        for _ in 0..QUEUE_MAX * 3 {
            later(TellsWhere(sender.clone()), 1);
        }
        drop(sender);
        assert_eq!(receiver.iter().count(), QUEUE_MAX * 3);
    }
}
