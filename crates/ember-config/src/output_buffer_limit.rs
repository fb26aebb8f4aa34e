//! The limits on the size of unsent replies, one per class of clients.

use super::value::parse_memory;

/// The conditions under which a client that does not read its replies is disconnected; 0 means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputBufferLimit {
    /// A client with more unsent bytes is disconnected at once.
    pub hard_bytes: u64,
    /// A client with more unsent bytes for `soft_seconds` without interruption is disconnected.
    pub soft_bytes: u64,
    /// The time in seconds for which `soft_bytes` may be exceeded.
    pub soft_seconds: u64,
}

/// The limits of all classes of clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputBufferLimits {
    /// Clients that are neither replicas nor subscribers.
    pub normal: OutputBufferLimit,
    /// Connections of replicas.
    pub replica: OutputBufferLimit,
    /// Clients with at least one subscription.
    pub pubsub: OutputBufferLimit,
}

impl OutputBufferLimits {
    /// Reads any number of `class hard soft seconds` groups and sets the limits of the named classes. The other classes
    /// keep their limits. Changes nothing on an error.
    pub fn update(&mut self, text: &str) -> Result<(), String> {
        let words: Vec<_> = text.split_whitespace().collect();
        if words.is_empty() || !words.len().is_multiple_of(4) {
            return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
        }
        let mut updated = *self;
        for limit in words.chunks_exact(4) {
            let class = match limit[0].to_ascii_lowercase().as_str() {
                "normal" => &mut updated.normal,
                "slave" | "replica" => &mut updated.replica,
                "pubsub" => &mut updated.pubsub,
                _ => return Err("Invalid client class specified in buffer limit configuration.".to_owned()),
            };
            *class = parse_limit(&limit[1..])
                .ok_or("Error in hard, soft or soft_seconds setting in buffer limit configuration.")?;
        }
        *self = updated;
        Ok(())
    }

    /// Returns the text that [`Self::update`] reads, with all classes.
    pub fn format(&self) -> String {
        let classes = [("normal", self.normal), ("slave", self.replica), ("pubsub", self.pubsub)];
        let limits = classes.map(|(class, limit)| {
            format!("{class} {} {} {}", limit.hard_bytes, limit.soft_bytes, limit.soft_seconds)
        });
        limits.join(" ")
    }
}

fn parse_limit(words: &[&str]) -> Option<OutputBufferLimit> {
    let bytes = |text| parse_memory(text, &(0..=u64::MAX)).ok();
    let seconds = words[2].parse::<i64>().ok().and_then(|seconds| u64::try_from(seconds).ok())?;
    Some(OutputBufferLimit {
        hard_bytes: bytes(words[0])?,
        soft_bytes: bytes(words[1])?,
        soft_seconds: seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_limit_of_a_class_counts_and_other_classes_stay() {
        let mut limits = OutputBufferLimits::default();
        limits.update("pubsub 32mb 8mb 60").unwrap();
        limits.update("normal 1 2 3 NORMAL 4 5 6 replica 1mb 0 0").unwrap();
        assert_eq!(limits.format(), "normal 4 5 6 slave 1048576 0 0 pubsub 33554432 8388608 60");
    }

    #[test]
    fn a_bad_limit_changes_nothing() {
        let mut limits = OutputBufferLimits::default();
        for (text, error) in [
            ("", "Wrong number of arguments in buffer limit configuration."),
            ("normal 1 2", "Wrong number of arguments in buffer limit configuration."),
            ("normal 1 1 1 foo 1 2 3", "Invalid client class specified in buffer limit configuration."),
            ("normal x 2 3", "Error in hard, soft or soft_seconds setting in buffer limit configuration."),
            ("normal 1 2 -3", "Error in hard, soft or soft_seconds setting in buffer limit configuration."),
        ] {
            assert_eq!(limits.update(text), Err(error.to_owned()), "{text}");
        }
        assert_eq!(limits, OutputBufferLimits::default());
    }
}
