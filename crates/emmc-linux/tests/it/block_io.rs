//! Files as targets, with every engine of this machine; no privileges needed.

use std::collections::HashSet;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use emmc_linux::block_io::{BlockIo, EngineChoice, Opening, open};
use emmc_port::{BlockDone, BlockOp, BlockRequest, BlockTarget};
use emmc_units::{Instant, Nanos};

const FILE_BYTES: u64 = 4 << 20;

/// A file of a test's own, gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str, content: &[u8]) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("block_io-{test}"));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }

    fn full(test: &str) -> Self {
        let content: Vec<u8> = (0..FILE_BYTES).map(|at| (at >> 9) as u8 ^ at as u8).collect();
        Self::new(test, &content)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn opening(engine: EngineChoice, write: bool) -> Opening {
    Opening { engine, write, flush_all: false, seed: 7, stop: Arc::default() }
}

/// The engines of this machine, each with the same file.
fn with_engines(file: &Path, write: bool, mut test: impl FnMut(BlockIo)) {
    for engine in [EngineChoice::Pread, EngineChoice::Uring] {
        match open(file, "file", &opening(engine, write)) {
            Ok(target) => test(target),
            Err(error) if engine == EngineChoice::Uring => eprintln!("SKIPPED: {error}"),
            Err(error) => panic!("{error}"),
        }
    }
}

fn request(op: BlockOp, offset_bytes: u64, bytes: u64, tag: u64) -> BlockRequest {
    BlockRequest { op, offset_bytes, bytes, through: tag % 3 == 0 && op == BlockOp::Write, tag }
}

#[test]
fn every_request_completes_once_and_writes_differ() {
    let file = Scratch::full("once");
    with_engines(&file.0, true, |mut target| {
        let pages = target.shape().size_bytes / 4096;
        let mut back = HashSet::new();
        let (mut handed, mut outstanding, mut last) = (0, 0, Instant::START);
        while back.len() < pages as usize {
            while outstanding < 32 && handed < pages {
                target.submit(request(BlockOp::Write, handed * 4096, 4096, handed)).unwrap();
                (handed, outstanding) = (handed + 1, outstanding + 1);
            }
            let done = target.wait().unwrap();
            assert_eq!((done.error.as_ref(), done.request.offset_bytes), (None, done.request.tag * 4096));
            assert!(done.submitted <= done.done && done.latency() > Nanos::ZERO);
            assert!(back.insert(done.request.tag));
            outstanding -= 1;
            last = last.max(done.done);
        }
        assert!(target.now() >= last);
        target.submit(request(BlockOp::Flush, 0, 0, 0)).unwrap();
        assert_eq!(target.wait().unwrap().request.op, BlockOp::Flush);
        assert!(target.wait().is_err(), "nothing is outstanding");
        let content = std::fs::read(&file.0).unwrap();
        let pages: HashSet<&[u8]> = content.chunks(4096).collect();
        assert_eq!(pages.len(), content.len() / 4096, "{}", target.shape().engine);
    });
}

/// The number of these requests that were in progress together.
fn most_at_once(done: &[BlockDone]) -> usize {
    let under_way = |at: Instant| done.iter().filter(|other| other.submitted <= at && at < other.done).count();
    done.iter().map(|one| under_way(one.submitted)).max().unwrap_or(0)
}

#[test]
fn queued_requests_start_in_sequence_until_the_end() {
    let file = Scratch::full("lined-up");
    with_engines(&file.0, true, |mut target| {
        let engine = target.shape().engine;
        let pages = target.shape().size_bytes / 4096;
        for depth in [2u32, 5, 3] {
            let ahead = target.line_up(depth, 4096);
            assert_eq!(ahead > 0, engine == "pread", "{engine}");
            let (mut handed, mut back) = (0, Vec::new());
            loop {
                while handed - (back.len() as u64) < u64::from(depth + ahead) {
                    target.submit(request(BlockOp::Write, handed % pages * 4096, 4096, handed)).unwrap();
                    handed += 1;
                }
                if back.len() == 2000 {
                    break;
                }
                back.push(target.wait().unwrap());
            }
            let dropped = u64::from(target.line_up(0, 0));
            assert!(dropped <= u64::from(ahead) && (ahead == 0 || dropped > 0), "{dropped} of {ahead}");
            while (back.len() as u64) < handed - dropped {
                back.push(target.wait().unwrap());
            }
            assert!(target.wait().is_err(), "nothing is outstanding");
            // A request counts from before its call until after it; the ring's from its submission to when it is seen.
            assert!(
                engine != "pread" || (2..=depth as usize).contains(&most_at_once(&back)),
                "{}",
                most_at_once(&back)
            );
            let tags: HashSet<u64> = back.iter().map(|done| done.request.tag).collect();
            assert_eq!((tags.len(), tags.iter().max()), (back.len(), Some(&(handed - dropped - 1))), "{engine}");
        }
    });
}

#[test]
fn request_sizes_can_change_and_grow() {
    let file = Scratch::new("sizes", &[]);
    std::fs::File::options().write(true).open(&file.0).unwrap().set_len(128 << 20).unwrap();
    with_engines(&file.0, true, |mut target| {
        for (number, bytes) in [512u64, 64 << 20, 4096, 16 << 20, 1 << 20].into_iter().enumerate() {
            let bytes = bytes.max(u64::from(target.shape().sector_bytes));
            for op in [BlockOp::Write, BlockOp::Read] {
                target.submit(request(op, bytes, bytes, number as u64)).unwrap();
                let done = target.wait().unwrap();
                assert_eq!((done.error, done.request.bytes), (None, bytes));
            }
        }
    });
}

#[test]
fn a_trimmed_range_of_a_file_is_a_hole() {
    let file = Scratch::full("trim");
    with_engines(&file.0, true, |mut target| {
        if !target.shape().can_trim {
            eprintln!("SKIPPED: the filesystem knows no holes");
            return;
        }
        target.submit(request(BlockOp::Trim, 1 << 20, 1 << 20, 0)).unwrap();
        assert_eq!(target.wait().unwrap().error, None);
        let content = std::fs::read(&file.0).unwrap();
        assert_eq!(content.len() as u64, FILE_BYTES);
        assert!(content[1 << 20..2 << 20].iter().all(|byte| *byte == 0));
        assert!(content[..1 << 20].iter().any(|byte| *byte != 0));
    });
}

#[test]
fn requests_outside_and_writes_to_a_read_only_target_are_refused() {
    let file = Scratch::full("fit");
    with_engines(&file.0, false, |mut target| {
        assert!(target.submit(request(BlockOp::Read, FILE_BYTES, 4096, 0)).is_err());
        assert!(target.submit(request(BlockOp::Read, 1, 4096, 0)).is_err());
        let error = target.submit(request(BlockOp::Write, 0, 4096, 0)).and_then(|()| target.wait()).unwrap_err();
        assert!(error.to_string().starts_with("file: write of 4096 bytes at byte 0: "), "{error}");
        assert!(!target.shape().can_trim);
    });
    let before = std::fs::read(&file.0).unwrap();
    assert!(before.iter().zip(0..).all(|(byte, at): (&u8, u64)| *byte == (at >> 9) as u8 ^ at as u8));
}

#[test]
fn more_requests_than_the_depth_are_refused() {
    let file = Scratch::full("depth");
    with_engines(&file.0, false, |mut target| {
        let most = u64::from(target.shape().depth_max);
        for tag in 0..most {
            target.submit(request(BlockOp::Read, tag * 4096, 4096, tag)).unwrap();
        }
        assert!(target.submit(request(BlockOp::Read, 0, 4096, most)).is_err());
        // Dropped with everything outstanding: freed memory must not be written.
    });
}

#[test]
fn a_stopped_target_refuses_requests() {
    let file = Scratch::full("stop");
    let stop = Arc::new(AtomicBool::new(false));
    let opening = Opening { stop: Arc::clone(&stop), ..opening(EngineChoice::Auto, false) };
    let mut target = open(&file.0, "file", &opening).unwrap();
    target.submit(request(BlockOp::Read, 0, 4096, 0)).unwrap();
    stop.store(true, Ordering::Relaxed);
    assert_eq!(target.wait().unwrap().error, None);
    assert_eq!(target.submit(request(BlockOp::Read, 0, 4096, 1)).unwrap_err().to_string(), "file: stopped");
}

#[test]
fn an_invalid_target_is_named() {
    let odd = Scratch::new("odd", &[1; 1000]);
    let empty = Scratch::new("empty", &[]);
    for (path, says) in [
        (Path::new("/dev/null"), "a character device; expected a block device, a regular file or a folder"),
        (Path::new("/proc"), "a folder"),
        (Path::new("/no such file"), "No such file"),
        (&odd.0, "1000 bytes: expected a multiple of its sectors"),
        (&empty.0, "0 bytes"),
    ] {
        let error = open(path, "it", &opening(EngineChoice::Auto, false)).err().unwrap().to_string();
        assert!(error.starts_with("it: ") && error.contains(says), "{error}");
    }
    let file = std::fs::File::open(&odd.0).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 999).unwrap();
    assert_eq!(byte, [1]);
}
