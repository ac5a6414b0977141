//! Identification and selection: CMD0, CMD1, CMD2, CMD3, CMD7, CMD15, and the CSD.

use emmc_regs::command::Response;
use emmc_regs::csd::Csd;
use emmc_regs::ocr::Ocr;
use emmc_regs::r1::State;
use emmc_units::Instant;

use super::legality::Phase;
use super::{Card, Reply};

/// All supply windows of an OCR.
const WINDOWS: u32 = Ocr::EMMC_WINDOWS.0;

impl Card {
    /// CMD0: back to idle.
    pub(super) fn go_idle(&mut self, now: Instant) -> Reply {
        self.go_pre_idle(now);
        if self.phase == Phase::PreIdle {
            self.phase = Phase::In(State::Idle);
        }
        Reply::SILENT
    }

    /// CMD0 with 0xF0F0F0F0: back to the state in which boot can be requested.
    pub(super) fn go_pre_idle(&mut self, now: Instant) -> Reply {
        self.software_reset(now);
        Reply::SILENT
    }

    /// CMD1. Without a window it is a query: the card stays idle and never reports ready. U-Boot and EDK2 stop polling
    /// at the ready bit and send CMD2 next, which an idle card refuses. With a window that the card does not support,
    /// the card becomes inactive.
    pub(super) fn send_op_cond(&mut self, host: Ocr, now: Instant) -> Reply {
        let own = Ocr(self.device.stored_registers().ocr);
        let is_query = host.0 & WINDOWS == 0;
        if !is_query && host.0 & own.0 & WINDOWS == 0 {
            self.phase = Phase::Inactive;
            return Reply::SILENT;
        }
        if is_query || now < self.initialized_at {
            return Reply::with(Response::R3(own));
        }
        self.phase = Phase::In(State::Ready);
        Reply::with(Response::R3(own.with(Ocr::POWERED_UP)))
    }

    /// CMD2: there is no other card on the bus, so this one is identified.
    pub(super) fn all_send_cid(&mut self) -> Reply {
        self.phase = Phase::In(State::Ident);
        Reply::with(Response::R2(self.device.stored_registers().cid))
    }

    /// CMD3: the host gives the card its address.
    pub(super) fn set_relative_addr(&mut self, rca: u16) -> Reply {
        let reply = self.answer();
        self.rca = rca;
        self.phase = Phase::In(State::Stby);
        reply
    }

    /// CMD7: this card's address selects it, any other deselects it and ends its transfer.
    pub(super) fn select_card(&mut self, rca: u16) -> Reply {
        let Phase::In(state) = self.phase else { return Reply::SILENT };
        let ours = rca == self.rca && rca != 0;
        match (state, ours) {
            (State::Stby, true) => {
                let reply = self.answer();
                self.phase = Phase::In(State::Tran);
                reply
            }
            (State::Dis, true) => {
                let r1 = self.r1();
                self.phase = Phase::In(State::Prg);
                Self::answer_busy(r1, self.busy_until)
            }
            (State::Tran | State::Data, false) => {
                self.end_transfer();
                self.phase = Phase::In(State::Stby);
                Reply::SILENT
            }
            (State::Prg, false) => {
                self.phase = Phase::In(State::Dis);
                Reply::SILENT
            }
            _ => Reply::SILENT,
        }
    }

    /// CMD15: the card is inactive until a power cycle.
    pub(super) fn go_inactive(&mut self) -> Reply {
        self.transfer = None;
        self.phase = Phase::Inactive;
        Reply::SILENT
    }

    /// The CSD.
    pub(super) fn csd(&self) -> Csd {
        Csd::new(self.kind, self.device.stored_registers().csd)
    }
}
