//! Hostile scripts receive errors; the server and other scripts are not affected.

use ember_testkit::Value;

use crate::{assert_fails, eval, everywhere};

#[test]
fn a_script_that_exhausts_memory_gets_an_error() {
    everywhere(&["--script-memory-limit", "16mb"], |_, client| {
        for script in [
            "return string.rep('x', 1024 * 1024 * 1024)",
            "local t = {} while true do t[#t + 1] = {} end",
            "local s = 'x' while true do s = s .. s end",
            "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end",
            "local t = {} for i = 1, 1e9 do t[i] = redis.call('ECHO', 'x' .. i) end",
            "local t = {} while true do t[#t + 1] = redis.pcall('PING') end",
            "return cjson.decode(('['):rep(900) .. ('{\"a\":1},'):rep(1000000))",
            "pcall(function() local t = {} while true do t[#t + 1] = {} end end) local s = 'x' while true do s = s .. s end",
        ] {
            let answer = eval(client, script);
            assert!(answer.is_error(), "{script}");
            assert_eq!(eval(client, "return 1"), Value::Integer(1), "after {script}");
        }
    });
}

#[test]
fn values_that_grow_on_conversion_are_refused() {
    everywhere(&["--script-memory-limit", "8mb"], |_, client| {
        let nested = "local t = {('x'):rep(1000)} for i = 1, 60 do t = {t, t} end ";
        assert_fails(client, &format!("{nested} return cjson.encode(t)"), "not enough memory");
        assert_fails(client, &format!("{nested} return t"), "the reply of the script is too large");
        assert_fails(
            client,
            "local s, t = ('x'):rep(1e6), {} for i = 1, 9 do t[i] = s end return t",
            "too large",
        );
        assert_fails(client, "return cjson.encode(('\\1'):rep(2e6))", "not enough memory");
        let wide = "local t = {('x'):rep(1000)} for i = 1, 15 do t = {t, t, t, t} end";
        assert_fails(client, &format!("{wide} return cmsgpack.pack(t)"), "not enough memory");
        assert_fails(client, "return struct.pack('c2147483647', 'x')", "string too short");
        assert_fails(
            client,
            "return cmsgpack.unpack('\\221\\255\\255\\255\\255')",
            "Missing bytes in input.",
        );
        assert_eq!(eval(client, "return 1"), Value::Integer(1));
    });
}

#[test]
fn shared_globals_are_read_only() {
    everywhere(&[], |_, client| {
        for script in [
            "x = 1",
            "_G.x = 1",
            "redis.x = 1",
            "redis.call = function() end",
            "string.upper = function() end",
            "getmetatable('').__index = {}",
            "getmetatable('').__index.upper = function() end",
            "getmetatable(_G).__index = {}",
            "rawset(_G, 'x', 1)",
            "rawset(redis, 'call', 1)",
            "setmetatable(_G, nil)",
            "setmetatable(string, {})",
            "cjson.encode = 1",
            "math.random = 1",
        ] {
            assert_fails(client, script, "Attempt to modify a readonly table");
        }
        // State that a script can write is discarded when the script ends.
        eval(client, "table.insert(redis, 'kept') table.insert(_G, 'kept') KEYS.x = 1");
        let left = "return {rawget(redis, 1), rawget(_G, 1), KEYS.x}";
        assert_eq!(eval(client, left), Value::Array(vec![]));
        eval(client, "cjson.encode_max_depth(1) cjson.decode_max_depth(1)");
        assert_eq!(eval(client, "return cjson.encode({{{1}}})"), Value::from("[[[1]]]"));
        // `pairs` and `next` do not expose the real tables.
        eval(client, "local _, real = pairs(string) real.upper = function() return 'changed' end");
        assert_eq!(eval(client, "return ('abc'):upper()"), Value::from("ABC"));
        eval(client, "collectgarbage('stop') collectgarbage('setpause', 100000)");
        assert_eq!(
            eval(client, "local t for i = 1, 1e6 do t = {i} end return t[1]"),
            Value::Integer(1_000_000)
        );
    });
}

#[test]
fn no_door_leads_out_of_the_sandbox() {
    everywhere(&[], |_, client| {
        for name in ["io", "debug", "require", "dofile", "loadfile", "package", "module", "print", "newproxy"]
        {
            assert_fails(client, &format!("return {name}"), "nonexistent global variable");
        }
        for name in ["getfenv", "setfenv"] {
            assert_fails(client, &format!("return {name}(1)"), "nonexistent global variable");
        }
        assert_fails(client, "return os.execute('true')", "attempt to call field 'execute'");
        assert_fails(client, "return os.getenv('PATH')", "attempt to call field 'getenv'");
        // `string.dump` exists as in Redis: its bytecode is an ordinary string, and is never loaded.
        assert_eq!(eval(client, "return string.dump(function() end):sub(2, 4)"), Value::from("Lua"));
        assert_fails(client, "return string.dump(string.len)", "unable to dump given function");
        let reload = "return loadstring(string.dump(function() return 1 end))()";
        assert_fails(client, reload, "attempt to call a nil value");
        assert_eq!(eval(client, "return type(os.clock())"), Value::from("number"));
        let bytecode =
            "local f, problem = loadstring('\\27Lua\\81\\0\\1\\4\\8\\4\\8\\0') return {tostring(f), problem}";
        let answer = eval(client, bytecode);
        assert_eq!(answer.elements().unwrap()[0], Value::from("nil"), "{answer:?}");
        let read = "local read = false return {tostring(load(function() if read then return nil end \
                    read = true return '\\27Lua' end))}";
        assert_eq!(eval(client, read), Value::Array(vec![Value::from("nil")]));
    });
}

#[test]
fn ranges_that_overflow_are_refused() {
    everywhere(&[], |_, client| {
        for script in [
            "local a = {unpack({}, 1, 2147483647)} return #a",
            "local a = {unpack({}, -2147483648, 2147483647)} return #a",
            "local a = {unpack({}, 0, 2147483647)} return #a",
        ] {
            assert_fails(client, script, "too many results to unpack");
        }
        // Indexes are truncated to 32 bits, as in Redis.
        assert_eq!(eval(client, "local a = {unpack({}, 1, 1e300)} return #a"), Value::Integer(0));
        assert_eq!(eval(client, "return select('#', unpack({}, 1, 7000))"), Value::Integer(7000));
        let brackets = "local f, problem = loadstring('[' .. ('='):rep(1000000) .. '[') return type(problem)";
        assert_eq!(eval(client, brackets), Value::from("string"));
        let long = "return select(2, loadstring(('x=1 '):rep(300000)))";
        assert_eq!(eval(client, long), Value::from("the script is too long"));
        assert_fails(client, "local function f() return f() + 1 end return f()", "stack overflow");
        assert_fails(client, "return string.rep('(', 300) and loadstring(('('):rep(100000))()", "nil value");
    });
}

#[test]
fn the_arguments_of_a_call_are_limited_to_the_size_of_the_interpreters_stack() {
    everywhere(&[], |_, client| {
        let push =
            "local t = {} for i = 1, 7000 do t[i] = 'v' .. i end return redis.call('RPUSH', 'l', unpack(t))";
        assert_eq!(eval(client, push), Value::Integer(7000));
        assert_eq!(eval(client, "return #redis.call('LRANGE', 'l', 0, -1)"), Value::Integer(7000));
        let many = "local t = {} for i = 1, 20000 do t[i] = 'f' .. i redis.call('HSET', 'h', t[i], i) end \
                    redis.setresp(3) local n = 0 for _ in pairs(redis.call('HGETALL', 'h').map) do n = n + 1 end return n";
        assert_eq!(eval(client, many), Value::Integer(20000));
        let returned = eval(client, "redis.setresp(3) return redis.call('HGETALL', 'h')");
        assert_eq!(returned.elements().unwrap().len(), 40000);
        let json = "redis.setresp(3) return #cjson.decode(cjson.encode(redis.call('LRANGE', 'l', 0, -1)))";
        assert_eq!(eval(client, json), Value::Integer(7000));
    });
}
