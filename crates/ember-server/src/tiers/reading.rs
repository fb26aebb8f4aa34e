//! Reads cold values, on the reading threads or on the calling thread.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use ember_persistence::full_path::without_directories;
use ember_protocol::{Args, Reply};
use emberkv_core::call::{Attempt, AttemptResult, CommandResult, DataCommand};
use emberkv_core::dispatch::{self, Access, Context};
use emberkv_core::error::CommandError;
use emberkv_core::keyspace::entry::EntryRef;
use emberkv_core::keyspace::shard::cold_values::{FetchOutcome, Fetched};
use emberkv_core::keyspace::shard::fetch_tickets::FetchOrder;
use emberkv_core::types::limits::EncodingLimits;

use super::{FETCH_TIMES, Tiers, is_above_limit};
use crate::server::Server;
use crate::system::abort_on_panic::AbortOnPanic;

/// Returns the number of reading threads for the configured number.
pub(crate) fn threads(configured: usize) -> usize {
    match configured {
        0 => (2 * thread::available_parallelism().map_or(1, usize::from)).clamp(4, 16),
        count => count,
    }
}

/// Starts the reading threads.
pub(crate) fn start(server: &'static Server, threads: usize) -> std::io::Result<()> {
    for number in 0..threads {
        let named = thread::Builder::new().name(format!("storage-{number}"));
        named.spawn(move || {
            let _guard = AbortOnPanic;
            let tiers = Tiers::of(server);
            let mut bytes = Vec::new();
            loop {
                let (requested_at, order) = tiers.next_order();
                tiers.wait_for_memory(server);
                tiers.fetch(server, &order, &mut bytes);
                tiers.count_fetch_time(requested_at.elapsed());
                tiers.pace_without_memory(server, bytes.len());
            }
        })?;
    }
    Ok(())
}

impl Tiers {
    /// Queues reads for the reading threads.
    pub(crate) fn order(&self, orders: Vec<FetchOrder>) {
        if orders.is_empty() {
            return;
        }
        let (count, now) = (orders.len(), Instant::now());
        self.queue.lock().extend(orders.into_iter().map(|order| (now, order)));
        if count == 1 {
            self.has_orders.notify_one();
        } else {
            self.has_orders.notify_all();
        }
    }

    /// Returns the number of queued reads.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.lock().len()
    }

    /// Holds or resumes queued reads, for tests.
    pub(crate) fn hold_reads(&self, is_held: bool) {
        let queue = self.queue.lock();
        self.holds_reads.store(is_held, Ordering::Relaxed);
        drop(queue);
        self.has_orders.notify_all();
    }

    fn next_order(&self) -> (Instant, FetchOrder) {
        let mut queue = self.queue.lock();
        loop {
            if !self.holds_reads.load(Ordering::Relaxed)
                && let Some(order) = queue.pop_front()
            {
                return order;
            }
            self.has_orders.wait(&mut queue);
        }
    }

    fn count_fetch_time(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let part = us.max(1).next_power_of_two().trailing_zeros() as usize;
        self.counters.fetch_times[part.min(FETCH_TIMES - 1)].fetch_add(1, Ordering::Relaxed);
        self.counters.fetch_us.fetch_add(us, Ordering::Relaxed);
    }

    fn fetch(&self, server: &Server, order: &FetchOrder, bytes: &mut Vec<u8>) {
        let limits = server.config.snapshot().encoding_limits();
        let fetched = self.read(order, &limits, bytes);
        let mut shard = server.keyspace.lock(order.hash.shard());
        match fetched {
            Ok(fetched) => self.count_fetch(shard.store_fetched(order, fetched)),
            Err(reason) => shard.fail(order, &reason),
        }
        server.keyspace.publish_bytes(server.keyspace.release(order.hash.shard(), shard));
    }

    /// Returns a reader of small cold values for a worker. It reads only records that the system has cached, so that no
    /// client waits for the disk. While memory is full, it reads no values.
    pub(crate) fn reader(
        &'static self,
        server: &'static Server,
        limits: EncodingLimits,
    ) -> impl FnMut(&FetchOrder) -> Option<Fetched> {
        let mut bytes = Vec::new();
        move |order| {
            let is_left = self.holds_reads.load(Ordering::Relaxed)
                || server.debug.leaves_cached_reads.load(Ordering::Relaxed);
            if is_left || is_above_limit(server) {
                return None;
            }
            let begun = Instant::now();
            let (location, place) = (order.record.location(), (order.database_name, &*order.key));
            // An error in a record is reported by a thread that may wait.
            let fetched = self.records.read_ready(location, place, &mut bytes, |kind, value| {
                Fetched::decode(kind, value, order.encoding_name, &limits).ok()
            })??;
            self.counters.fetched.fetch_add(1, Ordering::Relaxed);
            self.count_fetch_time(begun.elapsed());
            Some(fetched)
        }
    }

    fn count_fetch(&self, arrived: FetchOutcome) {
        let counter = match arrived {
            FetchOutcome::InPlace => &self.counters.fetched,
            FetchOutcome::Unwanted => &self.counters.unwanted,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads the value of an order on the calling thread.
    ///
    /// # Errors
    /// Returns the error for the clients that wait for the value.
    pub(crate) fn read(
        &self,
        order: &FetchOrder,
        limits: &EncodingLimits,
        bytes: &mut Vec<u8>,
    ) -> Result<Fetched, String> {
        let location = order.record.location();
        let read = self.records.read(location, (order.database_name, &order.key), bytes, |kind, value| {
            Fetched::decode(kind, value, order.encoding_name, limits).map_err(|error| error.to_string())
        });
        read.and_then(|decoded| decoded).map_err(|reason| {
            self.counters.read_errors.fetch_add(1, Ordering::Relaxed);
            let key = String::from_utf8_lossy(&order.key);
            tracing::error!("IOERR the value of '{key}' cannot be read: {reason}");
            format!("IOERR the value of '{key}' cannot be read: {}", without_directories(&reason))
        })
    }

    /// Reads the missing values of a call and stores them in their entries. The caller holds the locks of the call's
    /// keys, and waits for the disk.
    ///
    /// # Errors
    /// Returns an error if a value cannot be read.
    pub(crate) fn fetch_now(&self, context: &mut Context<'_, '_>) -> CommandResult {
        let limits = context.turn.settings.encoding;
        let mut bytes = Vec::new();
        dispatch::fetch_missing(context, |order| {
            self.counters.script_reads.fetch_add(1, Ordering::Relaxed);
            self.read(order, &limits, &mut bytes).map_err(CommandError::from)
        })
    }

    /// Runs a call that cannot be run again later; its missing values are read with [`Tiers::fetch_now`].
    ///
    /// # Errors
    /// Returns the handler's error, or an error if a value cannot be read.
    pub(crate) fn run_fetching(
        &self,
        (command, access): (&DataCommand, Access),
        context: &mut Context<'_, '_>,
        args: Args<'_>,
        reply: &mut Reply,
    ) -> AttemptResult {
        loop {
            match dispatch::run(command, access, None, context, args, reply)? {
                Attempt::Fetch => self.fetch_now(context)?,
                attempt => return Ok(attempt),
            }
        }
    }

    /// Returns the value of an entry if it is cold; the calling thread waits for the disk.
    ///
    /// # Errors
    /// Returns an error if the value cannot be read.
    pub(crate) fn value_of(
        &self,
        database_name: usize,
        entry: EntryRef<'_>,
    ) -> Result<Option<Fetched>, String> {
        let Some(external) = entry.external() else { return Ok(None) };
        let (place, name) = ((database_name, entry.key()), external.facts.encoding_name());
        let fetched = self.records.read(external.location, place, &mut Vec::new(), |kind, value| {
            Fetched::decode(kind, value, name, &EncodingLimits::DEFAULT)
        })?;
        fetched.map(Some).map_err(|error| error.to_string())
    }
}
