//! An address to listen on: an IP address, `*`, `::*` or a host name. A leading `-` marks it as optional.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// The maximum number of addresses: each needs one listening socket per worker.
const ADDRESSES_MAX: usize = 16;

/// The maximum length of a host name in the DNS, in bytes.
const HOST_BYTES_MAX: usize = 253;

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindAddress {
    /// An IP address, `*` (every IPv4 address), `::*` (every IPv6 address) or a host name.
    pub host: String,
    /// Whether the server starts even if the machine does not have this address.
    pub optional: bool,
}

impl BindAddress {
    /// Returns the socket addresses for `port`. Resolves a host name, which may block.
    ///
    /// # Errors
    /// Returns the error of the name resolution.
    pub fn socket_addresses(&self, port: u16) -> io::Result<Vec<SocketAddr>> {
        let ip = match self.host.as_str() {
            "*" => Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            "::*" => Some(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
            host => host.parse().ok(),
        };
        match ip {
            Some(ip) => Ok(vec![SocketAddr::new(ip, port)]),
            None => Ok((self.host.as_str(), port).to_socket_addrs()?.collect()),
        }
    }

    /// Whether the server may start although listening on this address failed with `error`: the address is optional,
    /// and the machine does not have it.
    pub fn tolerates(&self, error: &io::Error) -> bool {
        let is_missing = error.kind() == io::ErrorKind::AddrNotAvailable
            || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error());
        self.optional && is_missing
    }
}

/// Reads a list of addresses separated by white space.
pub(crate) fn parse(text: &str) -> Result<Vec<BindAddress>, String> {
    let addresses: Vec<_> =
        text.split_whitespace().take(ADDRESSES_MAX + 1).map(parse_one).collect::<Result<_, _>>()?;
    if addresses.len() > ADDRESSES_MAX {
        return Err("Too many bind addresses specified.".to_owned());
    }
    Ok(addresses)
}

fn parse_one(word: &str) -> Result<BindAddress, String> {
    let (host, optional) = match word.strip_prefix('-') {
        Some(host) => (host, true),
        None => (word, false),
    };
    let is_name = (1..=HOST_BYTES_MAX).contains(&host.len())
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    if !(is_name || matches!(host, "*" | "::*") || host.parse::<IpAddr>().is_ok()) {
        return Err(format!("'{host}' is neither an IP address nor a host name"));
    }
    Ok(BindAddress { host: host.to_owned(), optional })
}

/// Returns the text that [`parse`] reads.
pub(crate) fn format(addresses: &[BindAddress]) -> String {
    let words: Vec<_> = addresses
        .iter()
        .map(|address| format!("{}{}", if address.optional { "-" } else { "" }, address.host))
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minus_makes_an_address_optional() {
        let addresses = parse("127.0.0.1 -::1 * -::*").unwrap();
        let read: Vec<_> =
            addresses.iter().map(|address| (address.host.as_str(), address.optional)).collect();
        assert_eq!(read, [("127.0.0.1", false), ("::1", true), ("*", false), ("::*", true)]);
        assert_eq!(format(&addresses), "127.0.0.1 -::1 * -::*");
    }

    #[test]
    fn wildcards_stand_for_the_unspecified_addresses() {
        let sockets: Vec<_> =
            parse("* ::* ::1").unwrap().iter().map(|a| a.socket_addresses(7).unwrap()).collect();
        assert_eq!(sockets.concat(), ["0.0.0.0:7", "[::]:7", "[::1]:7"].map(|text| text.parse().unwrap()));
    }

    #[test]
    fn invalid_addresses_are_rejected() {
        assert_eq!(
            parse("10.0.0.1:80"),
            Err("'10.0.0.1:80' is neither an IP address nor a host name".to_owned())
        );
        assert!(parse("-").is_err());
        assert!(parse(&"a".repeat(300)).is_err());
        assert_eq!(parse(&"::1 ".repeat(17)), Err("Too many bind addresses specified.".to_owned()));
        assert_eq!(parse(&"::1 ".repeat(16)).unwrap().len(), 16);
        assert_eq!(parse(""), Ok(vec![]));
    }
}
