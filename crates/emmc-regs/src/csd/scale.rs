//! The logarithmic scales of the CSD: a factor times a power of ten, or a power of two.

use crate::row::FieldValue;

/// Tenths by bits 6:3 of TAAC, and of SD's TRAN_SPEED; code 0 is reserved.
const TENTHS: [u64; 16] = [0, 10, 12, 13, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 70, 80];
/// The same for MMC's TRAN_SPEED, whose codes 6 and 11 make 26 MHz and 52 MHz.
const MMC_SPEED_TENTHS: [u64; 16] = [0, 10, 12, 13, 15, 20, 26, 30, 35, 40, 45, 52, 55, 60, 70, 80];

/// The tenths that a code stands for; the top bit is reserved and must be 0.
fn tenths(code: u64, table: &[u64; 16]) -> Option<u64> {
    let index = usize::try_from(code >> 3).ok()?;
    table.get(index).copied().filter(|&tenths| tenths > 0)
}

fn tran_speed_hz(code: u64, table: &[u64; 16]) -> Option<u64> {
    let tenth_hz = [10_000, 100_000, 1_000_000, 10_000_000].get((code & 7) as usize)?;
    Some(tenth_hz * tenths(code, table)?)
}

/// TRAN_SPEED of an MMC. Unit: Hz.
pub(super) fn mmc_tran_speed_hz(code: u64) -> Option<u64> {
    tran_speed_hz(code, &MMC_SPEED_TENTHS)
}

/// TRAN_SPEED of an SD card. Unit: bit/s on one line.
pub(super) fn sd_tran_speed_hz(code: u64) -> Option<u64> {
    tran_speed_hz(code, &TENTHS)
}

/// TAAC. Unit: ns.
pub(super) fn taac_ns(code: u64) -> Option<f64> {
    // At most 80 x 10^7 tenths, which a float holds exactly.
    Some((tenths(code, &TENTHS)? * 10u64.pow((code & 7) as u32)) as f64 / 10.0)
}

/// TAAC as a whole number where it is one.
pub(super) fn taac_value(code: u64) -> FieldValue {
    match taac_ns(code) {
        Some(ns) if ns.fract() == 0.0 => FieldValue::Number(ns as u64),
        Some(ns) => FieldValue::Real(ns),
        None => FieldValue::Undefined,
    }
}

/// A block length of MMC: 2^code, code 15 being an extension that never came. Unit: bytes.
pub(super) fn mmc_block_bytes(code: u64) -> Option<u64> {
    (code <= 14).then(|| 1 << code)
}

/// A block length of SD: 512, 1024 or 2048. Unit: bytes.
pub(super) fn sd_block_bytes(code: u64) -> Option<u64> {
    (9..=11).contains(&code).then(|| 1 << code)
}

/// VDD_R_CURR_MIN and VDD_W_CURR_MIN. Unit: mA.
pub(super) fn current_min_value(code: u64) -> FieldValue {
    match code {
        0 => FieldValue::Real(0.5),
        _ => [0, 1, 5, 10, 25, 35, 60, 100].get(code as usize).copied().into(),
    }
}

/// VDD_R_CURR_MAX and VDD_W_CURR_MAX. Unit: mA.
pub(super) fn current_max_value(code: u64) -> FieldValue {
    [1, 5, 10, 25, 35, 45, 80, 200].get(code as usize).copied().into()
}
