use super::CellMode;
use crate::profile::NandConfig;

/// Shape of the flash as the translation layer sees it.
///
/// A block spans all lanes (dies x planes); its page `p` is in lane `p % lanes`. A page holds `units_per_page` mapping
/// units. A unit's physical number is `block x units_per_block + unit in block`, in every cell mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Blocks.
    pub blocks: u32,
    /// Pages of a block in the built mode.
    pub pages_per_block: u32,
    /// Mapping units of a page.
    pub units_per_page: u32,
    /// Bytes of a mapping unit.
    pub unit_bytes: u32,
    /// Dies.
    pub dies: u32,
    /// Planes of a die.
    pub planes: u32,
    /// Channels.
    pub channels: u32,
    /// Cell mode as built.
    pub native: CellMode,
}

impl Geometry {
    /// The geometry of a flash with `blocks` blocks and units of `unit_bytes` bytes.
    pub fn new(config: &NandConfig, blocks: u32, unit_bytes: u32) -> Self {
        Self {
            blocks,
            pages_per_block: config.pages_per_block,
            units_per_page: config.page_bytes / unit_bytes,
            unit_bytes,
            dies: config.dies,
            planes: config.planes,
            channels: config.channels,
            native: config.cell,
        }
    }

    /// Dies x planes.
    pub const fn lanes(&self) -> u32 {
        self.dies * self.planes
    }

    /// Units between the first units of two neighbouring blocks.
    pub const fn units_per_block(&self) -> u32 {
        self.pages_per_block * self.units_per_page
    }

    /// Pages of a block in a mode: fewer bits a cell, fewer pages, in whole rows of lanes.
    pub const fn pages_in(&self, mode: CellMode) -> u32 {
        let pages = self.pages_per_block * mode.bits() / self.native.bits();
        pages / self.lanes() * self.lanes()
    }

    /// Units of a block in a mode.
    pub const fn units_in(&self, mode: CellMode) -> u32 {
        self.pages_in(mode) * self.units_per_page
    }

    /// Bytes of a page.
    pub const fn page_bytes(&self) -> u32 {
        self.units_per_page * self.unit_bytes
    }

    /// Physical number of a page's first unit.
    pub const fn first_unit(&self, block: u32, page: u32) -> u32 {
        block * self.units_per_block() + page * self.units_per_page
    }

    /// Block of a physical unit.
    pub const fn block_of(&self, unit: u32) -> u32 {
        unit / self.units_per_block()
    }

    /// Page within its block of a physical unit.
    pub const fn page_of(&self, unit: u32) -> u32 {
        unit % self.units_per_block() / self.units_per_page
    }

    /// Die of a page.
    pub const fn die_of(&self, page: u32) -> u32 {
        page % self.lanes() / self.planes
    }

    /// Pages that share the word line of a page in a mode, itself among them, in the order in which they are
    /// programmed. A program that is interrupted may damage those before it.
    ///
    /// Assumed: neighbouring rows of a lane share one, so that page `p`'s pair is `p + lanes`; real parts shift it by a
    /// few rows more.
    pub fn word_line(&self, mode: CellMode, page: u32) -> impl Iterator<Item = u32> + use<> {
        let (lanes, bits) = (self.lanes(), mode.bits());
        let first = page / lanes / bits * bits * lanes + page % lanes;
        (0..bits).map(move |bit| first + bit * lanes)
    }

    /// The next page, from `page` on, before which no programmed page shares a word line with an unprogrammed one:
    /// programming from there puts no data at risk.
    pub const fn whole_word_lines(&self, mode: CellMode, page: u32) -> u32 {
        let (end, group) = (self.pages_in(mode), self.lanes() * mode.bits());
        let next = page.div_ceil(group) * group;
        if next < end { next } else { end }
    }
}
