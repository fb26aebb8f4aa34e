//! The file of the topology, `nodes.conf`.
//!
//! ```text
//! ember-nodes 1 crc=<8 hexadecimal digits>
//! <a line of the topology> crc=<8 hexadecimal digits>
//! …
//! end <number of lines before it> crc=<8 hexadecimal digits>
//! ```
//!
//! The checksums are those of [`checked_lines`], so a changed, removed, added or moved line is detected, and so is a file
//! that ends early. A file without the first line was written by hand or by Redis: it contains the lines of the topology
//! without checksums, and comments after `#`.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use ember_cluster::topology::{self, LineError, Topology};
use ember_persistence::replace_file::replace;

use super::checked_lines;

/// The first word of a file with checksums.
const FIRST_WORD: &[u8] = b"ember-nodes ";

/// The first line, without its checksum: the name and the version of the form.
const FIRST_LINE: &str = "ember-nodes 1";

/// The beginning of the last line.
const LAST_LINE: &str = "end ";

/// The maximum size of a file in bytes that is read: far above that of 10,000 nodes with a hundred ranges each.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Reads the topology; `None` if there is no file.
///
/// # Errors
/// Returns an error that names the fault and its line in the file.
pub(super) fn load(path: &Path) -> Result<Option<Topology>, String> {
    let shown = path.display();
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Ok(found) if found.len() > FILE_BYTES_MAX => {
            return Err(format!(
                "{shown} has {} bytes, which is more than a file of a topology can have",
                found.len()
            ));
        }
        _ => {}
    }
    let bytes = fs::read(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let found = parse(&bytes).map_err(|LineError { line, reason }| {
        format!(
            "{shown}:{line}: {reason}. The file contains the nodes of the cluster and their slots: restore it from a copy, \
             or move it away to start a new node without slots"
        )
    });
    found.map(Some)
}

/// Replaces the file durably.
///
/// # Errors
/// Returns errors of the system.
pub(super) fn save(path: &Path, topology: &Topology) -> io::Result<()> {
    replace(path, text_of(topology).as_bytes())
}

fn text_of(topology: &Topology) -> String {
    let lines = topology::lines(topology);
    let last = format!("{LAST_LINE}{}", lines.len());
    let all = [FIRST_LINE].into_iter().chain(lines.iter().map(String::as_str)).chain([&*last]);
    checked_lines::text_of(0, all).0
}

fn parse(bytes: &[u8]) -> Result<Topology, LineError> {
    if !bytes.starts_with(FIRST_WORD) {
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
            let wrong = |_| LineError { line: number, reason: "the line is not valid UTF-8".to_owned() };
            lines.push((number, std::str::from_utf8(line).map_err(wrong)?));
        }
        return topology::parse(lines.into_iter().filter(|(_, line)| !line.trim_start().starts_with('#')));
    }
    let lines: Vec<(usize, &str)> = (1..).zip(checked_lines::lines_of(bytes)?.0).collect();
    let count = lines.len();
    let at_end = |reason: &str| LineError { line: count, reason: reason.to_owned() };
    let [(_, first), middle @ .., (_, last)] = &lines[..] else { return Err(at_end("the file ends early")) };
    if *first != FIRST_LINE {
        let reason = format!("'{first}' is a form that this version does not support");
        return Err(LineError { line: 1, reason });
    }
    if *last != format!("{LAST_LINE}{}", middle.len()) {
        return Err(at_end("the file ends early"));
    }
    topology::parse(middle.iter().copied())
}

#[cfg(test)]
mod tests {
    use ember_cluster::node::Name;

    use super::*;

    fn sample() -> Topology {
        let name = |digit: &str| Name::parse(&digit.repeat(40)).unwrap();
        let mut topology = Topology::lone(name("a"), name("b"));
        topology.assign(&[0, 1, 2, 500]).unwrap();
        topology.set_my_epoch(3);
        topology
    }

    #[test]
    fn a_saved_topology_is_loaded_again() {
        let text = text_of(&sample());
        assert_eq!(parse(text.as_bytes()), Ok(sample()));
    }

    #[test]
    fn a_file_that_is_cut_or_changed_anywhere_is_refused() {
        let text = text_of(&sample()).into_bytes();
        for len in 0..text.len() {
            assert!(parse(&text[..len]).is_err(), "{len} of {} bytes", text.len());
        }
        for at in 0..text.len() {
            for changed in [text[at] ^ 1, text[at] ^ 0x20, b'#', b'\n', b' ', 0xff] {
                let mut damaged = text.clone();
                damaged[at] = changed;
                assert!(damaged == text || parse(&damaged).is_err(), "byte {at} as {changed}");
            }
        }
        let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        for left_out in 0..lines.len() {
            let rest = [&lines[..left_out], &lines[left_out + 1..]].concat().concat();
            assert!(parse(&rest).is_err(), "without line {left_out}");
        }
        let error = parse(&[&lines[..1], &lines[2..]].concat().concat()).unwrap_err();
        assert_eq!(error.line, 2, "{error:?}");
    }

    #[test]
    fn a_file_written_by_hand_has_comments_and_no_checksums() {
        let lines = topology::lines(&sample()).join("\n\n");
        assert_eq!(parse(format!("# Three nodes.\n\n{lines}\n").as_bytes()), Ok(sample()));
        assert_eq!(parse(b"# nothing\n").unwrap_err().line, 2);
    }
}
