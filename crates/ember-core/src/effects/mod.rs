//! What a command does beside its reply: events of keys, records of the journal, and news to those who observe keys.

pub mod audience;
pub mod events;
pub mod journal;
pub mod live_query;
pub mod observers;
mod queries;
