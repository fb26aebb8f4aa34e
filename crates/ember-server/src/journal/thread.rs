//! The journal's thread: it runs the [`Stream`] when it is woken, and when a subscriber has work.

use std::io;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;

use super::JournalHub;
use super::stream::{Stream, Subscriber};

impl JournalHub {
    /// Starts the thread of a journal before it has a reader; `wake` wakes the worker with a number. A subscriber that
    /// may take the batches it receives must come last.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub(crate) fn start(
        &'static self,
        subscribers: Vec<Box<dyn Subscriber>>,
        wake: impl Fn(usize) + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let (workers, last) = (self.outboxes.len(), self.last_number());
        let new = || Mutex::new(Stream::new(workers, last, subscribers, Box::new(wake)));
        let stream = self.stream.get_or_init(new);
        let handle = Builder::new().name("journal".to_owned()).spawn(move || self.run(stream))?;
        // Until this is set, no thread can wake the journal's thread, but its first sleep is short.
        let _ = self.thread.set(handle.thread().clone());
        Ok(handle)
    }

    fn run(&self, stream: &Mutex<Stream>) {
        loop {
            self.is_called.store(false, Ordering::SeqCst);
            let pause = {
                let mut stream = stream.lock();
                stream.work(self);
                if stream.is_over() {
                    return;
                }
                stream.pause()
            };
            self.rest(pause);
        }
    }
}
