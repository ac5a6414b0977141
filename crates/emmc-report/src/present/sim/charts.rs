//! Charts of the virtual card: drawn in HTML, lines of text on a terminal.

use emmc_card::condition::{BlockMap, WearBin};
use emmc_workload::job::{PhaseResult, Series};
use emmc_workload::{Bucket, Latency};
use serde_json::{Value, json};

use crate::Chart;

/// The maximum number of text lines of a series or a histogram.
const TEXT_LINES: usize = 16;
/// Cells of a line of the block map in text, and lines of it.
const MAP_COLUMNS: usize = 64;
const MAP_LINES: usize = 16;

/// Speed over simulated time.
pub(super) fn speed(series: &Series) -> Chart {
    let width = series.bucket_s;
    let rate = |bytes: u64| bytes as f64 / 1e6 / width;
    let mut values: Vec<Value> = Vec::new();
    for (index, (written, read)) in series.written_bytes.iter().zip(&series.read_bytes).enumerate() {
        let at = index as f64 * width;
        for (what, bytes) in [("written", *written), ("read", *read)] {
            values.push(json!({"s": at, "mb_s": rate(bytes), "what": what}));
        }
    }
    let buckets = series.written_bytes.len();
    let step = buckets.div_ceil(TEXT_LINES).max(1);
    let sums: Vec<(f64, f64, f64)> = (0..buckets)
        .step_by(step)
        .map(|first| {
            let part = first..(first + step).min(buckets);
            let mean = |bytes: &[u64]| rate(bytes[part.clone()].iter().sum()) / part.len() as f64;
            (first as f64 * width, mean(&series.written_bytes), mean(&series.read_bytes))
        })
        .collect();
    let most = sums.iter().map(|(_, written, read)| written.max(*read)).fold(0.0, f64::max);
    let lines = sums.iter().map(|(at, written, read)| {
        format!(
            "{:>10}  {} {written:8.2} written  {read:8.2} read",
            super::duration(*at),
            bar(written.max(*read), most)
        )
    });
    Chart {
        title: "Speed over simulated time (MB/s)".into(),
        description: "Bytes that the host wrote and read in each interval of simulated time".into(),
        spec: json!({
            "data": {"values": values},
            "height": 220,
            "mark": {"type": "line", "interpolate": "step-after", "tooltip": true},
            "encoding": {
                "x": {"field": "s", "type": "quantitative", "title": "simulated time (s)"},
                "y": {"field": "mb_s", "type": "quantitative", "title": "MB/s"},
                "color": {"field": "what", "type": "nominal", "title": null}
            }
        }),
        text: lines.collect(),
    }
}

/// Write amplification over simulated time; absent where nothing was written.
pub(super) fn amplification(series: &Series) -> Option<Chart> {
    let known: Vec<(f64, f64)> = (0..)
        .zip(&series.write_amplification)
        .filter_map(|(index, value): (u32, _)| Some((f64::from(index) * series.bucket_s, (*value)?)))
        .collect();
    let most = known.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    if known.is_empty() {
        return None;
    }
    let step = known.len().div_ceil(TEXT_LINES).max(1);
    let line = |(at, value): &(f64, f64)| format!("{:>10}  {} {value:8.2}", super::duration(*at), bar(*value, most));
    Some(Chart {
        title: "Write amplification over simulated time".into(),
        description: "Units programmed in flash for each unit that the host wrote".into(),
        spec: json!({
            "data": {"values": known.iter().map(|(at, value)| json!({"s": at, "wa": value})).collect::<Vec<_>>()},
            "height": 180,
            "mark": {"type": "line", "interpolate": "step-after", "tooltip": true},
            "encoding": {
                "x": {"field": "s", "type": "quantitative", "title": "simulated time (s)"},
                "y": {"field": "wa", "type": "quantitative", "title": "write amplification"}
            }
        }),
        text: known.iter().step_by(step).map(line).collect(),
    })
}

/// For each phase, the share of its requests that took longer, over their latency; absent without requests.
pub(super) fn latency(phases: &[PhaseResult]) -> Option<Chart> {
    let named =
        (1..).zip(phases).map(|(number, phase)| (format!("{number} {}", phase.kind), &phase.work.latency_us.all));
    let seen: Vec<(String, &Latency)> = named.filter(|(_, latency)| latency.count > 0).collect();
    if seen.is_empty() {
        return None;
    }
    let points = seen.iter().flat_map(|(name, latency)| {
        longer(latency).map(move |(us, share)| json!({"us": us, "share": share, "phase": name}))
    });
    Some(Chart {
        title: "Share of requests that took longer".into(),
        description: "How often a request waited longer than a time, for each phase".into(),
        spec: json!({
            "data": {"values": points.collect::<Vec<_>>()},
            "height": 260,
            "mark": {"type": "line", "interpolate": "step-after", "tooltip": true},
            "encoding": {
                "x": {"field": "us", "type": "quantitative", "scale": {"type": "log"}, "title": "latency (us)"},
                "y": {"field": "share", "type": "quantitative", "scale": {"type": "log"},
                      "title": "share of requests that took longer"},
                "color": {"field": "phase", "type": "nominal", "title": "phase"}
            }
        }),
        text: seen.iter().map(|(name, latency)| shares(name, latency)).collect(),
    })
}

/// Latencies that were seen, and the share of requests above each; without the longest, above which there is none.
fn longer(latency: &Latency) -> impl Iterator<Item = (f64, f64)> {
    let total = latency.count as f64;
    let mut left = latency.count;
    let above = latency.histogram.iter().map(move |bucket| {
        left = left.saturating_sub(bucket.count);
        (bucket.ns as f64 / 1e3, left as f64 / total)
    });
    above.filter(|(_, share)| *share > 0.0)
}

/// The shares above powers of ten, of those that some request exceeded.
fn shares(name: &str, latency: &Latency) -> String {
    let share = |limit_us: f64| {
        let within = |bucket: &&Bucket| bucket.ns as f64 / 1e3 <= limit_us;
        let above = latency.count - latency.histogram.iter().filter(within).map(|bucket| bucket.count).sum::<u64>();
        above as f64 / latency.count as f64 * 100.0
    };
    let limits = [(1e2, "100 us"), (1e3, "1 ms"), (1e4, "10 ms"), (1e5, "100 ms"), (1e6, "1 s")];
    let above = limits.iter().filter(|(limit, _)| *limit < latency.max);
    let parts: Vec<String> = above.map(|(limit, name)| format!("{:.3} % above {name}", share(*limit))).collect();
    format!("{name:<12} {}", if parts.is_empty() { "none above 100 us".into() } else { parts.join(", ") })
}

/// Histogram of erase counts.
pub(super) fn wear(histogram: &[WearBin]) -> Chart {
    let most = histogram.iter().map(|bin| bin.blocks).max().unwrap_or(0);
    let label = |bin: &WearBin| {
        if bin.from == bin.to { bin.from.to_string() } else { format!("{}-{}", bin.from, bin.to) }
    };
    let shown = histogram.iter().filter(|bin| bin.blocks > 0);
    let values: Vec<Value> =
        histogram.iter().map(|bin| json!({"erases": label(bin), "blocks": bin.blocks, "from": bin.from})).collect();
    Chart {
        title: "Wear: blocks by erase count".into(),
        description: "A narrow distribution means even wear".into(),
        spec: json!({
            "data": {"values": values},
            "height": 200,
            "mark": {"type": "bar", "tooltip": true},
            "encoding": {
                "x": {"field": "erases", "type": "ordinal", "sort": {"field": "from"}, "title": "erases",
                      "axis": {"labelOverlap": true}},
                "y": {"field": "blocks", "type": "quantitative", "title": "blocks"}
            }
        }),
        text: shown
            .map(|bin| {
                let bar = bar(f64::from(bin.blocks), f64::from(most));
                format!("{:>13} erases  {bar} {:6} blocks", label(bin), bin.blocks)
            })
            .collect(),
    }
}

/// Every block: share of valid data, wear, use.
pub(super) fn blocks(map: &BlockMap) -> Chart {
    let cells = map.valid_share.len();
    let columns = if cells <= 1024 { MAP_COLUMNS } else { 128 };
    let letters = |text: &str, index: usize| text.as_bytes().get(index).map_or('?', |&letter| char::from(letter));
    let values: Vec<Value> = (0..cells)
        .map(|index| {
            json!({
                "x": index % columns, "y": index / columns, "block": index * map.blocks_per_cell as usize,
                "valid": map.valid_share[index], "erases": map.erases[index],
                "mode": letters(&map.mode, index).to_string(), "health": letters(&map.health, index).to_string(),
            })
        })
        .collect();
    let per_line = cells.div_ceil(MAP_LINES).max(MAP_COLUMNS);
    let per_mark = per_line.div_ceil(MAP_COLUMNS);
    let marks: Vec<char> = (0..cells)
        .step_by(per_mark)
        .map(|first| {
            let part = first..(first + per_mark).min(cells);
            if part.clone().any(|index| letters(&map.health, index) != '.') {
                return '!';
            }
            let valid = map.valid_share[part.clone()].iter().sum::<f64>() / part.len() as f64;
            // A full block must look different from a nearly full one.
            match (valid * 9.0).ceil() as u32 {
                0 => '.',
                tenth => char::from_digit(tenth.min(9), 10).unwrap_or('9'),
            }
        })
        .collect();
    let mut text: Vec<String> = marks.chunks(MAP_COLUMNS).map(|line| line.iter().collect()).collect();
    text.push(format!(
        "one mark is {} block(s): . no valid data, 1 to 9 increasing share of valid data, ! a bad block",
        per_mark * map.blocks_per_cell as usize
    ));
    Chart {
        title: "Blocks".into(),
        description: "Every block of the flash: darker holds more valid data, red is bad".into(),
        spec: json!({
            "data": {"values": values},
            "height": {"step": if columns > MAP_COLUMNS { 6 } else { 11 }},
            "mark": {"type": "rect", "tooltip": {"content": "data"}},
            "encoding": {
                "x": {"field": "x", "type": "ordinal", "axis": null},
                "y": {"field": "y", "type": "ordinal", "axis": null},
                "color": {
                    "condition": {"test": "datum.health != '.'", "value": "#c0392b"},
                    "field": "valid", "type": "quantitative", "title": "valid share",
                    "scale": {"domain": [0, 1], "scheme": "blues"}
                }
            }
        }),
        text,
    }
}

/// A bar of twenty characters.
fn bar(value: f64, most: f64) -> String {
    let marks = if most > 0.0 { (value / most * 20.0).round() as usize } else { 0 };
    format!("{:<20}", "#".repeat(marks.min(20)))
}
