//! A card, a disk or an image as areas of bytes that can be read, and written where that was agreed to.

use emmc_clone::allocation::ReadAt;

/// An area of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands) struct Area {
    /// `user`, `boot0`, `boot1`, `gp1` to `gp4`.
    pub(in crate::commands) name: String,
    pub(in crate::commands) size_bytes: u64,
    pub(in crate::commands) sector_bytes: u32,
}

/// Areas of bytes.
pub(in crate::commands) trait Place: Send {
    /// A second handle of the same place, for another thread. It needs not be synced by itself.
    ///
    /// Errors: no memory.
    fn another(&self) -> anyhow::Result<Box<dyn Place>>;

    /// Its areas.
    fn areas(&self) -> &[Area];

    /// Fills `into`.
    ///
    /// Errors: unreadable, gone.
    fn read(&mut self, area: usize, offset_bytes: u64, into: &mut [u8]) -> anyhow::Result<()>;

    /// What is known to read as one byte all over, without reading it; ascending.
    ///
    /// Errors: the system's.
    fn fills(&mut self, area: usize) -> anyhow::Result<Vec<([u64; 2], u8)>>;

    /// Writes.
    ///
    /// Errors: read-only, full, gone.
    fn write(&mut self, area: usize, offset_bytes: u64, data: &[u8]) -> anyhow::Result<()>;

    /// Deallocates a range. Returns whether the place supports that.
    ///
    /// Errors: gone.
    fn discard(&mut self, area: usize, range: [u64; 2]) -> anyhow::Result<bool>;

    /// Makes everything written durable.
    ///
    /// Errors: gone.
    fn sync(&mut self) -> anyhow::Result<()>;
}

/// One request reads at most this much. Unit: bytes.
pub(super) const REQUEST_BYTES: usize = 1 << 20;
/// Small reads are served from a window of this size. Unit: bytes.
const WINDOW_BYTES: u64 = 64 << 10;

/// An area for the readers of filesystems, which read small structures at any place.
pub(in crate::commands) struct Window<'a> {
    place: &'a mut dyn Place,
    area: usize,
    size_bytes: u64,
    at: u64,
    held: Vec<u8>,
}

impl<'a> Window<'a> {
    pub(in crate::commands) fn new(place: &'a mut dyn Place, area: usize) -> Self {
        let size_bytes = place.areas()[area].size_bytes;
        Self { place, area, size_bytes, at: 0, held: Vec::new() }
    }
}

impl ReadAt for Window<'_> {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<(), String> {
        let mut filled = 0;
        while filled < into.len() {
            let at = offset + filled as u64;
            let inside = at.checked_sub(self.at).filter(|behind| *behind < self.held.len() as u64);
            let Some(inside) = inside else {
                let from = at / WINDOW_BYTES * WINDOW_BYTES;
                let bytes = WINDOW_BYTES.min(self.size_bytes.saturating_sub(from));
                if bytes == 0 {
                    return Err(format!("byte {at} lies outside"));
                }
                self.held.clear();
                let mut held = vec![0; bytes as usize];
                self.place.read(self.area, from, &mut held).map_err(|error| format!("{error:#}"))?;
                (self.at, self.held) = (from, held);
                continue;
            };
            let part = &self.held[inside as usize..];
            let count = part.len().min(into.len() - filled);
            into[filled..filled + count].copy_from_slice(&part[..count]);
            filled += count;
        }
        Ok(())
    }
}
