//! The parameters whose values follow from the selected store; other statements must not contradict them.

use ember_storage::stores::EngineKind;

use super::fields::Config;
use super::save_rules::SaveRules;
use super::value::{AppendFsync, Store};

/// The value of `path` for a store that writes nothing to disk.
const IN_MEMORY: &str = ":memory:";

impl Store {
    /// Returns the engine that stores the data set in its own files; `None` if the data set is in memory (the
    /// keyspace).
    pub fn engine(self) -> Option<EngineKind> {
        match self {
            Store::None | Store::Map | Store::Btree => None,
            Store::Redb | Store::Bolt | Store::Bbolt => Some(EngineKind::Redb),
            Store::Lmdb => Some(EngineKind::Lmdb),
            Store::Fjall | Store::Leveldb | Store::Kv => Some(EngineKind::Fjall),
        }
    }
}

/// Sets the parameters that follow from the store. `origin_of` returns the origin of a parameter's last statement, if
/// there is one.
///
/// # Errors
/// Returns one line with the origin of a parameter that contradicts the store.
pub(super) fn apply(config: &mut Config, origin_of: impl Fn(&str) -> Option<String>) -> Result<(), String> {
    if config.store == Store::None {
        let stray = [("path", !config.path.is_empty()), ("fsync", !config.fsync)];
        return match stray.into_iter().find_map(|(name, is_set)| is_set.then(|| origin_of(name)).flatten()) {
            Some(origin) => Err(format!("{origin}: this parameter requires a store: add 'store map'")),
            None => Ok(()),
        };
    }
    let is_in_memory = config.path == IN_MEMORY;
    if is_in_memory && let Some(origin) = origin_of("fsync") {
        return Err(format!(
            "{origin}: no effect, because nothing is written to disk with the path '{IN_MEMORY}': remove it"
        ));
    }
    if let Some(engine) = config.store.engine() {
        check_engine(config, engine, is_in_memory, &origin_of)?;
    }
    let stated = config.clone();
    config.save = SaveRules::default();
    config.appendonly = !is_in_memory;
    if !is_in_memory {
        config.appendfsync = if config.fsync { AppendFsync::Always } else { AppendFsync::No };
        if config.path.is_empty() {
            config.path = format!("{}.db", config.store);
        }
        config.dir.clone_from(&config.path);
    }
    let differences = [
        ("appendonly", stated.appendonly != config.appendonly, "path"),
        ("appendfsync", stated.appendfsync != config.appendfsync, "fsync"),
        ("dir", stated.dir != config.dir, "path"),
        ("save", stated.save != config.save, "path"),
    ];
    for (name, is_different, instead) in differences {
        if is_different && let Some(origin) = origin_of(name) {
            return Err(format!(
                "{origin}: the store '{}' requires another value: set '{instead}' instead",
                config.store
            ));
        }
    }
    Ok(())
}

/// Checks for parameters that cannot be combined with a store that has its own files.
fn check_engine(
    config: &Config,
    engine: EngineKind,
    is_in_memory: bool,
    origin_of: impl Fn(&str) -> Option<String>,
) -> Result<(), String> {
    let store = config.store;
    let at = |name: &str| origin_of(name).unwrap_or_else(|| name.to_owned());
    if !engine.is_built() {
        return Err(format!("{}: this program was built without {engine}", at("store")));
    }
    if is_in_memory {
        let origin = at("path");
        return Err(format!(
            "{origin}: the store '{store}' needs files: name a directory, or use 'store map'"
        ));
    }
    if !config.tiered_path.is_empty() {
        let origin = at("tiered-path");
        return Err(format!(
            "{origin}: the store '{store}' already contains the cold values: remove this parameter"
        ));
    }
    check_kept_files(config).map_err(|error| format!("{}: {error}", at("aof-keep-seconds")))
}

/// Checks that a data set whose earlier files are to be kept has such files.
///
/// # Errors
/// Returns an error if the data set is in a store with its own files: each checkpoint overwrites them, so the log alone
/// does not contain the data of an earlier moment.
pub fn check_kept_files(config: &Config) -> Result<(), String> {
    if config.aof_keep_seconds == 0 || config.store.engine().is_none() {
        return Ok(());
    }
    Err(format!(
        "the store '{}' overwrites its files at each checkpoint, so no earlier moment can be restored: use 'store map', \
         or copies of RDB files",
        config.store
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::PARAMETERS;

    fn applied(lines: &[(&str, &str)]) -> Result<Config, String> {
        let mut config = Config::default();
        for (name, text) in lines {
            let parameter = PARAMETERS.into_iter().find(|parameter| parameter.name == *name);
            parameter.unwrap().set(&mut config, text).unwrap();
        }
        let origin_of =
            |name: &str| lines.iter().any(|(known, _)| *known == name).then(|| format!("--{name}"));
        apply(&mut config, origin_of).map(|()| config)
    }

    #[test]
    fn stores_are_durable_unless_configured_otherwise() {
        let config = applied(&[("store", "map")]).unwrap();
        let kept = (config.appendonly, config.appendfsync, &*config.dir, config.save.is_empty());
        assert_eq!(kept, (true, AppendFsync::Always, "map.db", true));
        let config = applied(&[("store", "btree"), ("fsync", "false"), ("path", "my data")]).unwrap();
        let kept = (config.appendonly, config.appendfsync, &*config.dir, config.save.is_empty());
        assert_eq!(kept, (true, AppendFsync::No, "my data", true));
        let config = applied(&[("store", "btree"), ("path", IN_MEMORY)]).unwrap();
        assert_eq!((config.appendonly, &*config.dir, config.save.is_empty()), (false, ".", true));
        let config = applied(&[("store", "none"), ("fsync", "yes"), ("path", "")]).unwrap();
        assert_eq!(config, Config::default());
    }

    #[test]
    fn parameters_that_contradict_a_store_are_rejected() {
        for (lines, error) in [
            (&[("path", "x")][..], "--path: this parameter requires a store: add 'store map'"),
            (
                &[("store", "redb"), ("aof-keep-seconds", "60")],
                "--aof-keep-seconds: the store 'redb' overwrites its files at each checkpoint, so no earlier moment \
                 can be restored: use 'store map', or copies of RDB files",
            ),
            (&[("fsync", "no")], "--fsync: this parameter requires a store: add 'store map'"),
            (
                &[("store", "map"), ("appendonly", "no")],
                "--appendonly: the store 'map' requires another value: set 'path' instead",
            ),
            (
                &[("store", "map"), ("appendfsync", "everysec")],
                "--appendfsync: the store 'map' requires another value: set 'fsync' instead",
            ),
            (
                &[("store", "btree"), ("dir", "/d")],
                "--dir: the store 'btree' requires another value: set 'path' instead",
            ),
            (
                &[("store", "btree"), ("save", "60 1")],
                "--save: the store 'btree' requires another value: set 'path' instead",
            ),
            (
                &[("store", "redb"), ("path", IN_MEMORY)],
                "--path: the store 'redb' needs files: name a directory, or use 'store map'",
            ),
            (
                &[("store", "bolt"), ("tiered-path", "tiers")],
                "--tiered-path: the store 'bolt' already contains the cold values: remove this parameter",
            ),
            (
                &[("store", "map"), ("path", IN_MEMORY), ("fsync", "no")],
                "--fsync: no effect, because nothing is written to disk with the path ':memory:': remove it",
            ),
        ] {
            assert_eq!(applied(lines).unwrap_err(), error);
        }
        let same = [("store", "map"), ("path", "d"), ("dir", "d"), ("appendonly", "yes"), ("save", "")];
        assert!(applied(&same).is_ok());
    }
}
