//! The options of SHUTDOWN, which also configure the reaction to signals.

/// The options of SHUTDOWN; all are off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShutdownOptions {
    /// Whether the data set is saved; `None` to save it if there are save rules.
    pub saves: Option<bool>,
    /// Whether the server shuts down without waiting for replicas.
    pub is_immediate: bool,
    /// Whether the server shuts down even if the data set cannot be saved.
    pub is_forced: bool,
}

const WORDS: &str = "default, save, nosave, now, force";

impl ShutdownOptions {
    /// Reads a value of `shutdown-on-sigint` or `shutdown-on-sigterm`.
    ///
    /// # Errors
    /// Returns Redis's error text.
    pub(super) fn parse(text: &str) -> Result<ShutdownOptions, String> {
        let mut options = ShutdownOptions::default();
        let (mut saves, mut saves_not) = (false, false);
        for word in text.split_whitespace() {
            match word.to_ascii_lowercase().as_str() {
                "default" => {}
                "save" => saves = true,
                "nosave" => saves_not = true,
                "now" => options.is_immediate = true,
                "force" => options.is_forced = true,
                _ => return Err(format!("argument(s) must be one of the following: {WORDS}")),
            }
        }
        if text.trim().is_empty() {
            return Err(format!("argument(s) must be one of the following: {WORDS}"));
        }
        if saves && saves_not {
            return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".to_owned());
        }
        options.saves = (saves || saves_not).then_some(saves);
        Ok(options)
    }

    /// Returns the text that [`ShutdownOptions::parse`] reads.
    pub(super) fn format(self) -> String {
        let words = [
            (self.saves == Some(true), "save"),
            (self.saves == Some(false), "nosave"),
            (self.is_immediate, "now"),
            (self.is_forced, "force"),
        ];
        let words: Vec<_> = words.into_iter().filter(|(is_on, _)| *is_on).map(|(_, word)| word).collect();
        if words.is_empty() { "default".to_owned() } else { words.join(" ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_any_order_and_shown_in_the_order_of_redis() {
        for (text, shown) in [
            ("default", "default"),
            ("FORCE now save", "save now force"),
            ("nosave", "nosave"),
            ("default now", "now"),
        ] {
            assert_eq!(ShutdownOptions::parse(text).unwrap().format(), shown);
        }
    }

    #[test]
    fn contradictory_options_are_rejected() {
        let refused = ShutdownOptions::parse("save nosave").unwrap_err();
        assert_eq!(refused, "shutdown options SAVE and NOSAVE can't be used simultaneously");
        for text in ["", "never", "save,now"] {
            let refused = ShutdownOptions::parse(text).unwrap_err();
            assert_eq!(refused, format!("argument(s) must be one of the following: {WORDS}"));
        }
    }
}
