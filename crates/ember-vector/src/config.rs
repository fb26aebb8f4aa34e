//! The parameters of an index, fixed at its creation.

use crate::arena::Account;

/// The maximum number of dimensions of a vector. Up to this number, sums of products of `i8` numbers are below 2^31.
pub const DIM_MAX: usize = 65_536;

/// The minimum number of links of a node on each level except the lowest, where it can have three times as many.
pub const LINKS_MIN: usize = 4;
/// The maximum number of links; see [`LINKS_MIN`].
pub const LINKS_MAX: usize = 4096;

/// The maximum number of lists.
pub const LISTS_MAX: usize = 65_536;

/// The distance metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The angle between two vectors. They are normalized, and their lengths are stored with them.
    Cosine,
    /// The Euclidean distance.
    L2,
    /// The inner product: a larger one means nearer.
    InnerProduct,
}

/// The storage format of a vector's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Floats of 32 bits.
    F32,
    /// Floats of 16 bits (IEEE 754).
    F16,
    /// The upper 16 bits of floats of 32 bits (bfloat16).
    Bf16,
    /// Integers from -127 to 127, scaled by the largest number of the vector.
    Int8,
    /// One bit per number: its sign.
    Binary,
}

impl Scalar {
    /// Returns the size in bytes of the stored numbers of a vector with `dim` dimensions.
    pub fn bytes(self, dim: usize) -> usize {
        match self {
            Scalar::F32 => dim * 4,
            Scalar::F16 | Scalar::Bf16 => dim * 2,
            Scalar::Int8 => dim,
            Scalar::Binary => dim.div_ceil(64) * 8,
        }
    }
}

/// The search structure of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A graph of several levels (Malkov and Yashunin, 2016).
    Hnsw {
        /// Links of a node on each level except the lowest, where it can have three times as many.
        links: usize,
    },
    /// Lists around centroids, of which a search scans some. The lists are built once there are
    /// [`crate::VECTORS_PER_LIST`] vectors per list; until then a search scans all vectors.
    Ivf {
        /// The number of lists.
        lists: usize,
    },
    /// No structure: every search scans all vectors.
    Flat,
}

/// The parameters of an index.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The number of dimensions.
    pub dim: usize,
    /// The distance metric.
    pub metric: Metric,
    /// The storage format.
    pub scalar: Scalar,
    /// The search structure.
    pub kind: Kind,
    /// Returns the bytes that the allocator uses for a request of a given size; [`crate::Index::memory_bytes`] sums up
    /// its results.
    pub account: Account,
}

/// The reason why a configuration is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// There are no dimensions, or more than [`DIM_MAX`].
    Dimensions,
    /// There are fewer links than [`LINKS_MIN`], or more than [`LINKS_MAX`].
    Links,
    /// There are no lists, or more than [`LISTS_MAX`].
    Lists,
}

impl Config {
    /// Checks the parameters.
    ///
    /// # Errors
    /// Returns the parameter that is out of range.
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
