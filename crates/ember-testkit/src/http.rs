//! An HTTP client like a scraper or a probe: sends one request and returns the response byte for byte.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::waiting::PATIENCE;

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status code.
    pub status: u16,
    /// The header lines.
    pub head: String,
    /// The body.
    pub body: String,
}

impl HttpAnswer {
    /// Returns the value of a header field, named in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Sends a GET request.
///
/// # Errors
/// Returns an error if the connection fails, or the response is not HTTP.
pub fn http_get(address: SocketAddr, path: &str) -> io::Result<HttpAnswer> {
    http_exchange(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
}

/// Sends a request and reads until the server closes the connection.
///
/// # Errors
/// Returns an error if the connection fails, or the response is not HTTP.
pub fn http_exchange(address: SocketAddr, request: &[u8]) -> io::Result<HttpAnswer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request)?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    parse(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no HTTP response"))
}

fn parse(bytes: &[u8]) -> Option<HttpAnswer> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some(HttpAnswer { status, head: head.to_owned(), body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_parsed() {
        let answer = parse(b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: a/b\r\n\r\nno\n").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (503, "no\n"));
        assert_eq!((answer.header("content-type"), answer.header("x")), (Some("a/b"), None));
        assert_eq!(parse(b"SSH-2.0\r\n"), None);
    }
}
