//! Free ports for the servers of tests.
//!
//! Test programs of several checkouts may run at the same time, so a process reserves blocks of ports: it locks a file per
//! block for as long as it lives. No other test program is assigned a port of the block, and programs that take any port
//! are assigned ephemeral ones.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// The first port to assign. All assigned ports are below the ephemeral ports of systems (32768 and up on Linux, 49152
/// and up elsewhere), so that no outgoing connection can use a port before its server listens.
const FIRST: u16 = 10_000;

/// The number of ports in a block: a test program with a few servers needs one block, and one with hundreds of tests some
/// ten.
const BLOCK_PORTS: u16 = 100;

/// The number of blocks.
const BLOCKS: u16 = 200;

/// The folder of the locked files, in the folder for temporary files.
const FOLDER: &str = "ember-test-ports";

/// The ports of this process.
struct Reserved {
    /// The reserved blocks; the files are locked until the process ends.
    blocks: Vec<(u16, File)>,
    /// The number of ports assigned so far.
    assigned: usize,
}

static RESERVED: Mutex<Reserved> = Mutex::new(Reserved { blocks: Vec::new(), assigned: 0 });

/// Returns a loopback port that is free now, that no other test program is assigned, and that this process has not been
/// assigned recently. O(1) as long as most of the ports are free.
///
/// # Panics
/// Panics if no block of ports can be reserved.
pub fn free_port() -> u16 {
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let port = reserved.next();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

impl Reserved {
    /// Returns the next port: of a further block if all ports have been assigned once, or the one that was assigned least
    /// recently if no block is free.
    fn next(&mut self) -> u16 {
        let per_block = usize::from(BLOCK_PORTS);
        if self.assigned >= self.blocks.len() * per_block
            && let Some(block) = self.reserve()
        {
            self.assigned = self.blocks.len() * per_block;
            self.blocks.push(block);
        }
        assert!(!self.blocks.is_empty(), "all {BLOCKS} blocks of ports are locked in {FOLDER}");
        let at = self.assigned % (self.blocks.len() * per_block);
        self.assigned += 1;
        FIRST + self.blocks[at / per_block].0 * BLOCK_PORTS + (at % per_block) as u16
    }

    /// Locks the file of a free block, beginning at a block that depends on the process.
    fn reserve(&self) -> Option<(u16, File)> {
        let folder = std::env::temp_dir().join(FOLDER);
        fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
        let first = (std::process::id() % u32::from(BLOCKS)) as u16;
        (0..BLOCKS).map(|nth| (first + nth) % BLOCKS).find_map(|block| {
            let file = File::options().create(true).append(true).open(folder.join(block.to_string())).ok()?;
            file.try_lock().ok().map(|()| (block, file))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_unique() {
        let taken: Vec<TcpListener> =
            (0..150).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, free_port())).unwrap()).collect();
        let port = free_port();
        assert!(taken.iter().all(|listener| listener.local_addr().unwrap().port() != port));
    }

    #[test]
    fn a_reserved_block_is_not_reserved_again() {
        let mut reserved = Reserved { blocks: Vec::new(), assigned: 0 };
        (0..3).for_each(|_| {
            let block = reserved.reserve().unwrap();
            reserved.blocks.push(block);
        });
        let mut numbers: Vec<u16> = reserved.blocks.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 3);
    }
}
