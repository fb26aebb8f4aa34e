//! The table of all parameters: the only place where they are described.
//!
//! Three rules apply. A name that Redis has means the same here. A parameter of Redis without an effect here is checked
//! and stored as in Redis, gives the reason ([`Kind::Stored`]), and is named in the log when it is set. Where users
//! would rely on the effect, only the value that applies now is accepted ([`Kind::Fixed`]).
//!
//! Each file has the parameters of one subject.
//!
//! [`Kind::Fixed`]: super::parameter::Kind::Fixed
//! [`Kind::Stored`]: super::parameter::Kind::Stored

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
mod hidden;
mod memory_limits;
mod network;
mod no_effect;
mod observation;
mod persistence;
mod process;
mod replication;
mod scripts;
mod security;
mod store;
#[cfg(test)]
mod tests;
mod tls;

pub use bounds::SYNC_REPLICAS_MAX;
use std::array::IntoIter;
use std::iter::Flatten;

pub(super) use bounds::{DIRECTORY, ENCRYPTION_KEY_FILE, PROTECTED};

use super::fields::Config;
use super::parameter::Parameter;

const FAMILY_COUNT: usize = 16;

/// The families, in the order of the documentation.
static FAMILIES: [&[Parameter]; FAMILY_COUNT] = [
    network::PARAMETERS,
    security::PARAMETERS,
    tls::PARAMETERS,
    execution::PARAMETERS,
    memory_limits::PARAMETERS,
    encodings::PARAMETERS,
    clients::PARAMETERS,
    scripts::PARAMETERS,
    observation::PARAMETERS,
    process::PARAMETERS,
    persistence::PARAMETERS,
    store::PARAMETERS,
    replication::PARAMETERS,
    cluster::PARAMETERS,
    no_effect::PARAMETERS,
    hidden::PARAMETERS,
];

/// Every parameter, in the order of the documentation.
pub(crate) const PARAMETERS: Table = Table;

/// The type of [`PARAMETERS`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table;

impl Table {
    /// Iterates over all parameters.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'static Parameter> {
        FAMILIES.into_iter().flatten()
    }
}

impl Parameter {
    /// Whether CONFIG GET shows it only when it is named.
    pub(crate) fn is_hidden(&self) -> bool {
        hidden::PARAMETERS.iter().any(|hidden| hidden.name == self.name)
    }
}

impl IntoIterator for Table {
    type Item = &'static Parameter;
    type IntoIter = Flatten<IntoIter<&'static [Parameter], FAMILY_COUNT>>;

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
