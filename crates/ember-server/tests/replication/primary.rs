//! A minimal simulated primary that sends exactly the bytes that a test determines.

use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use ember_testkit::{Value, encode};

/// The replication ID of the primary's history.
pub(crate) const ID: &str = "0123456789abcdef0123456789abcdef01234567";

/// The timeout after which a test fails.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The listener of the primary.
pub(crate) struct Primary(TcpListener);

impl Primary {
    pub(crate) fn new() -> Primary {
        Primary(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    /// Accepts the connection of the next replica, and sends nothing yet.
    pub(crate) fn accept(&self) -> Link {
        let (stream, _) = self.0.accept().unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        Link { stream: BufReader::new(stream), offset: 0 }
    }
}

/// A connection from a replica.
pub(crate) struct Link {
    stream: BufReader<TcpStream>,
    /// The number of bytes sent after the full sync.
    pub(crate) offset: u64,
}

impl Link {
    /// Reads the next command of the replica.
    pub(crate) fn command(&mut self) -> Vec<String> {
        let value = ember_protocol::client::read_value(&mut self.stream).unwrap();
        value.elements().unwrap().iter().map(Value::text).collect()
    }

    /// Sends bytes unchanged. The replica may have closed the connection.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// Sends the same bytes repeatedly until the replica closes the connection.
    pub(crate) fn send_until_closed(mut self, bytes: &[u8]) {
        while self.stream.get_mut().write_all(bytes).is_ok() {}
    }

    /// Replies to all commands before PSYNC, and returns the words of PSYNC.
    pub(crate) fn read_handshake(&mut self) -> Vec<String> {
        loop {
            let words = self.command();
            match words[0].as_str() {
                "PING" => self.send(b"+PONG\r\n"),
                "PSYNC" => return words,
                _ => self.send(b"+OK\r\n"),
            }
        }
    }

    /// Completes the handshake with a full sync of `keys` at `offset`.
    pub(crate) fn copy(&mut self, offset: u64, keys: &[(&str, &str)]) {
        self.read_handshake();
        let file = rdb(keys);
        self.send(format!("+FULLRESYNC {ID} {offset}\r\n\n${}\r\n", file.len()).as_bytes());
        self.send(&file);
        self.offset = offset;
    }

    /// Sends a command of the stream.
    pub(crate) fn write(&mut self, line: &str) {
        self.write_words(&line.split(' ').collect::<Vec<_>>());
    }

    pub(crate) fn write_words(&mut self, words: &[&str]) {
        let bytes = encode(words);
        self.offset += bytes.len() as u64;
        self.send(&bytes);
    }

    /// Returns the next acknowledged offset that is at least `at_least`.
    pub(crate) fn acknowledged(&mut self, at_least: u64) -> u64 {
        loop {
            let words = self.command();
            assert_eq!(words[..2], ["REPLCONF", "ACK"]);
            let offset = words[2].parse().unwrap();
            if offset >= at_least {
                return offset;
            }
        }
    }

    /// Waits until the replica closes the connection.
    pub(crate) fn wait_for_close(&mut self) {
        let mut bytes = Vec::new();
        // A reset also counts as closing.
        let _ = self.stream.read_to_end(&mut bytes);
    }
}

/// Returns an RDB file with these strings.
pub(crate) fn rdb(keys: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = b"REDIS0010\xFE\x00".to_vec();
    for (key, value) in keys {
        bytes.push(0);
        for text in [key, value] {
            assert!(text.len() < 64);
            bytes.push(text.len() as u8);
            bytes.extend_from_slice(text.as_bytes());
        }
    }
    // The file ends without a checksum, which eight bytes of zero denote.
    bytes.extend_from_slice(b"\xFF\0\0\0\0\0\0\0\0");
    bytes
}
