//! How much memory the data may take, and what goes when it is full.

use emberkv_core::eviction::EvictionPolicy;

use super::bounds::INT_MAX;
use crate::config::parameter::{Field, Kind, Parameter};
use crate::config::stored::Form;

const ALWAYS_FREED_LAZILY: &str = "a value with many elements is always freed in the background";

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "maxmemory",
        aliases: &["max-memory"],
        kind: Kind::Memory { range: 0..=u64::MAX, field: field!(maxmemory) },
        default: "0",
        mutable: true,
        about: "How much memory the data and what clients make the server keep may take before keys are evicted or writes \
                refused; 0 for no limit.",
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
        about: "How many keys are looked at to choose one to evict.",
    },
    Parameter {
        name: "lfu-log-factor",
        aliases: &[],
        kind: integer!(lfu_log_factor, 0..=INT_MAX),
        default: "10",
        mutable: true,
        about: "How much slower the access counter of the LFU policies grows the larger it is.",
    },
    Parameter {
        name: "lfu-decay-time",
        aliases: &[],
        kind: integer!(lfu_decay_time, 0..=INT_MAX),
        default: "1",
        mutable: true,
        about: "Minutes after which the access counter of the LFU policies is decremented; 0 for never.",
    },
    Parameter::without_effect(
        "lazyfree-lazy-eviction",
        Form::YesNo,
        "no",
        ALWAYS_FREED_LAZILY,
        "Whether values which are evicted are freed in the background.",
    ),
    Parameter::without_effect(
        "lazyfree-lazy-expire",
        Form::YesNo,
        "no",
        ALWAYS_FREED_LAZILY,
        "Whether values which have expired are freed in the background.",
    ),
    Parameter::without_effect(
        "lazyfree-lazy-server-del",
        Form::YesNo,
        "no",
        ALWAYS_FREED_LAZILY,
        "Whether values which a command overwrites are freed in the background.",
    ),
    Parameter {
        name: "lazyfree-lazy-user-del",
        aliases: &[],
        kind: Kind::YesNo(field!(lazyfree_lazy_user_del)),
        default: "no",
        mutable: true,
        about: "Whether DEL frees in the background, as UNLINK does.",
    },
    Parameter {
        name: "import-mode",
        aliases: &[],
        kind: Kind::YesNo(field!(import_mode)),
        default: "no",
        mutable: true,
        about: "Whether this server is being filled from another one, which decides when keys expire: nothing expires or \
                is evicted by itself; see CLIENT IMPORT-SOURCE.",
    },
    Parameter {
        name: "lazyfree-lazy-user-flush",
        aliases: &[],
        kind: Kind::YesNo(field!(lazyfree_lazy_user_flush)),
        default: "no",
        mutable: true,
        about: "Whether FLUSHALL and FLUSHDB free in the background when they say neither SYNC nor ASYNC.",
    },
];
