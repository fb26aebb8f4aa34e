//! `-I`: idle connections, to measure their cost for a server, and the time after which the server closes them.

use ember_client::{Address, Connection, put};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::arguments::BenchmarkArguments;
use super::failure::Failure;
use super::link::connect;
use super::target::allow_sockets;

/// Opens idle connections and waits until the server has closed all of them.
///
/// # Errors
/// Returns a message if a connection cannot be opened, or once all are closed.
pub(super) fn run(arguments: &BenchmarkArguments, address: Address) -> Result<u64, Failure> {
    let count = arguments.load.clients;
    allow_sockets(count);
    let open = |_| connect(&address, arguments.target.resp3);
    let mut connections: Vec<Connection> = (0..count).map(open).collect::<Result<_, _>>()?;
    loop {
        let closed = count as usize - connections.len();
        put(format!("{} idle connections, {closed} closed by the server\n", connections.len()).as_bytes());
        if connections.is_empty() {
            return Err(Failure(format!(
                "The server at {} closed all connections",
                address.shown_in_errors()
            )));
        }
        let closed = wait(&connections)?;
        let mut closed = closed.into_iter();
        connections.retain(|_| !closed.next().unwrap_or(false));
    }
}

/// Waits until the server closes connections, and returns which ones. Unsolicited data on a connection counts as
/// closing it.
fn wait(connections: &[Connection]) -> Result<Vec<bool>, Failure> {
    let sockets: Vec<_> = connections.iter().map(Connection::socket).collect();
    let mut fds: Vec<PollFd<'_>> = sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
    loop {
        match poll(&mut fds, None) {
            Ok(_) => return Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(Failure(format!("Cannot poll the sockets: {error}"))),
        }
    }
}
