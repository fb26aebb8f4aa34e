//! Models of state that threads share, run under many schedules by the model checker; empty in builds without
//! `--cfg shuttle`.

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
