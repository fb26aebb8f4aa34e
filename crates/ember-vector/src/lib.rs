//! An index of vectors: the nearest ones to a given vector, by a graph, by lists or exactly.
//!
//! * Vectors stand in *slots* 0, 1, 2, … without gaps. A removed one is filled by the last ([`Index::remove`]), so owners
//!   keep what else they know in arrays of their own.
//! * Removal is real: links are mended, memory is given back.
//! * A vector can be added in a moment ([`Index::add`]) and linked later, by other threads while it is searched
//!   ([`Index::begin_linking`]). Searches find it meanwhile.
//! * Lists are made in steps, by any thread, beside changes and searches ([`Index::begin_training`]).
//! * [`Index::memory_bytes`] is exact, and known at any time.
//! * A clone shares all blocks of rows with the original and costs a pointer for each of them; a block is copied when one of
//!   the two changes it first. So a clone is a view of one moment.
//! * Distances are computed by the instructions that the processor has; results of bytes and bits are the same on all.
//!
//! The crate starts no thread, reads no clock and no random numbers: what is chosen by chance follows from the number of
//! insertions.
//!
//! ```
//! use ember_vector::{Config, Index, Kind, Metric, Prepared, Scalar, Scratch};
//!
//! let (metric, scalar) = (Metric::Cosine, Scalar::F32);
//! let account = |bytes| bytes;
//! let mut index = Index::new(Config { dim: 2, metric, scalar, kind: Kind::Hnsw { links: 16 }, account })?;
//! let mut scratch = Scratch::default();
//! for vector in [[1.0, 0.0], [0.0, 1.0], [0.7, 0.6]] {
//!     index.insert(&Prepared::new(&vector, metric, scalar), 200, &mut scratch);
//! }
//! let query = Prepared::new(&[0.9, 1.0], metric, scalar);
//! let hits = index.search(&query, 2, 100, &mut scratch);
//! assert_eq!(hits.iter().map(|hit| hit.slot).collect::<Vec<_>>(), [2, 1]);
//! # Ok::<(), ember_vector::ConfigError>(())
//! ```

mod arena;
mod config;
mod graph;
mod index;
mod kernels;
mod lists;
mod quantize;
mod random;
mod restore;
mod search;
mod space;

pub use arena::Account;
pub use config::{Config, ConfigError, DIM_MAX, Kind, LINKS_MAX, LINKS_MIN, LISTS_MAX, Metric, Scalar};
pub use graph::linking::{Linking, Plan};
pub use index::{Index, SLOTS_MAX};
pub use lists::training::{Training, VECTORS_PER_LIST};
pub use quantize::{Facts, Prepared};
pub use random::LEVEL_MAX;
pub use restore::{Restore, RestoreError};
pub use search::{Hit, Scratch};
