//! The place of a real bench: an existing device or file, or a temporary file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, bail, ensure};
use emmc_linux::block_io::{BlockIo, Opening, ScratchFile, open};
use emmc_linux::session::{Session, SessionError};
use emmc_port::{TargetKind, TargetShape};
use emmc_units::{Bytes, Size};
use emmc_workload::Suite;

use super::options;
use super::real::{done, placed};
use crate::cli::BenchArgs;

/// Space that stays free on a filesystem beside the file.
const SPARE_BYTES: u64 = 8 << 20;

/// Where a bench works.
pub(super) enum Place {
    /// An existing device or file.
    There(Box<Session>),
    /// A file created for this bench, which is removed afterwards.
    New(NewPlace),
}

/// A created file and its folder.
pub(super) struct NewPlace {
    pub(super) file: ScratchFile,
    pub(super) folder: PathBuf,
}

impl Place {
    /// Finds the named place, or creates a file: in a folder, or of a given size.
    ///
    /// Errors: nothing exists and no size is given; a dangling link; no space.
    pub(super) fn find(
        path: &Path,
        name: &str,
        suite: &dyn Suite,
        args: &BenchArgs,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Self> {
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => NewPlace::make(path, name, size_of_new(suite, args)?).map(Self::New),
            Ok(_) => placed(path, name, stop).map(Box::new).map(Self::There),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Ok(target) = std::fs::read_link(path) {
                    bail!("{name}: a symbolic link to {}, which does not exist", target.display());
                }
                let told = args.size.is_some() && !path.starts_with("/dev");
                ensure!(told, "{name}: no such device, file or folder; --size SIZE creates a file of that size");
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                NewPlace::make(folder, name, size_of_new(suite, args)?).map(Self::New)
            }
            Err(error) => Err(error).with_context(|| name.to_owned()),
        }
    }
}

impl NewPlace {
    fn make(folder: &Path, name: &str, bytes: u64) -> anyhow::Result<Self> {
        let failed = || name.to_owned();
        let available = emmc_linux::bench_context::available_bytes(folder).with_context(failed)?;
        let needed = bytes.saturating_add(SPARE_BYTES);
        if needed > available {
            let (bytes, available) = (Bytes(bytes).rounded(), Bytes(available).rounded());
            bail!("{}: not enough space for a file of {bytes}: {available} available", folder.display());
        }
        let file = ScratchFile::new(folder, bytes).with_context(failed)?;
        Ok(Self { file, folder: folder.to_owned() })
    }

    /// Opens it as a target.
    pub(super) fn opened(&self, name: &str, opening: &Opening) -> anyhow::Result<BlockIo> {
        done(open(self.file.path(), name, opening).map_err(SessionError::from))
    }
}

/// The requested size, or what the suite needs of a target with space for everything.
fn size_of_new(suite: &dyn Suite, args: &BenchArgs) -> anyhow::Result<u64> {
    if [args.size, args.from].iter().flatten().any(|size| !matches!(size, Size::Exact(_))) {
        bail!("--size and --from of a file to be created: expected bytes, e.g. 100MiB");
    }
    let options = emmc_workload::Options { read_only: false, ..options(args, 0)? };
    if let Some(bytes) = options.size_bytes {
        return Ok(options.from_bytes.saturating_add(bytes).next_multiple_of(4096));
    }
    let shape = TargetShape {
        name: "a new file".into(),
        kind: TargetKind::File,
        size_bytes: u64::MAX / 4,
        sector_bytes: 512,
        depth_max: 1,
        can_trim: true,
        engine: "",
    };
    let cost = suite.cost(&shape, &options)?;
    // A suite that uses the whole target needs an explicit size.
    let bytes = cost.to_bytes.next_multiple_of(4096);
    ensure!(bytes > 0 && bytes < 1 << 40, "suite {}: set the size of its file with --size", suite.name());
    Ok(bytes)
}
