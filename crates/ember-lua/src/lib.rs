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
        fn ember_lua_hash_number(number: f64) -> c_uint;
    }

    fn hash(bytes: &[u8]) -> u32 {
        // SAFETY: the function reads `bytes.len()` bytes.
        unsafe { ember_lua_hash(bytes.as_ptr().cast(), bytes.len()) }
    }

    fn hash_number(number: f64) -> u32 {
        // SAFETY: the function only computes.
        unsafe { ember_lua_hash_number(number) }
    }

    /// The length of the strings for which [`weak_secrets`] are weak.
    const WEAK_LENGTH: u64 = 3;

    /// Creates secrets from a seed. Strings of [`WEAK_LENGTH`] bytes are multiplied by a word with at least `zeros`
    /// leading zeros.
    fn weak_secrets(seed: u64, zeros: u32) -> [u64; 4] {
        let mut state = seed;
        let mut secrets = [0; 4];
        for secret in &mut secrets {
            // SplitMix64.
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            *secret = mixed ^ (mixed >> 31);
        }
        secrets[0] = (secrets[0] >> zeros).wrapping_sub(WEAK_LENGTH.wrapping_mul(secrets[2]));
        secrets
    }

    /// Asserts that 10,240 hashes are spread over 1,024 positions of a table, which the low bits select.
    fn assert_spread(what: &str, hash: impl Fn(u32) -> u32) {
        let mut positions = vec![0; 1024];
        (0..10_240).for_each(|number| positions[hash(number) as usize % 1024] += 1);
        let most = positions.iter().max().copied().unwrap_or_default();
        assert!(most < 40, "{what}: {most} of 10240 in one position of 1024");
    }

    /// A single test, because all tests of the process would share the secret seeds.
    #[test]
    fn hashes_depend_on_every_byte_and_are_spread_with_all_secrets() {
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
        assert_spread("numbers", |number| hash_number(f64::from(number)));
        for length in [3, 8, 12, 17, 100] {
            assert_spread("strings", |number| hash(format!("{number:0length$}").as_bytes()));
        }
        for seed in 0..300 {
            let secrets = weak_secrets(seed, (seed % 48) as u32);
            // SAFETY: the function reads four words, and no interpreter has been created.
            unsafe { super::ember_lua_seed(secrets.as_ptr()) };
            assert_spread(&format!("numbers, seed {seed}"), |number| hash_number(f64::from(number)));
            let length = WEAK_LENGTH as usize;
            assert_spread(&format!("strings, seed {seed}"), |number| {
                hash(format!("{number:0length$}").as_bytes())
            });
        }
    }
}
