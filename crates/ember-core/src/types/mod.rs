//! Values with elements: one module per type, separate from the commands on them.
//!
//! An entry owns an [`Aggregate`] through one pointer. For that, a type must implement [`Collection`].
//!
//! The types are recursive: an entry owns an aggregate, and the tables of large aggregates own entries ([`elements`]).
//! `entry`, `table`, `elements`, `aggregate` and the types with tables refer to each other; all other modules are above
//! or below them.

pub(crate) mod aggregate;
pub(crate) mod collection;
pub mod elements;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod intset;
pub mod json;
pub mod limits;
pub mod list;
pub mod listpack;
pub mod set;
pub mod sketches;
pub mod sorted_set;
pub mod stream;
pub mod value;
pub mod vector_set;

pub use aggregate::{Aggregate, Variant};
pub use collection::Collection;
