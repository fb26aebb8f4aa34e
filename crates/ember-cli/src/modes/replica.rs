//! Prints the replication stream (`--replica`): each command as a line of comma-separated values.
//!
//! ```text
//! REPLCONF rdb-filter-only ""   no data before the stream; a server without this option sends all data
//! SYNC                          turns the connection into a replica's
//! ```

use std::io::{self, BufRead, Read};

use ember_client::{Connection, put_line};
use ember_protocol::client::read_value;
use rustix::event::PollFlags;

use super::copy::pass_by;
use super::failure::Failure;
use super::pipe::wait;
use crate::output::csv;

/// The interval of acknowledgements while the server sends nothing. The server begins the stream only after an
/// acknowledgement that it accepts; it may ignore the first ones.
const ACKNOWLEDGED_EACH_S: u64 = 1;

/// Prints the stream until the connection ends.
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

/// Sends an acknowledgement with offset 0, because this client stores nothing.
fn acknowledge(connection: &mut Connection) -> io::Result<()> {
    connection.send(&["REPLCONF", "ACK", "0"])
}

/// Reads the bytes that were received together with the copy, then those of the connection.
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
