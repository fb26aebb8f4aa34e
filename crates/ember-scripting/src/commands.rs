//! The properties of the server's commands that the confinement check of scripts needs.

use emberkv_core::spec::Spec;

/// A command that a script may call.
#[derive(Clone, Copy, Debug)]
pub struct Callable {
    /// The command's specification.
    pub spec: &'static Spec,
    /// Whether the command accesses only the shards of the keys in its arguments.
    pub is_contained: bool,
}

/// The table of all commands.
pub trait Commands: Sync {
    /// Returns the command of this name, ignoring case.
    fn find(&self, name: &[u8]) -> Option<Callable>;

    /// Returns the subcommand of this name of the command `container`, ignoring case.
    fn find_in(&self, container: &[u8], name: &[u8]) -> Option<Callable>;

    /// Whether the command of this name has subcommands.
    fn is_container(&self, name: &[u8]) -> bool;
}
