//! Cuckoo filters: like Bloom filters, but items can be removed, and additions can be counted (Fan, Andersen, Kaminsky,
//! Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom", 2014).
//!
//! An item is a fingerprint of 8 bits in one of its two buckets. A filter is a chain of tables; when the last table has
//! no space for a fingerprint even after others were moved, a larger one follows it.

use super::blocks::Blocks;
use super::{BYTES_MAX, TooLarge};
use crate::algorithms::murmur::murmur64a;
use crate::memory::moving::Mover;
use crate::memory::{buffer_bytes, size_class};
use crate::types::collection::Collection;
use crate::types::value::ValueType;

/// The default number of fingerprints per bucket.
pub const BUCKET_SIZE_DEFAULT: u16 = 2;
/// The default number of fingerprints that are moved for a new one.
pub const ITERATIONS_DEFAULT: u16 = 20;
/// The default factor by which a filter grows.
pub const EXPANSION_DEFAULT: u16 = 1;
/// The maximum number of fingerprints per bucket.
pub const BUCKET_SIZE_MAX: u16 = 255;

/// The maximum number of tables of a filter to which items are added, as in RedisBloom.
const TABLES_MAX: usize = 32;

/// The maximum bytes of a table: RedisBloom's positions have 32 bits.
const TABLE_BYTES_MAX: u64 = u32::MAX as u64;

/// The fingerprint of an empty place.
const EMPTY: u8 = 0;

/// The multiplier with which a fingerprint determines the second bucket.
const MULTIPLIER: u64 = 0x5BD1_E995;

/// The bytes of RedisBloom's structures of a filter and of a table, which `CF.INFO` adds to those of the buckets.
const FILTER_BYTES: u64 = 40;
const TABLE_BYTES: u64 = 16;

/// The bytes of the header of `CF.SCANDUMP`.
pub const HEADER_BYTES: usize = 38;

/// The parameters and counters of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The number of buckets of the first table, a power of two unless the filter was loaded.
    pub buckets: u64,
    /// The number of items.
    pub items: u64,
    /// The number of removals since the filter was last compacted.
    pub deletes: u64,
    /// The number of fingerprints per bucket.
    pub bucket_size: u16,
    /// The number of fingerprints that are moved for a new one.
    pub iterations: u16,
    /// The factor by which the filter grows; 0 if it does not.
    pub expansion: u16,
}

#[derive(Clone, Debug)]
struct Table {
    buckets: u64,
    places: Blocks,
}

#[derive(Clone, Debug)]
struct Filter {
    facts: Facts,
    tables: Vec<Table>,
}

/// The value of a key that holds a cuckoo filter. The empty value has no tables yet.
#[derive(Clone, Debug, Default)]
pub struct Cuckoo(Option<Box<Filter>>);

/// The reason why an item was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdded {
    /// The filter seems to contain the item, and only new items are added.
    Exists,
    /// There is no space, and the filter does not grow.
    NoSpace,
    /// The next table would be too large.
    TooLarge,
}

/// A fingerprint with the numbers that determine its buckets.
#[derive(Clone, Copy)]
struct Fingerprint {
    value: u8,
    first: u64,
    second: u64,
}

/// Returns the number that determines the other bucket of a fingerprint.
fn other(value: u8, number: u64) -> u64 {
    number ^ u64::from(value).wrapping_mul(MULTIPLIER)
}

/// Returns the number of bytes of tables.
fn bytes_of(tables: &[Table]) -> usize {
    tables.iter().map(|table| table.places.len()).sum()
}

/// Returns whether removals exceed a tenth of the items.
fn needs_compaction(items: u64, deletes: u64) -> bool {
    deletes as f64 > items as f64 * 0.1
}

impl Fingerprint {
    fn of(item: &[u8]) -> Fingerprint {
        let hash = murmur64a(item, 0);
        let value = (hash % 255 + 1) as u8;
        Fingerprint { value, first: hash, second: other(value, hash) }
    }
}

impl Table {
    /// Returns an empty table with `buckets` buckets of `bucket_size`.
    fn new(buckets: u64, bucket_size: u16) -> Result<Table, TooLarge> {
        let bytes = buckets.checked_mul(bucket_size.into());
        let bytes = bytes.filter(|bytes| (1..=TABLE_BYTES_MAX).contains(bytes)).ok_or(TooLarge)?;
        Ok(Table { buckets, places: Blocks::zeros(bytes as usize) })
    }

    /// Returns the places of the bucket that `number` determines.
    fn bucket(&self, number: u64, size: usize) -> std::ops::Range<usize> {
        let start = (number % self.buckets) as usize * size;
        start..start + size
    }

    /// Returns the first place with `value` in the two buckets of a fingerprint.
    fn find(&self, of: &Fingerprint, value: u8, size: usize) -> Option<usize> {
        let mut places = self.bucket(of.first, size).chain(self.bucket(of.second, size));
        places.find(|&at| self.places.get(at) == value)
    }

    fn count(&self, of: &Fingerprint, size: usize) -> u64 {
        let places = self.bucket(of.first, size).chain(self.bucket(of.second, size));
        places.filter(|&at| self.places.get(at) == of.value).count() as u64
    }

    /// Moves up to `iterations` fingerprints to their other buckets until one finds an empty place, so that the given
    /// one has a place; otherwise changes nothing. Returns whether it has succeeded.
    fn insert_by_moving(&mut self, of: &Fingerprint, size: usize, iterations: u16) -> bool {
        let mut value = of.value;
        let mut victim = 0;
        let mut bucket = of.first % self.buckets;
        for _ in 0..iterations {
            let at = bucket as usize * size + victim;
            let moved = self.places.get(at);
            self.places.set(at, value);
            value = moved;
            bucket = other(value, bucket) % self.buckets;
            let places = bucket as usize * size..(bucket as usize + 1) * size;
            if let Some(at) = places.into_iter().find(|&at| self.places.get(at) == EMPTY) {
                self.places.set(at, value);
                return true;
            }
            victim = (victim + 1) % size;
        }
        for _ in 0..iterations {
            victim = (victim + size - 1) % size;
            bucket = other(value, bucket) % self.buckets;
            let at = bucket as usize * size + victim;
            let moved = self.places.get(at);
            self.places.set(at, value);
            value = moved;
        }
        false
    }
}

impl Filter {
    fn size(&self) -> usize {
        self.facts.bucket_size.into()
    }

    /// Returns the number of buckets of the table at `index`.
    fn buckets_at(facts: &Facts, index: usize) -> Option<u64> {
        let factor = f64::from(facts.expansion).powi(i32::try_from(index).ok()?);
        // A factor of 2^53 or more exceeds the limit of a table.
        (factor < (1u64 << 53) as f64).then(|| facts.buckets.checked_mul(factor as u64))?
    }

    fn grow(&mut self) -> Result<(), TooLarge> {
        let buckets = Filter::buckets_at(&self.facts, self.tables.len()).ok_or(TooLarge)?;
        let table = Table::new(buckets, self.facts.bucket_size)?;
        if table.places.len() > BYTES_MAX - bytes_of(&self.tables) {
            return Err(TooLarge);
        }
        self.tables.push(table);
        Ok(())
    }

    fn insert(&mut self, of: &Fingerprint) -> Result<(), NotAdded> {
        let size = self.size();
        loop {
            for table in self.tables.iter_mut().rev() {
                if let Some(at) = table.find(of, EMPTY, size) {
                    table.places.set(at, of.value);
                    self.facts.items = self.facts.items.wrapping_add(1);
                    return Ok(());
                }
            }
            let last = self.tables.last_mut().expect("a filter has tables");
            if last.insert_by_moving(of, size, self.facts.iterations) {
                self.facts.items = self.facts.items.wrapping_add(1);
                return Ok(());
            }
            if self.facts.expansion == 0 {
                return Err(NotAdded::NoSpace);
            }
            self.grow().map_err(|TooLarge| NotAdded::TooLarge)?;
        }
    }

    /// Moves the fingerprints of the table at `index` to the tables before it, and removes the table if it is the last
    /// one and all of them have found a place. Returns whether they have.
    fn compact_table(&mut self, index: usize) -> bool {
        let size = self.size();
        let (earlier, table) = self.tables.split_at_mut(index);
        let table = &mut table[0];
        let mut is_emptied = true;
        let mut next = 0;
        while let Some((at, value)) = table.places.find_set(next) {
            // Earlier tables have at most as many buckets, so the number of the bucket determines the buckets there.
            let bucket = (at / size) as u64;
            let of = Fingerprint { value, first: bucket, second: other(value, bucket) };
            let found = earlier.iter_mut().find_map(|table| Some((table.find(&of, EMPTY, size)?, table)));
            match found {
                Some((place, earlier)) => {
                    earlier.places.set(place, value);
                    table.places.set(at, EMPTY);
                }
                None => is_emptied = false,
            }
            next = at + 1;
        }
        if is_emptied && index + 1 == self.tables.len() {
            self.tables.pop();
        }
        is_emptied
    }

    /// Compacts the tables from the last one on; unless `continues`, only until one cannot be emptied.
    fn compact(&mut self, continues: bool) {
        for index in (1..self.tables.len()).rev() {
            if !self.compact_table(index) && !continues {
                break;
            }
        }
        self.facts.deletes = 0;
    }
}

impl Cuckoo {
    fn filter(&self) -> &Filter {
        self.0.as_deref().expect("a filter that is kept has tables")
    }

    fn filter_mut(&mut self) -> &mut Filter {
        self.0.as_deref_mut().expect("a filter that is kept has tables")
    }

    /// Returns an empty filter for `capacity` items. The bucket size must not be 0.
    ///
    /// # Errors
    /// Returns an error if the table would be too large.
    pub fn new(capacity: u64, bucket_size: u16, iterations: u16, expansion: u16) -> Result<Cuckoo, TooLarge> {
        let buckets =
            (capacity / u64::from(bucket_size)).max(1).checked_next_power_of_two().ok_or(TooLarge)?;
        let expansion =
            if expansion == 0 { 0 } else { expansion.checked_next_power_of_two().ok_or(TooLarge)? };
        let facts = Facts { buckets, items: 0, deletes: 0, bucket_size, iterations, expansion };
        let tables = vec![Table::new(buckets, bucket_size)?];
        Ok(Cuckoo(Some(Box::new(Filter { facts, tables }))))
    }

    /// Returns a filter with these tables, each the number of its buckets and their bytes; `None` if the values
    /// contradict each other.
    pub fn from_tables(facts: Facts, tables: impl IntoIterator<Item = (u64, Blocks)>) -> Option<Cuckoo> {
        let fits = |buckets: u64, places: &Blocks| {
            let bytes = buckets.checked_mul(facts.bucket_size.into());
            bytes.is_some_and(|bytes| (1..=TABLE_BYTES_MAX).contains(&bytes) && bytes == places.len() as u64)
        };
        let table = |(buckets, places)| fits(buckets, &places).then_some(Table { buckets, places });
        let tables: Vec<Table> = tables.into_iter().map(table).collect::<Option<_>>()?;
        let is_valid = (1..=BUCKET_SIZE_MAX).contains(&facts.bucket_size)
            && (1..=usize::from(u16::MAX)).contains(&tables.len())
            && bytes_of(&tables) <= BYTES_MAX
            && facts.buckets > 0;
        is_valid.then(|| Cuckoo(Some(Box::new(Filter { facts, tables }))))
    }

    /// Returns the parameters and counters.
    pub fn facts(&self) -> &Facts {
        &self.filter().facts
    }

    /// Returns the tables, each the number of its buckets and their bytes.
    pub fn tables(&self) -> impl ExactSizeIterator<Item = (u64, &Blocks)> {
        self.filter().tables.iter().map(|table| (table.buckets, &table.places))
    }

    /// Returns whether the filter has so many tables that no item is added.
    pub fn has_many_tables(&self) -> bool {
        self.filter().tables.len() >= TABLES_MAX
    }

    /// Adds an item, or only a new one if `is_unique`. O(tables + iterations).
    ///
    /// # Errors
    /// Returns an error if the item was not added.
    pub fn add(&mut self, item: &[u8], is_unique: bool) -> Result<(), NotAdded> {
        let of = Fingerprint::of(item);
        if is_unique && self.contains_fingerprint(&of) {
            return Err(NotAdded::Exists);
        }
        self.filter_mut().insert(&of)
    }

    fn contains_fingerprint(&self, of: &Fingerprint) -> bool {
        let filter = self.filter();
        filter.tables.iter().any(|table| table.find(of, of.value, filter.size()).is_some())
    }

    /// Returns whether the filter seems to contain an item. O(tables).
    pub fn contains(&self, item: &[u8]) -> bool {
        self.contains_fingerprint(&Fingerprint::of(item))
    }

    /// Returns an estimate of how often an item is in the filter. O(tables).
    pub fn count(&self, item: &[u8]) -> u64 {
        let (filter, of) = (self.filter(), Fingerprint::of(item));
        filter.tables.iter().map(|table| table.count(&of, filter.size())).sum()
    }

    /// Removes an item once; returns whether the filter seemed to contain it. O(tables), or O(bytes) when the removals
    /// since the filter was last compacted exceed a tenth of its items.
    pub fn remove(&mut self, item: &[u8]) -> bool {
        let of = Fingerprint::of(item);
        let filter = self.filter_mut();
        let size = filter.size();
        for table in filter.tables.iter_mut().rev() {
            let Some(at) = table.find(&of, of.value, size) else { continue };
            table.places.set(at, EMPTY);
            filter.facts.items = filter.facts.items.wrapping_sub(1);
            filter.facts.deletes = filter.facts.deletes.wrapping_add(1);
            if filter.tables.len() > 1 && needs_compaction(filter.facts.items, filter.facts.deletes) {
                filter.compact(false);
            }
            return true;
        }
        false
    }

    /// Returns whether the filter is compacted after the next removal.
    pub fn compacts_after_removal(&self) -> bool {
        let Facts { items, deletes, .. } = self.filter().facts;
        self.filter().tables.len() > 1 && needs_compaction(items.wrapping_sub(1), deletes.wrapping_add(1))
    }

    /// Moves items to earlier tables, and removes the last tables that are then empty. O(bytes).
    pub fn compact(&mut self) {
        self.filter_mut().compact(true);
    }

    /// Returns the size in bytes that RedisBloom reports for the filter. O(tables).
    pub fn reported_bytes(&self) -> u64 {
        let filter = self.filter();
        FILTER_BYTES + filter.tables.len() as u64 * TABLE_BYTES + bytes_of(&filter.tables) as u64
    }

    /// Returns the number of bytes of all tables. O(tables).
    pub fn bytes(&self) -> usize {
        bytes_of(&self.filter().tables)
    }

    /// Returns the header of `CF.SCANDUMP`: everything except the buckets.
    pub fn header(&self) -> Vec<u8> {
        let Filter { facts, tables } = self.filter();
        let mut header = Vec::with_capacity(HEADER_BYTES);
        for number in [facts.items, facts.buckets, facts.deletes, tables.len() as u64] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        for number in [facts.bucket_size, facts.iterations, facts.expansion] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        header
    }

    /// Returns the filter with this header, whose buckets are empty; `None` if the header is invalid. O(tables).
    pub fn from_header(header: &[u8; HEADER_BYTES]) -> Option<Cuckoo> {
        let (numbers, rest) = header.as_chunks::<8>();
        let number = |at: usize| u64::from_le_bytes(numbers[at]);
        let (items, buckets, deletes, count) = (number(0), number(1), number(2), number(3));
        let (small, _) = rest.as_chunks::<2>();
        let small = |at: usize| u16::from_le_bytes(small[at]);
        let (bucket_size, iterations, expansion) = (small(0), small(1), small(2));
        let facts = Facts { buckets, items, deletes, bucket_size, iterations, expansion };
        if iterations == 0 || !buckets.is_power_of_two() || count > u16::MAX.into() {
            return None;
        }
        let table = |index: usize| {
            let buckets = Filter::buckets_at(&facts, index)?;
            Table::new(buckets, bucket_size).ok().map(|table| (buckets, table.places))
        };
        Cuckoo::from_tables(facts, (0..count as usize).map(table).collect::<Option<Vec<_>>>()?)
    }

    /// Returns the bytes at `position`, which begins at 1, and the next position; `None` at the end. A table of up to
    /// `bytes_max` is returned as a whole, wherever in it the position lies, as RedisBloom does.
    pub fn chunk(&self, position: i64, bytes_max: usize) -> Option<(i64, Vec<u8>)> {
        let mut offset = usize::try_from(position.checked_sub(1)?).ok()?;
        for table in &self.filter().tables {
            let len = table.places.len();
            if offset >= len {
                offset -= len;
                continue;
            }
            let range = if len <= bytes_max { 0..len } else { offset..len.min(offset + bytes_max) };
            let bytes = table.places.to_vec(range);
            return Some((position.saturating_add(bytes.len() as i64), bytes));
        }
        None
    }

    /// Stores bytes that end before `position`; returns whether they have changed. Returns `None`, and changes nothing,
    /// if the bytes do not belong to one table.
    pub fn load_chunk(&mut self, position: i64, bytes: &[u8]) -> Option<bool> {
        let end = usize::try_from(position.checked_sub(1)?).ok()?;
        let mut offset = end.checked_sub(bytes.len()).filter(|_| !bytes.is_empty())?;
        for table in &mut self.filter_mut().tables {
            let len = table.places.len();
            if offset < len {
                return (bytes.len() <= len - offset).then(|| table.places.write(offset, bytes));
            }
            offset -= len;
        }
        None
    }
}

impl Collection for Cuckoo {
    const TYPE: ValueType = ValueType::Cuckoo;

    fn encoding_name(&self) -> &'static str {
        "raw"
    }

    fn memory_bytes(&self) -> usize {
        let Some(filter) = self.0.as_deref() else { return 0 };
        let places: usize = filter.tables.iter().map(|table| table.places.memory_bytes()).sum();
        size_class(size_of::<Filter>()) + buffer_bytes(&filter.tables) + places
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |filter| usize::try_from(filter.facts.items).unwrap_or(usize::MAX))
    }

    fn is_vacant(&self) -> bool {
        self.0.is_none()
    }

    fn free_effort(&self) -> usize {
        self.0.as_ref().map_or(0, |filter| filter.tables.iter().map(|table| 1 + table.places.count()).sum())
    }

    fn move_inside(&mut self, _: u64, _: usize, mover: &mut Mover<'_>) -> u64 {
        if let Some(filter) = &mut self.0 {
            mover.move_vec(&mut filter.tables);
        }
        0
    }

    fn is_shared_in_parts(&self) -> bool {
        true
    }

    fn check_invariants(&self) {
        let Some(filter) = &self.0 else { return };
        assert!(!filter.tables.is_empty());
        for table in &filter.tables {
            assert_eq!(table.places.len() as u64, table.buckets * u64::from(filter.facts.bucket_size));
            table.places.check_invariants();
        }
    }
}
