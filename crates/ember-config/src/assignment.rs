//! The statements of a configuration source: values of parameters, and directives that only files have.

use super::fields::Config;
use super::parameter::Parameter;
use super::rename::RenameDirective;
use super::users::UserDirective;

/// The statement of one line.
#[derive(Debug)]
pub(super) enum Statement {
    /// The value of a parameter, as a text.
    Value(&'static Parameter, String),
    /// `user name rule …`: each line adds a user. Not a parameter, so CONFIG does not know it.
    User(Vec<String>),
    /// `rename-command name new-name`.
    Rename { from: String, to: String },
    /// A directive that Redis reads without any effect.
    Retired(&'static str),
}

/// A statement and its place.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(super) statement: Statement,
    /// Its place: `a.conf:12`, `EMBER_PORT`, `--port`. Errors begin with it.
    pub(super) origin: String,
}

/// Several mistakes, one line each, with their places.
pub(super) type Mistakes = Vec<String>;

impl Assignment {
    /// Returns the assignment of a value to a parameter.
    pub(super) fn value(parameter: &'static Parameter, text: String, origin: String) -> Assignment {
        Assignment { statement: Statement::Value(parameter, text), origin }
    }

    /// Returns the parameter, if this assigns one.
    pub(super) fn parameter(&self) -> Option<&'static Parameter> {
        match &self.statement {
            Statement::Value(parameter, _) => Some(parameter),
            Statement::User(_) | Statement::Rename { .. } | Statement::Retired(_) => None,
        }
    }

    /// Applies the statement to `config`.
    ///
    /// # Errors
    /// One line that names the origin and, where the origin does not, the parameter.
    pub(super) fn apply(&self, config: &mut Config) -> Result<(), String> {
        let origin = self.origin.clone();
        match &self.statement {
            Statement::Value(parameter, text) => {
                parameter.state(config, text).map_err(|error| format!("{origin}: {error}"))?;
            }
            Statement::User(words) => config.users.push(UserDirective { words: words.clone(), origin }),
            Statement::Rename { from, to } => {
                config.renames.push(RenameDirective { from: from.clone(), to: to.clone(), origin });
            }
            Statement::Retired(name) => config.stored.record_retired(name),
        }
        Ok(())
    }
}

/// Returns the defaults with all statements applied. Files with passwords are not read.
///
/// # Errors
/// All mistakes: unreadable statements, and invalid values.
pub(super) fn apply(statements: &[Result<Assignment, String>]) -> Result<Config, Mistakes> {
    let mut config = Config::default();
    let mut mistakes = Mistakes::new();
    for statement in statements {
        let applied = statement.as_ref().map_err(String::clone).and_then(|stated| stated.apply(&mut config));
        mistakes.extend(applied.err());
    }
    if mistakes.is_empty() { Ok(config) } else { Err(mistakes) }
}
