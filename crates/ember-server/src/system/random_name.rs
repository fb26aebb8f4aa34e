//! Random names that are globally unique, such as run IDs.

/// The length of a name in hexadecimal digits.
const DIGITS: usize = 40;

/// Returns 40 random hexadecimal digits.
///
/// # Errors
/// Returns an error if the system returns no random numbers.
pub(crate) fn random_name() -> Result<String, getrandom::Error> {
    let mut name = String::with_capacity(DIGITS + 8);
    while name.len() < DIGITS {
        name += &format!("{:016x}", getrandom::u64()?);
    }
    name.truncate(DIGITS);
    Ok(name)
}
