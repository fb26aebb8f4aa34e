//! The registry of all commands by name, those of ember-core and of the server, with precomputed properties for
//! dispatch.

use ember_protocol::Args;
use ember_scripting::commands::{Callable, Commands};
use emberkv_core::call::{DataCommand, Run};
use emberkv_core::commands::FAMILIES as DATA_FAMILIES;
use emberkv_core::dispatch::Access;
use emberkv_core::error::{CommandError, quoted, quoted_up_to};
use emberkv_core::spec::{self, Example, Flags, Group, Spec};

/// The way in which a command is executed.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// ember-core executes the command on the keyspace.
    Data(&'static DataCommand),
    /// The server executes the command; the executor has the handler.
    Server,
    /// The command only contains subcommands, so it cannot be called.
    Container,
}

/// A command or subcommand.
pub(crate) struct Command {
    /// The command's specification.
    pub(crate) spec: &'static Spec,
    /// The name in calls, which ignore its case: that of the specification unless `rename-command` has changed it.
    name: &'static str,
    /// The name of the specification in lower case; for a subcommand, with its container: `client|list`.
    pub(crate) full_name: String,
    /// The way in which the command is executed.
    pub(crate) handler: Handler,
    /// The locks that the command's keys need.
    pub(crate) access: Access,
    /// Whether calls take so short and constant a time that the calls of one batch share a clock reading.
    pub(crate) is_quick: bool,
    /// The indexes of the command's subcommands in the registry.
    pub(crate) subcommands: Vec<u16>,
    /// The command's index in the registry.
    pub(crate) index: u16,
    /// Whether this is a subcommand.
    pub(crate) is_subcommand: bool,
    /// The index of the command from which this one was derived: GET for GET.WATCH.
    pub(crate) base: Option<u16>,
    /// The index of the command that watches this one: GET.WATCH for GET.
    pub(crate) watched_by: Option<u16>,
}

impl Command {
    /// Returns whether the command may change keys.
    pub(crate) fn writes(&self) -> bool {
        self.spec.flags.contains(Flags::WRITE)
    }

    /// Returns whether the command is a data command that runs under shard locks, so that it needs neither exclusive
    /// access nor other calls.
    pub(crate) fn runs_on_keys(&self) -> bool {
        let Handler::Data(data) = self.handler else { return false };
        !matches!(data.run, Run::Exclusive(_) | Run::Keyspace(_) | Run::LongKeyspace(_) | Run::Container)
    }

    /// Returns whether the command can be watched.
    pub(crate) fn is_watchable(&self) -> bool {
        let Handler::Data(data) = self.handler else { return false };
        let is_blocking = matches!(data.run, Run::Blocking(_));
        self.runs_on_keys() && !is_blocking && !self.is_subcommand && self.spec.is_deterministic_read()
    }

    /// Returns whether the command accesses only the shards of the keys in its arguments.
    pub(crate) fn is_contained(&self) -> bool {
        let spec = self.spec;
        match self.handler {
            Handler::Data(data) => matches!(
                data.run,
                Run::Keys(_) | Run::Prepared(_) | Run::Long(_) | Run::KeysOrLong { .. } | Run::Blocking(_)
            ),
            // A fast command that may be called before the data set is loaded does not access it: TIME, LASTSAVE, ROLE.
            Handler::Server => {
                matches!(spec.group, Group::Connection | Group::PubSub)
                    || (spec.group == Group::Server && spec.flags.contains(Flags::LOADING.union(Flags::FAST)))
            }
            Handler::Container => false,
        }
    }
}

/// Families of commands whose handlers are of type `H`; containers have no handler.
pub(crate) type Families<H> = &'static [&'static [&'static [spec::Command<Option<H>>]]];

/// The table of all commands, with lookups by name.
pub(crate) struct Registry {
    commands: Vec<Command>,
    /// The index of commands by the names used in calls.
    called: Names,
    /// The index of commands by the names of their specifications; `None` if no command was renamed or removed.
    declared: Option<Names>,
}

/// A hash table with open addressing by [`name_hash`]. A slot contains an index plus 1, or 0 if it is empty; at most a
/// quarter of the slots are used.
#[derive(Default)]
struct Names(Vec<u16>);

/// Returns a hash of a command's name that ignores case.
#[inline]
fn name_hash(name: &[u8]) -> usize {
    let mut hash = name.len() as u64;
    for &byte in name {
        hash = (hash ^ u64::from(byte | 0x20)).wrapping_mul(0x0100_0000_01B3);
    }
    (hash ^ hash >> 17) as usize
}

impl Registry {
    /// Builds the registry from the families of ember-core and of the server. Returns it with the server's handlers, by
    /// command index.
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

    /// Adds the commands that a template defines: one for each watchable command.
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

    /// Renames the command called `from` to `to`, or removes it if `to` is empty. ACL rules still use the old name.
    /// Must be called before the registry is shared.
    ///
    /// # Errors
    /// Returns a message if no command is called `from`, or if another command is already called `to`.
    pub(crate) fn rename(&mut self, from: &str, to: &str) -> Result<(), String> {
        let found = self.find(from.as_bytes()).map(|command| (command.index, command.name));
        let (index, name) = found.ok_or_else(|| format!("there is no command '{from}'"))?;
        let mut left: Vec<_> = self.available().collect();
        left.retain(|command| command.index != index);
        // Removed commands are checked, too: files may use both names of a command, so both must be unambiguous.
        let others = self.top_level().filter(|command| command.index != index);
        if others
            .flat_map(|command| [command.name, command.spec.name])
            .any(|name| name.eq_ignore_ascii_case(to))
        {
            return Err(format!(
                "'{name}' cannot be renamed to '{to}', which is the name of another command"
            ));
        }
        let declared = self.top_level().map(|command| (command.spec.name, command.index)).collect::<Vec<_>>();
        let mut named: Vec<_> = left.iter().map(|command| (command.name, command.index)).collect();
        if !to.is_empty() {
            // The name is leaked, because all names live as long as the process.
            let to: &'static str = to.to_owned().leak();
            named.push((to, index));
            self.commands[usize::from(index)].name = to;
        }
        self.called = Names::of(&named);
        self.declared.get_or_insert_with(|| Names::of(&declared));
        Ok(())
    }

    /// Returns whether a command or subcommand can be called, that is, whether `rename-command` has not removed it.
    pub(crate) fn is_available(&self, command: &Command) -> bool {
        let top = command.full_name.split('|').next().unwrap_or_default();
        self.find_declared(top.as_bytes()).is_some_and(|top| self.is_called(top))
    }

    fn is_called(&self, command: &Command) -> bool {
        self.find(command.name.as_bytes()).is_some_and(|found| found.index == command.index)
    }

    /// Returns the name of a top-level command in calls.
    pub(crate) fn called(&self, command: &Command) -> &'static str {
        self.get(command.index).name
    }

    /// Returns all commands and subcommands.
    pub(crate) fn all(&self) -> &[Command] {
        &self.commands
    }

    /// Returns all commands except subcommands.
    pub(crate) fn top_level(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|command| !command.is_subcommand)
    }

    /// Returns all commands except subcommands and removed ones.
    pub(crate) fn available(&self) -> impl Iterator<Item = &Command> {
        self.top_level().filter(|command| self.is_called(command))
    }

    /// Returns the command at an index from [`Command::index`] or [`Command::subcommands`].
    #[inline]
    pub(crate) fn get(&self, index: u16) -> &Command {
        &self.commands[usize::from(index)]
    }

    /// Returns the top-level command that is called `name`, ignoring case.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Command> {
        let is_it = |index| self.get(index).name.as_bytes().eq_ignore_ascii_case(name);
        self.called.find(name, is_it).map(|index| self.get(index))
    }

    /// Returns the top-level command whose specification has this name, ignoring case, even if it was renamed.
    pub(crate) fn find_declared(&self, name: &[u8]) -> Option<&Command> {
        let Some(declared) = &self.declared else { return self.find(name) };
        let is_it = |index| self.get(index).spec.name.as_bytes().eq_ignore_ascii_case(name);
        declared.find(name, is_it).map(|index| self.get(index))
    }

    /// Returns the command, or for `container|subcommand` the subcommand, that is called `name`, ignoring case.
    pub(crate) fn find_full(&self, name: &[u8]) -> Option<&Command> {
        self.find_by(name, |name| self.find(name))
    }

    /// Like [`Registry::find_full`], but searches the names of specifications.
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

    /// Returns the subcommand of `container` with this name, ignoring case.
    pub(crate) fn find_in(&self, container: &Command, name: &[u8]) -> Option<&Command> {
        let mut subcommands = container.subcommands.iter().map(|&index| self.get(index));
        subcommands.find(|command| command.spec.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Returns the command of a call, if it exists and accepts the number of arguments.
    ///
    /// # Errors
    /// Returns Redis's error: unknown command, unknown subcommand, or wrong number of arguments.
    pub(crate) fn resolve(&self, args: Args<'_>) -> Result<&Command, CommandError> {
        self.find(args.at(0))
            .ok_or_else(|| unknown_command(args))
            .and_then(|command| self.check(command, args))
    }

    /// Like [`Registry::resolve`], for a call in a file, which may have been written while commands had other names.
    ///
    /// # Errors
    /// Returns the errors of [`Registry::resolve`].
    pub(crate) fn resolve_in_file(&self, args: Args<'_>) -> Result<&Command, CommandError> {
        self.find_declared(args.at(0))
            .or_else(|| self.find(args.at(0)))
            .ok_or_else(|| unknown_command(args))
            .and_then(|command| self.check(command, args))
    }

    /// Like [`Registry::resolve`], for a call whose top-level command is already known.
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
            if command.spec.name == "get"
                && is_get_as_of(args)
                && let Some(as_of) = self.find_declared(b"asof").filter(|as_of| self.is_available(as_of))
            {
                return Ok(as_of);
            }
            return Err(CommandError::WrongArity(command.full_name.clone().into()));
        }
        Ok(command)
    }
}

/// Returns whether a specification is a template, which defines one command per watchable command; the template's name
/// is the suffix of their names.
fn is_template(spec: &Spec) -> bool {
    spec.name.starts_with('.')
}

/// Returns the specification of a command derived from a template. If the template has no arguments, those of the base
/// are used. The command is in all categories of its base.
fn derived_spec(base: &Spec, template: &Spec) -> &'static Spec {
    // The text is leaked, because all specifications live as long as the process.
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
            // The derived command is not fast, because it takes the locks of all keys.
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
    /// Builds the hash table of these names.
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

    /// Returns the index whose name `is_it` accepts.
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

/// The maximum number of bytes of an unknown command's arguments, including quotes and spaces, that the error repeats.
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

/// Returns whether a call has the form `GET key AS OF moment`, under whatever name.
pub(crate) fn is_get_as_of(args: Args<'_>) -> bool {
    let is = |at: usize, word: &[u8]| args.at(at).eq_ignore_ascii_case(word);
    args.len() == 5 && is(2, b"AS") && is(3, b"OF") && !is(0, b"ASOF")
}

/// Returns whether a request begins an HTTP request, whose body would otherwise be executed as commands: a web page can
/// make a browser send such requests to a server on the same machine.
pub(crate) fn is_http(args: Args<'_>) -> bool {
    args.at(0).eq_ignore_ascii_case(b"post") || args.at(0).eq_ignore_ascii_case(b"host:")
}

/// Returns Redis's error for a subcommand that checks its arguments itself.
pub(crate) fn wrong_subcommand(container: &str, name: &[u8]) -> CommandError {
    let after = format!("'. Try {container} HELP.");
    CommandError::quoting("ERR unknown subcommand or wrong number of arguments for '", quoted(name), &after)
}
