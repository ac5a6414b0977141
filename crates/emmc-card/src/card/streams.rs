//! Transfers other than an area's sectors: RPMB frames, firmware, packed commands, the vendor report, boot.

use emmc_regs::command::SetBlockCount;
use emmc_regs::ext_csd::reg;
use emmc_regs::r1::{R1, State};
use emmc_units::Instant;

use super::bus_mode::Interface;
use super::interrupt::Busy;
use super::legality::Phase;
use super::packed::{self, Packed};
use super::read::{ReadRequest, blocks_of};
use super::rpmb::RpmbStore;
use super::switch_rows::PLAIN;
use super::transfer::{Collecting, Purpose};
use super::{Area, Card, DataBlock, Reply, boot, ffu, secure_write_protect, vendor};
use crate::device::{Device, StorageError, WriteFlags};

const PACKED_FAILURE: u8 = 1 << 3;

/// A card that is sending its boot area.
#[derive(Clone, Debug, Default)]
pub(crate) struct BootStream {
    /// Active; only CMD0 ends it.
    pub(crate) is_active: bool,
    /// It has been sent, at least in part, since the last reset.
    pub(crate) has_run: bool,
    /// The acknowledge that comes before the data.
    pub(crate) acknowledge: Option<DataBlock>,
}

/// RPMB's sectors in a device, with access times.
pub(super) struct RpmbArea<'a> {
    pub(super) device: &'a mut Device,
    pub(super) now: Instant,
}

impl RpmbStore for RpmbArea<'_> {
    fn sectors(&self) -> u64 {
        self.device.sectors(Area::Rpmb)
    }

    fn read(&mut self, lba: u64, out: &mut [u8]) -> Result<(), StorageError> {
        let sectors = (out.len() / 512) as u32;
        let out = self.device.keeps_data().then_some(out);
        self.now = self.device.read(Area::Rpmb, lba, sectors, out, self.now)?.done;
        Ok(())
    }

    fn write(&mut self, lba: u64, data: &[u8]) -> Result<Instant, StorageError> {
        let flags = WriteFlags { reliable: true, force: true };
        let payload = self.device.keeps_data().then_some(data);
        self.now = self.device.write(Area::Rpmb, lba, (data.len() / 512) as u32, flags, payload, self.now)?.done;
        Ok(self.now)
    }

    fn secure_wp(&self) -> Option<bool> {
        secure_write_protect::state(&self.device.stored_registers().ext_csd)
    }

    fn set_secure_wp(&mut self, is_on: bool) {
        secure_write_protect::set(&mut self.device.registers_mut().ext_csd, is_on);
        self.now = self.now + PLAIN;
    }
}

impl Card {
    /// CMD25 to a stream; absent: an ordinary write.
    pub(super) fn write_stream(&mut self, address: u32, count: SetBlockCount, now: Instant) -> Option<Reply> {
        let ext_csd = &self.device.stored_registers().ext_csd;
        let purpose = if self.area() == Area::Rpmb {
            Purpose::Rpmb { reliable: count.reliable_write }
        } else if ffu::is_downloading(ext_csd) && address == ffu::address(ext_csd) {
            Purpose::Firmware
        } else if count.packed {
            Purpose::Packed
        } else {
            return None;
        };
        let r1 = self.r1();
        if purpose == Purpose::Packed {
            packed::begin(&mut self.device.registers_mut().ext_csd);
            self.features.packed_read = None;
            self.note_packed_failure(false);
        }
        let left = blocks_of(count);
        let collecting = Collecting { purpose, block_bytes: 512, left, bytes: Vec::new() };
        let data = self.start_collecting(collecting, State::Rcv, now);
        Some(Self::answer_with(r1, data))
    }

    /// CMD18 of a stream; absent: an ordinary read.
    pub(super) fn read_stream(&mut self, count: SetBlockCount, now: Instant) -> Option<Reply> {
        let (bytes, from) = if self.area() == Area::Rpmb {
            let mut store = RpmbArea { device: &mut self.device, now };
            let answer = self.features.rpmb.answer(count.blocks.max(1), &mut store);
            let from = store.now;
            (answer, from)
        } else if count.packed {
            let Some(packed) =
                self.features.packed_read.take().filter(|packed| packed.blocks() == u32::from(count.blocks))
            else {
                return Some(self.refuse_packed(None));
            };
            match self.read_packed(&packed, now) {
                Ok(read) => (Ok(read.0), read.1),
                Err((entry, error)) => {
                    self.note_error(&error);
                    return Some(self.refuse_packed(Some(entry)));
                }
            }
        } else {
            return None;
        };
        let r1 = self.r1();
        match bytes {
            Ok(bytes) => {
                let data = self.start_sending(bytes, 512, from);
                Some(Self::answer_with(r1, data))
            }
            Err(error) => {
                self.note_error(&error);
                Some(self.answer())
            }
        }
    }

    /// All bytes of a stream have arrived; returns when the card has finished with them.
    pub(super) fn use_stream(&mut self, purpose: Purpose, bytes: &[u8], now: Instant) -> Instant {
        match purpose {
            Purpose::Rpmb { reliable } => {
                let large = self.ext_csd_byte(reg::WR_REL_PARAM) >> 4 & 1 == 1;
                let mut store = RpmbArea { device: &mut self.device, now };
                let received = self.features.rpmb.receive(bytes, reliable, large, &mut store);
                let done = received.map(|()| store.now);
                self.done_or_failed(done, now)
            }
            Purpose::Firmware => {
                let register = &mut self.device.registers_mut().ext_csd;
                self.features.firmware.download(register, bytes);
                now + self.device.bus().write((bytes.len() / 512) as u32)
            }
            Purpose::Packed => self.use_packed(bytes, now),
            // Writes by CMD56 are for vendor tools; this card ignores them.
            _ => now,
        }
    }

    /// A packed transfer: a header of a read, or header and data of a write.
    fn use_packed(&mut self, bytes: &[u8], now: Instant) -> Instant {
        let header_bytes = if self.has_native_sectors() { 4096 } else { 512 };
        let parsed =
            bytes.get(..header_bytes).and_then(|header| Packed::parse(&self.device.stored_registers().ext_csd, header));
        let data = bytes.get(header_bytes..).unwrap_or_default();
        let Some(packed) = parsed else {
            self.fail_packed(None);
            return now;
        };
        let expected = if packed.read { 0 } else { packed.blocks() as usize * 512 };
        if data.len() != expected {
            self.fail_packed(None);
            return now;
        }
        if packed.read {
            self.features.packed_read = Some(packed);
            return now;
        }
        self.features.next_busy = Busy::PackedWrite;
        self.write_packed(&packed, data, now)
    }

    /// Writes the entries in sequence, up to the first that fails.
    fn write_packed(&mut self, packed: &Packed, mut data: &[u8], now: Instant) -> Instant {
        let area = self.area();
        let mut done = now;
        for (number, entry) in packed.entries.iter().enumerate() {
            let blocks = u32::from(entry.count.blocks);
            let (part, rest) = data.split_at(blocks as usize * 512);
            data = rest;
            let lba = match self.sector_at(entry.address) {
                Ok(lba) => lba,
                Err(bits) => {
                    self.status.raise(bits);
                    self.fail_packed(Some(number));
                    return done;
                }
            };
            let faults = (lba..lba + u64::from(blocks)).find_map(|sector| self.write_fault(area, sector));
            if let Some(bits) = faults {
                self.status.raise(bits);
                self.fail_packed(Some(number));
                return done;
            }
            let flags = WriteFlags { reliable: entry.count.reliable_write, force: entry.count.forced_programming };
            let payload = self.device.keeps_data().then_some(part);
            match self.device.write(area, lba, blocks, flags, payload, now) {
                Ok(written) => done = done.max(written.done),
                Err(error) => {
                    self.note_error(&error);
                    self.fail_packed(Some(number));
                    return done;
                }
            }
        }
        done
    }

    /// Reads the entries of a packed read; returns the data and when it is available.
    ///
    /// Errors: which entry failed, and why.
    fn read_packed(&mut self, packed: &Packed, now: Instant) -> Result<(Vec<u8>, Instant), (usize, StorageError)> {
        let area = self.area();
        let mut bytes = vec![0; packed.blocks() as usize * 512];
        let (mut at, mut from) = (0, now);
        for (number, entry) in packed.entries.iter().enumerate() {
            let blocks = entry.count.blocks;
            let end = at + usize::from(blocks) * 512;
            let out_of_range = StorageError::OutOfRange {
                area,
                lba: entry.address.into(),
                sectors: blocks.into(),
                size: self.device.sectors(area),
            };
            let lba = self.sector_at(entry.address).map_err(|_| (number, out_of_range))?;
            let out = self.device.keeps_data().then_some(&mut bytes[at..end]);
            let read = self.device.read(area, lba, blocks.into(), out, now).map_err(|error| (number, error))?;
            // The data is transferred later; this is the time at which it is in memory.
            from = from.max(read.transferred);
            at = end;
        }
        Ok((bytes, from))
    }

    fn refuse_packed(&mut self, entry: Option<usize>) -> Reply {
        self.fail_packed(entry);
        self.answer()
    }

    fn fail_packed(&mut self, entry: Option<usize>) {
        packed::fail(&mut self.device.registers_mut().ext_csd, entry);
        self.note_packed_failure(true);
        if entry.is_none() {
            self.status.raise(R1::ERROR);
        }
    }

    fn note_packed_failure(&mut self, failed: bool) {
        let events = &mut self.device.registers_mut().ext_csd[reg::EXCEPTION_EVENTS_STATUS];
        *events = if failed { *events | PACKED_FAILURE } else { *events & !PACKED_FAILURE };
    }

    /// CMD56: the host reads the vendor report, or writes data that the card ignores.
    pub(super) fn gen_cmd(&mut self, argument: u32, now: Instant) -> Reply {
        if argument & 1 == 0 {
            return self.collect_one(Purpose::Maker, self.block_len as usize, now);
        }
        let mut bytes = vendor::report(&self.device, &self.features.power, argument).to_vec();
        bytes.resize(self.block_len as usize, 0);
        let r1 = self.r1();
        let data = self.start_sending(bytes, self.block_len as usize, now);
        Self::answer_with(r1, data)
    }

    /// CMD0 with 0xFFFFFFFA: the boot area is sent to the host.
    pub(super) fn boot(&mut self, now: Instant) -> Reply {
        let Some((area, sectors)) = boot::source(&self.device.stored_registers().ext_csd) else { return Reply::SILENT };
        let ext_csd = self.device.stored_registers().ext_csd;
        self.interface = Interface::of_boot(boot::bus(&ext_csd));
        self.apply_interface();
        let begin = now.max(self.initialized_at);
        let request = ReadRequest { area, lba: 0, blocks: Some(sectors as u32) };
        let data = self.start_reading(request, begin);
        let at = begin + self.device.bus().command();
        let acknowledge =
            boot::acknowledges(&ext_csd).then(|| DataBlock { bytes: vec![boot::BOOT_ACK], at: at.min(data.ready) });
        self.features.boot = BootStream { is_active: true, has_run: true, acknowledge };
        Reply { data: Some(data), ..Reply::SILENT }
    }

    /// Whether boot can be requested now.
    pub(super) fn can_boot(&self) -> bool {
        self.phase == Phase::PreIdle && boot::source(&self.device.stored_registers().ext_csd).is_some()
    }
}
