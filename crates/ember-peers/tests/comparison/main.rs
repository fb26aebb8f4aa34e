//! ember compared with redis-server: replies, facts, users, scripts, payloads and files.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod acl;
mod command_facts;
mod differential;
mod info_fields;
mod main_job;
mod migration;
mod payloads;
mod raw_input;
mod rdb_files;
mod repaired_files;
mod scripts;
mod targets;

#[path = "../../../ember-persistence/tests/support/mod.rs"]
mod support;
