//! The command that rebuilds a vector set: RESTORE, because the stored numbers differ from the numbers given to VADD.

use std::io;

use super::{CommandSink, command};
use crate::entries::entry::ValueRef;
use crate::rdb::dump_value;

/// Writes the RESTORE command of the key.
pub(super) fn write(sink: &mut impl CommandSink, name: &[u8], value: ValueRef<'_>) -> io::Result<()> {
    command(sink, &[b"RESTORE", name, b"0", &dump_value(value)])
}
