//! f2fs: everything before the main area, and the valid blocks of its segments (SIT with its journal).
//!
//! Both copies of a SIT block and both checkpoints are read: what any of them holds valid is allocated, so that the
//! bitmap of versions need not be followed. Source: Linux `include/linux/f2fs_fs.h`, `fs/f2fs/segment.c`
//! (`read_compacted_summaries`, `sum_blk_addr`).

use super::Allocation;
use super::bytes::{Bytes, Reader, Unread};
use crate::Ranges;

const SUPERBLOCK_AT: u64 = 1024;
const MAGIC: u32 = 0xf2f5_2010;
const BLOCK: u64 = 4096;
const SEGMENT_BLOCKS: u64 = 512;
/// Number of valid blocks with type, a bit per block, a time. Unit: bytes.
const ENTRY_BYTES: usize = 74;
const ENTRIES_PER_BLOCK: u64 = 55;
/// A journal in a summary block: behind its entries; its number of entries comes first.
const JOURNAL_AT: usize = 3584;
const JOURNAL_BYTES: usize = 507;
const JOURNAL_ENTRIES_MAX: usize = 6;
const FLAG_UNMOUNTED: u32 = 0x1;
const FLAG_COMPACT: u32 = 0x4;
const FLAG_ERROR: u32 = 0x8;

struct Checkpoint {
    version: u64,
    flags: u32,
    start: u64,
    blocks: u64,
    summaries: u64,
}

pub(super) fn read(reader: &mut Reader<'_>, base: u64, size: u64) -> Result<Option<Allocation>, Unread> {
    if size < SUPERBLOCK_AT + 3072 {
        return Ok(None);
    }
    let superblock = reader.read(base + SUPERBLOCK_AT, 3072)?;
    if superblock.u32(0) != MAGIC {
        return Ok(None);
    }
    let blocks = superblock.u64(36);
    let [segments_sit, segments_main] = [56, 68].map(|at| u64::from(superblock.u32(at)));
    let [checkpoint_at, sit_at, main_at] = [76, 80, 92].map(|at| u64::from(superblock.u32(at)));
    let is_plain = superblock.u32(16) == 12 && superblock.u32(20) == 9 && superblock.u8(2201) == 0;
    let fits = blocks.checked_mul(BLOCK).is_some_and(|bytes| bytes <= size)
        && main_at + segments_main * SEGMENT_BLOCKS <= blocks
        && sit_at < main_at;
    if !(is_plain && fits) {
        return Err(Unread::odd("f2fs of several devices, other blocks than 4 KiB, or whose sizes do not fit"));
    }
    let mut packs = Vec::new();
    for start in [checkpoint_at, checkpoint_at + SEGMENT_BLOCKS] {
        packs.extend(checkpoint(reader, base, start)?);
    }
    let newest = packs.iter().max_by_key(|pack| pack.version);
    let newest = newest.ok_or_else(|| Unread::odd("f2fs without a checkpoint"))?;
    if newest.flags & FLAG_UNMOUNTED == 0 || newest.flags & FLAG_ERROR != 0 {
        return Err(Unread::odd("f2fs that was not unmounted, or has errors"));
    }
    let mut used = vec![[0, main_at * BLOCK]];
    let copies = segments_sit / 2 * SEGMENT_BLOCKS;
    let tables = segments_main.div_ceil(ENTRIES_PER_BLOCK);
    if tables > copies {
        return Err(Unread::odd("f2fs whose SIT is too short"));
    }
    for table in (0..tables).flat_map(|table| [sit_at + table, sit_at + copies + table].map(|at| (table, at))) {
        let (table, at) = table;
        let block = reader.read(base + at * BLOCK, BLOCK as usize)?;
        for entry in 0..ENTRIES_PER_BLOCK.min(segments_main - table * ENTRIES_PER_BLOCK) {
            let segment = table * ENTRIES_PER_BLOCK + entry;
            valid(&block, entry as usize * ENTRY_BYTES, main_at + segment * SEGMENT_BLOCKS, &mut used);
        }
    }
    for pack in &packs {
        let journal = journal(reader, base, pack)?;
        let entries = usize::from(journal.u16(0)).min(JOURNAL_ENTRIES_MAX);
        for at in (0..entries).map(|entry| 2 + entry * (4 + ENTRY_BYTES)) {
            let segment = u64::from(journal.u32(at));
            if segment < segments_main {
                valid(&journal, at + 4, main_at + segment * SEGMENT_BLOCKS, &mut used);
            }
        }
    }
    Ok(Some(Allocation { filesystem: "f2fs", used: Ranges::of(used), size_bytes: blocks * BLOCK }))
}

/// A checkpoint whose first and last block agree; one that was being written when power was lost has none.
fn checkpoint(reader: &mut Reader<'_>, base: u64, start: u64) -> Result<Option<Checkpoint>, Unread> {
    let head = reader.read(base + start * BLOCK, BLOCK as usize)?;
    let (version, blocks) = (head.u64(0), u64::from(head.u32(136)));
    if version == 0 || !(2..=SEGMENT_BLOCKS).contains(&blocks) {
        return Ok(None);
    }
    let foot = reader.read(base + (start + blocks - 1) * BLOCK, BLOCK as usize)?;
    let summaries = u64::from(head.u32(140));
    let pack = Checkpoint { version, flags: head.u32(132), start, blocks, summaries };
    Ok((foot.u64(0) == version && summaries < blocks).then_some(pack))
}

/// The journal of SIT entries.
fn journal(reader: &mut Reader<'_>, base: u64, pack: &Checkpoint) -> Result<Bytes, Unread> {
    let (block, at) = match pack.flags & FLAG_COMPACT != 0 {
        // Behind the journal of node addresses.
        true => (pack.summaries, JOURNAL_BYTES),
        // Of cold data, the third of six summaries, or of three without those of nodes.
        false if pack.flags & FLAG_UNMOUNTED != 0 => (pack.blocks.saturating_sub(5), JOURNAL_AT),
        false => (pack.blocks.saturating_sub(2), JOURNAL_AT),
    };
    let block = reader.read(base + (pack.start + block) * BLOCK, BLOCK as usize)?;
    Ok(Bytes(block.part(at, JOURNAL_BYTES).to_vec()))
}

/// Adds the valid blocks of a segment; in its map the highest bit of a byte comes first.
fn valid(block: &Bytes, at: usize, first: u64, used: &mut Vec<[u64; 2]>) {
    if block.u16(at) & 0x3ff == 0 {
        return;
    }
    let mut found = Ranges::default();
    for index in (0..SEGMENT_BLOCKS).filter(|index| block.u8(at + 2 + *index as usize / 8) << (index % 8) & 0x80 != 0) {
        found.push((first + index) * BLOCK, (first + index + 1) * BLOCK);
    }
    used.extend_from_slice(found.as_slice());
}
