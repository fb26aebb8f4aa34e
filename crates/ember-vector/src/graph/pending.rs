//! Vectors that are stored but not linked yet: searches compare each of them.

use std::collections::VecDeque;

use crate::arena::Account;

/// A claim to plan links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// A unique number.
    pub(crate) token: u64,
    /// The number of the last insertion before the claim.
    pub(crate) inserted: u64,
}

/// A pending vector: its slot, and the data for linking it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) slot: u32,
    /// The number of near vectors from which its neighbors are chosen.
    pub(crate) width: u32,
    /// The number of the vector's insertion, which is unique.
    pub(crate) number: u64,
    /// The claim on the vector, if any.
    pub(crate) claim: Option<Claim>,
    /// The number of plans for this vector that were outdated.
    pub(crate) failures: u8,
}

/// Pending vectors, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending(VecDeque<Waiting>);

impl Pending {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn memory_bytes(&self, account: Account) -> usize {
        match self.0.capacity() {
            0 => 0,
            capacity => account(capacity * size_of::<Waiting>()),
        }
    }

    /// Returns the vectors inserted up to the insertion with this number.
    pub(crate) fn up_to(&self, number: u64) -> Pending {
        Pending(self.0.iter().take_while(|waiting| waiting.number <= number).copied().collect())
    }

    pub(crate) fn push(&mut self, slot: u32, number: u64, width: usize) {
        let width = u32::try_from(width.max(1)).unwrap_or(u32::MAX);
        self.0.push_back(Waiting { slot, width, number, claim: None, failures: 0 });
    }

    /// Removes and returns the vector at a position.
    pub(crate) fn take(&mut self, at: usize) -> Option<Waiting> {
        let taken = self.0.remove(at);
        if self.0.is_empty() {
            self.0 = VecDeque::new();
        }
        taken
    }

    /// Removes and returns the vector of a slot.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<Waiting> {
        // The newest vectors are removed most often.
        let at = self.0.iter().rposition(|waiting| waiting.slot == slot)?;
        self.take(at)
    }

    /// Records that a vector has moved to another slot.
    pub(crate) fn rename(&mut self, from: u32, to: u32) {
        if let Some(waiting) = self.0.iter_mut().find(|waiting| waiting.slot == from) {
            waiting.slot = to;
        }
    }

    /// Returns the position of the vector with this insertion number, if it still has this claim.
    pub(crate) fn position(&self, number: u64, claim: Claim) -> Option<usize> {
        self.0.iter().position(|waiting| waiting.number == number && waiting.claim == Some(claim))
    }

    pub(crate) fn at_mut(&mut self, at: usize) -> Option<&mut Waiting> {
        self.0.get_mut(at)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Waiting> {
        self.0.iter_mut()
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().map(|waiting| waiting.slot)
    }
}
