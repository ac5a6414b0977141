//! Recording with the kernel of this machine; needs root and tracefs.

use std::fs::File;
use std::path::Path;

use emmc_linux::tracefs::{Recorded, Recorder};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::process::geteuid;
use rustix::thread::{CpuSet, sched_setaffinity};

const BUFFER_BYTES: u64 = 256 << 10;

/// On the processor whose buffer it reads, every read could fill the buffer again: it took all memory of a machine.
#[test]
fn a_look_during_recording_ends() {
    if !geteuid().is_root() || !Path::new("/sys/kernel/tracing/instances").is_dir() {
        eprintln!("skipped: recording needs root and tracefs at /sys/kernel/tracing");
        return;
    }
    let mut one = CpuSet::new();
    one.set(0);
    sched_setaffinity(None, &one).unwrap();
    let recorder = Recorder::new(Recorded::RequestsAndFiles, BUFFER_BYTES).unwrap();
    recorder.start().unwrap();
    let processors = std::thread::available_parallelism().unwrap().get().max(2) as u64;
    let limit = (processors + 4) * BUFFER_BYTES;
    for _ in 0..3 {
        // It cannot grow: a look without an end is an error here.
        let file = memfd_create("looks", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, limit).unwrap();
        fcntl_add_seals(&file, SealFlags::GROW).unwrap();
        let saved = recorder.drain(&mut File::from(file)).unwrap();
        assert!(saved.bytes <= limit, "{saved:?}");
    }
}
