//! Frees large values on a background thread, so that freeing does not delay workers.
//!
//! The thread starts with the first value to free and lives as long as the process. Values wait in a bounded queue.
//! When the queue is full, or no thread can be started, the caller frees the value itself: this bounds the memory that
//! waits to be freed, and slows down clients that send more `UNLINK` calls than the thread can process.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// The minimum size in bytes of values that are freed in the background: freeing a smaller value takes less time than
/// queuing it, which takes some microseconds if the thread sleeps.
pub const WORTH_BYTES_MIN: usize = 256 * 1024;

/// The maximum number of entries in the queue.
const QUEUE_MAX: usize = 1024;

/// A queue entry: data to free, and the number of values that they contain.
type Garbage = (Box<dyn Send>, u64);

static QUEUE: OnceLock<Option<SyncSender<Garbage>>> = OnceLock::new();

/// The action that the background thread runs when it starts.
static PREPARE: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();

/// The number of values that wait to be freed.
static PENDING: AtomicU64 = AtomicU64::new(0);

/// The number of values that the background thread has freed.
static FREED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether the current thread is the background thread.
    static IS_BACKGROUND: Cell<bool> = const { Cell::new(false) };
}

/// Sets the action that the background thread runs when it starts. The action is ignored if the thread has started
/// already.
pub fn prepare_thread(prepare: impl Fn() + Send + Sync + 'static) {
    // The error is ignored: an action is set already, and the first one applies.
    let _ = PREPARE.set(Box::new(prepare));
}

/// Returns the number of values that wait to be freed in the background.
pub fn pending() -> u64 {
    PENDING.load(Ordering::Relaxed)
}

/// Returns the number of values freed in the background since startup, or since [`forget_freed`].
pub fn freed() -> u64 {
    FREED.load(Ordering::Relaxed)
}

/// Resets the count of freed values.
pub fn forget_freed() {
    FREED.store(0, Ordering::Relaxed);
}

/// Frees `garbage`, which contains `values` values, on the background thread if its queue has space, otherwise at once.
/// On the background thread itself, parts of a value are freed at once, and counted with the value.
pub fn later(garbage: impl Send + 'static, values: u64) {
    if IS_BACKGROUND.get() {
        return drop(garbage);
    }
    let Some(queue) = QUEUE.get_or_init(start) else { return drop(garbage) };
    PENDING.fetch_add(values, Ordering::Relaxed);
    // If the queue is full, the error contains the garbage, which is dropped here.
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

    struct ReportsThread(Sender<Option<String>>);

    impl Drop for ReportsThread {
        fn drop(&mut self) {
            let name = thread::current().name().map(String::from);
            self.0.send(name).expect("the test waits for the message");
        }
    }

    #[test]
    fn garbage_is_freed_on_the_background_thread() {
        let (sender, receiver) = channel();
        later(ReportsThread(sender), 1);
        assert_eq!(receiver.recv().unwrap().as_deref(), Some("reclaim"));
    }

    #[test]
    fn objects_beyond_the_queue_limit_are_freed_too() {
        let (sender, receiver) = channel();
        for _ in 0..QUEUE_MAX * 3 {
            later(ReportsThread(sender.clone()), 1);
        }
        drop(sender);
        assert_eq!(receiver.iter().count(), QUEUE_MAX * 3);
    }
}
