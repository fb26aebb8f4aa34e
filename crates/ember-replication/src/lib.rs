//! Replication: a primary sends the changes of its data as one stream of commands, and replicas run it.
//!
//! This crate contains the data structures and decisions of replication that need no sockets, threads or clocks.
//!
//! A *position* counts the bytes of the stream before it. Redis uses the same number as an *offset*, which denotes the
//! last byte before the position. Protocol and terms (PSYNC2) are Redis's:
//! <https://redis.io/docs/latest/operate/oss_and_stack/management/replication/>.

pub mod answers;
pub mod backlog;
pub mod command_names;
pub mod history;
pub mod milestones;
pub mod position;
