//! The table of all parameters: the only place where one is described.
//!
//! Two rules. A parameter which would be accepted and ignored is absent, or accepts only the value which is true now
//! and says why others are refused ([`Kind::Fixed`]). A name which Redis has means here what it means there.
//!
//! Each file has the parameters of one subject.
//!
//! [`Kind::Fixed`]: super::parameter::Kind::Fixed

macro_rules! field {
    ($field:ident) => {
        Field { get: |config| &config.$field, get_mut: |config| &mut config.$field }
    };
}

/// The range must fit the type of the field; a test sets both of its ends.
macro_rules! integer {
    ($field:ident, $range:expr) => {
        Kind::Integer {
            range: $range,
            get: |config| i64::try_from(config.$field).expect("set from an i64"),
            set: |config, number| config.$field = number.try_into().expect("the range fits the field"),
        }
    };
}

macro_rules! choice {
    ($field:ident: $enum:ident) => {
        Kind::Choice {
            names: $enum::NAMES,
            get: |config| config.$field as usize,
            set: |config, position| config.$field = $enum::ALL[position],
        }
    };
}

mod bounds;
mod clients;
mod cluster;
mod encodings;
mod execution;
mod memory;
mod network;
mod observation;
mod persistence;
mod process;
mod scripts;
mod security;
#[cfg(test)]
mod tests;
mod tls;

use std::array::IntoIter;
use std::iter::Flatten;

pub(super) use bounds::ENCRYPTION_KEY_FILE;

use super::fields::Config;
use super::parameter::Parameter;

/// The families, in the order of the documentation.
static FAMILIES: [&[Parameter]; 12] = [
    network::PARAMETERS,
    security::PARAMETERS,
    tls::PARAMETERS,
    execution::PARAMETERS,
    memory::PARAMETERS,
    encodings::PARAMETERS,
    clients::PARAMETERS,
    scripts::PARAMETERS,
    observation::PARAMETERS,
    process::PARAMETERS,
    persistence::PARAMETERS,
    cluster::PARAMETERS,
];

/// Every parameter, in the order of the documentation.
pub(crate) const PARAMETERS: Table = Table;

/// See [`PARAMETERS`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table;

impl Table {
    /// The parameters one by one.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'static Parameter> {
        FAMILIES.into_iter().flatten()
    }
}

impl IntoIterator for Table {
    type Item = &'static Parameter;
    type IntoIter = Flatten<IntoIter<&'static [Parameter], 12>>;

    fn into_iter(self) -> Self::IntoIter {
        FAMILIES.into_iter().flatten()
    }
}

impl Default for Config {
    fn default() -> Config {
        let mut config = Config::zeros();
        for parameter in PARAMETERS {
            parameter.reset(&mut config);
        }
        config
    }
}
