//! Copies Lua's sources, applies the edits of `build/edits.rs` and compiles them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

#[path = "build/edits.rs"]
mod edits;

/// The environment variable with the path of the file in which the compiler of [`sources_of_lua_src`] records its
/// input.
const OUTPUT_VARIABLE: &str = "EMBER_LUA_TELL_IN";

fn main() {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    match env::var_os(OUTPUT_VARIABLE) {
        None => build(),
        Some(_) if arguments.is_empty() => {
            // The build fails, because the recording compiler produces no output.
            let _ = lua_src::Build::new().try_build(lua_src::Lua51);
        }
        Some(told) => act_as_compiler(&told, &arguments),
    }
}

fn build() {
    for path in ["build.rs", "build", "c"] {
        println!("cargo:rerun-if-changed={path}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let edited = out.join("edited");
    let sources = sources_of_lua_src(&out);
    copy_edited(&sources, &edited)
        .unwrap_or_else(|problem| panic!("{} cannot be copied: {problem}", sources.display()));
    let mut compiler = cc::Build::new();
    for entry in fs::read_dir(&edited).expect("it has just been written") {
        let path = entry.expect("it has just been written").path();
        if path.extension().is_some_and(|extension| extension == "c") {
            compiler.file(path);
        }
    }
    compiler
        .file("c/ember_lua.c")
        .include(&edited)
        .include("c")
        .define("LUA_USE_MKSTEMP", None)
        .define("LUA_USE_ULONGJMP", None)
        // Some of Lua's overflow checks test the wrapped result of a signed overflow.
        .flag_if_supported("-fwrapv")
        .warnings(false)
        .cargo_metadata(false);
    if cfg!(debug_assertions) {
        compiler.define("LUA_USE_APICHECK", None);
    }
    compiler.compile("ember_lua51");
    println!("cargo:rustc-link-search=native={}", out.display());
    // `+whole-archive`, because linkers search an archive only for symbols that are undefined when they reach it.
    println!("cargo:rustc-link-lib=static:+whole-archive=ember_lua51");
}

/// Returns the folder of Lua's sources in the crate lua-src.
///
/// lua-src does not expose the path of its sources, but passes them to a compiler. `cargo metadata` does not help: it
/// requires all packages of the workspace, including packages that this build does not need. So this program runs
/// itself twice: first to let lua-src build Lua, and from there as the compiler, which records its input.
fn sources_of_lua_src(out: &Path) -> PathBuf {
    let this = env::current_exe().expect("this program is a file");
    let target = env::var("TARGET").expect("cargo sets it");
    let (asked, told) = (out.join("asked"), out.join("sources"));
    let _ = fs::remove_file(&told);
    fs::create_dir_all(&asked).expect("OUT_DIR can be written");
    // This variable takes precedence over all others that may name a compiler.
    Command::new(&this)
        .env(format!("CC_{target}"), &this)
        .env("OUT_DIR", &asked)
        .env(OUTPUT_VARIABLE, &told)
        .output()
        .expect("this program can be run");
    let folder = fs::read_to_string(&told).expect("lua-src gives its sources to a compiler");
    PathBuf::from(folder)
}

/// Records the directory of the source file in `arguments` if it is one of Lua's.
fn act_as_compiler(told: &OsString, arguments: &[OsString]) {
    let is_lua = |folder: &&Path| folder.join("lstring.c").is_file();
    if let Some(folder) = arguments.iter().filter_map(|word| Path::new(word).parent()).find(is_lua) {
        fs::write(told, folder.as_os_str().as_encoded_bytes()).expect("OUT_DIR can be written");
    }
    std::process::exit(1);
}

/// Copies Lua's sources and applies the edits to the copy.
fn copy_edited(sources: &Path, edited: &Path) -> io::Result<()> {
    if edited.exists() {
        fs::remove_dir_all(edited)?;
    }
    fs::create_dir_all(edited)?;
    for entry in fs::read_dir(sources)? {
        let entry = entry?;
        let name = entry.file_name().into_string().expect("Lua's files have plain names");
        let text = edits::edit(&name, fs::read_to_string(entry.path())?);
        fs::write(edited.join(&name), text)?;
    }
    for edit in edits::EDITS {
        assert!(edited.join(edit.file).is_file(), "Lua has no file {}", edit.file);
    }
    Ok(())
}
