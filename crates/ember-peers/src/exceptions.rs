//! The table of replies that need not be equal byte by byte, each with its reason.

use std::mem::{Discriminant, discriminant};

use ember_testkit::Value;

type Pairs = Vec<(Value, Value)>;

/// A command with the replies of both servers.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    /// The command in upper case, including its subcommand, if any: `CLIENT|GETNAME`.
    pub(crate) name: &'a str,
    pub(crate) words: &'a [Vec<u8>],
    pub(crate) redis: &'a Value,
    pub(crate) ember: &'a Value,
}

/// The condition that the two replies must fulfil instead of having equal bytes.
enum Rule {
    /// The same elements in any order.
    Unordered,
    /// Integers that differ by at most this number if both are positive, and are equal otherwise. Generated expiries
    /// are ten minutes apart, so half a minute distinguishes them even when a busy machine delays one of the servers.
    Near(i64),
    /// Replies of the same type; errors must be equal.
    SameKind,
    /// Maps that are equal except for these fields, which both maps must contain.
    ExceptFields(&'static [&'static str]),
    /// Replies for which this function returns true.
    Checked(fn(&Case) -> bool),
}

struct Exception {
    /// The command, or `COMMAND|SUBCOMMAND`, in upper case.
    name: &'static str,
    rule: Rule,
    /// The reason why the bytes cannot be equal.
    reason: &'static str,
}

/// The reason for blocking commands in scripts.
const IN_SCRIPTS: &str = "callable from scripts since 7.2";

const TIME_PASSES: &str = "each server reads its own clock at a different time";
const HELP_TEXT: &str =
    "help texts differ; only their form is fixed (lines, the first with the command name)";
const ARGUMENTS_FIRST: &str = "since 7.2 arguments are checked before the key is read; \
     7.0.15 ignores them if the key is missing or has another type";
const SINCE_7_2: &str = "ember follows Redis 7.2 here; Debian has 7.0.15";

const MEMBER_ORDER: &str = "members are in hash table order, and 7.0.15 has no listpacks of members";
const FIELD_ORDER: &str = "fields are in hash table order";
const COMPACT_SINCE_7_2: &str = "since 7.2 small sets of any members are listpacks (hash tables in 7.0.15), and so are small \
     lists (quicklists in 7.0.15)";

const STREAM_INFO: &str = "times differ; ember does not keep entries in a radix tree; 7.2 adds a time \
                           per consumer, and 7.2.7 a lag that stays correct after trimming";

const COLLATED: &str =
    "Redis compares texts up to their first NUL; texts equal up to there have no defined order";

/// Returns the exception for a timeout of more than 2^63 ms.
const fn excessive_timeout(name: &'static str) -> Exception {
    let rule = Rule::Checked(|case| {
        is_error(case.redis, "ERR timeout is negative") && is_error(case.ember, "ERR timeout is out of range")
    });
    Exception { name, rule, reason: "the number overflows in 7.0.15 and is rejected as out of range in 7.2" }
}

const EXCEPTIONS: &[Exception] = &[
    // Replies whose order is unspecified.
    Exception { name: "KEYS", rule: Rule::Unordered, reason: "keys are in hash table order" },
    Exception { name: "SCAN", rule: Rule::Unordered, reason: "keys are in hash table order" },
    Exception {
        name: "CONFIG|GET",
        rule: Rule::Unordered,
        reason: "parameters are in the order of the configuration table",
    },
    Exception {
        name: "COMMAND|LIST",
        rule: Rule::Unordered,
        reason: "commands are in the order of the command table",
    },
    Exception { name: "SMEMBERS", rule: Rule::Unordered, reason: MEMBER_ORDER },
    Exception { name: "SINTER", rule: Rule::Unordered, reason: MEMBER_ORDER },
    Exception { name: "SUNION", rule: Rule::Unordered, reason: MEMBER_ORDER },
    Exception { name: "SDIFF", rule: Rule::Unordered, reason: MEMBER_ORDER },
    Exception { name: "SPOP", rule: Rule::Unordered, reason: MEMBER_ORDER },
    Exception { name: "HGETALL", rule: Rule::Checked(same_fields), reason: FIELD_ORDER },
    Exception { name: "HKEYS", rule: Rule::Unordered, reason: FIELD_ORDER },
    Exception { name: "HVALS", rule: Rule::Unordered, reason: FIELD_ORDER },
    Exception {
        name: "HRANDFIELD",
        rule: Rule::Checked(as_many),
        reason: "the fields are random, but not their number",
    },
    Exception {
        name: "SRANDMEMBER",
        rule: Rule::Checked(as_many),
        reason: "the members are random, but not their number",
    },
    Exception {
        name: "ROLE",
        rule: Rule::Checked(|case| {
            let role = |value: &Value| matches!(value, Value::Array(parts) if parts.len() == 3 && parts[0].text() == "master");
            role(case.redis) && role(case.ember)
        }),
        reason: "in some runs only one of them has a replica",
    },
    Exception {
        name: "RANDOMKEY",
        rule: Rule::SameKind,
        reason: "the key is random, but not whether there is one",
    },
    Exception {
        name: "PFDEBUG",
        rule: Rule::Checked(is_cut_hyperloglog),
        reason: "Redis decodes the byte after a value whose last run is truncated",
    },
    // Replies that depend on the time.
    Exception { name: "TTL", rule: Rule::Near(30), reason: TIME_PASSES },
    Exception { name: "PTTL", rule: Rule::Near(30_000), reason: TIME_PASSES },
    Exception { name: "EXPIRETIME", rule: Rule::Near(30), reason: TIME_PASSES },
    Exception { name: "PEXPIRETIME", rule: Rule::Near(30_000), reason: TIME_PASSES },
    Exception { name: "OBJECT|IDLETIME", rule: Rule::Checked(small_integers_or_equal), reason: TIME_PASSES },
    // Replies about the server instead of its data.
    Exception {
        name: "HELLO",
        rule: Rule::ExceptFields(&["server", "version", "id", "modules"]),
        reason: "server name, version, connection ID and built-in modules differ",
    },
    Exception {
        name: "MODULE|LIST",
        rule: Rule::SameKind,
        reason: "ember lists the modules whose commands are built in",
    },
    Exception {
        name: "OBJECT|REFCOUNT",
        rule: Rule::SameKind,
        reason: "Redis shares an object per small integer and reports 2147483647 for it; ember shares none",
    },
    Exception { name: "MEMORY|USAGE", rule: Rule::SameKind, reason: "memory use differs between servers" },
    Exception { name: "COMMAND|COUNT", rule: Rule::SameKind, reason: "ember has fewer commands" },
    Exception { name: "CLIENT|HELP", rule: Rule::Checked(help), reason: HELP_TEXT },
    Exception { name: "OBJECT|HELP", rule: Rule::Checked(help), reason: HELP_TEXT },
    Exception { name: "COMMAND|HELP", rule: Rule::Checked(help), reason: HELP_TEXT },
    Exception {
        name: "CONFIG|SET",
        rule: Rule::Checked(lists_one_more_policy),
        reason: "the error lists the values of a parameter, and ember has one more eviction policy",
    },
    Exception { name: "CONFIG|HELP", rule: Rule::Checked(help), reason: HELP_TEXT },
    Exception { name: "SLOWLOG|HELP", rule: Rule::Checked(help), reason: HELP_TEXT },
    Exception { name: "LATENCY|HELP", rule: Rule::Checked(help), reason: HELP_TEXT },
    Exception { name: "MEMORY|HELP", rule: Rule::Checked(help), reason: HELP_TEXT },
    Exception { name: "MODULE|HELP", rule: Rule::Checked(help), reason: HELP_TEXT },
    Exception { name: "DEBUG|HELP", rule: Rule::Checked(help), reason: HELP_TEXT },
    Exception { name: "XGROUP|HELP", rule: Rule::Checked(help), reason: HELP_TEXT },
    Exception { name: "XINFO|HELP", rule: Rule::Checked(help), reason: HELP_TEXT },
    // Replies about streams.
    Exception { name: "XPENDING", rule: Rule::Checked(pending_entries), reason: TIME_PASSES },
    Exception { name: "XINFO|STREAM", rule: Rule::Checked(stream_info), reason: STREAM_INFO },
    Exception { name: "XINFO|GROUPS", rule: Rule::Checked(stream_info), reason: STREAM_INFO },
    Exception { name: "XINFO|CONSUMERS", rule: Rule::Checked(stream_info), reason: STREAM_INFO },
    Exception { name: "XREAD", rule: Rule::Checked(unbalanced_streams), reason: SINCE_7_2 },
    Exception { name: "XREADGROUP", rule: Rule::Checked(unbalanced_streams), reason: SINCE_7_2 },
    Exception { name: "ZSCAN", rule: Rule::Unordered, reason: "members are in hash table order" },
    Exception {
        name: "ZRANDMEMBER",
        rule: Rule::Checked(as_many),
        reason: "the members are random, but not their number",
    },
    Exception { name: "SORT", rule: Rule::Checked(same_up_to_nul), reason: COLLATED },
    Exception { name: "SORT_RO", rule: Rule::Checked(same_up_to_nul), reason: COLLATED },
    // Replies that changed in Redis 7.2.
    Exception { name: "ZRANK", rule: Rule::Checked(rank_with_score), reason: SINCE_7_2 },
    Exception { name: "ZREVRANK", rule: Rule::Checked(rank_with_score), reason: SINCE_7_2 },
    Exception { name: "OBJECT|ENCODING", rule: Rule::Checked(compact_since_7_2), reason: COMPACT_SINCE_7_2 },
    excessive_timeout("BLPOP"),
    excessive_timeout("BRPOP"),
    excessive_timeout("BLMOVE"),
    excessive_timeout("BRPOPLPUSH"),
    excessive_timeout("BLMPOP"),
    excessive_timeout("BZPOPMIN"),
    excessive_timeout("BZPOPMAX"),
    excessive_timeout("BZMPOP"),
    Exception { name: "CLIENT|NO-TOUCH", rule: Rule::Checked(no_touch), reason: SINCE_7_2 },
    Exception { name: "COMMAND|GETKEYS", rule: Rule::Checked(keys_of_one_word), reason: SINCE_7_2 },
    Exception { name: "COMMAND|GETKEYSANDFLAGS", rule: Rule::Checked(keys_of_one_word), reason: SINCE_7_2 },
    Exception { name: "CLIENT|SETINFO", rule: Rule::Checked(setinfo), reason: SINCE_7_2 },
    Exception {
        name: "BITCOUNT",
        rule: Rule::Checked(|case| bad_arguments_of_a_missing_key(case) || start_alone(case)),
        reason: "arguments are checked first, as in Redis 7.2; a start without an end is accepted, as in Valkey",
    },
    Exception {
        name: "BITPOS",
        rule: Rule::Checked(bad_arguments_of_a_missing_key),
        reason: ARGUMENTS_FIRST,
    },
];

/// Whether ember's reply is valid, given redis-server's reply to the same command in the same state. Doubles are
/// compared as numbers: Redis 7.0.15 writes 17 digits, 7.2 only as many as identify the number.
pub(crate) fn replies_agree(case: &Case) -> bool {
    let (redis, ember) = (&with_short_doubles(case.redis), &with_short_doubles(case.ember));
    agree(case) || agree(&Case { redis, ember, ..*case })
}

/// Returns the reply with each double in the format of Redis 7.2.
fn with_short_doubles(value: &Value) -> Value {
    let short = |text: &[u8]| match std::str::from_utf8(text).map(str::parse::<f64>) {
        Ok(Ok(number)) => number.to_string().into_bytes(),
        _ => text.to_vec(),
    };
    let all = |values: &[Value]| values.iter().map(with_short_doubles).collect();
    match value {
        Value::Bulk(text) => Value::Bulk(short(text)),
        Value::Double(text) => Value::Double(short(text)),
        Value::Array(values) => Value::Array(all(values)),
        other => other.clone(),
    }
}

fn agree(case: &Case) -> bool {
    if case.redis == case.ember {
        return true;
    }
    EXCEPTIONS.iter().filter(|exception| exception.name == case.name).any(|exception| match exception.rule {
        Rule::Unordered => {
            discriminant(case.redis) == discriminant(case.ember) && sorted(case.redis) == sorted(case.ember)
        }
        Rule::Near(distance) => match (case.redis.integer(), case.ember.integer()) {
            (Some(redis), Some(ember)) => redis > 0 && ember > 0 && redis.abs_diff(ember) <= distance as u64,
            _ => false,
        },
        Rule::SameKind => !case.redis.is_error() && discriminant(case.redis) == discriminant(case.ember),
        Rule::ExceptFields(fields) => without(case.redis, fields)
            .is_some_and(|redis| without(case.ember, fields).is_some_and(|ember| redis == ember)),
        Rule::Checked(check) => check(case),
    })
}

/// Whether the case is PFDEBUG DECODE of a HyperLogLog that other commands have modified.
fn is_cut_hyperloglog(case: &Case) -> bool {
    case.words[1].eq_ignore_ascii_case(b"decode")
        && matches!(case.redis, Value::Bulk(_))
        && is_error(case.ember, "INVALIDOBJ Corrupted HLL object detected")
}

/// Returns the table's reasons for a command, for the report of a difference it does not cover.
pub(crate) fn allowances(name: &str) -> Vec<&'static str> {
    EXCEPTIONS.iter().filter(|exception| exception.name == name).map(|exception| exception.reason).collect()
}

/// Sorts the elements of every array, and the pairs of every map, in a reply.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(elements) | Value::Set(elements) => {
            let mut elements: Vec<Value> = elements.iter().map(sorted).collect();
            elements.sort();
            Value::Array(elements)
        }
        Value::Map(pairs) => {
            let mut pairs = pairs.clone();
            pairs.sort();
            Value::Map(pairs)
        }
        other => other.clone(),
    }
}

/// Returns the pairs of a map (with its type) without some fields, all of which must exist.
fn without(value: &Value, fields: &[&str]) -> Option<(Discriminant<Value>, Pairs)> {
    let mut pairs = value.pairs()?;
    for field in fields {
        let index = pairs.iter().position(|(name, _)| name.bytes() == Some(field.as_bytes()))?;
        pairs.remove(index);
    }
    Some((discriminant(value), pairs))
}

/// Whether both replies have the same type and, if they are aggregates, the same number of elements.
fn as_many(case: &Case) -> bool {
    let count = |value: &Value| value.elements().map(<[Value]>::len);
    !case.redis.is_error()
        && discriminant(case.redis) == discriminant(case.ember)
        && count(case.redis) == count(case.ember)
}

/// Whether both replies have the same fields with the same values, as a map or as the elements of an array.
fn same_fields(case: &Case) -> bool {
    let fields = |value: &Value| comparable_contents("hash", &sorted_maps(value));
    discriminant(case.redis) == discriminant(case.ember) && fields(case.redis) == fields(case.ember)
}

/// Sorts the pairs of a map; returns any other reply unchanged.
fn sorted_maps(value: &Value) -> Value {
    if matches!(value, Value::Map(_)) { sorted(value) } else { value.clone() }
}

/// Whether replies to `SORT … ALPHA` differ only in the order of elements that are equal up to a NUL.
fn same_up_to_nul(case: &Case) -> bool {
    let has = |option: &[u8]| case.words.iter().any(|word| word.eq_ignore_ascii_case(option));
    let (Some(redis), Some(ember)) = (case.redis.elements(), case.ember.elements()) else { return false };
    let patterns = get_patterns(case.words);
    let shown = match patterns.iter().position(|pattern| *pattern == b"#") {
        None if patterns.is_empty() => Some(0),
        shown => shown,
    };
    let width = patterns.len().max(1);
    // If the rows of the reply do not contain the element, only the set of rows can be compared.
    let text = |row: &[Value]| {
        shown.map(|shown| {
            row[shown].bytes().map(|text| text.split(|byte| *byte == 0).next().map(<[u8]>::to_vec))
        })
    };
    let rows = |elements: &[Value]| {
        sorted(&Value::Array(elements.chunks(width).map(|row| Value::Array(row.to_vec())).collect()))
    };
    has(b"alpha")
        && redis.len() == ember.len()
        && redis.len().is_multiple_of(width)
        && redis.chunks(width).map(text).eq(ember.chunks(width).map(text))
        && ((has(b"limit") && shown.is_some()) || rows(redis) == rows(ember))
}

/// Returns the patterns after the GETs of a SORT.
fn get_patterns(words: &[Vec<u8>]) -> Vec<&[u8]> {
    let mut patterns = Vec::new();
    let mut at = 2;
    while at < words.len() {
        let word = words[at].to_ascii_lowercase();
        match (&word[..], words.get(at + 1)) {
            (b"get", Some(pattern)) => {
                patterns.push(&pattern[..]);
                at += 2;
            }
            (b"by" | b"store", _) => at += 2,
            (b"limit", _) => at += 3,
            _ => at += 1,
        }
    }
    patterns
}

fn compact_since_7_2(case: &Case) -> bool {
    let encodings = (case.redis.bytes(), case.ember.bytes());
    encodings == (Some(b"hashtable"), Some(b"listpack"))
        || encodings == (Some(b"quicklist"), Some(b"listpack"))
}

/// Returns the name of an encoding of a type, named as by `TYPE`, such that the results of both servers are comparable;
/// see [`COMPACT_SINCE_7_2`].
pub(crate) fn comparable_encoding<'a>(kind: &str, encoding: &'a str) -> &'a str {
    match (kind, encoding) {
        ("set", "\"listpack\"") => "\"hashtable\"",
        ("list", "\"listpack\"") => "\"quicklist\"",
        _ => encoding,
    }
}

/// Whether the replies are equal, except for the eviction policy that Redis does not have.
fn lists_one_more_policy(case: &Case) -> bool {
    case.ember == case.redis
        || case.ember.is_error() && case.ember.text().replace(", allkeys-ghosts", "") == case.redis.text()
}

/// Returns the contents of a key of a type, named as by `TYPE`, in a form that is comparable between servers: members
/// and fields sorted.
pub(crate) fn comparable_contents(kind: &str, contents: &Value) -> Value {
    match (kind, contents.elements()) {
        ("set", Some(_)) => sorted(contents),
        ("zset", Some(_)) => with_short_doubles(contents),
        ("hash", Some(elements)) => {
            let pairs = elements.chunks(2).map(|pair| Value::Array(pair.to_vec())).collect();
            sorted(&Value::Array(pairs))
        }
        _ => contents.clone(),
    }
}

fn help(case: &Case) -> bool {
    let Some(lines) = case.ember.elements() else { return false };
    let first = lines.first().map(Value::text).unwrap_or_default();
    let container = case.name.split('|').next().unwrap_or_default();
    lines.len() >= 3
        && first.starts_with(container)
        && lines.iter().all(|line| matches!(line, Value::Simple(_)))
}

fn small_integers_or_equal(case: &Case) -> bool {
    let small = |value: &Value| value.integer().is_some_and(|seconds| (0..600).contains(&seconds));
    small(case.redis) && small(case.ember)
}

/// Numbers from this one on are Unix times in ms that depend on the clock.
const NOW_MIN_MS: i64 = 1_500_000_000_000;

/// Fields of XINFO replies that may differ.
const STREAM_INFO_FIELDS: [&str; 7] =
    ["radix-tree-nodes", "entries-read", "lag", "idle", "inactive", "seen-time", "active-time"];

fn stream_info(case: &Case) -> bool {
    without_stream_fields(case.redis) == without_stream_fields(case.ember)
}

/// Returns the reply without [`STREAM_INFO_FIELDS`], and with the same number for all times from [`NOW_MIN_MS`] on.
fn without_stream_fields(value: &Value) -> Value {
    let is_field =
        |name: &Value| STREAM_INFO_FIELDS.iter().any(|field| name.bytes() == Some(field.as_bytes()));
    match value {
        Value::Integer(number) => Value::Integer((*number).min(NOW_MIN_MS)),
        Value::Map(pairs) => {
            let kept = pairs.iter().filter(|(name, _)| !is_field(name));
            Value::Map(kept.map(|(name, value)| (name.clone(), without_stream_fields(value))).collect())
        }
        Value::Array(elements) => {
            let mut kept = Vec::new();
            let mut elements = elements.iter();
            while let Some(element) = elements.next() {
                if is_field(element) {
                    elements.next();
                } else {
                    kept.push(without_stream_fields(element));
                }
            }
            Value::Array(kept)
        }
        other => other.clone(),
    }
}

/// Whether both replies contain the same pending entries, with similar idle times.
fn pending_entries(case: &Case) -> bool {
    let (Some(redis), Some(ember)) = (case.redis.elements(), case.ember.elements()) else { return false };
    redis.len() == ember.len()
        && redis.iter().zip(ember).all(|(redis, ember)| match (redis.elements(), ember.elements()) {
            (
                Some([id, consumer, idle, count]),
                Some([ember_id, ember_consumer, ember_idle, ember_count]),
            ) => {
                let (Some(idle), Some(ember_idle)) = (idle.integer(), ember_idle.integer()) else {
                    return false;
                };
                [id, consumer, count] == [ember_id, ember_consumer, ember_count]
                    && idle.abs_diff(ember_idle) < 30_000
            }
            _ => redis == ember,
        })
}

/// Whether both replies are errors about keys without IDs, whose text since 7.2 names the command and the ID.
fn unbalanced_streams(case: &Case) -> bool {
    if is_error(case.redis, "ERR Invalid stream ID specified as stream command argument")
        && case.words.iter().any(|word| word == b"+")
    {
        // The ID `+` means the last entry of a stream, as in Redis 7.4; it is invalid for a group.
        let is_of_group = case.words[0].eq_ignore_ascii_case(b"xreadgroup");
        return is_of_group
            == is_error_of(case.ember, "ERR The + ID is meaningless in the context of XREADGROUP");
    }
    let is_unbalanced =
        |value: &Value| matches!(value, Value::Error(text) if text.starts_with(b"ERR Unbalanced "));
    is_unbalanced(case.redis) && is_unbalanced(case.ember)
}

/// Whether a reply is an error whose text begins with `beginning`.
fn is_error_of(value: &Value, beginning: &str) -> bool {
    matches!(value, Value::Error(error) if error.starts_with(beginning.as_bytes()))
}

fn is_error(value: &Value, text: &str) -> bool {
    matches!(value, Value::Error(error) if error == text.as_bytes())
}

/// Whether ember's reply to `ZRANK key member WITHSCORE` is valid; 7.0.15 reports one argument too many.
fn rank_with_score(case: &Case) -> bool {
    let has_more = is_error(
        case.redis,
        &format!("ERR wrong number of arguments for '{}' command", case.name.to_ascii_lowercase()),
    );
    let is_answer = match case.words {
        [_, _, _, word] if word.eq_ignore_ascii_case(b"withscore") => {
            *case.ember == Value::Null
                || case.ember.elements().is_some_and(|elements| elements.len() == 2)
                || is_error(case.ember, "WRONGTYPE Operation against a key holding the wrong kind of value")
        }
        [_, _, _, _] => is_error(case.ember, "ERR syntax error"),
        _ => false,
    };
    has_more && is_answer
}

/// Whether ember's reply to `CLIENT NO-TOUCH ON|OFF` is valid.
fn no_touch(case: &Case) -> bool {
    match case.words {
        [_, _, switch] if switch.eq_ignore_ascii_case(b"on") || switch.eq_ignore_ascii_case(b"off") => {
            *case.ember == Value::ok()
        }
        [_, _, _] => is_error(case.ember, "ERR syntax error"),
        _ => is_error(case.ember, "ERR wrong number of arguments for 'client|no-touch' command"),
    }
}

/// Whether ember's reply to `COMMAND GETKEYS name` is valid; 7.0.15 reports one argument too few. A call without
/// arguments has no keys.
fn keys_of_one_word(case: &Case) -> bool {
    case.words.len() == 3
        && is_error_of(case.redis, "ERR wrong number of arguments for 'command|getkeys")
        && (is_error(case.ember, "ERR The command has no key arguments")
            || is_error(case.ember, "ERR Invalid command specified")
            || is_error(case.ember, "ERR Invalid number of arguments specified for command"))
}

/// Whether ember's reply to `CLIENT SETINFO LIB-NAME|LIB-VER text` is valid: `text` must be printable, without blanks.
fn setinfo(case: &Case) -> bool {
    match case.words {
        [_, _, field, text] => {
            let known = field.eq_ignore_ascii_case(b"lib-name") || field.eq_ignore_ascii_case(b"lib-ver");
            if known && text.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
                *case.ember == Value::ok()
            } else {
                case.ember.is_error()
            }
        }
        _ => is_error(case.ember, "ERR wrong number of arguments for 'client|setinfo' command"),
    }
}

fn is_wrong_type(value: &Value) -> bool {
    is_error(value, "WRONGTYPE Operation against a key holding the wrong kind of value")
}

/// Whether ember reports a syntax error or an invalid number, which since 7.2 is checked before whether the key exists.
fn bad_arguments_of_a_missing_key(case: &Case) -> bool {
    let error = is_error(case.ember, "ERR syntax error")
        || is_error(case.ember, "ERR value is not an integer or out of range");
    let key_came_first = matches!(case.redis, Value::Integer(0 | -1)) || is_wrong_type(case.redis);
    error && case.words.len() > 2 && key_came_first
}

/// Whether the case is BITCOUNT with a start and no end.
fn start_alone(case: &Case) -> bool {
    let is_answer = matches!(case.ember, Value::Integer(0..))
        || is_error(case.ember, "ERR value is not an integer or out of range")
        || is_wrong_type(case.ember);
    case.words.len() == 3 && is_answer && is_error(case.redis, "ERR syntax error")
}

/// A fact in COMMAND INFO or COMMAND DOCS in which ember deliberately differs from redis-server 7.0.15.
#[derive(Debug)]
pub struct FactException {
    /// Lower-case command name, including `container|subcommand`; `*` for every command, `*` and a suffix for all
    /// commands whose names end with that suffix.
    pub command: &'static str,
    /// The fact: `exists`, `arity`, `flags`, `keys`, `acl`, `tips`, `specs` of COMMAND INFO; `since`, `group`,
    /// `arguments`, … of COMMAND DOCS.
    pub fact: &'static str,
    /// The reason.
    pub reason: &'static str,
}

impl FactException {
    const fn new(command: &'static str, fact: &'static str, reason: &'static str) -> Self {
        FactException { command, fact, reason }
    }

    /// Whether the exception applies to a command.
    pub fn covers(&self, name: &str) -> bool {
        self.command.strip_prefix('*').map_or(self.command == name, |end| name.ends_with(end))
    }
}

const FIELD_EXPIRY: &str = "ember has field expiry, as Redis 7.4 and 8.0";
const DEPRECATED_IN_7_2: &str = "deprecated in the documentation of Redis 7.2, with the \
                                 version of the replacement, but not in that of 7.0.15";
const NAMED_IN_7_2: &str = "an argument has another name in the documentation of Redis 7.2";
const OPTIONAL_MEMBERS: &str =
    "since 7.2 the documentation marks members as optional, as the commands always did";
const SORT_ARGUMENTS: &str = "patterns are shown without their key specification, and ALPHA by its own name";
const KEYS_LIMIT: &str = "ember's KEYS can stop early: KEYS pattern LIMIT count";

const HISTORY: &str = "ember has a history of keys";
const LIVE_QUERIES: &str = "ember has live queries";

const SKETCHES: &str = "ember has the sketches of Redis Stack 7.4";

const VECTOR_SETS: &str = "ember has vector sets, as Redis 8.0, and VRANGE, as Redis 8.4";

const JSON: &str = "ember has JSON documents, as Redis 8.0";

const VECTOR_INDEXES: &str = "ember has vector indexes in addition to vector sets";

const STORE_OR_STOREDIST: &str = "since 7.2 STORE and STOREDIST are alternatives";

/// Facts about commands that may differ from those of redis-server 7.0.15.
pub const COMMAND_FACT_EXCEPTIONS: &[FactException] = &[
    FactException::new("*", "summary", "prose that differs between servers"),
    FactException::new("*", "complexity", "describes the algorithm of each server"),
    FactException::new("*", "history", "prose"),
    FactException::new("*.watch", "exists", LIVE_QUERIES),
    FactException::new("*.unwatch", "exists", LIVE_QUERIES),
    FactException::new("watch.open", "exists", LIVE_QUERIES),
    FactException::new("watch.list", "exists", LIVE_QUERIES),
    FactException::new("unwatch", "arity", LIVE_QUERIES),
    FactException::new("unwatch", "arguments", LIVE_QUERIES),
    FactException::new("json.arrappend", "exists", JSON),
    FactException::new("json.arrindex", "exists", JSON),
    FactException::new("json.arrinsert", "exists", JSON),
    FactException::new("json.arrlen", "exists", JSON),
    FactException::new("json.arrpop", "exists", JSON),
    FactException::new("json.arrtrim", "exists", JSON),
    FactException::new("json.clear", "exists", JSON),
    FactException::new("json.debug", "exists", JSON),
    FactException::new("json.del", "exists", JSON),
    FactException::new("json.forget", "exists", JSON),
    FactException::new("json.get", "exists", JSON),
    FactException::new("json.merge", "exists", JSON),
    FactException::new("json.mget", "exists", JSON),
    FactException::new("json.mset", "exists", JSON),
    FactException::new("json.numincrby", "exists", JSON),
    FactException::new("json.nummultby", "exists", JSON),
    FactException::new("json.objkeys", "exists", JSON),
    FactException::new("json.objlen", "exists", JSON),
    FactException::new("json.resp", "exists", JSON),
    FactException::new("json.set", "exists", JSON),
    FactException::new("json.strappend", "exists", JSON),
    FactException::new("json.strlen", "exists", JSON),
    FactException::new("json.toggle", "exists", JSON),
    FactException::new("json.type", "exists", JSON),
    FactException::new("bf.add", "exists", SKETCHES),
    FactException::new("bf.card", "exists", SKETCHES),
    FactException::new("bf.debug", "exists", SKETCHES),
    FactException::new("bf.exists", "exists", SKETCHES),
    FactException::new("bf.info", "exists", SKETCHES),
    FactException::new("bf.insert", "exists", SKETCHES),
    FactException::new("bf.loadchunk", "exists", SKETCHES),
    FactException::new("bf.madd", "exists", SKETCHES),
    FactException::new("bf.mexists", "exists", SKETCHES),
    FactException::new("bf.reserve", "exists", SKETCHES),
    FactException::new("bf.scandump", "exists", SKETCHES),
    FactException::new("cf.add", "exists", SKETCHES),
    FactException::new("cf.addnx", "exists", SKETCHES),
    FactException::new("cf.compact", "exists", SKETCHES),
    FactException::new("cf.count", "exists", SKETCHES),
    FactException::new("cf.debug", "exists", SKETCHES),
    FactException::new("cf.del", "exists", SKETCHES),
    FactException::new("cf.exists", "exists", SKETCHES),
    FactException::new("cf.info", "exists", SKETCHES),
    FactException::new("cf.insert", "exists", SKETCHES),
    FactException::new("cf.insertnx", "exists", SKETCHES),
    FactException::new("cf.loadchunk", "exists", SKETCHES),
    FactException::new("cf.mexists", "exists", SKETCHES),
    FactException::new("cf.reserve", "exists", SKETCHES),
    FactException::new("cf.scandump", "exists", SKETCHES),
    FactException::new("cms.incrby", "exists", SKETCHES),
    FactException::new("cms.info", "exists", SKETCHES),
    FactException::new("cms.initbydim", "exists", SKETCHES),
    FactException::new("cms.initbyprob", "exists", SKETCHES),
    FactException::new("cms.merge", "exists", SKETCHES),
    FactException::new("cms.query", "exists", SKETCHES),
    FactException::new("tdigest.add", "exists", SKETCHES),
    FactException::new("tdigest.byrank", "exists", SKETCHES),
    FactException::new("tdigest.byrevrank", "exists", SKETCHES),
    FactException::new("tdigest.cdf", "exists", SKETCHES),
    FactException::new("tdigest.create", "exists", SKETCHES),
    FactException::new("tdigest.info", "exists", SKETCHES),
    FactException::new("tdigest.max", "exists", SKETCHES),
    FactException::new("tdigest.merge", "exists", SKETCHES),
    FactException::new("tdigest.min", "exists", SKETCHES),
    FactException::new("tdigest.quantile", "exists", SKETCHES),
    FactException::new("tdigest.rank", "exists", SKETCHES),
    FactException::new("tdigest.reset", "exists", SKETCHES),
    FactException::new("tdigest.revrank", "exists", SKETCHES),
    FactException::new("tdigest.trimmed_mean", "exists", SKETCHES),
    FactException::new("topk.add", "exists", SKETCHES),
    FactException::new("topk.count", "exists", SKETCHES),
    FactException::new("topk.incrby", "exists", SKETCHES),
    FactException::new("topk.info", "exists", SKETCHES),
    FactException::new("topk.list", "exists", SKETCHES),
    FactException::new("topk.query", "exists", SKETCHES),
    FactException::new("topk.reserve", "exists", SKETCHES),
    FactException::new("vadd", "exists", VECTOR_SETS),
    FactException::new("vcard", "exists", VECTOR_SETS),
    FactException::new("vdim", "exists", VECTOR_SETS),
    FactException::new("vemb", "exists", VECTOR_SETS),
    FactException::new("vgetattr", "exists", VECTOR_SETS),
    FactException::new("vsetattr", "exists", VECTOR_SETS),
    FactException::new("vinfo", "exists", VECTOR_SETS),
    FactException::new("vismember", "exists", VECTOR_SETS),
    FactException::new("vlinks", "exists", VECTOR_SETS),
    FactException::new("vrandmember", "exists", VECTOR_SETS),
    FactException::new("vrange", "exists", VECTOR_SETS),
    FactException::new("vrem", "exists", VECTOR_SETS),
    FactException::new("vsim", "exists", VECTOR_SETS),
    FactException::new("vadd_batch", "exists", VECTOR_INDEXES),
    FactException::new("vget", "exists", VECTOR_INDEXES),
    FactException::new("vector.add", "exists", VECTOR_INDEXES),
    FactException::new("vector.create", "exists", VECTOR_INDEXES),
    FactException::new("vector.del", "exists", VECTOR_INDEXES),
    FactException::new("vector.drop", "exists", VECTOR_INDEXES),
    FactException::new("vector.get", "exists", VECTOR_INDEXES),
    FactException::new("vector.info", "exists", VECTOR_INDEXES),
    FactException::new("vector.list", "exists", VECTOR_INDEXES),
    FactException::new("vector.msearch", "exists", VECTOR_INDEXES),
    FactException::new("vector.reindex", "exists", VECTOR_INDEXES),
    FactException::new("vector.search", "exists", VECTOR_INDEXES),
    FactException::new("vector.update", "exists", VECTOR_INDEXES),
    FactException::new("client|sync-replicas", "exists", "ember has synchronous replication"),
    FactException::new("psync", "arguments", "ember shows FAILOVER, which Redis accepts without showing it"),
    FactException::new("client|no-touch", "exists", SINCE_7_2),
    FactException::new("xackdel", "exists", "ember has XACKDEL, as Redis 8.2"),
    FactException::new("xdelex", "exists", "ember has XDELEX, as Redis 8.2"),
    FactException::new("hexpire", "exists", FIELD_EXPIRY),
    FactException::new("hpexpire", "exists", FIELD_EXPIRY),
    FactException::new("hexpireat", "exists", FIELD_EXPIRY),
    FactException::new("hpexpireat", "exists", FIELD_EXPIRY),
    FactException::new("httl", "exists", FIELD_EXPIRY),
    FactException::new("hpttl", "exists", FIELD_EXPIRY),
    FactException::new("hexpiretime", "exists", FIELD_EXPIRY),
    FactException::new("hpexpiretime", "exists", FIELD_EXPIRY),
    FactException::new("hpersist", "exists", FIELD_EXPIRY),
    FactException::new("hgetdel", "exists", FIELD_EXPIRY),
    FactException::new("hgetex", "exists", FIELD_EXPIRY),
    FactException::new("hsetex", "exists", FIELD_EXPIRY),
    FactException::new("hscan", "arguments", "ember has NOVALUES, as Redis 7.4"),
    FactException::new("client|setinfo", "exists", SINCE_7_2),
    FactException::new("command|getkeys", "arguments", SINCE_7_2),
    FactException::new("command|getkeys", "arity", SINCE_7_2),
    FactException::new("command|getkeysandflags", "arguments", SINCE_7_2),
    FactException::new("command|getkeysandflags", "arity", SINCE_7_2),
    FactException::new(
        "bitop",
        "arguments",
        "since 7.2 the operations are listed, so redis-cli can complete them",
    ),
    FactException::new("blpop", "flags", IN_SCRIPTS),
    FactException::new("brpop", "flags", IN_SCRIPTS),
    FactException::new("brpoplpush", "flags", IN_SCRIPTS),
    FactException::new("blmove", "flags", IN_SCRIPTS),
    FactException::new("blmpop", "flags", IN_SCRIPTS),
    FactException::new("bzpopmin", "flags", IN_SCRIPTS),
    FactException::new("bzpopmax", "flags", IN_SCRIPTS),
    FactException::new("bzmpop", "flags", IN_SCRIPTS),
    FactException::new(
        "set",
        "arguments",
        "ember has IFEQ, as Valkey 8.1, IFNE, IFDEQ and IFDNE, as Redis 8.4, and TIER",
    ),
    FactException::new("delifeq", "exists", "ember has DELIFEQ, as Valkey 9.0"),
    FactException::new("delex", "exists", "ember has DELEX, as Redis 8.4"),
    FactException::new("digest", "exists", "ember has DIGEST, as Redis 8.4"),
    FactException::new("increx", "exists", "ember has INCREX, as Redis 8.8"),
    FactException::new("zscan", "arguments", "ember has NOSCORES, as Valkey 8.0"),
    FactException::new("msetex", "exists", "ember has MSETEX, as Redis 8.4"),
    FactException::new("client|capa", "exists", "ember has CLIENT CAPA, as Valkey 8.0"),
    FactException::new("client|import-source", "exists", "ember has CLIENT IMPORT-SOURCE, as Valkey 8.1"),
    FactException::new("script|show", "exists", "ember has SCRIPT SHOW, as Valkey 8.0"),
    FactException::new("geosearch", "arguments", "ember has BYPOLYGON, as Valkey 9.0"),
    FactException::new("geosearchstore", "arguments", "ember has BYPOLYGON, as Valkey 9.0"),
    FactException::new("commandlog", "exists", "ember has COMMANDLOG, as Valkey 8.1"),
    FactException::new("hotkeys", "exists", "ember has HOTKEYS"),
    FactException::new("tiering", "exists", "ember has tiers"),
    FactException::new("asof", "exists", HISTORY),
    FactException::new("diff", "exists", HISTORY),
    FactException::new("restore.from", "exists", HISTORY),
    FactException::new("history", "exists", HISTORY),
    FactException::new("history.count", "exists", HISTORY),
    FactException::new("history.first", "exists", HISTORY),
    FactException::new("history.last", "exists", HISTORY),
    FactException::new("temporal", "exists", HISTORY),
    FactException::new("xadd", "arguments", "ember has KEEPREF, DELREF and ACKED, as Redis 8.2"),
    FactException::new("xtrim", "arguments", "ember has KEEPREF, DELREF and ACKED, as Redis 8.2"),
    FactException::new("sort", "arguments", SORT_ARGUMENTS),
    FactException::new("sort_ro", "arguments", SORT_ARGUMENTS),
    FactException::new("keys", "arity", KEYS_LIMIT),
    FactException::new("keys", "arguments", KEYS_LIMIT),
    FactException::new("client|kill", "arguments", "ember has MAXAGE, as Redis 7.4"),
    FactException::new("client|list", "arguments", "ember has the filters of Valkey 9"),
    FactException::new("bitcount", "arguments", "the end is optional, as in Valkey 8"),
    FactException::new("getset", "replaced_by", "Redis's text has a stray mark in it: `!GET`"),
    FactException::new("georadius", "arguments", STORE_OR_STOREDIST),
    FactException::new("georadiusbymember", "arguments", STORE_OR_STOREDIST),
    FactException::new("geohash", "arguments", OPTIONAL_MEMBERS),
    FactException::new("pfmerge", "arguments", "since 7.2 the documentation marks the sources as optional"),
    FactException::new("geopos", "arguments", OPTIONAL_MEMBERS),
    FactException::new(
        "xinfo|stream",
        "arguments",
        "since 7.2 FULL is an argument in its block, not the block's token",
    ),
    FactException::new(
        "psubscribe",
        "arguments",
        "since 7.2 the pattern is a separate argument outside any block",
    ),
    FactException::new("migrate", "arguments", NAMED_IN_7_2),
    FactException::new("wait", "flags", IN_SCRIPTS),
    FactException::new("waitaof", "exists", SINCE_7_2),
    FactException::new("cluster|myshardid", "exists", SINCE_7_2),
    FactException::new(
        "cluster|slot-stats",
        "exists",
        "ember counts the keys of slots, as Valkey 8 and Redis 8.2",
    ),
    FactException::new("cluster|meet", "arguments", NAMED_IN_7_2),
    FactException::new("cluster|reset", "arguments", NAMED_IN_7_2),
    FactException::new("cluster|shards", "flags", SINCE_7_2),
    FactException::new("cluster|slots", "flags", SINCE_7_2),
    FactException::new("module|loadex", "arguments", NAMED_IN_7_2),
    FactException::new("zrank", "arity", SINCE_7_2),
    FactException::new("zrank", "arguments", SINCE_7_2),
    FactException::new("zrevrank", "arity", SINCE_7_2),
    FactException::new("zrevrank", "arguments", SINCE_7_2),
    FactException::new("setnx", "doc_flags", DEPRECATED_IN_7_2),
    FactException::new("setnx", "deprecated_since", DEPRECATED_IN_7_2),
    FactException::new("setnx", "replaced_by", DEPRECATED_IN_7_2),
    FactException::new("setex", "doc_flags", DEPRECATED_IN_7_2),
    FactException::new("setex", "deprecated_since", DEPRECATED_IN_7_2),
    FactException::new("setex", "replaced_by", DEPRECATED_IN_7_2),
    FactException::new("psetex", "doc_flags", DEPRECATED_IN_7_2),
    FactException::new("psetex", "deprecated_since", DEPRECATED_IN_7_2),
    FactException::new("psetex", "replaced_by", DEPRECATED_IN_7_2),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn agree(name: &str, line: &str, redis: Value, ember: Value) -> bool {
        let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        replies_agree(&Case { name, words: &words, redis: &redis, ember: &ember })
    }

    fn error(text: &str) -> Value {
        Value::Error(text.as_bytes().to_vec())
    }

    #[test]
    fn only_listed_exceptions_may_differ() {
        assert!(agree("GET", "GET a", Value::Null, Value::Null));
        assert!(!agree("GET", "GET a", Value::Null, Value::from("")));
        assert!(agree("TTL", "TTL a", Value::Integer(100), Value::Integer(99)));
        assert!(!agree("TTL", "TTL a", Value::Integer(-1), Value::Integer(-2)));
        assert!(!agree("TTL", "TTL a", Value::Integer(100), Value::Integer(60)));
        let keys = |names: &[&str]| Value::Array(names.iter().map(|name| Value::from(*name)).collect());
        assert!(agree("KEYS", "KEYS *", keys(&["a", "b"]), keys(&["b", "a"])));
        assert!(!agree("KEYS", "KEYS *", keys(&["a", "b"]), keys(&["b", "b"])));
        assert!(!agree("MGET", "MGET a b", keys(&["a", "b"]), keys(&["b", "a"])));
    }

    #[test]
    fn texts_that_differ_after_a_nul_sort_in_any_order() {
        let texts = |texts: &[&str]| Value::Array(texts.iter().map(|text| Value::from(*text)).collect());
        let (one, other) = (texts(&["a\0x", "a\0y", "b"]), texts(&["a\0y", "a\0x", "b"]));
        assert!(agree("SORT", "SORT k ALPHA", one.clone(), other.clone()));
        assert!(!agree("SORT", "SORT k", one.clone(), other));
        assert!(!agree("SORT", "SORT k ALPHA", one.clone(), texts(&["a\0x", "b", "a\0y"])));
        assert!(!agree("SORT", "SORT k ALPHA", one, texts(&["a\0y", "a\0y", "b"])));
        // Rows of GET results, with the element in the second column.
        let (one, other) = (texts(&["1", "a\0x", "2", "a\0y"]), texts(&["2", "a\0y", "1", "a\0x"]));
        let (mixed, line) = (texts(&["1", "a\0y", "2", "a\0x"]), "SORT k ALPHA GET w_* GET #");
        assert!(agree("SORT", line, one.clone(), other.clone()) && !agree("SORT", line, one.clone(), mixed));
        // If the rows do not contain the element, any order of the same rows is accepted, but no other rows.
        let line = "SORT k ALPHA GET w_* GET v_*";
        let others = texts(&["1", "a\0y", "2", "a\0x"]);
        assert!(agree("SORT", line, one.clone(), other) && !agree("SORT", line, one, others));
    }

    #[test]
    fn bitcount_checks_arguments_first_as_in_7_2_and_only_there() {
        let syntax = || error("ERR syntax error");
        assert!(agree("BITCOUNT", "BITCOUNT a 1", Value::Integer(0), syntax()));
        assert!(!agree("BITCOUNT", "BITCOUNT a 1", Value::Integer(4), syntax()));
        assert!(!agree("BITCOUNT", "BITCOUNT a", Value::Integer(0), syntax()));
    }

    #[test]
    fn client_subcommands_of_7_2_are_checked_by_their_own_rules() {
        let unknown = || error("ERR unknown subcommand 'NO-TOUCH'. Try CLIENT HELP.");
        assert!(agree("CLIENT|NO-TOUCH", "CLIENT NO-TOUCH on", unknown(), Value::ok()));
        assert!(!agree("CLIENT|NO-TOUCH", "CLIENT NO-TOUCH maybe", unknown(), Value::ok()));
        assert!(agree("CLIENT|SETINFO", "CLIENT SETINFO lib-name x", unknown(), Value::ok()));
        assert!(!agree("CLIENT|SETINFO", "CLIENT SETINFO lib-xxx x", unknown(), Value::ok()));
    }
}
