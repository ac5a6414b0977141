//! Parts of the card that differ: rates over the range, and small writes out of order near the start.
//!
//! Sixteen places from the start to the end are written in turn, forwards and backwards, in large and in small
//! sequential writes. Places differ if their times fall into two groups, in every round and with both sizes. Cards for
//! FAT have a part at their start that takes small writes in any order; there, writes in random order and in descending
//! order of one MiB are compared with those at places farther on. Absent on purpose: the borders of a part, which lie
//! between places.

use emmc_workload::BenchError;

use crate::requests::Requests;
use crate::result::{Evidence, Parameter, Value};
use crate::robust::median;

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;
/// Places over the range.
const PLACES: u64 = 16;
const ROUNDS: usize = 3;
/// Sizes of writes, with the place of the first of each from the start of a place. Unit: bytes.
const SIZES: [(u64, u64); 2] = [(256 * KIB, 0), (32 * KIB, 7 * MIB)];
/// What a place needs. Unit: bytes.
const PLACE: u64 = 8 * MIB;
/// Writes at a place in a round, of which the first open units.
const WRITES: usize = 9;
const OPENING: usize = 2;
/// Places whose writes take this many times longer differ.
const DIFFERS: f64 = 1.3;
/// Starts of the places that a part for FATs may have, from the start of the range. Unit: bytes.
const FIRST: [u64; 4] = [0, 4 * MIB, 12 * MIB, 28 * MIB];
/// A small write, and those at a place. Unit of the size: bytes.
const SMALL: u64 = 16 * KIB;
const SMALL_WRITES: usize = 8;
/// Writes out of order at the start are this many times faster than elsewhere.
const FASTER: f64 = 1.5;

/// The parameters `regions` and `fat_region`.
pub(crate) fn regions(requests: &mut Requests<'_>) -> Result<Vec<(&'static str, Parameter)>, BenchError> {
    let range = rates(requests)?;
    let first = first(requests)?;
    Ok(vec![("regions", range), ("fat_region", first)])
}

/// The mean of each time and the next one. Of the pages of a word line one takes longer than the other: where durable
/// writes end in one and in the other in turn, the median of an odd number of them says which there were more of.
fn pairs(times: &[f64]) -> Vec<f64> {
    times.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect()
}

/// What the times of one size of writes say of the places.
#[derive(Clone, Debug, PartialEq)]
enum Split {
    /// All the same.
    Uniform,
    /// For each place: slower (1), faster (-1), or not the same in all rounds (0).
    Two(Vec<i8>),
    /// Neither.
    Unclear,
}

/// Splits places at the widest gap between their times, which is then as wide in every round.
fn split(times: &[Vec<f64>]) -> Split {
    let mut middles: Vec<f64> = times.iter().map(|rounds| median(rounds)).collect();
    middles.sort_by(f64::total_cmp);
    if middles[middles.len() - 1] <= middles[0] * DIFFERS {
        return Split::Uniform;
    }
    let gap = middles.windows(2).max_by(|a, b| (a[1] / a[0]).total_cmp(&(b[1] / b[0])));
    let Some(gap) = gap.filter(|gap| gap[1] > gap[0] * DIFFERS) else { return Split::Unclear };
    let border = (gap[0] * gap[1]).sqrt();
    let side = |rounds: &Vec<f64>| match rounds {
        rounds if rounds.iter().all(|time| *time > border) => 1,
        rounds if rounds.iter().all(|time| *time < border) => -1,
        _ => 0,
    };
    Split::Two(times.iter().map(side).collect())
}

/// Whether both sizes of writes say the same: `uniform`, `differ`, or nothing clear.
fn agreed(large: &Split, small: &Split) -> Option<&'static str> {
    match (large, small) {
        (Split::Uniform, Split::Uniform) => Some("uniform"),
        (Split::Two(large), Split::Two(small)) => {
            let both = |side| large.iter().zip(small).any(|(a, b)| (*a, *b) == (side, side));
            let against = large.iter().zip(small).any(|(a, b)| a * b < 0);
            (both(1) && both(-1) && !against).then_some("differ")
        }
        _ => None,
    }
}

fn rates(requests: &mut Requests<'_>) -> Result<Parameter, BenchError> {
    requests.step("writes over the range");
    let from = requests.from.next_multiple_of(PLACE);
    let last = (requests.to - PLACE) / PLACE * PLACE;
    let place = |index: u64| from + (last - from) / (PLACES - 1) / PLACE * PLACE * index;
    let mut times = [vec![Vec::new(); PLACES as usize], vec![Vec::new(); PLACES as usize]];
    for round in 0..ROUNDS as u64 {
        for ((size, offset), times) in SIZES.into_iter().zip(&mut times) {
            for step in 0..PLACES {
                let index = if round % 2 == 0 { step } else { PLACES - 1 - step };
                let start = place(index) + offset + round * WRITES as u64 * size;
                let mut of_place = Vec::new();
                for write in 0..WRITES as u64 {
                    of_place.push(requests.write(start + write * size, size)?);
                }
                times[index as usize].push(median(&pairs(&of_place[OPENING..])));
            }
        }
    }
    let mut evidence: Vec<Evidence> = SIZES
        .iter()
        .zip(&times)
        .map(|((size, _), times)| {
            let rates: Vec<String> =
                times.iter().map(|rounds| format!("{:.1}", *size as f64 / median(rounds))).collect();
            let seen = format!("{} KiB writes in MB/s, from the start to the end: {}", size >> 10, rates.join(", "));
            Evidence::new("sequential writes over the range", seen, None)
        })
        .collect();
    let Some(kind) = agreed(&split(&times[0]), &split(&times[1])) else {
        let why = "large and small writes do not differ at the same places, or not in every round";
        return Ok(Parameter::unknown(why, "", evidence));
    };
    let value = Value::Kind(kind.into());
    evidence.iter_mut().for_each(|witness| witness.value = Some(value.clone()));
    Ok(Parameter::of(value, "", evidence))
}

/// How much of the start takes small writes out of order that other places do not take.
fn first(requests: &mut Requests<'_>) -> Result<Parameter, BenchError> {
    requests.step("small writes out of order near the start");
    let (from, room) = (requests.from, requests.to - requests.from);
    let others = (1..5u64).map(|part| (from + room * part / 5) / (48 * MIB) * (48 * MIB));
    let mut places: Vec<u64> = FIRST.iter().map(|offset| from + offset).chain(others).collect();
    let mut times = [Vec::new(), Vec::new()];
    for (is_random, times) in [true, false].into_iter().zip(&mut times) {
        for &place in &places {
            requests.fill(place, place + MIB)?;
            let mut slots: Vec<u64> = (0..MIB / SMALL).rev().collect();
            if is_random {
                requests.shuffle(&mut slots);
            }
            let mut of_place = Vec::new();
            for slot in slots.into_iter().take(SMALL_WRITES) {
                of_place.push(requests.write(place + slot * SMALL, SMALL)?);
            }
            times.push(median(&pairs(&of_place[1..])));
        }
        // The other order of writes comes from the other end: a card that slows down meanwhile is not faster at its
        // start in both.
        places.reverse();
    }
    times[1].reverse();
    let fast = |times: &[f64]| {
        let (first, others) = times.split_at(FIRST.len());
        let least = others.iter().copied().fold(f64::INFINITY, f64::min);
        first.iter().take_while(|time| **time * FASTER < least).count()
    };
    let counts = [fast(&times[0]), fast(&times[1])];
    let mut evidence = Vec::new();
    for (what, times) in ["random", "descending"].into_iter().zip(&times) {
        let shown: Vec<String> = times.iter().map(|time| format!("{time:.0}")).collect();
        let seen = format!(
            "16 KiB in {what} order of a MiB at 0, 4, 12, 28 MiB and four places farther on: {} us",
            shown.join(", ")
        );
        evidence.push(Evidence::new(&format!("{what} order near the start"), seen, None));
    }
    if counts[0] != counts[1] {
        let why = "the start is faster in one order of writes only, or not as far in both";
        return Ok(Parameter::unknown(why, "", evidence));
    }
    let value = Value::Kind(match counts[0] {
        0 => "none".into(),
        count => format!("at least the first {} MiB", (FIRST[count - 1] + MIB) >> 20),
    });
    evidence.iter_mut().for_each(|witness| witness.value = Some(value.clone()));
    Ok(Parameter::of(value, "", evidence))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place that begins with the fast page of a word line and one that begins with the slow one are alike, and one
    /// long write does not count.
    #[test]
    fn pages_of_a_word_line_are_no_difference_of_places() {
        let (fast, slow) = (1.0, 3.0);
        let of_place = |first: f64, next: f64| median(&pairs(&[first, next, first, next, first, next, 90.0]));
        assert_eq!([of_place(fast, slow), of_place(slow, fast)], [2.0, 2.0]);
    }

    #[test]
    fn places_differ_only_in_every_round_and_with_both_sizes() {
        let mut times = vec![vec![100.0, 110.0, 95.0]; 16];
        assert_eq!(split(&times), Split::Uniform);
        // Half of them.
        times[8..].fill(vec![200.0, 190.0, 250.0]);
        times[5] = vec![90.0, 105.0, 250.0];
        let Split::Two(sides) = split(&times) else { panic!("no split") };
        assert_eq!((sides[0], sides[5], sides[12]), (-1, 0, 1));
        let half = Split::Two(sides.clone());
        assert_eq!(agreed(&half, &half), Some("differ"));
        assert_eq!(agreed(&half, &Split::Uniform), None);
        assert_eq!(agreed(&half, &Split::Two(sides.iter().map(|side| -side).collect())), None);
        // Many speeds without a gap.
        let slopes: Vec<Vec<f64>> = (0..16).map(|place| vec![100.0 + 10.0 * f64::from(place); 3]).collect();
        assert_eq!(split(&slopes), Split::Unclear);
    }
}
