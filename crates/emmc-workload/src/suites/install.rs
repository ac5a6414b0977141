//! A package installation as the card sees it, through ext4: the "LXDE install" of the nine-card table.
//!
//! Archives are downloaded into the page cache; then, package by package, files are unpacked, synced and renamed, and
//! the package manager's database is synced again and again: small writes, each with a journal commit. Processor time
//! is added, the same for every card. Without the syncs, sequential speed would decide; with them, small writes do.
//! Only the duration is published: of a dozen plausible mixes of file sizes and records, this one orders the nine cards
//! best (Spearman 0.88; the others 0.82 to 0.88).
//!
//! On a virtual card, a device and a file the filesystem is a model of ext4. In a folder it is the folder's own, and
//! the files are real: written under a temporary name, synced, and renamed, as dpkg does.

use emmc_port::{FileNumber, FileOp, FileTree, TargetError, TargetShape};
use emmc_units::{Nanos, Rng};

use super::{Bench, Cost, Options, Suite};
use crate::drive::stream::BenchError;
use crate::fs::{Ext4, ModelTree, MountOptions};
use crate::result::Figure;
use crate::suites::files::{FileBench, FileShape, FileSuite, of_files, room};

const NAME: &str = "install";

/// The installation.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Assumed: packages of a small desktop.
    packages: u32,
    /// Assumed: unpacked files of a package and their size on average. Unit: bytes.
    files: u32,
    file_bytes: u64,
    /// Assumed: the archives have a third of the unpacked size. Unit: bytes.
    archive_bytes: u64,
    /// Assumed: records of the package manager's database synced per package: states while it is unpacked and
    /// configured, control files, triggers.
    records: u32,
    record_bytes: u64,
    /// Processor time: user and sys of the nine-card table, 33 s on average over the nine.
    processor: Nanos,
}

/// Assumed: folders that files are unpacked into.
const FOLDERS: u64 = 400;

const LXDE: Shape = Shape {
    packages: 250,
    files: 20,
    file_bytes: 24 << 10,
    archive_bytes: 110 << 20,
    records: 12,
    record_bytes: 4096,
    processor: Nanos::from_secs(33),
};
/// Its size. Unit: bytes.
const DISK_BYTES: u64 = 2 << 30;

/// Smallest and default size on a target. Unit: bytes.
const DISK_BYTES_MIN: u64 = 512 << 20;
const WRITTEN_BYTES: u64 = 3 << 29;

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Install;

/// The suite in a folder.
#[derive(Clone, Copy, Debug)]
pub(super) struct RealInstall;

fn writes(options: &Options) -> Result<(), BenchError> {
    if options.read_only {
        return Err(BenchError::Misfit { suite: NAME, what: "it must write".into() });
    }
    Ok(())
}

impl Suite for Install {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "a package installation: bulk data, and very many small synced writes, through a model of ext4"
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        writes(options)?;
        super::disk::cost(NAME, shape, options, (DISK_BYTES_MIN, DISK_BYTES), WRITTEN_BYTES)
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let (from, seed) = (bench.options.from_bytes, bench.options.seed);
        let size = bench.options.size_bytes.unwrap_or(DISK_BYTES);
        let (found, scattered) = bench.on_disk(from, from + size, |disk| {
            disk.step("filesystem");
            let ext4 = Box::new(Ext4::make(disk, MountOptions::default())?);
            let found = install(&mut ModelTree::new(disk, ext4), LXDE, seed)?;
            Ok((found, disk.scattered_writes.0))
        })?;
        found.figures().into_iter().for_each(|figure| bench.figure(figure));
        let small = format!("{scattered} of 16 KiB or less, not sequential");
        bench.figure(Figure::new("small writes", scattered as f64, "", small));
        Ok(())
    }
}

impl FileSuite for RealInstall {
    fn about(&self) -> &'static str {
        "a package installation: files written, synced and renamed as dpkg does, on the folder's own filesystem"
    }

    fn cost(&self, shape: &FileShape, options: &Options) -> Result<Cost, BenchError> {
        writes(options)?;
        if options.size_bytes.is_some() {
            let what = "--size: in a folder the size of the installation is fixed".into();
            return Err(BenchError::Misfit { suite: NAME, what });
        }
        room(NAME, shape, options, (DISK_BYTES_MIN, DISK_BYTES_MIN))?;
        // The archives, the packages, the sync.
        let steps = LXDE.packages + 2;
        Ok(Cost { written_bytes: DISK_BYTES_MIN, to_bytes: DISK_BYTES_MIN, steps, ..Cost::default() })
    }

    fn run(&self, bench: &mut FileBench<'_>) -> Result<(), BenchError> {
        let (seed, mut found) = (bench.options.seed, None);
        bench
            .on_tree(None, &mut |tree| {
                tree.call(FileOp::Settle)?;
                found = Some(install(tree, LXDE, seed)?);
                Ok(())
            })
            .map_err(|error| of_files(error, NAME))?;
        found.iter().flat_map(Found::figures).for_each(|figure| bench.figure(figure));
        bench.remark("processor time is simulated by waiting: 33 s in total");
        Ok(())
    }
}

struct Found {
    seconds: f64,
    sync_s: f64,
    syncs: u64,
}

impl Found {
    fn figures(&self) -> Vec<Figure> {
        let processor = LXDE.processor.as_secs_f64();
        vec![
            Figure::new("installation", self.seconds, "s", "with 33 s of processor time, as in the table's runs"),
            Figure::new("waiting for the card", self.seconds - processor, "s", "the rest"),
            Figure::new("of that in syncs", self.sync_s, "s", format!("{} of them", self.syncs)),
        ]
    }
}

/// Folders by their numbers.
const DOWNLOADS: u32 = 1;
const DATABASE: u32 = 2;
const FIRST_FOLDER: u32 = 8;

/// A running installation.
struct Run<'a> {
    tree: &'a mut dyn FileTree,
    shape: Shape,
    rng: Rng,
    /// Files so far.
    files: u32,
    sync: Nanos,
    syncs: u64,
}

fn install(tree: &mut dyn FileTree, shape: Shape, seed: u64) -> Result<Found, TargetError> {
    let began = tree.now();
    let mut run = Run { tree, shape, rng: Rng::new(seed), files: 0, sync: Nanos::ZERO, syncs: 0 };
    run.tree.step("archives");
    let archives = run.create(DOWNLOADS, "archives")?;
    run.write(archives, 0, shape.archive_bytes)?;
    let database = run.create(DATABASE, "status")?;
    let share = Nanos(shape.processor.0 / u64::from(shape.packages));
    for package in 1..=shape.packages {
        run.tree.step(&format!("package {package} of {}", shape.packages));
        run.tree.idle(share)?;
        run.unpack()?;
        run.record(database)?;
    }
    run.tree.step("sync");
    run.tree.call(FileOp::SyncAll)?;
    let seconds = run.tree.now().since(began).as_secs_f64();
    Ok(Found { seconds, sync_s: run.sync.as_secs_f64(), syncs: run.syncs })
}

impl Run<'_> {
    fn create(&mut self, folder: u32, name: &str) -> Result<FileNumber, TargetError> {
        let file = FileNumber(self.files);
        self.files += 1;
        self.tree.call(FileOp::Create { file, folder, name })?;
        Ok(file)
    }

    fn write(&mut self, file: FileNumber, offset_bytes: u64, bytes: u64) -> Result<(), TargetError> {
        self.tree.call(FileOp::Write { file, offset_bytes, bytes, direct: false }).map(drop)
    }

    fn sync(&mut self, file: FileNumber) -> Result<(), TargetError> {
        let before = self.tree.now();
        self.tree.call(FileOp::Sync(file))?;
        self.sync += self.tree.now().since(before);
        self.syncs += 1;
        Ok(())
    }

    /// A package's files: written under a temporary name, synced, renamed.
    fn unpack(&mut self) -> Result<(), TargetError> {
        let mut files = Vec::new();
        for _ in 0..self.shape.files {
            let folder = FIRST_FOLDER + self.rng.below(FOLDERS) as u32;
            let file = self.create(folder, &format!("{}.dpkg-new", self.files))?;
            // From an eighth to almost twice the average: libraries and icons.
            let bytes = self.shape.file_bytes / 8 + self.rng.below(self.shape.file_bytes * 7 / 4);
            self.write(file, 0, bytes)?;
            files.push(file);
        }
        // The package manager starts writing back all files before it syncs the first (`sync_file_range`).
        for file in &files {
            self.tree.call(FileOp::WriteBack(*file))?;
        }
        for file in &files {
            self.sync(*file)?;
            self.tree.call(FileOp::Close(*file))?;
        }
        for file in files {
            self.tree.call(FileOp::Rename { file, name: &file.0.to_string() })?;
        }
        Ok(())
    }

    /// Writes the package manager's records.
    fn record(&mut self, database: FileNumber) -> Result<(), TargetError> {
        for record in 0..self.shape.records {
            let file = self.create(DATABASE, "tmp.i")?;
            self.write(file, 0, self.shape.record_bytes)?;
            self.sync(file)?;
            self.tree.call(FileOp::Rename { file, name: &format!("{record:04}") })?;
            if record % 3 == 2 {
                let place = self.rng.below(256) * 4096;
                self.write(database, place, self.shape.record_bytes)?;
                self.sync(database)?;
            }
            self.tree.call(FileOp::Unlink(file))?;
        }
        Ok(())
    }
}
