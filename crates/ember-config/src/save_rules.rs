//! Save rules: the number of changes and the time after which the data set is saved automatically.

/// A save rule, which is met if both conditions are met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaveRule {
    /// The minimum time in seconds since the last save, exclusive.
    pub seconds: i64,
    /// The minimum number of changed keys since the last save.
    pub changes: u64,
}

/// All save rules. The data set is saved when one of the rules is met.
#[derive(Debug, Clone, Default)]
pub struct SaveRules {
    rules: Vec<SaveRule>,
    /// Whether a configuration line has replaced the default rules.
    is_stated: bool,
}

impl PartialEq for SaveRules {
    fn eq(&self, other: &SaveRules) -> bool {
        self.rules == other.rules
    }
}

impl SaveRules {
    /// Whether there are no rules, so that nothing is saved automatically.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Iterates over the rules.
    pub fn iter(&self) -> impl Iterator<Item = &SaveRule> {
        self.rules.iter()
    }

    /// Replaces all rules by the pairs of seconds and changes in `text`.
    ///
    /// # Errors
    /// Returns a message if `text` is not a list of such pairs; the rules are then unchanged.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        *self = SaveRules { rules: parse(text)?, is_stated: false };
        Ok(())
    }

    /// Adds the rules of a configuration line to the rules of earlier lines. A line without rules removes all rules.
    ///
    /// # Errors
    /// Returns the errors of [`SaveRules::set`].
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let added = parse(text)?;
        if !self.is_stated || added.is_empty() {
            self.rules.clear();
        }
        self.rules.extend(added);
        self.is_stated = true;
        Ok(())
    }

    /// Returns the text that [`SaveRules::set`] reads.
    pub fn format(&self) -> String {
        let rules = self.rules.iter().map(|rule| format!("{} {}", rule.seconds, rule.changes));
        rules.collect::<Vec<_>>().join(" ")
    }
}

fn parse(text: &str) -> Result<Vec<SaveRule>, String> {
    const ERROR: &str = "Invalid save parameters";
    let numbers: Result<Vec<i64>, _> = text.split_whitespace().map(str::parse).collect();
    let numbers = numbers.map_err(|_| ERROR.to_owned())?;
    let pairs = numbers.chunks(2).map(|pair| match *pair {
        [seconds, changes] if seconds > 0 && changes >= 0 => {
            Ok(SaveRule { seconds, changes: changes.unsigned_abs() })
        }
        _ => Err(ERROR.to_owned()),
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_pairs_of_seconds_and_changes() {
        let mut rules = SaveRules::default();
        rules.set(" 3600 1  300 100 ").unwrap();
        assert_eq!(rules.format(), "3600 1 300 100");
        for wrong in ["1", "0 1", "-1 1", "1 -1", "1 2 3", "a b", "1 1x", "99999999999999999999 1"] {
            assert_eq!(rules.set(wrong), Err("Invalid save parameters".to_owned()), "{wrong}");
            assert_eq!(rules.add(wrong), Err("Invalid save parameters".to_owned()), "{wrong}");
        }
        assert_eq!(rules.format(), "3600 1 300 100");
        rules.set("").unwrap();
        assert!(rules.is_empty() && rules.format().is_empty());
    }

    #[test]
    fn save_lines_replace_the_default_and_accumulate() {
        let mut rules = SaveRules::default();
        rules.set("3600 1").unwrap();
        for (line, together) in [("900 1", "900 1"), ("60 0", "900 1 60 0"), ("", ""), ("5 5 6 6", "5 5 6 6")]
        {
            rules.add(line).unwrap();
            assert_eq!(rules.format(), together);
        }
    }
}
