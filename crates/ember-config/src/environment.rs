//! Environment variables: `EMBER_<NAME>` for every name of a parameter, in upper case, with `_` instead of `-`.
//!
//! Variables that match no parameter are ignored.

use std::ffi::OsString;

use super::assignment::Assignment;
use super::parameter::Parameter;
use super::table::PARAMETERS;

/// Returns the parameters set in an environment; `variable` looks up a variable by name. If variables for several names
/// of one parameter are set, the variable of the canonical name takes effect.
///
/// # Errors
/// Returns one line if a value is not UTF-8.
pub(crate) fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Vec<Assignment>, String> {
    let mut assignments = Vec::new();
    for parameter in PARAMETERS {
        let found = parameter
            .names()
            .map(Parameter::environment_name)
            .filter_map(|name| variable(&name).map(|value| (name, value)))
            .find(|(_, value)| !is_service_link(value));
        if let Some((name, value)) = found {
            let text = value.into_string().map_err(|_| format!("{name}: the value is not valid UTF-8"))?;
            assignments.push(Assignment::value(parameter, text, name));
        }
    }
    Ok(assignments)
}

/// Whether Kubernetes or Docker set the variable: for a service called `ember` they set `EMBER_PORT` to
/// `tcp://address:port`, which is not a port to listen on.
fn is_service_link(value: &OsString) -> bool {
    [&b"tcp://"[..], b"udp://"].iter().any(|scheme| value.as_encoded_bytes().starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::super::assignment::Statement;
    use super::*;

    fn assigned(variables: &[(&str, &str)]) -> Vec<(&'static str, String, String)> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        let of = |a: Assignment| match a.statement {
            Statement::Value(parameter, text) => (parameter.name, text, a.origin),
            other => panic!("{other:?}"),
        };
        read(variable).unwrap().into_iter().map(of).collect()
    }

    fn one(name: &'static str, text: &str, origin: &str) -> Vec<(&'static str, String, String)> {
        vec![(name, text.to_owned(), origin.to_owned())]
    }

    #[test]
    fn every_name_of_a_parameter_has_a_variable() {
        assert_eq!(assigned(&[("EMBER_PORT", "7")]), one("port", "7", "EMBER_PORT"));
        assert_eq!(assigned(&[("EMBER_MAX_MEMORY", "1gb")]), one("maxmemory", "1gb", "EMBER_MAX_MEMORY"));
        assert_eq!(
            assigned(&[("EMBER_REQUIREPASS_FILE", "/x")]),
            one("requirepass-file", "/x", "EMBER_REQUIREPASS_FILE")
        );
        assert_eq!(assigned(&[("EMBER_HOST", "::1"), ("EMBER_BIND", "*")]), one("bind", "*", "EMBER_BIND"));
    }

    #[test]
    fn unrelated_variables_are_ignored() {
        let others =
            [("EMBER_CONCURRENT_PORT", "1"), ("EMBER_SHARDED_PORT", "2"), ("PORT", "3"), ("ember_port", "4")];
        assert_eq!(assigned(&others), []);
        assert_eq!(assigned(&[("EMBER_PORT", "tcp://10.0.0.1:6379")]), []);
    }
}
