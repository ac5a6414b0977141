//! Why requests were made, for which threads and files.

use std::collections::HashMap;

use super::groups::named;
use super::result::{Reason, TouchedFile, Waiter};
use crate::event::{File, Op};
use crate::notes::{Mixer, Notes};
use crate::request::{Request, Why};

/// Threads that are told apart; more have one account together.
const THREADS_MAX: usize = 1 << 14;
const WAITERS_SHOWN: usize = 10;
/// Threads that are named with a reason.
const THREADS_SHOWN: usize = 3;
/// Files that are told apart, and shown.
const FILES_MAX: usize = 1 << 14;
const FILES_SHOWN: usize = 20;

#[derive(Clone, Copy, Default)]
struct Sum {
    requests: u64,
    written: u64,
    read: u64,
    ns: u64,
}

impl Sum {
    #[inline]
    fn add(&mut self, request: &Request) {
        let bytes = u64::from(request.sectors) * 512;
        self.requests += 1;
        self.ns = self.ns.saturating_add(request.total().0);
        match request.op {
            Op::Read => self.read += bytes,
            Op::Write => self.written += bytes,
            _ => {}
        }
    }

    fn absorb(&mut self, other: &Self) {
        self.requests += other.requests;
        self.written += other.written;
        self.read += other.read;
        self.ns = self.ns.saturating_add(other.ns);
    }
}

/// By [`Why`].
type Sums = [Sum; Why::ALL.len()];

/// A thread, and the one that a commit is for.
type Key = (u32, Option<u32>);

/// Places of recent threads.
const RECENT: usize = 16;

#[derive(Default)]
pub(super) struct Reasons {
    /// The place of each one's account.
    threads: HashMap<Key, usize, Mixer>,
    accounts: Vec<Sums>,
    /// By the thread's number: most requests are of a few threads.
    recent: [Option<(Key, usize)>; RECENT],
    /// Of threads that have no account of their own.
    others: Sums,
    files: HashMap<File, Sum, Mixer>,
}

impl Reasons {
    #[inline]
    pub(super) fn add(&mut self, request: &Request) {
        let key = (request.pid, request.asked_by);
        let place = match self.recent[request.pid as usize % RECENT] {
            Some((recent, place)) if recent == key => Some(place),
            _ => self.place(key),
        };
        let own = place.and_then(|place| self.accounts.get_mut(place));
        own.unwrap_or(&mut self.others)[request.why() as usize].add(request);
        if request.file.inode != 0 {
            self.file(request);
        }
    }

    /// The place of an account, if there is one or room for one.
    #[cold]
    fn place(&mut self, key: Key) -> Option<usize> {
        let next = self.accounts.len();
        let place = match self.threads.get(&key) {
            Some(place) => *place,
            None if next < THREADS_MAX => {
                self.accounts.push(Sums::default());
                self.threads.insert(key, next);
                next
            }
            None => return None,
        };
        self.recent[key.0 as usize % RECENT] = Some((key, place));
        Some(place)
    }

    /// Each thread's account.
    fn accounts(&self) -> impl Iterator<Item = (&Key, &Sums)> {
        self.threads.iter().filter_map(|(key, place)| Some((key, self.accounts.get(*place)?)))
    }

    fn file(&mut self, request: &Request) {
        if self.files.len() < FILES_MAX || self.files.contains_key(&request.file) {
            self.files.entry(request.file).or_default().add(request);
        }
    }

    /// Threads by the time of their requests.
    pub(super) fn waiters(&self, notes: &Notes) -> Vec<Waiter> {
        let mut by_thread: HashMap<u32, Sum, Mixer> = HashMap::default();
        for ((pid, _), sums) in self.accounts() {
            let all = by_thread.entry(*pid).or_default();
            sums.iter().for_each(|sum| all.absorb(sum));
        }
        let of = |(pid, all): (u32, Sum)| Waiter {
            pid,
            name: notes.names.get(pid),
            requests: all.requests,
            written_bytes: all.written,
            read_bytes: all.read,
            waited_ms: all.ns as f64 / 1e6,
        };
        let mut waiters: Vec<Waiter> = by_thread.into_iter().map(of).collect();
        waiters.sort_by(|a, b| b.waited_ms.total_cmp(&a.waited_ms).then(a.pid.cmp(&b.pid)));
        waiters.truncate(WAITERS_SHOWN);
        waiters
    }

    /// Reasons by the time of their requests.
    pub(super) fn rows(&self, notes: &Notes) -> Vec<Reason> {
        let (mut all, mut threads) = (self.others, Why::ALL.map(|_| Vec::new()));
        for ((pid, asked_by), sums) in self.accounts() {
            let name = notes.names.get(*pid);
            for (why, sum) in Why::ALL.into_iter().zip(sums).filter(|(_, sum)| sum.requests > 0) {
                let place = why.by_thread(name.as_deref().unwrap_or_default()) as usize;
                all[place].absorb(sum);
                threads[place].push((sum.ns, *pid, *asked_by));
            }
        }
        let rows = Why::ALL.into_iter().zip(all).zip(threads).filter(|((_, sum), _)| sum.requests > 0);
        let mut rows: Vec<Reason> = rows
            .map(|((why, sum), mut threads)| {
                threads.sort_by(|a, b| b.0.cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
                let named = |pid: u32| match notes.names.get(pid) {
                    Some(name) => format!("{name} {pid}"),
                    None => format!("thread {pid}"),
                };
                let named = |(_, pid, asked_by): (u64, u32, Option<u32>)| match asked_by {
                    Some(asked_by) => format!("{} for {}", named(pid), named(asked_by)),
                    None => named(pid),
                };
                Reason {
                    why: why.name().into(),
                    requests: sum.requests,
                    read_bytes: sum.read,
                    written_bytes: sum.written,
                    waited_ms: sum.ns as f64 / 1e6,
                    threads: threads.into_iter().take(THREADS_SHOWN).map(named).collect(),
                }
            })
            .collect();
        rows.sort_by(|a, b| b.waited_ms.total_cmp(&a.waited_ms));
        rows
    }

    /// Files by the time of their requests.
    pub(super) fn files(&self) -> Vec<TouchedFile> {
        let mut files: Vec<(&File, &Sum)> = self.files.iter().collect();
        files.sort_by(|a, b| b.1.ns.cmp(&a.1.ns).then(a.0.cmp(b.0)));
        let row = |(file, sum): (&File, &Sum)| TouchedFile {
            device: named(file.device),
            inode: file.inode,
            requests: sum.requests,
            read_bytes: sum.read,
            written_bytes: sum.written,
            waited_ms: sum.ns as f64 / 1e6,
        };
        files.into_iter().take(FILES_SHOWN).map(row).collect()
    }
}
