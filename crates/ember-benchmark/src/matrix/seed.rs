//! The rows of the table in KVBench's README.
//!
//! KVBench's author measured them on a MacBook Pro 15" with a Core i7 of 2.8 GHz, with Go 1.7 and a million requests on
//! a million keys. KVBench does not accept GET in capital letters, which redis-benchmark sends: all GETs except those
//! of redis measure an error reply.

/// A row of KVBench's table.
pub(super) struct SeedRow {
    pub(super) store: &'static str,
    pub(super) pipeline: u32,
    pub(super) clients: u32,
    pub(super) persist: bool,
    pub(super) fsync: bool,
    pub(super) sets: u32,
    pub(super) gets: u32,
}

impl SeedRow {
    /// Whether the GETs of this row returned values.
    pub(super) fn gets_are_replies(&self) -> bool {
        self.store == "redis"
    }
}

const fn row(
    store: &'static str,
    (pipeline, clients): (u32, u32),
    (persist, fsync): (bool, bool),
    (sets, gets): (u32, u32),
) -> SeedRow {
    SeedRow { store, pipeline, clients, persist, fsync, sets, gets }
}

const SYNCED: (bool, bool) = (true, true);
const KEPT: (bool, bool) = (true, false);
const NOT_KEPT: (bool, bool) = (false, false);
const ONE: (u32, u32) = (1, 1);
const MANY: (u32, u32) = (1, 256);
const BATCHES: (u32, u32) = (256, 256);

/// All rows, in the order of the README.
pub(super) const ROWS: [SeedRow; 39] = [
    row("map", ONE, SYNCED, (9246, 35855)),
    row("map", ONE, KEPT, (30256, 36670)),
    row("map", ONE, NOT_KEPT, (37727, 36592)),
    row("btree", ONE, SYNCED, (8610, 32863)),
    row("btree", ONE, KEPT, (26992, 33298)),
    row("btree", ONE, NOT_KEPT, (34837, 35968)),
    row("bolt", ONE, SYNCED, (4061, 35698)),
    row("bolt", ONE, KEPT, (14295, 34033)),
    row("leveldb", ONE, SYNCED, (8774, 37024)),
    row("leveldb", ONE, KEPT, (23483, 31654)),
    row("redis", ONE, SYNCED, (9361, 34010)),
    row("redis", ONE, KEPT, (29439, 30951)),
    row("redis", ONE, NOT_KEPT, (33704, 32879)),
    row("map", MANY, SYNCED, (12850, 91962)),
    row("map", MANY, KEPT, (84495, 99124)),
    row("map", MANY, NOT_KEPT, (103_928, 98318)),
    row("btree", MANY, SYNCED, (12314, 93510)),
    row("btree", MANY, KEPT, (73024, 97819)),
    row("btree", MANY, NOT_KEPT, (94188, 101_112)),
    row("bolt", MANY, SYNCED, (4386, 88051)),
    row("bolt", MANY, KEPT, (21771, 82135)),
    row("leveldb", MANY, SYNCED, (83514, 97389)),
    row("leveldb", MANY, KEPT, (88051, 101_791)),
    row("redis", MANY, SYNCED, (118_708, 131_302)),
    row("redis", MANY, KEPT, (132_292, 127_893)),
    row("redis", MANY, NOT_KEPT, (128_435, 121_212)),
    row("map", BATCHES, SYNCED, (709_723, 2_083_333)),
    row("map", BATCHES, KEPT, (1_076_426, 1_960_784)),
    row("map", BATCHES, NOT_KEPT, (1_324_503, 1_733_102)),
    row("btree", BATCHES, SYNCED, (350_631, 2_309_468)),
    row("btree", BATCHES, KEPT, (455_580, 2_320_185)),
    row("btree", BATCHES, NOT_KEPT, (475_285, 2_079_002)),
    row("bolt", BATCHES, SYNCED, (115_420, 2_487_562)),
    row("bolt", BATCHES, KEPT, (193_162, 2_732_240)),
    row("leveldb", BATCHES, SYNCED, (472_813, 2_923_976)),
    row("leveldb", BATCHES, KEPT, (474_833, 2_832_861)),
    row("redis", BATCHES, SYNCED, (405_022, 979_431)),
    row("redis", BATCHES, KEPT, (433_651, 942_507)),
    row("redis", BATCHES, NOT_KEPT, (690_607, 1_004_016)),
];
