//! Files of the repository that tests generate from the code.

use std::path::Path;

/// Asserts that a file equals the generated text, or, with `EMBER_BLESS` in the environment, writes it. White space at
/// the ends of lines is removed, and the text ends with one line end.
///
/// # Panics
/// Panics if the file differs, or cannot be written.
#[track_caller]
pub fn assert_generated(path: &Path, text: &str) {
    let lines: Vec<_> = text.trim_end().lines().map(str::trim_end).collect();
    let expected = lines.join("\n") + "\n";
    if std::env::var_os("EMBER_BLESS").is_some() {
        std::fs::write(path, expected).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    } else {
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(found == expected, "run the tests with EMBER_BLESS=1 to rewrite {}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outdated_generated_files_are_reported() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        if std::env::var_os("EMBER_BLESS").is_none() {
            assert_generated(&path, &text);
            assert!(std::panic::catch_unwind(|| assert_generated(&path, "another")).is_err());
        }
    }
}
