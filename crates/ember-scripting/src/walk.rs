//! Iterates over the pairs of a table with one reference in total instead of one for each pair, because an interpreter
//! has space for only some thousand references.

use mlua::{Function, Table, Value};

/// An iteration over a table, in the order of `next`.
pub(super) struct Pairs {
    next: Function,
    table: Table,
    key: Value,
}

impl Pairs {
    /// Begins an iteration over `table`; `next` must be Lua's function of that name.
    pub(super) fn of(next: &Function, table: &Table) -> Pairs {
        Pairs { next: next.clone(), table: table.clone(), key: Value::Nil }
    }

    /// Returns the next key and its value; `None` at the end.
    pub(super) fn advance(&mut self) -> mlua::Result<Option<(Value, Value)>> {
        let (key, value): (Value, Value) = self.next.call((&self.table, &self.key))?;
        self.key = key.clone();
        Ok((!key.is_nil()).then_some((key, value)))
    }
}
