//! Unit tests of streams as values.
