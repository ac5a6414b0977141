//! What limits the speeds of the suite `speed`: the bus, the flash, or the way requests are made.

use crate::result::measurement::Measurement;
use crate::result::{BenchResult, Cause};
use crate::suites::speed::{MANY, ROWS};

/// From this share of the bus's ceiling on, the bus is the limit.
const BUS_BOUND: f64 = 0.85;
/// A queue that gains less than this is reported as no gain.
const QUEUE_GAIN: f64 = 1.2;
/// Below this share of the throughput of large writes, a system waits mainly for small writes.
const SMALL_WRITES: f64 = 0.1;

/// The causes that the measurements show; none if a value is missing or the bus is unknown.
pub fn causes(result: &BenchResult) -> Vec<Cause> {
    let find = |row: usize, column: &str| {
        result.outcome.measurements.iter().find(|found| found.row == ROWS[row].0 && found.column == column)
    };
    let bus = result.context.bus.as_ref().map(|bus| (bus.mb_per_s_max, bus.mode.as_str()));
    let mut causes = Vec::new();
    for column in ["read", "write"] {
        if let (Some(large), Some(bus)) = (find(0, column), bus) {
            causes.push(of_large(large, bus));
        }
        if let (Some(small), Some((ceiling, _))) = (find(1, column), bus) {
            causes.push(of_small(small, ceiling));
        }
        if let (Some(alone), Some(many)) = (find(1, column), find(2, column)) {
            let queueing = result.context.card.as_ref().and_then(|card| card.queueing_on);
            causes.push(of_many(alone, many, queueing));
        }
    }
    if let (Some(large), Some(small)) = (find(0, "write"), find(1, "write")) {
        causes.extend(of_installs(large, small));
    }
    causes
}

fn of_large(found: &Measurement, (ceiling, mode): (f64, &str)) -> Cause {
    let share = found.mb_per_s / ceiling;
    let limit = match (found.column.as_str(), share >= BUS_BOUND) {
        (_, true) => "the bus: only a faster mode would help",
        ("read", false) => "the flash and its firmware: the bus waits for it",
        (_, false) => "programming the flash: the bus waits for it",
    };
    Cause {
        of: format!("{} {}", found.row, found.column),
        limit: limit.into(),
        evidence: format!(
            "{:.1} MB/s of the {ceiling:.0} MB/s that {mode} carries: {:.0} %",
            found.mb_per_s,
            share * 100.0
        ),
    }
}

fn of_small(found: &Measurement, ceiling: f64) -> Cause {
    let latency = if found.column == "read" { &found.read_us } else { &found.write_us };
    let each = latency.as_ref().map_or(1e6 / found.iops.max(1e-9), |latency| latency.mean);
    let bus = found.block_bytes as f64 / ceiling;
    Cause {
        of: format!("{} {}", found.row, found.column),
        limit: "latency: command, firmware, flash and host, in sequence".into(),
        evidence: format!("{each:.0} us a request, of which the bus has data for {bus:.0} us"),
    }
}

fn of_many(alone: &Measurement, many: &Measurement, queueing: Option<bool>) -> Cause {
    let gain = many.iops / alone.iops.max(1e-9);
    let limit = match (gain >= QUEUE_GAIN, queueing) {
        (true, _) => format!("hidden latency: {MANY} requests at once are {gain:.1} times as fast as one"),
        (false, Some(false)) => "no command queueing: the card takes one request at a time".into(),
        (false, _) => "a resource that all requests share: a queue gains nothing".into(),
    };
    Cause {
        of: format!("{} {}", many.row, many.column),
        limit,
        evidence: format!("{:.0} IOPS against {:.0}", many.iops, alone.iops),
    }
}

/// Installations, databases and logs consist of small writes.
fn of_installs(large: &Measurement, small: &Measurement) -> Option<Cause> {
    let share = small.mb_per_s / large.mb_per_s.max(1e-9);
    (share < SMALL_WRITES).then(|| Cause {
        of: "installations, databases, logs".into(),
        limit: "small random writes, not the advertised speed".into(),
        evidence: format!(
            "{:.2} MB/s in {} against {:.1} MB/s in {}",
            small.mb_per_s, small.row, large.mb_per_s, large.row
        ),
    })
}
