//! The shard locks that a worker holds.

use crate::entries::hash::KeyHash;
use crate::keyspace::Keyspace;
use crate::keyspace::shard::ShardData;
use crate::sync::MutexGuard;
use crate::turn::Turn;

/// The shard locks that a worker holds. The worker keeps them from one command to the next while the next command needs
/// the same locks: a pipeline on one shard locks it once.
pub enum Guards<'k> {
    /// The worker holds no lock.
    None,
    /// The worker holds the lock of one shard.
    One(usize, MutexGuard<'k, ShardData>),
    /// The worker holds the locks of several shards, in ascending order.
    Many(Vec<(usize, MutexGuard<'k, ShardData>)>),
    /// A transaction holds the locks of several shards, in ascending order, across several commands whose keys are all
    /// in these shards. Only [`Guards::unpin`] releases them.
    Pinned(Vec<(usize, MutexGuard<'k, ShardData>)>),
    /// An offloaded call holds no locks, but shards of its own, in ascending order, with the borrowed values of its
    /// keys.
    Borrowed(Vec<(usize, Box<ShardData>)>),
}

/// The panic message if a command accesses a shard that is not locked.
const NAMED: &str = "the command's key specification names every key it touches";

/// Returns the index of a shard in an ascending list.
fn place_of<T>(shards: &[(usize, T)], wanted: usize) -> Option<usize> {
    shards.binary_search_by_key(&wanted, |&(shard, _)| shard).ok()
}

impl<'k> Guards<'k> {
    /// Releases all locks unless they are pinned, and adds the growth of the released shards to `turn`.
    #[inline]
    pub fn release(&mut self, keyspace: &'k Keyspace, turn: &mut Turn) {
        if !matches!(self, Guards::None | Guards::Pinned(_) | Guards::Borrowed(_)) {
            self.give_back(keyspace, turn);
        }
    }

    #[inline(always)]
    fn give_back(&mut self, keyspace: &'k Keyspace, turn: &mut Turn) {
        match std::mem::replace(self, Guards::None) {
            Guards::None => {}
            Guards::One(shard, data) => turn.growth_bytes += keyspace.release(shard, data),
            several => several.give_back_many(keyspace, turn),
        }
    }

    #[inline(never)]
    fn give_back_many(self, keyspace: &'k Keyspace, turn: &mut Turn) {
        if let Guards::Many(held) | Guards::Pinned(held) = self {
            for (shard, data) in held {
                turn.growth_bytes += keyspace.release(shard, data);
            }
        }
    }

    /// Holds the locks of `shards` until [`Guards::unpin`], whichever locks the commands until then request.
    pub fn pin(&mut self, keyspace: &'k Keyspace, turn: &mut Turn, shards: &mut Vec<usize>) {
        self.hold_many(keyspace, turn, shards);
        if let Guards::Many(held) = std::mem::replace(self, Guards::None) {
            *self = Guards::Pinned(held);
        }
    }

    /// Releases pinned locks.
    pub fn unpin(&mut self, keyspace: &'k Keyspace, turn: &mut Turn) {
        self.give_back(keyspace, turn);
    }

    /// Returns whether the lock of a shard is held.
    pub fn holds(&self, wanted: usize) -> bool {
        match self {
            Guards::None => false,
            Guards::One(shard, _) => *shard == wanted,
            Guards::Many(held) | Guards::Pinned(held) => place_of(held, wanted).is_some(),
            Guards::Borrowed(borrowed) => place_of(borrowed, wanted).is_some(),
        }
    }

    /// Holds the lock of the shard of `hash`, and no other.
    #[inline(always)]
    pub fn hold_one(&mut self, keyspace: &'k Keyspace, turn: &mut Turn, hash: KeyHash) {
        let wanted = hash.shard();
        match self {
            Guards::One(shard, _) if *shard == wanted => {}
            Guards::Pinned(_) | Guards::Borrowed(_) => {}
            _ => {
                self.give_back(keyspace, turn);
                *self = Guards::One(wanted, keyspace.lock(wanted));
            }
        }
    }

    /// Sorts `shards`, removes duplicates, and holds the locks of all these shards. Taking the locks in ascending order
    /// prevents deadlocks between workers.
    pub fn hold_many(&mut self, keyspace: &'k Keyspace, turn: &mut Turn, shards: &mut Vec<usize>) {
        if matches!(self, Guards::Pinned(_) | Guards::Borrowed(_)) {
            return;
        }
        self.give_back(keyspace, turn);
        shards.sort_unstable();
        shards.dedup();
        *self = Guards::Many(shards.iter().map(|&shard| (shard, keyspace.lock(shard))).collect());
    }

    /// Returns the mutable data of a locked shard.
    ///
    /// # Panics
    /// Panics if the shard's lock is not held.
    #[inline]
    pub(crate) fn shard_mut(&mut self, wanted: usize) -> &mut ShardData {
        if !matches!(self, Guards::One(shard, _) if *shard == wanted) {
            return self.shard_of_several(wanted);
        }
        let Guards::One(_, data) = self else { unreachable!("it was just compared") };
        data
    }

    #[inline(never)]
    fn shard_of_several(&mut self, wanted: usize) -> &mut ShardData {
        match self {
            Guards::Many(held) | Guards::Pinned(held) => {
                let at = place_of(held, wanted).expect(NAMED);
                &mut held[at].1
            }
            Guards::Borrowed(borrowed) => {
                let at = place_of(borrowed, wanted).expect(NAMED);
                &mut borrowed[at].1
            }
            _ => panic!("{NAMED}"),
        }
    }

    /// Returns the data of a locked shard.
    ///
    /// # Panics
    /// Panics if the shard's lock is not held.
    pub fn data(&self, wanted: usize) -> &ShardData {
        match self {
            Guards::One(shard, data) if *shard == wanted => data,
            Guards::Many(held) | Guards::Pinned(held) => &held[place_of(held, wanted).expect(NAMED)].1,
            Guards::Borrowed(borrowed) => &borrowed[place_of(borrowed, wanted).expect(NAMED)].1,
            _ => panic!("{NAMED}"),
        }
    }
}
