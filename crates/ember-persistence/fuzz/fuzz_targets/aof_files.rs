//! Any bytes are an AOF, an AOF with a torn end, or an error. The file stays valid when the torn end is removed.
#![no_main]

use std::io;
use std::path::Path;

use ember_persistence::aof::{AofReader, Manifest, Part};
use ember_persistence::encryption::Ending;
use ember_persistence::rdb_file::Source;
use ember_protocol::OwnedBatch;
use libfuzzer_sys::fuzz_target;

/// Returns the number of units and the end of the valid part; None for a damaged file.
fn read(bytes: &[u8], ending: Ending) -> Option<(u64, u64)> {
    let mut reader = AofReader::new(Source::new(io::Cursor::new(bytes), 0), Path::new("fuzzed"), ending);
    let (mut unit, mut units) = (OwnedBatch::new(), 0);
    loop {
        match reader.next(&mut unit).ok()? {
            Part::Unit => units += 1,
            Part::Time(_) | Part::Origin(_) => {}
            Part::End => {
                let end = reader.torn().map_or(bytes.len() as u64, |torn| torn.valid_to);
                return Some((units, end));
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let _ = Manifest::parse(data);
    let Some((units, end)) = read(data, Ending::MayBeTorn) else { return };
    assert_eq!(read(&data[..end as usize], Ending::Whole), Some((units, end)));
});
