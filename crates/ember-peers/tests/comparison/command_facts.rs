//! COMMAND INFO and COMMAND DOCS of each command of ember equal those of redis-server.

use std::collections::BTreeSet;

use ember_peers::{COMMAND_FACT_EXCEPTIONS, Mode, start_ember, start_redis};
use ember_testkit::{RawClient, Value, render};

/// Facts of COMMAND INFO in the order of its reply; the tenth, subcommands, is compared recursively.
const INFO_FACTS: [&str; 9] =
    ["name", "arity", "flags", "first key", "last key", "key step", "acl", "tips", "specs"];

/// Facts of COMMAND DOCS that are compared.
const DOCS_FACTS: [&str; 6] = ["since", "group", "doc_flags", "deprecated_since", "replaced_by", "arguments"];

#[test]
fn command_info_equals_that_of_redis() {
    let (redis_server, ember_server) = (start_redis(), start_ember(Mode::Concurrent));
    let (mut redis, mut ember) = (redis_server.client(), ember_server.client());
    let mut differences = Vec::new();
    let commands = ember.run("COMMAND");
    let names: Vec<String> = elements(&commands).iter().map(|command| elements(command)[0].text()).collect();
    assert!(names.len() > 40, "ember has only these commands: {names:?}");
    for name in &names {
        let ask = |client: &mut RawClient| elements(&client.command(&["COMMAND", "INFO", name]))[0].clone();
        compare_info(name, &ask(&mut redis), &ask(&mut ember), &mut differences);
    }
    report(&differences);
}

fn compare_info(name: &str, redis: &Value, ember: &Value, differences: &mut Vec<String>) {
    if *redis == Value::Null {
        differ(name, "exists", "no", "yes", differences);
        return;
    }
    let (redis, ember) = (elements(redis), elements(ember));
    for (index, fact) in INFO_FACTS.iter().enumerate() {
        let (redis, ember) = (ordered(&redis[index]), ordered(&ember[index]));
        if redis != ember {
            differ(name, fact, &render(&redis), &render(&ember), differences);
        }
    }
    let redis_subcommands = elements(&redis[9]);
    for subcommand in elements(&ember[9]) {
        let name = elements(subcommand)[0].text();
        let same = redis_subcommands.iter().find(|other| elements(other)[0].text() == name);
        compare_info(&name, same.unwrap_or(&Value::Null), subcommand, differences);
    }
}

#[test]
fn filters_of_command_list_select_the_same_names_as_redis() {
    let (redis_server, ember_server) = (start_redis(), start_ember(Mode::Concurrent));
    let (mut redis, mut ember) = (redis_server.client(), ember_server.client());
    let names = |list: &Value| -> BTreeSet<String> { elements(list).iter().map(Value::text).collect() };
    let excepted = |name: &String| {
        let container = name.split('|').next();
        COMMAND_FACT_EXCEPTIONS.iter().any(|exception| match exception.fact {
            "exists" => exception.covers(name) || Some(exception.command) == container,
            "acl" => exception.command == name,
            _ => false,
        })
    };
    let mut known = names(&ember.run("COMMAND LIST"));
    known.retain(|name| !excepted(name));
    let categories = names(&redis.run("ACL CAT"));
    assert!(categories.len() > 15, "{categories:?}");
    let mut filters: Vec<String> = categories.iter().map(|category| format!("ACLCAT {category}")).collect();
    filters.extend(
        ["PATTERN *", "PATTERN *get*", "PATTERN [a-d]*", "PATTERN client|*", "PATTERN GET"].map(String::from),
    );
    let mut differences = Vec::new();
    for filter in filters {
        let line = format!("COMMAND LIST FILTERBY {filter}");
        let chosen = |client: &mut RawClient| -> BTreeSet<String> {
            names(&client.run(&line)).intersection(&known).cloned().collect()
        };
        let (redis, ember) = (chosen(&mut redis), chosen(&mut ember));
        for name in redis.symmetric_difference(&ember) {
            let server = if redis.contains(name) { "only redis" } else { "only ember" };
            differences.push(format!("{line}: {server} lists {name}"));
        }
    }
    report(&differences);
}

#[test]
fn command_docs_equals_that_of_redis() {
    let (redis_server, ember_server) = (start_redis(), start_ember(Mode::Concurrent));
    let redis = redis_server.client().run("COMMAND DOCS");
    let ember = ember_server.client().run("COMMAND DOCS");
    let mut differences = Vec::new();
    compare_docs(&redis, &ember, &mut differences);
    report(&differences);
}

fn compare_docs(redis: &Value, ember: &Value, differences: &mut Vec<String>) {
    for (name, ember) in ember.pairs().expect("documentation is a map") {
        let name = name.text();
        let Some(redis) = redis.get(&name) else {
            differ(&name, "exists", "no", "yes", differences);
            continue;
        };
        for fact in DOCS_FACTS {
            let shown = |value: &Value| {
                value.get(fact).map_or("(absent)".to_owned(), |value| render(&ordered(&value)))
            };
            let (redis, ember) = (shown(&redis), shown(&ember));
            if redis != ember {
                differ(&name, fact, &redis, &ember, differences);
            }
        }
        if let (Some(redis), Some(ember)) = (redis.get("subcommands"), ember.get("subcommands")) {
            compare_docs(&redis, &ember, differences);
        }
    }
}

fn elements(value: &Value) -> &[Value] {
    value.elements().unwrap_or_default()
}

/// Sorts lists of plain words, because flags, categories and tips are sets. Omits the display text of arguments, which
/// is prose.
fn ordered(value: &Value) -> Value {
    match value {
        Value::Array(list) | Value::Set(list) => {
            let mut list: Vec<Value> = list.iter().map(ordered).collect();
            if list.iter().all(|element| matches!(element, Value::Simple(_))) {
                list.sort();
            }
            while let Some(index) = list.iter().position(|element| element.bytes() == Some(b"display_text")) {
                list.drain(index..(index + 2).min(list.len()));
            }
            Value::Array(list)
        }
        other => other.clone(),
    }
}

fn differ(name: &str, fact: &str, redis: &str, ember: &str, differences: &mut Vec<String>) {
    let excepted =
        COMMAND_FACT_EXCEPTIONS.iter().any(|exception| exception.covers(name) && exception.fact == fact);
    if !excepted {
        let indented = |text: &str| text.replace('\n', "\n      ");
        differences.push(format!(
            "{name}: {fact}\n    redis {}\n    ember {}",
            indented(redis),
            indented(ember)
        ));
    }
}

fn report(differences: &[String]) {
    assert!(differences.is_empty(), "{} facts differ:\n{}", differences.len(), differences.join("\n"));
}
