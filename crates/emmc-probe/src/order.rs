//! The class of mapping: where small writes in random order are as fast as sequential ones.
//!
//! - `random`: anywhere;
//! - `semi-sequential`: within one allocation unit, and not in many units in turn;
//! - `sequential`: nowhere: each step back closes the unit.
//!
//! Writes at random places of one MiB and writes in descending order of another one are the witnesses within a unit;
//! writes in turn to places far apart, and the streams that count open units, are those beyond it. Each stands beside
//! sequential writes before and after. Absent on purpose: sizes of units, which are not needed: the MiB begins at a
//! multiple of 48 MiB, and so lies within one unit of the usual sizes.

use emmc_workload::BenchError;

use crate::requests::Requests;
use crate::result::{Evidence, Parameter, Value};
use crate::robust::median;
use crate::units::{COLLAPSE, Limit};

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;
/// A place within one unit. Unit: bytes.
const PLACE: u64 = MIB;
/// Sizes of a small write, of which the smallest usable one is taken. Unit: bytes.
const SMALL: [u64; 4] = [16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB];
/// Sequential writes that tell whether a size is usable.
const TRIALS: usize = 8;
/// A write that takes more than this many times as long as one of twice the size is no whole mapping unit.
const PART_OF_UNIT: f64 = 1.25;
/// Places within units of their own. Unit: bytes.
const APART: u64 = 48 * MIB;
/// Distances of the places far apart. Unit: bytes.
const FAR: u64 = 24 * MIB;
/// Places far apart; fewer than the least could all be open.
const FAR_PLACES: u64 = 64;
const FAR_PLACES_MIN: u64 = 40;
/// Data at each of them, which closing a unit has to copy. Unit: bytes.
const FAR_FILL: u64 = 768 * KIB;
/// Below this many times the cost of a sequential write a cost is the same; above [`COLLAPSE`] it is another one.
const SAME: f64 = 2.0;
/// Random writes that take less than this of the time of sequential ones are faster.
const FASTER: f64 = 0.75;
/// Writes of a turn, of which the first two open units.
const TURN: usize = 12;
const OPENING: usize = 2;
/// Writes to places far apart beyond the first to each of them, which may close units without data to copy.
const SECOND_WRITES: u64 = 48;
/// A cost this many times higher needs no more writes.
const CLEAR: f64 = 10.0;

/// How much longer writes take than sequential ones beside them.
#[derive(Clone, Copy, Debug)]
struct Cost {
    ratio: f64,
    us: f64,
    sequential_us: f64,
}

impl Cost {
    fn is_same(&self) -> bool {
        self.ratio <= SAME
    }

    fn is_slow(&self) -> bool {
        self.ratio > COLLAPSE
    }

    fn seen(&self, what: &str) -> String {
        format!("{what}: {:.0} us, sequential {:.0} us: {:.1} times", self.us, self.sequential_us, self.ratio)
    }
}

/// Writes at the given places, in turns with sequential ones from `base` on.
fn cost(requests: &mut Requests<'_>, base: &mut u64, small: u64, places: &[u64]) -> Result<Cost, BenchError> {
    let (mut sequential, mut others) = (Vec::new(), Vec::new());
    let mut turns = places.chunks(TURN);
    loop {
        for index in 0..TURN {
            let time = requests.write(*base, small)?;
            *base += small;
            if index >= OPENING {
                sequential.push(time);
            }
        }
        let ratio = median(&others) / median(&sequential);
        // Not a number before the first turn.
        if ratio > CLEAR {
            break;
        }
        let Some(turn) = turns.next() else { break };
        for (index, place) in turn.iter().enumerate() {
            let time = requests.write(*place, small)?;
            if index >= OPENING {
                others.push(time);
            }
        }
    }
    let (us, sequential_us) = (median(&others), median(&sequential));
    Ok(Cost { ratio: us / sequential_us, us, sequential_us })
}

/// The size of a small write: the smallest one that is no part of a mapping unit, which the card would have to read and
/// write again. None of them: the largest. Unit: bytes.
pub(crate) fn small(requests: &mut Requests<'_>) -> Result<u64, BenchError> {
    requests.step("sequential writes of growing size");
    let start = requests.from.next_multiple_of(APART) + 3 * APART;
    let mut at = start;
    requests.fill(start, start + 4 * MIB)?;
    let mut times = Vec::new();
    for size in SMALL {
        let mut of_size = Vec::new();
        for _ in 0..OPENING + TRIALS {
            of_size.push(requests.write(at, size)?);
            at += size;
        }
        times.push(median(&of_size[OPENING..]));
    }
    let usable = times.windows(2).position(|pair| pair[0] <= PART_OF_UNIT * pair[1]);
    Ok(SMALL[usable.unwrap_or(SMALL.len() - 1)])
}

/// What was found, and a remark if random writes are the faster ones.
pub(crate) struct Class {
    pub(crate) parameter: Parameter,
    pub(crate) remark: Option<String>,
}

/// The parameter `mapping_class`; `small`: see [`small`]; `streams`: what the streams that count
/// open units found.
pub(crate) fn class(requests: &mut Requests<'_>, small: u64, streams: &Limit) -> Result<Class, BenchError> {
    requests.step("small writes in random order");
    let from = requests.from.next_multiple_of(APART);
    let place = |index: u64| from + index * APART;
    if place(3) + 8 * MIB > requests.to {
        let what = "the area is too small for places in units of their own".into();
        return Err(BenchError::Misfit { suite: crate::requests::NAME, what });
    }
    let mut base = place(2);
    requests.fill(base, base + 8 * MIB)?;
    let scattered = {
        requests.fill(place(0), place(0) + 2 * PLACE)?;
        let mut slots: Vec<u64> = (0..PLACE / small).map(|slot| place(0) + slot * small).collect();
        requests.shuffle(&mut slots);
        cost(requests, &mut base, small, &slots)?
    };
    let descending = {
        requests.fill(place(1), place(1) + 2 * PLACE)?;
        let slots: Vec<u64> = (0..PLACE / small).rev().map(|slot| place(1) + slot * small).collect();
        cost(requests, &mut base, small, &slots)?
    };
    let (far, count) = far(requests, &mut base, small)?;
    let remark = (scattered.ratio < FASTER && descending.ratio < FASTER).then(|| {
        format!(
            "Random {} KiB writes within 1 MiB take {:.1} times as long as sequential ones: faster.",
            small >> 10,
            scattered.ratio
        )
    });
    let limited = streams.is_limit && streams.open > 0;
    let unlimited = !streams.is_limit && streams.open as u64 >= FAR_PLACES_MIN;
    let kib = small >> 10;
    let least = if streams.is_limit { "" } else { "at least " };
    let mut evidence = vec![
        Evidence::new("random order in 1 MiB", scattered.seen(&format!("{kib} KiB at random places")), None),
        Evidence::new("descending order in 1 MiB", descending.seen(&format!("{kib} KiB, each before the last")), None),
        Evidence::new("places far apart", far.seen(&format!("{kib} KiB in turn to {count} places")), None),
        Evidence::new("streams in turn", format!("{least}{} open", streams.open), None),
    ];
    let within = [&scattered, &descending];
    let (kind, support): (_, &[usize]) = if within.iter().all(|cost| cost.is_slow()) && far.is_slow() {
        ("sequential", &[0, 1])
    } else if within.iter().all(|cost| cost.is_same()) && far.is_slow() && !unlimited {
        ("semi-sequential", if limited { &[0, 1, 2, 3] } else { &[2] })
    } else if within.iter().all(|cost| cost.is_same()) && far.is_same() && count >= FAR_PLACES_MIN && !limited {
        ("random", if unlimited { &[0, 1, 2, 3] } else { &[2] })
    } else {
        let why = match count < FAR_PLACES_MIN && far.is_same() {
            true => "the area has too few places far apart: all of them may be in open units",
            false => "the costs of random writes contradict each other, or lie between fast and slow",
        };
        return Ok(Class { parameter: Parameter::unknown(why, "", evidence), remark });
    };
    let value = Value::Kind(kind.into());
    support.iter().for_each(|index| evidence[*index].value = Some(value.clone()));
    Ok(Class { parameter: Parameter::of(value, "", evidence), remark })
}

/// Writes in turn to places far apart, ascending within each of them.
fn far(requests: &mut Requests<'_>, base: &mut u64, small: u64) -> Result<(Cost, u64), BenchError> {
    let from = requests.from.next_multiple_of(FAR) + FAR / 2;
    let count = (requests.to.saturating_sub(from + FAR_FILL) / FAR).clamp(1, FAR_PLACES);
    let mut order: Vec<u64> = (0..count).collect();
    requests.shuffle(&mut order);
    for index in &order {
        let start = from + index * FAR;
        requests.fill(start, start + FAR_FILL)?;
    }
    // Ascending in each place, so that only their number counts.
    let places: Vec<u64> = (0..count + SECOND_WRITES)
        .map(|write| from + order[(write % count) as usize] * FAR + write / count * small)
        .collect();
    Ok((cost(requests, base, small, &places)?, count))
}
