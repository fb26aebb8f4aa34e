//! Vector sets in the format of Redis 8: a value of a module, in parts that state their types ([`super::parts`]).
//!
//! ```text
//! parts     dimensions | elements | quantization and M << 8 | flags | [dimensions before, matrix] | element …
//! element   name | [attributes] | vector | count of the following numbers | id | level and version << 24
//!           | for each level from 0: links, capacity, ids of linked nodes, distance and index of the farthest
//!           | length of the vector and its largest number << 32
//! ```
//!
//! A set that Redis 8.0 does not support (another metric or kind of index, 16-bit floats, an index created by
//! VECTOR.CREATE) is a value of ember's own module. Its parts begin with a version, the metric, the kind of numbers,
//! the kind of index, the two widths of VECTOR.CREATE (0 for a set that this command did not create) and the number of
//! insertions; the same parts as above follow. An index with lists has two more parts before those: the configured
//! number of lists, and the number of lists that a search reads. After its elements follows the number of vectors with
//! which the lists were trained, 0 without lists. If it is not 0, two strings follow: the centroids as floats, and the
//! list of each element in 4 bytes.
//!
//! Elements are in the order of their slots. (Redis writes the newest first, but nothing relies on the order.) Ids are
//! the slots plus one; the last slot has the number of insertions as its id, so that numbering can continue.
//!
//! The format: Redis 8.0, module `vectorset`, version 0, nodes of version 1; nodes of version 0 have no farthest link.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use super::format::{LoadError, Reader, Writer};
use super::parts::{self, Parts, number, string, string_into};
use crate::types::Collection;
use crate::types::vector_set::{
    DIM_MAX, Kind, LEVEL_MAX, LINKS_DEFAULT, LINKS_MAX, LINKS_MIN, Loading, Metric, Projection, Saved,
    Scalar, Shape, TUNING_DEFAULT, Tuning, VectorSet,
};

/// The number of the module: nine letters of six bits, `vectorset`, and ten bits of version 0.
pub(super) const MODULE_ID: u64 = 13_683_956_169_735_844_864;

/// The number of ember's own module: `embervidx`, version 0.
pub(super) const OWN_MODULE_ID: u64 = 8_819_981_763_328_459_776;

/// The version of the parts of ember's own module.
const OWN_VERSION: u64 = 1;

/// Metrics, indexed by their numbers in files.
const METRICS: [Metric; 3] = [Metric::Cosine, Metric::L2, Metric::InnerProduct];
/// Kinds of numbers, indexed by their numbers in files; the first three are those of Redis.
const SCALARS: [Scalar; 5] = [Scalar::F32, Scalar::Int8, Scalar::Binary, Scalar::F16, Scalar::Bf16];
/// The number of a graph in files.
const KIND_HNSW: u64 = 0;
/// The number of a flat index in files.
const KIND_FLAT: u64 = 1;
/// The number of an index with lists in files.
const KIND_IVF: u64 = 2;

/// Flag: vectors are reduced by a matrix.
const HAS_MATRIX: u64 = 1;
/// Flag: there are attributes.
const HAS_ATTRIBUTES: u64 = 2;

/// The version of nodes that is written, and the newest that is read.
const NODE_VERSION: u64 = 1;

/// The maximum count of a node's numbers: for a node with the maximum number of levels and of links on each, and four
/// times as many links on the lowest.
const NODE_NUMBERS_MAX: u64 = 3 + (LEVEL_MAX as u64 + 4) * (LINKS_MAX as u64 + 3);

/// The version of nodes from which the farthest of a node's links is saved.
const FARTHEST_FROM_VERSION: u64 = 1;

fn corrupt(what: &'static str) -> LoadError {
    LoadError::Corrupt(what)
}

fn number_of<T: PartialEq>(all: &[T], one: &T) -> u64 {
    all.iter().position(|other| other == one).expect("the table is complete") as u64
}

/// Returns whether Redis supports such a set.
pub(super) fn is_of_redis(set: &VectorSet) -> bool {
    set.metric() == Metric::Cosine
        && matches!(set.kind(), Kind::Hnsw { .. })
        && SCALARS[..3].contains(&set.scalar())
        && set.tuning().is_none()
}

/// Writes a vector set. O(its bytes + its links · dimensions).
pub(super) fn write<W: Write>(writer: &mut Writer<W>, set: &VectorSet) -> io::Result<()> {
    let set = &*set.linked();
    let is_of_redis = is_of_redis(set);
    let mut parts = Parts::begin(writer, if is_of_redis { MODULE_ID } else { OWN_MODULE_ID })?;
    if !is_of_redis {
        parts.number(OWN_VERSION)?;
        parts.number(number_of(&METRICS, &set.metric()))?;
        parts.number(number_of(&SCALARS, &set.scalar()))?;
        parts.number(match set.kind() {
            Kind::Hnsw { .. } => KIND_HNSW,
            Kind::Flat => KIND_FLAT,
            Kind::Ivf { .. } => KIND_IVF,
        })?;
        let widths = set.tuning().map_or((0, 0), |tuning| (tuning.build_width, tuning.search_width));
        parts.number(widths.0 as u64)?;
        parts.number(widths.1 as u64)?;
        parts.number(set.inserted())?;
        if let Kind::Ivf { lists } = set.kind() {
            parts.number(lists as u64)?;
            parts.number(set.tuning().map_or(1, |tuning| tuning.probes) as u64)?;
        }
    }
    parts.number(set.dim() as u64)?;
    parts.number(set.len() as u64)?;
    parts.number(number_of(&SCALARS, &set.scalar()) | (set.links() as u64) << 8)?;
    let has_attributes = set.attributes_count() > 0;
    let matrix_flag = if set.projection().is_some() { HAS_MATRIX } else { 0 };
    parts.number(matrix_flag | if has_attributes { HAS_ATTRIBUTES } else { 0 })?;
    if let Some(projection) = set.projection() {
        parts.number(projection.input as u64)?;
        parts.string(&projection.to_bytes(set.dim()))?;
    }
    let end = set.len() as u32;
    let id =
        |slot: u32| if slot + 1 == end { set.inserted().max(set.len() as u64) } else { u64::from(slot) + 1 };
    let mut numbers = Vec::new();
    for slot in 0..end {
        let element = set.element(slot);
        parts.string(element.name())?;
        if has_attributes {
            parts.string(element.attributes().unwrap_or_default())?;
        }
        let (vector, norm, range) = set.stored(slot);
        parts.plain(&vector)?;
        numbers.clear();
        numbers.push(id(slot));
        numbers.push(set.level(slot) as u64 | NODE_VERSION << 24);
        for level in 0..=set.level(slot) {
            let neighbors = set.neighbors(slot, level);
            // Redis reserves space for twice as many links on the lowest level, and accepts nodes with more.
            let capacity = (if level == 0 { 2 * set.links() } else { set.links() }).max(neighbors.len());
            numbers.extend([neighbors.len() as u64, capacity as u64]);
            numbers.extend(neighbors.iter().map(|&neighbor| id(neighbor)));
            let distances = neighbors.iter().map(|&neighbor| set.distance(slot, neighbor));
            let farthest = distances.zip(0u64..).max_by(|(a, _), (b, _)| a.total_cmp(b)).unwrap_or((0.0, 0));
            numbers.push(u64::from(farthest.0.to_bits()) << 32 | farthest.1);
        }
        numbers.push(u64::from(range.to_bits()) << 32 | u64::from(norm.to_bits()));
        parts.number(numbers.len() as u64)?;
        numbers.iter().try_for_each(|&number| parts.number(number))?;
    }
    if matches!(set.kind(), Kind::Ivf { .. }) {
        write_lists(&mut parts, set)?;
    }
    parts.end()
}

/// Writes the trained lists of a set, or 0 if the set has none.
fn write_lists<W: Write>(parts: &mut Parts<'_, W>, set: &VectorSet) -> io::Result<()> {
    let Some((centres, trained_len)) = set.centres() else { return parts.number(0) };
    parts.number(trained_len.max(1) as u64)?;
    let floats: Vec<u8> = centres.iter().flat_map(|number| number.to_le_bytes()).collect();
    parts.plain(&floats)?;
    let lists = (0..set.len() as u32).map(|slot| set.list_of(slot).unwrap_or(0));
    parts.plain(&lists.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
}

fn size<R: BufRead>(reader: &mut Reader<R>) -> Result<usize, LoadError> {
    usize::try_from(number(reader)?).map_err(|_| corrupt("a number of a vector set is too large"))
}

const UNKNOWN: &str = "a vector set has an unknown storage format";

fn at<T>(all: &[T], number: u64) -> Result<&T, LoadError> {
    usize::try_from(number).ok().and_then(|number| all.get(number)).ok_or(corrupt(UNKNOWN))
}

/// The parts of ember's own module that precede those of Redis.
struct Own {
    metric: Metric,
    scalar: Scalar,
    /// The kind of the index; `None` for a graph, because a later part contains its number of links.
    kind: Option<Kind>,
    tuning: Option<Tuning>,
    inserted: u64,
}

fn read_own<R: BufRead>(reader: &mut Reader<R>) -> Result<Own, LoadError> {
    if number(reader)? != OWN_VERSION {
        return Err(corrupt(UNKNOWN));
    }
    let metric = *at(&METRICS, number(reader)?)?;
    let scalar = *at(&SCALARS, number(reader)?)?;
    let kind = *at(&[KIND_HNSW, KIND_FLAT, KIND_IVF], number(reader)?)?;
    let (build_width, search_width) = (size(reader)?, size(reader)?);
    let inserted = number(reader)?;
    let mut tuning = Tuning { build_width, search_width, probes: TUNING_DEFAULT.probes };
    let kind = match kind {
        KIND_HNSW => None,
        KIND_FLAT => Some(Kind::Flat),
        _ => {
            let lists = size(reader)?;
            tuning.probes = size(reader)?;
            Some(Kind::Ivf { lists })
        }
    };
    let tuning = (build_width > 0 && search_width > 0).then_some(tuning);
    Ok(Own { metric, scalar, kind, tuning, inserted })
}

fn read_shape<R: BufRead>(
    reader: &mut Reader<R>,
    own: Option<&Own>,
) -> Result<(Shape, u64, bool), LoadError> {
    let dim = size(reader)?;
    let count = number(reader)?;
    let config = number(reader)?;
    let flags = number(reader)?;
    let scalar = *at(&SCALARS, config & 0xFF)?;
    if own.is_none() && !SCALARS[..3].contains(&scalar) {
        return Err(corrupt(UNKNOWN));
    }
    let links = match (config >> 8 & 0xFFFF) as usize {
        0 => LINKS_DEFAULT,
        links => links,
    };
    let kind = match own {
        Some(Own { kind: Some(kind), .. }) => *kind,
        _ => Kind::Hnsw { links },
    };
    if own.is_some_and(|own| own.scalar != scalar) {
        return Err(corrupt(UNKNOWN));
    }
    if !(1..=DIM_MAX).contains(&dim) || !(LINKS_MIN..=LINKS_MAX).contains(&links) {
        return Err(corrupt("a vector set has impossible dimensions or links"));
    }
    let projection = if flags & HAS_MATRIX == 0 {
        None
    } else {
        let input = size(reader)?;
        let matrix = string(reader)?;
        let projection = (1..=DIM_MAX).contains(&input).then(|| Projection::from_bytes(input, dim, &matrix));
        let wrong = corrupt("the matrix of a vector set does not match its dimensions");
        Some(projection.flatten().ok_or(wrong)?)
    };
    let (metric, tuning) = own.map_or((Metric::Cosine, None), |own| (own.metric, own.tuning));
    let shape = Shape { dim, metric, scalar, kind, projection, tuning };
    Ok((shape, count, flags & HAS_ATTRIBUTES != 0))
}

/// The numbers of a node, without its links.
struct Node {
    id: u64,
    level: usize,
    norm: f32,
    range: f32,
}

/// The links of nodes, as read.
#[derive(Default)]
struct Links {
    /// The highest level of each node.
    levels: Vec<u8>,
    /// The number of links on each level of a node, node after node.
    counts: Vec<u32>,
    /// The ids of linked nodes, link after link.
    ids: Vec<u64>,
}

/// Reads the numbers of a node, and adds its links to `links`.
fn read_node<R: BufRead>(reader: &mut Reader<R>, links: &mut Links) -> Result<Node, LoadError> {
    const WRONG: &str = "the numbers of a node of a vector set contradict each other";
    let mut left = number(reader)?;
    if left > NODE_NUMBERS_MAX {
        return Err(corrupt(WRONG));
    }
    let mut next = |reader: &mut Reader<R>| {
        left = left.checked_sub(1).ok_or(corrupt(WRONG))?;
        number(reader)
    };
    let id = next(reader)?;
    let head = next(reader)?;
    let (level, version) = ((head & 0xFF) as usize, head >> 24 & 0xFF);
    if version > NODE_VERSION || level > LEVEL_MAX {
        return Err(corrupt(WRONG));
    }
    links.levels.push(level as u8);
    for _ in 0..=level {
        let before = links.ids.len();
        let count = next(reader)?;
        next(reader)?;
        for _ in 0..count {
            links.ids.push(next(reader)?);
        }
        if version >= FARTHEST_FROM_VERSION {
            next(reader)?;
        }
        // The number is far below 2^32.
        links.counts.push((links.ids.len() - before) as u32);
    }
    let facts = next(reader)?;
    if left != 0 {
        return Err(corrupt(WRONG));
    }
    let (norm, range) = (f32::from_bits(facts as u32), f32::from_bits((facts >> 32) as u32));
    Ok(Node { id, level, norm, range })
}

/// Reads the lists of a set whose elements have been read.
fn read_lists<R: BufRead>(reader: &mut Reader<R>, loading: &mut Loading) -> Result<(), LoadError> {
    let trained_len = size(reader)?;
    if trained_len == 0 {
        return Ok(());
    }
    let (centres, lists) = (string(reader)?, string(reader)?);
    let centres: Vec<f32> =
        centres.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let lists: Vec<u32> = lists.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    let wrong = corrupt("the lists of a vector set do not match it");
    loading.lists(&centres, trained_len, &lists).ok_or(wrong)
}

/// The slots of elements by their ids, which are close together unless most elements of a set were removed.
enum Slots {
    /// A table of all ids from the lowest on; `u32::MAX` for an id without element.
    Dense {
        lowest: u64,
        slots: Vec<u32>,
    },
    Sparse(HashMap<u64, u32>),
}

impl Slots {
    /// The number of ids per element up to which a table of all ids takes no more memory than a map of the existing
    /// ids.
    const IDS_PER_ELEMENT: u64 = 8;

    fn new(ids: &[u64]) -> Slots {
        let (lowest, highest) =
            (ids.iter().min().copied().unwrap_or(0), ids.iter().max().copied().unwrap_or(0));
        if (highest - lowest) / Slots::IDS_PER_ELEMENT >= ids.len() as u64 {
            return Slots::Sparse(ids.iter().copied().zip(0..).collect());
        }
        let mut slots = vec![u32::MAX; (highest - lowest) as usize + 1];
        for (slot, id) in (0..).zip(ids) {
            slots[(id - lowest) as usize] = slot;
        }
        Slots::Dense { lowest, slots }
    }

    fn of(&self, id: u64) -> Option<u32> {
        match self {
            Slots::Dense { lowest, slots } => {
                let at = usize::try_from(id.checked_sub(*lowest)?).ok()?;
                slots.get(at).copied().filter(|&slot| slot != u32::MAX)
            }
            Slots::Sparse(slots) => slots.get(&id).copied(),
        }
    }
}

/// Reads a vector set of this module, after the module's number. Impossible links are omitted, and nodes that no link
/// leads to are linked again.
pub(super) fn read<R: BufRead>(reader: &mut Reader<R>, module_id: u64) -> Result<VectorSet, LoadError> {
    let own = if module_id == OWN_MODULE_ID { Some(read_own(reader)?) } else { None };
    let (shape, count, has_attributes) = read_shape(reader, own.as_ref())?;
    let mut loading = Loading::new(shape).ok_or(corrupt("a vector set has an impossible shape"))?;
    let mut ids: Vec<u64> = Vec::new();
    let mut links = Links::default();
    let mut inserted = own.as_ref().map_or(0, |own| own.inserted);
    let (mut name, mut attributes, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        string_into(reader, &mut name)?;
        if has_attributes {
            string_into(reader, &mut attributes)?;
        }
        string_into(reader, &mut numbers)?;
        let Node { id, level, norm, range } = read_node(reader, &mut links)?;
        let saved = Saved { name: &name, attributes: &attributes, numbers: &numbers, norm, range, level };
        loading.push(saved).ok_or(corrupt("an element of a vector set does not match it"))?;
        ids.push(id);
        inserted = inserted.max(id);
    }
    if matches!(own, Some(Own { kind: Some(Kind::Ivf { .. }), .. })) {
        read_lists(reader, &mut loading)?;
    }
    parts::end(reader)?;
    let slots = Slots::new(&ids);
    let (mut counts, mut rest) = (links.counts.iter(), &links.ids[..]);
    for (slot, &top) in (0..).zip(&links.levels) {
        for (level, &count) in (0..=usize::from(top)).zip(&mut counts) {
            let linked;
            (linked, rest) = rest.split_at(count as usize);
            loading.link(slot, level, linked.iter().filter_map(|&id| slots.of(id)));
        }
    }
    drop(links);
    loading.finish(inserted).ok_or(corrupt("two elements of a vector set have the same name"))
}
