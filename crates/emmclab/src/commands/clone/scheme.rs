//! Which pieces of a source a clone holds: what is allocated, without what is known to read as one byte.

use emmc_clone::Ranges;
use emmc_clone::allocation::{self, Map};
use emmc_clone::format::{AreaShape, PIECE_BYTES_MAX};
use sha2::{Digest, Sha256};

use super::place::{Place, Window};

/// A range of an area that is read, or known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) area: u8,
    pub(super) offset_bytes: u64,
    pub(super) bytes: u64,
    /// What it is known to read as.
    pub(super) fill: Option<u8>,
}

/// What of a source is allocated.
pub(super) struct Scheme {
    pub(super) areas: Vec<AreaShape>,
    /// In the order of the file.
    pub(super) pieces: Vec<Piece>,
    /// SHA-256 of what the scheme follows from.
    pub(super) fingerprint: String,
}

/// Finds out what a clone of a source holds. `whole`: why nothing is left out; `state`: what else shows that the source
/// changed.
///
/// Errors: it cannot be read.
pub(super) fn of(place: &mut dyn Place, whole: Option<&str>, state: &[u8]) -> anyhow::Result<Scheme> {
    let mut hash = Sha256::new_with_prefix(state);
    let (mut areas, mut pieces) = (Vec::new(), Vec::new());
    for (index, area) in place.areas().to_vec().into_iter().enumerate() {
        let Map { parts, used, fingerprint } = match whole {
            Some(why) => allocation::everything(area.size_bytes, why),
            None => {
                let sector_bytes = u64::from(area.sector_bytes);
                let mut window = Window::new(place, index);
                let map = allocation::map(&mut window, area.size_bytes, sector_bytes);
                map.map_err(|why| super::unable(&area.name, why))?
            }
        };
        hash.update(fingerprint);
        let used = used.rounded(u64::from(area.sector_bytes), area.size_bytes);
        pieces.extend(cut(index as u8, &used, place.fills(index)?, u64::from(area.sector_bytes)));
        areas.push(AreaShape { name: area.name, size_bytes: area.size_bytes, sector_bytes: area.sector_bytes, parts });
    }
    let fingerprint = super::hex(&hash.finalize());
    Ok(Scheme { areas, pieces, fingerprint })
}

/// The pieces of an area.
fn cut(area: u8, used: &Ranges, fills: Vec<([u64; 2], u8)>, sector: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut known = Vec::new();
    for (range, byte) in fills {
        // Whole sectors of it.
        let whole = Ranges::one(range[0].next_multiple_of(sector), range[1] / sector * sector);
        for [from, to] in whole.intersection(used).as_slice() {
            known.push([*from, *to]);
            pieces.push(Piece { area, offset_bytes: *from, bytes: to - from, fill: Some(byte) });
        }
    }
    let known = Ranges::of(known);
    for [from, to] in used.as_slice() {
        for [from, to] in known.gaps(*from, *to).as_slice() {
            let mut at = *from;
            while at < *to {
                // On a grid, so that the same content is cut in the same way.
                let end = (at / u64::from(PIECE_BYTES_MAX) + 1) * u64::from(PIECE_BYTES_MAX);
                let end = end.min(*to);
                pieces.push(Piece { area, offset_bytes: at, bytes: end - at, fill: None });
                at = end;
            }
        }
    }
    pieces.sort_by_key(|piece| piece.offset_bytes);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_what_is_allocated_in_order() {
        let mib = 1 << 20;
        let used = Ranges::of(vec![[0, 4096], [mib - 4096, 2 * mib + 512], [8 * mib, 9 * mib]]);
        let fills = vec![([1000, 3000], 0), ([8 * mib, 10 * mib], 0xff)];
        let found = cut(1, &used, fills, 512);
        let piece = |offset_bytes, end, fill| Piece { area: 1, offset_bytes, bytes: end - offset_bytes, fill };
        let expected = [
            piece(0, 1024, None),
            piece(1024, 2560, Some(0)),
            piece(2560, 4096, None),
            piece(mib - 4096, mib, None),
            piece(mib, 2 * mib, None),
            piece(2 * mib, 2 * mib + 512, None),
            piece(8 * mib, 9 * mib, Some(0xff)),
        ];
        assert_eq!(found, expected);
    }
}
