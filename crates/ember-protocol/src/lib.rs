//! RESP2 and RESP3: an incremental request parser and a reply writer, without I/O.
