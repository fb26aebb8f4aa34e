//! Tests of the table of parameters.

use ember_protocol::client::SECRET_PARAMETERS;

use super::PARAMETERS;
use crate::fields::Config;
use crate::parameter::{Kind, Parameter};
use crate::stored::Form;
use crate::value;

#[test]
fn every_name_is_unique_and_spelt_in_lower_case() {
    let mut names: Vec<_> = PARAMETERS.iter().flat_map(Parameter::names).collect();
    assert!(names.iter().all(|name| {
        let is_spelt = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        name.bytes().all(is_spelt)
    }));
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
            Kind::Memory { range, .. } => value::parse_memory(parameter.default, range).unwrap().to_string(),
            Kind::Stored { form, .. } => form.read(parameter.default).unwrap(),
            _ => parameter.default.to_owned(),
        };
        assert_eq!(parameter.get(&config), shown, "{}", parameter.name);
    }
}

/// The output of CONFIG GET of Redis 7.2 without a configuration file: each name on a line, followed by its value.
/// Names that Redis shows only when they are requested in full begin with `?`.
const REDIS_7_2: &str = include_str!("redis72.txt");

/// Parameters whose defaults deliberately differ from Redis's.
const OTHER_DEFAULTS: [&str; 5] =
    ["bind", "cluster-node-timeout", "maxmemory-clients", "repl-backlog-size", "repl-diskless-sync-delay"];

/// Hidden parameters that Redis does not have.
const OWN_HIDDEN: [&str; 1] = ["tiered-goal"];

#[test]
fn every_parameter_of_redis_is_known_with_its_default() {
    let config = Config::default();
    let mut hidden = 0;
    for line in REDIS_7_2.lines() {
        let (name, default) = line.split_once(' ').unwrap_or((line, ""));
        let bare = name.trim_start_matches('?');
        let parameter = Parameter::find(bare).unwrap_or_else(|| panic!("{bare} is not known"));
        assert!(OTHER_DEFAULTS.contains(&bare) || parameter.get(&config) == default, "{bare}");
        assert_eq!(parameter.is_hidden(), name.starts_with('?'), "{bare}");
        hidden += usize::from(parameter.is_hidden());
    }
    assert_eq!(
        PARAMETERS.iter().filter(|parameter| parameter.is_hidden()).count(),
        hidden + OWN_HIDDEN.len()
    );
    assert!(
        OWN_HIDDEN.iter().all(|name| Parameter::find(name).is_some_and(|parameter| parameter.is_hidden()))
    );
}

/// Returns values other than the default for each kind of parameter, including the bounds of its range if there is one.
fn examples(parameter: &Parameter) -> Vec<String> {
    match &parameter.kind {
        Kind::YesNo(_) => ["yes", "no"].map(str::to_owned).to_vec(),
        Kind::Integer { range, .. } => [range.start(), range.end()].map(i64::to_string).to_vec(),
        Kind::Memory { range, .. } => [range.start(), range.end()].map(u64::to_string).to_vec(),
        Kind::Octal { max, .. } => vec!["0".to_owned(), format!("{max:o}")],
        Kind::Choice { names, .. } => {
            // `relative` is skipped, because it is shown as `yes`.
            names.iter().filter(|name| **name != "relative").map(|name| (*name).to_owned()).collect()
        }
        Kind::Path(_) | Kind::Secret { .. } => ["", "a \"b\" c", "#x"].map(str::to_owned).to_vec(),
        Kind::Lines { .. } => vec![String::new(), "60 1 5 0".to_owned()],
        Kind::Words { .. } => match parameter.name {
            "history-keys" => ["", "*", "user:* order:* !user:tmp:*"].map(str::to_owned).to_vec(),
            "http-watch-origins" => ["", "*", "https://a.example http://b:8080"].map(str::to_owned).to_vec(),
            "bind" | "metrics-bind" | "http-watch-bind" => {
                ["", "* -::1 localhost"].map(str::to_owned).to_vec()
            }
            "maxmemory-clients" => ["0", "1048576", "5%", "auto"].map(str::to_owned).to_vec(),
            "client-output-buffer-limit" => vec!["normal 1 2 3 slave 4 5 6 pubsub 7 8 9".to_owned()],
            "tls-protocols" => ["", "TLSv1.3", "TLSv1.2 TLSv1.3"].map(str::to_owned).to_vec(),
            "tls-ciphers" => {
                ["", "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305"].map(str::to_owned).to_vec()
            }
            "tls-ciphersuites" => ["", "TLS_AES_128_GCM_SHA256"].map(str::to_owned).to_vec(),
            "notify-keyspace-events" => ["", "AKE", "g$nKEm", "lt"].map(str::to_owned).to_vec(),
            "latency-tracking-info-percentiles" => ["", "0 50.5 100"].map(str::to_owned).to_vec(),
            "appenddirname" | "appendfilename" | "dbfilename" => vec!["a b.rdb".to_owned()],
            "shutdown-on-sigint" | "shutdown-on-sigterm" => {
                ["nosave", "save now force"].map(str::to_owned).to_vec()
            }
            "oom-score-adj-values" => vec!["-2000 0 2000".to_owned()],
            name if name.ends_with("_cpulist") => ["", "0-20:2,1"].map(str::to_owned).to_vec(),
            "proc-title-template" => vec!["{{a {port}".to_owned()],
            "unixsocketgroup" | "availability-zone" => ["", "eu 1a"].map(str::to_owned).to_vec(),
            "replicaof" => ["", "10.0.0.1 6379"].map(str::to_owned).to_vec(),
            "bind-source-addr" => ["", "10.0.0.1", "localhost"].map(str::to_owned).to_vec(),
            "cluster-announce-ip" => ["", "10.0.0.1", "::1"].map(str::to_owned).to_vec(),
            "cluster-announce-hostname" | "cluster-announce-human-nodename" => {
                ["", "a.b"].map(str::to_owned).to_vec()
            }
            "replica-announce-ip" => ["", "copier"].map(str::to_owned).to_vec(),
            "redis-version" => ["7.4.0", "255.0.12"].map(str::to_owned).to_vec(),
            "fsync" => ["no", "yes"].map(str::to_owned).to_vec(),
            other => panic!("no example of {other}"),
        },
        Kind::Stored { form, .. } => match form {
            Form::YesNo => ["yes", "no"].map(str::to_owned).to_vec(),
            Form::Integer(range) => [range.start(), range.end()].map(i64::to_string).to_vec(),
            Form::Memory(range) => [range.start(), range.end()].map(u64::to_string).to_vec(),
            Form::Choice(names) => names.iter().map(|name| (*name).to_owned()).collect(),
            Form::Text => ["", "a \"b\" c", "#x"].map(str::to_owned).to_vec(),
            Form::Checked { shape: "an IPv4 address", .. } => vec![String::new(), "10.0.0.1".to_owned()],
            Form::Checked { shape: "an IPv6 address", .. } => vec![String::new(), "::1".to_owned()],
            Form::Checked { .. } => vec!["a.b".to_owned()],
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
fn client_programs_know_every_secret_parameter() {
    let secret = PARAMETERS.iter().filter(|parameter| matches!(parameter.kind, Kind::Secret { .. }));
    let mut names: Vec<&str> = secret.flat_map(Parameter::names).collect();
    names.sort_unstable();
    assert_eq!(names, SECRET_PARAMETERS);
}

#[test]
fn fixed_parameters_say_why_other_values_are_refused() {
    let mut config = Config::default();
    {
        let (name, value, reason) =
            ("replica-ignore-maxmemory", "no", "a replica removes no key that its primary has");
        assert_eq!(Parameter::find(name).unwrap().set(&mut config, value), Err(reason.to_owned()));
    }
    assert_eq!(Parameter::find("slaveof").unwrap().set(&mut config, "no one"), Ok(()));
}

#[test]
fn lookup_ignores_case_and_knows_aliases() {
    assert_eq!(Parameter::find("Max-Memory").unwrap().name, "maxmemory");
    assert_eq!(Parameter::find("EVICTION-POLICY").unwrap().name, "maxmemory-policy");
    assert_eq!(Parameter::find("slave-priority").unwrap().name, "replica-priority");
    assert!(Parameter::find("").is_none());
}

#[test]
fn an_unknown_name_gets_the_nearest_known_one() {
    assert_eq!(Parameter::unknown("prot"), "unknown parameter 'prot' (did you mean 'port'?)");
    assert_eq!(Parameter::unknown("maxmemroy"), "unknown parameter 'maxmemroy' (did you mean 'maxmemory'?)");
    assert_eq!(Parameter::unknown("xyzzy"), "unknown parameter 'xyzzy'");
    assert_eq!(Parameter::unknown("a\nb"), "unknown parameter 'a\\nb'");
    assert!(Parameter::unknown(&"x".repeat(10_000)).len() < 100);
}
