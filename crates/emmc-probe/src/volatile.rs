//! The write cache, and what a discard does.

use emmc_units::Nanos;
use emmc_workload::BenchError;

use crate::requests::Requests;
use crate::result::{Evidence, Parameter, Value};
use crate::robust::{median, spread};

const KIB: u64 = 1024;
/// One write of a burst. Unit: bytes.
const PIECE: u64 = 16 * KIB;
/// Bursts are compared up to this size. Unit: bytes.
const BURST: u64 = 4 << 20;
const ROUNDS: u64 = 5;
/// One read around a discard, and their number in each half. Unit of the size: bytes.
const READ: u64 = 4 * KIB;
const READS: u64 = 96;
/// What [`discard`] reads: both halves before and after. Unit: bytes.
pub(crate) const DISCARD_READ: u64 = 4 * READS * READ;

/// How much a burst of writes takes at the speed of the bus after a flush, before it waits for the flash.
pub(crate) fn cache(requests: &mut Requests<'_>, from: u64) -> Result<Parameter, BenchError> {
    requests.step("bursts of writes after a flush");
    let pieces = BURST / PIECE;
    let mut times = vec![Vec::new(); pieces as usize];
    for round in 0..ROUNDS {
        match requests.flush() {
            Err(BenchError::Budget { .. }) => break,
            other => other?,
        };
        requests.idle(Nanos::from_micros(200_000))?;
        for (piece, times) in (0u64..).zip(&mut times) {
            match requests.write_cached(from + round * BURST + piece * PIECE, PIECE) {
                Err(error @ BenchError::Budget { .. }) => {
                    return Ok(Parameter::unknown(error.to_string(), "bytes", vec![]));
                }
                time => times.push(time?),
            }
        }
    }
    let middles: Vec<f64> = times.iter().map(|times| median(times)).collect();
    // What a burst costs in the end is the speed of the flash; single writes there wait, others do not.
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let late = mean(&middles[middles.len() / 2..]);
    let early = median(&middles[..4.min(middles.len())]);
    let seen = format!("16 KiB take {early:.0} us after a flush and {late:.0} us in a long burst");
    // A merge now and then makes few writes slow; a full cache many.
    let slow = middles[middles.len() / 2..].iter().filter(|time| **time > early * 1.5).count();
    if late < early * 1.5 || slow * 10 < middles.len() / 2 {
        let why = "writes after a flush are as fast as in a long burst: none, or hidden";
        return Ok(Parameter::unknown(why, "bytes", vec![Evidence::new("burst after a flush", seen, None)]));
    }
    // The first write that waits, if those after it wait too.
    let full = middles.windows(16).position(|part| part[0] > early * 1.2 && mean(part) > (early + late) / 2.0);
    let Some(full) = full else {
        return Ok(Parameter::unknown("writes slow down at no clear place", "bytes", vec![]));
    };
    // Flash works meanwhile: what it took does not need room.
    let drained = middles[..full].iter().sum::<f64>() * PIECE as f64 / late;
    let bytes = (full as f64 * PIECE as f64 - drained).max(0.0) as u64 / PIECE * PIECE;
    let seen = format!(
        "{seen}; the first {} KiB of a burst do not wait, of which flash takes {:.0} KiB meanwhile",
        (full as u64 * PIECE) >> 10,
        drained / 1024.0
    );
    Ok(Parameter::of(
        Value::Whole(bytes),
        "bytes",
        vec![Evidence::new("burst after a flush", seen, Some(Value::Whole(bytes)))],
    ))
}

/// Whether a discard makes reads faster: the card no longer has the data.
pub(crate) fn discard(requests: &mut Requests<'_>, from: u64, bytes: u64) -> Result<Parameter, BenchError> {
    requests.step("reads before and after a discard");
    if !requests.can_trim() {
        return Ok(Parameter::unknown("the target has no discard", "", vec![]));
    }
    let (half, piece) = (bytes / 2, READ);
    let mut before = [Vec::new(), Vec::new()];
    let mut after = [Vec::new(), Vec::new()];
    let places: Vec<u64> = (0..READS).map(|_| requests.rng.below((half - piece) / piece) * piece).collect();
    for times in [&mut before, &mut after] {
        for block in places.chunks(8) {
            // The first half is discarded, the second one is not: drift moves both.
            for (index, start) in [from, from + half].into_iter().enumerate() {
                for (number, place) in block.iter().enumerate() {
                    let time = requests.read(start + place, piece)?;
                    // The first one may wait for what the card does after a read of the other half.
                    if number > 0 {
                        times[index].push(time);
                    }
                }
            }
        }
        if requests.spent.trimmed_bytes == 0 {
            requests.flush()?;
            requests.trim(from, half)?;
            requests.flush()?;
        }
    }
    let gain = (median(&before[0]) - median(&before[1])) - (median(&after[0]) - median(&after[1]));
    let seen = format!(
        "4 KiB reads: {:.0} us before, {:.0} us after; beside it {:.0} and {:.0} us",
        median(&before[0]),
        median(&after[0]),
        median(&before[1]),
        median(&after[1])
    );
    // The error of a difference of four medians.
    let of = |times: &[f64]| spread(times).max(median(times) * 0.01);
    let squares: f64 = before.iter().chain(&after).map(|times| of(times).powi(2)).sum();
    let error = 1.25 * (squares / before[0].len() as f64).sqrt();
    let least = median(&before[0]) * 0.05;
    // What moves the reads beside it, such as data that leaves a cache, is no effect of the discard.
    let own = median(&before[0]) - median(&after[0]);
    let kind = match gain {
        gain if gain > (4.0 * error).max(least) && own < gain / 2.0 => {
            let why = "the reads beside the discard changed, those of it did not";
            return Ok(Parameter::unknown(why, "", vec![Evidence::new("reads around a discard", seen, None)]));
        }
        gain if gain > (4.0 * error).max(least) => "effective",
        gain if gain + 3.0 * error < 2.0 * least => "ignored",
        _ => {
            let why = format!("a difference of {gain:.0} us with an error of {error:.0} us: too disturbed");
            return Ok(Parameter::unknown(why, "", vec![Evidence::new("reads around a discard", seen, None)]));
        }
    };
    let value = Value::Kind(kind.into());
    Ok(Parameter::of(value.clone(), "", vec![Evidence::new("reads around a discard", seen, Some(value))]))
}
