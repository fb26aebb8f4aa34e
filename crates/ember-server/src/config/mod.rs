//! The configuration of the server: where it comes from, its current values, and how it changes at run time.
//!
//! [`table::PARAMETERS`] describes every parameter once; flags ([`command_line`]), file directives ([`file`]),
//! environment variables ([`environment`]), CONFIG GET, SET and REWRITE ([`ConfigHandle`]), `--help` and the table in
//! `docs/configuration.md` ([`reference`]) are derived from it. [`launch`] puts the sources together: defaults, then
//! files, then the environment, then the command line, the later one winning.
//!
//! Workers hold an `Arc<Config>` and compare [`ConfigHandle::generation`], one atomic load, once per turn of their
//! event loop; only when it moved do they take a new snapshot.

mod bind_address;
mod client_memory_limit;
mod command_line;
mod environment;
mod file;
mod handle;
mod launch;
mod output_buffer_limit;
mod parameter;
mod percentiles;
mod reference;
mod rewrite;
mod save_rules;
mod table;
mod users;
mod value;
mod words;

use emberkv_core::eviction::EvictionPolicy;
use emberkv_core::keyspace::hash::HashFunction;
use emberkv_core::types::limits::EncodingLimits;

pub(crate) use bind_address::BindAddress;
pub(crate) use client_memory_limit::ClientMemoryLimit;
pub(crate) use handle::ConfigHandle;
pub(crate) use launch::{Launch, launch};
pub(crate) use output_buffer_limit::{OutputBufferLimit, OutputBufferLimits};
pub(crate) use save_rules::SaveRules;
pub(crate) use users::{StoredUser, UserDirective};
pub(crate) use value::{
    AppendFsync, DebugCommand, KeyspaceEvents, LogLevel, PubsubDefault, Secret, Supervised, TlsAuthClients,
};

/// Declares [`Config`], with a constructor of zeros for the defaults of the table to be written into.
macro_rules! config {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        /// The values of all parameters which can have more than one; each field is named as its parameter, which
        /// [`table::PARAMETERS`] explains.
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) struct Config {
            $($(#[$doc])* pub(crate) $field: $type,)*
        }

        impl Config {
            fn zeros() -> Config {
                Config { $($field: <$type>::default(),)* }
            }
        }
    };
}

config! {
    bind: Vec<BindAddress>,
    port: u16,
    tcp_backlog: u32,
    unixsocket: String,
    unixsocketperm: u32,
    /// In seconds.
    timeout: u32,
    /// In seconds.
    tcp_keepalive: u32,
    maxclients: u32,
    protected_mode: bool,
    requirepass: Secret,
    requirepass_file: String,
    aclfile: String,
    acl_pubsub_default: PubsubDefault,
    acllog_max_len: u64,
    /// The lines `user …` of files, in their order; no parameter.
    users: Vec<UserDirective>,
    enable_debug_command: DebugCommand,
    tls_port: u16,
    tls_cert_file: String,
    tls_key_file: String,
    tls_ca_cert_file: String,
    tls_ca_cert_dir: String,
    tls_auth_clients: TlsAuthClients,
    tls_protocols: String,
    tls_ciphers: String,
    tls_ciphersuites: String,
    tls_prefer_server_ciphers: bool,
    tls_session_caching: bool,
    tls_session_cache_size: usize,
    /// In seconds.
    tls_session_cache_timeout: u32,
    /// Worker threads; 0 for one per core.
    shards: usize,
    concurrent: bool,
    databases: usize,
    hash_function: HashFunction,
    hz: u32,
    /// In bytes; 0 for no limit.
    maxmemory: u64,
    maxmemory_policy: EvictionPolicy,
    maxmemory_samples: usize,
    lfu_log_factor: u32,
    /// In minutes.
    lfu_decay_time: u32,
    lazyfree_lazy_user_del: bool,
    lazyfree_lazy_user_flush: bool,
    hash_max_listpack_entries: usize,
    hash_max_listpack_value: usize,
    set_max_intset_entries: usize,
    set_max_listpack_entries: usize,
    set_max_listpack_value: usize,
    zset_max_listpack_entries: usize,
    zset_max_listpack_value: usize,
    list_max_listpack_size: i64,
    list_compress_depth: usize,
    stream_node_max_bytes: usize,
    stream_node_max_entries: usize,
    hll_sparse_max_bytes: usize,
    maxmemory_clients: ClientMemoryLimit,
    client_output_buffer_limit: OutputBufferLimits,
    /// In bytes.
    client_query_buffer_limit: u64,
    /// In bytes.
    proto_max_bulk_len: u64,
    /// In milliseconds; 0 for never.
    busy_reply_threshold: u64,
    /// In bytes, of each worker.
    script_memory_limit: u64,
    /// In microseconds; -1 for none.
    slowlog_log_slower_than: i64,
    slowlog_max_len: u64,
    /// In bytes; negative for none.
    commandlog_request_larger_than: i64,
    commandlog_large_request_max_len: u64,
    /// In bytes; negative for none.
    commandlog_reply_larger_than: i64,
    commandlog_large_reply_max_len: u64,
    /// In bytes; negative for none.
    commandlog_key_larger_than: i64,
    commandlog_large_key_max_len: u64,
    /// 0 for none.
    hotkeys_sampling: u32,
    /// In milliseconds.
    latency_monitor_threshold: u64,
    /// 0 for none.
    metrics_port: u16,
    metrics_bind: Vec<BindAddress>,
    metrics_dashboard: bool,
    notify_keyspace_events: KeyspaceEvents,
    /// 0 for no limit.
    tracking_table_max_keys: u64,
    latency_tracking: bool,
    latency_tracking_info_percentiles: Vec<f64>,
    loglevel: LogLevel,
    logfile: String,
    dir: String,
    appendonly: bool,
    appendfsync: AppendFsync,
    appenddirname: String,
    appendfilename: String,
    aof_timestamp_enabled: bool,
    aof_load_truncated: bool,
    auto_aof_rewrite_percentage: u32,
    auto_aof_rewrite_min_size: u64,
    aof_lag_limit: u64,
    aof_wait_limit: u64,
    dbfilename: String,
    rdbcompression: bool,
    save: SaveRules,
    stop_writes_on_bgsave_error: bool,
    encryption_key_file: String,
    pidfile: String,
    supervised: Supervised,
    /// In seconds.
    shutdown_timeout: u32,
}

/// Whether `name` is that of a parameter whose value is a password.
pub(crate) fn is_secret_parameter(name: &[u8]) -> bool {
    let parameter = std::str::from_utf8(name).ok().and_then(parameter::Parameter::find);
    parameter.is_some_and(|parameter| matches!(parameter.kind, parameter::Kind::Secret { .. }))
}

/// The name of the parameter of TLS that `name` names, if it does.
pub(crate) fn tls_parameter(name: &[u8]) -> Option<&'static str> {
    let parameter = std::str::from_utf8(name).ok().and_then(parameter::Parameter::find)?;
    parameter.name.starts_with("tls-").then_some(parameter.name)
}

/// Whether `name` is that of the parameter that names the file of keys.
pub(crate) fn is_key_file_parameter(name: &[u8]) -> bool {
    let parameter = std::str::from_utf8(name).ok().and_then(parameter::Parameter::find);
    parameter.is_some_and(|parameter| parameter.name == table::ENCRYPTION_KEY_FILE)
}

impl Default for Config {
    fn default() -> Config {
        let mut config = Config::zeros();
        for parameter in table::PARAMETERS {
            parameter.reset(&mut config);
        }
        config
    }
}

/// One parameter and the text of its value, as a source of the configuration names it; or [`users::DIRECTIVE`] and the
/// words of a user.
#[derive(Debug)]
struct Assignment {
    parameter: &'static parameter::Parameter,
    text: String,
    /// Where it stands: `a.conf:12`, `EMBER_PORT`, `--port`. Errors begin with it.
    origin: String,
}

impl Assignment {
    /// Writes the value into `config`.
    ///
    /// # Errors
    /// One line which names the origin and, where the origin does not, the parameter.
    fn apply(&self, config: &mut Config) -> Result<(), String> {
        if std::ptr::eq(self.parameter, &raw const users::DIRECTIVE) {
            let words = words::split(&self.text).map_err(|error| format!("{}: {error}", self.origin))?;
            config.users.push(UserDirective { words, origin: self.origin.clone() });
            return Ok(());
        }
        self.parameter.state(config, &self.text).map_err(|error| format!("{}: {error}", self.origin))
    }
}

#[cfg(test)]
mod packaging_tests;
#[cfg(test)]
mod testing;

impl Config {
    /// Bytes from which on clients are evicted, if there is a limit.
    pub(crate) fn client_memory_max(&self) -> Option<u64> {
        self.maxmemory_clients.bytes(self.maxmemory)
    }

    /// Up to which size values with elements keep their compact encodings.
    pub(crate) fn encoding_limits(&self) -> EncodingLimits {
        EncodingLimits {
            hash_max_listpack_entries: self.hash_max_listpack_entries,
            hash_max_listpack_value: self.hash_max_listpack_value,
            set_max_intset_entries: self.set_max_intset_entries,
            set_max_listpack_entries: self.set_max_listpack_entries,
            set_max_listpack_value: self.set_max_listpack_value,
            zset_max_listpack_entries: self.zset_max_listpack_entries,
            zset_max_listpack_value: self.zset_max_listpack_value,
            list_max_listpack_size: self.list_max_listpack_size,
            list_compress_depth: self.list_compress_depth,
            stream_node_max_bytes: self.stream_node_max_bytes,
            stream_node_max_entries: self.stream_node_max_entries,
            hll_sparse_max_bytes: self.hll_sparse_max_bytes,
        }
    }
}
