//! A user: its name, its permissions, and its passwords.

use ember_protocol::Args;

use super::denial::Denial;
use super::password::PasswordHash;
use super::rule::{RuleError, join_selectors};
use super::selector::{Grammar, Selector};
use crate::catalogue::registry::Command;

/// The name of the user of connections that have not authenticated.
pub(crate) const DEFAULT_NAME: &[u8] = b"default";

/// A user. It is immutable: changing the rules creates a new [`User`] with the same `id`.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) name: Box<[u8]>,
    /// A unique identifier: if this user is deleted and a user of the same name is created, their identifiers differ.
    pub(crate) id: u64,
    /// Whether connections can authenticate as this user.
    is_on: bool,
    /// Whether the user accepts any password.
    needs_no_password: bool,
    /// Whether payloads that this user sends with RESTORE are trusted.
    skips_sanitizing: bool,
    passwords: Vec<PasswordHash>,
    /// The selectors. The first one, the root, contains the rules outside parentheses.
    selectors: Vec<Selector>,
}

impl User {
    /// Creates a user without permissions.
    pub(super) fn new(name: &[u8], id: u64, grammar: Grammar<'_>) -> User {
        User {
            name: name.into(),
            id,
            is_on: false,
            needs_no_password: false,
            skips_sanitizing: false,
            passwords: Vec::new(),
            selectors: vec![Selector::new(grammar)],
        }
    }

    /// Creates the user `default` of a server without configured users: it is unrestricted and needs no password.
    pub(super) fn new_default(id: u64, grammar: Grammar<'_>) -> User {
        let mut user = User::new(DEFAULT_NAME, id, grammar);
        for rule in ["+@all", "~*", "&*", "on", "nopass"] {
            user.apply(rule.as_bytes(), grammar).expect("these rules are valid");
        }
        user
    }

    /// Applies the rules in `words`, including selectors of several words.
    ///
    /// # Errors
    /// Returns one line with Redis's error text. The rules before the invalid one are applied.
    pub(super) fn apply_words<'w>(
        &mut self,
        words: impl Iterator<Item = &'w [u8]> + Clone,
        grammar: Grammar<'_>,
    ) -> Result<(), Vec<u8>> {
        let rules = join_selectors(words.clone()).map_err(|at| {
            let word = words.clone().nth(at).unwrap_or_default();
            [b"Unmatched parenthesis in acl selector starting at '", word, b"'."].concat()
        })?;
        rules.iter().try_for_each(|rule| {
            self.apply(rule, grammar).map_err(|error| {
                let error = format!("': {error}");
                [b"Error in ACL SETUSER modifier '", &rule[..], error.as_bytes()].concat()
            })
        })
    }

    /// Applies one rule.
    ///
    /// # Errors
    /// Returns the error of the rule; the user is then unchanged.
    pub(super) fn apply(&mut self, rule: &[u8], grammar: Grammar<'_>) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            [] => {}
            _ if is("on") => self.is_on = true,
            _ if is("off") => self.is_on = false,
            _ if is("skip-sanitize-payload") => self.skips_sanitizing = true,
            _ if is("sanitize-payload") => self.skips_sanitizing = false,
            _ if is("nopass") => self.set_passwords(true),
            _ if is("resetpass") => self.set_passwords(false),
            _ if is("clearselectors") => self.selectors.truncate(1),
            _ if is("reset") => self.reset(grammar),
            [b'>', password @ ..] => self.add_password(PasswordHash::of(password)),
            [b'#', digits @ ..] => {
                self.add_password(PasswordHash::parse(digits).ok_or(RuleError::BadHash)?);
            }
            [b'<', password @ ..] => return self.remove_password(PasswordHash::of(password)),
            [b'!', digits @ ..] => {
                return self.remove_password(PasswordHash::parse(digits).ok_or(RuleError::BadHash)?);
            }
            [b'(', rules @ .., b')'] => self.selectors.push(Selector::parse(rules, grammar)?),
            _ => return self.selectors[0].apply(rule, grammar),
        }
        Ok(())
    }

    fn reset(&mut self, grammar: Grammar<'_>) {
        *self = User::new(&self.name, self.id, grammar);
    }

    fn set_passwords(&mut self, needs_none: bool) {
        self.needs_no_password = needs_none;
        self.passwords.clear();
    }

    fn add_password(&mut self, hash: PasswordHash) {
        if !self.passwords.iter().any(|known| known.matches(&hash)) {
            self.passwords.push(hash);
        }
        self.needs_no_password = false;
    }

    fn remove_password(&mut self, hash: PasswordHash) -> Result<(), RuleError> {
        let at = self.passwords.iter().position(|known| known.matches(&hash));
        self.passwords.remove(at.ok_or(RuleError::NoSuchPassword)?);
        Ok(())
    }

    /// Sets the default user's password from `requirepass`; an empty password removes it.
    pub(super) fn set_only_password(&mut self, password: &[u8]) {
        self.set_passwords(password.is_empty());
        if !password.is_empty() {
            self.add_password(PasswordHash::of(password));
        }
    }

    /// Whether both values are versions of the same user.
    pub(crate) fn is_same(&self, other: &User) -> bool {
        self.id == other.id
    }

    /// Whether connections can use this user without a password, if it is the default user.
    pub(super) fn is_open(&self) -> bool {
        self.is_on && self.needs_no_password
    }

    /// Whether no connection can authenticate as this user.
    pub(super) fn is_off(&self) -> bool {
        !self.is_on
    }

    /// Whether the user accepts any password.
    pub(crate) fn needs_no_password(&self) -> bool {
        self.needs_no_password
    }

    /// Whether connections can authenticate as this user (rule `on`).
    pub(crate) fn may_log_in(&self) -> bool {
        self.is_on
    }

    /// Whether a connection can authenticate as this user with `password`. Takes O(length + passwords) steps.
    pub(crate) fn accepts(&self, password: &[u8]) -> bool {
        if !self.is_on || self.needs_no_password {
            return self.is_on;
        }
        let hash = PasswordHash::of(password);
        // All passwords are compared, so that the time does not reveal which one matched.
        self.passwords.iter().fold(false, |found, known| found | known.matches(&hash))
    }

    /// Whether the user may make all calls, so that no call needs a check.
    pub(super) fn is_unrestricted(&self) -> bool {
        self.selectors.iter().any(Selector::is_unrestricted)
    }

    /// Checks whether the user may make a call.
    ///
    /// # Errors
    /// Returns the part of the call that no selector allows. If selectors deny different parts, the one with the
    /// highest precedence is returned.
    pub(crate) fn check(&self, command: &Command, args: Args<'_>) -> Result<(), Denial> {
        let mut denial = Denial::Command;
        for selector in &self.selectors {
            match selector.check(command, args) {
                Ok(()) => return Ok(()),
                Err(other) => denial = denial.max(other),
            }
        }
        Err(denial)
    }

    /// Whether the user may make a call that reads keys that are not among its arguments: a selector that allows the
    /// call must also allow reading every key.
    pub(crate) fn reads_any_key(&self, command: &Command, args: Args<'_>) -> bool {
        self.selectors
            .iter()
            .any(|selector| selector.reads_any_key() && selector.check(command, args).is_ok())
    }

    /// Whether the user may subscribe to a channel or to a pattern of channels.
    pub(crate) fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.selectors.iter().any(|selector| selector.allows_channel(channel, is_pattern))
    }

    /// Whether the rules show that this user may access all channels that `other` may access.
    pub(super) fn has_all_channels_of(&self, other: &User) -> bool {
        let rules = || self.selectors.iter().flat_map(Selector::channel_rules);
        self.selectors.iter().any(Selector::allows_all_channels)
            || other.selectors.iter().all(|selector| {
                !selector.allows_all_channels()
                    && selector.channel_rules().all(|rule| rules().any(|own| own == rule))
            })
    }

    /// Returns the flags, in the order of ACL LIST.
    pub(crate) fn flags(&self) -> impl Iterator<Item = &'static str> {
        let on = if self.is_on { "on" } else { "off" };
        let sanitizes = if self.skips_sanitizing { "skip-sanitize-payload" } else { "sanitize-payload" };
        [Some(on), self.needs_no_password.then_some("nopass"), Some(sanitizes)].into_iter().flatten()
    }

    /// Returns the hashes of the passwords, in hexadecimal digits.
    pub(crate) fn passwords(&self) -> impl ExactSizeIterator<Item = String> {
        self.passwords.iter().map(PasswordHash::to_string)
    }

    /// Returns the rules about commands, keys and channels of each selector, the root first.
    pub(crate) fn selectors(&self) -> impl ExactSizeIterator<Item = [(&'static str, Vec<u8>); 3]> {
        self.selectors.iter().map(|selector| {
            [
                ("commands", selector.describe_commands()),
                ("keys", selector.describe_keys()),
                ("channels", selector.describe_channels()),
            ]
        })
    }

    /// Returns flags, passwords and rules. Applied to a new user, they result in an equal user.
    pub(crate) fn describe(&self) -> Vec<u8> {
        let mut parts: Vec<Vec<u8>> = self.flags().map(|flag| flag.as_bytes().to_vec()).collect();
        parts.extend(self.passwords().map(|digits| format!("#{digits}").into_bytes()));
        parts.push(self.selectors[0].describe());
        let rest = self.selectors[1..].iter().map(|selector| [b"(", &*selector.describe(), b")"].concat());
        parts.extend(rest);
        parts.join(&b' ')
    }

    /// Returns the user's line in ACL LIST and in the `aclfile`.
    pub(crate) fn line(&self) -> Vec<u8> {
        [b"user ", &*self.name, b" ", &self.describe()].concat()
    }
}

#[cfg(test)]
mod tests {
    use ember_protocol::OwnedBatch;

    use super::*;
    use crate::catalogue::registry::Registry;

    struct Fixture {
        registry: Registry,
        user: User,
    }

    impl Fixture {
        fn new(rules: &str) -> Fixture {
            let registry = Registry::new(crate::commands::FAMILIES).0;
            let grammar = Grammar { registry: &registry, allows_channels: false };
            let user = User::new(b"alice", 1, grammar);
            let mut fixture = Fixture { registry, user };
            fixture.apply(rules).unwrap();
            fixture
        }

        fn apply(&mut self, rules: &str) -> Result<(), String> {
            let grammar = Grammar { registry: &self.registry, allows_channels: false };
            let words = rules.split(' ').map(str::as_bytes);
            self.user.apply_words(words, grammar).map_err(|error| String::from_utf8(error).unwrap())
        }

        fn check(&self, call: &str) -> Result<(), Denial> {
            let mut batch = OwnedBatch::new();
            batch.push(&call.split(' ').map(str::as_bytes).collect::<Vec<_>>());
            let command = self.registry.resolve(batch.command(0)).unwrap();
            self.user.check(command, batch.command(0))
        }

        fn described(&self) -> String {
            String::from_utf8(self.user.describe()).unwrap()
        }
    }

    const NEW: &str = "off sanitize-payload resetchannels -@all";

    #[test]
    fn a_new_user_may_do_nothing_but_the_handshake() {
        let fixture = Fixture::new("");
        assert_eq!(fixture.described(), NEW);
        assert_eq!(fixture.check("GET a"), Err(Denial::Command));
        for call in ["AUTH x", "HELLO", "QUIT", "RESET"] {
            assert_eq!(fixture.check(call), Ok(()), "{call}");
        }
        assert!(!fixture.user.accepts(b""));
    }

    #[test]
    fn descriptions_are_those_of_redis() {
        let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        for (rules, described) in [
            ("on >test >test", format!("on sanitize-payload #{hash} resetchannels -@all")),
            ("on nopass skip-sanitize-payload", "on nopass skip-sanitize-payload resetchannels -@all".into()),
            (">test nopass", "off nopass sanitize-payload resetchannels -@all".into()),
            (
                "~a* %R~b %W~c %RW~d %r~c &x &x allcommands",
                "off sanitize-payload ~a* %R~b ~c ~d resetchannels &x +@all".into(),
            ),
            ("allkeys allchannels", "off sanitize-payload ~* &* -@all".into()),
            ("+@all -GET", "off sanitize-payload resetchannels +@all -get".into()),
            ("+@Read -get +get", "off sanitize-payload resetchannels -@all +@read +get".into()),
            ("+config|get +config", "off sanitize-payload resetchannels -@all +config".into()),
            ("+config -config|set", "off sanitize-payload resetchannels -@all +config -config|set".into()),
            ("+select|0 +select|1 -select", "off sanitize-payload resetchannels -@all -select".into()),
            ("+get +@all", "off sanitize-payload resetchannels +@all".into()),
            (
                "(~k +set) ( %R~x  +@read )",
                format!("{NEW} (~k resetchannels -@all +set) (%R~x resetchannels -@all +@read)"),
            ),
            ("(~k +set) clearselectors", NEW.into()),
            ("on >x ~* +@all (~k +set) reset", NEW.into()),
        ] {
            let fixture = Fixture::new(rules);
            assert_eq!(fixture.described(), described, "{rules}");
            let again = Fixture::new(&described);
            assert_eq!(again.described(), described, "the description recreates the user");
        }
    }

    #[test]
    fn wrong_rules_are_refused_in_the_words_of_redis() {
        for (rules, wrong, error) in [
            ("", "+nosuch", "Unknown command or category name in ACL"),
            ("", "+@nosuch", "Unknown command or category name in ACL"),
            ("", "-get|x", "Unknown command or category name in ACL"),
            ("", "+config|nosuch", "Unknown command or category name in ACL"),
            ("", "+", "Unknown command or category name in ACL"),
            ("", "+config|get|x", "Allowing first-arg of a subcommand is not supported"),
            ("", "+config|", "Syntax error"),
            ("", "what", "Syntax error"),
            ("", "%~a", "Syntax error"),
            ("", "%RR~a", "Syntax error"),
            ("", "%X~a", "Syntax error"),
            ("", "~a\tb", "Syntax error"),
            ("", "&a\x0bb", "Syntax error"),
            ("", "(on)", "Syntax error"),
            (
                "",
                "#9F",
                "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters",
            ),
            ("", "<x", "The password you are trying to remove from the user does not exist"),
            (
                "~*",
                "%R~a",
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any \
                 effect. Try 'resetkeys' to start with an empty list of patterns",
            ),
            (
                "&*",
                "&a",
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any \
                 effect. Try 'resetchannels' to start with an empty list of channels",
            ),
        ] {
            let mut fixture = Fixture::new(rules);
            let expected = format!("Error in ACL SETUSER modifier '{wrong}': {error}");
            assert_eq!(fixture.apply(wrong), Err(expected));
        }
        let unmatched = Err("Unmatched parenthesis in acl selector starting at '(+get'.".to_owned());
        assert_eq!(Fixture::new("").apply("on (+get ~a"), unmatched);
    }

    #[test]
    fn only_the_right_password_is_accepted_and_only_while_the_user_is_on() {
        let mut fixture = Fixture::new("on >one >two");
        assert!(fixture.user.accepts(b"one") && fixture.user.accepts(b"two"));
        assert!(!fixture.user.accepts(b"three") && !fixture.user.accepts(b""));
        fixture.apply("<one").unwrap();
        assert!(!fixture.user.accepts(b"one") && fixture.user.accepts(b"two"));
        fixture.apply("off").unwrap();
        assert!(!fixture.user.accepts(b"two"));
        fixture.apply("on nopass").unwrap();
        assert!(fixture.user.accepts(b"anything"));
        fixture.apply("resetpass").unwrap();
        assert!(!fixture.user.accepts(b"anything") && !fixture.user.accepts(b"two"));
    }

    #[test]
    fn commands_are_allowed_one_by_one_by_category_and_by_first_argument() {
        let fixture = Fixture::new("~* +@string -append +config|get +select|0 +object -object|freq");
        for (call, allowed) in [
            ("GET a", true),
            ("get a", true),
            ("APPEND a b", false),
            ("DEL a", false),
            ("CONFIG GET x", true),
            ("CONFIG SET hz 10", false),
            ("SELECT 0", true),
            ("SELECT 1", false),
            ("OBJECT ENCODING a", true),
            ("OBJECT FREQ a", false),
        ] {
            let expected = if allowed { Ok(()) } else { Err(Denial::Command) };
            assert_eq!(fixture.check(call), expected, "{call}");
        }
    }

    #[test]
    fn keys_need_the_permission_that_the_command_uses() {
        let fixture = Fixture::new("+@all %R~r* %W~w* ~b*");
        for (call, denied) in [
            ("GET r1", None),
            ("GET w1", Some(1)),
            ("GET b1", None),
            ("SET w1 x", None),
            ("SET r1 x", Some(1)),
            ("SET w1 x GET", Some(1)),
            ("SET b1 x GET", None),
            ("INCR w1", Some(1)),
            ("MGET r1 b1 w1", Some(3)),
            ("MSET w1 a r1 b", Some(3)),
            ("COPY r1 w1", None),
            ("COPY w1 r1", Some(1)),
            ("RENAME r1 w1", Some(1)),
            ("EXISTS w1", None),
            ("EXISTS x1", Some(1)),
            ("PING", None),
            ("OBJECT ENCODING w1", None),
        ] {
            let expected = denied.map_or(Ok(()), |at| Err(Denial::Key(at)));
            assert_eq!(fixture.check(call), expected, "{call}");
        }
    }

    #[test]
    fn one_selector_must_allow_all_of_a_call() {
        let fixture = Fixture::new("+get ~a* (+set ~b*) (+mget ~c* ~d*)");
        for (call, expected) in [
            ("GET a1", Ok(())),
            ("SET b1 x", Ok(())),
            ("SET a1 x", Err(Denial::Key(1))),
            ("GET b1", Err(Denial::Key(1))),
            ("MGET c1 d1", Ok(())),
            ("MGET c1 a1", Err(Denial::Key(2))),
            ("DEL a1", Err(Denial::Command)),
        ] {
            assert_eq!(fixture.check(call), expected, "{call}");
        }
    }

    #[test]
    fn a_user_with_all_rights_needs_no_checks() {
        assert!(Fixture::new("+@all ~* &*").user.is_unrestricted());
        assert!(Fixture::new("(+@all ~* &*)").user.is_unrestricted());
        for rules in ["+@all ~*", "+@all &* ~a", "~* &* +@all -get", "~* &* +@all -get +get"] {
            assert!(!Fixture::new(rules).user.is_unrestricted(), "{rules}");
        }
    }

    #[test]
    fn a_pattern_of_channels_must_be_a_rule_itself() {
        let fixture = Fixture::new("&news.* &chat");
        let allows = |channel: &str, is_pattern| {
            fixture.user.selectors[0].allows_channel(channel.as_bytes(), is_pattern)
        };
        assert!(allows("news.a", false) && allows("chat", false) && !allows("other", false));
        assert!(allows("news.*", true) && !allows("news.a*", true) && !allows("*", true));
    }
}
