//! Recordings of the Linux block and MMC layers as events, requests and spans.
//!
//! Five formats give one type of event ([`Event`]): ftrace text, trace-cmd's `trace.dat`, pages of `trace_pipe_raw`,
//! blktrace's binary files and blkparse's text. [`open`] recognises them and merges the files of all processors in the
//! order of time, with bounded memory. Damaged input is reported with its offset ([`Damage`]) and skipped; lost events
//! are events of their own, so that nothing is paired across a loss.
//!
//! A [`Correlator`] makes requests of them, each with five spans from the system call to the card and back;
//! [`analyse`] sums them up.
//!
//! There is no I/O here: inputs are [`Storage`], which the caller implements for files. Absent on purpose: recording,
//! and events that say nothing of storage.

mod analysis;
mod blkparse;
mod blktrace;
mod chunks;
mod correlate;
mod dat;
mod event;
mod export;
mod follow;
mod format;
mod ftrace;
mod live;
mod notes;
mod open;
mod pages;
mod pictures;
mod request;
mod source;
mod step;
mod storage;
mod sums;
mod text;
mod who;
mod window;

pub use analysis::{Needs, analyse, result};
pub use blkparse::Blkparse;
pub use blktrace::Blktrace;
pub use correlate::{Command, Commands, Correlator, Counts, Device, Idle, Unpaired};
pub use event::{Action, BlockEvent, Event, File, FileWrite, Flags, Mark, MmcEvent, Op, Step, Syscall, What};
pub use export::{Timeline, TimelineWriter};
pub use follow::{Selection, Survey, follow, parts, survey, thread};
pub use format::Formats;
pub use ftrace::Ftrace;
pub use live::{Live, LivePart};
pub use notes::{Batch, Damage, Names, Notes};
pub use open::{FORMS, Form, Input, OpenError, Recording, open};
pub use pages::{PAGE_BYTES, Pages};
pub use pictures::{Heat, Line, Pictures, Point, pictures};
pub use request::{Hardware, Mode, Parts, Request, Return, Spans, Why};
pub use source::{EventSource, Merge};
pub use storage::{Part, Storage};
pub use sums::Sums;
pub use who::{FileRow, ThreadRow, Who, who};
