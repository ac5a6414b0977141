//! A virtual card as a host configures it: identified and selected, one command after the other.
//!
//! Absent on purpose: data of sectors (`SimTarget`), and which commands make sense.

use emmc_card::card::{Card, Reply};
use emmc_port::{Approved, ApprovedErase, CommandPort, PortError};
use emmc_regs::command::{Response, Switch, SwitchAccess};
use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};
use emmc_regs::ocr::Ocr;
use emmc_regs::r1::R1;
use emmc_regs::{Area, CardKind};
use emmc_units::{Instant, Nanos};

/// Between two commands.
const PAUSE: Nanos = Nanos::from_micros(10);
/// CMD1 is repeated this often, a millisecond apart.
const TRIES: u32 = 100_000;

/// The address that the host gives it.
pub(crate) const RCA: u32 = 1 << 16;

/// A card in memory that takes approved commands.
#[derive(Debug)]
pub struct CommandTarget {
    card: Card,
    now: Instant,
}

impl CommandTarget {
    /// Takes over a powered card.
    ///
    /// Errors: it cannot be identified.
    pub fn new(mut card: Card, mut now: Instant) -> Result<Self, PortError> {
        identify(&mut card, &mut now)?;
        Ok(Self { card, now })
    }

    /// The card.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// The card, for inspection and ageing, and its time.
    pub fn into_card(self) -> (Card, Instant) {
        (self.card, self.now)
    }

    /// The card and its clock, for commands to it.
    pub(crate) fn parts(&mut self) -> (&mut Card, &mut Instant) {
        (&mut self.card, &mut self.now)
    }

    /// Power is lost and returns.
    ///
    /// Errors: it cannot be identified.
    pub fn power_cycle(&mut self) -> Result<(), PortError> {
        self.card.power_off(self.now);
        self.now = self.card.power_on(self.now).map_err(|error| lost(1, &error.to_string()))?;
        identify(&mut self.card, &mut self.now)
    }
}

impl CommandPort for CommandTarget {
    fn ext_csd(&mut self) -> Result<[u8; EXT_CSD_BYTES], PortError> {
        ext_csd(&mut self.card, &mut self.now)
    }

    fn protection(&mut self, address: u32) -> Result<u64, PortError> {
        protection(&mut self.card, &mut self.now, address)
    }

    fn send(&mut self, command: Approved) -> Result<(), PortError> {
        send(&mut self.card, &mut self.now, command)
    }

    fn erase(&mut self, command: ApprovedErase) -> Result<(), PortError> {
        erase(&mut self.card, &mut self.now, command)
    }
}

pub(crate) fn lost(opcode: u8, reason: &str) -> PortError {
    PortError::Lost { opcode, reason: reason.into() }
}

/// Sends a command and waits until the card is no longer busy.
pub(crate) fn command(card: &mut Card, now: &mut Instant, opcode: u8, argument: u32) -> Result<Reply, PortError> {
    *now = *now + PAUSE;
    card.handle_timeout(*now);
    let reply = card.handle_command(opcode, argument, *now);
    if reply.response == Response::None && !matches!(opcode, 0) {
        return Err(lost(opcode, "the card does not respond"));
    }
    *now = reply.busy_until.map_or(*now, |until| until.max(*now));
    card.handle_timeout(*now);
    Ok(reply)
}

/// From power-up to the state in which it takes commands.
///
/// Errors: it does not respond.
pub fn identify(card: &mut Card, now: &mut Instant) -> Result<(), PortError> {
    command(card, now, 0, 0)?;
    let host = Ocr::VDD_27_36.with(Ocr::SECTOR_MODE).0;
    let ready = (0..TRIES).any(|_| {
        *now = *now + Nanos::from_millis(1);
        matches!(command(card, now, 1, host), Ok(Reply { response: Response::R3(ocr), .. }) if ocr.powered_up())
    });
    if !ready {
        return Err(lost(1, "the card does not become ready"));
    }
    for (opcode, argument) in [(2, 0), (3, RCA), (7, RCA)] {
        command(card, now, opcode, argument)?;
    }
    Ok(())
}

fn read(card: &mut Card, now: &mut Instant, opcode: u8, argument: u32) -> Result<Vec<u8>, PortError> {
    let reply = command(card, now, opcode, argument)?;
    check(opcode, reply.response)?;
    let ready = reply.data.map(|data| data.ready).ok_or_else(|| lost(opcode, "no data"))?;
    *now = ready.max(*now);
    let block = card.poll_data(*now).ok_or_else(|| lost(opcode, "no data"))?;
    *now = block.at.max(*now);
    card.handle_timeout(*now);
    Ok(block.bytes)
}

/// CMD8.
///
/// Errors: no answer.
pub fn ext_csd(card: &mut Card, now: &mut Instant) -> Result<[u8; EXT_CSD_BYTES], PortError> {
    read(card, now, 8, 0)?.try_into().map_err(|_| lost(8, "another length"))
}

/// CMD31, the first group in the lowest bits.
///
/// Errors: refused, no answer.
pub fn protection(card: &mut Card, now: &mut Instant, address: u32) -> Result<u64, PortError> {
    let bytes: [u8; 8] = read(card, now, 31, address)?.try_into().map_err(|_| lost(31, "another length"))?;
    Ok(u64::from_be_bytes(bytes))
}

/// Has the following commands go to an area, as the kernel does before each one of the area's own device (CMD6 of
/// PARTITION_ACCESS).
///
/// Errors: refused, no answer.
pub fn select(card: &mut Card, now: &mut Instant, area: Area) -> Result<(), PortError> {
    let value = ext_csd(card, now)?[reg::PARTITION_CONFIG] & !7 | area.access();
    let switch =
        Switch { access: SwitchAccess::WriteByte, index: reg::PARTITION_CONFIG.offset as u8, value, cmd_set: 0 };
    let reply = command(card, now, 6, switch.encode())?;
    check(6, reply.response)?;
    let status = command(card, now, 13, RCA)?;
    check(6, status.response)
}

/// An approved command, and the status after it.
///
/// Errors: refused, no answer.
pub fn send(card: &mut Card, now: &mut Instant, approved: Approved) -> Result<(), PortError> {
    let opcode = approved.opcode();
    let reply = command(card, now, opcode, approved.argument())?;
    check(opcode, reply.response)?;
    let status = command(card, now, 13, RCA)?;
    check(opcode, status.response)
}

/// An approved erase, and the status after it.
///
/// Errors: refused, no answer.
pub fn erase(card: &mut Card, now: &mut Instant, approved: ApprovedErase) -> Result<(), PortError> {
    for (opcode, argument) in approved.commands() {
        let reply = command(card, now, opcode, argument)?;
        check(opcode, reply.response)?;
    }
    let status = command(card, now, 13, RCA)?;
    check(38, status.response)
}

pub(crate) fn check(opcode: u8, response: Response) -> Result<(), PortError> {
    let (Response::R1(r1) | Response::R1b(r1)) = response else { return Ok(()) };
    let errors: Vec<&str> = r1.errors(CardKind::Emmc).map(|bit| bit.name).collect();
    let is_refused = !errors.is_empty() || r1.contains(R1::SWITCH_ERROR);
    if is_refused { Err(PortError::Refused { opcode, status: errors.join(" ") }) } else { Ok(()) }
}
