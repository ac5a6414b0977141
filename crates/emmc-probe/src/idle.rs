//! Whether a card works while it rests: merges that it does then are not paid by the next writes.
//!
//! Two groups of streams, each as large as the number of open units, are written in turn. Every write of one group
//! closes a unit of the other, unless the card has closed that in a pause. Pauses of growing and of falling length
//! alternate with none at all, and the time of a group counts from clock to clock. Absent on purpose: cards without a
//! limit of open units, which show no merges, and collection on a full card that maps by pages, which needs as much
//! written data as the card has.

use emmc_units::Nanos;
use emmc_workload::BenchError;

use crate::requests::Requests;
use crate::result::{Evidence, Parameter, Value};
use crate::robust::median;
use crate::units::{COLLAPSE, Limit, Streams};

/// Pauses. Unit: milliseconds.
const PAUSES_MS: [u64; 4] = [100, 500, 2000, 8000];
/// Where pauses of this length do not help, shorter ones do not either. Unit: milliseconds.
const LONG_MS: u64 = 2000;
/// A group after a pause that takes less than this share of the time without one has been helped.
const HELPED: f64 = 0.5;
/// Above this share nothing was done.
const SAME: f64 = 0.8;

/// Times of the two groups with and without a pause before them.
struct Ladder {
    /// By group. Unit: milliseconds, microseconds.
    paused: Vec<(usize, u64, f64)>,
    unpaused: [Vec<f64>; 2],
}

/// The parameter `idle_collection`; `limit`: what the streams that count open units found.
pub(crate) fn collection(
    requests: &mut Requests<'_>,
    streams: &mut Streams,
    limit: &Limit,
) -> Result<Parameter, BenchError> {
    requests.step("writes after pauses");
    if !limit.is_limit || limit.open == 0 {
        return Ok(Parameter::unknown("no limit of open units: no merges that a pause could spare", "", vec![]));
    }
    let count = limit.open;
    if 2 * count > streams.len() {
        return Ok(Parameter::unknown("the area is too small for twice as many streams as open units", "", vec![]));
    }
    // One stream alone, as the measure of a write that closes nothing.
    let alone = streams.cost(requests, 1)?;
    let up: Vec<u64> = PAUSES_MS.to_vec();
    let down: Vec<u64> = PAUSES_MS.iter().rev().copied().collect();
    let mut evidence = Vec::new();
    let mut kinds = Vec::new();
    for (name, pauses) in [("growing pauses", up), ("falling pauses", down)] {
        let ladder = ladder(requests, streams, count, &pauses)?;
        let kind = ladder.kind(count as f64 * alone.alone_us);
        evidence.push(Evidence::new(name, ladder.seen(count), kind.map(|kind| Value::Kind(kind.into()))));
        kinds.push(kind);
    }
    match kinds[..] {
        [Some(one), Some(other)] if one == other => Ok(Parameter::of(Value::Kind(one.into()), "", evidence)),
        [None, None] => {
            let why = "groups of streams in turn show no merges that a pause could spare";
            Ok(Parameter::unknown(why, "", evidence))
        }
        _ => Ok(Parameter::unknown("growing and falling pauses disagree", "", evidence)),
    }
}

/// Groups in turn, after a pause and without one.
fn ladder(
    requests: &mut Requests<'_>,
    streams: &mut Streams,
    count: usize,
    pauses_ms: &[u64],
) -> Result<Ladder, BenchError> {
    let mut found = Ladder { paused: Vec::new(), unpaused: [vec![], vec![]] };
    let groups = [0..count, count..2 * count];
    // Half of three turns for each pause, and one before.
    let writes = (3 * pauses_ms.len() as u64).div_ceil(2) + 1;
    for index in 0..2 * count {
        streams.prepare(requests, index, writes)?;
    }
    let mut turn = 0;
    let mut group = |requests: &mut Requests<'_>, pause_ms: u64| -> Result<(usize, f64), BenchError> {
        if pause_ms > 0 {
            requests.idle(Nanos::from_millis(pause_ms))?;
        }
        let start = requests.now();
        let group = turn % 2;
        for index in groups[group].clone() {
            streams.write(requests, index)?;
        }
        turn += 1;
        Ok((group, requests.now().since(start).as_micros_f64()))
    };
    // Filling has left other units open.
    group(requests, 0)?;
    group(requests, 0)?;
    for &pause_ms in pauses_ms {
        let (of, time) = group(requests, pause_ms)?;
        found.paused.push((of, pause_ms, time));
        // Twice, so that the next pause is before the other group: merges of the two need not be of the same size.
        for _ in 0..2 {
            let (of, time) = group(requests, 0)?;
            found.unpaused[of].push(time);
        }
    }
    Ok(found)
}

impl Ladder {
    /// `none` or `effective`; none if nothing has to be done anyway. `alone_us`: the group's writes without merges.
    fn kind(&self, alone_us: f64) -> Option<&'static str> {
        let usual = [median(&self.unpaused[0]), median(&self.unpaused[1])];
        if usual.iter().any(|usual| *usual < COLLAPSE * alone_us) {
            return None;
        }
        let share = |(group, _, time): &(usize, u64, f64)| time / usual[*group];
        let longest = self.paused.iter().max_by_key(|(_, pause, _)| *pause)?;
        match share(longest) {
            longest if longest < HELPED => Some("effective"),
            _ if self.paused.iter().filter(|(_, pause, _)| *pause >= LONG_MS).all(|paused| share(paused) > SAME) => {
                Some("none")
            }
            _ => None,
        }
    }

    fn seen(&self, count: usize) -> String {
        let paused: Vec<String> =
            self.paused.iter().map(|(_, pause, time)| format!("{pause} ms: {:.0}", time / 1e3)).collect();
        format!(
            "{count} writes to units that are not open take {:.0} and {:.0} ms, after pauses of {} ms",
            median(&self.unpaused[0]) / 1e3,
            median(&self.unpaused[1]) / 1e3,
            paused.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_helps_only_where_merges_are_due() {
        let ladder = |paused: [f64; 2], usual: f64| Ladder {
            paused: vec![(0, 100, paused[0]), (1, 8000, paused[1])],
            unpaused: [vec![usual; 3], vec![usual; 3]],
        };
        assert_eq!(ladder([900.0, 120.0], 1000.0).kind(100.0), Some("effective"));
        assert_eq!(ladder([990.0, 1010.0], 1000.0).kind(100.0), Some("none"));
        assert_eq!(ladder([990.0, 650.0], 1000.0).kind(100.0), None);
        assert_eq!(ladder([100.0, 100.0], 110.0).kind(100.0), None);
    }
}
