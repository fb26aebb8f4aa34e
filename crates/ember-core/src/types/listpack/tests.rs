//! Tests of the listpack: the bytes of redis-server, a vector as the model, and hostile bytes.

use proptest::prelude::*;

use std::collections::VecDeque;

use super::*;

fn listpack(elements: &[&[u8]]) -> Listpack {
    let mut listpack = Listpack::new();
    elements.iter().for_each(|element| listpack.push_back(element));
    listpack
}

fn elements(listpack: &Listpack) -> Vec<Vec<u8>> {
    listpack.iter().map(Element::to_vec).collect()
}

#[test]
fn the_bytes_are_those_of_redis() {
    let words = "a 1 127 128 -1 4095 -4096 4096 -4097 32767 32768 8388607 8388608 2147483647 2147483648 \
        9223372036854775807 -9223372036854775808";
    let mut packed = Listpack::new();
    words.split_whitespace().for_each(|word| packed.push_back(word.as_bytes()));
    [&b""[..], b"01", b"-0", b"hello"].iter().for_each(|word| packed.push_back(word));
    let redis: &[u8] = b"kk\x00\x00\x00\x15\x00\x81a\x02\x01\x01\x7f\x01\xc0\x80\x02\xdf\xff\x02\xcf\xff\x02\xd0\x00\x02\
        \xf1\x00\x10\x03\xf1\xff\xef\x03\xf1\xff\x7f\x03\xf2\x00\x80\x00\x04\xf2\xff\xff\x7f\x04\xf3\x00\x00\x80\x00\x05\
        \xf3\xff\xff\xff\x7f\x05\xf4\x00\x00\x00\x80\x00\x00\x00\x00\t\xf4\xff\xff\xff\xff\xff\xff\xff\x7f\t\
        \xf4\x00\x00\x00\x00\x00\x00\x00\x80\t\x80\x01\x8201\x03\x82-0\x03\x85hello\x06\xff";
    // The first byte is the length of the string in the RDB format.
    assert_eq!(packed.as_bytes(), &redis[1..]);
    let read = Listpack::from_bytes(redis[1..].to_vec()).expect("redis-server wrote it");
    assert_eq!(elements(&read), elements(&packed));
    let long = listpack(&[&[b'x'; 63], &[b'x'; 64]]);
    let x63 = [b'x'; 63];
    assert_eq!(
        long.as_bytes(),
        [b"\x8b\x00\x00\x00\x02\x00\xbf", &x63[..], b"@\xe0@", &x63[..], b"xB\xff"].concat()
    );
}

#[test]
fn a_new_listpack_owns_no_memory_and_reads_as_redis_writes_it() {
    let empty = Listpack::new();
    assert_eq!(empty.memory_bytes(), 0);
    assert_eq!(empty.as_bytes(), b"\x07\x00\x00\x00\x00\x00\xff");
    assert_eq!((empty.first(), empty.last(), empty.at(0), empty.at(-1)), (None, None, None, None));
    assert_eq!(empty.iter().next(), None);
    assert_eq!(Listpack::from_bytes(empty.as_bytes().to_vec()), Ok(empty));
}

#[test]
fn entries_of_every_length_are_read_from_both_ends() {
    for len in
        [0, 1, 63, 64, 126, 127, 4095, 4096, 16_376, 16_377, 16_378, 16_379, 2_097_145, 2_097_146, 2_097_147]
    {
        let long = vec![b'x'; len];
        let packed = listpack(&[b"first", &long, b"last"]);
        packed.check_invariants();
        assert_eq!(elements(&packed), [b"first", &long[..], b"last"]);
        let backwards: Vec<Vec<u8>> = packed.iter_back().map(Element::to_vec).collect();
        assert_eq!(backwards, [b"last", &long[..], b"first"]);
    }
}

#[test]
fn integers_of_every_width_keep_their_value() {
    for bits in 0..63 {
        for number in [1i64 << bits, (1 << bits) - 1, -(1 << bits), -(1 << bits) - 1] {
            let mut packed = Listpack::new();
            packed.push_back_integer(number);
            packed.push_back(number.to_string().as_bytes());
            packed.check_invariants();
            assert!(packed.iter().all(|element| element == Element::Integer(number)), "{number}");
        }
    }
}

#[test]
fn only_canonical_integers_are_kept_as_integers() {
    assert_eq!(fits_integer(b"-9223372036854775808"), Some(i64::MIN));
    for text in ["", "-", "+1", "01", "-0", "1 ", " 1", "1.0", "9223372036854775808"] {
        assert_eq!(fits_integer(text.as_bytes()), None, "{text}");
        assert_eq!(listpack(&[text.as_bytes()]).iter().next(), Some(Element::Bytes(text.as_bytes())));
    }
}

#[test]
fn find_skips_elements_between_comparisons() {
    let pairs = listpack(&[b"value", b"field", b"field", b"5", b"5", b"x"]);
    let first = pairs.first().expect("there are elements");
    assert_eq!(pairs.find(first, b"field", 1), pairs.at(2));
    assert_eq!(pairs.find(first, b"field", 0), pairs.at(1));
    assert_eq!(pairs.find(first, b"5", 1), pairs.at(4));
    assert_eq!(pairs.find(first, b"05", 0), None);
    assert_eq!(pairs.find(first, b"x", 1), None);
}

#[test]
fn more_elements_than_the_header_counts_are_counted() {
    let mut packed = Listpack::new();
    (0..70_000).for_each(|_| packed.push_back(b"1"));
    assert_eq!(packed.len(), 70_000);
    assert_eq!(packed.as_bytes()[4..6], [0xFF, 0xFF]);
    let read = Listpack::from_bytes(packed.as_bytes().to_vec()).expect("it is a listpack");
    assert_eq!(read.len(), 70_000);
    let first = packed.first().expect("there are elements");
    packed.remove_range(first, 69_999);
    assert_eq!(packed.as_bytes(), b"\x09\x00\x00\x00\x01\x00\x01\x01\xff");
    assert!(packed.memory_bytes() <= 16);
}

#[test]
fn inconsistent_bytes_are_rejected() {
    let good = listpack(&[b"hello", b"1000", &[b'x'; 70], b"12345678901"]).as_bytes().to_vec();
    assert!(Listpack::from_bytes(good.clone()).is_ok());
    assert_eq!(Listpack::from_bytes(Vec::new()), Err(Corrupt));
    for len in 0..good.len() {
        assert_eq!(Listpack::from_bytes(good[..len].to_vec()), Err(Corrupt), "cut to {len}");
    }
    for position in (0..HEADER_BYTES).chain([good.len() - 1]) {
        let mut bad = good.clone();
        bad[position] ^= 1;
        assert_eq!(Listpack::from_bytes(bad), Err(Corrupt), "byte {position}");
    }
    for huge in [&b"\xf0\xff\xff\xff\xff"[..], b"\xf5", b"\xff\x01", b"\xe0"] {
        let mut bad = vec![0, 0, 0, 0, 0xFF, 0xFF];
        bad.extend_from_slice(huge);
        bad.push(END);
        bad[0] = bad.len() as u8;
        assert_eq!(Listpack::from_bytes(bad), Err(Corrupt), "{huge:?}");
    }
}

/// An edit; positions are taken modulo the length.
#[derive(Clone, Debug)]
enum Edit {
    PushBack(Vec<u8>),
    PushFront(Vec<u8>),
    PushInteger(i64),
    InsertBefore(usize, Vec<u8>),
    InsertAfter(usize, Vec<u8>),
    Replace(usize, Vec<u8>),
    ReplaceInteger(usize, i64),
    Remove(usize),
    RemoveRange(usize, usize),
    SplitAndAppend(usize),
    Retain(usize),
}

fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string().into_bytes()),
        (-5000i64..5000).prop_map(|number| number.to_string().into_bytes()),
        proptest::collection::vec(any::<u8>(), 0..80),
        (0usize..5000).prop_map(|len| vec![b'x'; len]),
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    let place = any::<usize>;
    prop_oneof![
        3 => element().prop_map(Edit::PushBack),
        3 => element().prop_map(Edit::PushFront),
        1 => any::<i64>().prop_map(Edit::PushInteger),
        1 => (place(), element()).prop_map(|(at, element)| Edit::InsertBefore(at, element)),
        1 => (place(), element()).prop_map(|(at, element)| Edit::InsertAfter(at, element)),
        1 => (place(), element()).prop_map(|(at, element)| Edit::Replace(at, element)),
        1 => (place(), any::<i64>()).prop_map(|(at, number)| Edit::ReplaceInteger(at, number)),
        2 => place().prop_map(Edit::Remove),
        1 => (place(), 0usize..6).prop_map(|(at, count)| Edit::RemoveRange(at, count)),
        1 => place().prop_map(Edit::SplitAndAppend),
        1 => (1usize..5).prop_map(Edit::Retain),
    ]
}

/// Applies an edit to both; edits that need an element do nothing if there is none.
fn apply(edit: Edit, packed: &mut Listpack, model: &mut Vec<Vec<u8>>) {
    let len = model.len();
    let place = |fraction: usize| (len > 0).then(|| fraction % len);
    let offset_of = |packed: &Listpack, index: usize| packed.at(index as isize).expect("the index is inside");
    match edit {
        Edit::PushBack(element) => {
            packed.push_back(&element);
            model.push(element);
        }
        Edit::PushFront(element) => {
            packed.push_front(&element);
            model.insert(0, element);
        }
        Edit::PushInteger(number) => {
            packed.push_back_integer(number);
            model.push(number.to_string().into_bytes());
        }
        Edit::InsertBefore(at, element) => {
            let Some(index) = place(at) else { return };
            packed.insert_before(offset_of(packed, index), &element);
            model.insert(index, element);
        }
        Edit::InsertAfter(at, element) => {
            let Some(index) = place(at) else { return };
            let offset = packed.insert_after(offset_of(packed, index), &element);
            assert!(packed.get(offset).eq_bytes(&element));
            model.insert(index + 1, element);
        }
        Edit::Replace(at, element) => {
            let Some(index) = place(at) else { return };
            packed.replace(offset_of(packed, index), &element);
            model[index] = element;
        }
        Edit::ReplaceInteger(at, number) => {
            let Some(index) = place(at) else { return };
            packed.replace_integer(offset_of(packed, index), number);
            model[index] = number.to_string().into_bytes();
        }
        Edit::Remove(at) => {
            let Some(index) = place(at) else { return };
            let next = packed.remove(offset_of(packed, index));
            model.remove(index);
            assert_eq!(next.map(|offset| packed.get(offset).to_vec()), model.get(index).cloned());
        }
        Edit::RemoveRange(at, count) => {
            let Some(index) = place(at) else { return };
            packed.remove_range(offset_of(packed, index), count);
            model.drain(index..(index + count).min(len));
        }
        Edit::SplitAndAppend(at) => {
            let Some(index) = place(at) else { return };
            let tail = packed.split_off(offset_of(packed, index));
            tail.check_invariants();
            assert_eq!(elements(&tail), model[index..]);
            packed.check_invariants();
            packed.append(&tail);
        }
        Edit::Retain(divisor) => {
            let keeps = |bytes: &[u8]| !bytes.len().is_multiple_of(divisor);
            packed.retain(|element| keeps(&element.to_vec()));
            model.retain(|element| keeps(element));
        }
    }
}

proptest! {
    #[test]
    fn a_listpack_agrees_with_a_vector(edits in proptest::collection::vec(edit(), 0..40)) {
        let mut packed = Listpack::new();
        let mut model: Vec<Vec<u8>> = Vec::new();
        for edit in edits {
            apply(edit, &mut packed, &mut model);
            packed.check_invariants();
            prop_assert_eq!(&elements(&packed), &model);
        }
        let backwards: Vec<Vec<u8>> = packed.iter_back().map(Element::to_vec).collect();
        prop_assert!(backwards.iter().eq(model.iter().rev()));
        for (index, element) in model.iter().enumerate() {
            let offset = packed.at(index as isize).expect("the index is inside");
            prop_assert_eq!(packed.at(index as isize - model.len() as isize), Some(offset));
            prop_assert!(packed.get(offset).eq_bytes(element));
            prop_assert_eq!(packed.iter_from(offset).count(), model.len() - index);
            prop_assert_eq!(packed.iter_to(offset).count(), index + 1);
            prop_assert_eq!(packed.prev(offset).is_none(), index == 0);
            prop_assert_eq!(packed.next(offset).is_none(), index + 1 == model.len());
            let found = packed.find(HEADER_BYTES, element, 0).expect("the element exists");
            prop_assert!(found <= offset);
        }
    }

    #[test]
    fn changed_bytes_are_refused_or_read_without_a_panic(
        edits in proptest::collection::vec(edit(), 0..8),
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..4),
    ) {
        let mut packed = Listpack::new();
        let mut model = Vec::new();
        edits.into_iter().for_each(|edit| apply(edit, &mut packed, &mut model));
        let mut bytes = packed.as_bytes().to_vec();
        let len = bytes.len();
        changes.into_iter().for_each(|(position, byte)| bytes[position % len] = byte);
        if let Ok(mut read) = Listpack::from_bytes(bytes) {
            prop_assert_eq!(read.iter().count(), read.len());
            prop_assert_eq!(read.iter_back().count(), read.len());
            read.push_front(b"x");
            read.push_back(b"y");
            read.check_invariants();
        }
    }
}

#[test]
fn a_queue_in_a_listpack_takes_bounded_memory() {
    for (front_in, front_out) in [(true, false), (false, true), (true, true), (false, false)] {
        let mut listpack = Listpack::new();
        let mut model = VecDeque::new();
        for number in 0..2000 {
            let element = vec![b'a' + (number % 26) as u8; 1 + number % 90];
            if front_in {
                listpack.push_front(&element);
                model.push_front(element);
            } else {
                listpack.push_back(&element);
                model.push_back(element);
            }
            if model.len() > 50 {
                let offset = if front_out { listpack.first() } else { listpack.last() };
                listpack.remove(offset.unwrap());
                if front_out {
                    model.pop_front()
                } else {
                    model.pop_back()
                };
            }
            assert!(listpack.iter().map(Element::to_vec).eq(model.iter().cloned()));
            listpack.check_invariants();
        }
    }
}
