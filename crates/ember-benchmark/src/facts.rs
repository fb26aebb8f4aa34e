//! Facts reported by a server: its name, version, threads and processor time.

use std::collections::BTreeMap;
use std::time::Duration;

use ember_protocol::client::Value;

use ember_client::Connection;

/// The fields of INFO.
#[derive(Clone, Debug, Default)]
pub(super) struct Info(BTreeMap<String, String>);

impl Info {
    /// Loads INFO. The result is empty if the server does not support or allow INFO.
    pub(super) fn of(connection: &mut Connection) -> Info {
        let text = connection.ask(&["INFO"]).map(|answer| answer.text()).unwrap_or_default();
        Info::parse(&text)
    }

    fn parse(text: &str) -> Info {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let pairs = lines.filter_map(|line| line.trim_end().split_once(':'));
        Info(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.get(name)?.parse().ok()
    }

    /// Returns the processor time of all threads of the server since its startup.
    pub(super) fn cpu(&self) -> Option<Duration> {
        let user: f64 = self.number("used_cpu_user")?;
        let system: f64 = self.number("used_cpu_sys")?;
        Duration::try_from_secs_f64(user + system).ok()
    }

    /// Returns the name and version of the server.
    pub(super) fn server(&self) -> String {
        let known = ["ember", "valkey", "redis"];
        // Redis-compatible servers also report a Redis version, so that is checked last.
        let found = known.iter().find_map(|name| Some((name, self.get(&format!("{name}_version"))?)));
        found.map_or_else(|| "unidentified server".to_owned(), |(name, version)| format!("{name} {version}"))
    }

    /// Returns the server's name alone.
    pub(super) fn name(&self) -> String {
        self.server().split(' ').next().unwrap_or_default().to_owned()
    }
}

/// Facts that do not change during a measurement.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// Name and version.
    pub(super) server: String,
    /// The name of the server's store in KVBench's tables.
    pub(super) store: String,
    /// The number of threads that serve clients, if known.
    pub(super) threads: Option<u32>,
    /// `appendonly`, if reported.
    pub(super) append_only: Option<String>,
    /// `appendfsync`, if reported.
    pub(super) append_fsync: Option<String>,
}

impl Facts {
    /// Loads the facts.
    pub(super) fn of(connection: &mut Connection) -> Facts {
        let info = Info::of(connection);
        let io_threads = parameter(connection, "io-threads").and_then(|text| text.parse().ok());
        // KVBench calls a hash table in memory with a log, like ember's keyspace, "map".
        let store = if info.name() == "ember" { "map".to_owned() } else { info.name() };
        Facts {
            server: info.server(),
            store,
            threads: info.number("ember_workers").or(io_threads),
            append_only: parameter(connection, "appendonly"),
            append_fsync: parameter(connection, "appendfsync"),
        }
    }
}

fn parameter(connection: &mut Connection, name: &str) -> Option<String> {
    let answer = connection.ask(&["CONFIG", "GET", name]).ok()?;
    answer.get(name).as_ref().map(Value::text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_fields_are_parsed() {
        let text = "# Server\r\nredis_version:7.2.4\r\nember_version:0.1.0\r\nember_workers:2\r\n\r\n\
                    used_cpu_sys:1.500000\r\nused_cpu_user:2.250000\r\n";
        let info = Info::parse(text);
        assert_eq!((info.server().as_str(), info.name().as_str()), ("ember 0.1.0", "ember"));
        assert_eq!(info.cpu(), Some(Duration::from_secs_f64(3.75)));
        assert_eq!(info.number("ember_workers"), Some(2));
        assert_eq!(Info::parse("redis_version:7.0.15").server(), "redis 7.0.15");
        let nothing = Info::parse("");
        assert_eq!((nothing.cpu(), nothing.name().as_str()), (None, "unidentified"));
    }
}
