//! The kernel's `format` files: the offset of every field, and what an event with that layout means here.
//!
//! No offset is fixed in this crate: `rwbs` had 8 bytes and has 10, `ioprio` was added in between.

use std::collections::HashMap;

use crate::event::{Action, Mark, Syscall, is_file_write};
use crate::ftrace::block_action;
use crate::notes::Mixer;
use crate::step::{Step, Symbols};
use crate::text::{decimal, words};

/// A field of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) offset: u16,
    /// 0 if the event has no such field.
    pub(crate) size: u16,
}

/// Fields of an event of the block layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockLayout {
    pub(crate) action: Action,
    pub(crate) device: Field,
    pub(crate) sector: Field,
    pub(crate) sectors: Field,
    pub(crate) rwbs: Field,
    pub(crate) name: Field,
    pub(crate) other: Field,
}

/// Fields of an event of the MMC layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MmcLayout {
    pub(crate) started: bool,
    pub(crate) host: Field,
    pub(crate) opcode: Field,
    pub(crate) argument: Field,
    pub(crate) set_count: Field,
    pub(crate) blocks: Field,
    pub(crate) address: Field,
    pub(crate) errors: [Field; 3],
    pub(crate) retuning: [Field; 3],
    pub(crate) request: Field,
}

/// What an event means.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    Block(BlockLayout),
    Mmc(MmcLayout),
    Syscall {
        call: Syscall,
        entered: bool,
    },
    Mark(Mark, FileLayout),
    /// The name of the handler.
    Interrupt(Field),
    /// The function that a timer calls.
    Timer(Field),
    Step(Step),
    /// The number of the thread that ends, and of the one that begins.
    Switch([Field; 2]),
    Wake {
        /// The number of the thread that is woken up.
        thread: Field,
        began: bool,
    },
    FileWrite(FileLayout),
}

/// Fields of a write into a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileLayout {
    /// A number, or the name of a `backing_dev_info`.
    pub(crate) device: Field,
    pub(crate) inode: Field,
    /// Absent if it is a page.
    pub(crate) bytes: Field,
}

/// The layouts of a kernel's events.
#[derive(Clone, Debug)]
pub struct Formats {
    by_id: HashMap<u32, Meaning, Mixer>,
    pub(crate) symbols: Symbols,
    /// Of `common_pid`, the same in every event.
    pub(crate) pid: Field,
    /// Of `common_type`.
    pub(crate) kind: Field,
    /// Bytes before the data of a page, and bytes of its length.
    pub(crate) page_head: usize,
    pub(crate) commit_bytes: usize,
    /// Events of the block layer or MMC layer that were understood.
    pub(crate) known: usize,
}

impl Default for Formats {
    fn default() -> Self {
        let (kind, pid) = (Field { offset: 0, size: 2 }, Field { offset: 4, size: 4 });
        let (by_id, symbols) = (HashMap::default(), Symbols::default());
        Self { by_id, symbols, pid, kind, page_head: 16, commit_bytes: 8, known: 0 }
    }
}

impl Formats {
    /// From the text of one or more `format` files, of `header_page` and of lines of `/proc/kallsyms` if they are
    /// there, one after the other.
    pub fn new(text: &[u8]) -> Self {
        let mut formats = Self::default();
        formats.add(text);
        formats
    }

    /// Adds the text of more files.
    pub fn add(&mut self, text: &[u8]) {
        let (mut event, mut fields) = (None::<(&[u8], Option<u32>)>, Vec::new());
        for line in text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
            if let Some(name) = line.strip_prefix(b"name:") {
                self.end(event.take(), &mut fields);
                event = Some((name.trim_ascii(), None));
            } else if let Some(id) = line.strip_prefix(b"ID:") {
                let id = decimal(id.trim_ascii()).and_then(|id| u32::try_from(id).ok());
                event = event.map(|(name, _)| (name, id));
            } else if let Some(rest) = line.strip_prefix(b"field:") {
                if let Some(field) = field(rest) {
                    self.page_field(event.is_none(), field);
                    fields.push(field);
                }
            } else if line.first().is_some_and(u8::is_ascii_hexdigit) {
                self.symbols.add(line);
            }
        }
        self.end(event, &mut fields);
    }

    /// Adds lines of `/proc/kallsyms`.
    pub(crate) fn add_symbols(&mut self, text: &[u8]) {
        text.split(|byte| *byte == b'\n').for_each(|line| self.symbols.add(line));
    }

    /// Whether no event of use is known.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    #[inline]
    pub(crate) fn meaning(&self, id: u32) -> Option<&Meaning> {
        self.by_id.get(&id)
    }

    /// A field of `header_page`, which has no name of its own.
    fn page_field(&mut self, is_page: bool, (name, field): (&[u8], Field)) {
        match name {
            b"commit" if is_page && matches!(field.size, 4 | 8) => self.commit_bytes = usize::from(field.size),
            b"data" if is_page && (12..=64).contains(&field.offset) => self.page_head = usize::from(field.offset),
            _ => {}
        }
    }

    fn end(&mut self, event: Option<(&[u8], Option<u32>)>, fields: &mut Vec<(&[u8], Field)>) {
        let fields = std::mem::take(fields);
        let Some((name, Some(id))) = event else { return };
        let of = |wanted: &str| {
            fields.iter().find(|(name, _)| *name == wanted.as_bytes()).map_or(Field::default(), |(_, field)| *field)
        };
        if of("common_pid").size == 4 && matches!(of("common_type").size, 2 | 4) {
            (self.pid, self.kind) = (of("common_pid"), of("common_type"));
        }
        let meaning = if let Some(action) = name.strip_prefix(b"block_").and_then(block_action) {
            let other = match action {
                Action::Split => of("new_sector"),
                Action::Complete | Action::BioComplete => of("error"),
                _ => Field::default(),
            };
            let (device, sector, sectors) = (of("dev"), of("sector"), of("nr_sector"));
            let is_plug = matches!(action, Action::Plug | Action::Unplug);
            if !is_plug && (device.size == 0 || sector.size == 0 || of("rwbs").size == 0) {
                return;
            }
            let layout = BlockLayout { action, device, sector, sectors, rwbs: of("rwbs"), name: of("comm"), other };
            Some(Meaning::Block(layout))
        } else if name == b"mmc_request_start" || name == b"mmc_request_done" {
            let layout = MmcLayout {
                started: name == b"mmc_request_start",
                host: of("name"),
                opcode: of("cmd_opcode"),
                argument: of("cmd_arg"),
                set_count: of("sbc_arg"),
                blocks: of("blocks"),
                address: of("blk_addr"),
                errors: [of("cmd_err"), of("data_err"), of("sbc_err")],
                retuning: [of("doing_retune"), of("retune_now"), of("need_retune")],
                request: of("mrq"),
            };
            (layout.opcode.size != 0 && layout.request.size != 0).then_some(Meaning::Mmc(layout))
        } else if let Some(call) = name.strip_prefix(b"sys_enter_") {
            Some(Meaning::Syscall { call: Syscall::named(call), entered: true })
        } else if let Some(call) = name.strip_prefix(b"sys_exit_") {
            Some(Meaning::Syscall { call: Syscall::named(call), entered: false })
        } else if name == b"irq_handler_entry" {
            (of("name").size != 0).then(|| Meaning::Interrupt(of("name")))
        } else if name == b"timer_start" {
            (of("function").size != 0).then(|| Meaning::Timer(of("function")))
        } else if let Some(step) = Step::of_probe(name) {
            Some(Meaning::Step(step))
        } else if name == b"sched_switch" {
            let threads = [of("prev_pid"), of("next_pid")];
            threads.iter().all(|field| field.size == 4).then_some(Meaning::Switch(threads))
        } else if matches!(name, b"sched_waking" | b"sched_wakeup") {
            (of("pid").size == 4).then(|| Meaning::Wake { thread: of("pid"), began: name == b"sched_waking" })
        } else if let Some(has_bytes) = is_file_write(name) {
            let device = if has_bytes { of("dev") } else { of("name") };
            let bytes = if has_bytes { of("copied") } else { Field::default() };
            let layout = FileLayout { device, inode: of("ino"), bytes };
            (layout.inode.size != 0 && (bytes.size != 0) == has_bytes).then_some(Meaning::FileWrite(layout))
        } else {
            // The page cache has other names, write-back has the name of its device.
            let either = |first: &str, second: &str| if of(first).size != 0 { of(first) } else { of(second) };
            let layout =
                FileLayout { device: either("dev", "s_dev"), inode: either("ino", "i_ino"), bytes: Field::default() };
            let layout = if of("name").size == 32 { FileLayout { device: of("name"), ..layout } } else { layout };
            Mark::named(name).map(|mark| Meaning::Mark(mark, layout))
        };
        if let Some(meaning) = meaning {
            self.known += usize::from(matches!(meaning, Meaning::Block(_) | Meaning::Mmc(_)));
            self.by_id.insert(id, meaning);
        }
    }
}

/// `unsigned int nr_sector;`, then `offset:24;`, `size:4;` and `signed:0;`, with tabs between them.
fn field(text: &[u8]) -> Option<(&[u8], Field)> {
    let mut parts = text.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let name = words(parts.next()?).last()?;
    let name = &name[..memchr::memchr(b'[', name).unwrap_or(name.len())];
    let (mut offset, mut size) = (None, None);
    for part in parts {
        let value = |prefix: &[u8]| part.strip_prefix(prefix).and_then(decimal).and_then(|v| u16::try_from(v).ok());
        offset = offset.or(value(b"offset:"));
        size = size.or(value(b"size:"));
    }
    Some((name, Field { offset: offset?, size: size? }))
}
