//! The limit on the total memory of all clients: bytes, a percentage of `maxmemory`, or derived from `maxmemory`.

use super::value::parse_memory;

/// The minimum of the limit in bytes: a lower limit would disconnect every client.
const BYTES_MIN: u64 = 128 * 1024;

/// The divisor of `maxmemory` for the default limit. Half of `maxmemory` is enough for a request with the longest value
/// that a server of this size stores (`Turn::values_bytes_max`).
const AUTO_DIVISOR: u64 = 2;

/// The minimum of the default limit in bytes, however low `maxmemory` is: space for a few requests and replies of the
/// largest size that workers process at once.
const AUTO_BYTES_MIN: u64 = 64 * 1024 * 1024;

/// The parameter value for [`ClientMemoryLimit::Auto`].
const AUTO: &str = "auto";

/// The limit on the total memory of clients, above which clients are evicted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum ClientMemoryLimit {
    /// Half of `maxmemory`, at least 64 MiB; no limit while `maxmemory` is 0.
    #[default]
    Auto,
    /// A limit in bytes; 0 for no limit.
    Bytes(u64),
    /// A percentage of `maxmemory`; no limit while `maxmemory` is 0.
    Percent(u8),
}

impl ClientMemoryLimit {
    /// Reads a memory size, a percentage such as `5%`, or `auto`.
    pub fn parse(text: &str) -> Result<ClientMemoryLimit, String> {
        if text.eq_ignore_ascii_case(AUTO) {
            return Ok(ClientMemoryLimit::Auto);
        }
        let Some(digits) = text.strip_suffix('%') else {
            let bytes = parse_memory(text, &(0..=i64::MAX.unsigned_abs()));
            return bytes
                .map(ClientMemoryLimit::Bytes)
                .map_err(|error| error.replace("a memory value", "a memory or percent value"));
        };
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            return Err("argument must be a memory or percent value".to_owned());
        }
        let percent = digits.parse().ok().filter(|&percent: &u8| percent <= 100);
        percent
            .map(ClientMemoryLimit::Percent)
            .ok_or_else(|| "percentage argument must be less or equal to 100".to_owned())
    }

    /// Returns the text that [`Self::parse`] reads.
    pub fn format(self) -> String {
        match self {
            ClientMemoryLimit::Auto => AUTO.to_owned(),
            ClientMemoryLimit::Bytes(bytes) => bytes.to_string(),
            ClientMemoryLimit::Percent(percent) => format!("{percent}%"),
        }
    }

    /// Returns the limit in bytes; `None` for no limit.
    pub fn bytes(self, maxmemory: u64) -> Option<u64> {
        let bytes = match self {
            ClientMemoryLimit::Auto if maxmemory == 0 => 0,
            ClientMemoryLimit::Auto => (maxmemory / AUTO_DIVISOR).max(AUTO_BYTES_MIN),
            ClientMemoryLimit::Bytes(bytes) => bytes,
            ClientMemoryLimit::Percent(percent) => maxmemory / 100 * u64::from(percent),
        };
        (bytes != 0).then(|| bytes.max(BYTES_MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_percentages_are_read() {
        for (text, shown, bytes) in [
            ("AUTO", "auto", Some(500_000_000)),
            ("0", "0", None),
            ("0%", "0%", None),
            ("10mb", "10485760", Some(10 << 20)),
            ("1", "1", Some(BYTES_MIN)),
            ("5%", "5%", Some(50_000_000)),
            ("100%", "100%", Some(1_000_000_000)),
        ] {
            let limit = ClientMemoryLimit::parse(text).unwrap();
            assert_eq!((limit.format().as_str(), limit.bytes(1_000_000_000)), (shown, bytes), "{text}");
        }
        assert_eq!(ClientMemoryLimit::Percent(50).bytes(0), None);
        assert_eq!(ClientMemoryLimit::Auto.bytes(0), None);
        assert_eq!(ClientMemoryLimit::Auto.bytes(1), Some(AUTO_BYTES_MIN));
        for (text, error) in [
            ("101%", "percentage argument must be less or equal to 100"),
            ("-5%", "argument must be a memory or percent value"),
            ("%", "argument must be a memory or percent value"),
            ("x", "argument must be a memory or percent value"),
        ] {
            assert_eq!(ClientMemoryLimit::parse(text), Err(error.to_owned()), "{text}");
        }
    }
}
