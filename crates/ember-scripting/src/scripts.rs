//! The texts of scripts by their digests, as EVALSHA finds them. All workers share them; each interpreter compiles them for
//! itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use emberkv_core::error::CommandError;
use parking_lot::RwLock;

use super::confinement::{Confinement, confined_script};
use super::sha1;
use super::shebang::{self, ScriptFlags};
use crate::commands::Commands;

/// Scripts kept that only EVAL has brought. Clients that build the text of each script anew would fill the memory with them;
/// those of SCRIPT LOAD stay.
const EVALUATED_MAX: usize = 500;

/// A script.
pub struct Script {
    /// Its digest.
    pub sha: [u8; 20],
    /// Its text.
    text: Vec<u8>,
    /// Where the text goes on behind its first line, if that says something about the script.
    body_at: usize,
    /// What it says of itself.
    pub flags: ScriptFlags,
    /// Whether it may run beside others.
    pub confinement: Option<Confinement>,
    is_loaded: AtomicBool,
    used: AtomicU64,
}

impl Script {
    /// All of it, as it was given.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// What is compiled.
    pub fn body(&self) -> &[u8] {
        &self.text[self.body_at..]
    }
}

/// All scripts.
#[derive(Default)]
pub struct Scripts {
    by_sha: RwLock<HashMap<[u8; 20], Arc<Script>>>,
    clock: AtomicU64,
}

impl Scripts {
    /// The script of this digest.
    pub fn get(&self, sha: &[u8; 20]) -> Option<Arc<Script>> {
        let script = Arc::clone(self.by_sha.read().get(sha)?);
        // Those that stay need no clock, which all workers would write.
        if !script.is_loaded.load(Ordering::Relaxed) {
            self.touch(&script);
        }
        Some(script)
    }

    /// The script of this digest, which does not count as used by this.
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

    /// The script of this text, which is not kept yet.
    ///
    /// # Errors
    /// If its first line is wrong.
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

    /// Keeps a script; for good if SCRIPT LOAD has brought it.
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

    /// Forgets all scripts.
    pub fn clear(&self) {
        self.by_sha.write().clear();
    }

    /// The number of scripts.
    pub fn count(&self) -> usize {
        self.by_sha.read().len()
    }

    /// Bytes of all texts.
    pub fn text_bytes(&self) -> usize {
        self.by_sha.read().values().map(|script| script.text.len()).sum()
    }
}

/// The digest that a text is known by.
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
    fn loaded_scripts_stay_and_the_least_used_of_the_others_go() {
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
