//! The storeys of crates: a file imports from its own storey and from those below, never from one above.

use std::path::Path;

use super::imports::{self, Imports, largest_circle};

/// The files and folders of `ember-server` by storey, the lowest first. Files and folders that are not listed have no
/// storey yet.
const SERVER: &[&[&str]] = &[
    &["system/", "tls/", "catalogue/", "files/"],
    &["acl/", "clients/", "observability/", "journal/"],
    &["server/", "tiers/"],
    &["executor/"],
    &[
        "aof/",
        "cluster/",
        "defragmentation/",
        "history/",
        "live_queries/",
        "metrics/",
        "migration/",
        "replication/",
        "script_host/",
        "snapshot/",
    ],
    &["worker/"],
    &["commands/", "control_plane/"],
    &["start.rs", "start/"],
    &["main.rs"],
];

/// For each crate, the maximum number of files in one import cycle, and the maximum number of files directly in `src`.
const LIMITS: &[(&str, usize, usize)] =
    &[("ember-server", 7, 5), ("ember-core", 14, 7), ("ember-cli", 4, 5), ("ember-vector", 4, 12)];

fn imports_of(name: &str) -> Imports {
    imports::of_crate(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src"))
}

fn storey_of(storeys: &[&[&str]], file: &str) -> Option<usize> {
    storeys.iter().position(|rooms| rooms.iter().any(|room| file.starts_with(room)))
}

#[test]
fn no_file_of_the_server_imports_from_a_higher_storey() {
    let mut findings = Vec::new();
    for (file, imported) in imports_of("ember-server") {
        let Some(storey) = storey_of(SERVER, &file) else {
            findings.push(format!("{file} has no storey in the table"));
            continue;
        };
        let above = imported.iter().filter(|other| storey_of(SERVER, other).is_some_and(|at| at > storey));
        findings.extend(above.map(|other| format!("{file} imports {other} from a higher storey")));
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn import_cycles_and_loose_files_stay_few() {
    for &(name, circle_max, loose_max) in LIMITS {
        let imports = imports_of(name);
        let circle = largest_circle(&imports);
        assert!(circle.len() <= circle_max, "{name}: import cycle of {} files: {circle:?}", circle.len());
        let loose = imports.keys().filter(|path| !path.contains('/')).count();
        assert!(loose <= loose_max, "{name}: {loose} files directly in src");
    }
}
