use emmc_units::Nanos;
use serde::Serialize;

use crate::{MeasuredSpans, PLATFORMS, Pipeline, Spans, Speed};

/// The quantity of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// One request at a time: chunk / (pre + hw + post).
    Theoretical,
    /// The same without any hardware time: chunk / (pre + post).
    ZeroHardwareTime,
    /// Many threads on several cores: chunk / max(pre, hw, post).
    MultiThread,
    /// One request at a time, with another hardware time.
    OtherHardwareTime,
    /// The cost of the hardware: the speed without hardware time minus the measured one.
    Loss,
}

/// Whether a printed figure is reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Rounded to the printed digits, it is the printed figure.
    Rounded,
    /// Truncated to the printed digits, it is the printed figure.
    Truncated,
    /// Neither.
    NotReproduced,
}

/// One printed speed and the computed one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TableCell {
    /// The table, or the text.
    pub place: &'static str,
    /// The board.
    pub platform: &'static str,
    /// The workload.
    pub workload: &'static str,
    /// Which quantity.
    pub figure: Figure,
    /// As printed. Unit: MiB/s (the paper writes MB/s).
    pub printed: &'static str,
    /// As computed.
    pub computed: Speed,
    /// The lowest speed that is consistent with the rounded spans. Unit: MiB/s.
    pub low_mib_s: f64,
    /// The highest one. Unit: MiB/s.
    pub high_mib_s: f64,
    /// Computed over printed, minus one. Unit: percent.
    pub difference_percent: f64,
    /// Whether it is reproduced.
    pub verdict: Verdict,
    /// What the printed figure would imply.
    pub why: Option<&'static str>,
}

/// A printed figure, and why it is not reproduced, if so.
struct Printed {
    workload: &'static str,
    figure: Figure,
    text: &'static str,
    why: Option<&'static str>,
}

const fn printed(workload: &'static str, figure: Figure, text: &'static str) -> Printed {
    Printed { workload, figure, text, why: None }
}

const TABLE_2: [Printed; 8] = [
    printed("sync-sequential-write", Figure::Theoretical, "60"),
    printed("sync-sequential-write", Figure::ZeroHardwareTime, "182"),
    Printed {
        why: Some("81 needs a total of at most 1552.8 us, possible only if all three spans had been rounded up"),
        ..printed("direct-sequential-write", Figure::Theoretical, "81")
    },
    printed("direct-sequential-write", Figure::ZeroHardwareTime, "644"),
    printed("sync-sequential-read", Figure::Theoretical, "217"),
    printed("sync-sequential-read", Figure::ZeroHardwareTime, "628"),
    printed("direct-sequential-read", Figure::Theoretical, "173"),
    printed("direct-sequential-read", Figure::ZeroHardwareTime, "443"),
];

const TABLE_3: [Printed; 4] = [
    printed("random-read", Figure::Theoretical, "38.01"),
    printed("random-read", Figure::MultiThread, "84.8"),
    Printed {
        why: Some(
            "30.23 needs a total of 2067.5 us against 2066 us, possible only if all three spans had been rounded down by half",
        ),
        ..printed("random-write", Figure::Theoretical, "30.23")
    },
    Printed {
        why: Some(
            "36.58 implies a period of 1708.6 us against pre = 1715 us; neither a finite number of requests (32: 36.21) nor one core \
             (34.59) gives it",
        ),
        ..printed("random-write", Figure::MultiThread, "36.58")
    },
];

const TEXT: [Printed; 2] = [
    printed("sync-sequential-write", Figure::OtherHardwareTime, "90"),
    printed("sync-sequential-read", Figure::Loss, "431"),
];

/// The text's replacement for the hardware time of sync sequential writes.
const TEXT_HARDWARE: Nanos = Nanos::from_micros(700);

pub(super) fn cells() -> Vec<TableCell> {
    let [jetson, zynq] = &PLATFORMS;
    let tables = [("Table 2", jetson, &TABLE_2[..]), ("Table 3", zynq, &TABLE_3[..]), ("text", jetson, &TEXT[..])];
    let cells = tables.into_iter().flat_map(|(place, platform, rows)| {
        rows.iter().filter_map(move |row| {
            let workload = platform.workload(row.workload)?;
            Some(cell(place, platform.name, workload, &platform.pipeline(workload), row))
        })
    });
    cells.collect()
}

fn cell(
    place: &'static str,
    platform: &'static str,
    workload: &MeasuredSpans,
    pipeline: &Pipeline,
    row: &Printed,
) -> TableCell {
    let (ns, rounding_us) = time(row.figure, workload.spans, pipeline);
    let measured = workload.measured_mib_s.unwrap_or_default();
    let less = if row.figure == Figure::Loss { measured } else { 0.0 };
    let speed = |ns: f64| Speed::of(workload.chunk, ns).mib_s - less;
    let computed = Speed { mib_s: speed(ns), mb_s: speed(ns) * f64::from(1 << 20) / 1e6 };
    let number: f64 = row.text.parse().unwrap_or(f64::NAN);
    TableCell {
        place,
        platform,
        workload: workload.name,
        figure: row.figure,
        printed: row.text,
        computed,
        low_mib_s: speed(ns + rounding_us * 1e3),
        high_mib_s: speed(ns - rounding_us * 1e3),
        difference_percent: (computed.mib_s / number - 1.0) * 100.0,
        verdict: verdict(computed.mib_s, row.text),
        why: row.why,
    }
}

/// The time of a chunk, and its uncertainty because each span was printed in whole microseconds.
fn time(figure: Figure, spans: Spans, pipeline: &Pipeline) -> (f64, f64) {
    match figure {
        Figure::Theoretical => (spans.total().0 as f64, 1.5),
        Figure::ZeroHardwareTime | Figure::Loss => (spans.software().0 as f64, 1.0),
        Figure::MultiThread => (pipeline.period_ns(), 0.5),
        Figure::OtherHardwareTime => (Spans { hw: TEXT_HARDWARE, ..spans }.total().0 as f64, 1.0),
    }
}

fn verdict(computed: f64, printed: &str) -> Verdict {
    let decimals = printed.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let scale = 10f64.powi(decimals as i32);
    let number: f64 = printed.parse().unwrap_or(f64::NAN);
    let is = |value: f64| (value / scale - number).abs() < 0.01 / scale;
    match computed * scale {
        scaled if is(scaled.round()) => Verdict::Rounded,
        scaled if is(scaled.floor()) => Verdict::Truncated,
        _ => Verdict::NotReproduced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cells_but_three_are_reproduced() {
        let cells = cells();
        assert_eq!(cells.len(), TABLE_2.len() + TABLE_3.len() + TEXT.len());
        let off: Vec<_> =
            cells.iter().filter(|cell| cell.verdict == Verdict::NotReproduced).map(|cell| cell.printed).collect();
        assert_eq!(off, ["81", "30.23", "36.58"]);
        for cell in &cells {
            assert_eq!(cell.why.is_some(), off.contains(&cell.printed), "{cell:?}");
            assert!(cell.difference_percent.abs() < 0.8, "{cell:?}");
        }
        let truncated: Vec<_> = cells.iter().filter(|cell| cell.verdict == Verdict::Truncated).collect();
        assert_eq!(truncated.len(), 1);
        assert_eq!(truncated[0].printed, "38.01");
    }

    /// Two of the three need all three spans at the edge of their rounding; the third is beyond it.
    #[test]
    fn rounding_of_spans_explains_small_differences() {
        let cells = cells();
        let ends = |printed| cells.iter().find(|cell| cell.printed == printed).map(|c| (c.low_mib_s, c.high_mib_s));
        let (low, high) = ends("81").unwrap();
        assert!((80.36..80.37).contains(&low) && (80.51..80.52).contains(&high), "{low} {high}");
        let (low, high) = ends("30.23").unwrap();
        assert!((30.229..30.230).contains(&low) && high > 30.27, "{low} {high}");
        assert!(ends("36.58").unwrap().1 < 36.46);
    }

    #[test]
    fn a_verdict_compares_the_printed_digits() {
        for (computed, printed, expected) in [
            (59.52, "60", Verdict::Rounded),
            (38.017, "38.01", Verdict::Truncated),
            (38.014, "38.01", Verdict::Rounded),
            (80.44, "81", Verdict::NotReproduced),
            (38.009, "38.00", Verdict::Truncated),
        ] {
            assert_eq!(verdict(computed, printed), expected, "{computed} {printed}");
        }
    }
}
