//! An index from what was saved of one.

use crate::config::{Config, ConfigError, Kind, LISTS_MAX};
use crate::graph::Graph;
use crate::index::{Index, SLOTS_MAX};
use crate::lists::Lists;
use crate::quantize::{Facts, are_finite};
use crate::random::{LEVEL_MAX, mixed};
use crate::search::Scratch;

/// Near vectors that neighbours of a node are chosen from whose saved links are not of use.
const WIDTH: usize = 200;

/// Why something is not the next vector of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// It has other dimensions.
    Dimensions,
    /// It has something that is not finite.
    Numbers,
    /// It is on more levels than there are.
    Level,
    /// There are too many already.
    Full,
    /// Centres of lists that are none, or vectors in lists that there are not.
    Lists,
}

/// An index that is being made of saved vectors and their links.
///
/// Links may be wrong in any way: only what they say in both directions is taken, and what cannot be reached then is linked
/// anew.
///
/// Whether all go both ways is not looked up, for that would be a cache miss for each link. Each adds a number that follows
/// from its two ends, or takes it away, by its direction: if nothing is left over, they do, but for a chance of one in 2^64
/// that nobody can better who does not know a secret. Then the graph is right as it is.
#[derive(Debug)]
pub struct Restore {
    index: Index,
    secret: [u64; 2],
    /// What links of one direction have left over.
    one_sided: u64,
    /// The next row, and the next links.
    row: Vec<u8>,
    links: Vec<u32>,
}

impl Restore {
    /// Nothing restored yet. The secret is one that who has saved the links cannot know.
    ///
    /// # Errors
    /// If there can be no such index.
    pub fn new(config: Config, secret: [u64; 2]) -> Result<Restore, ConfigError> {
        let index = Index::new(config)?;
        Ok(Restore { index, secret, one_sided: 0, row: Vec::new(), links: Vec::new() })
    }

    /// Adds the vector of the next slot: its numbers as they were stored, what was kept beside them, and the highest level
    /// of its node. O(dimensions).
    ///
    /// # Errors
    /// If it is none of this index.
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

    /// Sets the links of a slot on a level, both of which are there, once. What cannot be a link is left out. O(links²)
    /// comparisons of numbers.
    ///
    /// # Panics
    /// If there is no such slot or level.
    pub fn link(&mut self, slot: u32, level: usize, links: impl IntoIterator<Item = u32>) {
        let Index { graph: Some(graph), len, .. } = &mut self.index else { return };
        assert!((slot as usize) < *len && level <= graph.level(slot), "the caller knows what it has added");
        let capacity = graph.capacity(level);
        self.links.clear();
        for link in links {
            // All are on the lowest level, without a look at them.
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

    /// Sets the lists of an index of that kind, behind its last vector: the centres, how many vectors they were made of, and
    /// the list of each slot.
    ///
    /// # Errors
    /// If they are none of this index.
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

    /// The index, and how many nodes had to be linked anew. `inserted` is what [`Index::inserted`] goes on from. O(n) if no
    /// link is wrong.
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
        let links = graph.neighbours(slot, level);
        let both: Vec<u32> = links.iter().filter(|&link| graph.are_linked(link, slot, level)).collect();
        if both.len() < links.len() {
            graph.set_links(slot, level, &both);
        }
    }
}
