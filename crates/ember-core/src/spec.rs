//! The specification of a command, from which dispatch, `COMMAND`, arity checks, key checks and documentation are
//! derived.

use bitflags::bitflags;
use ember_protocol::Args;

bitflags! {
    /// Properties of a command, as `COMMAND INFO` lists them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Flags: u32 {
        /// May change the keyspace.
        const WRITE = 1;
        /// Reads keys and changes nothing.
        const READONLY = 1 << 1;
        /// Refused when memory is used up and nothing can be evicted.
        const DENYOOM = 1 << 2;
        /// An operator's command.
        const ADMIN = 1 << 3;
        /// Publish and subscribe.
        const PUBSUB = 1 << 4;
        /// Not allowed in scripts.
        const NOSCRIPT = 1 << 5;
        /// May park its connection.
        const BLOCKING = 1 << 6;
        /// Allowed while data is loaded.
        const LOADING = 1 << 7;
        /// Allowed on a replica with stale data.
        const STALE = 1 << 8;
        /// Not shown to monitors.
        const SKIP_MONITOR = 1 << 9;
        /// Not recorded in the slow log (its arguments are secrets).
        const SKIP_SLOWLOG = 1 << 10;
        /// O(1) or O(log n).
        const FAST = 1 << 11;
        /// Allowed before authentication.
        const NO_AUTH = 1 << 12;
        /// May be refused after `CLIENT PAUSE WRITE` even though it writes no key.
        const MAY_REPLICATE = 1 << 13;
        /// Allowed while a script blocks the server.
        const ALLOW_BUSY = 1 << 14;
        /// Not allowed while a data set is loaded alongside the one being served.
        const NO_ASYNC_LOADING = 1 << 18;
        /// Not allowed in MULTI.
        const NO_MULTI = 1 << 15;
        /// Accepts keys of a slot that is being imported to this cluster node, without a preceding ASKING.
        const ASKING = 1 << 19;
        /// May be called without any key.
        const NO_MANDATORY_KEYS = 1 << 17;
        /// The positions of keys do not follow from the specification.
        const MOVABLEKEYS = 1 << 16;
    }
}

impl Flags {
    /// Returns the names in `COMMAND INFO`, in Redis's order; [`Flags::MAY_REPLICATE`] is not shown.
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
    /// The access of a command to the keys of one key specification, in the terms of Redis 7.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct KeyFlags: u16 {
        /// Reads and writes the value.
        const RW = 1;
        /// Reads the value.
        const RO = 1 << 1;
        /// Overwrites the value without reading it.
        const OW = 1 << 2;
        /// Removes the key.
        const RM = 1 << 3;
        /// Returns, copies or compares the value.
        const ACCESS = 1 << 4;
        /// Changes the value.
        const UPDATE = 1 << 5;
        /// Adds data.
        const INSERT = 1 << 6;
        /// Removes data.
        const DELETE = 1 << 7;
        /// Is not a key, although it is in the position of one.
        const NOT_KEY = 1 << 8;
        /// Does not find all keys.
        const INCOMPLETE = 1 << 9;
        /// The flags depend on other arguments.
        const VARIABLE_FLAGS = 1 << 10;
    }
}

impl KeyFlags {
    /// Returns the names in `COMMAND INFO`, in Redis's order.
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

/// The start of the search for keys among a command's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At the argument with this index; the command's name is argument 0.
    Index(usize),
    /// After a keyword. The search for it begins at `from`; a negative value counts from the end and searches
    /// backwards.
    Keyword {
        /// The keyword, in upper case.
        word: &'static str,
        /// The argument index at which the search begins.
        from: isize,
    },
    /// Not in the specification; [`Spec::keys_of`] finds them.
    Unknown,
}

/// Which arguments, counted from [`Begin`], are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Every `step`-th argument up to `last`.
    Range {
        /// Distance from the first key to the last one; negative counts from the end (-1 is the last argument).
        last: isize,
        /// Distance between two keys.
        step: usize,
        /// 0, or, with `last` -1, the divisor of the number of arguments that are keys: 2 means the first half.
        limit: usize,
    },
    /// A number of keys that an argument gives.
    Counted {
        /// Position of the number of keys, relative to the beginning.
        count_at: usize,
        /// Position of the first key, relative to the beginning.
        first: usize,
        /// Distance between two keys.
        step: usize,
    },
    /// Not in the specification; [`Spec::keys_of`] finds them.
    Unknown,
}

/// Positions of keys among a command's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// Where the search begins.
    pub begin: Begin,
    /// Which arguments are keys.
    pub find: Find,
    /// The access of the command to the keys.
    pub flags: KeyFlags,
    /// Redis's note on this specification, if any.
    pub notes: Option<&'static str>,
}

impl KeySpec {
    /// Returns one key in argument `index`.
    pub const fn one(index: usize, flags: KeyFlags) -> KeySpec {
        KeySpec::range(index, index as isize, flags)
    }

    /// Returns keys from argument `first` to the last one, every `step`-th.
    pub const fn from(first: usize, step: usize, flags: KeyFlags) -> KeySpec {
        let find = Find::Range { last: -1, step, limit: 0 };
        KeySpec { begin: Begin::Index(first), find, flags, notes: None }
    }

    /// Returns keys from argument `first` to argument `last`, which counts from the end if it is negative.
    pub const fn range(first: usize, last: isize, flags: KeyFlags) -> KeySpec {
        let last = if last < 0 { last } else { last - first as isize };
        let find = Find::Range { last, step: 1, limit: 0 };
        KeySpec { begin: Begin::Index(first), find, flags, notes: None }
    }

    /// Returns keys after argument `count_arg`, which gives their number.
    pub const fn counted(count_arg: usize, flags: KeyFlags) -> KeySpec {
        let find = Find::Counted { count_at: 0, first: 1, step: 1 };
        KeySpec { begin: Begin::Index(count_arg), find, flags, notes: None }
    }

    /// Returns one key after `word`, which is searched from argument `from` on.
    pub const fn after(word: &'static str, from: isize, flags: KeyFlags) -> KeySpec {
        let find = Find::Range { last: 0, step: 1, limit: 0 };
        KeySpec { begin: Begin::Keyword { word, from }, find, flags, notes: None }
    }

    /// Returns keys after `word`, up to the last argument; `word` is searched from argument `from` on.
    pub const fn all_after(word: &'static str, from: isize, flags: KeyFlags) -> KeySpec {
        let find = Find::Range { last: -1, step: 1, limit: 0 };
        KeySpec { begin: Begin::Keyword { word, from }, find, flags, notes: None }
    }

    /// Returns the first half of the arguments after `word`, which is searched from argument `from` on.
    pub const fn half_after(word: &'static str, from: isize, flags: KeyFlags) -> KeySpec {
        let find = Find::Range { last: -1, step: 1, limit: 2 };
        KeySpec { begin: Begin::Keyword { word, from }, find, flags, notes: None }
    }

    /// Returns keys that only [`Spec::keys_of`] finds.
    pub const fn unknown(flags: KeyFlags) -> KeySpec {
        KeySpec { begin: Begin::Unknown, find: Find::Unknown, flags, notes: None }
    }

    /// Adds Redis's note.
    pub const fn with_notes(self, notes: &'static str) -> KeySpec {
        KeySpec { notes: Some(notes), ..self }
    }

    /// Returns whether a call has at least one key and, if it gives a number of keys, all of them. Returns true if the
    /// specification does not find the keys, or the keyword before them is missing.
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

    /// Returns the argument at which the search for keys begins, if there is one.
    fn begin_of(&self, args: Args<'_>) -> Option<usize> {
        match self.begin {
            Begin::Index(index) => Some(index),
            Begin::Keyword { word, from } => position_of(args, word, from).map(|at| at + 1),
            Begin::Unknown => None,
        }
    }

    /// Returns the argument indexes of the keys of a call; the name is argument 0. A number of keys in the call is
    /// capped at the end of its arguments.
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

/// Returns the index of `word`, ignoring case, searched from argument `from` on; negative counts from the end,
/// backwards.
fn position_of(args: Args<'_>, word: &str, from: isize) -> Option<usize> {
    let is_word = |&at: &usize| args.at(at).eq_ignore_ascii_case(word.as_bytes());
    if from >= 0 {
        (from as usize..args.len()).find(is_word)
    } else {
        let end = usize::try_from(args.len() as isize + from + 1).unwrap_or(0);
        (1..end.max(1)).rev().find(is_word)
    }
}

/// The documentation's group of a command.
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
    /// Returns the name in `COMMAND DOCS`.
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
            Group::PubSub => "pubsub",
            Group::Transactions => "transactions",
            Group::Scripting => "scripting",
            Group::Connection => "connection",
            Group::Cluster => "cluster",
            Group::Server => "server",
        }
    }

    /// Returns the ACL category of all commands of the group.
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
            Group::PubSub => Some(Category::PUBSUB),
            Group::Transactions => Some(Category::TRANSACTION),
            Group::Scripting => Some(Category::SCRIPTING),
            Group::Connection => Some(Category::CONNECTION),
            Group::Cluster | Group::Server => None,
        }
    }
}

bitflags! {
    /// ACL categories.
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
    }
}

impl Category {
    /// All categories with their names, in Redis's order.
    pub const NAMES: [(Category, &'static str); 22] = [
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
    ];
}

/// Which arguments of a command are channels, for the ACL check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// None.
    None,
    /// The first argument, to publish to.
    Published,
    /// All arguments, to subscribe to.
    Subscribed,
    /// All arguments: patterns of channels to subscribe to.
    SubscribedPatterns,
}

/// Whether a call needs the values of its keys, or only what their entries keep in memory: type, expiry, encoding. The
/// value of a key that the call overwrites is never needed.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// The call needs the values.
    Needed,
    /// The call does not need the values.
    Unneeded,
}

/// The facts about a command.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The name in lower case; for a subcommand, only its own part.
    pub name: &'static str,
    /// The effect of the command, in one sentence.
    pub summary: &'static str,
    /// The first version of Redis (or ember) with the command.
    pub since: &'static str,
    /// Its group.
    pub group: Group,
    /// The cost of a call.
    pub complexity: &'static str,
    /// The number of arguments, including the name (and the container's name); negative: at least that number.
    pub arity: i32,
    /// Its properties.
    pub flags: Flags,
    /// ACL categories beyond those that group and flags imply.
    pub categories: Category,
    /// Whether the command is in the ACL category of its group. SORT is not: it is in the categories of the types it
    /// accepts.
    pub is_in_group_category: bool,
    /// The positions of its keys.
    pub keys: &'static [KeySpec],
    /// Whether calls need the values of their keys.
    pub values: Values,
    /// The positions of names of elements in the value of its only key.
    pub elements: Option<ElementArgs>,
    /// Hints to clients and proxies (`nondeterministic_output`, `request_policy:all_shards`, …).
    pub tips: &'static [&'static str],
    /// The arguments in the notation of Redis's documentation, `key value [NX | XX] [EX seconds]`, with additions that
    /// only `COMMAND DOCS` shows: `name:` before a group, `@since` and `!deprecated_since` after an argument.
    pub syntax: &'static str,
    /// The version that deprecated the command, and its replacement.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// Versions and their changes.
    pub history: &'static [(&'static str, &'static str)],
    /// The access of a call to its keys, for a command whose keys have [`KeyFlags::VARIABLE_FLAGS`], or whose key
    /// specifications do not find them all.
    pub key_flags_of: Option<fn(Args<'_>) -> KeyFlags>,
    /// The argument indexes of all keys of a call, for a command whose key specifications do not find them all.
    pub keys_of: Option<fn(Args<'_>) -> Vec<usize>>,
    /// The number of the database whose key a call overwrites, if the call names one; otherwise it is the selected one.
    pub overwrites_in: Option<fn(Args<'_>) -> Option<usize>>,
    /// Which of its arguments are channels.
    pub channels: Channels,
    /// The argument indexes of the databases that a call names, for a command that can name one besides the selected one.
    pub databases_of: Option<fn(Args<'_>) -> Vec<usize>>,
    /// Whether the argument with this index of a call is a secret that must not be shown to other clients.
    pub is_secret: Option<fn(Args<'_>, usize) -> bool>,
    /// Whether the command runs at once between MULTI and EXEC instead of being queued.
    pub is_immediate: bool,
    /// Whether the reply consists of pairs, which RESP2 sends as a flat array.
    pub replies_pairs: bool,
    /// Whether repeated calls on the same data get the same reply from one server: it made its random choices when
    /// the data were written. Another server with the same data may reply differently.
    pub repeats: bool,
    /// Whether the command is for tools and tests rather than for applications (`syscmd` in `COMMAND DOCS`).
    pub is_system: bool,
    /// Whether the command only contains subcommands; the categories of its group then apply to these instead. Set by
    /// [`Command::container`].
    pub is_container: bool,
    /// A call and its reply as redis-cli prints it; a test runs it on an empty database after `given`.
    pub example: Example,
}

/// Which arguments of a command name fields of a hash or members of a set, for prefetching. If options may precede
/// them, these are only the likely ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementArgs {
    /// The index of the first name.
    first: usize,
    /// Distance to the next name; `usize::MAX` if there is only one.
    step: usize,
}

impl ElementArgs {
    /// Returns only the argument at `index`.
    pub const fn one(index: usize) -> ElementArgs {
        ElementArgs { first: index, step: usize::MAX }
    }

    /// Returns every `step`th argument from `first` on.
    pub const fn each(first: usize, step: usize) -> ElementArgs {
        ElementArgs { first, step }
    }

    /// Returns the element names among the arguments of a call.
    #[inline]
    pub fn names(self, args: Args<'_>) -> impl Iterator<Item = &[u8]> {
        (self.first..args.len()).step_by(self.step).map(move |index| args.at(index))
    }
}

/// A documented call.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Commands to run first.
    pub given: &'static [&'static str],
    /// The call.
    pub call: &'static str,
    /// The reply as redis-cli prints it under RESP2.
    pub reply: &'static str,
}

impl Spec {
    /// Default values for the fields that a command does not set.
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

    /// Returns all ACL categories: the stated ones and those that follow from group and flags.
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

    /// Returns whether a call gives a number of keys that is too large for its arguments, or zero. The handler refuses
    /// such a call, unless it accepts zero keys: then there are no keys to check either.
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

    /// Returns whether the specification allows watching a call: it reads keys, and its reply depends on them alone.
    pub fn is_deterministic_read(&self) -> bool {
        let reads = self.flags.contains(Flags::READONLY) && !self.is_container;
        let has_keys = self.keys.iter().any(|keys| !keys.flags.contains(KeyFlags::NOT_KEY));
        reads && has_keys && (self.repeats || !self.tips.contains(&"nondeterministic_output"))
    }

    /// Returns the argument indexes of the keys of a call, with its access to each.
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

    /// Returns first key, last key and step for the legacy fields of `COMMAND INFO`, from the specifications that are
    /// plain ranges.
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
    /// The facts.
    pub spec: Spec,
    /// The handler.
    pub run: H,
    /// The commands it contains (`OBJECT ENCODING`); the handler of a container is not used for them.
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
