//! A served card's areas as block devices: below the command level, with the card's protection rules and times.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Instant as Wall;

use emmc_card::card::Card;
use emmc_card::device::{Area, StorageError, WriteFlags};
use emmc_card::ftl::{FtlError, TrimKind};
use emmc_card::nand::Landing;
use emmc_units::Instant;

use super::Served;
use crate::block::{Block, BlockError, Export, Mapped, Request};

/// Unit: bytes.
const SECTOR: u64 = 512;
/// Shorter writes arrive together with others, and are copied. Unit: bytes.
const LANDING_BYTES_MIN: usize = 64 << 10;
/// Written repeatedly where zeros must be written out.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Whole sectors inside an area.
#[derive(Clone, Copy, Debug)]
struct Run {
    area: Area,
    lba: u64,
    sectors: u64,
}

/// A storage error as a block error.
pub(super) fn block_error(error: &StorageError) -> BlockError {
    match error {
        StorageError::OutOfRange { lba, sectors, size, .. } => {
            BlockError::OutOfRange { range: lba * SECTOR..(lba + sectors) * SECTOR, size_bytes: size * SECTOR }
        }
        StorageError::Ftl(FtlError::PowerLost) => BlockError::PowerLost,
        StorageError::Ftl(FtlError::WornOut) => BlockError::ReadOnly,
        StorageError::Ftl(FtlError::Uncorrectable { .. }) => BlockError::Medium(error.to_string()),
    }
}

/// The sectors of a range of bytes.
fn run(card: &Card, area: Area, offset: u64, bytes: u64) -> Result<Run, BlockError> {
    let size_bytes = card.device().sectors(area) * SECTOR;
    let range = offset..offset.saturating_add(bytes);
    if range.end > size_bytes || area == Area::Rpmb {
        return Err(BlockError::OutOfRange { range, size_bytes });
    }
    if offset % SECTOR != 0 || bytes % SECTOR != 0 {
        return Err(BlockError::Misaligned { range });
    }
    Ok(Run { area, lba: offset / SECTOR, sectors: bytes / SECTOR })
}

/// The same, for writes.
fn writable(card: &Card, area: Area, offset: u64, bytes: u64) -> Result<Run, BlockError> {
    let run = run(card, area, offset, bytes)?;
    if card.is_write_protected(area, run.lba, run.sectors) { Err(BlockError::ReadOnly) } else { Ok(run) }
}

fn write(card: &mut Card, run: Run, data: &[u8], through: bool, now: Instant) -> Result<Instant, StorageError> {
    let flags = WriteFlags { reliable: false, force: through };
    let device = card.direct();
    Ok(device.write(run.area, run.lba, run.sectors as u32, flags, Some(data), now)?.done)
}

/// Zeros: deallocates the sectors if they then read as zeros.
fn zero(card: &mut Card, run: Run, through: bool, now: Instant) -> Result<Instant, StorageError> {
    if card.device().erased_byte() == 0 {
        let done = card.direct().trim(run.area, run.lba, run.sectors, TrimKind::Trim, now)?.done;
        // A trim has no FUA: its records in memory are flushed.
        return Ok(if through { done.max(card.direct().flush(done)?.done) } else { done });
    }
    let (mut at, end, mut done) = (run.lba, run.lba + run.sectors, now);
    while at < end {
        let sectors = (end - at).min(ZEROS.len() as u64 / SECTOR);
        let part = Run { lba: at, sectors, ..run };
        done = write(card, part, &ZEROS[..(sectors * SECTOR) as usize], through, done)?;
        at += sectors;
    }
    Ok(done)
}

/// Performs a request; returns when the card has finished it.
fn carry_out(card: &mut Card, area: Area, request: Request<'_>, now: Instant) -> Result<Instant, BlockError> {
    let result = match request {
        Request::Read { offset, into } => {
            let run = run(card, area, offset, into.len() as u64)?;
            let read = card.direct().read(area, run.lba, run.sectors as u32, Some(into), now);
            read.map(|done| done.done)
        }
        Request::Write { offset, data, through } => {
            let run = writable(card, area, offset, data.len() as u64)?;
            write(card, run, data, through, now)
        }
        Request::Zero { offset, bytes, through } => {
            let run = writable(card, area, offset, bytes)?;
            zero(card, run, through, now)
        }
        Request::Trim { offset, bytes } => {
            let run = writable(card, area, offset, bytes)?;
            let trimmed = card.direct().trim(area, run.lba, run.sectors, TrimKind::Trim, now);
            trimmed.map(|done| done.done)
        }
        Request::Flush => card.direct().flush(now).map(|done| done.done),
    };
    result.map_err(|error| block_error(&error))
}

/// Which units of a run hold data, equal neighbours merged.
fn mapped(card: &Card, run: Run) -> Vec<Mapped> {
    let unit = u64::from(card.device().nand().geometry().unit_bytes) / SECTOR;
    let mut runs: Vec<Mapped> = Vec::new();
    let (mut at, end) = (run.lba, run.lba + run.sectors);
    while at < end {
        let next = ((at / unit + 1) * unit).min(end);
        let mapped = card.device().holds(run.area, at);
        match runs.last_mut() {
            Some(last) if last.mapped == mapped => last.range.end = next * SECTOR,
            _ => runs.push(Mapped { range: at * SECTOR..next * SECTOR, mapped }),
        }
        at = next;
    }
    runs
}

impl Block for Served {
    fn exports(&self) -> Vec<Export> {
        let inner = self.inner();
        let device = inner.card.device();
        let (preferred_bytes, erased_byte) = (device.nand().geometry().unit_bytes, device.erased_byte());
        let export = |area: Area| {
            let (size_bytes, read_only) = (device.sectors(area) * SECTOR, inner.card.is_read_only(area));
            (area != Area::Rpmb).then(|| Export {
                name: area.to_string(),
                area,
                size_bytes,
                preferred_bytes,
                erased_byte,
                read_only,
            })
        };
        device.areas().into_iter().filter_map(export).collect()
    }

    fn submit(&self, area: Area, request: Request<'_>) -> Result<Instant, BlockError> {
        let mut inner = self.inner();
        let now = self.now();
        inner.card.device_mut().nand_mut().passed(now);
        if inner.card.is_locked() {
            return Err(BlockError::Medium("the card is locked by a password".into()));
        }
        let reads = matches!(request, Request::Read { .. });
        if !reads {
            inner.catch_up(now)?;
        }
        inner.serves(now);
        let result = carry_out(&mut inner.card, area, request, now);
        // Below the commands, registers change only with an error: worn out, power lost.
        let kept = inner.commit(result.is_err(), now);
        let done = result?;
        if !reads {
            kept?;
        }
        drop(inner);
        let mut clock = self.clock();
        if !clock.has_delays() {
            clock.jump_to(done);
        }
        Ok(done)
    }

    fn mapped(&self, area: Area, range: Range<u64>) -> Result<Vec<Mapped>, BlockError> {
        let inner = self.inner();
        let bytes = range.end.saturating_sub(range.start);
        Ok(mapped(&inner.card, run(&inner.card, area, range.start, bytes)?))
    }

    fn landing(&self, area: Area, offset: u64, bytes: usize) -> Option<Landing> {
        let mut inner = self.inner();
        let unit_bytes = inner.card.device().nand().geometry().unit_bytes as usize;
        let is_whole = offset % unit_bytes as u64 == 0 && bytes % unit_bytes == 0;
        if bytes < LANDING_BYTES_MIN || !is_whole || writable(&inner.card, area, offset, bytes as u64).is_err() {
            return None;
        }
        inner.card.device_mut().nand_mut().land((bytes / unit_bytes) as u32)
    }

    fn end_landing(&self, landing: Landing) {
        self.inner().card.device_mut().nand_mut().end_landing(landing);
    }

    fn power_cuts(&self) -> u64 {
        self.power_cuts.load(Ordering::Relaxed)
    }

    fn due(&self, at: Instant) -> Option<Wall> {
        self.wall(at)
    }

    fn answered(&self, at: Instant) {
        self.count_answer(at);
    }
}
