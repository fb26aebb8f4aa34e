//! Elements compared with a map of the standard library, with buckets so small that they are divided and united often.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::types::value::StringValue;

fn value_of(entry: EntryRef<'_>) -> i64 {
    match entry.string() {
        StringValue::Int(number) => number,
        _ => panic!("the tests store integers"),
    }
}

fn name(number: u32) -> Vec<u8> {
    format!("element:{number}").into_bytes()
}

fn filled(count: u32) -> Elements {
    let mut elements = Elements::new();
    for number in 0..count {
        assert!(elements.insert(&name(number), NewValue::Int(number.into()), None));
    }
    elements.check_invariants();
    elements
}

#[derive(Clone, Debug)]
enum Change {
    Insert(u32),
    Set(u32, i64),
    Expire(u32, i64),
    Remove(u32),
    PopRandom,
    /// Insert or remove a whole range, so that many buckets are divided or united.
    Fill(u32),
    Clear(u32),
}

fn change() -> impl Strategy<Value = Change> {
    let number = 0u32..3000;
    prop_oneof![
        6 => number.clone().prop_map(Change::Insert),
        3 => (number.clone(), any::<i64>()).prop_map(|(number, value)| Change::Set(number, value)),
        1 => (number.clone(), any::<i64>()).prop_map(|(number, at)| Change::Expire(number, at)),
        6 => number.clone().prop_map(Change::Remove),
        2 => Just(Change::PopRandom),
        1 => number.clone().prop_map(Change::Fill),
        1 => number.prop_map(Change::Clear),
    ]
}

type Model = HashMap<Vec<u8>, (i64, Option<i64>)>;

fn insert(elements: &mut Elements, model: &mut Model, number: u32) {
    let name = name(number);
    let is_new = elements.insert(&name, NewValue::Int(number.into()), None);
    assert_eq!(is_new, !model.contains_key(&name));
    model.entry(name).or_insert((number.into(), None));
}

fn remove(elements: &mut Elements, model: &mut Model, number: u32) {
    let name = name(number);
    let removed = elements.remove(&name).map(|slot| value_of(slot.entry()));
    assert_eq!(removed, model.remove(&name).map(|(value, _)| value));
}

fn apply(elements: &mut Elements, model: &mut Model, random: &mut Random, change: &Change) {
    match *change {
        Change::Insert(number) => insert(elements, model, number),
        Change::Set(number, value) => {
            let is_new = elements.set(&name(number), NewValue::Int(value), None);
            assert_eq!(is_new, model.insert(name(number), (value, None)).is_none());
        }
        Change::Expire(number, at) => {
            let place = elements.find(&name(number));
            if let Some(place) = place {
                elements.edit(place, |slot| slot.set_expiry(Some(at)));
            }
            let known = model.get_mut(&name(number)).map(|(_, expire_at_ms)| *expire_at_ms = Some(at));
            assert_eq!(place.is_some(), known.is_some());
        }
        Change::Remove(number) => remove(elements, model, number),
        Change::PopRandom => {
            let popped = elements.pop_random(random).map(|slot| slot.entry().key().to_vec());
            assert_eq!(popped.is_some(), popped.is_some_and(|name| model.remove(&name).is_some()));
        }
        Change::Fill(number) => (number..3000).step_by(3).for_each(|n| insert(elements, model, n)),
        Change::Clear(number) => (number..3000).for_each(|n| remove(elements, model, n)),
    }
}

fn check_equal(elements: &Elements, model: &Model) {
    elements.check_invariants();
    assert_eq!((elements.len(), elements.is_empty()), (model.len(), model.is_empty()));
    let all: Model = elements.iter().map(|e| (e.key().to_vec(), (value_of(e), e.expire_at_ms()))).collect();
    assert_eq!(all, *model);
    assert!(model.keys().all(|name| elements.contains(name)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(200)))]

    #[test]
    fn elements_agree_with_a_hash_map(changes in prop::collection::vec(change(), 1..120), seed in any::<u64>()) {
        let (mut elements, mut model) = (Elements::new(), Model::new());
        let mut random = Random::seeded(seed);
        for change in &changes {
            apply(&mut elements, &mut model, &mut random, change);
        }
        check_equal(&elements, &model);
        let copy = elements.clone();
        Vec::from_iter(model.keys().cloned()).iter().for_each(|name| drop(elements.remove(name)));
        elements.check_invariants();
        prop_assert_eq!(elements.iter().count(), 0);
        check_equal(&copy, &model);
    }

    #[test]
    fn scans_visit_every_remaining_element_despite_changes(
        stays in 0u32..2000,
        count in 1usize..60,
        changes in prop::collection::vec(change(), 1..60),
        seed in any::<u64>(),
    ) {
        let (mut elements, mut model) = (Elements::new(), Model::new());
        let staying: HashSet<Vec<u8>> = (0..stays).map(|number| format!("stay:{number}").into_bytes()).collect();
        for name in &staying {
            elements.insert(name, NewValue::Int(0), None);
            model.insert(name.clone(), (0, None));
        }
        let mut random = Random::seeded(seed);
        let mut changes = changes.iter();
        let mut seen = HashSet::new();
        let mut cursor = 0;
        for _ in 0..100_000 {
            cursor = elements.scan(cursor, count, |entry| { seen.insert(entry.key().to_vec()); });
            if cursor == 0 {
                break;
            }
            // `PopRandom` is not applied, because it could remove elements that must exist during the whole scan.
            if let Some(change) = changes.next().filter(|change| !matches!(change, Change::PopRandom)) {
                apply(&mut elements, &mut model, &mut random, change);
            }
        }
        prop_assert_eq!(cursor, 0, "the scan ends");
        prop_assert!(staying.is_subset(&seen));
        elements.check_invariants();
    }
}

#[test]
fn scans_without_changes_visit_each_element_once_near_count() {
    let elements = filled(5000);
    for count in [1, 7, 100, 10_000] {
        let mut seen = HashMap::<Vec<u8>, usize>::new();
        let mut cursor = 0;
        loop {
            let before: usize = seen.values().sum();
            cursor =
                elements.scan(cursor, count, |entry| *seen.entry(entry.key().to_vec()).or_default() += 1);
            assert!(seen.values().sum::<usize>() - before < count + 40);
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(seen.len(), 5000);
        assert!(seen.values().all(|&times| times == 1));
    }
}

#[test]
fn elements_added_in_the_order_of_another_table_do_not_crowd() {
    let source = filled(20_000);
    let mut target = Elements::new();
    for entry in source.iter() {
        target.insert(entry.key(), NewValue::Int(0), None);
        // If both tables had the same order, all elements added so far would share the first bits of the hash, and so
        // the deepest bucket.
        assert!(
            target.depth <= (target.len() / LEN_MAX).max(1).ilog2() + 4,
            "{} of {}",
            target.depth,
            target.len()
        );
    }
    target.check_invariants();
}

#[test]
fn scans_accept_any_cursor() {
    let elements = filled(1000);
    for cursor in [1, 1 << POSITION_BITS, (1 << POSITION_BITS) - 1, u64::MAX, 0x5555_5555_5555] {
        let next = elements.scan(cursor, 10, |_| ());
        assert!(next == 0 || next > cursor);
    }
    assert_eq!(Elements::new().scan(77, 10, |_| panic!("there is nothing")), 0);
}

#[test]
fn every_element_is_drawn_equally_often() {
    let mut elements = filled(400);
    // Buckets of very different sizes: most elements in the lower half of the hashes are removed.
    let low: Vec<Vec<u8>> = elements
        .iter()
        .filter(|entry| elements.hasher.hash(entry.key()) < u64::MAX / 2)
        .map(|entry| entry.key().to_vec())
        .collect();
    low.iter().skip(5).for_each(|name| drop(elements.remove(name)));
    elements.check_invariants();
    let mut random = Random::seeded(7);
    let mut drawn = HashMap::<Vec<u8>, f64>::new();
    const DRAWS_PER_ELEMENT: usize = 500;
    for _ in 0..elements.len() * DRAWS_PER_ELEMENT {
        *drawn.entry(elements.random(&mut random).unwrap().key().to_vec()).or_default() += 1.0;
    }
    let expected = DRAWS_PER_ELEMENT as f64;
    let of = |entry: EntryRef<'_>| drawn.get(entry.key()).copied().unwrap_or(0.0);
    let chi_square: f64 = elements.iter().map(|entry| (of(entry) - expected).powi(2) / expected).sum();
    let freedom = elements.len() as f64 - 1.0;
    // The chi-square distribution has the mean `freedom` and the variance `2 * freedom`; random deviations practically
    // never exceed five standard deviations.
    assert!((chi_square - freedom).abs() < 5.0 * (2.0 * freedom).sqrt(), "{chi_square} of {freedom}");
}

#[test]
fn random_removal_continues_until_no_element_remains() {
    let mut elements = filled(3000);
    let mut random = Random::seeded(3);
    for left in (0..3000).rev() {
        elements.pop_random(&mut random).unwrap();
        assert_eq!(elements.len(), left);
    }
    elements.check_invariants();
    assert!(elements.pop_random(&mut random).is_none());
    assert!(elements.memory_bytes() < 1024, "{}", elements.memory_bytes());
}

#[test]
fn the_account_of_memory_follows_values_that_grow_and_shrink() {
    let mut elements = filled(100);
    for size in [0, 10, 1000, 100_000, 5] {
        for number in 0..100 {
            assert!(!elements.set(&name(number), NewValue::from_opaque(&vec![b'v'; size]), Some(1)));
        }
        elements.check_invariants();
        assert!(elements.memory_bytes() > 100 * size);
    }
    let copy = elements.clone();
    copy.check_invariants();
    assert_eq!(copy.len(), 100);
}
