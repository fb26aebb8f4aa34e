//! Tests that the table of metrics follows Prometheus's conventions, and that `docs/metrics.md` shows it.

use super::metric::Kind;
use super::*;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
const BEGIN: &str = "<!-- metrics: begin -->\n";
const END: &str = "<!-- metrics: end -->\n";

fn metrics() -> impl Iterator<Item = &'static Metric> {
    FAMILIES.iter().flat_map(|(_, metrics)| *metrics)
}

/// Returns the metrics in Markdown, one table per family.
fn table() -> String {
    let mut text = String::new();
    for (family, metrics) in FAMILIES {
        text.push_str(&format!("\n## {family}\n\n| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n"));
        for Metric { name, kind, labels, help, .. } in *metrics {
            let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
            text.push_str(&format!("| `{name}` | {} | {} | {help}. |\n", kind.name(), labels.join(", ")));
        }
    }
    text
}

#[test]
fn the_tables_in_the_documentation_are_the_generated_ones() {
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    if std::env::var_os("EMBER_BLESS").is_some() {
        std::fs::write(DOCUMENT, [before, BEGIN, &table(), "\n", END, after].concat()).unwrap();
    } else {
        let expected = table() + "\n";
        assert!(found == expected, "run the tests with EMBER_BLESS=1 to rewrite the tables in {DOCUMENT}");
    }
}

#[test]
fn metric_names_are_unique_and_made_of_words() {
    let mut names: Vec<_> = metrics().map(|metric| metric.name).collect();
    for name in &names {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(name.bytes().all(is_plain) && !name.contains("__") && !name.ends_with('_'), "{name}");
        assert!(name.starts_with("ember_") || name.starts_with("process_"), "{name}");
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn metric_name_suffixes_match_their_types() {
    for Metric { name, kind, .. } in metrics() {
        assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
        for suffix in ["_count", "_sum", "_bucket"] {
            assert!(!name.ends_with(suffix), "{name}: this ending is that of a histogram's samples");
        }
        for word in name.split('_') {
            assert!(!["counter", "gauge", "histogram", "summary"].contains(&word), "{name} names its type");
            // The base units are seconds, bytes and ratios.
            let others =
                ["ms", "us", "ns", "milliseconds", "microseconds", "nanoseconds", "minutes", "hours"];
            let sizes = ["kb", "mb", "gb", "kilobytes", "megabytes", "kib", "mib", "bits", "percent"];
            assert!(!others.contains(&word) && !sizes.contains(&word), "{name} is not in a base unit");
        }
        if let Some(unit) = ["seconds", "bytes", "ratio"].into_iter().find(|unit| name.contains(unit)) {
            let name = name.trim_end_matches("_total");
            assert!(name.ends_with(unit), "{name}: the unit comes last");
        }
    }
}

#[test]
fn every_metric_has_a_help_text() {
    for Metric { name, help, labels, .. } in metrics() {
        assert!(help.len() > 4 && !help.ends_with('.') && !help.contains(['\n', '|']), "{name}: {help}");
        assert!(
            help.starts_with(|letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit()),
            "{name}"
        );
        assert!(!labels.contains(&"le") && labels.iter().all(|label| !label.starts_with("__")), "{name}");
    }
}
