//! Texts derived from the table of parameters: `--help`, `--version`, and the table in `docs/configuration.md`, which a
//! test compares and regenerates.

use std::ops::RangeInclusive;

use super::fields::Config;
use super::parameter::{Kind, Parameter};
use super::stored::Form;
use super::table::PARAMETERS;
use super::value::format_memory;

/// Returns the output of `--version`.
pub(crate) fn version() -> String {
    format!("ember-server {}", ember_version::SHOWN)
}

/// Returns the output of `--help`.
pub(crate) fn help() -> String {
    let mut text = version();
    text.push_str(
        "\n\nUsage: ember-server [FILE] [--NAME VALUE...]... [-]\n\n\
         FILE and the standard input (-) hold directives in the syntax of redis.conf.\n\
         The environment (EMBER_NAME) overrides them, the command line overrides both.\n\n\
         \x20 -h, --help            print this text\n\
         \x20 -v, --version         print the version\n\
         \x20 -c, --config FILE     the same as FILE\n\
         \x20 -p PORT               the same as --port PORT\n\
         \x20 --check-config [FILE] check the configuration, print its errors, and exit\n\n\
         Parameters:\n",
    );
    for parameter in PARAMETERS {
        let names: Vec<_> = parameter.names().map(|name| format!("--{name}")).collect();
        text.push_str(&format!("\n  {}  {}\n", names.join(", "), shape(&parameter.kind).replace('`', "")));
        wrap(
            &mut text,
            &format!("{} (default: {})", meaning(parameter), shown_default(parameter)).replace('`', ""),
        );
    }
    text
}

fn shown_default(parameter: &Parameter) -> &'static str {
    if parameter.default.is_empty() { "\"\"" } else { parameter.default }
}

/// Describes the form of a parameter's values in a few words.
pub(super) fn shape(kind: &Kind) -> String {
    match kind {
        Kind::YesNo(_) => "`yes` or `no`".to_owned(),
        Kind::Integer { range, .. } => integer_shape(range),
        Kind::Memory { range, .. } => memory_shape(range),
        Kind::Octal { max, .. } => format!("octal, 0 to {max:o}"),
        Kind::Choice { names, .. } => choice_shape(names),
        Kind::Path(_) => "a path".to_owned(),
        Kind::Secret { .. } => "a text".to_owned(),
        Kind::Words { shape, .. } | Kind::Lines { shape, .. } => (*shape).to_owned(),
        Kind::Stored { form, .. } => stored_shape(form),
        Kind::Fixed { accepts, reason } => {
            let accepted =
                if accepts[0].is_empty() { "the empty text" } else { &format!("`{}`", accepts[0]) };
            format!("only {accepted}: {reason}")
        }
    }
}

/// Describes the form of the values of a parameter without effect.
fn stored_shape(form: &Form) -> String {
    match form {
        Form::YesNo => "`yes` or `no`".to_owned(),
        Form::Integer(range) => integer_shape(range),
        Form::Memory(range) => memory_shape(range),
        Form::Choice(names) => choice_shape(names),
        Form::Text => "a text".to_owned(),
        Form::Checked { shape, .. } => (*shape).to_owned(),
    }
}

fn integer_shape(range: &RangeInclusive<i64>) -> String {
    match *range.end() {
        i64::MAX => format!("a number from {}", range.start()),
        end => format!("{} to {end}", range.start()),
    }
}

fn memory_shape(range: &RangeInclusive<u64>) -> String {
    match *range.start() {
        0 => "a memory size".to_owned(),
        start => format!("a memory size from {}", format_memory(start)),
    }
}

fn choice_shape(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the description of a parameter, followed by the reason if it has no effect.
pub(super) fn meaning(parameter: &Parameter) -> String {
    match parameter.kind {
        Kind::Stored { reason, .. } => format!("{} No effect: {reason}.", parameter.about),
        _ => parameter.about.to_owned(),
    }
}

/// A description of a parameter, without its current value.
pub struct Description {
    /// All names of the parameter, the canonical name first.
    pub names: Vec<&'static str>,
    /// The form of the parameter's values.
    pub shape: String,
    /// The possible values, if there are few; otherwise empty.
    pub choices: Vec<&'static str>,
    /// The default value, as CONFIG GET shows it.
    pub default: String,
    /// A description of the parameter, and the reason if it has no effect.
    pub meaning: String,
    /// Whether CONFIG SET may change the parameter.
    pub is_mutable: bool,
    /// Whether the value is a secret, such as a password.
    pub is_secret: bool,
    /// Whether the parameter has an effect in this version.
    pub has_effect: bool,
}

/// Returns all parameters, in the order of the documentation.
pub fn descriptions() -> Vec<Description> {
    let defaults = Config::default();
    let of = |parameter: &'static Parameter| Description {
        names: parameter.names().collect(),
        shape: shape(&parameter.kind).replace('`', ""),
        choices: choices(&parameter.kind).to_vec(),
        default: parameter.get(&defaults),
        meaning: meaning(parameter).replace('`', ""),
        is_mutable: parameter.mutable,
        is_secret: matches!(parameter.kind, Kind::Secret { .. }),
        has_effect: !matches!(parameter.kind, Kind::Stored { .. }),
    };
    PARAMETERS.iter().map(of).collect()
}

/// Returns the possible values of a parameter, if there are few; otherwise an empty list.
fn choices(kind: &Kind) -> &'static [&'static str] {
    match kind {
        Kind::YesNo(_) | Kind::Stored { form: Form::YesNo, .. } => &["yes", "no"],
        Kind::Choice { names, .. } | Kind::Stored { form: Form::Choice(names), .. } => names,
        _ => &[],
    }
}

/// Appends `about` as wrapped, indented lines.
fn wrap(text: &mut String, about: &str) {
    const INDENT: &str = "      ";
    const WIDTH: usize = 80;
    let mut column = WIDTH;
    for word in about.split(' ') {
        if column + 1 + word.len() > WIDTH {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(INDENT);
            column = INDENT.len();
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.len();
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    const BEGIN: &str = "<!-- parameters: begin -->\n";
    const END: &str = "<!-- parameters: end -->\n";

    /// Returns the Markdown table of parameters for `docs/configuration.md`.
    fn table() -> String {
        let mut text =
            "| Parameter | Values | Default | CONFIG SET | Meaning |\n|---|---|---|---|---|\n".to_owned();
        for parameter in PARAMETERS {
            let names: Vec<_> = parameter.names().map(|name| format!("`{name}`")).collect();
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} |\n",
                names.join(", "),
                shape(&parameter.kind),
                if parameter.default.is_empty() {
                    "empty".to_owned()
                } else {
                    format!("`{}`", parameter.default)
                },
                if parameter.mutable { "yes" } else { "no" },
                meaning(parameter),
            ));
        }
        text
    }

    #[test]
    fn help_mentions_every_name_and_stays_narrow() {
        let help = help();
        for name in PARAMETERS.iter().flat_map(Parameter::names) {
            assert!(help.contains(&format!("--{name}")), "{name}");
        }
        let lines_of_text = help.lines().filter(|line| line.starts_with("      "));
        assert!(lines_of_text.map(str::len).max() <= Some(80));
    }

    #[test]
    fn the_table_in_the_documentation_is_the_generated_one() {
        let document = std::fs::read_to_string(DOCUMENT).unwrap();
        let (before, rest) = document.split_once(BEGIN).unwrap();
        let (found, after) = rest.split_once(END).unwrap();
        if std::env::var_os("EMBER_BLESS").is_some() {
            std::fs::write(DOCUMENT, [before, BEGIN, &table(), END, after].concat()).unwrap();
        } else {
            assert!(found == table(), "run the tests with EMBER_BLESS=1 to rewrite the table in {DOCUMENT}");
        }
    }
}
