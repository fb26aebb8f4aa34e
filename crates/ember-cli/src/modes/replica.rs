//! What a replica of the server is told (`--replica`): each command of the stream as a line of comma-separated values.
//!
//! ```text
//! REPLCONF rdb-filter-only ""   no data before the stream; a server that does not know this sends all of them
//! SYNC                          makes the connection a replica's
//! ```

use std::io::{self, BufRead, Read};

use ember_client::{Connection, put_line};
use ember_protocol::client::read_value;
use rustix::event::PollFlags;

use super::copy::pass_by;
use super::failure::Failure;
use super::pipe::wait;
use crate::output::csv;

/// How often the server is told that we are there, while it says nothing. The first time it may not be ready to hear it, and
/// it waits for that with the stream.
const ACKNOWLEDGED_EACH_S: u64 = 1;

/// Shows the stream until the connection ends.
pub(super) fn run(connection: &mut Connection) -> Result<(), Failure> {
    connection.ask(&["REPLCONF", "capa", "eof"])?;
    connection.ask(&["REPLCONF", "rdb-filter-only", ""])?;
    connection.send(&["SYNC"])?;
    let mut held = Vec::new();
    let length = pass_by(connection, &mut held)?;
    eprintln!("SYNC done after {length} bytes. Commands of the stream follow.");
    acknowledge(connection)?;
    let mut stream = Stream { held, read: 0, connection };
    loop {
        put_line(csv::format(&read_value(&mut stream)?));
    }
}

/// Says that we are there; how far is not told, for nothing is kept here.
fn acknowledge(connection: &mut Connection) -> io::Result<()> {
    connection.send(&["REPLCONF", "ACK", "0"])
}

/// What was read with the copy, then the connection.
struct Stream<'a> {
    held: Vec<u8>,
    read: usize,
    connection: &'a mut Connection,
}

impl BufRead for Stream<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.read == self.held.len() {
            self.held.clear();
            self.read = 0;
            while !wait(self.connection, PollFlags::IN, ACKNOWLEDGED_EACH_S)? {
                acknowledge(self.connection)?;
            }
            self.connection.read_some(&mut self.held)?;
        }
        Ok(&self.held[self.read..])
    }

    fn consume(&mut self, count: usize) {
        self.read += count;
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}
