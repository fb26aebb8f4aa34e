//! Writing to standard output, which may be a pipe whose reader has closed it.

use std::io::{self, Write};
use std::process;

/// Writes to standard output and flushes it. If the reader has closed the pipe, the program exits.
pub fn put(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        process::exit(1);
    }
}

/// Writes a line to standard output.
pub fn put_line(line: impl AsRef<[u8]>) {
    put(&[line.as_ref(), b"\n"].concat());
}
