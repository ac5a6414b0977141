//! A virtual card in a folder as a place; as a source it stays as it is, as a target every write is recorded.

use std::path::Path;
use std::sync::Arc;

use emmc_card::device;
use emmc_card::nand::StoredContent;
use emmc_port::CardData;
use emmc_serve::block::{Block, BlockError, Request};
use emmc_serve::served::{Served, ServedOptions};
use emmc_serve::store::StoreError;

use super::place::{Area, Place, REQUEST_BYTES};
use super::unable;
use crate::save::Refused;
use crate::virtual_card::{Powered, is_folder};

const SECTOR_BYTES: u32 = 512;
const OPTIONS: ServedOptions = ServedOptions { delays: false, dilation: 1 };

/// A powered virtual card.
#[derive(Clone)]
pub(in crate::commands) struct VirtualPlace {
    name: String,
    served: Arc<Served>,
    areas: Vec<Area>,
    kinds: Vec<device::Area>,
    erased_byte: u8,
}

fn folder(name: &str) -> anyhow::Result<&Path> {
    let folder = name.strip_prefix("sim:").unwrap_or(name);
    if is_folder(folder) {
        return Ok(Path::new(folder));
    }
    let what = "no folder of a virtual card: a new card has no content; make one with `emmclab sim create`";
    Err(unable(name, what))
}

impl VirtualPlace {
    /// Reads a card without changing its folder.
    ///
    /// Errors: no card, damaged.
    pub(in crate::commands) fn source(name: &str) -> anyhow::Result<(Self, CardData)> {
        let folder = folder(name)?;
        let Powered { card, now, .. } = Powered::named(&folder.to_string_lossy(), StoredContent::Data)?;
        let data = card.device().card_data(name);
        Ok((Self::new(name, Served::new(card, now, OPTIONS)), data))
    }

    /// Opens a card for writing; its folder is locked until [`VirtualPlace::finish`].
    ///
    /// Errors: no card, damaged; [`Refused`]: in use.
    pub(super) fn target(name: &str) -> anyhow::Result<Self> {
        let served = Served::open(folder(name)?, OPTIONS).map_err(|error| match error {
            StoreError::InUse(_) => Refused(format!("{error}; nothing was written")).into(),
            StoreError::Io { .. } => unable(name, format!("{error}; nothing was written")),
            error => anyhow::Error::from(error),
        })?;
        Ok(Self::new(name, served))
    }

    /// Powers the card off and stores its state.
    ///
    /// Errors: the system's.
    pub(super) fn finish(&self) -> anyhow::Result<()> {
        self.served.finish().map_err(|error| unable(&self.name, error))
    }

    fn new(name: &str, served: Served) -> Self {
        let exports = served.exports();
        let erased_byte = exports.first().map_or(0, |export| export.erased_byte);
        let area = |export: &emmc_serve::block::Export| Area {
            name: export.name.clone(),
            size_bytes: export.size_bytes,
            sector_bytes: SECTOR_BYTES,
        };
        let areas = exports.iter().map(area).collect();
        let kinds = exports.iter().map(|export| export.area).collect();
        Self { name: name.into(), served: Arc::new(served), areas, kinds, erased_byte }
    }

    fn submit(&self, area: usize, request: Request<'_>) -> anyhow::Result<()> {
        let done = self.served.submit(self.kinds[area], request);
        done.map(drop).map_err(|error| self.failed(area, &error))
    }

    fn failed(&self, area: usize, error: &BlockError) -> anyhow::Error {
        unable(&self.name, format!("{}: {error}", self.areas[area].name))
    }
}

impl Place for VirtualPlace {
    fn another(&self) -> anyhow::Result<Box<dyn Place>> {
        Ok(Box::new(self.clone()))
    }

    fn areas(&self) -> &[Area] {
        &self.areas
    }

    fn read(&mut self, area: usize, offset_bytes: u64, into: &mut [u8]) -> anyhow::Result<()> {
        let mut at = offset_bytes;
        for part in into.chunks_mut(REQUEST_BYTES) {
            let bytes = part.len() as u64;
            self.submit(area, Request::Read { offset: at, into: part })?;
            at += bytes;
        }
        Ok(())
    }

    fn fills(&mut self, area: usize) -> anyhow::Result<Vec<([u64; 2], u8)>> {
        let size = self.areas[area].size_bytes;
        let runs = self.served.mapped(self.kinds[area], 0..size).map_err(|error| self.failed(area, &error))?;
        let unmapped = runs.into_iter().filter(|run| !run.mapped);
        Ok(unmapped.map(|run| ([run.range.start, run.range.end], self.erased_byte)).collect())
    }

    fn write(&mut self, area: usize, offset_bytes: u64, data: &[u8]) -> anyhow::Result<()> {
        let mut at = offset_bytes;
        for part in data.chunks(REQUEST_BYTES) {
            self.submit(area, Request::Write { offset: at, data: part, through: false })?;
            at += part.len() as u64;
        }
        Ok(())
    }

    fn discard(&mut self, area: usize, range: [u64; 2]) -> anyhow::Result<bool> {
        self.submit(area, Request::Trim { offset: range[0], bytes: range[1] - range[0] })?;
        Ok(true)
    }

    fn sync(&mut self) -> anyhow::Result<()> {
        self.submit(0, Request::Flush)
    }
}
