//! Tests of the list: a deque as the model, with limits so small that every command reaches the edge of a node.

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;

type Model = VecDeque<Vec<u8>>;

fn elements(list: &List) -> Model {
    list.copies().collect()
}

fn compressed_count(list: &List) -> usize {
    let Form::Nodes(nodes) = &list.form else { return 0 };
    nodes.nodes().filter(|node| matches!(node, node::Node::Compressed(_))).count()
}

fn filled(count: usize, limit: NodeLimit) -> List {
    let mut list = List::default();
    for number in 0..count {
        list.push(End::Back, NewElement::Bytes(format!("element {number}").as_bytes()), limit);
    }
    list
}

fn node_count(list: &List) -> usize {
    match &list.form {
        Form::Packed(_) => 0,
        Form::Nodes(list) => list.node_count(),
    }
}

#[test]
fn node_limits_are_those_of_redis() {
    for (parameter, bytes) in [(-1, 4096), (-2, 8192), (-3, 16_384), (-4, 32_768), (-5, 65_536), (-6, 65_536)]
    {
        let limit = NodeLimit::new(parameter);
        assert!(
            !limit.is_exceeded_by(bytes, usize::MAX) && limit.is_exceeded_by(bytes + 1, 1),
            "{parameter}"
        );
    }
    for (parameter, count) in [(0, 1), (1, 1), (128, 128)] {
        let limit = NodeLimit::new(parameter);
        assert!(!limit.is_exceeded_by(8192, count) && limit.is_exceeded_by(1, count + 1), "{parameter}");
        assert!(limit.is_exceeded_by(8193, 1));
    }
}

#[test]
fn a_list_grows_into_nodes_and_shrinks_back_at_half_the_limit() {
    let limit = NodeLimit::new(8);
    let mut list = filled(8, limit);
    assert_eq!(list.encoding_name(), "listpack");
    list.push(End::Back, NewElement::Bytes(b"x"), limit);
    assert_eq!((list.encoding_name(), node_count(&list)), ("quicklist", 2));
    list.remove_end(End::Back, 1, limit);
    assert_eq!((list.encoding_name(), node_count(&list)), ("quicklist", 1));
    list.remove_end(End::Front, 3, limit);
    assert_eq!(list.encoding_name(), "quicklist");
    list.remove_end(End::Front, 1, limit);
    assert_eq!((list.encoding_name(), list.len()), ("listpack", 4));
}

#[test]
fn nodes_stay_within_their_limit_and_are_filled() {
    let limit = NodeLimit::new(-2);
    let list = filled(100_000, limit);
    let Form::Nodes(nodes) = &list.form else { panic!("it is a large list") };
    for node in nodes.nodes() {
        let node::Node::Packed(packed) = node else { panic!("no element is large") };
        assert!(packed.len_bytes() <= 8192);
    }
    let bytes: usize = list.copies().map(|element| element.len() + 2).sum();
    assert!(list.memory_bytes() < bytes + bytes / 50, "{} for {bytes}", list.memory_bytes());
}

#[test]
fn a_large_element_is_shared_and_not_copied() {
    let limit = NodeLimit::new(-2);
    let bytes = Arc::new(vec![b'x'; 100_000]);
    let mut list = filled(3, limit);
    list.push(End::Front, NewElement::Large(&bytes), limit);
    let Some(Element::Large(kept)) = list.end(End::Front) else { panic!("it is large") };
    assert!(Arc::ptr_eq(kept, &bytes));
    assert!(list.memory_bytes() > 100_000);
    let copy = list.clone();
    list.set(0, NewElement::Bytes(b"small"), limit);
    assert_eq!((list.encoding_name(), list.len()), ("listpack", 4));
    assert!(copy.with(0, |element| matches!(element, Some(Element::Large(_)))));
}

#[test]
fn growing_elements_split_nodes_and_shrinking_ones_merge_them() {
    let limit = NodeLimit::new(-1);
    let mut list = filled(5, limit);
    list.set(2, NewElement::Bytes(&[b'x'; 5000]), limit);
    assert_eq!((list.encoding_name(), node_count(&list), list.len()), ("quicklist", 3, 5));
    list.set(2, NewElement::Bytes(b"element 2"), limit);
    assert_eq!(list.encoding_name(), "listpack");
    assert_eq!(elements(&list), elements(&filled(5, limit)));
}

#[test]
fn the_account_of_memory_returns_to_where_it_was() {
    let limit = NodeLimit::new(-2);
    let mut list = filled(10, limit);
    let memory_bytes = list.memory_bytes();
    for number in 0..10_000 {
        list.push(End::Front, NewElement::Bytes(number.to_string().as_bytes()), limit);
    }
    list.remove_end(End::Front, 10_000, limit);
    assert_eq!((list.len(), list.memory_bytes()), (10, memory_bytes));
}

#[test]
fn inner_nodes_are_compressed_and_the_ends_are_not() {
    for depth in [1, 2, 5] {
        let limit = NodeLimit::new(8).with_depth(depth);
        let mut list = filled(800, limit);
        assert_eq!((node_count(&list), compressed_count(&list)), (100, 100 - 2 * depth));
        list.check_invariants();
        for number in 0..80 {
            list.push(End::Front, NewElement::Bytes(format!("before {number}").as_bytes()), limit);
        }
        assert_eq!((node_count(&list), compressed_count(&list)), (110, 110 - 2 * depth));
        list.remove_end(End::Back, 400, limit);
        assert_eq!((node_count(&list), compressed_count(&list)), (60, 60 - 2 * depth));
        list.set(240, NewElement::Bytes(b"another"), limit);
        assert_eq!(compressed_count(&list), 60 - 2 * depth, "the changed node is compressed again");
        assert!(list.with(240, |element| element.unwrap().bytes(&mut itoa::Buffer::new()) == b"another"));
        assert_eq!(list.remove_matching(&Needle::new(b"another"), End::Front, 9, limit), 1);
        assert_eq!(compressed_count(&list), 60 - 2 * depth);
        list.clone().check_invariants();
        list.remove_range(8 * depth, 480 - 1 - 16 * depth, limit);
        assert_eq!(compressed_count(&list), 0);
        list.check_invariants();
    }
}

#[test]
fn compression_saves_memory_and_applies_to_later_changes() {
    let (plain, compressing) = (NodeLimit::new(-2), NodeLimit::new(-2).with_depth(1));
    let (mut list, small) = (filled(50_000, plain), filled(50_000, compressing));
    assert!(
        small.memory_bytes() < list.memory_bytes() / 2,
        "{} {}",
        small.memory_bytes(),
        list.memory_bytes()
    );
    assert_eq!(elements(&small), elements(&list));
    assert_eq!(compressed_count(&list), 0);
    list.set(25_000, NewElement::Bytes(b"x"), compressing);
    assert!((1..=11).contains(&compressed_count(&list)), "only nodes near the change are compressed");
    let mut list = small;
    list.set(25_000, NewElement::Bytes(b"x"), plain);
    assert_eq!(compressed_count(&list), node_count(&list) - 3);
    list.remove_end(End::Front, 49_999, plain);
    list.check_invariants();
    assert_eq!((list.encoding_name(), list.len()), ("listpack", 1));
}

#[derive(Clone, Debug)]
enum Edit {
    Push(End, Vec<Vec<u8>>),
    PushLarge(End, usize),
    RemoveEnd(End, usize),
    RemoveRange(usize, usize),
    Set(usize, Vec<u8>),
    InsertNextTo(usize, Side, Vec<u8>),
    RemoveMatching(usize, End, usize),
    Rotate(End, End),
    Limit(NodeLimit),
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Front), Just(End::Back)]
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Before), Just(Side::After)]
}

/// Returns one of few different values, so that equal elements occur; some are larger than any node.
fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0i64..6).prop_map(|number| number.to_string().into_bytes()),
        4 => (0usize..4).prop_map(|len| vec![b'x'; len]),
        2 => (0usize..4).prop_map(|len| vec![b'y'; len * 700]),
        1 => Just(vec![b'z'; 9000]),
    ]
}

fn limit() -> impl Strategy<Value = NodeLimit> {
    let depth = prop_oneof![2 => Just(0usize), 3 => 1usize..4];
    (size_limit(), depth).prop_map(|(limit, depth)| limit.with_depth(depth))
}

fn size_limit() -> impl Strategy<Value = NodeLimit> {
    prop_oneof![
        (1i64..6).prop_map(NodeLimit::new),
        Just(NodeLimit::new(-1)),
        (16usize..64).prop_map(NodeLimit::of_bytes),
        (64usize..200).prop_map(NodeLimit::of_bytes),
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    let place = any::<usize>;
    prop_oneof![
        6 => (end(), proptest::collection::vec(element(), 1..5)).prop_map(|(end, elements)| Edit::Push(end, elements)),
        1 => (end(), 8000usize..40_000).prop_map(|(end, len)| Edit::PushLarge(end, len)),
        2 => (end(), 0usize..4).prop_map(|(end, count)| Edit::RemoveEnd(end, count)),
        1 => (place(), 0usize..12).prop_map(|(start, count)| Edit::RemoveRange(start, count)),
        3 => (place(), element()).prop_map(|(index, element)| Edit::Set(index, element)),
        6 => (place(), side(), element()).prop_map(|(pivot, side, element)| Edit::InsertNextTo(pivot, side, element)),
        1 => (place(), end(), 1usize..4).prop_map(|(index, end, count)| Edit::RemoveMatching(index, end, count)),
        1 => (end(), end()).prop_map(|(from, to)| Edit::Rotate(from, to)),
        1 => limit().prop_map(Edit::Limit),
    ]
}

fn push(model: &mut Model, end: End, element: Vec<u8>) {
    match end {
        End::Front => model.push_front(element),
        End::Back => model.push_back(element),
    }
}

fn pop(model: &mut Model, end: End) -> Option<Vec<u8>> {
    match end {
        End::Front => model.pop_front(),
        End::Back => model.pop_back(),
    }
}

/// Removes up to `count` elements equal to `needle` from the model.
fn remove_matching(model: &mut Model, needle: &[u8], from: End, count: usize) -> usize {
    let mut removed = 0;
    while removed < count {
        let found = match from {
            End::Front => model.iter().position(|element| element == needle),
            End::Back => model.iter().rposition(|element| element == needle),
        };
        let Some(index) = found else { break };
        model.remove(index);
        removed += 1;
    }
    removed
}

fn apply(edit: Edit, list: &mut List, model: &mut Model, limit: &mut NodeLimit) {
    let limit_now = *limit;
    let place = |fraction: usize| (!model.is_empty()).then(|| fraction % model.len());
    match edit {
        Edit::Push(end, elements) => {
            list.push_all(end, elements.iter().map(|element| NewElement::Bytes(element)), limit_now);
            elements.into_iter().for_each(|element| push(model, end, element));
        }
        Edit::PushLarge(end, len) => {
            let bytes = Arc::new(vec![b'L'; len]);
            list.push(end, NewElement::Large(&bytes), limit_now);
            push(model, end, bytes.to_vec());
        }
        Edit::RemoveEnd(end, count) => {
            list.remove_end(end, count, limit_now);
            (0..count).for_each(|_| _ = pop(model, end));
        }
        Edit::RemoveRange(start, count) => {
            let Some(start) = place(start) else { return };
            list.remove_range(start, count, limit_now);
            model.drain(start..(start + count).min(model.len()));
        }
        Edit::Set(index, element) => {
            let Some(index) = place(index) else {
                assert!(!list.set(index, NewElement::Bytes(&element), limit_now));
                return;
            };
            assert!(list.set(index, NewElement::Bytes(&element), limit_now));
            model[index] = element;
        }
        Edit::InsertNextTo(pivot, side, element) => {
            let pivot = place(pivot).map_or(b"absent".to_vec(), |index| model[index].clone());
            let found = model.iter().position(|candidate| *candidate == pivot);
            let is_added =
                list.insert_next_to(&Needle::new(&pivot), side, NewElement::Bytes(&element), limit_now);
            assert_eq!(is_added, found.is_some());
            if let Some(index) = found {
                model.insert(index + usize::from(side == Side::After), element);
            }
        }
        Edit::RemoveMatching(index, from, count) => {
            let needle = place(index).map_or(b"absent".to_vec(), |index| model[index].clone());
            let removed = list.remove_matching(&Needle::new(&needle), from, count, limit_now);
            assert_eq!(removed, remove_matching(model, &needle, from, count));
        }
        Edit::Rotate(from, to) => {
            let moved = list.rotate(from, to, limit_now);
            let expected = pop(model, from);
            assert_eq!(moved.map(|element| element.as_new().bytes().to_vec()), expected);
            expected.into_iter().for_each(|element| push(model, to, element));
        }
        Edit::Limit(new) => *limit = new,
    }
}

proptest! {
    #[test]
    fn a_list_agrees_with_a_deque(
        edits in proptest::collection::vec(edit(), 0..60),
        first_limit in limit(),
    ) {
        let (mut list, mut model, mut limit) = (List::default(), Model::new(), first_limit);
        for edit in edits {
            apply(edit, &mut list, &mut model, &mut limit);
            list.check_invariants();
            prop_assert_eq!(list.len(), model.len());
            prop_assert_eq!(&elements(&list), &model);
        }
        for index in 0..model.len() {
            prop_assert!(list.with(index, |element| element.unwrap().bytes(&mut itoa::Buffer::new()) == model[index]));
            for (from, position) in [(End::Front, index), (End::Back, model.len() - 1 - index)] {
                let mut found = Vec::new();
                list.find(&Needle::new(&model[index]), from, usize::MAX, |distance| {
                    found.push(distance);
                    ControlFlow::Continue(())
                });
                prop_assert!(found.contains(&position) && found.is_sorted());
                let equal = model.iter().filter(|other| **other == model[index]).count();
                prop_assert_eq!(found.len(), equal);
                list.find(&Needle::new(&model[index]), from, position, |distance| {
                    assert!(distance < position);
                    ControlFlow::Continue(())
                });
            }
        }
        for (start, len) in [(0, model.len()), (model.len() / 3, model.len()), (1, 3)] {
            let mut visited = Model::new();
            list.visit(start..start + len, |element| visited.push_back(element.bytes(&mut itoa::Buffer::new()).to_vec()));
            prop_assert!(visited.iter().eq(model.iter().skip(start).take(len)));
        }
        let mut last = Model::new();
        list.visit_last(5, |element| last.push_back(element.bytes(&mut itoa::Buffer::new()).to_vec()));
        prop_assert!(last.iter().eq(model.iter().rev().take(5)));
        prop_assert!(list.with(model.len(), |element| element.is_none()));
        prop_assert!(list.copies().rev().eq(model.iter().rev().cloned()));
        let copy = list.clone();
        copy.check_invariants();
        prop_assert_eq!(elements(&copy), model);
    }
}
