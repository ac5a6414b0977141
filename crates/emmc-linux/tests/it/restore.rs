//! The content of a file or device is restored: data and holes; what cannot be restored is reported.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use emmc_linux::block_io::{BlockIo, EngineChoice, Keeper, Opening, Saved, open};
use emmc_port::{BlockOp, BlockRequest, BlockTarget};
use emmc_workload::{Progress, Unwatched, Watch};
use rustix::fs::{SeekFrom, seek};

const FILE_BYTES: u64 = 4 << 20;

/// A folder of a test's own, gone afterwards.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file without holes.
    fn full(&self) -> (PathBuf, Vec<u8>) {
        let content: Vec<u8> = (0..FILE_BYTES).map(|at| (at >> 9) as u8 ^ at as u8).collect();
        std::fs::write(self.path("file"), &content).unwrap();
        (self.path("file"), content)
    }
}

fn opened(file: &Path, write: bool) -> BlockIo {
    let opening = Opening { engine: EngineChoice::Pread, write, flush_all: false, seed: 7, stop: Arc::default() };
    open(file, "file", &opening).unwrap()
}

fn request(target: &mut BlockIo, op: BlockOp, offset_bytes: u64, bytes: u64) -> Result<(), String> {
    let request = BlockRequest { op, offset_bytes, bytes, through: false, tag: 0 };
    target.submit(request).and_then(|()| target.wait()).map(drop).map_err(|error| error.to_string())
}

/// Starts and ends of the data ranges, as the filesystem reports them.
fn map(path: &Path) -> Vec<[u64; 2]> {
    let (file, mut at, mut found) = (File::open(path).unwrap(), 0, Vec::new());
    while let Ok(begin) = seek(&file, SeekFrom::Data(at)) {
        at = seek(&file, SeekFrom::Hole(begin)).unwrap();
        found.push([begin, at]);
    }
    found
}

/// A file of 16 MiB with three pieces of content.
fn sparse(path: &Path) {
    let file = File::create(path).unwrap();
    file.set_len(16 << 20).unwrap();
    for (number, at) in [0, 5 << 20, (11 << 20) + 4096].into_iter().enumerate() {
        file.write_all_at(&vec![number as u8 + 1; 128 << 10], at).unwrap();
    }
    file.sync_all().unwrap();
}

#[test]
fn content_is_restored_from_memory_and_from_a_file() {
    let scratch = Scratch::new();
    let (file, before) = scratch.full();
    let kept = scratch.path("kept");
    for place in [None, Some(kept.as_path())] {
        let mut target = opened(&file, true);
        let saved = Saved::take(&target, [4096, FILE_BYTES - 8192], place, &mut Unwatched).unwrap();
        request(&mut target, BlockOp::Write, 4096, 1 << 20).unwrap();
        assert_ne!(std::fs::read(&file).unwrap(), before);
        if let Some(kept) = place {
            assert!(
                Saved::take(&target, [0, 4096], place, &mut Unwatched).is_err(),
                "a file that is there is not written over"
            );
            assert!(kept.is_file());
        }
        saved.put_back(&target, &mut Unwatched).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), before);
    }
    assert!(!kept.exists());
}

#[test]
fn holes_of_a_file_are_restored() {
    let scratch = Scratch::new();
    let (file, kept) = (scratch.path("sparse"), scratch.path("kept"));
    sparse(&file);
    let (before, content) = (map(&file), std::fs::read(&file).unwrap());
    if before.len() < 3 {
        return eprintln!("SKIPPED: the filesystem knows no holes");
    }
    for place in [None, Some(kept.as_path())] {
        let mut target = opened(&file, true);
        assert_eq!(Saved::bytes_of(&target, 0, 16 << 20), Ok(3 * (128 << 10)));
        let saved = Saved::take(&target, [0, 16 << 20], place, &mut Unwatched).unwrap();
        request(&mut target, BlockOp::Write, 0, 16 << 20).unwrap();
        request(&mut target, BlockOp::Trim, 5 << 20, 1 << 20).unwrap();
        assert_ne!(map(&file), before);
        saved.put_back(&target, &mut Unwatched).unwrap();
        assert_eq!(map(&file), before);
        assert!(std::fs::read(&file).unwrap() == content);
    }
}

#[test]
fn a_file_keeps_its_allocated_blocks() {
    let scratch = Scratch::new();
    let path = scratch.path("allocated");
    let file = File::create(&path).unwrap();
    if rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 16 << 20).is_err() {
        return eprintln!("SKIPPED: the filesystem allocates nothing beforehand");
    }
    file.write_all_at(&[7; 8192], 1 << 20).unwrap();
    file.sync_all().unwrap();
    let (before, blocks) = (map(&path), file.metadata().unwrap().blocks());
    let mut target = opened(&path, true);
    let saved = Saved::take(&target, [0, 16 << 20], None, &mut Unwatched).unwrap();
    request(&mut target, BlockOp::Write, 0, 4 << 20).unwrap();
    request(&mut target, BlockOp::Trim, 8 << 20, 4 << 20).unwrap();
    assert!(file.metadata().unwrap().blocks() < blocks);
    saved.put_back(&target, &mut Unwatched).unwrap();
    assert_eq!(map(&path), before);
    // A filesystem may need a block or two more for the list of extents.
    let after = file.metadata().unwrap().blocks();
    assert!((blocks..=blocks + 64).contains(&after), "{after} sectors, {blocks} before");
    let after = std::fs::read(&path).unwrap();
    assert!((0..).zip(&after).all(|(at, byte)| *byte == if (1 << 20..(1 << 20) + 8192).contains(&at) { 7 } else { 0 }));
}

/// A small filesystem of a test's own.
struct Small(Scratch);

impl Small {
    fn new(bytes: u64) -> Option<Self> {
        let scratch = Scratch::new();
        std::fs::create_dir(scratch.path("small")).unwrap();
        let (options, point) = (format!("size={bytes}"), scratch.path("small"));
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&point).status();
        if !mounted.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: mounting needs root");
            return None;
        }
        Some(Self(scratch))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path("small").join(name)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        assert!(Command::new("umount").arg(self.0.path("small")).status().unwrap().success());
    }
}

/// Writes until there is no space.
fn fill(path: &Path) {
    let file = File::create(path).unwrap();
    let mut at = 0;
    while let Ok(written @ 1..) = file.write_at(&[9; 4096], at) {
        at += written as u64;
    }
}

#[test]
fn a_sparse_file_on_a_full_filesystem_is_restored() {
    let Some(small) = Small::new(2 << 20) else { return };
    let file = small.path("sparse");
    sparse(&file);
    let (before, content) = (map(&file), std::fs::read(&file).unwrap());
    fill(&small.path("filler"));
    let mut target = opened(&file, true);
    let saved = Saved::take(&target, [0, 16 << 20], None, &mut Unwatched).unwrap();
    // The data ranges are punched, and the former holes are filled.
    request(&mut target, BlockOp::Trim, 0, 1 << 20).unwrap();
    request(&mut target, BlockOp::Write, 2 << 20, 64 << 10).unwrap();
    let full = (1..4).map(|piece| request(&mut target, BlockOp::Write, (2 << 20) + piece * (64 << 10), 64 << 10));
    assert!(full.last().unwrap().unwrap_err().contains("No space left"));
    saved.put_back(&target, &mut Unwatched).unwrap();
    assert_eq!(map(&file), before);
    assert!(std::fs::read(&file).unwrap() == content);
}

#[test]
fn saving_that_fails_leaves_no_file() {
    let Some(small) = Small::new(1 << 20) else { return };
    let scratch = Scratch::new();
    let (file, _) = scratch.full();
    let target = opened(&file, true);
    let error =
        Saved::take(&target, [0, FILE_BYTES], Some(&small.path("kept")), &mut Unwatched).err().unwrap().to_string();
    assert!(error.contains("saving its content") && error.contains("No space left"), "{error}");
    assert!(!small.path("kept").exists());
}

/// Stops after a share of the polls.
struct StopsAfter(f64, Vec<f64>);

impl Watch for StopsAfter {
    fn progress(&mut self, progress: Progress<'_>) -> bool {
        self.1.push(progress.done_share);
        progress.done_share < self.0
    }
}

impl Keeper for StopsAfter {
    fn watch(&mut self) -> &mut dyn Watch {
        self
    }

    fn wait(&mut self, _: &str) -> bool {
        false
    }
}

#[test]
fn saving_can_be_stopped_and_restoring_cannot() {
    let scratch = Scratch::new();
    let (file, before) = scratch.full();
    let (kept, mut target) = (scratch.path("kept"), opened(&file, true));
    let mut watch = StopsAfter(0.5, Vec::new());
    let error = Saved::take(&target, [0, FILE_BYTES], Some(&kept), &mut watch).err().unwrap().to_string();
    assert!(error.contains("saving its content: stopped") && !kept.exists(), "{error}");
    assert_eq!(watch.1, [0.0, 0.25, 0.5]);
    let saved = Saved::take(&target, [0, FILE_BYTES], None, &mut Unwatched).unwrap();
    request(&mut target, BlockOp::Write, 0, FILE_BYTES).unwrap();
    let mut watch = StopsAfter(0.0, Vec::new());
    saved.put_back(&target, &mut watch).unwrap();
    assert!(std::fs::read(&file).unwrap() == before);
    assert_eq!(watch.1.len(), 8);
}

#[test]
fn all_possible_content_is_restored_and_the_rest_reported() {
    let scratch = Scratch::new();
    let (file, before) = scratch.full();
    let kept = scratch.path("kept");
    let mut target = opened(&file, true);
    let saved = Saved::take(&target, [0, FILE_BYTES], Some(&kept), &mut Unwatched).unwrap();
    request(&mut target, BlockOp::Write, 0, FILE_BYTES).unwrap();
    // The last megabyte of the copy is gone.
    let damaged = File::options().write(true).open(&kept).unwrap();
    damaged.set_len(4096 + (3 << 20)).unwrap();
    let error = saved.put_back(&target, &mut Unwatched).unwrap_err().to_string();
    assert!(error.contains("bytes 3145728 to 4194304: ") && !error.contains("bytes 0"), "{error}");
    assert!(error.contains(&format!("the content is in {}", kept.display())) && kept.exists(), "{error}");
    let after = std::fs::read(&file).unwrap();
    assert!(after[..3 << 20] == before[..3 << 20] && after[3 << 20..] != before[3 << 20..]);
}

#[test]
fn content_in_memory_is_saved_to_a_file_if_the_restore_fails() {
    let scratch = Scratch::new();
    let (file, before) = scratch.full();
    let saved = Saved::take(&opened(&file, true), [4096, FILE_BYTES], None, &mut Unwatched).unwrap();
    let unharmed = Saved::take(&opened(&file, true), [0, FILE_BYTES], None, &mut Unwatched).unwrap();
    assert_eq!(unharmed.put_back(&opened(&file, false), &mut Unwatched), Ok(()), "it is all there");
    std::fs::write(&file, vec![0; FILE_BYTES as usize]).unwrap();
    let error = saved.put_back(&opened(&file, false), &mut Unwatched).unwrap_err().to_string();
    assert!(error.contains("bytes 4096 to 4194304: "), "{error}");
    let (_, rescued) = error.split_once("the content from byte 4096 on is in ").unwrap_or_else(|| panic!("{error}"));
    let rescued_bytes = std::fs::read(rescued).unwrap();
    assert!(rescued_bytes[4096..][..before.len() - 4096] == before[4096..], "each byte at its place after the header");
    // Later it is restored from that file, which stays, and to nothing else.
    let opened_again = Saved::open(Path::new(rescued), &mut Unwatched).unwrap();
    assert_eq!(opened_again.mismatch(&opened(&file, true)), Ok(None));
    let other = scratch.path("other");
    std::fs::copy(&file, &other).unwrap();
    let why = opened_again.mismatch(&opened(&other, true)).unwrap().unwrap();
    assert!(why.contains("was saved from another target, file: inode "), "{why}");
    opened_again.put_back(&opened(&file, true), &mut Unwatched).unwrap();
    assert!(std::fs::read(&file).unwrap()[4096..] == before[4096..]);
    std::fs::remove_file(rescued).unwrap();
}

#[test]
fn no_partial_or_damaged_file_is_restored_from() {
    let scratch = Scratch::new();
    let (file, _) = scratch.full();
    let kept = scratch.path("kept");
    let target = opened(&file, true);
    let saved = Saved::take(&target, [0, FILE_BYTES], Some(&kept), &mut Unwatched).unwrap();
    let whole = std::fs::read(&kept).unwrap();
    // As after `kill -9`: the process forgot it.
    std::mem::forget(saved);
    let refused = |bytes: &[u8]| {
        std::fs::write(&kept, bytes).unwrap();
        Saved::open(&kept, &mut Unwatched).err().map(|error| error.to_string())
    };
    assert_eq!(refused(&whole), None);
    let mut headless = whole.clone();
    headless[..4096].fill(0);
    assert!(
        refused(&headless).unwrap().ends_with("is partial: it has no header, because it was not completely written")
    );
    for length in [0, 1, 4095, 4096, 1 << 20, whole.len() - 1] {
        let error = refused(&whole[..length]).unwrap_or_else(|| panic!("{length} bytes"));
        assert!(error.starts_with(&format!("{}: is ", kept.display())), "{error}");
    }
    for at in [0, 30, 4096, 5 << 18, whole.len() - 1] {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        assert!(refused(&flipped).is_some(), "byte {at}");
    }
    assert!(Saved::open(Path::new("/dev/null"), &mut Unwatched).is_err());
}

/// Ends the process at a step of the progress, as far as a test can.
struct DiesAt(usize);

impl Watch for DiesAt {
    fn progress(&mut self, _: Progress<'_>) -> bool {
        self.0 = self.0.checked_sub(1).unwrap_or_else(|| std::panic::resume_unwind(Box::new("dead")));
        true
    }
}

impl Keeper for DiesAt {
    fn watch(&mut self) -> &mut dyn Watch {
        self
    }

    fn wait(&mut self, _: &str) -> bool {
        false
    }
}

#[test]
fn a_restore_that_ends_anywhere_can_be_repeated() {
    let scratch = Scratch::new();
    let (file, before) = scratch.full();
    let kept = scratch.path("kept");
    // Four pieces are written, then four compared.
    for step in 0..8 {
        let mut target = opened(&file, true);
        let saved = Saved::take(&target, [0, FILE_BYTES], Some(&kept), &mut Unwatched).unwrap();
        request(&mut target, BlockOp::Write, 0, FILE_BYTES).unwrap();
        let dies = std::panic::AssertUnwindSafe(|| saved.put_back(&target, &mut DiesAt(step)));
        assert!(std::panic::catch_unwind(dies).is_err(), "step {step}");
        let again = Saved::open(&kept, &mut Unwatched).unwrap();
        assert_eq!(again.mismatch(&target), Ok(None));
        again.put_back(&target, &mut Unwatched).unwrap();
        assert!(std::fs::read(&file).unwrap() == before, "step {step}");
        std::fs::remove_file(&kept).unwrap();
    }
}
