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
        Self { shape, now: Instant::START, pending: None, asked: Vec::new() }
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
