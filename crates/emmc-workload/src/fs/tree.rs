//! A modelled filesystem as a tree of files: the same work as on a real one.
//!
//! Assumed: stat and close cause no requests; rename causes none in f2fs, whose model has no folders. Reads are not
//! cached: the model has no read cache.

use std::collections::BTreeMap;

use emmc_port::{FileNumber, FileOp, FileTree, TargetError};
use emmc_units::{Instant, Nanos};

use super::{Disk, FileId, Filesystem};
use crate::drive::stream::BenchError;

/// A filesystem on a disk.
pub struct ModelTree<'a, 'd> {
    disk: &'a mut Disk<'d>,
    filesystem: Box<dyn Filesystem>,
    /// Each file's folder and its identifier in the model.
    files: BTreeMap<FileNumber, (u32, FileId)>,
}

impl<'a, 'd> ModelTree<'a, 'd> {
    /// The files of a filesystem that was just made.
    pub fn new(disk: &'a mut Disk<'d>, filesystem: Box<dyn Filesystem>) -> Self {
        Self { disk, filesystem, files: BTreeMap::new() }
    }

    fn id(&self, file: FileNumber) -> Result<FileId, BenchError> {
        let known = self.files.get(&file).map(|(_, id)| *id);
        known.ok_or_else(|| BenchError::Misfit { suite: self.filesystem.name(), what: format!("there is no {file:?}") })
    }

    fn of_folder(&self, folder: u32) -> Vec<FileNumber> {
        self.files.iter().filter(|(_, (of, _))| *of == folder).map(|(file, _)| *file).collect()
    }

    fn unlink(&mut self, file: FileNumber) -> Result<(), BenchError> {
        let id = self.id(file)?;
        self.files.remove(&file);
        self.filesystem.unlink(self.disk, id)
    }

    fn done(&mut self, op: FileOp<'_>) -> Result<u64, BenchError> {
        match op {
            FileOp::Create { file, folder, .. } => {
                let id = self.filesystem.create(self.disk, folder)?;
                self.files.insert(file, (folder, id));
            }
            FileOp::Write { file, offset_bytes, bytes, direct } => {
                let (id, disk) = (self.id(file)?, &mut *self.disk);
                let write = if direct { Filesystem::write_direct } else { Filesystem::write };
                write(&mut *self.filesystem, disk, id, offset_bytes, bytes)?;
                return Ok(bytes);
            }
            FileOp::Read { file, offset_bytes, bytes, .. } => {
                let id = self.id(file)?;
                self.filesystem.read(self.disk, id, offset_bytes, bytes)?;
                return Ok(bytes);
            }
            FileOp::WriteCharacters { file, bytes } => {
                return self.done(FileOp::Write { file, offset_bytes: 0, bytes, direct: false });
            }
            FileOp::ReadCharacters { file, bytes } => {
                return self.done(FileOp::Read { file, offset_bytes: 0, bytes, direct: false });
            }
            FileOp::WriteBack(file) => {
                let id = self.id(file)?;
                self.filesystem.write_back(self.disk, id)?;
            }
            FileOp::Sync(file) => {
                let id = self.id(file)?;
                self.filesystem.fsync(self.disk, id)?;
            }
            FileOp::Unlink(file) => self.unlink(file)?,
            FileOp::StatFolder(folder) => return Ok(self.of_folder(folder).len() as u64),
            FileOp::UnlinkFolder(folder) => {
                let files = self.of_folder(folder);
                files.iter().try_for_each(|file| self.unlink(*file))?;
                return Ok(files.len() as u64);
            }
            FileOp::SyncAll => self.filesystem.sync(self.disk)?,
            FileOp::Rename { file, .. } => {
                let id = self.id(file)?;
                self.filesystem.rename(self.disk, id)?;
            }
            FileOp::Close(file) | FileOp::Stat(file) => {
                self.id(file)?;
            }
            FileOp::Settle => {}
        }
        Ok(0)
    }
}

impl FileTree for ModelTree<'_, '_> {
    fn now(&mut self) -> Instant {
        self.disk.now()
    }

    fn idle(&mut self, time: Nanos) -> Result<(), TargetError> {
        self.filesystem.idle(self.disk, time).map_err(of_target)
    }

    fn call(&mut self, op: FileOp<'_>) -> Result<u64, TargetError> {
        self.done(op).map_err(of_target)
    }

    fn step(&mut self, step: &str) {
        self.disk.step(step);
    }
}

/// A model's error as a target's error.
fn of_target(error: BenchError) -> TargetError {
    match error {
        BenchError::Target(error) => error,
        BenchError::Misfit { suite, what } => TargetError::Failed { name: suite.into(), reason: what },
        other => TargetError::Failed { name: "the bench".into(), reason: other.to_string() },
    }
}
