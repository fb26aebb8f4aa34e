//! Commands about the server: its command registry, its configuration, its state.

mod acl;
mod bgrewriteaof;
mod bgsave;
mod command;
mod commandlog;
mod config;
mod debug;
mod hotkeys;
mod info;
mod latency;
mod memory;
pub(super) mod module;
mod monitor;
mod save;
mod shutdown;
mod slowlog;
mod tiering;
mod time;

use crate::executor::session::ServerCommand;

/// The family's commands, file by file.
pub(super) const COMMANDS: &[&[ServerCommand]] = &[
    acl::COMMANDS,
    bgrewriteaof::COMMANDS,
    bgsave::COMMANDS,
    command::COMMANDS,
    commandlog::COMMANDS,
    config::COMMANDS,
    debug::COMMANDS,
    hotkeys::COMMANDS,
    info::COMMANDS,
    latency::COMMANDS,
    memory::COMMANDS,
    module::COMMANDS,
    monitor::COMMANDS,
    save::COMMANDS,
    shutdown::COMMANDS,
    slowlog::COMMANDS,
    tiering::COMMANDS,
    time::COMMANDS,
];
