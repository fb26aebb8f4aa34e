//! Lines `rename-command name new-name` of configuration files.

/// A command that gets another name, or none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RenameDirective {
    pub(crate) from: String,
    /// Empty to take the command away.
    pub(crate) to: String,
    /// Where it stands: `a.conf:12`.
    pub(crate) origin: String,
}
