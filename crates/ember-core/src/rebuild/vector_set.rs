//! Vector sets: their stored numbers differ from the given ones, so no VADD can rebuild them. They are restored.

use std::io;

use super::{CommandSink, command};
use crate::entries::entry::ValueRef;
use crate::rdb::dump_value;

/// Writes the command that restores the key.
pub(super) fn write(sink: &mut impl CommandSink, name: &[u8], value: ValueRef<'_>) -> io::Result<()> {
    command(sink, &[b"RESTORE", name, b"0", &dump_value(value)])
}
