//! ftrace's text: `trace` and `trace_pipe` of a kernel, and `trace-cmd report`.
//!
//! `name-pid [cpu] flags seconds: event: values`. The kernel's text has microseconds, and hashes its pointers. Names
//! may hold blanks and dashes; text before the name (the buffer's name in trace-cmd, marks of an editor) is ignored.

use std::collections::HashMap;
use std::io::Read;

use emmc_units::Nanos;

use crate::event::{
    Action, BlockEvent, Event, File, FileWrite, Mark, MmcEvent, Step, Syscall, What, controller, error_code,
    first_part, is_file_write, is_place, letters,
};
use crate::notes::{Batch, Mixer};
use crate::source::EventSource;
use crate::text::{decimal, device, number, seconds, shown, signed, words};
use crate::window::Lines;

/// Lines in a batch.
const BATCH: usize = 1024;
/// Processors whose last times are kept, for losses.
const CPUS_MAX: usize = 4096;

/// Whether a line looks like ftrace's.
pub(crate) fn is_line(line: &[u8]) -> bool {
    line.starts_with(b"# tracer:") || Line::new(line).is_some()
}

/// Text of ftrace.
pub struct Ftrace<R> {
    lines: Lines<R>,
    last: HashMap<u32, Nanos, Mixer>,
    /// A loss that the next line of its processor ends.
    loss: Option<(u32, Option<u64>)>,
}

impl<R: Read> Ftrace<R> {
    /// From the first line.
    pub fn new(from: R) -> Self {
        Self { lines: Lines::new(from), last: HashMap::default(), loss: None }
    }
}

impl<R: Read> EventSource for Ftrace<R> {
    fn fill(&mut self, batch: &mut Batch) -> bool {
        for _ in 0..BATCH {
            let Some(line) = self.lines.next(&mut batch.notes) else {
                if let Some((cpu, count)) = self.loss.take() {
                    let last = self.last.get(&cpu).copied().unwrap_or(Nanos::ZERO);
                    batch.lost((last, last), count, cpu);
                }
                return false;
            };
            let Some(parts) = Line::new(line) else {
                if let Some(found) = loss(line) {
                    if let Some((cpu, count)) = self.loss.replace(found) {
                        let last = self.last.get(&cpu).copied().unwrap_or(Nanos::ZERO);
                        batch.lost((last, last), count, cpu);
                    }
                } else if !is_heading(line) {
                    let found = shown(line);
                    let expected = "name-pid [cpu] flags seconds: event: values";
                    batch.notes.damage(self.lines.offset, self.lines.number, found, expected);
                }
                continue;
            };
            let (pid, cpu, at) = (parts.pid, parts.cpu, parts.at);
            if let Some((_, count)) = self.loss.take_if(|(lost, _)| *lost == cpu) {
                let last = self.last.get(&cpu).copied().unwrap_or(Nanos::ZERO);
                batch.lost((last.min(at), at), count, cpu);
            }
            if self.last.len() < CPUS_MAX || self.last.contains_key(&cpu) {
                self.last.insert(cpu, at);
            }
            match what(parts.event, parts.values) {
                Ok(Some(what)) => {
                    batch.notes.names.set(pid, parts.name);
                    batch.events.push(Event { at, pid, cpu, what });
                }
                Ok(None) => batch.notes.unused += 1,
                Err(expected) => {
                    let found = shown(parts.values);
                    batch.notes.damage(self.lines.offset, self.lines.number, found, expected);
                }
            }
        }
        true
    }
}

fn is_heading(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || line.starts_with(b"#") || line.starts_with(b"cpus=") || line.starts_with(b"version =")
}

/// `CPU:1 [LOST 12 EVENTS]`, and the form of trace-cmd, `CPU:1 [12 EVENTS DROPPED]`.
fn loss(line: &[u8]) -> Option<(u32, Option<u64>)> {
    let rest = line.trim_ascii().strip_prefix(b"CPU:")?;
    let mut words = rest.split(|byte| b" []".contains(byte)).filter(|word| !word.is_empty());
    let cpu = u32::try_from(decimal(words.next()?)?).ok()?;
    let rest: Vec<&[u8]> = words.collect();
    let is_loss = rest.iter().any(|word| matches!(*word, b"LOST" | b"DROPPED"));
    is_loss.then(|| (cpu, rest.iter().find_map(|word| decimal(word))))
}

/// The parts of a line.
struct Line<'a> {
    name: &'a [u8],
    pid: u32,
    cpu: u32,
    at: Nanos,
    event: &'a [u8],
    values: &'a [u8],
}

impl<'a> Line<'a> {
    fn new(line: &'a [u8]) -> Option<Self> {
        // The first "[digits]" after a "-digits" is the processor.
        let mut from = 0;
        let (left, cpu, right) = loop {
            let open = from + memchr::memchr(b'[', &line[from..])?;
            let close = open + memchr::memchr(b']', &line[open..])?;
            if let Some(cpu) = decimal(&line[open + 1..close]) {
                break (&line[..open], u32::try_from(cpu).ok()?, &line[close + 1..]);
            }
            from = open + 1;
        };
        let mut left = left.trim_ascii_end();
        if left.ends_with(b")") {
            // The process of the thread.
            left = left[..memchr::memrchr(b'(', left)?].trim_ascii_end();
        }
        let dash = memchr::memrchr(b'-', left)?;
        let pid = u32::try_from(decimal(&left[dash + 1..])?).ok()?;
        let name = &left[..dash];
        let blanks = name.windows(2).rposition(|pair| pair == b"  ").map_or(0, |at| at + 2);
        let name = name[blanks..].trim_ascii();
        // Flags may be absent; the time ends with a colon.
        let mut rest = right;
        for _ in 0..3 {
            rest = rest.trim_ascii_start();
            let end = rest.iter().position(u8::is_ascii_whitespace)?;
            let (word, after) = rest.split_at(end);
            if let Some(at) = word.strip_suffix(b":").and_then(seconds) {
                let after = after.trim_ascii_start();
                // `sys_write(fd: 1)` and `sys_write -> 0x1` have no colon of their own.
                let ends = after.iter().position(|byte| b": (".contains(byte)).unwrap_or(after.len());
                let (event, values) = after.split_at(ends);
                let values = values.strip_prefix(b":").unwrap_or(values).trim_ascii();
                return Some(Self { name, pid, cpu, at, event, values });
            }
            rest = after;
        }
        None
    }
}

fn what(event: &[u8], values: &[u8]) -> Result<Option<What>, &'static str> {
    if let Some(name) = event.strip_prefix(b"block_") {
        return match block_action(name) {
            Some(action) => block(action, values).map(|block| Some(What::Block(block))),
            None => Ok(None),
        };
    }
    Ok(match event {
        b"mmc_request_start" => Some(What::Mmc(mmc(true, values)?)),
        // Vendor kernels have an event of this name with other values; it holds no "struct mmc_request".
        b"mmc_request_done" if memchr::memmem::find(values, b"struct mmc_request").is_some() => {
            Some(What::Mmc(mmc(false, values)?))
        }
        _ if event.starts_with(b"sys_") => {
            let name = &event[4..];
            let (name, entered) = match (name.strip_prefix(b"enter_"), name.strip_prefix(b"exit_")) {
                (Some(name), _) => (name, true),
                (_, Some(name)) => (name, false),
                // The kernel's own text: "sys_write(...)" and "sys_write -> 0x1".
                _ => (name, values.starts_with(b"(")),
            };
            Some(What::Syscall { call: Syscall::named(name), entered })
        }
        b"irq_handler_entry" => {
            let name = words(values).find_map(|word| word.strip_prefix(b"name="));
            name.and_then(controller).map(|host| What::Interrupt { host })
        }
        b"timer_start" => {
            let function = words(values).find_map(|word| word.strip_prefix(b"function="));
            function.and_then(Step::of_timer).map(What::Step)
        }
        b"sched_switch" => {
            let (previous, next) = switch(values).ok_or("thread ==> thread")?;
            Some(What::Switch { previous, next })
        }
        b"sched_waking" | b"sched_wakeup" => {
            let pid = thread(values, b" pid=").ok_or("thread")?;
            Some(What::Wake { pid, began: event == b"sched_waking" })
        }
        _ => match is_file_write(event) {
            Some(has_bytes) => Some(What::FileWrite(file_write(has_bytes, values)?)),
            None => Step::of_probe(event)
                .map(What::Step)
                .or_else(|| Mark::named(event).map(|mark| What::Mark(mark, file(event, values)))),
        },
    })
}

/// `prev_comm=dd prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120` of the kernel,
/// and `dd:7 [120] S ==> swapper/0:0 [120]` of trace-cmd. A name may have anything in it, blanks too.
fn switch(values: &[u8]) -> Option<(u32, u32)> {
    let middle = memchr::memmem::rfind(values, b" ==> ")?;
    Some((thread(&values[..middle], b" prev_pid=")?, thread(&values[middle..], b" next_pid=")?))
}

/// The number behind a key, or in `dd:7 [120]`.
fn thread(values: &[u8], key: &[u8]) -> Option<u32> {
    let number = match memchr::memmem::rfind(values, key) {
        Some(at) => words(&values[at + key.len()..]).next()?,
        None => {
            let name = &values[..memchr::memmem::rfind(values, b" [")?];
            &name[memchr::memrchr(b':', name)? + 1..]
        }
    };
    decimal(number).and_then(|number| u32::try_from(number).ok())
}

/// `dev 179,2 ino 12 pos 0 len 300 copied 300`, `dev = (179,2), ino = 12, ...` and `bdi 179:0: ino=12 index=3`.
fn file_write(has_bytes: bool, values: &[u8]) -> Result<FileWrite, &'static str> {
    let mut parts = values.split(|byte| b" =(),:".contains(byte)).filter(|part| !part.is_empty());
    let (mut on, mut inode, mut bytes) = (None, None, None);
    while let Some(part) = parts.next() {
        let mut next = || parts.next().and_then(decimal);
        match part {
            b"dev" | b"bdi" => {
                // A file system without a disk has a name here.
                on = match next() {
                    Some(major) => next().map(|minor| (major, minor)),
                    None => None,
                }
            }
            b"ino" => inode = next(),
            b"copied" => bytes = next().and_then(|bytes| u32::try_from(bytes).ok()),
            _ => {}
        }
    }
    let number =
        |(major, minor): (u64, u64)| (major < 1 << 12 && minor < 1 << 20).then_some((major << 20 | minor) as u32);
    let inode = inode.ok_or("ino N")?;
    if has_bytes && bytes.is_none() {
        return Err("copied N");
    }
    Ok(FileWrite { device: on.and_then(number).unwrap_or(0), inode, bytes })
}

/// `dev 179,2 ino 12 ...`, `dev = (179,2), ino = 12`, `bdi 179:0: ino=12`; in hexadecimal for iomap (`ino 0xc`) and the
/// page cache (`ino c`).
fn file(event: &[u8], values: &[u8]) -> File {
    let mut parts = values.split(|byte| b" =(),:".contains(byte)).filter(|part| !part.is_empty());
    let mut found = File::default();
    while let Some(part) = parts.next() {
        match part {
            b"dev" | b"bdi" => {
                let major = parts.next().and_then(decimal).filter(|major| *major < 1 << 12);
                let Some(major) = major else { continue };
                let minor = parts.next().and_then(decimal).filter(|minor| *minor < 1 << 20);
                found.device = minor.map_or(0, |minor| (major << 20 | minor) as u32);
            }
            b"ino" => {
                let value = parts.next().unwrap_or_default();
                let is_bare = event == b"mm_filemap_add_to_page_cache" && !value.starts_with(b"0x");
                found.inode = if is_bare { crate::text::hex(value) } else { number(value) }.unwrap_or(0);
                return found;
            }
            _ => {}
        }
    }
    found
}

/// By the name of the kernel's event without `block_`.
pub(crate) fn block_action(name: &[u8]) -> Option<Action> {
    Some(match name {
        b"bio_queue" => Action::Queue,
        b"split" => Action::Split,
        b"bio_backmerge" => Action::BackMerge,
        b"bio_frontmerge" => Action::FrontMerge,
        b"rq_merge" => Action::RequestMerge,
        b"getrq" => Action::GetRequest,
        b"sleeprq" => Action::Sleep,
        b"rq_insert" => Action::Insert,
        b"rq_issue" => Action::Issue,
        b"rq_requeue" => Action::Requeue,
        b"rq_complete" => Action::Complete,
        b"bio_complete" => Action::BioComplete,
        b"plug" => Action::Plug,
        b"unplug" => Action::Unplug,
        b"bio_remap" | b"rq_remap" => Action::Remap,
        b"io_start" | b"io_done" => Action::Account,
        _ => return None,
    })
}

/// `179,0 WS 4096 () 20482 + 8 be,0,4 [name]` and its shorter forms.
fn block(action: Action, values: &[u8]) -> Result<BlockEvent, &'static str> {
    const EXPECTED: &str = "device RWBS sector + sectors";
    if matches!(action, Action::Plug | Action::Unplug) {
        let (op, flags) = letters(b"");
        return Ok(BlockEvent { action, op, flags, device: 0, sector: 0, sectors: 0, other: 0 });
    }
    let mut all = words(values);
    let on = all.next().and_then(device).ok_or(EXPECTED)?;
    let (op, flags) = letters(all.next().ok_or(EXPECTED)?);
    let mut before: &[u8] = b"";
    let (sector, sectors, mut other) = loop {
        let word = all.next().ok_or(EXPECTED)?;
        match word {
            b"+" => {
                let count = all.next().and_then(decimal).and_then(|count| u32::try_from(count).ok());
                break (decimal(before).ok_or(EXPECTED)?, count.ok_or(EXPECTED)?, 0);
            }
            b"/" => {
                let rest = all.next().and_then(decimal).ok_or("sector / sector")?;
                let sector = decimal(before).ok_or(EXPECTED)?;
                break (sector, 0, first_part(sector, rest));
            }
            _ => before = word,
        }
    };
    if matches!(action, Action::Complete | Action::BioComplete) {
        let last = memchr::memrchr(b'[', values).map(|at| values[at + 1..].trim_ascii_end());
        let error = last.and_then(|last| last.strip_suffix(b"]")).and_then(signed);
        other = u32::try_from(error.unwrap_or(0).unsigned_abs()).unwrap_or(u32::MAX);
    }
    if !is_place(sector, sectors) {
        return Err("a range that ends before 2^64 bytes");
    }
    Ok(BlockEvent { action, op, flags, device: on, sector, sectors, other })
}

/// `mmc0: start struct mmc_request[c669d954]: cmd_opcode=25 ...`
fn mmc(started: bool, values: &[u8]) -> Result<MmcEvent, &'static str> {
    let host = values.strip_prefix(b"mmc").and_then(|rest| rest.split(|byte| *byte == b':').next());
    let host = host.and_then(decimal).and_then(|host| u8::try_from(host).ok()).ok_or("mmcN:")?;
    let open = memchr::memchr(b'[', values).ok_or("struct mmc_request[address]")?;
    let close = open + memchr::memchr(b']', &values[open..]).ok_or("struct mmc_request[address]")?;
    let request = crate::text::hex(&values[open + 1..close]).ok_or("a hexadecimal address")?;
    let mut event = MmcEvent {
        started,
        host,
        opcode: 0,
        retuning: false,
        reliable: false,
        error: 0,
        argument: 0,
        is_block: false,
        blocks: 0,
        request,
    };
    let (mut has_opcode, mut address) = (false, None);
    for word in words(&values[close..]) {
        let Some(equals) = memchr::memchr(b'=', word) else { continue };
        let (key, value) = (&word[..equals], &word[equals + 1..]);
        let whole = || number(value).and_then(|value| u32::try_from(value).ok()).ok_or("a number below 2^32");
        let negative = || signed(value).and_then(|value| i32::try_from(value).ok()).ok_or("a number");
        match key {
            b"cmd_opcode" => (event.opcode, has_opcode) = (whole()? as u8, true),
            b"cmd_arg" => event.argument = whole()?,
            b"sbc_arg" => event.reliable = whole()? >> 31 != 0,
            b"blocks" => event.blocks = whole()?,
            b"blk_addr" => address = Some(whole()?),
            b"cmd_err" | b"data_err" | b"sbc_err" if event.error == 0 => event.error = error_code(negative()?),
            b"doing_retune" | b"retune_now" | b"need_retune" => event.retuning |= negative()? != 0,
            _ => {}
        }
    }
    if has_opcode { Ok(event.located(address)) } else { Err("cmd_opcode=N") }
}
