//! Frees large values on a separate thread, so that no worker is delayed by it.
//!
//! The thread starts with the first value to free and lives as long as the process. Values wait in a bounded queue.
//! When the queue is full, or no thread can be started, the caller frees the value itself: this bounds the memory that
//! waits to be freed, and slows a flood of `UNLINK` instead of queuing it.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Values of at least this many bytes are worth queuing (some microseconds when the thread sleeps): freeing a smaller
/// value takes less time.
pub const WORTH_BYTES_MIN: usize = 256 * 1024;

/// Queue entries that may wait to be freed.
const QUEUE_MAX: usize = 1024;

/// A queue entry, and how many values it is.
type Garbage = (Box<dyn Send>, u64);

static QUEUE: OnceLock<Option<SyncSender<Garbage>>> = OnceLock::new();

/// The first action of the thread.
static PREPARE: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();

/// Values that wait to be freed.
static PENDING: AtomicU64 = AtomicU64::new(0);

/// Values that the background thread has freed.
static FREED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether the current thread is the background thread.
    static IS_BACKGROUND: Cell<bool> = const { Cell::new(false) };
}

/// Sets an action for the start of the background thread. Has an effect only before the first value is freed there.
pub fn prepare_thread(prepare: impl Fn() + Send + Sync + 'static) {
    // After the first call, later ones have no thread to prepare.
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

/// Frees `garbage`, which is `values` values, on the background thread if its queue has space. The background thread
/// itself frees parts of a value at once; they are counted with the value.
pub fn later(garbage: impl Send + 'static, values: u64) {
    if IS_BACKGROUND.get() {
        return drop(garbage);
    }
    let Some(queue) = QUEUE.get_or_init(start) else { return drop(garbage) };
    PENDING.fetch_add(values, Ordering::Relaxed);
    // A full queue returns the garbage in the error, which is dropped here.
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
