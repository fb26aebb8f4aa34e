//! Vector commands reply to any arguments and preserve the invariants of the keyspace. Arguments are separated by 0xFF,
//! calls by 0xFE.
#![no_main]

use ember_protocol::Protocol;
use emberkv_core::local::Local;
use libfuzzer_sys::fuzz_target;

const NAMES: [&[u8]; 24] = [
    b"VADD",
    b"VADD_BATCH",
    b"VSIM",
    b"VREM",
    b"VECTOR.CREATE",
    b"VECTOR.ADD",
    b"VECTOR.SEARCH",
    b"VECTOR.MSEARCH",
    b"VSETATTR",
    b"VGETATTR",
    b"VEMB",
    b"VLINKS",
    b"VINFO",
    b"VRANDMEMBER",
    b"VRANGE",
    b"VISMEMBER",
    b"VGET",
    b"VECTOR.GET",
    b"VECTOR.DEL",
    b"VECTOR.UPDATE",
    b"VECTOR.INFO",
    b"VECTOR.REINDEX",
    b"DUMP",
    b"COPY",
];

fuzz_target!(|data: &[u8]| {
    let mut local = Local::new(Protocol::Resp3);
    // No thread links vectors here, so added vectors stay pending and removed ones dead.
    local.turn.settings.links_vectors_later = data.len() % 2 == 1;
    for call in data.split(|&byte| byte == 0xFE) {
        let Some((&name, rest)) = call.split_first() else { continue };
        let mut words = vec![NAMES[usize::from(name) % NAMES.len()], b"key"];
        words.extend(rest.split(|&byte| byte == 0xFF));
        assert!(!local.run(&words).is_empty());
    }
    local.keyspace.check_invariants();
});
