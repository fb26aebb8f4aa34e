//! The index of the history: for each changed key, its versions in the order of their numbers, and the exchanges of
//! databases. Pure: it neither reads nor writes records.
//!
//! ```text
//! key       (database name, name) → versions: number, time, operation, stored state
//! first     of a key's versions may be a *base*: the state since before the history's oldest number
//! database  a name that an exchange does not change; `names` maps numbers to names
//! ```
//!
//! Numbers and times rise together, so a moment is a number or a time. A key without versions is unchanged since the
//! oldest moment: its current value is the answer.

use std::collections::{HashMap, HashSet, VecDeque};

use ember_storage::segments::{Location, SegmentNumber};

/// The memory of a key in bytes beyond its name: the table's bucket, the name's allocation, and the list of versions.
const KEY_BYTES: usize = 112;

/// The memory of a version in bytes.
const VERSION_BYTES: usize = size_of::<Version>();

/// A key of the history: the name of its database, and its name.
pub(super) type Key = (usize, Box<[u8]>);

/// The location of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// The key did not exist.
    Absent,
    /// The record of the value.
    At(Location),
    /// The state was not recorded.
    Lost,
}

/// A state of a key with the change that has created it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    /// The number of the change; of a base, that of the last change before it, or 0.
    pub(super) number: u64,
    /// The Unix time in ms of the change; the minimum for a base.
    pub(super) at_ms: i64,
    /// The operation that changed the key.
    pub(super) operation: &'static str,
    pub(super) stored: Stored,
}

impl Version {
    /// Replaces a location in the segment `leaving` with the one in `carried`.
    fn leave(&mut self, leaving: SegmentNumber, carried: &HashMap<u64, Stored>) {
        if let Stored::At(location) = self.stored
            && location.segment() == leaving
        {
            self.stored = carried.get(&location.to_bits()).copied().unwrap_or(Stored::Lost);
        }
    }
}

/// A moment of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) number: u64,
    pub(super) at_ms: i64,
}

/// A state that was found in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The key is unchanged since the moment; the name of its database.
    Unchanged(usize),
    /// The state is stored here.
    Stored(Stored),
}

/// An exchange of two databases.
#[derive(Debug)]
struct Swap {
    moment: Moment,
    /// The names of the databases after the exchange.
    names: Vec<usize>,
}

/// The first change in a segment of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentStart {
    pub(super) segment: SegmentNumber,
    pub(super) first: Moment,
}

/// The index.
#[derive(Debug)]
pub(super) struct Index {
    keys: HashMap<Key, VecDeque<Version>>,
    /// The names of the databases at the oldest moment.
    oldest_names: Vec<usize>,
    swaps: VecDeque<Swap>,
    /// The keys whose past was erased, with the Unix time in ms of that.
    forgotten: HashMap<Key, i64>,
    /// The segments in their order; the first change of the first one may be older than `oldest`.
    pub(super) segments: VecDeque<SegmentStart>,
    /// The moment at which the history begins.
    pub(super) oldest: Moment,
    /// The last change.
    pub(super) last: Moment,
    pub(super) versions: usize,
    name_bytes: usize,
}

impl Index {
    /// Returns an empty index of a server with this number of databases; the history begins at `oldest`.
    pub(super) fn new(databases: usize, oldest: Moment) -> Index {
        Index {
            keys: HashMap::new(),
            oldest_names: (0..databases).collect(),
            swaps: VecDeque::new(),
            forgotten: HashMap::new(),
            segments: VecDeque::new(),
            oldest,
            last: oldest,
            versions: 0,
            name_bytes: 0,
        }
    }

    /// Returns the memory of the index in bytes, approximately.
    pub(super) fn bytes(&self) -> usize {
        self.versions * VERSION_BYTES + self.keys.len() * KEY_BYTES + self.name_bytes
    }

    /// Returns the number of keys with versions.
    pub(super) fn keys(&self) -> usize {
        self.keys.len()
    }

    /// Returns the current names of the databases.
    pub(super) fn names(&self) -> &[usize] {
        self.swaps.back().map_or(&self.oldest_names, |swap| &swap.names)
    }

    /// Returns the names of the databases after the change with this number.
    pub(super) fn names_at_number(&self, number: u64) -> &[usize] {
        let after = self.swaps.iter().rev().find(|swap| swap.moment.number <= number);
        after.map_or(&self.oldest_names, |swap| &swap.names)
    }

    fn names_at(&self, at_ms: i64) -> &[usize] {
        let after = self.swaps.iter().rev().find(|swap| swap.moment.at_ms <= at_ms);
        after.map_or(&self.oldest_names, |swap| &swap.names)
    }

    /// Removes all versions: the history begins at `oldest`. Databases keep their names.
    pub(super) fn restart(&mut self, oldest: Moment) {
        self.oldest_names = self.names().to_vec();
        self.swaps.clear();
        self.forgotten.clear();
        self.keys.clear();
        self.segments.clear();
        (self.oldest, self.versions, self.name_bytes) = (oldest, 0, 0);
    }

    /// Adds the exchange of two databases.
    pub(super) fn swap(&mut self, moment: Moment, one: usize, other: usize) {
        let mut names = self.names().to_vec();
        names.swap(one, other);
        self.swaps.push_back(Swap { moment, names });
        self.last = moment;
    }

    /// Removes the versions of a key: its past before `at_ms` is erased.
    pub(super) fn forget(&mut self, key: Key, at_ms: i64) {
        if let Some(versions) = self.keys.remove(&key) {
            self.versions -= versions.len();
            self.name_bytes -= key.1.len();
        }
        self.forgotten.insert(key, at_ms);
    }

    /// Returns the Unix time in ms up to which the past of a key is erased, if that is not before `at_ms`. The key is
    /// the one that had this name at `at_ms`.
    pub(super) fn forgotten_up_to(&self, database: usize, name: &[u8], at_ms: i64) -> Option<i64> {
        if self.forgotten.is_empty() {
            return None;
        }
        let key = (self.names_at(at_ms)[database], Box::from(name));
        self.forgotten.get(&key).copied().filter(|&up_to_ms| at_ms < up_to_ms)
    }

    /// Returns whether the key has versions.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.keys.contains_key(key)
    }

    /// Adds a base to a key without versions: the state before its first version.
    pub(super) fn add_base(&mut self, key: &Key, stored: Stored) {
        self.push(key, Version { number: 0, at_ms: i64::MIN, operation: "", stored });
    }

    /// Adds a version to a key. A version with the number of the last one replaces that version.
    pub(super) fn add(&mut self, key: &Key, version: Version) {
        self.last = Moment { number: version.number, at_ms: version.at_ms };
        if let Some(versions) = self.keys.get_mut(key)
            && let Some(last) = versions.back_mut().filter(|last| last.number == version.number)
        {
            *last = version;
            return;
        }
        self.push(key, version);
    }

    fn push(&mut self, key: &Key, version: Version) {
        self.versions += 1;
        if let Some(versions) = self.keys.get_mut(key) {
            versions.push_back(version);
            return;
        }
        self.name_bytes += key.1.len();
        self.keys.insert(key.clone(), VecDeque::from([version]));
    }

    /// Returns the state of a key at a time that is not before the oldest moment.
    pub(super) fn at(&self, database: usize, name: &[u8], at_ms: i64) -> Found {
        let named = self.names_at(at_ms)[database];
        self.found((named, name.into()), |version| version.at_ms <= at_ms)
    }

    /// Returns the state of a key after the change with this number, which is not older than the history.
    pub(super) fn at_number(&self, database: usize, name: &[u8], number: u64) -> Found {
        let named = self.names_at_number(number)[database];
        self.found((named, name.into()), |version| version.number <= number)
    }

    fn found(&self, key: Key, is_before: impl Fn(&Version) -> bool) -> Found {
        let Some(versions) = self.keys.get(&key) else { return Found::Unchanged(key.0) };
        match versions.partition_point(is_before).checked_sub(1) {
            Some(at) => Found::Stored(versions[at].stored),
            // Every list begins with a base, unless the state before its first version is unknown.
            None => Found::Stored(Stored::Lost),
        }
    }

    /// Returns the versions of a key with numbers up to `last`, in their order, each with its state: the changes of the
    /// key, and the exchanges of databases after which another key had its name.
    pub(super) fn versions(&self, database: usize, name: &[u8], last: u64) -> Vec<(Version, Found)> {
        let mut all = Vec::new();
        let mut named = self.oldest_names[database];
        let mut from = 1;
        let swaps = self.swaps.iter().filter(|swap| swap.moment.number <= last);
        let ends = swaps.map(|swap| (Some(swap), swap.moment.number)).chain([(None, last.saturating_add(1))]);
        for (swap, end) in ends {
            let key = (named, Box::from(name));
            let of_key = self.keys.get(&key).into_iter().flatten();
            let within =
                of_key.filter(|version| version.at_ms != i64::MIN && (from..end).contains(&version.number));
            all.extend(within.map(|version| (*version, Found::Stored(version.stored))));
            if let Some(swap) = swap {
                let before = self.at_number(database, name, end - 1);
                let after = self.at_number(database, name, end);
                from = end;
                if swap.names[database] != named {
                    named = swap.names[database];
                    let absent = Found::Stored(Stored::Absent);
                    if (before, after) != (absent, absent) {
                        let Moment { number, at_ms } = swap.moment;
                        // A swap and changes in one transaction have one number: the last of them counts.
                        all.retain(|(version, _)| version.number != number);
                        let stored = Stored::Lost;
                        all.push((Version { number, at_ms, operation: "swapdb", stored }, after));
                        from = end + 1;
                    }
                }
            }
        }
        all
    }

    /// Returns the state of a key at a time if it cannot change any more, because the key has a later version.
    pub(super) fn settled(&self, database: usize, name: &[u8], at_ms: i64) -> Option<Stored> {
        let key = (self.names_at(at_ms)[database], Box::from(name));
        let versions = self.keys.get(&key)?;
        let next = versions.partition_point(|version| version.at_ms <= at_ms);
        (1..versions.len()).contains(&next).then(|| versions[next - 1].stored)
    }

    /// Replaces the segment `leaving`, which will be removed, by `segments`, in which its states are stored instead; see
    /// [`Index::retire`]. O(keys).
    pub(super) fn relocate(
        &mut self,
        leaving: SegmentNumber,
        carried: &HashMap<u64, Stored>,
        segments: Vec<SegmentNumber>,
    ) {
        for version in self.keys.values_mut().flatten() {
            version.leave(leaving, carried);
        }
        let Some(at) = self.segments.iter().position(|start| start.segment == leaving) else { return };
        let Some(SegmentStart { first, .. }) = self.segments.remove(at) else { return };
        for segment in segments.into_iter().rev() {
            if !self.segments.iter().any(|start| start.segment == segment) {
                self.segments.insert(at, SegmentStart { segment, first });
            }
        }
    }

    /// Returns the states of a key that are kept when the oldest moment becomes `oldest`: no state if the last version
    /// is older and has a number up to `forgettable`; otherwise the last state before `oldest` and all later ones.
    fn remaining(
        versions: &VecDeque<Version>,
        oldest: Moment,
        forgettable: u64,
    ) -> Option<std::ops::RangeFrom<usize>> {
        let older = versions.partition_point(|version| version.number < oldest.number);
        let is_forgettable = versions.back().is_some_and(|version| version.number <= forgettable);
        (older < versions.len() || !is_forgettable).then(|| older.saturating_sub(1)..)
    }

    /// Returns where the states are stored in the segment `leaving` that [`Index::retire`] keeps. O(keys).
    pub(super) fn kept_in(&self, leaving: SegmentNumber, oldest: Moment, forgettable: u64) -> HashSet<u64> {
        let mut kept = HashSet::new();
        for versions in self.keys.values() {
            if let Some(remaining) = Index::remaining(versions, oldest, forgettable) {
                kept.extend(versions.range(remaining).filter_map(|version| match version.stored {
                    Stored::At(location) if location.segment() == leaving => Some(location.to_bits()),
                    _ => None,
                }));
            }
        }
        kept
    }

    /// Moves the oldest moment to `oldest`: of each key, only the last state before it remains, as its base. Keys whose
    /// last version is older and has a number up to `forgettable` are removed. The segment `leaving` will be removed;
    /// `carried` contains where the states of [`Index::kept_in`] are stored instead. O(keys).
    pub(super) fn retire(
        &mut self,
        oldest: Moment,
        leaving: SegmentNumber,
        forgettable: u64,
        carried: &HashMap<u64, Stored>,
    ) {
        let (mut versions, mut name_bytes) = (0, 0);
        self.keys.retain(|key, list| {
            let Some(remaining) = Index::remaining(list, oldest, forgettable) else { return false };
            list.drain(..remaining.start);
            if let Some(base) = list.front_mut().filter(|version| version.number < oldest.number) {
                base.at_ms = i64::MIN;
            }
            list.iter_mut().for_each(|version| version.leave(leaving, carried));
            list.shrink_to(list.len() * 2);
            versions += list.len();
            name_bytes += key.1.len();
            true
        });
        while self.swaps.front().is_some_and(|swap| swap.moment.number < oldest.number)
            && let Some(swap) = self.swaps.pop_front()
        {
            self.oldest_names = swap.names;
        }
        self.segments.retain(|start| start.segment != leaving);
        self.forgotten.retain(|_, at_ms| *at_ms > oldest.at_ms);
        (self.oldest, self.versions, self.name_bytes) = (oldest, versions, name_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(segment: u64, offset: u64) -> Location {
        Location::from_bits(segment << 44 | offset << 22 | 1)
    }

    fn key(database: usize, name: &str) -> Key {
        (database, name.as_bytes().into())
    }

    fn version(number: u64, at_ms: i64, stored: Stored) -> Version {
        Version { number, at_ms, operation: "set", stored }
    }

    fn started() -> Index {
        Index::new(2, Moment { number: 1, at_ms: 100 })
    }

    #[test]
    fn a_state_is_that_of_the_last_version_up_to_the_time() {
        let mut index = started();
        assert_eq!(index.at(0, b"k", 100), Found::Unchanged(0));
        index.add_base(&key(0, "k"), Stored::Absent);
        index.add(&key(0, "k"), version(5, 110, Stored::At(location(0, 4))));
        index.add(&key(0, "k"), version(6, 110, Stored::At(location(0, 5))));
        index.add(&key(0, "k"), version(9, 120, Stored::Absent));
        for (at_ms, stored) in [
            (100, Stored::Absent),
            (109, Stored::Absent),
            (110, Stored::At(location(0, 5))),
            (119, Stored::At(location(0, 5))),
            (120, Stored::Absent),
        ] {
            assert_eq!(index.at(0, b"k", at_ms), Found::Stored(stored), "{at_ms}");
        }
        assert_eq!(index.versions(0, b"k", 6).len(), 2, "the base is no version");
    }

    #[test]
    fn changes_of_one_record_are_one_version() {
        let mut index = started();
        index.add_base(&key(0, "k"), Stored::Absent);
        index.add(&key(0, "k"), version(5, 110, Stored::At(location(0, 4))));
        index.add(&key(0, "k"), version(5, 110, Stored::Lost));
        assert_eq!(index.versions(0, b"k", 5).len(), 1);
        assert_eq!(index.at(0, b"k", 110), Found::Stored(Stored::Lost));
    }

    #[test]
    fn an_exchange_of_databases_puts_other_keys_in_their_place() {
        let mut index = started();
        index.add_base(&key(0, "k"), Stored::Absent);
        index.add(&key(0, "k"), version(5, 110, Stored::At(location(0, 4))));
        index.swap(Moment { number: 6, at_ms: 120 }, 0, 1);
        assert_eq!(index.names(), [1, 0]);
        assert_eq!(index.at(0, b"k", 119), Found::Stored(Stored::At(location(0, 4))));
        assert_eq!(index.at(0, b"k", 120), Found::Unchanged(1));
        assert_eq!(index.at(1, b"k", 119), Found::Unchanged(1));
        assert_eq!(index.at(1, b"k", 120), Found::Stored(Stored::At(location(0, 4))));
        let operations = |database: usize| -> Vec<&'static str> {
            index.versions(database, b"k", 9).iter().map(|(version, _)| version.operation).collect()
        };
        assert_eq!(operations(0), ["set", "swapdb"]);
        assert_eq!(operations(1), ["swapdb"]);
    }

    #[test]
    fn retirement_keeps_the_last_state_before_the_oldest_moment() {
        let mut index = started();
        for name in ["changed", "unchanged"] {
            index.add_base(&key(0, name), Stored::Absent);
            index.add(&key(0, name), version(5, 110, Stored::At(location(0, 4))));
            index.add(&key(0, name), version(6, 111, Stored::At(location(0, 5))));
        }
        index.add(&key(0, "changed"), version(8, 130, Stored::At(location(1, 4))));
        let oldest = Moment { number: 8, at_ms: 130 };
        let segment = location(0, 0).segment();
        let kept = index.kept_in(segment, oldest, 7);
        assert_eq!(kept, HashSet::from([location(0, 5).to_bits()]));
        let carried = HashMap::from([(location(0, 5).to_bits(), Stored::Absent)]);
        index.retire(oldest, segment, 7, &carried);
        assert_eq!((index.keys(), index.versions), (1, 2), "an unchanged key is forgotten");
        assert_eq!(index.at(0, b"changed", 130), Found::Stored(Stored::At(location(1, 4))));
        assert_eq!(index.at(0, b"unchanged", 130), Found::Unchanged(0));
        assert_eq!(index.versions(0, b"changed", 9).len(), 1);
    }
}
