//! What a command is: the one description from which dispatch, `COMMAND`, arity and key checks and docs derive.

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
        /// Refused when memory is short and nothing can be evicted.
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
        /// Not put into the slow log (its arguments are secrets).
        const SKIP_SLOWLOG = 1 << 10;
        /// O(1) or O(log n).
        const FAST = 1 << 11;
        /// Allowed before authentication.
        const NO_AUTH = 1 << 12;
        /// May be refused after `CLIENT PAUSE WRITE` though it writes no key.
        const MAY_REPLICATE = 1 << 13;
        /// Allowed while a script blocks the server.
        const ALLOW_BUSY = 1 << 14;
        /// Not allowed while data is loaded into another place, beside that which is served.
        const NO_ASYNC_LOADING = 1 << 18;
        /// Not allowed in MULTI.
        const NO_MULTI = 1 << 15;
        /// May have keys of a slot that is on its way to this node of a cluster, without an ASKING before.
        const ASKING = 1 << 19;
        /// May be called without any key.
        const NO_MANDATORY_KEYS = 1 << 17;
        /// The positions of keys do not follow from the specification.
        const MOVABLEKEYS = 1 << 16;
    }
}

impl Flags {
    /// The names in `COMMAND INFO`, in Redis's order; [`Flags::MAY_REPLICATE`] is shown nowhere.
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
    /// What a command does with keys of one key specification, as Redis 7 names it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct KeyFlags: u16 {
        /// Reads and writes the value.
        const RW = 1;
        /// Reads the value.
        const RO = 1 << 1;
        /// Overwrites the value whatever it was.
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
        /// Is no key, though it stands where one might.
        const NOT_KEY = 1 << 8;
        /// Not all keys can be found this way.
        const INCOMPLETE = 1 << 9;
        /// The flags depend on other arguments.
        const VARIABLE_FLAGS = 1 << 10;
    }
}

impl KeyFlags {
    /// The names in `COMMAND INFO`, in Redis's order; [`Flags::MAY_REPLICATE`] is shown nowhere.
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

/// Where the search for keys among a command's arguments begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At the argument with this index; the command's name is argument 0.
    Index(usize),
    /// Behind a word. The search for it begins at `from`; negative counts from the end and searches backwards.
    Keyword {
        /// The word, in upper case.
        word: &'static str,
        /// Where to begin.
        from: isize,
    },
    /// Not in the specification ([`Spec::keys_of`] knows).
    Unknown,
}

/// Which arguments from there on are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Every `step`-th one up to `last`.
    Range {
        /// How far behind the first key the last one stands; negative counts from the end (-1 is the last argument).
        last: isize,
        /// The distance from key to key.
        step: usize,
        /// 0, or with `last` -1 the share of the arguments that are keys: 2 is the first half.
        limit: usize,
    },
    /// As many as an argument says.
    Counted {
        /// Where their number stands, behind the beginning.
        count_at: usize,
        /// Where the first key stands, behind the beginning.
        first: usize,
        /// The distance from key to key.
        step: usize,
    },
    /// Not in the specification ([`Spec::keys_of`] knows).
    Unknown,
}

/// Where keys stand among a command's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// Where the search begins.
    pub begin: Begin,
    /// Which arguments are keys.
    pub find: Find,
    /// What is done with the keys.
    pub flags: KeyFlags,
    /// Redis's remark on this specification, if any.
    pub notes: Option<&'static str>,
}

impl KeySpec {
    /// One key in argument `index`.
    pub const fn one(index: usize, flags: KeyFlags) -> KeySpec {
        KeySpec::range(index, index as isize, flags)
    }

    /// Keys from argument `first` to the last one, every `step`-th.
    pub const fn from(first: usize, step: usize, flags: KeyFlags) -> KeySpec {
        let find = Find::Range { last: -1, step, limit: 0 };
        KeySpec { begin: Begin::Index(first), find, flags, notes: None }
    }

    /// Keys from argument `first` to argument `last`, which counts from the end if it is negative.
    pub const fn range(first: usize, last: isize, flags: KeyFlags) -> KeySpec {
        let last = if last < 0 { last } else { last - first as isize };
        let find = Find::Range { last, step: 1, limit: 0 };
        KeySpec { begin: Begin::Index(first), find, flags, notes: None }
    }

    /// As many keys behind argument `count_arg` as it says.
    pub const fn counted(count_arg: usize, flags: KeyFlags) -> KeySpec {
        let find = Find::Counted { count_at: 0, first: 1, step: 1 };
        KeySpec { begin: Begin::Index(count_arg), find, flags, notes: None }
    }

    /// One key behind `word`, which is searched from argument `from` on.
    pub const fn after(word: &'static str, from: isize, flags: KeyFlags) -> KeySpec {
        let find = Find::Range { last: 0, step: 1, limit: 0 };
        KeySpec { begin: Begin::Keyword { word, from }, find, flags, notes: None }
    }

    /// Keys behind `word`, to the last argument; `word` is searched from argument `from` on.
    pub const fn all_after(word: &'static str, from: isize, flags: KeyFlags) -> KeySpec {
        let find = Find::Range { last: -1, step: 1, limit: 0 };
        KeySpec { begin: Begin::Keyword { word, from }, find, flags, notes: None }
    }

    /// The first half of what stands behind `word`, which is searched from argument `from` on.
    pub const fn half_after(word: &'static str, from: isize, flags: KeyFlags) -> KeySpec {
        let find = Find::Range { last: -1, step: 1, limit: 2 };
        KeySpec { begin: Begin::Keyword { word, from }, find, flags, notes: None }
    }

    /// Keys that only [`Spec::keys_of`] finds.
    pub const fn unknown(flags: KeyFlags) -> KeySpec {
        KeySpec { begin: Begin::Unknown, find: Find::Unknown, flags, notes: None }
    }

    /// With Redis's remark.
    pub const fn with_notes(self, notes: &'static str) -> KeySpec {
        KeySpec { notes: Some(notes), ..self }
    }

    /// Whether a call has the keys that it says it has: one at least, and the last one too. True if the specification cannot
    /// tell, or the word that they stand behind is missing.
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

    /// The argument where the search for keys begins, if there is one.
    fn begin_of(&self, args: Args<'_>) -> Option<usize> {
        match self.begin {
            Begin::Index(index) => Some(index),
            Begin::Keyword { word, from } => position_of(args, word, from).map(|at| at + 1),
            Begin::Unknown => None,
        }
    }

    /// The argument indexes of the keys of a call, the name being argument 0. What the call says of their number is not
    /// believed beyond its end.
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

/// Where `word` stands, in any case, searched from argument `from` on; negative counts from the end, backwards.
fn position_of(args: Args<'_>, word: &str, from: isize) -> Option<usize> {
    let is_word = |&at: &usize| args.at(at).eq_ignore_ascii_case(word.as_bytes());
    if from >= 0 {
        (from as usize..args.len()).find(is_word)
    } else {
        let end = usize::try_from(args.len() as isize + from + 1).unwrap_or(0);
        (1..end.max(1)).rev().find(is_word)
    }
}

/// The group of commands that the documentation puts a command in.
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
    /// The name in `COMMAND DOCS`.
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

    /// The ACL category that all commands of the group are in.
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

/// Which arguments of a command are channels that its caller must be allowed to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// None.
    None,
    /// The first one, to publish to.
    Published,
    /// All, to subscribe to.
    Subscribed,
    /// All, patterns of channels to subscribe to.
    SubscribedPatterns,
}

/// Whether a call needs the values of its keys, as opposed to what entries say of them: type, expiry, encoding. The value of
/// a key that is overwritten is never needed.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// It does.
    Needed,
    /// It does not.
    Unneeded,
}

/// The facts about a command.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The name in lower case; a subcommand's own part of it.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The version of Redis (or ember) that had it first.
    pub since: &'static str,
    /// Its group.
    pub group: Group,
    /// The cost of a call.
    pub complexity: &'static str,
    /// The number of arguments, the name (of the container too) included; negative: at least that number.
    pub arity: i32,
    /// Its properties.
    pub flags: Flags,
    /// ACL categories beyond those that group and flags imply.
    pub categories: Category,
    /// Whether it is in the category of its group; SORT is in those of the types it takes.
    pub is_in_group_category: bool,
    /// Where its keys stand.
    pub keys: &'static [KeySpec],
    /// Whether it needs the values of its keys.
    pub values: Values,
    /// Where it names elements of the value of its one key.
    pub elements: Option<ElementArgs>,
    /// Hints to clients and proxies (`nondeterministic_output`, `request_policy:all_shards`, …).
    pub tips: &'static [&'static str],
    /// The arguments in the notation of Redis's documentation, `key value [NX | XX] [EX seconds]`, with what only `COMMAND
    /// DOCS` shows in between: `name:` in front of a group, `@since` and `!deprecated_since` behind an argument.
    pub syntax: &'static str,
    /// Since which version another command is to be preferred, and which.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// What changed in which version.
    pub history: &'static [(&'static str, &'static str)],
    /// What a call does with its keys, for a command whose keys have [`KeyFlags::VARIABLE_FLAGS`], or whose key
    /// specifications do not find them all.
    pub key_flags_of: Option<fn(Args<'_>) -> KeyFlags>,
    /// The argument indexes of all keys of a call, for a command whose key specifications do not find them all.
    pub keys_of: Option<fn(Args<'_>) -> Vec<usize>>,
    /// The number of the database of the key that a call overwrites, where the call says so; else it is the selected one.
    pub overwrites_in: Option<fn(Args<'_>) -> Option<usize>>,
    /// Which of its arguments are channels.
    pub channels: Channels,
    /// The argument indexes of the databases that a call names, for a command that can name one besides the selected one.
    pub databases_of: Option<fn(Args<'_>) -> Vec<usize>>,
    /// Whether the argument with this index of a call is a secret, which only its caller may see.
    pub is_secret: Option<fn(Args<'_>, usize) -> bool>,
    /// Whether it is run at once between MULTI and EXEC instead of being queued.
    pub is_immediate: bool,
    /// Whether its reply is pairs, which stand one behind the other in RESP2.
    pub replies_pairs: bool,
    /// What chance decides in its reply was decided when the data were written: asked again of the same data, a server
    /// replies the same, though another one with these data may not.
    pub repeats: bool,
    /// Whether it is for tools and tests, not for those who use the data (`syscmd` in `COMMAND DOCS`).
    pub is_system: bool,
    /// Whether it does nothing but hold subcommands; the categories of its group are theirs then, not its own. Set by
    /// [`Command::container`].
    pub is_container: bool,
    /// A call and its reply as redis-cli prints it, run as a test on an empty database after `given`.
    pub example: Example,
}

/// Which arguments of a command name fields of a hash or members of a set, for fetching them ahead. Where options may come
/// before them these are only the likely ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementArgs {
    /// The index of the first.
    first: usize,
    /// How far the next one is behind it; `usize::MAX` if there is only one.
    step: usize,
}

impl ElementArgs {
    /// The argument at `index` alone.
    pub const fn one(index: usize) -> ElementArgs {
        ElementArgs { first: index, step: usize::MAX }
    }

    /// Every `step`th argument from `first` on.
    pub const fn each(first: usize, step: usize) -> ElementArgs {
        ElementArgs { first, step }
    }

    /// The names among the arguments of a call.
    #[inline]
    pub fn names(self, args: Args<'_>) -> impl Iterator<Item = &[u8]> {
        (self.first..args.len()).step_by(self.step).map(move |index| args.at(index))
    }
}

/// A documented call.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Commands run before.
    pub given: &'static [&'static str],
    /// The call.
    pub call: &'static str,
    /// The reply as redis-cli prints it under RESP2.
    pub reply: &'static str,
}

impl Spec {
    /// A specification to take the unsaid fields from.
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

    /// Whether a call with `argc` arguments, the name included, has the right number of them.
    #[inline]
    pub fn accepts(&self, argc: usize) -> bool {
        if self.arity >= 0 { argc == self.arity as usize } else { argc >= self.arity.unsigned_abs() as usize }
    }

    /// Whether argument `index` of a call must not be shown, in the slow log or to monitors.
    pub fn has_secret_at(&self, args: Args<'_>, index: usize) -> bool {
        self.is_secret.is_some_and(|is_secret| is_secret(args, index))
    }

    /// All ACL categories: those stated and those that follow from group and flags.
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

    /// Whether a call counts its keys and has fewer, or counts none. Its handler refuses it, unless none is a number of keys
    /// that it takes: then there is none to look at either.
    pub fn miscounts_keys(&self, args: Args<'_>) -> bool {
        let is_counted = |keys: &&KeySpec| matches!(keys.find, Find::Counted { .. });
        self.keys.iter().filter(is_counted).any(|keys| !keys.are_given(args))
    }

    /// The argument indexes of the keys of a call.
    pub fn key_positions<'a>(&'a self, args: Args<'a>) -> impl Iterator<Item = usize> + use<'a> {
        let told = self.keys_of.map(|keys_of| keys_of(args));
        let specs = if told.is_some() { &[] } else { self.keys };
        told.into_iter().flatten().chain(specs.iter().flat_map(move |keys| keys.positions(args)))
    }

    /// The argument indexes of the keys of a call whose values it needs.
    pub fn value_positions<'a>(&'a self, args: Args<'a>) -> impl Iterator<Item = usize> + use<'a> {
        let needs = matches!(self.values, Values::Needed);
        let positions = needs.then(|| self.keys_with_flags(args)).into_iter().flatten();
        positions.filter(|(_, flags)| !flags.contains(KeyFlags::OW)).map(|(at, _)| at)
    }

    /// Whether calls can be watched, as far as the facts tell: it reads keys, and what it answers follows from them alone.
    pub fn is_deterministic_read(&self) -> bool {
        let reads = self.flags.contains(Flags::READONLY) && !self.is_container;
        let has_keys = self.keys.iter().any(|keys| !keys.flags.contains(KeyFlags::NOT_KEY));
        reads && has_keys && (self.repeats || !self.tips.contains(&"nondeterministic_output"))
    }

    /// The argument indexes of the keys of a call, and what is done with each.
    pub fn keys_with_flags<'a>(
        &'a self,
        args: Args<'a>,
    ) -> impl Iterator<Item = (usize, KeyFlags)> + use<'a> {
        let flags_of_call = self.key_flags_of.map(|flags_of| flags_of(args));
        let found = self.keys.iter().map(move |keys| (keys, keys.positions(args)));
        let found: Vec<(usize, KeyFlags)> = found
            .flat_map(|(keys, positions)| positions.map(|at| (at, flags_of_call.unwrap_or(keys.flags))))
            .collect();
        // What no specification finds is what the last unknown one is about.
        let unknown = self.keys.iter().rfind(|keys| keys.begin == Begin::Unknown);
        let unknown = flags_of_call.or(unknown.map(|keys| keys.flags)).unwrap_or(KeyFlags::empty());
        let flags_of = move |at: usize| {
            found.iter().find(|(position, _)| *position == at).map_or(unknown, |(_, flags)| *flags)
        };
        self.key_positions(args).map(move |at| (at, flags_of(at)))
    }

    /// First key, last key and step as the legacy fields of `COMMAND INFO` have them: of the specifications that are plain
    /// ranges.
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

/// A command: its facts and what runs it. `H` is how the layer that has the command runs its commands.
#[derive(Clone, Copy, Debug)]
pub struct Command<H: 'static> {
    /// The facts.
    pub spec: Spec,
    /// The handler.
    pub run: H,
    /// The commands it contains (`OBJECT ENCODING`); a container has no handler of its own to speak of.
    pub subcommands: &'static [Command<H>],
}

impl<H> Command<H> {
    /// A command without subcommands.
    pub const fn new(spec: Spec, run: H) -> Command<H> {
        Command { spec, run, subcommands: &[] }
    }

    /// A command that does nothing but hold `subcommands`.
    pub const fn container(spec: Spec, run: H, subcommands: &'static [Command<H>]) -> Command<H> {
        Command { spec: Spec { is_container: true, ..spec }, run, subcommands }
    }
}
