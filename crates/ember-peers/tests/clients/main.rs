//! ember with real clients: libraries of five languages, cluster clients, job frameworks, the dashboard and live queries in
//! a browser.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod browsers;
mod cluster;
mod dashboard;
mod frameworks;
mod libraries;
mod redis_rs;
