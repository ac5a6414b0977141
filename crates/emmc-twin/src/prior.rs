//! What other parts say of a parameter that the measurements do not show.
//!
//! A card's times scale with its bus and its firmware, so the ratios of parameters carry over from card to card, not
//! their values. A part's own cells decide wherever they say anything.

use crate::least_squares::Prior;
use crate::part::{ALLOCATION_KIB, Firmware, Part, index};

/// The standard deviation of a logarithm that nothing but the physics bounds: a factor of 4.5.
const WIDE: f64 = 1.5;
/// The bus as a share of the time that each KiB of a large read takes, and the standard deviation of its logarithm: it
/// takes all of that time, or less where the flash bounds the read.
const BUS_SHARE: f64 = 0.8;
const BUS_DEVIATION: f64 = 0.22;
/// The least standard deviation of a logarithm that other parts bound.
const NARROW: f64 = 0.3;
/// Fewer other parts do not show how parts scatter: they do not count.
pub const PARTS_MIN: usize = 3;

/// The parameter to which another one is in proportion, from part to part.
fn anchor(parameter: usize) -> Option<usize> {
    match parameter {
        index::PROGRAM | index::CHANNEL => Some(index::BUS),
        index::LOG => Some(index::PROGRAM),
        index::SMALL | index::COMMIT => Some(index::WRITE),
        index::SMALL_MISSING => Some(index::SMALL),
        // What a write keeps of a unit is read.
        index::SENSE | index::READ_MISSING | index::MISSING => Some(index::READ),
        _ => None,
    }
}

/// What data sheets of NAND flash say, as a logarithm with its standard deviation: 95 % of parts are within a factor
/// of three, or four. tR is 25 to 90 us. A page in one bit a cell takes 200 to 350 us, two planes of 8 or 16 KiB at a
/// time. A channel moves 100 to 400 MB/s.
///
/// A card that merges whole allocation units has those of SDHC, which are at most 4 MiB, or parts of them.
fn physical(parameter: usize, firmware: &Firmware) -> Option<[f64; 2]> {
    match parameter {
        index::MERGE if firmware.merges_allocation_units() => Some([ALLOCATION_KIB.ln(), 0.55]),
        index::SENSE => Some([50.0_f64.ln(), 0.55]),
        index::LOG => Some([8.0_f64.ln(), 0.55]),
        index::CHANNEL => Some([4.0_f64.ln(), 0.7]),
        _ => None,
    }
}

/// Whether parts of another firmware say nothing of it: how random writes are stored.
fn is_of_firmware(parameter: usize) -> bool {
    [index::SMALL, index::LOG, index::SMALL_MISSING, index::MERGE, index::DEBT, index::LOG_SIZE].contains(&parameter)
}

/// The priors of a part around a start, of other parts, of the time of each KiB of a large read (us, if measured), and
/// of the start itself.
pub(crate) fn priors(start: &Part, others: &[Part], large_read: Option<f64>) -> Vec<Prior> {
    let from_parts = |index: usize| {
        let anchor = anchor(index);
        let log = |part: &Part| (part.firmware.threshold_kib, part.firmware.logs_sectors);
        let alike = |other: &&Part| {
            (!is_of_firmware(index) || log(other) == log(start))
                && (index != index::CHANNEL || other.firmware.channels == start.firmware.channels)
        };
        let ratio = |part: &Part| (part.values[index] / anchor.map_or(1.0, |anchor| part.values[anchor])).ln();
        let ratios: Vec<f64> = others.iter().filter(alike).map(ratio).collect();
        if ratios.len() < PARTS_MIN || [index::BUS, index::READ, index::WRITE].contains(&index) {
            return None;
        }
        let count = ratios.len() as f64;
        let centre = ratios.iter().sum::<f64>() / count;
        let square: f64 = ratios.iter().map(|ratio| (ratio - centre).powi(2)).sum::<f64>() / (count - 1.0);
        let deviation = (square * (1.0 + 1.0 / count)).sqrt().clamp(NARROW, WIDE);
        Some(Prior { index, anchor, centre, deviation })
    };
    let own = |index: usize| {
        let bus = || Some([(BUS_SHARE * large_read.filter(|_| index == index::BUS)?).ln(), BUS_DEVIATION]);
        let known = physical(index, &start.firmware).or_else(bus);
        let [centre, deviation] = known.unwrap_or([start.values[index].ln(), WIDE]);
        Prior { index, anchor: None, centre, deviation }
    };
    if start.firmware.segment.is_some() {
        let own = |index: usize| Prior { index, anchor: None, centre: start.values[index].ln(), deviation: WIDE };
        return (0..start.values.len()).map(own).collect();
    }
    (0..start.values.len()).map(|index| from_parts(index).unwrap_or_else(|| own(index))).collect()
}

#[cfg(test)]
mod tests {
    use emmc_regs::CardKind;

    use super::*;
    use crate::cell::{Cell, Column};
    use crate::known::Known;
    use crate::part::firmwares;

    /// Three cards whose program time is 1, 2 and 4 times that of their bus: the fourth's is about twice its own.
    #[test]
    fn a_ratio_carries_over() {
        let cells = Column::IOZONE.map(|column| Cell { column, kib: 4, us: 100.0 });
        let start = Part::start(CardKind::Sd, firmwares()[0], false, (&cells, &Known::default()));
        let other = |bus: f64, ratio: f64| {
            let mut part = start.clone();
            (part.values[index::BUS], part.values[index::PROGRAM]) = (bus, bus * ratio);
            part
        };
        let others = [other(7.0, 1.0), other(15.0, 2.0), other(22.0, 4.0)];
        let found = priors(&start, &others, None);
        let program = found[index::PROGRAM];
        assert_eq!((program.index, program.anchor), (index::PROGRAM, Some(index::BUS)));
        assert!((program.centre - 2f64.ln()).abs() < 1e-9 && (program.deviation - 0.8).abs() < 0.01, "{program:?}");
        assert_eq!(found[index::BUS].centre, start.values[index::BUS].ln(), "no large reads");
        let unlike = priors(&start, &others[..2], Some(10.0));
        let merge = unlike[index::MERGE];
        assert!((merge.centre, merge.deviation) == (ALLOCATION_KIB.ln(), 0.55), "allocation units: {merge:?}");
        assert_eq!(unlike[index::PROGRAM].anchor, None, "two parts show no scatter");
        let bus = unlike[index::BUS];
        let deviations = |us: f64| (us.ln() - bus.centre) / bus.deviation;
        assert!(deviations(10.0) < 1.1 && deviations(5.5) > -2.0, "the bus or the flash takes the time: {bus:?}");
    }
}
