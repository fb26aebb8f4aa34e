//! Tools compared with those of Redis: the command lines, and the scripts that measure and draw.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod benchmarks;
mod charts;
mod ember_cli;
mod packages;
mod redis_cli;
mod tls;
