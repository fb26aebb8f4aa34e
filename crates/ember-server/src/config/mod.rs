//! The configuration of the server: its sources, its current values, and changes at run time.
//!
//! [`table::PARAMETERS`] describes every parameter once; flags ([`command_line`]), file directives ([`file`]),
//! environment variables ([`environment`]), CONFIG GET, SET and REWRITE ([`ConfigHandle`]), `--help` and the table in
//! `docs/configuration.md` ([`reference`]) are derived from it. [`launch`] merges the sources: defaults, then files,
//! then the environment, then the command line; later ones win.
//!
//! Workers hold an `Arc<Config>` and compare [`ConfigHandle::generation`], one atomic load, once per turn of their
//! event loop; only when it has changed do they take a new snapshot.

mod assignment;
mod bind_address;
mod client_memory_limit;
mod command_line;
mod cpu_list;
mod environment;
mod fields;
mod file;
mod handle;
mod launch;
mod lookup;
mod oom_score_values;
pub(crate) mod origins;
mod output_buffer_limit;
mod parameter;
mod percentiles;
mod primary_address;
mod reference;
mod rename;
mod rewrite;
mod save_rules;
mod shutdown_options;
mod store;
mod stored;
mod table;
mod user_lines;
mod users;
mod value;
mod words;

pub(crate) use bind_address::BindAddress;
pub(crate) use cpu_list::CpuList;
pub(crate) use fields::Config;
pub(crate) use handle::ConfigHandle;
pub(crate) use launch::{Launch, launch};
pub(crate) use lookup::{
    is_key_file_parameter, is_secret_parameter, notice_of_those, notice_without_effect, tls_parameter,
};
pub(crate) use output_buffer_limit::{OutputBufferLimit, OutputBufferLimits};
pub(crate) use primary_address::PrimaryAddress;
pub(crate) use reference::{Description, descriptions};
pub(crate) use rename::RenameDirective;
pub(crate) use shutdown_options::ShutdownOptions;
pub(crate) use table::SYNC_REPLICAS_MAX;
pub(crate) use users::{StoredUser, UserDirective};
pub(crate) use value::{
    AppendFsync, DebugCommand, LogFormat, LogLevel, LogTimestampFormat, OomScoreAdj, PubsubDefault,
    ReplicaApply, Store, Supervised, SyncLevel, TlsAuthClients, TlsAuthClientsUser,
};

#[cfg(test)]
mod packaging_tests;
#[cfg(test)]
mod testing;
