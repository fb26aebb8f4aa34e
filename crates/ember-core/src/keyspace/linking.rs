//! Links of vectors, made beside commands: additions to a vector set only say that there is something to be linked, and
//! removals that the graph is to be mended.
//!
//! Who links holds a shard's lock for two moments, to take vectors and a view of the index, and to make the links that were
//! chosen in the view. Nothing of what commands see changes by that, so it is neither told to anybody nor recorded; a
//! snapshot that has still to save the value, or is writing it, has it as it was.

use super::Keyspace;
use crate::types::Variant;
use crate::types::vector_set::{Linking, Plan, Training, VectorSet};

pub use crate::types::vector_set::plan;

/// Vectors that are linked in one go. What is added meanwhile copies the last blocks of the index once for each view.
pub const BATCH: usize = 4;

/// What there is to do for a key.
pub enum Next {
    /// Nothing.
    Nothing,
    /// Something, but a snapshot that has still to save the value has no room for it.
    Later,
    /// This.
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
    // Only what is changed is looked at as changed.
    data.entry(database, at).aggregate().and_then(VectorSet::of).filter(|set| set.has_work())?;
    let result = data.edit(database, at, |slot| slot.aggregate_mut().and_then(VectorSet::of_mut).map(edit));
    let growth = keyspace.release(hash.shard(), data);
    keyspace.publish_bytes(growth);
    result
}

/// How much there is to do for a key: vectors to be linked, and slots to be given back. The caller holds no lock.
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

/// Begins to make the lists of a key's index, if it is time and nobody does it. The caller holds no lock.
pub fn begin_training(keyspace: &Keyspace, database: usize, key: &[u8]) -> Option<Box<Training>> {
    edit(keyspace, database, key, VectorSet::begin_training).flatten().map(Box::new)
}

/// Tells a training what has changed of the index; whether it is to go on. The caller holds no lock.
pub fn advance_training(keyspace: &Keyspace, database: usize, key: &[u8], training: &mut Training) -> bool {
    edit(keyspace, database, key, |set| set.advance_training(training)).unwrap_or(false)
}

/// Makes links, and returns how many vectors of the key are left to be linked. The caller holds no lock.
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

/// Gives slots of removed vectors of a key back, up to a batch, and returns how many are left. The caller holds no lock.
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
