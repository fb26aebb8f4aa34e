//! A hash compared with a model: names, values and expiries in a map of the standard library.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::algorithms::random::Random;
use crate::effects::journal::Names;
use crate::types::value::StringValue;

/// A field in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    value: Vec<u8>,
    expire_at_ms: Option<i64>,
}

type Model = HashMap<Vec<u8>, Known>;

#[derive(Clone, Debug)]
enum Step {
    Set(u8, Vec<u8>, NewExpiry),
    Remove(u8),
    SetExpiry(u8, Option<i64>),
    /// Advances the time by ms, then removes expired fields, examining up to this many places.
    Pass(i64, usize),
    Clone,
}

fn name_of(number: u8) -> Vec<u8> {
    match number % 4 {
        0 => number.to_string().into_bytes(),
        1 => format!("field:{number}").into_bytes(),
        2 => vec![number; usize::from(number) % 40],
        _ => vec![0xFF, number, 0],
    }
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..50),
        (0usize..3).prop_map(|size| vec![b'v'; size * 20_000]),
    ];
    let expiry = || prop_oneof![Just(None), (1i64..1000).prop_map(Some)];
    let new_expiry =
        prop_oneof![Just(NewExpiry::None), Just(NewExpiry::Kept), (1i64..1000).prop_map(NewExpiry::At)];
    prop_oneof![
        6 => (any::<u8>(), value, new_expiry).prop_map(|(name, value, expiry)| Step::Set(name, value, expiry)),
        2 => any::<u8>().prop_map(Step::Remove),
        3 => (any::<u8>(), expiry()).prop_map(|(name, expiry)| Step::SetExpiry(name, expiry)),
        1 => (0i64..200, 0usize..20).prop_map(|(ms, looks)| Step::Pass(ms, looks)),
        1 => Just(Step::Clone),
    ]
}

fn live(model: &Model, now_ms: i64) -> Vec<(Vec<u8>, Known)> {
    let is_live = |known: &Known| known.expire_at_ms.is_none_or(|at_ms| at_ms > now_ms);
    let mut live: Vec<_> = model.iter().filter(|(_, known)| is_live(known)).collect();
    live.sort_unstable_by_key(|(name, _)| name.to_vec());
    live.into_iter().map(|(name, known)| (name.clone(), known.clone())).collect()
}

fn known(field: Field<'_>) -> (Vec<u8>, Known) {
    let text = |text: StringValue<'_>| text.bytes(&mut itoa::Buffer::new()).to_vec();
    (text(field.name), Known { value: text(field.value), expire_at_ms: field.expire_at_ms })
}

fn fields_of(hash: &Hash, now_ms: i64) -> Vec<(Vec<u8>, Known)> {
    let mut fields = Vec::new();
    hash.for_each(now_ms, |field| fields.push(known(field)));
    fields.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    fields
}

/// Applies a step to the hash and to the model, and compares their results.
fn apply(hash: &mut Hash, model: &mut Model, step: Step, now_ms: &mut i64, limits: &EncodingLimits) {
    let was_live = |model: &Model, name: &[u8]| {
        model.get(name).is_some_and(|known| known.expire_at_ms.is_none_or(|at_ms| at_ms > *now_ms))
    };
    match step {
        Step::Set(number, value, expiry) => {
            let name = name_of(number);
            let expiry = match expiry {
                NewExpiry::At(in_ms) => NewExpiry::At(*now_ms + in_ms),
                other => other,
            };
            let was_live = was_live(model, &name);
            let old = model.get(&name).filter(|_| was_live).and_then(|known| known.expire_at_ms);
            let new = NewField { name: &name, value: &value, shared: None, expiry };
            assert_eq!(hash.set(&new, *now_ms, limits), !was_live);
            model.insert(name, Known { value, expire_at_ms: expiry.instead_of(old) });
        }
        Step::Remove(number) => {
            let name = name_of(number);
            assert_eq!(hash.remove(&name, *now_ms), was_live(model, &name));
            model.remove(&name);
        }
        Step::SetExpiry(number, in_ms) => {
            let name = name_of(number);
            if was_live(model, &name) {
                let expire_at_ms = in_ms.map(|in_ms| *now_ms + in_ms);
                hash.set_expiry(&name, expire_at_ms);
                model.get_mut(&name).unwrap().expire_at_ms = expire_at_ms;
            }
        }
        Step::Pass(ms, looks) => {
            *now_ms += ms;
            let len = hash.len();
            let removed = hash.remove_expired(*now_ms, looks, &mut Names::unwanted());
            assert_eq!(hash.len() + removed, len);
        }
        Step::Clone => *hash = hash.clone(),
    }
}

fn compare(steps: Vec<Step>, limits: EncodingLimits) {
    let (mut hash, mut model, mut now_ms) = (Hash::default(), Model::new(), 1_000_000);
    for step in steps {
        apply(&mut hash, &mut model, step, &mut now_ms, &limits);
        hash.check_invariants();
        let expected = live(&model, now_ms);
        assert_eq!(fields_of(&hash, now_ms), expected);
        assert_eq!(hash.live_len(now_ms), expected.len());
        let next = expected.iter().filter_map(|(_, known)| known.expire_at_ms).min();
        assert!(
            next.is_none_or(|at_ms| hash.next_expiry_ms().is_some_and(|next| next <= at_ms)),
            "due in time"
        );
        for number in 0..=u8::MAX {
            let name = name_of(number);
            let found = hash.get(&name, now_ms).map(known);
            assert_eq!(
                found.map(|(_, known)| known),
                model
                    .get(&name)
                    .cloned()
                    .filter(|known| { known.expire_at_ms.is_none_or(|at_ms| at_ms > now_ms) })
            );
        }
    }
    hash.remove_expired(now_ms, usize::MAX, &mut Names::unwanted());
    assert_eq!(hash.len(), live(&model, now_ms).len(), "all expired fields are removed at once");
    assert!(!hash.is_due(now_ms));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(4)))]

    #[test]
    fn a_packed_hash_agrees_with_a_map(steps in prop::collection::vec(step(), 1..80)) {
        compare(steps, EncodingLimits { hash_max_listpack_value: usize::MAX, ..EncodingLimits::DEFAULT });
    }

    #[test]
    fn a_table_hash_agrees_with_a_map(steps in prop::collection::vec(step(), 1..120)) {
        compare(steps, EncodingLimits { hash_max_listpack_entries: 0, ..EncodingLimits::DEFAULT });
    }

    #[test]
    fn a_hash_that_grows_out_of_its_listpack_keeps_its_fields(steps in prop::collection::vec(step(), 1..120)) {
        compare(steps, EncodingLimits { hash_max_listpack_entries: 8, ..EncodingLimits::DEFAULT });
    }
}

/// Returns a hash of fields `0`, `1`, … below `len`.
fn numbered(len: usize, limits: &EncodingLimits) -> Hash {
    let mut hash = Hash::default();
    for number in 0..len {
        let name = number.to_string();
        let new =
            NewField { name: name.as_bytes(), value: name.as_bytes(), shared: None, expiry: NewExpiry::None };
        hash.set(&new, 0, limits);
    }
    hash
}

#[test]
fn triplets_are_sorted_by_expiry() {
    let limits = EncodingLimits::DEFAULT;
    let mut hash = numbered(6, &limits);
    let changes = [
        ("3", Some(50)),
        ("1", Some(70)),
        ("5", Some(60)),
        ("3", Some(65)),
        ("5", None),
        // This field expires together with another one, and is placed after it.
        ("0", Some(65)),
    ];
    for (name, at_ms) in changes {
        hash.set_expiry(name.as_bytes(), at_ms);
        hash.check_invariants();
    }
    let mut order = Vec::new();
    hash.for_each(0, |field| order.push(String::from_utf8(known(field).0).unwrap()));
    assert_eq!(order, ["3", "0", "1", "2", "4", "5"]);
    assert_eq!(hash.next_expiry_ms(), Some(65));
}

#[test]
fn small_hashes_are_small() {
    assert!(size_of::<Hash>() <= 32);
    let hash = numbered(10, &EncodingLimits::DEFAULT);
    // Ten times two integers below 128 of two bytes each, and seven bytes of header and end.
    assert_eq!(hash.memory_bytes(), size_class(47));
}

#[test]
fn different_fields_are_drawn_from_every_encoding() {
    let mut random = Random::seeded(7);
    for limits in
        [EncodingLimits::DEFAULT, EncodingLimits { hash_max_listpack_entries: 0, ..EncodingLimits::DEFAULT }]
    {
        let hash = numbered(100, &limits);
        for count in [0, 1, 5, 40, 99, 100, 200] {
            let mut names = std::collections::HashSet::new();
            hash.draw_different(count, &mut random, |field| {
                assert!(names.insert(known(field).0));
            });
            assert_eq!(names.len(), count.min(100));
        }
        let mut draws = 0;
        hash.draw(1000, &mut random, |_| {
            draws += 1;
            draws < 300
        });
        assert_eq!(draws, 300);
    }
}
