//! What a proof about a script's calls asks of the server's commands.

use emberkv_core::spec::Spec;

/// A command that a script may call.
#[derive(Clone, Copy, Debug)]
pub struct Callable {
    /// Its facts.
    pub spec: &'static Spec,
    /// Whether it touches no shards but those of the keys in its arguments.
    pub is_contained: bool,
}

/// The table of all commands.
pub trait Commands: Sync {
    /// The command of this name, in any case.
    fn find(&self, name: &[u8]) -> Option<Callable>;

    /// The subcommand of this name of the command `container`, both in any case.
    fn find_in(&self, container: &[u8], name: &[u8]) -> Option<Callable>;

    /// Whether the command of this name has subcommands.
    fn is_container(&self, name: &[u8]) -> bool;
}
