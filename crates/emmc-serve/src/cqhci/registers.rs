//! The command queueing host controller's registers: one table.
//!
//! Source: eMMC Command Queuing Host Controller Interface 5.1 (JESD84-B51 annex B); Linux `drivers/mmc/host/cqhci.h`
//! for the names that drivers know.

use crate::sdhci::register_file::registers;

registers! {
    VERSION         0x00 4 Rw  0 0x0000_0510;
    CAPABILITIES    0x04 4 Rw  0 0x0000_30c8;
    CONFIGURATION   0x08 4 Rw  0x0000_1101 0;
    CONTROL         0x0c 4 Rw  0 0;
    INT_STATUS      0x10 4 W1c 0x0000_001f 0;
    STATUS_ENABLE   0x14 4 Rw  0x0000_001f 0;
    SIGNAL_ENABLE   0x18 4 Rw  0x0000_001f 0;
    COALESCING      0x1c 4 Rw  0x8000_1f7f 0;
    LIST_BASE       0x20 4 Rw  0xffff_ffff 0;
    LIST_BASE_HIGH  0x24 4 Rw  0xffff_ffff 0;
    DOORBELL        0x28 4 Rw  0 0;
    COMPLETED       0x2c 4 W1c 0xffff_ffff 0;
    DEVICE_QUEUE    0x30 4 Rw  0 0;
    DEVICE_PENDING  0x34 4 Rw  0 0;
    TASK_CLEAR      0x38 4 Rw  0 0;
    SEND_STATUS_1   0x40 4 Rw  0x000f_ffff 0x0001_1000;
    SEND_STATUS_2   0x44 4 Rw  0x0000_ffff 0;
    DIRECT_RESPONSE 0x48 4 Rw  0 0;
    ERROR_MASK      0x50 4 Rw  0xffff_ffff 0xfdf9_a080;
    TASK_ERROR      0x54 4 Rw  0 0;
    RESPONSE_INDEX  0x58 4 Rw  0 0;
    RESPONSE        0x5c 4 Rw  0 0;
}

/// Unit: bytes.
pub(crate) const SIZE: usize = 0x100;

/// Bits of CONFIGURATION.
pub(crate) mod configuration {
    pub(crate) const ENABLE: u32 = 1;
    pub(crate) const TASK_128: u32 = 1 << 8;
    pub(crate) const DIRECT: u32 = 1 << 12;
}

/// Bits of CONTROL.
pub(crate) mod control {
    pub(crate) const HALT: u32 = 1;
    pub(crate) const CLEAR_ALL: u32 = 1 << 8;
}

/// Bits of INT_STATUS, STATUS_ENABLE and SIGNAL_ENABLE.
pub(crate) mod int {
    pub(crate) const HALTED: u32 = 1;
    pub(crate) const TASK_COMPLETE: u32 = 1 << 1;
    pub(crate) const RESPONSE_ERROR: u32 = 1 << 2;
    pub(crate) const TASK_CLEARED: u32 = 1 << 3;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_covers_each_byte_once() {
        assert_eq!(crate::sdhci::register_file::faults(TABLE, SIZE as u16), [] as [&str; 0]);
    }
}
