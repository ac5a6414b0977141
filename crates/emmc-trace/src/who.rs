//! Who writes, and who waits: threads and files of a recording.

use std::collections::{BTreeSet, HashMap};

use emmc_units::Nanos;
use serde::{Deserialize, Serialize};

use crate::correlate::Correlator;
use crate::event::{FileWrite, Op, What};
use crate::follow::Selection;
use crate::notes::Notes;
use crate::open::Recording;
use crate::request::{Mode, Request};

/// Pairs of threads and files that are told apart.
const PAIRS_MAX: usize = 1 << 17;
/// Threads with requests that are told apart.
const THREADS_MAX: usize = 1 << 16;
/// Rows of a result.
const ROWS_MAX: usize = 100;
/// Writers that are named with a file.
const WRITERS_MAX: usize = 4;
/// What a file system without an exact event counts.
const PAGE_BYTES: u64 = 4096;

/// Who wrote, and who waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Who {
    /// From the first event to the last. Unit: seconds.
    pub duration_s: f64,
    /// Events that were read.
    pub events: u64,
    /// Events that the kernel dropped.
    pub lost_events: u64,
    /// Whether writes into files were recorded.
    pub has_file_writes: bool,
    /// Threads; most bytes written first, then the longest wait. At most 100.
    pub threads: Vec<ThreadRow>,
    /// Files; most bytes written first. At most 100.
    pub files: Vec<FileRow>,
    /// Pairs of thread and file, or threads, beyond what is kept; they are in no row.
    pub left_out: u64,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadRow {
    /// Its number; 0 in a sum over days.
    pub pid: u32,
    /// Its name.
    pub name: Option<String>,
    /// Into files, the page cache included. Unit: bytes.
    pub file_written_bytes: u64,
    /// By requests that it queued itself: write-back is of the kernel's threads. Unit: bytes.
    pub written_bytes: u64,
    /// By requests that it queued. Unit: bytes.
    pub read_bytes: u64,
    /// Requests that it queued.
    pub requests: u64,
    /// Time in which it waited for requests. Unit: milliseconds.
    pub waited_ms: f64,
}

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileRow {
    /// `major:minor` of its file system; of its disk if only pages were counted.
    pub device: String,
    /// Its inode.
    pub inode: u64,
    /// Its path, if it was found.
    pub path: Option<String>,
    /// Unit: bytes.
    pub written_bytes: u64,
    /// Whether bytes were counted; else pages of 4 KiB that became dirty, and a large folio counts once.
    pub is_exact: bool,
    /// Who wrote it: at most four names.
    pub writers: Vec<String>,
}

#[derive(Clone, Copy, Default)]
struct Written {
    bytes: u64,
    pages: u64,
}

#[derive(Clone, Copy, Default)]
struct Thread {
    written: u64,
    read: u64,
    requests: u64,
    waited_ns: u64,
}

#[derive(Default)]
pub(crate) struct Collector {
    pairs: HashMap<(u32, u32, u64), Written>,
    cards: HashMap<u32, Thread>,
    others: HashMap<u32, Thread>,
    left_out: u64,
}

/// Reads a recording: requests of the chosen device, else of all eMMC and SD cards, else of all devices; files of all
/// of them.
pub fn who(recording: Recording, chosen: Option<u32>) -> Who {
    let Recording { mut events, .. } = recording;
    let (mut correlator, mut all) = (Correlator::default(), Collector::default());
    let wanted = chosen.map_or(Selection::Cards, Selection::Device);
    events.run(|event| {
        if let What::FileWrite(write) = &event.what {
            all.file(event.pid, write);
        }
        correlator.take(event, &mut |request: &Request| all.request(request, wanted));
    });
    correlator.end(&mut |request: &Request| all.request(request, wanted));
    let has_cards = !all.cards.is_empty() || chosen.is_some();
    all.found(has_cards, correlator.times, correlator.counts.events, &events.notes())
}

impl Collector {
    /// What was collected: requests of the chosen devices, or of the others.
    pub(crate) fn found(&self, has_cards: bool, times: Option<(Nanos, Nanos)>, events: u64, notes: &Notes) -> Who {
        let duration_ns = times.map_or(0, |(first, last)| last.0.saturating_sub(first.0));
        let requests = if has_cards { &self.cards } else { &self.others };
        let mut found = Who {
            duration_s: duration_ns as f64 / 1e9,
            events,
            lost_events: notes.lost,
            has_file_writes: !self.pairs.is_empty(),
            threads: threads(requests, &self.pairs, notes),
            files: files(&self.pairs, notes),
            left_out: self.left_out,
        };
        found.sort();
        found
    }

    pub(crate) fn file(&mut self, pid: u32, write: &FileWrite) {
        self.add((pid, write.device, write.inode), write.bytes.map(u64::from), 1);
    }

    /// Writes of a thread into a file of a device: their bytes if they are known, else as many pages.
    pub(crate) fn add(&mut self, key: (u32, u32, u64), bytes: Option<u64>, writes: u64) {
        if self.pairs.len() >= PAIRS_MAX && !self.pairs.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let written = self.pairs.entry(key).or_default();
        match bytes {
            Some(bytes) => written.bytes += bytes,
            None => written.pages += writes,
        }
    }

    pub(crate) fn request(&mut self, request: &Request, wanted: Selection) {
        let threads = if wanted.has(request.device) { &mut self.cards } else { &mut self.others };
        if threads.len() >= THREADS_MAX && !threads.contains_key(&request.pid) {
            self.left_out += 1;
            return;
        }
        let thread = threads.entry(request.pid).or_default();
        let bytes = u64::from(request.sectors) * 512;
        thread.requests += 1;
        match request.op {
            Op::Read => thread.read += bytes,
            Op::Write => thread.written += bytes,
            _ => {}
        }
        if !matches!(request.mode, Mode::Writeback | Mode::Readahead | Mode::Async) {
            thread.waited_ns += request.total().0;
        }
    }
}

/// Inodes with exact events: their pages are the same bytes again.
fn exact(pairs: &HashMap<(u32, u32, u64), Written>) -> BTreeSet<u64> {
    pairs.iter().filter(|(_, written)| written.bytes > 0).map(|((_, _, inode), _)| *inode).collect()
}

fn threads(
    requests: &HashMap<u32, Thread>,
    pairs: &HashMap<(u32, u32, u64), Written>,
    notes: &Notes,
) -> Vec<ThreadRow> {
    let exact = exact(pairs);
    let mut rows: HashMap<u32, ThreadRow> = HashMap::new();
    for (pid, thread) in requests {
        let row = rows.entry(*pid).or_default();
        (row.written_bytes, row.read_bytes) = (thread.written, thread.read);
        (row.requests, row.waited_ms) = (thread.requests, thread.waited_ns as f64 / 1e6);
    }
    for ((pid, _, inode), written) in pairs {
        let pages = if exact.contains(inode) { 0 } else { written.pages * PAGE_BYTES };
        rows.entry(*pid).or_default().file_written_bytes += written.bytes + pages;
    }
    rows.into_iter().map(|(pid, row)| ThreadRow { pid, name: notes.names.get(pid), ..row }).collect()
}

/// A file's row, and the bytes of each thread that wrote it.
type WrittenFile = (FileRow, Vec<(u64, u32)>);

fn files(pairs: &HashMap<(u32, u32, u64), Written>, notes: &Notes) -> Vec<FileRow> {
    let exact = exact(pairs);
    let mut rows: HashMap<(u32, u64), WrittenFile> = HashMap::new();
    for ((pid, device, inode), written) in pairs {
        let is_exact = exact.contains(inode);
        let bytes = if is_exact { written.bytes } else { written.pages * PAGE_BYTES };
        if bytes == 0 {
            continue;
        }
        let (row, writers) = rows.entry((*device, *inode)).or_default();
        row.written_bytes += bytes;
        row.is_exact = is_exact;
        writers.push((bytes, *pid));
    }
    let row = |((device, inode), (row, mut writers)): ((u32, u64), WrittenFile)| {
        writers.sort_by_key(|(bytes, pid)| (std::cmp::Reverse(*bytes), *pid));
        let names = writers.iter().map(|(_, pid)| notes.names.get(*pid).unwrap_or_else(|| format!("thread {pid}")));
        let mut writers: Vec<String> = Vec::new();
        for name in names {
            if writers.len() < WRITERS_MAX && !writers.contains(&name) {
                writers.push(name);
            }
        }
        FileRow { device: format!("{}:{}", device >> 20, device & 0xf_ffff), inode, writers, ..row }
    };
    rows.into_iter().map(row).collect()
}

impl Who {
    fn sort(&mut self) {
        let written = |row: &ThreadRow| row.file_written_bytes.max(row.written_bytes);
        self.threads.sort_by(|a, b| {
            let by_time = b.waited_ms.total_cmp(&a.waited_ms);
            written(b).cmp(&written(a)).then(by_time).then(a.pid.cmp(&b.pid)).then(a.name.cmp(&b.name))
        });
        self.files.sort_by(|a, b| {
            let by_place = a.device.cmp(&b.device).then(a.inode.cmp(&b.inode));
            b.written_bytes.cmp(&a.written_bytes).then(by_place)
        });
        self.threads.truncate(ROWS_MAX);
        self.files.truncate(ROWS_MAX);
    }

    /// The sum of several; threads of one name are one row.
    pub fn sum(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::default();
        let mut threads: HashMap<Option<String>, ThreadRow> = HashMap::new();
        let mut files: HashMap<(String, u64), FileRow> = HashMap::new();
        for part in parts {
            all.duration_s += part.duration_s;
            all.events += part.events;
            all.lost_events += part.lost_events;
            all.left_out += part.left_out;
            all.has_file_writes |= part.has_file_writes;
            for row in part.threads {
                let name = row.name.clone();
                let sum = threads.entry(name).or_default();
                sum.name = row.name;
                sum.file_written_bytes += row.file_written_bytes;
                sum.written_bytes += row.written_bytes;
                sum.read_bytes += row.read_bytes;
                sum.requests += row.requests;
                sum.waited_ms += row.waited_ms;
            }
            for row in part.files {
                let sum = files.entry((row.device.clone(), row.inode)).or_default();
                sum.written_bytes += row.written_bytes;
                sum.path = row.path.or(sum.path.take());
                (sum.device, sum.inode, sum.is_exact) = (row.device, row.inode, row.is_exact);
                for name in row.writers {
                    if sum.writers.len() < WRITERS_MAX && !sum.writers.contains(&name) {
                        sum.writers.push(name);
                    }
                }
            }
        }
        all.threads = threads.into_values().collect();
        all.files = files.into_values().collect();
        all.sort();
        all
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Input, Storage, open};

    fn of(text: &str) -> Who {
        let storage: Arc<dyn Storage> = Arc::new(text.as_bytes().to_vec());
        who(open(vec![Input { name: "f".into(), storage }]).unwrap(), None)
    }

    const TEXT: &str = "\
        sqlite-7 [000] ..... 1.000000: sys_enter_write: (fd: 3)\n\
        sqlite-7 [000] ..... 1.000010: ext4_da_write_end: dev 179,2 ino 12 pos 0 len 300 copied 300\n\
        sqlite-7 [000] ..... 1.000011: writeback_dirty_folio: bdi 179:0: ino=12 index=0\n\
        sqlite-7 [000] ..... 1.000020: sys_exit_write: 0x12c\n\
        log-8 [000] ..... 1.000030: writeback_dirty_folio: bdi 179:0: ino=99 index=0\n\
        log-8 [000] ..... 1.000031: writeback_dirty_folio: bdi 179:0: ino=99 index=1\n\
        sqlite-7 [000] ..... 2.000000: sys_enter_fsync: (fd: 3)\n\
        sqlite-7 [000] ..... 2.000100: block_bio_queue: 179,0 WS 800 + 8 [sqlite]\n\
        sqlite-7 [000] ..... 2.000200: block_rq_issue: 179,0 WS 4096 () 800 + 8 [sqlite]\n\
        sqlite-7 [000] ..... 2.002000: block_rq_complete: 179,0 WS () 800 + 8 [0]\n\
        sqlite-7 [000] ..... 2.002100: sys_exit_fsync: 0x0\n";

    #[test]
    fn bytes_are_exact_where_the_file_system_counts_them_and_pages_elsewhere() {
        let found = of(TEXT);
        let rows: Vec<_> = found.files.iter().map(|row| (row.device.as_str(), row.inode, row.written_bytes)).collect();
        assert_eq!(rows, [("179:0", 99, 8192), ("179:2", 12, 300)]);
        assert_eq!(found.files.iter().map(|row| row.is_exact).collect::<Vec<_>>(), [false, true]);
        assert_eq!(found.files[1].writers, ["sqlite"]);
        let sqlite = found.threads.iter().find(|row| row.name.as_deref() == Some("sqlite")).unwrap();
        assert_eq!((sqlite.file_written_bytes, sqlite.written_bytes, sqlite.requests), (300, 4096, 1));
        assert!((sqlite.waited_ms - 2.1).abs() < 1e-6, "{}", sqlite.waited_ms);
    }

    #[test]
    fn sums_join_threads_by_name_and_files_by_inode() {
        let again = TEXT.replace("sqlite-7", "sqlite-9");
        let sum = Who::sum([of(TEXT), of(&again)]);
        let sqlite = sum.threads.iter().find(|row| row.name.as_deref() == Some("sqlite")).unwrap();
        assert_eq!((sqlite.file_written_bytes, sqlite.written_bytes, sqlite.pid), (600, 8192, 0));
        assert_eq!(sum.files.iter().map(|row| row.written_bytes).collect::<Vec<_>>(), [16384, 600]);
    }
}
