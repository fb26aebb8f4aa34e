//! A `redis.conf` as distributed with Redis, or a `valkey.conf`, starts the server, with and without the directives
//! that it contains only as comments.

use std::fs;

use crate::{MODES, builder};

const DIRECTIVES: &str = include_str!("stock/directives.txt");

/// Returns the configuration file of a version; with `has_mentioned`, directives in comments are active.
fn stock_file(version: &str, has_mentioned: bool) -> String {
    let mut file = String::new();
    for line in DIRECTIVES.lines().filter(|line| !line.starts_with('#')) {
        let (versions, directive) = line.split_once(": ").unwrap();
        if versions.split(' ').any(|known| known == version) {
            file += "# What it is for.\n\n";
            file += if has_mentioned { directive.trim_start_matches('#') } else { directive };
            file += "\r\n";
        }
    }
    file
}

#[test]
fn stock_files_start_the_server_unchanged() {
    let directory = builder(MODES[0]).start().crash();
    let path = directory.join("redis.conf");
    let versions = ["6.2", "7.0", "7.2", "8.0", "9.1"];
    for (version, mode) in versions.into_iter().zip([MODES[0], MODES[1]].into_iter().cycle()) {
        for has_mentioned in [false, true] {
            fs::write(&path, stock_file(version, has_mentioned)).unwrap();
            let arguments = ["--config", path.to_str().unwrap(), "--pidfile", "server.pid"];
            let mut server = builder(mode).directory(&directory).arguments(&arguments).start();
            // The files contain `min-replicas-to-write 3` as a comment.
            let answer = if has_mentioned { "NOREPLICAS Not enough good replicas to write." } else { "OK" };
            assert_eq!(server.client().run("SET a 1").text(), answer);
            let named = server.log().lines().filter(|line| line.contains("have no effect")).count();
            assert_eq!(named, usize::from(has_mentioned), "{version}: {}", server.log());
            if !has_mentioned && version == "7.2" {
                assert_eq!(server.client().run("CONFIG REWRITE").text(), "OK");
            }
            server.signal("TERM");
            assert_eq!(server.wait().code(), Some(0), "{}", server.log());
        }
    }
    fs::remove_dir_all(directory).unwrap();
}
