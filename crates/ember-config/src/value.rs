//! Text forms of single values: integers, memory sizes, octal numbers, yes or no, and named choices.
//!
//! The error texts are Redis's, word for word, because clients and tests compare them.

use std::ops::RangeInclusive;

use emberkv_core::events::EventClass;

/// Reads a decimal integer as strictly as Redis: without a `+` sign, leading zeros or white space.
pub(crate) fn parse_integer(text: &str, range: &RangeInclusive<i64>) -> Result<i64, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && (!digits.starts_with('0') || text == "0");
    let number = text.parse::<i64>().ok().filter(|_| plain);
    let number = number.ok_or("argument couldn't be parsed into an integer")?;
    if !range.contains(&number) {
        return Err(between(range.start(), range.end()));
    }
    Ok(number)
}

/// Reads a memory size in bytes: digits and a unit, `b`, `k` (1000), `kb` (1024), `m`, `mb`, `g`, `gb`, in either case.
/// An empty text and an overflow are errors; Redis reads the former as 0 and wraps around at the latter.
pub(crate) fn parse_memory(text: &str, range: &RangeInclusive<u64>) -> Result<u64, String> {
    let unit_at = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(unit_at);
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" => Some(1000),
        "kb" => Some(1 << 10),
        "m" => Some(1_000_000),
        "mb" => Some(1 << 20),
        "g" => Some(1_000_000_000),
        "gb" => Some(1 << 30),
        _ => None,
    };
    let bytes =
        digits.parse::<u64>().ok().zip(unit).and_then(|(count, unit): (u64, u64)| count.checked_mul(unit));
    let bytes = bytes.ok_or("argument must be a memory value")?;
    if !range.contains(&bytes) {
        return Err(between(range.start(), range.end()));
    }
    Ok(bytes)
}

/// Formats a memory size: with a unit (`100mb`) if it is a whole multiple of that unit, otherwise in bytes.
pub(crate) fn format_memory(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")] {
        if bytes != 0 && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}

/// Reads an octal number from 0 to `max`.
pub(crate) fn parse_octal(text: &str, max: u32) -> Result<u32, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { u32::from_str_radix(text, 8).ok() } else { None };
    let number = number.ok_or("argument couldn't be parsed as an octal number")?;
    if number > max {
        return Err(format!("argument must be between 0 and {max:o} inclusive"));
    }
    Ok(number)
}

/// Reads `yes` or `no`.
pub(crate) fn parse_yes_no(text: &str) -> Result<bool, String> {
    match text {
        _ if text.eq_ignore_ascii_case("yes") => Ok(true),
        _ if text.eq_ignore_ascii_case("no") => Ok(false),
        _ => Err("argument must be 'yes' or 'no'".to_owned()),
    }
}

/// Returns the position of `text` in `names`, ignoring case.
pub(crate) fn parse_choice(text: &str, names: &[&str]) -> Result<usize, String> {
    names
        .iter()
        .position(|name| name.eq_ignore_ascii_case(text))
        .ok_or_else(|| format!("argument(s) must be one of the following: {}", names.join(", ")))
}

fn between(min: impl std::fmt::Display, max: impl std::fmt::Display) -> String {
    format!("argument must be between {min} and {max} inclusive")
}

/// A secret, such as a password, which `Debug` does not print.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: &str) -> Secret {
        Secret(text.to_owned())
    }

    /// Returns the secret; empty if there is none.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(if self.0.is_empty() { "Secret(none)" } else { "Secret(…)" })
    }
}

/// Checks that a text has only one line, because it is shown on one line.
pub(super) fn parse_line(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        return Err("argument contains a control character".to_owned());
    }
    Ok(text.to_owned())
}

/// Declares an enum whose variants have names in the configuration. `Default` returns the first variant.
macro_rules! choices {
    ($($(#[$about:meta])* $enum:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $enum { $($(#[$doc])* $variant,)* }

        impl $enum {
            /// All choices, in the order of [`Self::NAMES`].
            pub const ALL: &[$enum] = &[$($enum::$variant,)*];
            /// The names of all choices in the configuration.
            pub const NAMES: &[&str] = &[$($name,)*];
        }

        /// Formats the variant as its name in the configuration.
        impl std::fmt::Display for $enum {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(Self::NAMES[*self as usize])
            }
        }

        impl Default for $enum {
            fn default() -> $enum {
                $enum::ALL[0]
            }
        }
    )*};
}

choices! {
    /// The minimum level of logged messages.
    LogLevel {
        /// All messages.
        Debug = "debug",
        /// Details that are useful to operators.
        Verbose = "verbose",
        /// Messages that are useful in production.
        Notice = "notice",
        /// Messages that require attention.
        Warning = "warning",
        /// No messages.
        Nothing = "nothing",
    }

    /// The format of a log line.
    LogFormat {
        /// The time, the level and the message.
        Legacy = "legacy",
        /// `name=value` pairs.
        Logfmt = "logfmt",
        /// A JSON object.
        Json = "json",
    }

    /// The format of timestamps in the log.
    LogTimestampFormat {
        /// ISO 8601 in UTC, with microseconds.
        Legacy = "legacy",
        /// ISO 8601 in UTC, with milliseconds.
        Iso8601 = "iso8601",
        /// Unix time in milliseconds.
        Milliseconds = "milliseconds",
    }

    /// The treatment of RDB files with an unknown version.
    RdbVersionCheck {
        /// Files with an unknown version are refused.
        Strict = "strict",
        /// Files with an unknown version are read if they contain nothing unknown.
        Relaxed = "relaxed",
    }

    /// The oldest server that must be able to read the written data.
    RdbTarget {
        /// Redis 7.0, or the oldest version that supports all of the data.
        Redis = "redis",
        /// Redis 7.2.
        Redis72 = "redis-7.2",
        /// Redis 7.4 and 8.
        Redis8 = "redis-8",
        /// Valkey 9.
        Valkey9 = "valkey-9",
    }

    /// The clients that may call DEBUG or change protected parameters.
    DebugCommand {
        /// No client is permitted.
        No = "no",
        /// Every client is permitted.
        Yes = "yes",
        /// Clients connected from the same machine.
        Local = "local",
    }

    /// The channels that new users may access.
    PubsubDefault {
        /// All channels.
        AllChannels = "allchannels",
        /// No channels.
        ResetChannels = "resetchannels",
    }

    /// The store that holds the data set.
    Store {
        /// No store. Persistence is configured by other parameters.
        None = "none",
        /// An in-memory store whose keys are unordered.
        Map = "map",
        /// An in-memory store that also orders key names.
        Btree = "btree",
        /// The engine redb, with one file.
        Redb = "redb",
        /// The engine LMDB.
        Lmdb = "lmdb",
        /// The engine fjall.
        Fjall = "fjall",
        /// An alias of redb, for users of the similar bolt.
        Bolt = "bolt",
        /// An alias of redb, for users of the similar bbolt.
        Bbolt = "bbolt",
        /// An alias of fjall, for users of the similar LevelDB.
        Leveldb = "leveldb",
        /// Another alias of fjall.
        Kv = "kv",
    }

    /// When writes to the AOF become durable.
    AppendFsync {
        /// Before the writes are acknowledged.
        Always = "always",
        /// Once per second.
        EverySec = "everysec",
        /// When the operating system writes its buffers, or when the file is closed.
        No = "no",
    }

    /// The mode in which a replica applies the stream of its primary.
    ReplicaApply {
        /// In parallel, on all cores.
        Parallel = "parallel",
        /// On one core, in the order of the primary's stream.
        Serial = "serial",
    }

    /// The form in which clients receive the address of a cluster node.
    EndpointType {
        /// The IP address.
        Ip = "ip",
        /// The host name.
        Hostname = "hostname",
        /// None: clients use the address to which they are connected.
        Unknown = "unknown-endpoint",
    }

    /// Where `sync-replicas` replicas must have stored a write before it is acknowledged.
    SyncLevel {
        /// In the memory of the replicas.
        Memory = "memory",
        /// On the disks of the replicas.
        Disk = "disk",
    }

    /// Whether clients must present a certificate.
    TlsAuthClients {
        /// Certificates are not requested.
        No = "no",
        /// A valid certificate is required.
        Yes = "yes",
        /// A certificate is optional, but must be valid if presented.
        Optional = "optional",
    }

    /// The part of a client's certificate that contains its user name.
    TlsAuthClientsUser {
        /// The common name of the certificate's subject.
        CommonName = "CN",
        /// A URI in the certificate's subject alternative names.
        Uri = "URI",
        /// The certificate does not select a user.
        Off = "off",
    }

    /// Whether and how the server adjusts its OOM score.
    OomScoreAdj {
        /// The score is not adjusted.
        No = "no",
        /// An alias of `relative`.
        Yes = "yes",
        /// The configured value is added to the score that the process had at startup.
        Relative = "relative",
        /// The configured value replaces the score.
        Absolute = "absolute",
    }

    /// The syslog facility under which the server logs.
    SyslogFacility {
        /// User-level programs.
        User = "user",
        /// Local use 0.
        Local0 = "local0",
        /// Local use 1.
        Local1 = "local1",
        /// Local use 2.
        Local2 = "local2",
        /// Local use 3.
        Local3 = "local3",
        /// Local use 4.
        Local4 = "local4",
        /// Local use 5.
        Local5 = "local5",
        /// Local use 6.
        Local6 = "local6",
        /// Local use 7.
        Local7 = "local7",
    }

    /// The supervisor that is notified when the server is ready.
    Supervised {
        /// upstart, notified by a process that stops itself (SIGSTOP).
        Upstart = "upstart",
        /// systemd, notified through its socket.
        Systemd = "systemd",
        /// The supervisor whose environment variable is set.
        Auto = "auto",
        /// No supervisor.
        No = "no",
    }
}

impl DebugCommand {
    /// Whether this setting permits a client; `is_local`: whether the client is on the same machine.
    pub fn allows(self, is_local: bool) -> bool {
        match self {
            DebugCommand::No => false,
            DebugCommand::Yes => true,
            DebugCommand::Local => is_local,
        }
    }
}

impl SyslogFacility {
    /// Returns the facility's number in RFC 3164.
    pub fn number(self) -> u8 {
        match self {
            SyslogFacility::User => 1,
            local => 15 + local as u8,
        }
    }
}

/// The classes of keyspace events that are published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyspaceEvents(pub EventClass);

impl KeyspaceEvents {
    /// The letters of the event classes, in the order in which they are shown.
    const LETTERS: [(char, EventClass); 15] = [
        ('g', EventClass::GENERIC),
        ('$', EventClass::STRING),
        ('l', EventClass::LIST),
        ('s', EventClass::SET),
        ('h', EventClass::HASH),
        ('z', EventClass::SORTED_SET),
        ('x', EventClass::EXPIRED),
        ('e', EventClass::EVICTED),
        ('t', EventClass::STREAM),
        ('d', EventClass::MODULE),
        ('n', EventClass::NEW),
        ('A', EventClass::ALL),
        ('K', EventClass::KEYSPACE),
        ('E', EventClass::KEYEVENT),
        ('m', EventClass::KEY_MISS),
    ];

    /// Reads the letters of event classes.
    pub fn parse(text: &str) -> Result<KeyspaceEvents, String> {
        let mut classes = EventClass::empty();
        for letter in text.chars() {
            let class = Self::LETTERS.iter().find(|(known, _)| *known == letter);
            classes |= class.ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?.1;
        }
        Ok(KeyspaceEvents(classes))
    }

    /// Returns the letters of the enabled classes. `A` replaces the letters of its classes; the class of new keys, if
    /// enabled, is not shown separately then.
    pub fn format(self) -> String {
        let is_all = self.0.contains(EventClass::ALL);
        let parts = EventClass::ALL.union(EventClass::NEW);
        let shown = Self::LETTERS.iter().filter(|(letter, class)| {
            let is_part = parts.contains(*class) && *letter != 'A';
            self.0.contains(*class) && if is_part { !is_all } else { true }
        });
        shown.map(|(letter, _)| letter).collect()
    }

    /// Returns the event classes to collect; none if events are published on neither keyspace nor keyevent channels.
    pub fn wanted(self) -> EventClass {
        if self.0.intersects(EventClass::KEYSPACE | EventClass::KEYEVENT) {
            self.0
        } else {
            EventClass::empty()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_sizes_are_read_as_redis_reads_them() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("17b", 17),
            ("1k", 1000),
            ("1K", 1000),
            ("1kb", 1024),
            ("100Kb", 102_400),
            ("256M", 256_000_000),
            ("256mb", 256 << 20),
            ("1G", 1_000_000_000),
            ("1gb", 1 << 30),
            ("1GB", 1 << 30),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_memory(text, &(0..=u64::MAX)), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "kb",
            "-1",
            "+1",
            "1.5gb",
            "10%",
            "1x",
            " 1",
            "1 ",
            "1 kb",
            "17179869184gb",
            "18446744073709551616",
        ] {
            assert_eq!(
                parse_memory(text, &(0..=u64::MAX)),
                Err("argument must be a memory value".to_owned()),
                "{text}"
            );
        }
        assert_eq!(
            parse_memory("1kb", &(1 << 20..=i64::MAX as u64)),
            Err("argument must be between 1048576 and 9223372036854775807 inclusive".to_owned())
        );
    }

    #[test]
    fn a_formatted_memory_size_reads_back() {
        for (bytes, text) in [
            (0, "0"),
            (1, "1"),
            (1000, "1000"),
            (1024, "1kb"),
            (1 << 20, "1mb"),
            (5 << 30, "5gb"),
            (1_000_000, "1000000"),
        ] {
            assert_eq!(format_memory(bytes), text);
            assert_eq!(parse_memory(text, &(0..=u64::MAX)), Ok(bytes));
        }
    }

    #[test]
    fn integers_are_read_strictly() {
        let range = -1..=3600;
        for (text, number) in [("-1", -1), ("0", 0), ("3600", 3600)] {
            assert_eq!(parse_integer(text, &range), Ok(number));
        }
        for text in ["", "-", "+1", "007", "-0", "1.0", "1k", " 1", "abc", "99999999999999999999"] {
            let unread = Err("argument couldn't be parsed into an integer".to_owned());
            assert_eq!(parse_integer(text, &range), unread, "{text}");
        }
        for text in ["-2", "3601"] {
            let outside = Err("argument must be between -1 and 3600 inclusive".to_owned());
            assert_eq!(parse_integer(text, &range), outside);
        }
    }

    #[test]
    fn octal_numbers_have_octal_digits_and_a_limit() {
        assert_eq!(parse_octal("0", 0o777), Ok(0));
        assert_eq!(parse_octal("0700", 0o777), Ok(0o700));
        for text in ["", "999", "+7", "0o7", "-1"] {
            assert_eq!(
                parse_octal(text, 0o777),
                Err("argument couldn't be parsed as an octal number".to_owned())
            );
        }
        assert_eq!(
            parse_octal("7777", 0o777),
            Err("argument must be between 0 and 777 inclusive".to_owned())
        );
    }

    #[test]
    fn choices_ignore_case_and_name_all_others_when_refused() {
        assert_eq!(parse_choice("Notice", LogLevel::NAMES), Ok(LogLevel::Notice as usize));
        assert_eq!(
            parse_choice("loud", LogLevel::NAMES),
            Err("argument(s) must be one of the following: debug, verbose, notice, warning, nothing"
                .to_owned())
        );
        assert_eq!(emberkv_core::eviction::EvictionPolicy::VolatileTtl.to_string(), "volatile-ttl");
    }

    #[test]
    fn a_secret_is_not_shown_by_debug() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(…)");
    }
}
