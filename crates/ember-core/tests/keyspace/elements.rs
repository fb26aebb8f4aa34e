//! Hash tables of many elements: the exact account of their memory, scans, and random draws.

use std::collections::HashSet;

use emberkv_core::keyspace::entry::NewValue;
use emberkv_core::turn::Random;
use emberkv_core::types::elements::Elements;
use proptest::prelude::*;

fn name(number: usize) -> Vec<u8> {
    format!("member:{number}").into_bytes()
}

fn fill(elements: &mut Elements, range: std::ops::Range<usize>) {
    for number in range {
        elements.insert(&name(number), NewValue::Bytes(b""), None);
    }
}

fn clear(elements: &mut Elements, range: std::ops::Range<usize>) {
    for number in range {
        elements.remove(&name(number));
    }
}

#[test]
fn exactly_two_hundred_thousand_members_are_found() {
    let mut elements = Elements::new();
    fill(&mut elements, 0..200_000);
    elements.check_invariants();
    assert_eq!(elements.len(), 200_000);
    assert!((0..200_000).all(|number| elements.contains(&name(number))));
    assert!((200_000..300_000).all(|number| !elements.contains(&name(number))));
    clear(&mut elements, 1000..200_000);
    elements.check_invariants();
    assert!((0..1000).all(|number| elements.contains(&name(number))));
    clear(&mut elements, 0..1000);
    elements.check_invariants();
    assert!(elements.is_empty());
}

#[test]
fn a_member_takes_little_more_than_its_entry() {
    let mut elements = Elements::new();
    for count in [1000, 10_000, 100_000, 300_000] {
        fill(&mut elements, 0..count);
        // An entry of 8 bytes plus up to 13 bytes of name takes 32 bytes; slots take 8 bytes at a load of 45 to 90 %.
        let bytes_per_member = elements.memory_bytes() as f64 / count as f64;
        assert!(bytes_per_member < 32.0 + 17.0, "{bytes_per_member} for each of {count}");
    }
}

#[test]
fn removed_members_return_their_memory() {
    let mut elements = Elements::new();
    fill(&mut elements, 0..100_000);
    clear(&mut elements, 100..100_000);
    assert!(elements.memory_bytes() < 100 * 100, "{}", elements.memory_bytes());
}

#[test]
fn draws_reach_every_bucket_equally() {
    let mut elements = Elements::new();
    fill(&mut elements, 0..20_000);
    let mut random = Random::seeded(11);
    let mut drawn = vec![0f64; 20_000];
    const DRAWS_PER_MEMBER: usize = 50;
    for _ in 0..20_000 * DRAWS_PER_MEMBER {
        let entry = elements.random(&mut random).expect("the set has members");
        let number = std::str::from_utf8(&entry.key()[b"member:".len()..]).expect("names are text");
        drawn[number.parse::<usize>().expect("names end with a number")] += 1.0;
    }
    let expected = DRAWS_PER_MEMBER as f64;
    let chi_square: f64 = drawn.iter().map(|count| (count - expected).powi(2) / expected).sum();
    let freedom = drawn.len() as f64 - 1.0;
    // The mean of chi-square is the number of degrees of freedom, and its variance twice that; chance does not exceed
    // five standard deviations.
    assert!((chi_square - freedom).abs() < 5.0 * (2.0 * freedom).sqrt(), "{chi_square} of {freedom}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(22)))]

    #[test]
    fn a_scan_returns_present_members_while_buckets_split_and_merge(
        stays in 0usize..8000,
        count in 50usize..3000,
        bulks in prop::collection::vec((0usize..40_000, any::<bool>()), 1..8),
        start in 0usize..40_000,
    ) {
        let mut elements = Elements::new();
        let staying = 1_000_000..1_000_000 + stays;
        fill(&mut elements, staying.clone());
        fill(&mut elements, 0..start);
        let mut bulks = bulks.iter();
        let mut seen = HashSet::new();
        let mut cursor = 0;
        loop {
            cursor = elements.scan(cursor, count, |entry| { seen.insert(entry.key().to_vec()); });
            if cursor == 0 {
                break;
            }
            prop_assert!(cursor < 1 << 53, "clients may read cursors as floats");
            match bulks.next() {
                Some(&(bound, true)) => fill(&mut elements, 0..bound),
                Some(&(bound, false)) => clear(&mut elements, bound / 8..40_000),
                None => {}
            }
        }
        prop_assert!(staying.map(name).all(|name| seen.contains(&name)));
        elements.check_invariants();
    }
}
