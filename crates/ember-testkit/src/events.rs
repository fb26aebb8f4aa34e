//! Server-sent events as a browser receives them: one connection, one event after another.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::waiting::PATIENCE;

/// A server-sent event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The ID that a client sends when it reconnects.
    pub id: String,
    /// The text of the event.
    pub data: String,
}

/// A connection that receives server-sent events.
#[derive(Debug)]
pub struct EventStream {
    stream: BufReader<TcpStream>,
    /// The HTTP status code of the response.
    pub status: u16,
    /// The header lines of the response.
    pub head: String,
    /// Received text, without the framing of HTTP chunks.
    text: Vec<u8>,
}

impl EventStream {
    /// Sends a GET request with further header lines, and reads the head of the response.
    ///
    /// # Errors
    /// Returns an error if the connection fails, or the response is not HTTP.
    pub fn open(address: SocketAddr, path: &str, fields: &[(&str, &str)]) -> io::Result<EventStream> {
        let mut request = format!("GET {path} HTTP/1.1\r\n");
        if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request += &format!("Host: {address}\r\n");
        }
        fields.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
        EventStream::request(address, (request + "\r\n").as_bytes())
    }

    /// Sends a whole request, and reads the head of the response.
    ///
    /// # Errors
    /// Returns an error if the connection fails, or the response is not HTTP.
    pub fn request(address: SocketAddr, request: &[u8]) -> io::Result<EventStream> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(request)?;
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no HTTP response"))?;
        Ok(EventStream { stream, status, head, text: Vec::new() })
    }

    /// Returns the value of a header field, named in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns the next event with data; `None` at the end of the stream.
    ///
    /// # Errors
    /// Returns an error if no event arrives in time, or the connection breaks.
    pub fn next_event(&mut self) -> io::Result<Option<Event>> {
        loop {
            let Some(block) = self.next_block()? else { return Ok(None) };
            let (mut id, mut data) = (None, None);
            for line in block.lines() {
                match line.split_once(": ") {
                    Some(("id", value)) => id = Some(value.to_owned()),
                    Some(("data", value)) => data = Some(value.to_owned()),
                    _ => {}
                }
            }
            if let Some(data) = data {
                return Ok(Some(Event { id: id.unwrap_or_default(), data }));
            }
        }
    }

    /// Reads the lines up to the next empty one.
    fn next_block(&mut self) -> io::Result<Option<String>> {
        let mut looked_at: usize = 0;
        loop {
            let from = looked_at.saturating_sub(1);
            if let Some(at) = self.text[from..].windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.text.drain(..from + at + 2).collect();
                let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
                return String::from_utf8(block).map(Some).map_err(wrong);
            }
            looked_at = self.text.len();
            if !self.read_chunk()? {
                return Ok(None);
            }
        }
    }

    /// Reads a chunk; false at the end.
    fn read_chunk(&mut self) -> io::Result<bool> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let count = u64::from_str_radix(line.trim_end(), 16).unwrap_or(0);
        if count == 0 {
            return Ok(false);
        }
        self.stream.by_ref().take(count).read_to_end(&mut self.text)?;
        let mut end = [0; 2];
        self.stream.read_exact(&mut end)?;
        Ok(true)
    }
}
