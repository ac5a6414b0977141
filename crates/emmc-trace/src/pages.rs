//! Pages of a kernel's ring buffer (`per_cpu/cpuN/trace_pipe_raw`), decoded by the kernel's `format` files.
//!
//! A page: 64 bits of time, the length of its data (with marks of lost events in its upper bits), the data. A record: 5
//! bits of kind and 27 bits of time since the last one. Source: `header_page` and `header_event` of tracefs, and
//! include/linux/ring_buffer.h.

use std::io::Read;
use std::sync::Arc;

use emmc_units::Nanos;

use crate::event::{
    Action, BlockEvent, Event, File, FileWrite, MmcEvent, What, controller, error_code, first_part, is_place, letters,
};
use crate::format::{BlockLayout, Field, FileLayout, Formats, Meaning, MmcLayout};
use crate::notes::Batch;
use crate::source::EventSource;
use crate::text::device;
use crate::window::Window;

/// The page size of most kernels.
pub const PAGE_BYTES: usize = 4096;
/// Pages in a batch.
const BATCH: usize = 16;
/// Marks in a page's length: events are missing before it, and their number is behind its data.
const MISSED: u64 = 1 << 31;
const MISSED_COUNTED: u64 = 1 << 30;

/// Kinds of records.
const PADDING: u32 = 29;
const EXTEND: u32 = 30;
const STAMP: u32 = 31;
/// Bits of a record's time, and of an absolute stamp.
const DELTA_BITS: u32 = 27;
const STAMP_BITS: u32 = 59;

/// The pages of one processor.
pub struct Pages<R> {
    window: Window<R>,
    formats: Arc<Formats>,
    cpu: u32,
    page_bytes: usize,
    big_endian: bool,
    last: Nanos,
}

impl<R: Read> Pages<R> {
    /// Of a little-endian kernel with pages of 4 KiB.
    pub fn new(from: R, cpu: u32, formats: Arc<Formats>) -> Self {
        Self::with(from, cpu, formats, PAGE_BYTES, false)
    }

    /// Of any kernel.
    pub(crate) fn with(from: R, cpu: u32, formats: Arc<Formats>, page_bytes: usize, big_endian: bool) -> Self {
        Self { window: Window::new(from), formats, cpu, page_bytes, big_endian, last: Nanos::ZERO }
    }
}

impl<R: Read> EventSource for Pages<R> {
    fn fill(&mut self, batch: &mut Batch) -> bool {
        for _ in 0..BATCH {
            let offset = self.window.offset();
            let bytes = self.window.peek(self.page_bytes, &mut batch.notes);
            if bytes.is_empty() {
                return false;
            }
            let page = &bytes[..bytes.len().min(self.page_bytes)];
            let whole = page.len();
            let mut page =
                Page { bytes: page, formats: &self.formats, cpu: self.cpu, big: self.big_endian, offset, batch };
            self.last = page.read(self.last, self.page_bytes);
            self.window.consume(whole);
        }
        true
    }
}

/// One page.
struct Page<'a> {
    bytes: &'a [u8],
    formats: &'a Formats,
    cpu: u32,
    big: bool,
    offset: u64,
    batch: &'a mut Batch,
}

impl Page<'_> {
    #[inline]
    fn u32_at(&self, at: usize) -> Option<u32> {
        let four = *self.bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
    }

    #[inline]
    fn u64_at(&self, at: usize) -> Option<u64> {
        let eight = *self.bytes.get(at..)?.first_chunk::<8>()?;
        Some(if self.big { u64::from_be_bytes(eight) } else { u64::from_le_bytes(eight) })
    }

    fn damage(&mut self, at: usize, found: String, expected: &str) {
        self.batch.notes.damage(self.offset + at as u64, 0, found, expected);
    }

    /// Reads all records; returns the last time.
    fn read(&mut self, last: Nanos, page_bytes: usize) -> Nanos {
        let (head, commit_bytes) = (self.formats.page_head, self.formats.commit_bytes);
        let commit = if commit_bytes == 8 { self.u64_at(8) } else { self.u32_at(8).map(u64::from) };
        let (Some(began), Some(commit)) = (self.u64_at(0), commit) else {
            self.damage(0, format!("{} bytes are left", self.bytes.len()), "a page of the ring buffer");
            return last;
        };
        let length = (commit & (MISSED_COUNTED - 1)) as usize;
        if length > page_bytes - head.min(page_bytes) {
            self.damage(8, format!("{length} bytes of data"), "at most a page");
            return last;
        }
        let end = head + length;
        let cut = self.bytes.len() < end;
        if cut {
            self.damage(self.bytes.len(), "the end of the input".into(), "the rest of a page");
        }
        let end = end.min(self.bytes.len());
        let mut time = began;
        if commit & MISSED != 0 {
            let count = if commit & MISSED_COUNTED != 0 && !cut {
                if commit_bytes == 8 { self.u64_at(end) } else { self.u32_at(end).map(u64::from) }
            } else {
                None
            };
            let until = Nanos(began);
            self.batch.lost((last.min(until), until), count, self.cpu);
        }
        let mut at = head;
        while at.saturating_add(4) <= end {
            let Some(word) = self.u32_at(at) else { break };
            let (kind, delta) =
                if self.big { (word >> DELTA_BITS, word & ((1 << DELTA_BITS) - 1)) } else { (word & 31, word >> 5) };
            let array = self.u32_at(at + 4);
            let (from, bytes) = match kind {
                PADDING if delta == 0 => break,
                PADDING | EXTEND | STAMP if at + 8 > end => {
                    self.damage(at, "a record that is cut".into(), "a whole record");
                    break;
                }
                EXTEND => {
                    let more = u64::from(array.unwrap_or(0)) << DELTA_BITS;
                    time = time.wrapping_add(more + u64::from(delta));
                    at += 8;
                    continue;
                }
                STAMP => {
                    let low = u64::from(array.unwrap_or(0)) << DELTA_BITS | u64::from(delta);
                    // The upper bits of an absolute time are those of the page's.
                    time = low | began & !((1 << STAMP_BITS) - 1);
                    at += 8;
                    continue;
                }
                PADDING => {
                    time = time.wrapping_add(u64::from(delta));
                    at = (at + 4).saturating_add(array.unwrap_or(0) as usize);
                    continue;
                }
                0 => (at + 8, (array.unwrap_or(0) as usize).saturating_sub(4)),
                words => (at + 4, words as usize * 4),
            };
            time = time.wrapping_add(u64::from(delta));
            let record = self.bytes.get(from..end).and_then(|rest| rest.get(..bytes)).filter(|_| bytes > 0);
            let Some(record) = record else {
                self.damage(at, format!("a record of {bytes} bytes"), "a record that ends in its page");
                break;
            };
            self.record(record, Nanos(time), at);
            at = from + bytes;
        }
        Nanos(time)
    }

    #[inline]
    fn record(&mut self, record: &[u8], at: Nanos, place: usize) {
        let record = Record { bytes: record, big: self.big };
        let id = record.number(self.formats.kind).unwrap_or(0) as u32;
        let Some(meaning) = self.formats.meaning(id) else {
            self.batch.notes.unused += 1;
            return;
        };
        let pid = record.number(self.formats.pid).unwrap_or(0) as u32;
        let what = match meaning {
            Meaning::Block(layout) => match record.block(layout) {
                Some(block) => {
                    if layout.action == Action::Queue {
                        self.batch.notes.names.set(pid, record.text(layout.name));
                    }
                    Some(What::Block(block))
                }
                None => None,
            },
            Meaning::Mmc(layout) => record.mmc(layout).map(What::Mmc),
            Meaning::Syscall { call, entered } => Some(What::Syscall { call: *call, entered: *entered }),
            Meaning::Mark(mark, layout) => Some(What::Mark(*mark, record.file(layout))),
            Meaning::Interrupt(name) => {
                let Some(host) = controller(record.located(*name)) else {
                    self.batch.notes.unused += 1;
                    return;
                };
                Some(What::Interrupt { host })
            }
            Meaning::Timer(function) => {
                let step = record.number(*function).and_then(|function| self.formats.symbols.find(function));
                let Some(step) = step else {
                    self.batch.notes.unused += 1;
                    return;
                };
                Some(What::Step(step))
            }
            Meaning::Step(step) => Some(What::Step(*step)),
            Meaning::Switch(threads) => {
                let [previous, next] = threads.map(|thread| record.number(thread));
                let both = previous.zip(next);
                both.map(|(previous, next)| What::Switch { previous: previous as u32, next: next as u32 })
            }
            Meaning::Wake { thread, began } => {
                record.number(*thread).map(|pid| What::Wake { pid: pid as u32, began: *began })
            }
            Meaning::FileWrite(layout) => record.file_write(layout).map(What::FileWrite),
        };
        match what {
            Some(what) => self.batch.events.push(Event { at, pid, cpu: self.cpu, what }),
            None => self.damage(
                place,
                format!("{} bytes for event {id}", record.bytes.len()),
                "all of its fields, and a place below 2^64 bytes",
            ),
        }
    }
}

/// The bytes of one record.
#[derive(Clone, Copy)]
struct Record<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl Record<'_> {
    /// An unsigned number of 1, 2, 4 or 8 bytes; `None` if the field is absent or cut.
    #[inline]
    fn number(&self, field: Field) -> Option<u64> {
        let bytes = self.bytes.get(usize::from(field.offset)..)?;
        Some(match (field.size, self.big) {
            (4, false) => u64::from(u32::from_le_bytes(*bytes.first_chunk()?)),
            (8, false) => u64::from_le_bytes(*bytes.first_chunk()?),
            (2, false) => u64::from(u16::from_le_bytes(*bytes.first_chunk()?)),
            (4, true) => u64::from(u32::from_be_bytes(*bytes.first_chunk()?)),
            (8, true) => u64::from_be_bytes(*bytes.first_chunk()?),
            (2, true) => u64::from(u16::from_be_bytes(*bytes.first_chunk()?)),
            (1, _) => u64::from(*bytes.first()?),
            _ => return None,
        })
    }

    fn signed(&self, field: Field) -> Option<i32> {
        self.number(field).map(|value| value as u32 as i32)
    }

    /// Text up to its zero.
    #[inline]
    fn text(&self, field: Field) -> &[u8] {
        let from = usize::from(field.offset);
        let bytes = self.bytes.get(from..from + usize::from(field.size)).unwrap_or_default();
        &bytes[..bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len())]
    }

    #[inline]
    fn block(&self, layout: &BlockLayout) -> Option<BlockEvent> {
        let action = layout.action;
        if matches!(action, Action::Plug | Action::Unplug) {
            let (op, flags) = letters(b"");
            return Some(BlockEvent { action, op, flags, device: 0, sector: 0, sectors: 0, other: 0 });
        }
        let (op, flags) = letters(self.text(layout.rwbs));
        let (device, sector) = (self.number(layout.device)? as u32, self.number(layout.sector)?);
        let other = match action {
            Action::Split => first_part(sector, self.number(layout.other)?),
            _ if layout.other.size == 4 => (self.number(layout.other)? as u32 as i32).unsigned_abs(),
            _ => 0,
        };
        let sectors = if layout.sectors.size == 0 { 0 } else { self.number(layout.sectors)? as u32 };
        is_place(sector, sectors).then_some(BlockEvent { action, op, flags, device, sector, sectors, other })
    }

    fn file_write(&self, layout: &FileLayout) -> Option<FileWrite> {
        let inode = self.number(layout.inode)?;
        if layout.bytes.size == 0 {
            // The disk by its numbers, or the name of a file system without a disk.
            return Some(FileWrite { device: device(self.text(layout.device)).unwrap_or(0), inode, bytes: None });
        }
        let bytes = Some(self.number(layout.bytes)? as u32);
        Some(FileWrite { device: self.number(layout.device)? as u32, inode, bytes })
    }

    /// The file of a mark, as far as it is there.
    fn file(&self, layout: &FileLayout) -> File {
        let on = match layout.device.size {
            // The disk by its numbers.
            32 => device(self.text(layout.device)).unwrap_or(0),
            _ => self.number(layout.device).unwrap_or(0) as u32,
        };
        File { device: on, inode: self.number(layout.inode).unwrap_or(0) }
    }

    fn mmc(&self, layout: &MmcLayout) -> Option<MmcEvent> {
        let opcode = self.number(layout.opcode)? as u8;
        let optional = |field: Field| self.number(field).unwrap_or(0) as u32;
        let error = layout.errors.iter().filter_map(|field| self.signed(*field)).find(|error| *error != 0);
        let event = MmcEvent {
            started: layout.started,
            host: self.host(layout.host),
            opcode,
            retuning: layout.retuning.iter().any(|field| optional(*field) != 0),
            reliable: optional(layout.set_count) >> 31 != 0,
            error: error_code(error.unwrap_or(0)),
            argument: optional(layout.argument),
            is_block: false,
            blocks: optional(layout.blocks),
            request: self.number(layout.request)?,
        };
        Some(event.located(self.number(layout.address).map(|address| address as u32)))
    }

    /// Text behind the fields: its offset and length are in the field.
    fn located(&self, field: Field) -> &[u8] {
        let place = self.number(field).unwrap_or(0) as u32;
        let (from, length) = ((place & 0xffff) as usize, (place >> 16) as usize);
        let text = self.bytes.get(from..(from + length).min(self.bytes.len())).unwrap_or_default();
        text.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// The N of `mmcN`.
    fn host(&self, field: Field) -> u8 {
        controller(self.located(field)).unwrap_or(u8::MAX)
    }
}
