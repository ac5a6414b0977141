use super::{Checked, Rules};
use crate::nand::CellMode;
use crate::profile::CellConfig;

/// A read does no more of them.
const RETRIES_MAX: f64 = 40.0;

/// Fields of a cell mode by their names in the file.
struct CellFields {
    read_us: &'static str,
    program_us: &'static str,
    erase_ms: &'static str,
    endurance: &'static str,
    time_spread: &'static str,
    endurance_spread: &'static str,
}

const NATIVE: CellFields = CellFields {
    read_us: "nand.native.read_us",
    program_us: "nand.native.program_us",
    erase_ms: "nand.native.erase_ms",
    endurance: "nand.native.endurance",
    time_spread: "nand.native.time_spread",
    endurance_spread: "nand.native.endurance_spread",
};

const SLC: CellFields = CellFields {
    read_us: "nand.slc.read_us",
    program_us: "nand.slc.program_us",
    erase_ms: "nand.slc.erase_ms",
    endurance: "nand.slc.endurance",
    time_spread: "nand.slc.time_spread",
    endurance_spread: "nand.slc.endurance_spread",
};

impl Rules<'_> {
    pub(super) fn nand(&self) -> Checked {
        let nand = &self.profile.nand;
        let known = !matches!(nand.cell, CellMode::Pslc);
        self.require(known, "nand.cell", "pslc", "must be how the flash is built: slc, mlc or tlc")?;
        self.shape()?;
        // 5 MB/s is far below the slowest asynchronous interface, 4000 above the fastest ONFI one.
        self.range("nand.channel_mb_s", nand.channel_mb_s, 5.0..=4000.0)?;
        self.range("nand.over_provisioning", nand.over_provisioning, 0.0..=4.0)?;
        self.range("nand.spare_blocks", nand.spare_blocks, 0..=100_000)?;
        let rule = format!("must be at most nand.spare_blocks ({})", nand.spare_blocks);
        let bad = nand.factory_bad_blocks;
        self.require(bad <= nand.spare_blocks, "nand.factory_bad_blocks", bad, rule)?;
        if let Some(blocks) = nand.blocks {
            self.range("nand.blocks", blocks, 1..=1 << 24)?;
        }
        self.range("nand.failures.program_ppb", nand.failures.program_ppb, 0..=100_000_000)?;
        self.range("nand.failures.erase_ppm", nand.failures.erase_ppm, 0..=500_000)?;
        self.ageing()?;
        self.cell(&nand.native, &NATIVE, nand.cell.bits())?;
        match &nand.slc {
            Some(_) if nand.cell == CellMode::Slc => {
                Err(self.broken("nand.slc", "present", "must be absent with nand.cell slc: see nand.native"))
            }
            Some(slc) => self.single_bit(slc),
            None => Ok(()),
        }
    }

    fn ageing(&self) -> Checked {
        let nand = &self.profile.nand;
        let Some(ageing) = &nand.ageing else { return Ok(()) };
        self.range("nand.ageing.program_faster", ageing.program_faster, 0.0..=0.9)?;
        self.range("nand.ageing.erase_slower", ageing.erase_slower, 0.0..=100.0)?;
        self.range("nand.ageing.retries_worn", ageing.retries_worn, 0.0..=RETRIES_MAX)?;
        self.range("nand.ageing.retries_year", ageing.retries_year, 0.0..=RETRIES_MAX)?;
        self.range("nand.ageing.retries_disturbed", ageing.retries_disturbed, 0.0..=RETRIES_MAX)?;
        let spread = nand.native.endurance_spread;
        let rule = "has no effect without nand.native.endurance_spread";
        self.require(!ageing.endurance_below || spread > 0.0, "nand.ageing.endurance_below", "true", rule)
    }

    fn shape(&self) -> Checked {
        let nand = &self.profile.nand;
        self.range("nand.channels", nand.channels, 1..=8)?;
        self.range("nand.dies", nand.dies, 1..=64)?;
        let rule = format!("must be a multiple of nand.channels ({})", nand.channels);
        self.require(nand.dies % nand.channels == 0, "nand.dies", nand.dies, rule)?;
        self.range("nand.planes", nand.planes, 1..=8)?;
        self.range("nand.page_bytes", nand.page_bytes, 512..=131_072)?;
        let rule = "must be a power of two";
        self.require(nand.page_bytes.is_power_of_two(), "nand.page_bytes", nand.page_bytes, rule)?;
        let pages = nand.pages_per_block;
        self.range("nand.pages_per_block", pages, 1..=65_536)?;
        let lanes = nand.dies * nand.planes;
        let rule = format!("must be a multiple of the {lanes} lanes (nand.dies x nand.planes)");
        self.require(pages % lanes == 0, "nand.pages_per_block", pages, rule)?;
        let bits = nand.cell.bits();
        let rule = format!("must be at least {}: one page a lane with one bit a cell", bits * lanes);
        self.require(pages >= bits * lanes, "nand.pages_per_block", pages, rule)
    }

    fn cell(&self, cell: &CellConfig, fields: &CellFields, bits: u32) -> Checked {
        self.range(fields.read_us, cell.read_us, 1.0..=10_000.0)?;
        let count = cell.program_us.len();
        let rule = format!("must have 1 to {bits} times: one for each page of a word line");
        self.require((1..=bits as usize).contains(&count), fields.program_us, format_args!("{count} times"), rule)?;
        for time in &cell.program_us {
            self.range(fields.program_us, *time, 10.0..=100_000.0)?;
        }
        self.range(fields.erase_ms, cell.erase_ms, 0.1..=1000.0)?;
        self.range(fields.endurance, cell.endurance, 1..=1_000_000)?;
        self.range(fields.time_spread, cell.time_spread, 0.0..=0.5)?;
        self.range(fields.endurance_spread, cell.endurance_spread, 0.0..=1.0)
    }

    fn single_bit(&self, slc: &CellConfig) -> Checked {
        self.cell(slc, &SLC, 1)?;
        let native = &self.profile.nand.native;
        let rule = format!("must be at least nand.native.endurance ({})", native.endurance);
        self.require(slc.endurance >= native.endurance, "nand.slc.endurance", slc.endurance, rule)?;
        let slowest = native.program_us.iter().fold(0.0, |slowest: f64, time| slowest.max(*time));
        let time = slc.program_us.first().copied().unwrap_or(0.0);
        let rule = format!("must be at most the slowest of nand.native.program_us ({slowest})");
        self.require(time <= slowest, "nand.slc.program_us", time, rule)
    }
}
