//! One Lua interpreter: what a worker runs its scripts in.
//!
//! Lua 5.1 with the edits of the crate `ember_lua`, behind the sandbox of `prelude.lua`. `docs/lua.md` lists what Lua 5.1.5
//! is known to get wrong and what keeps scripts from it: an edit, or the sandbox, which gives `unpack` counts that fit and
//! the compiler no more source text than its counts can count.
//!
//! A hook every [`HOOK_INSTRUCTIONS`] instructions, or after as much work in a function written in C, asks the runner
//! whether to go on, and so does every loop written in Rust whose length a script chooses ([`Shared::work`]). A script that
//! is to end is ended by an error which the sandbox's `pcall`, `xpcall` and `coroutine.resume` raise again instead of
//! returning it.

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

/// Instructions between two questions whether to go on: some tens of microseconds.
const HOOK_INSTRUCTIONS: u32 = 10_000;

/// Work of functions written in Rust between two questions whether to go on, in bytes: 100 µs, give or take.
const WORK_BYTES: usize = 64 * 1024;

/// What it takes to look at an element of a table, as work in bytes.
pub(super) const ELEMENT_WORK: usize = 64;

/// The longest source text in bytes. Nothing can end a script while Lua compiles, which takes 60 ms for as much as this; and
/// the lexer counts some things in 32 bits.
const SOURCE_BYTES_MAX: usize = 1024 * 1024;

/// Compiled scripts kept; when there are more, all are forgotten and compiled again when they are called.
const COMPILED_MAX: usize = 1000;

/// Bytes in use after a script from which on garbage is collected in the worker's next turns; less if less than twice as
/// many are allowed.
const COLLECTED_BYTES_MIN: usize = 16 * 1024 * 1024;

/// For how long garbage is collected in one turn, give or take a step of the collector.
const COLLECTING_TIME: Duration = Duration::from_millis(1);

/// Cycles of the collector after which all is gone that was garbage before: the first may have begun before that.
const COLLECTING_CYCLES: u8 = 2;

/// Runs the calls of a script.
pub trait CommandRunner {
    /// Runs a call, and appends its reply, which may be an error too, in the reply's protocol.
    ///
    /// # Errors
    /// The text, with its code, of the reason why the call was not run.
    fn run(&mut self, arguments: &[&[u8]], reply: &mut Reply) -> Result<(), Vec<u8>>;

    /// Whether the script's user may run such a call; `None` if there is no such command.
    fn may_run(&mut self, arguments: &[&[u8]]) -> Option<bool>;

    /// Says who is to get what later calls change.
    fn choose_readers(&mut self, aof: bool, replicas: bool);

    /// Whether it wants to be asked at once, because calls have taken long.
    fn is_due(&self) -> bool;

    /// Asked now and then; the script ends unless it may go on.
    fn goes_on(&mut self) -> bool;
}

scoped_thread_local!(pub(super) static mut RUNNER: for<'a> &'a mut (dyn CommandRunner + 'a));

/// What the functions written in Rust know of the script that is running.
pub(super) struct Shared {
    /// The most bytes that the interpreter may hold. Neither the reply of a script nor a text that the libraries make is
    /// longer: the same table may be in another many times, so that what is small in the interpreter can be large outside.
    /// No value that shares nothing meets this, as each takes more memory in the interpreter than in either of them.
    pub(super) memory_bytes_max: usize,
    /// The version of Redis that scripts see.
    pub(super) redis_version: RedisVersion,
    /// It is to end.
    pub(super) is_killed: Cell<bool>,
    /// The hook comes at each instruction.
    is_stepping: Cell<bool>,
    /// Work that functions written in Rust have done since the runner was last asked because of it.
    work: Cell<usize>,
    /// It has ended: what runs now is the prelude.
    is_over: Cell<bool>,
    /// The protocol of replies to its calls.
    pub(super) protocol: Cell<Protocol>,
    /// The state of `math.random`.
    pub(super) random: Cell<u64>,
    /// The settings of `cjson`, of each of its instances.
    pub(super) json: RefCell<Vec<Rc<Cell<cjson::Settings>>>>,
    /// Lua's own `next`.
    next: OnceCell<Function>,
    /// What the library that is being loaded declares.
    pub(super) declared: RefCell<Option<Vec<(Declaration, Function)>>>,
    /// What calls own while they run.
    pub(super) scratch: Scratch,
}

impl Shared {
    /// Lua's own `next`.
    pub(super) fn next(&self) -> &Function {
        self.next.get().expect("it is set before anything runs")
    }

    /// Notes work done by a function written in Rust, which the hook does not see.
    ///
    /// # Errors
    /// If the script is to end.
    #[inline]
    pub(super) fn work(&self, bytes: usize) -> mlua::Result<()> {
        if self.goes_on_after(bytes) { Ok(()) } else { Err(raised::killed()) }
    }

    /// As [`Shared::work`]; false if the script is to end.
    #[inline]
    pub(super) fn goes_on_after(&self, bytes: usize) -> bool {
        let done = self.work.get().saturating_add(bytes);
        if done < WORK_BYTES {
            self.work.set(done);
            return true;
        }
        self.work.set(0);
        self.goes_on()
    }

    /// Makes the next piece of work the one after which the runner is asked.
    pub(super) fn end_work(&self) {
        self.work.set(WORK_BYTES);
    }

    /// Asks the runner whether the script goes on. Once it does not, the runner is not asked again.
    #[cold]
    fn goes_on(&self) -> bool {
        // The hook counts on while the prelude compiles a script: then nothing runs that could be asked for or ended.
        if !RUNNER.is_set() || self.is_over.get() {
            return true;
        }
        if !self.is_killed.get() {
            self.is_killed.set(!RUNNER.with(|runner| runner.goes_on()));
        }
        !self.is_killed.get()
    }
}

/// The functions of a library by name.
pub type CompiledLibrary = HashMap<Vec<u8>, Function>;

/// The keys and arguments of a run, as its program gets them.
pub struct Given {
    keys: Table,
    arguments: Table,
}

/// The outcome of running something: what it returned, or an error with the place where it was raised.
pub type Outcome = Result<(), Failure>;

/// An interpreter and what it has compiled.
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
    /// Cycles of the collector that are still to be done.
    cycles_left: Cell<u8>,
    /// Libraries by name, with what they were compiled from.
    libraries: HashMap<Vec<u8>, (Arc<Library>, CompiledLibrary)>,
}

impl Interpreter {
    /// A new interpreter that may hold `memory_bytes_max` of memory, and tells scripts this version of Redis.
    ///
    /// # Errors
    /// If that is too little even for the libraries, or if there are no random numbers.
    pub fn new(memory_bytes_max: usize, redis_version: RedisVersion) -> mlua::Result<Interpreter> {
        ember_lua::seed().map_err(mlua::Error::external)?;
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        lua.set_memory_limit(memory_bytes_max)?;
        // A failing source of randomness costs only the unpredictability of numbers that promise none.
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

    /// A script, compiled if it is not yet. `body` is its text without the line of its flags.
    ///
    /// # Errors
    /// The compiler's words.
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

    /// Runs a compiled script with these keys and arguments; appends what it returns to `reply`.
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

    /// Calls the function of a library with these keys and arguments; appends what it returns to `reply`.
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
        // What is returned is converted while the runner can be asked.
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
        self.note_garbage();
        outcome
    }

    /// The tables of keys and arguments for a run. They are made before it, when no locks are held.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn given(&self, words: [&[&[u8]]; 2]) -> Result<Given, Failure> {
        let (keys, arguments) = stack::lists(&self.lua, words).map_err(|error| Failure::of_error(&error))?;
        Ok(Given { keys, arguments })
    }

    /// Runs the text of a library, which declares its functions.
    ///
    /// # Errors
    /// The words of the compiler or of the error raised.
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
        self.note_garbage();
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

    /// The function of a library, if that is compiled.
    pub fn function(&self, library: &Arc<Library>, name: &[u8]) -> Option<Function> {
        let (compiled_from, functions) = self.libraries.get(&library.name)?;
        Arc::ptr_eq(compiled_from, library).then(|| functions.get(name).cloned())?
    }

    /// Keeps a compiled library, and forgets those that are not among the `libraries` of now.
    pub fn keep_library(&mut self, library: Arc<Library>, compiled: CompiledLibrary, libraries: &Libraries) {
        self.libraries.retain(|name, (compiled_from, _)| {
            libraries.get(name).is_some_and(|present| Arc::ptr_eq(present, compiled_from))
        });
        self.libraries.insert(library.name.clone(), (library, compiled));
    }

    /// Bytes that the interpreter holds.
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
        // An interpreter whose hook cannot be set would run scripts that cannot be ended.
        self.lua
            .set_global_hook(HookTriggers::new().every_nth_instruction(HOOK_INSTRUCTIONS), move |lua, _| {
                ask(lua, &shared)
            })
            .expect("a hook that is set globally needs no memory of the interpreter");
    }

    /// Notes after a run whether there may be much garbage.
    fn note_garbage(&self) {
        if self.lua.used_memory() >= COLLECTED_BYTES_MIN.min(self.shared.memory_bytes_max / 2) {
            self.cycles_left.set(COLLECTING_CYCLES);
        }
    }

    /// Collects what runs have left, for [`COLLECTING_TIME`]; to be called when no locks are held. True if there is more.
    pub fn collect_some(&self) -> bool {
        let begun = Instant::now();
        while self.cycles_left.get() > 0 && begun.elapsed() < COLLECTING_TIME {
            // What fails here is the allocation of a finalizer's error; there are no finalizers.
            if self.lua.gc_step().unwrap_or(true) {
                self.cycles_left.set(self.cycles_left.get() - 1);
            }
        }
        self.cycles_left.get() > 0
    }

    /// Forgets what it has compiled, which becomes garbage and is collected in the worker's next turns.
    pub(super) fn forget_compiled(&mut self) {
        if !self.scripts.is_empty() || !self.libraries.is_empty() {
            (self.scripts, self.libraries) = (HashMap::new(), HashMap::new());
            self.cycles_left.set(COLLECTING_CYCLES);
        }
    }

    /// Whether runs have left much garbage.
    pub fn has_garbage(&self) -> bool {
        self.cycles_left.get() > 0
    }

    /// Collects all garbage if the next run could lack what it takes: nothing is collected when memory is out. To be called
    /// before anything is compiled or made for the run.
    pub fn make_room(&self) {
        if self.has_garbage() && self.lua.used_memory() >= self.shared.memory_bytes_max / 2 {
            let _ = self.lua.gc_collect();
            self.cycles_left.set(0);
        }
    }
}

/// Ends the script if it may not go on.
fn ask(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<VmState> {
    if shared.goes_on() {
        return Ok(VmState::Continue);
    }
    if !shared.is_stepping.replace(true) {
        // From now on nothing runs for longer than an instruction, whatever catches the error.
        let shared = Rc::clone(shared);
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(1), move |lua, _| ask(lua, &shared))?;
    }
    Err(raised::killed())
}

/// The functions that the prelude builds the sandbox with.
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

/// The handler of uncaught errors: makes a table of whatever was raised, and notes where.
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
    // Level 0 is this function, and 1 what raised: a script's own code, or a function that it called.
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

/// Reading a global variable that does not exist.
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

/// Seconds of processor time that the process has used.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
