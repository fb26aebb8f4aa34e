//! Standard output that may be a pipe with a closed reader.

use std::io::{self, Write};
use std::process;

/// Writes and flushes. If the reader has closed the pipe, the program ends.
pub fn put(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        process::exit(1);
    }
}

/// Writes a line.
pub fn put_line(line: impl AsRef<[u8]>) {
    put(&[line.as_ref(), b"\n"].concat());
}
