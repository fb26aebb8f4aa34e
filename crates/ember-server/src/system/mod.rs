//! Interfaces to the operating system: the process, its threads, its memory, and the log.

pub(crate) mod abort_on_panic;
pub(crate) mod affinity;
#[cfg(feature = "jemalloc")]
pub(crate) mod allocator;
pub(crate) mod clock;
pub(crate) mod daemon;
pub(crate) mod driver;
pub(crate) mod heap;
#[cfg(feature = "jemalloc")]
pub(crate) mod huge_pages;
pub(crate) mod log;
mod log_line;
pub(crate) mod oom_score;
pub(crate) mod open_files;
pub(crate) mod proc_file;
pub(crate) mod process_title;
pub(crate) mod processor_time;
pub(crate) mod random_name;
pub(crate) mod supervisor;
mod syslog;
#[cfg(target_os = "linux")]
pub(crate) mod time_slice;
