//! The effects of a command besides its reply: events of keys, journal records, and notifications to observers of keys.

pub mod audience;
pub mod events;
pub mod journal;
pub mod live_query;
pub mod observers;
mod queries;
