//! A connection between two nodes.
//!
//! ```text
//! frame    length of the payload: u32 │ HMAC-SHA256 of the payload │ payload
//! hello    ember-bus 1 <name of the node> <64 random hexadecimal digits>       the first payload in each direction
//! message  the text of a message                                              all others
//! ```
//!
//! Each node computes the codes with the secret of the cluster, which is empty if there is none. The code of a hello
//! covers the hello only. Both hellos together determine a key for each direction, and the code of a message covers the
//! number of the message, so a frame of another connection or at another position is refused. With `tls-cluster`, the
//! frames are encrypted, too.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign, verify};
use ember_cluster::node::Name;
use rustls::Connection;

/// The maximum length of a payload in bytes, far above that of the topology with the most nodes and ranges.
const PAYLOAD_BYTES_MAX: usize = 16 << 20;

/// The maximum length of the payload of a node that is not authenticated yet.
const HELLO_BYTES_MAX: usize = 256;

/// The maximum number of bytes that wait to be sent. Messages to a node that reads too slowly are dropped and sent
/// again later.
const OUTPUT_BYTES_MAX: usize = 32 << 20;

const LENGTH_BYTES: usize = 4;
const CODE_BYTES: usize = 32;

/// The number of bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// The keys of an authenticated link, and the numbers of the next messages.
struct Keys {
    sending: Key,
    receiving: Key,
    sent: u64,
    received: u64,
}

/// A connection to another node.
pub(super) struct Link {
    pub(super) stream: TcpStream,
    tls: Option<Box<Connection>>,
    secret: Vec<u8>,
    /// Whether this node has opened the connection.
    pub(super) is_dialed: bool,
    own_hello: String,
    keys: Option<Keys>,
    /// The name of the other node, once it is authenticated.
    pub(super) peer: Option<Name>,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Messages that wait for the hello of the other node.
    waiting: Vec<String>,
    pub(super) opened_ms: u64,
    pub(super) received_ms: u64,
}

impl Link {
    /// Returns a link on a connection that is or will be established. The hello of this node is sent first.
    pub(super) fn new(
        stream: TcpStream,
        tls: Option<Connection>,
        secret: &str,
        is_dialed: bool,
        (me, nonce): (Name, &str),
        now_ms: u64,
    ) -> Link {
        let mut link = Link {
            stream,
            tls: tls.map(Box::new),
            secret: secret.as_bytes().to_vec(),
            is_dialed,
            own_hello: format!("ember-bus 1 {me} {nonce}"),
            keys: None,
            peer: None,
            input: Vec::new(),
            output: Vec::new(),
            waiting: Vec::new(),
            opened_ms: now_ms,
            received_ms: now_ms,
        };
        let code = sign(&link.hello_key(), link.own_hello.as_bytes());
        let hello = link.own_hello.clone();
        link.push_frame(code.as_ref(), hello.as_bytes());
        link
    }

    fn hello_key(&self) -> Key {
        Key::new(HMAC_SHA256, &self.secret)
    }

    fn push_frame(&mut self, code: &[u8], payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("payloads are shorter");
        self.output.extend_from_slice(&length.to_be_bytes());
        self.output.extend_from_slice(code);
        self.output.extend_from_slice(payload);
    }

    /// Sends a message, once the other node is authenticated.
    ///
    /// # Errors
    /// Returns an error if the other node does not read its messages.
    pub(super) fn send(&mut self, text: String) -> Result<(), String> {
        if self.output.len() + self.waiting.iter().map(String::len).sum::<usize>() > OUTPUT_BYTES_MAX {
            return Err("the other node does not read its messages".to_owned());
        }
        if text.len() > PAYLOAD_BYTES_MAX {
            return Err("the message is too long".to_owned());
        }
        let Some(keys) = &mut self.keys else {
            self.waiting.push(text);
            return Ok(());
        };
        let code = message_code(&keys.sending, keys.sent, text.as_bytes());
        keys.sent += 1;
        self.push_frame(code.as_ref(), text.as_bytes());
        Ok(())
    }

    /// Sends as many bytes as the socket accepts.
    ///
    /// # Errors
    /// Returns why the link ends.
    pub(super) fn flush(&mut self) -> Result<(), String> {
        let failed = |error: io::Error| error.to_string();
        if let Some(tls) = &mut self.tls {
            if !self.output.is_empty() {
                tls.writer().write_all(&self.output).map_err(failed)?;
                self.output.clear();
            }
            while tls.wants_write() {
                match tls.write_tls(&mut self.stream) {
                    Ok(0) => return Err("the other node has closed the link".to_owned()),
                    Ok(_) => {}
                    Err(error) if is_pending(&error) => return Ok(()),
                    Err(error) => return Err(failed(error)),
                }
            }
            return Ok(());
        }
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => _ = self.output.drain(..count),
                Err(error) if is_pending(&error) => return Ok(()),
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    /// Reads the bytes that have arrived, and returns the complete messages.
    ///
    /// # Errors
    /// Returns why the link ends.
    pub(super) fn receive(&mut self, now_ms: u64) -> Result<Vec<String>, String> {
        let mut messages = Vec::new();
        let mut bytes = vec![0; READ_BYTES];
        loop {
            let count = match self.read(&mut bytes) {
                Ok(0) => return Err("the other node has closed the link".to_owned()),
                Ok(count) => count,
                Err(error) if is_pending(&error) => break,
                Err(error) => return Err(error.to_string()),
            };
            self.input.extend_from_slice(&bytes[..count]);
            self.received_ms = now_ms;
            while let Some(message) = self.next_frame()? {
                messages.extend(message);
            }
        }
        Ok(messages)
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.stream.read(bytes) };
        loop {
            match tls.reader().read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return other,
            }
            if tls.read_tls(&mut self.stream)? == 0 {
                return Ok(0);
            }
            tls.process_new_packets().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
    }

    /// Returns the next frame if it has arrived completely: a message, or nothing for a hello.
    fn next_frame(&mut self) -> Result<Option<Option<String>>, String> {
        let Some(length) = self.input.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        let max = if self.keys.is_some() { PAYLOAD_BYTES_MAX } else { HELLO_BYTES_MAX };
        if length > max {
            return Err(format!(
                "the other node sends {length} bytes at once, but at most {max} are allowed"
            ));
        }
        let end = LENGTH_BYTES + CODE_BYTES + length;
        if self.input.len() < end {
            return Ok(None);
        }
        let frame: Vec<u8> = self.input.drain(..end).collect();
        let (code, payload) = frame[LENGTH_BYTES..].split_at(CODE_BYTES);
        let wrong = "the other node has another cluster-auth-pass";
        let text = std::str::from_utf8(payload).map_err(|_| "a message is not text".to_owned())?;
        let Some(keys) = &mut self.keys else {
            verify(&self.hello_key(), payload, code).map_err(|_| wrong.to_owned())?;
            self.greet(text)?;
            return Ok(Some(None));
        };
        let numbered = numbered(keys.received, payload);
        verify(&keys.receiving, &numbered, code).map_err(|_| wrong.to_owned())?;
        keys.received += 1;
        Ok(Some(Some(text.to_owned())))
    }

    /// Handles the hello of the other node, and sends the messages that waited for it.
    fn greet(&mut self, hello: &str) -> Result<(), String> {
        let words: Vec<&str> = hello.split(' ').collect();
        let ["ember-bus", "1", name, nonce] = words[..] else {
            return Err("the other node uses another protocol".to_owned());
        };
        let name = Name::parse(name).ok_or("the other node has no valid name")?;
        if nonce.len() != 64 || hello == self.own_hello {
            return Err("the hello of the other node is not valid".to_owned());
        }
        let own = self.own_hello.as_str();
        let (dialer, acceptor) = if self.is_dialed { (own, hello) } else { (hello, own) };
        let session = sign(&self.hello_key(), format!("session\n{dialer}\n{acceptor}").as_bytes());
        let session = Key::new(HMAC_SHA256, session.as_ref());
        let key_of = |side: &str| Key::new(HMAC_SHA256, sign(&session, side.as_bytes()).as_ref());
        let (dialer, acceptor) = (key_of("dialer"), key_of("acceptor"));
        let (sending, receiving) = if self.is_dialed { (dialer, acceptor) } else { (acceptor, dialer) };
        self.keys = Some(Keys { sending, receiving, sent: 0, received: 0 });
        self.peer = Some(name);
        std::mem::take(&mut self.waiting).into_iter().try_for_each(|text| self.send(text))
    }
}

/// Returns the bytes that the code of a message covers.
fn numbered(number: u64, payload: &[u8]) -> Vec<u8> {
    [&number.to_be_bytes()[..], payload].concat()
}

fn message_code(key: &Key, number: u64, payload: &[u8]) -> aws_lc_rs::hmac::Tag {
    sign(key, &numbered(number, payload))
}

/// Returns whether the operation can be continued later. Before a connection is established, it cannot be read or written.
fn is_pending(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotConnected)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn name(digit: &str) -> Name {
        Name::parse(&digit.repeat(40)).unwrap()
    }

    /// Returns both ends of a connection, with these secrets.
    fn pair(secrets: [&str; 2]) -> (Link, Link) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dialed = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let accepted = listener.accept().unwrap().0;
        let nonblocking = |stream: TcpStream| {
            stream.set_nonblocking(true).unwrap();
            stream
        };
        let one = Link::new(nonblocking(dialed), None, secrets[0], true, (name("a"), &"1".repeat(64)), 0);
        let other =
            Link::new(nonblocking(accepted), None, secrets[1], false, (name("b"), &"2".repeat(64)), 0);
        (one, other)
    }

    /// Reads until messages arrive or the link ends.
    fn receive(link: &mut Link) -> Result<Vec<String>, String> {
        loop {
            let messages = link.receive(1)?;
            if !messages.is_empty() {
                return Ok(messages);
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn messages_arrive_after_both_nodes_are_authenticated() {
        let (mut one, mut other) = pair(["secret", "secret"]);
        one.send("first".to_owned()).unwrap();
        one.flush().unwrap();
        other.flush().unwrap();
        while one.peer.is_none() {
            one.receive(1).unwrap();
        }
        one.flush().unwrap();
        assert_eq!(receive(&mut other).unwrap(), ["first"]);
        other.send("second".to_owned()).unwrap();
        other.flush().unwrap();
        assert_eq!(receive(&mut one).unwrap(), ["second"]);
        assert_eq!((one.peer, other.peer), (Some(name("b")), Some(name("a"))));
    }

    #[test]
    fn another_secret_a_changed_and_a_repeated_frame_end_the_link() {
        let (mut one, mut other) = pair(["secret", "another"]);
        one.flush().unwrap();
        assert!(receive(&mut other).unwrap_err().contains("cluster-auth-pass"));
        let (mut one, mut other) = pair(["", ""]);
        one.flush().unwrap();
        other.flush().unwrap();
        while one.peer.is_none() {
            one.receive(1).unwrap();
        }
        one.send("message".to_owned()).unwrap();
        let frame = one.output.clone();
        one.output.extend_from_slice(&frame);
        one.flush().unwrap();
        assert!(receive(&mut other).is_err(), "the number of the second frame is another one");
    }

    #[test]
    fn a_long_frame_of_an_unknown_node_ends_the_link() {
        let (mut one, mut other) = pair(["", ""]);
        one.output = (HELLO_BYTES_MAX as u32 + 1).to_be_bytes().to_vec();
        one.flush().unwrap();
        assert!(receive(&mut other).unwrap_err().contains("at most"));
    }
}
