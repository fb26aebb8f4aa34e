//! The data set in an RDB file: read at startup, written by SAVE, BGSAVE, save rules and at shutdown.
//!
//! The file format is that of [`rdb_file`](ember_persistence::rdb_file): Redis 7 can read the files of this server as
//! long as no hash field has an expiry, and this server can read the files of any Redis from 2.8 on. A file gets its
//! final name only when it is complete.
//!
//! * [`point_in_time`]: the keyspace at one moment, written while commands run: for BGSAVE, the base of an AOF, and
//!   full syncs.
//! * [`emptying`]: the file after a command has removed all keys.
//! * [`background`]: BGSAVE and when it is due. [`saving`]: SAVE, and the file at shutdown. [`loading`]: startup.

pub(crate) mod background;
pub(crate) mod delay;
pub(crate) mod emptying;
pub(crate) mod loading;
pub(crate) mod point_in_time;
pub(crate) mod saving;
pub(crate) mod state;
