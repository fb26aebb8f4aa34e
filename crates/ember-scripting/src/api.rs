//! The table `redis`, also available as `server`: the functions and constants with which scripts access the server.

use std::rc::Rc;

use ember_protocol::Protocol;
use mlua::{Function, Lua, LuaString, MultiValue, Table, Value};

use super::arguments::Arguments;
use super::interpreter::{RUNNER, Shared};
use super::library::{self, Declaration};
use super::output::PIECE_BYTES;
use super::shebang::ScriptFlags;
use super::stack::{self, Entry};
use super::{raised, reply, sha1};
use crate::format::write_general;

/// The log levels of `redis.log`, by name.
const LEVELS: [(&str, i64); 4] =
    [("LOG_DEBUG", 0), ("LOG_VERBOSE", 1), ("LOG_NOTICE", 2), ("LOG_WARNING", 3)];

/// Bits of `redis.set_repl`: the destinations of a script's effects.
const TO_AOF: i64 = 1;
const TO_REPLICAS: i64 = 2;
const TO_ALL: i64 = TO_AOF | TO_REPLICAS;

const REPLICATION: [(&str, i64); 5] = [
    ("REPL_NONE", 0),
    ("REPL_AOF", TO_AOF),
    ("REPL_SLAVE", TO_REPLICAS),
    ("REPL_REPLICA", TO_REPLICAS),
    ("REPL_ALL", TO_ALL),
];

/// The maximum total length in bytes of the words in one log line, because a script can pass one string many times.
const LOG_BYTES_MAX: usize = 1024 * 1024;

/// Creates the entries that are available to running scripts and to libraries while they are loaded.
fn common(lua: &Lua, shared: &Shared) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    for (name, level) in LEVELS {
        library.set(name, level)?;
    }
    library.set("REDIS_VERSION", shared.redis_version.to_string())?;
    library.set("REDIS_VERSION_NUM", shared.redis_version.number())?;
    library.set("log", lua.create_function(log)?)?;
    Ok(library)
}

/// Creates the table `redis` for scripts and functions.
pub(super) fn script_library(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Table> {
    let library = common(lua, shared)?;
    for (name, flags) in REPLICATION {
        library.set(name, flags)?;
    }
    for (name, entry) in
        [("call", Entry::Call), ("pcall", Entry::ProtectedCall), ("acl_check_cmd", Entry::AccessCheck)]
    {
        library.set(name, stack::function(lua, shared, entry)?)?;
    }
    library.set("error_reply", lua.create_function(error_reply)?)?;
    library.set("status_reply", lua.create_function(status_reply)?)?;
    let digester = Rc::clone(shared);
    library
        .set("sha1hex", lua.create_function(move |lua, arguments| sha1_hex(lua, &digester, arguments))?)?;
    let setter = Rc::clone(shared);
    library
        .set("setresp", lua.create_function(move |lua, arguments| set_protocol(lua, &setter, arguments))?)?;
    library.set("set_repl", lua.create_function(set_replication)?)?;
    library.set("replicate_commands", lua.create_function(|_, _: MultiValue| Ok(true))?)?;
    // There is no debugger, so these functions have no effect.
    library.set("breakpoint", lua.create_function(|_, _: MultiValue| Ok(false))?)?;
    library.set("debug", lua.create_function(|_, _: MultiValue| Ok(()))?)?;
    Ok(library)
}

/// Creates the table `redis` for the loading of a library.
pub(super) fn load_library(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Table> {
    let library = common(lua, shared)?;
    let shared = Rc::clone(shared);
    library.set("register_function", lua.create_function(move |_, given| register(&shared, given))?)?;
    Ok(library)
}

fn error_reply(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let Some(text) = only_string(&arguments) else { return wrong_arguments(lua) };
    let text = text.as_bytes();
    let coded = if text.starts_with(b"-") { text.to_vec() } else { [b"-", &*text].concat() };
    raised::error_table(lua, lua.create_string(reply::error_text(&coded))?)
}

fn status_reply(lua: &Lua, arguments: MultiValue) -> mlua::Result<Value> {
    let Some(text) = only_string(&arguments) else { return wrong_arguments(lua) };
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set("ok", text)?;
    Ok(Value::Table(table))
}

/// Returns the only argument if it is a string; `None` if there are other arguments.
fn only_string(arguments: &MultiValue) -> Option<LuaString> {
    match (arguments.len(), arguments.front()) {
        (1, Some(Value::String(text))) => Some(text.clone()),
        _ => None,
    }
}

/// Creates the error table for wrong arguments, which the function returns to the script instead of raising it.
fn wrong_arguments(lua: &Lua) -> mlua::Result<Value> {
    raised::error_table(lua, lua.create_string("ERR wrong number or type of arguments")?)
}

fn sha1_hex(lua: &Lua, shared: &Shared, arguments: MultiValue) -> mlua::Result<LuaString> {
    if arguments.len() != 1 {
        return Err(raised::reply("ERR wrong number of arguments"));
    }
    let text = match arguments.front() {
        Some(value @ (Value::String(_) | Value::Integer(_) | Value::Number(_))) => {
            lua.coerce_string(value.clone())?
        }
        _ => None,
    };
    let text = text.as_ref().map(LuaString::as_bytes);
    let pieces = text.as_deref().unwrap_or_default().chunks(PIECE_BYTES);
    let digest = sha1::digest_of_pieces(pieces.map(|piece| shared.work(piece.len()).map(|()| piece)))?;
    lua.create_string(sha1::hex(&digest))
}

fn log(lua: &Lua, arguments: MultiValue) -> mlua::Result<()> {
    if arguments.len() < 2 {
        return Err(raised::reply("ERR redis.log() requires two arguments or more."));
    }
    let mut values = arguments.into_iter();
    let level = match values.next() {
        Some(Value::Integer(level)) => level,
        Some(Value::Number(level)) => level as i64,
        _ => return Err(raised::reply("ERR First argument must be a number (log level).")),
    };
    let mut words = Vec::new();
    let mut allowed = LOG_BYTES_MAX;
    for value in values {
        if let Some(word) = lua.coerce_string(value)? {
            let word = word.as_bytes();
            let kept = &word[..word.len().min(allowed)];
            allowed -= kept.len();
            words.push(String::from_utf8_lossy(kept).into_owned());
        }
    }
    let message = words.join(" ");
    match level {
        0 => tracing::trace!(target: "script", "{message}"),
        1 => tracing::debug!(target: "script", "{message}"),
        2 => tracing::info!(target: "script", "{message}"),
        3 => tracing::warn!(target: "script", "{message}"),
        _ => return Err(raised::reply("ERR Invalid debug level.")),
    }
    Ok(())
}

fn set_protocol(lua: &Lua, shared: &Shared, arguments: MultiValue) -> mlua::Result<()> {
    let arguments = Arguments::new(lua, arguments);
    if arguments.len() != 1 {
        return Err(raised::reply("ERR redis.setresp() requires one argument."));
    }
    let protocol = match arguments.number(1)? as i64 {
        2 => Protocol::Resp2,
        3 => Protocol::Resp3,
        _ => return Err(raised::reply("ERR RESP version must be 2 or 3.")),
    };
    shared.protocol.set(protocol);
    Ok(())
}

fn set_replication(lua: &Lua, arguments: MultiValue) -> mlua::Result<()> {
    let arguments = Arguments::new(lua, arguments);
    if arguments.len() != 1 {
        return Err(raised::reply("ERR redis.set_repl() requires one argument."));
    }
    let flags = arguments.number(1)? as i64;
    if flags & !TO_ALL != 0 {
        return Err(raised::reply(
            "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
        ));
    }
    RUNNER.with(|runner| runner.choose_readers(flags & TO_AOF != 0, flags & TO_REPLICAS != 0));
    Ok(())
}

/// Implements `redis.register_function(name, callback)` and `redis.register_function{function_name = …, callback = …,
/// …}`.
fn register(shared: &Shared, given: MultiValue) -> mlua::Result<()> {
    let (declaration, callback) = declaration_of(given).map_err(raised::reply)?;
    let mut declared = shared.declared.borrow_mut();
    let Some(declared) = declared.as_mut() else {
        return Err(raised::reply("ERR redis.register_function can only be called on FUNCTION LOAD command"));
    };
    if !library::is_name(&declaration.name) {
        return Err(raised::reply(format!("ERR {}", library::BAD_NAME)));
    }
    if declared.iter().any(|(other, _)| other.name == declaration.name) {
        return Err(raised::reply("ERR Function already exists in the library"));
    }
    declared.push((declaration, callback));
    Ok(())
}

fn declaration_of(given: MultiValue) -> Result<(Declaration, Function), &'static str> {
    let mut given = given.into_iter();
    match (given.next(), given.next(), given.next()) {
        (Some(Value::Table(named)), None, None) => named_declaration(&named),
        (Some(_), None, None) => Err("ERR calling redis.register_function with a single argument is only \
                                      applicable to Lua table (representing named arguments)."),
        (Some(name), Some(callback), None) => {
            let name =
                text_of(&name).ok_or("ERR first argument to redis.register_function must be a string")?;
            let Value::Function(callback) = callback else {
                return Err("ERR second argument to redis.register_function must be a function");
            };
            Ok((Declaration { name, description: None, flags: ScriptFlags::empty() }, callback))
        }
        _ => Err("ERR wrong number of arguments to redis.register_function"),
    }
}

fn text_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(number) => Some(number.to_string().into_bytes()),
        Value::Number(number) => {
            let mut text = Vec::new();
            write_general(&mut text, *number, 14);
            Some(text)
        }
        _ => None,
    }
}

fn named_declaration(named: &Table) -> Result<(Declaration, Function), &'static str> {
    const BAD_FLAGS: &str =
        "ERR flags argument to redis.register_function must be a table representing function flags";
    let (mut name, mut callback, mut description, mut flags) = (None, None, None, ScriptFlags::empty());
    for (key, value) in named.pairs::<Value, Value>().flatten() {
        let Value::String(key) = key else {
            return Err("ERR unknown argument given to redis.register_function");
        };
        match &*key.as_bytes() {
            b"function_name" => {
                let given = text_of(&value);
                name =
                    Some(given.ok_or(
                        "ERR function_name argument given to redis.register_function must be a string",
                    )?);
            }
            b"description" => {
                let given = text_of(&value);
                description =
                    Some(given.ok_or(
                        "ERR description argument given to redis.register_function must be a string",
                    )?);
            }
            b"callback" => {
                let Value::Function(given) = value else {
                    return Err("ERR callback argument given to redis.register_function must be a function");
                };
                callback = Some(given);
            }
            b"flags" => {
                let Value::Table(given) = value else { return Err(BAD_FLAGS) };
                flags = flags_of(&given)?;
            }
            _ => return Err("ERR unknown argument given to redis.register_function"),
        }
    }
    let name = name.ok_or("ERR redis.register_function must get a function name argument")?;
    let callback = callback.ok_or("ERR redis.register_function must get a callback argument")?;
    Ok((Declaration { name, description, flags }, callback))
}

fn flags_of(list: &Table) -> Result<ScriptFlags, &'static str> {
    let mut flags = ScriptFlags::empty();
    for number in 1usize.. {
        match list.raw_get(number) {
            Ok(Value::String(name)) => {
                flags |= ScriptFlags::named(&name.as_bytes()).ok_or("ERR unknown flag given")?;
            }
            Ok(Value::Nil) | Err(_) => break,
            Ok(_) => return Err("ERR unknown flag given"),
        }
    }
    Ok(flags)
}
