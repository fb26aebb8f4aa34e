//! Encoding of values.

use std::io::{self, Write};

use super::format::Writer;
use super::kind::{Kind, VALKEY_VERSION};
use super::{json, sketches, stream, vector_set};
use crate::entries::entry::ValueRef;
use crate::types::hash::{Field, Hash};
use crate::types::list::{List, NodeView};
use crate::types::listpack::Element;
use crate::types::set::Set;
use crate::types::sorted_set::SortedSet;
use crate::types::value::StringValue;
use crate::types::{Aggregate, Collection};

/// The number of a list node that is one large element.
pub(super) const NODE_LARGE: u64 = 1;
/// The number of a list node that is a listpack.
pub(super) const NODE_PACKED: u64 = 2;

/// A time before all expiries: with it, [`Hash::for_each`] omits no field.
const EVER_MS: i64 = i64::MIN;

/// The expiry in [`Kind::HashOfValkey`] of a field that does not expire.
pub(super) const NEVER_OF_VALKEY: i64 = -1;

/// Returns the kind as which a value, for instance of an entry, is written.
pub fn kind_of<'v>(value: impl Into<ValueRef<'v>>) -> Kind {
    let ValueRef::Aggregate(aggregate) = value.into() else { return Kind::String };
    match aggregate {
        Aggregate::List(_) => Kind::ListListpacks,
        Aggregate::Set(Set::Intset(_)) => Kind::SetIntset,
        Aggregate::Set(Set::Listpack(_)) => Kind::SetListpack,
        Aggregate::Set(Set::Table(_)) => Kind::Set,
        Aggregate::SortedSet(set) if set.listpack().is_some() => Kind::SortedSetListpack,
        Aggregate::SortedSet(_) => Kind::SortedSet,
        Aggregate::Hash(hash) => kind_of_hash(hash),
        Aggregate::Stream(_) => Kind::Stream3,
        Aggregate::VectorSet(_) => Kind::Module,
        Aggregate::Json(_) => Kind::Json,
        Aggregate::Bloom(_) => Kind::Bloom,
        Aggregate::Cuckoo(_) => Kind::Cuckoo,
        Aggregate::CountMin(_) => Kind::CountMin,
        Aggregate::TopK(_) => Kind::TopK,
        Aggregate::TDigest(_) => Kind::TDigest,
    }
}

/// Returns the kind as which a value is written for readers of `version` of the format, 10 or newer: an older form
/// where it is equivalent. Hashes with fields that expire have no older form; they keep their kind, except for readers
/// of Valkey's version, which has its own form.
pub fn kind_for<'v>(value: impl Into<ValueRef<'v>>, version: u16) -> Kind {
    match kind_of(value) {
        Kind::HashExpiring | Kind::HashTriplets if version == VALKEY_VERSION => Kind::HashOfValkey,
        Kind::SetListpack if version < Kind::SetListpack.version() => Kind::Set,
        Kind::Stream3 if version < Kind::Stream3.version() => Kind::Stream2,
        kind => kind,
    }
}

/// Like [`kind_for`], but the expiries of a hash's fields are not written.
pub fn kind_without_expiries<'v>(value: impl Into<ValueRef<'v>>, version: u16) -> Kind {
    match value.into() {
        ValueRef::Aggregate(Aggregate::Hash(hash)) => hash_kind(hash, false),
        value => kind_for(value, version),
    }
}

fn kind_of_hash(hash: &Hash) -> Kind {
    // A hash without expiries needs no form that only new versions read.
    hash_kind(hash, hash.next_expiry_ms().is_some())
}

fn hash_kind(hash: &Hash, expires: bool) -> Kind {
    match (hash.pairs().is_some() || hash.triplets().is_some(), expires) {
        (true, false) => Kind::HashListpack,
        (true, true) => Kind::HashTriplets,
        (false, false) => Kind::Hash,
        (false, true) => Kind::HashExpiring,
    }
}

/// Writes a value, but not its kind, which [`kind_of`] returns. O(its bytes).
///
/// # Errors
/// Returns the errors of the sink.
pub fn write_value<'v, W: Write>(writer: &mut Writer<W>, value: impl Into<ValueRef<'v>>) -> io::Result<()> {
    let value = value.into();
    write_value_as(writer, value, kind_of(value))
}

/// Writes a value as `kind`, which must be one that [`kind_for`] or [`kind_without_expiries`] returns for it. O(its
/// bytes).
///
/// # Errors
/// Returns the errors of the sink.
pub fn write_value_as<'v, W: Write>(
    writer: &mut Writer<W>,
    value: impl Into<ValueRef<'v>>,
    kind: Kind,
) -> io::Result<()> {
    match value.into() {
        ValueRef::String(value) => string(writer, value),
        ValueRef::Aggregate(Aggregate::List(list)) => write_list(writer, list),
        ValueRef::Aggregate(Aggregate::Set(set)) => write_set(writer, set, kind),
        ValueRef::Aggregate(Aggregate::SortedSet(set)) => write_sorted_set(writer, set),
        ValueRef::Aggregate(Aggregate::Hash(hash)) if kind == Kind::HashOfValkey => {
            write_hash_of_valkey(writer, hash)
        }
        ValueRef::Aggregate(Aggregate::Hash(hash)) => write_hash(writer, hash, kind),
        ValueRef::Aggregate(Aggregate::Stream(value)) => stream::write(writer, value, kind),
        ValueRef::Aggregate(Aggregate::VectorSet(set)) => vector_set::write(writer, set),
        ValueRef::Aggregate(Aggregate::Json(json)) => json::write(writer, json),
        ValueRef::Aggregate(Aggregate::Bloom(filter)) => sketches::write_bloom(writer, filter),
        ValueRef::Aggregate(Aggregate::Cuckoo(filter)) => sketches::write_cuckoo(writer, filter),
        ValueRef::Aggregate(Aggregate::CountMin(sketch)) => sketches::write_count_min(writer, sketch),
        ValueRef::Aggregate(Aggregate::TopK(sketch)) => sketches::write_top_k(writer, sketch),
        ValueRef::Aggregate(Aggregate::TDigest(digest)) => sketches::write_t_digest(writer, digest),
    }
}

fn string<W: Write>(writer: &mut Writer<W>, value: StringValue<'_>) -> io::Result<()> {
    match value {
        StringValue::Int(number) => writer.integer_string(number),
        StringValue::Inline(bytes) => writer.string(bytes),
        StringValue::Large(large) => writer.string(large.bytes()),
    }
}

fn element<W: Write>(writer: &mut Writer<W>, element: Element<'_>) -> io::Result<()> {
    match element {
        Element::Integer(number) => writer.integer_string(number),
        Element::Bytes(bytes) => writer.string(bytes),
    }
}

fn write_list<W: Write>(writer: &mut Writer<W>, list: &List) -> io::Result<()> {
    writer.length(list.nodes().count() as u64)?;
    for node in list.nodes() {
        match node {
            NodeView::Packed(listpack) => {
                writer.length(NODE_PACKED)?;
                writer.string(listpack.as_bytes())?;
            }
            NodeView::Large(bytes) => {
                writer.length(NODE_LARGE)?;
                writer.string(bytes)?;
            }
        }
    }
    Ok(())
}

fn write_set<W: Write>(writer: &mut Writer<W>, set: &Set, kind: Kind) -> io::Result<()> {
    match set {
        Set::Listpack(members) if kind == Kind::Set => {
            writer.length(members.len() as u64)?;
            members.iter().try_for_each(|member| element(writer, member))
        }
        Set::Intset(intset) => writer.string(intset.as_bytes()),
        Set::Listpack(listpack) => writer.string(listpack.as_bytes()),
        Set::Table(members) => {
            writer.length(members.len() as u64)?;
            members.iter().try_for_each(|member| writer.string(member.key()))
        }
    }
}

/// Writes members from the highest score to the lowest: the order in which Redis inserts them fastest.
fn write_sorted_set<W: Write>(writer: &mut Writer<W>, set: &SortedSet) -> io::Result<()> {
    if let Some(listpack) = set.listpack() {
        return writer.string(listpack.as_bytes());
    }
    writer.length(set.len() as u64)?;
    for (member, score) in set.iter_all().rev() {
        element(writer, member)?;
        writer.double(score)?;
    }
    Ok(())
}

fn write_hash<W: Write>(writer: &mut Writer<W>, hash: &Hash, kind: Kind) -> io::Result<()> {
    let expires = matches!(kind, Kind::HashExpiring | Kind::HashTriplets);
    let first_ms = if expires { first_expiry_ms(hash) } else { None };
    match (hash.pairs(), hash.triplets()) {
        (Some(pairs), _) => return writer.string(pairs.as_bytes()),
        (None, Some(triplets)) if first_ms.is_some() => {
            writer.time_ms(first_ms.unwrap_or_default())?;
            return writer.string(triplets.as_bytes());
        }
        (None, Some(_)) => return writer.string(pairs_of(hash).as_bytes()),
        (None, None) => {}
    }
    if let Some(first_ms) = first_ms {
        writer.time_ms(first_ms)?;
    }
    writer.length(hash.len() as u64)?;
    let mut result = Ok(());
    hash.for_each(EVER_MS, |field| {
        if result.is_ok() {
            result = write_field(writer, field, first_ms);
        }
    });
    result
}

fn write_hash_of_valkey<W: Write>(writer: &mut Writer<W>, hash: &Hash) -> io::Result<()> {
    writer.length(hash.len() as u64)?;
    let mut result = Ok(());
    hash.for_each(EVER_MS, |field| {
        if result.is_ok() {
            result = string(writer, field.name)
                .and_then(|()| string(writer, field.value))
                .and_then(|()| writer.time_ms(field.expire_at_ms.unwrap_or(NEVER_OF_VALKEY)));
        }
    });
    result
}

fn write_field<W: Write>(writer: &mut Writer<W>, field: Field<'_>, first_ms: Option<i64>) -> io::Result<()> {
    if let Some(first_ms) = first_ms {
        writer.length(field.expire_at_ms.map_or(0, |at_ms| at_ms.abs_diff(first_ms) + 1))?;
    }
    string(writer, field.name)?;
    string(writer, field.value)
}

/// Returns the earliest expiry of a field; `None` if [`kind_of_hash`] chooses a form without expiries.
fn first_expiry_ms(hash: &Hash) -> Option<i64> {
    hash.next_expiry_ms()?;
    let mut first = None;
    hash.for_each(EVER_MS, |field| {
        let Some(at_ms) = field.expire_at_ms else { return };
        first = Some(first.map_or(at_ms, |first: i64| first.min(at_ms)));
    });
    first
}

/// Returns names and values of a hash whose fields have space for expiries but no expiry.
fn pairs_of(hash: &Hash) -> crate::types::listpack::Listpack {
    let mut pairs = crate::types::listpack::Listpack::new();
    hash.for_each(EVER_MS, |field| {
        for part in [field.name, field.value] {
            match part {
                StringValue::Int(number) => pairs.push_back_integer(number),
                StringValue::Inline(bytes) => pairs.push_back(bytes),
                StringValue::Large(large) => pairs.push_back(large.bytes()),
            }
        }
    });
    pairs
}
