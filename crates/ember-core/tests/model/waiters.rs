//! A client that is disconnected while it waits, under all schedules that the model checker finds: no element that is
//! pushed after the decision to disconnect is popped for the client, and no element is lost. Runs with
//! `RUSTFLAGS="--cfg shuttle" cargo test -p emberkv-core --test model waiters`.

use std::sync::Arc;

use ember_protocol::{OwnedBatch, Protocol};
use emberkv_core::events::Notices;
use emberkv_core::observers::{Observers, Waiter, WaiterSlot};
use emberkv_core::sync::Mutex;
use shuttle::thread;

const SCHEDULES: usize = 5000;
const DATABASE: usize = 0;
const KEY: &[u8] = b"list";

/// A shard that contains one list.
#[derive(Default)]
struct Shard {
    elements: Vec<u32>,
    observers: Observers,
}

impl Shard {
    fn first_waiter(&self) -> Option<Arc<Waiter>> {
        self.observers.waiters(DATABASE, KEY).next().cloned()
    }
}

/// The shared state of the threads.
#[derive(Default)]
struct World {
    shard: Mutex<Shard>,
    slot: WaiterSlot,
    /// The replies that were sent to the client's worker and not received yet.
    replies: Mutex<Vec<u32>>,
}

impl World {
    /// Runs a call of the client on its worker: it pops an element, or waits for one and returns the waiter.
    fn pop(&self) -> Option<Arc<Waiter>> {
        let mut shard = self.shard.lock();
        if let Some(element) = shard.elements.pop() {
            self.replies.lock().push(element);
            return None;
        }
        let mut call = OwnedBatch::new();
        call.push(&[b"pop", KEY]);
        let waiter = Arc::new(Waiter::new(call, 0, DATABASE, Protocol::Resp2, (0, 0, 1)));
        shard.observers.enqueue(DATABASE, KEY, &waiter);
        self.slot.enter(&waiter);
        Some(waiter)
    }

    /// Pushes an element on any worker, then serves the first waiter under the lock again.
    fn push(&self, element: u32) {
        let mut notices = Notices::default();
        {
            let mut shard = self.shard.lock();
            shard.elements.push(element);
            shard.observers.wake_waiters(DATABASE, KEY, &mut notices);
        }
        if !notices.ready.is_empty() {
            self.serve();
        }
    }

    fn serve(&self) {
        let mut shard = self.shard.lock();
        while let Some(waiter) = shard.first_waiter() {
            if !waiter.claim() {
                shard.observers.dequeue(DATABASE, KEY, &waiter);
                continue;
            }
            // The client's worker or the thread that disconnects the client may run here, because neither takes the
            // shard's lock.
            thread::yield_now();
            let Some(element) = shard.elements.pop() else {
                waiter.unclaim();
                return;
            };
            waiter.finish();
            shard.observers.dequeue(DATABASE, KEY, &waiter);
            self.replies.lock().push(element);
        }
    }

    /// Closes a disconnected client on its worker; returns whether a reply was sent to that worker, which then waits
    /// for the reply.
    fn close(&self, waiter: Option<Arc<Waiter>>) -> bool {
        let Some(waiter) = waiter else { return false };
        while !waiter.is_over() {
            thread::yield_now();
        }
        self.slot.leave();
        self.shard.lock().observers.dequeue(DATABASE, KEY, &waiter);
        !waiter.is_cancelled()
    }
}

#[test]
fn elements_pushed_after_a_client_is_disconnected_stay_in_the_list() {
    shuttle::check_random(
        || {
            let world = Arc::new(World::default());
            let client = {
                let world = Arc::clone(&world);
                thread::spawn(move || world.pop())
            };
            let other = {
                let world = Arc::clone(&world);
                thread::spawn(move || world.serve())
            };
            // In every schedule, the wait of the client is ended before an element is pushed.
            world.slot.end();
            world.push(7);
            let waiter = client.join().unwrap();
            other.join().unwrap();
            let waits = waiter.is_some();
            let is_served = world.close(waiter);
            let replies = world.replies.lock().clone();
            let elements = world.shard.lock().elements.clone();
            assert_eq!(replies.len() + elements.len(), 1, "the element is delivered or in the list");
            // A call that has begun after the push has popped the element at once; a call that has waited has not
            // received it.
            assert!(!waits || (!is_served && elements == [7]), "{waits} {is_served} {elements:?}");
            assert!(world.shard.lock().observers.is_empty(), "no waiter is left");
        },
        SCHEDULES,
    );
}

#[test]
fn a_client_disconnected_while_served_gets_a_whole_reply_or_none() {
    shuttle::check_random(
        || {
            let world = Arc::new(World::default());
            let waiter = world.pop();
            let pushes = [1, 2].map(|element| {
                let world = Arc::clone(&world);
                thread::spawn(move || world.push(element))
            });
            let ending = {
                let world = Arc::clone(&world);
                thread::spawn(move || world.slot.end())
            };
            ending.join().unwrap();
            // The client's worker receives the decision to disconnect, and waits for a reply that was sent.
            let is_served = world.close(waiter);
            pushes.into_iter().for_each(|push| push.join().unwrap());
            let replies = world.replies.lock().len();
            assert_eq!(replies, usize::from(is_served), "a reply comes if the waiter says so, and only then");
            assert_eq!(replies + world.shard.lock().elements.len(), 2, "no element is lost");
        },
        SCHEDULES,
    );
}
