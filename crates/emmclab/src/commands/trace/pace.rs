//! How many requests a second a command makes, by the kernel's own counters: they are there with and without recording.
//!
//! The time of a whole command has its start and end in it, and what a program does beside its requests: fio looks at
//! its jobs in steps, and its job's end waits for the next one. The rate is of the middle of the requests.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Instant;

/// Of all requests, the first and the last of these shares are left out.
const EDGE: f64 = 0.05;
/// Fewer requests between the edges say nothing: a look at the counters may be one of them early or late.
const REQUESTS_MIN: u64 = 500;
/// Where the kernel has disks, each with its counters.
const DISKS: &str = "/sys/block";

/// Requests of every disk.
pub(super) struct Counts(HashMap<String, u64>);

impl Counts {
    /// Up to now; empty if the kernel does not count.
    pub(super) fn now() -> Self {
        let names = fs::read_dir(DISKS)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        Self(names.filter_map(|name| Some((name.clone(), Counter::of(&name)?.read()?))).collect())
    }

    /// Whether no disk had a request since.
    pub(super) fn is_same(&self) -> bool {
        Self::now().0.iter().all(|(name, count)| self.0.get(name) == Some(count))
    }

    /// The disk with most requests since.
    pub(super) fn busiest(&self) -> Option<String> {
        let now = Self::now().0.into_iter();
        let since = now.map(|(name, count)| (count.saturating_sub(self.0.get(&name).copied().unwrap_or(0)), name));
        since.filter(|(count, _)| *count >= REQUESTS_MIN).max().map(|(_, name)| name)
    }
}

/// The counter of a disk.
pub(super) struct Counter(File);

impl Counter {
    pub(super) fn of(disk: &str) -> Option<Self> {
        File::open(format!("{DISKS}/{disk}/stat")).ok().map(Self)
    }

    /// Requests that are complete, and bios that were merged into them: the same work has the same sum, however it is
    /// merged.
    ///
    /// Source: Linux `Documentation/block/stat.rst`.
    pub(super) fn read(&self) -> Option<u64> {
        let mut text = [0; 512];
        let count = self.0.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..count]).ok()?;
        let numbers: Vec<u64> = text.split_whitespace().map_while(|number| number.parse().ok()).collect();
        // Reads, writes and discards, each followed by its merges; discards since Linux 4.18.
        let places = [0, 1, 4, 5, 11, 12];
        (numbers.len() >= 11).then(|| places.iter().filter_map(|place| numbers.get(*place)).sum())
    }
}

/// Looks at a counter while a command runs.
pub(super) struct Looks(Vec<(Instant, u64)>);

impl Looks {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn add(&mut self, counter: &Counter) {
        if let Some(count) = counter.read() {
            self.0.push((Instant::now(), count));
        }
    }

    /// Requests of the whole run, and of each second between the edges; `None` if there are too few.
    pub(super) fn rate(&self) -> Option<(u64, f64)> {
        let (first, last) = (self.0.first()?.1, self.0.last()?.1);
        let all = last.saturating_sub(first);
        let edge = (all as f64 * EDGE) as u64;
        let begin = self.0.iter().find(|(_, count)| *count > first + edge)?;
        let end = self.0.iter().rev().find(|(_, count)| *count < last - edge)?;
        let requests = end.1.checked_sub(begin.1).filter(|requests| *requests >= REQUESTS_MIN)?;
        Some((all, requests as f64 / end.0.duration_since(begin.0).as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A command that needs long before and after its requests has their rate.
    #[test]
    fn the_rate_is_of_the_middle_of_the_requests() {
        let began = Instant::now();
        let at = |ms: u64, count: u64| (began + Duration::from_millis(ms), count);
        let idle = (0..50).map(|look| at(look * 10, 7));
        let stray = [at(500, 8), at(510, 8)];
        let works = (0..=100).map(|look| at(520 + look * 10, 8 + look * 40));
        let after = (1..70).map(|look| at(1520 + look * 10, 4008));
        let looks = Looks(idle.chain(stray).chain(works).chain(after).collect());
        let (all, rate) = looks.rate().unwrap();
        assert_eq!(all, 4001);
        assert!((rate - 4000.0).abs() < 1e-6, "{rate}");
    }

    #[test]
    fn few_requests_have_no_rate() {
        let began = Instant::now();
        let looks = (0..400).map(|look| (began + Duration::from_millis(look), look));
        assert_eq!(Looks(looks.collect()).rate(), None);
        assert_eq!(Looks::new().rate(), None);
        assert_eq!(Looks(vec![(began, 0), (began, 9000)]).rate(), None);
    }
}
