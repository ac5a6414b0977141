//! Progress of long work: a bar on a terminal after one second, else occasional lines on standard error.
//!
//! There are no lines if a program reads standard error (`--json`), and none for work of a few seconds.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use emmc_report::visible;
use emmc_workload::{Progress, Watch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter work shows no bar.
const BAR_AFTER: Duration = Duration::from_secs(1);
/// Shorter work prints no line; also the shortest time between two lines.
const LINE_AFTER: Duration = Duration::from_secs(5);
/// The same for work of unknown length.
const ENDLESS_LINE_AFTER: Duration = Duration::from_secs(30);
/// The number of equal parts of the work; at most one line per part.
const PARTS: f64 = 10.0;

/// Set once at the start: standard error gets JSON or nothing.
static IS_QUIET: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Turns lines of progress off, because a program reads standard error.
pub(crate) fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Shows the progress of work.
pub(crate) struct Bar {
    begun: Instant,
    bar: Option<ProgressBar>,
    lines: Lines,
    /// The largest share shown so far: progress never goes back.
    share: f64,
}

impl Bar {
    /// A bar that is shown only after the work has taken a while.
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), bar: None, lines: Lines::default(), share: 0.0 }
    }

    /// Shows the completed share, if it is known, and the present step.
    pub(crate) fn show(&mut self, share: Option<f64>, what: &str) {
        let elapsed = self.begun.elapsed();
        if elapsed < BAR_AFTER {
            return;
        }
        let share = share.map(|share| share.clamp(self.share, 1.0));
        self.share = share.unwrap_or(self.share);
        let bar = self.bar.get_or_insert_with(|| new_bar(share.is_some()));
        if !bar.is_hidden() {
            bar.set_message(visible(what).into_owned());
            match share {
                Some(share) => bar.set_position((share * 1000.0) as u64),
                // The share is unknown; the spinner shows that the work continues.
                None => bar.tick(),
            }
        } else if !IS_QUIET.load(Ordering::Relaxed) {
            if let Some(line) = self.lines.line(elapsed, share, what) {
                // If standard error is closed, nobody reads the line.
                let _ = std::io::Write::write_all(
                    &mut std::io::stderr(),
                    format!("emmclab: {}\n", visible(&line)).as_bytes(),
                );
            }
        }
    }

    /// Removes the bar from the screen.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// When a line is due, and its text.
#[derive(Debug, Default)]
struct Lines {
    last: Duration,
    parts: f64,
}

impl Lines {
    fn line(&mut self, elapsed: Duration, share: Option<f64>, what: &str) -> Option<String> {
        let after = if share.is_some() { LINE_AFTER } else { ENDLESS_LINE_AFTER };
        if elapsed < self.last + after {
            return None;
        }
        let line = match share {
            Some(share) => {
                let parts = (share * PARTS).floor();
                if parts <= self.parts {
                    return None;
                }
                self.parts = parts;
                format!("{:.0} % done after {} s: {what}", share * 100.0, elapsed.as_secs())
            }
            None => format!("in progress for {} s: {what}", elapsed.as_secs()),
        };
        self.last = elapsed;
        Some(line)
    }
}

/// Watches a bench or a job, shows its progress, and stops it on request.
pub(crate) struct Watched {
    bar: Bar,
    stop: Arc<AtomicBool>,
    /// The name of a part: a suite has steps, a job has phases.
    part: &'static str,
}

impl Watched {
    /// A bar that stops the bench when `stop` is set.
    #[cfg(feature = "bench")]
    pub(crate) fn new(stop: Arc<AtomicBool>) -> Self {
        Self { bar: Bar::new(), stop, part: "step" }
    }

    /// The same for a job.
    #[cfg(feature = "sim")]
    pub(crate) fn job(stop: Arc<AtomicBool>) -> Self {
        Self { bar: Bar::new(), stop, part: "phase" }
    }

    /// Removes the bar from the screen.
    pub(crate) fn finish(&self) {
        self.bar.finish();
    }
}

impl Watch for Watched {
    fn progress(&mut self, progress: Progress<'_>) -> bool {
        let Progress { step, number, steps, .. } = progress;
        let of = if steps > 0 { format!("/{steps}") } else { String::new() };
        let part = self.part;
        let simulated = progress.now.filter(|_| part == "phase").map(|now| now.0 as f64 / 1e9);
        let simulated = simulated.map_or(String::new(), |seconds| format!(", {seconds:.1} s simulated"));
        self.bar.show(progress.share(), &format!("{part} {number}{of}: {step}{simulated}"));
        !self.stop.load(Ordering::Relaxed)
    }
}

/// With the share and the remaining time if they are known, else with the elapsed time.
fn new_bar(has_end: bool) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr_with_hz(8));
    let template = if has_end { "{bar:30} {percent:>3}%  {msg}  {eta} left" } else { "{spinner} {msg}  {elapsed}" };
    // The template is a constant and valid.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_printed_at_each_tenth_but_rate_limited() {
        let mut lines = Lines::default();
        let mut at = |seconds, share| lines.line(Duration::from_secs(seconds), share, "writing");
        assert_eq!(at(4, Some(0.9)), None, "short work");
        assert_eq!(at(5, Some(0.04)), None, "not a tenth yet");
        assert_eq!(at(6, Some(0.129)).unwrap(), "13 % done after 6 s: writing");
        assert_eq!(at(9, Some(0.5)), None, "too soon");
        assert_eq!(at(12, Some(0.19)), None, "the same tenth");
        assert_eq!(at(13, Some(1.0)).unwrap(), "100 % done after 13 s: writing");
        assert_eq!(at(60, Some(1.0)), None, "complete");
        assert_eq!((at(40, None), at(43, None).is_some()), (None, true), "no end is known");
    }
}
