//! Ports that nobody listens on.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// The first of the ports given out. All lie below those that systems give to outgoing connections (32768 and up on
/// Linux, 49152 and up elsewhere), so that a connection cannot take one before its server is there.
const FIRST: u16 = 10_000;

/// How many ports there are to give.
const COUNT: u16 = 20_000;

/// A loopback port that nobody listens on now and that this process has not been given lately. Another process can still
/// take it, so who starts a server looks whose it is. O(1) as long as most of the ports are free.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Processes begin at different places: a build and a test of another checkout may run beside this one.
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
    fn a_port_is_free_and_given_once() {
        let taken: Vec<TcpListener> =
            (0..50).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, free_port())).unwrap()).collect();
        let port = free_port();
        assert!(taken.iter().all(|listener| listener.local_addr().unwrap().port() != port));
    }
}
