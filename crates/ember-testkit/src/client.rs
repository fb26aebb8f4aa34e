//! A client for tests of exact bytes: sends arbitrary bytes and reads one reply at a time, over TCP or a unix socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use ember_protocol::client::{Value, encode_command, read_value};

use crate::replies::read_frame;
use crate::waiting::PATIENCE;

const READ_BUFFER_BYTES: usize = 64 * 1024;

/// A blocking connection. Every call that waits has a timeout ([`RawClient::set_timeout`]).
#[derive(Debug)]
pub struct RawClient {
    stream: BufReader<Stream>,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl RawClient {
    /// Connects over TCP.
    ///
    /// # Errors
    /// Returns the errors of the operating system.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        Self::over(Stream::Tcp(stream))
    }

    /// Connects over a unix socket.
    ///
    /// # Errors
    /// Returns the errors of the operating system.
    pub fn connect_unix(path: &Path) -> io::Result<Self> {
        Self::over(Stream::Unix(UnixStream::connect(path)?))
    }

    fn over(stream: Stream) -> io::Result<Self> {
        let mut client = RawClient { stream: BufReader::with_capacity(READ_BUFFER_BYTES, stream) };
        client.set_timeout(PATIENCE)?;
        Ok(client)
    }

    /// Sets the timeout of reads and writes.
    ///
    /// # Errors
    /// Returns an error if the timeout is zero.
    pub fn set_timeout(&mut self, timeout: Duration) -> io::Result<()> {
        match self.stream.get_ref() {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))
            }
        }
    }

    /// Sends raw bytes.
    ///
    /// # Errors
    /// Returns the errors of the socket.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends one command as an array of bulk strings.
    ///
    /// # Errors
    /// Returns the errors of the socket.
    pub fn send_command<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> io::Result<()> {
        self.send(&encode(arguments))
    }

    /// Reads one reply, parsed.
    ///
    /// # Errors
    /// Returns the errors of [`read_frame`].
    pub fn read_value(&mut self) -> io::Result<Value> {
        read_value(&mut self.stream)
    }

    /// Reads one reply as raw bytes.
    ///
    /// # Errors
    /// Returns the errors of [`read_frame`].
    pub fn read_raw(&mut self) -> io::Result<Vec<u8>> {
        let mut raw = Vec::new();
        read_frame(&mut self.stream, &mut raw)?;
        Ok(raw)
    }

    /// Reads exactly `length` bytes. Intended for replies that are compared as text.
    ///
    /// # Errors
    /// Returns `UnexpectedEof` if the connection is closed first.
    pub fn read_bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads until the server closes the connection. A reset counts as closing.
    ///
    /// # Errors
    /// Returns a timeout error if the connection remains open.
    pub fn read_to_close(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match self.stream.read_to_end(&mut bytes) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
            _ => Ok(bytes),
        }
    }

    /// Closes the sending side of the connection; replies can still be read.
    ///
    /// # Errors
    /// Returns the errors of the socket.
    pub fn finish_sending(&mut self) -> io::Result<()> {
        match self.stream.get_ref() {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }

    /// Bytes that have arrived and have not been read yet.
    pub fn buffered(&self) -> &[u8] {
        self.stream.buffer()
    }

    /// Whether the server has closed the connection; waits until a byte arrives or the connection is closed.
    ///
    /// # Errors
    /// Returns a timeout error if neither happens.
    pub fn is_closed(&mut self) -> io::Result<bool> {
        match self.stream.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(true),
            other => Ok(other?.is_empty()),
        }
    }

    /// Sends one command and reads its reply.
    ///
    /// # Panics
    /// Panics if the connection fails.
    pub fn command<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Value {
        let sent = self.send_command(arguments);
        sent.and_then(|()| self.read_value()).unwrap_or_else(|error| {
            let words: Vec<_> = arguments.iter().map(|word| String::from_utf8_lossy(word.as_ref())).collect();
            panic!("no reply to {}: {error}", words.join(" "))
        })
    }

    /// Like [`RawClient::command`], for a line of words separated by single blanks.
    ///
    /// # Panics
    /// Panics if the connection fails.
    pub fn run(&mut self, line: &str) -> Value {
        self.command(&line.split(' ').collect::<Vec<_>>())
    }

    /// Returns the value of a line `name:value` of INFO.
    ///
    /// # Panics
    /// Panics if the connection fails or there is no such line.
    pub fn info(&mut self, name: &str) -> String {
        let text = self.command(&["INFO", "everything"]).text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.unwrap_or_else(|| panic!("INFO has no {name}:\n{text}")).trim_end().to_owned()
    }

    /// Like [`RawClient::info`] for a line with an integer.
    ///
    /// # Panics
    /// As for [`RawClient::info`], or if the value is not an integer.
    pub fn info_number(&mut self, name: &str) -> u64 {
        self.info(name).parse().unwrap_or_else(|_| panic!("{name} of INFO is not an integer"))
    }

    /// Sends all commands in one write and reads all replies. Intended for batches that fit in the socket buffers
    /// (about 100 kB of requests), since replies are read only after everything has been sent.
    ///
    /// # Errors
    /// Returns the errors of [`read_frame`].
    pub fn pipeline<C: AsRef<[A]>, A: AsRef<[u8]>>(&mut self, commands: &[C]) -> io::Result<Vec<Value>> {
        let mut bytes = Vec::new();
        commands.iter().for_each(|command| encode_command(command.as_ref(), &mut bytes));
        self.send(&bytes)?;
        commands.iter().map(|_| self.read_value()).collect()
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Encodes a command in the form that every server accepts: an array of bulk strings.
pub fn encode<A: AsRef<[u8]>>(words: &[A]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_command(words, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_command_is_an_array_of_bulk_strings_and_replies_come_one_by_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = RawClient::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.send_command(&["GET", "k"]).unwrap();
        let mut request = [0; 20];
        server.read_exact(&mut request).unwrap();
        assert_eq!(&request, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");

        server.write_all(b"$2\r\nhi\r\n:1\r\n+tail\r\n").unwrap();
        drop(server);
        assert_eq!(client.read_raw().unwrap(), b"$2\r\nhi\r\n");
        assert_eq!(client.read_value().unwrap(), Value::Integer(1));
        assert!(!client.is_closed().unwrap());
        assert_eq!(client.read_to_close().unwrap(), b"+tail\r\n");
        assert!(client.is_closed().unwrap());
        assert_eq!(client.read_value().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_silent_server_is_a_timeout() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = RawClient::connect(listener.local_addr().unwrap()).unwrap();
        client.set_timeout(Duration::from_millis(10)).unwrap();
        let kind = client.read_value().unwrap_err().kind();
        assert!(matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{kind:?}");
    }
}
