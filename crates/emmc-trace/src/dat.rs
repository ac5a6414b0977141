//! trace-cmd's `trace.dat`, versions 6 and 7: the kernel's formats, names of threads, and pages for each processor.
//!
//! Source: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).

use std::io;
use std::sync::Arc;

use crate::chunks::{Chunks, Compression};
use crate::format::Formats;
use crate::notes::{Batch, Damage, Notes};
use crate::pages::Pages;
use crate::source::EventSource;
use crate::storage::{Part, Storage};
use crate::text::words;

pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// Largest section of metadata: kernels have 10 MB of formats and symbols.
const SECTION_BYTES_MAX: u64 = 256 << 20;
const FORMAT_BYTES_MAX: u64 = 16 << 20;
const OPTIONS_MAX: usize = 65_536;
const CPUS_MAX: u32 = 4096;
/// Sections and options of version 7.
const HEADER_INFO: u16 = 16;
const FTRACE_FORMATS: u16 = 17;
const EVENT_FORMATS: u16 = 18;
const SYMBOLS: u16 = 19;
const COMMAND_LINES: u16 = 21;
const BUFFER: u16 = 3;
const CLOCK: u16 = 4;
const STATISTICS: u16 = 2;

/// Where a damaged header ends.
type Step<T> = Result<T, Damage>;

/// Opens a recording: one reader for each processor, and what the header says.
///
/// Errors: the first place of the header that is wrong; without it no event can be read.
pub(crate) fn open(storage: &Arc<dyn Storage>) -> Step<(Vec<Box<dyn EventSource>>, Notes)> {
    let mut file = Cursor::new(storage.clone());
    file.expect(MAGIC, "the magic of trace.dat")?;
    let version = file.string()?;
    let big = file.byte()? == 1;
    file.big = big;
    let _long = file.byte()?;
    let page_bytes = file.u32()? as usize;
    if !page_bytes.is_power_of_two() || !(512..=1 << 20).contains(&page_bytes) {
        return Err(file.wrong(format!("pages of {page_bytes} bytes"), "a page size"));
    }
    let mut dat =
        Dat { storage: storage.clone(), big, page_bytes, formats: Formats::default(), notes: Notes::default() };
    let places = match version.as_slice() {
        b"6" => dat.version_6(&mut file)?,
        b"7" => dat.version_7(&mut file)?,
        _ => return Err(file.wrong(format!("version {}", String::from_utf8_lossy(&version)), "version 6 or 7")),
    };
    let formats = Arc::new(dat.formats);
    let reader = |Place { cpu, part, page_bytes, compression }: Place| -> Box<dyn EventSource> {
        match compression {
            None => Box::new(Pages::with(part, cpu, formats.clone(), page_bytes, big)),
            Some(compression) => {
                let chunks = Chunks::new(part, compression, big);
                Box::new(Pages::with(chunks, cpu, formats.clone(), page_bytes, big))
            }
        }
    };
    Ok((places.into_iter().map(reader).collect(), dat.notes))
}

/// The pages of a processor.
struct Place {
    cpu: u32,
    part: Part,
    page_bytes: usize,
    compression: Option<Compression>,
}

struct Dat {
    storage: Arc<dyn Storage>,
    big: bool,
    page_bytes: usize,
    formats: Formats,
    notes: Notes,
}

impl Dat {
    fn version_6(&mut self, file: &mut Cursor) -> Step<Vec<Place>> {
        self.header(file)?;
        self.ftrace_formats(file)?;
        self.event_formats(file)?;
        let symbols = u64::from(file.u32()?);
        self.symbols(file, symbols)?;
        let prints = u64::from(file.u32()?);
        file.skip(prints)?;
        self.names(file)?;
        let cpus = file.u32()?;
        if cpus > CPUS_MAX {
            return Err(file.wrong(format!("{cpus} processors"), "at most 4096"));
        }
        let mut kind = file.bytes(10)?;
        if kind == b"options  \0" {
            for _ in 0..OPTIONS_MAX {
                let option = file.u16()?;
                if option == 0 {
                    break;
                }
                let size = file.u32()?;
                let data = file.bytes(u64::from(size).min(SECTION_BYTES_MAX))?;
                self.option(option, &data);
            }
            kind = file.bytes(10)?;
        }
        if kind != b"flyrecord\0" {
            return Err(file.wrong(
                format!("{:?}", crate::text::shown(&kind)),
                "flyrecord (a recording, not text of a latency tracer)",
            ));
        }
        let mut places = Vec::new();
        for cpu in 0..cpus {
            let (offset, bytes) = (file.u64()?, file.u64()?);
            places.push(self.place(cpu, (offset, bytes), self.page_bytes, None));
        }
        Ok(places)
    }

    fn place(&mut self, cpu: u32, (offset, bytes): (u64, u64), page_bytes: usize, with: Option<Compression>) -> Place {
        let size = self.storage.size_bytes();
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            let found = format!("a file of {size} bytes, and pages of processor {cpu} up to byte {offset} + {bytes}");
            self.notes.damage(size, 0, found, "the pages that the header announces");
        }
        // trace-cmd 3.1 announces 4 bytes less than there are for an instance: the number of chunks is what counts.
        let bytes = if with.is_some() { u64::MAX } else { bytes };
        Place { cpu, part: Part::new(self.storage.clone(), offset, bytes), page_bytes, compression: with }
    }

    fn version_7(&mut self, file: &mut Cursor) -> Step<Vec<Place>> {
        let name = file.string()?;
        file.string()?;
        let compression = match name.as_slice() {
            b"none" => None,
            b"zstd" => Some(Compression::Zstd),
            b"zlib" => Some(Compression::Zlib),
            _ => return Err(file.wrong(format!("{:?}", crate::text::shown(&name)), "none, zstd or zlib")),
        };
        let mut next = file.u64()?;
        let mut options = Vec::new();
        // Sections form a chain; a chain that goes round in a damaged file ends here.
        for _ in 0..64 {
            if next == 0 {
                break;
            }
            let (_, mut section) = self.section(next, compression)?;
            next = 0;
            while options.len() < OPTIONS_MAX {
                let (option, size) = (section.u16()?, section.u32()?);
                let data = section.bytes(u64::from(size))?;
                if option == 0 {
                    next = self.cursor(data).u64()?;
                    break;
                }
                options.push((option, data));
            }
        }
        // Formats first: the pages need them.
        for (option, data) in &options {
            if matches!(*option, HEADER_INFO | FTRACE_FORMATS | EVENT_FORMATS | SYMBOLS | COMMAND_LINES) {
                let at = self.cursor(data.clone()).u64()?;
                let (_, mut section) = self.section(at, compression)?;
                match *option {
                    HEADER_INFO => self.header(&mut section)?,
                    FTRACE_FORMATS => self.ftrace_formats(&mut section)?,
                    EVENT_FORMATS => self.event_formats(&mut section)?,
                    SYMBOLS => {
                        let size = section.u32()?.into();
                        self.symbols(&mut section, size)?;
                    }
                    _ => self.names(&mut section)?,
                }
            }
        }
        let mut places = Vec::new();
        for (option, data) in &options {
            if *option != BUFFER {
                self.option(*option, data);
                continue;
            }
            let mut buffer = self.cursor(data.clone());
            let at = buffer.u64()?;
            buffer.string()?;
            let clock = buffer.string()?;
            self.notes.clock.get_or_insert_with(|| String::from_utf8_lossy(&clock).into_owned());
            let (page_bytes, cpus) = (buffer.u32()? as usize, buffer.u32()?);
            if !page_bytes.is_power_of_two() || !(512..=1 << 20).contains(&page_bytes) || cpus > CPUS_MAX {
                return Err(buffer.wrong(format!("{cpus} processors, pages of {page_bytes} bytes"), "a buffer"));
            }
            let mut head = Cursor::at(self.storage.clone(), at, self.big);
            let (_, flags) = (head.u16()?, head.u16()?);
            let with = if flags & 1 != 0 { compression } else { None };
            for _ in 0..cpus {
                let (cpu, offset, bytes) = (buffer.u32()?, buffer.u64()?, buffer.u64()?);
                if bytes > 0 {
                    places.push(self.place(cpu, (offset, bytes), page_bytes, with));
                }
            }
        }
        Ok(places)
    }

    fn cursor(&self, bytes: Vec<u8>) -> Cursor {
        let mut cursor = Cursor::new(Arc::new(bytes));
        cursor.big = self.big;
        cursor
    }

    /// A section's number and content, without its compression.
    fn section(&self, at: u64, compression: Option<Compression>) -> Step<(u16, Cursor)> {
        let mut head = Cursor::at(self.storage.clone(), at, self.big);
        let (id, flags, _, size) = (head.u16()?, head.u16()?, head.u32()?, head.u64()?);
        if size > SECTION_BYTES_MAX {
            return Err(head.wrong(format!("a section of {size} bytes"), "at most 256 MiB"));
        }
        if flags & 1 == 0 {
            let bytes = head.bytes(size)?;
            return Ok((id, self.cursor(bytes)));
        }
        let Some(compression) = compression else {
            return Err(head.wrong("a compressed section".into(), "none in a file without compression"));
        };
        let (packed, plain) = (u64::from(head.u32()?), head.u32()?);
        if u64::from(plain) > SECTION_BYTES_MAX {
            return Err(head.wrong(format!("a section of {plain} bytes"), "at most 256 MiB"));
        }
        let packed = head.bytes(packed)?;
        let bytes = compression.unpack(&packed, plain as usize).map_err(|why| head.wrong(why, "compressed data"))?;
        Ok((id, self.cursor(bytes)))
    }

    fn header(&mut self, file: &mut Cursor) -> Step<()> {
        file.expect(b"header_page\0", "header_page")?;
        let size = file.u64()?;
        let text = file.bytes(size.min(FORMAT_BYTES_MAX))?;
        self.formats.add(&text);
        file.expect(b"header_event\0", "header_event")?;
        let size = file.u64()?;
        file.skip(size)
    }

    fn ftrace_formats(&mut self, file: &mut Cursor) -> Step<()> {
        for _ in 0..file.u32()? {
            let size = file.u64()?;
            file.skip(size)?;
        }
        Ok(())
    }

    fn event_formats(&mut self, file: &mut Cursor) -> Step<()> {
        for _ in 0..file.u32()? {
            file.string()?;
            for _ in 0..file.u32()? {
                let size = file.u64()?;
                if size > FORMAT_BYTES_MAX {
                    return Err(file.wrong(format!("a format of {size} bytes"), "at most 16 MiB"));
                }
                let text = file.bytes(size)?;
                self.formats.add(&text);
            }
        }
        Ok(())
    }

    /// Lines of `/proc/kallsyms`.
    fn symbols(&mut self, file: &mut Cursor, size: u64) -> Step<()> {
        let text = if size > FORMAT_BYTES_MAX { return file.skip(size) } else { file.bytes(size)? };
        self.formats.add_symbols(&text);
        Ok(())
    }

    /// Lines of "pid name".
    fn names(&mut self, file: &mut Cursor) -> Step<()> {
        let size = file.u64()?;
        let text = file.bytes(size.min(FORMAT_BYTES_MAX))?;
        for line in text.split(|byte| *byte == b'\n') {
            let line = line.trim_ascii();
            let blank = memchr::memchr(b' ', line).unwrap_or(line.len());
            let pid = crate::text::decimal(&line[..blank]).and_then(|pid| u32::try_from(pid).ok());
            if let Some(pid) = pid {
                self.notes.names.set(pid, line[blank..].trim_ascii());
            }
        }
        Ok(())
    }

    fn option(&mut self, option: u16, data: &[u8]) {
        let text = String::from_utf8_lossy(data);
        let text = text.trim_end_matches('\0');
        match option {
            // "local global [mono] ..." names the one in brackets.
            CLOCK => {
                let chosen = text.split(['[', ']']).nth(1).unwrap_or(text).trim();
                self.notes.clock = Some(chosen.to_string());
            }
            STATISTICS => {
                for line in data.split(|byte| *byte == b'\n') {
                    let count = words(line).last().and_then(crate::text::decimal).unwrap_or(0);
                    // Overwritten events are before the first page; dropped ones are marked in their page as well.
                    if line.starts_with(b"overrun:") && count > 0 {
                        self.notes.lost += count;
                    }
                }
            }
            _ => {}
        }
    }
}

/// The header, read in sequence.
struct Cursor {
    part: Part,
    big: bool,
}

impl Cursor {
    fn new(storage: Arc<dyn Storage>) -> Self {
        Self::at(storage, 0, false)
    }

    fn at(storage: Arc<dyn Storage>, offset: u64, big: bool) -> Self {
        Self { part: Part::new(storage, offset, u64::MAX), big }
    }

    fn wrong(&self, found: String, expected: &str) -> Damage {
        Damage { offset: self.part.offset(), line: 0, found, expected: expected.into() }
    }

    fn bytes(&mut self, count: u64) -> Step<Vec<u8>> {
        let wanted = usize::try_from(count).unwrap_or(usize::MAX);
        let read: io::Result<Vec<u8>> = self.part.take_bytes(wanted);
        let bytes = read.map_err(|error| self.wrong(format!("an error: {error}"), "more of the header"))?;
        if bytes.len() == wanted { Ok(bytes) } else { Err(self.wrong("the end".into(), "more of the header")) }
    }

    fn skip(&mut self, count: u64) -> Step<()> {
        match self.part.skip(count) {
            true => Ok(()),
            false => Err(self.wrong(format!("the end, {count} bytes announced"), "more of the header")),
        }
    }

    fn expect(&mut self, content: &[u8], name: &str) -> Step<()> {
        let bytes = self.bytes(content.len() as u64)?;
        if bytes == content { Ok(()) } else { Err(self.wrong(format!("{:?}", crate::text::shown(&bytes)), name)) }
    }

    /// Up to a zero, at most 64 KiB.
    fn string(&mut self) -> Step<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                0 => return Ok(text),
                _ if text.len() > 1 << 16 => return Err(self.wrong("64 KiB without a zero".into(), "a name")),
                byte => text.push(byte),
            }
        }
    }

    fn byte(&mut self) -> Step<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    fn number(&mut self, count: u64) -> Step<u64> {
        let mut bytes = self.bytes(count)?;
        if !self.big {
            bytes.reverse();
        }
        Ok(bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn u16(&mut self) -> Step<u16> {
        self.number(2).map(|value| value as u16)
    }

    fn u32(&mut self) -> Step<u32> {
        self.number(4).map(|value| value as u32)
    }

    fn u64(&mut self) -> Step<u64> {
        self.number(8)
    }
}

impl EventSource for Batch {
    /// What a header said, without events of its own.
    fn fill(&mut self, batch: &mut Batch) -> bool {
        batch.events.append(&mut self.events);
        batch.notes.absorb(std::mem::take(&mut self.notes));
        false
    }
}
