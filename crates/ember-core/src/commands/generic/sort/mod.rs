//! SORT and SORT_RO.
//!
//! The keys that a pattern with `*` forms from the elements are not among the arguments, so such a call locks all
//! shards.

mod options;
mod order;
mod pattern;

use std::ops::Range;

use crate::call::{Attempt, AttemptResult, Call, CommandResult, DataCommand, Run, Waiting};
use crate::commands::string::value;
use crate::effects::events::Event;
use crate::entries::entry::EntryRef;
use crate::error::CommandError;
use crate::keys::{Keys, Lookup};
use crate::spec::{Category, Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::list::{End, List, NewElement, NodeLimit};
use crate::types::set::Set;
use crate::types::sorted_set::SortedSet;
use crate::types::value::StringValue;
use crate::types::{Aggregate, Collection};
use options::{By, Options};
use pattern::Pattern;

const SORT_RO: Spec = Spec {
    name: "sort_ro",
    summary: "Returns the sorted elements of a list, set or sorted set.",
    since: "7.0.0",
    group: Group::Generic,
    complexity: "O(N+M*log(M)) for N elements of which M are sorted and returned; O(N) when they are not sorted.",
    arity: -2,
    flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
    categories: Category::SET
        .union(Category::SORTEDSET)
        .union(Category::LIST)
        .union(Category::DANGEROUS),
    is_in_group_category: false,
    keys: &[
        KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS)),
        KeySpec::unknown(KeyFlags::RO.union(KeyFlags::ACCESS)).with_notes(
            "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content of \
             the key we sort",
        ),
    ],
    syntax: "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]",
    keys_of: Some(|_| vec![1]),
    example: Example {
        given: &["RPUSH numbers 3 1 2"],
        call: "SORT_RO numbers DESC",
        reply: "1) \"3\"\n2) \"2\"\n3) \"1\"",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "sort",
            summary: "Returns or stores the sorted elements of a list, set or sorted set.",
            since: "1.0.0",
            flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
            keys: &[
                KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS)),
                KeySpec::unknown(KeyFlags::RO.union(KeyFlags::ACCESS)).with_notes(
                    "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the \
                     content of the key we sort",
                ),
                KeySpec::unknown(KeyFlags::OW.union(KeyFlags::UPDATE)).with_notes(
                    "For the optional STORE keyword. It is marked 'unknown' because the keyword can appear anywhere \
                     in the argument array",
                ),
            ],
            syntax: "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA] [STORE destination]",
            keys_of: Some(options::keys_of),
            example: Example {
                given: &["RPUSH numbers 3 1 2"],
                call: "SORT numbers LIMIT 0 2",
                reply: "1) \"1\"\n2) \"2\"",
            },
            ..SORT_RO
        },
        Run::KeysOrAllShards { all_shards_if: options::reach_other_keys, run: |call| sort(call, true) },
    ),
    Command::new(
        SORT_RO,
        Run::KeysOrAllShards { all_shards_if: options::reach_other_keys, run: |call| sort(call, false) },
    ),
];

fn sort(call: &mut Call<'_, '_>, may_store: bool) -> AttemptResult {
    let args = call.args;
    // On a cluster node, the keys that a pattern forms may be in slots of other nodes.
    let denial = match () {
        () if call.keys.has_slots() => Some("in Cluster mode."),
        () if !call.keys.turn.reads_any_key => Some("due to insufficient ACL permissions."),
        () => None,
    };
    let options = Options::parse(args, may_store, denial)?;
    let is_set = match call.keys.read_as(1, Lookup::Use).map(EntryRef::aggregate) {
        None => false,
        Some(Some(Aggregate::Set(_))) => true,
        Some(Some(Aggregate::List(_) | Aggregate::SortedSet(_))) => false,
        Some(_) => return Err(CommandError::WrongType),
    };
    // A call that reads other keys is not offloaded, because those keys cannot be borrowed.
    let len = call.keys.entry(1).and_then(EntryRef::aggregate).map_or(0, Aggregate::len);
    if !options::reach_other_keys(args) && len > call.steps_max() {
        return Ok(Attempt::Offload);
    }
    leave_listpack(call)?;
    let mut order = options.order;
    // A set that is stored, or sorted for a script, is sorted by its members, because their order in the set is
    // arbitrary.
    let wants_order = options.store.is_some() || call.waiting == Waiting::InScript;
    let by = match options.by {
        By::Nothing if is_set && wants_order => {
            order.is_text = true;
            By::Elements
        }
        by => by,
    };
    let loaded = call.keys.entry(1).and_then(EntryRef::aggregate);
    let (mut elements, range) = load(loaded, by, order.is_descending, (options.offset, options.count));
    if let By::Pattern(pattern) = by
        && misses_values(call, &[pattern], &elements)?
    {
        return Ok(Attempt::Fetch);
    }
    let (keys, mut key) = (&call.keys, Vec::new());
    match by {
        By::Nothing => {}
        By::Elements => order.sort(&mut elements, |element, see| see(Some(StringValue::Inline(element))))?,
        By::Pattern(pattern) => {
            order.sort(&mut elements, |element, see| pattern.with_value(keys, element, &mut key, see))?;
        }
    }
    if misses_values(call, &options.get, &elements[range.clone()])? {
        return Ok(Attempt::Fetch);
    }
    match options.store {
        Some(target) => store(call, target, &options.get, &elements[range]),
        None => reply(call, &options.get, &elements[range]),
    }
    Ok(Attempt::Done)
}

/// Returns whether values of keys that the patterns form from the elements are missing.
fn misses_values(
    call: &mut Call<'_, '_>,
    patterns: &[Pattern<'_>],
    elements: &[Vec<u8>],
) -> Result<bool, CommandError> {
    if !call.keys.turn.checks_values {
        return Ok(false);
    }
    let keys = elements.iter().flat_map(|element| patterns.iter().filter_map(|pattern| pattern.key(element)));
    call.keys.record_missing(keys)
}

/// Converts a sorted set from listpack to the large encoding, as Redis does before sorting.
fn leave_listpack(call: &mut Call<'_, '_>) -> CommandResult {
    let limits = call.keys.turn.settings.encoding;
    if let Ok(Some(set)) = call.keys.value::<SortedSet>(1)
        && set.encoding_name() == "listpack"
    {
        let mut key = call.keys.key(1);
        key.edit_value(Event::sorted_set("sort"), |set: &mut SortedSet| {
            set.expect_members(usize::MAX, &limits);
            false
        })?;
    }
    Ok(())
}

/// Returns the elements to sort, and the range of sorted elements to return. If an ordered value is not to be sorted,
/// loads only that range.
fn load(
    value: Option<&Aggregate>,
    by: By<'_>,
    is_descending: bool,
    (offset, count): (i64, i64),
) -> (Vec<Vec<u8>>, Range<usize>) {
    let len = value.map_or(0, Aggregate::len);
    let start = usize::try_from(offset.max(0)).unwrap_or(usize::MAX).min(len);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let range = start..start.saturating_add(count).min(len);
    let keeps_order = matches!(by, By::Nothing);
    let elements: Vec<Vec<u8>> = match value {
        Some(Aggregate::List(list)) if keeps_order => part(list_elements(list), &range, is_descending),
        Some(Aggregate::SortedSet(set)) if keeps_order => part(members(set), &range, is_descending),
        Some(Aggregate::List(list)) => list_elements(list).collect(),
        Some(Aggregate::SortedSet(set)) => members(set).collect(),
        Some(Aggregate::Set(set)) => set_members(set),
        Some(_) | None => Vec::new(),
    };
    let is_part = keeps_order && !matches!(value, Some(Aggregate::Set(_)));
    let range = if is_part { 0..elements.len() } else { range };
    (elements, range)
}

/// Returns a range of the elements, counted from the end if `is_descending`.
fn part(
    elements: impl DoubleEndedIterator<Item = Vec<u8>>,
    range: &Range<usize>,
    is_descending: bool,
) -> Vec<Vec<u8>> {
    if is_descending {
        elements.rev().skip(range.start).take(range.len()).collect()
    } else {
        elements.skip(range.start).take(range.len()).collect()
    }
}

fn list_elements(list: &List) -> impl DoubleEndedIterator<Item = Vec<u8>> {
    list.copies()
}

fn members(set: &SortedSet) -> impl DoubleEndedIterator<Item = Vec<u8>> {
    set.iter_all().map(|(member, _)| member.to_vec())
}

fn set_members(set: &Set) -> Vec<Vec<u8>> {
    let mut members = Vec::new();
    set.for_each(|member| members.push(member.to_vec()));
    members
}

/// Calls `see` with each result for an element: the element itself, or the values that the GET patterns find.
fn visit_wanted(
    keys: &Keys<'_, '_>,
    get: &[Pattern<'_>],
    element: &[u8],
    key: &mut Vec<u8>,
    mut see: impl FnMut(Option<StringValue<'_>>),
) {
    if get.is_empty() {
        return see(Some(StringValue::Inline(element)));
    }
    for pattern in get {
        pattern.with_value(keys, element, key, &mut see);
    }
}

fn reply(call: &mut Call<'_, '_>, get: &[Pattern<'_>], elements: &[Vec<u8>]) {
    let (reply, mut key) = (&mut *call.reply, Vec::new());
    reply.array(elements.len() * get.len().max(1));
    for element in elements {
        visit_wanted(&call.keys, get, element, &mut key, |value| value::reply(reply, value));
    }
}

/// Stores the results as a list; missing values become empty strings.
fn store(call: &mut Call<'_, '_>, target: usize, get: &[Pattern<'_>], elements: &[Vec<u8>]) {
    let limit = NodeLimit::of(&call.keys.turn.settings.encoding);
    let (mut list, mut name, mut digits) = (List::default(), Vec::new(), itoa::Buffer::new());
    for element in elements {
        visit_wanted(&call.keys, get, element, &mut name, |value| {
            list.push(End::Back, NewElement::Bytes(value::bytes_or_empty(value, &mut digits)), limit);
        });
    }
    call.reply.integer(list.len() as i64);
    let mut key = call.keys.key(target);
    key.journal_removal();
    if !list.is_empty() {
        key.journal("RPUSH", |words| {
            list.visit(0..list.len(), |element| _ = words.word(element.bytes(&mut digits)));
        });
    }
    key.store_value(Event::list("sortstore"), list);
}
