//! Frees large things on a thread of its own, so that no worker waits for it.
//!
//! The thread starts with the first thing to free and lives as long as the process. What it is given waits in a bounded
//! queue; when that is full, or no thread can be started, the caller frees by itself: memory that waits to be freed
//! is bounded by what arrives while the queue is full, and a flood of `UNLINK` slows down instead of piling up.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Values of at least this many bytes are worth the hand-over (some microseconds when the thread sleeps): freeing less
/// takes less.
pub const WORTH_BYTES_MIN: usize = 256 * 1024;

/// Things that may wait to be freed.
const QUEUE_MAX: usize = 1024;

type Garbage = Box<dyn Send>;

static QUEUE: OnceLock<Option<SyncSender<Garbage>>> = OnceLock::new();

/// Frees `garbage` soon, on the background thread if it can take it.
pub fn later(garbage: impl Send + 'static) {
    match QUEUE.get_or_init(start) {
        // A full queue hands the garbage back in the error, and it is dropped here.
        Some(queue) => drop(queue.try_send(Box::new(garbage))),
        None => drop(garbage),
    }
}

fn start() -> Option<SyncSender<Garbage>> {
    let (sender, receiver) = sync_channel(QUEUE_MAX);
    let thread = thread::Builder::new().name("reclaim".into());
    thread.spawn(move || run(&receiver)).is_ok().then_some(sender)
}

fn run(queue: &Receiver<Garbage>) {
    while let Ok(garbage) = queue.recv() {
        drop(garbage);
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
        later(TellsWhere(sender));
        assert_eq!(receiver.recv().unwrap().as_deref(), Some("reclaim"));
    }

    #[test]
    fn more_than_the_queue_holds_is_freed_all_the_same() {
        let (sender, receiver) = channel();
        for _ in 0..QUEUE_MAX * 3 {
            later(TellsWhere(sender.clone()));
        }
        drop(sender);
        assert_eq!(receiver.iter().count(), QUEUE_MAX * 3);
    }
}
