//! The boot in a folder: files created for it, each read once in random order, with an empty page cache.

use emmc_port::{FileNumber, FileOp, FileTree, TargetError};
use emmc_units::{Rng, Scramble};

use super::{DISK_BYTES, NAME, READ_BYTES, WRITTEN_BYTES};
use crate::drive::stream::BenchError;
use crate::result::Figure;
use crate::suites::files::{FileBench, FileShape, FileSuite, of_files, room};
use crate::suites::{Cost, Options};

/// Space needed for the files. Unit: bytes.
const LEAST_BYTES: u64 = 128 << 20;
/// Assumed: folders of a root filesystem that a boot reads.
const FOLDERS: u32 = 200;
const LOG_FOLDER: u32 = FOLDERS;
const BLOCK_BYTES: u64 = 4096;

/// The suite in a folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RealBoot;

/// A root filesystem: sizes of its files by their numbers.
struct Root {
    sizes: Vec<u64>,
}

impl FileSuite for RealBoot {
    fn about(&self) -> &'static str {
        "the reads of a recorded boot on the folder's own filesystem: 121 MB in files of 4 KiB to 512 KiB, and under 1 MB of writes"
    }

    fn cost(&self, shape: &FileShape, options: &Options) -> Result<Cost, BenchError> {
        if options.read_only {
            let what = "it must write the files that it reads".into();
            return Err(BenchError::Misfit { suite: NAME, what });
        }
        let size = options.size_bytes.unwrap_or(DISK_BYTES);
        // Space for the filesystem's own metadata.
        let room_bytes = size + size / 16;
        room(NAME, shape, options, (LEAST_BYTES, room_bytes))?;
        Ok(Cost {
            written_bytes: size + WRITTEN_BYTES,
            read_bytes: READ_BYTES,
            to_bytes: room_bytes,
            steps: 2,
            ..Cost::default()
        })
    }

    fn run(&self, bench: &mut FileBench<'_>) -> Result<(), BenchError> {
        let (seed, size) = (bench.options.seed, bench.options.size_bytes.unwrap_or(DISK_BYTES));
        let mut found = None;
        bench
            .on_tree(None, &mut |tree| {
                let mut rng = Rng::new(seed);
                let root = Root::make(tree, size, &mut rng)?;
                let is_settled = tree.call(FileOp::Settle)? == 1;
                found = Some((root.boot(tree, seed)?, is_settled));
                Ok(())
            })
            .map_err(|error| of_files(error, NAME))?;
        let Some((Found { seconds, files, read_bytes }, is_settled)) = found else { return Ok(()) };
        let mean_kib = read_bytes as f64 / 1024.0 / files.max(1) as f64;
        let note = format!("{files} files of {mean_kib:.0} KiB on average, of {}", bytes_told(size));
        bench.figure(Figure::new("waiting for the card", seconds, "s", note));
        bench.figure(Figure::new("speed", read_bytes as f64 / 1e6 / seconds.max(1e-9), "MB/s", "of the reads"));
        if !is_settled {
            bench.remark("dropping the kernel's dentry and inode caches requires root: a real boot reads these too");
        }
        Ok(())
    }
}

fn bytes_told(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

struct Found {
    seconds: f64,
    files: u64,
    read_bytes: u64,
}

impl Root {
    /// Sizes are uniform over powers of two, from one block to 128, as in the boot on sectors.
    fn make(tree: &mut dyn FileTree, size_bytes: u64, rng: &mut Rng) -> Result<Self, TargetError> {
        tree.step("a root filesystem");
        let (mut sizes, mut made) = (Vec::new(), 0);
        while made < size_bytes {
            let largest = 1 << rng.below(8);
            let bytes = (1 + rng.below(largest)) * BLOCK_BYTES;
            let (file, folder) = (FileNumber(sizes.len() as u32), rng.below(FOLDERS.into()) as u32);
            tree.call(FileOp::Create { file, folder, name: &format!("file-{}", file.0) })?;
            tree.call(FileOp::Write { file, offset_bytes: 0, bytes, direct: false })?;
            tree.call(FileOp::Close(file))?;
            sizes.push(bytes);
            made += bytes;
        }
        Ok(Self { sizes })
    }

    fn boot(&self, tree: &mut dyn FileTree, seed: u64) -> Result<Found, TargetError> {
        tree.step("boot");
        let order = Scramble::new(self.sizes.len() as u64, seed);
        let log = FileNumber(self.sizes.len() as u32);
        let began = tree.now();
        tree.call(FileOp::Create { file: log, folder: LOG_FOLDER, name: "log" })?;
        let (mut read_bytes, mut written, mut files) = (0, 0, 0);
        while read_bytes < READ_BYTES && files < self.sizes.len() as u64 {
            let number = order.of(files);
            let (file, bytes) = (FileNumber(number as u32), self.sizes[number as usize]);
            read_bytes += tree.call(FileOp::Read { file, offset_bytes: 0, bytes, direct: false })?;
            tree.call(FileOp::Close(file))?;
            files += 1;
            while read_bytes * WRITTEN_BYTES / READ_BYTES > written && written < WRITTEN_BYTES {
                tree.call(FileOp::Write { file: log, offset_bytes: written, bytes: BLOCK_BYTES, direct: false })?;
                written += BLOCK_BYTES;
            }
        }
        Ok(Found { seconds: tree.now().since(began).as_secs_f64(), files, read_bytes })
    }
}
