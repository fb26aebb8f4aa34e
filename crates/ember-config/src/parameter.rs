//! A parameter of the configuration: its names, the form of its values, its default and its field.
//!
//! Flags, file directives, environment variables, CONFIG GET and SET, `--help` and the documentation are all derived
//! from this description. Every value has one text form, which CONFIG GET shows and [`Parameter::set`] reads.

use std::ops::RangeInclusive;

use super::fields::Config;
use super::stored::Form;
use super::value::{self, Secret};

/// The maximum length of a value in bytes, longer than any path or list of addresses.
pub(super) const VALUE_BYTES_MAX: usize = 4096;

/// A description of a parameter.
#[derive(Debug)]
pub(crate) struct Parameter {
    /// Redis's name if Redis has the parameter, otherwise ember's; lower case.
    pub name: &'static str,
    /// Alternative names, equivalent to `name` everywhere.
    pub aliases: &'static [&'static str],
    /// The form of the parameter's values and the field that stores them.
    pub kind: Kind,
    /// The default value, as text.
    pub default: &'static str,
    /// Whether CONFIG SET may change the parameter.
    pub mutable: bool,
    /// A description of the parameter, in one or more sentences.
    pub about: &'static str,
}

/// The form of a parameter's values, and access to its field.
#[derive(Debug)]
pub(crate) enum Kind {
    /// `yes` or `no`; as a flag without a value, `yes`.
    YesNo(Field<bool>),
    /// A decimal integer.
    Integer { range: RangeInclusive<i64>, get: fn(&Config) -> i64, set: fn(&mut Config, i64) },
    /// A number of bytes, with or without a unit.
    Memory { range: RangeInclusive<u64>, field: Field<u64> },
    /// An octal number from 0 to `max`.
    Octal { max: u32, field: Field<u32> },
    /// One of `names`; the field stores its position.
    Choice { names: &'static [&'static str], get: fn(&Config) -> usize, set: fn(&mut Config, usize) },
    /// The path of a file or directory; empty for none.
    Path(Field<String>),
    /// A password, or the user name for a password: shown by CONFIG GET, and redacted everywhere else. If the parameter
    /// `file` names a file, the secret is read from that file instead. Setting the value clears the file name, so that
    /// the later of the two settings takes effect.
    Secret { field: Field<Secret>, file: Option<Field<String>> },
    /// Words separated by white space.
    Words {
        shape: &'static str,
        get: fn(&Config) -> String,
        set: fn(&mut Config, &str) -> Result<(), String>,
    },
    /// Like `Words`, but each line of a configuration source adds words to the value of earlier lines. The first line
    /// replaces the default.
    Lines {
        shape: &'static str,
        get: fn(&Config) -> String,
        set: fn(&mut Config, &str) -> Result<(), String>,
        add: fn(&mut Config, &str) -> Result<(), String>,
    },
    /// A value that is checked, stored and shown, but has no effect in this version, for `reason`.
    Stored { form: Form, reason: &'static str },
    /// Accepts only values that describe this version's behavior: the first of `accepts`, or another spelling of the
    /// same value. Anything else is refused with `reason`.
    Fixed { accepts: &'static [&'static str], reason: &'static str },
}

/// Accessors for a field of [`Config`].
pub(crate) struct Field<T: 'static> {
    pub get: fn(&Config) -> &T,
    pub get_mut: fn(&mut Config) -> &mut T,
}

impl<T> std::fmt::Debug for Field<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Field")
    }
}

impl<T> Field<T> {
    fn set(&self, config: &mut Config, value: T) {
        *(self.get_mut)(config) = value;
    }
}

/// Names that Redis 7.2 does not know, for parameters that it knows under another name: ember's own names, and newer
/// spellings.
const OWN_NAMES: [&str; 8] = [
    "aof-rewrite-cpulist",
    "bgsave-cpulist",
    "bio-cpulist",
    "data-dir",
    "eviction-policy",
    "host",
    "max-memory",
    "server-cpulist",
];

impl Parameter {
    /// Creates a parameter that is checked, stored and shown, but has no effect, for `reason`.
    pub(super) const fn without_effect(
        name: &'static str,
        form: Form,
        default: &'static str,
        reason: &'static str,
        about: &'static str,
    ) -> Parameter {
        let kind = Kind::Stored { form, reason };
        Parameter { name, aliases: &[], kind, default, mutable: true, about }
    }

    /// Returns the parameter with alternative names added.
    pub(super) const fn or(self, aliases: &'static [&'static str]) -> Parameter {
        Parameter { aliases, ..self }
    }

    /// Returns the parameter, marked so that CONFIG SET cannot change it.
    pub(super) const fn at_start(self) -> Parameter {
        Parameter { mutable: false, ..self }
    }

    /// Returns all names, the canonical one first.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Returns the names that Redis also knows: the names that a glob in CONFIG GET matches.
    pub(crate) fn listed_names(&self) -> impl Iterator<Item = &'static str> {
        self.names().filter(|name| !OWN_NAMES.contains(name))
    }

    /// Returns the value in `config`, as the text that [`Self::set`] reads.
    pub(crate) fn get(&self, config: &Config) -> String {
        match &self.kind {
            Kind::YesNo(field) => if *(field.get)(config) { "yes" } else { "no" }.to_owned(),
            Kind::Integer { get, .. } => get(config).to_string(),
            Kind::Memory { field, .. } => (field.get)(config).to_string(),
            Kind::Octal { field, .. } => format!("{:o}", (field.get)(config)),
            Kind::Choice { names, get, .. } => names[get(config)].to_owned(),
            Kind::Path(field) => (field.get)(config).clone(),
            Kind::Secret { field, .. } => (field.get)(config).reveal().to_owned(),
            Kind::Words { get, .. } | Kind::Lines { get, .. } => get(config),
            Kind::Stored { .. } => match config.stored.get(self.name) {
                Some(value) => value.to_owned(),
                None => self.stored_default(),
            },
            Kind::Fixed { accepts, .. } => accepts[0].to_owned(),
        }
    }

    /// Sets the value in `config` from a text.
    ///
    /// # Errors
    /// Returns a sentence without the parameter's name; `config` is then unchanged.
    pub(crate) fn set(&self, config: &mut Config, text: &str) -> Result<(), String> {
        if text.len() > VALUE_BYTES_MAX {
            return Err(format!("argument is longer than {VALUE_BYTES_MAX} bytes"));
        }
        match &self.kind {
            Kind::YesNo(field) => field.set(config, value::parse_yes_no(text)?),
            Kind::Integer { range, set, .. } => set(config, value::parse_integer(text, range)?),
            Kind::Memory { range, field } => field.set(config, value::parse_memory(text, range)?),
            Kind::Octal { max, field } => field.set(config, value::parse_octal(text, *max)?),
            Kind::Choice { names, set, .. } => set(config, value::parse_choice(text, names)?),
            Kind::Path(_) if text.contains('\0') => return Err("argument contains a NUL byte".to_owned()),
            Kind::Path(field) => field.set(config, text.to_owned()),
            Kind::Secret { field, file } => {
                field.set(config, Secret::new(text));
                if let Some(file) = file {
                    file.set(config, String::new());
                }
            }
            Kind::Words { set, .. } | Kind::Lines { set, .. } => set(config, text)?,
            Kind::Stored { form, .. } => {
                let value = form.read(text)?;
                let is_default = value == self.stored_default();
                config.stored.set(self.name, (!is_default).then_some(value));
            }
            Kind::Fixed { accepts, reason } => {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                if !accepts.iter().any(|accepted| accepted.eq_ignore_ascii_case(&text)) {
                    return Err((*reason).to_owned());
                }
            }
        }
        Ok(())
    }

    /// Like [`Self::set`], for a line of a configuration source, which may add to the values of earlier lines.
    ///
    /// # Errors
    /// Returns the errors of [`Self::set`].
    pub(crate) fn state(&self, config: &mut Config, text: &str) -> Result<(), String> {
        match &self.kind {
            Kind::Lines { add, .. } if text.len() <= VALUE_BYTES_MAX => add(config, text),
            _ => self.set(config, text),
        }
    }

    /// Resets the parameter in `config` to its default.
    pub(crate) fn reset(&self, config: &mut Config) {
        self.set(config, self.default).expect("a test sets every parameter to its default");
    }

    /// Returns the default of a parameter without effect, as CONFIG GET shows it.
    fn stored_default(&self) -> String {
        match &self.kind {
            Kind::Stored { form, .. } => form.read(self.default).expect("a test reads every default"),
            _ => self.default.to_owned(),
        }
    }

    /// Whether a value may consist of several words.
    pub(crate) fn takes_words(&self) -> bool {
        matches!(self.kind, Kind::Words { .. } | Kind::Lines { .. } | Kind::Fixed { .. })
    }

    /// Whether each line adds to the values of earlier lines.
    pub(crate) fn adds_lines(&self) -> bool {
        matches!(self.kind, Kind::Lines { .. })
    }

    /// Returns the value that a flag without a value stands for: `yes` for a switch, an empty text for parameters where
    /// that means none. `None` if the flag needs a value.
    pub(crate) fn bare_value(&self) -> Option<&'static str> {
        match self.kind {
            Kind::YesNo(_)
            | Kind::Stored { form: Form::YesNo, .. }
            | Kind::Fixed { accepts: ["no", ..], .. } => Some("yes"),
            Kind::Lines { .. } | Kind::Fixed { accepts: ["", ..], .. } => Some(""),
            _ => None,
        }
    }

    /// Joins the words of a line into one value.
    ///
    /// # Errors
    /// Returns a message if the parameter takes exactly one word and there are more, or if it needs a word and there is
    /// none.
    pub(crate) fn join(&self, words: &[String]) -> Result<String, String> {
        match words {
            [word] => Ok(word.clone()),
            [] if self.bare_value() == Some("") => Ok(String::new()),
            [_, ..] if self.takes_words() => Ok(words.join(" ")),
            [_, second, ..] if second.starts_with('#') => {
                Err("wrong number of arguments (a comment needs a line of its own)".to_owned())
            }
            _ => Err("wrong number of arguments".to_owned()),
        }
    }

    /// Whether the value is derived from another parameter or file, so that a configuration file should not contain it.
    pub(crate) fn is_derived(&self, config: &Config) -> bool {
        match &self.kind {
            Kind::Secret { file: Some(file), .. } => !(file.get)(config).is_empty(),
            // The primary of a cluster node follows from the topology.
            _ if self.name == "replicaof" => config.cluster_enabled,
            _ => false,
        }
    }

    /// Returns the environment variable of one of the parameter's names.
    pub(crate) fn environment_name(name: &str) -> String {
        format!("EMBER_{}", name.to_ascii_uppercase().replace('-', "_"))
    }
}
