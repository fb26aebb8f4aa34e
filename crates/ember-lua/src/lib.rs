//! Lua 5.1 as ember compiles it.
//!
//! `build.rs` takes the sources of Lua 5.1.5 from the crate lua-src, applies the edits of `build/edits.rs` and compiles
//! the result together with `c/ember_lua.c`. The binding (mlua) links against the result. The differences from the
//! published Lua, with their reasons, are documented in `docs/lua.md`:
//!
//! * **Hashes** of strings and numbers use secret seeds and cover all bytes. [`seed`] draws the seeds.
//! * **Work in C is counted** like instructions, so that the count hook is called in time, also from inside a C
//!   function.
//! * **Bugs** of Lua 5.1.5 are fixed.
//!
//! There are no other differences: scripts run on Lua 5.1.

#![allow(unsafe_code, reason = "a function of C is called")]

use std::sync::OnceLock;

unsafe extern "C-unwind" {
    fn ember_lua_seed(random: *const u64);
}

/// Draws the secret seeds of the hash functions, once per process. Must be called before an interpreter is created.
///
/// # Errors
/// Returns an error if the operating system returns no random numbers.
pub fn seed() -> Result<(), getrandom::Error> {
    static SEEDED: OnceLock<Result<(), getrandom::Error>> = OnceLock::new();
    *SEEDED.get_or_init(|| {
        let mut secrets = [0; 4];
        for secret in &mut secrets {
            *secret = getrandom::u64()?;
        }
        // SAFETY: the function reads four words, which `secrets` contains, and no interpreter has been created.
        unsafe { ember_lua_seed(secrets.as_ptr()) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::ffi::{c_char, c_uint};

    unsafe extern "C-unwind" {
        fn ember_lua_hash(bytes: *const c_char, length: usize) -> c_uint;
    }

    fn hash(bytes: &[u8]) -> u32 {
        // SAFETY: the function reads `bytes.len()` bytes.
        unsafe { ember_lua_hash(bytes.as_ptr().cast(), bytes.len()) }
    }

    /// A single test, because all tests of the process would share the secret seeds.
    #[test]
    fn the_hash_depends_on_every_byte_and_on_the_secrets() {
        let before = hash(b"a string");
        super::seed().unwrap();
        assert_ne!(hash(b"a string"), before, "but for a chance of one in four billion");
        for length in 0..200 {
            let mut bytes = vec![b'x'; length];
            let mut hashes = HashSet::from([hash(&bytes)]);
            for at in 0..length {
                for changed in [b'y', b'X', 0] {
                    bytes[at] = changed;
                    hashes.insert(hash(&bytes));
                }
                bytes[at] = b'x';
            }
            // 600 random hashes of 32 bits contain two equal ones with a probability of 1 in 24,000, so one collision
            // is accepted.
            assert!(hashes.len() >= 3 * length, "length {length}: {} of {}", hashes.len(), 3 * length + 1);
        }
        let zeros: HashSet<u32> = (0..1000).map(|length| hash(&vec![0; length])).collect();
        assert!(zeros.len() >= 999, "{} lengths of 1000", zeros.len());
        // The low bits select the position in a table.
        for pieces in [3, 8, 12, 17, 100] {
            let mut places = vec![0; 1024];
            for number in 0..10_240 {
                let text = format!("{number:0pieces$}");
                places[hash(text.as_bytes()) as usize % 1024] += 1;
            }
            let most = places.iter().max().copied().unwrap_or_default();
            assert!(most < 40, "{pieces} bytes: {most} of 10240 in one place of 1024");
        }
    }
}
