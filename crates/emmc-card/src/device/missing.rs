//! Capacity that a card states and does not have: fake cards.
//!
//! Addresses beyond the flash that is there wrap to other ones, or lead nowhere. A fake may keep the last written
//! data in
//! a buffer, so that a test that reads at once sees nothing. Absent on purpose: the storage itself, which is below.

use std::collections::BTreeMap;
use std::ops::Range;

use emmc_units::SECTOR_BYTES;

/// What happens beyond the capacity that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// Addresses count from the start again.
    Wrap,
    /// Addresses count again and again in the last bytes of what is there. Unit: bytes, whole sectors.
    WrapAtEnd(u64),
    /// Writes are ignored, and every byte reads as this.
    Nothing(u8),
}

/// The missing part of a card.
#[derive(Clone, Debug)]
pub struct Missing {
    real_bytes: u64,
    beyond: Beyond,
    buffer: Buffer,
}

/// The last written sectors.
#[derive(Clone, Debug)]
struct Buffer {
    size_bytes: u64,
    /// Unit: bytes, since the start.
    written: u64,
    /// By sector: how much was written before it, and its content.
    sectors: BTreeMap<u64, (u64, Box<[u8]>)>,
}

/// A part of a request: its bytes, and where they really are, if anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Unit: bytes from the start of the request.
    pub range: Range<u64>,
    /// Unit: bytes; none where nothing is.
    pub real: Option<u64>,
}

impl Missing {
    /// A card with this capacity, and a buffer of written data; both in bytes.
    ///
    /// Errors: not whole sectors, no capacity, a wrapped part that is empty or larger than the capacity.
    pub fn new(real_bytes: u64, beyond: Beyond, buffer_bytes: u64) -> Result<Self, String> {
        let whole = |what: &str, bytes: u64, least: u64| match bytes % SECTOR_BYTES == 0 && bytes >= least {
            true => Ok(()),
            false => Err(format!("{what}={bytes}: expected whole sectors of {SECTOR_BYTES} bytes, at least {least}")),
        };
        whole("real", real_bytes, SECTOR_BYTES)?;
        if let Beyond::WrapAtEnd(window) = beyond {
            whole("window", window, SECTOR_BYTES)?;
            if window > real_bytes {
                return Err(format!("window={window}: expected at most the real capacity, {real_bytes}"));
            }
        }
        let buffer = Buffer { size_bytes: buffer_bytes, written: 0, sectors: BTreeMap::new() };
        Ok(Self { real_bytes, beyond, buffer })
    }

    /// Where a byte really is, and how many from there on are next to each other.
    fn place(&self, at: u64) -> (Option<u64>, u64) {
        let real = self.real_bytes;
        if at < real {
            return (Some(at), real - at);
        }
        match self.beyond {
            Beyond::Wrap => (Some(at % real), real - at % real),
            Beyond::WrapAtEnd(window) => {
                let within = (at - real) % window;
                (Some(real - window + within), window - within)
            }
            Beyond::Nothing(_) => (None, u64::MAX - at),
        }
    }

    /// The parts of a request.
    pub fn pieces(&self, offset_bytes: u64, bytes: u64) -> Vec<Piece> {
        let (mut pieces, mut done) = (Vec::new(), 0);
        while done < bytes {
            let (real, run) = self.place(offset_bytes + done);
            let end = bytes.min(done.saturating_add(run));
            pieces.push(Piece { range: done..end, real });
            done = end;
        }
        pieces
    }

    /// What reads of missing places return.
    pub fn filler(&self) -> u8 {
        match self.beyond {
            Beyond::Nothing(byte) => byte,
            Beyond::Wrap | Beyond::WrapAtEnd(_) => 0,
        }
    }

    /// Notes what was written; without data only how much.
    pub fn wrote(&mut self, offset_bytes: u64, bytes: u64, data: Option<&[u8]>) {
        let buffer = &mut self.buffer;
        if buffer.size_bytes == 0 {
            return;
        }
        let first = offset_bytes / SECTOR_BYTES;
        for sector in 0..bytes / SECTOR_BYTES {
            let range = (sector * SECTOR_BYTES) as usize..((sector + 1) * SECTOR_BYTES) as usize;
            match data {
                Some(data) => buffer.sectors.insert(first + sector, (buffer.written, data[range].into())),
                None => buffer.sectors.remove(&(first + sector)),
            };
            buffer.written += SECTOR_BYTES;
        }
        let (oldest, most) = (buffer.written.saturating_sub(buffer.size_bytes), buffer.size_bytes / SECTOR_BYTES);
        if buffer.sectors.len() as u64 > 2 * most {
            buffer.sectors.retain(|_, (at, _)| *at >= oldest);
        }
    }

    /// Puts what the buffer holds over what was read.
    pub fn buffered(&self, offset_bytes: u64, into: &mut [u8]) {
        let buffer = &self.buffer;
        let oldest = buffer.written.saturating_sub(buffer.size_bytes);
        let first = offset_bytes / SECTOR_BYTES;
        for (sector, into) in (first..).zip(into.chunks_exact_mut(SECTOR_BYTES as usize)) {
            if let Some((_, data)) = buffer.sectors.get(&sector).filter(|(at, _)| *at >= oldest) {
                into.copy_from_slice(data);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_beyond_the_capacity_lead_elsewhere() {
        let pieces = |beyond, offset, bytes| {
            let missing = Missing::new(8192, beyond, 0).unwrap();
            missing.pieces(offset, bytes).into_iter().map(|piece| (piece.range, piece.real)).collect::<Vec<_>>()
        };
        assert_eq!(pieces(Beyond::Wrap, 4096, 8192), [(0..4096, Some(4096)), (4096..8192, Some(0))]);
        assert_eq!(pieces(Beyond::Wrap, 17_408, 512), [(0..512, Some(1024))]);
        let end = Beyond::WrapAtEnd(1024);
        assert_eq!(pieces(end, 7680, 2048), [(0..512, Some(7680)), (512..1536, Some(7168)), (1536..2048, Some(7168))]);
        assert_eq!(pieces(Beyond::Nothing(0xff), 7680, 1024), [(0..512, Some(7680)), (512..1024, None)]);
    }

    #[test]
    fn the_buffer_forgets_what_was_written_long_ago() {
        let mut missing = Missing::new(8192, Beyond::Nothing(0), 2048).unwrap();
        missing.wrote(16_384, 512, Some(&[7; 512]));
        let read = |missing: &Missing| {
            let mut into = [1; 512];
            missing.buffered(16_384, &mut into);
            into[0]
        };
        missing.wrote(0, 1536, None);
        assert_eq!(read(&missing), 7);
        missing.wrote(0, 512, None);
        assert_eq!(read(&missing), 1);
    }

    #[test]
    fn impossible_capacities_are_refused() {
        assert!(Missing::new(0, Beyond::Wrap, 0).is_err() && Missing::new(1000, Beyond::Wrap, 0).is_err());
        let error = Missing::new(1024, Beyond::WrapAtEnd(2048), 0).unwrap_err();
        assert_eq!(error, "window=2048: expected at most the real capacity, 1024");
    }
}
