//! t-digests: estimates of the quantiles of a stream of numbers, most accurate near both ends (Dunning, Ertl,
//! "Computing Extremely Accurate Quantiles Using t-Digests", 2019; the merging variant with the scale function k2's
//! bound).
//!
//! Numbers are buffered as nodes of weight 1 after the merged nodes. When all places are used, the nodes are sorted and
//! neighbors are merged as far as their place in the distribution allows.
//!
//! Reads do not merge the buffered nodes of the value but those of a copy, so the results of later additions do not
//! depend on reads, which a replica does not see.

use std::borrow::Cow;

use super::TooLarge;
use crate::memory::moving::Mover;
use crate::memory::{buffer_bytes, size_class};
use crate::types::collection::Collection;
use crate::types::value::ValueType;

/// The default compression.
pub const COMPRESSION_DEFAULT: u64 = 100;

/// The maximum compression: capacities of RedisBloom have 32 bits, of which one is the sign.
pub const COMPRESSION_MAX: u64 = (i32::MAX as u64 - NODES_ADDED as u64) / NODES_PER_COMPRESSION as u64;

/// The number of nodes per unit of compression, and the number of nodes added to these.
const NODES_PER_COMPRESSION: usize = 6;
const NODES_ADDED: usize = 10;

/// The number of steps per node, and per binary digit of the number of nodes, that RedisBloom's quicksort may take here.
/// It is quadratic on equal numbers.
const SORT_STEPS: usize = 8;

/// The maximum number of nodes for which the quicksort may take any number of steps.
const SORTED_NODES_MAX: usize = 2048;

/// The size of RedisBloom's structure of which `TDIGEST.INFO` reports a part, and that of a node.
const REPORTED_BYTES: u64 = 8;
const NODE_BYTES: u64 = 16;

/// A number, or the mean of several numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// The mean.
    pub mean: f64,
    /// The number of numbers.
    pub weight: i64,
}

#[derive(Clone, Debug)]
struct Digest {
    compression: f64,
    min: f64,
    max: f64,
    /// The number of merged nodes, which come first.
    merged: usize,
    compressions: i64,
    merged_weight: i64,
    unmerged_weight: i64,
    nodes: Vec<Node>,
}

/// The value of a key that holds a t-digest. The empty value has no compression yet.
#[derive(Clone, Debug, Default)]
pub struct TDigest(Option<Box<Digest>>);

/// The sum of all weights exceeds its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// The values of a digest without unmerged nodes.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The compression.
    pub compression: f64,
    /// The lowest number; `f64::MAX` if there is none.
    pub min: f64,
    /// The highest number; `f64::MIN` if there is none.
    pub max: f64,
    /// The maximum number of nodes.
    pub capacity: usize,
    /// The number of times that nodes were merged.
    pub compressions: i64,
    /// The sum of the weights of merged nodes.
    pub merged_weight: i64,
}

/// Returns the maximum number of nodes of a digest with this compression; `None` if it is too high.
fn capacity_of(compression: f64) -> Option<usize> {
    let is_valid = compression >= 1.0 && compression <= COMPRESSION_MAX as f64;
    is_valid.then(|| NODES_PER_COMPRESSION * compression as usize + NODES_ADDED)
}

impl Digest {
    fn new(compression: f64) -> Digest {
        Digest {
            compression,
            min: f64::MAX,
            max: f64::MIN,
            merged: 0,
            compressions: 0,
            merged_weight: 0,
            unmerged_weight: 0,
            nodes: Vec::new(),
        }
    }

    fn min(&self) -> f64 {
        if self.nodes.is_empty() { f64::NAN } else { self.min }
    }

    fn max(&self) -> f64 {
        if self.nodes.is_empty() { f64::NAN } else { self.max }
    }

    fn capacity(&self) -> usize {
        capacity_of(self.compression).expect("the compression was checked")
    }

    fn add(&mut self, mean: f64, weight: i64) -> Result<(), Overflow> {
        if self.nodes.len() >= self.capacity() - 1 {
            self.compress();
        }
        if self.nodes.len() >= self.capacity() {
            return Err(Overflow);
        }
        let unmerged = self.unmerged_weight.checked_add(weight).ok_or(Overflow)?;
        unmerged.checked_add(self.merged_weight).ok_or(Overflow)?;
        if mean < self.min {
            self.min = mean;
        }
        if mean > self.max {
            self.max = mean;
        }
        self.nodes.push(Node { mean, weight });
        self.unmerged_weight = unmerged;
        Ok(())
    }

    /// Merges the nodes. O(n log n) for n nodes, or O(n²) for few.
    fn compress(&mut self) {
        if self.merged == self.nodes.len() {
            return;
        }
        sort(&mut self.nodes);
        let total = self.merged_weight as f64 + self.unmerged_weight as f64;
        if total > 1.0 {
            let normalizer = self.compression / (2.0 * std::f64::consts::PI * total * total.ln());
            merge(&mut self.nodes, total, normalizer);
        }
        self.merged = self.nodes.len();
        // As in RedisBloom, the sum passes through a double.
        self.merged_weight = total as i64;
        self.unmerged_weight = 0;
        self.compressions += 1;
    }

    fn merge(&mut self, from: &Digest) -> Result<(), Overflow> {
        self.compress();
        from.compressed().nodes.iter().try_for_each(|node| self.add(node.mean, node.weight))
    }

    /// Returns the digest with all nodes merged.
    fn compressed(&self) -> Cow<'_, Digest> {
        if self.merged == self.nodes.len() {
            return Cow::Borrowed(self);
        }
        let mut digest = self.clone();
        digest.compress();
        Cow::Owned(digest)
    }
}

/// Merges sorted neighbors whose sum is small enough for their place in the distribution.
fn merge(nodes: &mut Vec<Node>, total: f64, normalizer: f64) {
    let (mut last, mut weight_before) = (0, 0.0);
    for at in 1..nodes.len() {
        let node = nodes[at];
        let proposed = nodes[last].weight as f64 + node.weight as f64;
        let bound = proposed * normalizer;
        let low = weight_before / total;
        let high = (weight_before + proposed) / total;
        if bound <= low * (1.0 - low) && bound <= high * (1.0 - high) {
            let into = &mut nodes[last];
            into.weight = into.weight.saturating_add(node.weight);
            let delta = node.mean - into.mean;
            into.mean += delta * node.weight as f64 / into.weight as f64;
        } else {
            weight_before += nodes[last].weight as f64;
            last += 1;
            nodes[last] = node;
        }
    }
    nodes.truncate(last + 1);
}

/// Sorts nodes by their means, in the order in which RedisBloom's quicksort leaves equal means, unless that takes too
/// many steps.
fn sort(nodes: &mut [Node]) {
    let is_small = nodes.len() <= SORTED_NODES_MAX;
    let steps_max = nodes.len() * SORT_STEPS * (nodes.len().max(2).ilog2() as usize + 1);
    let mut steps = 0;
    let mut ranges: Vec<_> = std::iter::once(0..nodes.len()).collect();
    while let Some(range) = ranges.pop() {
        steps += range.len();
        if steps > steps_max && !is_small {
            return nodes.sort_by(|a, b| a.mean.total_cmp(&b.mean));
        }
        let part = &mut nodes[range.clone()];
        let Some(last) = part.len().checked_sub(1).filter(|&last| last > 0) else { continue };
        if last == 1 {
            if part[0].mean > part[1].mean {
                part.swap(0, 1);
            }
            continue;
        }
        // The pivot's position follows from both ends of the range, rounded down after they are added.
        let pivot = (range.start + range.start + last) / 2 - range.start;
        let pivot_mean = part[pivot].mean;
        part.swap(pivot, last);
        let mut next = 0;
        for at in 0..last {
            if part[at].mean < pivot_mean {
                part.swap(next, at);
                next += 1;
            }
        }
        part.swap(next, last);
        ranges.push(range.start..range.start + next);
        ranges.push(range.start + next + 1..range.end);
    }
}

/// Returns the weighted average of two numbers, which lies between them.
fn weighted_average(first: f64, first_weight: f64, second: f64, second_weight: f64) -> f64 {
    let (low, low_weight, high, high_weight) = if first <= second {
        (first, first_weight, second, second_weight)
    } else {
        (second, second_weight, first, first_weight)
    };
    let average = (low * low_weight + high * high_weight) / (low_weight + high_weight);
    // A comparison with NaN is false.
    let limited = if average < high { average } else { high };
    if low > limited { low } else { limited }
}

/// A digest with all nodes merged, for reading.
pub struct View<'d>(Cow<'d, Digest>);

/// The search for ascending quantiles: the node reached, and the weight before its middle.
struct Walk {
    at: usize,
    weight: f64,
}

impl View<'_> {
    /// Returns the number of numbers.
    pub fn size(&self) -> f64 {
        self.0.merged_weight as f64
    }

    /// See [`TDigest::min`].
    pub fn min(&self) -> f64 {
        self.0.min()
    }

    /// See [`TDigest::max`].
    pub fn max(&self) -> f64 {
        self.0.max()
    }

    /// Returns the values that were not merged before this view and the merged nodes.
    pub fn facts(&self) -> (Facts, &[Node]) {
        let digest = &self.0;
        let facts = Facts {
            compression: digest.compression,
            min: digest.min,
            max: digest.max,
            capacity: digest.capacity(),
            compressions: digest.compressions,
            merged_weight: digest.merged_weight,
        };
        (facts, &digest.nodes)
    }

    fn index(&self, index: f64, walk: &mut Walk) -> f64 {
        let Digest { nodes, min, max, .. } = &*self.0;
        let total = self.size();
        let (first, last) = (nodes[0], nodes[nodes.len() - 1]);
        let (first_weight, last_weight) = (first.weight as f64, last.weight as f64);
        if first_weight > 1.0 && index < first_weight / 2.0 {
            // One of the numbers of the first node is the lowest.
            return min + (index - 1.0) / (first_weight / 2.0 - 1.0) * (first.mean - min);
        }
        if index > total - 1.0 {
            return *max;
        }
        if last_weight > 1.0 && total - index <= last_weight / 2.0 {
            return max - (total - index - 1.0) / (last_weight / 2.0 - 1.0) * (max - last.mean);
        }
        while walk.at < nodes.len() - 1 {
            let (node, next) = (nodes[walk.at], nodes[walk.at + 1]);
            let between = (node.weight as f64 + next.weight as f64) / 2.0;
            if walk.weight + between > index {
                // A node of weight 1 is a number, so nothing is interpolated near it.
                let mut low_excluded = 0.0;
                if node.weight == 1 {
                    if index - walk.weight < 0.5 {
                        return node.mean;
                    }
                    low_excluded = 0.5;
                }
                let mut high_excluded = 0.0;
                if next.weight == 1 {
                    if walk.weight + between - index <= 0.5 {
                        return next.mean;
                    }
                    high_excluded = 0.5;
                }
                let after = index - walk.weight - low_excluded;
                let before = walk.weight + between - index - high_excluded;
                return weighted_average(node.mean, before, next.mean, after);
            }
            walk.weight += between;
            walk.at += 1;
        }
        let after = index - total - last_weight / 2.0;
        let before = last_weight / 2.0 - after;
        weighted_average(last.mean, after, *max, before)
    }

    /// Returns the estimates of ascending quantiles between 0 and 1; NaN if there are no numbers. O(nodes + quantiles).
    pub fn quantiles(&self, quantiles: &[f64]) -> Vec<f64> {
        let nodes = &self.0.nodes;
        match nodes.len() {
            0 => vec![f64::NAN; quantiles.len()],
            1 => vec![nodes[0].mean; quantiles.len()],
            _ => {
                let mut walk = Walk { at: 0, weight: nodes[0].weight as f64 / 2.0 };
                quantiles.iter().map(|quantile| self.index(quantile * self.size(), &mut walk)).collect()
            }
        }
    }

    /// Returns the estimate of the quantile between 0 and 1; NaN if there are no numbers. O(nodes).
    pub fn quantile(&self, quantile: f64) -> f64 {
        if !(0.0..=1.0).contains(&quantile) {
            return f64::NAN;
        }
        if self.0.nodes.len() > 1 && quantile * self.size() < 1.0 {
            return self.0.min;
        }
        self.quantiles(&[quantile])[0]
    }

    /// Returns the estimate of the part of numbers that are at most `value`; NaN if there are no numbers. O(nodes).
    pub fn cdf(&self, value: f64) -> f64 {
        let Digest { nodes, min, max, .. } = &*self.0;
        let (min, max, total) = (*min, *max, self.size());
        let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else { return f64::NAN };
        if value < min {
            return 0.0;
        }
        if value > max {
            return 1.0;
        }
        if nodes.len() == 1 {
            let width = max - min;
            return if value - min <= width { 0.5 } else { (value - min) / width };
        }
        if value < first.mean {
            let width = first.mean - min;
            return match width > 0.0 {
                true if value == min => 0.5 / total,
                true => (1.0 + (value - min) / width * (first.weight as f64 / 2.0 - 1.0)) / total,
                false => 0.0,
            };
        }
        if value > last.mean {
            let width = max - last.mean;
            return match width > 0.0 {
                true if value == max => 1.0 - 0.5 / total,
                true => 1.0 - (1.0 + (max - value) / width * (last.weight as f64 / 2.0 - 1.0)) / total,
                false => 1.0,
            };
        }
        let mut before = 0.0;
        for (at, pair) in nodes.windows(2).enumerate() {
            let [node, next] = pair else { unreachable!("windows of two nodes") };
            let weight = node.weight as f64;
            if node.mean == value {
                let equal = nodes[at..].iter().take_while(|node| node.mean == value);
                let sum = equal.fold(0.0, |sum, node| sum + node.weight as f64);
                return (before + sum / 2.0) / total;
            }
            if node.mean <= value && value < next.mean {
                let between = (weight + next.weight as f64) / 2.0;
                if next.mean - node.mean > 0.0 {
                    // A node of weight 1 is a number, so its weight is not spread.
                    let (low_excluded, high_excluded) = match (node.weight, next.weight) {
                        (1, 1) => return (before + 1.0) / total,
                        (1, _) => (0.5, 0.0),
                        (_, 1) => (0.0, 0.5),
                        _ => (0.0, 0.0),
                    };
                    let spread = between - low_excluded - high_excluded;
                    let base = before + weight / 2.0 + low_excluded;
                    return (base + spread * (value - node.mean) / (next.mean - node.mean)) / total;
                }
                return (before + between) / total;
            }
            before += weight;
        }
        1.0 - 0.5 / total
    }

    /// Returns the mean of the numbers between two quantiles, each between 0 and 1; NaN if there are no numbers.
    /// O(nodes).
    pub fn trimmed_mean(&self, low: f64, high: f64) -> f64 {
        let nodes = &self.0.nodes;
        match nodes.len() {
            0 => return f64::NAN,
            1 => return nodes[0].mean,
            _ => {}
        }
        let low_weight = (self.size() * low).floor();
        let high_weight = (self.size() * high).ceil();
        let (mut done, mut sum, mut count) = (0.0, 0.0, 0.0);
        // Comparisons instead of `f64::min` and `f64::max`, as in RedisBloom.
        let part = |limit: f64, done: f64, added: f64| {
            let rest = if limit - done < 0.0 { 0.0 } else { limit - done };
            if rest < added { rest } else { added }
        };
        for node in nodes {
            let weight = node.weight as f64;
            let mut added = weight;
            added -= part(low_weight, done, added);
            added = part(high_weight, done, added);
            done += weight;
            sum += node.mean * added;
            count += added;
            if done >= high_weight {
                break;
            }
        }
        sum / count
    }
}

impl TDigest {
    fn digest(&self) -> &Digest {
        self.0.as_deref().expect("a digest that is kept has a compression")
    }

    /// Returns an empty digest.
    ///
    /// # Errors
    /// Returns an error if the compression is 0 or exceeds [`COMPRESSION_MAX`].
    pub fn new(compression: u64) -> Result<TDigest, TooLarge> {
        capacity_of(compression as f64).ok_or(TooLarge)?;
        Ok(TDigest(Some(Box::new(Digest::new(compression as f64)))))
    }

    /// Returns the digest with these values; `None` if they contradict each other. `lost` is whether a single number was
    /// not saved as a node, as RedisBloom 2.8 does; it is both the lowest and the highest number.
    pub fn from_nodes(facts: &Facts, nodes: Vec<Node>, lost: bool) -> Option<TDigest> {
        let is_valid = capacity_of(facts.compression) == Some(facts.capacity)
            && nodes.len() <= facts.capacity
            && nodes.iter().all(|node| node.mean.is_finite() && node.weight >= 0)
            && facts.merged_weight >= 0
            && facts.min.is_finite()
            && facts.max.is_finite()
            && (!lost || (nodes.is_empty() && facts.merged_weight == 0 && facts.min == facts.max));
        if !is_valid {
            return None;
        }
        let mut digest = Digest {
            compression: facts.compression,
            min: facts.min,
            max: facts.max,
            merged: nodes.len(),
            compressions: facts.compressions,
            merged_weight: facts.merged_weight,
            unmerged_weight: 0,
            nodes,
        };
        if lost {
            digest.nodes.push(Node { mean: facts.min, weight: 1 });
            digest.unmerged_weight = 1;
        }
        Some(TDigest(Some(Box::new(digest))))
    }

    /// Removes all numbers.
    pub fn reset(&mut self) {
        let digest = self.0.as_deref_mut().expect("a digest that is kept has a compression");
        *digest = Digest::new(digest.compression);
    }

    /// Adds a finite number. O(1) on average.
    ///
    /// # Errors
    /// Returns an error, and changes nothing, if there are too many numbers.
    pub fn add(&mut self, number: f64) -> Result<(), Overflow> {
        self.0.as_deref_mut().expect("a digest that is kept has a compression").add(number, 1)
    }

    /// Adds the numbers of another digest. O(n log n) for the nodes of both.
    ///
    /// # Errors
    /// Returns an error if there are too many numbers; some may have been added.
    pub fn merge(&mut self, from: &TDigest) -> Result<(), Overflow> {
        self.0.as_deref_mut().expect("a digest that is kept has a compression").merge(from.digest())
    }

    /// Returns the digest for reading. O(n log n) for n nodes if some are not merged.
    pub fn view(&self) -> View<'_> {
        View(self.digest().compressed())
    }

    /// Returns the lowest number; NaN if there is none.
    pub fn min(&self) -> f64 {
        self.digest().min()
    }

    /// Returns the highest number; NaN if there is none.
    pub fn max(&self) -> f64 {
        self.digest().max()
    }

    /// Returns the compression.
    pub fn compression(&self) -> u64 {
        self.digest().compression as u64
    }

    /// Returns the maximum number of nodes.
    pub fn capacity(&self) -> usize {
        self.digest().capacity()
    }

    /// Returns the numbers of merged and of other nodes.
    pub fn nodes(&self) -> (usize, usize) {
        let digest = self.digest();
        (digest.merged, digest.nodes.len() - digest.merged)
    }

    /// Returns the weights of merged and of other nodes.
    pub fn weights(&self) -> (i64, i64) {
        let digest = self.digest();
        (digest.merged_weight, digest.unmerged_weight)
    }

    /// Returns the number of times that nodes were merged.
    pub fn compressions(&self) -> i64 {
        self.digest().compressions
    }

    /// Returns the size in bytes that RedisBloom reports for the digest.
    pub fn reported_bytes(&self) -> u64 {
        REPORTED_BYTES + NODE_BYTES * self.capacity() as u64
    }
}

impl Collection for TDigest {
    const TYPE: ValueType = ValueType::TDigest;

    fn encoding_name(&self) -> &'static str {
        "raw"
    }

    fn memory_bytes(&self) -> usize {
        self.0.as_deref().map_or(0, |digest| size_class(size_of::<Digest>()) + buffer_bytes(&digest.nodes))
    }

    /// Returns the number of nodes.
    fn len(&self) -> usize {
        self.0.as_deref().map_or(0, |digest| digest.nodes.len())
    }

    fn is_vacant(&self) -> bool {
        self.0.is_none()
    }

    fn free_effort(&self) -> usize {
        2
    }

    fn move_inside(&mut self, _: u64, _: usize, mover: &mut Mover<'_>) -> u64 {
        if let Some(digest) = &mut self.0 {
            mover.move_vec(&mut digest.nodes);
        }
        0
    }

    fn check_invariants(&self) {
        let Some(digest) = &self.0 else { return };
        assert!(digest.merged <= digest.nodes.len() && digest.nodes.len() <= digest.capacity());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(means: impl Iterator<Item = f64>) -> Vec<Node> {
        means.zip(1..).map(|(mean, weight)| Node { mean, weight }).collect()
    }

    #[test]
    fn many_equal_numbers_are_sorted_in_time() {
        let mut equal = nodes((0..200_000).map(|_| 1.0));
        sort(&mut equal);
        assert_eq!(equal.len(), 200_000);
        let mut mixed = nodes((0..100_000).map(|number| f64::from(number * 7919 % 1000)));
        sort(&mut mixed);
        assert!(mixed.is_sorted_by(|one, other| one.mean <= other.mean));
        assert_eq!(mixed.iter().map(|node| node.weight).sum::<i64>(), 100_000 * 100_001 / 2);
    }

    #[test]
    fn quantiles_of_many_numbers_are_close() {
        let mut digest = TDigest::new(COMPRESSION_DEFAULT).unwrap();
        for number in 0..100_000 {
            digest.add(f64::from(number * 7919 % 100_000)).unwrap();
        }
        digest.check_invariants();
        let view = digest.view();
        for quantile in [0.0, 0.001, 0.1, 0.5, 0.9, 0.999, 1.0] {
            let found = view.quantile(quantile) / 100_000.0;
            assert!((found - quantile).abs() < 0.005, "{quantile}: {found}");
            assert!((view.cdf(quantile * 100_000.0) - quantile).abs() < 0.005, "{quantile}");
        }
    }
}
