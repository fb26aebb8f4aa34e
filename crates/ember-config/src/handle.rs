//! The configuration at run time: one current snapshot for all threads, and the CONFIG command's operations on it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use emberkv_core::error::{CommandError, quoted};
use emberkv_core::glob::{self, Case};

use super::fields::Config;
use super::parameter::Parameter;
use super::primary_address::PrimaryAddress;
use super::rewrite;
use super::table::{DIRECTORY, PARAMETERS, PROTECTED};
use super::users::StoredUser;

/// The current configuration, shared by all threads, with its file.
#[derive(Debug)]
pub struct ConfigHandle {
    /// The absolute path of the configuration file, which is fixed at startup; `None` without a file.
    file: Option<PathBuf>,
    /// The current snapshot. Locked for the whole of a CONFIG SET, so that concurrent CONFIG SETs do not lose each
    /// other's changes.
    current: Mutex<Arc<Config>>,
    /// Locked while the configuration file is rewritten.
    rewriting: Mutex<()>,
    /// The number of changes of `current` so far.
    generation: AtomicU64,
}

impl ConfigHandle {
    /// Returns a handle whose first snapshot is `config`, which was read from `file`, an absolute path.
    pub fn new(config: Config, file: Option<PathBuf>) -> ConfigHandle {
        ConfigHandle {
            file,
            current: Mutex::new(Arc::new(config)),
            rewriting: Mutex::new(()),
            generation: AtomicU64::new(0),
        }
    }

    /// Returns the current values. Takes a lock: hold the snapshot and compare [`Self::generation`] instead of calling
    /// this function often.
    pub fn snapshot(&self) -> Arc<Config> {
        Arc::clone(&self.lock_current())
    }

    /// Returns a number that changes with each new snapshot. A snapshot taken after this call is at least as new as the
    /// returned number.
    pub fn generation(&self) -> u64 {
        // Pairs with the Release in `set_if` and `set_primary`.
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the absolute path of the configuration file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns every name that matches one of the glob `patterns`, with its value (CONFIG GET), sorted by name,
    /// ignoring case. Each name of a parameter is listed once; globs do not match names that only ember has. A pattern
    /// that is a plain name is returned as it is spelt, as in Redis.
    pub fn get<'p>(&self, patterns: &[&'p [u8]]) -> Vec<(&'p [u8], String)> {
        let config = self.snapshot();
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for &pattern in patterns {
            let names: Vec<(&'p [u8], &Parameter)> = if pattern.iter().any(|byte| b"[*?".contains(byte)) {
                let all = PARAMETERS
                    .iter()
                    .filter(|parameter| !parameter.is_hidden())
                    .flat_map(|parameter| parameter.listed_names().map(move |name| (name, parameter)));
                all.map(|(name, parameter)| (name.as_bytes(), parameter))
                    .filter(|(name, _)| glob::matches(pattern, name, Case::Insensitive))
                    .collect()
            } else {
                let parameter = std::str::from_utf8(pattern).ok().and_then(Parameter::find);
                parameter.map(|parameter| (pattern, parameter)).into_iter().collect()
            };
            for (name, parameter) in names {
                if seen.insert(name.to_ascii_lowercase()) {
                    found.push((name, shown(parameter, &config)));
                }
            }
        }
        found.sort_by_key(|(name, _)| name.to_ascii_lowercase());
        found
    }

    /// Sets all of `pairs` (names and values), or none of them (CONFIG SET).
    ///
    /// # Errors
    /// Returns the error reply, with Redis's text.
    pub fn set(&self, pairs: &[(&[u8], &[u8])]) -> Result<(), CommandError> {
        self.set_if(pairs, true, |_, _| Ok(()))
    }

    /// Like [`ConfigHandle::set`], but only if `accept`, called with the old and the new values, returns `Ok`. The lock
    /// is held during `accept`, so its effects and the new snapshot appear together. Protected parameters are refused
    /// unless `may_change_protected`.
    ///
    /// # Errors
    /// Returns the error reply, with Redis's text; for an error of `accept`, with the parameter that `accept` names.
    pub fn set_if(
        &self,
        pairs: &[(&[u8], &[u8])],
        may_change_protected: bool,
        accept: impl FnOnce(&Config, &Config) -> Result<(), (&'static str, String)>,
    ) -> Result<(), CommandError> {
        let mut current = self.lock_current();
        let changes = resolve(pairs, may_change_protected, &current)?;
        let mut config = Config::clone(&current);
        for (name, parameter, value) in changes {
            std::str::from_utf8(value)
                .map_err(|_| "argument is not valid UTF-8".to_owned())
                .and_then(|text| parameter.set(&mut config, &whole_path(parameter, text)))
                .map_err(|error| set_failed(name.as_bytes(), &error))?;
        }
        accept(&current, &config).map_err(|(name, error)| set_failed(name.as_bytes(), &error))?;
        if config != **current {
            *current = Arc::new(config);
            // Pairs with the Acquire in `generation`: a thread that reads the new number also gets the new snapshot.
            self.generation.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    /// Sets the primary, which CONFIG SET cannot change.
    pub fn set_primary(&self, primary: PrimaryAddress) {
        let mut current = self.lock_current();
        if current.replicaof != primary {
            *current = Arc::new(Config { replicaof: primary, ..Config::clone(&current) });
            // Pairs with the Acquire in `generation`, as in `set_if`.
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    /// Rewrites the configuration file atomically, with these users (CONFIG REWRITE).
    ///
    /// # Errors
    /// Returns the error reply; the file is then unchanged.
    pub fn rewrite(&self, users: &[StoredUser]) -> Result<(), String> {
        let file = self.file().ok_or("ERR The server is running without a config file")?;
        let _rewriting = self.rewriting.lock().unwrap_or_else(PoisonError::into_inner);
        rewrite::rewrite_file(file, &self.snapshot(), users)
            .map_err(|error| format!("ERR Rewriting config file: {error}"))
    }

    /// Like [`ConfigHandle::rewrite`], but writes a line for every parameter.
    ///
    /// # Errors
    /// Returns the errors of [`ConfigHandle::rewrite`].
    pub fn rewrite_in_full(&self, users: &[StoredUser]) -> Result<(), String> {
        let file = self.file().ok_or("ERR The server is running without a config file")?;
        let _rewriting = self.rewriting.lock().unwrap_or_else(PoisonError::into_inner);
        rewrite::rewrite_file_in_full(file, &self.snapshot(), users)
            .map_err(|error| format!("ERR Rewriting config file: {error}"))
    }

    /// Locks the current snapshot. Ignores poisoning: the snapshot is replaced as a whole, so a panic cannot leave it
    /// half written.
    fn lock_current(&self) -> MutexGuard<'_, Arc<Config>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the value that CONFIG GET shows; for the server's directory, the absolute path.
fn shown(parameter: &Parameter, config: &Config) -> String {
    let value = parameter.get(config);
    if parameter.name == DIRECTORY
        && let Some(directory) =
            std::env::current_dir().ok().and_then(|path| path.into_os_string().into_string().ok())
    {
        return directory;
    }
    value
}

/// Returns the value to store; for a directory its absolute path, so that its meaning does not depend on the working
/// directory.
fn whole_path<'t>(parameter: &Parameter, text: &'t str) -> Cow<'t, str> {
    let path = (parameter.name == DIRECTORY).then(|| std::path::absolute(text).ok()).flatten();
    path.and_then(|path| path.into_os_string().into_string().ok()).map_or(Cow::Borrowed(text), Cow::Owned)
}

type Change<'a> = (&'static str, &'static Parameter, &'a [u8]);

/// Looks up the parameters of a CONFIG SET and makes all checks that do not depend on the values. Returns the first
/// mistake.
fn resolve<'a>(
    pairs: &[(&[u8], &'a [u8])],
    may_change_protected: bool,
    current: &Config,
) -> Result<Vec<Change<'a>>, CommandError> {
    let mut changes = Vec::with_capacity(pairs.len());
    let mut seen = HashSet::new();
    for (typed, value) in pairs {
        let (name, parameter) = std::str::from_utf8(typed)
            .ok()
            .and_then(|name| Some((name, Parameter::find(name)?)))
            .ok_or_else(|| unknown(typed))?;
        let known =
            parameter.names().find(|known| known.eq_ignore_ascii_case(name)).unwrap_or(parameter.name);
        // Accepts unchanged values of immutable parameters, for clients that set everything that CONFIG GET returned.
        let is_current = parameter.get(current).as_bytes() == *value;
        if !parameter.mutable && !is_current {
            return Err(set_failed(typed, "can't set immutable config"));
        }
        if !may_change_protected && PROTECTED.contains(&parameter.name) {
            return Err(set_failed(typed, "can't set protected config"));
        }
        if !seen.insert(parameter.name) {
            return Err(set_failed(typed, "duplicate parameter"));
        }
        changes.push((known, parameter, *value));
    }
    Ok(changes)
}

fn unknown(name: &[u8]) -> CommandError {
    [b"ERR Unknown option or number of arguments for CONFIG SET - '", quoted(name), b"'"].concat().into()
}

fn set_failed(name: &[u8], error: &str) -> CommandError {
    [b"ERR CONFIG SET failed (possibly related to argument '", name, b"') - ", error.as_bytes()]
        .concat()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle() -> ConfigHandle {
        ConfigHandle::new(Config::default(), None)
    }

    fn set(handle: &ConfigHandle, pairs: &[(&str, &str)]) -> Result<(), String> {
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        handle.set(&pairs).map_err(|error| String::from_utf8_lossy(&error.text()).into_owned())
    }

    fn get<'p>(handle: &ConfigHandle, patterns: &[&'p str]) -> Vec<(&'p str, String)> {
        let patterns: Vec<_> = patterns.iter().map(|pattern| pattern.as_bytes()).collect();
        let text = |(name, value)| (std::str::from_utf8(name).unwrap(), value);
        handle.get(&patterns).into_iter().map(text).collect()
    }

    #[test]
    fn get_shows_every_matching_name_once_in_order_as_it_was_spelt_first() {
        let handle = handle();
        let names = |patterns: &[&'static str]| -> Vec<&str> {
            get(&handle, patterns).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(
            names(&["MAXMEMORY", "Max*Memory", "maxmemory", "port", "port", "max-memory"]),
            ["max-memory", "MAXMEMORY", "port"]
        );
        assert_eq!(get(&handle, &["PORT"]), [("PORT", "6379".to_owned())]);
        assert!(handle.get(&[b"\xff", b"\xff*"]).is_empty());
        assert_eq!(get(&handle, &["slaveo*"]), [("slaveof", String::new())]);
        assert!(get(&handle, &["none*"]).is_empty());
        let shown = PARAMETERS.iter().filter(|parameter| !parameter.is_hidden());
        let all = shown.flat_map(Parameter::listed_names).count();
        let found = get(&handle, &["*", "p*"]);
        assert_eq!(found.len(), all);
        assert!(found.is_sorted_by_key(|(name, _)| *name), "{found:?}");
    }

    #[test]
    fn a_change_is_seen_through_the_generation() {
        let handle = handle();
        let before = handle.snapshot();
        set(&handle, &[("maxmemory", "100mb"), ("EVICTION-POLICY", "allkeys-lru")]).unwrap();
        assert_eq!(handle.generation(), 1);
        assert_eq!((before.maxmemory, handle.snapshot().maxmemory), (0, 100 << 20));
        set(&handle, &[("maxmemory", "104857600")]).unwrap();
        assert_eq!(handle.generation(), 1, "nothing changed");
    }

    #[test]
    fn concurrent_changes_are_not_lost() {
        let handle = handle();
        std::thread::scope(|scope| {
            for name in ["hz", "timeout", "tcp-keepalive"] {
                let handle = &handle;
                scope.spawn(move || (1..=100).for_each(|n| set(handle, &[(name, &n.to_string())]).unwrap()));
            }
        });
        let config = handle.snapshot();
        assert_eq!((config.hz, config.timeout, config.tcp_keepalive), (100, 100, 100));
        assert_eq!(handle.generation(), 300);
    }

    #[test]
    fn set_changes_everything_or_nothing() {
        let handle = handle();
        let before = handle.snapshot();
        assert!(set(&handle, &[("maxmemory", "5000"), ("hz", "20"), ("timeout", "-5")]).is_err());
        assert_eq!(handle.snapshot(), before);
        assert_eq!(handle.generation(), 0);
    }

    fn failed(name: &str, error: &str) -> String {
        format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {error}")
    }

    #[test]
    fn errors_of_config_set_have_the_text_of_redis() {
        let handle = handle();
        let policies = "argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, \
                        volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction, \
                        allkeys-ghosts";
        for (name, value, error) in [
            ("MaxMemory", "10%", "argument must be a memory value"),
            ("DataBases", "3", "can't set immutable config"),
            ("timeout", "-1", "argument must be between 0 and 2147483647 inclusive"),
            ("timeout", "abc", "argument couldn't be parsed into an integer"),
            ("maxmemory-policy", "foo", policies),
            ("latency-tracking", "maybe", "argument must be 'yes' or 'no'"),
            (
                "proto-max-bulk-len",
                "1k",
                "argument must be between 1048576 and 9223372036854775807 inclusive",
            ),
            (
                "slowlog-log-slower-than",
                "-2",
                "argument must be between -1 and 9223372036854775807 inclusive",
            ),
            ("maxclients", "0", "argument must be between 1 and 4294967295 inclusive"),
            (
                "client-output-buffer-limit",
                "normal 1 2",
                "Wrong number of arguments in buffer limit configuration.",
            ),
            ("appendfsync", "often", "argument(s) must be one of the following: always, everysec, no"),
            ("aof-use-rdb-preamble", "maybe", "argument must be 'yes' or 'no'"),
        ] {
            let shown = if name == "DataBases" { name } else { &name.to_ascii_lowercase() };
            let expected = failed(shown, error);
            assert_eq!(set(&handle, &[(name, value)]), Err(expected));
        }
        let duplicate = set(&handle, &[("maxmemory", "1"), ("Max-Memory", "2")]);
        assert_eq!(duplicate, Err(failed("Max-Memory", "duplicate parameter")));
        let unknown =
            |name| Err(format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'"));
        assert_eq!(set(&handle, &[("timeout", "-1"), ("x", "1"), ("databases", "1")]), unknown("x"));
        assert_eq!(set(&handle, &[("a\0b", "1")]), unknown("a"));
        let raw = handle.set(&[(b"\xff", b"1")]).map_err(|error| error.text().into_owned());
        assert_eq!(raw, Err(b"ERR Unknown option or number of arguments for CONFIG SET - '\xff'".to_vec()));
        let raw = handle.set(&[(b"requirepass", b"\xff")]).map_err(|error| error.text().into_owned());
        assert_eq!(raw, Err(failed("requirepass", "argument is not valid UTF-8").into_bytes()));
    }

    #[test]
    fn every_parameter_can_be_set_to_its_current_value() {
        for parameter in PARAMETERS {
            let handle = handle();
            let value = parameter.get(&handle.snapshot());
            assert_eq!(set(&handle, &[(parameter.name, &value)]), Ok(()), "{}", parameter.name);
            if !parameter.mutable {
                let refused = set(&handle, &[(parameter.name, "another value")]);
                assert_eq!(refused, Err(failed(parameter.name, "can't set immutable config")));
            }
        }
    }

    #[test]
    fn rewrite_needs_a_file() {
        assert_eq!(handle().rewrite(&[]), Err("ERR The server is running without a config file".to_owned()));
    }
}
