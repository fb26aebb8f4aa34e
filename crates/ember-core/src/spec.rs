//! Specifications of commands. Dispatch, `COMMAND`, arity checks, key checks and the documentation are derived from
//! them.

use bitflags::bitflags;
use ember_protocol::Args;

bitflags! {
    /// The properties of a command, as `COMMAND INFO` lists them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Flags: u32 {
        /// The command may change the keyspace.
        const WRITE = 1;
        /// The command reads keys and changes nothing.
        const READONLY = 1 << 1;
        /// The command is refused when the memory limit is reached and no key can be evicted.
        const DENYOOM = 1 << 2;
        /// The command is for administrators.
        const ADMIN = 1 << 3;
        /// The command belongs to Pub/Sub.
        const PUBSUB = 1 << 4;
        /// The command is not allowed in scripts.
        const NOSCRIPT = 1 << 5;
        /// The command may block its client.
        const BLOCKING = 1 << 6;
        /// The command is allowed while the data set is being loaded.
        const LOADING = 1 << 7;
        /// The command is allowed on a replica with stale data.
        const STALE = 1 << 8;
        /// The command is not shown to monitors.
        const SKIP_MONITOR = 1 << 9;
        /// The command is not recorded in the slow log, because its arguments are secrets.
        const SKIP_SLOWLOG = 1 << 10;
        /// The command takes O(1) or O(log n) time.
        const FAST = 1 << 11;
        /// The command is allowed before authentication.
        const NO_AUTH = 1 << 12;
        /// The command may be delayed by `CLIENT PAUSE WRITE` even though it writes no key.
        const MAY_REPLICATE = 1 << 13;
        /// The command is allowed while a script blocks the server.
        const ALLOW_BUSY = 1 << 14;
        /// The command is not allowed while a data set is loaded alongside the data set that the server serves.
        const NO_ASYNC_LOADING = 1 << 18;
        /// The command is not allowed in MULTI.
        const NO_MULTI = 1 << 15;
        /// The command accepts keys of a slot that this cluster node is importing, without a preceding ASKING.
        const ASKING = 1 << 19;
        /// The command may be called without any key.
        const NO_MANDATORY_KEYS = 1 << 17;
        /// The key specifications do not find all keys of the command.
        const MOVABLEKEYS = 1 << 16;
    }
}

impl Flags {
    /// Returns the names of the flags in `COMMAND INFO`, in Redis's order; [`Flags::MAY_REPLICATE`] is not shown.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(Flags, &str); 19] = [
            (Flags::WRITE, "write"),
            (Flags::READONLY, "readonly"),
            (Flags::DENYOOM, "denyoom"),
            (Flags::ADMIN, "admin"),
            (Flags::PUBSUB, "pubsub"),
            (Flags::NOSCRIPT, "noscript"),
            (Flags::BLOCKING, "blocking"),
            (Flags::LOADING, "loading"),
            (Flags::STALE, "stale"),
            (Flags::SKIP_MONITOR, "skip_monitor"),
            (Flags::SKIP_SLOWLOG, "skip_slowlog"),
            (Flags::ASKING, "asking"),
            (Flags::FAST, "fast"),
            (Flags::NO_AUTH, "no_auth"),
            (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
            (Flags::ALLOW_BUSY, "allow_busy"),
            (Flags::NO_ASYNC_LOADING, "no_async_loading"),
            (Flags::NO_MULTI, "no_multi"),
            (Flags::MOVABLEKEYS, "movablekeys"),
        ];
        NAMES.into_iter().filter(move |&(flag, _)| self.contains(flag)).map(|(_, name)| name)
    }
}

bitflags! {
    /// The access of a command to the keys of one key specification, in the categories of Redis 7.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct KeyFlags: u16 {
        /// The command reads and writes the value.
        const RW = 1;
        /// The command reads the value.
        const RO = 1 << 1;
        /// The command overwrites the value without reading it.
        const OW = 1 << 2;
        /// The command removes the key.
        const RM = 1 << 3;
        /// The command returns, copies or compares the value.
        const ACCESS = 1 << 4;
        /// The command changes the value.
        const UPDATE = 1 << 5;
        /// The command adds data to the value.
        const INSERT = 1 << 6;
        /// The command removes data from the value.
        const DELETE = 1 << 7;
        /// The argument is not a key, although it is in the position of one.
        const NOT_KEY = 1 << 8;
        /// The specification does not find all keys of the command.
        const INCOMPLETE = 1 << 9;
        /// The flags depend on other arguments of the call.
        const VARIABLE_FLAGS = 1 << 10;
    }
}

impl KeyFlags {
    /// Returns the names of the flags in `COMMAND INFO`, in Redis's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(KeyFlags, &str); 11] = [
            (KeyFlags::RO, "RO"),
            (KeyFlags::RW, "RW"),
            (KeyFlags::OW, "OW"),
            (KeyFlags::RM, "RM"),
            (KeyFlags::ACCESS, "access"),
            (KeyFlags::UPDATE, "update"),
            (KeyFlags::INSERT, "insert"),
            (KeyFlags::DELETE, "delete"),
            (KeyFlags::NOT_KEY, "not_key"),
            (KeyFlags::INCOMPLETE, "incomplete"),
            (KeyFlags::VARIABLE_FLAGS, "variable_flags"),
        ];
        NAMES.into_iter().filter(move |&(flag, _)| self.contains(flag)).map(|(_, name)| name)
    }
}

/// The argument at which the search for keys begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// The search begins at the argument with this index; argument 0 is the command's name.
    Index(usize),
    /// The search begins after a keyword. The keyword is searched from argument `from` on; a negative `from` counts
    /// from the end, and the keyword is searched backwards.
    Keyword {
        /// The keyword, in upper case.
        word: &'static str,
        /// The argument index at which the search begins.
        from: isize,
    },
    /// The specification does not state the beginning; [`Spec::keys_of`] finds the keys.
    Unknown,
}

/// Which arguments, counted from [`Begin`], are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Every `step`-th argument up to `last` is a key.
    Range {
        /// The distance from the first key to the last one; a negative distance counts from the end (-1 is the last
        /// argument).
        last: isize,
        /// The distance between two consecutive keys.
        step: usize,
        /// With `last` -1, the divisor of the number of arguments that are keys: 2 means the first half of them; 0
        /// means all.
        limit: usize,
    },
    /// An argument states the number of keys.
    Counted {
        /// The position of the argument with the number of keys, relative to the beginning.
        count_at: usize,
        /// The position of the first key, relative to the beginning.
        first: usize,
        /// The distance between two consecutive keys.
        step: usize,
    },
    /// The specification does not state the positions; [`Spec::keys_of`] finds the keys.
    Unknown,
}

/// A key specification: the positions of keys among a command's arguments, and the access to these keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// The argument at which the search for keys begins.
    pub begin: Begin,
    /// Which arguments from there on are keys.
    pub find: Find,
    /// The access of the command to the keys.
    pub flags: KeyFlags,
    /// Redis's note on this key specification, if any.
    pub notes: Option<&'static str>,
}

impl KeySpec {
    /// Returns the specification of one key in argument `index`.
    pub const fn one(index: usize, flags: KeyFlags) -> KeySpec {
        KeySpec::range(index, index as isize, flags)
    }

    /// Returns the specification of keys from argument `first` to the last argument, every `step`-th.
    pub const fn from(first: usize, step: usize, flags: KeyFlags) -> KeySpec {
        let find = Find::Range { last: -1, step, limit: 0 };
        KeySpec { begin: Begin::Index(first), find, flags, notes: None }
    }

    /// Returns the specification of keys from argument `first` to argument `last`, which counts from the end if it is
    /// negative.
    pub const fn range(first: usize, last: isize, flags: KeyFlags) -> KeySpec {
        let last = if last < 0 { last } else { last - first as isize };
        let find = Find::Range { last, step: 1, limit: 0 };
        KeySpec { begin: Begin::Index(first), find, flags, notes: None }
    }

    /// Returns the specification of keys after argument `count_arg`, which states their number.
    pub const fn counted(count_arg: usize, flags: KeyFlags) -> KeySpec {
        let find = Find::Counted { count_at: 0, first: 1, step: 1 };
        KeySpec { begin: Begin::Index(count_arg), find, flags, notes: None }
    }

    /// Returns the specification of one key after the keyword `word`, which is searched from argument `from` on.
    pub const fn after(word: &'static str, from: isize, flags: KeyFlags) -> KeySpec {
        let find = Find::Range { last: 0, step: 1, limit: 0 };
        KeySpec { begin: Begin::Keyword { word, from }, find, flags, notes: None }
    }

    /// Returns the specification of keys after the keyword `word`, up to the last argument; `word` is searched from
    /// argument `from` on.
    pub const fn all_after(word: &'static str, from: isize, flags: KeyFlags) -> KeySpec {
        let find = Find::Range { last: -1, step: 1, limit: 0 };
        KeySpec { begin: Begin::Keyword { word, from }, find, flags, notes: None }
    }

    /// Returns the specification of keys in the first half of the arguments after the keyword `word`, which is searched
    /// from argument `from` on.
    pub const fn half_after(word: &'static str, from: isize, flags: KeyFlags) -> KeySpec {
        let find = Find::Range { last: -1, step: 1, limit: 2 };
        KeySpec { begin: Begin::Keyword { word, from }, find, flags, notes: None }
    }

    /// Returns the specification of keys that only [`Spec::keys_of`] finds.
    pub const fn unknown(flags: KeyFlags) -> KeySpec {
        KeySpec { begin: Begin::Unknown, find: Find::Unknown, flags, notes: None }
    }

    /// Adds Redis's note to the specification.
    pub const fn with_notes(self, notes: &'static str) -> KeySpec {
        KeySpec { notes: Some(notes), ..self }
    }

    /// Returns whether a call contains at least one key and, if it states a number of keys, all of them. Also returns
    /// true if the specification does not find the keys, or the call does not contain the keyword that precedes them.
    pub fn are_given(&self, args: Args<'_>) -> bool {
        let Some(begin) = self.begin_of(args) else { return true };
        match self.find {
            Find::Unknown => true,
            Find::Range { .. } => self.positions(args).next().is_some(),
            Find::Counted { count_at, first, step } => {
                let count = args.get(begin + count_at).and_then(ember_protocol::number::parse_i64);
                let steps = count.and_then(|count| usize::try_from(count).ok()?.checked_sub(1));
                let last = steps.and_then(|steps| steps.checked_mul(step)?.checked_add(begin + first));
                last.is_some_and(|last| last < args.len())
            }
        }
    }

    /// Returns the index of the argument at which the search for keys begins; `None` if there is no such argument.
    fn begin_of(&self, args: Args<'_>) -> Option<usize> {
        match self.begin {
            Begin::Index(index) => Some(index),
            Begin::Keyword { word, from } => position_of(args, word, from).map(|at| at + 1),
            Begin::Unknown => None,
        }
    }

    /// Returns the argument indexes of the keys of a call; argument 0 is the command's name. If the call states more
    /// keys than it has arguments, the keys end at the last argument.
    pub fn positions(&self, args: Args<'_>) -> impl Iterator<Item = usize> + use<> {
        let argc = args.len();
        let (first, end, step) = self.begin_of(args).map_or((0, 0, 1), |begin| match self.find {
            Find::Range { last, step, limit } => {
                let end = match last {
                    -1 if limit > 1 => begin + argc.saturating_sub(begin) / limit,
                    ..0 => usize::try_from(argc as isize + last + 1).unwrap_or(0),
                    _ => begin + last as usize + 1,
                };
                (begin, end.min(argc), step)
            }
            Find::Counted { count_at, first, step } => {
                let count = args.get(begin + count_at).and_then(ember_protocol::number::parse_i64);
                let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
                let first = begin + first;
                (first, first.saturating_add(count.saturating_mul(step)).min(argc), step)
            }
            Find::Unknown => (0, 0, 1),
        });
        (first..end.max(first)).step_by(step)
    }
}

/// Returns the index of the keyword `word`, compared without regard to case and searched from argument `from` on; a
/// negative `from` counts from the end, and the search goes backwards.
fn position_of(args: Args<'_>, word: &str, from: isize) -> Option<usize> {
    let is_word = |&at: &usize| args.at(at).eq_ignore_ascii_case(word.as_bytes());
    if from >= 0 {
        (from as usize..args.len()).find(is_word)
    } else {
        let end = usize::try_from(args.len() as isize + from + 1).unwrap_or(0);
        (1..end.max(1)).rev().find(is_word)
    }
}

/// The group of a command in the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Strings.
    String,
    /// Strings as arrays of bits.
    Bitmap,
    /// Any type.
    Generic,
    /// Lists.
    List,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// Hashes.
    Hash,
    /// Streams.
    Stream,
    /// Geographic positions.
    Geo,
    /// HyperLogLogs.
    HyperLogLog,
    /// Vector sets.
    VectorSet,
    /// JSON documents.
    Json,
    /// Bloom filters.
    Bloom,
    /// Cuckoo filters.
    Cuckoo,
    /// Count-min sketches.
    CountMin,
    /// Top-k sketches.
    TopK,
    /// t-digests.
    TDigest,
    /// Publish and subscribe.
    PubSub,
    /// Transactions.
    Transactions,
    /// Scripts and functions.
    Scripting,
    /// The client's connection.
    Connection,
    /// Clusters.
    Cluster,
    /// The server.
    Server,
}

impl Group {
    /// Returns the name of the group in `COMMAND DOCS`.
    pub fn name(self) -> &'static str {
        match self {
            Group::String => "string",
            Group::Bitmap => "bitmap",
            Group::Generic => "generic",
            Group::List => "list",
            Group::Set => "set",
            Group::SortedSet => "sorted-set",
            Group::Hash => "hash",
            Group::Stream => "stream",
            Group::Geo => "geo",
            Group::HyperLogLog => "hyperloglog",
            Group::VectorSet => "vector_set",
            Group::Json => "json",
            Group::Bloom => "bf",
            Group::Cuckoo => "cf",
            Group::CountMin => "cms",
            Group::TopK => "topk",
            Group::TDigest => "tdigest",
            Group::PubSub => "pubsub",
            Group::Transactions => "transactions",
            Group::Scripting => "scripting",
            Group::Connection => "connection",
            Group::Cluster => "cluster",
            Group::Server => "server",
        }
    }

    /// Returns the ACL category that contains all commands of the group, if there is one.
    fn category(self) -> Option<Category> {
        match self {
            Group::String => Some(Category::STRING),
            Group::Bitmap => Some(Category::BITMAP),
            Group::Generic => Some(Category::KEYSPACE),
            Group::List => Some(Category::LIST),
            Group::Set => Some(Category::SET),
            Group::SortedSet => Some(Category::SORTEDSET),
            Group::Hash => Some(Category::HASH),
            Group::Stream => Some(Category::STREAM),
            Group::Geo => Some(Category::GEO),
            Group::HyperLogLog => Some(Category::HYPERLOGLOG),
            Group::VectorSet => Some(Category::VECTORSET),
            Group::Json => Some(Category::JSON),
            Group::Bloom => Some(Category::BLOOM),
            Group::Cuckoo => Some(Category::CUCKOO),
            Group::CountMin => Some(Category::CMS),
            Group::TopK => Some(Category::TOPK),
            Group::TDigest => Some(Category::TDIGEST),
            Group::PubSub => Some(Category::PUBSUB),
            Group::Transactions => Some(Category::TRANSACTION),
            Group::Scripting => Some(Category::SCRIPTING),
            Group::Connection => Some(Category::CONNECTION),
            Group::Cluster | Group::Server => None,
        }
    }
}

bitflags! {
    /// The ACL categories of a command.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Category: u32 {
        /// `@keyspace`
        const KEYSPACE = 1;
        /// `@read`
        const READ = 1 << 1;
        /// `@write`
        const WRITE = 1 << 2;
        /// `@set`
        const SET = 1 << 3;
        /// `@sortedset`
        const SORTEDSET = 1 << 4;
        /// `@list`
        const LIST = 1 << 5;
        /// `@hash`
        const HASH = 1 << 6;
        /// `@string`
        const STRING = 1 << 7;
        /// `@bitmap`
        const BITMAP = 1 << 8;
        /// `@hyperloglog`
        const HYPERLOGLOG = 1 << 9;
        /// `@geo`
        const GEO = 1 << 10;
        /// `@stream`
        const STREAM = 1 << 11;
        /// `@pubsub`
        const PUBSUB = 1 << 12;
        /// `@admin`
        const ADMIN = 1 << 13;
        /// `@fast`
        const FAST = 1 << 14;
        /// `@slow`
        const SLOW = 1 << 15;
        /// `@blocking`
        const BLOCKING = 1 << 16;
        /// `@dangerous`
        const DANGEROUS = 1 << 17;
        /// `@connection`
        const CONNECTION = 1 << 18;
        /// `@transaction`
        const TRANSACTION = 1 << 19;
        /// `@scripting`
        const SCRIPTING = 1 << 20;
        /// `@vectorset`
        const VECTORSET = 1 << 21;
        /// `@json`
        const JSON = 1 << 22;
        /// `@bloom`
        const BLOOM = 1 << 23;
        /// `@cuckoo`
        const CUCKOO = 1 << 24;
        /// `@cms`
        const CMS = 1 << 25;
        /// `@topk`
        const TOPK = 1 << 26;
        /// `@tdigest`
        const TDIGEST = 1 << 27;
    }
}

impl Category {
    /// All categories, each with its name, in Redis's order.
    pub const NAMES: [(Category, &'static str); 28] = [
        (Category::KEYSPACE, "keyspace"),
        (Category::READ, "read"),
        (Category::WRITE, "write"),
        (Category::SET, "set"),
        (Category::SORTEDSET, "sortedset"),
        (Category::LIST, "list"),
        (Category::HASH, "hash"),
        (Category::STRING, "string"),
        (Category::BITMAP, "bitmap"),
        (Category::HYPERLOGLOG, "hyperloglog"),
        (Category::GEO, "geo"),
        (Category::STREAM, "stream"),
        (Category::PUBSUB, "pubsub"),
        (Category::ADMIN, "admin"),
        (Category::FAST, "fast"),
        (Category::SLOW, "slow"),
        (Category::BLOCKING, "blocking"),
        (Category::DANGEROUS, "dangerous"),
        (Category::CONNECTION, "connection"),
        (Category::TRANSACTION, "transaction"),
        (Category::SCRIPTING, "scripting"),
        (Category::VECTORSET, "vectorset"),
        (Category::JSON, "json"),
        (Category::BLOOM, "bloom"),
        (Category::CUCKOO, "cuckoo"),
        (Category::CMS, "cms"),
        (Category::TOPK, "topk"),
        (Category::TDIGEST, "tdigest"),
    ];
}

/// Which arguments of a command are Pub/Sub channels, for the ACL check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// No argument is a channel.
    None,
    /// The first argument is a channel to publish to.
    Published,
    /// All arguments are channels to subscribe to.
    Subscribed,
    /// All arguments are patterns of channels to subscribe to.
    SubscribedPatterns,
}

/// Whether a call needs the values of its keys, or only the metadata that their entries keep in memory: type, expiry,
/// encoding. A call never needs the value of a key that it overwrites.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// The call needs the values of its keys.
    Needed,
    /// The call needs only the metadata of its keys.
    Unneeded,
}

/// The specification of a command.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The name in lower case; for a subcommand, without the name of its container.
    pub name: &'static str,
    /// The description of the command, in one sentence.
    pub summary: &'static str,
    /// The first version of Redis (or ember) that has the command.
    pub since: &'static str,
    /// The group in the documentation.
    pub group: Group,
    /// The time complexity of a call, as text.
    pub complexity: &'static str,
    /// The number of arguments, including the command's name (and that of its container); a negative number is a
    /// minimum.
    pub arity: i32,
    /// The properties in `COMMAND INFO`.
    pub flags: Flags,
    /// The ACL categories beyond those that group and flags imply.
    pub categories: Category,
    /// Whether the ACL category of the group contains the command. SORT is an exception: the categories of the types
    /// that it accepts contain it.
    pub is_in_group_category: bool,
    /// The positions of the keys, and the access to them.
    pub keys: &'static [KeySpec],
    /// Whether calls need the values of their keys.
    pub values: Values,
    /// Which arguments name elements of the value, for a command with one key.
    pub elements: Option<ElementArgs>,
    /// Hints to clients and proxies (`nondeterministic_output`, `request_policy:all_shards`, …).
    pub tips: &'static [&'static str],
    /// The arguments in the notation of Redis's documentation, `key value [NX | XX] [EX seconds]`, with annotations
    /// that only `COMMAND DOCS` shows: `name:` before a group, `@since` and `!deprecated_since` after an argument.
    pub syntax: &'static str,
    /// The version that has deprecated the command, and the command that replaces it.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// The versions that have changed the command, each with the change.
    pub history: &'static [(&'static str, &'static str)],
    /// Returns the access of a call to its keys, for a command whose keys have [`KeyFlags::VARIABLE_FLAGS`], or whose
    /// key specifications do not find all keys.
    pub key_flags_of: Option<fn(Args<'_>) -> KeyFlags>,
    /// Returns the argument indexes of all keys of a call, for a command whose key specifications do not find all keys.
    pub keys_of: Option<fn(Args<'_>) -> Vec<usize>>,
    /// Returns the number of the database whose key a call overwrites, if the call names a database; otherwise this is
    /// the selected database.
    pub overwrites_in: Option<fn(Args<'_>) -> Option<usize>>,
    /// Which arguments are Pub/Sub channels.
    pub channels: Channels,
    /// Returns the argument indexes of the databases that a call names, for a command that can name databases other
    /// than the selected one.
    pub databases_of: Option<fn(Args<'_>) -> Vec<usize>>,
    /// Returns whether an argument of a call, by its index, is a secret that must not be shown to other clients.
    pub is_secret: Option<fn(Args<'_>, usize) -> bool>,
    /// Whether the command runs at once between MULTI and EXEC instead of being queued.
    pub is_immediate: bool,
    /// Whether the reply consists of pairs, which RESP2 sends as a flat array.
    pub replies_pairs: bool,
    /// Whether repeated calls on the same data get the same reply from one server: the server has made its random
    /// choices when the data were written. Another server with the same data may reply differently.
    pub repeats: bool,
    /// Whether the command is for tools and tests rather than for applications (`syscmd` in `COMMAND DOCS`).
    pub is_system: bool,
    /// Whether the command only contains subcommands; the categories of its group then apply to the subcommands
    /// instead. Set by [`Command::container`].
    pub is_container: bool,
    /// An example of a call and its reply as redis-cli prints it; a test runs the example on an empty database.
    pub example: Example,
}

/// Which arguments of a command name fields of a hash or members of a set, for prefetching. If options may precede the
/// names, these are only the likely positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementArgs {
    /// The argument index of the first name.
    first: usize,
    /// The distance to the next name; `usize::MAX` if there is only one name.
    step: usize,
}

impl ElementArgs {
    /// Returns element names consisting of the argument at `index`.
    pub const fn one(index: usize) -> ElementArgs {
        ElementArgs { first: index, step: usize::MAX }
    }

    /// Returns element names consisting of every `step`th argument from `first` on.
    pub const fn each(first: usize, step: usize) -> ElementArgs {
        ElementArgs { first, step }
    }

    /// Returns the element names among the arguments of a call.
    #[inline]
    pub fn names(self, args: Args<'_>) -> impl Iterator<Item = &[u8]> {
        (self.first..args.len()).step_by(self.step).map(move |index| args.at(index))
    }
}

/// An example of a call in the documentation.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The commands that are run before the call.
    pub given: &'static [&'static str],
    /// The command line of the call.
    pub call: &'static str,
    /// The reply as redis-cli prints it under RESP2.
    pub reply: &'static str,
}

impl Spec {
    /// A specification with the default values of all fields that commands need not set.
    pub const DEFAULT: Spec = Spec {
        name: "",
        summary: "",
        since: "",
        group: Group::Generic,
        complexity: "O(1)",
        arity: 1,
        flags: Flags::empty(),
        categories: Category::empty(),
        is_in_group_category: true,
        keys: &[],
        values: Values::Needed,
        elements: None,
        tips: &[],
        syntax: "",
        deprecated: None,
        history: &[],
        key_flags_of: None,
        keys_of: None,
        overwrites_in: None,
        channels: Channels::None,
        databases_of: None,
        is_secret: None,
        is_immediate: false,
        replies_pairs: false,
        repeats: false,
        is_system: false,
        is_container: false,
        example: Example { given: &[], call: "", reply: "" },
    };

    /// Returns whether the arity allows a call with `argc` arguments, including the name.
    #[inline]
    pub fn accepts(&self, argc: usize) -> bool {
        if self.arity >= 0 { argc == self.arity as usize } else { argc >= self.arity.unsigned_abs() as usize }
    }

    /// Returns whether argument `index` of a call must be hidden in the slow log and from monitors.
    pub fn has_secret_at(&self, args: Args<'_>, index: usize) -> bool {
        self.is_secret.is_some_and(|is_secret| is_secret(args, index))
    }

    /// Returns all ACL categories: the explicit ones, and those that follow from group and flags.
    pub fn all_categories(&self) -> Category {
        let mut all = self.categories;
        if let Some(category) = self.group.category()
            && !self.flags.contains(Flags::ADMIN)
            && !self.is_container
            && self.is_in_group_category
        {
            all |= category;
        }
        let implied = [
            (Flags::WRITE, Category::WRITE),
            (Flags::ADMIN, Category::ADMIN | Category::DANGEROUS),
            (Flags::PUBSUB, Category::PUBSUB),
            (Flags::FAST, Category::FAST),
            (Flags::BLOCKING, Category::BLOCKING),
        ];
        for (flag, category) in implied {
            if self.flags.contains(flag) {
                all |= category;
            }
        }
        if self.flags.contains(Flags::READONLY) && !all.contains(Category::SCRIPTING) {
            all |= Category::READ;
        }
        if !all.contains(Category::FAST) {
            all |= Category::SLOW;
        }
        all
    }

    /// Returns whether a call states a number of keys that is zero or exceeds the number of its arguments. The handler
    /// refuses such a call, unless the command accepts zero keys: then there are no keys to check either.
    pub fn miscounts_keys(&self, args: Args<'_>) -> bool {
        let is_counted = |keys: &&KeySpec| matches!(keys.find, Find::Counted { .. });
        self.keys.iter().filter(is_counted).any(|keys| !keys.are_given(args))
    }

    /// Returns the argument indexes of the keys of a call.
    pub fn key_positions<'a>(&'a self, args: Args<'a>) -> impl Iterator<Item = usize> + use<'a> {
        let computed = self.keys_of.map(|keys_of| keys_of(args));
        let specs = if computed.is_some() { &[] } else { self.keys };
        computed.into_iter().flatten().chain(specs.iter().flat_map(move |keys| keys.positions(args)))
    }

    /// Returns the argument indexes of the keys whose values a call needs.
    pub fn value_positions<'a>(&'a self, args: Args<'a>) -> impl Iterator<Item = usize> + use<'a> {
        let needs = matches!(self.values, Values::Needed);
        let positions = needs.then(|| self.keys_with_flags(args)).into_iter().flatten();
        positions.filter(|(_, flags)| !flags.contains(KeyFlags::OW)).map(|(at, _)| at)
    }

    /// Returns whether a live query may watch a call, according to the specification: the call reads keys, and its
    /// reply depends only on these keys.
    pub fn is_deterministic_read(&self) -> bool {
        let reads = self.flags.contains(Flags::READONLY) && !self.is_container;
        let has_keys = self.keys.iter().any(|keys| !keys.flags.contains(KeyFlags::NOT_KEY));
        reads && has_keys && (self.repeats || !self.tips.contains(&"nondeterministic_output"))
    }

    /// Returns the argument indexes of the keys of a call, with the access of the call to each key.
    pub fn keys_with_flags<'a>(
        &'a self,
        args: Args<'a>,
    ) -> impl Iterator<Item = (usize, KeyFlags)> + use<'a> {
        let flags_of_call = self.key_flags_of.map(|flags_of| flags_of(args));
        let found = self.keys.iter().map(move |keys| (keys, keys.positions(args)));
        let found: Vec<(usize, KeyFlags)> = found
            .flat_map(|(keys, positions)| positions.map(|at| (at, flags_of_call.unwrap_or(keys.flags))))
            .collect();
        // The flags of the last unknown specification apply to keys that no specification finds.
        let unknown = self.keys.iter().rfind(|keys| keys.begin == Begin::Unknown);
        let unknown = flags_of_call.or(unknown.map(|keys| keys.flags)).unwrap_or(KeyFlags::empty());
        let flags_of = move |at: usize| {
            found.iter().find(|(position, _)| *position == at).map_or(unknown, |(_, flags)| *flags)
        };
        self.key_positions(args).map(move |at| (at, flags_of(at)))
    }

    /// Returns the first key, the last key and the step for the legacy fields of `COMMAND INFO`, computed from the key
    /// specifications that are plain ranges.
    pub fn legacy_key_range(&self) -> (i64, i64, i64) {
        let ranges = || {
            self.keys.iter().filter_map(|keys| match (keys.begin, keys.find) {
                (Begin::Index(first), Find::Range { last, step, .. }) => {
                    let first = first as i64;
                    let last = last as i64;
                    Some((first, if last < 0 { last } else { first + last }, step as i64))
                }
                _ => None,
            })
        };
        let Some(first) = ranges().map(|(first, ..)| first).min() else { return (0, 0, 0) };
        let last = ranges().map(|(_, last, _)| last);
        let last = if last.clone().any(|last| last < 0) { last.min() } else { last.max() };
        let step = ranges().map(|(.., step)| step).max();
        (first, last.unwrap_or(0), step.unwrap_or(0))
    }
}

/// A command: its specification and its handler. `H` is the type of handlers in the crate that defines the command.
#[derive(Clone, Copy, Debug)]
pub struct Command<H: 'static> {
    /// The specification of the command.
    pub spec: Spec,
    /// The handler of the command.
    pub run: H,
    /// The subcommands (such as `OBJECT ENCODING`), which have their own handlers; the container's handler does not run
    /// them.
    pub subcommands: &'static [Command<H>],
}

impl<H> Command<H> {
    /// Returns a command without subcommands.
    pub const fn new(spec: Spec, run: H) -> Command<H> {
        Command { spec, run, subcommands: &[] }
    }

    /// Returns a command that only contains `subcommands`.
    pub const fn container(spec: Spec, run: H, subcommands: &'static [Command<H>]) -> Command<H> {
        Command { spec: Spec { is_container: true, ..spec }, run, subcommands }
    }
}
