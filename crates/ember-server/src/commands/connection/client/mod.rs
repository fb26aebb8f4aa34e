//! CLIENT: sets names and modes of connections, lists connections, and closes them.

mod filters;
mod kill;
mod list;
mod modes;
pub(super) mod names;
mod pause;
mod template;
mod tracking;
mod unblock;

use emberkv_core::spec::{Command, Example, Group, Spec};

use crate::commands::help::{help_subcommand, reply_help};
use crate::executor::session::ServerCommand;

pub(super) const COMMANDS: &[ServerCommand] = &[Command::container(
    Spec {
        name: "client",
        summary: "Contains subcommands for connections.",
        since: "2.4.0",
        group: Group::Connection,
        complexity: "Depends on the subcommand.",
        arity: -2,
        ..Spec::DEFAULT
    },
    None,
    &[
        tracking::CACHING,
        modes::CAPA,
        names::GETNAME,
        tracking::GETREDIR,
        HELP,
        list::ID,
        modes::IMPORT_SOURCE,
        list::INFO,
        kill::KILL,
        list::LIST,
        modes::NO_EVICT,
        modes::NO_TOUCH,
        pause::PAUSE,
        modes::REPLY,
        names::SETINFO,
        names::SETNAME,
        modes::SYNC_REPLICAS,
        tracking::TRACKING,
        tracking::TRACKINGINFO,
        unblock::UNBLOCK,
        pause::UNPAUSE,
    ],
)];

const HELP: ServerCommand = help_subcommand(
    Group::Connection,
    "5.0.0",
    Example {
        given: &[],
        call: "CLIENT HELP",
        reply: " 1) CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n 2) CACHING (YES|NO)\n...",
    },
    |session| reply_help(session, HELP_LINES),
);

const HELP_LINES: &[&str] = &[
    "CACHING (YES|NO)",
    "    Set whether the keys of the next command are tracked.",
    "CAPA <capability> [<capability> ...]",
    "    Declare capabilities of this client: REDIRECT follows redirections. Others are ignored.",
    "GETNAME",
    "    Return the name of this connection.",
    "GETREDIR",
    "    Return the client that receives this connection's invalidations; 0 for none, -1 while tracking is \
     off.",
    "ID",
    "    Return the ID of this connection.",
    "INFO",
    "    Describe this connection.",
    "KILL <ip:port>",
    "    Close the connection from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Close connections. Options are those of LIST; SKIPME is YES by default.",
    "LIST [<option> <value> [<option> <value> [...]]]",
    "    Describe connections. Options are:",
    "    * ADDR (<ip:port>|<unixsocket>:0)",
    "      Those from this address.",
    "    * CAPA <letters>",
    "      Those with all these capabilities: r is REDIRECT.",
    "    * DB <index>",
    "      Those that use this database.",
    "    * FLAGS <letters>",
    "      Those with all these flags.",
    "    * ID <client-id> [<client-id> ...]",
    "      Those with these IDs.",
    "    * IDLE <seconds>",
    "      Those that have been idle for <seconds>.",
    "    * IP <ip>",
    "      Those from this address, on any port.",
    "    * LADDR (<ip:port>|<unixsocket>:0)",
    "      Those to this local address.",
    "    * LIB-NAME <name>",
    "      Those whose client library has this name.",
    "    * LIB-VER <version>",
    "      Those whose client library has this version.",
    "    * MAXAGE <seconds>",
    "      Those older than <seconds>.",
    "    * NAME <name>",
    "      Those with this name.",
    "    * SKIPME (YES|NO)",
    "      Whether this connection is excluded (default: no).",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Those of this type.",
    "    * USER <username>",
    "      Those authenticated as <username>.",
    "    * NOT-<option> <value>",
    "      Those that do not match ADDR, CAPA, DB, FLAGS, ID, IP, LADDR, LIB-NAME, LIB-VER, NAME, TYPE or \
     USER.",
    "NO-EVICT (ON|OFF)",
    "    Set whether this connection is protected from eviction.",
    "NO-TOUCH (ON|OFF)",
    "    Set whether the commands of this connection leave the LRU and LFU clocks of keys unchanged.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Delay all commands, or only writes, for <timeout> milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Set which replies this connection receives.",
    "SETINFO <option> <value>",
    "    Name the client library. Options are LIB-NAME and LIB-VER.",
    "SETNAME <name>",
    "    Name this connection.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]] [OPTIN] [OPTOUT] [NOLOOP]",
    "    Enable or disable invalidations of the keys that this connection has read.",
    "TRACKINGINFO",
    "    Return the tracking state of this connection.",
    "UNBLOCK <clientid> [TIMEOUT|ERROR]",
    "    Unblock a blocked client.",
    "UNPAUSE",
    "    End a pause.",
];
