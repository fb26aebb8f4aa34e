//! The journal's thread: it works on the [`Stream`] when it is woken, and when a subscriber has work.

use std::io;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;

use super::JournalHub;
use super::stream::{Stream, Subscriber};

impl JournalHub {
    /// Starts the thread of a journal that is not read yet; `wake` wakes a worker. Subscribers that take the commands
    /// of a batch for themselves come last.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start(
        &'static self,
        subscribers: Vec<Box<dyn Subscriber>>,
        wake: impl Fn(usize) + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let (workers, last) = (self.outboxes.len(), self.last_number());
        let new = || Mutex::new(Stream::new(workers, last, subscribers, Box::new(wake)));
        let stream = self.stream.get_or_init(new);
        let handle = Builder::new().name("journal".to_owned()).spawn(move || self.run(stream))?;
        // Before this, no thread can wake it, but its first sleep ends soon enough.
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
