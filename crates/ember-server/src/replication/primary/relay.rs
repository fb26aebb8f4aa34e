//! The stream of a server that is a replica itself: what its primary sends, byte by byte.
//!
//! It has the primary's name and positions. So replicas of replicas get what all others get, and whoever has followed the
//! same primary goes on here without a copy, also when this server has taken the primary's place.
//!
//! Whoever applies what comes adds it, and nobody else: the journal's subscriber gives the stream over when the server
//! becomes a replica, before there is a link, and takes it again when it becomes a primary, when nothing more is applied.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};

use ember_cluster::replication::history::History;
use ember_persistence::origin::Origin;

use super::orders::Order;
use super::{Primary, Stream};
use crate::clients::primary::Relay;
use crate::config::Config;
use crate::journal::Reader;
use crate::server::Server;
use crate::system::random_name::random_name;

impl Primary {
    /// The data are those of the history `id` at this position.
    pub(crate) fn begin_relay(&self, id: String, position: u64) {
        let mut stream = self.stream.lock();
        *self.history.lock() = History::new(id);
        *stream = Stream::new(position, 0);
        self.end.store(position, Ordering::Release);
        self.is_on.store(true, Ordering::SeqCst);
    }

    /// The data are those that a file has, which says where they stand in a stream. A primary goes on from there, under a
    /// name of its own. No worker is inside the gate.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub(crate) fn resume(
        &self,
        server: &Server,
        origin: &Origin,
        is_replica: bool,
    ) -> Result<(), getrandom::Error> {
        let name = random_name()?;
        self.begin_relay(origin.id().to_owned(), origin.position);
        if !is_replica {
            self.take_stream(server, name);
            server.journal.call_thread();
        }
        Ok(())
    }

    /// The history goes on under this name, which the primary has said.
    pub(crate) fn relay_as(&self, server: &Server, id: String) {
        if self.history().id != id {
            self.branch_history(server, id);
        }
        self.history.lock().is_own = false;
    }

    /// The data are in no history any more.
    pub(crate) fn end_relay(&self, server: &Server) {
        {
            let mut stream = self.stream.lock();
            self.is_on.store(false, Ordering::SeqCst);
            *stream = Stream::new(self.end(), 0);
            match random_name() {
                Ok(id) => *self.history.lock() = History::new(id),
                Err(error) => tracing::error!("the history keeps its name: {error}"),
            }
        }
        self.disconnect_all(server, "the data here are in no history any more");
    }

    /// The server becomes a replica: nothing that it does from now on is in the stream. What is returned says when all that
    /// it has done before is. The caller has exclusive access, has published what it did, and calls the journal's thread.
    pub(crate) fn give_stream_over(&self, server: &Server) -> Receiver<()> {
        let behind = server.journal.switch(Reader::Replicas, false);
        self.gives_over.store(true, Ordering::SeqCst);
        let (done, given_over) = sync_channel(1);
        self.orders.add(Order::GiveOver { behind, done });
        given_over
    }

    /// The server becomes a primary: what it does from now on is in the stream, under this name. The caller has exclusive
    /// access, and calls the journal's thread.
    pub(crate) fn take_stream(&self, server: &Server, id: String) {
        if self.held().is_some() {
            let behind = server.journal.switch(Reader::Replicas, true);
            self.orders.add(Order::TakeAgain { behind });
            self.alone_since_ms.store(0, Ordering::Relaxed);
        }
        self.branch_history(server, id);
    }
}

/// Passes on what a link's commands are.
pub(crate) struct LinkRelay {
    server: &'static Server,
    config: Arc<Config>,
    generation: u64,
}

impl LinkRelay {
    pub(crate) fn new(server: &'static Server) -> LinkRelay {
        LinkRelay { server, config: server.config.snapshot(), generation: server.config.generation() }
    }
}

impl Relay for LinkRelay {
    fn relay(&mut self, commands: &[u8]) {
        let generation = self.server.config.generation();
        if generation != self.generation {
            (self.generation, self.config) = (generation, self.server.config.snapshot());
        }
        let primary = Primary::of(self.server);
        primary.add(&mut primary.stream.lock(), commands, &self.config);
        primary.tell_workers(self.server);
    }

    fn end(&mut self) {
        Primary::of(self.server).end_relay(self.server);
    }
}
