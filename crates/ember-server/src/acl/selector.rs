//! A selector: one set of rules about commands, keys and channels. A call is allowed if at least one selector of its
//! user allows the command and all its keys and channels.

use std::collections::BTreeMap;

use ember_config::{Config, PubsubDefault};
use ember_protocol::Args;
use emberkv_core::glob::{self, Case};
use emberkv_core::spec::{Category, Channels, Flags, KeyFlags};

use super::denial::Denial;
use super::rule::{RuleError, has_spaces};
use crate::catalogue::redis_commands;
use crate::catalogue::registry::{Command, Registry};

/// The context in which rules are parsed.
#[derive(Clone, Copy)]
pub(crate) struct Grammar<'r> {
    /// The registry of the server's commands.
    pub(crate) registry: &'r Registry,
    /// Whether new users and selectors may access every channel (`acl-pubsub-default`).
    pub(crate) allows_channels: bool,
}

impl<'r> Grammar<'r> {
    /// Returns the grammar of a server with this configuration.
    pub(crate) fn of(registry: &'r Registry, config: &Config) -> Grammar<'r> {
        Grammar { registry, allows_channels: config.acl_pubsub_default == PubsubDefault::AllChannels }
    }
}

/// A key pattern and the access that it allows.
#[derive(Clone, Debug)]
struct KeyPattern {
    pattern: Box<[u8]>,
    reads: bool,
    writes: bool,
}

/// A command rule, stored for ACL LIST, which shows rules in their original order.
#[derive(Clone, Debug)]
struct CommandRule {
    allows: bool,
    /// The name in lower case: a command, `container|subcommand`, `command|argument` or `@category`.
    name: Vec<u8>,
}

/// One set of rules of a user.
#[derive(Clone, Debug)]
pub(super) struct Selector {
    all_keys: bool,
    all_channels: bool,
    /// Whether no command was removed since all were allowed, so that the set need not be read.
    all_commands: bool,
    /// Whether the rules begin with `+@all`, which includes future commands. The description then begins with `+@all`,
    /// too.
    began_with_all: bool,
    /// The allowed commands and subcommands: one bit each, by index in the registry.
    commands: Box<[u64]>,
    /// Commands that are allowed only with these first arguments, by command index.
    first_arguments: BTreeMap<u16, Vec<Vec<u8>>>,
    command_rules: Vec<CommandRule>,
    keys: Vec<KeyPattern>,
    channels: Vec<Box<[u8]>>,
}

impl Selector {
    /// Creates a selector that allows nothing; channels are allowed if `grammar` allows them.
    pub(super) fn new(grammar: Grammar<'_>) -> Selector {
        Selector {
            all_keys: false,
            all_channels: grammar.allows_channels,
            all_commands: false,
            began_with_all: false,
            commands: vec![0; grammar.registry.all().len().div_ceil(64)].into(),
            first_arguments: BTreeMap::new(),
            command_rules: Vec::new(),
            keys: Vec::new(),
            channels: Vec::new(),
        }
    }

    /// Parses a selector from `text`: the rules, without the parentheses.
    ///
    /// # Errors
    /// Returns the error of the first invalid rule.
    pub(super) fn parse(text: &[u8], grammar: Grammar<'_>) -> Result<Selector, RuleError> {
        let mut selector = Selector::new(grammar);
        let rules = text.split(|&byte| has_spaces(&[byte])).filter(|rule| !rule.is_empty());
        rules.into_iter().try_for_each(|rule| selector.apply(rule, grammar))?;
        Ok(selector)
    }

    /// Whether the selector allows all calls, so that no call needs a check.
    pub(super) fn is_unrestricted(&self) -> bool {
        self.all_commands && self.all_keys && self.all_channels
    }

    /// Applies one rule.
    ///
    /// # Errors
    /// Returns the error of the rule; the selector is then unchanged.
    pub(super) fn apply(&mut self, rule: &[u8], grammar: Grammar<'_>) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            _ if is("allkeys") || is("~*") => self.set_all_keys(true),
            _ if is("resetkeys") => self.set_all_keys(false),
            _ if is("allchannels") || is("&*") => self.set_all_channels(true),
            _ if is("resetchannels") => self.set_all_channels(false),
            _ if is("allcommands") || is("+@all") => self.set_all_commands(true),
            _ if is("nocommands") || is("-@all") => self.set_all_commands(false),
            [b'~', pattern @ ..] => return self.add_keys(pattern, true, true),
            [b'%', rest @ ..] => return self.add_keys_with_permission(rest),
            [b'&', pattern @ ..] => return self.add_channels(pattern),
            [b'+', b'@', ..] => return self.apply_category(&rule[1..], true, grammar.registry),
            [b'-', b'@', ..] => return self.apply_category(&rule[1..], false, grammar.registry),
            [b'+', name @ ..] => return self.allow_command(name, grammar.registry),
            [b'-', name @ ..] => return self.refuse_command(name, grammar.registry),
            _ => return Err(RuleError::Syntax),
        }
        Ok(())
    }

    fn set_all_keys(&mut self, all: bool) {
        self.all_keys = all;
        self.keys.clear();
    }

    pub(super) fn set_all_channels(&mut self, all: bool) {
        self.all_channels = all;
        self.channels.clear();
    }

    fn set_all_commands(&mut self, all: bool) {
        self.commands.fill(if all { u64::MAX } else { 0 });
        (self.all_commands, self.began_with_all) = (all, all);
        self.command_rules.clear();
        self.first_arguments.clear();
    }

    /// Adds `%R~pattern`, `%W~pattern` or `%RW~pattern`, given without the `%`.
    fn add_keys_with_permission(&mut self, rest: &[u8]) -> Result<(), RuleError> {
        let (mut reads, mut writes) = (false, false);
        let mut at = 0;
        while let Some(&letter) = rest.get(at) {
            at += 1;
            match letter {
                b'R' | b'r' if !reads => reads = true,
                b'W' | b'w' if !writes => writes = true,
                b'~' => break,
                _ => {
                    (reads, writes) = (false, false);
                    break;
                }
            }
        }
        self.add_keys(&rest[at..], reads, writes)
    }

    fn add_keys(&mut self, pattern: &[u8], reads: bool, writes: bool) -> Result<(), RuleError> {
        if self.all_keys {
            return Err(RuleError::KeysAfterAll);
        }
        if has_spaces(pattern) || !(reads || writes) {
            return Err(RuleError::Syntax);
        }
        match self.keys.iter_mut().find(|known| &*known.pattern == pattern) {
            Some(known) => {
                known.reads |= reads;
                known.writes |= writes;
            }
            None => self.keys.push(KeyPattern { pattern: pattern.into(), reads, writes }),
        }
        Ok(())
    }

    fn add_channels(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        if self.all_channels {
            return Err(RuleError::ChannelsAfterAll);
        }
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        if !self.channels.iter().any(|known| **known == *pattern) {
            self.channels.push(pattern.into());
        }
        Ok(())
    }

    fn apply_category(&mut self, name: &[u8], allows: bool, registry: &Registry) -> Result<(), RuleError> {
        let category = category_named(&name[1..]).ok_or(RuleError::UnknownCommand)?;
        self.record_rule(allows, name);
        // A category that contains a container includes its subcommands, which follow the container in the registry.
        for command in registry.all() {
            if command.spec.all_categories().contains(category) {
                self.set_command(command, allows, registry);
            }
        }
        Ok(())
    }

    /// Applies `-command` or `-container|subcommand`, given without the `-`.
    fn refuse_command(&mut self, name: &[u8], registry: &Registry) -> Result<(), RuleError> {
        match registry.find_full_declared(name) {
            Some(command) => {
                self.set_command(command, false, registry);
                self.record_rule(false, command.full_name.as_bytes());
            }
            None => {
                // The command does not exist here, so no bit changes, but the rule is stored for servers that have the
                // command.
                let name = redis_commands::known(name).ok_or(RuleError::UnknownCommand)?;
                self.record_rule(false, name.as_bytes());
            }
        }
        Ok(())
    }

    /// Applies `+command`, `+container|subcommand` or `+command|first-argument`, given without the `+`.
    fn allow_command(&mut self, name: &[u8], registry: &Registry) -> Result<(), RuleError> {
        let Some(bar) = name.iter().rposition(|&byte| byte == b'|') else {
            let Some(command) = registry.find_declared(name) else { return self.allow_absent(name) };
            self.set_command(command, true, registry);
            self.record_rule(true, command.full_name.as_bytes());
            return Ok(());
        };
        let (outer, argument) = (&name[..bar], &name[bar + 1..]);
        let Some(command) = registry.find_full_declared(outer) else { return self.allow_absent(name) };
        if command.is_subcommand {
            return Err(RuleError::SubcommandArgument);
        }
        if argument.is_empty() || has_spaces(argument) {
            return Err(RuleError::Syntax);
        }
        if command.subcommands.is_empty() {
            let arguments = self.first_arguments.entry(command.index).or_default();
            if !arguments.iter().any(|known| known.eq_ignore_ascii_case(argument)) {
                arguments.push(argument.to_vec());
            }
        } else {
            let Some(subcommand) = registry.find_in(command, argument) else {
                return self.allow_absent(name);
            };
            self.set_command(subcommand, true, registry);
        }
        self.record_rule(true, name);
        Ok(())
    }

    /// Stores a rule for a Redis command that ember does not have, optionally with a subcommand or a first argument.
    fn allow_absent(&mut self, name: &[u8]) -> Result<(), RuleError> {
        if redis_commands::known(name).is_none() {
            let bar = name.iter().rposition(|&byte| byte == b'|').ok_or(RuleError::UnknownCommand)?;
            let (outer, argument) = (&name[..bar], &name[bar + 1..]);
            let outer = redis_commands::known(outer).ok_or(RuleError::UnknownCommand)?;
            if outer.contains('|') {
                return Err(RuleError::SubcommandArgument);
            }
            if redis_commands::is_container(outer.as_bytes()) {
                return Err(RuleError::UnknownCommand);
            }
            if argument.is_empty() || has_spaces(argument) {
                return Err(RuleError::Syntax);
            }
        }
        self.record_rule(true, name);
        Ok(())
    }

    /// Allows or denies a command with all its subcommands.
    fn set_command(&mut self, command: &Command, allows: bool, registry: &Registry) {
        self.set_bit(command.index, allows);
        self.first_arguments.remove(&command.index);
        for &subcommand in &registry.get(command.index).subcommands {
            self.set_bit(subcommand, allows);
        }
    }

    fn set_bit(&mut self, index: u16, allows: bool) {
        let (word, bit) = (usize::from(index) / 64, 1 << (index % 64));
        if allows {
            self.commands[word] |= bit;
        } else {
            self.commands[word] &= !bit;
            self.all_commands = false;
        }
    }

    fn has_bit(&self, index: u16) -> bool {
        self.commands[usize::from(index) / 64] & 1 << (index % 64) != 0
    }

    /// Stores a rule for the description. It replaces earlier rules about the same command and its subcommands.
    fn record_rule(&mut self, allows: bool, name: &[u8]) {
        let name = name.to_ascii_lowercase();
        self.command_rules.retain(|known| {
            let rest = known.name.strip_prefix(&name[..]);
            !rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'|')
        });
        self.command_rules.push(CommandRule { allows, name });
    }

    // Functions that check calls.

    /// Checks whether the whole call is allowed.
    ///
    /// # Errors
    /// Returns the command, or the first key or channel, that is not allowed.
    pub(super) fn check(&self, command: &Command, args: Args<'_>) -> Result<(), Denial> {
        if !self.allows_command(command, args) {
            return Err(Denial::Command);
        }
        if !self.all_keys {
            self.check_keys(command, args)?;
        }
        if !self.all_channels {
            self.check_channels(command, args)?;
        }
        Ok(())
    }

    fn allows_command(&self, command: &Command, args: Args<'_>) -> bool {
        if self.all_commands || command.spec.flags.contains(Flags::NO_AUTH) || self.has_bit(command.index) {
            return true;
        }
        let (Some(allowed), Some(argument)) = (self.first_arguments.get(&command.index), args.get(1)) else {
            return false;
        };
        allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(argument))
    }

    /// Whether the selector allows reading every key.
    pub(super) fn reads_any_key(&self) -> bool {
        self.all_keys || self.keys.iter().any(|pattern| pattern.reads && *pattern.pattern == *b"*")
    }

    fn check_keys(&self, command: &Command, args: Args<'_>) -> Result<(), Denial> {
        // A call with fewer keys than its key count has no keys to check, as in Redis: its handler returns an error.
        if command.spec.miscounts_keys(args) {
            return Ok(());
        }
        for (position, flags) in command.spec.keys_with_flags(args) {
            if flags.contains(KeyFlags::NOT_KEY) {
                continue;
            }
            // If the kind of access to a key is unknown, all kinds are assumed.
            let reads = flags.contains(KeyFlags::ACCESS) || flags.is_empty();
            let writes =
                flags.is_empty() || flags.intersects(KeyFlags::INSERT | KeyFlags::DELETE | KeyFlags::UPDATE);
            let allows = |pattern: &KeyPattern| {
                (pattern.reads || !reads)
                    && (pattern.writes || !writes)
                    && glob::matches(&pattern.pattern, args.at(position), Case::Sensitive)
            };
            if !self.keys.iter().any(allows) {
                return Err(Denial::Key(position));
            }
        }
        Ok(())
    }

    fn check_channels(&self, command: &Command, args: Args<'_>) -> Result<(), Denial> {
        let (positions, is_pattern) = match command.spec.channels {
            Channels::None => return Ok(()),
            Channels::Published => (1..2, false),
            Channels::Subscribed => (1..args.len(), false),
            Channels::SubscribedPatterns => (1..args.len(), true),
        };
        for position in positions {
            if !self.allows_channel(args.at(position), is_pattern) {
                return Err(Denial::Channel(position));
            }
        }
        Ok(())
    }

    /// Whether a channel, or a pattern of channels to subscribe to, is allowed. The channels that a pattern would match
    /// are unknown, so the pattern itself must be in one of the rules.
    pub(super) fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        let allows = |pattern: &&[u8]| match is_pattern {
            true => *pattern == channel,
            false => glob::matches(pattern, channel, Case::Sensitive),
        };
        self.all_channels || self.channels.iter().map(|pattern| &**pattern).any(|pattern| allows(&pattern))
    }

    /// Whether the selector allows every channel.
    pub(super) fn allows_all_channels(&self) -> bool {
        self.all_channels
    }

    /// Returns the patterns of allowed channels.
    pub(super) fn channel_rules(&self) -> impl Iterator<Item = &[u8]> {
        self.channels.iter().map(|pattern| &**pattern)
    }

    // Functions that describe the rules.

    /// Returns the rules about commands, separated by spaces.
    pub(super) fn describe_commands(&self) -> Vec<u8> {
        let mut text = if self.began_with_all { b"+@all".to_vec() } else { b"-@all".to_vec() };
        for rule in &self.command_rules {
            text.extend_from_slice(if rule.allows { b" +" } else { b" -" });
            text.extend_from_slice(&rule.name);
        }
        text
    }

    /// Returns the rules about keys, separated by spaces.
    pub(super) fn describe_keys(&self) -> Vec<u8> {
        if self.all_keys {
            return b"~*".to_vec();
        }
        let described = self.keys.iter().map(|keys| {
            let prefix: &[u8] = match (keys.reads, keys.writes) {
                (true, false) => b"%R~",
                (false, true) => b"%W~",
                _ => b"~",
            };
            [prefix, &keys.pattern].concat()
        });
        described.collect::<Vec<_>>().join(&b' ')
    }

    /// Returns the rules about channels, separated by spaces.
    pub(super) fn describe_channels(&self) -> Vec<u8> {
        if self.all_channels {
            return b"&*".to_vec();
        }
        let described = self.channels.iter().map(|channels| [b"&", &**channels].concat());
        described.collect::<Vec<_>>().join(&b' ')
    }

    /// Returns all rules. Applied to a new selector, they result in an equal selector.
    pub(super) fn describe(&self) -> Vec<u8> {
        let mut parts = vec![self.describe_keys()];
        if !self.all_channels {
            parts.push(b"resetchannels".to_vec());
        }
        parts.extend([self.describe_channels(), self.describe_commands()]);
        parts.retain(|part| !part.is_empty());
        parts.join(&b' ')
    }
}

/// Returns the category of this name, ignoring case.
pub(crate) fn category_named(name: &[u8]) -> Option<Category> {
    let mut names = Category::NAMES.iter();
    names.find(|(_, known)| known.as_bytes().eq_ignore_ascii_case(name)).map(|&(category, _)| category)
}
