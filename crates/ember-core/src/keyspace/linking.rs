//! Linking of vectors outside of commands: additions to a vector set only report that there are vectors to link, and
//! removals that the graph needs repair.
//!
//! A linking thread holds a shard's lock for two moments: to take vectors and a view of the index, and to add the links
//! that it has chosen in the view. This changes nothing that commands can see, so no client is notified and nothing is
//! recorded; a snapshot that has still to save the value, or is writing it, has the unchanged value.

use super::Keyspace;
use crate::types::Variant;
use crate::types::vector_set::{Linking, Plan, Training, VectorSet};

pub use crate::types::vector_set::plan;

/// Vectors linked per batch. Additions meanwhile copy the last blocks of the index once for each view.
pub const BATCH: usize = 4;

/// The next work on a key.
pub enum Next {
    /// There is none.
    Nothing,
    /// There is some, but a snapshot that has still to save the value has no space for it.
    Later,
    /// A batch to link.
    Linking(Box<Linking>),
}

fn edit<R>(
    keyspace: &Keyspace,
    database: usize,
    key: &[u8],
    edit: impl FnOnce(&mut VectorSet) -> R,
) -> Option<R> {
    let hash = keyspace.hash(key);
    let mut data = keyspace.lock(hash.shard());
    let at = data.find(database, hash, key)?;
    // Without work, the value is not marked as changed.
    data.entry(database, at).aggregate().and_then(VectorSet::of).filter(|set| set.has_work())?;
    let result = data.edit(database, at, |slot| slot.aggregate_mut().and_then(VectorSet::of_mut).map(edit));
    let growth = keyspace.release(hash.shard(), data);
    keyspace.publish_bytes(growth);
    result
}

/// Returns the remaining work on a key: vectors to link plus slots to release. The caller holds no lock.
pub fn left(keyspace: &Keyspace, database: usize, key: &[u8]) -> usize {
    let hash = keyspace.hash(key);
    let data = keyspace.lock(hash.shard());
    let entry = data.find(database, hash, key).map(|at| data.entry(database, at));
    let set = entry.and_then(|entry| entry.aggregate()).and_then(VectorSet::of);
    set.map_or(0, VectorSet::left_to_linkers)
}

/// Takes a batch of a key's pending vectors and a view of its index. The caller holds no lock.
pub fn begin(keyspace: &Keyspace, database: usize, key: &[u8]) -> Next {
    let hash = keyspace.hash(key);
    if keyspace.lock(hash.shard()).must_wait(hash, key) {
        return Next::Later;
    }
    let linking = edit(keyspace, database, key, |set| set.begin_linking(BATCH));
    linking.flatten().map_or(Next::Nothing, |linking| Next::Linking(Box::new(linking)))
}

/// Begins to build the lists of a key's index, if they are due and no other thread builds them. The caller holds no
/// lock.
pub fn begin_training(keyspace: &Keyspace, database: usize, key: &[u8]) -> Option<Box<Training>> {
    edit(keyspace, database, key, VectorSet::begin_training).flatten().map(Box::new)
}

/// Passes the changes of the index to a training; returns whether it continues. The caller holds no lock.
pub fn advance_training(keyspace: &Keyspace, database: usize, key: &[u8], training: &mut Training) -> bool {
    edit(keyspace, database, key, |set| set.advance_training(training)).unwrap_or(false)
}

/// Adds links, and returns how many vectors of the key are left to link. The caller holds no lock.
pub fn commit(keyspace: &Keyspace, database: usize, key: &[u8], plans: &[Plan]) -> usize {
    let mut pending = 0;
    for plan in plans {
        let left = edit(keyspace, database, key, |set| {
            set.commit(plan);
            set.pending()
        });
        pending = left.unwrap_or(0);
    }
    pending
}

/// Releases slots of removed vectors of a key, up to a batch, and returns how many are left. The caller holds no lock.
pub fn bury(keyspace: &Keyspace, database: usize, key: &[u8]) -> usize {
    let hash = keyspace.hash(key);
    let mut dead = 0;
    for _ in 0..BATCH {
        if keyspace.lock(hash.shard()).must_wait(hash, key) {
            return dead;
        }
        let left = edit(keyspace, database, key, |set| {
            set.bury(1);
            set.dead()
        });
        dead = left.unwrap_or(0);
        if dead == 0 {
            break;
        }
    }
    dead
}
