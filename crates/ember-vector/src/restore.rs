//! Restores an index from saved vectors and links.

use crate::config::{Config, ConfigError, Kind, LISTS_MAX};
use crate::graph::Graph;
use crate::index::{Index, SLOTS_MAX};
use crate::lists::Lists;
use crate::quantize::{Facts, are_finite};
use crate::random::{LEVEL_MAX, mixed};
use crate::search::Scratch;

/// Near vectors from which the neighbors of a node with unusable saved links are chosen.
const WIDTH: usize = 200;

/// The reason why a saved vector is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// The number of dimensions differs from that of the index.
    Dimensions,
    /// A number is not finite.
    Numbers,
    /// The vector's level exceeds the maximum.
    Level,
    /// The index is full.
    Full,
    /// The centroids are invalid, or a vector is in a list that does not exist.
    Lists,
}

/// An index being restored from saved vectors and their links.
///
/// Saved links are not trusted: only links that exist in both directions are accepted, and nodes that are then
/// unreachable are linked again.
///
/// Looking up each link's counterpart would be a cache miss per link. Instead each link adds or subtracts, depending on
/// its direction, a number derived from its two ends: if the sum is zero, all links exist in both directions, except
/// with a probability of 2^-64, which crafted links cannot raise without knowledge of the secret. Then the graph is
/// accepted as it is.
#[derive(Debug)]
pub struct Restore {
    index: Index,
    secret: [u64; 2],
    /// The sum over all links, in which the two directions of a link cancel each other.
    one_sided: u64,
    /// Buffers for the next row and the next links.
    row: Vec<u8>,
    links: Vec<u32>,
}

impl Restore {
    /// Begins with an empty index. The secret must be unknown to the party that saved the links.
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid.
    pub fn new(config: Config, secret: [u64; 2]) -> Result<Restore, ConfigError> {
        let index = Index::new(config)?;
        Ok(Restore { index, secret, one_sided: 0, row: Vec::new(), links: Vec::new() })
    }

    /// Adds the vector of the next slot: its stored numbers and facts, and the highest level of its node.
    /// O(dimensions).
    ///
    /// # Errors
    /// Returns an error if the vector is not valid for this index.
    pub fn push(&mut self, numbers: &[u8], facts: Facts, level: usize) -> Result<(), RestoreError> {
        let Index { config, space, graph, len, .. } = &mut self.index;
        if numbers.len() != config.scalar.bytes(config.dim) {
            return Err(RestoreError::Dimensions);
        }
        if !are_finite(numbers, facts, config.scalar) {
            return Err(RestoreError::Numbers);
        }
        if level > LEVEL_MAX {
            return Err(RestoreError::Level);
        }
        if *len == SLOTS_MAX {
            return Err(RestoreError::Full);
        }
        space.put_row(numbers, facts, &mut self.row);
        space.push(&self.row);
        if let Some(graph) = graph {
            graph.push(level);
        }
        *len += 1;
        Ok(())
    }

    /// Sets the links of a slot on a level. The slot and the level must exist, and the links of each pair may be set
    /// only once. Invalid links are ignored. O(links²) comparisons of numbers.
    ///
    /// # Panics
    /// Panics if there is no such slot or level.
    pub fn link(&mut self, slot: u32, level: usize, links: impl IntoIterator<Item = u32>) {
        let Index { graph: Some(graph), len, .. } = &mut self.index else { return };
        assert!((slot as usize) < *len && level <= graph.level(slot), "the caller passes an added element");
        let capacity = graph.capacity(level);
        self.links.clear();
        for link in links {
            // All nodes are on the lowest level, so no lookup is needed there.
            let is_there = (link as usize) < *len && (level == 0 || graph.level(link) >= level);
            if is_there && link != slot && self.links.len() < capacity && !self.links.contains(&link) {
                self.links.push(link);
                let ends = (u64::from(slot.min(link)), u64::from(slot.max(link)) | (level as u64) << 32);
                let number = mixed(ends.0, ends.1, self.secret);
                let number = if slot < link { number } else { number.wrapping_neg() };
                self.one_sided = self.one_sided.wrapping_add(number);
            }
        }
        graph.set_links(slot, level, &self.links);
    }

    /// Sets the lists of an index with lists, after its last vector: the centroids, the number of vectors at their
    /// training, and the list of each slot.
    ///
    /// # Errors
    /// Returns an error if the centroids or lists are not valid for this index.
    pub fn lists(
        &mut self,
        centres: &[f32],
        trained_len: usize,
        list_of: &[u32],
    ) -> Result<(), RestoreError> {
        let Index { config: Config { dim, metric, account, kind, .. }, len, ref mut space, .. } = self.index;
        let made = Lists::around(centres, (dim, space.width()), metric, trained_len, account);
        let mut made = made.filter(|_| matches!(kind, Kind::Ivf { .. })).ok_or(RestoreError::Lists)?;
        let are_there = |list: &u32| (*list as usize) < made.count();
        if made.count() > LISTS_MAX || list_of.len() != len || !list_of.iter().all(are_there) {
            return Err(RestoreError::Lists);
        }
        made.fill(&space.take_rows(account), list_of);
        self.index.lists = Some(Box::new(made));
        Ok(())
    }

    /// Returns the index and the number of nodes that were linked again. [`Index::inserted`] continues from `inserted`.
    /// O(n) if all links are valid.
    pub fn finish(self, inserted: u64, scratch: &mut Scratch) -> (Index, usize) {
        let mut index = self.index;
        index.inserted = inserted;
        let mut mended = 0;
        if let Some(graph) = &mut index.graph {
            let top = (0..index.len as u32).max_by_key(|&slot| graph.level(slot));
            graph.entry = top;
            if self.one_sided != 0 {
                (0..=graph.top()).for_each(|level| drop_one_sided(graph, level));
            }
            for level in (0..=graph.top()).rev() {
                let Some(entry) = top else { break };
                let mut seen = graph.reachable(entry, level);
                for slot in 0..index.len as u32 {
                    if !seen[slot as usize] && graph.level(slot) >= level {
                        graph.join(&index.space, (slot, level), (entry, &seen), WIDTH, scratch);
                        graph.reach(slot, level, &mut seen);
                        mended += 1;
                    }
                }
            }
        }
        (index, mended)
    }
}

/// Drops links of a level without counterparts.
fn drop_one_sided(graph: &mut Graph, level: usize) {
    for slot in 0..graph.len() as u32 {
        if graph.level(slot) < level {
            continue;
        }
        let links = graph.neighbors(slot, level);
        let both: Vec<u32> = links.iter().filter(|&link| graph.are_linked(link, slot, level)).collect();
        if both.len() < links.len() {
            graph.set_links(slot, level, &both);
        }
    }
}
