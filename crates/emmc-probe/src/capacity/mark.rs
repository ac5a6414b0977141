//! Marks: sectors that say where they were written.

use emmc_units::{Rng, SECTOR_BYTES};

/// One mark. Unit: bytes.
pub(super) const BLOCK: u64 = 4096;
const SECTOR: usize = SECTOR_BYTES as usize;
const MAGIC: [u8; 8] = *b"emmclab\0";

/// What a place holds after it was marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Its mark.
    Kept,
    /// What was written at another place. Unit: bytes.
    Of(u64),
    /// The same byte throughout.
    Constant(u8),
    /// Anything else, e.g. older content.
    Other,
    /// Reading or writing failed.
    Failed(String),
}

impl Seen {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Kept => "kept".into(),
            Self::Of(place) => format!("holds what was written at byte {place}"),
            Self::Constant(byte) => format!("reads as {byte:#04x} throughout"),
            Self::Other => "holds other content".into(),
            Self::Failed(reason) => reason.clone(),
        }
    }
}

/// Marks of one test, which no other test makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    pub(super) nonce: u64,
}

impl Marks {
    fn sector(self, place: u64) -> [u8; SECTOR] {
        let mut sector = [0; SECTOR];
        let mut rng = Rng::new(self.nonce ^ place.rotate_left(20));
        for word in sector.chunks_exact_mut(8) {
            word.copy_from_slice(&rng.next_u64().to_le_bytes());
        }
        sector[..8].copy_from_slice(&MAGIC);
        sector[8..16].copy_from_slice(&self.nonce.to_le_bytes());
        sector[16..24].copy_from_slice(&place.to_le_bytes());
        sector
    }

    /// The content of a range.
    pub(super) fn fill(self, offset: u64, data: &mut [u8]) {
        for (place, sector) in (offset..).step_by(SECTOR).zip(data.chunks_exact_mut(SECTOR)) {
            sector.copy_from_slice(&self.sector(place));
        }
    }

    /// Where a sector was written in this test, if it was.
    fn place(self, sector: &[u8]) -> Option<u64> {
        let place = u64::from_le_bytes(*sector.get(16..)?.first_chunk()?);
        (sector[..8] == MAGIC && sector == self.sector(place)).then_some(place)
    }

    /// What a range at an offset holds. A sector that belongs elsewhere decides.
    pub(super) fn seen(self, offset: u64, data: &[u8]) -> Seen {
        let sectors = || (offset..).step_by(SECTOR).zip(data.chunks_exact(SECTOR));
        let elsewhere =
            |(at, sector): (u64, &[u8])| self.place(sector).filter(|place| *place != at).map(|place| (at, place));
        if let Some((at, place)) = sectors().find_map(elsewhere) {
            // As if the whole range came from there.
            return Seen::Of(place.wrapping_sub(at - offset));
        }
        if sectors().all(|(at, sector)| self.place(sector) == Some(at)) {
            return Seen::Kept;
        }
        match data.first() {
            Some(first) if data.iter().all(|byte| byte == first) => Seen::Constant(*first),
            _ => Seen::Other,
        }
    }

    /// The first sector of a range that was written at its distance from an offset. Unit: bytes.
    pub(super) fn first(self, offset: u64, data: &[u8]) -> Option<u64> {
        let mut sectors = (offset..).step_by(SECTOR).zip(data.chunks_exact(SECTOR));
        sectors.find(|(at, sector)| self.place(sector) == Some(*at)).map(|(at, _)| at)
    }

    /// How many bytes at the start of a range are kept.
    pub(super) fn kept(self, offset: u64, data: &[u8]) -> u64 {
        let sectors = (offset..).step_by(SECTOR).zip(data.chunks_exact(SECTOR));
        sectors.take_while(|(at, sector)| self.place(sector) == Some(*at)).count() as u64 * SECTOR_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_where_it_was_written() {
        let marks = Marks { nonce: 7 };
        let mut data = vec![0; BLOCK as usize];
        assert_eq!(marks.seen(8192, &data), Seen::Constant(0));
        marks.fill(8192, &mut data);
        assert_eq!(marks.seen(8192, &data), Seen::Kept);
        assert_eq!(marks.seen(1 << 32, &data), Seen::Of(8192));
        assert_eq!(Marks { nonce: 8 }.seen(8192, &data), Seen::Other);
        data[512..].fill(0xff);
        assert_eq!((marks.seen(8192, &data), marks.kept(8192, &data)), (Seen::Other, 512));
    }
}
