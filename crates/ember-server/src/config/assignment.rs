//! What a source of the configuration states: values of parameters, and directives that only files have.

use super::fields::Config;
use super::parameter::Parameter;
use super::rename::RenameDirective;
use super::users::UserDirective;

/// What a line of a source states.
#[derive(Debug)]
pub(super) enum Statement {
    /// The value of a parameter, as a text.
    Value(&'static Parameter, String),
    /// `user name rule …`: each line adds a user. No parameter: CONFIG does not know it.
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
    /// Where it stands: `a.conf:12`, `EMBER_PORT`, `--port`. Errors begin with it.
    pub(super) origin: String,
}

/// Several mistakes, each a line that says where it is.
pub(super) type Mistakes = Vec<String>;

impl Assignment {
    /// The value of a parameter.
    pub(super) fn value(parameter: &'static Parameter, text: String, origin: String) -> Assignment {
        Assignment { statement: Statement::Value(parameter, text), origin }
    }

    /// The parameter whose value it is.
    pub(super) fn parameter(&self) -> Option<&'static Parameter> {
        match &self.statement {
            Statement::Value(parameter, _) => Some(parameter),
            Statement::User(_) | Statement::Rename { .. } | Statement::Retired(_) => None,
        }
    }

    /// Writes what is stated into `config`.
    ///
    /// # Errors
    /// One line which names the origin and, where the origin does not, the parameter.
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
            Statement::Retired(name) => config.stored.note_retired(name),
        }
        Ok(())
    }
}

/// The configuration of the defaults and then what the statements say. Files with passwords are not read.
///
/// # Errors
/// All mistakes: those of the statements that could not be read, and of those that cannot be.
pub(super) fn apply(statements: &[Result<Assignment, String>]) -> Result<Config, Mistakes> {
    let mut config = Config::default();
    let mut mistakes = Mistakes::new();
    for statement in statements {
        let applied = statement.as_ref().map_err(String::clone).and_then(|stated| stated.apply(&mut config));
        mistakes.extend(applied.err());
    }
    if mistakes.is_empty() { Ok(config) } else { Err(mistakes) }
}
