//! Detects the remains of an unsynced write after a power cut: a sector of the write that is all zeros, or that ends
//! with zeros because its write was not finished.

/// The size of a sector, which a disk writes completely or not at all.
const SECTOR_BYTES: u64 = 512;

/// The minimum number of zeros at the end of a sector that counts as lost: written data is unlikely to contain as many
/// zeros by chance. A sector also counts as lost if all of its bytes that belong to the write are zeros.
const ZEROS_MIN: u64 = 8;

/// Scans the bytes of a write, in order, for a lost sector.
#[derive(Debug)]
pub struct LostSector {
    /// The file offset of the next byte.
    at: u64,
    /// The number of bytes scanned in the current sector; the next field counts the zeros at their end.
    bytes: u64,
    zeros: u64,
    is_found: bool,
}

impl LostSector {
    /// Creates a scanner for a write that begins at a file offset.
    pub fn new(at: u64) -> LostSector {
        LostSector { at, bytes: 0, zeros: 0, is_found: false }
    }

    /// Scans the next bytes.
    pub fn scan(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let left = SECTOR_BYTES - self.at % SECTOR_BYTES;
            let (piece, rest) = bytes.split_at(bytes.len().min(left as usize));
            let zeros = piece.iter().rev().take_while(|&&byte| byte == 0).count();
            self.zeros = if zeros == piece.len() { self.zeros + zeros as u64 } else { zeros as u64 };
            self.bytes += piece.len() as u64;
            self.at += piece.len() as u64;
            bytes = rest;
            if self.at.is_multiple_of(SECTOR_BYTES) {
                self.is_found = self.is_found();
                (self.bytes, self.zeros) = (0, 0);
            }
        }
    }

    /// Whether a sector was lost, once the whole write has been scanned.
    pub fn is_found(&self) -> bool {
        self.is_found || (self.bytes > 0 && self.zeros >= self.bytes.min(ZEROS_MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(at: u64, bytes: &[u8]) -> bool {
        let mut whole = LostSector::new(at);
        whole.scan(bytes);
        let mut pieces = LostSector::new(at);
        bytes.chunks(100).for_each(|piece| pieces.scan(piece));
        assert_eq!(whole.is_found(), pieces.is_found());
        whole.is_found()
    }

    #[test]
    fn a_sector_counts_as_lost_if_the_record_ends_with_zeros_there() {
        let mut bytes = vec![1; 1500];
        assert!(!is_found(0, &bytes) && !is_found(0, &[]));
        bytes[300..412].fill(0);
        assert!(is_found(100, &bytes));
        assert!(!is_found(99, &bytes) && !is_found(0, &bytes));
        bytes[300..405].fill(1);
        assert!(!is_found(100, &bytes), "seven zeros may be data");
        bytes[404] = 0;
        assert!(is_found(100, &bytes));
        let mut bytes = vec![1; 1500];
        bytes[1490..].fill(0);
        assert!(is_found(0, &bytes), "the last sector, up to the end of the write");
        assert!(is_found(1020, &[1, 1, 1, 1, 0, 0]) && !is_found(1020, &[1, 1, 1, 0, 1, 1]));
    }
}
