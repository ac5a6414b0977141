//! Registers of an SD card that travel as data: SCR, SD status, tuning block.

use emmc_regs::ssr;
use emmc_units::Instant;

use crate::card::bus_mode::TUNING_X4;
use crate::card::{Card, Reply};

impl Card {
    /// Bytes of a register go to the host in one block.
    pub(super) fn send_register(&mut self, bytes: Vec<u8>, now: Instant) -> Reply {
        let r1 = self.r1();
        let length = bytes.len();
        let data = self.start_sending(bytes, length, now);
        Self::answer_with(r1, data)
    }

    /// ACMD13: the SD status, with the current bus width.
    pub(super) fn send_sd_status(&mut self, now: Instant) -> Reply {
        let mut status = self.device.registers().ssr;
        ssr::DAT_BUS_WIDTH.set(&mut status, if self.sd.four_lines { 2 } else { 0 });
        self.send_register(status.to_vec(), now)
    }

    /// CMD19: the same block as that of eMMC with four lines.
    pub(super) fn send_sd_tuning_block(&mut self, now: Instant) -> Reply {
        self.send_register(TUNING_X4.to_vec(), now)
    }
}
