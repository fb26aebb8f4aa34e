//! The shape of every command's reply in both protocols, compared with the table in `reply_shapes.txt`.

use std::collections::BTreeSet;
use std::fmt::Write;

use ember_testkit::{Value, split_arguments};

use crate::{MODES, builder};

const TABLE: &str = include_str!("reply_shapes.txt");

/// Commands whose replies this test cannot request, each with the reason.
const LEFT_OUT: [(&str, &str); 6] = [
    ("shutdown", "it has no reply"),
    ("bgsave", "a status or an error, as another save is running or not"),
    ("bgrewriteaof", "the same"),
    ("psync", "it answers with a file and a stream"),
    ("sync", "the same"),
    ("cluster|", "one error for all, listed under CLUSTER INFO"),
];

/// A call and the shapes of its reply.
struct Row {
    given: Vec<String>,
    call: String,
    resp2: String,
    resp3: String,
}

/// Returns the rows of the table.
fn rows() -> Vec<Row> {
    let mut lines: Vec<String> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("      ") {
            Some(continued) => *lines.last_mut().unwrap() += &format!(" {continued}"),
            None => lines.push(line.to_owned()),
        }
    }
    let mut rows: Vec<Row> = Vec::new();
    for line in lines {
        let Some(shape) = line.strip_prefix("    ") else {
            let (call, given) = line.split_once(" <- ").unwrap_or((&line, ""));
            let given = given.split("; ").filter(|line| !line.is_empty()).map(str::to_owned).collect();
            rows.push(Row { given, call: call.to_owned(), resp2: String::new(), resp3: String::new() });
            continue;
        };
        let row = rows.last_mut().unwrap();
        match (shape.strip_prefix("2 "), shape.strip_prefix("3 ")) {
            (Some(shape), _) => row.resp2 = shape.to_owned(),
            (_, Some(shape)) => row.resp3 = shape.to_owned(),
            _ => (row.resp2, row.resp3) = (shape.to_owned(), shape.to_owned()),
        }
    }
    rows
}

/// Returns the shape of a value, as described in the header of the table.
fn shape(value: &Value) -> String {
    match value {
        Value::Simple(_) => "+".to_owned(),
        Value::Error(text) => {
            format!("-{}", String::from_utf8_lossy(text.split(|&byte| byte == b' ').next().unwrap()))
        }
        Value::Integer(_) => ":".to_owned(),
        Value::Bulk(_) => "$".to_owned(),
        Value::Null => "_".to_owned(),
        Value::Double(_) => ",".to_owned(),
        Value::Boolean(_) => "#".to_owned(),
        Value::BigNumber(_) => "(".to_owned(),
        Value::Verbatim(format, _) => format!("={}", String::from_utf8_lossy(format)),
        Value::Array(list) => format!("*[{}]", in_order(list.iter().map(shape)).join(" ")),
        Value::Push(list) => format!(">[{}]", in_order(list.iter().map(shape)).join(" ")),
        Value::Set(list) => {
            let shapes: BTreeSet<String> = list.iter().map(shape).collect();
            format!("~[{}]", Vec::from_iter(shapes).join(" "))
        }
        Value::Map(pairs) => format!("%{{{}}}", shapes_of_pairs(pairs)),
        Value::Attribute(pairs, value) => format!("|{{{}}} {}", shapes_of_pairs(pairs), shape(value)),
    }
}

fn shapes_of_pairs(pairs: &[(Value, Value)]) -> String {
    let key = |key: &Value| match key {
        Value::Simple(_) | Value::Bulk(_) => key.text(),
        other => shape(other),
    };
    in_order(pairs.iter().map(|(name, value)| format!("{}: {}", key(name), shape(value)))).join(", ")
}

/// Merges each run of equal shapes into one.
fn in_order(shapes: impl Iterator<Item = String>) -> Vec<String> {
    let mut runs: Vec<(String, bool)> = Vec::new();
    for shape in shapes {
        match runs.last_mut() {
            Some((last, is_repeated)) if *last == shape => *is_repeated = true,
            _ => runs.push((shape, false)),
        }
    }
    runs.into_iter().map(|(shape, is_repeated)| if is_repeated { shape + ".." } else { shape }).collect()
}

#[test]
fn every_reply_has_the_shape_of_the_table() {
    let rows = rows();
    for mode in MODES {
        let server = builder(mode).arguments(&["--enable-debug-command", "yes"]).start();
        let mut differences = String::new();
        for row in &rows {
            for (protocol, expected) in [("2", &row.resp2), ("3", &row.resp3)] {
                let mut client = server.client();
                client.command(&["HELLO", protocol]);
                client.command(&["FLUSHALL"]);
                for line in &row.given {
                    client.command(&split_arguments(line).unwrap());
                }
                let found = shape(&client.command(&split_arguments(&row.call).unwrap()));
                if found != *expected {
                    writeln!(differences, "{} of RESP{protocol}\n  {expected}\n  {found}", row.call).unwrap();
                }
            }
        }
        assert!(differences.is_empty(), "{mode:?}, the table's and the server's:\n{differences}");
    }
}

#[test]
fn every_command_is_in_the_table() {
    let calls: BTreeSet<String> = rows()
        .iter()
        .flat_map(|row| {
            let mut words = row.call.split(' ').map(str::to_lowercase);
            let (name, next) = (words.next().unwrap(), words.next().unwrap_or_default());
            [format!("{name}|{next}"), name]
        })
        .collect();
    let server = builder(MODES[0]).start();
    let names = server.client().run("COMMAND LIST");
    let names: Vec<String> = names.elements().unwrap().iter().map(Value::text).collect();
    let is_container = |name: &str| names.iter().any(|other| other.starts_with(&format!("{name}|")));
    // The replies of derived commands are those of GET.WATCH, except for the result.
    let is_derived = |name: &str| [".watch", ".unwatch"].iter().any(|end| name.ends_with(end));
    let is_left_out =
        |name: &str| is_derived(name) || LEFT_OUT.iter().any(|(start, _)| name.starts_with(start));
    let absent: Vec<&String> = names
        .iter()
        .filter(|name| !calls.contains(*name) && !is_container(name) && !is_left_out(name))
        .collect();
    assert!(absent.is_empty(), "without a shape: {absent:?}");
}
