//! Parameters of memory limits, and of eviction above them.

use emberkv_core::eviction::EvictionPolicy;

use super::bounds::{BYTES_MAX, INT_MAX};
use crate::parameter::{Field, Kind, Parameter};

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "maxmemory",
        aliases: &["max-memory"],
        kind: Kind::Memory { range: 0..=u64::MAX, field: field!(maxmemory) },
        default: "0",
        mutable: true,
        about: "The memory limit of the data and of clients' buffers, above which keys are evicted or writes refused; \
                0 for no limit.",
    },
    Parameter {
        name: "maxmemory-policy",
        aliases: &["eviction-policy"],
        kind: choice!(maxmemory_policy: EvictionPolicy),
        default: "noeviction",
        mutable: true,
        about: "Which keys are evicted at `maxmemory`.",
    },
    Parameter {
        name: "maxmemory-samples",
        aliases: &[],
        kind: integer!(maxmemory_samples, 1..=INT_MAX),
        default: "5",
        mutable: true,
        about: "The number of keys that are sampled to choose one to evict.",
    },
    Parameter {
        name: "lfu-log-factor",
        aliases: &[],
        kind: integer!(lfu_log_factor, 0..=INT_MAX),
        default: "10",
        mutable: true,
        about: "How much the access counter of the LFU policies slows down as it grows.",
    },
    Parameter {
        name: "lfu-decay-time",
        aliases: &[],
        kind: integer!(lfu_decay_time, 0..=INT_MAX),
        default: "1",
        mutable: true,
        about: "Minutes after which the access counter of the LFU policies is decremented; 0 for never.",
    },
    Parameter {
        name: "lazyfree-lazy-eviction",
        aliases: &[],
        kind: Kind::YesNo(field!(lazyfree_lazy_eviction)),
        default: "no",
        mutable: true,
        about: "Whether evictions are sent to replicas and the append-only file as UNLINK instead of DEL. This server \
                always frees large values in the background.",
    },
    Parameter {
        name: "lazyfree-lazy-expire",
        aliases: &[],
        kind: Kind::YesNo(field!(lazyfree_lazy_expire)),
        default: "no",
        mutable: true,
        about: "Whether expirations are sent to replicas and the append-only file as UNLINK instead of DEL. This \
                server always frees large values in the background.",
    },
    Parameter {
        name: "lazyfree-lazy-server-del",
        aliases: &[],
        kind: Kind::YesNo(field!(lazyfree_lazy_server_del)),
        default: "no",
        mutable: true,
        about: "Whether replicas and the append-only file receive UNLINK instead of DEL for keys that SPOP has emptied \
                or RESTORE has found to be expired. This server always frees large values in the background.",
    },
    Parameter {
        name: "lazyfree-lazy-user-del",
        aliases: &[],
        kind: Kind::YesNo(field!(lazyfree_lazy_user_del)),
        default: "no",
        mutable: true,
        about: "Whether DEL frees in the background, as UNLINK does.",
    },
    #[cfg(feature = "jemalloc")]
    Parameter {
        name: "activedefrag",
        aliases: &[],
        kind: Kind::YesNo(field!(activedefrag)),
        default: "no",
        mutable: true,
        about: "Whether a thread defragments memory while too much of it is unused between allocations.",
    },
    #[cfg(not(feature = "jemalloc"))]
    Parameter {
        name: "activedefrag",
        aliases: &[],
        kind: Kind::Fixed {
            accepts: &["no"],
            reason: "Active defragmentation cannot be enabled: it needs a build with jemalloc",
        },
        default: "no",
        mutable: true,
        about: "Whether a thread defragments memory while too much of it is unused between allocations.",
    },
    Parameter {
        name: "active-defrag-cycle-min",
        aliases: &[],
        kind: integer!(active_defrag_cycle_min, 1..=99),
        default: "1",
        mutable: true,
        about: "The minimum effort of `activedefrag`, in per cent of a processor: at `active-defrag-threshold-lower`.",
    },
    Parameter {
        name: "active-defrag-cycle-max",
        aliases: &[],
        kind: integer!(active_defrag_cycle_max, 1..=99),
        default: "25",
        mutable: true,
        about: "The maximum effort of `activedefrag`, in per cent of a processor: from `active-defrag-threshold-upper` \
                on.",
    },
    Parameter {
        name: "active-defrag-threshold-lower",
        aliases: &[],
        kind: integer!(active_defrag_threshold_lower, 0..=1000),
        default: "10",
        mutable: true,
        about: "`activedefrag` starts when the memory in use exceeds the allocated memory by this percentage; above \
                `maxmemory` by half of it.",
    },
    Parameter {
        name: "active-defrag-threshold-upper",
        aliases: &[],
        kind: integer!(active_defrag_threshold_upper, 0..=1000),
        default: "100",
        mutable: true,
        about: "The percentage from which `activedefrag` uses its maximum effort.",
    },
    Parameter {
        name: "active-defrag-ignore-bytes",
        aliases: &[],
        kind: Kind::Memory { range: 1..=BYTES_MAX, field: field!(active_defrag_ignore_bytes) },
        default: "100mb",
        mutable: true,
        about: "`activedefrag` does nothing while less memory than this is unused between allocations, unless the \
                memory in use is above `maxmemory`.",
    },
    Parameter {
        name: "active-defrag-max-scan-fields",
        aliases: &[],
        kind: integer!(active_defrag_max_scan_fields, 1..=i64::MAX),
        default: "1000",
        mutable: true,
        about: "`activedefrag` scans values with more elements than this in parts, others whole.",
    },
    Parameter {
        name: "active-defrag-cycle-us",
        aliases: &[],
        kind: integer!(active_defrag_cycle_us, 0..=100_000),
        default: "500",
        mutable: true,
        about: "The microseconds for which `activedefrag` works before it pauses; it does at least one short step.",
    },
    Parameter {
        name: "tiered-path",
        aliases: &[],
        kind: Kind::Path(field!(tiered_path)),
        default: "",
        mutable: false,
        about: "A directory, used by this server only, for values that exceed `maxmemory`, which must be set; empty \
                for none. It is emptied at startup.",
    },
    Parameter {
        name: "tiered-max-size",
        aliases: &[],
        kind: Kind::Memory { range: 0..=BYTES_MAX, field: field!(tiered_max_size) },
        default: "0",
        mutable: true,
        about: "The size limit of the files in `tiered-path`; 0 for nine tenths of the free space on their disk.",
    },
    Parameter {
        name: "tiered-min-value",
        aliases: &[],
        kind: Kind::Memory { range: 0..=BYTES_MAX, field: field!(tiered_min_value) },
        default: "64",
        mutable: true,
        about: "The value of a key stays in memory if key and value together take no more memory than this.",
    },
    Parameter {
        name: "tiered-max-value",
        aliases: &[],
        kind: Kind::Memory { range: 0..=64 << 20, field: field!(tiered_max_value) },
        default: "64mb",
        mutable: true,
        about: "The value of a key stays in memory if key and value together take more memory than this.",
    },
    Parameter {
        name: "storage-io-threads",
        aliases: &[],
        kind: integer!(storage_io_threads, 0..=64),
        default: "0",
        mutable: false,
        about: "The number of threads that read values from disk; 0 for two per processor, but at least 4 and at \
            most 16.",
    },
    Parameter {
        name: "import-mode",
        aliases: &[],
        kind: Kind::YesNo(field!(import_mode)),
        default: "no",
        mutable: true,
        about: "Whether this server is importing data from another one, which decides when keys expire: this server \
                expires and evicts no keys; see CLIENT IMPORT-SOURCE.",
    },
    Parameter {
        name: "lazyfree-lazy-user-flush",
        aliases: &[],
        kind: Kind::YesNo(field!(lazyfree_lazy_user_flush)),
        default: "no",
        mutable: true,
        about: "Whether FLUSHALL and FLUSHDB free in the background if called with neither SYNC nor ASYNC.",
    },
];
