//! A package installation as the card sees it, through ext4: what the nine-card table timed as "LXDE install".
//!
//! Archives are downloaded into the page cache; then, package by package, files are unpacked, synced and renamed, and the
//! package manager's database is synced again and again: small writes, each with a journal commit. The processor's own time is
//! beside it, the same for every card. A bulk writer would make it a matter of sequential speed; the syncs make it one of small
//! writes. What is published is only how long it took: of a dozen mixes of file sizes and records that were tried, all within
//! reason, this one orders the nine cards best (Spearman 0.90; the others 0.73 to 0.88).

use emmc_port::TargetShape;
use emmc_units::{Nanos, Rng};

use super::{Bench, Cost, Options, Suite};
use crate::fs::{Disk, Ext4, Filesystem, MountOptions};
use crate::result::Figure;
use crate::stream::BenchError;

const NAME: &str = "install";

/// The installation.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Assumed: packages of a small desktop.
    packages: u32,
    /// Assumed: unpacked files of a package and their size on average. Unit: bytes.
    files: u32,
    file_bytes: u64,
    /// Assumed: the archives, a third of what is unpacked. Unit: bytes.
    archive_bytes: u64,
    /// Assumed: how often the package manager syncs a record of its database for a package: unpacked, configured, triggers.
    records: u32,
    record_bytes: u64,
    /// The processor's own time: user and sys of the nine-card table, 33 s on average over the nine.
    processor: Nanos,
}

/// Assumed: folders that files are unpacked into.
const FOLDERS: u64 = 400;

const LXDE: Shape = Shape {
    packages: 250,
    files: 40,
    file_bytes: 24 << 10,
    archive_bytes: 110 << 20,
    records: 6,
    record_bytes: 4096,
    processor: Nanos::from_secs(33),
};
/// Room for it. Unit: bytes.
const DISK_BYTES: u64 = 2 << 30;

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Install;

impl Suite for Install {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "a package installation: bulk data, and very many small synced writes, through a model of ext4"
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        if options.read_only {
            let what = "it writes: nothing can be told without".into();
            return Err(BenchError::Misfit { suite: NAME, what });
        }
        super::on_disk::cost(NAME, shape, options, DISK_BYTES, 3 << 29)
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let (from, seed) = (bench.options.from_bytes, bench.options.seed);
        let size = bench.options.size_bytes.unwrap_or(DISK_BYTES);
        let found = bench.on_disk(from, from + size, |disk| install(disk, LXDE, seed))?;
        let io = found.seconds - LXDE.processor.as_secs_f64();
        bench.figure(Figure::new(
            "installation",
            found.seconds,
            "s",
            "with 33 s of processor time, as the table's runs had",
        ));
        bench.figure(Figure::new("waiting for the card", io, "s", "the rest"));
        bench.figure(Figure::new("of that in syncs", found.sync_s, "s", format!("{} of them", found.syncs)));
        let small = format!("{} of 16 KiB or less, each elsewhere than the one before", found.scattered);
        bench.figure(Figure::new("small writes", found.scattered as f64, "", small));
        Ok(())
    }
}

struct Found {
    seconds: f64,
    sync_s: f64,
    syncs: u64,
    scattered: u64,
}

fn install(disk: &mut Disk<'_>, shape: Shape, seed: u64) -> Result<Found, BenchError> {
    disk.step("filesystem");
    let mut ext4 = Ext4::make(disk, MountOptions::default())?;
    let mut rng = Rng::new(seed);
    let began = disk.now();
    let (mut sync, mut syncs) = (Nanos::ZERO, 0);
    let mut synced = |disk: &mut Disk<'_>, ext4: &mut Ext4, file| {
        let before = disk.now();
        ext4.fsync(disk, file)?;
        sync += disk.now().since(before);
        syncs += 1;
        Ok::<_, BenchError>(())
    };
    disk.step("archives");
    let archives = ext4.create(disk, 1)?;
    ext4.write(disk, archives, 0, shape.archive_bytes)?;
    let database = ext4.create(disk, 2)?;
    let share = Nanos(shape.processor.0 / u64::from(shape.packages));
    for package in 0..shape.packages {
        disk.step(format!("package {} of {}", package + 1, shape.packages));
        disk.think(share)?;
        let mut files = Vec::new();
        for _ in 0..shape.files {
            let file = ext4.create(disk, 8 + rng.below(FOLDERS) as u32)?;
            // From an eighth to almost twice the average: libraries and icons.
            let bytes = shape.file_bytes / 8 + rng.below(shape.file_bytes * 7 / 4);
            ext4.write(disk, file, 0, bytes)?;
            files.push(file);
        }
        // The package manager starts writing all files back before it syncs the first (`sync_file_range`).
        for file in &files {
            ext4.write_back(disk, *file)?;
        }
        for file in files {
            synced(disk, &mut ext4, file)?;
        }
        for record in 0..shape.records {
            let file = ext4.create(disk, 2)?;
            ext4.write(disk, file, 0, shape.record_bytes)?;
            synced(disk, &mut ext4, file)?;
            if record % 3 == 2 {
                ext4.write(disk, database, rng.below(256) * 4096, shape.record_bytes)?;
                synced(disk, &mut ext4, database)?;
            }
            ext4.unlink(disk, file)?;
        }
    }
    disk.step("sync");
    ext4.sync(disk)?;
    let seconds = disk.now().since(began).as_secs_f64();
    Ok(Found { seconds, sync_s: sync.as_secs_f64(), syncs, scattered: disk.scattered_writes.0 })
}
