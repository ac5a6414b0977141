//! Identification of an SD card: CMD8, ACMD41, CMD11, CMD3.

use emmc_regs::command::Response;
use emmc_regs::ocr::Ocr;
use emmc_regs::r1::State;
use emmc_units::Instant;

use crate::card::legality::Phase;
use crate::card::{Card, Reply};

/// The window of CMD8 that SD cards take: 2.7 V to 3.6 V.
const VOLTAGE: u8 = 1;
/// All supply windows of an OCR.
const WINDOWS: u32 = Ocr::VDD_27_36.0;

impl Card {
    /// CMD8: the card echoes a supported voltage, or is silent.
    pub(super) fn send_if_cond(&mut self, voltage: u8, pattern: u8) -> Reply {
        if voltage != VOLTAGE {
            return Reply::SILENT;
        }
        self.sd.knows_host = true;
        Reply::with(Response::R7 { voltage, pattern })
    }

    /// ACMD41: the host announces its supply and high-capacity support; the card reports when it is ready.
    ///
    /// A high-capacity card is never ready for a host without that support.
    pub(super) fn sd_send_op_cond(&mut self, host: Ocr, now: Instant) -> Reply {
        let own = Ocr(self.device.stored_registers().ocr);
        // Support of 1.8 V and the addressing mode are reported only when the card is ready.
        let busy = Ocr(own.0 & WINDOWS);
        if host.0 & WINDOWS == 0 {
            return Reply::with(Response::R3(busy));
        }
        if host.0 & own.0 & WINDOWS == 0 {
            self.phase = Phase::Inactive;
            return Reply::SILENT;
        }
        let is_large = own.contains(Ocr::CCS);
        let host_knows = self.sd.knows_host && host.contains(Ocr::CCS);
        if now < self.initialized_at || is_large && !host_knows {
            return Reply::with(Response::R3(busy));
        }
        let agreed = own.contains(Ocr::S18A) && host.contains(Ocr::S18A) && host_knows && !self.sd.low_voltage;
        self.sd.low_voltage_agreed = agreed;
        self.phase = Phase::In(State::Ready);
        let mut answer = busy.with(Ocr::POWERED_UP);
        for (bit, is_set) in [(Ocr::CCS, is_large), (Ocr::S18A, agreed)] {
            if is_set {
                answer = answer.with(bit);
            }
        }
        Reply::with(Response::R3(answer))
    }

    /// CMD11: switches to 1.8 V, if ACMD41 agreed on that.
    pub(super) fn voltage_switch(&mut self) -> Reply {
        if !self.sd.low_voltage_agreed {
            return self.illegal();
        }
        let reply = self.answer();
        self.sd.low_voltage = true;
        reply
    }

    /// CMD3: the card publishes a new address each time.
    pub(super) fn send_relative_addr(&mut self) -> Reply {
        let r1 = self.r1();
        self.sd.addresses = self.sd.addresses.wrapping_add(1).max(1);
        self.rca = self.sd.addresses;
        self.phase = Phase::In(State::Stby);
        Reply::with(Response::r6(self.rca, r1))
    }
}
