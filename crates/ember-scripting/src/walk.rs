//! Going through the pairs of a table step by step, with one reference held instead of one for each pair: an interpreter
//! has room for some thousand references only.

use mlua::{Function, Table, Value};

/// A walk through a table, in the order of `next`.
pub(super) struct Pairs {
    next: Function,
    table: Table,
    key: Value,
}

impl Pairs {
    /// Begins a walk; `next` is Lua's function of that name.
    pub(super) fn of(next: &Function, table: &Table) -> Pairs {
        Pairs { next: next.clone(), table: table.clone(), key: Value::Nil }
    }

    /// The next key and its value.
    pub(super) fn advance(&mut self) -> mlua::Result<Option<(Value, Value)>> {
        let (key, value): (Value, Value) = self.next.call((&self.table, &self.key))?;
        self.key = key.clone();
        Ok((!key.is_nil()).then_some((key, value)))
    }
}
