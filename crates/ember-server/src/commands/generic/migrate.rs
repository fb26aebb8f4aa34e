//! MIGRATE: moves keys to another server.

use emberkv_core::spec::{Category, Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

use crate::executor::session::{Outcome, ServerCommand};
use crate::migration;

const GIVEN: KeyFlags = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE);

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "migrate",
        summary: "Moves keys to another server.",
        since: "2.6.0",
        group: Group::Generic,
        complexity: "That of DUMP and DEL here and of RESTORE there, and O(N) for the transfer of N bytes.",
        arity: -6,
        flags: Flags::WRITE.union(Flags::MOVABLEKEYS),
        categories: Category::DANGEROUS,
        keys: &[KeySpec::one(3, GIVEN), KeySpec::all_after("KEYS", -2, GIVEN.union(KeyFlags::INCOMPLETE))],
        key_flags_of: Some(|_| GIVEN),
        keys_of: Some(migration::key_positions),
        is_secret: Some(migration::has_secret_at),
        tips: &["nondeterministic_output"],
        syntax: "host port key-selector:<key | \"\"> destination-db timeout [COPY]@3.0.0 [REPLACE]@3.0.0 \
                 authentication:[<AUTH password>@4.0.7 | <AUTH2 username password>@6.0.0] [KEYS key [key ...]]@3.0.6",
        history: &[
            ("3.0.0", "`COPY` and `REPLACE`."),
            ("3.0.6", "`KEYS`."),
            ("4.0.7", "`AUTH`."),
            ("6.0.0", "`AUTH2`."),
        ],
        example: Example { given: &[], call: "MIGRATE 127.0.0.1 6380 missing 0 5000", reply: "NOKEY" },
        ..Spec::DEFAULT
    },
    Some(|_| Ok(Outcome::Continue(migration::migrate))),
)];
