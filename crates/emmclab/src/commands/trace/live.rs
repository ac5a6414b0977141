//! `trace record --live`: spans and top writers in the terminal, refreshed.

use std::io::IsTerminal;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use emmc_linux::tracefs::{Recorded, Recorder};
use emmc_trace::{Live, open};

use super::{memory_file, recorded_in, wait_until};
use crate::CommandResult;
use crate::cli::TraceRecordArgs;
use crate::exit::Exit;
use crate::output::Output;

/// Moves to the upper left corner and clears the screen.
const CLEAR: &str = "\u{1b}[H\u{1b}[J";

pub(super) fn run(args: &TraceRecordArgs, stop: &AtomicBool, output: &mut Output) -> CommandResult {
    let recorder = Recorder::new(Recorded::RequestsAndFiles, args.buffer.0)?;
    let is_terminal = std::io::stdout().is_terminal();
    recorder.start()?;
    let began = Instant::now();
    let (mut last, mut lost, mut carried) = (began, 0, Live::default());
    loop {
        let (due, end) = (last + args.every, args.time.map(|time| began + time));
        wait_until(end.map_or(due, |end| due.min(end)), stop);
        let mut file = memory_file()?;
        let saved = recorder.drain(&mut file)?;
        let is_over = stop.load(std::sync::atomic::Ordering::Relaxed) || end.is_some_and(|end| Instant::now() >= end);
        let mut part = carried.next(open(vec![recorded_in(file)?])?, is_over);
        (part.who.lost_events, lost) = (saved.lost.saturating_sub(lost), saved.lost);
        let took = last.elapsed();
        last = Instant::now();
        let events = part.who.events + part.who.lost_events;
        let cost = recorder.event_ns.map(|ns| 100.0 * events as f64 * ns / took.as_nanos() as f64);
        if is_terminal {
            output.write(CLEAR)?;
        }
        output.document(&emmc_report::present::trace_live(&part, took.as_secs_f64(), cost))?;
        if is_over {
            return Ok(if lost > 0 { Exit::Findings } else { Exit::Good });
        }
    }
}
