//! The sizes up to which values with elements keep their compact encodings.

/// The configured limits, under the names of their parameters. Each worker has a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodingLimits {
    /// The maximum number of fields of a hash in a listpack.
    pub hash_max_listpack_entries: usize,
    /// The maximum size in bytes of a field or a value of a hash in a listpack.
    pub hash_max_listpack_value: usize,
    /// The maximum number of members of a set of integers in an intset.
    pub set_max_intset_entries: usize,
    /// The maximum number of members of a set in a listpack.
    pub set_max_listpack_entries: usize,
    /// The maximum size in bytes of a member of a set in a listpack.
    pub set_max_listpack_value: usize,
    /// The maximum number of members of a sorted set in a listpack.
    pub zset_max_listpack_entries: usize,
    /// The maximum size in bytes of a member of a sorted set in a listpack.
    pub zset_max_listpack_value: usize,
    /// The maximum number of elements of a node of a list; -1 to -5 mean 4, 8, 16, 32 and 64 KiB instead.
    pub list_max_listpack_size: i64,
    /// The number of nodes at each end of a list that are not compressed; 0 disables compression.
    pub list_compress_depth: usize,
    /// The maximum size in bytes of a node of a stream; 0 for no limit.
    pub stream_node_max_bytes: usize,
    /// The maximum number of entries of a node of a stream; 0 for no limit.
    pub stream_node_max_entries: usize,
    /// The maximum size in bytes of a HyperLogLog in its sparse form.
    pub hll_sparse_max_bytes: usize,
}

impl EncodingLimits {
    /// The defaults of the configuration.
    pub const DEFAULT: EncodingLimits = EncodingLimits {
        hash_max_listpack_entries: 512,
        hash_max_listpack_value: 64,
        set_max_intset_entries: 512,
        set_max_listpack_entries: 128,
        set_max_listpack_value: 64,
        zset_max_listpack_entries: 128,
        zset_max_listpack_value: 64,
        list_max_listpack_size: -2,
        list_compress_depth: 0,
        stream_node_max_bytes: 4096,
        stream_node_max_entries: 100,
        hll_sparse_max_bytes: 3000,
    };

    /// Returns limits under which a value is stored in the encoding of this name. The limits of lists and streams do
    /// not change, because they also determine the size of nodes.
    #[must_use]
    pub fn keeping(self, encoding_name: &str) -> EncodingLimits {
        let compact = match encoding_name {
            "listpack" | "listpackex" | "intset" => u32::MAX as usize,
            "hashtable" | "skiplist" => 0,
            _ => return self,
        };
        EncodingLimits {
            hash_max_listpack_entries: compact,
            hash_max_listpack_value: compact,
            // A set of integers that was stored in a listpack is stored in a listpack again.
            set_max_intset_entries: if encoding_name == "intset" { compact } else { 0 },
            set_max_listpack_entries: compact,
            set_max_listpack_value: compact,
            zset_max_listpack_entries: compact,
            zset_max_listpack_value: compact,
            ..self
        }
    }
}
