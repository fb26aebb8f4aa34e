//! ember under real clients: libraries of five languages, job frameworks, and the dashboard in a browser.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod dashboard;
mod frameworks;
mod libraries;
mod redis_rs;
