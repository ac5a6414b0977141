//! Writing marks and runs, reading them back, and the search for the end of what is there.

use emmc_units::{Rng, SECTOR_BYTES};
use emmc_workload::BenchError;

use super::mark::{BLOCK, Marks, Seen};
use super::{Observed, RUN, places};
use crate::requests::Requests;

/// Marks of one round of the search.
pub(super) const WAYS: u64 = 16;
/// Distance of reads inside a run. Unit: bytes.
pub(super) const INSIDE: u64 = 64 << 10;
/// One request of a run. Unit: bytes.
const PIECE: u64 = 256 << 10;

/// A test of the capacity.
pub(super) struct Search<'a, 'b> {
    requests: &'a mut Requests<'b>,
    marks: Marks,
    run_bytes: u64,
    restores: bool,
    /// Original content, in the order of saving. Unit: bytes.
    saved: Vec<(u64, Vec<u8>)>,
}

impl<'a, 'b> Search<'a, 'b> {
    pub(super) fn new(requests: &'a mut Requests<'b>, restores: bool) -> Result<Self, BenchError> {
        let area_bytes = requests.to - requests.from;
        // A run is a sixteenth of a small area.
        let run_bytes = RUN.min(area_bytes / 16 / INSIDE * INSIDE);
        if run_bytes == 0 {
            let what = format!("capacity: the area has {area_bytes} bytes; expected at least {}", 16 * INSIDE);
            return Err(BenchError::Misfit { suite: crate::requests::NAME, what });
        }
        // Marks of an earlier test must not pass for those of this one.
        let nonce = Rng::new(requests.rng.next_u64() ^ requests.now().0).next_u64();
        Ok(Self { requests, marks: Marks { nonce }, run_bytes, restores, saved: Vec::new() })
    }

    pub(super) fn from(&self) -> u64 {
        self.requests.from
    }

    pub(super) fn stated_bytes(&self) -> u64 {
        self.requests.size_bytes()
    }

    pub(super) fn is_whole(&self) -> bool {
        self.requests.from == 0 && self.requests.to / BLOCK == self.requests.size_bytes() / BLOCK
    }

    /// Marks a range.
    fn mark(&mut self, offset: u64, bytes: u64) -> Result<Option<String>, BenchError> {
        let mut data = vec![0; bytes as usize];
        if self.restores {
            if let Some(reason) = self.requests.see(offset, &mut data)? {
                return Ok(Some(reason));
            }
            self.saved.push((offset, data.clone()));
        }
        self.marks.fill(offset, &mut data);
        self.requests.put(offset, &data)
    }

    fn look(&mut self, offset: u64) -> Result<(Seen, u64), BenchError> {
        let mut data = [0; BLOCK as usize];
        Ok(match self.requests.see(offset, &mut data)? {
            Some(reason) => (Seen::Failed(reason), 0),
            None => (self.marks.seen(offset, &data), self.marks.kept(offset, &data)),
        })
    }

    /// Writes both runs: the one at the start last.
    fn write_runs(&mut self) -> Result<(), BenchError> {
        for start in [self.requests.to - self.run_bytes, self.requests.from] {
            for offset in (start..start + self.run_bytes).step_by(PIECE as usize) {
                self.mark(offset, PIECE.min(start + self.run_bytes - offset))?;
            }
        }
        self.requests.flush()?;
        Ok(())
    }

    /// Writes marks and runs, and reads back.
    pub(super) fn observe(&mut self) -> Result<Observed, BenchError> {
        self.requests.step("marks over the whole capacity");
        let [from, to, run_bytes] = [self.requests.from, self.requests.to, self.run_bytes];
        let end = to - run_bytes;
        // Both runs hold marks as well.
        let places = places(self.requests, [from, to]);
        let mut failed = Vec::new();
        for &place in places.iter().filter(|place| (from + run_bytes..end).contains(*place)) {
            if let Some(reason) = self.mark(place, BLOCK)? {
                failed.push((place, Seen::Failed(reason)));
            }
        }
        self.requests.flush()?;
        self.write_runs()?;
        self.requests.step("reading marks back");
        let mut marks = Vec::new();
        for &place in &places {
            let seen = match failed.iter().find(|(at, _)| *at == place) {
                Some((_, seen)) => seen.clone(),
                None => self.look(place)?.0,
            };
            marks.push((place, seen));
        }
        self.requests.step("looking for a second copy");
        let phase = self.requests.rng.below(run_bytes / BLOCK) * BLOCK;
        let across = (from + phase..=to - BLOCK).step_by(run_bytes as usize);
        let inside = |start: u64| (start..start + run_bytes).step_by(INSIDE as usize);
        let looks: Vec<u64> = across.chain(inside(from)).chain(inside(end)).collect();
        let mut aliases = Vec::new();
        for &at in &looks {
            if let (Seen::Of(place), _) = self.look(at)? {
                aliases.push((at, place));
            }
        }
        Ok(Observed { marks, aliases, reads: looks.len() as u64, run_bytes })
    }

    /// New content for whatever buffer the card has: the first run, without its first piece.
    fn evict(&mut self) -> Result<(), BenchError> {
        let (from, run_bytes) = (self.requests.from, self.run_bytes);
        self.requests.flush()?;
        self.requests.fill(from + PIECE.min(run_bytes / 2), from + run_bytes)?;
        self.requests.flush()?;
        Ok(())
    }

    /// Blocks between two places, for one round. Unit: bytes.
    fn between(low: u64, high: u64) -> Vec<u64> {
        let blocks = (high - low) / BLOCK;
        let ways = WAYS.min(blocks);
        (1..ways).map(|way| low + blocks * way / ways * BLOCK).collect()
    }

    /// The end of what keeps marks, between a kept block and a lost one.
    pub(super) fn end_of_kept(&mut self, mut kept: u64, mut lost: u64) -> Result<(u64, String), BenchError> {
        self.requests.step("the end of what is there");
        let mut written = 0;
        // A run has taken the place of marks in it.
        let first = self.requests.from + self.run_bytes;
        while lost - kept > BLOCK {
            let places = Self::between(kept, lost);
            let places: Vec<u64> = places.into_iter().filter(|place| *place >= first).collect();
            if places.is_empty() {
                break;
            }
            for &place in &places {
                self.mark(place, BLOCK)?;
                written += 1;
            }
            self.evict()?;
            for &place in &places {
                match self.look(place)?.0 {
                    Seen::Kept => kept = place,
                    _ => {
                        lost = place;
                        break;
                    }
                }
            }
        }
        self.mark(lost, BLOCK)?;
        self.evict()?;
        let (seen, sectors) = self.look(lost)?;
        let end = lost + sectors;
        let text = format!(
            "{written} more marks: the block at byte {kept} is kept; at byte {end} it {}, as everything above",
            seen.text()
        );
        Ok((end, text))
    }

    /// The end of what is there if content appears again at a distance.
    pub(super) fn end_of_wrapping(&mut self, distance: u64) -> Result<(u64, String), BenchError> {
        self.requests.step("the end of what is there");
        let from = self.requests.from;
        if self.first_again(&[from], distance)? == Some(0) {
            let text = format!("what is written at byte {from} appears again every {distance} bytes");
            return Ok((from + distance, text));
        }
        // Only the last part wraps.
        let (mut apart, mut same) = (from, (self.requests.to - BLOCK - distance) / BLOCK * BLOCK);
        while same - apart > BLOCK {
            let places = Self::between(apart, same);
            let first = self.first_again(&places, distance)?.unwrap_or(places.len());
            same = places.get(first).copied().unwrap_or(same);
            apart = first.checked_sub(1).map_or(apart, |index| places[index]);
        }
        let distance = self.period(same, distance)?;
        // Where many places are one, only the exact distance shows in which of the two blocks the wrapping begins.
        let first = match self.first_sector_again(apart, distance)? {
            Some(sector) => Some(sector),
            None => self.first_sector_again(same, distance)?,
        };
        let same = first.unwrap_or(same);
        let text = format!(
            "what is written at byte {same} appears again every {distance} bytes, what is written at byte {apart} does not"
        );
        Ok((same + distance, text))
    }

    /// The first of some blocks that is the same as the one at a distance.
    fn first_again(&mut self, places: &[u64], distance: u64) -> Result<Option<usize>, BenchError> {
        for &place in places {
            self.mark(place, BLOCK)?;
        }
        self.evict()?;
        for (index, &place) in places.iter().enumerate() {
            // Another one of the places may be the same too: then the later write is seen at all of them.
            if self.look(place + distance)?.0 == Seen::Of(place) || matches!(self.look(place)?.0, Seen::Of(_)) {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// The first sector of a block that appears again at a distance. Unit: bytes.
    fn first_sector_again(&mut self, place: u64, distance: u64) -> Result<Option<u64>, BenchError> {
        self.mark(place, BLOCK)?;
        self.evict()?;
        let mut data = [0; BLOCK as usize];
        let failed = self.requests.see(place + distance, &mut data)?.is_some();
        Ok(self.marks.first(place, &data).filter(|_| !failed))
    }

    /// The distance at which sectors from a place on appear again: a divisor of the one that was seen.
    fn period(&mut self, place: u64, distance: u64) -> Result<u64, BenchError> {
        if distance > self.run_bytes {
            return Ok(distance);
        }
        for offset in (place..place + distance).step_by(PIECE as usize) {
            self.mark(offset, PIECE.min(place + distance - offset))?;
        }
        self.evict()?;
        let mut least = distance;
        for offset in (place..place + distance).step_by(BLOCK as usize) {
            if let Seen::Of(other) = self.look(offset)?.0 {
                least = least.min(other.abs_diff(offset).max(SECTOR_BYTES));
            }
        }
        Ok(least)
    }

    /// Restores what was saved, the latest first: later ones may have saved marks of places that are the same.
    pub(super) fn restore(&mut self) -> Result<Vec<String>, BenchError> {
        let saved = std::mem::take(&mut self.saved);
        if saved.is_empty() {
            return Ok(vec![]);
        }
        self.requests.step("restoring");
        let mut lost = Vec::new();
        for (offset, data) in saved.iter().rev() {
            if let Err(error) = self.requests.restore(*offset, data) {
                lost.push(format!("byte {offset}: {error}"));
            }
        }
        for (offset, data) in &saved {
            let mut now = vec![0; data.len()];
            // On a fake, a place may have been marked through another one before it was saved.
            let is_original = !matches!(self.marks.seen(*offset, data), Seen::Kept | Seen::Of(_));
            if is_original && (self.requests.restored(*offset, &mut now).is_err() || now != *data) {
                lost.push(format!("byte {offset} reads otherwise than before"));
            }
        }
        let bytes: usize = saved.iter().map(|(_, data)| data.len()).sum();
        Ok(vec![match lost.first() {
            None => format!("{bytes} bytes were saved before, restored afterwards and compared."),
            Some(first) => format!("{} places were not restored: {first}", lost.len()),
        }])
    }
}
