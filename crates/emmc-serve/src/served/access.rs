//! A served card's areas as block devices: past the commands, with the card's rules of protection and its times.

use std::ops::Range;
use std::time::Instant as Wall;

use emmc_card::card::Card;
use emmc_card::device::{Area, StorageError, WriteFlags};
use emmc_card::ftl::{FtlError, TrimKind};
use emmc_units::Instant;

use super::Served;
use crate::block::{Block, BlockError, Export, Mapped, Request};

/// Unit: bytes.
const SECTOR: u64 = 512;
/// What is written at a time where zeros must be written out.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A run of whole sectors inside an area.
#[derive(Clone, Copy, Debug)]
struct Run {
    area: Area,
    lba: u64,
    sectors: u64,
}

/// The name by which clients know an area; `None`: it is not for them.
fn name(area: Area) -> Option<String> {
    match area {
        Area::User => Some("user".into()),
        Area::Boot(number) => Some(format!("boot{number}")),
        Area::Gp(number) => Some(format!("gp{}", number + 1)),
        Area::Rpmb => None,
    }
}

/// A refusal of the storage as clients are told it.
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

/// The same for what is to be changed.
fn writable(card: &Card, area: Area, offset: u64, bytes: u64) -> Result<Run, BlockError> {
    let run = run(card, area, offset, bytes)?;
    if card.is_write_protected(area, run.lba, run.sectors) { Err(BlockError::ReadOnly) } else { Ok(run) }
}

fn write(card: &mut Card, run: Run, data: &[u8], through: bool, now: Instant) -> Result<Instant, StorageError> {
    let flags = WriteFlags { reliable: false, force: through };
    let device = card.device_mut();
    Ok(device.write(run.area, run.lba, run.sectors as u32, flags, Some(data), now)?.done)
}

/// Zeros, by giving the sectors up where that makes them read so.
fn zero(card: &mut Card, run: Run, through: bool, now: Instant) -> Result<Instant, StorageError> {
    if card.device().erased_byte() == 0 {
        return Ok(card.device_mut().trim(run.area, run.lba, run.sectors, TrimKind::Trim, now)?.done);
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

/// Does a request; answers when the card is done with it.
fn carry_out(card: &mut Card, area: Area, request: Request<'_>, now: Instant) -> Result<Instant, BlockError> {
    let result = match request {
        Request::Read { offset, into } => {
            let run = run(card, area, offset, into.len() as u64)?;
            let read = card.device_mut().read(area, run.lba, run.sectors as u32, Some(into), now);
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
            let trimmed = card.device_mut().trim(area, run.lba, run.sectors, TrimKind::Trim, now);
            trimmed.map(|done| done.done)
        }
        Request::Flush => card.device_mut().flush(now).map(|done| done.done),
    };
    result.map_err(|error| block_error(&error))
}

/// Which of a run's units hold data, neighbours alike joined.
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
            Some(Export { name: name(area)?, area, size_bytes, preferred_bytes, erased_byte, read_only })
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
        let done = carry_out(&mut inner.card, area, request, now)?;
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

    fn due(&self, at: Instant) -> Option<Wall> {
        self.wall(at)
    }
}

#[cfg(test)]
mod tests {
    use emmc_card::device::DeviceOptions;
    use emmc_card::nand::Keep;
    use emmc_card::profile::shipped;

    use super::*;
    use crate::served::ServedOptions;

    fn served(delays: bool) -> Served {
        let profile = shipped::named("generic-8g").unwrap();
        let card = Card::new(profile, DeviceOptions { keep: Keep::Data, seed: 1 }).unwrap();
        Served::new(card, Instant::START, ServedOptions { delays, dilation: 1 })
    }

    fn read(served: &Served, offset: u64, bytes: usize) -> Vec<u8> {
        let mut into = vec![1; bytes];
        served.submit(Area::User, Request::Read { offset, into: &mut into }).unwrap();
        into
    }

    #[test]
    fn what_is_written_is_read_and_mapped_until_it_is_trimmed() {
        let served = served(false);
        let write = Request::Write { offset: 8192, data: &[7; 6144], through: false };
        served.submit(Area::User, write).unwrap();
        assert_eq!(read(&served, 8192, 6144), [7; 6144]);
        let runs = served.mapped(Area::User, 4096..24576).unwrap();
        let runs: Vec<_> = runs.iter().map(|run| (run.range.clone(), run.mapped)).collect();
        assert_eq!(runs, [(4096..8192, false), (8192..16384, true), (16384..24576, false)]);
        served.submit(Area::User, Request::Trim { offset: 8192, bytes: 4096 }).unwrap();
        served.submit(Area::User, Request::Zero { offset: 12288, bytes: 512, through: true }).unwrap();
        assert_eq!(read(&served, 8192, 4608), [0; 4608]);
        assert_eq!(read(&served, 12800, 1536), [7; 1536]);
    }

    #[test]
    fn what_lies_outside_or_is_no_sector_is_refused() {
        let served = served(false);
        let size = served.exports()[0].size_bytes;
        let mut into = [0; 512];
        for (offset, area) in [(size, Area::User), (u64::MAX - 511, Area::User), (0, Area::Gp(0)), (0, Area::Rpmb)] {
            let error = served.submit(area, Request::Read { offset, into: &mut into }).unwrap_err();
            assert!(matches!(error, BlockError::OutOfRange { .. }), "{area:?} {offset}: {error}");
        }
        let error = served.submit(Area::User, Request::Trim { offset: 100, bytes: 512 }).unwrap_err();
        assert_eq!(error, BlockError::Misaligned { range: 100..612 });
    }

    #[test]
    fn without_delays_time_jumps_and_with_them_one_waits() {
        let write = || Request::Write { offset: 0, data: &[7; 4096], through: true };
        let eager = served(false);
        let done = eager.submit(Area::User, write()).unwrap();
        assert!(eager.now() >= done && eager.due(done).is_none());
        let real = served(true);
        let far = Instant(3_600_000_000_000);
        assert!(real.due(far).is_some_and(|wall| wall > Wall::now()));
    }

    #[test]
    fn without_power_nothing_is_answered_and_what_was_written_comes_back_with_it() {
        let served = served(false);
        served.submit(Area::User, Request::Write { offset: 0, data: &[7; 4096], through: true }).unwrap();
        served.cut_power().unwrap();
        let mut into = [0; 512];
        let error = served.submit(Area::User, Request::Read { offset: 0, into: &mut into }).unwrap_err();
        assert_eq!(error, BlockError::PowerLost);
        served.restore_power().unwrap();
        assert_eq!(read(&served, 0, 4096), [7; 4096]);
    }
}
