//! What a command is: the one description from which dispatch, `COMMAND`, arity and key checks and docs derive.

use bitflags::bitflags;
use ember_protocol::Args;

bitflags! {
    /// Properties of a command, as `COMMAND INFO` lists them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        /// Not allowed in MULTI.
        const NO_MULTI = 1 << 15;
        /// The positions of keys cannot be told from the specification alone.
        const MOVABLEKEYS = 1 << 16;
    }
}

impl Flags {
    /// The names in `COMMAND INFO`, in Redis's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(Flags, &str); 17] = [
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
            (Flags::FAST, "fast"),
            (Flags::NO_AUTH, "no_auth"),
            (Flags::MAY_REPLICATE, "may_replicate"),
            (Flags::ALLOW_BUSY, "allow_busy"),
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
    /// The names in `COMMAND INFO`, in Redis's order.
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

/// Where keys stand among a command's arguments: from argument `first` on, every `step`-th, up to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// The first key's argument index; the command's name is argument 0.
    pub first: usize,
    /// The last key's argument index; negative counts from the end (-1 is the last argument).
    pub last: isize,
    /// The distance from key to key.
    pub step: usize,
    /// What is done with the keys.
    pub flags: KeyFlags,
    /// Redis's remark on this specification, if any.
    pub notes: Option<&'static str>,
}

impl KeySpec {
    /// One key in argument `index`.
    pub const fn one(index: usize, flags: KeyFlags) -> KeySpec {
        KeySpec { first: index, last: index as isize, step: 1, flags, notes: None }
    }

    /// Keys from argument `first` to the last one, every `step`-th.
    pub const fn from(first: usize, step: usize, flags: KeyFlags) -> KeySpec {
        KeySpec { first, last: -1, step, flags, notes: None }
    }

    /// Keys from argument `first` to the one `last` names.
    pub const fn range(first: usize, last: isize, flags: KeyFlags) -> KeySpec {
        KeySpec { first, last, step: 1, flags, notes: None }
    }

    /// With Redis's remark.
    pub const fn with_notes(self, notes: &'static str) -> KeySpec {
        KeySpec { notes: Some(notes), ..self }
    }

    /// The argument indexes of the keys of a call with `argc` arguments, the name included.
    pub fn positions(&self, argc: usize) -> impl Iterator<Item = usize> + use<> {
        let last = if self.last < 0 { argc as isize + self.last } else { self.last };
        let end = usize::try_from(last + 1).unwrap_or(0).min(argc);
        (self.first..end.max(self.first)).step_by(self.step)
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
    /// The client's connection.
    Connection,
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
            Group::Connection => "connection",
            Group::Server => "server",
        }
    }

    /// The ACL category that all commands of the group are in.
    fn category(self) -> Option<Category> {
        match self {
            Group::String => Some(Category::STRING),
            Group::Bitmap => Some(Category::BITMAP),
            Group::Generic => Some(Category::KEYSPACE),
            Group::Connection => Some(Category::CONNECTION),
            Group::Server => None,
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
    }
}

impl Category {
    /// All categories with their names, in Redis's order.
    pub const NAMES: [(Category, &'static str); 21] = [
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
    ];
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
    /// The number of arguments, the name (of the container too) included; negative: at least so many.
    pub arity: i32,
    /// Its properties.
    pub flags: Flags,
    /// ACL categories beyond those that group and flags imply.
    pub categories: Category,
    /// Where its keys stand.
    pub keys: &'static [KeySpec],
    /// Hints to clients and proxies (`nondeterministic_output`, `request_policy:all_shards`, …).
    pub tips: &'static [&'static str],
    /// The arguments in the notation of Redis's documentation, `key value [NX | XX] [EX seconds]`, with what only `COMMAND
    /// DOCS` tells in between: `name:` in front of a group, `@since` and `!deprecated_since` behind an argument.
    pub syntax: &'static str,
    /// Since which version another command is to be preferred, and which.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// What changed in which version.
    pub history: &'static [(&'static str, &'static str)],
    /// What a call does with its keys, for a command whose keys have [`KeyFlags::VARIABLE_FLAGS`].
    pub key_flags_of: Option<fn(Args<'_>) -> KeyFlags>,
    /// Whether it is for tools and tests, not for those who use the data (`syscmd` in `COMMAND DOCS`).
    pub is_system: bool,
    /// Whether it does nothing but hold subcommands; the categories of its group are theirs then, not its own. Set by
    /// [`Command::container`].
    pub is_container: bool,
    /// A call and its reply as redis-cli prints it, run as a test on an empty database after `given`.
    pub example: Example,
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
        keys: &[],
        tips: &[],
        syntax: "",
        deprecated: None,
        history: &[],
        key_flags_of: None,
        is_system: false,
        is_container: false,
        example: Example { given: &[], call: "", reply: "" },
    };

    /// Whether a call with `argc` arguments, the name included, has the right number of them.
    #[inline]
    pub fn accepts(&self, argc: usize) -> bool {
        if self.arity >= 0 { argc == self.arity as usize } else { argc >= self.arity.unsigned_abs() as usize }
    }

    /// All ACL categories: those stated and those that follow from group and flags.
    pub fn all_categories(&self) -> Category {
        let mut all = self.categories;
        if let Some(category) = self.group.category()
            && !self.flags.contains(Flags::ADMIN)
            && !self.is_container
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

    /// First key, last key and step as the legacy fields of `COMMAND INFO` have them.
    pub fn legacy_key_range(&self) -> (i64, i64, i64) {
        let Some(first) = self.keys.iter().map(|spec| spec.first).min() else { return (0, 0, 0) };
        let last = self.keys.iter().map(|spec| spec.last);
        let last = if last.clone().any(|last| last < 0) { last.min() } else { last.max() };
        let step = self.keys.iter().map(|spec| spec.step).max();
        (first as i64, last.unwrap_or(0) as i64, step.unwrap_or(0) as i64)
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
