//! Continuous output at a prompt: shows messages until a key is pressed, and the commands of MONITOR until Ctrl-C.

use std::io;

use ember_protocol::client::Value;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::client::Client;
use ember_client::put;

const WAITING: &[u8] = b"Reading messages... (press Ctrl-C to quit or any key to type command)\r";
const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
/// Terminal sequence that clears the rest of the line.
const CLEAR: &[u8] = b"\x1b[K";

/// Shows messages until a key is pressed or no subscription remains. The key is not read.
///
/// # Errors
/// Returns the errors of the connection and of the terminal.
pub(super) fn show_messages(client: &mut Client) -> io::Result<()> {
    let _keys = Keys::unbuffered()?;
    while client.is_subscribed() {
        put(WAITING);
        let (has_message, has_key) = wait(client)?;
        put(CLEAR);
        if has_key {
            return Ok(());
        } else if has_message {
            client.show_message()?;
        }
    }
    Ok(())
}

/// Shows the commands of all clients until Ctrl-C, Ctrl-D or q is pressed.
///
/// # Errors
/// Returns the errors of the connection and of the terminal.
pub(super) fn show_monitored(client: &mut Client) -> io::Result<()> {
    let _keys = Keys::unbuffered()?;
    loop {
        let (has_message, has_key) = wait(client)?;
        if has_key {
            let mut keys = [0; 64];
            let count = rustix::io::read(io::stdin(), &mut keys)?;
            // A read of 0 bytes means that the terminal was closed.
            if count == 0 || keys[..count].iter().any(|key| matches!(*key, CTRL_C | CTRL_D | b'q')) {
                return Ok(());
            }
        } else if has_message {
            client.show_monitored()?;
        }
    }
}

/// Waits for a message or a key; returns which of them are available.
fn wait(client: &Client) -> io::Result<(bool, bool)> {
    let Some(connection) = &client.connection else { return Err(io::ErrorKind::NotConnected.into()) };
    let has_input = connection.has_input();
    let now = Timespec::default();
    let (socket, keys) = (connection.socket(), io::stdin());
    let mut fds = [PollFd::new(&socket, PollFlags::IN), PollFd::new(&keys, PollFlags::IN)];
    loop {
        match poll(&mut fds, has_input.then_some(&now)) {
            Ok(_) => return Ok((has_input || !fds[0].revents().is_empty(), !fds[1].revents().is_empty())),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Switches the terminal to deliver each key at once, without echo, until this value is dropped.
struct Keys {
    before: Termios,
}

impl Keys {
    fn unbuffered() -> io::Result<Keys> {
        let before = tcgetattr(io::stdin())?;
        let mut now = before.clone();
        now.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        now.special_codes[SpecialCodeIndex::VMIN] = 1;
        now.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Now, &now)?;
        Ok(Keys { before })
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // This fails if the terminal was closed.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Returns the number of subscribed channels and patterns in a message, and whether it refers to shard channels.
pub(crate) fn count_in(message: &Value) -> Option<(u64, bool)> {
    let [kind, _, count] = message.elements()? else { return None };
    let count = u64::try_from(count.integer()?).ok()?;
    match kind.bytes()? {
        b"subscribe" | b"unsubscribe" | b"psubscribe" | b"punsubscribe" => Some((count, false)),
        b"ssubscribe" | b"sunsubscribe" => Some((count, true)),
        _ => None,
    }
}
