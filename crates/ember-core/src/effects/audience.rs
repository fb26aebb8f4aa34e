//! The receivers of a live query's results.

use std::collections::HashMap;

use super::live_query::Receiver;
use crate::memory::size_class;

/// The maximum number of receivers for which a removal searches the list; a larger list has a table of the receivers'
/// positions.
const LISTED_MAX: usize = 64;

/// A receiver, its worker, and whether it is also sent results that equal the previous one.
#[derive(Clone, Copy, Debug)]
struct Seat {
    receiver: Receiver,
    worker: u16,
    sends_equal: bool,
}

/// The receivers of a query's results.
#[derive(Debug, Default)]
pub struct Audience {
    seats: Seats,
    /// The hash of the result that all receivers have, as two 64-bit halves; zeros if `is_known` is false.
    known: [u64; 2],
    is_known: bool,
}

/// The receivers of a query; nearly all queries have exactly one.
#[derive(Debug, Default)]
enum Seats {
    #[default]
    None,
    One(Seat),
    Many(Box<Crowd>),
}

/// The list of several receivers.
#[derive(Debug, Default)]
struct Crowd {
    seats: Vec<Seat>,
    /// The position of each receiver in the list, by its identity; empty until the list first exceeds [`LISTED_MAX`].
    places: HashMap<Name, u32>,
}

/// The identity of a receiver: its client's id and the query's number at that client.
type Name = (u64, u32);

fn name_of(receiver: &Receiver) -> Name {
    (receiver.client_id, receiver.number)
}

impl Crowd {
    fn add(&mut self, seat: Seat) {
        let Crowd { seats, places } = self;
        seats.push(seat);
        let is_begun = !places.is_empty();
        if is_begun || seats.len() > LISTED_MAX {
            let first = if is_begun { seats.len() - 1 } else { 0 };
            places.extend((first..seats.len()).map(|at| (name_of(&seats[at].receiver), at as u32)));
        }
    }

    fn remove(&mut self, receiver: Receiver) {
        let Crowd { seats, places } = self;
        let found = if places.is_empty() {
            seats.iter().position(|seat| seat.receiver == receiver)
        } else {
            places.remove(&name_of(&receiver)).map(|at| at as usize)
        };
        let Some(at) = found else { return };
        seats.swap_remove(at);
        if let Some(place) = seats.get(at).and_then(|moved| places.get_mut(&name_of(&moved.receiver))) {
            *place = at as u32;
        }
        if seats.len() < seats.capacity() / 4 {
            seats.shrink_to_fit();
            if seats.len() <= LISTED_MAX / 2 {
                *places = HashMap::new();
            } else {
                places.shrink_to_fit();
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        let buckets = (self.places.capacity() * 8 / 7).next_power_of_two();
        let has_table = self.places.capacity() > 0;
        let table = if has_table { buckets * (size_of::<(Name, u32)>() + 1) } else { 0 };
        let list = self.seats.capacity() * size_of::<Seat>();
        let sizes = [size_of::<Crowd>(), list, table];
        sizes.into_iter().map(|bytes| if bytes == 0 { 0 } else { size_class(bytes) }).sum()
    }
}

impl Audience {
    fn seats(&self) -> &[Seat] {
        match &self.seats {
            Seats::None => &[],
            Seats::One(seat) => std::slice::from_ref(seat),
            Seats::Many(crowd) => &crowd.seats,
        }
    }

    /// Returns whether the query has no receivers.
    pub fn is_empty(&self) -> bool {
        self.seats().is_empty()
    }

    /// Adds a receiver on a worker; the receiver must not be in the list. O(1).
    pub fn add(&mut self, worker: usize, receiver: Receiver, sends_equal: bool) {
        let seat = Seat { receiver, worker: worker as u16, sends_equal };
        match &mut self.seats {
            Seats::None => self.seats = Seats::One(seat),
            Seats::One(first) => {
                let mut crowd = Box::<Crowd>::default();
                [*first, seat].into_iter().for_each(|seat| crowd.add(seat));
                self.seats = Seats::Many(crowd);
            }
            Seats::Many(crowd) => crowd.add(seat),
        }
    }

    /// Removes a receiver, if the list contains it. O(1).
    pub fn remove(&mut self, receiver: Receiver) {
        match &mut self.seats {
            Seats::One(seat) if seat.receiver == receiver => self.seats = Seats::None,
            Seats::None | Seats::One(_) => {}
            Seats::Many(crowd) => {
                crowd.remove(receiver);
                if let [last] = crowd.seats[..] {
                    self.seats = Seats::One(last);
                }
            }
        }
    }

    /// Returns the bytes that the list takes on the heap.
    pub fn memory_bytes(&self) -> usize {
        match &self.seats {
            Seats::None | Seats::One(_) => 0,
            Seats::Many(crowd) => crowd.memory_bytes(),
        }
    }

    /// Returns the receivers on a worker.
    pub fn receivers_of(&self, worker: usize) -> impl Iterator<Item = Receiver> {
        let seats = self.seats().iter().filter(move |seat| usize::from(seat.worker) == worker);
        seats.map(|seat| seat.receiver)
    }

    /// Returns the workers that have receivers, without duplicates.
    pub fn workers(&self) -> Vec<u16> {
        let mut workers = Vec::new();
        for seat in self.seats() {
            if !workers.contains(&seat.worker) {
                workers.push(seat.worker);
            }
        }
        workers
    }

    /// Returns whether a receiver is also sent results that equal the previous one.
    pub fn sends_equal(&self) -> bool {
        self.seats().iter().any(|seat| seat.sends_equal)
    }

    /// Returns the hash of the result that all receivers have; `None` if their results differ.
    pub fn known(&self) -> Option<u128> {
        let [high, low] = self.known;
        self.is_known.then_some(u128::from(high) << 64 | u128::from(low))
    }

    /// Records the hash of the result that all receivers have; `None` if their results differ.
    pub fn set_known(&mut self, hash: Option<u128>) {
        self.is_known = hash.is_some();
        let hash = hash.unwrap_or_default();
        self.known = [(hash >> 64) as u64, hash as u64];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(client_id: u64) -> Receiver {
        Receiver { client_id, token: 1, number: 7 }
    }

    #[test]
    fn receivers_are_grouped_by_worker_until_the_last_one_leaves() {
        let mut audience = Audience::default();
        audience.add(3, receiver(1), true);
        audience.add(3, receiver(2), false);
        audience.add(1, receiver(3), false);
        assert!(audience.sends_equal() && audience.workers() == [3, 1]);
        assert_eq!(audience.receivers_of(3).collect::<Vec<_>>(), [receiver(1), receiver(2)]);
        audience.remove(receiver(1));
        audience.add(3, receiver(1), false);
        assert!(!audience.sends_equal() && audience.receivers_of(3).count() == 2);
        (1..=3).for_each(|id| audience.remove(receiver(id)));
        assert!(audience.is_empty() && audience.workers().is_empty());
    }

    #[test]
    fn receivers_leave_large_audiences_in_any_order_without_a_search() {
        let mut audience = Audience::default();
        let count = 100_000;
        (0..count).for_each(|id| audience.add(0, receiver(id), false));
        let bytes = audience.memory_bytes();
        // A linear search per removal would take minutes. The step 7919 visits all receivers, in another order than
        // they were added.
        for (left, step) in (0..count).rev().zip(0..) {
            audience.remove(receiver(step * 7919 % count));
            audience.remove(receiver(count));
            assert_eq!(audience.is_empty(), left == 0);
            if left.is_power_of_two() {
                let known: std::collections::HashSet<u64> =
                    audience.receivers_of(0).map(|receiver| receiver.client_id).collect();
                assert!(known.len() as u64 == left && !known.contains(&(step * 7919 % count)));
            }
        }
        assert!(bytes <= 80 * count as usize && audience.memory_bytes() == 0, "{bytes}");
    }

    #[test]
    fn hashes_are_stored_with_all_128_bits() {
        let mut audience = Audience::default();
        assert_eq!(audience.known(), None);
        for hash in [0, 1, u128::MAX, 1 << 64] {
            audience.set_known(Some(hash));
            assert_eq!(audience.known(), Some(hash));
        }
        audience.set_known(None);
        assert_eq!(audience.known(), None);
    }
}
