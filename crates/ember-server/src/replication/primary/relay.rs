//! The stream of a server that is itself a replica: the bytes that its primary sends.
//!
//! The stream has the primary's replication ID and positions. So replicas of replicas receive the same bytes as all
//! other replicas, and a replica that has followed the same primary can resume here with a partial sync, even when this
//! server has become the primary.
//!
//! Only the link's worker, which applies the commands, appends to the stream of a replica. The journal's subscriber
//! releases the stream when the server becomes a replica, before there is a link, and takes it back when the server
//! becomes a primary and no more commands of the link are applied.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};

use ember_config::Config;
use ember_persistence::origin::Origin;
use ember_replication::history::History;

use super::orders::Order;
use super::{Primary, Stream};
use crate::clients::primary::Relay;
use crate::journal::Reader;
use crate::server::Server;
use crate::system::random_name::random_name;

impl Primary {
    /// Begins the stream at the replication ID and the position of data that were loaded from a primary.
    pub(crate) fn begin_relay(&self, id: String, position: u64) {
        let mut stream = self.stream.lock();
        *self.history.lock() = History::new(id);
        *stream = Stream::new(position, 0);
        self.end.store(position, Ordering::Release);
        self.is_on.store(true, Ordering::SeqCst);
    }

    /// Begins the stream at the position that the loaded file contains for its data. A primary continues from there
    /// under a new replication ID. No worker is inside the gate.
    ///
    /// # Errors
    /// Returns an error if the system returns no random numbers.
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

    /// Continues the stream under the replication ID that the primary has sent.
    pub(crate) fn relay_as(&self, server: &Server, id: String) {
        if self.history().id != id {
            self.branch_history(server, id);
        }
        self.history.lock().is_own = false;
    }

    /// Ends the stream, because the data no longer belong to any history.
    pub(crate) fn end_relay(&self, server: &Server) {
        {
            let mut stream = self.stream.lock();
            self.is_on.store(false, Ordering::SeqCst);
            *stream = Stream::new(self.end(), 0);
            match random_name() {
                Ok(id) => *self.history.lock() = History::new(id),
                Err(error) => tracing::error!("the replication ID cannot be changed: {error}"),
            }
        }
        self.disconnect_all(server, "the data of this server no longer belong to a history");
    }

    /// Releases the stream because the server becomes a replica: later records of its journal are not appended. The
    /// returned receiver is notified when all earlier records are in the stream. The caller has exclusive access, has
    /// published its records, and must call the journal's thread.
    pub(crate) fn give_stream_over(&self, server: &Server) -> Receiver<()> {
        let after = server.journal.switch(Reader::Replicas, false);
        self.gives_over.store(true, Ordering::SeqCst);
        let (done, given_over) = sync_channel(1);
        self.orders.add(Order::GiveOver { after, done });
        given_over
    }

    /// Takes the stream because the server becomes a primary: from now on, its journal records are appended, under the
    /// replication ID `id`. The caller has exclusive access, and must call the journal's thread.
    pub(crate) fn take_stream(&self, server: &Server, id: String) {
        if self.held().is_some() {
            let after = server.journal.switch(Reader::Replicas, true);
            self.orders.add(Order::TakeAgain { after });
            self.without_replicas_since_ms.store(0, Ordering::Relaxed);
        }
        self.branch_history(server, id);
    }
}

/// Appends the commands that a link's worker applies to the stream.
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
        primary.notify_workers(self.server);
    }

    fn end(&mut self) {
        Primary::of(self.server).end_relay(self.server);
    }
}
