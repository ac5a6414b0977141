use emmc_units::Bytes;
use serde::Serialize;

use crate::platform;

/// Largest deviation from the printed range. Unit: percentage points.
const WITHIN_POINTS: f64 = 5.0;

/// Whether the spans give the printed share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OverheadVerdict {
    /// Inside the printed range, or at most 5 points outside.
    WithinFivePoints,
    /// Further off.
    Off,
    /// The paper prints no spans for it.
    NoSpans,
}

/// Software's share of a request's time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverheadShare {
    /// The board.
    pub platform: &'static str,
    /// What a request transfers.
    pub chunk_bytes: Bytes,
    /// The line of the list.
    pub line: &'static str,
    /// As printed, e.g. `23~32`. Unit: percent.
    pub printed: &'static str,
    /// The workload whose spans it was computed from.
    pub workload: Option<&'static str>,
    /// (pre + post) / (pre + hw + post). Unit: percent.
    pub computed_percent: Option<f64>,
    /// Distance to the printed range; 0 inside it. Unit: percentage points.
    pub beside_points: Option<f64>,
    /// Whether it is reproduced.
    pub verdict: OverheadVerdict,
    /// Explanation.
    pub why: Option<&'static str>,
}

struct Line {
    platform: &'static str,
    chunk: Bytes,
    line: &'static str,
    printed: &'static str,
    range: (f64, f64),
    workload: Option<&'static str>,
    why: Option<&'static str>,
}

const JETSON: (&str, Bytes) = ("jetson-tx1", Bytes(128 << 10));
const ZYNQ: (&str, Bytes) = ("zynq-zed", Bytes(64 << 10));
const UNSTATED: Option<&str> = Some("Table 3 does not say whether its random requests are sync or direct");
const SYNC_ONLY: Option<&str> = Some(
    "Table 3 does not say whether its random reads are sync or direct; their 68 % agree with the sync line, so that Table 3 seems to \
     be sync",
);

const LINES: [Line; 13] = [
    line(JETSON, "sync writes", "23~32", (23.0, 32.0), Some("sync-sequential-write"), None),
    line(JETSON, "direct writes", "10~15", (10.0, 15.0), Some("direct-sequential-write"), None),
    line(JETSON, "reads sync", "34~44", (34.0, 44.0), Some("sync-sequential-read"), None),
    line(JETSON, "reads direct", "~40", (40.0, 40.0), Some("direct-sequential-read"), None),
    line(small(JETSON), "sync writes", "~80", (80.0, 80.0), None, None),
    line(small(JETSON), "direct writes", "~45", (45.0, 45.0), None, None),
    line(small(JETSON), "reads direct and sync", "~40", (40.0, 40.0), None, None),
    line(ZYNQ, "sync writes", "87~91", (87.0, 91.0), Some("random-write"), UNSTATED),
    line(ZYNQ, "direct writes", "~75", (75.0, 75.0), None, None),
    line(ZYNQ, "reads sync", "~65", (65.0, 65.0), Some("random-read"), UNSTATED),
    line(ZYNQ, "reads direct", "56~60", (56.0, 60.0), Some("random-read"), SYNC_ONLY),
    line(small(ZYNQ), "writes", "87~91", (87.0, 91.0), None, None),
    line(small(ZYNQ), "reads", "~64", (64.0, 64.0), None, None),
];

const fn small((platform, _): (&'static str, Bytes)) -> (&'static str, Bytes) {
    (platform, Bytes(4 << 10))
}

const fn line(
    (platform, chunk): (&'static str, Bytes),
    line: &'static str,
    printed: &'static str,
    range: (f64, f64),
    workload: Option<&'static str>,
    why: Option<&'static str>,
) -> Line {
    Line { platform, chunk, line, printed, range, workload, why }
}

pub(super) fn overheads() -> Vec<OverheadShare> {
    LINES.iter().map(share).collect()
}

fn share(line: &Line) -> OverheadShare {
    let workload = line.workload.and_then(|name| platform(line.platform)?.workload(name));
    let computed = workload.map(|workload| workload.spans.overhead_share() * 100.0);
    let beside = computed.map(|percent| (line.range.0 - percent).max(percent - line.range.1).max(0.0));
    OverheadShare {
        platform: line.platform,
        chunk_bytes: line.chunk,
        line: line.line,
        printed: line.printed,
        workload: line.workload,
        computed_percent: computed,
        beside_points: beside,
        verdict: match beside {
            None => OverheadVerdict::NoSpans,
            Some(points) if points <= WITHIN_POINTS => OverheadVerdict::WithinFivePoints,
            Some(_) => OverheadVerdict::Off,
        },
        why: line.why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_shares_but_one_are_within_five_points() {
        let all = overheads();
        let off: Vec<_> = all.iter().filter(|share| share.verdict == OverheadVerdict::Off).collect();
        assert_eq!(off.len(), 1, "{off:?}");
        assert_eq!((off[0].platform, off[0].line), ("zynq-zed", "reads direct"));
        let near: Vec<f64> = all
            .iter()
            .filter(|share| share.verdict == OverheadVerdict::WithinFivePoints)
            .filter_map(|share| share.computed_percent)
            .collect();
        let expected = [32.67, 12.48, 34.55, 39.06, 87.46, 68.13];
        assert_eq!(near.len(), expected.len());
        for (computed, expected) in near.iter().zip(expected) {
            assert!((computed - expected).abs() < 0.01, "{computed} {expected}");
        }
    }
}
