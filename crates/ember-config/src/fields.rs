//! The struct with the values of all parameters, and values derived from several of them.

use ember_persistence::rdb_file::VersionCheck;
use emberkv_core::eviction::EvictionPolicy;
use emberkv_core::keyspace::hash::HashFunction;
use emberkv_core::rdb::Target;
use emberkv_core::redis_version::RedisVersion;
use emberkv_core::types::limits::EncodingLimits;

use super::bind_address::BindAddress;
use super::client_memory_limit::ClientMemoryLimit;
use super::cpu_list::CpuList;
use super::oom_score_values::OomScoreValues;
use super::origins::Origins;
use super::output_buffer_limit::OutputBufferLimits;
use super::primary_address::PrimaryAddress;
use super::rename::RenameDirective;
use super::save_rules::SaveRules;
use super::shutdown_options::ShutdownOptions;
use super::stored::StoredValues;
use super::users::UserDirective;
use super::value::{
    AppendFsync, DebugCommand, EndpointType, KeyspaceEvents, LogFormat, LogLevel, LogTimestampFormat,
    OomScoreAdj, PubsubDefault, RdbTarget, RdbVersionCheck, ReplicaApply, Secret, Store, Supervised,
    SyncLevel, SyslogFacility, TlsAuthClients, TlsAuthClientsUser,
};

/// Declares [`Config`], with a constructor that zeroes every field before the defaults of the table are applied.
macro_rules! config {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        /// The values of all parameters whose value can vary. Each field is named after its parameter, which
        /// `table::PARAMETERS` explains.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Config {
            $($(#[$doc])* #[doc = concat!("`", stringify!($field), "`")] pub $field: $type,)*
        }

        impl Config {
            pub(super) fn zeros() -> Config {
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
    unixsocketgroup: String,
    /// Idle time in seconds after which a connection is closed; 0 for never.
    timeout: u32,
    /// Seconds between TCP keep-alive probes; 0 for none.
    tcp_keepalive: u32,
    maxclients: u32,
    max_new_connections_per_cycle: usize,
    max_new_tls_connections_per_cycle: usize,
    protected_mode: bool,
    requirepass: Secret,
    requirepass_file: String,
    aclfile: String,
    acl_pubsub_default: PubsubDefault,
    acllog_max_len: u64,
    /// Users from the `user …` lines of files, in order. They are not a parameter.
    users: Vec<UserDirective>,
    /// Commands from the `rename-command …` lines of files, in order. They are not a parameter.
    renames: Vec<RenameDirective>,
    enable_debug_command: DebugCommand,
    enable_protected_configs: DebugCommand,
    tls_port: u16,
    tls_cert_file: String,
    tls_key_file: String,
    tls_key_file_pass: Secret,
    tls_ca_cert_file: String,
    tls_ca_cert_dir: String,
    tls_auth_clients: TlsAuthClients,
    tls_auth_clients_user: TlsAuthClientsUser,
    tls_protocols: String,
    tls_ciphers: String,
    tls_ciphersuites: String,
    tls_prefer_server_ciphers: bool,
    tls_session_caching: bool,
    tls_session_cache_size: usize,
    /// Seconds between checks of the TLS files; 0 for never.
    tls_auto_reload_interval: u32,
    /// Seconds for which a session is cached.
    tls_session_cache_timeout: u32,
    /// The number of worker threads; 0 for one per core.
    shards: usize,
    concurrent: bool,
    databases: usize,
    hash_function: HashFunction,
    hz: u32,
    /// The memory limit in bytes; 0 for no limit.
    maxmemory: u64,
    maxmemory_policy: EvictionPolicy,
    maxmemory_samples: usize,
    lfu_log_factor: u32,
    /// Minutes between decrements of an LFU counter; 0 for never.
    lfu_decay_time: u32,
    redis_version: RedisVersion,
    lazyfree_lazy_eviction: bool,
    lazyfree_lazy_expire: bool,
    lazyfree_lazy_server_del: bool,
    lazyfree_lazy_user_del: bool,
    lazyfree_lazy_user_flush: bool,
    activedefrag: bool,
    /// The minimum effort of defragmentation in per cent of a processor.
    active_defrag_cycle_min: u64,
    /// The maximum effort of defragmentation in per cent of a processor.
    active_defrag_cycle_max: u64,
    /// The percentage of unused memory at which defragmentation begins.
    active_defrag_threshold_lower: u64,
    /// The percentage of unused memory at which the effort is highest.
    active_defrag_threshold_upper: u64,
    /// The minimum of unused memory, in bytes, for defragmentation.
    active_defrag_ignore_bytes: u64,
    active_defrag_max_scan_fields: u64,
    /// Microseconds of work between two pauses of defragmentation.
    active_defrag_cycle_us: u64,
    tiered_path: String,
    /// The maximum size of the files in bytes; 0 for nine tenths of the free disk space.
    tiered_max_size: u64,
    /// The minimum size in bytes of a demoted key with its value.
    tiered_min_value: u64,
    /// The maximum size in bytes of a demoted key with its value.
    tiered_max_value: u64,
    storage_io_threads: usize,
    import_mode: bool,
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
    /// The maximum size of a client's unprocessed input, in bytes.
    client_query_buffer_limit: u64,
    /// The maximum size of an argument of a command, in bytes.
    proto_max_bulk_len: u64,
    watch_max_per_client: u64,
    /// The memory limit of live queries in bytes.
    watch_max_memory: u64,
    /// The maximum length of a result in bytes.
    watch_max_reply: u64,
    /// Milliseconds until other clients receive BUSY during a script; 0 for never.
    busy_reply_threshold: u64,
    long_call_elements: u64,
    /// The memory limit of each worker's scripts, in bytes.
    script_memory_limit: u64,
    /// The execution time in microseconds from which a command is logged; -1 for none.
    slowlog_log_slower_than: i64,
    slowlog_max_len: u64,
    /// The request size in bytes above which a command is logged; negative for none.
    commandlog_request_larger_than: i64,
    commandlog_large_request_max_len: u64,
    /// The reply size in bytes above which a command is logged; negative for none.
    commandlog_reply_larger_than: i64,
    commandlog_large_reply_max_len: u64,
    /// The key size in bytes above which a command is logged; negative for none.
    commandlog_key_larger_than: i64,
    commandlog_large_key_max_len: u64,
    /// One of this many commands is sampled; 0 for none.
    hotkeys_sampling: u32,
    /// The duration in milliseconds from which an event is recorded; 0 for none.
    latency_monitor_threshold: u64,
    /// The HTTP port for metrics; 0 for none.
    metrics_port: u16,
    metrics_bind: Vec<BindAddress>,
    metrics_dashboard: bool,
    /// The HTTP port for live queries; 0 for none.
    http_watch_port: u16,
    http_watch_bind: Vec<BindAddress>,
    http_watch_origins: Origins,
    http_watch_max_streams: u64,
    notify_keyspace_events: KeyspaceEvents,
    /// The maximum number of tracked keys; 0 for no limit.
    tracking_table_max_keys: u64,
    latency_tracking: bool,
    latency_tracking_info_percentiles: Vec<f64>,
    loglevel: LogLevel,
    logfile: String,
    log_format: LogFormat,
    log_timestamp_format: LogTimestampFormat,
    availability_zone: String,
    syslog_enabled: bool,
    syslog_ident: String,
    syslog_facility: SyslogFacility,
    dir: String,
    appendonly: bool,
    appendfsync: AppendFsync,
    appenddirname: String,
    appendfilename: String,
    aof_timestamp_enabled: bool,
    /// Seconds for which the AOF's files are kept after a rewrite has replaced them; 0 for none.
    aof_keep_seconds: u64,
    /// The patterns of the keys whose history is recorded; empty for none.
    history_keys: String,
    history_path: String,
    /// Seconds for which past states are kept.
    history_max_age: u64,
    /// The maximum size of the history's files in bytes.
    history_max_size: u64,
    /// The maximum memory of the history's index in bytes.
    history_max_memory: u64,
    /// The maximum size in bytes of a recorded value.
    history_max_value: u64,
    aof_load_truncated: bool,
    aof_use_rdb_preamble: bool,
    auto_aof_rewrite_percentage: u32,
    auto_aof_rewrite_min_size: u64,
    replica_lazy_flush: bool,
    repl_disable_tcp_nodelay: bool,
    repl_diskless_sync: bool,
    /// Seconds to wait for more replicas before a full sync starts.
    repl_diskless_sync_delay: u32,
    /// The number of replicas with which a full sync starts at once; 0 to wait for the whole delay.
    repl_diskless_sync_max_replicas: u32,
    /// Seconds between pings to replicas.
    repl_ping_replica_period: u32,
    /// Seconds without data after which a replication connection is closed.
    repl_timeout: u32,
    repl_backlog_size: u64,
    repl_backlog_spill: u64,
    /// Seconds for which the backlog is retained without replicas; 0 for ever.
    repl_backlog_ttl: i64,
    min_replicas_to_write: u32,
    /// The maximum age in seconds of a replica's last report.
    min_replicas_max_lag: u32,
    sync_replicas: u32,
    sync_level: SyncLevel,
    replica_apply: ReplicaApply,
    /// Milliseconds without the confirmation of replicas after which a client's connection is closed.
    sync_timeout: u32,
    aof_lag_limit: u64,
    aof_wait_limit: u64,
    dbfilename: String,
    rdbcompression: bool,
    rdb_version_check: RdbVersionCheck,
    rdb_target: RdbTarget,
    rdb_skip_unknown_modules: bool,
    save: SaveRules,
    stop_writes_on_bgsave_error: bool,
    encryption_key_file: String,
    store: Store,
    path: String,
    fsync: bool,
    replicaof: PrimaryAddress,
    cluster_enabled: bool,
    cluster_config_file: String,
    cluster_port: u16,
    cluster_announce_ip: String,
    cluster_announce_port: u16,
    cluster_announce_tls_port: u16,
    cluster_announce_bus_port: u16,
    cluster_announce_hostname: String,
    cluster_announce_human_nodename: String,
    cluster_preferred_endpoint_type: EndpointType,
    cluster_require_full_coverage: bool,
    cluster_allow_reads_when_down: bool,
    cluster_allow_pubsubshard_when_down: bool,
    cluster_databases: usize,
    cluster_node_timeout: u64,
    cluster_replica_no_failover: bool,
    cluster_auth_pass: Secret,
    cluster_auth_pass_file: String,
    cluster_unauthenticated: bool,
    cluster_bootstrap: bool,
    tls_cluster: bool,
    masteruser: Secret,
    bind_source_addr: String,
    masterauth: Secret,
    replica_serve_stale_data: bool,
    replica_announced: bool,
    replica_priority: u32,
    replica_announce_ip: String,
    replica_announce_port: u16,
    tls_replication: bool,
    tls_client_cert_file: String,
    tls_client_key_file: String,
    tls_client_key_file_pass: Secret,
    pidfile: String,
    daemonize: bool,
    set_proc_title: bool,
    proc_title_template: String,
    supervised: Supervised,
    /// Seconds for which a shutdown waits for replicas, and then for clients.
    shutdown_timeout: u32,
    shutdown_on_sigint: ShutdownOptions,
    shutdown_on_sigterm: ShutdownOptions,
    oom_score_adj: OomScoreAdj,
    oom_score_adj_values: OomScoreValues,
    server_cpulist: CpuList,
    bio_cpulist: CpuList,
    aof_rewrite_cpulist: CpuList,
    bgsave_cpulist: CpuList,
    /// The delay after each written key in microseconds; if negative, the number of keys per microsecond of delay.
    rdb_key_save_delay: i32,
    /// The delay after each loaded key in microseconds; if negative, the number of keys per microsecond of delay.
    key_load_delay: i32,
    /// The percentage of `maxmemory` above which values are demoted.
    tiered_goal: u64,
    active_expire_effort: usize,
    no_appendfsync_on_rewrite: bool,
    /// The values of parameters that have no effect in this version.
    stored: StoredValues,
}

/// The minimum size of file buffers in bytes, however low `maxmemory` is: the waiting caused by smaller buffers would
/// cost more than their memory.
const HELD_BACK_MIN_BYTES: usize = 1024 * 1024;

impl Config {
    /// Returns the maximum number of streams of live queries to browsers.
    pub fn streams_max(&self) -> u64 {
        if self.http_watch_port == 0 { 0 } else { self.http_watch_max_streams }
    }

    /// Returns the total memory of clients, in bytes, above which clients are evicted; `None` for no limit.
    pub fn client_memory_max(&self) -> Option<u64> {
        self.maxmemory_clients.bytes(self.maxmemory)
    }

    /// Returns the maximum size in bytes of a buffer for file output: `most`, or `maxmemory / share` if that is less.
    /// Buffers take memory in addition to the data set or at its expense, so they must be small compared with
    /// `maxmemory`.
    pub fn held_back_max(&self, most: usize, share: u64) -> usize {
        if self.maxmemory == 0 {
            return most;
        }
        usize::try_from(self.maxmemory / share).unwrap_or(most).clamp(HELD_BACK_MIN_BYTES, most)
    }

    /// Whether the AOF contains timestamps: kept files are useful only with them.
    pub fn writes_aof_timestamps(&self) -> bool {
        self.aof_timestamp_enabled || self.aof_keep_seconds != 0
    }

    /// Returns which RDB versions are accepted on reading.
    pub fn version_check(&self) -> VersionCheck {
        match self.rdb_version_check {
            RdbVersionCheck::Strict => VersionCheck::Strict,
            RdbVersionCheck::Relaxed => VersionCheck::Relaxed,
        }
    }

    /// Returns the oldest server version that must be able to read the written RDB files and payloads.
    pub fn rdb_target(&self) -> Target {
        match self.rdb_target {
            RdbTarget::Redis => Target::Redis,
            RdbTarget::Redis72 => Target::Redis72,
            RdbTarget::Redis8 => Target::Redis8,
            RdbTarget::Valkey9 => Target::Valkey9,
        }
    }

    /// Returns the size limits up to which collections keep their compact encodings.
    pub fn encoding_limits(&self) -> EncodingLimits {
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
