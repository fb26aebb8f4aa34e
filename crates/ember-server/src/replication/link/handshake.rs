//! The handshake of a replica with its primary.

use std::io;
use std::time::Instant;

use ember_config::Config;
use ember_replication::answers::Answer;

use super::channel::Channel;
use super::{Link, Phase};
use crate::clients::replica::{EMBER_CAPABILITY, NODE_DATA};

/// The version sent to a primary, so that Valkey sends data in its own format: Valkey's format for older replicas omits
/// the expiry of hash fields.
const VALKEY_VERSION: &[u8] = b"9.0.0";

/// Returns the error for an unexpected reply of the primary.
fn refused(what: &str, line: &[u8]) -> String {
    format!("the primary replied to {what} with '{}'", line.escape_ascii())
}

fn failed(error: io::Error) -> String {
    if error.kind() == io::ErrorKind::TimedOut {
        return format!("Timeout connecting to the MASTER: {error}");
    }
    format!("the connection to the primary failed: {error}")
}

/// Authenticates to the primary, and sends the port, the address and the capabilities of this server.
/// `data` is the word for this cluster node and the number of its data.
pub(super) fn introduce(channel: &mut Channel, config: &Config, data: Option<&str>) -> Result<(), String> {
    let until = Instant::now() + channel.timeout();
    let mut ask =
        |words: &[&[u8]]| channel.send(words).and_then(|()| channel.line(Some(until))).map_err(failed);
    let password = config.masterauth.reveal().as_bytes();
    if !password.is_empty() {
        let user = config.masteruser.reveal().as_bytes();
        let answer =
            if user.is_empty() { ask(&[b"AUTH", password])? } else { ask(&[b"AUTH", user, password])? };
        if answer != b"+OK" {
            return Err(format!("Unable to AUTH to MASTER: {}", refused("AUTH", &answer)));
        }
    }
    let answer = ask(&[b"PING"])?;
    if answer != b"+PONG" {
        return Err(refused("PING", &answer));
    }
    let port = match (config.replica_announce_port, config.tls_replication, config.port) {
        (0, true, _) | (0, false, 0) => config.tls_port,
        (0, false, port) => port,
        (announced, ..) => announced,
    };
    let port = port.to_string();
    let address = config.replica_announce_ip.as_bytes();
    let mut facts: Vec<Vec<&[u8]>> = vec![vec![b"REPLCONF", b"listening-port", port.as_bytes()]];
    if !address.is_empty() {
        facts.push(vec![b"REPLCONF", b"ip-address", address]);
    }
    facts.push(vec![b"REPLCONF", b"capa", b"eof", b"capa", b"psync2", b"capa", EMBER_CAPABILITY]);
    facts.push(vec![b"REPLCONF", b"version", VALKEY_VERSION]);
    if let Some(data) = data {
        facts.push(vec![b"REPLCONF", NODE_DATA.as_bytes(), data.as_bytes()]);
    }
    for words in &facts {
        let answer = ask(words)?;
        // A primary that does not support a REPLCONF option continues without it.
        if answer.first() == Some(&b'-') && !answer.starts_with(b"-ERR") {
            return Err(refused("REPLCONF", &answer));
        }
    }
    Ok(())
}

/// The reason why a handshake request received no usable reply.
pub(super) enum NoAnswer {
    /// The primary replied with this error.
    Refused(String),
    /// Sending the request or reading the reply failed, so it is not known whether the primary received the request.
    Unknown(String),
}

impl NoAnswer {
    /// Returns the reason as text.
    pub(super) fn text(self) -> String {
        let (NoAnswer::Refused(text) | NoAnswer::Unknown(text)) = self;
        text
    }
}

/// Requests the stream from the position of this server's data on: `held` is their history and position. With
/// `takes_over`, the request also asks the other server, a replica of this one, to become the primary.
pub(super) fn ask(
    channel: &mut Channel,
    held: Option<&(String, u64)>,
    takes_over: bool,
) -> Result<Answer, NoAnswer> {
    let (id, next) = match held {
        Some((id, position)) => (id.as_str(), (position + 1).to_string()),
        None => ("?", "-1".to_owned()),
    };
    let words: [&[u8]; 4] = [b"PSYNC", id.as_bytes(), next.as_bytes(), b"FAILOVER"];
    let sent = channel.send(if takes_over { &words } else { &words[..3] });
    let line = sent.and_then(|()| channel.line(None)).map_err(|error| NoAnswer::Unknown(failed(error)))?;
    let refused = || NoAnswer::Refused(refused("PSYNC", &line));
    Answer::parse(&line, held.is_some()).ok_or_else(refused)
}

/// Records that the handshake has begun; returns false if `change` is no longer the number of the latest role change.
pub(super) fn begin(link: &Link, change: u64) -> bool {
    link.edit(change, |state| state.phase = Phase::Handshake)
}
