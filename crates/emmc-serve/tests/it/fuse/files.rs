//! The folder and its files.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use emmc_card::device::Area;
use emmc_serve::block::Request;
use emmc_units::Rng;
use rustix::fs::{FallocateFlags, fallocate};

use crate::fuse::Folder;
use crate::memory::Memory;

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

#[test]
fn there_is_a_file_for_each_area() {
    let Some(folder) = Folder::mount("list", Memory::new(8 << 20).shared()) else { return };
    let mut names: Vec<_> = folder.path.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["boot0", "boot1", "user"]);
    let user = folder.path.join("user").metadata().unwrap();
    assert_eq!((user.len(), user.mode() & 0o777, user.blocks()), (8 << 20, 0o600, (8 << 20) / 512));
    assert_eq!(folder.path.join("boot1").metadata().unwrap().mode() & 0o777, 0o400);
    assert_eq!(File::open(folder.path.join("rpmb")).unwrap_err().kind(), ErrorKind::NotFound);
    File::create(folder.path.join("another")).unwrap_err();
    std::fs::remove_file(folder.path.join("user")).unwrap_err();
    let space = rustix::fs::statvfs(&folder.path).unwrap();
    assert_eq!((space.f_frsize, space.f_blocks, space.f_bfree), (4096, (10 << 20) / 4096, 0));
}

#[test]
fn every_offset_and_length_is_read_and_written() {
    let memory = Memory::new(1 << 20).shared();
    let Some(folder) = Folder::mount("bytes", memory.clone()) else { return };
    let file = open(&folder.path.join("user"));
    let mut expected = vec![0; 1 << 20];
    let ranges = [(0, 4096), (512, 512), (100, 50), (1000, 100), (4095, 2), (8191, 70_000), ((1 << 20) - 3, 3)];
    for (number, (offset, length)) in (1u8..).zip(ranges) {
        let data = vec![number; length];
        file.write_all_at(&data, offset as u64).unwrap();
        expected[offset..offset + length].copy_from_slice(&data);
    }
    assert!(memory.content(Area::User) == expected);
    for (offset, length) in ranges {
        let mut data = vec![0; length];
        file.read_exact_at(&mut data, offset as u64).unwrap();
        assert_eq!(data, expected[offset..offset + length]);
    }
    let mut all = Vec::new();
    File::open(folder.path.join("user")).unwrap().read_to_end(&mut all).unwrap();
    assert!(all == expected);
}

#[test]
fn access_beyond_the_area_fails() {
    let Some(folder) = Folder::mount("end", Memory::new(1 << 20).shared()) else { return };
    let path = folder.path.join("user");
    let file = open(&path);
    assert_eq!(file.write_at(&[1; 8192], (1 << 20) - 4096).unwrap(), 4096);
    assert_eq!(file.write_at(&[1; 512], 1 << 20).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.read_at(&mut [0; 8192], (1 << 20) - 512).unwrap(), 512);
    assert_eq!(file.read_at(&mut [0; 512], 1 << 20).unwrap(), 0);
    // As with a block device, truncation before a write has no effect; other sizes are refused.
    std::fs::write(&path, [7; 512]).unwrap();
    assert_eq!(path.metadata().unwrap().len(), 1 << 20);
    file.set_len(1 << 20).unwrap();
    file.set_len(2 << 20).unwrap_err();
    let error = fallocate(&file, FallocateFlags::empty(), 0, 2 << 20).unwrap_err();
    assert_eq!(error, rustix::io::Errno::NOSPC);
}

#[test]
fn holes_and_zeros_are_trimmed_and_read_back() {
    let memory = Memory::new(1 << 20).shared();
    let Some(folder) = Folder::mount("holes", memory.clone()) else { return };
    let (user, boot) = (open(&folder.path.join("user")), open(&folder.path.join("boot0")));
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    for (file, area, trims) in [(&user, Area::User, 2), (&boot, Area::Boot(0), 2)] {
        file.write_all_at(&[7; 65536], 0).unwrap();
        fallocate(file, punch, 4096, 8192).unwrap();
        fallocate(file, punch, 20_000, 10_000).unwrap();
        fallocate(file, punch, 100, 50).unwrap();
        fallocate(file, FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE, 40_960, 4096).unwrap();
        let mut expected = vec![7; 65536];
        for range in [4096..12_288, 20_000..30_000, 100..150, 40_960..45_056] {
            expected[range].fill(0);
        }
        assert_eq!(memory.content(area)[..65536], expected);
        // Where erased bytes read as ones, a hole has to be written.
        assert_eq!((memory.count("trim"), memory.count("zero")), if area == Area::User { (2, 1) } else { (trims, 4) });
    }
    let seek = |at: SeekFrom| (&user).seek(at).unwrap();
    assert_eq!(seek(SeekFrom::End(0)), 1 << 20);
    let sought = |offset| rustix::fs::seek(&user, offset);
    assert_eq!(sought(rustix::fs::SeekFrom::Hole(0)), Ok(4096));
    assert_eq!(sought(rustix::fs::SeekFrom::Data(5000)), Ok(12_288));
    assert_eq!(sought(rustix::fs::SeekFrom::Data(65_536)), Err(rustix::io::Errno::NXIO));
    assert_eq!(sought(rustix::fs::SeekFrom::Hole(65_536)), Ok(65_536));
    assert_eq!(rustix::fs::seek(&boot, rustix::fs::SeekFrom::Hole(0)), Ok(1 << 20));
    let collapse = fallocate(&user, FallocateFlags::COLLAPSE_RANGE, 0, 4096).unwrap_err();
    assert_eq!(collapse, rustix::io::Errno::OPNOTSUPP);
}

#[test]
fn errors_are_those_of_the_card() {
    let memory = Memory::new(1 << 20).shared();
    let Some(folder) = Folder::mount("errors", memory.clone()) else { return };
    let file = open(&folder.path.join("user"));
    *memory.bad.lock().unwrap() = vec![8];
    let code = |error: std::io::Error| error.raw_os_error();
    assert_eq!(code(file.read_at(&mut [0; 4096], 4096).unwrap_err()), Some(libc_errno(rustix::io::Errno::IO)));
    assert_eq!(file.read_at(&mut [0; 4096], 0).unwrap(), 4096);
    file.sync_all().unwrap();
    assert_eq!(memory.flushes.load(Ordering::SeqCst), 1);
    memory.powered_for.store(0, Ordering::SeqCst);
    assert_eq!(code(file.write_at(&[1; 512], 0).unwrap_err()), Some(libc_errno(rustix::io::Errno::NODEV)));
    file.sync_all().unwrap_err();
    memory.powered_for.store(u64::MAX, Ordering::SeqCst);
    if crate::fuse::is_root() {
        // Root can open a read-only file; the card still refuses the write.
        let error = open(&folder.path.join("boot1")).write_at(&[1; 512], 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem);
    }
}

fn libc_errno(errno: rustix::io::Errno) -> i32 {
    errno.raw_os_error()
}

#[test]
fn replies_take_the_time_of_the_card() {
    let slow = |request: &Request<'_>| match request {
        // So long that a thread which the machine keeps waiting still ends first.
        Request::Read { offset: 0, .. } => Duration::from_millis(1500),
        Request::Read { .. } => Duration::from_millis(20),
        _ => Duration::ZERO,
    };
    let memory = Memory::new(1 << 20).with_delay(slow).shared();
    let Some(mut folder) = Folder::mount("due", memory.clone()) else { return };
    let path = folder.path.join("user");
    let began = Instant::now();
    let took = |offset: u64| {
        open(&path).read_exact_at(&mut [0; 4096], offset).unwrap();
        began.elapsed()
    };
    let (slowest, slow) = std::thread::scope(|scope| {
        let slowest = scope.spawn(|| took(0));
        let slow = scope.spawn(|| took(4096));
        (slowest.join().unwrap(), slow.join().unwrap())
    });
    assert!(slowest >= Duration::from_millis(1500) && slow >= Duration::from_millis(20));
    assert!(slow < slowest, "one request waits without holding the other up");
    folder.mounted().stop().unwrap();
    // A reply is counted after it was sent, by a thread that ends here.
    drop(folder);
    assert_eq!(memory.answers.load(Ordering::SeqCst), 2);
}

#[test]
fn a_busy_mount_is_reported_and_can_be_retried() {
    let Some(mut folder) = Folder::mount("busy", Memory::new(1 << 20).shared()) else { return };
    if !crate::fuse::is_root() {
        eprintln!("SKIPPED: fusermount unmounts folders in use; only root gets an error");
        return;
    }
    let mut file = open(&folder.path.join("user"));
    let error = folder.mounted().stop().unwrap_err().to_string();
    assert!(error.starts_with("cannot unmount"), "{error}");
    file.write_all(&[1; 512]).unwrap();
    drop(file);
    folder.mounted().stop().unwrap();
    assert_eq!(folder.path.read_dir().unwrap().count(), 0);
    folder.mounted().stop().unwrap();
}

/// `EMMCLAB_SESSIONS` is the number of sequences of calls.
#[test]
fn hostile_calls_end_and_leave_the_protected_area() {
    use crate::nbd::hostile::sessions;
    let memory = Memory::new(1 << 20).shared();
    let Some(folder) = Folder::mount("hostile", memory.clone()) else { return };
    let (protected, count) = (memory.content(Area::Boot(1)), sessions(200));
    let mut random = Rng::new(1);
    for _ in 0..count {
        let name = ["user", "boot0", "boot1", "none", "..", "user/x"][random.below(6) as usize];
        let path = folder.path.join(name);
        let Ok(file) = OpenOptions::new().read(true).write(random.below(4) > 0).open(&path) else { continue };
        for _ in 0..random.below(6) {
            let places = [0, 1, 511, 4096, (1 << 20) - 1, 1 << 20, i64::MAX as u64 - 4096, random.below(1 << 31)];
            let (at, length) = (places[random.below(8) as usize], places[random.below(6) as usize]);
            let modes = [FallocateFlags::empty(), FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE];
            let mode = modes.get(random.below(3) as usize).copied().unwrap_or(FallocateFlags::ZERO_RANGE);
            let data = vec![9; length as usize];
            // Each may fail; none may hang or reach more than its file.
            match random.below(9) {
                0 => drop(file.read_at(&mut vec![0; length as usize], at)),
                1 => drop(file.write_at(&data, at)),
                2 => drop(fallocate(&file, mode, at, length)),
                3 => drop(file.set_len(at)),
                4 => drop(rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(at))),
                5 => drop(rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(at))),
                6 => drop(std::fs::rename(&path, folder.path.join("other"))),
                7 => drop(std::fs::create_dir(folder.path.join("new")).and(std::fs::hard_link(&path, "/tmp/none"))),
                _ => drop(file.sync_all().and_then(|()| std::fs::remove_file(&path))),
            }
        }
    }
    assert!(memory.content(Area::Boot(1)) == protected);
    assert_eq!(folder.path.read_dir().unwrap().count(), 3);
    let file = open(&folder.path.join("user"));
    file.write_all_at(&[3; 4096], 0).unwrap();
    assert_eq!(memory.content(Area::User)[..4096], [3; 4096]);
    println!("{count} sequences of calls, 0 broken");
}
