//! Which program this is.

/// Its version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The first ten hexadecimal digits of the commit it was built from; empty when that is not known (`build.rs`).
pub(crate) const COMMIT: &str = env!("EMBER_COMMIT");

/// `0.1.0 (commit 0123456789)`, or without a commit `0.1.0`.
pub(crate) fn shown() -> String {
    match COMMIT {
        "" => VERSION.to_owned(),
        commit => format!("{VERSION} (commit {commit})"),
    }
}
