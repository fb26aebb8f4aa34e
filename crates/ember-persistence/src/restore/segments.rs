//! The files of an AOF in the order in which they were written: each base with the increments after it.
//!
//! ```text
//! segment   1                       2                3 (the files that a server loads)
//!           base 1  incr 1  incr 2 | base 2  incr 3 | base 3  incr 4  incr 5
//! ```
//!
//! A base usually contains the data at the end of the increments before it, so that the increments form one chain:
//! base 1 with increments 1 to 5 gives the same data as base 3 with increments 4 and 5. If the AOF was off in between,
//! the base begins a new chain.

use crate::aof::{AofFile, Manifest, is_base, is_increment};

/// A base with the increments after it.
#[derive(Debug, Default)]
pub(super) struct Segment<'m> {
    /// The base; `None` if the AOF began empty.
    pub(super) base: Option<&'m AofFile>,
    pub(super) increments: Vec<&'m AofFile>,
}

impl Segment<'_> {
    /// Whether the data of the segment do not continue those of the segment before it.
    pub(super) fn begins_chain(&self) -> bool {
        self.base.is_some_and(|base| base.begins_chain)
    }

    /// Whether the AOF began with this segment, without data.
    pub(super) fn begins_empty(&self) -> bool {
        self.base.is_none() && self.increments.first().is_some_and(|first| first.sequence == 1)
    }
}

/// Returns the segments of the AOF whose file names begin with `name`, in order.
pub(super) fn segments<'m>(manifest: &'m Manifest, name: &str) -> Vec<Segment<'m>> {
    let mut segments: Vec<Segment<'m>> = Vec::new();
    for file in manifest.history.iter().chain(manifest.live()) {
        // The single file of an AOF of Redis before 7, which became a base, has no ending.
        if is_base(&file.name) || file.name == name {
            segments.push(Segment { base: Some(file), increments: Vec::new() });
        } else if is_increment(&file.name) {
            match segments.last_mut() {
                Some(last) => last.increments.push(file),
                None => segments.push(Segment { base: None, increments: vec![file] }),
            }
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_and_live_files_form_segments() {
        let text = "file a.aof.3.base.rdb seq 3 type b time 300\n\
            file a.aof.none seq 1 type h\n\
            file a.aof.1.incr.aof seq 1 type h replaced 100\n\
            file a.aof seq 1 type h replaced 200\n\
            file a.aof.2.incr.aof seq 2 type h replaced 200\n\
            file a.aof.2.base.aof seq 2 type h time 200 chain new replaced 300\n\
            file a.aof.3.incr.aof seq 3 type h replaced 300\n\
            file a.aof.4.incr.aof seq 4 type i\n\
            file a.aof.5.incr.aof seq 5 type i\n";
        let manifest = Manifest::parse(text.as_bytes()).unwrap();
        let found = segments(&manifest, "a.aof");
        let shown: Vec<(Option<&str>, Vec<u64>)> = found
            .iter()
            .map(|segment| {
                let increments = segment.increments.iter().map(|file| file.sequence).collect();
                (segment.base.map(|base| base.name.as_str()), increments)
            })
            .collect();
        let expected = [
            (None, vec![1]),
            (Some("a.aof"), vec![2]),
            (Some("a.aof.2.base.aof"), vec![3]),
            (Some("a.aof.3.base.rdb"), vec![4, 5]),
        ];
        assert_eq!(shown, expected);
        let begins: Vec<(bool, bool)> =
            found.iter().map(|segment| (segment.begins_empty(), segment.begins_chain())).collect();
        assert_eq!(begins, [(true, false), (false, false), (false, true), (false, false)]);
    }
}
