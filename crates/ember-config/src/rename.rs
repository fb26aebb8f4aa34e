//! The `rename-command name new-name` lines of configuration files.

/// A command that is renamed or disabled.
#[derive(Clone, Debug, PartialEq)]
pub struct RenameDirective {
    /// The command's current name.
    pub from: String,
    /// The new name; empty if the command is disabled.
    pub to: String,
    /// The file and line of the directive: `a.conf:12`.
    pub origin: String,
}
