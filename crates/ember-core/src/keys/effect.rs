//! The results of edits, which state whether the edited value has changed.

/// The result of an edit that states whether the edit has changed the value.
pub trait Effect {
    /// Returns whether the edit has changed the value.
    fn is_change(&self) -> bool;
}

impl Effect for () {
    fn is_change(&self) -> bool {
        true
    }
}

impl Effect for bool {
    fn is_change(&self) -> bool {
        *self
    }
}

impl Effect for usize {
    fn is_change(&self) -> bool {
        *self != 0
    }
}

impl Effect for i64 {
    fn is_change(&self) -> bool {
        *self != 0
    }
}

impl<T> Effect for Option<T> {
    fn is_change(&self) -> bool {
        self.is_some()
    }
}

/// A failed edit has changed nothing.
impl<T: Effect, E> Effect for Result<T, E> {
    fn is_change(&self) -> bool {
        self.as_ref().is_ok_and(Effect::is_change)
    }
}

/// The result of an edit, together with whether the value has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edited<R> {
    /// Whether the edit has changed the value.
    pub is_change: bool,
    /// The value that the edit returns to its caller.
    pub result: R,
}

impl<R> Edited<R> {
    /// Returns the result of an edit that has changed the value.
    pub fn changed(result: R) -> Edited<R> {
        Edited { is_change: true, result }
    }
}

impl<R> Effect for Edited<R> {
    fn is_change(&self) -> bool {
        self.is_change
    }
}
