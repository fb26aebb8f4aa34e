//! Linking of vectors outside of commands: an addition to a vector set only reports that there are vectors to link, and
//! a removal only reports that the graph needs repair.
//!
//! A linking thread takes a shard's lock twice, each time briefly: to take vectors and a view of the index, and to add
//! the links that it has chosen in the view. This changes nothing that commands can observe, so no client is notified
//! and nothing is recorded. A snapshot that has not saved the value yet, or is writing it, contains the unchanged
//! value.

use super::Keyspace;
use crate::types::Variant;
use crate::types::vector_set::{Linking, Plan, Training, VectorSet};

pub use crate::types::vector_set::plan;

/// The number of vectors linked per batch. An addition during a batch copies the last blocks of the index, once per
/// view.
pub const BATCH: usize = 4;

/// The next linking work on a key.
pub enum Next {
    /// The key has no work.
    Nothing,
    /// The key has work, but must wait for a snapshot that has not saved the value yet.
    Later,
    /// A batch of vectors to link.
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
    // Returns early if there is no work, because `edit` marks the value as changed.
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

/// Takes a batch of a key's pending vectors, and a view of the key's index. The caller holds no lock.
pub fn begin(keyspace: &Keyspace, database: usize, key: &[u8]) -> Next {
    let hash = keyspace.hash(key);
    if keyspace.lock(hash.shard()).must_wait(hash, key) {
        return Next::Later;
    }
    let linking = edit(keyspace, database, key, |set| set.begin_linking(BATCH));
    linking.flatten().map_or(Next::Nothing, |linking| Next::Linking(Box::new(linking)))
}

/// Begins to train the lists of a key's index, if training is due and no other thread trains them. The caller holds no
/// lock.
pub fn begin_training(keyspace: &Keyspace, database: usize, key: &[u8]) -> Option<Box<Training>> {
    edit(keyspace, database, key, VectorSet::begin_training).flatten().map(Box::new)
}

/// Passes the changes of the index to the training; returns whether the training continues. The caller holds no lock.
pub fn advance_training(keyspace: &Keyspace, database: usize, key: &[u8], training: &mut Training) -> bool {
    edit(keyspace, database, key, |set| set.advance_training(training)).unwrap_or(false)
}

/// Adds the links of `plans`, and returns the number of vectors of the key that are still to be linked. The caller
/// holds no lock.
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

/// Releases the slots of up to [`BATCH`] removed vectors of a key, and returns the number of removed vectors whose
/// slots remain. The caller holds no lock.
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
