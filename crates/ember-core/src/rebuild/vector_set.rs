//! Vector sets: their stored numbers are not those that were given, so no VADD makes them again. They are restored.

use std::io;

use super::{CommandSink, command};
use crate::entries::entry::ValueRef;
use crate::rdb::dump_value;

/// Writes the command that makes the key.
pub(super) fn write(sink: &mut impl CommandSink, name: &[u8], value: ValueRef<'_>) -> io::Result<()> {
    command(sink, &[b"RESTORE", name, b"0", &dump_value(value)])
}
