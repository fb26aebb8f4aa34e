//! The texts of scripts by digest, for EVALSHA. All workers share the texts; each interpreter compiles them itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use emberkv_core::error::CommandError;
use parking_lot::RwLock;

use super::confinement::{Confinement, confined_script};
use super::sha1;
use super::shebang::{self, ScriptFlags};
use crate::commands::Commands;

/// The maximum number of cached scripts that were sent only with EVAL, because clients that generate the text of each
/// script would otherwise fill the memory. Scripts from SCRIPT LOAD are not limited.
const EVALUATED_MAX: usize = 500;

/// A script, parsed but not compiled.
pub struct Script {
    /// The SHA-1 digest of the script's text.
    pub sha: [u8; 20],
    /// The script's text, including the shebang line.
    text: Vec<u8>,
    /// The offset of the body: the text after a shebang line.
    body_at: usize,
    /// The script's declared flags.
    pub flags: ScriptFlags,
    /// The script's confinement; `None` if it may not run concurrently with other programs.
    pub confinement: Option<Confinement>,
    is_loaded: AtomicBool,
    used: AtomicU64,
}

impl Script {
    /// Returns the whole text, as received.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the text without the shebang line, which is compiled.
    pub fn body(&self) -> &[u8] {
        &self.text[self.body_at..]
    }
}

/// All cached scripts, shared by all workers.
#[derive(Default)]
pub struct Scripts {
    by_sha: RwLock<HashMap<[u8; 20], Arc<Script>>>,
    clock: AtomicU64,
}

impl Scripts {
    /// Returns the script of this digest.
    pub fn get(&self, sha: &[u8; 20]) -> Option<Arc<Script>> {
        let script = Arc::clone(self.by_sha.read().get(sha)?);
        // Only scripts that can be evicted need the time of their last use: updating it is a write to memory that all
        // workers share.
        if !script.is_loaded.load(Ordering::Relaxed) {
            self.touch(&script);
        }
        Some(script)
    }

    /// Returns the script of this digest without updating the time of its last use.
    pub fn peek(&self, sha: &[u8; 20]) -> Option<Arc<Script>> {
        self.by_sha.read().get(sha).cloned()
    }

    /// Whether there is a script of this digest.
    pub fn contains(&self, sha: &[u8; 20]) -> bool {
        self.by_sha.read().contains_key(sha)
    }

    fn touch(&self, script: &Script) {
        script.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Parses the text of a script, without caching it.
    ///
    /// # Errors
    /// Returns an error if the first line of the text is invalid.
    pub fn parse(commands: &dyn Commands, text: &[u8], sha: [u8; 20]) -> Result<Script, CommandError> {
        let (flags, body) = shebang::script_flags(text)?;
        let confinement = confined_script(commands, body);
        Ok(Script {
            sha,
            body_at: text.len() - body.len(),
            text: text.to_vec(),
            flags,
            confinement,
            is_loaded: AtomicBool::new(false),
            used: AtomicU64::new(0),
        })
    }

    /// Caches a script; if `is_loaded` (SCRIPT LOAD), permanently.
    pub fn keep(&self, script: Arc<Script>, is_loaded: bool) {
        let mut by_sha = self.by_sha.write();
        let kept = by_sha.entry(script.sha).or_insert(script);
        kept.is_loaded.fetch_or(is_loaded, Ordering::Relaxed);
        self.touch(kept);
        let evaluated = || by_sha.values().filter(|script| !script.is_loaded.load(Ordering::Relaxed));
        if evaluated().count() > EVALUATED_MAX {
            let oldest =
                evaluated().min_by_key(|script| script.used.load(Ordering::Relaxed)).map(|script| script.sha);
            if let Some(oldest) = oldest {
                by_sha.remove(&oldest);
            }
        }
    }

    /// Removes all scripts.
    pub fn clear(&self) {
        self.by_sha.write().clear();
    }

    /// Returns the number of cached scripts.
    pub fn count(&self) -> usize {
        self.by_sha.read().len()
    }

    /// Returns the total length of the cached texts, in bytes.
    pub fn text_bytes(&self) -> usize {
        self.by_sha.read().values().map(|script| script.text.len()).sum()
    }
}

/// Returns the digest of a script's text.
pub fn sha_of(text: &[u8]) -> [u8; 20] {
    sha1::digest(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Callable;

    struct NoCommands;

    impl Commands for NoCommands {
        fn find(&self, _: &[u8]) -> Option<Callable> {
            None
        }

        fn find_in(&self, _: &[u8], _: &[u8]) -> Option<Callable> {
            None
        }

        fn is_container(&self, _: &[u8]) -> bool {
            false
        }
    }

    fn keep(scripts: &Scripts, text: &str, is_loaded: bool) -> [u8; 20] {
        let sha = sha_of(text.as_bytes());
        scripts.keep(Arc::new(Scripts::parse(&NoCommands, text.as_bytes(), sha).unwrap()), is_loaded);
        sha
    }

    #[test]
    fn loaded_scripts_stay_and_least_recently_used_ones_are_evicted() {
        let scripts = Scripts::default();
        let loaded = keep(&scripts, "return 'loaded'", true);
        let used = keep(&scripts, "return 'used'", false);
        let unused = keep(&scripts, "return 'unused'", false);
        for number in 0..EVALUATED_MAX - 1 {
            assert!(scripts.get(&used).is_some());
            keep(&scripts, &format!("return {number}"), false);
        }
        assert!(scripts.contains(&loaded) && scripts.contains(&used) && !scripts.contains(&unused));
        assert_eq!(scripts.count(), EVALUATED_MAX + 1);
    }

    #[test]
    fn a_script_that_is_loaded_later_stays_too() {
        let scripts = Scripts::default();
        let sha = keep(&scripts, "return 1", false);
        assert_eq!(keep(&scripts, "return 1", true), sha);
        (0..=EVALUATED_MAX).for_each(|number| {
            keep(&scripts, &format!("return {number}, 0"), false);
        });
        assert!(scripts.contains(&sha));
    }
}
