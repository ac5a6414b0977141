//! The SD host controller's registers: one table.
//!
//! Source: SD Host Controller Simplified Specification 4.20, clause 2.1 and 2.2; Linux `drivers/mmc/host/sdhci.h` for
//! the names that drivers know. The preset values divide the base clock of 200 MHz by twice their number. Event
//! registers that force errors (0x50, 0x52) read as zero and act when written.

use super::register_file::registers;

registers! {
    SDMA_ADDRESS        0x00 4 Rw  0xffff_ffff 0;
    BLOCK_SIZE          0x04 2 Rw  0x7fff 0;
    BLOCK_COUNT         0x06 2 Rw  0xffff 0;
    ARGUMENT            0x08 4 Rw  0xffff_ffff 0;
    TRANSFER_MODE       0x0c 2 Rw  0x01ff 0;
    COMMAND             0x0e 2 Rw  0x3fff 0;
    RESPONSE_0          0x10 4 Rw  0 0;
    RESPONSE_1          0x14 4 Rw  0 0;
    RESPONSE_2          0x18 4 Rw  0 0;
    RESPONSE_3          0x1c 4 Rw  0 0;
    BUFFER              0x20 4 Rw  0 0;
    PRESENT_STATE       0x24 4 Rw  0 0;
    HOST_CONTROL        0x28 1 Rw  0xff 0;
    POWER_CONTROL       0x29 1 Rw  0x1f 0;
    BLOCK_GAP_CONTROL   0x2a 1 Rw  0x0d 0;
    WAKEUP_CONTROL      0x2b 1 Rw  0x07 0;
    CLOCK_CONTROL       0x2c 2 Rw  0xffed 0;
    TIMEOUT_CONTROL     0x2e 1 Rw  0x0f 0;
    SOFTWARE_RESET      0x2f 1 Rw  0 0;
    INT_STATUS          0x30 4 W1c 0x17ff_00fb 0;
    INT_ENABLE          0x34 4 Rw  0x17ff_40fb 0;
    SIGNAL_ENABLE       0x38 4 Rw  0x17ff_40fb 0;
    AUTO_CMD_STATUS     0x3c 2 Rw  0 0;
    HOST_CONTROL_2      0x3e 2 Rw  0xf8ff 0;
    CAPABILITIES        0x40 4 Rw  0 0;
    CAPABILITIES_1      0x44 4 Rw  0 0;
    MAX_CURRENT         0x48 4 Rw  0 0;
    MAX_CURRENT_1       0x4c 4 Rw  0 0;
    FORCE_AUTO_CMD      0x50 2 Rw  0 0;
    FORCE_ERROR         0x52 2 Rw  0 0;
    ADMA_ERROR          0x54 1 Rw  0 0;
    ADMA_ADDRESS        0x58 4 Rw  0xffff_ffff 0;
    ADMA_ADDRESS_HIGH   0x5c 4 Rw  0xffff_ffff 0;
    PRESET_INIT         0x60 2 Rw  0 250;
    PRESET_DEFAULT      0x62 2 Rw  0 4;
    PRESET_HIGH_SPEED   0x64 2 Rw  0 2;
    PRESET_SDR12        0x66 2 Rw  0 4;
    PRESET_SDR25        0x68 2 Rw  0 2;
    PRESET_SDR50        0x6a 2 Rw  0 1;
    PRESET_SDR104       0x6c 2 Rw  0 0;
    PRESET_DDR50        0x6e 2 Rw  0 2;
    PRESET_HS400        0x74 2 Rw  0 0;
    SLOT_INT_STATUS     0xfc 2 Rw  0 0;
    HOST_VERSION        0xfe 2 Rw  0 0;
}

/// Unit: bytes.
pub(crate) const SIZE: usize = 0x100;

/// Bits of TRANSFER_MODE.
pub(crate) mod mode {
    pub(crate) const DMA: u16 = 1;
    pub(crate) const COUNTED: u16 = 1 << 1;
    pub(crate) const AUTO_CMD12: u16 = 1 << 2;
    pub(crate) const AUTO_CMD23: u16 = 1 << 3;
    pub(crate) const READ: u16 = 1 << 4;
    pub(crate) const MULTIPLE: u16 = 1 << 5;
    pub(crate) const CHECK_RESPONSE: u16 = 1 << 7;
    pub(crate) const NO_RESPONSE_INTERRUPT: u16 = 1 << 8;
}

/// Bits of PRESENT_STATE.
pub(crate) mod state {
    pub(crate) const COMMAND_INHIBIT: u32 = 1;
    pub(crate) const DATA_INHIBIT: u32 = 1 << 1;
    pub(crate) const DATA_ACTIVE: u32 = 1 << 2;
    pub(crate) const WRITE_ACTIVE: u32 = 1 << 8;
    pub(crate) const READ_ACTIVE: u32 = 1 << 9;
    pub(crate) const BUFFER_WRITE: u32 = 1 << 10;
    pub(crate) const BUFFER_READ: u32 = 1 << 11;
    /// Card there, stable, its detect pin, not write-protected.
    pub(crate) const CARD: u32 = 0xf << 16;
    /// DAT[3:0] high; the lowest is the busy line.
    pub(crate) const DATA_LEVELS: u32 = 0xf << 20;
    pub(crate) const DATA_0: u32 = 1 << 20;
    pub(crate) const COMMAND_LEVEL: u32 = 1 << 24;
}

/// Bits of INT_STATUS, INT_ENABLE and SIGNAL_ENABLE.
pub(crate) mod int {
    pub(crate) const COMMAND_COMPLETE: u32 = 1;
    pub(crate) const TRANSFER_COMPLETE: u32 = 1 << 1;
    pub(crate) const DMA: u32 = 1 << 3;
    pub(crate) const BUFFER_WRITE: u32 = 1 << 4;
    pub(crate) const BUFFER_READ: u32 = 1 << 5;
    pub(crate) const CQE: u32 = 1 << 14;
    pub(crate) const ERROR: u32 = 1 << 15;
    pub(crate) const COMMAND_TIMEOUT: u32 = 1 << 16;
    pub(crate) const COMMAND_CRC: u32 = 1 << 17;
    pub(crate) const COMMAND_END_BIT: u32 = 1 << 18;
    pub(crate) const COMMAND_INDEX: u32 = 1 << 19;
    pub(crate) const DATA_TIMEOUT: u32 = 1 << 20;
    pub(crate) const DATA_CRC: u32 = 1 << 21;
    pub(crate) const AUTO_CMD: u32 = 1 << 24;
    pub(crate) const ADMA: u32 = 1 << 25;
    pub(crate) const RESPONSE: u32 = 1 << 27;
    /// All errors.
    pub(crate) const ERRORS: u32 = 0xffff_0000;
}

/// Bits of HOST_CONTROL_2.
pub(crate) mod control_2 {
    pub(crate) const TIMING: u16 = 7;
    pub(crate) const EXECUTE_TUNING: u16 = 1 << 6;
    pub(crate) const TUNED_CLOCK: u16 = 1 << 7;
    pub(crate) const CMD23: u16 = 1 << 11;
    pub(crate) const VERSION_4: u16 = 1 << 12;
    pub(crate) const ADDRESS_64: u16 = 1 << 13;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_covers_each_byte_once() {
        assert_eq!(super::super::register_file::faults(TABLE, SIZE as u16), [] as [&str; 0]);
    }
}
