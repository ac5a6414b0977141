//! Capacity: whether all of the stated one is there, and how much is if not.
//!
//! Two things are written: marks, blocks of 4 KiB at even, random and doubling places and at the end; and two runs, at
//! the start and at the end of the area. Every sector of both says where it was written. What is not there loses its
//! marks. What leads elsewhere shows a run a second time: one read in each run's length sees it, at any distance. The
//! runs come last, so that a buffer with the latest data does not answer for the flash. Then the end of what is
//! there is
//! found by more marks. Absent on purpose: fakes with a buffer of more than a run's length, and a power cycle.

mod mark;
mod search;

use emmc_units::Bytes;
use emmc_workload::BenchError;

use crate::advice::label;
use crate::requests::Requests;
use crate::result::{Declared, Evidence, Parameter, Value};
use mark::{BLOCK, Seen};
use search::Search;

const MIB: u64 = 1 << 20;
/// Most of one run. Unit: bytes.
const RUN: u64 = 16 * MIB;
/// Marks at even places, and the same number at random ones.
const EVEN: u64 = 24;
/// Rounds of marks that the search for the end takes at most: seven find one of 16^7 blocks, and four more the sector
/// and the distance. Each of them writes a run.
const ROUNDS: u64 = 11;
/// What is saved and restored at most: both runs, one that wraps, and marks. Unit: bytes.
pub(crate) const RESTORED: u64 = 3 * RUN + 2 * MIB;
/// What is written at most, restored content included. Unit: bytes.
pub(crate) const WRITTEN: u64 = 2 * RESTORED + ROUNDS * RUN;

/// Marks at random and even places, at doubling ones and the end, and those of the search for the end.
const MARKS: u64 = 2 * EVEN + 64 + ROUNDS * 2 * search::WAYS;

/// What is read at most: marks, one block in each run's length, blocks of the runs, those of one wrapped run; to
/// restore what is overwritten, that and a comparison. Unit: bytes.
pub(crate) fn read_bytes(area: u64, restores: bool) -> u64 {
    let blocks = MARKS + area / RUN + 16 + 2 * RUN / search::INSIDE + RUN / BLOCK;
    let restored = if restores { 2 * RESTORED } else { 0 };
    blocks * BLOCK + restored
}

/// What was found, and remarks on it.
#[derive(Debug)]
pub(crate) struct Capacity {
    pub(crate) parameter: Parameter,
    pub(crate) remarks: Vec<String>,
}

/// Tests the area; with `restores`, everything that is overwritten is saved, and restored whatever happens.
pub(crate) fn capacity(requests: &mut Requests<'_>, restores: bool) -> Result<Capacity, BenchError> {
    if !requests.has_content() {
        let why = "the virtual card stores no data that could be read back (--only capacity gives it some)";
        return Ok(Capacity { parameter: Parameter::unknown(why, "bytes", vec![]), remarks: vec![] });
    }
    let mut search = Search::new(requests, restores)?;
    let found = search.whole();
    let restored = search.restore();
    let mut found = found?;
    found.remarks.extend(restored?);
    Ok(found)
}

/// Places of marks. Unit: bytes.
fn places(requests: &mut Requests<'_>, [from, to]: [u64; 2]) -> Vec<u64> {
    let size = to - from;
    let mut places: Vec<u64> = (0..EVEN).map(|index| from + size / EVEN * index).collect();
    places.extend((0..EVEN).map(|_| from + requests.rng.below(size)));
    places.extend((0..).map(|power| MIB << power).take_while(|distance| *distance < size).map(|at| from + at));
    places.push(to - BLOCK);
    places.iter_mut().for_each(|place| *place = *place / BLOCK * BLOCK);
    places.retain(|place| (from..=to - BLOCK).contains(place));
    places.sort_unstable();
    places.dedup();
    places
}

/// What the marks and the runs show.
#[derive(Debug)]
struct Observed {
    /// By place. Unit: bytes.
    marks: Vec<(u64, Seen)>,
    /// Where a run was seen again, and where it was written. Unit: bytes.
    aliases: Vec<(u64, u64)>,
    reads: u64,
    run_bytes: u64,
}

impl Observed {
    fn lost(&self) -> impl Iterator<Item = &(u64, Seen)> {
        self.marks.iter().filter(|(_, seen)| *seen != Seen::Kept)
    }

    /// The smallest distance at which content appears again.
    fn distance(&self) -> Option<u64> {
        let marks = self.marks.iter().filter_map(|(at, seen)| match seen {
            Seen::Of(place) => Some((*at, *place)),
            _ => None,
        });
        self.aliases.iter().copied().chain(marks).map(|(at, place)| at.abs_diff(place)).min()
    }

    /// The last place before the first lost one, the first lost one, and the number of places above it that are kept.
    fn around_the_first_lost(&self) -> Option<(Option<u64>, u64, usize)> {
        let first = self.marks.iter().position(|(_, seen)| *seen != Seen::Kept)?;
        let above = self.marks[first..].iter().filter(|(_, seen)| *seen == Seen::Kept).count();
        let before = first.checked_sub(1).map(|index| self.marks[index].0);
        Some((before, self.marks[first].0, above))
    }

    fn evidence(&self) -> Vec<Evidence> {
        let count = self.marks.len();
        let marks = match self.lost().next() {
            None => format!("{count} marks of 4 KiB are all kept"),
            Some((at, seen)) => {
                let lost = self.lost().count();
                format!("{lost} of {count} marks of 4 KiB are lost, the first at byte {at}: it {}", seen.text())
            }
        };
        let runs = format!("2 runs of {}, {} reads", label(self.run_bytes), self.reads);
        let again = match self.aliases.iter().min_by_key(|(at, place)| at.abs_diff(*place)) {
            None => format!("{runs}: none appears a second time"),
            Some((at, place)) => format!("{runs}: what was written at byte {place} appears at byte {at}"),
        };
        vec![Evidence::new("marks", marks, None), Evidence::new("second copies", again, None)]
    }
}

impl Search<'_, '_> {
    /// Marks, runs, and if they contradict the stated capacity, the end of what is there.
    fn whole(&mut self) -> Result<Capacity, BenchError> {
        let observed = self.observe()?;
        let mut evidence = observed.evidence();
        let stated = self.stated_bytes();
        let lost = observed.around_the_first_lost();
        let end = match (observed.distance(), lost) {
            (None, None) if self.is_whole() => {
                evidence.iter_mut().for_each(|witness| witness.value = Some(Value::Whole(stated)));
                return Ok(self.honest(Parameter::of(Value::Whole(stated), "bytes", evidence)));
            }
            (None, None) => {
                let why = "nothing is missing in this area; the rest of the target was not tried";
                return Ok(self.honest(Parameter::unknown(why, "bytes", evidence)));
            }
            (None, Some((_, _, above))) if above > 0 => {
                let why = format!(
                    "{} of {} places lose what is written, and {above} places above them keep it: damaged rather than \
                     missing",
                    observed.lost().count(),
                    observed.marks.len()
                );
                return Ok(self.honest(Parameter::unknown(why, "bytes", evidence)));
            }
            (Some(distance), _) => self.end_of_wrapping(distance),
            (None, Some((kept, lost, _))) => self.end_of_kept(kept.unwrap_or(self.from()), lost),
        };
        let (bytes, seen) = match end {
            Ok(end) => end,
            Err(error @ (BenchError::Budget { .. } | BenchError::Time { .. })) => {
                let why = format!("FAKE: less than {} is there; {error}", Bytes(stated).rounded());
                return Ok(self.fake(Parameter::unknown(why, "bytes", evidence), None));
            }
            Err(error) => return Err(error),
        };
        let value = Value::Whole(bytes);
        let contradicts = [lost.is_some_and(|(_, lost, _)| lost + BLOCK > bytes), !observed.aliases.is_empty()];
        for (witness, contradicts) in evidence.iter_mut().zip(contradicts) {
            witness.value = contradicts.then(|| value.clone());
        }
        evidence.push(Evidence::new("marks around the end", seen, Some(value.clone())));
        Ok(self.fake(Parameter::of(value, "bytes", evidence), Some(bytes)))
    }

    fn honest(&self, parameter: Parameter) -> Capacity {
        Capacity { parameter: declared(parameter, self.stated_bytes()), remarks: vec![] }
    }

    fn fake(&self, parameter: Parameter, bytes: Option<u64>) -> Capacity {
        let stated = self.stated_bytes();
        let there = bytes.map_or("has less".into(), |bytes| format!("has {} ({bytes} bytes)", Bytes(bytes).rounded()));
        let remark = format!(
            "FAKE: the card states {} ({stated} bytes) and {there}. What is written beyond is lost, or overwrites other \
             data.",
            Bytes(stated).rounded()
        );
        Capacity { parameter: declared(parameter, stated), remarks: vec![remark] }
    }
}

/// Adds the capacity that the target states.
fn declared(mut parameter: Parameter, stated: u64) -> Parameter {
    let agrees = parameter.value.as_ref().and_then(Value::whole).map(|bytes| bytes == stated);
    parameter.declared.push(Declared { source: "the stated size".into(), value: Value::Whole(stated), agrees });
    parameter
}
