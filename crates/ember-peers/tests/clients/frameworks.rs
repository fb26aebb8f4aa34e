//! Job frameworks with ember, in both modes: every job is executed in time, and exactly once.

use std::path::Path;
use std::process::Command;

use ember_peers::{frameworks_directory, in_both_modes, require_program, tools_directory};
use ember_testkit::Server;

/// Returns the command of a Python program with the server's port as argument. The program starts the framework's
/// workers.
fn python(script: &str, server: &Server) -> Command {
    let mut command = Command::new(tools_directory().join("python/bin/python"));
    // Python writes no bytecode, so that the source tree remains unchanged.
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONPATH", frameworks_directory());
    command.arg(frameworks_directory().join(script)).arg(port(server));
    command
}

fn port(server: &Server) -> String {
    server.port().to_string()
}

#[test]
fn bullmq_works() {
    in_both_modes(|server| {
        let mut command = Command::new(require_program("node"));
        command.env("PEER_MODULES", tools_directory().join("bullmq"));
        command.arg(frameworks_directory().join("bullmq/jobs.js")).arg(port(server));
        command
    });
}

#[test]
fn celery_works() {
    in_both_modes(|server| python("celery/jobs.py", server));
}

#[test]
fn rq_works() {
    in_both_modes(|server| python("rq/jobs.py", server));
}

#[test]
fn redisson_works() {
    let tools = tools_directory().join("redisson");
    let show = |path: &Path| path.display().to_string();
    let class_path = format!("{}:{}/lib/*", show(&tools.join("classes")), show(&tools));
    in_both_modes(|server| {
        let mut command = Command::new(require_program("java"));
        command.args(["-cp", &class_path, "Jobs", &port(server)]);
        command
    });
}
