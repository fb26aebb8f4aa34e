//! Texts that script libraries build from values. They are limited by [`Shared::memory_bytes_max`] and built in pieces,
//! between which the script can be ended.

use mlua::{Lua, LuaString};

use super::interpreter::{ELEMENT_WORK, Shared};
use super::raised;

/// The number of bytes that are processed between two checks whether to continue.
pub(super) const PIECE_BYTES: usize = 64 * 1024;

/// A text that is being built.
pub(super) struct Output<'o> {
    lua: &'o Lua,
    shared: &'o Shared,
    /// The text so far. Code that bypasses [`Output::extend`] may add only a few bytes per element.
    pub(super) bytes: Vec<u8>,
}

impl<'o> Output<'o> {
    /// Creates an empty text.
    pub(super) fn new(lua: &'o Lua, shared: &'o Shared) -> Output<'o> {
        Output { lua, shared, bytes: Vec::new() }
    }

    /// Counts an element of a table, or an operation of similar cost.
    ///
    /// # Errors
    /// Returns an error if the text is too long or the script must end.
    pub(super) fn count_element(&self) -> mlua::Result<()> {
        self.count(0, ELEMENT_WORK)
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// Returns the errors of [`Output::count_element`].
    pub(super) fn extend(&mut self, bytes: &[u8]) -> mlua::Result<()> {
        self.extend_by(bytes, |out, piece| out.extend_from_slice(piece))
    }

    /// Calls `append` with each piece of `bytes`, to append it.
    ///
    /// # Errors
    /// Returns the errors of [`Output::count_element`].
    pub(super) fn extend_by(
        &mut self,
        bytes: &[u8],
        append: impl Fn(&mut Vec<u8>, &[u8]),
    ) -> mlua::Result<()> {
        for piece in bytes.chunks(PIECE_BYTES) {
            self.count(piece.len(), piece.len())?;
            append(&mut self.bytes, piece);
        }
        Ok(())
    }

    fn count(&self, growth: usize, work: usize) -> mlua::Result<()> {
        if self.bytes.len() + growth > self.shared.memory_bytes_max {
            return Err(raised::text(self.lua, "not enough memory"));
        }
        self.shared.work(work)
    }

    /// Converts the text to a Lua string.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory.
    pub(super) fn into_string(self) -> mlua::Result<LuaString> {
        self.count(0, 0)?;
        self.lua.create_string(self.bytes)
    }
}
