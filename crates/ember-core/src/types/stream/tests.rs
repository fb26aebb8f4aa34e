//! Streams as values: compared with a model, and the counts of their groups.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::algorithms::random::Random;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

const LIMITS: BlockLimits = BlockLimits { bytes_max: 4096, entries_max: 100 };
const ALL: std::ops::RangeInclusive<StreamId> = StreamId::MIN..=StreamId::MAX;

fn id(ms: u64, sequence: u64) -> StreamId {
    StreamId::new(ms, sequence)
}

fn append(
    stream: &mut Stream,
    id: StreamId,
    fields: &Fields,
    limits: BlockLimits,
) -> Result<(), AppendError> {
    let pairs = fields.iter().map(|(name, value)| (&name[..], &value[..]));
    stream.log_mut().append(id, pairs, limits)
}

fn one_field() -> Fields {
    vec![(b"name".to_vec(), b"value".to_vec())]
}

fn contents(entry: &Entry<'_>) -> (StreamId, Fields) {
    (entry.id, entry.fields().map(|(name, value)| (name.to_vec(), value.to_vec())).collect())
}

fn draw_fields(random: &mut Random) -> Fields {
    let names: &[&[u8]] = match random.below(8) {
        0 => &[b"x"],
        1 => &[b"name", b"level", b"name"],
        2 => &[b"level", b"name"],
        _ => &[b"name", b"level"],
    };
    let mut value = || match random.below(6) {
        0 => vec![b'v'; random.below(300)],
        1 => random.next_u64().to_string().into_bytes(),
        2 => Vec::new(),
        _ => random.below(300).to_string().into_bytes(),
    };
    names.iter().map(|name| (name.to_vec(), value())).collect()
}

/// The expected contents of a stream, and the IDs that may be queried.
#[derive(Default)]
struct Model {
    entries: BTreeMap<StreamId, Fields>,
    last_id: StreamId,
    max_deleted_id: StreamId,
    added: u64,
}

impl Model {
    fn draw_id(&self, random: &mut Random) -> StreamId {
        id(random.below(self.last_id.ms as usize + 2) as u64, random.below(4) as u64)
    }
}

fn step(stream: &mut Stream, model: &mut Model, limits: BlockLimits, random: &mut Random) {
    match random.below(20) {
        0..=11 => {
            let wanted = match random.below(6) {
                0 => model.draw_id(random),
                1 => stream.log().next_id(model.last_id.ms + random.below(3) as u64).expect("IDs are left"),
                _ => id(model.last_id.ms + random.below(2) as u64, model.last_id.sequence + 1),
            };
            let fields = draw_fields(random);
            let added = append(stream, wanted, &fields, limits);
            assert_eq!(added.is_ok(), wanted > model.last_id);
            if added.is_ok() {
                model.entries.insert(wanted, fields);
                model.last_id = wanted;
                model.added += 1;
            }
        }
        12..=16 => {
            let wanted = model.draw_id(random);
            let was_there = model.entries.remove(&wanted).is_some();
            assert_eq!(stream.log_mut().delete(wanted), was_there);
            if was_there {
                model.max_deleted_id = model.max_deleted_id.max(wanted);
            }
        }
        _ => trim(stream, model, random),
    }
}

fn trim(stream: &mut Stream, model: &mut Model, random: &mut Random) {
    let trim = match random.below(2) {
        0 => Trim::ToLen(random.below(model.entries.len() + 10) as u64),
        _ => Trim::BelowId(model.draw_id(random)),
    };
    let whole_blocks = random.below(2) == 0;
    let limit = if whole_blocks { random.below(50) as u64 } else { 0 };
    let trimmed = stream.log_mut().trim(trim, whole_blocks, limit);
    let excess = match trim {
        Trim::ToLen(len) => (model.entries.len() as u64).saturating_sub(len),
        Trim::BelowId(limit) => model.entries.range(..limit).count() as u64,
    };
    assert!(if whole_blocks { trimmed <= excess } else { trimmed == excess });
    assert!(limit == 0 || trimmed <= limit);
    for _ in 0..trimmed {
        model.entries.pop_first();
    }
}

fn compare(stream: &Stream, model: &Model, random: &mut Random) {
    stream.check_invariants();
    let log = stream.log();
    assert_eq!(log.len(), model.entries.len() as u64);
    assert_eq!(log.entries_added(), model.added);
    assert_eq!((log.last_id(), log.max_deleted_id()), (model.last_id, model.max_deleted_id));
    assert_eq!(log.first_id(), model.entries.keys().next().copied().unwrap_or_default());
    assert_eq!(log.last_entry_id(), model.entries.keys().next_back().copied());
    let (start, end) = (model.draw_id(random), model.draw_id(random));
    for ids in [ALL, start..=end, start..=StreamId::MAX] {
        let expected: Vec<_> = match ids.start() <= ids.end() {
            true => model.entries.range(ids.clone()).map(|(id, fields)| (*id, fields.clone())).collect(),
            false => Vec::new(),
        };
        let mut forward = Vec::new();
        for entry in log.range(ids.clone()) {
            forward.push(contents(&entry));
        }
        assert_eq!(forward, expected);
        let mut backward = Vec::new();
        for entry in log.range_back(ids) {
            backward.push(contents(&entry));
        }
        backward.reverse();
        assert_eq!(backward, expected);
    }
    let wanted = model.draw_id(random);
    let expected = model.entries.get(&wanted).map(|fields| (wanted, fields.clone()));
    assert_eq!(log.entry(wanted).as_ref().map(contents), expected);
}

#[test]
fn a_log_agrees_with_a_tree_of_entries() {
    for seed in 1..=12 {
        let mut random = Random::seeded(seed);
        let limits = [
            LIMITS,
            BlockLimits { bytes_max: 0, entries_max: 3 },
            BlockLimits { bytes_max: 200, entries_max: 0 },
            BlockLimits { bytes_max: 1, entries_max: 0 },
        ][seed as usize % 4];
        let (mut stream, mut model) = (Stream::default(), Model::default());
        for round in 0..1500 {
            step(&mut stream, &mut model, limits, &mut random);
            if round % 25 == 0 {
                compare(&stream, &model, &mut random);
            }
        }
        compare(&stream, &model, &mut random);
        let copy = stream.clone();
        stream.log_mut().trim(Trim::ToLen(0), false, 0);
        assert_eq!(stream.log().len(), 0);
        compare(&copy, &model, &mut random);
    }
}

#[test]
fn blocks_have_the_bytes_of_redis() {
    let mut stream = Stream::default();
    append(&mut stream, id(5, 1), &one_field(), LIMITS).expect("the ID is greater");
    append(&mut stream, id(7, 0), &one_field(), LIMITS).expect("the ID is greater");
    append(&mut stream, id(7, 9), &vec![(b"x".to_vec(), b"12".to_vec())], LIMITS).expect("the ID is greater");
    stream.log_mut().delete(id(7, 0));
    let (first_id, bytes) = stream.log().blocks().next().expect("there is one");
    assert_eq!(first_id, id(5, 1));
    let expected = b"\x43\0\0\0\x16\0\
        \x02\x01\x01\x01\x01\x01\x84name\x05\x00\x01\
        \x02\x01\x00\x01\x00\x01\x85value\x06\x04\x01\
        \x03\x01\x02\x01\xdf\xff\x02\x85value\x06\x04\x01\
        \x00\x01\x02\x01\x08\x01\x01\x01\x81x\x02\x0c\x01\x06\x01\xff";
    assert_eq!(bytes, expected);
}

#[test]
fn memory_is_accounted_as_blocks_and_groups_are_added_and_removed() {
    let mut stream = Stream::default();
    let empty = stream.memory_bytes();
    for number in 1..=10_000 {
        append(&mut stream, id(number, 0), &one_field(), LIMITS).expect("IDs ascend");
    }
    assert_eq!(stream.log().block_count(), 100);
    let full = stream.memory_bytes() - empty;
    // 13 bytes of an entry are its value, delta and flags; a block takes 48 bytes in addition to its listpack.
    assert!((140_000..170_000).contains(&full), "{full}");
    stream.groups_mut().create(b"group", Group::new(StreamId::MIN, None));
    stream.edit_group(b"group", |_, group| {
        let consumer = group.add_consumer(b"consumer", 0);
        for number in 1..=100 {
            group.set_pending(id(number, 0), Pending { delivered_ms: 0, deliveries: 1, consumer });
        }
    });
    assert!(stream.memory_bytes() > empty + full + 5_000);
    assert!(stream.groups_mut().destroy(b"group"));
    assert_eq!(stream.memory_bytes(), empty + full);
    stream.log_mut().trim(Trim::ToLen(0), false, 0);
    assert!(stream.memory_bytes() < empty + 200, "{}", stream.memory_bytes());
}

#[test]
fn a_stream_of_a_million_small_entries_takes_little_memory() {
    let mut stream = Stream::default();
    for number in 1..=1_000_000u64 {
        let value = number.to_string();
        let fields = [(&b"n"[..], value.as_bytes())];
        stream
            .log_mut()
            .append(id(1_700_000_000_000 + number, 0), fields.into_iter(), LIMITS)
            .expect("IDs ascend");
    }
    // Redis 7.0.15 takes 15.9 million bytes for the same stream, by its own count.
    let bytes = stream.memory_bytes();
    assert!(bytes < 15_900_000, "{bytes}");
}

#[test]
fn pending_entries_are_those_of_a_group_and_of_one_consumer() {
    let mut random = Random::seeded(3);
    let mut group = Group::new(StreamId::MIN, None);
    let mut model: BTreeMap<StreamId, usize> = BTreeMap::new();
    let mut present: BTreeSet<usize> = BTreeSet::new();
    let name = |consumer: usize| format!("consumer {consumer}").into_bytes();
    for _ in 0..5000 {
        let (entry, consumer) = (id(random.below(40) as u64, 0), random.below(6));
        match random.below(10) {
            0 => {
                let removed = group.remove_consumer(&name(consumer));
                assert_eq!(removed.is_some(), present.remove(&consumer));
                let before = model.len();
                model.retain(|_, owner| *owner != consumer);
                assert_eq!(removed.unwrap_or(0), before - model.len());
            }
            1..=4 => assert_eq!(group.acknowledge(entry), model.remove(&entry).is_some()),
            _ => {
                let number = group.number_of(&name(consumer));
                let number = number.unwrap_or_else(|| group.add_consumer(&name(consumer), 0));
                group.set_pending(entry, Pending { delivered_ms: 0, deliveries: 1, consumer: number });
                model.insert(entry, consumer);
                present.insert(consumer);
            }
        }
        group.check_invariants();
        let pending: Vec<_> = group.pending(ALL).map(|(id, pending)| (id, pending.consumer)).collect();
        let expected = model
            .iter()
            .map(|(id, owner)| (*id, group.number_of(&name(*owner)).expect("the consumer exists")));
        assert_eq!(pending, expected.collect::<Vec<_>>());
    }
}

/// Returns a stream of the entries 1-0 to 5-0, and a group at `last_id` that has read `entries_read`.
fn numbered(last_id: StreamId, entries_read: Option<i64>) -> (Stream, Group) {
    let mut stream = Stream::default();
    (1..=5).for_each(|number| append(&mut stream, id(number, 0), &one_field(), LIMITS).expect("IDs ascend"));
    (stream, Group::new(last_id, entries_read))
}

#[test]
fn lag_is_known_at_the_ends_of_a_stream() {
    for (last_id, lag) in
        [(id(0, 0), Some(5)), (id(1, 0), Some(4)), (id(3, 0), None), (id(5, 0), Some(0)), (id(6, 0), None)]
    {
        let (stream, group) = numbered(last_id, None);
        assert_eq!(group.lag(stream.log()), lag, "{last_id}");
    }
}

#[test]
fn lag_follows_reading_and_survives_trimming() {
    let (mut stream, mut group) = numbered(StreamId::MIN, Some(0));
    group.advance(stream.log(), id(1, 0));
    group.advance(stream.log(), id(2, 0));
    assert_eq!((group.entries_read, group.lag(stream.log())), (Some(2), Some(3)));
    stream.log_mut().trim(Trim::ToLen(1), false, 0);
    assert_eq!(group.lag(stream.log()), Some(1));
    group.advance(stream.log(), id(5, 0));
    assert_eq!((group.entries_read, group.lag(stream.log())), (Some(5), Some(0)));
}

#[test]
fn lag_is_unknown_while_deleted_entries_lie_ahead() {
    let (mut stream, mut group) = numbered(StreamId::MIN, Some(0));
    group.advance(stream.log(), id(1, 0));
    stream.log_mut().delete(id(4, 0));
    assert_eq!(group.lag(stream.log()), None);
    group.advance(stream.log(), id(2, 0));
    assert_eq!(group.entries_read, None);
    group.advance(stream.log(), id(3, 0));
    group.advance(stream.log(), id(5, 0));
    assert_eq!((group.entries_read, group.lag(stream.log())), (Some(5), Some(0)));
}

#[test]
fn an_empty_stream_has_no_lag() {
    let (mut stream, group) = numbered(id(2, 0), Some(2));
    stream.log_mut().trim(Trim::ToLen(0), false, 0);
    assert_eq!(group.lag(stream.log()), Some(0));
    assert_eq!(group.lag(Stream::default().log()), Some(0));
}
