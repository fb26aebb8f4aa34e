//! A `redis.conf` as it comes with Redis starts the server, with and without the directives that it only mentions.

use std::fs;

use crate::{MODES, builder};

const DIRECTIVES: &str = include_str!("stock/directives.txt");

/// The file of a version.
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
    for (version, mode) in [("6.2", MODES[0]), ("7.0", MODES[1]), ("7.2", MODES[0])] {
        for has_mentioned in [false, true] {
            fs::write(&path, stock_file(version, has_mentioned)).unwrap();
            let arguments = ["--config", path.to_str().unwrap(), "--pidfile", "server.pid"];
            let mut server = builder(mode).directory(&directory).arguments(&arguments).start();
            assert_eq!(server.client().run("SET a 1").text(), "OK");
            let named = server.log().lines().filter(|line| line.contains("have no effect")).count();
            // `repl-diskless-sync` had another default then.
            assert_eq!(named, usize::from(has_mentioned || version == "6.2"), "{version}: {}", server.log());
            if !has_mentioned && version == "7.2" {
                assert_eq!(server.client().run("CONFIG REWRITE").text(), "OK");
            }
            server.signal("TERM");
            assert_eq!(server.wait().code(), Some(0), "{}", server.log());
        }
    }
    fs::remove_dir_all(directory).unwrap();
}
