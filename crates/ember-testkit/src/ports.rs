//! Free ports for the servers of tests.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// The first port to assign. All assigned ports are below the ephemeral ports of systems (32768 and up on Linux, 49152
/// and up elsewhere), so that no outgoing connection can use a port before its server listens.
const FIRST: u16 = 10_000;

/// The number of ports to assign.
const COUNT: u16 = 20_000;

/// Returns a loopback port that is free now and that this process has not been assigned recently. Another process can
/// still bind it, so a test that starts a server checks which process listens. O(1) as long as most of the ports are
/// free.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Processes begin at different ports: a build and a test of another checkout may run at the same time.
    let begin = (std::process::id() % u32::from(COUNT)).wrapping_mul(131) % u32::from(COUNT);
    loop {
        let nth = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + ((begin + nth) % u32::from(COUNT)) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_unique() {
        let taken: Vec<TcpListener> =
            (0..50).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, free_port())).unwrap()).collect();
        let port = free_port();
        assert!(taken.iter().all(|listener| listener.local_addr().unwrap().port() != port));
    }
}
