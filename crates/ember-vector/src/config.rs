//! What an index is made of: fixed when it is made.

use crate::arena::Account;

/// The most dimensions of a vector. Sums of products of bytes stay below 2^31 with that many.
pub const DIM_MAX: usize = 65_536;

/// The least and the most links of a node of a graph on each level but the lowest, where it can have three times as many.
pub const LINKS_MIN: usize = 4;
/// The most; see [`LINKS_MIN`].
pub const LINKS_MAX: usize = 4096;

/// The most lists.
pub const LISTS_MAX: usize = 65_536;

/// What is meant by near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The angle between two vectors. Their lengths are taken out, and kept beside them.
    Cosine,
    /// The distance of two points.
    L2,
    /// The inner product: the larger, the nearer.
    InnerProduct,
}

/// How the numbers of a vector are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// As floats of 32 bits.
    F32,
    /// As floats of 16 bits (IEEE 754).
    F16,
    /// As the upper half of floats of 32 bits.
    Bf16,
    /// As integers from -127 to 127 and the largest number of the vector.
    Int8,
    /// As their signs.
    Binary,
}

impl Scalar {
    /// Bytes of a stored vector of so many dimensions.
    pub fn bytes(self, dim: usize) -> usize {
        match self {
            Scalar::F32 => dim * 4,
            Scalar::F16 | Scalar::Bf16 => dim * 2,
            Scalar::Int8 => dim,
            Scalar::Binary => dim.div_ceil(64) * 8,
        }
    }
}

/// How neighbours are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By a graph of several levels (Malkov and Yashunin, 2016).
    Hnsw {
        /// Links of a node on each level but the lowest, where it can have three times as many.
        links: usize,
    },
    /// By lists around centres, of which a search looks at some. They are made when there are
    /// [`crate::VECTORS_PER_LIST`] vectors for each; until then a search looks at all.
    Ivf {
        /// How many lists.
        lists: usize,
    },
    /// By looking at every vector.
    Flat,
}

/// What an index is made of.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Numbers of a vector.
    pub dim: usize,
    /// What is meant by near.
    pub metric: Metric,
    /// How numbers are kept.
    pub scalar: Scalar,
    /// How neighbours are found.
    pub kind: Kind,
    /// What the allocator takes for a request of so many bytes: what [`crate::Index::memory_bytes`] counts with.
    pub account: Account,
}

/// Why there is no such index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// No dimensions, or more than [`DIM_MAX`].
    Dimensions,
    /// Fewer links than [`LINKS_MIN`] or more than [`LINKS_MAX`].
    Links,
    /// No lists, or more than [`LISTS_MAX`].
    Lists,
}

impl Config {
    /// Whether there can be such an index.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.dim == 0 || self.dim > DIM_MAX {
            return Err(ConfigError::Dimensions);
        }
        match self.kind {
            Kind::Hnsw { links } if !(LINKS_MIN..=LINKS_MAX).contains(&links) => Err(ConfigError::Links),
            Kind::Ivf { lists } if !(1..=LISTS_MAX).contains(&lists) => Err(ConfigError::Lists),
            _ => Ok(()),
        }
    }
}
