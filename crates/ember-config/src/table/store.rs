//! The three parameters that select and configure the store of the data set.

use crate::parameter::{Field, Kind, Parameter};
use crate::value::{Store, parse_yes_no};

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "store",
        aliases: &[],
        kind: choice!(store: Store),
        default: "none",
        mutable: false,
        about: "Where the data set is stored. `map`: in memory, with every write in a log; `btree` also keeps the \
                names of keys in order, for KEYS. `redb`, `lmdb` and `fjall`: in files of that engine, with memory as \
                their cache; `bolt` and `bbolt` mean redb, `leveldb` and `kv` fjall. Each implies `appendonly yes`, \
                `save \"\"` and the values of `path` and `fsync`. `none`: those parameters decide.",
    },
    Parameter {
        name: "path",
        aliases: &[],
        kind: Kind::Path(field!(path)),
        default: "",
        mutable: false,
        about: "The directory of a store, created if it is missing, instead of `dir`; by default the name of the store \
                and `.db`. `:memory:` writes nothing to disk.",
    },
    Parameter {
        name: "fsync",
        aliases: &[],
        kind: Kind::Words {
            shape: "yes or no",
            get: |config| if config.fsync { "yes" } else { "no" }.to_owned(),
            set: |config, text| {
                config.fsync = match text {
                    "true" => true,
                    "false" => false,
                    text => parse_yes_no(text)?,
                };
                Ok(())
            },
        },
        default: "yes",
        mutable: false,
        about: "Whether a write to a store is durable before it is acknowledged (`appendfsync always`), or when the \
                operating system decides (`appendfsync no`).",
    },
];
