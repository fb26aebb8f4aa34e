//! Linking: threads link the vectors that calls have added to vector sets, while workers continue.
//!
//! ```text
//! worker   a call adds a vector, which searches find from now on ─ queues the key, at intervals
//! thread   takes some vectors of the key (briefly under the shard's lock) ─ chooses their links, in a view
//!          ─ adds the links (briefly under the lock) ─ repeats until no vector is left
//! ```
//!
//! While files are loaded, replayed commands queue keys in the same way, and the loading thread helps above
//! [`PENDING_HOLD`]. The server serves clients as soon as all files are read: vectors that are not linked by then are
//! found like new ones.
//!
//! Searches no longer find a removed vector; the threads repair the graph around it, under the lock, and free its slot.
//!
//! Searches compare every vector that is not linked yet, and every removed vector whose slot is not freed, so the
//! number of both is limited: above [`PENDING_HOLD`] the key is held (`server/held_keys.rs`), and calls that would
//! change it wait until [`PENDING_RESUME`].
//!
//! The same threads build the lists of vectors, in steps of about a millisecond; between two steps they link vectors.
//! Changes made in the meantime are applied to the new lists. Once only few changes are left, the new lists replace the
//! old ones.
//!
//! The threads run at a lower priority than workers, and yield to them between two batches.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use emberkv_core::linking::{self, Next};
use emberkv_core::types::vector_set::Training;
use parking_lot::Mutex;

use super::pool::{self, Pool};
use crate::server::Server;

/// The number of pending vectors of a key from which on calls that would change the key wait. Pending are vectors that
/// are not linked yet, and removed vectors whose slots are not freed.
const PENDING_HOLD: usize = 1024;

/// The number of pending vectors of a key at which waiting calls continue.
const PENDING_RESUME: usize = 960;

/// The delay before a key is processed again when a snapshot has no memory left to preserve the key's value.
const REST_TIME: Duration = Duration::from_millis(2);

/// The number of batches of a key after which another key is processed.
const TURN_BATCHES: usize = 64;

/// The number of distances computed per training step, and of steps after which the changes are applied and other keys
/// are processed.
const STEP_DISTANCES: usize = 20_000;
const TURN_STEPS: usize = 16;

/// The database and the name of a key.
type Place = (usize, Box<[u8]>);

/// The linking work that remains for a key.
enum Left {
    Nothing,
    More,
    /// The key must be processed later: a snapshot has no memory left to preserve its present value.
    Later,
}

/// The result of linking a batch of vectors.
enum Batch {
    /// There was no vector to link.
    None,
    /// Linking is not possible now: a snapshot has no memory left to preserve the key's present value.
    Later,
    /// The batch is linked; `left` vectors are still pending.
    Done { left: usize },
}

/// Frees some slots of a key, and links some of its vectors.
fn link_batch(server: &Server, (database, key): &Place) -> Batch {
    let dead = linking::bury(&server.keyspace, *database, key);
    let batch = match linking::begin(&server.keyspace, *database, key) {
        Next::Nothing if dead > 0 => return Batch::Done { left: dead },
        Next::Nothing => return Batch::None,
        Next::Later => return Batch::Later,
        Next::Linking(batch) => batch,
    };
    let plans = linking::plan(&batch);
    // The batch is dropped before the links are added, because a view that still exists would cause copying.
    drop(batch);
    let left = linking::commit(&server.keyspace, *database, key, &plans);
    Batch::Done { left: left + dead }
}

/// A key, and the lists that are being built for its index.
type InTraining = (Place, Box<Training>);

/// The linking threads of a server.
pub(crate) struct Links {
    pool: Pool<Place>,
    /// The keys that are held because they have too many pending vectors.
    held: Mutex<HashSet<Box<[u8]>>>,
}

impl Links {
    /// Creates the pool with at most `threads_max` threads.
    pub(crate) fn new(threads_max: usize) -> Links {
        let pool = Pool::new("link", threads_max, |server| {
            pool::lower_priority();
            Links::of(server).run(server);
        });
        Links { pool, held: Mutex::default() }
    }

    /// Returns the linking threads of a server.
    pub(crate) fn of(server: &Server) -> &Links {
        server.services.get()
    }

    /// Queues a key for linking, and holds it if too many of its vectors are pending.
    pub(super) fn link(&self, server: &'static Server, place: Place) {
        // The key is held before the threads are notified, because the thread that finds no more work releases it.
        self.hold_with(server, &place.1, linking::left(&server.keyspace, place.0, &place.1));
        self.notify(server, place);
    }

    /// Notifies the threads of a key with pending vectors.
    fn notify(&self, server: &'static Server, place: Place) {
        if let Err((place, error)) = self.pool.push_once(server, place) {
            tracing::warn!("linking of vectors is delayed: cannot start a thread: {error}");
            self.release_key(server, &place.1);
        }
    }

    /// Queues a key for linking while files are loaded. Then calls cannot be delayed, so the calling thread links
    /// vectors itself while too many are pending.
    pub(crate) fn link_loaded(&self, server: &'static Server, place: Place) {
        self.notify(server, place.clone());
        while linking::left(&server.keyspace, place.0, &place.1) > PENDING_HOLD {
            if !matches!(link_batch(server, &place), Batch::Done { .. }) {
                return;
            }
        }
    }

    fn run(&self, server: &'static Server) {
        let mut trainings: VecDeque<InTraining> = VecDeque::new();
        loop {
            let next = if trainings.is_empty() { self.pool.next() } else { self.pool.try_next() };
            match next {
                Some(place) => self.take_turn(server, place, &mut trainings),
                None if trainings.is_empty() => return,
                None => {}
            }
            if let Some(training) = trainings.pop_front() {
                trainings.extend(self.train_some(server, training));
            }
        }
    }

    fn take_turn(&self, server: &'static Server, place: Place, trainings: &mut VecDeque<InTraining>) {
        match self.link_some(server, &place) {
            Left::Nothing => {
                self.release_key(server, &place.1);
                if let Some(training) = linking::begin_training(&server.keyspace, place.0, &place.1) {
                    trainings.push_back((place, training));
                }
            }
            Left::More => self.notify(server, place),
            Left::Later => {
                self.release_key(server, &place.1);
                self.pool.put_back(place, REST_TIME);
            }
        }
    }

    /// Continues building lists for some steps; returns `None` once the index uses them or no longer exists.
    fn train_some(&self, server: &'static Server, (place, mut training): InTraining) -> Option<InTraining> {
        for _ in 0..TURN_STEPS {
            if training.step(STEP_DISTANCES) {
                break;
            }
            pool::give_way();
        }
        let continues = linking::advance_training(&server.keyspace, place.0, &place.1, &mut training);
        if continues {
            return Some((place, training));
        }
        // Some vectors may still have to be added to the new lists.
        self.notify(server, place);
        None
    }

    /// Links some batches of a key's vectors.
    fn link_some(&self, server: &'static Server, place: &Place) -> Left {
        for _ in 0..TURN_BATCHES {
            match link_batch(server, place) {
                Batch::None => return Left::Nothing,
                Batch::Later => return Left::Later,
                Batch::Done { left } => self.hold_with(server, &place.1, left),
            }
            pool::give_way();
        }
        Left::More
    }

    /// Holds or releases a key that has this number of pending vectors.
    fn hold_with(&self, server: &Server, key: &[u8], left: usize) {
        if left >= PENDING_HOLD {
            self.hold(server, key);
        } else if left <= PENDING_RESUME {
            self.release_key(server, key);
        }
    }

    fn hold(&self, server: &Server, key: &[u8]) {
        let mut held = self.held.lock();
        if !held.contains(key) {
            held.insert(key.into());
            server.hold_keys(&[key.into()]);
        }
    }

    fn release_key(&self, server: &Server, key: &[u8]) {
        let mut held = self.held.lock();
        if held.remove(key) {
            server.release_keys(&[key.into()]);
        }
    }
}
