//! The ways in which a server is killed.

use std::fs;
use std::path::PathBuf;

use ember_testkit::{Random, Server};

/// The memory in bytes that a server may allocate in addition before the system kills it.
const MEMORY_MAX: usize = 32 * 1024 * 1024;

/// A way to be killed without notice.
#[derive(Clone, Copy)]
pub(crate) enum Death {
    /// A signal kills the process.
    Signal(&'static str),
    /// The system kills the process, because its control group has reached its memory limit.
    OutOfMemory,
}

impl Death {
    /// Returns a random signal, but not [`Death::OutOfMemory`], which some systems do not support.
    pub(crate) fn any(random: &mut Random) -> Death {
        Death::Signal(random.pick(&["KILL", "ABRT"]))
    }

    /// Kills the server.
    pub(crate) fn kill(self, server: &Server) {
        match self {
            Death::Signal(name) => server.signal(name),
            Death::OutOfMemory => {
                let Some(_group) = Group::with(server) else {
                    println!("no control group can be created here: killed by SIGKILL instead");
                    return server.signal("KILL");
                };
                // An argument without end uses memory, but is not stored as data. The connection breaks when the memory
                // is exhausted.
                let mut client = server.client();
                let len = 16 * MEMORY_MAX;
                let begun = client.send(format!("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n${len}\r\n").as_bytes());
                let part = vec![b'x'; MEMORY_MAX / 8];
                let is_cut = begun.is_err() || (0..len / part.len()).any(|_| client.send(&part).is_err());
                assert!(is_cut, "a server with {MEMORY_MAX} bytes took {len}");
            }
        }
    }
}

/// A control group with a single process.
struct Group(PathBuf);

impl Group {
    /// Creates a control group for a server, with a memory limit. None if the system or the user's rights do not allow
    /// it.
    fn with(server: &Server) -> Option<Group> {
        // Version 1 of control groups has a separate hierarchy for memory, version 2 has one hierarchy for everything.
        let hierarchies =
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        hierarchies.into_iter().find_map(|(root, limit)| {
            let group = Group(PathBuf::from(root).join(format!("ember-crash-{}", server.pid())));
            fs::create_dir(&group.0).ok()?;
            fs::metadata(group.0.join(limit)).ok()?;
            fs::write(group.0.join(limit), MEMORY_MAX.to_string()).ok()?;
            fs::write(group.0.join("cgroup.procs"), server.pid().to_string()).ok()?;
            Some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The group can be removed once its process has ended; otherwise an empty folder of the running system remains.
        let _ = fs::remove_dir(&self.0);
    }
}
