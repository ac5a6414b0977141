//! Block devices and image files as places.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use emmc_linux::block_io::{BlockIo, Opening, open};
use emmc_linux::usage::{Holder, occupied};
use emmc_port::{BlockOp, BlockRequest, BlockTarget, CardData, TargetError, TargetKind};
use emmc_regs as regs;

use super::place::{Area, Place, REQUEST_BYTES};
use super::unable;
use crate::save::Refused;

/// What a partition table of an image counts in. Unit: bytes.
pub(super) const IMAGE_SECTOR_BYTES: u32 = 512;
/// One discard asks for at most this much, so that a signal ends the work soon. Unit: bytes.
const DISCARD_BYTES: u64 = 256 << 20;

/// A device with its hardware areas, or a file.
pub(in crate::commands) struct RealPlace {
    name: String,
    areas: Vec<Area>,
    opened: Vec<BlockIo>,
    /// Held while a unit of direct I/O is written in part: of all handles one at a time, as two pieces may share a
    /// unit.
    part_of_unit: Arc<Mutex<()>>,
}

/// The name of an area as the kernel spells it: `boot0` of `mmcblk0boot0`, `gp1` of `mmcblk0gp0`.
fn area_of(disk: &str, whole: &str) -> Option<String> {
    let suffix = disk.strip_prefix(whole)?;
    let is_it = |area: &regs::Area| area.kernel_suffix() == suffix;
    let found = regs::Area::ALL.into_iter().find(is_it)?;
    (!matches!(found, regs::Area::User | regs::Area::Rpmb)).then(|| found.name().to_owned())
}

/// The device of an area of a card, e.g. `/dev/mmcblk0boot0`.
pub(in crate::commands) fn area_node(node: &Path, area: &str) -> PathBuf {
    let known = area.parse::<regs::Area>().ok();
    let kernel = known.map_or(area, |known| known.kernel_suffix());
    let name = node.file_name().unwrap_or_default().to_string_lossy();
    node.with_file_name(format!("{name}{kernel}"))
}

/// Refuses what is a part of a disk: its clone would not start, and a restore would miss the table.
///
/// Errors: [`Refused`].
pub(in crate::commands) fn refuse_part(name: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt;
    if let Some(part) = emmc_linux::card_part(name) {
        let whole = emmc_linux::card_node(name).unwrap_or_default();
        let what = format!("{name}: {part} is a part of a card: name the whole card, {}", whole.display());
        return Err(Refused(what).into());
    }
    let rdev = std::fs::metadata(name).map(|found| found.rdev()).unwrap_or_default();
    let folder = format!("/sys/dev/block/{}:{}", rdev >> 8 & 0xfff, rdev & 0xff | rdev >> 12 & 0xfff00);
    if rdev != 0 && Path::new(&folder).join("partition").exists() {
        return Err(Refused(format!("{name}: is a partition: name the whole disk")).into());
    }
    Ok(())
}

impl RealPlace {
    /// Opens a source for reading, a card with its boot areas and general purpose partitions.
    ///
    /// Errors: not there, not permitted; [`Refused`]: a partition, or in use without `live`.
    pub(super) fn source(
        name: &str,
        card: Option<&CardData>,
        is_live: bool,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<(Self, bool)> {
        refuse_part(name)?;
        let path = emmc_linux::card_node(name).unwrap_or_else(|| name.into());
        let found = occupied(&path, Holder::Nobody).map_err(|error| unable(name, error))?;
        // A device that cannot be written can be read.
        let uses: Vec<String> = found.uses.into_iter().filter(|line| !line.ends_with("is read-only")).collect();
        if !uses.is_empty() && !is_live {
            let what = "its content would change while it is read: unmount it, or --live copies all of it as it is";
            return Err(Refused(format!("{name}: in use: {}; {what}", uses.join("; "))).into());
        }
        let mut place = Self::empty(name);
        let opening = Opening::plain(false, stop);
        place.add("user", open(&path, name, &opening).map_err(|error| unable(name, error))?);
        let whole = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for disk in card.map(|card| card.blocks.disks.as_slice()).unwrap_or_default() {
            let Some(area) = area_of(&disk.name, &whole) else { continue };
            let node = path.with_file_name(&disk.name);
            let called = node.display().to_string();
            place.add(&area, open(&node, &called, &opening).map_err(|error| unable(&called, error))?);
        }
        Ok((place, !uses.is_empty()))
    }

    /// A target that a session holds.
    pub(in crate::commands) fn held(name: &str, opened: BlockIo) -> Self {
        let mut place = Self::empty(name);
        place.add("user", opened);
        place
    }

    fn empty(name: &str) -> Self {
        Self { name: name.into(), areas: Vec::new(), opened: Vec::new(), part_of_unit: Arc::default() }
    }

    /// Adds an area.
    pub(super) fn add(&mut self, area: &str, opened: BlockIo) {
        let shape = opened.shape();
        let sector_bytes = if shape.kind == TargetKind::Device { shape.sector_bytes } else { IMAGE_SECTOR_BYTES };
        self.areas.push(Area { name: area.into(), size_bytes: shape.size_bytes, sector_bytes });
        self.opened.push(opened);
    }

    fn failed(&self, error: TargetError) -> anyhow::Error {
        let text = error.to_string();
        unable(&self.name, text.strip_prefix(&format!("{}: ", self.name)).unwrap_or(&text))
    }

    fn complete(&mut self, area: usize, request: BlockRequest) -> anyhow::Result<Option<String>> {
        let done = self.opened[area].complete(request);
        done.map(|done| done.error).map_err(|error| self.failed(error))
    }

    /// The smallest range of whole units of direct I/O around a range.
    fn around(&self, area: usize, offset: u64, bytes: usize) -> [u64; 2] {
        let shape = self.opened[area].shape();
        let unit = u64::from(shape.sector_bytes);
        [offset / unit * unit, (offset + bytes as u64).next_multiple_of(unit).min(shape.size_bytes)]
    }

    fn read_whole(&mut self, area: usize, offset: u64, into: &mut [u8]) -> anyhow::Result<()> {
        let content = self.opened[area].content().context("no content")?;
        let done = content.read_into(offset, into).map_err(|error| self.failed(error))?;
        match done.error {
            None => Ok(()),
            Some(why) => Err(unable(&self.name, format!("byte {offset} of {}: {why}", self.areas[area].name))),
        }
    }

    fn write_whole(&mut self, area: usize, offset: u64, data: &[u8]) -> anyhow::Result<()> {
        let content = self.opened[area].content().context("no content")?;
        let done = content.write_from(offset, data, false).map_err(|error| self.failed(error))?;
        match done.error {
            None => Ok(()),
            Some(why) => Err(unable(&self.name, format!("byte {offset} of {}: {why}", self.areas[area].name))),
        }
    }
}

impl Place for RealPlace {
    fn another(&self) -> anyhow::Result<Box<dyn Place>> {
        let opened = self.opened.iter().map(|opened| opened.another().map_err(|error| self.failed(error)));
        let opened = opened.collect::<anyhow::Result<Vec<_>>>()?;
        let Self { name, areas, part_of_unit, .. } = self;
        let (name, areas, part_of_unit) = (name.clone(), areas.clone(), Arc::clone(part_of_unit));
        Ok(Box::new(Self { name, areas, opened, part_of_unit }))
    }

    fn areas(&self) -> &[Area] {
        &self.areas
    }

    fn read(&mut self, area: usize, offset_bytes: u64, into: &mut [u8]) -> anyhow::Result<()> {
        let mut at = offset_bytes;
        for part in into.chunks_mut(REQUEST_BYTES) {
            let [from, to] = self.around(area, at, part.len());
            if (to - from) as usize == part.len() {
                self.read_whole(area, at, part)?;
            } else {
                let mut whole = vec![0; (to - from) as usize];
                self.read_whole(area, from, &mut whole)?;
                let inside = (at - from) as usize;
                part.copy_from_slice(&whole[inside..inside + part.len()]);
            }
            at += part.len() as u64;
        }
        Ok(())
    }

    fn fills(&mut self, area: usize) -> anyhow::Result<Vec<([u64; 2], u8)>> {
        let size = self.areas[area].size_bytes;
        let content = self.opened[area].content_ranges(0, size).map_err(|error| unable(&self.name, error))?;
        let holes = emmc_clone::Ranges::of(content).gaps(0, size);
        Ok(holes.as_slice().iter().map(|hole| (*hole, 0)).collect())
    }

    fn write(&mut self, area: usize, offset_bytes: u64, data: &[u8]) -> anyhow::Result<()> {
        let mut at = offset_bytes;
        for part in data.chunks(REQUEST_BYTES) {
            let [from, to] = self.around(area, at, part.len());
            if (to - from) as usize == part.len() {
                self.write_whole(area, at, part)?;
            } else {
                let part_of_unit = Arc::clone(&self.part_of_unit);
                let _alone = part_of_unit.lock().unwrap_or_else(PoisonError::into_inner);
                let mut whole = vec![0; (to - from) as usize];
                self.read_whole(area, from, &mut whole)?;
                let inside = (at - from) as usize;
                whole[inside..inside + part.len()].copy_from_slice(part);
                self.write_whole(area, from, &whole)?;
            }
            at += part.len() as u64;
        }
        Ok(())
    }

    fn discard(&mut self, area: usize, range: [u64; 2]) -> anyhow::Result<bool> {
        let shape = self.opened[area].shape();
        let unit = u64::from(shape.sector_bytes);
        if !shape.can_trim {
            return Ok(false);
        }
        let [mut at, end] = [range[0].next_multiple_of(unit), range[1] / unit * unit];
        while at < end {
            let bytes = DISCARD_BYTES.min(end - at);
            let request = BlockRequest { op: BlockOp::Trim, offset_bytes: at, bytes, through: false, tag: 0 };
            if self.complete(area, request)?.is_some() {
                // Accepted by its queue, refused by the device.
                return Ok(false);
            }
            at += bytes;
        }
        Ok(true)
    }

    fn sync(&mut self) -> anyhow::Result<()> {
        for area in 0..self.opened.len() {
            let request = BlockRequest { op: BlockOp::Flush, offset_bytes: 0, bytes: 0, through: false, tag: 0 };
            if let Some(why) = self.complete(area, request)? {
                return Err(unable(&self.name, format!("flush: {why}")));
            }
        }
        Ok(())
    }
}
