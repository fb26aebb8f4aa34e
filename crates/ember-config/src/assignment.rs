//! The statements of a configuration source: values of parameters, and directives that only files have.

use super::fields::Config;
use super::parameter::Parameter;
use super::rename::RenameDirective;
use super::users::UserDirective;

/// A statement, without its origin.
#[derive(Debug)]
pub(super) enum Statement {
    /// A value of a parameter, as text.
    Value(&'static Parameter, String),
    /// `user name rule …`: adds a user. This is not a parameter, so CONFIG neither shows nor sets it.
    User(Vec<String>),
    /// `rename-command name new-name`: renames a command.
    Rename { from: String, to: String },
    /// A directive of older versions of Redis, which is accepted without effect.
    Retired(&'static str),
}

/// A statement and its origin.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(super) statement: Statement,
    /// Where the statement was found: `a.conf:12`, `EMBER_PORT`, `--port`. Errors begin with this text.
    pub(super) origin: String,
}

/// Error messages of invalid statements, one line each, with their origins.
pub(super) type Mistakes = Vec<String>;

impl Assignment {
    /// Creates the statement that sets `parameter` to `text`.
    pub(super) fn value(parameter: &'static Parameter, text: String, origin: String) -> Assignment {
        Assignment { statement: Statement::Value(parameter, text), origin }
    }

    /// Returns the parameter that the statement sets; `None` if it is a directive.
    pub(super) fn parameter(&self) -> Option<&'static Parameter> {
        match &self.statement {
            Statement::Value(parameter, _) => Some(parameter),
            Statement::User(_) | Statement::Rename { .. } | Statement::Retired(_) => None,
        }
    }

    /// Applies the statement to `config`.
    ///
    /// # Errors
    /// Returns one line that names the origin and, where the origin does not, the parameter.
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

/// Returns the default configuration with all statements applied. Does not read files with passwords.
///
/// # Errors
/// Returns all mistakes: statements that could not be parsed, and invalid values.
pub(super) fn apply(statements: &[Result<Assignment, String>]) -> Result<Config, Mistakes> {
    let mut config = Config::default();
    let mut mistakes = Mistakes::new();
    for statement in statements {
        let applied = statement.as_ref().map_err(String::clone).and_then(|stated| stated.apply(&mut config));
        mistakes.extend(applied.err());
    }
    if mistakes.is_empty() { Ok(config) } else { Err(mistakes) }
}
