//! Tests of commands on sketches, which compare the bytes of replies. The tables are the replies of Redis Stack 7.4.1.

use ember_protocol::Protocol;
use ember_protocol::client::read_value;
use emberkv_core::local::Local;
use emberkv_core::rdb::PayloadChecks;
use emberkv_core::turn::Random;

use crate::support::vectors::{check, reply, run};

#[test]
fn items_are_added_to_bloom_filters() {
    check(&[
        ("BF.ADD seen ann", ":1"),
        ("BF.ADD seen ann", ":0"),
        ("BF.MADD seen ann bob \"\\x00\\xff\" \"\"", "*4 :0 :1 :1 :1"),
        ("BF.EXISTS seen bob", ":1"),
        ("BF.EXISTS seen carl", ":0"),
        ("BF.MEXISTS seen \"\" \"\\x00\\xff\" x", "*3 :1 :1 :0"),
        ("BF.EXISTS none a", ":0"),
        ("BF.MEXISTS none a b", "*2 :0 :0"),
        ("BF.CARD seen", ":4"),
        ("BF.CARD none", ":0"),
        (
            "BF.INFO seen",
            "*10 +Capacity :100 +Size :240 +Number of filters :1 +Number of items inserted :4 +Expansion rate :2",
        ),
        ("BF.INFO seen CAPACITY", "*1 :100"),
        ("BF.INFO seen size", "*1 :240"),
        ("BF.INFO seen Filters", "*1 :1"),
        ("BF.INFO seen ITEMS", "*1 :4"),
        ("BF.INFO seen EXPANSION", "*1 :2"),
        ("BF.INFO seen nothing", "-Invalid information value"),
        ("BF.INFO none", "-ERR not found"),
        ("BF.INFO seen ITEMS SIZE", "-ERR wrong number of arguments for 'bf.info' command"),
        ("TYPE seen", "+MBbloom--"),
        ("OBJECT ENCODING seen", "$3 raw"),
        ("BF.ADD seen", "-ERR wrong number of arguments for 'bf.add' command"),
        ("BF.ADD seen a b", "-ERR wrong number of arguments for 'bf.add' command"),
        ("SET s v", "+OK"),
        ("BF.ADD s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("BF.MADD s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("BF.EXISTS s a", ":0"),
        ("BF.CARD s", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("BF.INFO s", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("BF.RESERVE s 0.1 10", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("BF.SCANDUMP s 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("BF.LOADCHUNK s 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("BF.INSERT s ITEMS a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ]);
}

#[test]
fn bloom_filters_are_created_with_parameters() {
    check(&[
        ("BF.RESERVE r 0.001 10", "+OK"),
        ("BF.RESERVE r 0.001 10", "-ERR item exists"),
        (
            "BF.INFO r",
            "*10 +Capacity :10 +Size :120 +Number of filters :1 +Number of items inserted :0 +Expansion rate :2",
        ),
        ("BF.RESERVE x 0 10", "-ERR (0 < error rate range < 1)"),
        ("BF.RESERVE x 1 10", "-ERR (0 < error rate range < 1)"),
        ("BF.RESERVE x -1 10", "-ERR (0 < error rate range < 1)"),
        ("BF.RESERVE x nan 10", "-ERR bad error rate"),
        ("BF.RESERVE x abc 10", "-ERR bad error rate"),
        ("BF.RESERVE x 0.1 0", "-ERR (capacity should be larger than 0)"),
        ("BF.RESERVE x 0.1 -1", "-ERR (capacity should be larger than 0)"),
        ("BF.RESERVE x 0.1 ten", "-ERR bad capacity"),
        ("BF.RESERVE x 0.1", "-ERR wrong number of arguments for 'bf.reserve' command"),
        ("BF.RESERVE x 0.1 10 EXPANSION", "-ERR no expansion"),
        ("BF.RESERVE x 0.1 10 EXPANSION 0", "-ERR expansion should be greater or equal to 1"),
        ("BF.RESERVE x 0.1 10 EXPANSION x", "-ERR bad expansion"),
        ("BF.RESERVE x 0.1 10 NONSCALING EXPANSION 2", "-Nonscaling filters cannot expand"),
        (
            "BF.RESERVE x 0.1 10 EXPANSION 2 NONSCALING x",
            "-ERR wrong number of arguments for 'bf.reserve' command",
        ),
        ("EXISTS x", ":0"),
        ("BF.RESERVE n 0.1 2 nonscaling", "+OK"),
        ("BF.MADD n a b c d e", "*3 :1 :1 -ERR non scaling filter is full"),
        ("BF.ADD n z", "-ERR non scaling filter is full"),
        (
            "BF.INFO n",
            "*10 +Capacity :2 +Size :104 +Number of filters :1 +Number of items inserted :2 +Expansion rate $-1",
        ),
        ("BF.INFO n expansion", "*1 $-1"),
        ("BF.RESERVE e 0.1 2 EXPANSION 3", "+OK"),
        ("BF.MADD e a b c d e f g h i j", "*10 :1 :1 :1 :1 :1 :1 :1 :1 :1 :1"),
        (
            "BF.INFO e",
            "*10 +Capacity :26 +Size :264 +Number of filters :3 +Number of items inserted :10 +Expansion rate :3",
        ),
        ("BF.INSERT i CAPACITY 3 ERROR 0.3 EXPANSION 1 ITEMS a b c d e f", "*6 :1 :1 :1 :1 :1 :1"),
        (
            "BF.INFO i",
            "*10 +Capacity :6 +Size :176 +Number of filters :2 +Number of items inserted :6 +Expansion rate :1",
        ),
        ("BF.INSERT i NOCREATE ITEMS a z", "*2 :0 :1"),
        ("BF.INSERT none NOCREATE ITEMS a", "-ERR not found"),
        ("BF.INSERT j NONSCALING CAPACITY 1 ITEMS a b c", "*2 :1 -ERR non scaling filter is full"),
        ("BF.INSERT j ITEMS", "-ERR wrong number of arguments for 'bf.insert' command"),
        ("BF.INSERT j CAPACITY", "-ERR wrong number of arguments for 'bf.insert' command"),
        ("BF.INSERT j x ITEMS a", "-Unknown argument received"),
        ("BF.INSERT j ERROR x ITEMS a", "-Bad error rate"),
        ("BF.INSERT j CAPACITY x ITEMS a", "-Bad capacity"),
        ("BF.INSERT j EXPANSION x ITEMS a", "-Bad expansion"),
        ("BF.INSERT k ERROR 1 ITEMS a", "-Bad argument received"),
        ("BF.INSERT k CAPACITY 0 ITEMS a", "-Bad argument received"),
        ("BF.INSERT k EXPANSION 0 ITEMS a", "-Bad argument received"),
        ("BF.INSERT k EXPANSION -1 ITEMS a", "-Bad argument received"),
        ("EXISTS k", ":0"),
    ]);
}

#[test]
fn bloom_filters_are_dumped_in_parts_and_restored() {
    check(&[
        ("BF.RESERVE d 0.1 3", "+OK"),
        ("BF.MADD d a b c d e", "*5 :1 :1 :1 :1 :1"),
        (
            "BF.SCANDUMP d 0",
            "*2 :1 $126 \\x05\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x05\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x08\\x00\\x00\\x00\\x00\\x00\\x00\\x00@\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x03\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x9a\\x99\\x99\\x99\\x99\\x99\\xa9?J\\xf7\\xd4\\x9e\\xde\\xf0\\x18@\\x05\\x00\\x00\\x00\\x03\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x08\\x00\\x00\\x00\\x00\\x00\\x00\\x00@\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x9a\\x99\\x99\\x99\\x99\\x99\\x99?\\x0b\\xd8\\x1fx0\\xb6\\x1e@\\x06\\x00\\x00\\x00\\x06\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00",
        ),
        ("BF.SCANDUMP d 1", "*2 :9 $8 0D \\x8c\\x10\\x92\\x01"),
        ("BF.SCANDUMP d 9", "*2 :17 $8 \\x10\\x81\\x80\\x80@\\x08(\\n"),
        ("BF.SCANDUMP d 17", "*2 :0 $0"),
        ("BF.SCANDUMP d 5", "*2 :9 $4 \\x10\\x92\\x01"),
        ("BF.SCANDUMP d -1", "*2 :0 $0"),
        ("BF.SCANDUMP d x", "-Second argument must be numeric"),
        ("BF.SCANDUMP none 0", "-ERR not found"),
        ("BF.LOADCHUNK c 1 header", "-ERR received bad data"),
        ("BF.LOADCHUNK c 9 abcdefgh", "-ERR not found"),
        ("BF.LOADCHUNK c x abc", "-ERR Second argument must be numeric"),
        (
            "BF.LOADCHUNK c 1 \"\\x05\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x05\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x08\\x00\\x00\\x00\\x00\\x00\\x00\\x00@\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x03\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x9a\\x99\\x99\\x99\\x99\\x99\\xa9?\\x85\\xc5(\\xdb\\xc3\\xf1\\x18@\\x05\\x00\\x00\\x00\\x03\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x08\\x00\\x00\\x00\\x00\\x00\\x00\\x00@\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x9a\\x99\\x99\\x99\\x99\\x99\\x99?\\x05\\xb1\\x07jX\\xaf\\x1d@\\x06\\x00\\x00\\x00\\x06\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\"",
            "+OK",
        ),
        (
            "BF.INFO c",
            "*10 +Capacity :9 +Size :176 +Number of filters :2 +Number of items inserted :5 +Expansion rate :2",
        ),
        ("BF.EXISTS c a", ":0"),
        ("BF.LOADCHUNK c 9 abcdefgh", "+OK"),
        ("BF.SCANDUMP c 1", "*2 :9 $8 abcdefgh"),
        ("BF.LOADCHUNK c 10 abcdefgh", "-ERR invalid chunk - Too big for current filter"),
        ("BF.LOADCHUNK c 3 abcdefgh", "-ERR received bad data"),
        ("BF.LOADCHUNK c 100 abcdefgh", "-ERR invalid offset - no link found"),
        ("BF.LOADCHUNK c 0 abcdefgh", "-ERR received bad data"),
        ("BF.LOADCHUNK c -5 abcdefgh", "-ERR received bad data"),
        ("BF.LOADCHUNK c 5 ab", "+OK"),
        ("BF.SCANDUMP c 1", "*2 :9 $8 ababefgh"),
    ]);
}

#[test]
fn items_are_added_to_cuckoo_filters() {
    check(&[
        ("CF.ADD seen ann", ":1"),
        ("CF.ADD seen ann", ":1"),
        ("CF.ADDNX seen ann", ":0"),
        ("CF.ADDNX seen bob", ":1"),
        ("CF.COUNT seen ann", ":2"),
        ("CF.COUNT seen carl", ":0"),
        ("CF.EXISTS seen bob", ":1"),
        ("CF.MEXISTS seen ann carl", "*2 :1 :0"),
        ("CF.INSERT seen ITEMS carl dora", "*2 :1 :1"),
        ("CF.INSERTNX seen ITEMS carl emil", "*2 :0 :1"),
        ("CF.INSERT none NOCREATE ITEMS a", "-ERR not found"),
        ("CF.INSERT other CAPACITY 8 ITEMS a b", "*2 :1 :1"),
        (
            "CF.INFO other",
            "*16 +Size :64 +Number of buckets :4 +Number of filters :1 +Number of items inserted :2 +Number of items deleted :0 +Bucket size :2 +Expansion rate :1 +Max iterations :20",
        ),
        ("CF.INSERT other CAPACITY 3 ITEMS a", "-Capacity must be at least (BucketSize * 2)"),
        ("CF.INSERT other CAPACITY x ITEMS a", "-Bad capacity"),
        ("CF.INSERT other CAPACITY", "-ERR wrong number of arguments for 'cf.insert' command"),
        ("CF.INSERT other ITEMS", "-ERR wrong number of arguments for 'cf.insert' command"),
        ("CF.INSERT other x ITEMS a", "-Unknown argument received"),
        (
            "CF.INFO seen",
            "*16 +Size :1080 +Number of buckets :512 +Number of filters :1 +Number of items inserted :6 +Number of items deleted :0 +Bucket size :2 +Expansion rate :1 +Max iterations :20",
        ),
        ("CF.DEL seen ann", ":1"),
        ("CF.DEL seen ann", ":1"),
        ("CF.DEL seen nobody", ":0"),
        ("CF.DEL none a", "-Not found"),
        (
            "CF.INFO seen",
            "*16 +Size :1080 +Number of buckets :512 +Number of filters :1 +Number of items inserted :4 +Number of items deleted :2 +Bucket size :2 +Expansion rate :1 +Max iterations :20",
        ),
        ("CF.INFO none", "-ERR not found"),
        ("CF.EXISTS none a", ":0"),
        ("CF.MEXISTS none a b", "*2 :0 :0"),
        ("CF.COUNT none a", ":0"),
        ("CF.COMPACT seen", "+OK"),
        ("CF.COMPACT none", "-Cuckoo filter was not found"),
        ("TYPE seen", "+MBbloomCF"),
        ("SET s v", "+OK"),
        ("CF.ADD s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("CF.EXISTS s a", ":0"),
        ("CF.COUNT s a", ":0"),
        ("CF.DEL s a", "-Not found"),
        ("CF.COMPACT s", "-Cuckoo filter was not found"),
        ("CF.INFO s", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("CF.RESERVE s 10", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("CF.SCANDUMP s 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("CF.LOADCHUNK s 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ]);
}

#[test]
fn cuckoo_filters_are_created_with_parameters() {
    check(&[
        ("CF.RESERVE r 100 BUCKETSIZE 4 MAXITERATIONS 5 EXPANSION 3", "+OK"),
        ("CF.RESERVE r 100", "-ERR item exists"),
        (
            "CF.INFO r",
            "*16 +Size :184 +Number of buckets :32 +Number of filters :1 +Number of items inserted :0 +Number of items deleted :0 +Bucket size :4 +Expansion rate :4 +Max iterations :5",
        ),
        ("CF.RESERVE x ten", "-Bad capacity"),
        ("CF.RESERVE x 3", "-Capacity must be at least (BucketSize * 2)"),
        ("CF.RESERVE x 100 BUCKETSIZE", "-ERR wrong number of arguments for 'cf.reserve' command"),
        ("CF.RESERVE x 100 BUCKETSIZE x", "-Couldn't parse BUCKETSIZE"),
        (
            "CF.RESERVE x 100 BUCKETSIZE 0",
            "-BUCKETSIZE: value must be an integer between 1 and 255, inclusive.",
        ),
        (
            "CF.RESERVE x 100 BUCKETSIZE 256",
            "-BUCKETSIZE: value must be an integer between 1 and 255, inclusive.",
        ),
        (
            "CF.RESERVE x 100 MAXITERATIONS 0",
            "-MAXITERATIONS: value must be an integer between 1 and 65535, inclusive.",
        ),
        (
            "CF.RESERVE x 100 MAXITERATIONS 65536",
            "-MAXITERATIONS: value must be an integer between 1 and 65535, inclusive.",
        ),
        ("CF.RESERVE x 100 MAXITERATIONS x", "-Couldn't parse MAXITERATIONS"),
        (
            "CF.RESERVE x 100 EXPANSION -1",
            "-EXPANSION: value must be an integer between 0 and 32768, inclusive.",
        ),
        (
            "CF.RESERVE x 100 EXPANSION 32769",
            "-EXPANSION: value must be an integer between 0 and 32768, inclusive.",
        ),
        ("CF.RESERVE x 100 EXPANSION x", "-Couldn't parse EXPANSION"),
        ("CF.RESERVE x 20 BUCKETSIZE 11", "-Capacity must be at least (BucketSize * 2)"),
        ("EXISTS x", ":0"),
        ("CF.RESERVE full 4 EXPANSION 0", "+OK"),
        ("CF.INSERT full ITEMS a a a", "*3 :1 :1 :-1"),
        ("CF.INSERTNX full ITEMS a b c d e", "*5 :0 :-1 :1 :-1 :-1"),
        ("CF.ADD full a", "-Filter is full"),
        ("CF.RESERVE grows 4 BUCKETSIZE 1 MAXITERATIONS 2", "+OK"),
        ("CF.INSERT grows ITEMS a b c d e f g h i j", "*10 :1 :1 :1 :1 :1 :1 :1 :1 :1 :1"),
        (
            "CF.INFO grows",
            "*16 +Size :100 +Number of buckets :4 +Number of filters :3 +Number of items inserted :10 +Number of items deleted :0 +Bucket size :1 +Expansion rate :1 +Max iterations :2",
        ),
        ("CF.DEL grows a", ":1"),
        ("CF.DEL grows b", ":1"),
        ("CF.DEL grows c", ":1"),
        (
            "CF.INFO grows",
            "*16 +Size :100 +Number of buckets :4 +Number of filters :3 +Number of items inserted :7 +Number of items deleted :0 +Bucket size :1 +Expansion rate :1 +Max iterations :2",
        ),
        ("CF.COMPACT grows", "+OK"),
        (
            "CF.INFO grows",
            "*16 +Size :100 +Number of buckets :4 +Number of filters :3 +Number of items inserted :7 +Number of items deleted :0 +Bucket size :1 +Expansion rate :1 +Max iterations :2",
        ),
    ]);
}

#[test]
fn cuckoo_filters_are_dumped_in_parts_and_restored() {
    check(&[
        ("CF.RESERVE d 4 BUCKETSIZE 1", "+OK"),
        ("CF.SCANDUMP d 0", "*2 :0 $-1"),
        ("CF.INSERT d ITEMS a b c d e f", "*6 :1 :1 :1 :1 :1 :1"),
        (
            "CF.SCANDUMP d 0",
            "*2 :1 $38 \\x06\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x04\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x00\\x14\\x00\\x01\\x00",
        ),
        ("CF.SCANDUMP d 1", "*2 :5 $4 \\x00\\xc4\\xcb\\x10"),
        ("CF.SCANDUMP d 2", "*2 :6 $4 \\x00\\xc4\\xcb\\x10"),
        ("CF.SCANDUMP d 5", "*2 :9 $4 \\x00\\xbc\\xa9\\x06"),
        ("CF.SCANDUMP d 100", "*2 :0 $-1"),
        ("CF.SCANDUMP d -1", "-Invalid position"),
        ("CF.SCANDUMP none 0", "-ERR not found"),
        ("CF.LOADCHUNK c 1 header", "-Invalid header"),
        ("CF.LOADCHUNK c 5 abcd", "-ERR not found"),
        ("CF.LOADCHUNK c 0 abcd", "-Invalid position"),
        ("CF.LOADCHUNK c x abcd", "-Invalid position"),
        (
            "CF.LOADCHUNK c 1 \"\\x06\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x04\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x00\\x14\\x00\\x01\\x00\"",
            "+OK",
        ),
        (
            "CF.LOADCHUNK c 1 \"\\x06\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x04\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x00\\x14\\x00\\x01\\x00\"",
            "-ERR item exists",
        ),
        (
            "CF.LOADCHUNK b 1 \"\\x06\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x00\\x14\\x00\\x01\\x00\"",
            "-Couldn't create filter!",
        ),
        (
            "CF.INFO c",
            "*16 +Size :80 +Number of buckets :4 +Number of filters :2 +Number of items inserted :6 +Number of items deleted :0 +Bucket size :1 +Expansion rate :1 +Max iterations :20",
        ),
        ("CF.LOADCHUNK c 5 abcd", "+OK"),
        ("CF.LOADCHUNK c 9 efgh", "+OK"),
        ("CF.SCANDUMP c 1", "*2 :5 $4 abcd"),
        ("CF.SCANDUMP c 5", "*2 :9 $4 efgh"),
        ("CF.LOADCHUNK c 7 abcd", "-Couldn't load chunk!"),
        ("CF.LOADCHUNK c 3 abcd", "-Couldn't load chunk!"),
        ("CF.LOADCHUNK c -3 abcd", "-Couldn't load chunk!"),
        ("CF.LOADCHUNK c 5 \"\"", "-Couldn't load chunk!"),
    ]);
}

#[test]
fn items_are_counted_in_count_min_sketches() {
    check(&[
        ("CMS.INITBYDIM c 20 3", "+OK"),
        ("CMS.INITBYDIM c 20 3", "-CMS: key already exists"),
        ("CMS.INITBYDIM x 0 3", "-CMS: invalid width"),
        ("CMS.INITBYDIM x 20 0", "-CMS: invalid depth"),
        ("CMS.INITBYDIM x a 3", "-CMS: invalid width"),
        ("CMS.INITBYDIM x 20", "-ERR wrong number of arguments for 'cms.initbydim' command"),
        ("CMS.INITBYPROB p 0.001 0.01", "+OK"),
        ("CMS.INFO p", "*6 +width :2000 +depth :7 +count :0"),
        ("CMS.INITBYPROB x 0 0.5", "-CMS: invalid overestimation value"),
        ("CMS.INITBYPROB x 1 0.5", "-CMS: invalid overestimation value"),
        ("CMS.INITBYPROB x 0.5 0", "-CMS: invalid prob value"),
        ("CMS.INITBYPROB x 0.5 1", "-CMS: invalid prob value"),
        ("CMS.INITBYPROB x a 0.5", "-CMS: invalid overestimation value"),
        ("CMS.INCRBY c a 3 b 1 a 2", "*3 :3 :1 :5"),
        ("CMS.QUERY c a b none", "*3 :5 :1 :0"),
        ("CMS.INCRBY c a -1", "-CMS: Number cannot be negative"),
        ("CMS.INCRBY c a x", "-CMS: Cannot parse number"),
        ("CMS.INCRBY c a 1 b", "-ERR wrong number of arguments for 'cms.incrby' command"),
        ("CMS.INCRBY c d 4294967295", "*1 -CMS: INCRBY overflow"),
        ("CMS.INCRBY c d 1", "*1 -CMS: INCRBY overflow"),
        ("CMS.INCRBY c e 5000000000", "*1 -CMS: INCRBY overflow"),
        ("CMS.QUERY c d e", "*2 :4294967295 :4294967295"),
        ("CMS.INFO c", "*6 +width :20 +depth :3 +count :9294967302"),
        ("CMS.INCRBY none a 1", "-CMS: key does not exist"),
        ("CMS.QUERY none a", "-CMS: key does not exist"),
        ("CMS.INFO none", "-CMS: key does not exist"),
        ("SET s v", "+OK"),
        ("CMS.INCRBY s a 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("CMS.QUERY s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("CMS.INFO s", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("CMS.INITBYDIM s 2 2", "-CMS: key already exists"),
        ("CMS.MERGE s 1 c", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("TYPE c", "+CMSk-TYPE"),
    ]);
}

#[test]
fn count_min_sketches_are_merged() {
    check(&[
        ("CMS.INITBYDIM a 10 2", "+OK"),
        ("CMS.INITBYDIM b 10 2", "+OK"),
        ("CMS.INITBYDIM sum 10 2", "+OK"),
        ("CMS.INITBYDIM other 11 2", "+OK"),
        ("CMS.INCRBY a x 1 y 2", "*2 :1 :2"),
        ("CMS.INCRBY b x 10 z 5", "*2 :10 :5"),
        ("CMS.MERGE sum 2 a b", "+OK"),
        ("CMS.QUERY sum x y z", "*3 :11 :2 :5"),
        ("CMS.INFO sum", "*6 +width :10 +depth :2 +count :18"),
        ("CMS.MERGE sum 2 a b WEIGHTS 3 2", "+OK"),
        ("CMS.QUERY sum x y z", "*3 :23 :6 :10"),
        ("CMS.MERGE sum 2 sum b weights 1 -1", "+OK"),
        ("CMS.QUERY sum x y z", "*3 :13 :6 :5"),
        ("CMS.MERGE sum 1 a WEIGHTS -1", "-CMS: MERGE overflow"),
        ("CMS.MERGE sum 1 a WEIGHTS 9223372036854775807", "-CMS: MERGE overflow"),
        ("CMS.MERGE sum 1 other", "-CMS: width/depth is not equal"),
        ("CMS.MERGE sum 1 none", "-CMS: key does not exist"),
        ("CMS.MERGE none 1 a", "-CMS: key does not exist"),
        ("CMS.MERGE sum 2 a", "-CMS: wrong number of keys"),
        ("CMS.MERGE sum 1 a b", "-CMS: wrong number of keys"),
        ("CMS.MERGE sum 2 a b WEIGHTS 1", "-CMS: wrong number of keys/weights"),
        ("CMS.MERGE sum 2 a b WEIGHTS 1 x", "-CMS: invalid weight value"),
        ("CMS.MERGE sum x a", "-CMS: invalid numkeys"),
        ("CMS.MERGE sum 0 WEIGHTS", "-CMS: Number of keys must be positive"),
        ("CMS.MERGE sum -1 a", "-CMS: Number of keys must be positive"),
        ("CMS.QUERY sum x y z", "*3 :13 :6 :5"),
    ]);
}

#[test]
fn top_k_sketches_list_the_most_frequent_items() {
    check(&[
        ("TOPK.RESERVE t 2", "+OK"),
        ("TOPK.RESERVE t 2", "-TopK: key already exists"),
        ("TOPK.RESERVE x 0", "-TopK: invalid k"),
        ("TOPK.RESERVE x a", "-TopK: invalid k"),
        ("TOPK.RESERVE x 2 10", "-ERR wrong number of arguments for 'topk.reserve' command"),
        ("TOPK.RESERVE x 2 0 7 0.9", "-TopK: invalid width"),
        ("TOPK.RESERVE x 2 10 0 0.9", "-TopK: invalid depth"),
        ("TOPK.RESERVE x 2 10 7 0", "-TopK: invalid decay value. must be '<= 1' & '> 0'"),
        ("TOPK.RESERVE x 2 10 7 1.5", "-TopK: invalid decay value. must be '<= 1' & '> 0'"),
        ("TOPK.RESERVE x 2 10 7 a", "-TopK: invalid decay value. must be '<= 1' & '> 0'"),
        ("TOPK.RESERVE w 2 1000 5 0.5", "+OK"),
        ("TOPK.INFO w", "*8 +k :2 +width :1000 +depth :5 +decay $3 0.5"),
        ("TOPK.INFO t", "*8 +k :2 +width :8 +depth :7 +decay $3 0.9"),
        ("TOPK.ADD w a b a", "*3 $-1 $-1 $-1"),
        ("TOPK.ADD w c c c", "*3 $1 b $-1 $-1"),
        ("TOPK.INCRBY w d 5 a 1", "*2 $1 a $1 c"),
        ("TOPK.QUERY w a b c d", "*4 :1 :0 :0 :1"),
        ("TOPK.COUNT w a b c d none", "*5 :3 :1 :3 :5 :0"),
        ("TOPK.LIST w", "*2 $1 d $1 a"),
        ("TOPK.LIST w WITHCOUNT", "*4 $1 d :5 $1 a :3"),
        ("TOPK.LIST w with", "*4 $1 d :5 $1 a :3"),
        ("TOPK.LIST w x", "-WITHCOUNT keyword expected"),
        ("TOPK.LIST w WITHCOUNT x", "-ERR wrong number of arguments for 'topk.list' command"),
        ("TOPK.INCRBY w a 0", "*1 $-1"),
        ("TOPK.INCRBY w a 100000", "*1 $-1"),
        (
            "TOPK.INCRBY w a 100001",
            "*1 -TopK: increment must be an integer greater or equal to 0                            and smaller or equal to 100,000",
        ),
        (
            "TOPK.INCRBY w a -1",
            "*1 -TopK: increment must be an integer greater or equal to 0                            and smaller or equal to 100,000",
        ),
        (
            "TOPK.INCRBY w a x",
            "*1 -TopK: increment must be an integer greater or equal to 0                            and smaller or equal to 100,000",
        ),
        ("TOPK.INCRBY w a 1 b", "-ERR wrong number of arguments for 'topk.incrby' command"),
        ("TOPK.LIST w WITHCOUNT", "*4 $1 a :100003 $1 d :5"),
        ("TOPK.ADD none a", "-TopK: key does not exist"),
        ("TOPK.INCRBY none a 1", "-TopK: key does not exist"),
        ("TOPK.QUERY none a", "-TopK: key does not exist"),
        ("TOPK.COUNT none a", "-TopK: key does not exist"),
        ("TOPK.LIST none", "-TopK: key does not exist"),
        ("TOPK.INFO none", "-TopK: key does not exist"),
        ("SET s v", "+OK"),
        ("TOPK.ADD s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("TOPK.RESERVE s 2", "-TopK: key already exists"),
        ("TOPK.LIST s", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("TYPE t", "+TopK-TYPE"),
    ]);
}

#[test]
fn t_digests_estimate_quantiles() {
    check(&[
        ("TDIGEST.CREATE t", "+OK"),
        ("TDIGEST.CREATE t", "-ERR T-Digest: key already exists"),
        (
            "TDIGEST.CREATE x COMPRESSION 0",
            "-ERR T-Digest: compression parameter needs to be a positive integer",
        ),
        (
            "TDIGEST.CREATE x COMPRESSION -1",
            "-ERR T-Digest: compression parameter needs to be a positive integer",
        ),
        ("TDIGEST.CREATE x COMPRESSION a", "-ERR T-Digest: error parsing compression parameter"),
        ("TDIGEST.CREATE x COMPRESSION", "-ERR wrong number of arguments for 'tdigest.create' command"),
        ("TDIGEST.CREATE x NOTHING 5", "-ERR T-Digest: wrong keyword"),
        ("TDIGEST.MIN t", "$3 nan"),
        ("TDIGEST.MAX t", "$3 nan"),
        ("TDIGEST.QUANTILE t 0 0.5 1", "*3 $3 nan $3 nan $3 nan"),
        ("TDIGEST.CDF t 1", "*1 $3 nan"),
        ("TDIGEST.RANK t 1", "*1 :-2"),
        ("TDIGEST.REVRANK t 1", "*1 :-2"),
        ("TDIGEST.BYRANK t 0 1", "*2 $3 nan $3 nan"),
        ("TDIGEST.BYREVRANK t 0 1", "*2 $3 nan $3 nan"),
        ("TDIGEST.TRIMMED_MEAN t 0 1", "$3 nan"),
        (
            "TDIGEST.INFO t",
            "*18 +Compression :100 +Capacity :610 +Merged nodes :0 +Unmerged nodes :0 +Merged weight :0 +Unmerged weight :0 +Observations :0 +Total compressions :0 +Memory usage :9768",
        ),
        ("TDIGEST.ADD t 1 2 2 3 3.5 1e3 -5", "+OK"),
        (
            "TDIGEST.INFO t",
            "*18 +Compression :100 +Capacity :610 +Merged nodes :0 +Unmerged nodes :7 +Merged weight :0 +Unmerged weight :7 +Observations :7 +Total compressions :0 +Memory usage :9768",
        ),
        ("TDIGEST.MIN t", "$2 -5"),
        ("TDIGEST.MAX t", "$4 1000"),
        ("TDIGEST.QUANTILE t 0 0.1 0.5 0.9 1 0.25", "*6 $2 -5 $2 -5 $1 2 $4 1000 $4 1000 $1 1"),
        ("TDIGEST.QUANTILE t 2", "-ERR T-Digest: quantile should be in [0,1]"),
        ("TDIGEST.QUANTILE t x", "-ERR T-Digest: error parsing quantile"),
        (
            "TDIGEST.CDF t -10 -5 2 2.5 3 1000 1001",
            "*7 $1 0 $19 0.07142857142857142 $19 0.42857142857142855 $18 0.5714285714285714 $18 0.6428571428571429 $18 0.9285714285714286 $1 1",
        ),
        ("TDIGEST.CDF t x", "-ERR T-Digest: error parsing cdf"),
        ("TDIGEST.RANK t -10 -5 2 2.5 3 1000 1001", "*7 :-1 :0 :3 :4 :4 :6 :7"),
        ("TDIGEST.REVRANK t -10 -5 2 2.5 3 1000 1001", "*7 :7 :6 :4 :3 :2 :0 :-1"),
        ("TDIGEST.RANK t x", "-ERR T-Digest: error parsing value"),
        ("TDIGEST.BYRANK t 0 1 3 6 7 100", "*6 $2 -5 $1 1 $1 2 $4 1000 $3 inf $3 inf"),
        ("TDIGEST.BYREVRANK t 0 1 3 6 7 100", "*6 $4 1000 $3 3.5 $1 2 $2 -5 $4 -inf $4 -inf"),
        ("TDIGEST.BYRANK t -1", "-ERR T-Digest: rank needs to be non negative"),
        ("TDIGEST.BYRANK t 1.5", "-ERR T-Digest: error parsing rank"),
        ("TDIGEST.TRIMMED_MEAN t 0 1", "$18 143.78571428571428"),
        ("TDIGEST.TRIMMED_MEAN t 0.1 0.6", "$3 0.6"),
        (
            "TDIGEST.TRIMMED_MEAN t 0.6 0.1",
            "-ERR T-Digest: low_cut_percentile should be lower than high_cut_percentile",
        ),
        (
            "TDIGEST.TRIMMED_MEAN t -1 1",
            "-ERR T-Digest: low_cut_percentile and high_cut_percentile should be in [0,1]",
        ),
        ("TDIGEST.TRIMMED_MEAN t x 1", "-ERR T-Digest: error parsing low_cut_percentile"),
        ("TDIGEST.TRIMMED_MEAN t 0 x", "-ERR T-Digest: error parsing high_cut_percentile"),
        ("TDIGEST.ADD t x", "-ERR T-Digest: error parsing val parameter"),
        ("TDIGEST.ADD t nan", "-ERR T-Digest: error parsing val parameter"),
        ("TDIGEST.ADD t inf", "-ERR T-Digest: val parameter needs to be a finite number"),
        ("TDIGEST.RESET t", "+OK"),
        ("TDIGEST.MIN t", "$3 nan"),
        ("TDIGEST.ADD none 1", "-ERR T-Digest: key does not exist"),
        ("TDIGEST.RESET none", "-ERR T-Digest: key does not exist"),
        ("TDIGEST.MIN none", "-ERR T-Digest: key does not exist"),
        ("TDIGEST.QUANTILE none 0.5", "-ERR T-Digest: key does not exist"),
        ("TDIGEST.INFO none", "-ERR T-Digest: key does not exist"),
        ("SET s v", "+OK"),
        ("TDIGEST.ADD s 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("TDIGEST.CREATE s", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("TDIGEST.MIN s", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("TYPE t", "+TDIS-TYPE"),
    ]);
}

#[test]
fn t_digests_are_merged() {
    check(&[
        ("TDIGEST.CREATE a", "+OK"),
        ("TDIGEST.CREATE b COMPRESSION 200", "+OK"),
        ("TDIGEST.ADD a 1 2 3", "+OK"),
        ("TDIGEST.ADD b 10 20", "+OK"),
        ("TDIGEST.MERGE c 2 a b", "+OK"),
        (
            "TDIGEST.INFO c",
            "*18 +Compression :200 +Capacity :1210 +Merged nodes :3 +Unmerged nodes :2 +Merged weight :3 +Unmerged weight :2 +Observations :5 +Total compressions :1 +Memory usage :19368",
        ),
        ("TDIGEST.QUANTILE c 0 0.5 1", "*3 $1 1 $1 3 $2 20"),
        ("TDIGEST.MERGE c 1 a COMPRESSION 50", "+OK"),
        (
            "TDIGEST.INFO c",
            "*18 +Compression :50 +Capacity :310 +Merged nodes :5 +Unmerged nodes :3 +Merged weight :5 +Unmerged weight :3 +Observations :8 +Total compressions :1 +Memory usage :4968",
        ),
        ("TDIGEST.MERGE c 1 a OVERRIDE", "+OK"),
        (
            "TDIGEST.INFO c",
            "*18 +Compression :100 +Capacity :610 +Merged nodes :0 +Unmerged nodes :3 +Merged weight :0 +Unmerged weight :3 +Observations :3 +Total compressions :0 +Memory usage :9768",
        ),
        ("TDIGEST.MERGE c 1 c", "+OK"),
        (
            "TDIGEST.INFO c",
            "*18 +Compression :100 +Capacity :610 +Merged nodes :3 +Unmerged nodes :3 +Merged weight :3 +Unmerged weight :3 +Observations :6 +Total compressions :1 +Memory usage :9768",
        ),
        ("TDIGEST.MERGE c 1 a COMPRESSION", "-ERR wrong number of arguments for 'tdigest.merge' command"),
        ("TDIGEST.MERGE c 1 a COMPRESSION x", "-ERR T-Digest: error parsing compression parameter"),
        ("TDIGEST.MERGE c 1 a NOTHING", "-ERR T-Digest: wrong keyword"),
        ("TDIGEST.MERGE c 0 a", "-ERR T-Digest: numkeys needs to be a positive integer"),
        ("TDIGEST.MERGE c x a", "-ERR T-Digest: error parsing numkeys"),
        ("TDIGEST.MERGE c 3 a b", "-ERR wrong number of arguments for 'tdigest.merge' command"),
        ("TDIGEST.MERGE c 2 a none", "-ERR T-Digest: key does not exist"),
        ("TDIGEST.MERGE none 1 none", "-ERR T-Digest: key does not exist"),
        ("SET s v", "+OK"),
        ("TDIGEST.MERGE s 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("TDIGEST.MERGE c 1 s", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ]);
}

/// Calls that create a value of each type under the key `k`, with a call that shows it.
const VALUES: [(&[&str], &str); 7] = [
    (&["BF.RESERVE k 0.1 2", "BF.MADD k a b c d e f"], "BF.MEXISTS k a b c x"),
    (&["BF.INSERT k CAPACITY 3 NONSCALING ITEMS a b"], "BF.INFO k"),
    (&["CF.RESERVE k 4 BUCKETSIZE 1", "CF.INSERT k ITEMS a b c d e f"], "CF.MEXISTS k a b c x"),
    (&["CMS.INITBYDIM k 10 3", "CMS.INCRBY k a 5 b 7"], "CMS.QUERY k a b c"),
    (&["TOPK.RESERVE k 3 10 3 0.9", "TOPK.ADD k a b a c d"], "TOPK.LIST k WITHCOUNT"),
    (&["TDIGEST.CREATE k COMPRESSION 5", "TDIGEST.ADD k 5"], "TDIGEST.QUANTILE k 0.5"),
    (&["TDIGEST.CREATE k COMPRESSION 5", "TDIGEST.ADD k 1 2 3 4 5 5 5 8 13 21"], "TDIGEST.CDF k 1 4 5 20"),
];

fn with_value(lines: &[&str]) -> Local {
    let mut local = Local::new(Protocol::Resp2);
    for line in lines {
        let reply = run(&mut local, line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
    local
}

/// Returns the payload of a key.
fn dump(local: &mut Local, key: &str) -> Vec<u8> {
    let reply = local.run(&[b"DUMP", key.as_bytes()]);
    let start = reply.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    reply[start..reply.len() - 2].to_vec()
}

#[test]
fn replies_in_resp3_have_its_types() {
    let mut local = Local::new(Protocol::Resp3);
    for (line, expected) in [
        ("BF.ADD b a", "#t"),
        ("BF.MADD b a c", "*2 #f #t"),
        ("BF.EXISTS b x", "#f"),
        ("BF.MEXISTS b a x", "*2 #t #f"),
        ("BF.INFO b ITEMS", "%1 +Number of items inserted :2"),
        ("BF.RESERVE n 0.1 2 NONSCALING", "+OK"),
        ("BF.INFO n EXPANSION", "%1 +Expansion rate _"),
        ("CF.ADD c a", "#t"),
        ("CF.ADDNX c a", "#f"),
        ("CF.INSERT c ITEMS a b", "*2 #t #t"),
        ("CF.INSERTNX c ITEMS a d", "*2 :0 :1"),
        ("CF.EXISTS c a", "#t"),
        ("CF.MEXISTS c a x", "*2 #t #f"),
        ("CF.COUNT c a", ":2"),
        ("CF.DEL c a", "#t"),
        ("CMS.INITBYDIM m 5 2", "+OK"),
        ("CMS.INFO m", "%3 +width :5 +depth :2 +count :0"),
        ("TOPK.RESERVE t 1", "+OK"),
        ("TOPK.ADD t a", "*1 _"),
        ("TOPK.QUERY t a b", "*2 #t #f"),
        ("TOPK.INFO t", "%4 +k :1 +width :8 +depth :7 +decay ,0.9"),
        ("TDIGEST.CREATE d", "+OK"),
        ("TDIGEST.MIN d", ",nan"),
        ("TDIGEST.ADD d 1 2.5", "+OK"),
        ("TDIGEST.MAX d", ",2.5"),
        ("TDIGEST.QUANTILE d 0 1", "*2 ,1 ,2.5"),
        ("TDIGEST.BYRANK d 9", "*1 ,inf"),
    ] {
        assert_eq!(run(&mut local, line), expected, "{line}");
    }
}

#[test]
fn payloads_of_redis_stack_are_restored() {
    // The payloads were dumped by Redis Stack 7.4.1 after the calls of the values.
    const PAYLOADS: [&[u8]; 7] = [
        b"\x07\x810\x16\xe5\xa2\x89\xbe\xf8\x04\x02\x06\x02\x02\x02\x05\x02\x02\x02\x02\x04\x9a\x99\x99\x99\x99\x99\xa9?\x02\x05\x04J\xf7\xd4\x9e\xde\xf0\x18@\x02@@\x02\x00\x05\x08\x00D \x8c\x10\x12\x00 \x02\x02\x02\x04\x04\x9a\x99\x99\x99\x99\x99\x99?\x02\x06\x04\x0b\xd8\x1fx0\xb6\x1e@\x02@@\x02\x00\x05\x080\x89\x80\x86D\xc9)\x8a\x02\x04\x00\x0c\x00\xb6\xc2\xc4N\xb0]\xe4@",
        b"\x07\x810\x16\xe5\xa2\x89\xbe\xf8\x04\x02\x02\x02\x01\x02\x0d\x02\x02\x02\x03\x04{\x14\xaeG\xe1z\x84?\x02\x07\x04\x88\x16\x8a\xc5\x8c+#@\x02@@\x02\x00\x05\x08\x00D \x8c\x10R\x09 \x02\x02\x00\x0c\x00D!\xa5WjpxQ",
        b"\x07\x810\x16\xe5\xa2\x89\x82\x14\x04\x02\x02\x02\x04\x02\x06\x02\x00\x02\x01\x02\x14\x02\x01\x02\x04\x05\x04\x00\xc4\xcb\x10\x02\x04\x05\x04\x00\xbc\xa9\x06\x00\x0c\x00\xe0-\xa5\xef\xbbZ\xe7\xb8",
        b"\x07\x81\x08\xc4\xa4\xf96\x0f\x10\x00\x02\x0a\x02\x03\x02\x0c\x05\xc3%@x\x01\x00\x00\xe0\x05\x00\x00\x05\xa0\x0e\x00\x07\xa0\x07\xe0\x03\x00\xe0\x03\x13\xc0'\xe0\x0b\x00\xe0\x03\x1b\xe0\x033\xe0\x01\x00\x01\x00\x00\x00\x0c\x00/L\xd0\xec\x11Z&\x9d",
        b"\x07\x81N\x8aJ\xf96\x0f\x10\x00\x02\x03\x02\x0a\x02\x03\x04\xcd\xcc\xcc\xcc\xcc\xcc\xec?\x05\xc3@D@\xf0\x0b\xe3l\x9a\xc0\x01\x00\x00\x00\x10\xde\xa5\xae@\x07\xe0\x07\x00\x04\x17\xf5<\xf2\x02\xe0\x02\x14\x03\x97\xed\xdf*\xe0\x0b'\xe0\x07\x00\xe0\x0f'\xe0\x07O\xe0\x07w\x00\xe3\xa0\x8f\xe0\x07\x00\xc07\xe0\x07\x1f\xe0\x07?\xe0\x15\x00\x01\x00\x00\x05\xc37@H\x0f\x10\xde\xa5\xae\x01\x00\x00\x00p\x15\xf4\xac\x86\x7f\x00\x00@\x0b@\x00\x03\x17\xf5<\xf2@\x0b\x00`\xa0\x17\x00\x02@\x14 \x00\x03\xe3l\x9a\xc0@\x17\x00x\xa0\x17@\x0b \x00\x00\x00\x05\x02c\x00\x05\x02a\x00\x05\x02d\x00\x00\x0c\x00\xb3\\\x8f\xae\x09\x8a\xcb\xb8",
        b"\x07\x81L2\x12\xf96\x0f\x10\x00\x04\x00\x00\x00\x00\x00\x00\x14@\x04\x00\x00\x00\x00\x00\x00\x14@\x04\x00\x00\x00\x00\x00\x00\x14@\x02(\x02\x00\x02\x01\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\xf0?\x00\x0c\x00L\xc0%4\xd7\xe6:{",
        b"\x07\x81L2\x12\xf96\x0f\x10\x00\x04\x00\x00\x00\x00\x00\x00\x14@\x04\x00\x00\x00\x00\x00\x00\xf0?\x04\x00\x00\x00\x00\x00\x005@\x02(\x02\x05\x02\x00\x02\x01\x04\x00\x00\x00\x00\x00\x00$@\x04\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\xf0?\x04\x00\x00\x00\x00\x00\x00\x04@\x04\x00\x00\x00\x00\x00\x00\x13@\x04\x00\x00\x00\x00\x00\x00%@\x04\x00\x00\x00\x00\x00\x005@\x04\x00\x00\x00\x00\x00\x00\xf0?\x04\x00\x00\x00\x00\x00\x00\x00@\x04\x00\x00\x00\x00\x00\x00\x10@\x04\x00\x00\x00\x00\x00\x00\x00@\x04\x00\x00\x00\x00\x00\x00\xf0?\x00\x0c\x00F\x82\x0b\x03\xf4\xc2}d",
    ];
    for ((lines, show), payload) in VALUES.iter().zip(PAYLOADS) {
        let mut local = with_value(lines);
        assert_eq!(reply(&mut local, &[b"RESTORE", b"copy", b"0", payload]), "+OK", "{lines:?}");
        let expected = run(&mut local, show);
        assert_eq!(run(&mut local, &show.replace(" k", " copy")), expected, "{lines:?}");
        local.keyspace.check_invariants();
        let again = dump(&mut local, "copy");
        assert_eq!(reply(&mut local, &[b"RESTORE", b"k", b"0", &again, b"REPLACE"]), "+OK");
        assert_eq!(dump(&mut local, "k"), again);
    }
}

#[test]
fn every_prefix_of_a_scandump_is_a_filter_that_can_be_saved() {
    for (lines, family) in [
        (["BF.RESERVE k 0.01 2", "BF.MADD k a b c d e f g h"], "BF"),
        (["CF.RESERVE k 4 BUCKETSIZE 1", "CF.INSERT k ITEMS a b c d e f g h"], "CF"),
    ] {
        let mut local = with_value(&lines);
        let (mut chunks, mut iterator) = (Vec::new(), "0".to_owned());
        loop {
            let scan = format!("{family}.SCANDUMP");
            let bytes = local.run(&[scan.as_bytes(), b"k", iterator.as_bytes()]);
            let parts = read_value(&mut &bytes[..]).unwrap();
            let parts = parts.elements().unwrap();
            let next = parts[0].integer().unwrap().to_string();
            if next == "0" {
                break;
            }
            chunks.push((next.clone(), parts[1].bytes().unwrap().to_vec()));
            iterator = next;
        }
        assert!(chunks.len() > 2, "{family}: the filter has grown");
        let load = format!("{family}.LOADCHUNK");
        for count in 1..=chunks.len() {
            run(&mut local, "DEL copy");
            for (next, data) in &chunks[..count] {
                assert_eq!(reply(&mut local, &[load.as_bytes(), b"copy", next.as_bytes(), data]), "+OK");
            }
            let payload = dump(&mut local, "copy");
            assert_eq!(reply(&mut local, &[b"RESTORE", b"again", b"0", &payload, b"REPLACE"]), "+OK");
            assert_eq!(dump(&mut local, "again"), payload);
            local.keyspace.check_invariants();
        }
        assert_eq!(dump(&mut local, "copy"), dump(&mut local, "k"));
    }
}

#[test]
fn damaged_payloads_and_headers_are_refused_or_usable() {
    let calls = [
        "BF.ADD k x",
        "BF.EXISTS k a",
        "BF.INFO k",
        "BF.SCANDUMP k 0",
        "BF.SCANDUMP k 1",
        "CF.ADD k x",
        "CF.DEL k a",
        "CF.COUNT k a",
        "CF.COMPACT k",
        "CF.INFO k",
        "CF.SCANDUMP k 1",
        "CMS.INCRBY k x 3",
        "CMS.QUERY k a",
        "CMS.MERGE k 1 k",
        "TOPK.ADD k x y z a",
        "TOPK.LIST k",
        "TOPK.COUNT k a",
        "TDIGEST.ADD k 1 5 9",
        "TDIGEST.QUANTILE k 0 0.5 1",
        "TDIGEST.CDF k 1 5 9",
        "TDIGEST.BYRANK k 1",
        "TDIGEST.TRIMMED_MEAN k 0.1 0.9",
        "TDIGEST.MERGE k 1 k",
        "TDIGEST.INFO k",
        "DUMP k",
    ];
    let mut random = Random::seeded(7);
    for (lines, _) in VALUES {
        let payload = dump(&mut with_value(lines), "k");
        let mut local = Local::new(Protocol::Resp2);
        local.turn.settings.payload_checks = PayloadChecks { checksum: false, ..PayloadChecks::ALL };
        for _ in 0..400 {
            let mut damaged = payload.clone();
            for _ in 0..=random.below(3) {
                // The kind, the number of the module and the footer are not damaged.
                let at = 10 + random.below(damaged.len() - 20);
                damaged[at] = [0, 1, 0x3F, 0x7F, 0x80, 0xFF, random.next_u32() as u8][random.below(7)];
            }
            if reply(&mut local, &[b"RESTORE", b"k", b"0", &damaged, b"REPLACE"]) == "+OK" {
                calls.iter().for_each(|call| drop(run(&mut local, call)));
                local.keyspace.check_invariants();
            }
        }
    }
    let header = |family: &str, lines: &[&str]| {
        let mut local = with_value(lines);
        let scan = format!("{family}.SCANDUMP");
        let reply = local.run(&[scan.as_bytes(), b"k", b"0"]);
        let parts = read_value(&mut &reply[..]).unwrap();
        parts.elements().unwrap()[1].bytes().unwrap().to_vec()
    };
    for (family, lines) in [("BF", VALUES[1].0), ("CF", VALUES[2].0)] {
        let header = header(family, lines);
        let load = format!("{family}.LOADCHUNK");
        let mut local = Local::new(Protocol::Resp2);
        for _ in 0..1000 {
            let mut damaged = header.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(damaged.len());
                damaged[at] = [0, 1, 0x3F, 0x7F, 0x80, 0xFF, random.next_u32() as u8][random.below(7)];
            }
            run(&mut local, "DEL k");
            if reply(&mut local, &[load.as_bytes(), b"k", b"1", &damaged]) == "+OK" {
                calls[..11].iter().for_each(|call| drop(run(&mut local, call)));
                local.keyspace.check_invariants();
            }
        }
    }
}

#[test]
fn sketches_that_are_too_large_are_refused() {
    check(&[
        ("BF.RESERVE b 0.01 9223372036854775807", "-ERR could not create filter"),
        ("BF.INSERT b CAPACITY 9223372036854775807 ITEMS a", "-ERR could not create filter"),
        ("CF.RESERVE c 9223372036854775807", "-Couldn't create Cuckoo Filter"),
        ("CMS.INITBYDIM m 9223372036854775807 2", "-CMS: the sketch is too large"),
        ("CMS.INITBYDIM m 4294967296 4294967296", "-CMS: the sketch is too large"),
        ("CMS.INITBYPROB m 1e-300 0.1", "-CMS: the sketch is too large"),
        ("CMS.INITBYPROB m 0.1 1e-300", "-CMS: invalid prob value"),
        ("CMS.INITBYPROB m 0.1 0.9999999999", "-CMS: invalid prob value"),
        ("TOPK.RESERVE t 4294967295", "-TopK: invalid k"),
        ("TOPK.RESERVE t 1 4294967295 4294967295 0.9", "-TopK: the sketch is too large"),
        ("TDIGEST.CREATE d COMPRESSION 9223372036854775807", "-ERR T-Digest: allocation failed"),
    ]);
    let mut local = Local::new(Protocol::Resp2);
    local.turn.values_bytes_max = 1 << 20;
    for line in [
        "BF.RESERVE k 0.01 1000000",
        "BF.INSERT k CAPACITY 1000000 ITEMS a",
        "CF.RESERVE k 2000000",
        "CF.INSERT k CAPACITY 2000000 ITEMS a",
        "CMS.INITBYDIM k 1000 1000",
        "CMS.INITBYPROB k 0.000001 0.01",
        "TOPK.RESERVE k 1000000",
        "TOPK.RESERVE k 1 1000000 5 0.9",
    ] {
        let expected = "-OOM command not allowed when used memory > 'maxmemory'.";
        assert_eq!(run(&mut local, line), expected, "{line}");
    }
    assert_eq!(run(&mut local, "EXISTS k"), ":0");
}

#[test]
fn empty_parts_of_a_large_filter_take_no_memory() {
    let mut local =
        with_value(&["BF.RESERVE b 0.01 1000000000", "CMS.INITBYDIM m 100000000 5", "BF.ADD b a"]);
    assert!(local.turn.growth_bytes < 2_000_000, "{}", local.turn.growth_bytes);
    assert_eq!(run(&mut local, "BF.EXISTS b a"), ":1");
}

#[test]
fn bloom_filters_keep_their_promise_of_false_positives() {
    let mut local = with_value(&["BF.RESERVE b 0.01 2000"]);
    for id in 0..20_000 {
        run(&mut local, &format!("BF.ADD b in{id}"));
    }
    let found = |local: &mut Local, prefix: &str| {
        (0..20_000).filter(|id| run(local, &format!("BF.EXISTS b {prefix}{id}")) == ":1").count()
    };
    assert_eq!(found(&mut local, "in"), 20_000);
    let wrong = found(&mut local, "out");
    assert!(wrong < 300, "{wrong} of 20,000 although the filter promises 1 %");
}

#[test]
fn top_k_sketches_decay_equally_in_a_restored_copy() {
    let mut local = with_value(&["TOPK.RESERVE k 3 2 2 0.9"]);
    for id in 0..200 {
        run(&mut local, &format!("TOPK.INCRBY k item{} {}", id % 17, 1 + id % 5));
    }
    let payload = dump(&mut local, "k");
    assert_eq!(reply(&mut local, &[b"RESTORE", b"copy", b"0", &payload]), "+OK");
    for id in 0..200 {
        for key in ["k", "copy"] {
            run(&mut local, &format!("TOPK.INCRBY {key} item{} {}", id % 13, 1 + id % 7));
        }
    }
    assert_ne!(dump(&mut local, "k"), payload);
    assert_eq!(dump(&mut local, "k"), dump(&mut local, "copy"));
}

#[test]
fn reads_of_a_t_digest_do_not_change_it() {
    let lines = ["TDIGEST.CREATE k COMPRESSION 3", "TDIGEST.ADD k 1 2 3 4 5 6 7"];
    let mut local = with_value(&lines);
    let mut read = with_value(&lines);
    for line in ["TDIGEST.QUANTILE k 0.5", "TDIGEST.CDF k 3", "DUMP k", "TDIGEST.MERGE other 1 k"] {
        run(&mut read, line);
    }
    for local in [&mut local, &mut read] {
        run(local, "TDIGEST.ADD k 4.5 1.5 2.5 8 9 10 11 12 13 14 15 16 17 18 19 20");
    }
    assert_eq!(dump(&mut local, "k"), dump(&mut read, "k"));
}

#[test]
fn a_single_number_of_a_t_digest_is_exact() {
    // Redis Stack 7.4 replies with nan here, and loses the number when it loads the digest; Redis 8 does not.
    check(&[
        ("TDIGEST.CREATE t", "+OK"),
        ("TDIGEST.ADD t 5", "+OK"),
        ("TDIGEST.QUANTILE t 0 0.5 1", "*3 $1 5 $1 5 $1 5"),
        ("TDIGEST.CDF t 4 5 6", "*3 $1 0 $3 0.5 $1 1"),
        ("TDIGEST.RANK t 5", "*1 :0"),
        ("TDIGEST.TRIMMED_MEAN t 0 1", "$1 5"),
    ]);
}
