//! Paths in messages: absolute in the log, so that operators need not know the working directory of the process;
//! without directories in replies to clients, which have no use for them.

use std::path::{Path, absolute};

/// Returns the absolute path; if the system does not report the current directory, the unchanged path.
pub fn full_path(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// Returns an error text for clients, in which each absolute path is reduced to its last component.
pub fn without_directories(error: &str) -> String {
    let ends_path = |byte: u8| byte.is_ascii_whitespace() || b"'\"`()[]<>,;:=".contains(&byte);
    let bytes = error.as_bytes();
    let mut text = String::with_capacity(error.len());
    // The end of the part of `error` that is already in the result.
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        let is_begin = bytes[at] == b'/' && (at == 0 || ends_path(bytes[at - 1]));
        if !is_begin {
            at += 1;
            continue;
        }
        let path_bytes = bytes[at..].iter().position(|&byte| ends_path(byte)).unwrap_or(bytes.len() - at);
        let path = &error[at..at + path_bytes];
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        text.push_str(&error[copied..at]);
        text.push_str(if name.is_empty() { path } else { name });
        at += path_bytes;
        copied = at;
    }
    text.push_str(&error[copied..]);
    text
}

#[cfg(test)]
mod tests {
    use super::without_directories;

    #[test]
    fn absolute_paths_are_reduced_to_their_last_name() {
        for (error, expected) in [
            ("cannot write /data/a b/x.aof: full", "cannot write a b/x.aof: full"),
            ("cannot read '/srv/ember/segment-1': EIO", "cannot read 'segment-1': EIO"),
            ("/a/users.acl:3: what", "users.acl:3: what"),
            ("directory '/srv/ember/' is used", "directory 'ember' is used"),
            ("appendonlydir/x.incr.aof and 1/2", "appendonlydir/x.incr.aof and 1/2"),
            ("read or/and write", "read or/and write"),
            ("a / b", "a / b"),
            ("(in /é/ü)", "(in ü)"),
        ] {
            assert_eq!(without_directories(error), expected);
        }
    }
}
