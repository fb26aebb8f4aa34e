//! Linking: threads link the vectors that calls have added to vector sets, while workers go on.
//!
//! ```text
//! worker   a call adds a vector: it is found from now on ─ tells the key, now and then
//! thread   takes some vectors of the key (a moment under the shard's lock) ─ chooses their links, in a view
//!          ─ makes them (a moment under the lock) ─ and so on, until none is left
//! ```
//!
//! While files are loaded, commands that are read again tell the threads in the same way, and the loading thread helps above
//! [`PENDING_HOLD`]. The server serves as soon as all is read: what is not linked by then is found like all new vectors.
//!
//! A removed vector is not found from then on; the threads mend the graph around it, under the lock, and give its slot back.
//!
//! Searches look at each vector that is not linked yet, and at what is left of removed ones, so there may not be many: above
//! [`PENDING_HOLD`] the key is held (`server/held_keys.rs`), and calls that would change it wait until [`PENDING_GO_ON`].
//!
//! Lists of vectors are made by the same threads, in steps of about a millisecond between which they link. What changes
//! meanwhile is caught up with, until so little is left that the new lists can take the place of the old ones.
//!
//! The threads run at a lower priority than workers, and let them go first between two batches.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use emberkv_core::linking::{self, Next};
use emberkv_core::types::vector_set::Training;
use parking_lot::Mutex;

use super::pool::{self, Pool};
use crate::server::Server;

/// Vectors of a key that are not linked yet, and removed ones whose slots were not given back, from which on calls that
/// would change it wait.
const PENDING_HOLD: usize = 1024;

/// With so many left they go on.
const PENDING_GO_ON: usize = 960;

/// How long a key rests whose value a snapshot has no room for.
const REST_TIME: Duration = Duration::from_millis(2);

/// Batches after which it is the turn of another key.
const TURN_BATCHES: usize = 64;

/// Distances of a step of a training, and steps after which it is told what has changed, and others have their turn.
const STEP_DISTANCES: usize = 20_000;
const TURN_STEPS: usize = 16;

/// A key, with its database.
type Place = (usize, Box<[u8]>);

/// What a key has left to be linked.
enum Left {
    Nothing,
    More,
    /// A snapshot has no room for the value as it is.
    Later,
}

/// What has become of a batch of vectors.
enum Batch {
    /// There is none.
    None,
    /// A snapshot has no room for the value as it is.
    Later,
    /// It is linked; so much is left.
    Done { left: usize },
}

/// Gives some slots of a key back, and links some of its vectors.
fn link_batch(server: &Server, (database, key): &Place) -> Batch {
    let dead = linking::bury(&server.keyspace, *database, key);
    let batch = match linking::begin(&server.keyspace, *database, key) {
        Next::Nothing if dead > 0 => return Batch::Done { left: dead },
        Next::Nothing => return Batch::None,
        Next::Later => return Batch::Later,
        Next::Linking(batch) => batch,
    };
    let plans = linking::plan(&batch);
    // Nothing is copied for a view that nobody looks at any more.
    drop(batch);
    let left = linking::commit(&server.keyspace, *database, key, &plans);
    Batch::Done { left: left + dead }
}

/// A place, and lists that are being made for its index.
type InTraining = (Place, Box<Training>);

/// The threads of a server that link.
pub(crate) struct Links {
    pool: Pool<Place>,
    /// Keys that are held because they have too much to link.
    held: Mutex<HashSet<Box<[u8]>>>,
}

impl Links {
    /// Those that link on so many threads at most.
    pub(crate) fn new(threads_max: usize) -> Links {
        let pool = Pool::new("link", threads_max, |server| {
            pool::lower_priority();
            Links::of(server).run(server);
        });
        Links { pool, held: Mutex::default() }
    }

    /// Those of a server.
    pub(crate) fn of(server: &Server) -> &Links {
        server.services.get()
    }

    /// Has what a key has to link linked, and keeps its callers away if it is much.
    pub(super) fn link(&self, server: &'static Server, place: Place) {
        // Before the threads are told: who finds nothing to do any more lets the key go.
        self.hold_with(server, &place.1, linking::left(&server.keyspace, place.0, &place.1));
        self.tell(server, place);
    }

    /// Tells the threads of a key that has something to link.
    fn tell(&self, server: &'static Server, place: Place) {
        if let Err((place, error)) = self.pool.push_once(server, place) {
            tracing::warn!("vectors are linked later: the system gives no thread: {error}");
            self.let_go(server, &place.1);
        }
    }

    /// Has what a key has to link linked while files are loaded, when nobody can be kept away: the caller helps if it is
    /// much.
    pub(crate) fn link_loaded(&self, server: &'static Server, place: Place) {
        self.tell(server, place.clone());
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
                self.let_go(server, &place.1);
                if let Some(training) = linking::begin_training(&server.keyspace, place.0, &place.1) {
                    trainings.push_back((place, training));
                }
            }
            Left::More => self.tell(server, place),
            Left::Later => {
                self.let_go(server, &place.1);
                self.pool.put_back(place, REST_TIME);
            }
        }
    }

    /// Goes on with lists for a while; nothing once they are those of the index, or it is gone.
    fn train_some(&self, server: &'static Server, (place, mut training): InTraining) -> Option<InTraining> {
        for _ in 0..TURN_STEPS {
            if training.step(STEP_DISTANCES) {
                break;
            }
            pool::give_way();
        }
        let goes_on = linking::advance_training(&server.keyspace, place.0, &place.1, &mut training);
        if goes_on {
            return Some((place, training));
        }
        // New lists may have left some vectors to be put into them.
        self.tell(server, place);
        None
    }

    /// Links vectors of a key for a while.
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

    /// Holds a key with so much to do, or lets it go.
    fn hold_with(&self, server: &Server, key: &[u8], left: usize) {
        if left >= PENDING_HOLD {
            self.hold(server, key);
        } else if left <= PENDING_GO_ON {
            self.let_go(server, key);
        }
    }

    fn hold(&self, server: &Server, key: &[u8]) {
        let mut held = self.held.lock();
        if !held.contains(key) {
            held.insert(key.into());
            server.hold_keys(&[key.into()]);
        }
    }

    fn let_go(&self, server: &Server, key: &[u8]) {
        let mut held = self.held.lock();
        if held.remove(key) {
            server.let_keys_go(&[key.into()]);
        }
    }
}
