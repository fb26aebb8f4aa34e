//! The format of log lines.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

use ember_config::{Config, LogFormat, LogTimestampFormat};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The format of log lines, which may change while the server runs.
#[derive(Debug, Default)]
pub(super) struct LineForm {
    /// The format, as an index of the parameter's choices.
    format: AtomicUsize,
    /// The timestamp format, as an index of the parameter's choices.
    timestamp: AtomicUsize,
}

impl LineForm {
    /// Sets the format according to `config`.
    pub(super) fn set(&self, config: &Config) {
        self.format.store(config.log_format as usize, Ordering::Relaxed);
        self.timestamp.store(config.log_timestamp_format as usize, Ordering::Relaxed);
    }

    fn now(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        match LogTimestampFormat::ALL[self.timestamp.load(Ordering::Relaxed)] {
            LogTimestampFormat::Legacy => SystemTime.format_time(&mut Writer::new(&mut text))?,
            LogTimestampFormat::Iso8601 => {
                SystemTime.format_time(&mut Writer::new(&mut text))?;
                without_microseconds(&mut text);
            }
            LogTimestampFormat::Milliseconds => {
                let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                write!(text, "{}", since.as_millis())?;
            }
        }
        Ok(text)
    }
}

/// Shortens a time like `2026-01-02T03:04:05.678901Z` to milliseconds.
fn without_microseconds(text: &mut String) {
    if let Some(point) = text.find('.')
        && text.len() > point + 4
    {
        text.replace_range(point + 4..text.len() - 1, "");
    }
}

/// Formats log events as lines.
pub(super) struct Lines(pub(super) Arc<LineForm>);

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut message = String::new();
        context.format_fields(Writer::new(&mut message), event)?;
        let (time, level) = (self.0.now()?, *event.metadata().level());
        let format = LogFormat::ALL[self.0.format.load(Ordering::Relaxed)];
        writeln!(writer, "{}", line(format, &time, level, &message))
    }
}

/// Formats a line without its line break.
fn line(format: LogFormat, time: &str, level: Level, message: &str) -> String {
    let (process, message_quoted) = (std::process::id(), quoted(message));
    match format {
        LogFormat::Legacy => format!("{time} {:>5} {message}", legacy_name(level)),
        LogFormat::Logfmt => {
            let level = level_name(level);
            format!("pid={process} timestamp=\"{time}\" level={level} message={message_quoted}")
        }
        LogFormat::Json => {
            let level = level_name(level);
            format!(
                "{{\"pid\":{process},\"timestamp\":\"{time}\",\"level\":\"{level}\",\"message\":{message_quoted}}}"
            )
        }
    }
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "notice",
        Level::DEBUG => "verbose",
        Level::TRACE => "debug",
    }
}

fn legacy_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARN",
        Level::INFO => "INFO",
        Level::DEBUG => "VERBOSE",
        Level::TRACE => "DEBUG",
    }
}

/// Quotes a text like a JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other if other.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(other))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_three_forms() {
        let (process, message) = (std::process::id(), "a \"b\" \\ \n\u{1}");
        let of = |format| line(format, "T", Level::INFO, message);
        assert_eq!(of(LogFormat::Legacy), format!("T  INFO {message}"));
        let quoted = r#""a \"b\" \\ \n\u0001""#;
        assert_eq!(
            of(LogFormat::Logfmt),
            format!("pid={process} timestamp=\"T\" level=notice message={quoted}")
        );
        let json = format!(r#"{{"pid":{process},"timestamp":"T","level":"notice","message":{quoted}}}"#);
        assert_eq!(of(LogFormat::Json), json);
    }

    #[test]
    fn times_have_milliseconds() {
        let mut text = "2026-01-02T03:04:05.678901Z".to_owned();
        without_microseconds(&mut text);
        assert_eq!(text, "2026-01-02T03:04:05.678Z");
        let form = LineForm::default();
        form.timestamp.store(LogTimestampFormat::Milliseconds as usize, Ordering::Relaxed);
        assert!(form.now().unwrap().parse::<u64>().unwrap() > 1_700_000_000_000);
    }
}
