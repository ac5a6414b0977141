//! f2fs with its defaults: everything is written to the end of a log, in segments of 2 MiB.
//!
//! Data and node blocks have separate logs; an overwrite goes to a new place, and the old block becomes invalid. An
//! fsync writes the data, the file's node blocks and a flush; a checkpoint (every 60 seconds, at a sync, when segments
//! run out) writes the changed blocks of the address tables and a checkpoint pack. When free segments run out, the one
//! with the fewest valid blocks is cleaned. Source: Documentation/filesystems/f2fs of the kernel. Assumed: one log for
//! data and one for nodes, where the kernel has three of each by temperature.

use std::collections::{BTreeMap, BTreeSet};

use emmc_units::{Instant, Nanos};

use super::page_cache::{Dirty, dirty_files};
use super::ranges::Ranges;
use super::{BLOCK_BYTES, Disk, FileId, Filesystem, MountOptions, full};
use crate::drive::stream::BenchError;

/// Blocks of a segment.
const SEGMENT: u64 = 512;
/// Addresses in one node block.
const ADDRESSES: u64 = 1018;
/// Entries of a node in one block of the node address table, of a segment in one of the segment information table.
const NODES_PER_NAT_BLOCK: u64 = 455;
const SEGMENTS_PER_SIT_BLOCK: u64 = 55;
const CHECKPOINT_EVERY: Nanos = Nanos::from_secs(60);
/// One segment in this many is reserved for cleaning (`reserved segments`).
const RESERVED_SHARE: u64 = 20;
/// An unowned block.
const NOBODY: u64 = u64::MAX;

#[derive(Clone, Debug, Default)]
struct File {
    /// Where its blocks are.
    blocks: BTreeMap<u64, u64>,
    /// Node blocks changed since they were last written.
    nodes: BTreeSet<u64>,
    dirty: Dirty,
}

/// A log: the open segment, and the position in it.
#[derive(Clone, Copy, Debug)]
struct Log {
    segment: u64,
    at: u64,
}

/// The filesystem.
#[derive(Debug)]
pub struct F2fs {
    options: MountOptions,
    files: BTreeMap<FileId, File>,
    next_file: u32,
    /// First block of the main area.
    main: u64,
    /// Who owns each block of the main area: file and block in it, packed.
    owners: Vec<u64>,
    /// Valid blocks of each segment, and in all.
    valid: Vec<u16>,
    used: u64,
    free: BTreeSet<u64>,
    /// Emptied since the last checkpoint: free after the next.
    emptied: BTreeSet<u64>,
    data: Log,
    node: Log,
    nodes_at: BTreeMap<(FileId, u64), u64>,
    /// Blocks of the address tables that changed.
    tables: BTreeSet<u64>,
    checkpointed_at: Instant,
    /// The next of the two checkpoint packs.
    pack: u64,
}

/// The owner of a block in the main area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Data(FileId, u64),
    Node(FileId, u64),
}

impl Owner {
    fn packed(self) -> u64 {
        let (is_node, FileId(file), block) = match self {
            Self::Data(file, block) => (0, file, block),
            Self::Node(file, block) => (1, file, block),
        };
        is_node << 63 | u64::from(file) << 32 | block & 0xffff_ffff
    }

    fn unpacked(packed: u64) -> Self {
        let (file, block) = (FileId((packed >> 32 & 0x7fff_ffff) as u32), packed & 0xffff_ffff);
        if packed >> 63 == 1 { Self::Node(file, block) } else { Self::Data(file, block) }
    }
}

impl F2fs {
    /// Creates one on the whole disk: writes the tables and the first checkpoint (`mkfs.f2fs -t 0`).
    ///
    /// Errors: as the target; a disk of less than 64 MiB.
    pub fn make(disk: &mut Disk<'_>, options: MountOptions) -> Result<Self, BenchError> {
        let segments = disk.blocks() / SEGMENT;
        if segments < 32 {
            let what = format!("a filesystem on {} bytes; it needs 64 MiB", disk.blocks() * BLOCK_BYTES);
            return Err(BenchError::Misfit { suite: "f2fs", what });
        }
        // Superblock and two checkpoint segments, then the tables: about 1.2 % of the disk.
        let meta = 4 + segments / 85;
        let main = segments - meta;
        let free: BTreeSet<u64> = (2..main).collect();
        disk.write(0, 2, false)?;
        disk.write(SEGMENT, 8, false)?;
        disk.flush()?;
        Ok(Self {
            options,
            files: BTreeMap::new(),
            next_file: 0,
            main: meta * SEGMENT,
            owners: vec![NOBODY; (main * SEGMENT) as usize],
            valid: vec![0; main as usize],
            used: 0,
            free,
            emptied: BTreeSet::new(),
            data: Log { segment: 0, at: 0 },
            node: Log { segment: 1, at: 0 },
            nodes_at: BTreeMap::new(),
            tables: BTreeSet::new(),
            checkpointed_at: disk.now(),
            pack: 0,
        })
    }

    fn reserved(&self) -> u64 {
        (self.valid.len() as u64 / RESERVED_SHARE).max(4)
    }

    /// Blocks available to files: what is left without the segments that cleaning needs (twice the reserve), so that
    /// even a full disk has a segment worth cleaning.
    fn capacity(&self) -> u64 {
        (self.valid.len() as u64).saturating_sub(2 * self.reserved()) * SEGMENT
    }

    /// The next block of a log; a new segment where it is full.
    fn append(&mut self, is_node: bool, owner: Owner) -> Result<u64, BenchError> {
        let mut log = if is_node { self.node } else { self.data };
        if log.at == SEGMENT {
            log = Log { segment: self.free.pop_first().ok_or_else(|| full("f2fs"))?, at: 0 };
        }
        let block = log.segment * SEGMENT + log.at;
        self.owners[block as usize] = owner.packed();
        self.valid[log.segment as usize] += 1;
        self.used += 1;
        self.tables.insert(SEGMENT * 3 + log.segment / SEGMENTS_PER_SIT_BLOCK);
        log.at += 1;
        *(if is_node { &mut self.node } else { &mut self.data }) = log;
        Ok(block)
    }

    /// A block's content was moved or deleted.
    fn invalidate(&mut self, block: u64) {
        let segment = block / SEGMENT;
        self.owners[block as usize] = NOBODY;
        self.valid[segment as usize] -= 1;
        self.used -= 1;
        self.tables.insert(SEGMENT * 3 + segment / SEGMENTS_PER_SIT_BLOCK);
        if self.valid[segment as usize] == 0 && segment != self.data.segment && segment != self.node.segment {
            self.emptied.insert(segment);
        }
    }

    /// Writes data blocks of a file to the log, neighbours in one request.
    fn write_out(&mut self, disk: &mut Disk<'_>, id: FileId, start: u64, count: u64) -> Result<(), BenchError> {
        let mut run: Option<(u64, u64)> = None;
        for index in start..start + count {
            if self.used >= self.capacity() {
                return Err(full("f2fs"));
            }
            self.make_room(disk)?;
            let place = self.append(false, Owner::Data(id, index))?;
            let file = self.files.entry(id).or_default();
            file.nodes.insert(index / ADDRESSES);
            if let Some(old) = file.blocks.insert(index, place) {
                self.invalidate(old);
            }
            run = match run {
                Some((first, length)) if first + length == place => Some((first, length + 1)),
                Some((first, length)) => {
                    disk.write(self.main + first, length, false)?;
                    Some((place, 1))
                }
                None => Some((place, 1)),
            };
        }
        run.map_or(Ok(()), |(first, length)| disk.write(self.main + first, length, false))
    }

    fn write_nodes(&mut self, disk: &mut Disk<'_>, id: FileId) -> Result<(), BenchError> {
        let Some(file) = self.files.get_mut(&id) else { return Ok(()) };
        for node in std::mem::take(&mut file.nodes) {
            let place = self.append(true, Owner::Node(id, node))?;
            if let Some(old) = self.nodes_at.insert((id, node), place) {
                self.invalidate(old);
            }
            self.tables.insert(SEGMENT * 2 + (u64::from(id.0) + node) / NODES_PER_NAT_BLOCK);
            disk.write(self.main + place, 1, false)?;
        }
        Ok(())
    }

    fn write_dirty(&mut self, disk: &mut Disk<'_>, id: FileId) -> Result<(), BenchError> {
        let Some(file) = self.files.get_mut(&id) else { return Ok(()) };
        for (start, count) in file.dirty.drain() {
            self.write_out(disk, id, start, count)?;
        }
        Ok(())
    }

    /// Cleans segments until enough are free.
    fn make_room(&mut self, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        while (self.free.len() as u64) < self.reserved() {
            if !self.emptied.is_empty() {
                self.checkpoint(disk)?;
                continue;
            }
            let in_use = |segment: &u64| *segment != self.data.segment && *segment != self.node.segment;
            let victim = (0..self.valid.len() as u64)
                .filter(|segment| in_use(segment) && !self.free.contains(segment))
                .min_by_key(|segment| self.valid[*segment as usize]);
            let Some(victim) = victim.filter(|victim| u64::from(self.valid[*victim as usize]) < SEGMENT) else {
                return if self.free.len() > 1 { Ok(()) } else { Err(full("f2fs")) };
            };
            self.clean(disk, victim)?;
        }
        Ok(())
    }

    /// Moves the valid blocks of a segment to the ends of the logs.
    fn clean(&mut self, disk: &mut Disk<'_>, segment: u64) -> Result<(), BenchError> {
        for block in segment * SEGMENT..(segment + 1) * SEGMENT {
            let packed = self.owners[block as usize];
            if packed == NOBODY {
                continue;
            }
            disk.read(self.main + block, 1)?;
            let owner = Owner::unpacked(packed);
            let place = self.append(matches!(owner, Owner::Node(..)), owner)?;
            disk.write(self.main + place, 1, false)?;
            match owner {
                Owner::Data(id, index) => {
                    let file = self.files.entry(id).or_default();
                    file.blocks.insert(index, place);
                    file.nodes.insert(index / ADDRESSES);
                }
                Owner::Node(id, node) => {
                    self.nodes_at.insert((id, node), place);
                }
            }
            self.invalidate(block);
        }
        Ok(())
    }

    /// Writes a checkpoint.
    fn checkpoint(&mut self, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        self.checkpointed_at = disk.now();
        let changed = self.files.iter().filter(|(_, file)| !file.nodes.is_empty()).map(|(id, _)| *id);
        for id in changed.collect::<Vec<_>>() {
            self.write_nodes(disk, id)?;
        }
        let mut runs = Ranges::default();
        for block in std::mem::take(&mut self.tables) {
            runs.insert(block, 1);
        }
        runs.iter().try_for_each(|(start, count)| disk.write(start, count, false))?;
        disk.flush()?;
        self.pack = 1 - self.pack;
        disk.write(SEGMENT * self.pack, 6, false)?;
        disk.write(SEGMENT * self.pack + 6, 1, true)?;
        for segment in std::mem::take(&mut self.emptied) {
            self.free.insert(segment);
            if self.options.discard {
                disk.trim(self.main + segment * SEGMENT, SEGMENT)?;
            }
        }
        Ok(())
    }

    fn tick(&mut self, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        let now = disk.now();
        if now.since(self.checkpointed_at) < CHECKPOINT_EVERY {
            return Ok(());
        }
        for id in dirty_files(&self.files, Some(now), |file| &file.dirty) {
            self.write_dirty(disk, id)?;
        }
        self.checkpoint(disk)
    }
}

impl Filesystem for F2fs {
    fn name(&self) -> &'static str {
        "f2fs"
    }

    fn create(&mut self, disk: &mut Disk<'_>, _folder: u32) -> Result<FileId, BenchError> {
        let id = FileId(self.next_file);
        self.next_file += 1;
        let file = File { nodes: BTreeSet::from([0]), ..File::default() };
        self.files.insert(id, file);
        self.tick(disk)?;
        Ok(id)
    }

    fn write(&mut self, disk: &mut Disk<'_>, file: FileId, offset: u64, bytes: u64) -> Result<(), BenchError> {
        self.files.entry(file).or_default().dirty.write(disk.now(), offset, bytes);
        self.tick(disk)
    }

    fn write_direct(&mut self, disk: &mut Disk<'_>, file: FileId, offset: u64, bytes: u64) -> Result<(), BenchError> {
        let (first, last) = (offset / BLOCK_BYTES, (offset + bytes).div_ceil(BLOCK_BYTES));
        self.write_out(disk, file, first, last - first)?;
        self.tick(disk)
    }

    fn read(&mut self, disk: &mut Disk<'_>, file: FileId, offset: u64, bytes: u64) -> Result<(), BenchError> {
        let Some(entry) = self.files.get(&file) else { return Ok(()) };
        let (first, last) = (offset / BLOCK_BYTES, (offset + bytes).div_ceil(BLOCK_BYTES));
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for place in entry.blocks.range(first..last).map(|(_, place)| *place) {
            match runs.last_mut().filter(|(start, count)| start + *count == place) {
                Some((_, count)) => *count += 1,
                None => runs.push((place, 1)),
            }
        }
        runs.into_iter().try_for_each(|(start, count)| disk.read(self.main + start, count))
    }

    fn write_back(&mut self, disk: &mut Disk<'_>, file: FileId) -> Result<(), BenchError> {
        self.write_dirty(disk, file)
    }

    fn fsync(&mut self, disk: &mut Disk<'_>, file: FileId) -> Result<(), BenchError> {
        self.write_dirty(disk, file)?;
        self.write_nodes(disk, file)?;
        disk.flush()?;
        self.tick(disk)
    }

    fn unlink(&mut self, disk: &mut Disk<'_>, file: FileId) -> Result<(), BenchError> {
        let Some(entry) = self.files.remove(&file) else { return Ok(()) };
        for block in entry.blocks.into_values() {
            self.invalidate(block);
        }
        let nodes: Vec<(FileId, u64)> =
            self.nodes_at.range((file, 0)..=(file, u64::MAX)).map(|(key, _)| *key).collect();
        for key in nodes {
            if let Some(block) = self.nodes_at.remove(&key) {
                self.invalidate(block);
            }
        }
        self.tick(disk)
    }

    fn sync(&mut self, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        for id in dirty_files(&self.files, None, |file| &file.dirty) {
            self.write_dirty(disk, id)?;
        }
        self.checkpoint(disk)
    }

    fn trim(&mut self, disk: &mut Disk<'_>) -> Result<u64, BenchError> {
        self.sync(disk)?;
        let before = disk.trimmed_bytes;
        let mut runs = Ranges::default();
        let in_log = |block: u64| {
            [self.data, self.node].iter().any(|log| block / SEGMENT == log.segment && block % SEGMENT >= log.at)
        };
        for (block, owner) in (0..).zip(&self.owners) {
            if *owner == NOBODY && !in_log(block) {
                runs.insert(self.main + block, 1);
            }
        }
        runs.iter().try_for_each(|(start, count)| disk.trim(start, count))?;
        Ok(disk.trimmed_bytes - before)
    }

    fn free_bytes(&self) -> u64 {
        self.capacity().saturating_sub(self.used) * BLOCK_BYTES
    }
}
