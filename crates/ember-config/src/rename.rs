//! The `rename-command name new-name` lines of configuration files.

/// A command that is renamed or disabled.
#[derive(Clone, Debug, PartialEq)]
pub struct RenameDirective {
    /// The name of the command.
    pub from: String,
    /// Empty to disable the command.
    pub to: String,
    /// Its place: `a.conf:12`.
    pub origin: String,
}
