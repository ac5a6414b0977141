//! `trace record --live`: spans and top writers in the terminal, refreshed.

use std::io::IsTerminal;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use emmc_linux::tracefs::{Recorded, Recorder};
use emmc_trace::{analyse, open, who};

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
    let (mut last, mut lost) = (began, 0);
    loop {
        let (due, end) = (last + args.every, args.time.map(|time| began + time));
        wait_until(end.map_or(due, |end| due.min(end)), stop);
        let mut file = memory_file()?;
        let saved = recorder.drain(&mut file)?;
        let input = recorded_in(file)?;
        let analysis = analyse(open(vec![input.clone()])?, None);
        let mut writers = who(open(vec![input])?, None);
        (writers.lost_events, lost) = (saved.lost.saturating_sub(lost), saved.lost);
        let took = last.elapsed();
        last = Instant::now();
        let events = writers.events + writers.lost_events;
        let cost = recorder.event_ns.map(|ns| 100.0 * events as f64 * ns / took.as_nanos() as f64);
        if is_terminal {
            output.write(CLEAR)?;
        }
        output.document(&emmc_report::present::trace_live(&analysis, &writers, took.as_secs_f64(), cost))?;
        let is_over = stop.load(std::sync::atomic::Ordering::Relaxed) || end.is_some_and(|end| Instant::now() >= end);
        if is_over {
            return Ok(if lost > 0 { Exit::Findings } else { Exit::Good });
        }
    }
}
