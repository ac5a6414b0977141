//! A rate that a tool has printed, as a measurement.

use crate::result::measurement::Measurement;

/// What a tool printed about a run: rate, requests, bytes.
pub(super) struct Rate<'a> {
    pub(super) table: &'a str,
    pub(super) row: String,
    pub(super) column: &'a str,
    pub(super) op: &'a str,
    pub(super) order: &'a str,
    pub(super) block_bytes: u64,
    pub(super) depth: u32,
    pub(super) bytes: Option<u64>,
    pub(super) bytes_per_s: f64,
}

impl Rate<'_> {
    /// With derived values: requests and time. Nothing if the rate is not valid.
    pub(super) fn measurement(self) -> Option<Measurement> {
        if !(self.bytes_per_s > 0.0 && self.bytes_per_s.is_finite()) || self.block_bytes == 0 {
            return None;
        }
        Some(Measurement {
            table: self.table.into(),
            row: self.row,
            column: self.column.into(),
            op: self.op.into(),
            order: self.order.into(),
            block_bytes: self.block_bytes,
            queue_depth: self.depth,
            requests: self.bytes.map(|bytes| bytes.div_ceil(self.block_bytes)),
            bytes: self.bytes,
            time_s: self.bytes.map(|bytes| bytes as f64 / self.bytes_per_s),
            mb_per_s: self.bytes_per_s / 1e6,
            iops: self.bytes_per_s / self.block_bytes as f64,
            ..Measurement::default()
        })
    }
}

/// A size as tools accept and print it: `100M`, `4k`, `102400`; powers of 1024. Nothing if it is not a size.
pub(super) fn size_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let shift = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A rate of a published table: its place, operation and order, request size, in bytes a second.
#[cfg(test)]
pub(crate) fn published_rate(
    [table, row, column]: [&str; 3],
    [op, order]: [&str; 2],
    block_bytes: u64,
    bytes_per_s: f64,
) -> Measurement {
    let row = row.to_owned();
    let rate = Rate { table, row, column, op, order, block_bytes, depth: 1, bytes: None, bytes_per_s };
    rate.measurement().expect("a published rate is positive")
}
