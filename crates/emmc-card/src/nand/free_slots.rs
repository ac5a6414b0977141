//! Free slots, as bits in groups: single ones where others were released, runs where a whole group is free.
//!
//! Content that is written in sequence then lies in sequence, and is read and received in one piece. Absent on purpose:
//! what a slot holds (`payload`).

use std::ops::Range;

/// Slots of a group: 4 MiB of units of 4 KiB. Unit: slots.
pub(super) const GROUP: u32 = 1024;
const WORDS: usize = (GROUP / 64) as usize;

/// A group of slots.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    free: u16,
    /// It is in the list of groups with free slots, and in that of whole ones.
    is_listed: bool,
    is_listed_whole: bool,
}

/// The free ones of all slots that were ever taken.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeSlots {
    /// One bit for each slot: it is free.
    words: Vec<u64>,
    groups: Vec<Group>,
    /// Groups with free slots, the one that is used next last. It may have none any more.
    some: Vec<u32>,
    /// Groups that are all free, or were.
    whole: Vec<u32>,
    /// Where the next run begins.
    run_at: Option<u32>,
    count: u32,
}

impl FreeSlots {
    /// Number of free slots.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    fn is_free(&self, slot: u32) -> bool {
        self.words.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    pub(super) fn give(&mut self, slot: u32) {
        let number = slot / GROUP;
        if self.groups.len() <= number as usize {
            self.groups.resize(number as usize + 1, Group::default());
            self.words.resize(self.groups.len() * WORDS, 0);
        }
        self.words[slot as usize / 64] |= 1 << (slot % 64);
        self.count += 1;
        let group = &mut self.groups[number as usize];
        group.free += 1;
        if u32::from(group.free) == GROUP {
            if !std::mem::replace(&mut group.is_listed_whole, true) {
                self.whole.push(number);
            }
        } else if !std::mem::replace(&mut group.is_listed, true) {
            self.some.push(number);
        }
    }

    fn clear(&mut self, slot: u32) {
        self.words[slot as usize / 64] &= !(1 << (slot % 64));
        self.count -= 1;
        self.groups[(slot / GROUP) as usize].free -= 1;
    }

    /// Takes one, where others are in use if possible.
    pub(super) fn take(&mut self) -> Option<u32> {
        loop {
            let Some(&number) = self.some.last() else {
                let number = self.take_whole().or_else(|| self.run_at.take().map(|at| at / GROUP))?;
                self.groups[number as usize].is_listed = true;
                self.some.push(number);
                continue;
            };
            let group = &mut self.groups[number as usize];
            let is_whole = u32::from(group.free) == GROUP && group.is_listed_whole;
            if group.free == 0 || is_whole {
                group.is_listed = false;
                self.some.pop();
                continue;
            }
            let slot = self.first_in(number)?;
            self.clear(slot);
            return Some(slot);
        }
    }

    /// A group of which all slots are free, which leaves the list of these.
    fn take_whole(&mut self) -> Option<u32> {
        loop {
            let number = self.whole.pop()?;
            let group = &mut self.groups[number as usize];
            group.is_listed_whole = false;
            if u32::from(group.free) == GROUP {
                return Some(number);
            }
            if group.free > 0 && !std::mem::replace(&mut group.is_listed, true) {
                self.some.push(number);
            }
        }
    }

    fn first_in(&self, group: u32) -> Option<u32> {
        let first = group as usize * WORDS;
        let words = self.words[first..first + WORDS].iter().zip((group * GROUP..).step_by(64));
        words.into_iter().find(|(word, _)| **word != 0).map(|(word, slot)| slot + word.trailing_zeros())
    }

    /// Takes a run of at most [`GROUP`] slots from a group that was whole; `None`: there is none.
    pub(super) fn take_run(&mut self, slots: u32) -> Option<Range<u32>> {
        if let Some(first) = self.run_at.take() {
            let run = first..first + slots;
            let is_inside = (first % GROUP) + slots <= GROUP;
            if is_inside && run.clone().all(|slot| self.is_free(slot)) {
                return Some(self.take_at(run));
            }
            // What is left of the group is for single slots.
            let group = &mut self.groups[(first / GROUP) as usize];
            if group.free > 0 && !std::mem::replace(&mut group.is_listed, true) {
                self.some.push(first / GROUP);
            }
        }
        let first = self.take_whole()? * GROUP;
        Some(self.take_at(first..first + slots))
    }

    fn take_at(&mut self, run: Range<u32>) -> Range<u32> {
        run.clone().for_each(|slot| self.clear(slot));
        self.run_at = (run.end % GROUP != 0).then_some(run.end);
        run
    }

    /// The lowest are taken next.
    pub(super) fn sort(&mut self) {
        let is_listed = |group: &Group| group.is_listed || u32::from(group.free) < GROUP && group.free > 0;
        self.some = (0..self.groups.len() as u32).rev().filter(|&at| is_listed(&self.groups[at as usize])).collect();
        self.some.iter().for_each(|&at| self.groups[at as usize].is_listed = true);
        self.whole.sort_unstable_by_key(|group| std::cmp::Reverse(*group));
    }

    /// No slot from `end` on is free any more: these were never taken.
    pub(super) fn cut(&mut self, end: u32) {
        for slot in end..self.words.len() as u32 * 64 {
            if self.is_free(slot) {
                self.clear(slot);
            }
        }
        self.run_at = self.run_at.filter(|at| *at < end);
    }

    /// The runs of free slots below `end`, ascending, from that of `from` or after it, inside one group each.
    pub(super) fn runs(&self, from: u32, end: u32) -> impl Iterator<Item = Range<u32>> + '_ {
        let mut at = from;
        std::iter::from_fn(move || {
            let is_free = |slot: &u32| self.is_free(*slot);
            let first = (at..end).find(is_free)?;
            let last = end.min((first / GROUP + 1) * GROUP);
            at = (first..last).find(|slot| !is_free(slot)).unwrap_or(last);
            Some(first..at)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use emmc_units::Rng;

    use super::*;

    /// A set and the structure agree, whatever is given and taken.
    #[test]
    fn every_slot_is_taken_once() {
        let mut rng = Rng::new(7);
        let (mut free, mut expected) = (FreeSlots::default(), BTreeSet::new());
        let mut used: Vec<u32> = (0..5 * GROUP).collect();
        for _ in 0..200_000 {
            match rng.below(8) {
                0..4 if !used.is_empty() => {
                    // Neighbours often, so that groups become whole.
                    let from = rng.below(used.len() as u64) as usize;
                    let many = if rng.below(64) == 0 { 2000 } else { 1 };
                    for _ in 0..many.min(used.len() - from) {
                        let slot = used.swap_remove(from.min(used.len() - 1));
                        free.give(slot);
                        assert!(expected.insert(slot));
                    }
                }
                4 => {
                    if let Some(run) = free.take_run(1 + rng.below(300) as u32) {
                        run.clone().for_each(|slot| assert!(expected.remove(&slot), "{slot} was not free"));
                        used.extend(run);
                    }
                }
                _ => match free.take() {
                    Some(slot) => {
                        assert!(expected.remove(&slot), "{slot} was not free");
                        used.push(slot);
                    }
                    None => assert!(expected.is_empty()),
                },
            }
            assert_eq!(free.count() as usize, expected.len());
        }
        free.sort();
        let runs: Vec<u32> = free.runs(0, 5 * GROUP).flatten().collect();
        assert!(runs.into_iter().eq(expected.iter().copied()));
        while let Some(slot) = free.take() {
            assert!(expected.remove(&slot));
        }
        assert!(expected.is_empty());
    }

    #[test]
    fn runs_follow_each_other_and_leave_gaps_to_single_slots() {
        let mut free = FreeSlots::default();
        (0..2 * GROUP).for_each(|slot| free.give(slot));
        let first = free.take_run(600).unwrap();
        assert_eq!(free.take_run(400).unwrap().start, first.end);
        assert_eq!(free.take_run(100).unwrap().start / GROUP, 1 - first.start / GROUP, "24 were left");
        assert_eq!(free.take().unwrap(), first.start + 1000);
        assert_eq!(free.runs(0, 2 * GROUP).map(|run| run.len()).sum::<usize>(), 23 + 924);
        free.cut(GROUP);
        assert!(free.runs(0, 2 * GROUP).all(|run| run.end <= GROUP));
    }
}
