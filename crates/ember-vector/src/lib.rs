//! An index of vectors that finds the nearest ones to a given vector, by a graph, by lists or exactly.
//!
//! * Vectors are in *slots* 0, 1, 2, … without gaps. The last vector moves into the slot of a removed one
//!   ([`Index::remove`]), so the index's owner can store further data in arrays indexed by slot.
//! * Removal is complete: links are repaired, memory is freed.
//! * A vector can be added quickly ([`Index::add`]) and linked later, by other threads during searches
//!   ([`Index::begin_linking`]). Searches already find it before it is linked.
//! * Lists are built in steps, on any thread, during changes and searches ([`Index::begin_training`]).
//! * [`Index::memory_bytes`] is exact, and known at any time.
//! * A clone shares all blocks of rows with the original and costs one pointer for each group of blocks; a block is
//!   copied when one of the two first changes it. So a clone is a snapshot view.
//! * Distances use the instructions of the processor; results for bytes and bits are identical on all processors.
//!
//! The crate starts no thread and reads no clock and no random source: random choices follow from the number of
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
