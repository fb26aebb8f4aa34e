//! A proxy between two servers that closes connections after some bytes or limits their throughput.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::pace::Pace;

/// Bytes forwarded at a time.
const PORTION_BYTES: usize = 64 * 1024;

/// A proxy that forwards connections to a server until it is dropped. Data from the server may be cut off or slowed
/// down; data to the server is not.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    connections: AtomicU64,
    passed: AtomicU64,
    is_over: AtomicBool,
}

impl Proxy {
    /// Creates a proxy that closes connection number `n`, counted from 0, after `cut_after(n)` bytes from the server.
    ///
    /// # Panics
    /// Panics if no port is available.
    pub fn cutting(server: SocketAddr, cut_after: impl Fn(u64) -> u64 + Send + 'static) -> Proxy {
        Proxy::start(server, cut_after, u64::MAX)
    }

    /// Creates a proxy that forwards this many bytes per second on each connection.
    ///
    /// # Panics
    /// Panics if no port is available.
    pub fn limited(server: SocketAddr, bytes_per_second: u64) -> Proxy {
        Proxy::start(server, |_| u64::MAX, bytes_per_second)
    }

    fn start(
        server: SocketAddr,
        cut_after: impl Fn(u64) -> u64 + Send + 'static,
        bytes_per_second: u64,
    ) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the system assigns a port");
        let address = listener.local_addr().expect("it listens");
        let shared = Arc::new(Shared::default());
        let proxy = Proxy { address, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for client in listener.incoming() {
                let number = shared.connections.fetch_add(1, Ordering::SeqCst);
                if shared.is_over.load(Ordering::SeqCst) {
                    return;
                }
                // If the server is unreachable, the client's connection is closed.
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) else { continue };
                let (Ok(to), Ok(from)) = (server.try_clone(), client.try_clone()) else { continue };
                // Without this option the proxy is only slower.
                let _ = server.set_nodelay(true).and(client.set_nodelay(true));
                let line = Line { bytes: cut_after(number), bytes_per_second, passed: Arc::clone(&shared) };
                let back =
                    Line { bytes: u64::MAX, bytes_per_second: u64::MAX, passed: Arc::new(Shared::default()) };
                thread::spawn(move || back.pass_on(from, to));
                thread::spawn(move || line.pass_on(server, client));
            }
        });
        proxy
    }

    /// Returns the proxy's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Returns the number of forwarded bytes from the server.
    pub fn passed(&self) -> u64 {
        self.shared.passed.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // The thread checks the flag at the next connection; if connecting fails, the thread has ended already.
        let _ = TcpStream::connect(self.address);
    }
}

/// One direction of a connection.
struct Line {
    /// The number of bytes to forward before the connection is closed.
    bytes: u64,
    bytes_per_second: u64,
    passed: Arc<Shared>,
}

impl Line {
    fn pass_on(mut self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; PORTION_BYTES];
        let mut pace = Pace::new(self.bytes_per_second);
        while self.bytes > 0 {
            let allowed = buffer.len().min(usize::try_from(self.bytes).unwrap_or(usize::MAX));
            let Ok(count @ 1..) = from.read(&mut buffer[..allowed]) else { break };
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
            self.bytes -= count as u64;
            self.passed.passed.fetch_add(count as u64, Ordering::SeqCst);
            pace.pass(count as u64);
        }
        // Either side may already be closed.
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Starts a server that sends this many bytes to every client.
    fn sender(bytes: usize) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for client in listener.incoming() {
                // If the proxy closes the connection, not everything can be sent.
                let _ = client.unwrap().write_all(&vec![b'x'; bytes]);
            }
        });
        address
    }

    fn received(proxy: &Proxy) -> usize {
        let mut bytes = Vec::new();
        // A connection that the proxy closes may be reset.
        let _ = TcpStream::connect(proxy.address()).unwrap().read_to_end(&mut bytes);
        bytes.len()
    }

    #[test]
    fn connections_break_at_the_given_position() {
        let proxy = Proxy::cutting(sender(100_000), |number| [7, 70_000, u64::MAX][number as usize]);
        assert_eq!([(); 3].map(|()| received(&proxy)), [7, 70_000, 100_000]);
        assert_eq!((proxy.connections(), proxy.passed()), (3, 170_007));
    }

    #[test]
    fn a_slow_line_delays_bytes() {
        let proxy = Proxy::limited(sender(500_000), 2_000_000);
        let begun = Instant::now();
        assert_eq!(received(&proxy), 500_000);
        assert!(begun.elapsed() > Duration::from_millis(180));
    }
}
