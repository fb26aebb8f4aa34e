//! The arguments of a command as a tree, parsed from the syntax line of its specification.
//!
//! `COMMAND DOCS` replies with such a tree. The notation is that of Redis's documentation: `word` is a value, `WORD` is
//! literal, `[…]` is optional, `<…>` only groups, `|` separates alternatives, and `...` repeats the preceding part:
//! `key [key ...]` is one or more keys, `WEIGHTS weight [weight ...]` is a literal and one or more weights.
//!
//! Three marks extend the notation and are not shown to users: `name:` before a group is its name, `@7.0.0` after an
//! argument is the version that introduced the argument, and `!7.0.0` is the version that deprecated it. Other names,
//! and the types of values, are derived from the words.

use emberkv_core::spec::{Group, Spec};

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentType {
    /// A text, which may contain any bytes.
    String,
    /// A 64-bit integer.
    Integer,
    /// A floating-point number.
    Double,
    /// A key, with the index of its key specification.
    Key(usize),
    /// A glob pattern for names.
    Pattern,
    /// A Unix time in seconds or milliseconds.
    UnixTime,
    /// A literal word without a value.
    PureToken,
    /// Exactly one of the children.
    OneOf,
    /// All children, in order.
    Block,
}

impl ArgumentType {
    /// Returns the type's name in `COMMAND DOCS`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ArgumentType::String => "string",
            ArgumentType::Integer => "integer",
            ArgumentType::Double => "double",
            ArgumentType::Key(_) => "key",
            ArgumentType::Pattern => "pattern",
            ArgumentType::UnixTime => "unix-time",
            ArgumentType::PureToken => "pure-token",
            ArgumentType::OneOf => "oneof",
            ArgumentType::Block => "block",
        }
    }
}

/// An argument, or a group of arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Argument {
    /// The name in `COMMAND DOCS`.
    pub(crate) name: String,
    /// The type of the argument's value, or the kind of group.
    pub(crate) argument_type: ArgumentType,
    /// The literal word before the argument.
    pub(crate) token: Option<String>,
    /// The version that introduced the argument, if it is newer than the command.
    pub(crate) since: Option<String>,
    /// The version that deprecated the argument.
    pub(crate) deprecated_since: Option<String>,
    /// Whether the argument may be absent.
    pub(crate) is_optional: bool,
    /// Whether the argument may occur several times.
    pub(crate) is_multiple: bool,
    /// Whether `token` precedes each repetition of the argument.
    pub(crate) repeats_token: bool,
    /// The members of a group.
    pub(crate) children: Vec<Argument>,
}

impl Argument {
    /// Removes the repetition mark of the last argument of a group, because the whole group is repeated.
    fn end_repetition(&mut self) {
        match self.children.last_mut() {
            Some(last) if self.argument_type == ArgumentType::Block => last.is_multiple = false,
            _ => self.is_multiple = false,
        }
    }
}

/// Parses the syntax of a specification and returns its arguments.
pub(crate) fn arguments(spec: &Spec) -> Vec<Argument> {
    let mut spaced = spec.syntax.to_owned();
    for mark in ["[", "]", "<", ">", "|"] {
        spaced = spaced.replace(mark, &format!(" {mark} "));
    }
    let words = spaced.split_whitespace().collect();
    Parser { spec, words, at: 0, keys: 0 }.sequence()
}

/// Names of groups that are more descriptive than a list of their members. An entry contains the first two words of a
/// group (or its only word), and the name.
const GROUP_NAMES: &[(&[&str], &str)] = &[
    (&["nx", "xx"], "condition"),
    (&["gt", "lt"], "comparison"),
    (&["seconds", "milliseconds"], "expiration"),
    (&["left", "right"], "where"),
    (&["min", "max"], "where"),
    (&["sum", "min"], "aggregate"),
    (&["before", "after"], "where"),
    (&["asc", "desc"], "order"),
    (&["byte", "bit"], "index_unit"),
    (&["timeout", "error"], "timeout_error"),
    (&["write", "all"], "mode"),
    (&["on", "off", "skip"], "on_off_skip"),
    (&["on", "off"], "enabled"),
    (&["module-name", "category"], "filterby"),
    (&["start", "end"], "index"),
    (&["start", "end_index"], "index"),
    (&["end", "index_unit"], "end_index"),
    (&["and", "or"], "operation"),
    (&["encoding_offset", "write"], "operation"),
    (&["encoding_offset_value", "encoding_offset_increment"], "write_operation"),
    (&["wrap_sat_fail", "write_operation"], "write"),
    (&["client-id", "normal_master_slave_replica_pubsub"], "new-format"),
    (&["ip:port"], "filter"),
    (&["protover"], "arguments"),
];

fn group_name(children: &[Argument]) -> String {
    let names: Vec<&str> = children.iter().map(|child| child.name.as_str()).collect();
    let known = GROUP_NAMES.iter().find(|(words, _)| names.starts_with(words));
    known.map_or_else(|| names.join("_"), |(_, name)| (*name).to_owned())
}

struct Parser<'s> {
    spec: &'s Spec,
    words: Vec<&'s str>,
    at: usize,
    /// The number of different keys found so far.
    keys: usize,
}

fn is_mark(word: &str) -> bool {
    matches!(word, "[" | "]" | "<" | ">" | "|" | "...") || word.starts_with(['@', '!']) || word.ends_with(':')
}

fn is_token(word: &str) -> bool {
    !is_mark(word) && !word.chars().any(|letter| letter.is_ascii_lowercase())
}

fn is_value(word: &str) -> bool {
    !is_mark(word) && !is_token(word)
}

impl<'s> Parser<'s> {
    fn peek(&self, ahead: usize) -> Option<&'s str> {
        self.words.get(self.at + ahead).copied()
    }

    /// Reads consecutive arguments, up to the end of the group or alternative.
    fn sequence(&mut self) -> Vec<Argument> {
        let mut sequence: Vec<Argument> = Vec::new();
        while let Some(word) = self.peek(0) {
            if matches!(word, "|" | "]" | ">") {
                break;
            }
            self.add(word, &mut sequence);
        }
        sequence
    }

    /// Reads the argument that begins with `word`, and appends it to `sequence`.
    fn add(&mut self, word: &'s str, sequence: &mut Vec<Argument>) {
        if word == "[" {
            self.add_optional(None, sequence);
            return;
        }
        if word == "<" {
            sequence.push(self.group(">"));
            return;
        }
        self.at += 1;
        if let Some(name) = word.strip_suffix(':') {
            if self.peek(0) == Some("[") {
                self.add_optional(Some(name), sequence);
            } else {
                let group = self.group(">");
                sequence.push(named(name, group));
            }
        } else if word == "..." {
            if let Some(last) = sequence.last_mut() {
                last.is_multiple = true;
            }
        } else if let Some(version) = word.strip_prefix('@') {
            if let Some(last) = sequence.last_mut() {
                last.since = Some(version.to_owned());
            }
        } else if let Some(version) = word.strip_prefix('!') {
            if let Some(last) = sequence.last_mut() {
                last.deprecated_since = Some(version.to_owned());
            }
        } else if is_token(word) {
            let argument = self.with_token(word);
            sequence.push(argument);
        } else {
            let argument_type = self.type_of(word);
            sequence.push(value(word, argument_type));
        }
    }

    /// Reads `[…]`, which is an optional argument or the repetition of the preceding part.
    fn add_optional(&mut self, name: Option<&str>, sequence: &mut Vec<Argument>) {
        let keys = self.keys;
        let mut group = self.group("]");
        if let Some(name) = name {
            group = named(name, group);
        }
        let repeated: Vec<String> = match group.argument_type {
            ArgumentType::Block if group.token.is_none() => {
                group.children.iter().map(|child| child.name.clone()).collect()
            }
            _ => vec![group.name.clone()],
        };
        let start = sequence.len().checked_sub(repeated.len());
        let is_repetition = start.is_some_and(|start| {
            sequence[start..].iter().zip(&repeated).all(|(before, name)| before.name == *name)
        });
        match start {
            Some(start) if is_repetition => {
                self.keys = keys;
                let before = sequence.split_off(start);
                let repeats_token = before.len() == 1 && group.token.is_some();
                let mut whole = one_of_block(before);
                whole.is_multiple = true;
                whole.repeats_token = repeats_token;
                sequence.push(whole);
            }
            _ => {
                group.is_optional = true;
                sequence.push(group);
            }
        }
    }

    /// Reads a group, including its brackets.
    fn group(&mut self, close: &str) -> Argument {
        self.at += 1;
        let mut alternatives = Vec::new();
        let mut ends_repeating = false;
        while let Some(word) = self.peek(0) {
            if word == close {
                self.at += 1;
                break;
            }
            if word == "|" {
                self.at += 1;
                continue;
            }
            let sequence = self.sequence();
            ends_repeating = self.words.get(self.at.wrapping_sub(1)) == Some(&"...") && sequence.len() > 1;
            alternatives.push(one_of_block(sequence));
            if self.peek(0).is_some_and(|word| word != close && word != "|") {
                // The brackets do not match, which a test of the registry detects.
                self.at += 1;
            }
        }
        if alternatives.len() > 1 {
            let is_multiple = self.words.get(self.at.wrapping_sub(2)) == Some(&"...");
            if is_multiple && let Some(last) = alternatives.last_mut() {
                last.end_repetition();
            }
            return Argument {
                name: group_name(&alternatives),
                is_multiple,
                children: alternatives,
                ..value("", ArgumentType::OneOf)
            };
        }
        if let Some(mut only) = alternatives.pop() {
            if ends_repeating {
                only.is_multiple = true;
                only.children.iter_mut().for_each(|child| child.is_multiple = false);
            }
            return only;
        }
        value("", ArgumentType::Block)
    }

    /// Reads the argument after a literal word.
    fn with_token(&mut self, token: &str) -> Argument {
        let mut values: Vec<Argument> = Vec::new();
        while let Some(word) = self.peek(0) {
            let repeats = word == "["
                && self.peek(1).is_some_and(|name| values.iter().any(|value| value.name == name))
                && !self.peek(1).is_some_and(is_token);
            let chooses = values.is_empty() && (word == "<" || self.names_choice(word));
            if !is_value(word) && !repeats && !chooses {
                break;
            }
            self.add(word, &mut values);
        }
        let mut argument = if values.is_empty() {
            let name = match token {
                "=" => "equal".to_owned(),
                "\"\"" => "empty-string".to_owned(),
                "~" => "approximately".to_owned(),
                "*" => "auto_id".to_owned(),
                "CH" => "change".to_owned(),
                "$" => "new_id".to_owned(),
                "INCR" => "increment".to_owned(),
                word => word.to_ascii_lowercase(),
            };
            value(&name, ArgumentType::PureToken)
        } else {
            one_of_block(values)
        };
        argument.token = Some(token.to_owned());
        argument
    }

    /// Returns whether `word`, the next word, is the name of a required group.
    fn names_choice(&self, word: &str) -> bool {
        word.ends_with(':') && self.peek(1) == Some("<")
    }

    fn type_of(&mut self, name: &str) -> ArgumentType {
        let is_one_of = |names: &[&str]| names.contains(&name);
        let keys =
            ["key", "key1", "key2", "source", "destination", "newkey", "destkey", "sourcekey", "dst", "src"];
        if !self.spec.keys.is_empty() && is_one_of(&keys) {
            self.keys += 1;
            return ArgumentType::Key((self.keys - 1).min(self.spec.keys.len() - 1));
        }
        let integers = [
            "bit",
            "bits",
            "client-id",
            "cluster-bus-port",
            "config-epoch",
            "count",
            "cursor",
            "db",
            "decrement",
            "destination-db",
            "end",
            "end-slot",
            "entries_added",
            "entries_read",
            "frequency",
            "increment",
            "index",
            "index1",
            "index2",
            "integer",
            "len",
            "limit",
            "maxage",
            "milliseconds",
            "min-match-len",
            "ms",
            "num-matches",
            "numkeys",
            "numreplicas",
            "offset",
            "port",
            "protover",
            "rank",
            "seconds",
            "slot",
            "start",
            "start-slot",
            "stop",
            "timeout",
            "ttl",
            "version",
            "weight",
        ];
        match name {
            "float" => ArgumentType::Double,
            "increment" if self.spec.name.ends_with("float") => ArgumentType::Double,
            "value" if matches!(self.spec.name, "setbit" | "bitfield") => ArgumentType::Integer,
            "score" | "longitude" | "latitude" | "radius" | "width" | "height" => ArgumentType::Double,
            "min" | "max" if self.spec.name == "zcount" || self.spec.name.ends_with("byscore") => {
                ArgumentType::Double
            }
            // In stream commands, `start` and `end` are IDs.
            "start" | "end" if matches!(self.spec.group, Group::Stream) => ArgumentType::String,
            "min-idle-time" if self.spec.name == "xpending" => ArgumentType::Integer,
            // In ZRANGE, `start` and `stop` are indexes, scores or members.
            "start" | "stop" if self.spec.name == "zrange" => ArgumentType::String,
            "timeout" if matches!(self.spec.group, Group::List | Group::SortedSet) => ArgumentType::Double,
            "pattern" => ArgumentType::Pattern,
            "unix-time-seconds" | "unix-time-milliseconds" => ArgumentType::UnixTime,
            _ if is_one_of(&integers) => ArgumentType::Integer,
            _ => ArgumentType::String,
        }
    }
}

fn value(name: &str, argument_type: ArgumentType) -> Argument {
    Argument {
        name: name.to_owned(),
        argument_type,
        token: None,
        since: None,
        deprecated_since: None,
        is_optional: false,
        is_multiple: false,
        repeats_token: false,
        children: Vec::new(),
    }
}

/// Sets the name of a group; a single value becomes a block.
fn named(name: &str, group: Argument) -> Argument {
    let is_group = matches!(group.argument_type, ArgumentType::OneOf | ArgumentType::Block);
    if is_group && group.token.is_none() {
        return Argument { name: name.to_owned(), ..group };
    }
    Argument { children: vec![group], ..value(name, ArgumentType::Block) }
}

/// Returns the only argument of a sequence, or a block of all its arguments.
fn one_of_block(mut sequence: Vec<Argument>) -> Argument {
    match sequence.pop() {
        Some(only) if sequence.is_empty() => only,
        last => {
            sequence.extend(last);
            Argument { name: group_name(&sequence), children: sequence, ..value("", ArgumentType::Block) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkv_core::spec::{KeyFlags, KeySpec};

    /// Formats a tree in one line: `TOKEN=name:type?+(children)`, where `?` means optional, `+` repeated, and `*`
    /// repeated with its token.
    fn show(arguments: &[Argument]) -> String {
        let shown = arguments.iter().map(|argument| {
            let mut text = argument.token.as_ref().map_or(String::new(), |token| format!("{token}="));
            text += &format!("{}:{}", argument.name, argument.argument_type.name());
            if let ArgumentType::Key(index) = argument.argument_type {
                text += &index.to_string();
            }
            for (is_set, mark) in [
                (argument.is_optional, "?"),
                (argument.is_multiple && !argument.repeats_token, "+"),
                (argument.repeats_token, "*"),
            ] {
                text += if is_set { mark } else { "" };
            }
            for (mark, version) in [("@", &argument.since), ("!", &argument.deprecated_since)] {
                text += &version.as_ref().map_or(String::new(), |version| format!("{mark}{version}"));
            }
            if !argument.children.is_empty() {
                text += &format!("({})", show(&argument.children));
            }
            text
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    fn tree(name: &'static str, syntax: &'static str) -> String {
        const KEYS: &[KeySpec] = &[KeySpec::one(1, KeyFlags::RW), KeySpec::one(2, KeyFlags::RO)];
        show(&arguments(&Spec { name, syntax, keys: KEYS, ..Spec::DEFAULT }))
    }

    #[test]
    fn argument_names_determine_types() {
        assert_eq!(tree("setrange", "key offset value"), "key:key0 offset:integer value:string");
        assert_eq!(tree("incrbyfloat", "key increment"), "key:key0 increment:double");
        assert_eq!(tree("rename", "key newkey"), "key:key0 newkey:key1");
        assert_eq!(tree("keys", "pattern"), "pattern:pattern");
        assert_eq!(tree("get", ""), "");
    }

    #[test]
    fn repetitions_are_recognised() {
        assert_eq!(tree("del", "key [key ...]"), "key:key0+");
        assert_eq!(tree("bitop", "destkey key [key ...]"), "destkey:key0 key:key1+");
        assert_eq!(tree("mset", "key value [key value ...]"), "key_value:block+(key:key0 value:string)");
        assert_eq!(tree("info", "[section [section ...]]"), "section:string?+");
        assert_eq!(tree("info", "[section ...]"), "section:string?+");
        assert_eq!(tree("sort", "[GET pattern [GET pattern ...]]"), "GET=pattern:pattern?*");
        assert_eq!(
            tree("xread", "STREAMS key [key ...] id [id ...]"),
            "STREAMS=key_id:block(key:key0+ id:string+)"
        );
    }

    #[test]
    fn groups_can_be_named_and_arguments_have_versions() {
        assert_eq!(
            tree("x", "range:[start end]@7.0.0 way:<UP @6.2.0 | DOWN !7.2.0>"),
            "range:block?@7.0.0(start:integer end:integer) \
             way:oneof(UP=up:pure-token@6.2.0 DOWN=down:pure-token!7.2.0)"
        );
        assert_eq!(
            tree("x", "[ID id:<client-id [client-id ...]>]@6.2.0 [TYPE kind:<A | B>]"),
            "ID=id:block?@6.2.0(client-id:integer+) TYPE=kind:oneof?(A=a:pure-token B=b:pure-token)"
        );
        assert_eq!(
            tree("x", "parameter:<parameter> [parameter:<parameter> ...]"),
            "parameter:block+(parameter:string)"
        );
        assert_eq!(tree("x", "[username]@6.0.0 password"), "username:string?@6.0.0 password:string");
    }

    #[test]
    fn alternatives_and_options_nest() {
        assert_eq!(
            tree("set", "key value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]"),
            "key:key0 value:string condition:oneof?(NX=nx:pure-token XX=xx:pure-token) GET=get:pure-token? \
             expiration:oneof?(EX=seconds:integer PX=milliseconds:integer KEEPTTL=keepttl:pure-token)"
        );
        assert_eq!(
            tree("hello", "[protover [AUTH username password] [SETNAME clientname]]"),
            "arguments:block?(protover:integer AUTH=username_password:block?(username:string password:string) \
             SETNAME=clientname:string?)"
        );
        assert_eq!(
            tree("bitpos", "key bit [start [end [BYTE | BIT]]]"),
            "key:key0 bit:integer index:block?(start:integer end_index:block?(end:integer \
             index_unit:oneof?(BYTE=byte:pure-token BIT=bit:pure-token)))"
        );
        assert_eq!(
            tree("xtrim", "key <MAXLEN | MINID> [= | ~] threshold"),
            "key:key0 maxlen_minid:oneof(MAXLEN=maxlen:pure-token MINID=minid:pure-token) \
             equal_approximately:oneof?(==equal:pure-token ~=approximately:pure-token) threshold:string"
        );
        assert_eq!(
            tree("bitfield", "key [GET encoding | <SET value | INCRBY increment> ...]"),
            "key:key0 encoding_value_increment:oneof?+(GET=encoding:string value_increment:oneof(SET=value:integer \
             INCRBY=increment:integer))"
        );
        assert_eq!(
            tree("lmpop", "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]"),
            "numkeys:integer key:key0+ where:oneof(LEFT=left:pure-token RIGHT=right:pure-token) COUNT=count:integer?"
        );
    }
}
