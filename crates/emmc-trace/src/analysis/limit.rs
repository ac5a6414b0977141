//! Spans in the model of the host: what a card without any time would give, and what depth and a command queue change.

use emmc_host::{CqEngine, Pipeline, Spans, Speed};
use emmc_units::{Bytes, Nanos};

use super::result::{Limit, Prediction, SpanRow, Times};

/// Depths and processors that are predicted.
const PREDICTED: [(u32, u32); 4] = [(1, 1), (32, 1), (1, 2), (32, 2)];

/// Of the requests that most of the time goes to.
pub(super) fn limit(row: &SpanRow, active_ns: u64) -> Option<Limit> {
    if row.size_bytes == 0 {
        return None;
    }
    let mean = |times: &Option<Times>| times.map_or(0.0, |times| times.mean);
    let spans = [
        ("vfs", mean(&row.vfs_us)),
        ("block", mean(&row.block_us)),
        ("issue", mean(&row.issue_us)),
        ("hardware", row.hardware_us.map_or(row.device_us.mean, |times| times.mean)),
        ("post", mean(&row.post_us)),
    ];
    let ceiling = spans.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("hardware", |span| span.0);
    let is_hardware = row.hardware_us.is_some();
    let ceiling = if ceiling == "hardware" && !is_hardware { "device" } else { ceiling };
    let [vfs, block, issue, (_, hardware), (_, post)] = spans;
    let pre = (vfs.1 + block.1 + issue.1 - row.waited_us).max(0.0);
    // Without a recorded stage the model has its shortest time.
    let nanos = |us: f64| Nanos::from_micros_f64(us).max(Nanos(1));
    let spans = Spans { pre: nanos(pre), hw: nanos(hardware), post: nanos(post) };
    let chunk = Bytes(row.size_bytes);
    // Since Linux 4.16 only the driver's part is serial, and only it is between two transfers without a queue.
    let serial = nanos((issue.1 - row.waited_us).max(0.0)).min(spans.pre);
    let base = Pipeline { serial, gap: serial.min(spans.software()), ..Pipeline::new(spans, chunk) };
    let speed = |ns: f64| Speed::of(chunk, ns.max(1.0)).mb_s;
    let mut predicted = Vec::new();
    for (depth, cores) in PREDICTED {
        for queueing in [false, true] {
            let engine = if queueing { CqEngine::Hardware } else { CqEngine::None };
            let pipeline = Pipeline { depth, cores, engine, ..base }.checked().ok()?;
            predicted.push(Prediction { depth, cores, queueing, mb_per_s: speed(pipeline.period_ns()) });
        }
    }
    Some(Limit {
        op: row.op.clone(),
        size_bytes: row.size_bytes,
        mode: row.mode.clone(),
        ceiling: ceiling.into(),
        pre_us: pre,
        hardware_us: hardware,
        post_us: post,
        is_hardware,
        theoretical_mb_per_s: speed(spans.total().0 as f64),
        zero_hardware_mb_per_s: speed(spans.software().0 as f64),
        measured_mb_per_s: speed(active_ns as f64 / row.count.max(1) as f64),
        predicted,
    })
}
