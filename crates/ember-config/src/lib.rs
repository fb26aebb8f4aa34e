//! The configuration of the server: its sources, its current values, and changes at run time.
//!
//! [`table::PARAMETERS`] describes every parameter once; flags ([`command_line`]), file directives ([`file`]),
//! environment variables ([`environment`]), CONFIG GET, SET and REWRITE ([`ConfigHandle`]), `--help` and the table in
//! `docs/configuration.md` ([`reference`]) are derived from that table. [`launch`] merges the sources: defaults, then
//! files, then the environment, then the command line; later ones win.
//!
//! Workers hold an `Arc<Config>` and compare [`ConfigHandle::generation`], one atomic load, once per turn of their
//! event loop. They take a new snapshot only if the generation has changed.

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
pub mod origins;
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
pub mod tls_ciphers;
pub mod tls_protocols;
mod user_lines;
mod users;
mod value;
mod words;

pub use bind_address::BindAddress;
pub use cpu_list::CpuList;
pub use fields::Config;
pub use handle::ConfigHandle;
pub use launch::{Launch, launch};
pub use lookup::{
    is_key_file_parameter, is_secret_parameter, notice_of_those, notice_without_effect, tls_parameter,
};
pub use output_buffer_limit::{OutputBufferLimit, OutputBufferLimits};
pub use primary_address::PrimaryAddress;
pub use reference::{Description, descriptions};
pub use rename::RenameDirective;
pub use shutdown_options::ShutdownOptions;
pub use store::check_kept_files;
pub use table::SYNC_REPLICAS_MAX;
pub use users::{StoredUser, UserDirective};
pub use value::{
    AppendFsync, DebugCommand, EndpointType, LogFormat, LogLevel, LogTimestampFormat, OomScoreAdj,
    PubsubDefault, ReplicaApply, Store, Supervised, SyncLevel, TlsAuthClients, TlsAuthClientsUser,
};

#[cfg(test)]
mod packaging_tests;
#[cfg(test)]
mod testing;
