//! The `rename-command name new-name` lines of configuration files.

/// A command that is renamed or disabled.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RenameDirective {
    pub(crate) from: String,
    /// Empty to disable the command.
    pub(crate) to: String,
    /// Its place: `a.conf:12`.
    pub(crate) origin: String,
}
