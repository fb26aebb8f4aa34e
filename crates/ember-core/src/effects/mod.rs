//! The effects of a command other than its reply: key events, journal records, and notifications to observers of keys.

pub mod audience;
pub mod capture;
pub mod events;
pub mod journal;
pub mod live_query;
pub mod observers;
mod queries;
