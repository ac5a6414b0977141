//! Bus times: commands, responses, blocks of data.

use emmc_units::Nanos;

use crate::profile::BusMode;

/// Clocks of a command (48), its response (48) and the gaps around them (N_CR and N_RC at their usual 8 and 8).
const COMMAND_CLOCKS: u64 = 48 + 8 + 48 + 8;
/// Clocks of a block besides its bits: start, checksum, end (18); a written block adds the CRC status (5) and N_WR (2).
const BLOCK_CLOCKS: u64 = 18;
const WRITTEN_BLOCK_CLOCKS: u64 = BLOCK_CLOCKS + 7;

/// The bus in one mode.
///
/// Source: the frame formats of JESD84-B51 and the SD specification; the sums are those of the published table of bus
/// times (HS52, DDR52, HS200, HS400).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bus {
    mode: BusMode,
    /// Unit: Hz.
    hz: u64,
    command: Nanos,
    block_read: Nanos,
    block_write: Nanos,
}

impl Bus {
    /// The bus in a mode, at its clock.
    pub fn new(mode: BusMode) -> Self {
        Self::clocked(mode, mode.clock_hz())
    }

    /// The bus in a mode, at the host's clock, which is at most that of the mode. Unit: Hz.
    pub fn clocked(mode: BusMode, hz: u64) -> Self {
        let hz = hz.clamp(1, mode.clock_hz());
        let clocks = |clocks: u64| Nanos(clocks * 1_000_000_000 / hz);
        let edges = if mode.ddr() { 2 } else { 1 };
        let bits = 512 * 8 / (u64::from(mode.width()) * edges);
        Self {
            mode,
            hz,
            command: clocks(COMMAND_CLOCKS),
            block_read: clocks(bits + BLOCK_CLOCKS),
            block_write: clocks(bits + WRITTEN_BLOCK_CLOCKS),
        }
    }

    /// The mode.
    pub fn mode(&self) -> BusMode {
        self.mode
    }

    /// The clock. Unit: Hz.
    pub fn hz(&self) -> u64 {
        self.hz
    }

    /// A command and its response.
    pub fn command(&self) -> Nanos {
        self.command
    }

    /// `sectors` blocks from card to host.
    #[inline]
    pub fn read(&self, sectors: u32) -> Nanos {
        self.block_read * u64::from(sectors)
    }

    /// `sectors` blocks from host to card.
    #[inline]
    pub fn write(&self, sectors: u32) -> Nanos {
        self.block_write * u64::from(sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_bus_times_are_reproduced() {
        // Mode, microseconds of a command, of 4 KiB of data read.
        let published = [
            (BusMode::Hs52, 2.04, 3.23, 81.5),
            (BusMode::Ddr52, 2.04, 3.23, 42.2),
            (BusMode::Hs200, 0.53, 0.84, 21.2),
            (BusMode::Hs400, 0.53, 0.84, 11.0),
        ];
        for (mode, least, most, data) in published {
            let bus = Bus::new(mode);
            let command = bus.command().as_micros_f64();
            assert!((least..=most).contains(&command), "{mode:?}: {command}");
            let read = bus.read(8).as_micros_f64();
            assert!((read / data - 1.0).abs() < 0.01, "{mode:?}: {read} against {data}");
            assert!(bus.write(8) > bus.read(8));
        }
    }

    #[test]
    fn a_host_can_be_slower_but_not_faster_than_the_mode() {
        let full = Bus::new(BusMode::Sdr104);
        assert_eq!(Bus::clocked(BusMode::Sdr104, 300_000_000), full);
        let slower = Bus::clocked(BusMode::Sdr104, 150_000_000);
        let ratio = slower.read(1000).as_micros_f64() / full.read(1000).as_micros_f64();
        assert!((ratio - 208.0 / 150.0).abs() < 0.001, "{ratio}");
    }
}
