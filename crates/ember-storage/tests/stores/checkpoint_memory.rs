//! The memory of a checkpoint is limited, whatever its size.

use std::process::Command;

use ember_storage::stores::Checkpoint;

use super::*;

/// The size of the checkpoint in bytes; the next constant is the memory that it may use.
const CHECKPOINT_BYTES: usize = 256 << 20;
const MEMORY_BYTES_MAX: usize = 96 << 20;

const VALUE_BYTES: usize = 8 << 10;

const CHILD: &str = "EMBER_STORES_MEMORY";

/// Returns the peak memory of this process in bytes.
#[cfg(target_os = "linux")]
fn most_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// Not a test: the code of the measured process, which writes no other checkpoint.
#[test]
#[cfg(target_os = "linux")]
fn child_that_is_measured() {
    let Ok(what) = std::env::var(CHILD) else { return };
    let (kind, folder) = what.split_once(' ').unwrap();
    let options = StoreOptions { write_buffer_bytes: 4 << 20, ..options(false) };
    let store = Store::open(kind.parse().unwrap(), &os_disk(), Path::new(folder), &options).unwrap();
    let before = most_bytes();
    let mut fill = |checkpoint: &mut Checkpoint<'_>| {
        for number in 0..CHECKPOINT_BYTES / VALUE_BYTES {
            let (key, value) = (format!("key {number}").into_bytes(), value_of(number as u64, VALUE_BYTES));
            checkpoint.put(&facts(0, &key, 1, None, &value), &value)?;
        }
        Ok(())
    };
    store.checkpoint(&position(1), &mut fill).unwrap();
    println!("took {}", most_bytes() - before);
}

#[test]
#[cfg(target_os = "linux")]
fn a_large_checkpoint_of_fjall_uses_little_memory() {
    let folder = Folder::new();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["checkpoint_memory::child_that_is_measured", "--exact", "--nocapture", "--test-threads=1"])
        // Otherwise freed memory in the separate arenas of the engine's threads would be counted.
        .env("MALLOC_ARENA_MAX", "1")
        .env(CHILD, format!("fjall {}", folder.0.display()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let taken = text.lines().find_map(|line| line.split_once("took ")?.1.trim().parse::<usize>().ok());
    let taken = taken.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    println!("{} MiB for {} MiB", taken >> 20, CHECKPOINT_BYTES >> 20);
    assert!(taken <= MEMORY_BYTES_MAX, "{taken}");
    let store = open(EngineKind::Fjall, &folder.0, false);
    assert_eq!(store.position(), Some(position(1)));
    let mut keys = 0;
    store
        .facts(&mut |_| {
            keys += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(keys, CHECKPOINT_BYTES / VALUE_BYTES);
}
