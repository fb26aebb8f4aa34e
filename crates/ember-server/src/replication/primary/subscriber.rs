//! The subscriber of the journal that appends records to the backlog, which all replicas read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ember_config::Config;
use ember_protocol::{push_command_head, push_word};

use super::orders::Order;
use super::replica::Stage;
use super::{Primary, Stream};
use crate::journal::Reader;
use crate::journal::stream::{Pause, ReaderDatabase, Records, Subscriber};
use crate::replication::failover::stage::{Failover, FailoverStage};
use crate::replication::shutdown::stage::{Shutdown, ShutdownStage};
use crate::server::Server;

/// The maximum sleep of the journal's thread: a changed interval of keepalives must take effect.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// The journal's subscriber that appends to the stream.
pub(crate) struct StreamSubscriber {
    server: &'static Server,
    primary: &'static Primary,
    config: Arc<Config>,
    generation: u64,
    orders: VecDeque<Order>,
    /// Whether records are appended to the stream.
    reads: bool,
    /// The database that the replicas have selected; `None` if they do not know it.
    database: Option<usize>,
    /// When the last keepalive was sent, or when the stream began.
    pinged: Instant,
    /// Whether there are records that no GETACK follows yet.
    has_records: bool,
    /// Whether there are bytes of which the workers have not been notified.
    has_unannounced: bool,
}

impl StreamSubscriber {
    /// Returns the subscriber of a server whose journal has no reader yet.
    pub(crate) fn new(server: &'static Server) -> StreamSubscriber {
        StreamSubscriber {
            server,
            primary: Primary::of(server),
            config: server.config.snapshot(),
            generation: server.config.generation(),
            orders: VecDeque::new(),
            reads: false,
            database: None,
            pinged: Instant::now(),
            has_records: false,
            has_unannounced: false,
        }
    }

    fn shutdown(&self) -> ShutdownStage {
        Shutdown::of(self.server).stage()
    }

    fn next_ping(&self) -> Instant {
        self.pinged + Duration::from_secs(self.config.repl_ping_replica_period.into())
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Meet { after, copy } => {
                let end = self.primary.end();
                if !self.primary.is_on.swap(true, Ordering::SeqCst) {
                    *self.primary.stream.lock() = Stream::new(end, after);
                }
                self.take(after);
                copy.meet_stream(self.primary.history().id, end);
                self.has_unannounced = true;
            }
            Order::PassOn { command, database, .. } if self.reads => self.pass_on(&command, database),
            Order::PassOn { .. } => {}
            // Sending fails if the receiver was dropped because its thread no longer waits.
            Order::SendPosition { position, .. } => _ = position.send(self.primary.end()),
            Order::End { .. } => {
                self.reads = false;
                self.primary.is_on.store(false, Ordering::SeqCst);
                *self.primary.stream.lock() = Stream::new(self.primary.end(), 0);
            }
            Order::GiveOver { done, .. } => {
                self.reads = false;
                self.primary.gives_over.store(false, Ordering::SeqCst);
                // Sending fails if the receiver was dropped because the role has changed again.
                let _ = done.send(());
            }
            Order::TakeAgain { after } => self.take(after),
        }
    }

    /// Begins to append records to the stream, after record `after`.
    fn take(&mut self, after: u64) {
        if !self.reads {
            self.reads = true;
            let mut stream = self.primary.stream.lock();
            let end = stream.backlog.end();
            stream.last_record = after;
            // Data at this position include the effects of all earlier records.
            stream.milestones.mark(after, end);
            self.pinged = Instant::now();
        }
        self.database = None;
    }

    /// Appends a command that is not a record. A command without a database may itself be a SELECT.
    fn pass_on(&mut self, command: &[u8], database: Option<usize>) {
        let mut bytes = Vec::new();
        if let Some(database) = database.filter(|_| database != self.database) {
            let digits = database.to_string();
            push_command_head(2, &mut bytes);
            push_word(b"SELECT", &mut bytes);
            push_word(digits.as_bytes(), &mut bytes);
        }
        bytes.extend_from_slice(command);
        self.database = database;
        self.add(&bytes, None);
    }

    /// Appends commands to the stream. Afterwards, all records up to number `record` are in the stream.
    fn add(&mut self, commands: &[u8], record: Option<u64>) {
        let mut stream = self.primary.stream.lock();
        let end = self.primary.add(&mut stream, commands, &self.config);
        if let Some(record) = record {
            stream.milestones.mark(record, end);
            stream.last_record = record;
        }
        self.has_unannounced = true;
    }

    /// Appends a GETACK, unless the server is shutting down.
    fn ask(&mut self) {
        let mut stream = self.primary.stream.lock();
        // The stage is read under the lock: a shutdown sets its stage first and then reads the end of the stream.
        if self.shutdown() == ShutdownStage::Ending {
            return;
        }
        let getacks_at = stream.getacks_at.unwrap_or(stream.backlog.end());
        self.primary.add(&mut stream, b"*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n", &self.config);
        stream.getacks_at = Some(getacks_at);
        self.has_unannounced = true;
    }

    fn ping_if_due(&mut self) {
        let now = Instant::now();
        if now < self.next_ping() {
            return;
        }
        self.pinged = now;
        let is_heard = self.primary.replicas.lock().values().any(|view| view.stage() == Stage::Online);
        let mut stream = self.primary.stream.lock();
        // A failover or a shutdown waits for replicas to confirm the end of the stream.
        let is_waited_for = Failover::of(self.server).stage() != FailoverStage::Off
            || self.shutdown() != ShutdownStage::Off
            || self.server.pause.is_handing_over();
        if is_heard && !is_waited_for {
            self.primary.add(&mut stream, b"*1\r\n$4\r\nPING\r\n", &self.config);
            self.has_unannounced = true;
        }
    }
}

impl Subscriber for StreamSubscriber {
    fn reader(&self) -> Reader {
        Reader::Replicas
    }

    fn begin_round(&mut self) {
        self.orders.extend(self.primary.orders.take());
    }

    fn advance(&mut self, last: u64) {
        while self.orders.front().is_some_and(|order| order.after() <= last)
            && let Some(order) = self.orders.pop_front()
        {
            self.carry_out(order);
        }
    }

    fn limit(&self, _: u64) -> u64 {
        self.orders.front().map_or(u64::MAX, Order::after)
    }

    fn database(&self, _: u64) -> ReaderDatabase {
        match self.database {
            _ if !self.reads => ReaderDatabase::Any,
            Some(database) => ReaderDatabase::Is(database),
            None => ReaderDatabase::Unknown,
        }
    }

    fn refresh(&mut self) {
        let generation = self.server.config.generation();
        if generation != self.generation {
            self.generation = generation;
            self.config = self.server.config.snapshot();
        }
    }

    fn append(&mut self, records: Records<'_>) {
        if !self.reads {
            return;
        }
        if records.batch.is_empty() {
            let mut stream = self.primary.stream.lock();
            let end = stream.backlog.end();
            stream.milestones.mark(records.last, end);
            stream.last_record = records.last;
            return;
        }
        self.database = records.database;
        self.add(records.batch.commands(), Some(records.last));
        self.has_records = true;
    }

    fn end_round(&mut self) {
        if !self.reads {
            return;
        }
        self.ping_if_due();
        if self.primary.are_acks_requested.swap(false, Ordering::SeqCst) {
            self.ask();
        }
    }

    fn report(&mut self, _: usize) {
        if std::mem::take(&mut self.has_records) && self.primary.syncs.load(Ordering::Relaxed) {
            self.ask();
        }
        if std::mem::take(&mut self.has_unannounced) {
            self.primary.notify_workers(self.server);
        }
    }

    fn is_left_to_thread(&self) -> bool {
        !self.orders.is_empty() || self.primary.orders.has_some()
    }

    fn has_work(&self) -> bool {
        false
    }

    fn durable(&self) -> u64 {
        u64::MAX
    }

    fn released(&self) -> u64 {
        u64::MAX
    }

    fn pause(&self) -> Pause {
        let until_ping = self.next_ping().saturating_duration_since(Instant::now());
        Pause::UntilPublished(if self.reads { until_ping.min(SLEEP_MAX) } else { SLEEP_MAX })
    }

    fn is_over(&self) -> bool {
        // Only the AOF subscriber determines when the journal has ended.
        true
    }
}
