//! The command documentation of a server, loaded with COMMAND DOCS.

use ember_protocol::client::Value;

use ember_client::Connection;

/// The maximum nesting depth of arguments: deeper than in any command.
const DEPTH_MAX: usize = 16;

/// The suffixes of the commands that open and end watches of a command.
const WATCH_FORMS: [&str; 2] = [".WATCH", ".UNWATCH"];

/// The commands of a server, sorted by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Docs {
    /// The commands in ascending order of names; a container precedes its subcommands.
    pub(super) commands: Vec<Command>,
}

/// A command or subcommand.
#[derive(Clone, Debug)]
pub(super) struct Command {
    /// The name in capital letters; for a subcommand, the container and the subcommand, separated by a blank.
    pub(super) name: String,
    pub(super) summary: String,
    pub(super) since: String,
    pub(super) group: String,
    pub(super) arguments: Vec<Argument>,
}

/// An argument, or a group of arguments.
#[derive(Clone, Debug, Default)]
pub(super) struct Argument {
    name: String,
    token: Option<String>,
    kind: Kind,
    /// Whether the argument is the name of a key.
    is_key: bool,
    is_optional: bool,
    is_multiple: bool,
    /// Whether the token is repeated with each value.
    repeats_token: bool,
    parts: Vec<Argument>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// A value: any word.
    #[default]
    Value,
    /// The token alone.
    Token,
    /// One of several alternatives.
    OneOf,
    /// A sequence of several arguments.
    Block,
}

impl Docs {
    /// Loads the documentation; `None` if the server has none, or this user may not read it.
    pub(super) fn load(connection: &mut Connection) -> Option<Docs> {
        let answer = connection.ask(&["COMMAND", "DOCS"]).ok()?;
        let mut commands = Vec::new();
        for (name, facts) in answer.pairs()? {
            add(&name.text().replace('|', " "), &facts, &mut commands);
        }
        commands.sort_by(|left, right| left.name.cmp(&right.name));
        (!commands.is_empty()).then_some(Docs { commands })
    }

    /// Returns the command with the longest name at the beginning of the words, and the number of words in its name.
    pub(super) fn find(&self, words: &[String]) -> Option<(&Command, usize)> {
        (1..=words.len().min(2)).rev().find_map(|count| {
            let name = words[..count].join(" ").to_ascii_uppercase();
            let at = self.commands.binary_search_by(|command| command.name.as_str().cmp(&name)).ok()?;
            Some((&self.commands[at], count))
        })
    }
}

fn add(name: &str, facts: &Value, commands: &mut Vec<Command>) {
    let text = |field: &str| facts.get(field).map(|value| value.text()).unwrap_or_default();
    let subcommands = facts.get("subcommands").and_then(|subcommands| subcommands.pairs());
    commands.push(Command {
        name: name.to_ascii_uppercase(),
        summary: text("summary"),
        since: text("since"),
        group: text("group"),
        arguments: arguments_of(facts, 0),
    });
    for (name, facts) in subcommands.unwrap_or_default() {
        add(&name.text().replace('|', " "), &facts, commands);
    }
}

fn arguments_of(facts: &Value, depth: usize) -> Vec<Argument> {
    let listed = facts.get("arguments");
    let listed = listed.as_ref().and_then(Value::elements).unwrap_or_default();
    if depth == DEPTH_MAX {
        return Vec::new();
    }
    listed.iter().map(|facts| Argument::of(facts, depth)).collect()
}

impl Argument {
    fn of(facts: &Value, depth: usize) -> Argument {
        let text = |field: &str| facts.get(field).map(|value| value.text());
        let flags = facts.get("flags");
        let flags = flags.as_ref().and_then(Value::elements).unwrap_or_default();
        let has = |flag: &str| flags.iter().any(|found| found.text() == flag);
        Argument {
            name: text("display_text").or_else(|| text("name")).unwrap_or_default(),
            token: text("token").filter(|token| !token.is_empty()),
            kind: match text("type").as_deref() {
                Some("pure-token") => Kind::Token,
                Some("oneof") => Kind::OneOf,
                Some("block") => Kind::Block,
                _ => Kind::Value,
            },
            is_key: text("type").as_deref() == Some("key"),
            is_optional: has("optional"),
            is_multiple: has("multiple"),
            repeats_token: has("multiple_token"),
            parts: arguments_of(facts, depth + 1),
        }
    }

    /// Formats the argument for a synopsis: `[EX seconds|PX milliseconds]`.
    pub(super) fn shown(&self) -> String {
        let join = |mark: &str| self.parts.iter().map(Argument::shown).collect::<Vec<_>>().join(mark);
        let own = match self.kind {
            Kind::Value => self.name.clone(),
            Kind::Token => String::new(),
            Kind::OneOf => join("|"),
            Kind::Block => join(" "),
        };
        let token = self.token.clone().unwrap_or_default();
        let both = [token.as_str(), &own].iter().filter(|text| !text.is_empty()).copied().collect::<Vec<_>>();
        let both = both.join(" ");
        let shown = match (self.is_multiple, self.repeats_token) {
            (false, _) => both,
            (true, false) => format!("{both} [{own} ...]"),
            (true, true) => format!("{both} [{both} ...]"),
        };
        if self.is_optional { format!("[{shown}]") } else { shown }
    }

    /// Returns the argument's token, or the tokens with which it can begin.
    fn tokens(&self) -> Vec<String> {
        match (&self.token, self.kind) {
            (Some(token), _) => vec![token.clone()],
            (None, Kind::OneOf) => self.parts.iter().flat_map(Argument::tokens).collect(),
            (None, Kind::Block) => self.parts.first().map(Argument::tokens).unwrap_or_default(),
            (None, _) => Vec::new(),
        }
    }

    /// Returns the number of words of the argument if it can begin with this word, otherwise `None`. A value can be any
    /// word.
    fn takes(&self, word: &str) -> Option<usize> {
        let is_token = |token: &str| token.eq_ignore_ascii_case(word);
        match (&self.token, self.kind) {
            (Some(token), kind) => {
                is_token(token).then(|| if kind == Kind::Token { 1 } else { 1 + self.len() })
            }
            (None, Kind::Value) => (!self.is_optional).then_some(1),
            (None, Kind::Token) => None,
            (None, Kind::OneOf) => self.parts.iter().find_map(|part| part.takes(word)),
            (None, Kind::Block) => self.parts.first()?.takes(word).map(|_| self.len()),
        }
    }

    /// The number of words of the argument, excluding its own token.
    fn len(&self) -> usize {
        let with_token = |part: &Argument| part.len() + usize::from(part.token.is_some());
        match self.kind {
            Kind::Value => 1,
            Kind::Token => 0,
            Kind::OneOf => self.parts.first().map_or(1, with_token),
            Kind::Block => self.parts.iter().filter(|part| !part.is_optional).map(with_token).sum(),
        }
    }
}

impl Command {
    /// Whether the command is offered to a user that has typed `begin`, in capital letters. Every command that reads keys
    /// has forms with `.WATCH` and `.UNWATCH`; these are offered only after the dot, because they would hide the other
    /// commands.
    pub(super) fn is_offered(&self, begin: &str) -> bool {
        let dot = WATCH_FORMS.iter().find_map(|form| self.name.find(form));
        self.name.starts_with(begin) && dot.is_none_or(|dot| begin.len() > dot)
    }

    /// Formats all arguments for a synopsis.
    pub(super) fn synopsis(&self) -> String {
        self.arguments.iter().map(Argument::shown).collect::<Vec<_>>().join(" ")
    }

    /// Formats the arguments missing after some words for a synopsis.
    pub(super) fn rest_after(&self, words: &[String]) -> String {
        self.left_after(words).iter().map(|argument| argument.shown()).collect::<Vec<_>>().join(" ")
    }

    /// Whether the next word after some words is a key.
    pub(super) fn expects_key(&self, words: &[String]) -> bool {
        self.left_after(words).first().is_some_and(|argument| {
            let first = argument.parts.first();
            argument.token.is_none() && (argument.is_key || first.is_some_and(|part| part.is_key))
        })
    }

    /// Returns the tokens that can follow some words.
    pub(super) fn tokens_after(&self, words: &[String]) -> Vec<String> {
        self.left_after(words).iter().flat_map(|argument| argument.tokens()).collect()
    }

    /// Whether a word is one of the command's tokens.
    pub(super) fn has_token(&self, word: &str) -> bool {
        let mut tokens = self.arguments.iter().flat_map(Argument::tokens);
        tokens.any(|token| token.eq_ignore_ascii_case(word))
    }

    fn left_after(&self, words: &[String]) -> Vec<&Argument> {
        let mut left: Vec<&Argument> = self.arguments.iter().collect();
        let mut pending = 0usize;
        for word in words {
            if pending > 0 {
                pending -= 1;
                continue;
            }
            let named = left.iter().position(|argument| {
                (argument.is_optional || argument.token.is_some()) && argument.takes(word).is_some()
            });
            // Required arguments come in order; optional ones in any order.
            let Some(at) = named.or_else(|| left.iter().position(|argument| argument.takes(word).is_some()))
            else {
                continue;
            };
            pending = left[at].takes(word).unwrap_or(1).saturating_sub(1);
            if !left[at].is_multiple {
                left.remove(at);
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str) -> Argument {
        Argument { name: name.to_owned(), ..Argument::default() }
    }

    fn token(token: &str) -> Argument {
        Argument { token: Some(token.to_owned()), kind: Kind::Token, ..Argument::default() }
    }

    fn set() -> Command {
        let condition = Argument {
            kind: Kind::OneOf,
            is_optional: true,
            parts: vec![token("NX"), token("XX")],
            ..value("c")
        };
        let seconds = Argument { token: Some("EX".to_owned()), ..value("seconds") };
        let expiry = Argument {
            kind: Kind::OneOf,
            is_optional: true,
            parts: vec![seconds, token("KEEPTTL")],
            ..value("expiry")
        };
        Command {
            name: "SET".to_owned(),
            summary: String::new(),
            since: String::new(),
            group: String::new(),
            arguments: vec![value("key"), value("value"), condition, expiry],
        }
    }

    #[test]
    fn a_synopsis_marks_optional_arguments() {
        assert_eq!(set().synopsis(), "key value [NX|XX] [EX seconds|KEEPTTL]");
        let many = Argument { is_multiple: true, ..value("key") };
        assert_eq!(many.shown(), "key [key ...]");
        let named = Argument {
            token: Some("GET".to_owned()),
            is_optional: true,
            is_multiple: true,
            repeats_token: true,
            ..value("pattern")
        };
        assert_eq!(named.shown(), "[GET pattern [GET pattern ...]]");
    }

    #[test]
    fn watch_forms_are_offered_after_their_dot() {
        let named = |name: &str| Command { name: name.to_owned(), ..set() };
        for (name, begin, is_offered) in [
            ("GET.WATCH", "", false),
            ("GET.WATCH", "GET", false),
            ("GET.WATCH", "GET.", true),
            ("GET.UNWATCH", "GET", false),
            ("GET.UNWATCH", "GET.", true),
            ("GET.WATCH", "SET.", false),
            ("XINFO.WATCH STREAM", "XINFO", false),
            ("XINFO.WATCH STREAM", "XINFO.W", true),
            ("WATCH.OPEN", "W", true),
            ("GET", "G", true),
        ] {
            assert_eq!(named(name).is_offered(begin), is_offered, "{name} for {begin}");
        }
    }

    #[test]
    fn the_next_tokens_are_known() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut set = set();
        set.arguments[0].is_key = true;
        assert!(set.expects_key(&words("")) && !set.expects_key(&words("k")));
        assert_eq!(set.tokens_after(&words("k v")), ["NX", "XX", "EX", "KEEPTTL"]);
        assert_eq!(set.tokens_after(&words("k v EX 10")), ["NX", "XX"]);
        assert!(set.has_token("ex") && !set.has_token("v"));
    }

    #[test]
    fn typed_arguments_are_not_hinted() {
        let rest = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            set().rest_after(&words)
        };
        assert_eq!(rest(""), "key value [NX|XX] [EX seconds|KEEPTTL]");
        assert_eq!(rest("k"), "value [NX|XX] [EX seconds|KEEPTTL]");
        assert_eq!(rest("k v nx"), "[EX seconds|KEEPTTL]");
        assert_eq!(rest("k v EX 10"), "[NX|XX]");
        assert_eq!(rest("k v EX 10 XX"), "");
    }
}
