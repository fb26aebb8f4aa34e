//! The ember server program.

fn main() {}
