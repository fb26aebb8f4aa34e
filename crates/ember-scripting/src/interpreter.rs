//! A Lua interpreter, which a worker uses to run its scripts.
//!
//! The interpreter is Lua 5.1 with the edits of the crate `ember_lua`, inside the sandbox of `prelude.lua`.
//! `docs/lua.md` lists the known bugs of Lua 5.1.5 and how scripts are prevented from triggering them: by an edit, or
//! by the sandbox, which limits the counts passed to `unpack` and the source text passed to the compiler.
//!
//! The interpreter regularly asks the runner whether to continue: from a hook, which is called every
//! [`HOOK_INSTRUCTIONS`] instructions or after as much work in a C function, and from every Rust loop whose length a
//! script controls ([`Shared::work`]). A script that must end is ended by an error, which the sandbox's `pcall`,
//! `xpcall` and `coroutine.resume` raise again instead of returning it.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ember_protocol::{Protocol, Reply};
use emberkv_core::redis_version::RedisVersion;
use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table, Value, VmState};
use scoped_tls_hkt::scoped_thread_local;

use super::api;
use super::library::{Declaration, Libraries, Library};
use super::raised;
use super::reply::{self, Failure};
use super::stack::{self, Scratch};
use super::{bit, cjson, cmsgpack, random, structs};

/// The interval between two calls of the hook, in Lua instructions: some tens of microseconds.
const HOOK_INSTRUCTIONS: u32 = 10_000;

/// The work of Rust functions between two checks whether to continue, in bytes: about 100 µs.
const WORK_BYTES: usize = 64 * 1024;

/// The cost of reading an element of a table, as an equivalent number of bytes of work.
pub(super) const ELEMENT_WORK: usize = 64;

/// The maximum length of a source text in bytes. A script cannot be ended while Lua compiles, which takes 60 ms for a
/// text of this length; and the lexer has 32-bit counters.
const SOURCE_BYTES_MAX: usize = 1024 * 1024;

/// The maximum number of cached compiled scripts. Beyond that number the cache is cleared, and scripts are compiled
/// again when they are called.
const COMPILED_MAX: usize = 1000;

/// The memory use in bytes after a script above which garbage is collected in the worker's next turns; half of the
/// memory limit if that is less.
const COLLECTED_BYTES_MIN: usize = 16 * 1024 * 1024;

/// The time limit for garbage collection in one turn; the last step of the collector may exceed it.
const COLLECTING_TIME: Duration = Duration::from_millis(1);

/// The number of collector cycles after which all garbage is freed: the first cycle may have begun before the garbage
/// arose.
const COLLECTING_CYCLES: u8 = 2;

/// The server side of a running script, which executes the script's calls.
pub trait CommandRunner {
    /// Runs a call and appends its reply, which may be an error, in the reply's protocol.
    ///
    /// # Errors
    /// Returns an error text, with its code, if the call was not run.
    fn run(&mut self, arguments: &[&[u8]], reply: &mut Reply) -> Result<(), Vec<u8>>;

    /// Returns whether the script's user may make this call; `None` if the command does not exist.
    fn may_run(&mut self, arguments: &[&[u8]]) -> Option<bool>;

    /// Sets whether changes by later calls are sent to the AOF and to replicas (`redis.set_repl`).
    fn choose_readers(&mut self, aof: bool, replicas: bool);

    /// Whether [`Self::may_continue`] must be called at once, because calls have taken long.
    fn is_due(&self) -> bool;

    /// Returns whether the script may continue; called at intervals.
    fn may_continue(&mut self) -> bool;
}

scoped_thread_local!(pub(super) static mut RUNNER: for<'a> &'a mut (dyn CommandRunner + 'a));

/// The state of the running script, which Rust functions share.
pub(super) struct Shared {
    /// The maximum memory of the interpreter in bytes. The reply of a script and texts built by the libraries have the
    /// same limit: a table can be contained in others many times, so that a value that is small in the interpreter is
    /// large in a reply or text. Values without shared tables never reach this limit, because each takes more memory in
    /// the interpreter than in a reply or text.
    pub(super) memory_bytes_max: usize,
    /// The Redis version that scripts read.
    pub(super) redis_version: RedisVersion,
    /// Whether the script must end.
    pub(super) is_killed: Cell<bool>,
    /// Whether the hook is called at each instruction.
    is_stepping: Cell<bool>,
    /// The work of Rust functions since the last check whether to continue, in bytes.
    work: Cell<usize>,
    /// Whether the script has ended, so that only the prelude is running.
    is_over: Cell<bool>,
    /// The protocol whose types the replies to the script's calls have (`redis.setresp`).
    pub(super) protocol: Cell<Protocol>,
    /// The state of the generator of `math.random`.
    pub(super) random: Cell<u64>,
    /// The settings of each instance of `cjson`.
    pub(super) json: RefCell<Vec<Rc<Cell<cjson::Settings>>>>,
    /// Lua's own `next`, which scripts cannot replace.
    next: OnceCell<Function>,
    /// The functions declared so far by the library that is being loaded.
    pub(super) declared: RefCell<Option<Vec<(Declaration, Function)>>>,
    /// Buffers that calls use while they run.
    pub(super) scratch: Scratch,
}

impl Shared {
    /// Returns Lua's own `next`.
    pub(super) fn next(&self) -> &Function {
        self.next.get().expect("it is set before anything runs")
    }

    /// Counts work of a Rust function, which the instruction hook does not count.
    ///
    /// # Errors
    /// Returns an error if the script must end.
    #[inline]
    pub(super) fn work(&self, bytes: usize) -> mlua::Result<()> {
        if self.continues_after(bytes) { Ok(()) } else { Err(raised::killed()) }
    }

    /// Like [`Shared::work`], but returns false if the script must end.
    #[inline]
    pub(super) fn continues_after(&self, bytes: usize) -> bool {
        let done = self.work.get().saturating_add(bytes);
        if done < WORK_BYTES {
            self.work.set(done);
            return true;
        }
        self.work.set(0);
        self.may_continue()
    }

    /// Makes the next counted work trigger a check whether to continue.
    pub(super) fn end_work(&self) {
        self.work.set(WORK_BYTES);
    }

    /// Asks the runner whether the script may continue. After the first refusal, the runner is not asked again.
    #[cold]
    fn may_continue(&self) -> bool {
        // The hook is also called while the prelude compiles a script, when no script is running that could be ended.
        if !RUNNER.is_set() || self.is_over.get() {
            return true;
        }
        if !self.is_killed.get() {
            self.is_killed.set(!RUNNER.with(|runner| runner.may_continue()));
        }
        !self.is_killed.get()
    }
}

/// The functions of a library, by name.
pub type CompiledLibrary = HashMap<Vec<u8>, Function>;

/// The keys and arguments of a run, as Lua tables.
pub struct Given {
    keys: Table,
    arguments: Table,
}

/// The outcome of a run: success, or an error with the position where it was raised.
pub type Outcome = Result<(), Failure>;

/// A Lua interpreter with its compiled programs.
pub struct Interpreter {
    lua: Lua,
    shared: Rc<Shared>,
    compile_script: Function,
    compile_library: Function,
    run_script: Function,
    run_confined_script: Function,
    run_function: Function,
    load_library: Function,
    scripts: HashMap<[u8; 20], Function>,
    /// The number of collector cycles that are still to be completed.
    cycles_left: Cell<u8>,
    /// Libraries by name, with their source and compiled functions.
    libraries: HashMap<Vec<u8>, (Arc<Library>, CompiledLibrary)>,
}

impl Interpreter {
    /// Creates an interpreter with a memory limit of `memory_bytes_max`; scripts read `redis_version`.
    ///
    /// # Errors
    /// Returns an error if the limit is too low for the libraries, or if the operating system returns no random
    /// numbers.
    pub fn new(memory_bytes_max: usize, redis_version: RedisVersion) -> mlua::Result<Interpreter> {
        ember_lua::seed().map_err(mlua::Error::external)?;
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        lua.set_memory_limit(memory_bytes_max)?;
        // If the random source fails, `math.random` becomes predictable, which is acceptable.
        let seed = getrandom::u32().unwrap_or_default();
        let shared = Rc::new(Shared {
            memory_bytes_max,
            redis_version,
            is_killed: Cell::new(false),
            is_stepping: Cell::new(false),
            work: Cell::new(0),
            is_over: Cell::new(false),
            protocol: Cell::new(Protocol::Resp2),
            random: Cell::new(random::state_of_seed(seed as i32)),
            json: RefCell::new(Vec::new()),
            next: OnceCell::from(lua.globals().get::<Function>("next")?),
            declared: RefCell::new(None),
            scratch: Scratch::default(),
        });
        let native = natives(&lua, &shared)?;
        let prelude: Table = lua.load(include_str!("prelude.lua")).set_name("=prelude").call(native)?;
        let interpreter = Interpreter {
            compile_script: prelude.get("compile_script")?,
            compile_library: prelude.get("compile_library")?,
            run_script: prelude.get("run_script")?,
            run_confined_script: prelude.get("run_confined_script")?,
            run_function: prelude.get("run_function")?,
            load_library: prelude.get("load_library")?,
            lua,
            shared,
            scripts: HashMap::new(),
            cycles_left: Cell::new(0),
            libraries: HashMap::new(),
        };
        interpreter.set_hook();
        Ok(interpreter)
    }

    /// Returns a compiled script; compiles it first if necessary. `body` is its text without the shebang line.
    ///
    /// # Errors
    /// Returns the compiler's message.
    pub fn script(&mut self, sha: &[u8; 20], body: &[u8]) -> Result<Function, Vec<u8>> {
        if let Some(compiled) = self.scripts.get(sha) {
            return Ok(compiled.clone());
        }
        let compiled = self.compiled(&self.compile_script, body, "@user_script")?;
        if self.scripts.len() >= COMPILED_MAX {
            self.scripts.clear();
        }
        self.scripts.insert(*sha, compiled.clone());
        Ok(compiled)
    }

    fn compiled(&self, compiler: &Function, body: &[u8], name: &str) -> Result<Function, Vec<u8>> {
        let compile = || -> mlua::Result<(Option<Function>, Option<mlua::LuaString>)> {
            compiler.call((self.lua.create_string(body)?, name))
        };
        match compile() {
            Ok((Some(function), _)) => Ok(function),
            Ok((None, problem)) => {
                Err(problem
                    .map_or_else(|| b"it cannot be compiled".to_vec(), |text| text.as_bytes().to_vec()))
            }
            Err(error) => Err(raised::root(&error).to_string().into_bytes()),
        }
    }

    /// Runs a compiled script with these keys and arguments; appends the reply for its result to `reply`.
    pub fn run(
        &mut self,
        body: &Function,
        is_confined: bool,
        given: Given,
        runner: &mut dyn CommandRunner,
        reply: &mut Reply,
    ) -> Outcome {
        let run = if is_confined { &self.run_confined_script } else { &self.run_script };
        self.execute(run, body, given, runner, reply)
    }

    /// Calls the function of a library with these keys and arguments; appends the reply for its result to `reply`.
    pub fn call(
        &mut self,
        function: &Function,
        given: Given,
        runner: &mut dyn CommandRunner,
        reply: &mut Reply,
    ) -> Outcome {
        self.execute(&self.run_function, function, given, runner, reply)
    }

    fn execute(
        &self,
        run: &Function,
        body: &Function,
        Given { keys, arguments }: Given,
        runner: &mut dyn CommandRunner,
        reply: &mut Reply,
    ) -> Outcome {
        self.begin();
        // The result is converted while the runner is available, because conversion checks whether to continue.
        let outcome = RUNNER.set(runner, || match run.call::<(bool, Value)>((body, keys, arguments)) {
            Ok((true, value)) => {
                if let Some(failure) = Failure::returned(&value) {
                    return Err(failure);
                }
                let mark = reply.mark();
                reply::write_value(&self.shared, &value, reply).map_err(|problem| {
                    reply.truncate_to(mark);
                    Failure::of_text(problem)
                })
            }
            Ok((false, problem)) => Err(Failure::of(&problem)),
            Err(error) => Err(Failure::of_error(&error)),
        });
        self.schedule_collection();
        outcome
    }

    /// Creates the tables of keys and arguments for a run. Must be called before the run, while no locks are held.
    ///
    /// # Errors
    /// Returns a failure if there is not enough memory.
    pub fn given(&self, words: [&[&[u8]]; 2]) -> Result<Given, Failure> {
        let (keys, arguments) = stack::lists(&self.lua, words).map_err(|error| Failure::of_error(&error))?;
        Ok(Given { keys, arguments })
    }

    /// Runs the text of a library, which declares its functions.
    ///
    /// # Errors
    /// Returns the message of the compiler or of the raised error.
    pub fn load(
        &mut self,
        body: &[u8],
        runner: &mut dyn CommandRunner,
    ) -> Result<Vec<(Declaration, Function)>, Vec<u8>> {
        let problem_of = |before: &str, text: &[u8]| [before.as_bytes(), text].concat();
        let body = self
            .compiled(&self.compile_library, body, "@user_function")
            .map_err(|problem| problem_of("ERR Error compiling function: ", &problem))?;
        self.begin();
        *self.shared.declared.borrow_mut() = Some(Vec::new());
        let returned = RUNNER.set(runner, || self.load_library.call::<(bool, Value)>(body));
        let declared = self.shared.declared.borrow_mut().take().unwrap_or_default();
        self.schedule_collection();
        if self.shared.is_killed.get() {
            return Err(problem_of("ERR Error registering functions: ", b"ERR FUNCTION LOAD timeout"));
        }
        let failure = match returned {
            Ok((true, _)) => return Ok(declared),
            Ok((false, problem)) => Failure::of(&problem),
            Err(error) => Failure::of_error(&error),
        };
        Err(problem_of("ERR Error registering functions: ", &failure.text))
    }

    /// Returns a function of a library, if this version of the library is compiled.
    pub fn function(&self, library: &Arc<Library>, name: &[u8]) -> Option<Function> {
        let (compiled_from, functions) = self.libraries.get(&library.name)?;
        Arc::ptr_eq(compiled_from, library).then(|| functions.get(name).cloned())?
    }

    /// Caches a compiled library, and drops cached libraries that are not in `libraries`.
    pub fn keep_library(&mut self, library: Arc<Library>, compiled: CompiledLibrary, libraries: &Libraries) {
        self.libraries.retain(|name, (compiled_from, _)| {
            libraries.get(name).is_some_and(|present| Arc::ptr_eq(present, compiled_from))
        });
        self.libraries.insert(library.name.clone(), (library, compiled));
    }

    /// Returns the memory used by the interpreter, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.lua.used_memory()
    }

    fn begin(&self) {
        self.shared.is_over.set(false);
        self.shared.is_killed.set(false);
        self.shared.work.set(0);
        if self.shared.is_stepping.replace(false) {
            self.set_hook();
        }
        self.shared.protocol.set(Protocol::Resp2);
        let mut json = self.shared.json.borrow_mut();
        json.truncate(1);
        json.iter().for_each(|settings| settings.set(cjson::Settings::default()));
    }

    fn set_hook(&self) {
        let shared = Rc::clone(&self.shared);
        // Without the hook, scripts could not be ended.
        self.lua
            .set_global_hook(HookTriggers::new().every_nth_instruction(HOOK_INSTRUCTIONS), move |lua, _| {
                check(lua, &shared)
            })
            .expect("a hook that is set globally needs no memory of the interpreter");
    }

    /// Schedules garbage collection after a run if there may be much garbage.
    fn schedule_collection(&self) {
        if self.lua.used_memory() >= COLLECTED_BYTES_MIN.min(self.shared.memory_bytes_max / 2) {
            self.cycles_left.set(COLLECTING_CYCLES);
        }
    }

    /// Collects garbage for [`COLLECTING_TIME`]; must be called without locks. Returns true if some garbage is left.
    pub fn collect_some(&self) -> bool {
        let begun = Instant::now();
        while self.cycles_left.get() > 0 && begun.elapsed() < COLLECTING_TIME {
            // A step of the collector can fail only when it allocates a finalizer's error, and there are no finalizers.
            if self.lua.gc_step().unwrap_or(true) {
                self.cycles_left.set(self.cycles_left.get() - 1);
            }
        }
        self.cycles_left.get() > 0
    }

    /// Drops all compiled programs. The worker collects their memory in its next turns.
    pub(super) fn forget_compiled(&mut self) {
        if !self.scripts.is_empty() || !self.libraries.is_empty() {
            (self.scripts, self.libraries) = (HashMap::new(), HashMap::new());
            self.cycles_left.set(COLLECTING_CYCLES);
        }
    }

    /// Whether garbage collection is scheduled.
    pub fn has_garbage(&self) -> bool {
        self.cycles_left.get() > 0
    }

    /// Collects all garbage if memory might run out in the next run, because the interpreter does not collect garbage
    /// when an allocation fails. Must be called before anything is compiled or created for the run.
    pub fn collect_if_short(&self) {
        if self.has_garbage() && self.lua.used_memory() >= self.shared.memory_bytes_max / 2 {
            let _ = self.lua.gc_collect();
            self.cycles_left.set(0);
        }
    }
}

/// Ends the script if it must not continue; called by the hook.
fn check(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<VmState> {
    if shared.may_continue() {
        return Ok(VmState::Continue);
    }
    if !shared.is_stepping.replace(true) {
        // The hook is now called at each instruction, so that the script also ends if it catches the error.
        let shared = Rc::clone(shared);
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(1), move |lua, _| check(lua, &shared))?;
    }
    Err(raised::killed())
}

/// Creates the functions from which the prelude builds the sandbox.
fn natives(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Table> {
    let native = lua.create_table()?;
    let caught = Rc::clone(shared);
    native.set(
        "caught",
        lua.create_function(move |lua, problem: Value| {
            if caught.is_killed.get() { Err(raised::killed()) } else { raised::into_value(lua, problem) }
        })?,
    )?;
    let over = Rc::clone(shared);
    native.set(
        "describe",
        lua.create_function(move |lua, problem: Value| {
            over.is_over.set(true);
            describe(lua, problem)
        })?,
    )?;
    native.set(
        "refuse",
        lua.create_function(|lua, _: MultiValue| -> mlua::Result<()> {
            Err(raised::text(lua, "Attempt to modify a readonly table"))
        })?,
    )?;
    native.set("missing", lua.create_function(missing)?)?;
    native.set("check_source", lua.create_function(check_source)?)?;
    native.set(
        "to_integer",
        lua.create_function(|lua, value: Value| Ok(lua.coerce_number(value)?.map(|number| number as i64)))?,
    )?;
    native.set("clock", lua.create_function(|_, _: MultiValue| Ok(processor_seconds()))?)?;
    native.set("random", random::random(lua, shared)?)?;
    native.set("randomseed", random::randomseed(lua, shared)?)?;
    native.set("bit", bit::library(lua)?)?;
    native.set("struct", structs::library(lua, shared)?)?;
    native.set("cjson", cjson::library(lua, shared)?)?;
    native.set("cmsgpack", cmsgpack::library(lua, shared)?)?;
    native.set("redis", api::script_library(lua, shared)?)?;
    native.set("library", api::load_library(lua, shared)?)?;
    Ok(native)
}

/// Handles uncaught errors: converts the raised value to a table and adds the position where it was raised.
fn describe(lua: &Lua, problem: Value) -> mlua::Result<Table> {
    let table = match raised::into_value(lua, problem)? {
        Value::Table(table) => table,
        other => {
            let text = other.to_string().unwrap_or_default();
            let text = match &other {
                Value::String(text) => [b"ERR ", &*text.as_bytes()].concat(),
                Value::Nil => b"ERR nil".to_vec(),
                _ => format!("ERR {text}").into_bytes(),
            };
            let table = lua.create_table()?;
            table.raw_set("err", lua.create_string(text)?)?;
            table
        }
    };
    // Level 0 is this function. Level 1 is the function that raised the error: the script's own code, or a function
    // that it called.
    for level in 1.. {
        let place = lua.inspect_stack(level, |frame| {
            let source = frame.source();
            let name = source.source.map(std::borrow::Cow::into_owned).unwrap_or_default();
            (source.what == "C" || name == "=prelude", name, frame.current_line())
        });
        let Some((is_ours, name, line)) = place else { break };
        if !is_ours && let Some(line) = line {
            table.raw_set("source", name)?;
            table.raw_set("line", line)?;
            break;
        }
    }
    Ok(table)
}

/// Raises the error for reading a global variable that does not exist.
fn missing(lua: &Lua, (_, name): (Value, Value)) -> mlua::Result<()> {
    let name = lua.coerce_string(name)?;
    let name = name.as_ref().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
    let text = [b"Script attempted to access nonexistent global variable '", &name[..], b"'"].concat();
    Err(raised::text(lua, text))
}

fn check_source(lua: &Lua, source: mlua::LuaString) -> mlua::Result<(Option<bool>, Option<mlua::LuaString>)> {
    if source.as_bytes().len() > SOURCE_BYTES_MAX {
        return Ok((None, Some(lua.create_string("the script is too long")?)));
    }
    Ok((Some(true), None))
}

/// Returns the processor time used by the process, in seconds.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
