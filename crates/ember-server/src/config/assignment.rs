//! A value as a source of the configuration states it.

use super::fields::Config;
use super::parameter::{Kind, Parameter};
use super::users::UserDirective;
use super::words;

/// What stands for the directive where a line's parameter is asked for. It is none: CONFIG does not know it, and each line
/// adds a user.
pub(super) static USER_DIRECTIVE: Parameter = Parameter {
    name: "user",
    aliases: &[],
    kind: Kind::Fixed { accepts: &[""], reason: "a user is defined by a line of a file" },
    default: "",
    mutable: false,
    about: "A user: its name and its rules.",
};

/// One parameter and the text of its value, as a source of the configuration names it; or [`USER_DIRECTIVE`] and the
/// words of a user.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(super) parameter: &'static Parameter,
    pub(super) text: String,
    /// Where it stands: `a.conf:12`, `EMBER_PORT`, `--port`. Errors begin with it.
    pub(super) origin: String,
}

impl Assignment {
    /// Writes the value into `config`.
    ///
    /// # Errors
    /// One line which names the origin and, where the origin does not, the parameter.
    pub(super) fn apply(&self, config: &mut Config) -> Result<(), String> {
        if std::ptr::eq(self.parameter, &raw const USER_DIRECTIVE) {
            let words = words::split(&self.text).map_err(|error| format!("{}: {error}", self.origin))?;
            config.users.push(UserDirective { words, origin: self.origin.clone() });
            return Ok(());
        }
        self.parameter.state(config, &self.text).map_err(|error| format!("{}: {error}", self.origin))
    }
}

/// The configuration of the defaults and then `assignments`. Files with passwords are not read.
pub(super) fn apply(assignments: &[Assignment]) -> Result<Config, String> {
    let mut config = Config::default();
    for assignment in assignments {
        assignment.apply(&mut config)?;
    }
    Ok(config)
}
