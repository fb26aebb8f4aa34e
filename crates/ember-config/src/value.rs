//! The texts of single values: integers, memory sizes, octal numbers, yes or no, and named choices.
//!
//! The error texts are Redis's, word for word: clients and tests compare them.

use std::ops::RangeInclusive;

use emberkv_core::events::EventClass;

/// Reads a decimal integer as strictly as Redis: no sign `+`, no leading zeros, no white space.
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

/// Reads a memory size in bytes: digits and a unit, `b`, `k` (1000), `kb` (1024), `m`, `mb`, `g`, `gb`, in either
/// case. Where Redis reads an empty text as 0 and lets a large one wrap around, both are errors here.
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

/// Formats a memory size for people: `100mb` if the bytes are a whole number of the unit, otherwise plain bytes.
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

/// Returns the position of `text` in `names`.
pub(crate) fn parse_choice(text: &str, names: &[&str]) -> Result<usize, String> {
    names
        .iter()
        .position(|name| name.eq_ignore_ascii_case(text))
        .ok_or_else(|| format!("argument(s) must be one of the following: {}", names.join(", ")))
}

fn between(min: impl std::fmt::Display, max: impl std::fmt::Display) -> String {
    format!("argument must be between {min} and {max} inclusive")
}

/// A password, which `Debug` does not print.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    pub fn new(text: &str) -> Secret {
        Secret(text.to_owned())
    }

    /// Returns the password itself; empty when there is none.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(if self.0.is_empty() { "Secret(none)" } else { "Secret(…)" })
    }
}

/// Reads a text that is shown on one line.
pub(super) fn parse_line(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        return Err("argument contains a control character".to_owned());
    }
    Ok(text.to_owned())
}

/// Declares an enum whose variants have names in the configuration; the first variant is `Default`'s.
macro_rules! choices {
    ($($(#[$about:meta])* $enum:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $enum { $($(#[$doc])* $variant,)* }

        impl $enum {
            /// All choices, in the order of [`Self::NAMES`].
            pub const ALL: &[$enum] = &[$($enum::$variant,)*];
            /// The names in the configuration.
            pub const NAMES: &[&str] = &[$($name,)*];
        }

        /// Shows the name in the configuration.
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
    /// The lowest level of logged messages.
    LogLevel {
        /// Everything.
        Debug = "debug",
        /// Details, without those for developers.
        Verbose = "verbose",
        /// The information needed in production.
        Notice = "notice",
        /// Only messages that need attention.
        Warning = "warning",
        /// No message at all.
        Nothing = "nothing",
    }

    /// The format of a log line.
    LogFormat {
        /// Time, level and message.
        Legacy = "legacy",
        /// Pairs of name and value.
        Logfmt = "logfmt",
        /// An object.
        Json = "json",
    }

    /// The format of times in the log.
    LogTimestampFormat {
        /// ISO 8601 in UTC with microseconds.
        Legacy = "legacy",
        /// The same with milliseconds.
        Iso8601 = "iso8601",
        /// Unix time in milliseconds.
        Milliseconds = "milliseconds",
    }

    /// How RDB files of an unknown version are treated.
    RdbVersionCheck {
        /// They are refused.
        Strict = "strict",
        /// They are read, as long as they contain nothing unknown.
        Relaxed = "relaxed",
    }

    /// The oldest server that must be able to read the written data.
    RdbTarget {
        /// Redis 7.0, or the first version that supports all of the data.
        Redis = "redis",
        /// Redis 7.2.
        Redis72 = "redis-7.2",
        /// Redis 7.4 and 8.
        Redis8 = "redis-8",
        /// Valkey 9.
        Valkey9 = "valkey-9",
    }

    /// The clients that may call DEBUG, or change protected parameters.
    DebugCommand {
        /// No client.
        No = "no",
        /// Every client.
        Yes = "yes",
        /// Clients on this machine.
        Local = "local",
    }

    /// The channels that new users may use.
    PubsubDefault {
        /// All.
        AllChannels = "allchannels",
        /// None.
        ResetChannels = "resetchannels",
    }

    /// The store that holds the data set.
    Store {
        /// No store: other parameters configure persistence.
        None = "none",
        /// Keys without an order.
        Map = "map",
        /// Key names in order, too.
        Btree = "btree",
        /// In a file of redb.
        Redb = "redb",
        /// In files of LMDB.
        Lmdb = "lmdb",
        /// In files of fjall.
        Fjall = "fjall",
        /// An alias of redb, which is similar.
        Bolt = "bolt",
        /// Another alias of redb.
        Bbolt = "bbolt",
        /// An alias of fjall, which is similar.
        Leveldb = "leveldb",
        /// Another alias of fjall.
        Kv = "kv",
    }

    /// When writes to the AOF become durable.
    AppendFsync {
        /// Before they are acknowledged.
        Always = "always",
        /// Each second.
        EverySec = "everysec",
        /// When the operating system decides, or when the file is closed.
        No = "no",
    }

    /// How a replica applies its primary's stream.
    ReplicaApply {
        /// On all cores.
        Parallel = "parallel",
        /// On one core, in the order of the primary.
        Serial = "serial",
    }

    /// Where replicas must have a write before it is acknowledged.
    SyncLevel {
        /// In memory.
        Memory = "memory",
        /// On disk.
        Disk = "disk",
    }

    /// Whether clients must show a certificate.
    TlsAuthClients {
        /// Certificates are not requested.
        No = "no",
        /// A certificate is required.
        Yes = "yes",
        /// A certificate is optional, but must be valid.
        Optional = "optional",
    }

    /// The part of a client's certificate that names its user.
    TlsAuthClientsUser {
        /// The common name of its subject.
        CommonName = "CN",
        /// A URI among the subject's alternative names.
        Uri = "URI",
        /// Nothing.
        Off = "off",
    }

    /// Whether and how the OOM score of the process is adjusted.
    OomScoreAdj {
        /// Not adjusted.
        No = "no",
        /// As `relative`.
        Yes = "yes",
        /// Relative to the value before the change.
        Relative = "relative",
        /// Set to the value.
        Absolute = "absolute",
    }

    /// The syslog facility of the server's messages.
    SyslogFacility {
        /// A user-level program.
        User = "user",
        /// One of eight facilities for local use.
        Local0 = "local0",
        /// Another.
        Local1 = "local1",
        /// Another.
        Local2 = "local2",
        /// Another.
        Local3 = "local3",
        /// Another.
        Local4 = "local4",
        /// Another.
        Local5 = "local5",
        /// Another.
        Local6 = "local6",
        /// Another.
        Local7 = "local7",
    }

    /// The supervisor that is notified when the server is ready.
    Supervised {
        /// upstart, by stopping the process.
        Upstart = "upstart",
        /// systemd, through its notification socket.
        Systemd = "systemd",
        /// The one whose variable is in the environment.
        Auto = "auto",
        /// None.
        No = "no",
    }
}

impl DebugCommand {
    /// Whether this setting allows a client; `is_local` if it is on this machine.
    pub fn allows(self, is_local: bool) -> bool {
        match self {
            DebugCommand::No => false,
            DebugCommand::Yes => true,
            DebugCommand::Local => is_local,
        }
    }
}

impl SyslogFacility {
    /// Returns the number in RFC 3164.
    pub fn number(self) -> u8 {
        match self {
            SyslogFacility::User => 1,
            local => 15 + local as u8,
        }
    }
}

/// The classes of events that are published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyspaceEvents(pub EventClass);

impl KeyspaceEvents {
    /// The letters of single classes, in the order in which they are shown.
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

    /// Reads letters.
    pub fn parse(text: &str) -> Result<KeyspaceEvents, String> {
        let mut classes = EventClass::empty();
        for letter in text.chars() {
            let class = Self::LETTERS.iter().find(|(known, _)| *known == letter);
            classes |= class.ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?.1;
        }
        Ok(KeyspaceEvents(classes))
    }

    /// Returns the letters. `A` stands for its classes, and includes the class of new keys if that is on, too.
    pub fn format(self) -> String {
        let is_all = self.0.contains(EventClass::ALL);
        let parts = EventClass::ALL.union(EventClass::NEW);
        let shown = Self::LETTERS.iter().filter(|(letter, class)| {
            let is_part = parts.contains(*class) && *letter != 'A';
            self.0.contains(*class) && if is_part { !is_all } else { true }
        });
        shown.map(|(letter, _)| letter).collect()
    }

    /// Returns the classes to collect: none, unless events are published on keyspace or keyevent channels.
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
