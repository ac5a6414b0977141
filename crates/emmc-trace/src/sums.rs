//! Writes into files that the kernel itself sums up by thread and file: the text of a `hist` file of tracefs.
//!
//! `{ common_pid: name [ 7], dev: 8388608, ino: 12 } hitcount: 3 copied: 12288`. Source:
//! Documentation/trace/histogram.rst.

use std::collections::HashMap;

use crate::notes::Notes;
use crate::text::{decimal, device};
use crate::who::{Collector, Who};

/// What one event has counted since it began, by thread and file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums {
    rows: HashMap<(u32, u32, u64), Row>,
    /// Events in them.
    pub hits: u64,
    /// Events that the kernel's table had no room for.
    pub dropped: u64,
    /// Entries of the kernel's table.
    pub entries: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Row {
    name: String,
    hits: u64,
    /// Absent for an event without bytes.
    bytes: Option<u64>,
}

impl Sums {
    /// From the text of a `hist` file. Lines that are no entry are ignored; an entry without thread or file is none.
    pub fn new(text: &[u8]) -> Self {
        let mut sums = Self::default();
        for line in text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
            let number = |key: &[u8]| line.strip_prefix(key).map(<[u8]>::trim_ascii).and_then(decimal);
            if let Some((key, row)) = line.strip_prefix(b"{").and_then(entry) {
                sums.rows.insert(key, row);
            }
            sums.hits = number(b"Hits:").unwrap_or(sums.hits);
            sums.dropped = number(b"Dropped:").unwrap_or(sums.dropped);
            sums.entries = number(b"Entries:").unwrap_or(sums.entries);
        }
        sums
    }

    /// What was added since an earlier look; everything if the kernel's table was emptied in between.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        if self.hits < before.hits {
            return self.clone();
        }
        let added = |(key, row): (&(u32, u32, u64), &Row)| {
            let old = before.rows.get(key);
            let less = |now: u64, old: u64| now.saturating_sub(old);
            let bytes = row.bytes.map(|bytes| less(bytes, old.and_then(|old| old.bytes).unwrap_or(0)));
            let row = Row { hits: less(row.hits, old.map_or(0, |old| old.hits)), bytes, name: row.name.clone() };
            (row.hits > 0).then_some((*key, row))
        };
        Self {
            rows: self.rows.iter().filter_map(added).collect(),
            hits: self.hits - before.hits,
            dropped: self.dropped.saturating_sub(before.dropped),
            entries: self.entries,
        }
    }

    /// Who wrote, by the sums of several events.
    pub fn who(all: &[Self]) -> Who {
        let (mut collector, mut notes, mut hits) = (Collector::default(), Notes::default(), 0);
        for sums in all {
            (notes.lost, hits) = (notes.lost + sums.dropped, hits + sums.hits);
            for (key, row) in &sums.rows {
                notes.names.set(key.0, row.name.as_bytes());
                collector.add(*key, row.bytes, row.hits);
            }
        }
        collector.found(false, None, hits, &notes)
    }
}

/// `common_pid: name [ 7], dev: 8388608, ino: 12 } hitcount: 3 copied: 12288`.
fn entry(line: &[u8]) -> Option<((u32, u32, u64), Row)> {
    // A thread's name may have anything in it: its number is in the last brackets before the other keys.
    let close = memchr::memmem::rfind(line, b"}")?;
    let (keys, values) = (&line[..close], &line[close + 1..]);
    let rest = keys.trim_ascii_start().strip_prefix(b"common_pid:")?;
    let end = memchr::memmem::rfind(rest, b"], ")?;
    let open = memchr::memrchr(b'[', &rest[..end])?;
    let pid = u32::try_from(decimal(rest[open + 1..end].trim_ascii())?).ok()?;
    let name = String::from_utf8_lossy(rest[..open].trim_ascii()).into_owned();
    let value = |text: &[u8], key: &[u8]| {
        let at = memchr::memmem::find(text, key)? + key.len();
        let text = &text[at..];
        let text = text[..memchr::memchr(b',', text).unwrap_or(text.len())].trim_ascii();
        Some(text.split(u8::is_ascii_whitespace).next().unwrap_or_default().to_vec())
    };
    let keys = &rest[end..];
    let on = match value(keys, b" dev:") {
        Some(number) => u32::try_from(decimal(&number)?).ok()?,
        // A file system without a disk has another name.
        None => device(&value(keys, b" name:")?).unwrap_or(0),
    };
    let inode = decimal(&value(keys, b" ino:")?)?;
    let hits = decimal(&value(values, b"hitcount:")?)?;
    let bytes = value(values, b"copied:").and_then(|bytes| decimal(&bytes));
    Some(((pid, on, inode), Row { name, hits, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXT4: &str = "# event histogram\n#\n# trigger info: hist:keys=common_pid.execname,dev,ino [active]\n#\n\n\
        { common_pid: a } b, [1]      [       229], dev:  187695106, ino:         12 } hitcount:       3  copied:      12288\n\
        { common_pid: log             [         8], dev:  187695106, ino:         13 } hitcount:       1  copied:        300\n\
        \nTotals:\n    Hits: 4\n    Entries: 2\n    Dropped: 1\n";
    const PAGES: &str = "{ common_pid: cp              [         9], name: 179:0                           , ino:         99 } hitcount:          2\n\
        { common_pid: a } b, [1]      [       229], name: 179:0                           , ino:         12 } hitcount:          3\n\
        Totals:\n    Hits: 5\n    Entries: 2\n    Dropped: 0\n";

    #[test]
    fn sums_of_the_kernel_are_who_wrote() {
        let all = [Sums::new(EXT4.as_bytes()), Sums::new(PAGES.as_bytes())];
        let found = Sums::who(&all);
        assert_eq!((found.events, found.lost_events, found.has_file_writes), (9, 1, true));
        let files: Vec<_> = found
            .files
            .iter()
            .map(|row| (row.device.as_str(), row.inode, row.written_bytes, row.is_exact, row.writers.join("|")))
            .collect();
        // The pages of a file whose bytes are known do not count.
        assert_eq!(
            files,
            [
                ("179:2", 12, 12288, true, "a } b, [1]".into()),
                ("179:0", 99, 8192, false, "cp".into()),
                ("179:2", 13, 300, true, "log".into())
            ]
        );
        let threads: Vec<_> = found.threads.iter().map(|row| (row.pid, row.file_written_bytes)).collect();
        assert_eq!(threads, [(229, 12288), (9, 8192), (8, 300)]);
    }

    #[test]
    fn a_look_has_what_was_added_since_the_last() {
        let first = Sums::new(EXT4.as_bytes());
        let more = EXT4.replace("hitcount:       3  copied:      12288", "hitcount: 5 copied: 20480");
        let added = Sums::new(more.replace("Hits: 4", "Hits: 6").as_bytes()).since(&first);
        assert_eq!((added.hits, added.dropped, added.rows.len()), (2, 0, 1));
        assert_eq!(added.rows[&(229, 187_695_106, 12)].bytes, Some(8192));
        // Emptied in between.
        let again = Sums::new(EXT4.replace("Hits: 4", "Hits: 3").as_bytes());
        assert_eq!(again.since(&first), again);
    }

    #[test]
    fn damaged_text_is_no_entry() {
        for length in 0..EXT4.len() {
            let cut = Sums::new(&EXT4.as_bytes()[..length]);
            assert!(cut.rows.len() <= 2);
        }
        assert_eq!(Sums::new(b"{ common_pid: x [ 7], ino: 12 } hitcount: 3\n{}\n{ } }\n\xff{").rows.len(), 0);
    }
}
