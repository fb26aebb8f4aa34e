//! Models of state that threads share, explored by schedules: built with `--cfg shuttle`, else empty.

#![cfg(shuttle)]
#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod gate;
mod lanes;
mod live_query_marks;
mod loans;
mod locks;
mod mailbox;
mod vectors;
mod waiters;
