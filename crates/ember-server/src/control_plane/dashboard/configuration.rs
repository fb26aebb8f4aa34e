//! The dashboard's view of the configuration: the value, default and meaning of each parameter.
//!
//! Passwords are never sent, even to users that may call CONFIG GET: the page learns only whether a password is set.

use std::collections::HashMap;

use ember_config::{Description, descriptions};
use ember_protocol::client::Value;
use serde_json::{Value as Json, json};

/// Returns the parameters in a reply of CONFIG GET, each once, in the order of the documentation.
pub(super) fn of(reply: &Value) -> Vec<Json> {
    let values: HashMap<String, String> = reply
        .pairs()
        .unwrap_or_default()
        .into_iter()
        .map(|(name, value)| (name.text(), value.text()))
        .collect();
    let shown = |about: &Description| {
        let value = about.names.iter().find_map(|&name| values.get(name))?;
        let mut parameter = json!({
            "name": about.names[0],
            "is_changed": *value != about.default,
            "is_mutable": about.is_mutable,
            "has_effect": about.has_effect,
            "choices": about.choices,
            "shape": about.shape,
            "about": about.meaning,
        });
        if about.is_secret {
            parameter["is_set"] = json!(!value.is_empty());
        } else {
            parameter["value"] = json!(value);
            parameter["default"] = json!(about.default);
        }
        Some(parameter)
    };
    descriptions().iter().filter_map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_reported_as_set_and_not_shown() {
        let pair = |name: &str, value: &str| (Value::from(name), Value::from(value));
        let parameters =
            of(&Value::Map(vec![pair("requirepass", "hunter2"), pair("maxmemory", "7"), pair("x", "y")]));
        let names: Vec<&str> = parameters.iter().filter_map(|parameter| parameter["name"].as_str()).collect();
        assert_eq!(names, ["requirepass", "maxmemory"]);
        assert_eq!((&parameters[0]["is_set"], &parameters[0]["is_changed"]), (&json!(true), &json!(true)));
        assert!(!json!(parameters).to_string().contains("hunter2"));
        assert_eq!((&parameters[1]["value"], &parameters[1]["default"]), (&json!("7"), &json!("0")));
    }

    #[test]
    fn choices_are_listed_if_there_are_any() {
        let pair = |name: &str| (Value::from(name), Value::from("x"));
        let parameters = of(&Value::Map(["appendonly", "appendfsync", "maxclients"].map(pair).to_vec()));
        let choices = |name: &str| {
            let parameter = parameters.iter().find(|parameter| parameter["name"] == name).unwrap();
            parameter["choices"].clone()
        };
        assert_eq!(choices("appendonly"), json!(["yes", "no"]));
        assert_eq!(choices("appendfsync"), json!(["always", "everysec", "no"]));
        assert_eq!(choices("maxclients"), json!([]));
    }
}
