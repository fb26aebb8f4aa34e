//! Tests of the confinement check. The programs that are not confined try to access other keys or to run long.

use std::sync::LazyLock;

use ember_scripting::confinement::{confined_functions, confined_script};
use emberkv_core::spec::Group;

use crate::catalogue::registry::{Handler, Registry};

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::new(crate::commands::FAMILIES).0);

fn is_confined(text: &str) -> bool {
    confined_script(&*REGISTRY, text.as_bytes()).is_some_and(|confinement| confinement.holds_for(10))
}

/// Returns the confined functions of a library, by name.
fn functions(text: &str) -> Vec<String> {
    let found = confined_functions(&*REGISTRY, text.as_bytes());
    found.into_keys().map(|name| String::from_utf8(name).unwrap()).collect()
}

#[test]
fn short_programs_that_use_only_their_keys_are_confined() {
    for text in [
        "return 1",
        "return",
        "return {KEYS[1], ARGV[1], #KEYS, #ARGV}",
        "return redis.call('GET', KEYS[1])",
        "return redis.call(\"get\", KEYS[1])",
        "return redis.pcall('GET', KEYS[1])",
        "return server.call('GET', KEYS[1])",
        "local v = redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1]) redis.call('INCR', KEYS[2]) return v",
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
        "local current = redis.call('INCR', KEYS[1])\nif tonumber(current) == 1 then\n\
         redis.call('EXPIRE', KEYS[1], ARGV[1])\nend\nreturn current",
        "local key, now = KEYS[1], tonumber(ARGV[1]) redis.call('ZREMRANGEBYSCORE', key, 0, now - 60)\n\
         if redis.call('ZCARD', key) < 5 then redis.call('ZADD', key, now, now) return 1 end return 0",
        "for i = 1, #KEYS do redis.call('DEL', KEYS[i]) end",
        "for i = 1, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end",
        "for i = 1, 3 do redis.call('INCR', KEYS[1]) end",
        "local n = 0 for _, key in ipairs(KEYS) do n = n + redis.call('UNLINK', key) end return n",
        "for i, field in ipairs(ARGV) do redis.call('HDEL', KEYS[1], field) end",
        "return redis.call('DEL', unpack(KEYS))",
        "return redis.call('SADD', KEYS[1], unpack(ARGV))",
        "return redis.call('HMGET', KEYS[1], unpack(ARGV, 2))",
        "redis.call('MSET', KEYS[1], ARGV[1], KEYS[2], 'x')",
        "redis.call('ZUNIONSTORE', KEYS[1], 2, KEYS[2], KEYS[3], 'WEIGHTS', 1, 2)",
        "return redis.call('XREAD', 'COUNT', '1', 'STREAMS', KEYS[1], '0')",
        "return redis.call('OBJECT', 'ENCODING', KEYS[1])",
        "local t = redis.call('TIME') return t[1] * 1000000 + t[2]",
        "redis.call('PUBLISH', 'news', ARGV[1])",
        "local t = {a = 1, ['b'] = 2; 3} t.x = 4 t[5], t.y.z = 6, 7 return cjson.encode(t)",
        "local x = -#KEYS[1] + (2 ^ 3) .. 'a' return not x",
        "local a, b = unpack(redis.call('HMGET', KEYS[1], 'a', 'b')) return {a, b}",
        "-- redis.call('SET', 'x', 1)\n--[==[ KEYS = nil ]] ]==] return redis.call('GET', KEYS[1])",
        "local s = [[redis.call('SET', 'x', 1)]] return s",
        "do local KEYS = {} end return redis.call('GET', KEYS[1])",
        "return redis.status_reply('FINE')",
        "return math.max(1, math.floor(tonumber(ARGV[1]) / 2))",
        "redis.log(redis.LOG_WARNING, 'seen ' .. KEYS[1])",
        "redis.setresp(3) return redis.call('HGETALL', KEYS[1])",
        "return redis.call('GET', KEYS[tonumber(ARGV[1])])",
    ] {
        assert!(is_confined(text), "{text}");
    }
}

#[test]
fn programs_that_could_touch_other_keys_are_not_confined() {
    for text in [
        // Access to undeclared keys.
        "return redis.call('GET', 'key')",
        "return redis.call('GET', ARGV[1])",
        "return redis.call('GET', KEYS[1] .. ':x')",
        "return redis.call('GET', KEYS)",
        "return redis.call('GET', KEYS.x)",
        "return redis.call('GET', (KEYS[1] or 'x'))",
        "return redis.call('GET', KEYS[1] or 'x')",
        "return redis.call('GET', not KEYS[1])",
        "return redis.call('GET', KEYS[1][1])",
        "return redis.call('GET', KEYS[1].x)",
        "local key = 'x' return redis.call('GET', key)",
        "local key = KEYS[1] key = 'x' return redis.call('GET', key)",
        "local key = KEYS[1] if ARGV[1] then key = ARGV[1] end return redis.call('GET', key)",
        "local key = KEYS[1] do local key = ARGV[1] redis.call('GET', key) end",
        "local a, b = KEYS[1] return redis.call('GET', b)",
        "local a, b = unpack(ARGV) return redis.call('GET', a)",
        "local t = {KEYS[1]} return redis.call('GET', t[1])",
        "for _, key in ipairs(ARGV) do redis.call('DEL', key) end",
        "for key, _ in ipairs(KEYS) do redis.call('DEL', key) end",
        "for _, KEYS in ipairs(KEYS) do redis.call('DEL', KEYS[1]) end",
        "redis.call('MSET', KEYS[1], 'x', 'y', 'z')",
        "redis.call('MSET', unpack(ARGV))",
        "redis.call('MSET', KEYS[1], unpack(ARGV))",
        "redis.call('DEL', KEYS[1], unpack(ARGV))",
        "redis.call('DEL', unpack(redis.call('LRANGE', KEYS[1], 0, -1)))",
        "redis.call('DEL', cmsgpack.unpack(ARGV[1]))",
        "redis.call('RENAME', KEYS[1], ARGV[1])",
        "redis.call('ZUNIONSTORE', KEYS[1], ARGV[1], KEYS[2], KEYS[3])",
        "redis.call('ZUNIONSTORE', KEYS[1], 3, KEYS[2], KEYS[3], 'other')",
        "redis.call('ZUNION', KEYS[1], 'a', 'b')",
        "redis.call('XREAD', KEYS[2], 'x', 'STREAMS', KEYS[1], '0')",
        "redis.call('XREAD', ARGV[1], 'STREAMS', KEYS[1], '0')",
        // Commands that access more than their keys, or are unknown.
        "return redis.call('KEYS', '*')",
        "return redis.call('FLUSHALL')",
        "return redis.call('SCAN', 0)",
        "return redis.call('DBSIZE')",
        "return redis.call('RANDOMKEY')",
        "return redis.call('SORT', KEYS[1], 'BY', 'weight_*')",
        "return redis.call('EVAL', 'return 1', 0)",
        "return redis.call('CONFIG', 'GET', 'x')",
        "return redis.call('INFO')",
        "return redis.call('MEMORY', 'USAGE', KEYS[1])",
        "return redis.call('OBJECT', ARGV[1], KEYS[1])",
        "return redis.call('NONE', KEYS[1])",
        "return redis.call(ARGV[1], KEYS[1])",
        "return redis.call('G' .. 'ET', KEYS[1])",
        "return redis.call('\\71ET', KEYS[1])",
        "return redis.call(unpack(ARGV))",
        "return redis.call()",
        // Aliases of the tables, and other values under the names of the tables.
        "local call = redis.call return call('GET', 'x')",
        "local r = redis return r.call('GET', 'x')",
        "return redis['call']('GET', 'x')",
        "return redis.call{'GET', 'x'}",
        "return redis.call'GET'",
        "local redis = {call = next} return redis.call('GET', KEYS[1])",
        "local function redis() end",
        "local t = {redis.call} return t[1]('GET', 'x')",
        "return _G.redis.call('GET', 'x')",
        "return (redis).call('GET', 'x')",
        "KEYS = {'x'} return redis.call('GET', KEYS[1])",
        "local KEYS = {'x'} return redis.call('GET', KEYS[1])",
        "KEYS[1] = 'x' return redis.call('GET', KEYS[1])",
        "local a a, KEYS[1] = 1, 'x' return redis.call('GET', KEYS[1])",
        "local k = KEYS k[1] = 'x' return redis.call('GET', KEYS[1])",
        "table.insert(KEYS, 'x') return redis.call('GET', KEYS[1])",
        "rawset(KEYS, 1, 'x') return redis.call('GET', KEYS[1])",
        "local t = {KEYS} t[1][1] = 'x' return redis.call('GET', KEYS[1])",
        "setmetatable(KEYS, {__index = function() return 'x' end}) return redis.call('GET', KEYS[9])",
        "local t = setmetatable({}, {__index = function(t, k) return redis.call('GET', k) end}) return t.x",
        "getmetatable('').__index = nil",
        "return loadstring('return redis.call(\"GET\", \"x\")')()",
        "return load(function() end)",
        "local function get(key) return redis.call('GET', key) end return get('x')",
        "local get = function() return redis.call('GET', KEYS[1]) end return get()",
        "pcall(redis.call, 'GET', 'x')",
        "pcall(function() redis.call('GET', 'x') end)",
        "coroutine.wrap(function() redis.call('GET', 'x') end)()",
        "return ...",
        "x = 1",
        "local next = redis return next.call('GET', 'x')",
        "local unpack = next return redis.call('DEL', unpack(KEYS))",
        "local ipairs = next for _, key in ipairs(KEYS) do redis.call('DEL', key) end",
        // Code that seems to be part of a comment or string.
        "--[[ ]] redis.call('SET', 'x', 1) --]]",
        "--[=[ ]] ]=] redis.call('SET', 'x', 1)",
        "-- [[\nredis.call('SET', 'x', 1) -- ]]",
        "local s = [==[ ]] ]==] redis.call('SET', 'x', 1)",
        "local s = '\\\\' redis.call('SET', 'x', 1) --'",
        "local s = \"'\" redis.call('SET', 'x', 1) --'",
    ] {
        assert!(!is_confined(text), "{text}");
    }
}

#[test]
fn programs_that_could_run_long_are_not_confined() {
    for text in [
        "while true do end",
        "while redis.call('LPOP', KEYS[1]) do end",
        "repeat until false",
        "repeat local x = redis.call('LPOP', KEYS[1]) until not x",
        "for i = 1, ARGV[1] do end",
        "for i = 1, tonumber(ARGV[1]) do end",
        "for i = 1, 1e9 do end",
        "for i = 1, 1000000000 do end",
        "for i = 1, 99999999999999999999 do end",
        "for i = -1000000000, 1 do end",
        "for i = 1, 10, 0 do end",
        "for i = 1, #redis.call('KEYS', '*') do end",
        "for i = 1, #ARGV[1] do end",
        "for i = 1, #KEYS do for j = 1, #KEYS do end end",
        "for i = 1, 10 do while true do end end",
        "for _, v in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do end",
        "for k, v in pairs({}) do end",
        "for k in next, {} do end",
        "for _, x in ipairs(ARGV) do ARGV[#ARGV + 1] = x end",
        "for _, x in ipairs(ARGV) do table.insert(ARGV, x) end",
        "local a = ARGV for _, x in ipairs(ARGV) do a[#a + 1] = x end",
        "local function f() return f() end return f()",
        "return string.rep('x', 1000000000)",
        "return ('x'):rep(1000000000)",
        "local s = 'x' return s:rep(1000000000)",
        "return string.find(ARGV[1], '.-.-.-.-.-x')",
        "return string.gsub(ARGV[1], '.*', '')",
        "table.sort({}, next)",
        "table.insert({}, 1, 2)",
        "table.insert({}, unpack(ARGV))",
        "goto x ::x::",
    ] {
        assert!(!is_confined(text), "{text}");
    }
    assert!(!is_confined(&"local x = 1 ".repeat(10_000)));
    assert!(!is_confined(&format!("return {}1{}", "(".repeat(100_000), ")".repeat(100_000))));
    assert!(!is_confined(&"if 1 then ".repeat(1000)));
    assert!(!is_confined(&format!("return {}", "{".repeat(1000))));
    assert!(!is_confined(&format!("--{}\nreturn 1", "-".repeat(256 * 1024))));
}

#[test]
fn a_loop_over_many_arguments_is_not_short() {
    let text = "for _, key in ipairs(KEYS) do redis.call('DEL', key) end";
    let confinement = confined_script(&*REGISTRY, text.as_bytes()).unwrap();
    assert!(confinement.holds_for(1000) && !confinement.holds_for(10_000));
    let text = "return redis.call('DEL', unpack(KEYS))";
    assert!(confined_script(&*REGISTRY, text.as_bytes()).unwrap().holds_for(usize::MAX));
}

#[test]
fn no_broken_text_is_confined() {
    for text in [
        "return redis.call('GET', KEYS[1]",
        "if x",
        "if 1 then",
        "end",
        "return 1 end",
        "else",
        "local",
        "local end",
        "local x =",
        "for",
        "for i",
        "for i = 1",
        "for i = 1, 2",
        "redis",
        "redis.",
        "redis.call",
        "KEYS",
        "ARGV",
        "(",
        "{",
        "return {",
        "'",
        "[[",
        "--[[",
        "\u{e9} = 1",
        "local function next() end",
        "local function f(",
        "if 1 then local function next() end end",
        "local x = 1 2",
        "local x,",
        "return 1,",
        "local a.b = 1",
    ] {
        assert!(!is_confined(text), "{text}");
    }
    // No prefix of a confined text causes a panic.
    let text = "local k, t = KEYS[1], {1, a = 'x'} for i = 1, #ARGV do redis.call('HSET', k, ARGV[i], t.a) end return #k";
    for from in 0..text.len() {
        for to in from..text.len() {
            is_confined(&text[from..to]);
            is_confined(&format!("{}{}", &text[..from], &text[to..]));
        }
    }
}

#[test]
fn functions_are_confined_like_scripts() {
    let library = "local function add(keys, args) return redis.call('INCRBY', keys[1], args[1]) end\n\
        local function other(keys) return redis.call('INCR', keys[1] .. 'x') end\n\
        redis.register_function('add', add)\n\
        redis.register_function('other', other);\n\
        redis.register_function('none', function() return 'none' end)\n\
        redis.register_function{function_name='read', flags={'no-writes'}, description='Reads.',\n\
          callback=function(keys) if keys[1] then return redis.call('GET', keys[1]) end end}\n\
        redis.register_function({function_name='loop', callback=function(k, a) while true do end end})";
    assert_eq!(functions(library), ["add", "none", "read"]);
    // In functions, the first two parameters are the tables, whatever their names; `KEYS` and `ARGV` do not exist.
    for text in [
        "redis.register_function('f', function(keys, args) return redis.call('GET', KEYS[1]) end)",
        "redis.register_function('f', function(keys, args) return redis.call('GET', args[1]) end)",
        "redis.register_function('f', function(keys, keys) return redis.call('GET', keys[1]) end)",
        "redis.register_function('f', function(a, b, keys) return redis.call('GET', keys[1]) end)",
        "redis.register_function('f', function(redis) return redis.call('GET', 'x') end)",
        "redis.register_function('f', function(...) return 1 end)",
        "local function get(k) return redis.call('GET', k[1]) end\n\
         redis.register_function('f', function(k) return get({'x'}) end)",
        "local t = {} redis.register_function('f', function(k) return 1 end)",
        "local redis = 1 redis.register_function('f', function(k) return 1 end)",
        "if true then redis.register_function('f', function(k) return 1 end) end",
        "local f = function(k) return 1 end redis.register_function('f', f)",
        "redis.register_function('f' .. 'g', function(k) return 1 end)",
        "redis.register_function('f', 'g')",
        "redis.register_function('f', function(k) return 1",
    ] {
        assert!(functions(text).is_empty(), "{text}");
    }
}

#[test]
fn values_are_shared_by_confined_functions_only() {
    let confined = "local ttl = 60 redis.register_function('f', function(keys) \
                    return redis.call('EXPIRE', keys[1], ttl) end)\n";
    assert_eq!(functions(confined), ["f"]);
    let other = "redis.register_function('g', function() ttl = setmetatable({}, {}) end)";
    assert!(functions(&format!("{confined}{other}")).is_empty());
}

#[test]
fn only_server_commands_without_keys_are_contained() {
    let of_server = REGISTRY
        .all()
        .iter()
        .filter(|command| matches!(command.handler, Handler::Server) && command.spec.group == Group::Server);
    let contained: Vec<&str> = of_server
        .filter(|command| command.is_contained())
        .map(|command| command.full_name.as_str())
        .collect();
    assert_eq!(contained, ["role", "lastsave", "time"]);
}

#[test]
fn programs_with_effects_do_not_nest_tables_without_bounds() {
    let nest = "local t = {} for i = 1, 24 do t = {t, t} end";
    // A program without effects that takes long can be aborted and run again with exclusive access.
    assert!(is_confined(&format!("{nest} return cjson.encode(t)")));
    assert!(is_confined(&format!("{nest} return redis.call('GET', KEYS[1])")));
    for text in [
        format!("redis.call('SET', KEYS[1], 1) {nest} return cjson.encode(t)"),
        format!("redis.call('SET', KEYS[1], 1) {nest} return t"),
        format!("{nest} redis.call('PUBLISH', 'news', 1) return t"),
        format!("redis.call('SET', KEYS[1], 1) local t = {{}} {}", "t = {t, t} ".repeat(24)),
        "redis.call('INCR', KEYS[1]) local t = {} for i = 1, 24 do local n = {} n[1], n[2] = t, t t = n end return t".into(),
        "redis.call('INCR', KEYS[1]) local t = {} for i = 1, 24 do local n = {} table.insert(n, t) \
         table.insert(n, t) t = n end return t".into(),
        "redis.call('INCR', KEYS[1]) local t = {} t[1], t[2], t[3] = t, t, t return cmsgpack.pack(t)".into(),
        "redis.call('INCR', KEYS[1]) local t = {} for i = 1, 24 do t = {(t or 1), assert(t)} end return t".into(),
    ] {
        assert!(!is_confined(&text), "{text}");
    }
    for text in [
        "redis.call('SET', KEYS[1], 1) local a, b = ARGV[1], 2 return cjson.encode({a = a, b = {b, KEYS[1]}})",
        "local r = {} for i = 1, #KEYS do r[i] = redis.call('INCR', KEYS[i]) end return r",
    ] {
        assert!(is_confined(text), "{text}");
    }
}
