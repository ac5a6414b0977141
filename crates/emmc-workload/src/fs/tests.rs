//! Both filesystems on a target that records its requests.

use emmc_port::{BlockDone, BlockOp, BlockRequest, BlockTarget, TargetError, TargetKind, TargetShape};
use emmc_units::{Instant, Nanos, Rng};

use super::*;
use crate::drive::watch::Unwatched;

/// A target on which everything takes a millisecond.
struct Recorder {
    shape: TargetShape,
    now: Instant,
    pending: Option<BlockRequest>,
    asked: Vec<BlockRequest>,
    is_write_through: bool,
}

impl Recorder {
    fn new(size_bytes: u64) -> Self {
        let shape = TargetShape {
            name: "recorder".into(),
            kind: TargetKind::Simulated,
            size_bytes,
            sector_bytes: 512,
            depth_max: 1,
            can_trim: true,
            engine: "recorder",
        };
        Self { shape, now: Instant::START, pending: None, asked: Vec::new(), is_write_through: false }
    }
}

impl BlockTarget for Recorder {
    fn shape(&self) -> &TargetShape {
        &self.shape
    }

    fn now(&mut self) -> Instant {
        self.now
    }

    fn submit(&mut self, request: BlockRequest) -> Result<(), TargetError> {
        self.shape.check(&request)?;
        self.asked.push(request);
        self.pending = Some(request);
        Ok(())
    }

    fn wait(&mut self) -> Result<BlockDone, TargetError> {
        let submitted = self.now;
        self.now = self.now + Nanos::from_millis(1);
        let request = self.pending.take().expect("one is outstanding");
        Ok(BlockDone { request, submitted, done: self.now, error: None })
    }

    fn idle(&mut self, time: Nanos) -> Result<(), TargetError> {
        self.now = self.now + time;
        Ok(())
    }

    fn takes_flushes(&self) -> bool {
        !self.is_write_through
    }
}

type Make = fn(&mut Disk<'_>) -> Box<dyn Filesystem>;

const BOTH: [Make; 2] = [
    |disk| Box::new(Ext4::make(disk, MountOptions::default()).unwrap()),
    |disk| Box::new(F2fs::make(disk, MountOptions::default()).unwrap()),
];

/// A file's block addresses, found by reading it.
fn places(recorder: &mut Recorder, filesystem: &mut dyn Filesystem, file: FileId, blocks: u64) -> Vec<u64> {
    let before = recorder.asked.len();
    let size = recorder.shape.size_bytes;
    let mut watch = Unwatched;
    let mut disk = Disk::new(recorder, &mut watch, 0, size);
    for block in 0..blocks {
        filesystem.read(&mut disk, file, block * BLOCK_BYTES, BLOCK_BYTES).unwrap();
    }
    let reads: Vec<u64> = recorder.asked[before..].iter().map(|request| request.offset_bytes / BLOCK_BYTES).collect();
    assert_eq!(reads.len() as u64, blocks, "every block is somewhere");
    reads
}

#[test]
fn no_two_blocks_ever_share_a_place() {
    for make in BOTH {
        let size = 256 << 20;
        let mut recorder = Recorder::new(size);
        let mut watch = Unwatched;
        let mut disk = Disk::new(&mut recorder, &mut watch, 0, size);
        let mut filesystem = make(&mut disk);
        let mut rng = Rng::new(5);
        let mut files: Vec<(FileId, u64)> = Vec::new();
        for round in 0..400 {
            if files.len() > 12 {
                let (gone, _) = files.swap_remove(rng.below(files.len() as u64) as usize);
                filesystem.unlink(&mut disk, gone).unwrap();
            }
            let file = filesystem.create(&mut disk, 0).unwrap();
            let blocks = 1 + rng.below(3000);
            filesystem.write(&mut disk, file, 0, blocks * BLOCK_BYTES).unwrap();
            files.push((file, blocks));
            let (old, length) = files[rng.below(files.len() as u64) as usize];
            filesystem.write_direct(&mut disk, old, rng.below(length) * BLOCK_BYTES, BLOCK_BYTES).unwrap();
            if round % 3 == 0 {
                filesystem.fsync(&mut disk, file).unwrap();
            }
        }
        filesystem.sync(&mut disk).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for (file, blocks) in files {
            for place in places(&mut recorder, filesystem.as_mut(), file, blocks) {
                assert!(seen.insert(place), "{}: block {place} belongs to two", filesystem.name());
            }
        }
    }
}

#[test]
fn an_fsync_ends_in_a_flush_or_a_fua_write() {
    for make in BOTH {
        let mut recorder = Recorder::new(256 << 20);
        let mut watch = Unwatched;
        let mut disk = Disk::new(&mut recorder, &mut watch, 0, 256 << 20);
        let mut filesystem = make(&mut disk);
        let file = filesystem.create(&mut disk, 0).unwrap();
        filesystem.write(&mut disk, file, 0, 64 << 10).unwrap();
        filesystem.fsync(&mut disk, file).unwrap();
        let name = filesystem.name();
        let flush = recorder.asked.iter().rposition(|request| request.op == BlockOp::Flush).unwrap();
        let data = recorder.asked.iter().position(|request| request.bytes == 64 << 10).unwrap();
        assert!(data < flush, "{name}: the data is flushed");
        assert!(recorder.asked[flush + 1..].iter().all(|request| request.through), "{name}");
    }
}

#[test]
fn overwrites_are_in_place_or_appended() {
    for (make, in_place) in BOTH.into_iter().zip([true, false]) {
        let mut recorder = Recorder::new(256 << 20);
        let mut watch = Unwatched;
        let mut disk = Disk::new(&mut recorder, &mut watch, 0, 256 << 20);
        let mut filesystem = make(&mut disk);
        let file = filesystem.create(&mut disk, 0).unwrap();
        filesystem.write_direct(&mut disk, file, 0, 1 << 20).unwrap();
        let before = places(&mut recorder, filesystem.as_mut(), file, 256);
        let mut disk = Disk::new(&mut recorder, &mut watch, 0, 256 << 20);
        for block in [77, 3, 200] {
            filesystem.write_direct(&mut disk, file, block * BLOCK_BYTES, BLOCK_BYTES).unwrap();
        }
        let after = places(&mut recorder, filesystem.as_mut(), file, 256);
        let moved: Vec<usize> = (0..256).filter(|index| before[*index] != after[*index]).collect();
        assert_eq!(moved, if in_place { vec![] } else { vec![3, 77, 200] });
        if !in_place {
            assert_eq!([after[77], after[3], after[200]], [after[77], after[77] + 1, after[77] + 2]);
        }
    }
}

#[test]
fn a_trim_covers_deleted_files_and_a_full_disk_is_an_error() {
    for make in BOTH {
        let mut recorder = Recorder::new(128 << 20);
        let mut watch = Unwatched;
        let mut disk = Disk::new(&mut recorder, &mut watch, 0, 128 << 20);
        let mut filesystem = make(&mut disk);
        let all = filesystem.free_bytes();
        let file = filesystem.create(&mut disk, 0).unwrap();
        filesystem.write(&mut disk, file, 0, 32 << 20).unwrap();
        filesystem.sync(&mut disk).unwrap();
        assert!(filesystem.free_bytes() <= all - (32 << 20));
        filesystem.unlink(&mut disk, file).unwrap();
        let trimmed = filesystem.trim(&mut disk).unwrap();
        assert!(trimmed >= all - (5 << 20), "{}: {trimmed} of {all}", filesystem.name());
        let file = filesystem.create(&mut disk, 0).unwrap();
        filesystem.write(&mut disk, file, 0, 200 << 20).unwrap();
        let error = filesystem.sync(&mut disk).unwrap_err();
        assert!(error.to_string().contains("no space is left"), "{error}");
    }
}

/// Requests by kind: data, log, commit block, flush, home location; and the blocks of each.
fn kinds(asked: &[BlockRequest], journal: std::ops::Range<u64>) -> [(usize, u64); 5] {
    let mut kinds = [(0, 0); 5];
    for request in asked {
        let block = request.offset_bytes / BLOCK_BYTES;
        let kind = match request.op {
            BlockOp::Flush => 3,
            _ if journal.contains(&block) => 1 + usize::from(request.through),
            // Tables, and what mke2fs places behind them: folders.
            _ if block < 32_768 => 4,
            _ => 0,
        };
        kinds[kind].0 += 1;
        kinds[kind].1 += request.bytes / BLOCK_BYTES;
    }
    kinds
}

#[test]
fn ext4_makes_the_requests_of_a_kernel() {
    // The numbers are those of Linux 6.12 in `cargo xtask guest test ext4`, on a new filesystem of 2 GiB.
    let size = 2 << 30;
    let (mut recorder, mut watch) = (Recorder::new(size), Unwatched);
    let mut disk = Disk::new(&mut recorder, &mut watch, 0, size);
    let mut ext4 = Ext4::make(&mut disk, MountOptions::default()).unwrap();
    let files: Vec<FileId> = (0..100).map(|_| ext4.create(&mut disk, 1)).collect::<Result<_, _>>().unwrap();
    for file in files {
        ext4.unlink(&mut disk, file).unwrap();
    }
    ext4.sync(&mut disk).unwrap();
    recorder.asked.clear();
    let mut files = Vec::new();
    let mut phase = |act: &mut dyn FnMut(&mut Ext4, &mut Disk<'_>)| {
        let mut disk = Disk::new(&mut recorder, &mut watch, 0, size);
        act(&mut ext4, &mut disk);
        disk.write_waiting().unwrap();
        kinds(&std::mem::take(&mut recorder.asked), 262_144..278_528)
    };
    let created = phase(&mut |ext4, disk| {
        for _ in 0..100 {
            let file = ext4.create(disk, 1).unwrap();
            ext4.write(disk, file, 0, 16 << 10).unwrap();
            ext4.fsync(disk, file).unwrap();
            files.push(file);
        }
    });
    // The kernel's first commit has a block more: 698.
    assert_eq!(created, [(100, 400), (100, 697), (100, 100), (100, 0), (0, 0)]);
    let renamed = phase(&mut |ext4, disk| {
        for file in &files {
            ext4.rename(disk, *file).unwrap();
            ext4.fsync(disk, *file).unwrap();
        }
    });
    assert_eq!(renamed, [(0, 0), (100, 397), (100, 100), (100, 0), (0, 0)]);
    let rewritten = |offset: u64| {
        move |ext4: &mut Ext4, disk: &mut Disk<'_>, file: FileId| {
            disk.think(Nanos::from_millis(10)).unwrap();
            ext4.write(disk, file, offset, 4096).unwrap();
            ext4.fsync(disk, file).unwrap();
        }
    };
    let overwritten = phase(&mut |ext4, disk| files.iter().for_each(|file| rewritten(0)(ext4, disk, *file)));
    assert_eq!(overwritten, [(100, 100), (100, 200), (100, 100), (100, 0), (0, 0)]);
    let appended = phase(&mut |ext4, disk| files.iter().for_each(|file| rewritten(16 << 10)(ext4, disk, *file)));
    assert_eq!(appended, [(100, 100), (100, 400), (100, 100), (100, 0), (0, 0)]);
    // Nothing is synced: a commit after five seconds, home locations after thirty, in two requests.
    let waited = phase(&mut |ext4, disk| {
        ext4.sync(disk).unwrap();
        disk.think(Nanos::from_secs(1)).unwrap();
    });
    assert_eq!(waited[1].0, 0);
    let waited = phase(&mut |ext4, disk| {
        files.iter().for_each(|file| ext4.rename(disk, *file).unwrap());
        ext4.idle(disk, Nanos::from_secs(45)).unwrap();
    });
    assert_eq!(waited, [(0, 0), (1, 10), (1, 1), (1, 0), (2, 9)]);
    let deleted = phase(&mut |ext4, disk| {
        files.iter().for_each(|file| ext4.unlink(disk, *file).unwrap());
        ext4.sync(disk).unwrap();
    });
    // The kernel's files have inodes farther from the folder's: a request more.
    assert_eq!(deleted[1..], [(1, 14), (1, 1), (2, 0), (6, 13)]);
}

#[test]
fn small_files_of_many_folders_are_written_back_as_one_run() {
    let size = 2 << 30;
    let (mut recorder, mut watch) = (Recorder::new(size), Unwatched);
    let mut disk = Disk::new(&mut recorder, &mut watch, 0, size);
    let mut ext4 = Ext4::make(&mut disk, MountOptions::default()).unwrap();
    let files: Vec<FileId> = (0..40).map(|folder| ext4.create(&mut disk, folder)).collect::<Result<_, _>>().unwrap();
    for file in &files {
        ext4.write(&mut disk, *file, 0, 24 << 10).unwrap();
    }
    recorder.asked.clear();
    let mut disk = Disk::new(&mut recorder, &mut watch, 0, size);
    files.iter().for_each(|file| ext4.write_back(&mut disk, *file).unwrap());
    files.iter().for_each(|file| ext4.fsync(&mut disk, *file).unwrap());
    let found = kinds(&recorder.asked, 262_144..278_528);
    // 960 KiB are two requests of at most 512 KiB; all files are in one transaction, and each sync is a flush.
    assert_eq!((found[0], found[1].0, found[2].0, found[3].0), ((2, 240), 1, 1, 40));
    let started: Vec<u64> = recorder.asked[..2].iter().map(|request| request.offset_bytes / BLOCK_BYTES).collect();
    assert_eq!(started, [33_280, 33_280 + 128], "the second group, at a multiple of the run");
}

#[test]
fn a_full_journal_is_checkpointed_transaction_by_transaction() {
    let size = 256 << 20;
    let (mut recorder, mut watch) = (Recorder::new(size), Unwatched);
    let mut disk = Disk::new(&mut recorder, &mut watch, 0, size);
    let mut ext4 = Ext4::make(&mut disk, MountOptions::default()).unwrap();
    recorder.asked.clear();
    let mut disk = Disk::new(&mut recorder, &mut watch, 0, size);
    for _ in 0..1000 {
        let file = ext4.create(&mut disk, 1).unwrap();
        ext4.write(&mut disk, file, 0, 4096).unwrap();
        ext4.fsync(&mut disk, file).unwrap();
    }
    // The journal's superblock is its first block. It has 4096 blocks, 7 or 8 for a transaction; a third stays free.
    let superblock = recorder.asked.iter().filter(|asked| asked.through).map(|asked| asked.offset_bytes).min().unwrap();
    let is_tail = |at: &usize| recorder.asked[*at].offset_bytes == superblock;
    let tails: Vec<usize> = (0..recorder.asked.len()).filter(is_tail).collect();
    assert!((10..200).contains(&tails.len()), "{}", tails.len());
    assert!((4 * 330..4 * 400).contains(&tails[0]), "{}", tails[0]);
    for tail in tails {
        assert_eq!(recorder.asked[tail - 1].op, BlockOp::Flush);
        assert!(recorder.asked[tail].through);
    }
}

#[test]
fn a_target_without_a_volatile_cache_gets_no_flush() {
    let mut recorder = Recorder::new(256 << 20);
    recorder.is_write_through = true;
    let mut watch = Unwatched;
    let mut disk = Disk::new(&mut recorder, &mut watch, 0, 256 << 20);
    let mut ext4 = Ext4::make(&mut disk, MountOptions::default()).unwrap();
    let file = ext4.create(&mut disk, 0).unwrap();
    ext4.write(&mut disk, file, 0, 64 << 10).unwrap();
    ext4.fsync(&mut disk, file).unwrap();
    assert_eq!(disk.flushes, 0);
    assert!(recorder.asked.iter().all(|request| request.op == BlockOp::Write && !request.through));
}
