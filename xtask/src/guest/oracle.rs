//! The possible content of a card after a power cut, derived from the writers' records.
//!
//! A flushed write, and a synchronous one, must be there. Of later writes, each sector holds one of them or the
//! previous content, complete: a volatile cache may lose any of them. This is the guarantee of a card with reliable
//! writes (`WR_REL_SET`). A synced file holds the synced content or a later complete version.
//!
//! Without reliable writes, a cut may also damage sectors that share word lines with an operation in progress: the
//! model reports which. Such a sector may be unreadable, or hold any write that it ever held, if it was written and not
//! flushed since.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};

/// A write that has started.
struct Write {
    first: u64,
    count: u64,
}

/// The state of a sector or of a file.
#[derive(Default)]
struct Place {
    /// Its guaranteed content, if any.
    certain: Option<u64>,
    /// Later writes, any of which it may hold.
    possible: BTreeSet<u64>,
    /// All writes that it had, or may have had.
    ever: BTreeSet<u64>,
    /// Its content was never flushed: a cut may damage it on a card without reliable writes.
    at_risk: bool,
    /// It was damaged, and not written since.
    lost: bool,
}

impl Place {
    fn holds(&mut self, number: u64) {
        if self.certain.is_none_or(|certain| certain < number) {
            self.certain = Some(number);
        }
        self.possible.retain(|possible| *possible > number);
        (self.at_risk, self.lost) = (!self.possible.is_empty(), false);
    }

    fn may_hold(&mut self, number: u64) {
        self.possible.insert(number);
        self.ever.insert(number);
        self.at_risk = true;
    }

    /// After a power cut it holds `found`: whether that is allowed. From now on that is certain.
    fn is_found(&mut self, found: Option<u64>) -> bool {
        let is_allowed = found == self.certain || found.is_some_and(|found| self.possible.contains(&found));
        self.at_risk &= found != self.certain || self.lost;
        self.certain = found;
        self.possible.clear();
        is_allowed
    }

    /// The same for a sector that the cut may have damaged: whether that explains its content; absent: unreadable.
    fn is_found_damaged(&mut self, found: Option<Option<u64>>) -> bool {
        let was = found.is_none_or(|found| found.is_none_or(|found| self.ever.contains(&found)));
        if !was || !(self.at_risk || self.lost) {
            return false;
        }
        (self.at_risk, self.lost) = (true, true);
        self.certain = found.flatten();
        self.possible.clear();
        true
    }
}

/// Statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Writes of sectors that were acknowledged.
    pub(crate) acknowledged: u64,
    /// Those that were flushed or synchronous.
    pub(crate) flushed: u64,
    /// Sectors with older content than acknowledged, as a cache allows.
    pub(crate) sectors_behind: u64,
    /// Sectors that a cut damaged, as is allowed without reliable writes.
    pub(crate) sectors_damaged: u64,
    /// Files that were synced.
    pub(crate) synced: u64,
    /// Sectors and files that were read back.
    pub(crate) read: u64,
}

/// Sectors and files, as one writer of each left them.
#[derive(Default)]
pub(crate) struct Oracle {
    sectors: BTreeMap<u64, Place>,
    files: BTreeMap<u64, Place>,
    /// Acknowledged, not known to be flushed.
    acknowledged: BTreeMap<u64, Write>,
    begun: BTreeMap<u64, Write>,
    /// The writes that each outstanding flush covers.
    flushing: BTreeMap<u64, Vec<u64>>,
    /// The latest acknowledged write of each sector.
    latest: BTreeMap<u64, u64>,
    /// The next number of a write.
    next: u64,
    /// Sectors that the last cut damaged, as reported by the model; empty with reliable writes.
    damaged: BTreeSet<u64>,
    pub(crate) counts: Counts,
    /// Descriptions of all violations.
    pub(crate) violations: Vec<String>,
}

impl Oracle {
    /// A number that no write has had.
    pub(crate) fn next_number(&self) -> u64 {
        self.next + 1
    }

    /// Processes a record of a writer or reader. Errors: not a record.
    pub(crate) fn record(&mut self, line: &str) -> anyhow::Result<()> {
        let mut words = line.split(' ');
        let kind = words.next().unwrap_or_default();
        let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
        match (kind, numbers.with_context(|| format!("not a record: {line:?}"))?.as_slice()) {
            ("w", &[number, first, count]) => self.begin(number, Write { first, count }),
            ("a", &[number]) => self.acknowledge(number),
            ("d", &[number]) => {
                self.acknowledge(number);
                self.flush(&[number]);
            }
            ("f", &[thread]) => {
                let covered = self.acknowledged.keys().copied().collect();
                self.flushing.insert(thread, covered);
            }
            ("F", &[thread]) => {
                let covered = self.flushing.remove(&thread).unwrap_or_default();
                self.flush(&covered);
            }
            ("r", &[first, count, number]) => self.read(first, count, Some(number)),
            ("z", &[first, count]) => self.read(first, count, None),
            ("t", &[first, count]) => {
                self.violation(format!("{count} sectors at {first} hold parts of several writes"))
            }
            ("e", &[first, count]) => (first..first + count).for_each(|sector| self.read_nothing(sector)),
            ("n", &[name, number, _]) => {
                self.next = self.next.max(number);
                self.files.entry(name).or_default().may_hold(number);
            }
            ("s", &[name, number]) => {
                self.counts.synced += 1;
                self.files.entry(name).or_default().holds(number);
            }
            ("v", &[name, number, _]) => self.read_file(name, number),
            ("b", &[name]) => self.violation(format!("file {name} holds parts of several writes, or cannot be read")),
            _ => bail!("not a record: {line:?}"),
        }
        Ok(())
    }

    /// The last cut damaged these sectors of a card whose writes are not reliable.
    pub(crate) fn damaged(&mut self, sectors: BTreeSet<u64>) {
        self.damaged = sectors;
    }

    /// Power is back, and everything has been read; files that were not found are `missing`. Earlier operations have
    /// ended.
    pub(crate) fn settle(&mut self, found: &BTreeSet<u64>) {
        let missing: Vec<u64> = self.files.keys().copied().filter(|name| !found.contains(name)).collect();
        for name in missing {
            let place = self.files.entry(name).or_default();
            let certain = place.certain;
            if !place.is_found(None) {
                self.violation(format!("file {name} is gone; {certain:?} was synced"));
            }
        }
        self.begun.clear();
        self.acknowledged.clear();
        self.flushing.clear();
        self.latest.clear();
    }

    fn begin(&mut self, number: u64, write: Write) {
        self.next = self.next.max(number);
        for sector in write.first..write.first + write.count {
            self.sectors.entry(sector).or_default().may_hold(number);
        }
        self.begun.insert(number, write);
    }

    fn acknowledge(&mut self, number: u64) {
        if let Some(write) = self.begun.remove(&number) {
            self.counts.acknowledged += 1;
            for sector in write.first..write.first + write.count {
                self.latest.insert(sector, number);
            }
            self.acknowledged.insert(number, write);
        }
    }

    fn flush(&mut self, numbers: &[u64]) {
        for number in numbers {
            let Some(write) = self.acknowledged.remove(number) else { continue };
            self.counts.flushed += 1;
            for sector in write.first..write.first + write.count {
                self.sectors.entry(sector).or_default().holds(*number);
            }
        }
    }

    fn read(&mut self, first: u64, count: u64, found: Option<u64>) {
        self.counts.read += count;
        for sector in first..first + count {
            if self.latest.get(&sector).is_some_and(|latest| found.is_none_or(|found| found < *latest)) {
                self.counts.sectors_behind += 1;
            }
            let place = self.sectors.entry(sector).or_default();
            let certain = place.certain;
            let is_behind = found != certain && !found.is_some_and(|found| place.possible.contains(&found));
            if is_behind && (self.damaged.contains(&sector) || place.lost) && place.is_found_damaged(Some(found)) {
                self.counts.sectors_damaged += 1;
            } else if !place.is_found(found) {
                let what = found.map_or("nothing".into(), |number| format!("write {number}"));
                self.violation(format!("sector {sector} holds {what}; write {certain:?} was flushed"));
            }
        }
    }

    /// A sector is unreadable.
    fn read_nothing(&mut self, sector: u64) {
        self.counts.read += 1;
        let place = self.sectors.entry(sector).or_default();
        let is_hit = self.damaged.contains(&sector) || place.lost;
        if is_hit && place.is_found_damaged(None) {
            self.counts.sectors_damaged += 1;
        } else {
            self.violation(format!("sector {sector} cannot be read"));
        }
    }

    fn read_file(&mut self, name: u64, number: u64) {
        self.counts.read += 1;
        let place = self.files.entry(name).or_default();
        let certain = place.certain;
        if !place.is_found(Some(number)) {
            self.violation(format!("file {name} holds write {number}; {certain:?} was synced"));
        }
    }

    fn violation(&mut self, what: String) {
        self.violations.push(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(lines: &str, files: &[u64]) -> Vec<String> {
        let mut oracle = Oracle::default();
        for line in lines.split(", ") {
            oracle.record(line).unwrap();
        }
        oracle.settle(&files.iter().copied().collect());
        oracle.violations
    }

    #[test]
    fn flushed_data_is_present() {
        let flushed = "w 1 8 2, a 1, f 0, F 0, w 2 8 1, a 2";
        for good in ["r 8 1 2, r 9 1 1", "r 8 2 1"] {
            assert_eq!(violations(&format!("{flushed}, {good}"), &[]), [] as [&str; 0], "{good}");
        }
        for bad in ["z 8 2", "r 8 1 1, z 9 1", "r 8 2 2", "t 8 1", "e 9 1"] {
            assert!(!violations(&format!("{flushed}, {bad}"), &[]).is_empty(), "{bad}");
        }
    }

    #[test]
    fn a_flush_covers_what_was_acknowledged_before_it() {
        assert_eq!(violations("w 1 8 1, f 0, a 1, F 0, z 8 1", &[]), [] as [&str; 0], "acknowledged during the flush");
        assert!(!violations("w 1 8 1, a 1, f 0, F 0, z 8 1", &[]).is_empty());
        assert_eq!(violations("w 1 8 1, a 1, f 0, z 8 1", &[]), [] as [&str; 0], "a flush that did not end");
        assert!(!violations("w 1 8 1, d 1, z 8 1", &[]).is_empty(), "asked to be on the medium");
    }

    #[test]
    fn damage_is_accepted_only_for_unflushed_data_of_the_model() {
        let judged = |lines: &str, damaged: &[u64]| {
            let mut oracle = Oracle::default();
            oracle.damaged(damaged.iter().copied().collect());
            for line in lines.split(", ") {
                oracle.record(line).unwrap();
            }
            (oracle.violations.len(), oracle.counts.sectors_damaged)
        };
        let older = "w 1 8 1, a 1, f 0, F 0, w 2 8 1, a 2, f 0, F 0, w 3 8 1, a 3";
        for found in ["e 8 1", "z 8 1", "r 8 1 1"] {
            assert_eq!(judged(&format!("{older}, {found}"), &[8]), (0, 1), "{found}");
            assert_eq!(judged(&format!("{older}, {found}"), &[9]).0, 1, "{found}: not hit");
            assert_eq!(judged(&format!("{older}, f 0, F 0, {found}"), &[8]).0, 1, "{found}: flushed");
        }
        assert_eq!(judged(&format!("{older}, r 8 1 7"), &[8]).0, 1, "never written there");
        assert_eq!(judged(&format!("{older}, r 8 1 3"), &[8]), (0, 0), "unharmed");
        // Lost content stays lost until it is written and flushed again.
        let mut oracle = Oracle::default();
        oracle.damaged([8].into());
        for line in "w 1 8 1, a 1, e 8 1".split(", ") {
            oracle.record(line).unwrap();
        }
        oracle.settle(&BTreeSet::new());
        oracle.damaged(BTreeSet::new());
        for line in "e 8 1, w 2 8 1, d 2, e 8 1".split(", ") {
            oracle.record(line).unwrap();
        }
        assert_eq!((oracle.violations.len(), oracle.counts.sectors_damaged), (1, 2), "{:?}", oracle.violations);
    }

    #[test]
    fn content_found_once_persists() {
        let mut oracle = Oracle::default();
        for line in ["w 1 8 1", "a 1", "r 8 1 1"] {
            oracle.record(line).unwrap();
        }
        oracle.settle(&BTreeSet::new());
        oracle.record("z 8 1").unwrap();
        assert_eq!(oracle.violations.len(), 1, "{:?}", oracle.violations);
    }

    #[test]
    fn a_synced_file_is_present() {
        let synced = "n 3 1 10, s 3 1, n 3 2 5";
        for good in ["v 3 1 10", "v 3 2 5"] {
            assert_eq!(violations(&format!("{synced}, {good}"), &[3]), [] as [&str; 0], "{good}");
        }
        assert!(!violations(&format!("{synced}, b 3"), &[3]).is_empty());
        assert!(!violations(synced, &[]).is_empty(), "gone");
        assert!(!violations("n 3 1 10, s 3 1, n 3 2 5, s 3 2, v 3 1 10", &[3]).is_empty(), "an old version");
    }

    #[test]
    fn unknown_content_is_refused() {
        for bad in ["", "w", "w 1 2", "x 1", "a b"] {
            assert!(Oracle::default().record(bad).is_err(), "{bad:?}");
        }
    }
}
