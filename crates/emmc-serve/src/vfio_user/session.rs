//! A client's session: messages in, replies out, over one function. It does not depend on sockets and clocks.

use std::fs::File;
use std::os::fd::OwnedFd;

use emmc_card::card::Card;
use emmc_units::Instant;

use super::irqs::{INDICES, Irqs};
use super::protocol::{
    CAPABILITIES, Errno, HEADER_BYTES, Header, Request, TRANSFER_MAX, WRITE_BYTES, put_u32, put_u64, reply, reply_error,
};
use crate::guest_memory::GuestRam;
use crate::pci::{BAR_BYTES, CONFIG_BYTES, Function};
use crate::sdhci::RequestAccount;

/// Regions of a PCI device: six BARs, ROM, configuration, VGA.
const REGIONS: u32 = 9;
const BAR_0: u32 = 0;
const CONFIG: u32 = 7;
/// Region flags: readable, writable.
const READ_WRITE: u32 = 3;
/// Device flags: can be reset, is PCI.
const DEVICE: u32 = 3;

/// The stream cannot be parsed any more: the client must be disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a vfio-user message of impossible type or length")]
pub struct Malformed;

/// The length of the message at the start of some bytes, if they are enough to say.
///
/// Errors: an invalid header.
pub(super) fn message_bytes(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    if bytes.len() < HEADER_BYTES {
        return Ok(None);
    }
    let header = Header::parse(bytes).filter(Header::is_sound).ok_or(Malformed)?;
    Ok(Some(header.size))
}

/// A function and the settings of its client.
#[derive(Debug)]
pub struct Session {
    function: Function,
    ram: GuestRam,
    irqs: Irqs,
    agreed: bool,
    /// Answers to be sent.
    out: Vec<u8>,
}

impl Session {
    /// A client that has not sent anything yet, with a function after reset.
    pub fn new(function: Function) -> Self {
        let irqs = Irqs::new(function.identity().has_msi());
        Self { function: function.with_accounts(), ram: GuestRam::default(), irqs, agreed: false, out: Vec::new() }
    }

    /// Whether a version was agreed on.
    pub(super) fn is_agreed(&self) -> bool {
        self.agreed
    }

    /// Pending replies; the sender clears them.
    pub fn answers(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// When the function must be serviced next without a message.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.function.poll_timeout()
    }

    /// Whether the function is to be serviced now.
    pub fn wants_service(&self) -> bool {
        self.function.wants_service()
    }

    /// Services the function with the card; [`Session::signal`] must follow once the changes are recorded.
    pub fn service(&mut self, card: &mut Card, now: Instant) {
        self.function.service(card, &self.ram, now);
    }

    /// The requests that have ended since the last call.
    pub(super) fn take_accounts(&mut self) -> Vec<RequestAccount> {
        self.function.take_accounts()
    }

    /// The changes of the last service could not be recorded: the guest gets none of their results.
    pub fn abandon(&mut self) {
        self.function.abandon();
    }

    /// Whether the function's interrupt is asserted.
    pub fn interrupt(&self) -> bool {
        self.function.interrupt()
    }

    /// Signals the function's interrupt to the client.
    pub fn signal(&mut self) {
        self.irqs.update(self.function.interrupt());
    }

    /// Takes one whole message with the descriptors that came with it.
    ///
    /// Errors: not a message; the client must be disconnected.
    pub fn receive(&mut self, message: &[u8], fds: Vec<OwnedFd>, now: Instant) -> Result<(), Malformed> {
        let header = Header::parse(message).filter(Header::is_sound).ok_or(Malformed)?;
        let payload = message.get(HEADER_BYTES..header.size).ok_or(Malformed)?;
        let done = Request::parse(header.command, payload).and_then(|request| match request {
            Request::Version { .. } => self.execute(&header, request, fds, now),
            _ if !self.agreed => Err(Errno::Invalid),
            _ => self.execute(&header, request, fds, now),
        });
        if let (Err(error), true) = (done, header.wants_reply()) {
            reply_error(&mut self.out, &header, error);
        }
        Ok(())
    }

    fn execute(&mut self, header: &Header, request: Request<'_>, fds: Vec<OwnedFd>, now: Instant) -> Result<(), Errno> {
        match request {
            Request::Version { major, minor } => return self.version(header, major, minor),
            Request::RegionRead { offset, region, count } => return self.read(header, region, offset, count, now),
            Request::RegionWrite { offset, region, data } => {
                self.write(region, offset, data, now)?;
                let count = data.len() as u32;
                self.answer(header, |out| {
                    put_u64(out, &[offset]);
                    put_u32(out, &[region, count]);
                });
                return Ok(());
            }
            Request::DmaUnmap { flags, address, size } => {
                self.ram.unmap(flags, address, size)?;
                self.answer(header, |out| {
                    put_u32(out, &[24, flags]);
                    put_u64(out, &[address, size]);
                });
                return Ok(());
            }
            Request::DeviceInfo => {
                self.answer(header, |out| put_u32(out, &[16, DEVICE, REGIONS, INDICES]));
                return Ok(());
            }
            Request::RegionInfo { index } => return self.region_info(header, index),
            Request::IrqInfo { index } if index < INDICES => {
                let (flags, count) = self.irqs.info(index);
                self.answer(header, |out| put_u32(out, &[16, flags, index, count]));
                return Ok(());
            }
            Request::IrqInfo { .. } => return Err(Errno::Invalid),
            Request::DmaMap { flags, offset, address, size } => {
                let mut files = fds.into_iter().map(File::from);
                let file = files.next();
                if files.next().is_some() {
                    return Err(Errno::Invalid);
                }
                self.ram.map(flags, offset, address, size, file)?;
            }
            Request::SetIrqs { flags, index, start, count, data } => {
                self.irqs.set(flags, index, start, count, data, fds)?;
            }
            Request::Reset => self.function.reset(),
            Request::WriteMultiple { writes } => {
                for one in writes.chunks_exact(WRITE_BYTES) {
                    if let Some(Request::RegionWrite { offset, region, data }) = Request::one_write(one) {
                        self.write(region, offset, data, now)?;
                    }
                }
            }
        }
        self.answer(header, |_| {});
        Ok(())
    }

    fn answer(&mut self, header: &Header, fill: impl FnOnce(&mut Vec<u8>)) {
        if header.wants_reply() {
            reply(&mut self.out, header, fill);
        }
    }

    /// Errors: another major version.
    fn version(&mut self, header: &Header, major: u16, minor: u16) -> Result<(), Errno> {
        if major != 0 {
            return Err(Errno::NotSupported);
        }
        self.agreed = true;
        self.answer(header, |out| {
            put_u32(out, &[u32::from(minor.min(1)) << 16]);
            out.extend_from_slice(CAPABILITIES);
        });
        Ok(())
    }

    /// Errors: no such region.
    fn region_info(&mut self, header: &Header, index: u32) -> Result<(), Errno> {
        let (flags, size) = match index {
            BAR_0 => (READ_WRITE, BAR_BYTES),
            CONFIG => (READ_WRITE, CONFIG_BYTES),
            other if other < REGIONS => (0, 0),
            _ => return Err(Errno::Invalid),
        };
        self.answer(header, |out| {
            put_u32(out, &[32, flags, index, 0]);
            put_u64(out, &[size as u64, 0]);
        });
        Ok(())
    }

    /// Errors: no such region, beyond its end, a register access of an odd length.
    fn read(&mut self, header: &Header, region: u32, offset: u64, count: u32, now: Instant) -> Result<(), Errno> {
        let at = place(region, offset, count as usize)?;
        // The reply is built in place: guests wait on this path.
        if !header.wants_reply() {
            return Err(Errno::Invalid);
        }
        let (function, out) = (&mut self.function, &mut self.out);
        reply(out, header, |out| {
            put_u64(out, &[offset]);
            put_u32(out, &[region, count]);
            for start in (0..count as usize).step_by(8) {
                let bytes = (count as usize - start).min(8);
                let value = match region {
                    BAR_0 => function.read(at + start, bytes, now),
                    _ => function.read_config(at + start, bytes),
                };
                out.extend_from_slice(&value.to_le_bytes()[..bytes]);
            }
        });
        Ok(())
    }

    /// Errors: as for reads.
    fn write(&mut self, region: u32, offset: u64, data: &[u8], now: Instant) -> Result<(), Errno> {
        let at = place(region, offset, data.len())?;
        for (start, part) in (at..).step_by(8).zip(data.chunks(8)) {
            let mut raw = [0; 8];
            raw[..part.len()].copy_from_slice(part);
            let value = u64::from_le_bytes(raw);
            match region {
                BAR_0 => self.function.write(start, part.len(), value, now),
                _ => self.function.write_config(start, part.len(), value),
            }
        }
        Ok(())
    }
}

/// The place of an access in a region. Registers are accessed by 1, 2, 4 or 8 bytes; configuration by any number.
///
/// Errors: no such region, beyond its end, another length.
fn place(region: u32, offset: u64, count: usize) -> Result<usize, Errno> {
    let (size, fits) = match region {
        BAR_0 => (BAR_BYTES, matches!(count, 1 | 2 | 4 | 8)),
        CONFIG => (CONFIG_BYTES, (1..=TRANSFER_MAX).contains(&count)),
        _ => return Err(Errno::Invalid),
    };
    let at = usize::try_from(offset).map_err(|_| Errno::Invalid)?;
    let inside = at.checked_add(count).is_some_and(|end| end <= size);
    if inside && fits { Ok(at) } else { Err(Errno::Invalid) }
}
