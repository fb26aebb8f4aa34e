-- The sandbox: the parts of Lua and of ember that scripts can access.
--
-- Everything that outlives a script is accessed through a shield: an empty table that reads from the real one and
-- refuses writes. Scripts never hold the real tables, nor functions with which they could reach them.
-- Runs once for each interpreter, with `native` holding the functions written in Rust.

local native = ...

local collectgarbage, error, getmetatable, ipairs, loadstring, next, pcall =
  collectgarbage, error, getmetatable, ipairs, loadstring, next, pcall
local rawget, rawset, setfenv, setmetatable, tostring, type = rawget, rawset, setfenv, setmetatable, tostring, type
local unpack, xpcall = unpack, xpcall
local concat = table.concat
local resume = coroutine.resume
local caught, describe, refuse = native.caught, native.describe, native.refuse

-- Shields.

local real_of = {}       -- a shield → its real table
local metatable_of = {}  -- a value → the result of getmetatable, where that differs from the real metatable
local shields = {}

local function shield(real)
  local metatable = { __index = real, __newindex = refuse, __metatable = false }
  local shown = setmetatable({}, metatable)
  real_of[shown] = real
  metatable_of[shown] = false
  shields[#shields + 1] = shown
  return shown, metatable
end

-- `table.insert` and similar functions bypass a shield: they write into its empty table, which later scripts must not see.
local function wipe()
  for _, shown in ipairs(shields) do
    if next(shown) ~= nil then
      for key in next, shown do
        rawset(shown, key, nil)
      end
    end
  end
end

local function copy_of(real)
  local copy = {}
  for key, value in next, real do
    copy[key] = value
  end
  return copy
end

-- Functions of Lua that must respect shields, or must not catch the error that ends a killed script.

local function expected(what, number, name, value)
  error("bad argument #" .. number .. " to '" .. name .. "' (" .. what .. " expected, got " .. type(value) .. ")", 3)
end

local function settle(is_fine, ...)
  if is_fine then
    return true, ...
  end
  return false, caught((...))
end

local safe = {
  _VERSION = _VERSION, assert = assert, error = error, gcinfo = gcinfo, ipairs = ipairs, rawequal = rawequal,
  select = select, tonumber = tonumber, tostring = tostring, type = type,
}

-- As in Redis, the error of a call is caught as its text.
local function settle_text(is_fine, ...)
  if is_fine then
    return true, ...
  end
  local problem = caught((...))
  if type(problem) == "table" and type(problem.err) == "string" then
    problem = problem.err
  end
  return false, problem
end

function safe.pcall(...)
  return settle_text(pcall(...))
end

function safe.xpcall(body, handler)
  return settle(xpcall(body, function(problem) return handler(caught(problem)) end))
end

function safe.next(of, key)
  if type(of) ~= "table" then
    expected("table", 1, "next", of)
  end
  return next(real_of[of] or of, key)
end

function safe.pairs(of)
  if type(of) ~= "table" then
    expected("table", 1, "pairs", of)
  end
  local real = real_of[of]
  return next, real and copy_of(real) or of, nil
end

function safe.rawget(of, key)
  if type(of) ~= "table" then
    expected("table", 1, "rawget", of)
  end
  return rawget(real_of[of] or of, key)
end

function safe.rawset(of, key, value)
  if type(of) ~= "table" then
    expected("table", 1, "rawset", of)
  elseif real_of[of] then
    error("Attempt to modify a readonly table", 0)
  elseif key == nil then
    error("table index is nil", 0)
  elseif key ~= key then
    error("table index is NaN", 0)
  end
  return rawset(of, key, value)
end

function safe.getmetatable(value)
  local known = value ~= nil and metatable_of[value]
  if known == nil or value == nil then
    return getmetatable(value)
  end
  return known or nil
end

function safe.setmetatable(of, metatable)
  if type(of) ~= "table" then
    expected("table", 1, "setmetatable", of)
  elseif metatable ~= nil and type(metatable) ~= "table" then
    error("bad argument #2 to 'setmetatable' (nil or table expected)", 2)
  elseif real_of[of] then
    error("Attempt to modify a readonly table", 0)
  end
  local present = getmetatable(of)
  if present ~= nil and type(present) ~= "table" or type(present) == "table" and rawget(present, "__metatable") then
    error("cannot change a protected metatable", 2)
  end
  return setmetatable(of, metatable)
end

-- The number of values is checked in advance, because the interpreter's own check can overflow.
local unpacked_max, index_max, indices = 7999, 2147483647, 4294967296

-- Converts a number to a signed 32-bit index, as the interpreter does.
local function index_of(number)
  local index = number % indices
  return index > index_max and index - indices or index
end

function safe.unpack(list, first, last)
  if type(list) ~= "table" then
    expected("table", 1, "unpack", list)
  end
  local from = first == nil and 1 or native.to_integer(first)
  local to = last == nil and #list or native.to_integer(last)
  if not from then
    expected("number", 2, "unpack", first)
  elseif not to then
    expected("number", 3, "unpack", last)
  end
  from, to = index_of(from), index_of(to)
  if from > to then
    return
  elseif to - from >= unpacked_max then
    error("too many results to unpack", 2)
  elseif to < index_max then
    return unpack(list, from, to)
  end
  -- The interpreter would count beyond the last index.
  local values = {}
  for index = from, to do
    values[index - from + 1] = rawget(list, index)
  end
  return unpack(values, 1, to - from + 1)
end

local collector_options = {
  stop = true, restart = true, collect = true, count = true, step = true, setpause = true, setstepmul = true,
}
local is_collector_changed = false

-- Kibibytes after which a step of the collector has certainly completed a cycle.
local step_max = 2147483647

function safe.collectgarbage(option, value)
  if option ~= nil and not collector_options[option] then
    error("bad argument #1 to 'collectgarbage' (invalid option '" .. tostring(option) .. "')", 2)
  end
  is_collector_changed = true
  if option == nil or option == "collect" then
    -- In steps, between which a script can be ended: the rest of the current cycle, and a whole one.
    collectgarbage("step", step_max)
    collectgarbage("step", step_max)
    return 0
  end
  return collectgarbage(option, native.to_integer(value))
end

-- Compiles source text; bytecode is not supported (crates/ember-lua).
local function compile(environment, source, name)
  local chunk, problem = native.check_source(source)
  if chunk then
    chunk, problem = loadstring(source, name)
  end
  if chunk then
    return setfenv(chunk, environment)
  end
  return nil, problem
end

local function loaders(globals, environment)
  function globals.loadstring(source, name)
    if type(source) ~= "string" and type(source) ~= "number" then
      expected("string", 1, "loadstring", source)
    end
    return compile(environment, source .. "", name == nil and source .. "" or tostring(name))
  end

  function globals.load(reader, name)
    if type(reader) ~= "function" then
      expected("function", 1, "load", reader)
    end
    local pieces = {}
    while true do
      local is_fine, piece = settle(pcall(reader))
      if not is_fine then
        return nil, piece
      elseif piece == nil or piece == "" then
        break
      elseif type(piece) ~= "string" and type(piece) ~= "number" then
        return nil, "reader function must return a string"
      end
      pieces[#pieces + 1] = piece
    end
    return compile(environment, concat(pieces), name == nil and "=(load)" or tostring(name))
  end
end

-- Libraries.

local coroutines = copy_of(coroutine)
function coroutines.resume(...)
  return settle(resume(...))
end

local strings = copy_of(string)

local maths = copy_of(math)
maths.random, maths.randomseed = native.random, native.randomseed

local string_shield = shield(strings)
local string_metatable = getmetatable("")
string_metatable.__index = strings
string_metatable.__metatable = shield({ __index = string_shield })

safe.string, safe.table, safe.math = string_shield, shield(copy_of(table)), shield(maths)
safe.coroutine = shield(coroutines)
safe.os = shield({ clock = native.clock })
safe.bit, safe.struct = shield(native.bit), shield(native.struct)
safe.cjson, safe.cmsgpack = shield(native.cjson), shield(native.cmsgpack)
safe.redis = shield(native.redis)
safe.server = safe.redis

-- Environments: one for scripts, and one for functions, which is more limited while a library is loaded.

local function environment_of(globals)
  setmetatable(globals, { __index = native.missing })
  local shown, metatable = shield(globals)
  metatable_of[shown] = shield({ __index = native.missing })
  globals._G = shown
  return shown, metatable
end

local script_globals = copy_of(safe)
local script_environment = environment_of(script_globals)
loaders(script_globals, script_environment)

local function_globals = copy_of(safe)
local function_environment, function_metatable = environment_of(function_globals)
loaders(function_globals, function_environment)

local load_globals = {}
load_globals.redis = shield(setmetatable(native.library, { __index = native.missing }))
load_globals.server = load_globals.redis
setmetatable(load_globals, { __index = native.missing })

-- Functions called from Rust.

local function finish(...)
  wipe()
  if is_collector_changed then
    collectgarbage("restart")
    collectgarbage("setpause", 200)
    collectgarbage("setstepmul", 200)
    is_collector_changed = false
  end
  return ...
end

return {
  compile_script = function(source, name)
    return compile(script_environment, source, name)
  end,
  compile_library = function(source, name)
    return compile(function_environment, source, name)
  end,
  run_script = function(body, keys, arguments)
    script_globals.KEYS, script_globals.ARGV = keys, arguments
    return finish(xpcall(body, describe))
  end,
  -- A confined program cannot bypass a shield, and cannot call the collector.
  run_confined_script = function(body, keys, arguments)
    script_globals.KEYS, script_globals.ARGV = keys, arguments
    return xpcall(body, describe)
  end,
  run_function = function(body, keys, arguments)
    return finish(xpcall(function() return body(keys, arguments) end, describe))
  end,
  load_library = function(body)
    function_metatable.__index = load_globals
    local is_fine, problem = finish(xpcall(body, describe))
    function_metatable.__index = function_globals
    return is_fine, problem
  end,
}
