//! Reads short files of Linux's `/proc`.

use std::fs::File;
use std::io::Read;

/// Reads a `/proc` file that consists of one line of numbers, with a single read. Returns `None` if the file does not
/// exist.
pub(crate) fn read_line(path: &str) -> Option<String> {
    let mut bytes = vec![0; 1024];
    let length = File::open(path).ok()?.read(&mut bytes).ok()?;
    bytes.truncate(length);
    String::from_utf8(bytes).ok()
}
