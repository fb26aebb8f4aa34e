//! Replication: a primary sends the changes of its data as one stream of commands, and replicas run it.
//!
//! Data structures and decisions that servers share, without sockets, threads or clocks.
//!
//! A *position* counts the bytes of the stream before it. Redis names the same place by an *offset* with the same
//! number: that of the last byte before it. Protocol and terms (PSYNC2) are Redis's:
//! <https://redis.io/docs/latest/operate/oss_and_stack/management/replication/>.

pub mod answers;
pub mod backlog;
pub mod command_names;
pub mod history;
pub mod milestones;
pub mod position;
