//! Recordings in every format, recognised by their content.

use std::sync::Arc;

use crate::blkparse::{self, Blkparse};
use crate::blktrace::{self, Blktrace};
use crate::dat;
use crate::format::Formats;
use crate::ftrace::{self, Ftrace};
use crate::notes::{Batch, Damage};
use crate::pages::Pages;
use crate::source::{EventSource, Merge};
use crate::storage::{Part, Storage};

/// Bytes of a file that are looked at to recognise it.
const BEGINNING_BYTES: usize = 1 << 16;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// ftrace's text.
    Ftrace,
    /// blktrace's binary.
    Blktrace,
    /// blkparse's text.
    Blkparse,
    /// trace-cmd's file.
    TraceDat,
    /// Pages of the ring buffer.
    Pages,
    /// `format` files, which describe the pages.
    Formats,
}

impl Form {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ftrace => "ftrace text",
            Self::Blktrace => "blktrace",
            Self::Blkparse => "blkparse text",
            Self::TraceDat => "trace.dat",
            Self::Pages => "pages of trace_pipe_raw",
            Self::Formats => "format files",
        }
    }

    /// By the first bytes of a file.
    pub fn of(beginning: &[u8]) -> Option<Self> {
        if beginning.starts_with(dat::MAGIC) {
            return Some(Self::TraceDat);
        }
        if blktrace::order(beginning).is_some() {
            return Some(Self::Blktrace);
        }
        let is_text = !beginning.iter().take(4096).any(|byte| *byte == 0);
        if is_text {
            return beginning.split(|byte| *byte == b'\n').take(500).find_map(|line| {
                if blkparse::is_line(line) {
                    Some(Self::Blkparse)
                } else if line.starts_with(b"name: ") || line.trim_ascii().starts_with(b"field: u64 timestamp") {
                    Some(Self::Formats)
                } else if ftrace::is_line(line) {
                    Some(Self::Ftrace)
                } else {
                    None
                }
            });
        }
        // A page: a length in its head that fits into it, with marks in its upper bits only.
        let commit = u64::from_le_bytes(*beginning.get(8..)?.first_chunk()?);
        let length = commit & 0x3fff_ffff;
        (commit >> 32 == 0 && length <= 1 << 20).then_some(Self::Pages)
    }
}

/// An input.
#[derive(Clone)]
pub struct Input {
    /// For messages; the number in `cpu3.trace_pipe_raw` or `cpu3` is the processor of pages.
    pub name: String,
    /// Its content.
    pub storage: Arc<dyn Storage>,
}

/// Why a recording is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// No format is recognised.
    #[error("{name}: no recording is recognised in it; expected {FORMS}")]
    Unknown {
        /// The input.
        name: String,
    },
    /// It is empty.
    #[error("{name}: it is empty; expected {FORMS}")]
    Empty {
        /// The input.
        name: String,
    },
    /// The header is damaged.
    #[error("{name}: {damage}")]
    Header {
        /// The input.
        name: String,
        /// Where and what.
        damage: Damage,
    },
    /// Pages without a description.
    #[error("{name}: pages of trace_pipe_raw need the kernel's format files; give them as one more file")]
    NoFormats {
        /// The input.
        name: String,
    },
    /// Files with times of different kinds.
    #[error("{first} and {second}: blktrace and ftrace have different clocks; give them separately")]
    Mixed {
        /// An input.
        first: String,
        /// Another one.
        second: String,
    },
    /// An error of the system.
    #[error("{name}: {error}")]
    System {
        /// The input.
        name: String,
        /// The error.
        error: String,
    },
}

/// The forms that are read, for help and messages.
pub const FORMS: &str = "ftrace text, trace.dat of trace-cmd, blktrace's binary files, text of blkparse, or pages of \
                         trace_pipe_raw with the kernel's format files";

/// All inputs of one recording, merged.
pub struct Recording {
    /// Their events.
    pub events: Merge<Box<dyn EventSource>>,
    /// Their formats, each once.
    pub forms: Vec<Form>,
}

/// Opens the files of one recording: one, or one for each processor.
///
/// Errors: a file that is not recognised, a damaged header, pages without formats, files that have no common clock. An
/// empty file beside others is a processor without events.
pub fn open(inputs: Vec<Input>) -> Result<Recording, OpenError> {
    let alone = inputs.len() == 1;
    let (mut recognised, mut formats) = (Vec::new(), Formats::default());
    for input in inputs {
        let name = input.name.clone();
        let beginning = Part::whole(input.storage.clone()).take_bytes(BEGINNING_BYTES);
        let beginning =
            beginning.map_err(|error| OpenError::System { name: name.clone(), error: error.to_string() })?;
        if beginning.is_empty() {
            if alone {
                return Err(OpenError::Empty { name });
            }
            continue;
        }
        let form = Form::of(&beginning).ok_or(OpenError::Unknown { name: name.clone() })?;
        if form == Form::Formats {
            let text = Part::whole(input.storage).take_bytes(16 << 20);
            formats.add(&text.map_err(|error| OpenError::System { name, error: error.to_string() })?);
            continue;
        }
        recognised.push((form, input));
    }
    let is_relative = |form: Form| matches!(form, Form::Blktrace | Form::Blkparse);
    if let Some((form, first)) = recognised.first() {
        if let Some((_, other)) = recognised.iter().find(|(other, _)| is_relative(*other) != is_relative(*form)) {
            return Err(OpenError::Mixed { first: first.name.clone(), second: other.name.clone() });
        }
    }
    let (formats, mut next_cpu) = (Arc::new(formats), 0);
    let mut sources: Vec<Box<dyn EventSource>> = Vec::new();
    let mut forms: Vec<Form> = Vec::new();
    for (form, input) in recognised {
        let part = Part::whole(input.storage.clone());
        match form {
            Form::Ftrace => sources.push(Box::new(Ftrace::new(part))),
            Form::Blktrace => sources.push(Box::new(Blktrace::new(part))),
            Form::Blkparse => sources.push(Box::new(Blkparse::new(part))),
            Form::TraceDat => {
                let opened = dat::open(&input.storage);
                let (readers, notes) =
                    opened.map_err(|damage| OpenError::Header { name: input.name.clone(), damage })?;
                sources.extend(readers);
                sources.push(Box::new(Batch { notes, ..Batch::default() }));
            }
            Form::Pages if formats.is_empty() => return Err(OpenError::NoFormats { name: input.name }),
            Form::Pages => {
                let cpu = cpu_of(&input.name).unwrap_or(next_cpu);
                next_cpu = cpu.saturating_add(1);
                sources.push(Box::new(Pages::new(part, cpu, formats.clone())));
            }
            Form::Formats => {}
        }
        forms.push(form);
    }
    forms.sort_unstable();
    forms.dedup();
    Ok(Recording { events: Merge::new(sources), forms })
}

/// The N of the last `cpuN` in a path.
fn cpu_of(name: &str) -> Option<u32> {
    let at = name.rfind("cpu")? + 3;
    let digits: String = name[at..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
