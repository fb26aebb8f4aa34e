//! Client libraries with ember: binary values, pipelines, expiry, SCAN, errors, large values.

use std::path::Path;
use std::process::Command;

use ember_peers::{clients_directory, in_both_modes, require_program, tools_directory};
use ember_testkit::{Server, code_blocks};

/// Returns the command of a program with the port and the unix socket of the server as arguments.
fn with_places(program: impl AsRef<Path>, first: &[&Path], server: &Server) -> Command {
    let mut command = Command::new(program.as_ref());
    command
        .args(first)
        .arg(server.port().to_string())
        .arg(server.unix_socket().expect("peers have a socket"));
    command
}

#[test]
fn redis_py_works() {
    let script = clients_directory().join("python/smoke.py");
    in_both_modes(|server| with_places(tools_directory().join("python/bin/python"), &[&script], server));
}

#[test]
fn redis_py_with_asyncio_works() {
    let script = clients_directory().join("python/asynchronous.py");
    in_both_modes(|server| with_places(tools_directory().join("python/bin/python"), &[&script], server));
}

#[test]
fn vector_sets_work_with_redis_py() {
    let script = clients_directory().join("python/vectors.py");
    in_both_modes(|server| with_places(tools_directory().join("python/bin/python"), &[&script], server));
}

#[test]
fn a_query_finds_texts_of_similar_meaning_as_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vectors.md");
    let page = std::fs::read_to_string(page).unwrap();
    let program = clients_directory().join("python/semantic.py");
    let shown = code_blocks(&page);
    let shown = shown.iter().find(|block| block.language == "python").unwrap();
    assert_eq!(shown.text.trim_end(), std::fs::read_to_string(&program).unwrap().trim_end());
    in_both_modes(|server| {
        let mut command = Command::new("bash");
        let script = r#"set -o pipefail; "$0" "$@" | grep -o "GEORADIUS \|BRPOP " | sort | tr -d "\n" |
            grep -x "BRPOP GEORADIUS ""#;
        command.args(["-c", script]).arg(tools_directory().join("python/bin/python")).arg(&program);
        command.arg(server.port().to_string()).arg(clients_directory().join("python/words.txt"));
        command.args(["places near a point on the map", "pause until a job arrives in:list"]);
        command
    });
}

#[test]
fn node_redis_works() {
    let script = clients_directory().join("node/smoke.js");
    in_both_modes(|server| {
        let mut command = with_places(require_program("node"), &[&script], server);
        command.env("PEER_MODULES", tools_directory().join("node"));
        command
    });
}

#[test]
fn go_redis_works() {
    in_both_modes(|server| with_places(tools_directory().join("go-smoke"), &[], server));
}

#[test]
fn jedis_works() {
    let java = tools_directory().join("java");
    let class_path = format!("{}:{}/lib/*", java.join("classes").display(), java.display());
    in_both_modes(|server| {
        let mut command = Command::new(require_program("java"));
        command.args(["-cp", &class_path, "Smoke", &server.port().to_string()]);
        command
    });
}

#[test]
fn live_queries_work_as_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/live-queries.md");
    let blocks = code_blocks(&std::fs::read_to_string(page).unwrap());
    for (language, program) in
        [("python", "python/live.py"), ("js", "node/live.js"), ("go", "go/live/main.go")]
    {
        let shown = blocks.iter().find(|block| block.language == language).unwrap();
        let program = std::fs::read_to_string(clients_directory().join(program)).unwrap();
        // The document contains spaces instead of Go's tabs.
        assert_eq!(
            shown.text.trim_end(),
            program.replace('\t', "    ").trim_end(),
            "the page contains the program"
        );
    }
    let python = clients_directory().join("python/live.py");
    in_both_modes(|server| with_places(tools_directory().join("python/bin/python"), &[&python], server));
    let node = clients_directory().join("node/live.js");
    in_both_modes(|server| {
        let mut command = with_places(require_program("node"), &[&node], server);
        command.env("PEER_MODULES", tools_directory().join("node"));
        command
    });
    in_both_modes(|server| with_places(tools_directory().join("go-live"), &[], server));
}
