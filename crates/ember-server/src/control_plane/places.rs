//! Places for HTTP connections: limits how many are served at a time, and selects which of them is closed for another.
//!
//! Idle clients, and clients that do not read, cannot lock others out. When all places are occupied, the address with
//! the most idle connections loses the connection that has waited longest.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// The maximum number of connections served at a time; a few scrapers and probes need no more.
pub(super) const PLACES_MAX: usize = 64;

/// The time after which a request without a complete response loses its place if no other place is free: its client
/// does not read, or has stopped reading.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// The interval at which a waiting connection checks again for a place that can be taken over.
const RECHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The places for connections, and which of them are occupied.
#[derive(Debug, Default)]
pub(super) struct Places {
    taken: Mutex<Vec<Taken>>,
    given_back: Notify,
    /// The number of the next occupied place; numbers are never reused.
    next_number: AtomicU64,
}

/// An occupied place.
#[derive(Debug)]
struct Taken {
    number: u64,
    address: IpAddr,
    since: Instant,
    /// Whether the request of the connection has arrived.
    has_request: bool,
    /// The task that serves the connection; `None` until the task runs.
    task: Option<AbortHandle>,
}

/// A connection's place, which is freed when this value is dropped.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
    places: Arc<Places>,
}

impl Places {
    /// Waits for a place for a connection from `address`. The place may be taken over from another connection.
    pub(super) async fn take(self: &Arc<Places>, address: IpAddr) -> Place {
        loop {
            if let Some(place) = self.try_take(address, Instant::now()) {
                return place;
            }
            // After a notification and after a timeout alike, the next round tries again.
            let _ = tokio::time::timeout(RECHECK_INTERVAL, self.given_back.notified()).await;
        }
    }

    fn try_take(self: &Arc<Places>, address: IpAddr, now: Instant) -> Option<Place> {
        let mut taken = self.taken.lock();
        let mut leaving = None;
        if taken.len() >= PLACES_MAX {
            let longest = longest_idle(&taken, now)?;
            leaving = taken.remove(longest).task;
        }
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        taken.push(Taken { number, address, since: now, has_request: false, task: None });
        drop(taken);
        if let Some(task) = leaving {
            task.abort();
        }
        Some(Place { number, places: Arc::clone(self) })
    }

    fn with(&self, number: u64, act: impl FnOnce(&mut Taken)) {
        if let Some(taken) = self.taken.lock().iter_mut().find(|taken| taken.number == number) {
            act(taken);
        }
    }

    /// Records the task that serves a connection, so that it can be aborted.
    pub(super) fn set_task(&self, number: u64, task: AbortHandle) {
        self.with(number, |taken| taken.task = Some(task));
    }
}

/// Returns the index of the connection that must be closed for another. Candidates are the connections without a
/// request, or if there are none, those whose response takes too long. Among these, the address with the most
/// candidates loses the candidate that has waited longest.
fn longest_idle(taken: &[Taken], now: Instant) -> Option<usize> {
    let idle = |has_request: bool| {
        let is_idle = move |one: &&Taken| {
            one.has_request == has_request && (!has_request || now - one.since >= ANSWER_PATIENCE)
        };
        let count =
            |address: IpAddr| taken.iter().filter(is_idle).filter(|one| one.address == address).count();
        // Of equal elements, `max_by_key` returns the last, so the order is reversed to find the first.
        let first =
            taken.iter().rev().filter(is_idle).max_by_key(|one| (count(one.address), now - one.since))?;
        taken.iter().position(|one| one.number == first.number)
    };
    idle(false).or_else(|| idle(true))
}

impl Place {
    /// Returns the number of the place, which is unique.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Records that the request of the connection has arrived.
    pub(super) fn record_request(&self) {
        self.places.with(self.number, |taken| (taken.has_request, taken.since) = (true, Instant::now()));
    }

    /// Frees the place for another connection, although the connection that occupied it is still served.
    pub(super) fn give_back(&self) {
        self.places.taken.lock().retain(|taken| taken.number != self.number);
        self.places.given_back.notify_one();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn numbers(places: &Arc<Places>) -> Vec<u64> {
        places.taken.lock().iter().map(|taken| taken.number).collect()
    }

    #[test]
    fn the_longest_idle_connection_of_the_busiest_address_is_evicted() {
        let places = Arc::new(Places::default());
        let begin = Instant::now();
        let mut held: Vec<Place> = (0..PLACES_MAX)
            .map(|number| places.try_take(address(u8::from(number >= 2)), begin).unwrap())
            .collect();
        held[2].record_request();
        // The first two places belong to another address, the third has a request.
        held.push(places.try_take(address(2), begin).unwrap());
        assert_eq!(numbers(&places)[..4], [0, 1, 2, 4]);
        drop(held.pop());
        held.push(places.try_take(address(0), begin).unwrap());
        assert_eq!(numbers(&places)[..4], [0, 1, 2, 4], "no connection is evicted");
        // A connection with a request loses its place only if its response takes long.
        for place in &held {
            place.record_request();
        }
        assert!(places.try_take(address(3), Instant::now()).is_none());
        assert!(places.try_take(address(3), Instant::now() + ANSWER_PATIENCE).is_some());
        drop(held);
        assert!(numbers(&places).is_empty());
    }
}
