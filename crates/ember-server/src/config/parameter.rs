//! One parameter of the configuration: its names, what its values look like, its default and its field.
//!
//! Flags, file directives, environment variables, CONFIG GET and SET, `--help` and the documentation are all derived
//! from this description. Every value is one text, the one CONFIG GET shows; [`Parameter::set`] reads it back.

use std::ops::RangeInclusive;

use super::Config;
use super::table::PARAMETERS;
use super::value::{self, Secret};

/// The longest value: a path or a list of addresses needs less.
pub(super) const VALUE_BYTES_MAX: usize = 4096;

/// A description of a parameter.
#[derive(Debug)]
pub(crate) struct Parameter {
    /// Redis's name when Redis has the parameter, else ours; lower case.
    pub(crate) name: &'static str,
    /// Further names, each as good as `name` everywhere.
    pub(crate) aliases: &'static [&'static str],
    /// What its values look like and where they are kept.
    pub(crate) kind: Kind,
    /// The default, as a text.
    pub(crate) default: &'static str,
    /// Whether CONFIG SET may change it.
    pub(crate) mutable: bool,
    /// What it means, in one or more sentences.
    pub(crate) about: &'static str,
}

/// What the values of a parameter look like, and how its field is read and written.
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
    /// One of `names`, by its position.
    Choice { names: &'static [&'static str], get: fn(&Config) -> usize, set: fn(&mut Config, usize) },
    /// The path of a file or directory; empty for none.
    Path(Field<String>),
    /// A password. When `file` names the file to read it from, the value here does not count; setting it forgets
    /// that file, so that the later of the two counts.
    Secret { field: Field<Secret>, file: Field<String> },
    /// Words separated by white space.
    Words {
        shape: &'static str,
        get: fn(&Config) -> String,
        set: fn(&mut Config, &str) -> Result<(), String>,
    },
    /// As `Words`; a line of a source adds to the lines before it, the first of which takes the place of the default.
    Lines {
        shape: &'static str,
        get: fn(&Config) -> String,
        set: fn(&mut Config, &str) -> Result<(), String>,
        add: fn(&mut Config, &str) -> Result<(), String>,
    },
    /// Only what is true of this version: the first of `accepts` or another spelling of it. Anything else is refused
    /// with `reason`.
    Fixed { accepts: &'static [&'static str], reason: &'static str },
}

/// A field of [`Config`].
pub(crate) struct Field<T: 'static> {
    pub(crate) get: fn(&Config) -> &T,
    pub(crate) get_mut: fn(&mut Config) -> &mut T,
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

impl Parameter {
    /// Finds a parameter by any of its names, without regard to case.
    pub(crate) fn find(name: &str) -> Option<&'static Parameter> {
        PARAMETERS.iter().find(|parameter| parameter.names().any(|known| known.eq_ignore_ascii_case(name)))
    }

    /// The message for a `name` which no parameter has, with the nearest name when one is near. The name may be
    /// a flag, with its dashes.
    pub(crate) fn unknown(name: &str) -> String {
        let (dashes, bare) = name.split_at(if name.starts_with("--") { 2 } else { 0 });
        let shown: String = name.chars().take(NAME_CHARS_SHOWN).flat_map(char::escape_debug).collect();
        match nearest(bare) {
            Some(known) => format!("unknown parameter '{shown}' (did you mean '{dashes}{known}'?)"),
            None => format!("unknown parameter '{shown}'"),
        }
    }

    /// All names, the canonical one first.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// The value in `config`, as the text which [`Self::set`] reads.
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
            Kind::Fixed { accepts, .. } => accepts[0].to_owned(),
        }
    }

    /// Sets the value in `config` from a text.
    ///
    /// # Errors
    /// A sentence without the parameter's name; `config` is then unchanged.
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
                file.set(config, String::new());
            }
            Kind::Words { set, .. } | Kind::Lines { set, .. } => set(config, text)?,
            Kind::Fixed { accepts, reason } => {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                if !accepts.iter().any(|accepted| accepted.eq_ignore_ascii_case(&text)) {
                    return Err((*reason).to_owned());
                }
            }
        }
        Ok(())
    }

    /// As [`Self::set`], by a line of a source of the configuration, which may add to those before it.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub(crate) fn state(&self, config: &mut Config, text: &str) -> Result<(), String> {
        match &self.kind {
            Kind::Lines { add, .. } if text.len() <= VALUE_BYTES_MAX => add(config, text),
            _ => self.set(config, text),
        }
    }

    /// Sets the value in `config` back to the default.
    pub(crate) fn reset(&self, config: &mut Config) {
        self.set(config, self.default).expect("a test sets every parameter to its default");
    }

    /// Whether a value may be several words of a line.
    pub(crate) fn takes_words(&self) -> bool {
        matches!(self.kind, Kind::Words { .. } | Kind::Lines { .. } | Kind::Fixed { .. })
    }

    /// Whether each line adds to those before it.
    pub(crate) fn adds_lines(&self) -> bool {
        matches!(self.kind, Kind::Lines { .. })
    }

    /// What the flag without a value means: `yes` for a switch, the empty text where that means none.
    pub(crate) fn bare_value(&self) -> Option<&'static str> {
        match self.kind {
            Kind::YesNo(_) | Kind::Fixed { accepts: ["no", ..], .. } => Some("yes"),
            Kind::Lines { .. } | Kind::Fixed { accepts: ["", ..], .. } => Some(""),
            _ => None,
        }
    }

    /// The single text of a value given as the words of a line.
    ///
    /// # Errors
    /// When this parameter takes exactly one word and there are more or none.
    pub(crate) fn join(&self, words: &[String]) -> Result<String, String> {
        match words {
            [word] => Ok(word.clone()),
            [_, ..] if self.takes_words() => Ok(words.join(" ")),
            [_, second, ..] if second.starts_with('#') => {
                Err("wrong number of arguments (a comment needs a line of its own)".to_owned())
            }
            _ => Err("wrong number of arguments".to_owned()),
        }
    }

    /// Whether its value follows from another parameter, so that a configuration file should not hold it.
    pub(crate) fn is_derived(&self, config: &Config) -> bool {
        match &self.kind {
            Kind::Secret { file, .. } => !(file.get)(config).is_empty(),
            _ => false,
        }
    }

    /// The name of the environment variable for one of the names.
    pub(crate) fn environment_name(name: &str) -> String {
        format!("EMBER_{}", name.to_ascii_uppercase().replace('-', "_"))
    }
}

/// How much of an unknown name a message repeats.
const NAME_CHARS_SHOWN: usize = 64;

/// More edits than this make another word, not a slip.
const EDITS_MAX: usize = 3;

/// The known name with the fewest edits from `name`, when those are few.
fn nearest(name: &str) -> Option<&'static str> {
    if name.len() > NAME_CHARS_SHOWN {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let known = PARAMETERS.iter().flat_map(Parameter::names);
    let (distance, known) = known.map(|known| (edit_distance(&name, known), known)).min()?;
    (distance <= (name.len() / 2).min(EDITS_MAX)).then_some(known)
}

/// How many letters must be put in, taken out or changed to make `to` of `from` (Levenshtein).
/// Takes `from.len() * to.len()` steps.
fn edit_distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.bytes().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_unique_and_spelt_in_lower_case() {
        let mut names: Vec<_> = PARAMETERS.iter().flat_map(Parameter::names).collect();
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_default_is_accepted_and_reads_back_as_itself() {
        for parameter in PARAMETERS {
            let mut config = Config::default();
            parameter.set(&mut config, parameter.default).unwrap();
            let shown = match &parameter.kind {
                Kind::Memory { range, .. } => {
                    value::parse_memory(parameter.default, range).unwrap().to_string()
                }
                _ => parameter.default.to_owned(),
            };
            assert_eq!(parameter.get(&config), shown, "{}", parameter.name);
        }
    }

    /// Values of each kind which are not the default, at the ends of the range where there is one.
    fn examples(parameter: &Parameter) -> Vec<String> {
        match &parameter.kind {
            Kind::YesNo(_) => ["yes", "no"].map(str::to_owned).to_vec(),
            Kind::Integer { range, .. } => [range.start(), range.end()].map(i64::to_string).to_vec(),
            Kind::Memory { range, .. } => [range.start(), range.end()].map(u64::to_string).to_vec(),
            Kind::Octal { max, .. } => vec!["0".to_owned(), format!("{max:o}")],
            Kind::Choice { names, .. } => names.iter().map(|name| (*name).to_owned()).collect(),
            Kind::Path(_) | Kind::Secret { .. } => ["", "a \"b\" c", "#x"].map(str::to_owned).to_vec(),
            Kind::Lines { .. } => vec![String::new(), "60 1 5 0".to_owned()],
            Kind::Words { .. } => match parameter.name {
                "bind" | "metrics-bind" => ["", "* -::1 localhost"].map(str::to_owned).to_vec(),
                "maxmemory-clients" => vec!["0".to_owned(), "1048576".to_owned(), "5%".to_owned()],
                "client-output-buffer-limit" => vec!["normal 1 2 3 slave 4 5 6 pubsub 7 8 9".to_owned()],
                "tls-protocols" => ["", "TLSv1.3", "TLSv1.2 TLSv1.3"].map(str::to_owned).to_vec(),
                "tls-ciphers" => ["", "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305"]
                    .map(str::to_owned)
                    .to_vec(),
                "tls-ciphersuites" => ["", "TLS_AES_128_GCM_SHA256"].map(str::to_owned).to_vec(),
                "notify-keyspace-events" => ["", "AKE", "g$nKEm", "lt"].map(str::to_owned).to_vec(),
                "latency-tracking-info-percentiles" => ["", "0 50.5 100"].map(str::to_owned).to_vec(),
                "appenddirname" | "appendfilename" | "dbfilename" => vec!["a b.rdb".to_owned()],
                other => panic!("no example of {other}"),
            },
            Kind::Fixed { accepts, .. } => vec![accepts[0].to_owned()],
        }
    }

    #[test]
    fn setting_what_was_read_changes_nothing() {
        for parameter in PARAMETERS {
            for example in examples(parameter) {
                let mut config = Config::default();
                parameter.set(&mut config, &example).unwrap();
                assert_eq!(parameter.get(&config), example, "{}", parameter.name);
                let before = config.clone();
                parameter.set(&mut config, &example).unwrap();
                assert_eq!(config, before, "{}", parameter.name);
            }
        }
    }

    #[test]
    fn a_refused_value_changes_nothing() {
        for parameter in PARAMETERS {
            for bad in ["\0\u{1}", &"x".repeat(5000)] {
                let mut config = Config::default();
                let refused = parameter.set(&mut config, bad).is_err();
                assert!(refused || matches!(parameter.kind, Kind::Secret { .. }), "{}", parameter.name);
                assert!(!refused || config == Config::default(), "{}", parameter.name);
            }
        }
    }

    #[test]
    fn fixed_parameters_say_why_other_values_are_refused() {
        let mut config = Config::default();
        for (name, value, reason) in [
            ("replicaof", "10.0.0.1 6379", "replication is not available in this version"),
            ("cluster-enabled", "yes", "cluster mode is not available in this version"),
            (
                "daemonize",
                "yes",
                "the server stays in the foreground: let a supervisor such as systemd run it",
            ),
        ] {
            assert_eq!(Parameter::find(name).unwrap().set(&mut config, value), Err(reason.to_owned()));
        }
        assert_eq!(Parameter::find("slaveof").unwrap().set(&mut config, "no one"), Ok(()));
    }

    #[test]
    fn lookup_ignores_case_and_knows_aliases() {
        assert_eq!(Parameter::find("Max-Memory").unwrap().name, "maxmemory");
        assert_eq!(Parameter::find("EVICTION-POLICY").unwrap().name, "maxmemory-policy");
        assert!(Parameter::find("io-threads").is_none());
        assert!(Parameter::find("").is_none());
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_known_one() {
        assert_eq!(Parameter::unknown("prot"), "unknown parameter 'prot' (did you mean 'port'?)");
        assert_eq!(
            Parameter::unknown("maxmemroy"),
            "unknown parameter 'maxmemroy' (did you mean 'maxmemory'?)"
        );
        assert_eq!(Parameter::unknown("xyzzy"), "unknown parameter 'xyzzy'");
        assert_eq!(Parameter::unknown("a\nb"), "unknown parameter 'a\\nb'");
        assert!(Parameter::unknown(&"x".repeat(10_000)).len() < 100);
    }
}
