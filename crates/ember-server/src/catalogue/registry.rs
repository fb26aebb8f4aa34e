//! All commands by name: the keyspace's and the server's own, with what dispatch wants to know ready at hand.

use ember_protocol::Args;
use ember_scripting::commands::{Callable, Commands};
use emberkv_core::call::{DataCommand, Run};
use emberkv_core::commands::FAMILIES as DATA_FAMILIES;
use emberkv_core::dispatch::Access;
use emberkv_core::error::{CommandError, quoted, quoted_up_to};
use emberkv_core::spec::{self, Example, Flags, Group, Spec};

/// How a command is run.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// On the keyspace, by the core.
    Data(&'static DataCommand),
    /// By the server; the executor has its handler.
    Server,
    /// Not itself: it has subcommands.
    Container,
}

/// A command or subcommand.
pub(crate) struct Command {
    /// Its facts.
    pub(crate) spec: &'static Spec,
    /// What it is called by, in any case: the name of its facts unless `rename-command` has given it another one.
    name: &'static str,
    /// The name of its facts in lower case, a subcommand's with its container's: `client|list`.
    pub(crate) full_name: String,
    /// What runs it.
    pub(crate) handler: Handler,
    /// Which locks its keys need.
    pub(crate) access: Access,
    /// Whether a call takes so little and so constant time that calls of one batch share one reading of the clock.
    pub(crate) is_quick: bool,
    /// The indexes of its subcommands in the registry.
    pub(crate) subcommands: Vec<u16>,
    /// Its own index in the registry.
    pub(crate) index: u16,
    /// Whether it stands in a container.
    pub(crate) is_subcommand: bool,
    /// The index of the command that it was derived from: of GET for GET.WATCH.
    pub(crate) base: Option<u16>,
    /// The index of the command that watches it: of GET.WATCH for GET.
    pub(crate) watched_by: Option<u16>,
}

impl Command {
    /// Whether it may change keys.
    pub(crate) fn writes(&self) -> bool {
        self.spec.flags.contains(Flags::WRITE)
    }

    /// Whether it can be watched.
    pub(crate) fn is_watchable(&self) -> bool {
        let Handler::Data(data) = self.handler else { return false };
        let runs_on_keys = matches!(
            data.run,
            Run::Keys(_)
                | Run::Prepared(_)
                | Run::Long(_)
                | Run::KeysOrLong { .. }
                | Run::KeysOrAllShards { .. }
        );
        runs_on_keys && !self.is_subcommand && self.spec.is_deterministic_read()
    }

    /// Whether it touches no shards but those of the keys in its arguments.
    pub(crate) fn is_contained(&self) -> bool {
        let spec = self.spec;
        match self.handler {
            Handler::Data(data) => matches!(
                data.run,
                Run::Keys(_) | Run::Prepared(_) | Run::Long(_) | Run::KeysOrLong { .. } | Run::Blocking(_)
            ),
            // What is fast and may be called while there is no data yet has nothing to do with it: TIME, LASTSAVE, ROLE.
            Handler::Server => {
                matches!(spec.group, Group::Connection | Group::PubSub)
                    || (spec.group == Group::Server && spec.flags.contains(Flags::LOADING.union(Flags::FAST)))
            }
            Handler::Container => false,
        }
    }
}

/// Families of commands whose handlers are of type `H`; a container has none.
pub(crate) type Families<H> = &'static [&'static [&'static [spec::Command<Option<H>>]]];

/// The table of all commands.
pub(crate) struct Registry {
    commands: Vec<Command>,
    /// The commands by what they are called.
    called: Names,
    /// The commands by the names of their facts, if any is called otherwise, or not at all.
    declared: Option<Names>,
}

/// Open addressing by [`name_hash`]: index + 1, or 0. At most a quarter full.
#[derive(Default)]
struct Names(Vec<u16>);

/// A hash of a command's name that does not distinguish the case of letters.
#[inline]
fn name_hash(name: &[u8]) -> usize {
    let mut hash = name.len() as u64;
    for &byte in name {
        hash = (hash ^ u64::from(byte | 0x20)).wrapping_mul(0x0100_0000_01B3);
    }
    (hash ^ hash >> 17) as usize
}

impl Registry {
    /// The table made of the core's families and of the server's own, and the handlers of these by the indexes of their
    /// commands.
    pub(crate) fn new<H: Copy>(server_families: Families<H>) -> (Registry, Vec<Option<H>>) {
        let mut registry = Registry { commands: Vec::new(), called: Names::default(), declared: None };
        for command in DATA_FAMILIES.iter().copied().flatten().copied().flatten() {
            registry.add_data(command, None);
        }
        let mut handlers = vec![None; registry.commands.len()];
        let server_commands = || server_families.iter().copied().flatten().copied().flatten();
        for command in server_commands().filter(|command| !is_template(&command.spec)) {
            registry.add_server(command, None, &mut handlers);
        }
        for template in server_commands().filter(|command| is_template(&command.spec)) {
            registry.derive(template, &mut handlers);
        }
        let named = registry.top_level().map(|command| (command.spec.name, command.index));
        registry.called = Names::of(&named.collect::<Vec<_>>());
        (registry, handlers)
    }

    fn add_data(&mut self, command: &'static DataCommand, container: Option<&str>) -> u16 {
        let handler = match command.run {
            Run::Container => Handler::Container,
            Run::Keys(_)
            | Run::Prepared(_)
            | Run::Long(_)
            | Run::KeysOrLong { .. }
            | Run::KeysOrAllShards { .. }
            | Run::Blocking(_)
            | Run::Keyspace(_)
            | Run::LongKeyspace(_)
            | Run::Exclusive(_) => Handler::Data(command),
        };
        let index = self.add(&command.spec, handler, container);
        for subcommand in command.subcommands {
            let subcommand = self.add_data(subcommand, Some(command.spec.name));
            self.commands[usize::from(index)].subcommands.push(subcommand);
        }
        index
    }

    fn add_server<H: Copy>(
        &mut self,
        command: &'static spec::Command<Option<H>>,
        container: Option<&str>,
        handlers: &mut Vec<Option<H>>,
    ) -> u16 {
        let handler = if command.run.is_some() { Handler::Server } else { Handler::Container };
        let index = self.add(&command.spec, handler, container);
        handlers.push(command.run);
        for subcommand in command.subcommands {
            let subcommand = self.add_server(subcommand, Some(command.spec.name), handlers);
            self.commands[usize::from(index)].subcommands.push(subcommand);
        }
        index
    }

    /// Adds what a template stands for: a command for each that can be watched.
    fn derive<H: Copy>(
        &mut self,
        template: &'static spec::Command<Option<H>>,
        handlers: &mut Vec<Option<H>>,
    ) {
        let bases: Vec<u16> = self
            .commands
            .iter()
            .filter(|command| command.is_watchable())
            .map(|command| command.index)
            .collect();
        for base in bases {
            let spec = derived_spec(self.get(base).spec, &template.spec);
            let index = self.add(spec, Handler::Server, None);
            handlers.push(template.run);
            self.commands[usize::from(index)].base = Some(base);
            if !spec.keys.is_empty() {
                self.commands[usize::from(base)].watched_by = Some(index);
            }
        }
    }

    fn add(&mut self, spec: &'static Spec, handler: Handler, container: Option<&str>) -> u16 {
        let index = u16::try_from(self.commands.len()).expect("there are fewer commands than 65,536");
        let full_name = match container {
            Some(container) => format!("{container}|{}", spec.name),
            None => spec.name.to_owned(),
        };
        let access = Access::of(spec);
        self.commands.push(Command {
            spec,
            name: spec.name,
            full_name,
            handler,
            access,
            is_quick: matches!(access, Access::One(_))
                && (spec.flags.contains(Flags::FAST) || spec.complexity == "O(1)"),
            subcommands: Vec::new(),
            index,
            is_subcommand: container.is_some(),
            base: None,
            watched_by: None,
        });
        index
    }

    /// Gives the command called `from` the name `to`, or takes it away if that is empty. Rules of users go on
    /// naming it as before. To be done before anything is shared.
    ///
    /// # Errors
    /// When nothing is called `from`, or something `to` already.
    pub(crate) fn rename(&mut self, from: &str, to: &str) -> Result<(), String> {
        let found = self.find(from.as_bytes()).map(|command| (command.index, command.name));
        let (index, name) = found.ok_or_else(|| format!("there is no command '{from}'"))?;
        let mut left: Vec<_> = self.available().collect();
        left.retain(|command| command.index != index);
        // Also a name that was taken away: files say commands by both names, and must mean one.
        let others = self.top_level().filter(|command| command.index != index);
        if others
            .flat_map(|command| [command.name, command.spec.name])
            .any(|name| name.eq_ignore_ascii_case(to))
        {
            return Err(format!("'{name}' cannot be called '{to}': that is the name of another command"));
        }
        let declared = self.top_level().map(|command| (command.spec.name, command.index)).collect::<Vec<_>>();
        let mut named: Vec<_> = left.iter().map(|command| (command.name, command.index)).collect();
        if !to.is_empty() {
            // As long as the process, as all names are.
            let to: &'static str = to.to_owned().leak();
            named.push((to, index));
            self.commands[usize::from(index)].name = to;
        }
        self.called = Names::of(&named);
        self.declared.get_or_insert_with(|| Names::of(&declared));
        Ok(())
    }

    /// Whether a command or subcommand has not been taken away.
    pub(crate) fn is_available(&self, command: &Command) -> bool {
        let top = command.full_name.split('|').next().unwrap_or_default();
        self.find_declared(top.as_bytes()).is_some_and(|top| self.is_called(top))
    }

    fn is_called(&self, command: &Command) -> bool {
        self.find(command.name.as_bytes()).is_some_and(|found| found.index == command.index)
    }

    /// What a top-level command is called by.
    pub(crate) fn called(&self, command: &Command) -> &'static str {
        self.get(command.index).name
    }

    /// All commands and subcommands.
    pub(crate) fn all(&self) -> &[Command] {
        &self.commands
    }

    /// All commands but subcommands.
    pub(crate) fn top_level(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|command| !command.is_subcommand)
    }

    /// All commands but subcommands that have not been taken away.
    pub(crate) fn available(&self) -> impl Iterator<Item = &Command> {
        self.top_level().filter(|command| self.is_called(command))
    }

    /// The command at an index taken from [`Command::index`] or [`Command::subcommands`].
    #[inline]
    pub(crate) fn get(&self, index: u16) -> &Command {
        &self.commands[usize::from(index)]
    }

    /// The top-level command called so, in any case.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Command> {
        let is_it = |index| self.get(index).name.as_bytes().eq_ignore_ascii_case(name);
        self.called.find(name, is_it).map(|index| self.get(index))
    }

    /// The top-level command whose facts have this name, in any case, whatever it is called now.
    pub(crate) fn find_declared(&self, name: &[u8]) -> Option<&Command> {
        let Some(declared) = &self.declared else { return self.find(name) };
        let is_it = |index| self.get(index).spec.name.as_bytes().eq_ignore_ascii_case(name);
        declared.find(name, is_it).map(|index| self.get(index))
    }

    /// The command or, named `container|subcommand`, the subcommand of this name, in any case.
    pub(crate) fn find_full(&self, name: &[u8]) -> Option<&Command> {
        self.find_by(name, |name| self.find(name))
    }

    /// As [`Registry::find_full`], by the names of facts.
    pub(crate) fn find_full_declared(&self, name: &[u8]) -> Option<&Command> {
        self.find_by(name, |name| self.find_declared(name))
    }

    fn find_by<'r>(
        &'r self,
        name: &[u8],
        find: impl Fn(&[u8]) -> Option<&'r Command>,
    ) -> Option<&'r Command> {
        match name.iter().position(|&byte| byte == b'|') {
            None => find(name),
            Some(at) => find(&name[..at]).and_then(|container| self.find_in(container, &name[at + 1..])),
        }
    }

    /// The subcommand of `container` of this name, in any case.
    pub(crate) fn find_in(&self, container: &Command, name: &[u8]) -> Option<&Command> {
        let mut subcommands = container.subcommands.iter().map(|&index| self.get(index));
        subcommands.find(|command| command.spec.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// The command that a call means, if there is one and it takes that number of arguments.
    ///
    /// # Errors
    /// In Redis's words: unknown command, unknown subcommand, or wrong number of arguments.
    pub(crate) fn resolve(&self, args: Args<'_>) -> Result<&Command, CommandError> {
        self.find(args.at(0))
            .ok_or_else(|| unknown_command(args))
            .and_then(|command| self.check(command, args))
    }

    /// As [`Registry::resolve`] for a call that a file has, from a time before or after commands got other names.
    ///
    /// # Errors
    /// As [`Registry::resolve`].
    pub(crate) fn resolve_in_file(&self, args: Args<'_>) -> Result<&Command, CommandError> {
        self.find_declared(args.at(0))
            .or_else(|| self.find(args.at(0)))
            .ok_or_else(|| unknown_command(args))
            .and_then(|command| self.check(command, args))
    }

    /// As [`Registry::resolve`] for a call whose first word was found already.
    pub(crate) fn check<'r>(
        &'r self,
        command: &'r Command,
        args: Args<'_>,
    ) -> Result<&'r Command, CommandError> {
        let mut command = command;
        if !command.subcommands.is_empty()
            && let Some(name) = args.get(1)
        {
            command = self.find_in(command, name).ok_or_else(|| unknown_subcommand(command, name))?;
        }
        if !command.spec.accepts(args.len()) || matches!(command.handler, Handler::Container) {
            return Err(CommandError::WrongArity(command.full_name.clone().into()));
        }
        Ok(command)
    }
}

/// Whether facts are those of a template: of a command for each that can be watched, whose name ends with this one.
fn is_template(spec: &Spec) -> bool {
    spec.name.starts_with('.')
}

/// The facts of a command that a template stands for. One without arguments of its own takes those of its base, and is in
/// all categories that its base is in.
fn derived_spec(base: &Spec, template: &Spec) -> &'static Spec {
    // As long as the process, as all facts are.
    let text = |text: String| -> &'static str { text.leak() };
    let name = text(format!("{}{}", base.name, template.name));
    let (_, arguments) = if template.syntax.is_empty() { base } else { template }
        .example
        .call
        .split_once(' ')
        .unwrap_or_default();
    let call = text(format!("{} {arguments}", name.to_uppercase()));
    let spec = if template.syntax.is_empty() {
        Spec {
            name,
            summary: template.summary,
            since: template.since,
            // It is no quick one: what it does takes locks of all keys.
            flags: template.flags.union(base.flags.difference(Flags::FAST)),
            categories: template.categories.union(base.all_categories()),
            elements: None,
            tips: template.tips,
            deprecated: None,
            history: &[],
            example: Example { given: base.example.given, call, reply: template.example.reply },
            ..*base
        }
    } else {
        Spec { name, example: Example { call, ..template.example }, ..*template }
    };
    Box::leak(Box::new(spec))
}

impl Names {
    /// The table of these names.
    fn of(named: &[(&str, u16)]) -> Names {
        let mut buckets = vec![0; (named.len() * 4).next_power_of_two()];
        for (name, index) in named {
            let mut bucket = name_hash(name.as_bytes()) & (buckets.len() - 1);
            while buckets[bucket] != 0 {
                bucket = (bucket + 1) & (buckets.len() - 1);
            }
            buckets[bucket] = index + 1;
        }
        Names(buckets)
    }

    /// The index with this name, as `is_it` compares.
    #[inline]
    fn find(&self, name: &[u8], is_it: impl Fn(u16) -> bool) -> Option<u16> {
        let mut bucket = name_hash(name) & (self.0.len() - 1);
        loop {
            let index = self.0[bucket].checked_sub(1)?;
            if is_it(index) {
                return Some(index);
            }
            bucket = (bucket + 1) & (self.0.len() - 1);
        }
    }
}

impl Commands for Registry {
    fn find(&self, name: &[u8]) -> Option<Callable> {
        self.find(name).map(callable)
    }

    fn find_in(&self, container: &[u8], name: &[u8]) -> Option<Callable> {
        self.find(container).and_then(|container| self.find_in(container, name)).map(callable)
    }

    fn is_container(&self, name: &[u8]) -> bool {
        self.find(name).is_some_and(|command| !command.subcommands.is_empty())
    }
}

fn callable(command: &Command) -> Callable {
    Callable { spec: command.spec, is_contained: command.is_contained() }
}

/// Bytes of an unknown command's arguments together, quotes and blanks included, that the error repeats.
const ARGUMENTS_QUOTED_MAX: usize = 128;

fn unknown_command(args: Args<'_>) -> CommandError {
    let mut list = Vec::new();
    for arg in args.skip(1).iter() {
        if list.len() >= ARGUMENTS_QUOTED_MAX {
            break;
        }
        let arg = quoted_up_to(arg, ARGUMENTS_QUOTED_MAX - list.len());
        list.extend_from_slice(&[b"'", arg, b"' "].concat());
    }
    [b"ERR unknown command '", quoted(args.at(0)), b"', with args beginning with: ", &list].concat().into()
}

fn unknown_subcommand(container: &Command, name: &[u8]) -> CommandError {
    let container = container.spec.name.to_ascii_uppercase();
    [b"ERR unknown subcommand '", quoted(name), b"'. Try ", container.as_bytes(), b" HELP."].concat().into()
}

/// Whether a request is the beginning of one over HTTP, whose body would otherwise be run as commands: a page in a
/// browser can make it send such requests to a server on its own machine.
pub(crate) fn is_http(args: Args<'_>) -> bool {
    args.at(0).eq_ignore_ascii_case(b"post") || args.at(0).eq_ignore_ascii_case(b"host:")
}

/// What Redis says of a subcommand that checks its arguments itself.
pub(crate) fn wrong_subcommand(container: &str, name: &[u8]) -> CommandError {
    let after = format!("'. Try {container} HELP.");
    CommandError::quoting("ERR unknown subcommand or wrong number of arguments for '", quoted(name), &after)
}
