//! The table of all parameters: the only place where they are described.
//!
//! Three rules apply. A parameter with a name from Redis has the same meaning. A Redis parameter that has no effect
//! here is checked and stored as in Redis, documented with the reason ([`Kind::Stored`]), and named in the log when it
//! is set. If users would rely on the effect, only values that describe the actual behavior are accepted
//! ([`Kind::Fixed`]).
//!
//! Each file contains the parameters of one subject.
//!
//! [`Kind::Fixed`]: super::parameter::Kind::Fixed
//! [`Kind::Stored`]: super::parameter::Kind::Stored

macro_rules! field {
    ($field:ident) => {
        Field { get: |config| &config.$field, get_mut: |config| &mut config.$field }
    };
}

/// Creates an integer parameter. The range must fit the type of the field, which a test checks by setting both bounds.
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

/// The parameters by subject, in the order of the documentation.
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

/// The type of [`PARAMETERS`], which iterates over all families.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table;

impl Table {
    /// Iterates over all parameters.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'static Parameter> {
        FAMILIES.into_iter().flatten()
    }
}

impl Parameter {
    /// Whether CONFIG GET shows the parameter only when its full name is requested.
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
