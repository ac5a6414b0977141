//! Bytes of the user area that a layer treats differently.

use std::ops::Range;

use emmc_card::device::Area;

use crate::block::Block;

/// Unit: bytes.
const SECTOR: u64 = 512;

/// Some bytes of the user area, in whole sectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window(Range<u64>);

impl Window {
    /// From `from` to `to`; absent: to the end of the area.
    ///
    /// Errors: not within the area, empty, not whole sectors.
    pub fn new(inner: &dyn Block, from: u64, to: Option<u64>) -> Result<Self, String> {
        let user = inner.exports().into_iter().find(|export| export.area == Area::User);
        let end = user.map_or(0, |export| export.size_bytes);
        let to = to.unwrap_or(end);
        if to > end {
            return Err(format!("to={to}: expected at most {end}, where the user area ends"));
        }
        if from >= to {
            return Err(format!("from={from}: expected less than {to}, where the bytes end"));
        }
        if from % SECTOR != 0 || to % SECTOR != 0 {
            return Err(format!("from={from}, to={to}: expected whole sectors of 512 bytes"));
        }
        Ok(Self(from..to))
    }

    /// Whether a range touches the window, in whole sectors; others are the card's to refuse.
    pub(super) fn touches(&self, range: &Range<u64>) -> bool {
        range.start % SECTOR == 0 && range.end % SECTOR == 0 && !self.split(range)[1].is_empty()
    }

    /// The bytes of a range before the window, in it and after it; any of them may be empty.
    pub(super) fn split(&self, range: &Range<u64>) -> [Range<u64>; 3] {
        let from = self.0.start.clamp(range.start, range.end);
        let to = self.0.end.clamp(from, range.end);
        [range.start..from, from..to, to..range.end]
    }
}
