//! Scripts that have been running for so long that others may want to end them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use emberkv_core::error::CommandError;
use parking_lot::Mutex;

/// A script or function that runs.
pub(crate) struct Running {
    /// Whether it is a function of a library.
    pub(crate) is_function: bool,
    /// The name of the function.
    pub(crate) name: Vec<u8>,
    /// The call.
    pub(crate) call: Vec<Vec<u8>>,
    /// When it began.
    pub(crate) started: Instant,
    /// Whether it has written: then it cannot be ended.
    pub(crate) has_written: AtomicBool,
    is_killed: AtomicBool,
}

impl Running {
    /// A script that began then.
    pub(crate) fn new(is_function: bool, name: &[u8], call: Vec<Vec<u8>>, started: Instant) -> Running {
        Running {
            is_function,
            name: name.to_vec(),
            call,
            started,
            has_written: AtomicBool::new(false),
            is_killed: AtomicBool::new(false),
        }
    }

    /// Whether it is to end.
    pub(crate) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Relaxed)
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct RunningScripts {
    scripts: Mutex<Vec<Arc<Running>>>,
    /// Whether there is one.
    is_busy: AtomicBool,
}

impl RunningScripts {
    /// Adds one.
    pub(crate) fn enter(&self, running: Arc<Running>) {
        let mut scripts = self.scripts.lock();
        scripts.push(running);
        self.is_busy.store(true, Ordering::Relaxed);
    }

    /// Removes one.
    pub(crate) fn leave(&self, running: &Arc<Running>) {
        let mut scripts = self.scripts.lock();
        scripts.retain(|other| !Arc::ptr_eq(other, running));
        self.is_busy.store(!scripts.is_empty(), Ordering::Relaxed);
    }

    /// Whether there is one.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    /// The one that has been running for the longest time.
    pub(crate) fn oldest(&self) -> Option<Arc<Running>> {
        if !self.is_busy() {
            return None;
        }
        self.scripts.lock().first().cloned()
    }

    /// What those hear whom a script has kept out, also if it has ended just now.
    pub(crate) fn busy_or_ended_error(&self) -> CommandError {
        self.busy_error().unwrap_or_else(|| "BUSY Redis is busy running a script.".into())
    }

    /// What a command is told that cannot run beside a script.
    pub(crate) fn busy_error(&self) -> Option<CommandError> {
        let running = self.oldest()?;
        let kill = if running.is_function { "FUNCTION KILL" } else { "SCRIPT KILL" };
        let text =
            format!("BUSY Redis is busy running a script. You can only call {kill} or SHUTDOWN NOSAVE.");
        Some(text.into())
    }

    /// Ends all scripts, or all functions, that have not written.
    ///
    /// # Errors
    /// If there is none, if all have written, or if what runs is of the other kind.
    pub(crate) fn kill(&self, functions: bool) -> Result<(), CommandError> {
        let scripts = self.scripts.lock();
        if scripts.is_empty() {
            return Err("NOTBUSY No scripts in execution right now.".into());
        }
        let mut chosen = scripts.iter().filter(|running| running.is_function == functions).peekable();
        if chosen.peek().is_none() {
            drop(scripts);
            return Err(self
                .busy_error()
                .unwrap_or_else(|| "NOTBUSY No scripts in execution right now.".into()));
        }
        let mut killed = 0;
        for running in chosen.filter(|running| !running.has_written.load(Ordering::Relaxed)) {
            running.is_killed.store(true, Ordering::Relaxed);
            killed += 1;
        }
        if killed == 0 {
            return Err("UNKILLABLE Sorry the script already executed write commands against the dataset. You can \
                        either wait the script termination or kill the server in a hard way using the SHUTDOWN \
                        NOSAVE command."
                .into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(result: Result<(), CommandError>) -> String {
        String::from_utf8(result.unwrap_err().text().into_owned()).unwrap()
    }

    #[test]
    fn only_scripts_that_have_not_written_can_be_killed() {
        let running = RunningScripts::default();
        assert!(error(running.kill(false)).starts_with("NOTBUSY "));
        let script = Arc::new(Running::new(false, b"", vec![], Instant::now()));
        running.enter(Arc::clone(&script));
        assert!(error(running.kill(true)).contains("You can only call SCRIPT KILL"));
        script.has_written.store(true, Ordering::Relaxed);
        assert!(error(running.kill(false)).starts_with("UNKILLABLE "));
        script.has_written.store(false, Ordering::Relaxed);
        assert_eq!(running.kill(false), Ok(()));
        assert!(script.is_killed());
        running.leave(&script);
        assert!(running.oldest().is_none() && running.busy_error().is_none());
    }
}
