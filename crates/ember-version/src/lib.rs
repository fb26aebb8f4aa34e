//! Identifies the build for all programs of ember: the version, and the commit it was built from (`build.rs`).

/// The version of ember.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The first ten hexadecimal digits of the commit that the program was built from; empty if unknown.
pub const COMMIT: &str = env!("EMBER_COMMIT");

/// `0.1.0 (commit 0123456789)`, or without a commit `0.1.0`.
pub const SHOWN: &str = env!("EMBER_VERSION_SHOWN");
