//! The requests of a run as the card saw them, summed up by phase and kind.

use std::collections::BTreeMap;
use std::io::BufRead;

use emmc_serve::pci::RecordedRequest;
use serde::Serialize;

use crate::LabError;

/// Bytes of a block of data. Source: the standard's sector.
const BLOCK_BYTES: u64 = 512;

/// The name of a part of the script and when it began; it ends where the next one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its name.
    pub name: String,
    /// Since the machine's start. Unit: ns.
    pub start_ns: u64,
}

/// A part of the run: `setup`, `script`, parts that the script names, `end`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// The boot it belongs to: 1 until the script restarts the machine.
    pub boot: u32,
    /// When it began, since the first machine's start. Unit: seconds.
    pub start_s: f64,
    /// How long it took. Unit: seconds.
    pub duration_s: f64,
    /// The requests that were issued in it, by kind.
    pub requests: Vec<KindAccount>,
}

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindAccount {
    /// `read`, `write`, `erase`, `flush`, `switch` or `other`.
    pub kind: &'static str,
    /// How many.
    pub requests: u64,
    /// Data that were asked for; of `erase` absent. Unit: bytes.
    pub bytes: u64,
    /// Those that ended with an error interrupt.
    pub errors: u64,
    /// From the driver's doorbell or command to the end.
    pub latency_us: Spread,
    /// From there to the answer of the command that moves the data: waiting in the queue and in the card.
    pub answered_us: Spread,
    /// From the answer until the last block had crossed the bus.
    pub bus_us: Spread,
    /// From there until the card was no longer busy, without what is in `stop_us`.
    pub busy_us: Spread,
    /// Of requests that the controller ended by CMD12: from sending it to the end of the busy time that it caused. A
    /// CMD12 of the driver itself is a request of kind `other`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_us: Option<Spread>,
}

/// Times of requests. Unit: microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The shortest.
    pub min: f64,
    /// Half of them took at most this.
    pub p50: f64,
    /// 90 of 100.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1000.
    pub p99_9: f64,
    /// The longest.
    pub max: f64,
}

impl Spread {
    /// Of times in ns; there is at least one.
    fn of(times: &mut [u64]) -> Self {
        times.sort_unstable();
        let us = |ns: u64| ns as f64 / 1e3;
        // Nearest rank.
        let rank = |share: f64| ((times.len() as f64 * share).ceil() as usize).clamp(1, times.len()) - 1;
        let sum: u128 = times.iter().map(|&time| u128::from(time)).sum();
        Self {
            mean: sum as f64 / times.len() as f64 / 1e3,
            min: us(times[0]),
            p50: us(times[rank(0.5)]),
            p90: us(times[rank(0.9)]),
            p99: us(times[rank(0.99)]),
            p99_9: us(times[rank(0.999)]),
            max: us(times[times.len() - 1]),
        }
    }
}

/// What is collected of one kind.
#[derive(Default)]
struct Collected {
    bytes: u64,
    errors: u64,
    latency: Vec<u64>,
    answered: Vec<u64>,
    bus: Vec<u64>,
    busy: Vec<u64>,
    stop: Vec<u64>,
}

/// Kinds, as sorted in a phase.
const KINDS: [&str; 6] = ["read", "write", "flush", "erase", "switch", "other"];

/// SWITCH that writes 1 to FLUSH_CACHE. Source: JESD84-B51, 6.6.1: access in bits 25:24, index in 23:16, value in 15:8.
const FLUSH_ARGUMENT: u32 = 3 << 24 | 32 << 16 | 1 << 8;
const FLUSH_MASK: u32 = 0x03ff_ff00;

fn kind(request: &RecordedRequest) -> usize {
    match request.command {
        17 | 18 | 46 => 0,
        24 | 25 | 47 => 1,
        6 if request.argument & FLUSH_MASK == FLUSH_ARGUMENT => 2,
        38 => 3,
        6 => 4,
        _ => 5,
    }
}

/// Sums up a record; `marks` are in sequence, the first is at 0; the run ended at `end_ns`.
///
/// Errors: the record cannot be read.
pub fn phases(record: impl BufRead, marks: &[Mark], end_ns: u64) -> Result<Vec<Phase>, LabError> {
    let mut collected: Vec<BTreeMap<usize, Collected>> = marks.iter().map(|_| BTreeMap::new()).collect();
    for line in record.lines() {
        let line = line.map_err(LabError::system("the record of requests"))?;
        let request: RecordedRequest = serde_json::from_str(&line)
            .map_err(|error| LabError::system("the record of requests")(std::io::Error::other(error)))?;
        let phase = marks.partition_point(|mark| mark.start_ns <= request.issued_ns).saturating_sub(1);
        let Some(kinds) = collected.get_mut(phase) else { continue };
        let sum = kinds.entry(kind(&request)).or_default();
        sum.bytes += u64::from(request.blocks) * BLOCK_BYTES;
        sum.errors += u64::from(request.errors != 0);
        sum.latency.push(request.done_ns.saturating_sub(request.issued_ns));
        sum.answered.push(request.answered_ns.saturating_sub(request.issued_ns));
        sum.bus.push(request.crossed_ns.saturating_sub(request.answered_ns));
        let busy_end_ns = request.stopped_ns.unwrap_or(request.done_ns);
        sum.busy.push(busy_end_ns.saturating_sub(request.crossed_ns));
        sum.stop.extend(request.stopped_ns.map(|stopped_ns| request.done_ns.saturating_sub(stopped_ns)));
    }
    let ends = marks.iter().skip(1).map(|mark| mark.start_ns).chain([end_ns]);
    let phases = marks.iter().zip(ends).zip(collected);
    Ok(phases.map(|((mark, end_ns), kinds)| phase(mark, end_ns, kinds)).collect())
}

fn phase(mark: &Mark, end_ns: u64, kinds: BTreeMap<usize, Collected>) -> Phase {
    let account = |(kind, mut sum): (usize, Collected)| KindAccount {
        kind: KINDS[kind],
        requests: sum.latency.len() as u64,
        bytes: sum.bytes,
        errors: sum.errors,
        latency_us: Spread::of(&mut sum.latency),
        answered_us: Spread::of(&mut sum.answered),
        bus_us: Spread::of(&mut sum.bus),
        busy_us: Spread::of(&mut sum.busy),
        stop_us: (!sum.stop.is_empty()).then(|| Spread::of(&mut sum.stop)),
    };
    Phase {
        name: mark.name.clone(),
        boot: 1,
        start_s: mark.start_ns as f64 / 1e9,
        duration_s: end_ns.saturating_sub(mark.start_ns) as f64 / 1e9,
        requests: kinds.into_iter().map(account).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_belong_to_the_phase_in_which_they_were_issued() {
        let record = r#"{"command":47,"argument":0,"blocks":8,"issued_ns":10,"answered_ns":1010,"crossed_ns":3010,"done_ns":7010,"interrupt_ns":7010}
{"command":46,"argument":0,"blocks":8,"issued_ns":100,"answered_ns":1100,"crossed_ns":2100,"done_ns":2100,"interrupt_ns":null,"errors":4}
{"command":46,"argument":0,"blocks":8,"issued_ns":200,"answered_ns":300,"crossed_ns":400,"done_ns":400,"interrupt_ns":400}
{"command":6,"argument":52429056,"blocks":0,"issued_ns":300,"answered_ns":300,"crossed_ns":300,"done_ns":400,"interrupt_ns":400}
"#;
        let mark = |name: &str, start_ns| Mark { name: name.into(), start_ns };
        let phases = phases(record.as_bytes(), &[mark("setup", 0), mark("script", 100)], 1_000_000_000).unwrap();
        let kinds = |phase: &Phase| {
            phase.requests.iter().map(|kind| (kind.kind, kind.requests, kind.bytes, kind.errors)).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&phases[0]), [("write", 1, 4096, 0)]);
        assert_eq!(kinds(&phases[1]), [("read", 2, 8192, 1), ("flush", 1, 0, 0)]);
        let write = &phases[0].requests[0];
        assert_eq!(
            (write.latency_us.p50, write.answered_us.max, write.bus_us.min, write.busy_us.mean),
            (7.0, 1.0, 2.0, 4.0)
        );
        let read = &phases[1].requests[0];
        assert_eq!((read.latency_us.mean, read.latency_us.p50, read.latency_us.p90), (1.1, 0.2, 2.0));
        assert!((phases[1].duration_s - 0.999_999_9).abs() < 1e-12);
    }

    #[test]
    fn the_busy_time_after_a_stop_is_apart() {
        let record = r#"{"command":25,"argument":0,"blocks":8,"issued_ns":0,"answered_ns":1000,"crossed_ns":3000,"stopped_ns":4000,"done_ns":9000,"interrupt_ns":9000}"#;
        let phases = phases(record.as_bytes(), &[Mark { name: "setup".into(), start_ns: 0 }], 9000).unwrap();
        let write = &phases[0].requests[0];
        assert_eq!((write.latency_us.mean, write.busy_us.mean, write.stop_us.unwrap().mean), (9.0, 1.0, 5.0));
    }

    #[test]
    fn a_record_that_is_none_is_an_error() {
        assert!(phases(b"{}\n".as_slice(), &[Mark { name: "setup".into(), start_ns: 0 }], 0).is_err());
    }
}
