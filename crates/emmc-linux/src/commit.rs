//! The one file that changes a card's configuration: it sends approved commands, and nothing else can.
//!
//! An [`Approved`] exists only where the field table allows the change, and a consent covers it (`emmc_port`); the
//! caller holds the device exclusively (`session`). The same holds for an [`FfuCommand`] of a firmware update, a
//! [`LockCommand`] that sets a password or erases, and an [`RpmbCommand`] that changes the RPMB, whose device nobody
//! else may lock meanwhile. Absent on purpose: which commands, in which order (`emmc_analysis::plan`,
//! `emmc_port::{ffu, lock}`).

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use emmc_port::ffu::{FfuCommand, FfuPort};
use emmc_port::lock::{LockAnswer, LockCommand, LockPort};
use emmc_port::rpmb::{RpmbCommand, RpmbPort};
use emmc_port::{Approved, ApprovedErase, CommandPort, PortError};
use emmc_regs::CardKind;
use emmc_regs::ext_csd::EXT_CSD_BYTES;
use emmc_regs::r1::{R1, State};
use emmc_regs::rpmb::Frame;

use crate::ioctl::{self, BlockRead};
use crate::{ffu_ioctl, lock_ioctl, rpmb_ioctl};

/// What Linux gives every eMMC as its address.
const EMMC_RCA: u16 = 1;
/// How long a card may be busy after a request that only stores or compares a password. Assumed. Unit: ms.
const BUSY_MS_MAX: u64 = 10_000;

/// A card of this machine that takes approved commands.
#[derive(Debug)]
pub struct LivePort {
    device: File,
}

impl LivePort {
    /// Opens a card's whole device; the same path again while a session holds it is the same device.
    ///
    /// Errors: the kernel's.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { device: File::open(path)? })
    }
}

fn lost(opcode: u8, error: &io::Error) -> PortError {
    let reason = match error.raw_os_error() {
        Some(libc::EPERM) => "not permitted; requires CAP_SYS_RAWIO (root), and the whole device".into(),
        Some(libc::ENOTTY) => "not the device of an MMC card".into(),
        _ => error.to_string(),
    };
    PortError::Lost { opcode, reason }
}

impl CommandPort for LivePort {
    fn ext_csd(&mut self) -> Result<[u8; EXT_CSD_BYTES], PortError> {
        ioctl::read_block(&self.device, BlockRead::SEND_EXT_CSD).map_err(|error| lost(8, &error))
    }

    fn protection(&mut self, address: u32) -> Result<u64, PortError> {
        ioctl::read_protection(&self.device, address).map_err(|error| lost(31, &error))
    }

    /// The kernel waits until the card is ready. It may have read the error bits of the status meanwhile, which clears
    /// them: only reading back shows whether the card took the command.
    fn send(&mut self, command: Approved) -> Result<(), PortError> {
        let opcode = command.opcode();
        ioctl::send_approved(&self.device, command).map_err(|error| lost(opcode, &error))?;
        self.check_status(opcode)
    }

    /// The kernel sends the three commands without another one between them.
    fn erase(&mut self, command: ApprovedErase) -> Result<(), PortError> {
        let responses = ioctl::send_erase(&self.device, command).map_err(|error| lost(38, &error))?;
        for ((opcode, _), response) in command.commands().into_iter().zip(responses) {
            refused(opcode, response)?;
        }
        self.check_status(38)
    }
}

impl FfuPort for LivePort {
    fn update(&mut self, command: &FfuCommand<'_>) -> Result<(), PortError> {
        let last = command.steps().last().map_or(6, |step| step.opcode());
        let statuses = ffu_ioctl::send_firmware(&self.device, command).map_err(|error| lost(last, &error))?;
        for (opcode, status) in statuses {
            refused(opcode, status)?;
        }
        self.check_status(last)
    }
}

impl LockPort for LivePort {
    fn status(&mut self) -> Result<R1, PortError> {
        self.card_status().map(R1)
    }

    fn lock(&mut self, command: &LockCommand) -> Result<LockAnswer, PortError> {
        let sent = lock_ioctl::send_lock(&self.device, command, EMMC_RCA);
        let (mut seen, doubt) = match sent {
            Ok([first, then]) => (first | then, None),
            // Whatever the host missed, the card is asked.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIMEDOUT | libc::EILSEQ | libc::EIO)) => {
                (0, Some(error.to_string()))
            }
            Err(error) => return Err(lost(42, &error)),
        };
        let errors = |status: u32| R1(status).errors(CardKind::Emmc).fold(0, |bits, bit| bits | 1 << bit.bit);
        let most = Duration::from_millis(u64::from(command.timeout_ms()).max(BUSY_MS_MAX));
        let begun = Instant::now();
        loop {
            let status = self.card_status()?;
            seen |= status;
            if R1(status).contains(R1::READY_FOR_DATA) && R1(status).state() == Some(State::Tran) {
                return Ok(LockAnswer { status: R1(status | errors(seen)), doubt });
            }
            if begun.elapsed() > most {
                let reason = format!("the card is still busy after {} s", most.as_secs());
                return Err(PortError::Lost { opcode: 42, reason });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl LivePort {
    fn card_status(&self) -> Result<u32, PortError> {
        ioctl::read_status(&self.device, EMMC_RCA).map_err(|error| lost(13, &error))
    }

    fn check_status(&self, opcode: u8) -> Result<(), PortError> {
        refused(opcode, self.card_status()?)
    }
}

/// The RPMB of a card of this machine. No user of the card's other areas prevents its use.
#[derive(Debug)]
pub struct LiveRpmb {
    device: File,
}

impl LiveRpmb {
    /// Opens the RPMB of a card: `/dev/mmcblkNrpmb`. Others that do the same, this program among them, are kept out
    /// while it is open; programs that do not lock it are not.
    ///
    /// Errors: the kernel's; `WouldBlock`: another one has it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let device = File::options().read(true).write(true).open(path)?;
        rustix::fs::flock(&device, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { device })
    }
}

impl RpmbPort for LiveRpmb {
    fn exchange(&mut self, command: &RpmbCommand) -> Result<Vec<Frame>, PortError> {
        let sent = rpmb_ioctl::send_rpmb(&self.device, command);
        let sent = sent.map_err(|error| lost(25, &error))?;
        for (opcode, status) in sent.statuses {
            refused(opcode, status)?;
        }
        Ok(sent.answer)
    }
}

fn refused(opcode: u8, status: u32) -> Result<(), PortError> {
    let errors: Vec<&str> = R1(status).errors(CardKind::Emmc).map(|bit| bit.name).collect();
    if errors.is_empty() { Ok(()) } else { Err(PortError::Refused { opcode, status: errors.join(" ") }) }
}

#[cfg(test)]
mod tests {
    use emmc_port::Consent;
    use emmc_port::ffu::FfuMode;
    use emmc_regs::command::Erase;

    use super::*;

    #[test]
    fn what_is_no_card_takes_nothing() {
        let mut port = LivePort::open(Path::new("/dev/null")).unwrap();
        let error = port.ext_csd().unwrap_err();
        assert_eq!(error, PortError::Lost { opcode: 8, reason: "not the device of an MMC card".into() });
        assert!(matches!(port.send(Approved::free_group(0)), Err(PortError::Lost { opcode: 29, .. })));
        let erase = ApprovedErase::new(Erase::Trim, [0, 7], 300, Consent::CONTENT_LOST).unwrap();
        assert!(matches!(port.erase(erase), Err(PortError::Lost { opcode: 38, .. })));
        assert!(LivePort::open(Path::new("/dev/no such card")).is_err());
    }

    #[test]
    fn what_is_no_card_takes_no_firmware() {
        let mut port = LivePort::open(Path::new("/dev/null")).unwrap();
        let consent = Consent::permanent("1", 1).unwrap();
        let reason = "not the device of an MMC card".to_owned();
        for (mode, opcode) in [(FfuMode::Chunks, 6), (FfuMode::Stay, 25), (FfuMode::Open, 12), (FfuMode::Blocks, 6)] {
            let command = FfuCommand::download(mode, 0xfffa_fff0, &[0; 512], consent).unwrap();
            assert_eq!(port.update(&command), Err(PortError::Lost { opcode, reason: reason.clone() }));
        }
        assert!(port.update(&FfuCommand::leave()).is_err());
    }

    #[test]
    fn what_is_no_rpmb_takes_no_frames() {
        let mut rpmb = LiveRpmb::open(Path::new("/dev/null")).unwrap();
        let error = rpmb.exchange(&RpmbCommand::counter([0; 16])).unwrap_err();
        assert_eq!(error, PortError::Lost { opcode: 25, reason: "not the device of an MMC card".into() });
        let second = LiveRpmb::open(Path::new("/dev/null")).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
        assert!(LiveRpmb::open(Path::new("/dev/no such card")).is_err());
    }
}
