//! A hash: fields with values, and an expiry for those that have one.
//!
//! | encoding | `OBJECT ENCODING` | stored as |
//! |---|---|---|
//! | [`packed`] pairs | `listpack` | one listpack: name, value, … |
//! | [`packed`] triplets | `listpackex` | the same with expiries, once a field has had one |
//! | [`table`] | `hashtable` | a hash table of entries, and an index of expiries |
//!
//! A hash takes the last form when it exceeds the configured limits, and never converts back.
//!
//! An expired field is invisible: look-ups compare its expiry with the current time. It is removed by
//! [`Collection::remove_expired`], before a command reads the hash or when the shard's expiry index is due. Each call
//! examines a limited number of fields, so an expired field may remain in memory, invisible.

mod due;
mod field;
mod packed;
mod random;
mod table;
#[cfg(test)]
mod tests;

pub use field::{Field, NewExpiry, NewField};

use crate::effects::journal::Names;
use crate::memory::moving::Mover;
use crate::memory::size_class;
use crate::types::collection::Collection;
use crate::types::limits::EncodingLimits;
use crate::types::listpack::Listpack;
use crate::types::value::ValueType;
use packed::{PAIR, TRIPLET};
use table::Table;

/// Fields with values.
#[derive(Clone)]
pub struct Hash(Fields);

#[derive(Clone)]
enum Fields {
    Pairs(Listpack),
    Triplets(Box<Listpack>),
    Table(Box<Table>),
}

/// A view of the two kinds of encodings; a listpack comes with its number of elements per field.
enum View<'a> {
    Packed(&'a Listpack, usize),
    Table(&'a Table),
}

impl Default for Hash {
    fn default() -> Hash {
        Hash(Fields::Pairs(Listpack::new()))
    }
}

impl Hash {
    #[inline]
    fn view(&self) -> View<'_> {
        match &self.0 {
            Fields::Pairs(list) => View::Packed(list, PAIR),
            Fields::Triplets(list) => View::Packed(list, TRIPLET),
            Fields::Table(table) => View::Table(table),
        }
    }

    /// Returns a hash of the fields in a listpack: name, value, name, value, … with unique names. O(fields).
    pub fn from_pairs(pairs: Listpack, limits: &EncodingLimits) -> Hash {
        let is_small = pairs.len() <= PAIR * limits.hash_max_listpack_entries
            && pairs.iter().all(|element| element.len_bytes() <= limits.hash_max_listpack_value);
        let mut hash = Hash(Fields::Pairs(pairs));
        if !is_small {
            hash.become_table();
        }
        hash
    }

    /// Returns the listpack of names and values, if that is the encoding. Files contain the same bytes.
    pub fn pairs(&self) -> Option<&Listpack> {
        match &self.0 {
            Fields::Pairs(list) => Some(list),
            Fields::Triplets(_) | Fields::Table(_) => None,
        }
    }

    /// Returns the listpack of names, values and expiries, if that is the encoding.
    pub fn triplets(&self) -> Option<&Listpack> {
        match &self.0 {
            Fields::Triplets(list) => Some(list),
            Fields::Pairs(_) | Fields::Table(_) => None,
        }
    }

    /// Returns the field `name`, if it exists and has not expired. O(1), or O(fields) while they are packed.
    #[inline]
    pub fn get(&self, name: &[u8], now_ms: i64) -> Option<Field<'_>> {
        let field = match self.view() {
            View::Packed(list, stride) => {
                packed::find(list, stride, name).map(|at| packed::field(list, stride, at))
            }
            View::Table(table) => table.get(name),
        };
        field.filter(|field| !field.is_expired(now_ms))
    }

    /// Calls `visit` for every field that has not expired, in no particular order. O(fields).
    pub fn for_each(&self, now_ms: i64, mut visit: impl FnMut(Field<'_>)) {
        let visit = |field: Field<'_>| {
            if !field.is_expired(now_ms) {
                visit(field);
            }
        };
        match self.view() {
            View::Packed(list, stride) => packed::fields(list, stride).for_each(visit),
            View::Table(table) => table.iter().for_each(visit),
        }
    }

    /// Returns a new hash of the fields that have not expired. O(fields).
    pub fn without_expired(&self, now_ms: i64, limits: &EncodingLimits) -> Hash {
        let mut hash = Hash::default();
        self.for_each(now_ms, |field| {
            let (mut name, mut value) = (itoa::Buffer::new(), itoa::Buffer::new());
            let expiry = field.expire_at_ms.map_or(NewExpiry::None, NewExpiry::At);
            let (name, value) = (field.name.bytes(&mut name), field.value.bytes(&mut value));
            hash.set(&NewField { name, value, shared: None, expiry }, now_ms, limits);
        });
        hash
    }

    /// Returns the number of fields that have not expired. O(1) unless expired fields are yet to be removed.
    pub fn live_len(&self, now_ms: i64) -> usize {
        if !self.is_due(now_ms) {
            return self.len();
        }
        let mut live = 0;
        self.for_each(now_ms, |_| live += 1);
        live
    }

    /// Returns whether [`Collection::remove_expired`] may find expired fields. O(1).
    #[inline]
    pub fn is_due(&self, now_ms: i64) -> bool {
        self.next_expiry_ms().is_some_and(|at_ms| at_ms <= now_ms)
    }

    /// Calls `visit` for about `count` fields from `cursor` on, 0 at the beginning, and returns the cursor to continue
    /// from, 0 at the end. Fields that exist from the first call to the last are visited at least once. O(count), or
    /// all fields while they are packed. Expired fields are visited, too.
    pub fn scan(&self, cursor: u64, count: usize, visit: impl FnMut(Field<'_>)) -> u64 {
        match self.view() {
            View::Packed(list, stride) => {
                packed::fields(list, stride).for_each(visit);
                0
            }
            View::Table(table) => table.scan(cursor, count, visit),
        }
    }

    /// Prepares for setting `count` fields: converts to a table at once if they are too many for a listpack.
    pub fn expect_fields(&mut self, count: usize, limits: &EncodingLimits) {
        if count > limits.hash_max_listpack_entries {
            self.become_table();
        }
    }

    /// Sets a field. Returns true if no field of this name existed that had not expired at `now_ms`. O(1), or O(fields)
    /// while they are packed.
    pub fn set(&mut self, new: &NewField<'_>, now_ms: i64, limits: &EncodingLimits) -> bool {
        if let View::Packed(list, _) = self.view() {
            let longest = new.name.len().max(new.value.len());
            let added = new.name.len() + new.value.len();
            if longest > limits.hash_max_listpack_value || !list.can_hold(added) {
                self.become_table();
            } else if matches!(new.expiry, NewExpiry::At(_)) {
                self.become_triplets();
            }
        }
        let is_new = match &mut self.0 {
            Fields::Table(table) => return table.set(new, now_ms),
            Fields::Pairs(list) => set_pair(list, new),
            Fields::Triplets(list) => set_triplet(list, new, now_ms),
        };
        if is_new && self.len() > limits.hash_max_listpack_entries {
            self.become_table();
        }
        is_new
    }

    /// Sets a future expiry of the existing field `name`, or removes its expiry. O(1), or O(fields) while they are
    /// packed.
    pub fn set_expiry(&mut self, name: &[u8], expire_at_ms: Option<i64>) {
        if expire_at_ms.is_some() {
            self.become_triplets();
        }
        match &mut self.0 {
            Fields::Pairs(_) => {}
            Fields::Triplets(list) => {
                if let Some(at) = packed::find(list, TRIPLET, name) {
                    packed::move_triplet(list, at, None, expire_at_ms);
                }
            }
            Fields::Table(table) => table.set_expiry(name, expire_at_ms),
        }
    }

    /// Removes a field. Returns true if it existed and had not expired at `now_ms`. O(1), or O(fields) while they are
    /// packed.
    pub fn remove(&mut self, name: &[u8], now_ms: i64) -> bool {
        let (list, stride) = match &mut self.0 {
            Fields::Pairs(list) => (list, PAIR),
            Fields::Triplets(list) => (&mut **list, TRIPLET),
            Fields::Table(table) => return table.remove(name, now_ms),
        };
        let Some(at) = packed::find(list, stride, name) else { return false };
        let was_live = !packed::field(list, stride, at).is_expired(now_ms);
        packed::remove(list, stride, at);
        was_live
    }

    /// Converts pairs to triplets, which can hold expiries.
    fn become_triplets(&mut self) {
        if let Fields::Pairs(list) = &self.0 {
            self.0 = Fields::Triplets(Box::new(packed::to_triplets(list)));
        }
    }

    /// Moves the fields to a table, unless they are in one already.
    #[cold]
    fn become_table(&mut self) {
        let View::Packed(list, stride) = self.view() else { return };
        let mut table = Table::default();
        for field in packed::fields(list, stride) {
            let (mut name, mut value) = (itoa::Buffer::new(), itoa::Buffer::new());
            let new = NewField {
                name: field.name.bytes(&mut name),
                value: field.value.bytes(&mut value),
                shared: None,
                expiry: field.expire_at_ms.map_or(NewExpiry::None, NewExpiry::At),
            };
            table.set(&new, i64::MIN);
        }
        self.0 = Fields::Table(Box::new(table));
    }
}

fn set_pair(list: &mut Listpack, new: &NewField<'_>) -> bool {
    match packed::find(list, PAIR, new.name) {
        Some(at) => {
            packed::replace_value(list, at, new.value);
            false
        }
        None => {
            packed::push_pair(list, new.name, new.value);
            true
        }
    }
}

fn set_triplet(list: &mut Listpack, new: &NewField<'_>, now_ms: i64) -> bool {
    let Some(at) = packed::find(list, TRIPLET, new.name) else {
        packed::insert_triplet(list, new.name, new.value, new.expiry.instead_of(None));
        return true;
    };
    let old = packed::field(list, TRIPLET, at);
    let (was_live, old_expiry) = (!old.is_expired(now_ms), old.expire_at_ms);
    let expire_at_ms = new.expiry.instead_of(old_expiry.filter(|_| was_live));
    if expire_at_ms == old_expiry {
        packed::replace_value(list, at, new.value);
    } else {
        packed::move_triplet(list, at, Some(new.value), expire_at_ms);
    }
    !was_live
}

impl Collection for Hash {
    const TYPE: ValueType = ValueType::Hash;

    fn encoding_name(&self) -> &'static str {
        match &self.0 {
            Fields::Pairs(_) => "listpack",
            Fields::Triplets(_) => "listpackex",
            Fields::Table(_) => "hashtable",
        }
    }

    fn memory_bytes(&self) -> usize {
        match &self.0 {
            Fields::Pairs(list) => list.memory_bytes(),
            Fields::Triplets(list) => size_class(size_of::<Listpack>()) + list.memory_bytes(),
            Fields::Table(table) => table.memory_bytes(),
        }
    }

    /// Returns the number of fields, including expired ones that are not removed yet.
    #[inline]
    fn len(&self) -> usize {
        match self.view() {
            View::Packed(list, stride) => list.len() / stride,
            View::Table(table) => table.len(),
        }
    }

    fn fetch_elements(&self, names: &[&[u8]]) {
        if let View::Table(table) = self.view() {
            table.fetch_ahead(names);
        }
    }

    fn free_effort(&self) -> usize {
        match self.view() {
            View::Packed(..) => 1,
            View::Table(table) => table.len(),
        }
    }

    #[inline]
    fn next_expiry_ms(&self) -> Option<i64> {
        match &self.0 {
            Fields::Pairs(_) => None,
            Fields::Triplets(list) => packed::earliest_ms(list),
            Fields::Table(table) => table.earliest_ms(),
        }
    }

    fn remove_expired(&mut self, now_ms: i64, max: usize, names: &mut Names) -> usize {
        match &mut self.0 {
            Fields::Pairs(_) => 0,
            Fields::Triplets(list) => packed::remove_expired(list, now_ms, max, names),
            Fields::Table(table) => table.remove_expired(now_ms, max, names),
        }
    }

    fn move_inside(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64 {
        match &mut self.0 {
            Fields::Pairs(list) => list.move_to(mover),
            Fields::Triplets(list) => {
                mover.move_box(list);
                list.move_to(mover);
            }
            Fields::Table(table) => {
                if from == 0 {
                    mover.move_box(table);
                }
                return table.move_inside(from, most, mover);
            }
        }
        0
    }

    fn check_invariants(&self) {
        match self.view() {
            View::Packed(list, stride) => packed::check_invariants(list, stride),
            View::Table(table) => table.check_invariants(),
        }
    }
}
