//! Text files whose lines have checksums.
//!
//! The checksum of a line is the CRC-32C of the checksum of the line before it and of the line itself, so a changed,
//! removed, added or moved line is detected.

use crc_fast::{CrcAlgorithm, checksum};
use ember_cluster::topology::LineError;

/// Separates a line from its checksum.
const BEFORE_CHECKSUM: &str = " crc=";

/// Returns the checksum of a line that follows one with the checksum `before`; that of the first line follows 0.
fn checksum_after(before: u32, line: &str) -> u32 {
    let bytes = [&before.to_le_bytes()[..], line.as_bytes()].concat();
    u32::try_from(checksum(CrcAlgorithm::Crc32Iscsi, &bytes)).expect("the checksum has 32 bits")
}

/// Returns the text of lines that follow one with the checksum `before`, and the last checksum.
pub(super) fn text_of<'l>(before: u32, lines: impl IntoIterator<Item = &'l str>) -> (String, u32) {
    let (mut text, mut before) = (String::new(), before);
    for line in lines {
        before = checksum_after(before, line);
        text += &format!("{line}{BEFORE_CHECKSUM}{before:08x}\n");
    }
    (text, before)
}

/// Returns the lines of a text without their checksums, and the last checksum. Each line has an end.
///
/// # Errors
/// Returns the first line that is damaged.
pub(super) fn lines_of(text: &[u8]) -> Result<(Vec<&str>, u32), LineError> {
    let (mut lines, mut before) = (Vec::new(), 0);
    for (number, line) in (1..).zip(text.split_inclusive(|&byte| byte == b'\n')) {
        let wrong = |reason: &str| LineError { line: number, reason: reason.to_owned() };
        let line = line.strip_suffix(b"\n").ok_or_else(|| wrong("the last line has no end"))?;
        let line = std::str::from_utf8(line).map_err(|_| wrong("the line is not valid UTF-8"))?;
        let split = line.rsplit_once(BEFORE_CHECKSUM).ok_or_else(|| wrong("the line has no checksum"))?;
        before = checksum_after(before, split.0);
        if split.1 != format!("{before:08x}") {
            return Err(wrong("the line is damaged: it does not match its checksum"));
        }
        lines.push(split.0);
    }
    Ok((lines, before))
}
